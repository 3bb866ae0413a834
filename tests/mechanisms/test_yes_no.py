""""""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.composition import Ledger
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import (
    Crosswise,
    ForcedResponse,
    Kuk,
    SurveyDesign,
    Triangular,
    UnrelatedQuestion,
    Warner,
    crosswise,
    forced_response,
    kuk,
    triangular,
    unrelated_question,
    warner,
)
from ldpopt.privacy import local_dp, total_variation

DESIGNS = [
    warner(0.7),
    warner(0.2),
    forced_response(1 / 6, 1 / 6),
    forced_response(0.1, 0.3),
    unrelated_question(0.6, 0.3),
    kuk(0.8, 0.3),
    kuk(0.2, 0.7, 3),
    crosswise(0.25),
    triangular(0.25),
]
EPSILONS = [1e-6, 0.1, 1.0, 3.0, 20.0, 60.0]
FOR_EPSILON = [
    Warner.for_epsilon,
    Crosswise.for_epsilon,
    ForcedResponse.for_epsilon,
    lambda e: ForcedResponse.for_epsilon(e, 0.2),
    lambda e: UnrelatedQuestion.for_epsilon(e, 0.3),
    Kuk.for_epsilon,
    lambda e: Kuk.for_epsilon(e, 4),
]


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_epsilon_and_eta_are_those_of_the_channel(design):
    """A design's guarantees are those of its float64 channel but for rounding, and numpy takes it as that channel."""
    assert design.epsilon == pytest.approx(float(local_dp(design)), rel=1e-13)
    assert design.eta == pytest.approx(float(total_variation(design)), rel=1e-13)
    assert design.channel.inputs == ("yes", "no")
    np.testing.assert_array_equal(np.asarray(design), design.channel.matrix)
    np.testing.assert_allclose(design.channel.matrix.sum(axis=1), 1, rtol=0, atol=1e-15)


def _red(d, pi):
    return pi * d.theta1 + (1 - pi) * d.theta2


PUBLISHED = {
    Warner: lambda d, pi: pi * (1 - pi) + d.p * (1 - d.p) / (2 * d.p - 1) ** 2,
    Crosswise: lambda d, pi: pi * (1 - pi) + d.p * (1 - d.p) / (2 * d.p - 1) ** 2,
    ForcedResponse: lambda d, pi: (s := pi * (1 - d.p_yes - d.p_no) + d.p_yes) * (1 - s) / (1 - d.p_yes - d.p_no) ** 2,
    UnrelatedQuestion: lambda d, pi: (s := d.p * pi + (1 - d.p) * d.prevalence) * (1 - s) / d.p**2,
    Kuk: lambda d, pi: (
        _red(d, pi) * (1 - _red(d, pi)) / d.draws / (d.theta1 - d.theta2) ** 2 + (1 - 1 / d.draws) * pi * (1 - pi)
    ),
    Triangular: lambda d, pi: (1 - pi) * (pi + d.p / (1 - d.p)),
}


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
@pytest.mark.parametrize("prevalence", [0.0, 0.03, 0.5, 1.0])
def test_published_variance_is_the_one_formula(design, prevalence):
    """The formula of each paper [Warner; Crosswise; Forced; Unrelated; Kuk] is a case of the one formula."""
    published = PUBLISHED[type(design)](design, prevalence) / 250
    assert design.variance(prevalence, 250) == pytest.approx(published, rel=1e-12, abs=1e-17)


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
@pytest.mark.parametrize("prevalence", [0.0, 0.03, 0.5, 1.0])
def test_published_variance_is_that_of_the_channel(design, prevalence):
    """Each published variance equals the delta method on the channel: Var(score of a report)/(n slope^2)."""
    p = np.array([prevalence, 1 - prevalence])
    marginal = design.channel.push(p)
    own, other = design.channel.matrix @ design.score
    covariance = np.diag(marginal) - np.outer(marginal, marginal)
    generic = design.score @ covariance @ design.score / (own - other) ** 2 / 250
    assert design.variance(prevalence, 250) == pytest.approx(generic, rel=1e-10, abs=1e-16)


@pytest.mark.parametrize("design", [d for d in DESIGNS if d.channel.shape[1] == 2], ids=repr)
def test_published_variance_is_the_best_of_any_unbiased_estimator(design):
    """With two reports the estimate is the maximum-likelihood one: its variance is the inverse Fisher information."""
    prevalence = 0.2
    q = design.channel.matrix
    marginal = prevalence * q[0] + (1 - prevalence) * q[1]
    information = np.sum((q[0] - q[1]) ** 2 / marginal)
    assert design.variance(prevalence, 1) == pytest.approx(1 / information, rel=1e-10)


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_estimate_is_unbiased(design):
    """At the expected counts the estimate is the prevalence itself."""
    assert design.estimate(1000 * design.channel.push([0.13, 0.87])) == pytest.approx(0.13, abs=1e-12)


@pytest.mark.parametrize("make", FOR_EPSILON)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_for_epsilon_errs_to_the_private_side(make, epsilon):
    """The measured epsilon is never above the target, and below it by rounding only where floats are dense enough."""
    design = make(epsilon)
    assert isinstance(design, SurveyDesign)
    assert design.epsilon <= epsilon
    if epsilon <= 3:
        assert design.epsilon >= epsilon - 1e-13 * (1 + epsilon)
    elif epsilon <= 20:
        assert design.epsilon >= epsilon - 1e-6


