"""A bound without some of the constraints.

Tests of `ldpopt.design.kernel.proof`: bounds of points that dominate, and of none that do not.

Saddle points: the pair is in its sets, the bound is that of the pair, and the value below that of every member.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import networkx as nx
import numpy as np
import pytest
from design_problems import random_pair

from ldpopt.channel import Channel
from ldpopt.design import (
    AgainstSet,
    ApproximateLDP,
    Around,
    Box,
    Contamination,
    Contraction,
    Divergence,
    Dominated,
    Hull,
    LevelLP,
    LocalDP,
    MergedExchange,
    MutualInformation,
    Outputs,
    PartsBound,
    Relaxed,
    RenyiLDP,
    TotalVariation,
    TotalVariationBall,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, alpha, hockey_stick
from ldpopt.numbers.enclosures import EXACT, FLOAT
from tests.design.kernel.forging import NO_RECORD, fails_in_words, forged, tampered


def test_a_relaxation_has_some_of_the_constraints_and_no_other():
    """Its numbers are applied to the design's utility, under constraints that are among the design's."""
    u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    design = optimal_channel(u, [LocalDP(1.0), Outputs(2)])
    proof = design.certificate
    assert isinstance(proof, Relaxed)
    assert design.verify()
    tighter = optimal_channel(u, LocalDP(0.5)).certificate
    assert np.isinf(replace(proof, relaxation=tighter).bound)
    assert np.isinf(replace(proof, relaxation=replace(proof.relaxation, constraints=())).bound)
    capped = optimal_channel(u, [LocalDP(1.0), TotalVariation(0.1)]).certificate
    assert np.isinf(replace(proof, relaxation=capped).bound)
    wide = optimal_channel(Divergence(CHI_SQUARED, u.p0, u.p1), LocalDP(1.0))
    other = replace(proof, relaxation=wide.certificate)
    assert other.bound >= design.value
    assert replace(proof, utility=wide.utility).bound >= wide.value
    assert np.isinf(replace(proof, constraints=(Outputs(2),)).bound)
    nested = replace(proof, relaxation=proof)
    assert nested.bound >= design.value


def test_a_wrong_relaxation_proves_no_bound():
    """The relaxation, and the constraints that it has, are records of their kind: others fail in words."""
    u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    proof = optimal_channel(u, [LocalDP(1.0), Outputs(2)]).certificate
    for other in NO_RECORD:
        assert fails_in_words(replace(proof, relaxation=other))
        assert fails_in_words(replace(proof, relaxation=replace(proof.relaxation, constraints=other)))


def test_wrong_certificates_of_parts_prove_no_bound():
    """Each part of a sum has a certificate: fewer, more, and anything else fail in words."""
    u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    total, caps = WeightedSum([1.0, 2.0], [u, MutualInformation([0.5, 0.3, 0.2])]), (LocalDP(1.0),)
    design = optimal_channel(total, caps[0])
    one = Contraction(u, caps, design.channel)
    assert design.value <= PartsBound(total, caps, design.channel, (one, one)).bound < np.inf
    for other in (*NO_RECORD, one, (one,), (one, one, one), [one, one]):
        assert fails_in_words(PartsBound(total, caps, design.channel, other))
        assert other is one or fails_in_words(PartsBound(total, caps, design.channel, (one, other)))


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT])
def test_operator_convex_divergences_contract_by_both_limits(arithmetic):
    """They keep at most eta tanh(epsilon/2) D_f, others eta D_f; sums and the worst of several part by part."""
    p, q, caps = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], (LocalDP(1.0), TotalVariation(0.2))
    twice = 0.2 * math.tanh(0.5)

    def bound(utility, limits=caps):
        return Contraction(utility, limits, None).proved(arithmetic)

    smooth, kinked = Divergence(KL, p, q), Divergence(hockey_stick(1.2), p, q)
    assert bound(smooth) == pytest.approx(twice * KL(p, q), rel=1e-11)
    assert bound(kinked) == pytest.approx(0.2 * kinked.value_without_privacy, rel=1e-11)
    assert bound(Divergence(alpha(2.5), p, q)) == pytest.approx(0.2 * alpha(2.5)(p, q), rel=1e-11)
    assert bound(smooth, caps[1:]) == pytest.approx(0.2 * KL(p, q), rel=1e-11)
    assert bound(MutualInformation(p)) == pytest.approx(-twice * np.log(p) @ p, rel=1e-11)
    assert bound(WeightedSum([1.0, 2.0], [smooth, kinked])) == pytest.approx(bound(smooth) + 2 * bound(kinked))
    worst = WorstOf(KL, p, [q, [0.4, 0.3, 0.3]])
    assert bound(worst) == pytest.approx(twice * min(part.value_without_privacy for part in worst.parts()), rel=1e-11)
    graph = LocalDP(1.0, nx.path_graph(3))  # two of its ends may be twice as far apart
    assert bound(smooth, (graph, caps[1])) == pytest.approx(0.2 * KL(p, q), rel=1e-11)


def test_no_optimum_is_above_its_contraction():
    """Random pairs, limits and divergences, small and large epsilon: the optimum stays below, and comes within 1e-6."""
    rng, least = np.random.default_rng(3), np.inf
    for f in (CHI_SQUARED, KL, JENSEN_SHANNON, alpha(-0.9), alpha(1.7), hockey_stick(1.3)):
        for epsilon in (1e-3, 0.5, 2.0, 9.0):
            p = rng.dirichlet(np.ones(3))
            q = p + (rng.dirichlet(np.ones(3)) - p) * 10 ** rng.uniform(-4, 0)
            eta = math.tanh(epsilon / 2) * rng.uniform(0.1, 1.0)
            design = optimal_channel(Divergence(f, p, q), [LocalDP(epsilon), TotalVariation(eta)])
            bound = Contraction(design.utility, design.constraints, design.channel).bound
            assert design.value <= bound
            least = min(least, bound / design.value if design.value > 0 else np.inf)
    near = optimal_channel(Divergence(CHI_SQUARED, [0.5, 0.5], [0.501, 0.499]), LocalDP(1.0))
    assert Contraction(near.utility, near.constraints, None).bound == pytest.approx(near.value, rel=1e-5)
    assert least < 1.2


CAPS = ApproximateLDP(1.0, 0.05)


@pytest.fixture(scope="module")
def design():
    return optimal_channel(Divergence(KL, *random_pair(6, 4)), CAPS, method=MergedExchange(4, points=4))


def test_the_bound_is_above_the_exact_optimum(design):
    """What dominates keeps no less, under any symmetric constraint."""
    exact = optimal_channel(design.utility, CAPS, method=LevelLP())
    assert isinstance(design.certificate, Dominated)
    assert exact.value * (1 - 1e-9) <= design.certificate.bound < math.inf


def test_no_forgery_proves_less(design):
    """Points that do not dominate, negative, NaN, too few, or with numbers for others: nothing below the optimum."""
    exact, made = optimal_channel(design.utility, CAPS, method=LevelLP()).value * (1 - 1e-8), design.certificate
    good = made.points
    shrunk = 0.5 * good + 0.25 * good.sum(axis=1, keepdims=True)
    for bad in (shrunk, -good, good * math.nan, good[:-1], good[::-1] * [1.0, 2.0], good[:, :1], None, "x", good * 0):
        with np.errstate(all="ignore"):
            assert not replace(made, points=bad).bound < exact
    for inner in (None, "x", replace(made.of_points, rows=made.of_points.rows * 0.5), made):
        assert not replace(made, of_points=inner).bound < exact
    wider = optimal_channel(design.utility, LocalDP(3.0)).value
    assert replace(made, constraints=(LocalDP(3.0),)).bound >= wider * (1 - 1e-9)
    assert replace(made, constraints=()).bound == math.inf
    other = Divergence(CHI_SQUARED, *random_pair(6, 4))
    truth = optimal_channel(other, CAPS, method=LevelLP()).value
    assert not replace(made, utility=other).bound < truth * (1 - 1e-8)


P0 = np.array([0.6, 0.3, 0.1])
PILOT = np.array([0.1, 0.3, 0.6])
SETS = {
    "hull": Hull([[0.1, 0.3, 0.6], [0.2, 0.1, 0.7], [0.15, 0.45, 0.4]]),
    "box": Around(PILOT, Box(0.05)),
    "contamination": Around(PILOT, Contamination(0.1)),
    "ball": Around(PILOT, TotalVariationBall(0.1)),
}


@cache
def design_against_set(kind):
    """The design against a set under LDP, made once."""
    return optimal_channel(AgainstSet(KL, P0, SETS[kind]), LocalDP(1.0))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("kind", SETS)
def test_forged_saddle_points_prove_no_false_bound(kind):
    """No accepted bound is below the value of a feasible channel, and no accepted value above the bound."""
    rng = np.random.default_rng(5)
    design = design_against_set(kind)
    certificate = design.certificate
    assert design.certified
    assert design.verify()
    assert design.verify(exact=True)
    keep = ("utility", "constraints", "channel", "edges", "pair", "support")
    outer = [one.bound for one in forged(certificate, rng, keep)]
    assert min(outer) >= design.value
    assert np.isinf(outer).sum() >= 10
    inner = [replace(certificate, pair=one).bound for one in forged(certificate.pair, rng, keep)]
    assert min(inner) >= design.value
    values = [replace(certificate, support=one).verify() for one in forged(certificate.support, rng)]
    assert all(not (one.value > design.upper_bound) for one in values)
    assert sum(not one for one in values) >= 10
    moved = [certificate.p1, np.array([0.1, 0.4, 0.5]), P0, PILOT[::-1], np.array([0.05, 0.25, 0.7])]
    for p1 in moved:
        assert replace(certificate, p1=p1).bound >= design.value
    assert np.isinf(replace(certificate, p1=P0).bound)
    for other in ((), (RenyiLDP(2.0, 0.1),)):
        assert not replace(certificate, constraints=other).verify()


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float64", "exact"])
def test_the_least_of_a_linear_function_is_below_every_member(kind, arithmetic):
    """It is below the function at every member that a search finds, and meets the member that the set says is best."""
    rng = np.random.default_rng(6)
    chosen = SETS[kind]
    for _ in range(20):
        slope = rng.normal(size=3) * 10.0 ** rng.integers(-9, 9)
        least = chosen.enclosed_least(arithmetic.of(slope))
        best = float(chosen.highest(-slope) @ slope)
        assert least.lower <= best + 1e-15 * np.abs(slope).max()
        assert least.lower >= best - 1e-13 * np.abs(slope).max()


@pytest.mark.parametrize("neighbourhood", [Box(0.125), Contamination(0.125), TotalVariationBall(0.125)])
def test_a_neighbourhood_ends_exactly(neighbourhood):
    """A member on the border is in, and the next float beyond it is out: the definitions in fractions."""
    pilot = np.array([0.25, 0.25, 0.5])
    border = neighbourhood.highest(np.array([1.0, 0.0, -1.0]), pilot)
    assert border.sum() == 1
    assert neighbourhood.holds(border, pilot)
    beyond = border + 2.0**-40 * np.array([1.0, 0.0, -1.0])
    assert sum(map(Fraction, beyond.tolist())) == 1
    assert not neighbourhood.holds(beyond, pilot)
    assert np.abs(beyond - border).max() < 1e-12


def test_a_mixture_is_the_member_itself():
    """Whatever weights say, what they make is a mixture of the vertices; weights that are none are refused."""
    rng = np.random.default_rng(8)
    hull = SETS["hull"]
    weights = rng.dirichlet(np.ones(3))
    member = hull.member_near(weights @ hull.vertices, weights, EXACT)
    exact = [Fraction(w) / sum(map(Fraction, weights.tolist())) for w in weights.tolist()]
    for x in range(3):
        law = [Fraction(v[x]) / sum(map(Fraction, v.tolist())) for v in hull.vertices]
        true = sum(w * v for w, v in zip(exact, law, strict=True))
        assert Fraction(member.lower[x]) <= true <= Fraction(member.upper[x])
    for other in tampered(weights, rng):
        if other is not None and (np.shape(other) != (3,) or np.asarray(other).dtype.kind not in "f"):
            with pytest.raises(Unproved):
                hull.member_near(PILOT, other, FLOAT)
    with pytest.raises(Unproved, match="vertex"):
        hull.member_near(np.array([0.3, 0.3, 0.4]), None, FLOAT)
    assert hull.member_near(hull.vertices[1], None, FLOAT) is None


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [1e-4, 5.0])
def test_sets_at_extreme_epsilons_are_bounded_by_their_pairs_optimum(epsilon):
    """The rounding of a mixture stays below the tolerance; the pair's own optimum is the value."""
    design = optimal_channel(AgainstSet(KL, P0, SETS["hull"]), LocalDP(epsilon))
    proof = design.certificate
    assert design.verify()
    single = optimal_channel(Divergence(KL, proof.p0, proof.p1), LocalDP(epsilon))
    assert design.upper_bound == pytest.approx(single.upper_bound, rel=1e-8)


def test_a_wrong_certificate_of_the_pair_proves_no_bound():
    """The pair's certificate, the mixtures and the lower line are nested records: others fail in words."""
    certificate = design_against_set("hull").certificate
    for other in (*NO_RECORD, certificate):
        assert fails_in_words(replace(certificate, pair=other))
        assert fails_in_words(replace(certificate, mixtures=other))
        assert replace(certificate, support=other).verify().failures
        assert replace(certificate, support=replace(certificate.support, weights=other)).verify().failures


def test_a_channel_for_other_answers_does_not_verify():
    """A channel with more or fewer inputs than the sets have makes the proof fail in words, not in an error."""
    design = design_against_set("hull")
    for k in (2, 4):
        found = replace(design, channel=Channel(np.full((k, 2), 0.5))).verify()
        assert not found
        assert any("inputs of the channel: expected [0, 1, 2]" in failure for failure in found.failures)
