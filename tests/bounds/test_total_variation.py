"""What survives of total variation: the bounds hold and are attained."""

import math
import re

import numpy as np
import pytest

from ldpopt.bounds import ghazi_issa_total_variation, kairouz_oh_viswanath
from ldpopt.channel import Channel
from ldpopt.divergences import TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.privacy import local_dp, total_variation


def test_an_epsilon_ldp_channel_leaves_at_most_tanh_half_epsilon(trials):
    """[GI, Thm 4] TV(M0, M1) <= tanh(epsilon/2) TV(P0, P1) for every epsilon-LDP channel."""
    for p0, p1, q, epsilon, _ in trials:
        assert TOTAL_VARIATION(q.push(p0), q.push(p1)) <= kairouz_oh_viswanath(p0, p1, epsilon) + 1e-15


def test_an_eta_tv_channel_leaves_at_most_eta(trials):
    """[GI, Thm 5] TV(M0, M1) <= eta TV(P0, P1) for every eta-TV channel."""
    for p0, p1, q, _, eta in trials:
        assert TOTAL_VARIATION(q.push(p0), q.push(p1)) <= ghazi_issa_total_variation(p0, p1, eta) + 1e-15


def test_the_binary_mechanism_with_erasure_attains_both_bounds():
    """[GI, Thm 4-5] The binary mechanism, with erasure for eta, attains equality for any P0 and P1."""
    rng = np.random.default_rng(5)
    for epsilon in (0.01, 0.5, 2.0, 8.0):
        for k in (2, 5, 9):
            p0, p1 = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
            first = np.where(p0 >= p1, math.exp(epsilon), 1.0) / (1 + math.exp(epsilon))
            q = Channel(np.stack([first, 1 - first], axis=1))
            assert local_dp(q).value == pytest.approx(epsilon, rel=1e-12)
            kept = TOTAL_VARIATION(q.push(p0), q.push(p1))
            assert kept == pytest.approx(kairouz_oh_viswanath(p0, p1, epsilon), rel=1e-12)
            eta = 0.4 * math.tanh(epsilon / 2)
            erased = q.erase(0.6)
            assert total_variation(erased).value == pytest.approx(eta, rel=1e-12)
            kept = TOTAL_VARIATION(erased.push(p0), erased.push(p1))
            assert kept == pytest.approx(ghazi_issa_total_variation(p0, p1, eta), rel=1e-12)


def test_values():
    """The bounds are their formulas: tanh(1/2) / 2 and 0.3 / 2 at TV one half."""
    p0, p1 = [0.9, 0.1], [0.4, 0.6]
    assert kairouz_oh_viswanath(p0, p1, 1.0) == pytest.approx(0.231058578630004879, rel=1e-14)
    assert ghazi_issa_total_variation(p0, p1, 0.3) == pytest.approx(0.15, rel=1e-14)
    assert ghazi_issa_total_variation(p0, p1, 0) == 0
    assert kairouz_oh_viswanath(p0, p0, 1.0) == 0


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1", None])
def test_epsilon_must_be_positive_and_finite(epsilon):
    """An epsilon that is no positive finite number is an error."""
    with pytest.raises(InvalidInput, match="epsilon: expected a"):
        kairouz_oh_viswanath([1, 0], [0, 1], epsilon)


@pytest.mark.parametrize("eta", [-0.1, 1.1, math.nan, "1", None])
def test_eta_must_be_in_the_unit_interval(eta):
    """An eta outside [0, 1] is an error."""
    with pytest.raises(InvalidInput, match=re.escape("eta: expected a number in [0, 1]")):
        ghazi_issa_total_variation([1, 0], [0, 1], eta)


def test_the_populations_must_be_distributions_of_one_length():
    """Entries that do not sum to one and mismatched lengths are errors."""
    with pytest.raises(InvalidInput, match="p: expected entries that sum to 1"):
        kairouz_oh_viswanath([1, 1], [0, 1], 1.0)
    with pytest.raises(InvalidInput, match="q: expected 2 entries, got 3"):
        ghazi_issa_total_variation([1, 0], [0, 1, 0], 0.5)
