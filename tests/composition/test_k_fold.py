import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from ldpopt.composition import FinitePair, k_fold, kov15
from ldpopt.composition.k_fold import _log_deltas, trinomial_log_pmf
from ldpopt.errors import InvalidInput

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
def test_oracle(case):
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
def test_enumeration(epsilon, delta, eta):
    """The k-fold curve is the hockey stick of the k-fold product of the dominating pair, at every real epsilon."""
    pair, count = FinitePair.of_parameters(epsilon, delta, eta), 4
    p = np.array([math.prod(c) for c in itertools.product(pair.p, repeat=count)])
    q = np.array([math.prod(c) for c in itertools.product(pair.q, repeat=count)])
    composed = k_fold(epsilon, delta, eta, count)
    for at in (0.0, 0.1, epsilon, 1.37 * epsilon, 3.99 * epsilon, 4 * epsilon, 5 * epsilon):
        exact = np.maximum(p - math.exp(at) * q, 0).sum()
        assert composed.delta_at(at) == pytest.approx(exact, rel=1e-9, abs=1e-13)
    assert composed.total_variation == pytest.approx(np.abs(p - q).sum() / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("count", "value"), [(10, 0.977485), (100, 3.927928), (1000, 15.459368), (10_000, 73.890500428)]
)
def test_measured_values(count, value):
    """Epsilon at delta 1e-6 of the three-point pair (0.1, erasure 0.3) matches independent exact values."""
    found = k_fold(0.1, eta=0.7 * math.tanh(0.05), count=count).epsilon_at(1e-6)
    assert found == pytest.approx(value, rel=1e-9 if count == 10_000 else 1e-6)


def test_thousand_fold_curve():
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


def test_infinite_epsilon_below_the_infinite_mass():
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
def test_trinomial_law_in_every_tail(count, epsilon, erasure):
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
    assert composed.total_variation == pytest.approx(math.erf(mu / math.sqrt(8)), rel=1e-5)
    assert (np.diff(composed.deltas) <= 0).all()
    assert composed.deltas[-1] == 0.0
    assert np.isfinite(composed.log_deltas[:-1]).all()


def test_limits_of_the_parameters():
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
def test_bad_input(arguments):
    """Numbers outside their ranges are refused with a message."""
    with pytest.raises(InvalidInput, match="expected"):
        k_fold(*arguments)


def test_bad_points():
    """The curve is read at non-negative epsilon and delta in [0, 1] only."""
    composed = k_fold(1.0, count=2)
    for call in (lambda: composed.delta_at(-1.0), lambda: composed.delta_at("x"), lambda: composed.epsilon_at(2.0)):
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
