"""Composition theorems that add up parameters: Rényi, zCDP, mCDP, restricted divergences, and advanced composition.

A composition is adaptive if each next mechanism, and its input, may depend on the reports so far. For mCDP that costs
more than [DR, Thm 3.4] says. The loss Z of a step with parameter tau_a has a conditional mean m in [0, min(mu_a,
tau_a^2/2)], because E e^-Z = 1. Let C be the sum of these means, and R the law that is tilted by exp(s (Z - m)) step by
step. By Hoeffding's lemma for C,

    2 log E exp(s (L - E L)) / s^2  <=  sum tau_a^2 + (range of C)^2 / 4 + (2/s) (E_R C - E_P C)

for every s. By Pinsker's inequality, the last term is at most sum mu_a sqrt(x_a), where x_a is the expected sum of
tau^2 of the steps before a. The proof, step by step, is in docs/explanation/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from ldpopt.composition.parametric import MAX_USES, listed, tally, total, union
from ldpopt.errors import invalid
from ldpopt.numbers.rounding import ULP, sum_up, up
from ldpopt.privacy.claims import MCDP, TV, ZCDP, ApproximateDP, ApproximateZCDP, Claim, PureDP, RenyiDP, amount, need
from ldpopt.privacy.conversions import zcdp_delta, zcdp_to_approximate_sharp
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import positive_integer, unit_interval

Parts = Sequence[tuple[float, float, int]]
"""(mu, tau, count) of each mechanism."""

_ROOT_SUM_BLOCKS = 4096
"""Number of blocks of a long sum of square roots; in each, the mean root is below the root of the mean."""


def fixed_standard(parts: Parts) -> float:
    """Compute sqrt(sum tau^2), rounded up, for mechanisms fixed in advance [DR, Thm 3.4]."""
    scale = _scale(parts)
    if scale == 0 or math.isinf(scale):
        return scale
    exact = _variance(parts, scale) * Fraction(scale) ** 2
    root = scale * math.sqrt(float(_variance(parts, scale)))
    while root > 0 and Fraction(math.nextafter(root, 0.0)) ** 2 >= exact:
        root = math.nextafter(root, 0.0)
    while root < math.inf and Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    return root


def adaptive_standard(parts: Parts, has_fixed_order: bool = False) -> float:
    """Bound the subgaussian parameter if choices may depend on the reports so far.

    Inputs, and the choice of the next mechanism, may depend on them.

    has_fixed_order : the parts are used in the given order, and nothing random precedes the first.
    """
    scale = _scale(parts)
    if scale == 0 or math.isinf(scale) or sum(n for _, _, n in parts) == 1:
        return fixed_standard(parts)
    # (largest mean, tau, count) in units of the scale: no mean exceeds tau^2/2.
    steps = [(min(mu / scale, tau / scale * tau / 2), tau / scale, n) for mu, tau, n in parts]
    means = [(mean, n) for mean, _, n in steps]
    if has_fixed_order:
        # The first step is fixed, so its mean does not vary.
        spread = _sum([(means[0][0], means[0][1] - 1), *means[1:]])
        shift = _weighted_roots(means, [(tau, n) for _, tau, n in steps])
    else:
        spread = _sum(means)
        largest_first = sorted(((tau, n) for _, tau, n in steps), reverse=True)
        shift = min(_weighted_roots(sorted(means), largest_first), _pairwise(steps))
    variance = float(_variance(parts, scale)) + spread * spread / 4 + shift
    return up(scale * math.sqrt(up(variance, 16)), 8)


def _scale(parts: Parts) -> float:
    """A power of two near the largest tau, so that squares stay in the range of floats; 0 or inf if tau is."""
    largest = max(tau for _, tau, _ in parts)
    return largest if largest == 0 or math.isinf(largest) else math.ldexp(1.0, math.frexp(largest)[1] - 1)


def _variance(parts: Parts, scale: float) -> Fraction:
    return sum(((Fraction(tau) / Fraction(scale)) ** 2 * n for _, tau, n in parts), Fraction(0))


def _sum(means: Sequence[tuple[float, int]]) -> float:
    return math.fsum(mean * n for mean, n in means)


def _pairwise(steps: Parts) -> float:
    """A bound on sum mu_a sqrt(x_a) for every order, with x_a = sum_b Pr(b before a) tau_b^2, by Cauchy and Schwarz.

    In each pair of steps only one comes first, so sum tau_a^2 x_a is at most the sum of tau_a^2 tau_b^2 over pairs.
    """
    ratios = math.fsum(n * (mean / tau) * (mean / tau) for mean, tau, n in steps if mean > 0)
    squares = [(Fraction(tau) ** 2, n) for _, tau, n in steps]
    total = sum((square * n for square, n in squares), Fraction(0))
    pairs = (total**2 - sum((square**2 * n for square, n in squares), Fraction(0))) / 2
    return math.sqrt(up(ratios, 16)) * math.sqrt(up(float(pairs), 4)) if pairs > 0 else 0.0


def _weighted_roots(means: Sequence[tuple[float, int]], taus: Sequence[tuple[float, int]]) -> float:
    """The sum over steps of mean * sqrt(sum of tau^2 of the steps before), in the given orders, rounded up.

    With rising means and falling taus it bounds every order of use. The tilted deviation is a submartingale. Before the
    step with the r-th largest mean it is at most the root of the sum over the largest taus of all but r steps.
    """
    total = []
    for mean, sum_before, square, n in _stretches(means, taus):
        edges = np.rint(np.linspace(0, n, min(n, _ROOT_SUM_BLOCKS) + 1))
        middle = (edges[:-1] + edges[1:] - 1) / 2
        total.append(mean * float(np.diff(edges) @ np.sqrt(sum_before + square * middle)))
    return up(math.fsum(total), 2 * _ROOT_SUM_BLOCKS)


def _stretches(
    means: Sequence[tuple[float, int]], taus: Sequence[tuple[float, int]]
) -> Iterator[tuple[float, float, float, int]]:
    """Runs of steps with one mean and one tau: mean, sum of tau^2 before the first, tau^2, length."""
    squares = [Fraction(tau) ** 2 for tau, _ in taus]
    ends = [set(accumulate(n for _, n in part)) for part in (means, taus)]
    left, right, sum_before, start = 0, 0, Fraction(0), 0
    for end in sorted(ends[0] | ends[1]):
        n = end - start
        yield means[left][0], float(sum_before), float(squares[right]), n
        sum_before, start = sum_before + squares[right] * n, end
        left, right = left + (end in ends[0]), right + (end in ends[1])


C = TypeVar("C", bound=Claim)
Item = Claim | Guarantee | tuple[Claim | Guarantee, int]


def compose_pure(items: Iterable[Item]) -> PureDP:
    """Compose pure privacy: epsilons add up, also adaptively.

    Parameters
    ----------
    items : `PureDP` claims, or pairs (claim, count), which stand for `count` equal items.

    Returns
    -------
    PureDP
        The sum, in nats, rounded up.

    Examples
    --------
    >>> compose_pure([(PureDP(0.5), 3), PureDP(1.0)])
    PureDP(epsilon=2.5) (tight, [GI, Def 6])
    """
    return PureDP(*_totals(_counted(PureDP, items), "epsilon"), tight=True, reference="[GI, Def 6]")


def compose_approximate(items: Iterable[Item]) -> ApproximateDP:
    """Compose approximate privacy: epsilons and deltas add up, also adaptively.

    `compose` and `k_fold` are exact and smaller.

    Parameters
    ----------
    items : `ApproximateDP` claims, or pairs (claim, count).

    Returns
    -------
    ApproximateDP
        The sums, rounded up; epsilon is in nats.

    Examples
    --------
    >>> compose_approximate([ApproximateDP(0.5, 1e-6), (ApproximateDP(0.1, 0.0), 10)])
    ApproximateDP(epsilon=1.500000001, delta=1e-06) (not tight, [KOV15])
    """
    epsilon, delta = _totals(_counted(ApproximateDP, items), "epsilon", "delta")
    return ApproximateDP(epsilon, min(1.0, delta), tight=False, reference="[KOV15]")


def compose_renyi(items: Iterable[Item]) -> RenyiDP:
    """Compose Rényi privacy: epsilons at one order add up, also adaptively [M, Prop 1].

    Parameters
    ----------
    items : `RenyiDP` claims of one order, or pairs (claim, count).

    Returns
    -------
    RenyiDP
        The sum at this order, in nats, rounded up.

    Raises
    ------
    InvalidInput
        If the orders differ.

    Examples
    --------
    >>> compose_renyi([RenyiDP(2.0, 0.25), (RenyiDP(2.0, 0.125), 4)])
    RenyiDP(order=2, epsilon=0.75) (tight, [M, Prop 1])
    """
    parts = _counted(RenyiDP, items)
    orders = {claim.order for claim, _ in parts}
    if len(orders) != 1:
        raise invalid("items", "Rényi claims of one order", sorted(orders)[:3])
    return RenyiDP(orders.pop(), *_totals(parts, "epsilon"), tight=True, reference="[M, Prop 1]")


def compose_zcdp(items: Iterable[Item]) -> ZCDP:
    """Compose zCDP: xi and rho add up, also adaptively [BS, Lemma 2.3].

    Parameters
    ----------
    items : `ZCDP` claims, or pairs (claim, count).

    Returns
    -------
    ZCDP
        The sums, in nats, rounded up.

    Examples
    --------
    >>> compose_zcdp([(ZCDP(0, 0.25), 4)])
    ZCDP(xi=0, rho=1) (tight, [BS, Lemma 2.3])
    """
    return ZCDP(*_totals(_counted(ZCDP, items), "xi", "rho"), tight=True, reference="[BS, Lemma 2.3]")


def compose_approximate_zcdp(items: Iterable[Item]) -> ApproximateZCDP:
    """Compose approximate zCDP: xi and rho add up, factors 1 - delta multiply [BS, Lemma 8.2].

    Parameters
    ----------
    items : `ApproximateZCDP` claims, or pairs (claim, count).

    Returns
    -------
    ApproximateZCDP
        The composition, rounded up; xi and rho are in nats.

    Examples
    --------
    >>> compose_approximate_zcdp([(ApproximateZCDP(1e-6, 0.0, 0.125), 2)])
    ApproximateZCDP(delta=2e-06, xi=0, rho=0.25) (tight, [BS, Lemma 8.2])
    """
    parts = _counted(ApproximateZCDP, items)
    delta = union((claim.delta, n) for claim, n in parts)
    return ApproximateZCDP(delta, *_totals(parts, "xi", "rho"), tight=True, reference="[BS, Lemma 8.2]")


def compose_mcdp(items: Iterable[Item], *, adaptive: bool = True, ordered: bool = False) -> MCDP:
    """Compose mCDP to (sum mu, tau)-mCDP, in nats.

    tau is the subgaussian parameter of the total privacy loss.

    With ``adaptive=True`` each next mechanism, its inputs, and its existence may depend on the reports so far and on
    coins, in any order. Then [DR, Thm 3.4] is false: tau^2 is sum tau_i^2 plus terms for the spread of the conditional
    means (see the concept page on composition). A single item that is used once keeps its own tau.

    With ``ordered=True``, if every mu_i is at most tau_i^2/2, then

        tau^2 = sum tau_i^2 + (sum_{i>1} mu_i)^2/4 + sum mu_i (sum_{j<i} tau_j^2)^(1/2).

    With ``adaptive=False`` all is fixed in advance, and tau^2 = sum tau_i^2 [DR, Thm 3.4]; `mcdp_to_zcdp` of that claim
    holds for adaptive compositions, too.

    Parameters
    ----------
    items : `MCDP` claims, or pairs (claim, count).
    adaptive : False if all mechanisms and inputs are fixed in advance.
    ordered : True if the items are used in the given order, and nothing random precedes the first. A coin before it
        counts as an item MCDP(0, 0).

    Returns
    -------
    MCDP
        The composition, in nats.

    Examples
    --------
    >>> twice = [(MCDP(0.5, 1.0), 2)]
    >>> round(compose_mcdp(twice, ordered=True).tau, 6), round(compose_mcdp(twice).tau, 6)
    (1.600781, 1.658312)
    """
    parts = _counted(MCDP, items)
    (mu,) = _totals(parts, "mu")
    if not adaptive:
        tau = fixed_standard([(claim.mu, claim.tau, n) for claim, n in parts])
        return MCDP(mu, tau, tight=True, reference="[DR, Thm 3.4]")
    if ordered:
        tau = adaptive_standard([(claim.mu, claim.tau, n) for claim, n in parts], has_fixed_order=True)
    else:
        merged_parts = tally(((claim.mu, claim.tau), n) for claim, n in parts)
        tau = adaptive_standard([(mu_i, tau_i, n) for (mu_i, tau_i), n in sorted(merged_parts.items())])
    return MCDP(mu, tau, tight=False, reference="[DR, Thm 3.4] with the spread of the means")


def restricted_sequential(epsilons: Iterable[Any]) -> float:
    """Sum the restricted divergences of several releases on the same data [CIM, Thm 4].

    NON-ADAPTIVE ONLY: the mechanisms must be fixed before any report is seen. The adversary computes sums h1 + h2 + ...
    of functions of one report each, never a function of two reports together. The class of every h must be convex and
    translation invariant, and contain the constants.

    Parameters
    ----------
    epsilons : Restricted KL or Rényi divergences of the releases, in nats.

    Returns
    -------
    float
        The sum, in nats.

    Examples
    --------
    >>> round(restricted_sequential([0.25, 0.5]), 6)
    0.75
    """
    return total([(amount(epsilon, "epsilon"), 1) for epsilon in listed(epsilons, "items")])


def restricted_parallel(epsilons: Iterable[Any]) -> float:
    """Return the largest restricted divergence of releases on disjoint data [CIM, Thm 3].

    NON-ADAPTIVE ONLY: the mechanisms must be fixed before any report is seen.

    Parameters
    ----------
    epsilons : Restricted KL or Rényi divergences of the releases, in nats.

    Returns
    -------
    float
        The largest of them, in nats.

    Examples
    --------
    >>> round(restricted_parallel([0.25, 0.5]), 6)
    0.5
    """
    return max(amount(epsilon, "epsilon") for epsilon in listed(epsilons, "items"))


def subsample(claim: Claim | Guarantee, sampled: int, population: int) -> ApproximateDP | TV:
    """Convert a claim to one for a random sample without replacement [GI, Prop 1].

    With the sampling fraction p = `sampled` / `population`, the result is (log(1 + p (e^eps - 1)), p delta)-DP or p
    eta-TV.

    Parameters
    ----------
    claim : A `PureDP`, `ApproximateDP` or `TV` claim about the mechanism on the sample.
    sampled : The size of the sample.
    population : The size of the population.

    Returns
    -------
    ApproximateDP or TV
        The claim about the mechanism on the population; epsilon is in nats.

    Raises
    ------
    InvalidInput
        If the claim is another one, or the sample is larger than the population.

    Examples
    --------
    >>> subsample(ApproximateDP(1.0, 1e-6), 10, 100)
    ApproximateDP(epsilon=0.158566, delta=1.000000001e-07) (tight, [GI, Prop 1])
    """
    sampled, population = positive_integer(sampled, "sampled"), positive_integer(population, "population")
    if sampled > population:
        raise invalid("sampled", f"at most the population, {population}", sampled)
    share = sampled / population
    if isinstance(claim, TV) or (isinstance(claim, Guarantee) and claim.notion == "total_variation"):
        return TV(min(1.0, up(share * need(TV, claim).eta)), tight=True, reference="[GI, Prop 1]")
    claim = _pure_or_approximate(claim)
    if claim.epsilon > 30:
        # log(1 + p (e^eps - 1)) = eps + log(p + (1 - p) e^-eps)
        epsilon = claim.epsilon + math.log(share + (1 - share) * math.exp(-claim.epsilon))
    else:
        epsilon = math.log1p(share * math.expm1(claim.epsilon))
    epsilon = min(claim.epsilon, up(epsilon, 32))
    return ApproximateDP(epsilon, min(1.0, up(share * claim.delta)), tight=True, reference="[GI, Prop 1]")


def advanced_composition(claim: Claim | Guarantee, count: int, slack: float) -> ApproximateDP:
    """Compute the advanced composition of k = `count` mechanisms [DR, Thm 1.1].

    It is (sqrt(2 k log(1/slack)) eps + k eps (e^eps - 1)/2, k delta + slack)-DP. It serves for comparison: `k_fold` is
    exact and smaller.

    Parameters
    ----------
    claim : The `PureDP` or `ApproximateDP` claim of each mechanism; epsilon is in nats.
    count : The number of mechanisms.
    slack : The part of delta that is added, in (0, 1].

    Returns
    -------
    ApproximateDP
        The composition; epsilon is in nats.

    Examples
    --------
    >>> advanced_composition(PureDP(0.1), 100, 1e-6).epsilon.__round__(6)
    5.782376
    """
    claim, slack = _pure_or_approximate(claim), unit_interval(slack, "slack")
    count = positive_integer(count, "count", maximum=MAX_USES)
    if slack == 0:
        raise invalid("slack", "a number in (0, 1]", slack)
    mean = count * claim.epsilon * math.expm1(min(700.0, claim.epsilon)) / 2
    epsilon = sum_up(math.sqrt(2 * count * -math.log(slack)) * claim.epsilon, mean)
    return ApproximateDP(epsilon, min(1.0, sum_up(count * claim.delta, slack)), tight=False, reference="[DR, Thm 1.1]")


def renyi_advanced_composition(claim: Claim | Guarantee, count: int, delta: float) -> ApproximateDP:
    """Compute the advanced composition of n = `count` eps-DP mechanisms [M, Cor 1].

    It is (4 eps sqrt(2 n log(1/delta)), delta)-DP.

    Parameters
    ----------
    claim : The `PureDP` claim of each mechanism; epsilon is in nats.
    count : The number of mechanisms.
    delta : In (0, 1).

    Returns
    -------
    ApproximateDP
        The composition; epsilon is in nats.

    Raises
    ------
    InvalidInput
        Unless log(1/delta) >= eps^2 n.

    Examples
    --------
    >>> renyi_advanced_composition(PureDP(0.1), 100, 1e-6)
    ApproximateDP(epsilon=21.0261, delta=1e-06) (not tight, [M, Cor 1])
    """
    epsilon, delta = need(PureDP, claim).epsilon, unit_interval(delta, "delta")
    count = positive_integer(count, "count", maximum=MAX_USES)
    if not 0 < delta < 1 or -math.log(delta) < epsilon**2 * count * (1 + 8 * ULP):
        raise invalid("delta", "delta in (0, 1) with log(1/delta) >= epsilon^2 count", delta)
    value = up(4 * epsilon * math.sqrt(2 * count * -math.log(delta)), 16)
    return ApproximateDP(value, delta, tight=False, reference="[M, Cor 1]")


def zcdp_advanced_composition(items: Iterable[Item], slack: float) -> ApproximateDP:
    """Compose (epsilon_i, delta_i)-DP claims by way of zCDP [BS, Cor 8.9-8.11].

    The result is (epsilon, 1 - (1 - slack) prod (1 - delta_i))-DP. Here rho = sum epsilon_i^2/2, and epsilon is that of
    `zcdp_to_approximate_sharp` at delta = `slack`.

    Parameters
    ----------
    items : `PureDP` or `ApproximateDP` claims, or pairs (claim, count).
    slack : The part of delta that is added, in (0, 1).

    Returns
    -------
    ApproximateDP
        The composition; epsilon is in nats.

    Examples
    --------
    >>> zcdp_advanced_composition([(ApproximateDP(0.1, 1e-9), 100)], 1e-6)
    ApproximateDP(epsilon=5.22154, delta=1.1e-06) (not tight, [BS, Cor 8.9])
    """
    return _by_zcdp(items, lambda claim: zcdp_to_approximate_sharp(claim, slack))


def zcdp_advanced_delta(items: Iterable[Item], epsilon: float) -> ApproximateDP:
    """Compute the delta of a composition at `epsilon` by way of zCDP [BS, Cor 8.9].

    It is 1 - (1 - delta') prod (1 - delta_i). Here delta' is the result of `zcdp_delta` at `epsilon` with rho = sum
    epsilon_i^2/2, and 1 if epsilon is below rho.

    Parameters
    ----------
    items : `PureDP` or `ApproximateDP` claims, or pairs (claim, count).
    epsilon : In nats.

    Returns
    -------
    ApproximateDP
        The composition at this epsilon.

    Examples
    --------
    >>> zcdp_advanced_delta([(ApproximateDP(0.1, 1e-9), 100)], 5.0)
    ApproximateDP(epsilon=5, delta=7.23743e-06) (not tight, [BS, Cor 8.9])
    """
    return _by_zcdp(items, lambda claim: zcdp_delta(claim, epsilon))


def _by_zcdp(items: Iterable[Item], convert: Callable[[ZCDP], ApproximateDP]) -> ApproximateDP:
    parts = _counted(ApproximateDP, items)
    inner = convert(ZCDP(0.0, up(float(sum(Fraction(claim.epsilon) ** 2 * n for claim, n in parts)) / 2)))
    delta = union([(inner.delta, 1), *((claim.delta, n) for claim, n in parts)])
    return ApproximateDP(inner.epsilon, delta, tight=False, reference="[BS, Cor 8.9]")


def _pure_or_approximate(claim: Claim | Guarantee) -> ApproximateDP:
    if isinstance(claim, PureDP) or (isinstance(claim, Guarantee) and claim.notion == "local_dp"):
        return ApproximateDP(need(PureDP, claim).epsilon, 0.0)
    return need(ApproximateDP, claim)


def _counted(kind: type[C], items: Iterable[Item]) -> list[tuple[C, int]]:
    counted_claims = []
    for item in listed(items, "items"):
        claim, count = item if isinstance(item, tuple) else (item, 1)
        counted_claims.append((need(kind, claim, "item"), positive_integer(count, "count", maximum=MAX_USES)))
    return counted_claims


def _totals(parts: Sequence[tuple[Claim, int]], *fields: str) -> list[float]:
    """The sums of fields of claims with counts, exact and then rounded up."""
    return [total([(getattr(claim, field), n) for claim, n in parts]) for field in fields]
