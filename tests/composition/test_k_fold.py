"""The law of the differences of draws, against the same law in 60 digits."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.composition import (
    FinitePair,
    compose,
    gaussian_limit,
    gaussian_total_variation,
    gaussian_trade_off,
    k_fold,
    kov15,
)
from ldpopt.composition.k_fold import _log_deltas, trinomial_log_pmf
from ldpopt.errors import InvalidInput


def exact(count, epsilon, kept):
    """log Pr(#plus - #minus = d), d = -count..count, by repeated convolution in the digits at hand."""
    plus = kept / (1 + mpmath.exp(-mpf(epsilon)))
    law = [mpf(1)]
    for _ in range(count):
        longer = [mpf(0)] * (len(law) + 2)
        for place, mass in enumerate(law):
            longer[place] += mass * (kept - plus)
            longer[place + 1] += mass * (1 - kept)
            longer[place + 2] += mass * plus
        law = longer
    return [mpmath.log(mass) if mass else -mpmath.inf for mass in law]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 25])
@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.7, 40.0])
@pytest.mark.parametrize("erasure", [0.0, 1e-12, 0.3, 0.999])
def test_every_mass_keeps_its_digits(count, epsilon, erasure):
    """Each log mass is right to a few units in the last place for each step from the mode [GI, eq. 7]."""
    with mpmath.workdps(60):
        truth = exact(count, epsilon, 1 - mpf(erasure))
    found = trinomial_log_pmf(count, epsilon, erasure)
    for ours, right in zip(found.tolist(), truth, strict=True):
        if math.isinf(ours):
            assert right == -mpmath.inf
        else:
            assert abs(ours - float(right)) <= 2e-14 * (count + abs(float(right)))


@pytest.mark.parametrize("kept", [1e-30, 0.9e-100, 1.1e-100, 1e-140])
@pytest.mark.parametrize("epsilon", [0.0, 2.0])
def test_a_tiny_share_of_draws_keeps_its_digits(kept, epsilon):
    """The remaining share counts where 1 - erasure has lost its digits, on both sides of the change of formulas."""
    with mpmath.workdps(400):
        truth = [float(mass) for mass in exact(3, epsilon, mpf(kept))]
    assert trinomial_log_pmf(3, epsilon, 1.0, kept) == pytest.approx(truth, rel=1e-14)


def test_the_difference_is_zero_if_all_draws_are_erased():
    """The difference is zero where all draws are erased."""
    assert trinomial_log_pmf(2, 1.0, 1.0).tolist() == [-math.inf, -math.inf, 0.0, -math.inf, -math.inf]
    assert np.exp(trinomial_log_pmf(1, 0.0, 1.0, 0.5)).sum() == pytest.approx(1.0)


ORACLE = json.loads((Path(__file__).parents[1] / "data" / "composition.json").read_text())["cases"]
PARAMETERS = [(1.0, 0.0, 0.7 * math.tanh(0.5)), (0.3, 0.05, 0.05 + 0.2 * 0.95 * math.tanh(0.15)), (2.0, 0.01, 0.3)]


def triple_sum(epsilon, delta, eta, count, j):
    """GI eq. 5 as printed, in high precision; the part of delta from finite losses."""
    e, k = mpmath.e ** mpmath.mpf(epsilon), count
    delta, eta = mpmath.mpf(delta), mpmath.mpf(eta)
    a = 1 - (eta - delta) * (1 + e) / ((1 - delta) * (e - 1))
    total = mpmath.mpf(0)
    for erased in range(k - j):
        for low in range(math.ceil((k - j - erased) / 2)):
            ways = mpmath.binomial(k, erased) * mpmath.binomial(k - erased, low)
            weight = ((1 - a) / (1 + e)) ** (k - erased) * a**erased
            total += ways * weight * (e ** (k - low - erased) - e ** (low + j))
    return total


@pytest.mark.parametrize("case", ORACLE, ids=lambda case: f"k={case['k']}")
def test_deltas_agree_with_the_oracle(case):
    """Theorem 2 equals the stored 40-digit values to 1e-7 relative where 40 digits resolve them."""
    composed = k_fold(case["epsilon"], case["delta"], case["eta"], case["k"])
    for j, value in case["delta_at_j_epsilon"].items():
        if value == 4.0178029569121155e-40:
            continue  # see test_the_smallest_oracle_value_is_a_rounding_step
        assert composed.deltas[int(j)] == pytest.approx(value, rel=1e-9, abs=0)


