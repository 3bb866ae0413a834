"""Two hypotheses under any convex constraint on pairs of rows: Renyi, zCDP, (epsilon, delta), trade-off, graphs.

A utility D_f depends on a column q only through its two marginals (P0.q, P1.q). Give each output a *label*: a
likelihood ratio, whose tangent of f lies below D_f, or an interval of ratios, whose chord lies above it. Primal
(`program`), over one column Q_i per label i with the linear gain c_i = slope (P0 - P1) + level P1:

    max  sum_i c_i.Q_i   s.t.  sum_i Q_i = 1 (lambda),  Q_i >= 0,  sum_i phi_z(Q_i[x], Q_i[x']) <= r_z (nu_z),

where every phi_z is convex and homogeneous: (a - e^epsilon b)_+ for hockey sticks, a^alpha b^(1 - alpha) for moments.
With tangents the optimum is a lower bound and its channel is feasible. With chords of a grid that covers all ratios it
is an upper bound. Dual, for every label i:

    min  sum_x lambda_x + sum nu_z r_z   s.t.  c_i <= lambda + sum nu_z (a subgradient of phi_z) on the cone q >= 0.

`method` adds labels at ratios that violate the dual constraints (exchange). `method_tangents` and the interior-point
`program_smooth` do so for moments. `proof` checks the dual constraints of every chord (`proof_chords`). At the
unbounded ends, where f may be infinite, it checks them by a tangent and a moment.
"""
