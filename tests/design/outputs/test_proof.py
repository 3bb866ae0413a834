"""The tree of boxes of log-ratios: sound for any numbers, in float64 and in balls."""

import itertools
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from ldpopt import Channel
from ldpopt.design import (
    ApproximateLDP,
    BranchAndBound,
    BranchDual,
    CapacityBounded,
    Divergence,
    Invariant,
    LocalDP,
    Outputs,
    RenyiLDP,
    Support,
    TotalVariation,
    optimal_channel,
)
from ldpopt.design.kernel.hypotheses import Classes
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.design.outputs.proof import Boxes, Leaf, Split
from ldpopt.design.problems.problem import Problem
from ldpopt.design.ratios.proof import TermMultiplier
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, SQUARED_HELLINGER
from ldpopt.numbers.enclosures import EXACT, FLOAT
from ldpopt.privacy import RestrictedKL, RestrictedRenyi, RestrictedTotalVariation
from tests.design.kernel.forging import NO_RECORD, fails_in_words, forged, tampered


def branched(u, constraints):
    """The certificate of the box of all ratios, and the value of a channel."""
    design = optimal_channel(u, constraints, method=BranchAndBound(nodes=2, starts=2), certify=False)
    problem = Problem.build(u, constraints)
    candidate = BranchAndBound(nodes=1, starts=2).find(problem, None)
    certificate = next(iter(candidate.prove(problem, design.channel)))
    assert isinstance(certificate, BranchDual)
    assert isinstance(certificate.nodes[0], Leaf)
    return certificate, design.value


def utility(k=4, seed=4, f=KL):
    return Divergence(f, *np.random.default_rng(seed).dirichlet(np.ones(k), 2))


CASES = {
    "budget": [ApproximateLDP(1.0, 0.01), TotalVariation(0.3), Outputs(2)],
    "Renyi": [RenyiLDP(2.0, 0.5), Outputs(2)],
    "mask": [ApproximateLDP(1.0, 0.1), Support(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool))],
    "invariant": [LocalDP(1.5), Invariant([0.2, 0.3, 0.5])],
    "restricted variation": [CapacityBounded([0, 1, 2], RestrictedTotalVariation(), 0.2)],
    "restricted KL": [CapacityBounded([0, 1], RestrictedKL(), 0.2)],
    "restricted order": [CapacityBounded([0, 1], RestrictedRenyi(3.0), 0.2)],
}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("case", CASES)
def test_no_forged_number_proves_too_much(case):
    """A bound that is accepted is never below the value of a feasible channel, whatever the multipliers are."""
    rng = np.random.default_rng(7)
    certificate, value = branched(utility(k=3, f=JENSEN_SHANNON), CASES[case])
    assert certificate.verify()
    assert certificate.verify(exact=True)
    bounds = [
        replace(certificate, nodes=(leaf,)).bound
        for leaf in itertools.islice(forged(certificate.nodes[0], rng), 0, None, 2)
    ]
    assert min(bounds) >= value
    assert np.isfinite(bounds).sum() >= 5
    assert np.isinf(bounds).sum() >= 5
    for classes in tampered(certificate.classes, rng):
        assert replace(certificate, classes=classes).bound >= value


@pytest.mark.full
def test_no_forged_tree_proves_too_much():
    """Circles, shared and missing nodes, indices and cuts that are none: refused, or above the value."""
    design = optimal_channel(utility(), Outputs(3), method=BranchAndBound(nodes=40, starts=3))
    certificate, nodes = design.certificate, design.certificate.nodes
    split = nodes[0]
    assert isinstance(split, Split)
    refused = [
        (),
        (replace(split, left=0), *nodes[1:]),
        (replace(split, right=split.left), *nodes[1:]),
        (replace(split, left=-1), *nodes[1:]),
        (replace(split, left=len(nodes)), *nodes[1:]),
        (replace(split, left=True), *nodes[1:]),
        (replace(split, left=1.0), *nodes[1:]),
        (replace(split, output=3), *nodes[1:]),
        (replace(split, output=-1), *nodes[1:]),
        (None, *nodes[1:]),
        *((replace(split, cut=cut), *nodes[1:]) for cut in (np.nan, np.inf, -np.inf, "0", None, True)),
    ]
    for forgery in refused:
        assert replace(certificate, nodes=forgery).bound == np.inf
        assert not replace(certificate, nodes=forgery).verify()
    for cut in (-1e300, -1.0, 0.0, 1.0, 1e300):
        assert replace(certificate, nodes=(replace(split, cut=cut), *nodes[1:])).bound >= design.value
    for at in (1, 2):
        assert replace(certificate, nodes=(nodes[-at], *nodes)).bound >= design.value


