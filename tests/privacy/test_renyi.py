import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

from ldpopt.privacy import local_dp, pairs, renyi, total_variation
from ldpopt.privacy.renyi import Moments, highest_rate, renyi_of_pairs

CASES = json.loads((Path(__file__).parents[1] / "data" / "channel_measures.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES)
def test_renyi_meets_the_oracle(case):
    """The values of the reference computation, to 1e-7; pure LDP and total variation among them."""
    found = renyi(case["channel"], [float(order) for order in case["renyi"]])
    assert [g.value for g in found] == pytest.approx(list(case["renyi"].values()), rel=1e-7)
    assert local_dp(case["channel"]).value == pytest.approx(case["epsilon"], rel=1e-7)
    assert total_variation(case["channel"]).value == pytest.approx(case["total_variation"], rel=1e-7)


def test_the_screen_of_a_large_channel_finds_the_worst_pair(monkeypatch):
    """Where all pairs are screened by one matrix product, the value is that of measuring every pair."""
    monkeypatch.setattr(pairs, "MAX_ENTRIES", 2000 * 12)  # 2000 of the 3540 pairs
    rng = np.random.default_rng(8)
    plain = rng.dirichlet(np.ones(12), 60)
    sharp = np.exp(-rng.uniform(0, 60, (60, 12)))
    flat = 1 + 1e-6 * rng.standard_normal((60, 12))
    tied = np.ones((60, 60)) + np.eye(60)
    holes = plain * (rng.random((60, 12)) > 0.001)
    for q in (plain, sharp, flat, tied, holes):
        q = q / q.sum(axis=1, keepdims=True)
        i, j = np.nonzero(~np.eye(60, dtype=bool))
        for order in (1.0, 1.01, 2.0, 64.0):
            lower, upper = renyi_of_pairs(q[i], q[j], order)
            found = renyi(q, order)
            assert found.lower <= upper.max()
            assert lower.max() <= found.value
            assert found.value <= upper.max() * (1 + 1e-9) + 2e-11


def test_lemma_1_of_renyi_dp_holds_with_the_corrected_step():
    """An epsilon-LDP channel has D_alpha <= 2 alpha eps^2, by |P-Q| <= min(2, e^eps - 1) <= 2 eps, not 2 eps^2.

    The printed proof says min(2, e^eps - 1) <= 2 eps^2 [M, Lem 1], which fails for small epsilon; what the proof
    needs, eps |P - Q| <= 2 eps^2, holds.
    """
    for epsilon in (1e-3, 0.1, 0.4, 1.0, 2.0, 5.0):
        keep = 1 / (1 + math.exp(-epsilon))
        q = [[keep, 1 - keep], [1 - keep, keep]]
        distance = 2 * total_variation(q).value
        assert distance <= min(2, math.expm1(epsilon)) <= 2 * epsilon
        for order in (1, 1.5, 2, 10, 1e3):
            assert renyi(q, order).value <= 2 * order * epsilon**2
    small = 0.1
    assert math.expm1(small) > 2 * small**2
    keep = 1 / (1 + math.exp(-small))
    assert 2 * total_variation([[keep, 1 - keep], [1 - keep, keep]]).lower > 2 * small**2  # the printed step fails


def test_renyi_divergences_agree_with_closed_forms():
    """The (epsilon, eta) pair has KL epsilon eta, and order 2 is log(1 + chi-squared)."""
    e = math.e
    p = np.array([0.7 * e / (1 + e), 0.3, 0.7 / (1 + e)])
    assert renyi([p, p[::-1]], 1).value == pytest.approx(0.7 * math.tanh(0.5), rel=1e-14)
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(5), 2)
    both = max(np.sum((a - b) ** 2 / b), np.sum((a - b) ** 2 / a))
    assert renyi([a, b], 2).value == pytest.approx(math.log1p(both), rel=1e-13)


@pytest.mark.parametrize("scale", [1e-9, 0.05, 1.0, 6.0])
@pytest.mark.parametrize("s", [-0.7, 1e-3, 0.5, 3.0, 40.0])
def test_moments_of_all_pairs_are_enclosed(scale, s):
    """log E exp(s Z) of every ordered pair of rows lies between the ends, with rows whose sums are off by 1e-10."""
    rng = np.random.default_rng(7)
    q = np.exp(scale * rng.normal(size=(4, 5)))
    q = q / q.sum(axis=1, keepdims=True) * (1 + 1e-10 * rng.uniform(-1, 1, (4, 1)))
    moments = Moments.from_matrix(q)
    (low, high), mean = moments.log_moment(s), moments.mean
    with mpmath.workdps(40):
        rows = [[mpmath.mpf(x) / mpmath.fsum(map(mpmath.mpf, row)) for x in row] for row in q.tolist()]
        for x, p in enumerate(rows):
            for y, other in enumerate(rows):
                exact = mpmath.log(
                    mpmath.fsum(a ** (1 + mpmath.mpf(s)) * b ** -mpmath.mpf(s) for a, b in zip(p, other, strict=True))
                )
                assert low[x, y] <= exact <= high[x, y]
                assert high[x, y] - low[x, y] <= 1e-11 * (1 + abs(s)) * (1 + scale)
                kl = mpmath.fsum(a * mpmath.log(a / b) for a, b in zip(p, other, strict=True))
                assert mean[0][x, y] <= kl <= mean[1][x, y]
                if s > 0:
                    between = moments.divergence(s)
                    assert between[0][x, y] <= exact / s <= between[1][x, y]


def test_moments_of_different_supports_are_infinite():
    """Where one row gives what another cannot, both ends are infinite, and finite elsewhere."""
    moments = Moments.from_matrix(np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [0.2, 0.3, 0.5]]))
    low, high = moments.divergence(1.0)
    assert np.isinf(low).tolist() == np.isinf(high).tolist()
    assert np.isinf(high).tolist() == [[False, False, False], [False, False, False], [True, True, False]]


@pytest.mark.parametrize("higher", [0, 1])
def test_the_higher_of_two_steep_peaks_is_found(higher):
    """Rates with peaks at orders 2 and 2.0475, of which a scan of 41 orders meets the first exactly: the one that is
    higher by 1e-6 is named, whichever it is."""
    peaks = (2.0, 2.0475)

    class Loss:
        def renyi(self, s):
            tops = [1 + 1e-6 * (place == higher) - 10 * (s + 1 - peak) ** 2 for place, peak in enumerate(peaks)]
            return np.array(tops) * (s + 1), None

    order, rate = highest_rate(Loss(), 1.9, 2.1)
    assert order == pytest.approx(peaks[higher], abs=3e-4)
    assert 1 + 1e-7 <= rate <= 1 + 1e-6
