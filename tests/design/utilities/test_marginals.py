"""All shares of a questionnaire as one criterion: what it sums, and what it refuses."""

import itertools

import numpy as np
import pytest

from ldpopt.design import FisherInformation, Marginals
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import FLOAT


def covariance(prior):
    return np.diag(prior) - np.outer(prior, prior)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (4, 2, 3), (2,) * 5])
def test_the_criterion_is_the_sum_of_variances_of_all_shares(shape):
    """tr(W C) is the sum over questions and answers of the variances of cell sums, at any joint distribution [KW]."""
    rng = np.random.default_rng(len(shape))
    cells = list(itertools.product(*map(range, shape)))
    prior = rng.dirichlet(np.ones(len(cells)))
    shares = [
        sum(p for p, cell in zip(prior, cells, strict=True) if cell[j] == a)
        for j, k in enumerate(shape)
        for a in range(k)
    ]
    expected = sum(share * (1 - share) for share in shares)
    assert Marginals(shape).value(covariance(prior)) == pytest.approx(expected, rel=1e-13)


def test_weights_pairs_and_contrasts_each_add_their_variances():
    """A weight a question, a weight a share, two-way shares and contrasts each add their variances."""
    prior = Marginals((2, 3)).pilot([0.3, 0.7], [0.2, 0.3, 0.5])
    one, three = 0.21, np.array([0.16, 0.21, 0.25])
    weighted = Marginals((2, 3), weights=[2, [1, 0.5, 0]])
    assert weighted.value(covariance(prior)) == pytest.approx(2 * 2 * one + three @ [1, 0.5, 0], rel=1e-13)
    paired = Marginals((2, 3), pairs=[(0, 1)])
    assert paired.value(covariance(prior)) == pytest.approx(2 * one + three.sum() + prior @ (1 - prior), rel=1e-13)
    contrast = np.arange(6.0)[:, None]
    further = Marginals((2, 3), contrasts=contrast)
    own = prior @ contrast[:, 0] ** 2 - (prior @ contrast[:, 0]) ** 2
    assert further.value(covariance(prior)) == pytest.approx(2 * one + three.sum() + own, rel=1e-12)


def test_its_directions_are_enclosed():
    """The enclosed factor holds the float one, to a few units in the last place."""
    marginals = Marginals((2, 5, 3), weights=[1, 0.3, 2])
    enclosed = marginals.enclosed_factor(30, FLOAT)
    assert np.abs(np.asarray(enclosed.midpoint) - marginals.directions).max() < 1e-14
    assert (np.asarray(enclosed.upper) >= np.asarray(enclosed.lower)).all()


def test_the_pilot_is_a_product_with_the_last_question_fastest():
    """Cells are in the order of `itertools.product`."""
    first, second = [0.5, 0.5], [0.2, 0.3, 0.5]
    expected = [a * b for a, b in itertools.product(first, second)]
    assert Marginals((2, 3)).pilot(first, second) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Marginals(()), "shape"),
        (lambda: Marginals("23"), "shape"),
        (lambda: Marginals((2, 1)), "at least 2"),
        (lambda: Marginals((2, 2.5)), "integer"),
        (lambda: Marginals((2,) * 13), "4096"),
        (lambda: Marginals((2, 3), weights=[1]), "2 questions"),
        (lambda: Marginals((2, 3), weights=[1, -1]), "at least 0"),
        (lambda: Marginals((2, 3), weights=[0, 1]), "not all 0"),
        (lambda: Marginals((2, 3), pairs=[(0, 2)]), "positions"),
        (lambda: Marginals((2, 3), pairs=[0]), "pairs of positions"),
        (lambda: Marginals((2, 3), contrasts=np.ones((5, 1))), "6 rows"),
        (lambda: FisherInformation(np.full(5, 0.2), Marginals((2, 3))), "6 entries"),
        (lambda: Marginals((2, 3)).pilot([0.5, 0.5]), "each of 2 questions"),
        (lambda: Marginals((2, 3)).pilot([0.5, 0.5], [0.5, 0.5]), "3 entries"),
    ],
)
def test_bad_marginals_are_refused_in_one_line(make, words):
    """Wrong shapes, weights, pairs, contrasts and pilots are refused in one line."""
    with pytest.raises(InvalidInput, match=words):
        make()