@pytest.mark.parametrize("design", DESIGNS[:2], ids=repr)
def test_bad_use_is_refused(design):
    """Counts fit the reports, a prevalence lies in [0, 1], n is a positive integer."""
    with pytest.raises(InvalidInput, match="counts: expected 2 non-negative counts"):
        design.estimate([1, 2, 3])
    with pytest.raises(InvalidInput, match="counts"):
        design.estimate([0, 0])
    with pytest.raises(InvalidInput, match="prevalence"):
        design.variance(1.2, 10)
    with pytest.raises(InvalidInput, match="n: expected an integer"):
        design.variance(0.2, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: warner(0.5), "p: expected a number other than 1/2"),
        (lambda: warner(1.0), "p: expected a number strictly between 0 and 1"),
        (lambda: crosswise(0.0), "p: expected a number strictly between"),
        (lambda: forced_response(0.5, 0.5), "a sum below 1"),
        (lambda: forced_response(-0.1, 0.5), "p_yes: expected a number in"),
        (lambda: unrelated_question(0.0, 0.5), "p: expected a number in"),
        (lambda: unrelated_question(0.5, 1.5), "prevalence: expected a number in"),
        (lambda: kuk(0.4, 0.4), "theta1 and theta2: expected distinct shares"),
        (lambda: kuk(0.4, 1.0), "theta2: expected a number strictly between"),
        (lambda: kuk(0.4, 0.5, 0), "draws: expected an integer of at least 1"),
        (lambda: triangular(1.0), "p: expected a number strictly between"),
        (lambda: Triangular.for_epsilon(1.0), "inf, at every p"),
        (lambda: Warner.for_epsilon(0), "epsilon"),
        (lambda: ForcedResponse.for_epsilon(1.0, 1.0), "yes_share"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    """Each design names the parameter that is wrong."""
    with pytest.raises(InvalidInput, match=message):
        make()


def test_epsilon_and_eta_have_closed_forms():
    """The formulas in the docstrings of the designs, at one point each."""
    assert warner(0.8).epsilon == pytest.approx(math.log(4), abs=1e-14)
    assert crosswise(0.2).eta == pytest.approx(0.6, abs=1e-14)
    assert forced_response(0.1, 0.3).epsilon == pytest.approx(math.log(0.7 / 0.1), abs=1e-14)
    assert forced_response(0.1, 0.3).eta == pytest.approx(0.6, abs=1e-14)
    assert forced_response(0.0, 0.3).epsilon == math.inf
    equal = forced_response(0.4 * 0.3, 0.4 * 0.7)
    assert unrelated_question(0.6, 0.3).epsilon == pytest.approx(equal.epsilon, abs=1e-14)
    assert unrelated_question(0.6, 0.3).eta == pytest.approx(0.6, abs=1e-14)
    assert kuk(0.8, 0.3, 3).epsilon == pytest.approx(3 * math.log(0.7 / 0.2), abs=1e-13)
    assert triangular(0.25).epsilon == math.inf
    assert triangular(0.25).eta == pytest.approx(0.75, abs=1e-14)
    assert 0.3 - 1e-12 <= Triangular.for_total_variation(0.3).eta <= 0.3


def test_the_simulated_variance_is_the_stated_one():
    """The spread of estimates over simulated surveys is the stated variance (seed 11, 4 standard errors)."""
    rng = np.random.default_rng(11)
    design, n, surveys = kuk(0.8, 0.3, 2), 400, 4000
    counts = rng.multinomial(n, design.channel.push([0.2, 0.8]), size=surveys)
    spread = np.var([design.estimate(c) for c in counts])
    assert spread == pytest.approx(design.variance(0.2, n), rel=4 * math.sqrt(2 / surveys))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-3, 2.0])
@pytest.mark.parametrize("prevalence", [0.5, 0.3, 0.01])
def test_a_small_epsilon_is_that_of_the_parameters(epsilon, prevalence):
    """The epsilon of an unrelated question is exact in its parameters: at 1e-9, rounding a probability shows in it."""
    made = UnrelatedQuestion.for_epsilon(epsilon, prevalence)
    rest, share = 1 - Fraction(made.p), Fraction(prevalence)
    yes, no = rest * share, rest * (1 - share)
    with mpmath.workdps(60):
        ratios = ((1 - no) / yes, (1 - yes) / no)
        exact = max(mpmath.log(mpmath.mpf(r.numerator) / r.denominator) for r in ratios)
        assert exact <= mpmath.mpf(made.epsilon) <= exact * (1 + mpmath.mpf(10) ** -15)
    assert made.epsilon <= epsilon
    assert float(local_dp(made)) <= epsilon


def test_eta_and_epsilon_of_shares_next_to_the_ends():
    """Shares of 1e-20 keep their digits beside one, and a sum that exceeds one by 1e-17 is refused."""
    assert Warner(1e-20).epsilon == pytest.approx(20 * math.log(10), rel=1e-14)
    assert ForcedResponse(1e-20, 0.5).epsilon == pytest.approx(math.log(0.5e20), rel=1e-14)
    with pytest.raises(InvalidInput, match="a sum below 1"):
        ForcedResponse(1e-17, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "draws"),
    [
        (1.1e-20, 1e-20, 40),
        (0.01, 0.011, 200),
        (0.01, 0.011, 600),
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
    for design in (Kuk(1.1e-20, 1e-20, 40), Kuk(0.01, 0.011, 200), Kuk(0.01, 0.011, 600)):
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
