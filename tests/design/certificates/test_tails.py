"""The end where a divergence is infinite: a tangent, and moments that pay for the rest, checked in high precision."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.design import ConcentratedLDP, RenyiLDP
from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.tails import far_enough, least, tail_cost, tail_power, tails
from ldpopt.divergences import CHI_SQUARED, KL, NEYMAN_CHI_SQUARED, REVERSE_KL, SQUARED_HELLINGER, alpha
from ldpopt.enclosures import EXACT, FLOAT

POWERS = [
    (KL, False, 1.0),
    (REVERSE_KL, True, 1.0),
    (CHI_SQUARED, False, 2.0),
    (NEYMAN_CHI_SQUARED, True, 2.0),
    (alpha(3.0), False, 3.0),
    (alpha(-1.0), True, 2.0),
]


def generator(f, mirrored, u):
    """f, or t f(1/t) with its arguments exchanged, from the definition."""
    value = mpmath.mpmathify(f.generator(float(u) if not mirrored else 1 / float(u)))
    return u * value if mirrored else value


def rest(degree, v):
    """g_p(v)."""
    v = mpf(v)
    return v * mpmath.log(v) - v + 1 if degree == 1 else (v**degree - degree * v + degree - 1) / (degree - 1)


@pytest.mark.parametrize(("f", "mirrored", "degree"), POWERS, ids=lambda one: getattr(one, "name", None))
def test_the_rest_above_a_tangent_is_a_power(f, mirrored, degree):
    """f(u) - tangent of f at R = c R^p g_p(u/R), by the values of f and a difference quotient."""
    power, factor = tail_power(f, mirrored)
    assert power == pytest.approx(degree)
    for reach, u in itertools.product((2.0, 7.0), (1.0, 3.0, 20.0)):
        step = 1e-5 * reach
        slope = (generator(f, mirrored, reach + step) - generator(f, mirrored, reach - step)) / (2 * step)
        above = generator(f, mirrored, u) - generator(f, mirrored, reach) - slope * (u - reach)
        assert float(above) == pytest.approx(float(factor * reach**power * rest(power, u / reach)), rel=1e-5, abs=1e-5)


def test_other_divergences_have_no_such_end():
    """Finite ends and the other direction give none, and prove nothing."""
    for f, mirrored in ((SQUARED_HELLINGER, False), (KL, True), (CHI_SQUARED, True), (REVERSE_KL, False)):
        assert tail_power(f, mirrored) is None
        assert far_enough(f, mirrored, [RenyiLDP(2.0, 1.0)]) is None
        with pytest.raises(Unproved, match="infinite"):
            next(tails(f, np.array([0.0, 0.9, 1.0]), mirrored, [RenyiLDP(2.0, 1.0)], FLOAT))
    assert tail_power(alpha(0.5), False) is None
    assert tail_power(alpha(1.5), True) is None


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("degree", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("reach", [1.5, 10.0, 1e4])
def test_moments_pay_for_the_rest(arithmetic, degree, reach):
    """c R^p g_p(u/R) is at most the charged multiple of psi_o(u) = u^o - o u + o - 1, at every ratio u >= R."""
    for order, size in ((degree, 0.7), (degree + 1, 0.7), (4.0, 0.01)):
        if order == 1 or degree > order:
            continue
        cap = RenyiLDP(order, size)
        cost = tail_cost((degree, 0.5), arithmetic.of(reach), [cap])
        with mpmath.workdps(40):
            moment = mpmath.expm1(mpf(size) * (mpf(order) - 1))
            multiple = mpf(float(cost.upper)) / moment
            for u in (reach, reach * 1.01, reach * 2, reach * 1e3):
                psi = mpf(u) ** order - order * mpf(u) + order - 1
                paid = multiple * psi
                assert 0.5 * mpf(reach) ** degree * rest(degree, mpf(u) / reach) <= paid * (1 + mpf(10) ** -12)
            # The order that is named is among those tried, so that nothing dearer is charged.
            asked = 0.5 * mpf(reach) ** (degree - order) / (order - 1) * moment
            assert mpf(float(cost.upper)) <= asked * (1 + mpf(10) ** -9)


def test_a_divergence_between_rows_pays_for_kl():
    """For p = 1 the cap on KL itself pays, however near the cut is: u log(u/R) - u + R <= u log u - u + 1 from R on."""
    cost = tail_cost((1.0, 1.0), FLOAT.of(1.0 + 1e-9), [RenyiLDP(1.0, 0.3)])
    assert float(cost.upper) == pytest.approx(0.3, rel=1e-12)
    for reach, u in itertools.product((1.1, 5.0), (1.0, 1.5, 30.0)):
        u = reach * u
        assert u * math.log(u / reach) - u + reach <= u * math.log(u) - u + 1


def test_orders_below_the_degree_do_not_pay():
    """A moment of a smaller order says nothing about the rest, and no constraint pays nothing."""
    assert tail_cost((3.0, 1.0), FLOAT.of(10.0), [RenyiLDP(2.0, 0.1)]) is None
    assert tail_cost((2.0, 1.0), FLOAT.of(10.0), []) is None
    assert far_enough(CHI_SQUARED, False, []) is None
    assert least([]) is None
    assert float(least([FLOAT.of(2.0), FLOAT.of(1.0), FLOAT.of(3.0)]).upper) == 1.0


@pytest.mark.parametrize(("f", "mirrored"), [(KL, False), (CHI_SQUARED, False), (NEYMAN_CHI_SQUARED, True)])
def test_far_enough_costs_little(f, mirrored):
    """At the ratio found the rest costs at most 1e-8 of what it costs at ten, or f is steep there."""
    constraints = [ConcentratedLDP(0.5)]
    found = far_enough(f, mirrored, constraints)
    power = tail_power(f, mirrored)
    near, there = (tail_cost(power, FLOAT.of(ratio), constraints) for ratio in (10.0, found))
    steep = 1e9 if power[0] <= 1 else 10 ** (5 / (power[0] - 1))
    assert 1 < found <= steep
    assert found == steep or float(there.upper) <= 1e-8 * float(near.upper) * (1 + 1e-12)


@pytest.mark.parametrize("mirrored", [False, True])
def test_cuts_are_between_one_and_the_end(mirrored):
    """Every cut that is tried lies beyond ratio 1, its tangent is that of f there, and labels beyond it are told."""
    f = NEYMAN_CHI_SQUARED if mirrored else CHI_SQUARED
    s = 1 / (1 + np.exp(-np.linspace(-12, 12, 25)))
    knots = np.concatenate([[0.0], s, [1.0]])
    found = list(tails(f, knots, mirrored, [RenyiLDP(2.0, 0.5)], FLOAT))
    assert found
    for beyond, on_difference, on_b, cost in found:
        assert beyond.shape == (26,)
        cut = int(np.flatnonzero(beyond)[-1]) + 1 if mirrored else int(np.flatnonzero(beyond)[0])
        assert beyond.tolist() == [label < cut if mirrored else label >= cut for label in range(26)]
        ratio = knots[cut] / (1 - knots[cut])
        far = 1 / ratio if mirrored else ratio
        assert far > 1
        # mu(a, b) = b f(a/b): its slopes at the ratio.
        step = 1e-6 * ratio
        slope = (f.generator(ratio + step) - f.generator(ratio - step)) / (2 * step)
        on_a = float(on_difference.midpoint)
        assert on_a == pytest.approx(float(slope), rel=1e-5)
        assert float(on_b.midpoint) - on_a == pytest.approx(
            float(f.generator(ratio) - ratio * slope), rel=1e-4, abs=1e-4
        )
        assert float(cost.upper) > 0
    with pytest.raises(Unproved, match="no cut"):
        next(tails(f, np.array([0.0, 0.5, 1.0]), mirrored, [RenyiLDP(2.0, 0.5)], FLOAT))
    with pytest.raises(Unproved, match="no moment"):
        next(tails(f, knots, mirrored, [], FLOAT))
