"""Mutual information of many answers, and the capacity that constraints leave.

I(X; Y) is a sum over columns of  sum_x p_x c_x log(c_x / p.c).  On a staircase pattern it depends on the probability
p(A) of its set only, so that sets with good probabilities are enough. Primal (`program`): the pattern program in which
a few inputs are taken whole, and the rest as if it could be divided at will, which makes the optimum no smaller. Dual:

    min  sum lambda + eta sum nu   s.t.  for every subset W of the whole inputs and every share s of the rest, the
    concave function  I(p(W) + s) - lambda(W) - (price of s)  is at most 0.

`proof` finds the best share of each W in closed form. `method` takes sets that nearly attain it. `proof_capacity` needs
no columns: C <= max over pairs of rows of a divergence, for every constraint between rows (`InformationCapacity`), and
a combination of moments and excesses weighted by the prior (`PairwiseInformation`; its numbers are those of
`program_pairwise`).
"""
