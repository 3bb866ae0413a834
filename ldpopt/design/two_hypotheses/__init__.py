"""Two hypotheses under epsilon-LDP, with or without a cap eta on total variation, for any number of answers [SPR].

Sort the answers by the likelihood ratio P0/P1. With t = 1/(e^epsilon - 1), a report has, up to a factor, the column t +
1_A of a set A of answers (a staircase pattern [KOV14, Thm 4]). Some optimal channel uses *blocks* only: sets of
neighbors in this order.

Primal (`program`): let mu(a, b) = b f(a/b), and subtract the linear part, whose value is the same in every channel. A
block of the answers i..j-1 then has the value

    w(i, j) = mu(t + P0(i..j), t + P1(i..j)) - f'(1) (P0 - P1)(i..j).

A partition into m consecutive blocks is a channel with total variation 1/(m t + 1) and the value  sum w / (m t + 1).
The optimum at eta is the least non-decreasing concave majorant of (0, 0) and of the best partition for every m, at eta.
It is a mixture of two partitions, or of one and an erasure. A dynamic program computes the best partition for every m.

Dual (`proof`): potentials u_0, ..., u_n on the cuts of the sorted answers and a level A with

    w(i, j) <= t A + u_j - u_i    for all i < j

bound the optimum by  A + eta (u_n - u_0 - A)_+:  add up the blocks of a partition. That partitions into blocks suffice
is the envelope theorem (docs/explanation/envelope.md). The proof covers all n^2/2 blocks by evaluating about n log n of
them; monotonicity decides the others.
"""