def test_classes_are_of_exactly_equal_ratios():
    """Inputs may be merged where their ratios are the same rational number, and nowhere else."""
    p0, p1 = np.array([0.25, 0.125, 0.125, 0.5]), np.array([0.5, 0.25, 0.125, 0.125])
    design = optimal_channel(Divergence(KL, p0, p1), [LocalDP(1.0), Outputs(2)], method=BranchAndBound(starts=2))
    merged = Classes.checked(np.array([0, 0, 1, 2]), p0, p1)
    assert merged.count == 3
    assert np.allclose(merged.laws(p0, p1, FLOAT).p0.midpoint, [0.375, 0.125, 0.5])
    for classes in ([0, 0, 0, 1], [0, 0, 2, 3], [-1, 0, 1, 2], [0, 1, 2], [0.0, 0.0, 1.0, 2.0]):
        with pytest.raises(Unproved):
            Classes.checked(np.array(classes), p0, p1)
    near = p0.copy()
    near[0] = np.nextafter(near[0], 1)
    with pytest.raises(Unproved, match="differ"):
        Classes.checked(np.array([0, 0, 1, 2]), near, p1)
    assert design.certified


def test_inputs_are_merged_only_where_constraints_treat_them_alike():
    """Under a policy graph the same numbers prove nothing, however equal the ratios are."""
    u = Divergence(KL, [0.25, 0.25, 0.5], [0.375, 0.375, 0.25])
    certificate, _ = branched(u, [ApproximateLDP(1.0, 0.01), Outputs(2)])
    assert certificate.classes.max() == 1
    assert np.isfinite(certificate.bound)
    graph = LocalDP(1.0, nx.path_graph(3))
    with pytest.raises(Unproved, match="alike"):
        replace(certificate, constraints=(graph, Outputs(2))).proved(FLOAT)


@pytest.mark.parametrize("f", [KL, CHI_SQUARED, SQUARED_HELLINGER], ids=lambda f: f.name)
@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-9])
def test_chords_are_above_the_divergence(f, apart):
    """At every column whose ratio is in the box the linear function is not below mu, in either arithmetic."""
    rng = np.random.default_rng(3)
    p0 = rng.dirichlet(np.ones(4))
    p1 = p0 * (1 + apart * (rng.random(4) - 0.5))
    p1 = p1 / p1.sum()
    constraints = [LocalDP(5.0), Outputs(2)]
    merger = Classes.checked(np.arange(4), p0, p1)
    for arithmetic in (FLOAT, EXACT):
        boxes = Boxes.from_constraints(f, merger, (p0, p1), constraints, range(4), arithmetic)
        for _ in range(4):
            cut = float(rng.uniform(*boxes.root[:, 0]))
            for box in boxes.halves(boxes.root, Split(0, cut, 1, 2)):
                plane = boxes.chords(box)[0]
                columns = arithmetic.of(rng.random((4, 8)) ** 3)
                worth = Divergence(f, p0, p1).enclosed_columns(arithmetic.zeros(8), columns)[0]
                a = np.log1p((boxes.laws.difference @ columns).midpoint / (boxes.laws.p1 @ columns).midpoint)
                for y in range(2):
                    inside = (a > box[0, y]) & (a < box[1, y])
                    above = (plane[y] @ columns).upper
                    assert (above[inside] >= np.asarray(worth.lower)[inside]).all()


def test_an_infinite_divergence_under_pure_ldp_is_bounded():
    """KL of hypotheses with a zero is infinite without privacy, and finite under it, whether a budget binds or not."""
    u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.8, 0.0])
    for budget in (1, 2, 3, 5):
        design = optimal_channel(u, [LocalDP(1.0), Outputs(budget)])
        free = optimal_channel(u, LocalDP(1.0))
        assert design.value <= design.upper_bound <= free.upper_bound * (1 + 1e-9)
        assert design.verify()
        assert design.verify(exact=True)
        assert design.certified  # with one output, the optimum is zero exactly


@pytest.mark.parametrize("epsilon", [60.0, 300.0])
def test_steep_privacy_is_no_privacy(epsilon):
    """Where no divergence is infinite, epsilon of 60 and more keep what the best cut of the sorted inputs keeps."""
    p0, p1 = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    cuts = [np.split(np.arange(4), at) for at in itertools.combinations(range(1, 4), 2)]
    best = max(sum(float(KL.excess(p0[part].sum(), p1[part].sum())) for part in parts) for parts in cuts)
    design = optimal_channel(Divergence(KL, p0, p1), [LocalDP(epsilon), Outputs(3)])
    assert design.value == pytest.approx(best, rel=1e-9)
    assert design.certified
    assert design.verify()


