"""The unbounded end of the ratios, against the divergence itself at columns that lie there."""

from dataclasses import replace

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import Divergence, RenyiLDP, optimal_channel
from ldpopt.design.certificates.shared_ends import End
from ldpopt.design.constraints.moment import moment
from ldpopt.divergences import CHI_SQUARED, KL, NEYMAN_CHI_SQUARED, REVERSE_KL, alpha
from ldpopt.enclosures import EXACT, FLOAT

LAWS = np.array([[0.5, 0.3, 0.2, 0.0], [0.2, 0.8, 0.0, 0.0]])


def generator(name, u):
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
    end = End.of(f, of.of(low), of.of(high), knots, mirrored)
    term = moment(4, order, 0.3)
    labels = np.repeat(np.arange(3), len(term))
    pairs = np.tile(np.arange(len(term)), 3)
    values = np.stack([pairs, labels, 10 ** rng.normal(size=len(labels)), scale * rng.random(len(labels))])
    return end.shared([(0, term, values)], rng.normal(size=4) * 0.1, of), term, end


CASES = [
    (KL, "kl", False, 1.0), (KL, "kl", False, 1.3), (REVERSE_KL, "kl", True, 1.0), (CHI_SQUARED, "chi", False, 2.0),
    (CHI_SQUARED, "chi", False, 2.5), (NEYMAN_CHI_SQUARED, "chi", True, 3.0), (alpha(1.5), "alpha", False, 1.5),
    (alpha(1.5), "alpha", False, 2.0), (alpha(-0.5), "alpha", True, 1.75),
]  # fmt: skip


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
        for _ in range(400):
            q = 10 ** rng.uniform(-8, 0, size=4)
            q[2] = 1.0
            near, far = LAWS @ q
            if not near / far >= 4.0000001:
                continue
            checked += 1
            at = reserved[0].astype(int)
            moments = reserved[3] @ psi(order, q[term.left[at]], q[term.right[at]])
            linear = np.asarray(choice.values.upper) @ q
            truth = far * generator(name, near / far)
            assert truth <= linear + moments + 1e-9 * (truth + abs(linear) + moments)
        assert checked > 50


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
    end = End.of(CHI_SQUARED, FLOAT.of(LAWS[0]), FLOAT.of(LAWS[1]), knots, False)
    term = moment(4, 1.5, 0.3)
    values = np.stack([np.arange(12.0), np.zeros(12), np.ones(12), np.ones(12)])
    assert end.shared([(0, term, values)], np.zeros(4), FLOAT) is None


@pytest.mark.parametrize(
    ("f", "constraint"),
    [(CHI_SQUARED, RenyiLDP(2, 0.5)), (CHI_SQUARED, RenyiLDP(2.5, 0.5))],
)
def test_hypotheses_with_a_zero_are_certified(f, constraint):
    """With a zero in one hypothesis the bound meets the value, in both arithmetics."""
    design = optimal_channel(Divergence(f, [0.5, 0.3, 0.2], [0.2, 0.8, 0.0]), constraint)
    assert design.certified, design.relative_gap
    assert design.certificate.verify(exact=True)


def test_no_multipliers_prove_less_than_is_reached():
    """Whatever the multipliers, the bound is not below what a feasible channel keeps."""
    rng = np.random.default_rng(2)
    constraint = RenyiLDP(1, 0.3)
    utility = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.8, 0.0])
    design = optimal_channel(utility, constraint)
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
