"""Tests of `ldpopt.design.utilities`."""

import numpy as np
import pytest
from scipy import stats

from ldpopt import Divergence, InvalidInput
from ldpopt.design import AgainstSet
from ldpopt.divergences import CHI_SQUARED, KL, NAMED, parse_divergence
from ldpopt.mechanisms import randomized_response


def test_value_is_the_divergence_of_the_marginals():
    """The utility of a channel is D_f of the two marginals it leaves."""
    p0, p1 = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
    channel = randomized_response(3, 1.0)
    m0, m1 = p0 @ channel.matrix, p1 @ channel.matrix
    assert Divergence(KL, p0, p1).value(channel) == pytest.approx(np.sum(m0 * np.log(m0 / m1)), rel=1e-13)
    assert Divergence(CHI_SQUARED, p0, p1).value_without_privacy == pytest.approx(
        np.sum((p0 - p1) ** 2 / p1), rel=1e-14
    )


def test_value_keeps_its_digits_for_close_hypotheses():
    """For hypotheses 1e-6 apart the utility keeps its relative accuracy (50-digit reference)."""
    import mpmath

    p0 = np.array([0.25, 0.25, 0.5])
    p1 = np.array([0.250001, 0.249999, 0.5])
    channel = randomized_response(3, 0.5)
    problem = Divergence(KL, p0, p1)
    with mpmath.workdps(50):
        matrix = [[mpmath.mpf(float(v)) for v in row] for row in channel.matrix]
        rows = [[v / mpmath.fsum(row) for v in row] for row in matrix]
        marginals = [
            [mpmath.fsum(mpmath.mpf(float(p)) * row[y] for p, row in zip(prior, rows, strict=True)) for y in range(3)]
            for prior in (problem.p0, problem.p1)
        ]
        truth = mpmath.fsum(a * mpmath.log(a / b) for a, b in zip(*marginals, strict=True))
        truth -= mpmath.fsum(marginals[0]) - mpmath.fsum(marginals[1])
    assert problem.value(channel) == pytest.approx(float(truth), rel=1e-8)


@pytest.mark.parametrize(
    ("p0", "p1", "message"),
    [
        ([0.5, np.nan], [0.5, 0.5], "p0: expected finite numbers"),
        ([0.5, 0.5], [1.5, -0.5], "p1: expected non-negative entries, got -0.5 at entry 1"),
        ([0.5, 0.6], [0.5, 0.5], "p0: expected entries that sum to 1 within 1e-09"),
        ([0.5, 0.5], [0.2, 0.3, 0.5], "p1: expected 2 entries, as many as p0, got 3"),
        ([1.0], [1.0], "p0: expected at least 2 entries, got 1"),
        ([0.5, 0.5], [0.5, 0.5], "two different distributions, got equal ones"),
        ([0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], "overlapping supports, got disjoint ones"),
        ([[0.5, 0.5]], [0.5, 0.5], "p0: expected 1 dimension, got shape"),
        ([], [], "p0: expected at least one entry"),
        ("half", [0.5, 0.5], "p0: expected an array of numbers"),
        (stats.norm(), [0.5, 0.5], "two arrays or two scipy.stats distributions"),
    ],
)
def test_bad_hypotheses_are_refused(p0, p1, message):
    """Each malformed pair is refused with what was expected and what was found."""
    with pytest.raises(InvalidInput, match=message):
        Divergence(KL, p0, p1)


def test_bad_divergences_labels_and_channels_are_refused():
    """The divergence must be one, labels must fit, and a channel must have a row for every input."""
    with pytest.raises(InvalidInput, match="divergence f: expected an FDivergence"):
        Divergence(abs, [0.5, 0.5], [0.4, 0.6])
    with pytest.raises(InvalidInput, match="inputs: expected 2 labels, got 3"):
        Divergence(KL, [0.5, 0.5], [0.4, 0.6], inputs=list("abc"))
    with pytest.raises(InvalidInput, match="inputs: expected 2 labels, got 'ab'"):
        Divergence(KL, [0.5, 0.5], [0.4, 0.6], inputs="ab")
    with pytest.raises(InvalidInput, match="channel: expected 2 inputs, got 3"):
        Divergence(KL, [0.5, 0.5], [0.4, 0.6]).value(np.eye(3))
    with pytest.raises(InvalidInput, match="finite distributions"):
        Divergence(KL, stats.norm(), stats.norm(1)).value(np.eye(3))


@pytest.mark.parametrize("name", [*NAMED, "hockey-stick:1.5", "alpha:0.5"])
def test_a_divergence_is_given_by_its_name(name):
    """A name stands for the divergence itself: equal problems, equal values."""
    named = Divergence(name, [0.5, 0.5], [0.25, 0.75])
    posed = Divergence(parse_divergence(name), [0.5, 0.5], [0.25, 0.75])
    assert named == posed
    assert named.value(np.eye(2)) == posed.value(np.eye(2)) > 0
    assert AgainstSet(name, [0.5, 0.5], [0.25, 0.75]).f == named.f


@pytest.mark.parametrize("name", ["", "KL divergence", "kl:2", "alpha", "alpha:x", "hockey-stick:-1", 3, None])
def test_an_unknown_name_is_refused(name):
    """What names no divergence is an error, not a divergence."""
    with pytest.raises(InvalidInput, match=r"divergence|gamma"):
        Divergence(name, [0.5, 0.5], [0.25, 0.75])
