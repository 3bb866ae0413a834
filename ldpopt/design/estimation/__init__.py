"""Designs for estimation: channels whose reports estimate proportions, with the least criterion of their errors [KW].

Scale every column u to u.p = 1 at the pilot p. The information of a channel with weights w_y is J, and the covariance
of the best estimate is its inverse, less p p'. Primal, for a convex criterion Phi of that covariance (A-, D-, c-,
MV-optimal; all proportions of a questionnaire):

    min  Phi(J(w)^-1 - p p')   s.t.  J(w) = sum_y w_y u_y u_y',  sum_y w_y u_y = 1,  w >= 0,  every u_y allowed

Dual (the equivalence theorem of Kiefer and Wolfowitz), for a sum of variances tr(F' C F), a matrix K and lambda:

    max  2 tr(K F) - sum lambda   s.t.  |K u|^2 <= lambda.u + prices of pairs   for every allowed column u.

`proof` checks the last line for every column. The method depends on the columns:

- a list (`patterns.policy`, up to `MAX_INPUTS_ALL_PRICED` inputs),
- thresholds of a score where K has few rows (`thresholds`),
- symmetric counts (`scores`),
- branch and bound over all 2^k patterns (`branches`),
- a semidefinite relaxation (`relaxation` [Shor]).

`staircase` and `policy` choose among them. Methods: `method` exchanges columns. `method_variances` draws sets for many
categories. `method_thresholds`, with `program_thresholds`, and `method_marginals` are for questionnaires. The same file
turns the bound into a number of respondents that every survey needs.
"""
