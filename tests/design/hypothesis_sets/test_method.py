"""The best channel against sets of hypotheses, with its least favourable pair."""

import itertools
import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from ldpopt import ApproximateLDP, Channel, Divergence, InvalidInput, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import AgainstSet, Around, Box, Contamination, Hull, PatternLP, RenyiLDP, TotalVariationBall, WorstOf
from ldpopt.divergences import CHI_SQUARED, KL, hockey_stick


def sets(k, seed):
    rng = np.random.default_rng(seed)
    p0 = rng.dirichlet(np.ones(k))
    return p0, {
        "hull": Hull(rng.dirichlet(np.ones(k), 3)),
        "contamination": Around(rng.dirichlet(3 * np.ones(k)), Contamination(0.1)),
        "ball": Around(rng.dirichlet(3 * np.ones(k)), TotalVariationBall(0.1)),
        "box": Around(rng.dirichlet(3 * np.ones(k)), Box(0.03)),
    }


def by_duality(p0, alternatives, epsilon, eta):
    """The saddle value as one convex program: the pattern program's dual, minimised over the alternative as well."""
    k, ratio = len(p0), math.exp(epsilon)
    inside = np.array(list(itertools.product([0.0, 1.0], repeat=k)))
    patterns = 1 + (ratio - 1) * inside
    rows, p1 = cp.Variable(k), cp.Variable(k, nonneg=True)
    pairs = [(x, y) for x in range(k) for y in range(x + 1, k)]
    nu = cp.Variable(len(pairs), nonneg=True)
    cut = (ratio - 1) * np.array([[a[x] * (1 - a[y]) for x, y in pairs] for a in inside])
    charge = patterns @ rows + cut @ nu
    worth = cp.rel_entr(patterns @ p0, patterns @ p1)
    limits = [cp.sum(p1) == 1, *alternatives.expression(p1), charge >= worth]
    problem = cp.Problem(cp.Minimize(cp.sum(rows) + eta * cp.sum(nu)), limits)
    problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.full(but=2)
@pytest.mark.parametrize("eta", [1.0, 0.15])
@pytest.mark.parametrize("kind", ["hull", "contamination", "ball", "box"])
def test_the_saddle_value_is_that_of_one_convex_program(kind, eta):
    """max over channels of min over the set equals min over the set of max over channels, found by other means."""
    p0, known = sets(3, 9) if eta == 1.0 else sets(4, 3)
    design = optimal_channel(AgainstSet(KL, p0, known[kind]), [LocalDP(1.0), TotalVariation(eta)])
    assert design.value == pytest.approx(by_duality(p0, known[kind], 1.0, eta), rel=1e-6, abs=2e-8)
    assert design.certified
    assert design.certificate.verify()


@pytest.mark.full
def test_no_member_is_worse_and_no_channel_better():
    """The channel keeps its value against random members; random private channels do not beat the bound."""
    rng = np.random.default_rng(5)
    p0, known = sets(4, 3)
    vertices = known["hull"].vertices
    for f in (CHI_SQUARED, hockey_stick(1.2)):
        utility = AgainstSet(f, p0, known["hull"])
        design = optimal_channel(utility, LocalDP(1.5))
        members = rng.dirichlet(np.full(3, 0.5), 300) @ vertices
        assert min(Divergence(f, p0, p).value(design.channel) for p in members) >= design.value - 1e-12
        for seed in range(6):
            label = np.random.default_rng(seed).integers(0, 3, 4)
            q = (1 + (math.exp(1.5) - 1) * np.eye(3)[label]) / (math.exp(1.5) + 2)
            assert utility.value(q) <= design.upper_bound + 1e-12


