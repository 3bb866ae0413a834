"""f-DP as a design constraint."""

import math

import numpy as np
import pytest

from ldpopt.design import Divergence, LocalDP, TotalVariation, TradeOff, optimal_channel
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput
from ldpopt.privacy import TradeOffCurve, trade_off


@pytest.mark.parametrize(
    ("p", "caps"),
    [([0.75, 0.25], [LocalDP(math.log(3))]), ([0.5, 0.3, 0.2], [LocalDP(math.log(2.5)), TotalVariation(0.3)])],
    ids=["pure", "pure and total variation"],
)
def test_curves_that_are_other_constraints(p, caps):
    """The curve of randomized response is pure LDP, that of randomized response with erasure adds a TV cap."""
    utility = Divergence(KL, *np.random.default_rng(1).dirichlet(np.ones(4), 2))
    design = optimal_channel(utility, TradeOff(TradeOffCurve.of_pair(p, p[::-1])))
    assert design.value == pytest.approx(optimal_channel(utility, caps).value, rel=1e-7)
    assert design.certified
    assert design.certificate.verify()


def test_the_designed_channel_has_the_curve():
    """The trade-off function of the design lies nowhere below the curve asked for."""
    curve = TradeOffCurve.of_pair([0.1, 0.5, 0.3, 0.1], [0.0, 0.3, 0.5, 0.2])
    utility = Divergence(KL, *np.random.default_rng(2).dirichlet(np.ones(4), 2))
    design = optimal_channel(utility, TradeOff(curve))
    t = np.linspace(0, 1, 1001)
    assert (trade_off(design.channel)(t) >= curve.symmetrised()(t) - 1e-12).all()
    assert design.certified


def test_an_asymmetric_curve_is_required_of_both_orders():
    """T(Q[x], Q[x']) >= f for all ordered pairs is more than the lower envelope of f and its inverse [DRS, Def 2.2]."""
    curve = TradeOffCurve.of_pair([0.7, 0.2, 0.1], [0.2, 0.3, 0.5])
    utility = Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6])
    design = optimal_channel(utility, TradeOff(curve))
    rows = design.channel.matrix
    t = np.linspace(0, 1, 1001)
    for x, y in [(x, y) for x in range(3) for y in range(3) if x != y]:
        assert (TradeOffCurve.of_pair(rows[x], rows[y])(t) >= curve(t) - 1e-9).all()
    assert design.certified


def test_values_that_are_not_curves_are_refused():
    """A value that is not a trade-off curve is refused."""
    with pytest.raises(InvalidInput, match="curve"):
        TradeOff([0.0, 1.0])