def test_hypotheses_that_nearly_agree():
    """Two outputs at a distance of 1e-9: the chi-squared divergence of the best corner, in exact fractions."""
    tiny = 2.0**-30
    p0 = np.array([0.25, 0.25, 0.5])
    p1 = p0 + tiny * np.array([1.0, -2.0, 1.0])
    design = optimal_channel(Divergence(CHI_SQUARED, p0, p1), [TotalVariation(0.5), Outputs(2)])
    a, b = [Fraction(x) for x in p0.tolist()], [Fraction(x) for x in p1.tolist()]
    best = Fraction(0)
    for rows in itertools.product((0, 1), repeat=3):
        for low in (Fraction(0), Fraction(1, 4), Fraction(1, 2)):
            q = [low + Fraction(one, 2) for one in rows]
            m0, m1 = (sum(x * y for x, y in zip(law, q, strict=True)) for law in (a, b))
            if 0 < m1 < 1:
                best = max(best, (m0 - m1) ** 2 / m1 + (m0 - m1) ** 2 / (1 - m1))
    assert design.upper_bound >= float(best) * (1 - 1e-12)
    assert design.value == pytest.approx(float(best), rel=1e-5)
    assert design.verify()
    assert design.verify(exact=True)


def serves_as_leaf(name, other):
    """Whether a stand-in serves a leaf as well: rows of zeros, no terms, and whatever a budget of outputs ignores."""
    return {
        "rows": isinstance(other, np.ndarray),
        "terms": isinstance(other, tuple) and not other,
        "fixed": isinstance(other, tuple) and len(other) == 1,
    }.get(name, False)


def test_a_wrong_tree_of_leaves_proves_no_bound():
    """Wrong nodes, splits, leaves and multipliers, and positions that do not exist, fail in words."""
    u = utility(3)
    certificate, _ = branched(u, [TotalVariation(0.3), ApproximateLDP(1.0, 0.05), Outputs(2)])
    leaf = certificate.nodes[0]
    one = TermMultiplier(0, np.array([0]), np.zeros((2, 1)))
    assert replace(certificate, nodes=(replace(leaf, terms=(one,)),)).bound == pytest.approx(certificate.bound)
    for at, other in enumerate(NO_RECORD):
        assert fails_in_words(replace(certificate, nodes=other))
        assert fails_in_words(replace(certificate, nodes=(other,)))
        assert fails_in_words(replace(certificate, classes=other))
        assert fails_in_words(replace(certificate, nodes=(Split(other, 0.0, 1, 2), leaf, leaf)))
        assert fails_in_words(replace(certificate, nodes=(Split(0, 0.0, other, 2), leaf, leaf)))
        if not isinstance(other, float):
            assert fails_in_words(replace(certificate, nodes=(Split(0, other, 1, 2), leaf, leaf)))
        for name in ("rows", "terms", "fixed", "sides", "weights")[at % 2 :: 2]:
            assert serves_as_leaf(name, other) or fails_in_words(
                replace(certificate, nodes=(replace(leaf, **{name: other}),))
            )
        for name in ("term", "pairs", "values")[at % 2 :: 2]:
            spoiled = replace(leaf, terms=(replace(one, **{name: other}),))
            assert fails_in_words(replace(certificate, nodes=(spoiled,)))


def test_capped_ratios_need_an_output_that_every_input_allows():
    """Where every output is impossible for some input, no channel has capped ratios: nothing is proved."""
    u = Divergence(KL, [0.5, 0.5], [0.25, 0.75])
    own = branched(u, (Support([[True, False], [True, True]]), TotalVariation(0.9), LocalDP(1.0)))[0]
    none = replace(own, constraints=(Support([[True, False], [False, True]]), TotalVariation(0.9), LocalDP(1.0)))
    assert any("no output that every input allows" in words for words in none.verify().failures)


def test_ratios_that_are_capped_leave_no_output_that_is_forbidden_for_some_input():
    """Under `LocalDP` and a mask with one output for all inputs, only that output occurs: the bound is exactly zero."""
    mask = [[True, True, False], [True, True, True], [False, True, True]]
    channel = Channel([[0.0, 1.0, 0.0]] * 3)
    u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    proof = BranchDual(u, (LocalDP(1.0), Support(mask)), channel, np.arange(3), ())
    assert proof.bound == 0
    assert proof.verify()
