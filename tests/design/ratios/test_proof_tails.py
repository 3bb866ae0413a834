"""The end where a divergence is infinite: a tangent, and moments that pay for the rest, checked in high precision.

The unbounded end of the ratios, against the divergence itself at columns that lie there.
"""

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.channel import Channel
from ldpopt.design import ConcentratedLDP, Divergence, RenyiLDP, optimal_channel
from ldpopt.design.constraints.base import least_cap
from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import all_pairs
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.design.ratios.proof_chords import End, sufficient_ratio, tail_cost, tail_curve, tail_tangents
from ldpopt.divergences import CHI_SQUARED, KL, NEYMAN_CHI_SQUARED, REVERSE_KL, SQUARED_HELLINGER, alpha
from ldpopt.numbers.enclosures import EXACT, FLOAT
from ldpopt.values import deadline

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
    power, bend = tail_curve(f, mirrored)
    power, factor = float(power), bend / float(power)
    assert power == pytest.approx(degree)
    for reach, u in itertools.product((2.0, 7.0), (1.0, 3.0, 20.0)):
        step = 1e-5 * reach
        slope = (generator(f, mirrored, reach + step) - generator(f, mirrored, reach - step)) / (2 * step)
        above = generator(f, mirrored, u) - generator(f, mirrored, reach) - slope * (u - reach)
        assert float(above) == pytest.approx(float(factor * reach**power * rest(power, u / reach)), rel=1e-5, abs=1e-5)


