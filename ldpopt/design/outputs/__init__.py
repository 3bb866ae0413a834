"""Limits on the outputs: a given number of them, a support, invariant answers, bounded capacity.

Without a limit, a column may be split and joined freely, and the problem is convex. With one, the channel is a matrix
of m given columns and the utility is *convex* in it. So a maximum sits at an extreme point, and no local condition
proves it. Primal (`program`): the best channel for linear utilities c_1, ..., c_m of the given outputs.

Branch and bound: a box bounds the likelihood ratios of every output (`proof`, two hypotheses) or the entries of every
column (any sum over columns). On a box, a chord lies above the convex utility, the program with the chords is linear,
and its multipliers prove a bound for all channels of the box. The bound of a tree is the largest of its leaves, and a
proof checks that the leaves cover everything. `method` splits the box with the largest bound; `method_search` climbs
from many starts and proves nothing.
"""
