import math
import pickle

import pytest

from ldpopt.errors import InvalidInput
from ldpopt.privacy import MCDP, TV, ZCDP, ApproximateDP, ApproximateZCDP, Guarantee, PureDP, RenyiDP, as_claim

MEASURED = [
    ("local_dp", 0.5, {}, PureDP(0.5)),
    ("total_variation", 0.5, {}, TV(0.5)),
    ("hockey_stick", 0.1, {"epsilon": 0.5}, ApproximateDP(0.5, 0.1)),
    ("approximate_dp", 0.5, {"delta": 0.1}, ApproximateDP(0.5, 0.1)),
    ("renyi", 0.5, {"order": 3.0}, RenyiDP(3.0, 0.5)),
    ("zcdp", 0.5, {"xi": 0.1}, ZCDP(0.1, 0.5)),
    ("approximate_zcdp", 0.5, {"delta": 0.1, "xi": 0.2}, ApproximateZCDP(0.1, 0.2, 0.5)),
]


@pytest.mark.parametrize(("notion", "value", "parameters", "claim"), MEASURED)
def test_a_guarantee_is_a_claim(notion, value, parameters, claim):
    """Every measured notion with numbers of its own becomes the claim of that notion."""
    assert as_claim(Guarantee(notion, value, value, None, True, "", parameters)) == claim


def test_half_an_mcdp_guarantee_is_no_claim():
    """mu alone does not make an mCDP claim."""
    with pytest.raises(InvalidInput, match="notions"):
        as_claim(Guarantee("mcdp_mu", 0.5, 0.5, None, True, ""))


def test_claims_are_values():
    """Equal numbers are equal claims whatever their origin; they hash, pickle and cannot be changed."""
    one, other = MCDP(1, 2.0), MCDP(1.0, 2, tight=True, reference="[DR, Thm 3.5]")
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(other)).reference == "[DR, Thm 3.5]"
    assert repr(one) == "MCDP(mu=1, tau=2)"
    with pytest.raises(AttributeError):
        one.__setattr__("mu", 0.0)


def test_infinite_losses_and_a_negative_xi_are_accepted():
    """Infinite losses are claims; xi may be negative while xi + rho is not."""
    assert PureDP(math.inf).epsilon == math.inf
    assert ZCDP(-0.5, 0.5).xi == -0.5
    with pytest.raises(InvalidInput, match="xi"):
        ZCDP(-0.6, 0.5)
    with pytest.raises(InvalidInput):
        ApproximateZCDP(1.5, 0.0, 0.5)


def test_numbers_are_printed_on_the_safe_side():
    """A claim that is shown claims no more than it does: up, but an order, of which more would be more, down."""
    assert repr(PureDP(1 / 3)) == "PureDP(epsilon=0.333334)"
    assert repr(PureDP(0.1)) == "PureDP(epsilon=0.1)"
    assert repr(RenyiDP(1.9999999, 0.3)) == "RenyiDP(order=1.99999, epsilon=0.3)"
    assert repr(ZCDP(-0.123456789, 2.0)) == "ZCDP(xi=-0.123456, rho=2)"
