"""What a privacy guarantee implies: bounds on information, Bayes factors, bad outcomes and generalization."""

from __future__ import annotations

import math

from ldpopt.distribution import positive_integer, unit_interval
from ldpopt.privacy.claims import ZCDP, Claim, PureDP, RenyiDP, need, nonnegative
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import down, sum_up, up

Given = Claim | Guarantee


def information_any(claim: Given, size: int) -> float:
    """I(X; M(X)) <= xi n (1 + log n) + rho n^2 nats for n people with any joint distribution [BS, Prop 6.1].

    The claim is (xi, rho)-zCDP and n is `size`. The harmonic number of n replaces 1 + log n, as in the proof. A
    negative xi counts as 0 if n is above 1.

    >>> round(information_any(ZCDP(0.0, 0.01), 10), 6)
    1.0
    """
    return information_blocks(claim, 1, size)


def information_independent(claim: Given, size: int) -> float:
    """I(X; M(X)) <= (xi + rho) m nats for m = `size` independent people, for a claim of zCDP [BS, Lemma 6.2].

    >>> round(information_independent(ZCDP(0.0, 0.5), 10), 9)
    5.0
    """
    made, size = need(ZCDP, claim), positive_integer(size, "size")
    return size * max(0.0, sum_up(made.xi, made.rho))


def information_blocks(claim: Given, blocks: int, size: int) -> float:
    """I(X; M(X)) <= m (xi l (1 + log l) + rho l^2) nats for m independent blocks of l people [BS, Thm 6.3].

    The claim is (xi, rho)-zCDP, m is `blocks` and l is `size`. A negative xi counts as 0 if l is above 1.

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
    """Bounds (low, high) on an event's probability P' under one input, if it has `probability` P under another.

    For a `RenyiDP` claim of order a, e^-eps P^(a/(a - 1)) <= P' <= (e^eps P)^((a - 1)/a); for a `PureDP` claim,
    e^-eps P <= P' <= e^eps P [M, Table I].

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
    """(order, bound): the mean of the Bayes factor to the power `order` is at most `bound` [M, Table I].

    The Bayes factor is posterior odds / prior odds, of an input D against D', for a report drawn under D'. For a
    `RenyiDP` claim the bound is e^((order - 1) epsilon). For a `PureDP` claim the result is (inf, e^epsilon): the
    factor itself is never above e^epsilon.

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
    """The bound epsilon, in nats, on the expected change of log odds, for a claim of any order [M, Table I].

    For a `PureDP` claim, the change itself is at most epsilon.

    >>> round(bayes_factor_log(RenyiDP(2.0, 0.5)), 6)
    0.5
    """
    return _order(claim)[1]


def bayes_factor_tail(claim: Given, factor: float) -> float:
    """A bound on the probability that the odds change by more than `factor` >= 1 [M, Table I].

    It is Markov's inequality for `bayes_factor_moment`.

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
    """The bound exp(2 epsilon sqrt(n log 1/P)) P on an event's probability under n epsilon-DP mechanisms [M, Prop 4].

    n is `count`, epsilon is in nats, and P is the event's `probability` under an adjacent input. The paper's own Lemma
    1 gives exp(3 epsilon ...) in the proof; the statement holds by the constant 1/2 of [BS, Prop 1.4].

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
    """The bound 8 sqrt(epsilon) on |E (query on the sample - query on the population)|, at most 1 [CIM, Thm 6].

    A mechanism chooses queries with values in [0, 1] from the data. Its KL divergence restricted to a class H of
    functions, `restricted_kl`, is at most epsilon, in nats; H must contain the evaluations q -> q(x).

    >>> round(generalization_gap(1e-4), 6)
    0.08
    """
    return min(1.0, restricted_pinsker(restricted_kl))


def restricted_pinsker(restricted_kl: float) -> float:
    """The bound 8 sqrt(KL_H(P, Q)) on sup over h in H of E_P h - E_Q h [CIM, Thm 7].

    KL_H is the KL divergence restricted to the class H, in nats. H must be convex, translation invariant and closed
    under negation, with values in [-1, 1].

    >>> round(restricted_pinsker(1e-4), 6)
    0.08
    """
    return up(8 * math.sqrt(nonnegative(restricted_kl, "restricted_kl")), 8)


def _order(claim: Given) -> tuple[float, float]:
    if isinstance(claim, PureDP) or (isinstance(claim, Guarantee) and claim.notion == "local_dp"):
        return math.inf, need(PureDP, claim).epsilon
    made = need(RenyiDP, claim)
    return made.order, made.epsilon
