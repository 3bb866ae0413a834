"""Two hypotheses under epsilon-LDP, with a cap eta on total variation or without, at any number of answers [SPR].

Sort the answers by the likelihood ratio P0/P1. Some optimal channel reports a *block* of neighbours in this order: the
report of a block B has the column t + 1_B, t = 1/(e^epsilon - 1), up to a factor (a staircase pattern, [KOV14]).

Primal, over partitions of the sorted answers into consecutive blocks (`program`):

    V(m) = max over partitions into m blocks of  sum_B D(t P0(all) + P0(B) : t P1(all) + P1(B)) / (m t + 1),

where D(a : b) = b f(a/b). The cap allows a mixture of a partition into m blocks and one into m' > m, with total
variation 1/(m t + 1) each, and an erasure: the envelope theorem. The optimum is the least concave function above the
points (1/(m t + 1), V(m)) and (0, 0), at min(eta, tanh(epsilon/2)).

Dual (`proof`, `EnvelopeDual`): potentials u_0 <= ... <= u_k on the cuts of the sorted answers, and a price nu >= 0 of
total variation, such that every block pays,  D(block) <= t lambda + u_j - u_i + nu ...  for all i < j. Their bound is
lambda + nu eta. That all *blocks* pay implies that all 2^k patterns do, because a pattern's worth is convex along the
order. `proof_blocks` looks at about n log n of the n^2/2 blocks, and settles the rest by monotony.
"""
