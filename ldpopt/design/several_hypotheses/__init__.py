"""Utilities of the marginals of a few distributions: the worst of several divergences, and mutual information.

For distributions P_1, ..., P_n of the answers, the value of a column q depends on (P_1.q, ..., P_n.q) only, and is
convex and homogeneous. Under epsilon-LDP with a cap on total variation, columns are staircase patterns t + 1_A. Primal:
the program of `patterns`, on patterns that are generated, not enumerated. Dual, with multipliers lambda of the rows and
nu >= 0 of the pairs, over all columns s with entries in [t, t + 1], t = 1/(e^epsilon - 1):

    min  sum lambda + eta sum nu   s.t.  utility(s) <= lambda.s + sum nu[x,x'] (s_x - s_x')_+

Simplices cover the masses (P_1.s, ..., P_n.s) of all columns. On each, a linear function g lies above the utility. For
one g the column that gains most is a minimum cut (`minimum_cut`), and a flow proves that it does. `proof` adds up the
shortfalls and raises the multipliers by them.
"""
