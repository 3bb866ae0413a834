"""Kuk's design proves its epsilon from its shares, whatever floats can hold of its reports."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.composition import Ledger
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import Kuk
from ldpopt.privacy import local_dp, total_variation


@pytest.mark.parametrize(
    ("first", "second", "draws"),
    [
        (1.1e-20, 1e-20, 40),
        (0.01, 0.011, 200),
        (0.01, 0.011, 2000),
        (0.8, 0.2, 1),
        (0.5, 1e-300, 3),
        (0.3, 0.30001, 77),
    ],
)
def test_epsilon_and_eta_are_those_of_the_binomials(first, second, draws):
    """epsilon = draws max(|log t1/t2|, |log (1-t1)/(1-t2)|), eta that of the binomials, in 400 digits [Kuk]."""
    made = Kuk(first, second, draws)
    with mpmath.workdps(400):
        a, b = mpf(first), mpf(second)
        epsilon = draws * max(abs(mpmath.log(a / b)), abs(mpmath.log((1 - a) / (1 - b))))
        assert epsilon <= mpf(made.epsilon) <= epsilon * (1 + mpf(10) ** -13)
        laws = [[math.comb(draws, r) * t**r * (1 - t) ** (draws - r) for r in range(draws + 1)] for t in (a, b)]
        eta = mpmath.fsum(max(p - q, mpf(0)) for p, q in zip(*laws, strict=True))
        assert eta <= mpf(made.eta) <= eta * (1 + mpf(10) ** -13)


def test_reports_that_floats_cannot_hold_are_refused():
    """A report rarer than any normal float has no channel, and a ledger does not take the rest of it for the whole."""
    for design in (Kuk(1.1e-20, 1e-20, 40), Kuk(0.01, 0.011, 200), Kuk(0.01, 0.011, 2000)):
        for use in (lambda d=design: d.channel, lambda d=design: local_dp(d), lambda d=design: Ledger().add(d)):
            with pytest.raises(InvalidInput, match="reports that floats can hold"):
                use()


@pytest.mark.parametrize(("first", "second", "draws"), [(0.8, 0.2, 2), (0.3, 0.4, 60), (0.45, 0.55, 300)])
def test_the_channel_has_the_promised_epsilon_and_eta(first, second, draws):
    """Where floats hold every report, the channel measures what the shares give, to rounding."""
    made = Kuk(first, second, draws)
    assert float(local_dp(made)) == pytest.approx(made.epsilon, rel=1e-13)
    assert float(total_variation(made)) == pytest.approx(made.eta, rel=1e-12)


def test_estimates_need_no_channel():
    """At the expected counts the estimate is the prevalence, for decks whose channel floats cannot hold too."""
    made, rng = Kuk(0.01, 0.011, 200), np.random.default_rng(0)
    red = rng.binomial(200, np.where(rng.random(400_000) < 0.3, made.theta1, made.theta2))
    counts = np.bincount(red, minlength=201)
    assert made.estimate(counts) == pytest.approx(0.3, abs=5 * math.sqrt(made.variance(0.3, 400_000)))
    with pytest.raises(InvalidInput, match="201 non-negative counts"):
        made.estimate(counts[:-1])
