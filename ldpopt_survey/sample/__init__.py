"""Sample designs: weights, strata, clusters, finite populations, known margins, and variances by replication."""
