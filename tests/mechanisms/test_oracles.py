"""The contract of every frequency oracle."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.exact import log_up
from ldpopt.mechanisms import (
    UnaryEncoding,
    hadamard_response,
    local_hashing,
    optimized_local_hashing,
    optimized_unary_encoding,
    unary_encoding,
)
from ldpopt.privacy import local_dp, total_variation

SMALL = [
    *(unary_encoding(k, e) for k in (2, 5) for e in (1e-6, 1.0, 30.0)),
    *(optimized_unary_encoding(k, e) for k in (2, 5) for e in (1e-6, 1.0, 30.0)),
    *(local_hashing(5, e, g, prime) for g, prime in ((2, 5), (3, 7), (4, 11)) for e in (1e-6, 1.0, 30.0)),
    optimized_local_hashing(6, 1.2, 13),
    *(hadamard_response(k, e) for k in (2, 5, 13) for e in (1e-6, 0.5, 1.0, 2.2, 30.0)),
]
LARGE = [
    unary_encoding(40, 1.0),
    optimized_unary_encoding(40, 1.0),
    local_hashing(40, 1.0, 3),
    optimized_local_hashing(40, 1.0),
    hadamard_response(40, 0.5),
    hadamard_response(40, 2.0),
]


@pytest.mark.parametrize("oracle", SMALL, ids=repr)
def test_the_whole_matrix_has_the_stated_guarantees(oracle):
    """The tabulated channel is epsilon-LDP and eta-TV as the closed forms say, and wastes neither."""
    channel = oracle.channel()
    np.testing.assert_allclose(channel.matrix.sum(axis=1), 1, rtol=0, atol=1e-13)
    assert float(local_dp(channel)) <= oracle.epsilon
    # At large epsilon the symmetric unary encoding is held to a grid of probabilities, 2**-53 apart.
    waste = 1e-13 * (1 + oracle.epsilon) if oracle.epsilon < 30 else 2.0**-52 * math.exp(15)
    assert local_dp(channel).lower >= oracle.epsilon - waste
    assert oracle.eta == pytest.approx(float(total_variation(channel)), abs=2e-13)


@pytest.mark.parametrize("oracle", [m for m in SMALL if 0.5 <= m.epsilon < 3], ids=repr)
def test_estimates_are_unbiased_with_the_stated_variance(oracle):
    """Over all reports of the channel, the estimate has the true mean and exactly the variance of the formula."""
    p = np.random.default_rng(2).dirichlet(np.ones(oracle.k))
    channel = oracle.channel()
    marginal = channel.push(p)
    single = np.array([oracle.estimate(oracle.support_counts(np.array([y])), 1) for y in channel.outputs])
    np.testing.assert_allclose(marginal @ single, p, rtol=0, atol=1e-10)
    variance = marginal @ single**2 - p**2
    for v in range(oracle.k):
        extra = ()
        if hasattr(oracle, "blocks"):
            extra = (p[v % oracle.blocks :: oracle.blocks].sum(),)
        assert oracle.variance(p[v], 7, *extra) == pytest.approx(variance[v] / 7, rel=1e-9)


@pytest.mark.parametrize("oracle", [m for m in SMALL if m.epsilon == 1.0], ids=repr)
def test_samples_follow_the_channel(oracle):
    """Simulated reports of one answer have the frequencies of its row (seed 4, 5 standard errors)."""
    channel, n, x = oracle.channel(), 20_000, oracle.k - 1
    reports = oracle.sample(np.full(n, x), np.random.default_rng(4))
    keys = [tuple(map(int, r)) if np.ndim(r) else int(r) for r in reports]
    position = {y: i for i, y in enumerate(channel.outputs)}
    seen = np.bincount([position[key] for key in keys], minlength=channel.shape[1]) / n
    row = channel.matrix[x]
    assert np.all(np.abs(seen - row) <= 5 * np.sqrt(row * (1 - row) / n))


@pytest.mark.parametrize("oracle", LARGE, ids=repr)
def test_simulated_estimates_are_within_five_standard_errors(oracle):
    """With too many reports to tabulate, simulated estimates are within 5 standard errors (seed 6)."""
    rng = np.random.default_rng(6)
    p, n = rng.dirichlet(np.ones(40)), 20_000
    counts = oracle.support_counts(oracle.sample(rng.choice(40, size=n, p=p), rng))
    assert counts.shape == (40,)
    estimate = oracle.estimate(counts, n)
    error = np.sqrt([oracle.variance(f, n) if not hasattr(oracle, "blocks") else _largest(oracle, f, n) for f in p])
    assert np.all(np.abs(estimate - p) <= 5 * error)


def _largest(oracle, f, n):
    return max(oracle.variance(f, n, share) for share in ((1.0,) if oracle.blocks == 1 else (f, 1.0)))


@pytest.mark.parametrize("oracle", LARGE, ids=repr)
def test_bad_use_is_refused(oracle):
    """Answers, reports, counts and n are checked; a matrix too large to hold is refused."""
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match=r"(answers|reports): expected"):
        oracle.sample(np.array([40]), rng)
    with pytest.raises(InvalidInput, match=r"(answers|reports): expected"):
        oracle.sample(np.array([0.5]), rng)
    with pytest.raises(InvalidInput, match="rng: expected"):
        oracle.sample(np.array([0]), "7")
    with pytest.raises(InvalidInput, match="reports: expected"):
        oracle.support_counts(np.array([[-1, 0]]))
    with pytest.raises(InvalidInput, match="support counts: expected 40 entries"):
        oracle.estimate([1.0], 10)
    with pytest.raises(InvalidInput, match="n: expected"):
        oracle.estimate(np.zeros(40), 0)
    with pytest.raises(InvalidInput, match="frequency"):
        oracle.variance(-0.1, 10)
    if not hasattr(oracle, "blocks"):
        with pytest.raises(InvalidInput, match="a matrix of at most"):
            oracle.channel()


@pytest.mark.parametrize(
    "make", [unary_encoding, optimized_unary_encoding, local_hashing, optimized_local_hashing, hadamard_response]
)
def test_bad_parameters_are_refused(make):
    """k is at least 2, epsilon positive."""
    with pytest.raises(InvalidInput, match="k: expected an integer of at least 2"):
        make(1, 1.0)
    with pytest.raises(InvalidInput, match="epsilon: expected"):
        make(4, -1.0)


def test_variances_at_frequency_zero_are_the_published_ones():
    """Optimized unary encoding: 4e/(n(e-1)^2); symmetric: e^(1/2)/(n(e^(1/2)-1)^2), e = exp(epsilon) [LH]."""
    for epsilon in (0.3, 1.0, 2.0):
        e, h = math.exp(epsilon), math.exp(epsilon / 2)
        assert optimized_unary_encoding(9, epsilon).variance(0.0, 10) == pytest.approx(4 * e / (10 * (e - 1) ** 2))
        assert unary_encoding(9, epsilon).variance(0.0, 10) == pytest.approx(h / (10 * (h - 1) ** 2))
        g = 5
        published = (e - 1 + g) ** 2 / (10 * (e - 1) ** 2 * (g - 1))
        assert local_hashing(9, epsilon, g).variance(0.0, 10) == pytest.approx(published, rel=1e-8)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 40.0])
def test_total_variation_agrees_with_its_closed_form(epsilon):
    """Symmetric unary encoding is tanh(epsilon/4)-TV, the optimised one tanh(epsilon/2)/2-TV, whatever k."""
    for k in (2, 100):
        assert unary_encoding(k, epsilon).eta == pytest.approx(math.tanh(epsilon / 4), abs=1e-13)
        assert optimized_unary_encoding(k, epsilon).eta == pytest.approx(math.tanh(epsilon / 2) / 2, abs=1e-13)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0, 30.0])
def test_bits_have_their_probabilities(epsilon):
    """Own and other bits are set as often as they should be, to five standard deviations, and bits are uncorrelated."""
    oracle = optimized_unary_encoding(20, epsilon)
    n = 100_000
    bits = oracle.sample(np.full(n, 3), np.random.default_rng(8))
    rates = bits.mean(axis=0)
    for v in range(20):
        chance = oracle.own if v == 3 else oracle.other
        assert abs(rates[v] - chance) <= 5 * math.sqrt(chance * (1 - chance) / n)
    others = np.delete(bits, 3, axis=1)
    together = (others[:, :-1] & others[:, 1:]).mean()
    assert abs(together - oracle.other**2) <= 5 * oracle.other / math.sqrt(18 * n) + 1e-12


def test_an_epsilon_below_that_of_the_bits_is_refused():
    """A ledger would believe it: own 0.9 and other 0.1 are log 81 apart, and at that epsilon they are accepted."""
    true = math.log(81)
    with pytest.raises(InvalidInput, match=r"epsilon: expected at least 4\.394"):
        UnaryEncoding(10, 0.1, 0.9, 0.1)
    with pytest.raises(InvalidInput, match="epsilon"):
        replace(unary_encoding(10, 1.0), epsilon=0.5)
    made = UnaryEncoding(10, true * (1 + 1e-12), 0.9, 0.1)
    assert float(local_dp(UnaryEncoding(3, true * (1 + 1e-12), 0.9, 0.1).channel())) <= made.epsilon
    for own, other in ((1.0, 0.5), (0.5, 0.0), (0.5, 0.5), (0.1, 0.9), (math.nan, 0.1)):
        with pytest.raises(InvalidInput):
            UnaryEncoding(10, 600.0, own, other)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 37.0, 700.0])
def test_the_made_ones_prove_their_epsilon(epsilon):
    """The probabilities of both encodings give at most epsilon, in rationals."""
    for made in (unary_encoding(5, epsilon), optimized_unary_encoding(5, epsilon)):
        own, other = Fraction(made.own), Fraction(made.other)
        assert log_up(own * (1 - other) / (other * (1 - own))) <= epsilon
