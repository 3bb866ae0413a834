"""Implications of a guarantee for groups, information, Bayes factors, bad outcomes and generalization."""

from __future__ import annotations

import math
from fractions import Fraction

from ldpopt.errors import invalid
from ldpopt.numbers.rounding import down, sum_up, up
from ldpopt.privacy.claims import MCDP, ZCDP, ApproximateDP, Given, PureDP, RenyiDP, amount, need
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import positive, positive_integer, unit_interval

__all__ = [
    "bad_outcome", "bayes_factor_log", "bayes_factor_moment", "bayes_factor_tail", "composed_event",
    "generalization_gap", "group_approximate", "group_gaussian_mcdp", "group_pure", "group_renyi", "group_zcdp",
    "information_any", "information_blocks", "information_independent", "restricted_pinsker",
]  # fmt: skip

MAX_SIZE = 2**53
"""The largest size of a group, up to which floats count exactly."""
MAX_DOUBLINGS = 600
"""The most doublings; more would leave the range of floats."""


def group_pure(claim: Given, size: int) -> PureDP:
    """Convert epsilon-DP for one person to (size epsilon)-DP for a group of `size`.

    Laplace noise attains it [M, Table I].

    >>> group_pure(PureDP(0.5), 3).epsilon > 1.5
    True
    """
    size = positive_integer(size, "size", maximum=MAX_SIZE)
    return PureDP(up(size * need(PureDP, claim).epsilon), tight=True, reference="[M, Table I]")


def group_approximate(claim: Given, size: int) -> ApproximateDP:
    """Convert (epsilon, delta)-DP for one person to a group of `size`: (size epsilon, delta').

    delta' = delta (e^(size epsilon) - 1)/(e^epsilon - 1), from the definition applied `size` times [GI, Def 1].

    >>> group_approximate(ApproximateDP(0.5, 1e-6), 3)
    ApproximateDP(epsilon=1.500000001, delta=5.36701e-06) (not tight, [GI, Def 1])
    """
    claim, size = need(ApproximateDP, claim), positive_integer(size, "size", maximum=MAX_SIZE)
    epsilon = claim.epsilon
    if claim.delta == 0 or epsilon == 0:
        factor = float(size)
    elif size * epsilon > 700:
        factor = math.inf
    else:
        factor = math.expm1(size * epsilon) / math.expm1(epsilon)
    delta = 0.0 if claim.delta == 0 else min(1.0, up(claim.delta * factor, 16 + 2 * size * epsilon))
    return ApproximateDP(up(size * epsilon), delta, tight=False, reference="[GI, Def 1]")


def group_zcdp(claim: Given, size: int) -> ZCDP:
    """Convert (xi, rho)-zCDP for one person to a group of `size` [BS, Prop 5.3].

    The group has (xi size H, rho size^2)-zCDP. H is the harmonic number 1 + 1/2 + ... + 1/size. The bound on rho is
    tight; a negative xi counts as 0.

    >>> group_zcdp(ZCDP(0.0, 0.1), 3)
    ZCDP(xi=0, rho=0.9000000001) (tight, [BS, Prop 5.3])
    """
    claim, size = need(ZCDP, claim), positive_integer(size, "size", maximum=MAX_SIZE)
    xi = up(max(0.0, claim.xi) * size * _harmonic(size), 16)
    return ZCDP(xi, up(claim.rho * size**2), tight=claim.xi <= 0, reference="[BS, Prop 5.3]")


def group_renyi(claim: Given, doublings: int) -> RenyiDP:
    """Convert Rényi privacy for one person to groups of 2^doublings [M, Prop 2].

    (order, epsilon) for one person becomes (order/2^c, 3^c epsilon), where c = `doublings`. Raises `InvalidInput`
    unless order >= 2^(c + 1).

    >>> group_renyi(RenyiDP(8, 0.1), 2).order
    2.0
    """
    claim, c = need(RenyiDP, claim), positive_integer(doublings, "doublings", 0, MAX_DOUBLINGS)
    if claim.order < 2 ** (c + 1):
        raise invalid("order", f"an order of at least 2^(c + 1) = {2 ** (c + 1)}", claim.order)
    return RenyiDP(claim.order / 2**c, up(3**c * claim.epsilon), tight=False, reference="[M, Prop 2]")


