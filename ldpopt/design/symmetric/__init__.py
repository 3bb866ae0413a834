"""Even priors and pilots under epsilon-LDP, with a cap on total variation or without: the symmetric envelope.

A utility that does not change when answers are permuted is, at an even prior, as large for the average over all
permutations of a channel as for the channel. That average draws sets of j answers evenly and reports the set. Primal,
over weights w_j of the k sizes:

    max  sum_j w_j V_j   s.t.  sum_j w_j = 1,  sum_j w_j eta_j <= eta,

where V_j is the worth of the size j (its information, or its share of Fisher information), and
eta_j = j (k - j) / ((k - 1) (j + k t) ...) its total variation. It has two constraints, so that two sizes and an erasure
are enough, and its optimum is the least concave function above k + 1 points. Dual: a line  a + b eta_j >= V_j  for
all j; its bound is a + b eta. `proof` looks at all k points. `method` realises a size by a 2-design or by as few sets
as treat all pairs of answers alike (`kernel.sets`).
"""