def test_both_hypotheses_may_be_sets():
    """With two sets the least favourable pair lies in them, and its own optimum is the value."""
    rng = np.random.default_rng(7)
    first, second = (Around(rng.dirichlet(3 * np.ones(6)), Contamination(0.05)) for _ in range(2))
    design = optimal_channel(AgainstSet(KL, first, second), LocalDP(1.0))
    proof = design.certificate
    assert design.certified
    for around, law in ((first, proof.p0), (second, proof.p1)):
        assert law.sum() == pytest.approx(1)
        assert (law - 0.95 * around.pilot).min() >= -1e-9
    assert optimal_channel(Divergence(KL, proof.p0, proof.p1), LocalDP(1.0)).value == pytest.approx(
        design.value, rel=1e-6
    )
    pilots = optimal_channel(Divergence(KL, first.pilot, second.pilot), LocalDP(1.0))
    # A design states its value with room for the rounding of other processors.
    assert design.utility.value(pilots.channel) * (1 - 1e-11) <= design.value <= pilots.value * (1 + 1e-11)


@pytest.mark.full
def test_a_single_pair_is_the_divergence():
    """Sets of one distribution give the divergence's own optimum, under every kind of constraint."""
    rng = np.random.default_rng(8)
    p0, p1 = rng.dirichlet(np.ones(3), 2)
    for caps in ([ApproximateLDP(0.8, 0.05)], [RenyiLDP(2.0, 0.5)]):
        design = optimal_channel(AgainstSet(KL, p0, Hull([p1])), caps)
        assert design.value == pytest.approx(optimal_channel(Divergence(KL, p0, p1), caps).value, rel=1e-6)
        assert design.certified
        assert design.certificate.verify()
    named = optimal_channel(AgainstSet(KL, p0, Hull([p1]), inputs=tuple("abc")), LocalDP(1.0), method=PatternLP())
    assert named.channel.inputs == tuple("abc")


@pytest.mark.full
def test_a_hull_is_harder_than_its_corners():
    """Against all mixtures no more is kept than against the vertices alone."""
    p0, known = sets(5, 6)
    hull = optimal_channel(AgainstSet(KL, p0, known["hull"]), LocalDP(1.0))
    corners = optimal_channel(WorstOf(KL, p0, known["hull"].vertices), LocalDP(1.0))
    assert hull.value <= corners.value * (1 + 1e-9)


def test_forged_certificates_fail():
    """A pair outside the sets, another pair's bound, other caps and a louder channel prove nothing."""
    p0, known = sets(4, 3)
    design = optimal_channel(AgainstSet(KL, p0, known["ball"]), LocalDP(1.0))
    proof = design.certificate
    assert math.isinf(replace(proof, p1=p0).upper_bound)
    outside = np.roll(proof.p1, 1)
    moved = replace(proof, p1=outside, pair=optimal_channel(Divergence(KL, p0, outside), LocalDP(1.0)).certificate)
    assert math.isinf(moved.upper_bound)
    lower = optimal_channel(Divergence(KL, proof.p0, proof.p1), LocalDP(0.5)).certificate
    assert math.isinf(replace(proof, pair=lower).upper_bound)
    loud = Channel(np.eye(proof.channel.shape[1])[[0, 0, 1, 1]])
    assert not replace(proof, channel=loud).verify()
    weaker = replace(proof.support, weights=np.ones_like(proof.support.weights))
    assert replace(proof, support=weaker).verify().value <= design.value


def test_sets_that_meet_or_differ_in_size_are_refused():
    """Sets that meet, sets of different sizes and channels of another size are refused."""
    p0, known = sets(4, 3)
    with pytest.raises(InvalidInput, match="do not meet"):
        AgainstSet(KL, known["ball"].pilot, known["ball"])
    with pytest.raises(InvalidInput, match="4 inputs"):
        AgainstSet(KL, p0, [0.5, 0.5])
    with pytest.raises(InvalidInput, match="labels"):
        AgainstSet(KL, p0, known["ball"], inputs=("a",))
    with pytest.raises(InvalidInput, match="divergence: expected one of"):
        AgainstSet("nonsense", p0, known["ball"])
    with pytest.raises(InvalidInput, match="4 inputs"):
        AgainstSet(KL, p0, known["ball"]).value(np.eye(3))


def test_a_design_without_a_certificate_has_no_finite_bound():
    """A design whose certificate is not requested has an infinite upper bound and a note."""
    p0, known = sets(4, 3)
    design = optimal_channel(AgainstSet(KL, p0, known["box"]), LocalDP(1.0), certify=False)
    assert math.isinf(design.upper_bound)
    assert "no certificate" in design.note