def _harmonic(size: int) -> float:
    """1 + 1/2 + ... + 1/size; for large sizes a bound on it."""
    return math.fsum(1 / i for i in range(1, size + 1)) if size <= 10**6 else 1 + math.log(size)


def group_gaussian_mcdp(sensitivity: float, sigma: float, size: int = 1) -> MCDP:
    """Compute the mCDP of the Gaussian mechanism for a group [DR, Cor 3.3, corrected].

    It is ((s D/sigma)^2/2, s D/sigma). s is `size`, D is `sensitivity` and sigma is the standard deviation of the
    noise. The paper omits the division by sigma.

    >>> group_gaussian_mcdp(1.0, 2.0, size=3)
    MCDP(mu=1.125000001, tau=1.500000001) (tight, [DR, Cor 3.3, corrected])
    """
    sensitivity, size = amount(sensitivity, "sensitivity"), positive_integer(size, "size", maximum=MAX_SIZE)
    sigma = positive(sigma, "sigma")
    exact = Fraction(sensitivity) * size / Fraction(sigma) if math.isfinite(sensitivity) else Fraction(2) ** 1024
    tau = float(exact) if exact < 2**1023 else math.inf
    return MCDP(up(tau * tau / 2), up(tau), tight=True, reference="[DR, Cor 3.3, corrected]")


def information_any(claim: Given, size: int) -> float:
    """Bound I(X; M(X)), in nats, for n people with any joint distribution [BS, Prop 6.1].

    The bound is xi n H(n) + rho n^2, where H(n) = 1 + ... + 1/n. The claim is (xi, rho)-zCDP and n is `size`. A
    negative xi counts as 0 if n is above 1.

    >>> round(information_any(ZCDP(0.0, 0.01), 10), 6)
    1.0
    """
    return information_blocks(claim, 1, size)


def information_independent(claim: Given, size: int) -> float:
    """Bound I(X; M(X)), in nats, for m = `size` independent people by (xi + rho) m.

    The claim is (xi, rho)-zCDP [BS, Lemma 6.2].

    >>> round(information_independent(ZCDP(0.0, 0.5), 10), 9)
    5.0
    """
    claim, size = need(ZCDP, claim), positive_integer(size, "size")
    return size * max(0.0, sum_up(claim.xi, claim.rho))


def information_blocks(claim: Given, blocks: int, size: int) -> float:
    """Bound I(X; M(X)), in nats, for m independent blocks of l people [BS, Thm 6.3].

    The bound is m (xi l (1 + log l) + rho l^2). The claim is (xi, rho)-zCDP, m is `blocks` and l is `size`. A negative
    xi counts as 0 if l is above 1.

    >>> round(information_blocks(ZCDP(0.0, 0.01), 5, 2), 6)
    0.2
    """
    claim = need(ZCDP, claim)
    blocks, size = positive_integer(blocks, "blocks"), positive_integer(size, "size")
    if size == 1:
        return information_independent(claim, blocks)
    return up(blocks * (max(0.0, claim.xi) * size * _harmonic(size) + claim.rho * size**2), 16)


def bad_outcome(claim: Given, probability: float) -> tuple[float, float]:
    """Bound an event's probability P' under one input by its `probability` P under another.

    Returns (low, high). For a `RenyiDP` claim of order a, e^-eps P^(a/(a - 1)) <= P' <= (e^eps P)^((a - 1)/a). For a
    `PureDP` claim, e^-eps P <= P' <= e^eps P [M, Table I].

    >>> [round(bound, 6) for bound in bad_outcome(RenyiDP(2.0, 0.1), 0.01)]
    [9e-05, 0.105127]
    """
    probability = unit_interval(probability, "probability")
    order, epsilon = _order(claim)
    if probability == 0 or math.isinf(epsilon) or order == 1:
        exact_zero = probability == 0 and not math.isinf(epsilon) and order > 1
        return 0.0, 0.0 if exact_zero else 1.0
    power = 1.0 if math.isinf(order) else order / (order - 1)
    log = math.log(probability)
    low = down(math.exp(-epsilon + power * log), 16 + 4 * (epsilon - power * log))
    high = up(math.exp(min(0.0, (epsilon + log) / power)), 16 + 4 * (epsilon - log))
    return low, min(1.0, high)


