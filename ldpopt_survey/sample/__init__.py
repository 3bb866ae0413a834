"""How respondents were drawn: weights, strata, clusters, finite populations, known margins, and the variances."""
