"""Reports with a meaning: decisions with the least expected loss, and draws for private sampling.

The loss is linear in the channel, and the constraints are convex. Primal (`program`), for a prior p and losses L:

    min  sum_xy p_x L_xy Q_xy   s.t.  Q 1 = 1 (lambda),  Q >= 0,  sum_y phi_z(Q_xy, Q_x'y) <= r_z (nu_z)

Dual, with any subgradients g_zy of phi_z at the rows of the constraint z:

    max  sum lambda - sum nu_z r_z   s.t.  p_x L_xy + sum_z nu_z g_zy[x] >= lambda_x    for all x and y

Private sampling [PAL] draws from a distribution that is near each answer's own. The largest divergence is minimized, by
the same program with tangents of the divergence. `proof` checks the dual constraints column by column.
"""