def test_the_smallest_oracle_value_is_a_rounding_step():
    """The stored 4.018e-40 is 1 - (1 - delta_j) in 40-digit arithmetic, 70 half-ulps of one; delta_j is 3.978e-40."""
    case = next(case for case in ORACLE if case["k"] == 200)
    stored = case["delta_at_j_epsilon"]["150"]
    with mpmath.workdps(70):
        exact = triple_sum(case["epsilon"], case["delta"], case["eta"], 200, 150)
    with mpmath.workdps(40):
        assert float(1 - (1 - mpmath.mpf(exact))) == stored == 70 * 2.0**-137
    composed = k_fold(case["epsilon"], case["delta"], case["eta"], 200).deltas[150]
    assert 0 <= composed / float(exact) - 1 < 1e-11


@pytest.mark.parametrize(("epsilon", "delta", "eta"), PARAMETERS)
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_theorem_2_is_the_triple_sum(epsilon, delta, eta, count):
    """Suffix sums of one convolution power equal GI eq. 5 in high precision, and are never below it."""
    composed = k_fold(epsilon, delta, eta, count)
    with mpmath.workdps(50):
        for j in sorted({0, 1, count // 2, count - 1, count}):
            finite = triple_sum(epsilon, delta, eta, count, j) if j < count else mpmath.mpf(0)
            exact = 1 - (1 - mpmath.mpf(delta)) ** count * (1 - finite)
            assert composed.deltas[j] >= exact * (1 - mpmath.mpf(2) ** -80)
            assert composed.deltas[j] == pytest.approx(float(exact), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(("epsilon", "delta", "eta"), PARAMETERS)
def test_the_curve_agrees_with_enumeration(epsilon, delta, eta):
    """The k-fold curve is the hockey stick of the k-fold product of the dominating pair, at every real epsilon."""
    pair, count = FinitePair.of_parameters(epsilon, delta, eta), 4
    p = np.array([math.prod(c) for c in itertools.product(pair.p, repeat=count)])
    q = np.array([math.prod(c) for c in itertools.product(pair.q, repeat=count)])
    composed = k_fold(epsilon, delta, eta, count)
    for at in (0.0, 0.1, epsilon, 1.37 * epsilon, 3.99 * epsilon, 4 * epsilon, 5 * epsilon):
        exact = np.maximum(p - math.exp(at) * q, 0).sum()
        assert composed.delta_at(at) == pytest.approx(exact, rel=1e-9, abs=1e-13)
    assert composed.total_variation().value == pytest.approx(np.abs(p - q).sum() / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("count", "value"), [(10, 0.977485), (100, 3.927928), (1000, 15.459368), (10_000, 73.890500428)]
)
def test_epsilons_agree_with_exact_values(count, value):
    """Epsilon at delta 1e-6 of the three-point pair (0.1, erasure 0.3) matches independent exact values."""
    found = k_fold(0.1, eta=0.7 * math.tanh(0.05), count=count).epsilon_at(1e-6)
    assert found == pytest.approx(value, rel=1e-9 if count == 10_000 else 1e-6)


def test_the_thousand_fold_curve_agrees_with_exact_values():
    """delta(j 0.1) at k = 1000 matches independent exact values."""
    deltas = k_fold(0.1, eta=0.7 * math.tanh(0.05), count=1000).deltas
    known = {
        0: 0.813966784,
        10: 0.706474498,
        50: 0.187267990,
        100: 0.00325219725,
        150: 2.29617674e-6,
        200: 5.07938005e-11,
    }
    for j, value in known.items():
        assert deltas[j] == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize(("epsilon", "delta", "eta"), PARAMETERS)
def test_epsilon_inverts_delta(epsilon, delta, eta):
    """epsilon_at is the smallest epsilon whose delta fits: it fits, and slightly less does not."""
    composed = k_fold(epsilon, delta, eta, 30)
    low, high = composed.deltas[-1], composed.deltas[0]
    for share in (1e-9, 1e-3, 0.3, 0.999):
        target = low + share * (high - low)
        found = composed.epsilon_at(target)
        assert composed.delta_at(found) <= target * (1 + 1e-13)
        assert composed.delta_at(found * (1 - 1e-6)) > target
    assert composed.epsilon_at(high) == 0.0
    assert composed.epsilon_at(low) == pytest.approx(30 * epsilon, rel=1e-9)
    assert composed.epsilon_at(1.0) == 0.0


def test_epsilon_is_infinite_below_the_infinite_mass():
    """With delta > 0 no finite epsilon has a delta below 1 - (1 - delta)^k."""
    composed = k_fold(1.0, 0.01, count=10)
    assert math.isinf(composed.epsilon_at(0.09))
    assert composed.delta_at(math.inf) == pytest.approx(1 - 0.99**10, rel=1e-12)


def test_theorem_2_beats_kov15_on_every_slope():
    """A bound on total variation never hurts and strictly helps at every slope (GI Figure 4)."""
    for epsilon, delta, count in [(1.0, 0.0, 5), (0.1, 1e-6, 200), (3.0, 0.01, 9)]:
        eta = delta + (1 - delta) * 0.7 * math.tanh(epsilon / 2)
        refined, plain = k_fold(epsilon, delta, eta, count), kov15(epsilon, delta, count)
        for at in np.linspace(0, count * epsilon * 0.999, 57):
            assert refined.delta_at(at) <= plain.delta_at(at)
        assert (plain.indices % 2 == count % 2).all()
        # Where delta^k hides the difference in a double, the logs of the finite part still show it.
        assert (refined.log_deltas[:-1] < k_fold(epsilon, delta, count=count).log_deltas[:-1]).all()
        assert (refined.log_deltas[plain.indices][:-1] < plain.log_deltas[:-1]).all()


@pytest.mark.parametrize("count", [1, 6, 11])
def test_kov15_is_its_formula(count):
    """kov15 equals GI eq. 6 and Theorem 2 without a bound on total variation."""
    epsilon, delta = 0.8, 0.02
    listed = kov15(epsilon, delta, count)
    for j, found in zip(listed.indices.tolist(), listed.deltas, strict=True):
        inner = (
            sum(
                math.comb(count, i) * (math.exp((count - i) * epsilon) - math.exp((i + j) * epsilon))
                for i in range((count - j) // 2)
            )
            / (1 + math.exp(epsilon)) ** count
        )
        assert found == pytest.approx(1 - (1 - delta) ** count * (1 - inner), rel=1e-12)
    loose = k_fold(epsilon, delta, 1.0, count)
    assert np.array_equal(loose.deltas[listed.indices], listed.deltas)


@pytest.mark.parametrize(
    ("count", "epsilon", "erasure"), [(200, 0.1, 0.3), (150, 2.0, 0.9), (100, 1e-6, 0.5), (60, 1.0, 1e-12)]
)
def test_the_trinomial_distribution_is_accurate_in_every_tail(count, epsilon, erasure):
    """The recurrence equals the multinomial sum in 50 digits at the mode and at both ends."""
    law = trinomial_log_pmf(count, epsilon, erasure)
    with mpmath.workdps(50):
        e, a = mpmath.e ** mpmath.mpf(epsilon), mpmath.mpf(erasure)
        plus, minus = (1 - a) * e / (1 + e), (1 - a) / (1 + e)
        for d in (-count, -count // 2, 0, 1, count // 3, count - 1, count):
            exact = mpmath.fsum(
                mpmath.binomial(count, d + m) * mpmath.binomial(count - d - m, m)
                * plus ** (d + m) * minus**m * a ** (count - d - 2 * m)
                for m in range(max(0, -d), (count - d) // 2 + 1)
            )  # fmt: skip
            assert float(mpmath.e ** mpmath.mpf(law[d + count]) / exact) == pytest.approx(1, abs=1e-11)


def test_a_million_folds_do_not_overflow():
    """k = 10^6: the curve falls from 1 to 0 and its law matches the Gaussian in the bulk."""
    composed = k_fold(1e-3, eta=0.5 * math.tanh(5e-4), count=10**6)
    mu = math.sqrt(2 * 10**6 * 1e-3 * 0.5 * math.tanh(5e-4))
    assert composed.total_variation().value == pytest.approx(math.erf(mu / math.sqrt(8)), rel=1e-5)
    assert (np.diff(composed.deltas) <= 0).all()
    assert composed.deltas[-1] == 0.0
    assert np.isfinite(composed.log_deltas[:-1]).all()


def test_limits_of_the_parameters_have_their_closed_forms():
    """No epsilon, no variation, all delta, and a delta above eta reduce to what they mean."""
    assert k_fold(0.0, 0.1, count=3).deltas == pytest.approx(np.full(4, 1 - 0.9**3))
    assert k_fold(1.0, 0.0, 0.0, 5).deltas == pytest.approx(np.zeros(6))
    assert (k_fold(1.0, 1.0, count=2).deltas == 1.0).all()
    assert k_fold(1.0, 0.2, 0.1, 2).deltas == pytest.approx(np.full(3, 1 - 0.9**2))
    tiny = k_fold(1e-9, count=3)
    assert tiny.deltas[0] == pytest.approx(0.75e-9, rel=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [(-1.0,), (math.inf,), (math.nan,), ("a",), (701.0,), (1.0, -0.1), (1.0, 1.1), (1.0, 0.0, 2.0), (1.0, 0.0, None, 0),
     (1.0, 0.0, None, 2.5)],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(arguments):
    """Numbers outside their ranges are refused with a message."""
    with pytest.raises(InvalidInput, match="expected"):
        k_fold(*arguments)


def test_bad_points():
    """The curve is read at numbers and at delta in [0, 1] only."""
    composed = k_fold(1.0, count=2)
    for call in (
        lambda: composed.delta_at(-math.inf),
        lambda: composed.delta_at("x"),
        lambda: composed.epsilon_at(2.0),
    ):
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize(("epsilon", "eta"), [(0.5, 4.6e-7), (1.0, 1e-14), (1.0, 1e-120), (3.0, 1e-250), (1e-8, 1e-9)])
def test_a_tiny_total_variation_keeps_its_digits(epsilon, eta):
    """Where nearly everything is erased, deltas are right to `relative_error`: 1 - a is not formed from a."""
    for count in (1, 5):
        composed = k_fold(epsilon, 0.0, eta, count)
        with mpmath.workdps(300):
            e, share = mpmath.e ** mpmath.mpf(epsilon), mpmath.mpf(eta) / mpmath.tanh(mpmath.mpf(epsilon) / 2)
            law = {0: mpmath.mpf(1)}
            for _ in range(count):
                following = {}
                for d, mass in law.items():
                    for step, chance in ((1, share * e / (1 + e)), (0, 1 - share), (-1, share / (1 + e))):
                        following[d + step] = following.get(d + step, 0) + mass * chance
                law = following
            for j in range(count):
                exact = sum(mass * (1 - e ** (j - d)) for d, mass in law.items() if d > j)
                if exact < 1e-299:
                    continue
                assert composed.deltas[j] >= exact * (1 - mpmath.mpf(2) ** -80)
                assert composed.deltas[j] <= exact * (1 + mpmath.mpf(composed.relative_error))


def test_delta_that_is_just_lost():
    """At the mass of infinite losses, and no more, epsilon is the sum: k_fold(1, 1e-6) has 1 at delta 1e-6."""
    assert k_fold(1.0, 1e-6).epsilon_at(1e-6) == 1.0
    assert math.isinf(k_fold(1.0, 1e-6).epsilon_at(np.nextafter(1e-6, 0.0)))
    lost = 1 - (1 - Fraction(1e-6)) ** 3
    above = float(lost) if Fraction(float(lost)) >= lost else np.nextafter(float(lost), 1.0)
    assert k_fold(1.0, 1e-6, count=3).epsilon_at(above) == pytest.approx(3.0, rel=1e-9)
    assert math.isinf(k_fold(1.0, 1e-6, count=3).epsilon_at(np.nextafter(above, 0.0)))


def test_without_losses_no_delta_is_left():
    """At epsilon zero every delta of the k + 1 is zero."""
    assert _log_deltas(np.zeros(3), 0.0).tolist() == [-math.inf] * 4


def curve(pair, count, points):
    """The trade-off curve of the product of equal pairs by enumeration of sorted ratios."""
    pair = pair.ordered
    p, q = pair.p, pair.q
    for _ in range(count - 1):
        p, q = np.outer(p, pair.p).ravel(), np.outer(q, pair.q).ravel()
    order = np.argsort(-(np.log(p) - np.log(q)))
    size, power = np.concatenate([[0], np.cumsum(q[order])]), np.concatenate([[0], np.cumsum(p[order])])
    return np.interp(points, size, 1 - power)


@pytest.mark.parametrize(("epsilon", "eta", "count"), [(1.0, 0.3, 4), (0.3, 0.1, 7), (2.0, None, 3)])
def test_distance_is_the_sup_over_a_fine_grid(epsilon, eta, count):
    """The stated distance is sup |f - G_mu|, here found on a grid of type I errors."""
    eta = math.tanh(epsilon / 2) if eta is None else eta
    found = gaussian_limit([epsilon] * count, [eta] * count)
    points = np.linspace(0, 1, 200_001)
    gap = np.abs(
        curve(FinitePair.of_parameters(epsilon, 0.0, eta), count, points) - gaussian_trade_off(found.mu, points)
    )
    assert found.distance >= gap.max() - 1e-12
    assert found.distance == pytest.approx(gap.max(), abs=2e-5)
    assert found.mu == pytest.approx(math.sqrt(2 * count * epsilon * eta))


def test_limit_is_reached():
    """GI Thm 3: with sum eps_i eta_i fixed and eps falling, the curve converges uniformly to G_mu."""
    distances = []
    for n in (10, 100, 1000, 10_000):
        epsilon = 1 / math.sqrt(n)
        eta = 0.7 * math.tanh(epsilon / 2)
        distances.append(gaussian_limit([epsilon] * n, [eta] * n).distance)
    assert all(later < 0.2 * earlier for earlier, later in itertools.pairwise(distances))
    assert distances[-1] < 2e-5


def test_heterogeneous_limit_is_the_same_as_equal_ones():
    """A list of different epsilons on one lattice goes through transforms; equal ones through the recurrence."""
    one = gaussian_limit([0.2] * 50, [0.05] * 50)
    mixed = gaussian_limit([0.2] * 49 + [0.2 * (1 + 1e-15)], [0.05] * 49 + [0.05 * (1 + 1e-9)])
    assert mixed.distance == pytest.approx(one.distance, rel=1e-4)
    different = gaussian_limit([0.1] * 400 + [0.2] * 100, [0.03] * 400 + [0.06] * 100)
    assert different.mu == pytest.approx(math.sqrt(2 * (400 * 0.003 + 100 * 0.012)))
    assert different.distance < 0.01


def test_a_slow_epsilon_has_a_limit_if_the_variation_is_fast():
    """Eps may fall as any small power of n if eta makes up for it (GI section IV)."""
    n, power = 20_000, 0.3
    limit = gaussian_limit([n**-power] * n, [0.5 * n ** (power - 1)] * n)
    assert limit.mu == pytest.approx(1.0)
    assert limit.distance < 0.01


def test_the_gaussian_total_variation_agrees_with_its_trade_off_curve():
    """k mu-GDP mechanisms have variation 2 Phi(mu sqrt(k)/2) - 1, which the trade-off curve shows."""
    t = np.linspace(0, 1, 100_001)
    assert gaussian_total_variation(0.5, 9) == pytest.approx((1 - t - gaussian_trade_off(1.5, t)).max(), abs=1e-9)
    small = compose([(0.01, 0.0, None)], 10_000)
    mu = math.sqrt(2 * 10_000 * 0.01 * math.tanh(0.005))
    assert small.total_variation().value == pytest.approx(gaussian_total_variation(mu), rel=1e-4)


def test_the_limit_without_variation_is_perfect_privacy():
    """Mechanisms without variation have mu = 0 and distance 0."""
    limit = gaussian_limit([0.5, 0.5], [0.0, 0.0])
    assert (limit.mu, limit.distance) == (0.0, 0.0)


def test_bad_lists_and_a_negative_mu_are_refused():
    """Lists of different lengths, empty lists and a negative mu are refused."""
    with pytest.raises(InvalidInput, match="as many as the 2 epsilons"):
        gaussian_limit([0.1, 0.2], [0.1])
    for call in (
        lambda: gaussian_limit([], []),
        lambda: gaussian_limit("ab", "cd"),
        lambda: gaussian_limit([-0.1], [0.1]),
        lambda: gaussian_total_variation(-1.0),
        lambda: gaussian_trade_off(1.0, [1.5]),
    ):
        with pytest.raises(InvalidInput):
            call()
