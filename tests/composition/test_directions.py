"""Sampled pairs in composition: each direction alone, a real lower bound, and losses of either sign."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

from ldpopt.composition import FinitePair, compose, compose_same_input, k_fold
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import gaussian, laplace
from ldpopt.privacy import hockey_stick, total_variation

Q = [[0.75, 0.25], [0.25, 0.75]]


def test_three_uses_of_a_sampled_gaussian():
    """Rate 0.2, sigma 0.5, epsilon 1: 0.1559 (dp-accounting 0.6: 0.15593); symmetrised directions would give 0.1717."""
    pair = gaussian(0.5).pair.subsampled(0.2)
    found = compose([pair], 3).hockey_stick(1.0)
    assert found.value == pytest.approx(0.15593, abs=3e-5)
    assert found.lower <= 0.15593277616590992 <= found.value + 1e-12
    assert found.lower >= found.value * (1 - 1e-3)
    assert not found.exact


def test_two_uses_against_a_double_integral():
    """delta of two uses as an integral over the first release of the closed form at the loss that is left, per side."""
    sigma, rate, epsilon = 1.0, 0.3, 0.5
    pair = gaussian(sigma).pair.subsampled(rate)
    found = compose([pair], 2).hockey_stick(epsilon)
    x, h = np.linspace(-14, 15, 29_001, retstep=True)
    p, q = np.exp([pair.log_p(t) for t in x]), np.exp([pair.log_q(t) for t in x])
    truth = 0.0
    for first, other, reverse in ((p, q, False), (q, p, True)):
        inner = np.array([sum(pair._one_way(float(e), reverse)) / 2 for e in epsilon - np.log(first / other)])
        truth = max(truth, float(h * (first @ inner)))
    assert found.lower <= truth * (1 + 1e-6)
    assert truth * (1 - 1e-6) <= found.value
    assert found.value <= found.lower * (1 + 5e-3)


@pytest.mark.full
def test_mixed_mechanisms_are_bracketed_in_any_order():
    """Gaussian and Laplace noise with and without sampling, and a channel: both ends close, and close to each other."""
    parts = [gaussian(1.0).pair.subsampled(0.1), laplace(0.5).pair.subsampled(0.3), gaussian(3.0), laplace(0.2), Q]
    one, other = compose(parts), compose(parts[::-1])
    for epsilon in (0.0, 1.0, 2.0):
        a, b = one.hockey_stick(epsilon), other.hockey_stick(epsilon)
        assert (a.value, a.lower) == pytest.approx((b.value, b.lower), rel=1e-9)
        assert a.value * 0.98 <= a.lower <= a.value


def test_the_lower_bound_of_one_use_is_below_the_truth():
    """A single use: the closed form lies between the two ends, at losses near zero and far out."""
    for pair in (gaussian(1.0).pair.subsampled(0.2), laplace(2.0).pair.subsampled(0.5), gaussian(0.3).pair):
        composed = compose([pair])
        for epsilon in (-1.0, 0.0, 0.1, 1.0, 4.0):
            found, truth = composed.hockey_stick(epsilon), pair.hockey_stick(epsilon)
            assert found.lower <= truth.value
            assert truth.lower <= found.value
            assert found.lower >= truth.lower * 0.98 - 1e-12


def test_a_grid_gives_a_lower_bound_for_small_counts():
    """The bound by the kink: five channels off any common lattice, against all of their outcomes."""
    rng = np.random.default_rng(3)
    pairs = [FinitePair(*rng.dirichlet(np.ones(11), 2)) for _ in range(5)]
    composed = compose(pairs)
    p, q = np.ones(1), np.ones(1)
    for pair in pairs:
        p, q = np.outer(p, pair.p).ravel(), np.outer(q, pair.q).ravel()
    assert not composed.exact
    for epsilon in (0.0, 1.0, 3.0):
        e = math.exp(epsilon)
        truth = max(np.maximum(p - e * q, 0).sum(), np.maximum(q - e * p, 0).sum())
        found = composed.hockey_stick(epsilon)
        assert found.lower <= truth * (1 + 1e-12)
        assert truth <= found.value * (1 + 1e-12)
        assert found.lower >= truth * (1 - 1e-4)


@pytest.mark.parametrize("epsilon", [-700.0, -2.0, -1e-12])
def test_negative_losses_mean_the_same_everywhere(epsilon):
    """max over pairs of sum (p - e^epsilon q)_+, for channels, pairs, densities and compositions."""
    with mp.workdps(60):
        e = mp.exp(mpf(epsilon))
        truth = mpf("0.75") - e / 4 + max(mpf("0.25") - 3 * e / 4, mpf(0))
        pair = FinitePair(*Q)
        for found in (hockey_stick(Q, epsilon), pair.hockey_stick(epsilon), compose([Q]).hockey_stick(epsilon)):
            assert found.lower <= truth <= found.value
            assert found.value <= truth * (1 + mpf(10) ** -12)
        folded = k_fold(math.log(3), count=1).delta_at(epsilon)
        assert truth * (1 - mpf(10) ** -12) <= folded <= truth * (1 + mpf(10) ** -9)
        noise = laplace(1.0).pair.hockey_stick(epsilon)
        assert noise.lower <= (1 - e if epsilon <= -1 else 1 - mp.exp((mpf(epsilon) - 1) / 2)) <= noise.value


def test_equal_rows_have_a_delta_below_zero():
    """At a negative epsilon even equal laws have 1 - e^epsilon; the witness is the other pair and the other event."""
    found = hockey_stick([[0.5, 0.5], [0.5, 0.5]], -1.0)
    assert found.lower <= -math.expm1(-1) <= found.value
    witness = hockey_stick([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], -0.2).witness
    p, q = ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]) if witness.inputs == (0, 1) else ([0.1, 0.2, 0.7], [0.7, 0.2, 0.1])
    attained = sum(p[y] - math.exp(-0.2) * q[y] for y in witness.outputs)
    assert attained == pytest.approx(hockey_stick([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], -0.2).value, rel=1e-12)


@pytest.mark.parametrize("bad", [math.nan, -math.inf, "x", True, None])
def test_values_that_are_not_losses_are_refused(bad):
    """NaN, minus infinity, text and booleans are refused by name, in every place."""
    for call in (hockey_stick, FinitePair(*Q).hockey_stick, compose([Q]).hockey_stick, laplace(1.0).pair.hockey_stick,
                 k_fold(1.0).delta_at):  # fmt: skip
        with pytest.raises(InvalidInput, match="epsilon"):
            call(Q, bad) if call is hockey_stick else call(bad)


def test_total_variation_is_a_method_everywhere():
    """One convention: a method that gives a `Guarantee`, the Dobrushin coefficient of a channel."""
    for found in (total_variation(Q), FinitePair(*Q).total_variation(), compose([Q]).total_variation(),
                  k_fold(math.log(3)).total_variation(), compose_same_input([Q]).total_variation()):  # fmt: skip
        assert found.notion == "total_variation"
        assert found.lower <= 0.5 <= found.value <= 0.5 + 1e-9


def test_the_same_input_states_its_worst_case():
    """The worst pair of inputs is named, and each measure is the largest over the pairs."""
    rng = np.random.default_rng(6)
    rows = rng.dirichlet(np.ones(4), 3)
    both = compose_same_input([rows], count=2)
    assert list(both) == [(0, 1), (0, 2), (1, 2)]
    assert len(both) == 3
    for measure, argument in (("hockey_stick", 0.4), ("hockey_stick", -0.4), ("approximate_dp", 0.01), ("renyi", 3.0)):
        worst = getattr(both, measure)(argument)
        each = {inputs: getattr(pair, measure)(argument).value for inputs, pair in both.items()}
        assert worst.value == max(each.values()) == each[worst.witness.inputs]
    assert both.local_dp().value == max(pair.local_dp().value for pair in both.values())
    assert "worst total variation" in repr(both)
    single = compose_same_input([[[0.5, 0.5]]])
    assert (single.total_variation().value, single.total_variation().witness) == (0.0, None)


def test_a_pair_through_two_curves_has_both_directions():
    """A pair through the deltas of both directions has them; where only one is given, it is symmetric."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        pair = FinitePair(*rng.dirichlet(np.full(6, 0.5), 2))
        grid = np.linspace(0.0, float(np.abs(pair.losses).max()) + 0.1, 40)
        forward, back = ([float(np.maximum(a - math.exp(e) * b, 0).sum()) for e in grid]
                         for a, b in ((pair.p, pair.q), (pair.q, pair.p)))  # fmt: skip
        made = FinitePair.through(grid, np.array(forward), grid, np.array(back))
        for e, f, b in itertools.islice(zip(grid.tolist(), forward, back, strict=True), 0, None, 3):
            for expected, (x, y) in ((f, (made.p, made.q)), (b, (made.q, made.p))):
                assert float(np.maximum(x - math.exp(e) * y, 0).sum()) == pytest.approx(expected, abs=1e-12)
    noise = laplace(1.0).pair
    grid = np.linspace(0.0, 1.0, 9)
    assert FinitePair.through(grid, np.array([noise.hockey_stick(e).value for e in grid.tolist()])).symmetric


def test_divergences_of_densities_are_their_own():
    """Rényi divergences of noise add up, not those of the finite pairs that dominate it, which are infinite."""
    sampled, plain = gaussian(5.0).pair.subsampled(0.01), gaussian(1.0)
    for parts, count in (([sampled], 3), ([plain], 2), ([sampled, plain, laplace(0.5)], 1)):
        found = compose(parts, count).renyi(4)
        each = [getattr(part, "pair", part).renyi(4) for part in parts]
        assert found.lower <= count * sum(one.value for one in each)
        assert found.value >= count * sum(one.lower for one in each)
        assert found.value <= found.lower * (1 + 1e-12)
        assert found.exact
    beside = compose([sampled, Q]).renyi(4)
    assert beside.lower <= sampled.renyi(4).value + FinitePair(*Q).renyi(4).value <= beside.value * (1 + 1e-12)
    assert math.isfinite(beside.value)