def bayes_factor_moment(claim: Given) -> tuple[float, float]:
    """Bound the mean of the Bayes factor to the power `order`; return (order, bound).

    The factor is posterior odds / prior odds, of an input D against D', for a report drawn under D' [M, Table I]. The
    bound is e^((order - 1) epsilon) for a `RenyiDP` claim; a `PureDP` claim gives (inf, e^epsilon), a bound on the
    factor itself.

    >>> order, bound = bayes_factor_moment(RenyiDP(2.0, 0.5))
    >>> order, round(bound, 6)
    (2.0, 1.648721)
    """
    order, epsilon = _order(claim)
    if math.isinf(order):
        return math.inf, up(math.exp(epsilon), 8 + 2 * epsilon) if epsilon < 700 else math.inf
    exponent = (order - 1) * epsilon
    return order, up(math.exp(exponent), 8 + 2 * exponent) if exponent < 700 else math.inf


def bayes_factor_log(claim: Given) -> float:
    """Bound the expected (for `PureDP`, any) change of log odds by epsilon, in nats [M, Table I].

    >>> round(bayes_factor_log(RenyiDP(2.0, 0.5)), 6)
    0.5
    """
    return _order(claim)[1]


def bayes_factor_tail(claim: Given, factor: float) -> float:
    """Bound the probability that the odds change by more than `factor` >= 1 [M, Table I].

    The bound follows from Markov's inequality.

    >>> round(bayes_factor_tail(RenyiDP(4.0, 0.5), 10.0), 6)
    0.004482
    """
    order, epsilon = _order(claim)
    log = math.log(max(1.0, amount(factor, "factor")))
    if math.isinf(order):
        return 0.0 if log >= epsilon else 1.0
    exponent = (order - 1) * (epsilon - log)
    return min(1.0, up(math.exp(min(0.0, exponent)), 16 + 4 * (order - 1) * (epsilon + log)))


def composed_event(epsilon: float, count: int, probability: float) -> float:
    """Bound an event's probability under n epsilon-DP mechanisms [M, Prop 4].

    The bound is exp(2 epsilon sqrt(n log 1/P)) P. n is `count`, epsilon is in nats and P is the event's `probability`
    under an adjacent input. The constant is that of [BS, Prop 1.4]; Lemma 1 of [M] gives 3 instead of 2.

    >>> round(composed_event(0.1, 10, 1e-6), 9)
    1.0494e-05
    """
    epsilon, count = amount(epsilon, "epsilon"), positive_integer(count, "count", maximum=2**53)
    probability = unit_interval(probability, "probability")
    if probability == 0:
        return 0.0 if math.isfinite(epsilon) else 1.0
    log = math.log(probability)
    return min(1.0, up(math.exp(min(0.0, 2 * epsilon * math.sqrt(count * -log) + log)), 64 - 8 * log))


def generalization_gap(restricted_kl: float) -> float:
    """Bound |E (query on the sample - query on the population)| by 8 sqrt(epsilon), at most 1.

    See [CIM, Thm 6]. A mechanism chooses queries with values in [0, 1] from the data. Its KL divergence restricted to a
    class H of functions, `restricted_kl`, is at most epsilon, in nats; H must contain the evaluations q -> q(x).

    >>> round(generalization_gap(1e-4), 6)
    0.08
    """
    return min(1.0, restricted_pinsker(restricted_kl))


def restricted_pinsker(restricted_kl: float) -> float:
    """Bound sup over h in H of E_P h - E_Q h by 8 sqrt(KL_H(P, Q)) [CIM, Thm 7].

    KL_H is the KL divergence restricted to the class H, in nats. H must be convex, translation invariant and closed
    under negation, with values in [-1, 1].

    >>> round(restricted_pinsker(1e-4), 6)
    0.08
    """
    return up(8 * math.sqrt(amount(restricted_kl, "restricted_kl")), 8)


def _order(claim: Given) -> tuple[float, float]:
    if isinstance(claim, PureDP) or (isinstance(claim, Guarantee) and claim.notion == "local_dp"):
        return math.inf, need(PureDP, claim).epsilon
    claim = need(RenyiDP, claim)
    return claim.order, claim.epsilon
