"""What a guarantee bounds: information, Bayes factors, bad outcomes, generalization."""

from __future__ import annotations

import math

from ldpopt.distribution import positive_integer, unit_interval
from ldpopt.privacy.claims import ZCDP, Claim, PureDP, RenyiDP, need, nonnegative
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import down, sum_up, up

Given = Claim | Guarantee


def information_any(claim: Given, size: int) -> float:
    """I(X; M(X)) <= xi n (1 + log n) + rho n^2 nats for n people with any joint distribution [BS, Prop 6.1].

    Computed with the harmonic number in place of 1 + log n, as its proof does; xi below 0 counts as 0.

    >>> round(information_any(ZCDP(0.0, 0.01), 10), 6)
    1.0
    """
    return information_blocks(claim, 1, size)


def information_independent(claim: Given, size: int) -> float:
    """I(X; M(X)) <= (xi + rho) m nats for m independent people [BS, Lemma 6.2].

    >>> round(information_independent(ZCDP(0.0, 0.5), 10), 9)
    5.0
    """
    made, size = need(ZCDP, claim), positive_integer(size, "size")
    return size * max(0.0, sum_up(made.xi, made.rho))


def information_blocks(claim: Given, blocks: int, size: int) -> float:
    """I(X; M(X)) <= m (xi l (1 + log l) + rho l^2) nats for m independent blocks of l people [BS, Thm 6.3].

    >>> round(information_blocks(ZCDP(0.0, 0.01), 5, 2), 6)
    0.2
    """
    made = need(ZCDP, claim)
    blocks, size = positive_integer(blocks, "blocks"), positive_integer(size, "size")
    if size == 1:
        return information_independent(made, blocks)
    harmonic = math.fsum(1 / i for i in range(1, size + 1)) if size <= 10**6 else 1 + math.log(size)
    return up(blocks * (max(0.0, made.xi) * size * harmonic + made.rho * size**2), 16)


def bad_outcome(claim: Given, probability: float) -> tuple[float, float]:
    """Bounds (low, high) on an event's probability under an adjacent input where it had `probability` [M, Table I].

    For a `RenyiDP` claim: e^-eps P^(a/(a - 1)) <= P' <= (e^eps P)^((a - 1)/a); for a `PureDP` one, e^-+eps P.

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
    """(order, e^((order - 1) epsilon)): E (posterior odds / prior odds)^order is at most the second [M, Table I].

    The odds are of an input D against D', the report is drawn under D'. For a `PureDP` claim (inf, e^epsilon): the
    factor itself is at most e^epsilon, always.

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
    """The expected change of log odds is at most epsilon, at any order [M, Table I]; for pure DP, always.

    >>> round(bayes_factor_log(RenyiDP(2.0, 0.5)), 6)
    0.5
    """
    return _order(claim)[1]


def bayes_factor_tail(claim: Given, factor: float) -> float:
    """A bound on the probability that the odds move by more than `factor` >= 1: Markov on the moment [M, Table I].

    >>> round(bayes_factor_tail(RenyiDP(4.0, 0.5), 10.0), 6)
    0.004482
    """
    order, epsilon = _order(claim)
    log = math.log(max(1.0, nonnegative(factor, "factor")))
    if math.isinf(order):
        return 0.0 if log >= epsilon else 1.0
    exponent = (order - 1) * (epsilon - log)
    return min(1.0, up(math.exp(min(0.0, exponent)), 16 + 4 * (order - 1) * (epsilon + log)))


def composed_event(epsilon: float, count: int, probability: float) -> float:
    """P' <= exp(2 epsilon sqrt(n log 1/P)) P for n composed epsilon-DP mechanisms [M, Prop 4].

    The printed proof multiplies by exp(3 epsilon ...) from its own Lemma 1; the claim holds through the constant 1/2
    of [BS, Prop 1.4].

    >>> round(composed_event(0.1, 10, 1e-6), 9)
    1.0494e-05
    """
    epsilon, count = nonnegative(epsilon, "epsilon"), positive_integer(count, "count", maximum=2**53)
    probability = unit_interval(probability, "probability")
    if probability == 0:
        return 0.0 if math.isfinite(epsilon) else 1.0
    log = math.log(probability)
    return min(1.0, up(math.exp(min(0.0, 2 * epsilon * math.sqrt(count * -log) + log)), 64 - 8 * log))


def generalization_gap(restricted_kl: float) -> float:
    """|E (query on the sample - query on the population)| <= 8 sqrt(epsilon) [CIM, Thm 6].

    For queries with values in [0, 1] chosen by a mechanism of (H, KL)-capacity bounded privacy epsilon, H containing
    the evaluations q -> q(x). At most 1, which any query meets.

    >>> round(generalization_gap(1e-4), 6)
    0.08
    """
    return min(1.0, restricted_pinsker(restricted_kl))


def restricted_pinsker(restricted_kl: float) -> float:
    """IPM_H(P, Q) <= 8 sqrt(KL_H(P, Q)) [CIM, Thm 7].

    H convex, translation invariant, closed under negation, with range [-1, 1].

    >>> round(restricted_pinsker(1e-4), 6)
    0.08
    """
    return up(8 * math.sqrt(nonnegative(restricted_kl, "restricted_kl")), 8)


def _order(claim: Given) -> tuple[float, float]:
    if isinstance(claim, PureDP) or (isinstance(claim, Guarantee) and claim.notion == "local_dp"):
        return math.inf, need(PureDP, claim).epsilon
    made = need(RenyiDP, claim)
    return made.order, made.epsilon
