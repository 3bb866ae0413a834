import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.privacy import ZCDP, ApproximateDP, FinitePair, PureDP, RenyiDP
from ldpopt.privacy.calibrate import largest_pure, largest_renyi, largest_rho, largest_rho_sharp
from ldpopt.privacy.conversions import renyi_to_approximate_sharp, zcdp_to_approximate, zcdp_to_approximate_sharp

TARGETS = [ApproximateDP(1.0, 1e-6), ApproximateDP(0.01, 1e-9), ApproximateDP(20.0, 0.1)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("xi", [0.0, 0.005])
def test_rho_meets_the_target_and_little_more_does_not(target, xi):
    """The calibrated rho converts to at most the target's epsilon; slightly more exceeds it."""
    plain, sharp = largest_rho(target, xi), largest_rho_sharp(target, xi)
    assert zcdp_to_approximate(plain, target.delta).epsilon <= target.epsilon * (1 + 1e-12)
    assert zcdp_to_approximate_sharp(sharp, target.delta).epsilon <= target.epsilon
    assert zcdp_to_approximate_sharp(ZCDP(xi, sharp.rho * (1 + 1e-6)), target.delta).epsilon > target.epsilon
    assert zcdp_to_approximate(ZCDP(xi, plain.rho * (1 + 1e-6)), target.delta).epsilon > target.epsilon
    assert sharp.rho > plain.rho


def test_the_largest_rho_is_the_printed_formula():
    """BS Lemma 3.5: rho = (sqrt(eps - xi + log 1/delta) - sqrt(log 1/delta))^2."""
    log = math.log(1e6)
    assert largest_rho(ApproximateDP(1.0, 1e-6)).rho == pytest.approx((math.sqrt(1 + log) - math.sqrt(log)) ** 2)
    assert largest_rho(ApproximateDP(0.1, 1e-6), xi=0.2).rho == 0.0
    assert largest_rho_sharp(ApproximateDP(0.1, 1e-6), xi=0.2).rho == 0.0


@pytest.mark.parametrize("target", TARGETS)
def test_calibrated_renyi_and_pure_epsilons_are_the_largest(target):
    """The calibrated Rényi and pure epsilons meet the target and little more does not."""
    for order in (20.0, 2000.0):
        found = largest_renyi(target, order)
        assert renyi_to_approximate_sharp(found, target.delta).epsilon <= target.epsilon * (1 + 1e-12)
        more = RenyiDP(order, found.epsilon * (1 + 1e-6) + 1e-9)
        assert renyi_to_approximate_sharp(more, target.delta).epsilon > target.epsilon
    pure = largest_pure(target).epsilon
    assert float(FinitePair.of_parameters(pure).hockey_stick(target.epsilon)) <= target.delta * (1 + 1e-6)
    assert pure >= target.epsilon
    assert float(FinitePair.of_parameters(pure * (1 + 1e-3)).hockey_stick(target.epsilon)) > target.delta


def test_bad_targets_are_refused():
    """A target without delta, or of another notion, is refused."""
    for call in (
        lambda: largest_rho(ApproximateDP(1.0, 0.0)),
        lambda: largest_rho_sharp(PureDP(1.0)),
        lambda: largest_renyi(ApproximateDP(1e-6, 1e-9), 1.0),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert math.isinf(largest_pure(ApproximateDP(1.0, 1.0)).epsilon)


@settings(max_examples=20)
@given(st.floats(1e-3, 20.0), st.floats(1e-12, 0.5))
def test_a_printed_budget_is_not_above_the_calibrated_one(epsilon, delta):
    """What a calibration prints, read back, allows no more than what it found; the order it is for is not lowered."""
    target = ApproximateDP(epsilon, delta)
    for found in (largest_rho(target), largest_rho_sharp(target), largest_pure(target), largest_renyi(target, 1e7 / 3)):
        shown = dict(re.findall(r"(\w+)=([^,)]+)", repr(found).split(" (")[0]))
        assert all(float(text) <= getattr(found, name) for name, text in shown.items() if name != "order")
        assert float(shown.get("order", "inf")) >= getattr(found, "order", 0.0)