def test_other_divergences_have_no_such_end():
    """Finite ends and the other direction give none, and prove nothing."""
    for f, mirrored in ((SQUARED_HELLINGER, False), (KL, True), (CHI_SQUARED, True), (REVERSE_KL, False)):
        assert tail_curve(f, mirrored) is None
        assert sufficient_ratio(f, mirrored, [RenyiLDP(2.0, 1.0)]) is None
        with pytest.raises(Unproved, match="infinite"):
            next(tail_tangents(f, np.array([0.0, 0.9, 1.0]), mirrored, [RenyiLDP(2.0, 1.0)], FLOAT))
    assert tail_curve(alpha(0.5), False) is None
    assert tail_curve(alpha(1.5), True) is None


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("degree", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("reach", [1.5, 10.0, 1e4])
def test_moments_pay_for_the_rest(arithmetic, degree, reach):
    """c R^p g_p(u/R) is at most the charged multiple of psi_o(u) = u^o - o u + o - 1, at every ratio u >= R."""
    for order, size in ((degree, 0.7), (degree + 1, 0.7), (4.0, 0.01)):
        if order == 1 or degree > order:
            continue
        cap = RenyiLDP(order, size)
        cost = tail_cost((degree, 0.5 * degree), arithmetic.of(reach), [cap])
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
    assert sufficient_ratio(CHI_SQUARED, False, []) is None
    assert least_cap([], lambda one: FLOAT.of(1.0)) is None
    several = [RenyiLDP(2.0, epsilon) for epsilon in (2.0, 1.0, 3.0)]
    assert float(least_cap(several, lambda one: FLOAT.of(one.epsilon)).upper) == 1.0


@pytest.mark.parametrize(("f", "mirrored"), [(KL, False), (CHI_SQUARED, False), (NEYMAN_CHI_SQUARED, True)])
def test_far_enough_costs_little(f, mirrored):
    """At the ratio found the rest costs at most 1e-8 of what it costs at ten, or f is steep there."""
    constraints = [ConcentratedLDP(0.5)]
    found = sufficient_ratio(f, mirrored, constraints)
    power = tail_curve(f, mirrored)
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
    found = list(tail_tangents(f, knots, mirrored, [RenyiLDP(2.0, 0.5)], FLOAT))
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
        next(tail_tangents(f, np.array([0.0, 0.5, 1.0]), mirrored, [RenyiLDP(2.0, 0.5)], FLOAT))
    with pytest.raises(Unproved, match="no moment"):
        next(tail_tangents(f, knots, mirrored, [], FLOAT))


LAWS = np.array([[0.5, 0.3, 0.2, 0.0], [0.2, 0.8, 0.0, 0.0]])


def end_of(name, u):
    """The divergence's f minus its tangent at 1, by its definition."""
    return {
        "kl": u * np.log(u) - u + 1,
        "chi": (u - 1) ** 2,
        "alpha": (u**1.5 - 1.5 * u + 0.5) / 0.75,
    }[name]


def psi(order, a, b):
    """a^o b^(1-o) - o a + (o-1) b, or a log(a/b) - a + b."""
    return a * np.log(a / b) - a + b if order == 1 else a * (a / b) ** (order - 1) - order * a + (order - 1) * b


def chosen(f, mirrored, order, scale, rng, of):
    """The choice for random multipliers and rows, with its term and end."""
    low, high = LAWS[::-1] if mirrored else LAWS
    knots = np.array([0.1, 0.5, 0.8, 1.0])
    if mirrored:
        knots = 1 - knots[::-1]
    end = End.from_knots(f, of.of(low), of.of(high), knots, mirrored)
    term = Moment(*all_pairs(4), order, 0.3)
    labels = np.repeat(np.arange(3), len(term))
    pairs = np.tile(np.arange(len(term)), 3)
    values = np.stack([pairs, labels, 10 ** rng.normal(size=len(labels)), scale * rng.random(len(labels))])
    return end.choose_multipliers([(0, term, values)], rng.normal(size=4) * 0.1, of), term, end


CASES = [
    (KL, "kl", False, 1.0), (KL, "kl", False, 1.3), (REVERSE_KL, "kl", True, 1.0), (CHI_SQUARED, "chi", False, 2.0),
    (CHI_SQUARED, "chi", False, 2.5), (NEYMAN_CHI_SQUARED, "chi", True, 3.0), (alpha(1.5), "alpha", False, 1.5),
    (alpha(1.5), "alpha", False, 2.0), (alpha(-0.5), "alpha", True, 1.75),
]  # fmt: skip


@pytest.mark.full(but=2)
@pytest.mark.parametrize("of", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize(("f", "name", "mirrored", "order"), CASES)
def test_moments_and_something_linear_lie_above(f, name, mirrored, order, of):
    """Beyond the last cut the divergence is at most the linear utility and the reserved moments, at every column."""
    rng = np.random.default_rng(1)
    for scale in (0.0, 0.3):
        choice, term, end = chosen(f, mirrored, order, scale, rng, of)
        reserved = choice.cuts[:, choice.cuts[2] == 1.0]
        assert (choice.cuts[1] == end.label).all()
        checked = 0
        for _ in range(80):
            q = 10 ** rng.uniform(-8, 0, size=4)
            q[2] = 1.0
            near, far = LAWS @ q
            if not near / far >= 4.0000001:
                continue
            checked += 1
            at = reserved[0].astype(int)
            moments = reserved[3] @ psi(order, q[term.left[at]], q[term.right[at]])
            linear = np.asarray(choice.values.upper) @ q
            truth = far * end_of(name, near / far)
            assert truth <= linear + moments + 1e-9 * (truth + abs(linear) + moments)
        assert checked > 10


ON_RECORD = [
    (0.235700820556, -1.73819361955, -0.0385683117649),
    (0.175059334958, -2.17493599778, 0.0893386124387),
    (-4.39038468629, -46.232522295, 3.04769928089),
    (0.913538864002, -6.94284107131, 0.266678780651),
    (-0.131983475383, -16.0668224165, 1.17076547672),
    (-11591.8870669, -112069.052696, 7729.11180739),
    (0.307137383637, -2.58052927429, 0.0486743697034),
    (-0.0324659905048, -5.48504487516, 0.385014610611),
    (-41.5967961915, -407.392564167, 28.0501949123),
]
"""Linear utilities of the first three inputs, in the order of `CASES`; the fourth is in neither hypothesis."""


@pytest.mark.parametrize("of", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize(("case", "recorded"), [*zip(CASES, ON_RECORD, strict=True)])
def test_the_linear_utility_is_on_record(case, recorded, of):
    """It is as small as it was: what is merely larger would lie above, too, and prove less."""
    f, _, mirrored, order = case
    choice, _, _ = chosen(f, mirrored, order, 0.3, np.random.default_rng(5), of)
    assert [float(one) for one in np.asarray(choice.values.upper)] == pytest.approx([*recorded, 0.0], rel=1e-9)


def test_an_order_below_the_power_pays_nothing():
    """A moment of a lower order than the divergence grows with does not bound its end."""
    knots = np.array([0.1, 0.5, 0.8, 1.0])
    end = End.from_knots(CHI_SQUARED, FLOAT.of(LAWS[0]), FLOAT.of(LAWS[1]), knots, False)
    term = Moment(*all_pairs(4), 1.5, 0.3)
    values = np.stack([np.arange(12.0), np.zeros(12), np.ones(12), np.ones(12)])
    assert end.choose_multipliers([(0, term, values)], np.zeros(4), FLOAT) is None


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("f", "constraint"),
    [(CHI_SQUARED, RenyiLDP(2, 0.5)), (CHI_SQUARED, RenyiLDP(2.5, 0.5))],
)
def test_hypotheses_with_a_zero_are_certified(f, constraint):
    """With a zero in one hypothesis the bound meets the value, in both arithmetics."""
    design = optimal_channel(Divergence(f, [0.5, 0.3, 0.2], [0.2, 0.8, 0.0]), constraint)
    assert design.certified, design.relative_gap
    assert design.certificate.verify(exact=True)


@pytest.mark.full
def test_no_multipliers_prove_less_than_is_reached(monkeypatch):
    """Whatever the multipliers, the bound is not below what a feasible channel keeps.

    They are those of a search that ends when a clock, which counts how often it is looked at, is at forty.
    """
    monkeypatch.setattr(deadline, "monotonic", itertools.count(1.0).__next__)
    rng = np.random.default_rng(2)
    constraint = RenyiLDP(1, 0.3)
    utility = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.8, 0.0])
    design = optimal_channel(utility, constraint, time_limit=40)
    # The moments between rows cap the divergence itself: a tenth of that bound was lost before they shared.
    assert design.value < design.upper_bound < 1.1 * design.value
    known = design.certificate
    for power in (-3.0, -1.0, -0.3, 0.0, 0.3):
        one = known.multipliers[0]
        values = one.values * np.array([1.0, 1.0, 1.0, 10**power])[:, None]
        values[3] *= rng.random(values.shape[1])
        changed = replace(known, multipliers=(replace(one, values=values),), rows=known.rows * rng.normal(size=3))
        assert changed.bound >= design.value
    rare = Channel(np.array([[0.31, 0.69 - 1e-30, 1e-30], [0.68, 0.32 - 1e-30, 1e-30], [0.48, 0.516, 0.004]]))
    assert constraint.measure(rare).value > 0.3 or utility.value(rare) <= known.bound
