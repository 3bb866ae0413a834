"""Even priors and pilots under epsilon-LDP, with a cap on total variation or without: the symmetric envelope.

A utility that does not change when answers are permuted is, at an even prior, as large for the average of a channel
over all permutations as for the channel. Such an average draws a size w, then a set of w answers among all of that
size, and is made of staircase patterns t + 1_A, t = 1/(e^epsilon - 1). Primal, over the shares theta_w of the sizes:

    max  sum_w theta_w u_w   s.t.  sum_w theta_w <= 1,  sum_w theta_w eta_w <= eta,  theta >= 0,

    eta_w = w (k - w) / ((k - 1) (k t + w)),    u_w = the utility of the channel that selects sets of w answers.

There are two constraints, so that at most two sizes, or one and an erasure, are optimal. Dual: for any slope a >= 0,

    a eta + max(0, max_w (u_w - a eta_w))

bounds every channel. `proof` is the slope, and looks at all k - 1 points. `method` realises a size by few sets that
treat all pairs of answers alike (`kernel.sets`), and `proof` says for which utilities this holds.
"""
