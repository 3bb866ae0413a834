"""Priors and pilots that treat answers equally, under epsilon-LDP, with or without a cap on total variation.

*The symmetric envelope*, where all answers are equivalent.

A utility that does not change when answers are permuted is, at a uniform prior, as large for the average of a channel
over all permutations as for the channel. Such an average draws a size w, then a set of w answers among all of that
size. It consists of staircase patterns t + 1_A, t = 1/(e^epsilon - 1). Primal, over the fractions theta_w of the sizes:

    max  sum_w theta_w u_w   s.t.  sum_w theta_w <= 1,  sum_w theta_w eta_w <= eta,  theta >= 0,

    eta_w = w (k - w) / ((k - 1) (k t + w)),    u_w = the utility of the channel that selects sets of w answers.

There are two constraints, so that at most two sizes, or one and an erasure, are optimal. Dual: for any slope a >= 0,

    a eta + max(0, max_w (u_w - a eta_w))

bounds every channel. `proof` is the slope, and evaluates all k - 1 points. `method` realizes a size by few sets that
treat all pairs of answers equally (`kernel.sets`), and `proof` states the utilities that this holds for.

*The orbit program*, for mutual information where answers are equivalent within up to four groups, k_i answers of the
mass q_i. The average over permutations within the groups draws an orbit j, then a set with j_i answers of each group i.
Primal, over the weights theta_j of the orbits, where s_il(j) is the probability that a set separates answers of two
groups:

    max  sum_j theta_j h(sum_i q_i j_i)   s.t.  sum_j theta_j (t + j_i/k_i) = 1 (lambda_i),  sum_j theta_j s_il <= eta

Dual:  min  sum lambda + eta sum nu   s.t.  sum_i lambda_i (t + j_i/k_i) + sum_il nu_il s_il(j) >= h  for every orbit j.

`proof_orbits` evaluates all prod (k_i + 1) orbits. `program_orbits` generates their columns. `families` finds few sets
that represent the orbits, and `method_orbits` builds the channel.
"""
