"""Utilities of the marginals of a few laws (the worst of several divergences, information of a prior on laws).

For laws P_1, ..., P_n of the answers, the worth of a column q depends on (P_1.q, ..., P_n.q) only, and is convex and
homogeneous. Under epsilon-LDP with a cap on total variation, columns are staircase patterns t + 1_A. Primal: the
program of `patterns` on patterns that are found, not listed. Dual, with pair prices nu:

    min  sum lambda + eta sum nu   s.t.  g.(t + 1_A) <= lambda.(t + 1_A) + sum nu[x,x'] 1_A(x) (1 - 1_A(x'))

for every set A and every linear g in P-space that supports the utility on one simplex of shares. For a fixed g, the
best set A is a minimum cut (`minimum_cut`), and the flow proves it. `proof` covers the space of shares by simplices
(`proof_simplices`), on each of which a linear function lies above the utility.
"""
