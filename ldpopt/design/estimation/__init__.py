"""Designs for estimation: channels whose reports estimate shares, with the least criterion of their errors [KW].

A report with the column u, u.p = 1, has the score u - 1 (as a function of the answer). The information of a channel
with weights w_y is J = sum_y w_y u_y u_y' and the covariance of the best estimate is the inverse of J on contrasts.
Primal, for a convex criterion Phi (A-, D-, c-, MV-optimal; all shares of a questionnaire):

    min  Phi(J(w))   s.t.  sum_y w_y u_y = 1, w >= 0, every u_y a column that the constraints allow.

Dual (the equivalence theorem of Kiefer and Wolfowitz): for a matrix K (the gradient at the optimum) and lambda,

    max  2 tr(K F) - sum lambda   s.t.  |K u|^2 <= lambda.u + prices of pairs   for every allowed column u.

`proof` checks the last line for every column. How, depends on the columns: a list (`patterns.policy`, up to
`EXACT_LIMIT` inputs), thresholds of a score where K has few rows (`thresholds`), symmetric counts (`scores`), branch
and bound over all 2^k patterns (`branches`), or a semidefinite relaxation (`relaxation` [Shor]). `staircase` and
`policy` choose among them. Methods: `method` exchanges columns; `method_variances` draws sets for many categories;
`method_thresholds` and `method_marginals` are for questionnaires. `proof_respondents` turns the bound into a number of
respondents that no survey can do without.
"""
