"""Sums over columns whose extreme columns can be listed: patterns, levels, the columns of a policy graph.

Every constraint that is a cone c_x <= e^w c_x' on columns has finitely many extreme columns c. A utility that is convex
and homogeneous in the column is largest on them [KOV14, Thm 2]. Primal (`program`), over weights theta_c >= 0:

    max  min_j sum_c theta_c mu_j(c)   s.t.  sum_c theta_c c = 1 (lambda),  sum_c theta_c v[x,x'](c) <= r (nu)

Dual:  min  sum lambda + r sum nu   s.t.  lambda.c + nu.v(c) >= sum_j w_j mu_j(c)  for every listed c.

The lists are: 2^k - 1 staircase patterns t + 1_A under epsilon-LDP. Powers of e^epsilon on a support under (epsilon,
delta)-LDP (`proof_levels`). Spanning trees of tight limits along a graph (`policy`). The completeness of a list is
stated in `kernel.listed`, and tests enumerate it exactly. `proof` and `proof_levels` check every column. `method_cvxpy`
formulates the same program in cvxpy, for users who want to extend it.
"""
