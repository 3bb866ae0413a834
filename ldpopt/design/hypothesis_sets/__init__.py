"""Two hypotheses that are only known to lie in convex sets: the worst pair, and the best channel against it.

    max over channels Q of  min over P0 in S0, P1 in S1 of  D_f(P0 Q || P1 Q)

The inner minimum is convex in the pair (D_f is jointly convex), and any one pair (m0, m1) of members proves

    optimum <= max over Q of D_f(m0 Q || m1 Q),

whose certificate is that of `two_hypotheses` or `ratios`. `method` alternates between the best channel for a pair and
the worst pair for a channel, until both meet (a saddle point [HS; Huber]). `proof` shows that the pair is of the sets,
and that a linear function below D_f proves the value for every pair.
"""
