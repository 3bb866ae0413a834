"""Mutual information of many answers, and the capacity that constraints leave.

The information is a sum over the columns c:

    I(X; Y) = sum_c sum_x p_x c_x log(c_x / p.c)

On a staircase pattern it depends on the probability p(A) of its set only, so that sets with good probabilities are
enough. Primal (`program`): the pattern program. A few inputs are indivisible, and the rest is treated as divisible, so
the optimum does not fall. Dual: multipliers lambda of the rows and prices of the pairs with

    h(P(I) + R rho) <= t sum lambda + lambda(I) + lambda_R rho + the prices of pairs    for all sets I and 0 <= rho <= 1

where h(a) is the information of a pattern of mass a. I is a set of the indivisible inputs, and rho the fraction of the
rest, whose mass is R. `proof` compares lines above h at rho = 0 and 1. `method` uses sets that nearly attain it.

`proof_capacity` needs no columns. `InformationCapacity` is the largest information of any prior under epsilon-LDP, in
closed form. `PairwiseInformation` averages moments and excesses over pairs of rows, for every constraint between rows,
with the weights of `program_pairwise`.
"""
