import json
import math
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import truth

from ldpopt.channel import Channel
from ldpopt.privacy import mcdp, zcdp
from ldpopt.privacy.concentrated import _screen_mcdp, subgaussian_of_pairs

CASES = json.loads((Path(__file__).parents[1] / "data" / "channel_measures.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES)
def test_mcdp_meets_the_oracle(case):
    """The values of the reference computation, to 1e-7."""
    found = mcdp(case["channel"])
    assert found.mu.value == pytest.approx(case["mcdp_mu"], rel=1e-7)
    assert found.tau.value == pytest.approx(case["mcdp_tau"], rel=1e-7)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 5.0, 50.0])
def test_randomized_response_has_the_closed_form(epsilon):
    """Binary randomized response: mu = epsilon tanh(epsilon/2), tau^2 = 2 mu, below mu = eps (e^eps-1)/2, tau = eps."""
    low = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    found = mcdp([[1 - low, low], [low, 1 - low]])
    truth = epsilon * math.tanh(epsilon / 2)
    assert found.mu.value == pytest.approx(truth, rel=1e-9)
    assert found.tau.value**2 == pytest.approx(2 * truth, rel=1e-9)
    assert found.mu.value <= epsilon * math.expm1(epsilon) / 2  # [DR, Thm 3.5]
    assert found.tau.value <= epsilon * (1 + 1e-9)


def test_mcdp_bounds_zcdp():
    """(mu, tau)-mCDP gives (mu - tau^2/2, tau^2/2)-zCDP [BS, Lem 4.2], tight for binary randomized response."""
    rng = np.random.default_rng(0)
    for q in [rng.dirichlet(np.full(4, 0.8), 3) for _ in range(10)] + [np.array([[0.9, 0.1], [0.1, 0.9]])]:
        found = mcdp(q)
        rho = found.tau.value**2 / 2
        assert zcdp(q, found.mu.value - rho).lower <= rho
    assert zcdp(q, found.mu.value - rho).value == pytest.approx(rho, rel=1e-9)


def test_post_processing_can_raise_the_subgaussian_standard():
    """Merging the middle of a Gaussian breaks (2/sigma^2, 2/sigma)-mCDP at sigma = 1, t = 3 [BS, Prop A.1]."""
    p, q = 1 - NormalDist().cdf(2.0), 1 - NormalDist().cdf(4.0)
    merged = mcdp([[p, 1 - p - q, q], [q, 1 - p - q, p]])
    assert merged.tau.lower > 2.0
    z, mean = math.log(p / q), (p - q) * math.log(p / q)
    moment = (p * math.exp(2 * z) + q * math.exp(-2 * z) + 1 - p - q) * math.exp(-2 * mean)
    assert moment > math.exp(2 * 2**2)  # the paper's own check, lambda = 2
    # The same within the toolkit: a finely binned Gaussian mechanism, of which the above is a merging.
    edges = np.linspace(-3, 3, 61)
    cells = np.concatenate([[-np.inf], edges, [np.inf]])
    law = [[NormalDist(x).cdf(b) - NormalDist(x).cdf(a) for a, b in pairwise(cells)] for x in (1, -1)]
    fine = Channel(np.array(law) / np.sum(law, axis=1, keepdims=True))
    coarse = fine.merge([range(1, 61)])
    assert coarse.shape == (2, 3)
    assert mcdp(fine).tau.value < 2.01 < mcdp(coarse).tau.lower
    assert mcdp(coarse).mu.lower <= mcdp(fine).mu.value


def test_the_loss_of_a_symmetric_law_is_measured_to_the_bracket():
    """A loss with no odd cumulants, flat at the origin, still gets a bracket of 1e-10: a fair coin's is +-z."""
    found = mcdp([[0.5, 0.5], [0.25, 0.75]])
    z = math.log(0.5 / 0.25) - (math.log(2) + math.log(2 / 3)) / 2
    # Forward, Z is z or -z with probability one half: tau = z (Hoeffding is exact). Backward it is skewed.
    assert found.tau.value - found.tau.lower <= 1e-10
    assert found.tau.value >= z


@pytest.mark.parametrize("seed", range(24))
def test_the_screen_brackets_every_pair(seed):
    """Whatever the screen says of a pair holds of its own bracket, so that no pair that matters is left out.

    Where some pair is infinite, no other pair matters.
    """
    rng = np.random.default_rng(seed)
    q = truth.FAMILIES[seed % len(truth.FAMILIES)](rng, 6, 5)
    q = q / q.sum(axis=1, keepdims=True) * (1 + rng.uniform(-9e-10, 9e-10, (len(q), 1)))
    i, j = np.nonzero(~np.eye(len(q), dtype=bool))
    (low, high), (least, most) = _screen_mcdp(q), subgaussian_of_pairs(q[i], q[j])
    assert (low[i, j] <= most).all()
    matters = least == np.inf if (least == np.inf).any() else least >= 0
    assert (high[i, j] >= least)[matters].all()


def test_a_screened_channel_has_the_value_of_its_worst_pair():
    """Twenty inputs: the screen leaves few pairs, and the answer is that of measuring all of them."""
    q = np.random.default_rng(5).dirichlet(np.ones(20), 20) + 1e-4
    q /= q.sum(axis=1, keepdims=True)
    i, j = np.nonzero(~np.eye(20, dtype=bool))
    least, most = subgaussian_of_pairs(q[i], q[j])
    found = mcdp(q).tau
    assert (found.lower, found.value) == (least.max(), most.max())


def test_rows_that_are_one_law_have_no_spread():
    """Two rows of different sums that stand for one law: tau is 0 but for what rounding may hide."""
    p = np.array([[0.5, 0.5]])
    low, high = subgaussian_of_pairs(p, p + 2.0**-40)
    assert low[0] == 0
    assert 0 < high[0] <= 2.0**-48
