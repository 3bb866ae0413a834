"""The least bound that a certificate of each class can be made to prove is never below the optimum (`tests/minimise`).

The attack has power: when a listed column, a block, a decision or a box is left out, it finds a false bound.
"""

import contextlib
import math

import certificates_on_record as on_record
import numpy as np
import pytest
from minimise import attack, checker, listed, special, without
from minimise.descent import attacked, bound_of

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt import design as ld
from ldpopt.design.codec.kinds import encodable_subtypes
from ldpopt.design.outputs.proof import Chambers
from ldpopt.design.patterns.proof_levels import level_columns
from ldpopt.design.ratios.proof import TermMultiplier
from ldpopt.divergences import KL, TOTAL_VARIATION
from ldpopt_check import proofs

NONE_BELOW = -1e-9
NOTICED = -1e-7


def holds(outcome):
    """Whether neither program proves less than the optimum."""
    assert outcome.package >= NONE_BELOW, outcome
    assert math.isnan(outcome.checked) or outcome.checked >= NONE_BELOW, outcome


# -- lists of columns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", listed.LISTED)
def test_the_least_bound_of_a_list_is_the_optimum(kind):
    """A linear program over the class's own list finds the optimum of another program, and nothing below it."""
    rng = np.random.default_rng(5)
    for k in (2, 3) if kind != "MarginalDual" else (2,):
        outcome = attack.of_lists(kind, rng, k)
        holds(outcome)
        assert outcome.package < 1e-5


@pytest.mark.full
@pytest.mark.parametrize("kind", listed.LISTED)
def test_no_problem_has_a_lower_one(kind):
    """The same for hundreds of problems: slack, tight and zero caps, zero masses, ties, disconnected graphs."""
    rng = np.random.default_rng(6)
    for _ in range(60 if kind == "MarginalDual" else 200):
        outcome = attack.of_lists(kind, rng)
        if outcome is not None:
            holds(outcome)


def noticed(kind, gone, seeds, k):
    """Whether a problem is found whose least bound, without one column of the list, is below its optimum."""
    told = set()
    for seed in seeds:
        problem = listed.problem(kind, np.random.default_rng(seed), k)
        columns = listed.own_columns(problem)
        if gone >= len(columns):
            continue  # along some graphs there are fewer
        best, _ = listed.optimum(problem)
        numbers = listed.least_numbers(problem, listed.without(columns, gone))
        if best < 1e-9 or numbers is None:
            continue
        certificate = listed.certificate(problem, numbers)
        with listed.lacking(kind, gone):
            bounds = certificate.bound, checker.bound(certificate)
        told |= {name for name, bound in zip(("package", "checker"), bounds, strict=True) if bound / best - 1 < NOTICED}
        if len(told) == 2:
            return True
    return False


@pytest.mark.parametrize(
    ("kind", "count"), [("PatternDual", 3), ("LevelDual", 4), ("LevelVariationDual", 5), ("PolicyDual", 2)]
)
def test_a_list_without_one_column_is_noticed(kind, count):
    """Each column, also the constant one, is left out in both programs: both then prove a false bound."""
    assert [gone for gone in range(count) if not noticed(kind, gone, range(60), 2)] == []


@pytest.mark.full
@pytest.mark.parametrize(("kind", "places"), [("PatternDual", range(7)), ("LevelVariationDual", (0, 1, 2, "constant"))])
def test_columns_of_three_inputs_are_noticed(kind, places):
    """The same with three inputs: each pattern, the unit vectors, and the constant column."""
    constant = level_columns(3, True).tolist().index([0, 0, 0])
    places = [constant if place == "constant" else place for place in places]
    assert [gone for gone in places if not noticed(kind, gone, range(60), 3)] == []


def test_negative_prices_of_the_constant_column_prove_no_bound():
    """Negative prices of the constant column prove nothing: two programs took 0.0309 for 0.0618."""
    utility = Divergence(KL, [0.8, 0.2], [0.3, 0.7])
    constraints = (ld.ApproximateLDP(1.0, 0.05), TotalVariation(0.2))
    rows, zero, spreads = np.full(2, -0.0518472), np.zeros((2, 2)), 0.3365106 * (1 - np.eye(2))
    certificate = ld.LevelVariationDual(utility, constraints, None, rows, zero, np.ones(1), spreads)
    assert math.isinf(certificate.bound)
    assert math.isinf(checker.bound(certificate))
    constant = level_columns(2, True).tolist().index([0, 0])
    with listed.lacking("LevelVariationDual", constant):
        assert certificate.bound == pytest.approx(0.0309098, abs=1e-6)
        assert checker.bound(certificate) == pytest.approx(0.0309098, abs=1e-6)


# -- all other classes -----------------------------------------------------------------------------------------------


def first_of_each():
    """The first certificate on record of each class that is no linear program over a list."""
    made = {}
    for entry in on_record.record():
        made.setdefault(entry["design"]["certificate"]["kind"], entry)
    left_to_lists = {*listed.LISTED, "IntervalDual"} - {"InformationDual"}
    return [entry for kind, entry in made.items() if kind not in left_to_lists]


@pytest.mark.full(but=9)
@pytest.mark.parametrize("entry", first_of_each(), ids=lambda entry: entry["design"]["certificate"]["kind"])
def test_no_numbers_of_a_class_prove_less_than_a_channel_keeps(entry):
    """Cutting planes from honest numbers on end at the optimum, or above."""
    certificate = on_record.certificate_of(entry)
    outcome = attack.of_certificate(certificate, np.random.default_rng(1), 4, 8, 1, seconds=0.5)
    if outcome is not None:
        holds(outcome)


def test_every_class_is_attacked():
    """Each class of certificates is on record, listed, or made by one of the kinds of problems."""
    known = {entry["design"]["certificate"]["kind"] for entry in on_record.record()} | set(listed.LISTED)
    known |= {"ChamberDual", "SharedInformation", "Unbounded"}  # by `attack.makers`; the last one proves nothing
    assert {kind.__name__ for kind in encodable_subtypes(ld.Certificate)} - known == set()


@pytest.mark.parametrize("draw", [special.of_envelope, special.of_dominated, special.of_no_mass])
def test_draws_without_convexity_hold(draw):
    """Bounds hold for points that dominate the hypotheses, or nearly, and for answers without mass."""
    rng, some = np.random.default_rng(3), 0
    for _ in range(12):
        outcome = draw(rng)
        if outcome is not None:
            holds(outcome)
            some += math.isfinite(outcome.package) or math.isfinite(outcome.checked)
    assert some


def test_a_checker_that_skips_columns_without_mass_is_noticed(monkeypatch):
    """Such columns may earn without end: where they are left out, the second checker proves a false bound."""
    dearest = proofs.dearest

    def skipping(p, kernel, rows, prices, every, bits):
        some = [(base, rise) for base, rise in every if base + sum(a * b for a, b in zip(p, rise, strict=True))]
        return dearest(p, kernel, rows, prices, some, bits)

    monkeypatch.setattr(proofs, "dearest", skipping)
    rng = np.random.default_rng(3)
    outcomes = [special.of_no_mass(rng) for _ in range(12)]
    assert min(outcome.checked for outcome in outcomes if outcome is not None) < -0.1


@pytest.mark.full
def test_many_draws_without_convexity_hold():
    """Bounds hold in hundreds of draws of pairs of sets, cuts of real answers, excesses and respondents."""
    rng = np.random.default_rng(4)
    often = (special.of_envelope, special.of_dominated, special.of_no_mass)
    seldom = (special.of_cells, special.of_pairs, special.of_pairwise, special.of_respondents)
    for draw, times in [*((draw, 300) for draw in often), *((draw, 10) for draw in seldom)]:
        for _ in range(times):
            outcome = draw(rng)
            if outcome is not None:
                holds(outcome)


# -- the power of the attack -----------------------------------------------------------------------------------------


def recorded(name):
    """A certificate on record."""
    return on_record.certificate_of(next(one for one in on_record.record() if one["name"] == name))


def contraction():
    """Under a cap on total variation alone, contraction is the optimum."""
    design = optimal_channel(Divergence(KL, [0.5, 0.25, 0.25], [0.125, 0.375, 0.5]), TotalVariation(0.2))
    return ld.Contraction(design.utility, design.constraints, design.channel)


def even_questions():
    """Of two even yes/no questions, one at random is optimal, as the bound of Scarf says."""
    design = optimal_channel(ld.FisherInformation(np.full(4, 0.25), ld.Marginals((2, 2))), LocalDP(1.0))
    return ld.SharedInformation(design.utility, design.constraints, design.channel)


POWER = {
    "EnvelopeDual": lambda: recorded("EnvelopeDual: tied"),
    "InformationDual": lambda: recorded("InformationDual: information of many"),
    "IntegerColumns": lambda: recorded("IntegerColumns: denominator"),
    "OrbitDual": lambda: recorded("OrbitDual: information, groups, TV, by orbits"),
    "LossDual": lambda: recorded("LossDual: worst loss"),
    "AlphabetLossDual": lambda: recorded("AlphabetLossDual: loss, invariant"),
    "SamplingDual": lambda: recorded("SamplingDual: sampling, TV"),
    "EquivalenceDual": lambda: recorded("EquivalenceDual: estimation COptimal([1.0, 0.0, -1.0])"),
    "BranchDual": lambda: recorded("BranchDual: support, two answers"),
    "Contraction": contraction,
    "SharedInformation": even_questions,
    "InformationCapacity": lambda: recorded("InformationCapacity: information of many"),
    "PairwiseInformation": lambda: recorded("PairwiseInformation: information, renyi"),
}


SLOW = {"EquivalenceDual", "AlphabetLossDual", "SamplingDual", "LossDual", "EnvelopeDual"}


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.full] if kind in SLOW else []) for kind in POWER]
)
def test_a_kernel_without_one_part_is_noticed(kind):
    """Where a block, a set, a decision, an output, a pattern or a leaf is not looked at, a false bound is found."""
    certificate = POWER[kind]()
    best = attack.witness(certificate)
    error = certificate.utility.error
    sign = -1.0 if error else 1.0
    found = 0
    with contextlib.suppress(IndexError):  # there is no such part
        for gone in range(4):
            with without.left_out(kind, gone):
                if kind == "BranchDual":
                    value = bound_of(certificate)
                else:
                    value, _ = attacked(certificate, np.random.default_rng(2), 20, sign * best - 1e-5 * abs(best), 12)
            found += attack.gap(sign * value, best, error) < NOTICED
    assert found, kind


@pytest.mark.full
@pytest.mark.parametrize("gone", [0, 1])
def test_an_interval_that_is_not_looked_at_is_noticed(gone):
    """Total variation has two chords; of an `IntervalDual` without one of them the attack proves too little."""
    p0, p1 = np.array([0.7, 0.3]), np.array([0.2, 0.8])
    utility, constraints = Divergence(TOTAL_VARIATION, p0, p1), (ld.ApproximateLDP(math.log(2), 0.1),)
    kept = listed.Kept((((1.0, listed.Pair(("total-variation",), tuple(p0), tuple(p1))),),))
    problem = listed.Problem("LevelDual", kept, utility, constraints, listed.Fraction(2), (), ((1, 0.1),))
    best, _ = listed.optimum(problem)
    term = TermMultiplier(0, np.array([0, 1]), np.full((2, 2), 0.3))
    certificate = ld.IntervalDual(
        utility, constraints, None, np.array([0.1, 0.1]), (term,), None, np.array([0.1, 0.5, 0.9])
    )
    value, moved = attacked(certificate, np.random.default_rng(0), 60)
    assert attack.gap(value, best, False) > NONE_BELOW
    assert attack.gap(value, best, False) < 1e-3
    assert attack.gap(checker.bound(moved), best, False) > NONE_BELOW
    with without.left_out("IntervalDual", gone):
        value, _ = attacked(certificate, np.random.default_rng(0), 40, best * 0.99)
    assert value < best * 0.999


@pytest.mark.full
def test_a_simplex_of_masses_that_is_not_looked_at_is_noticed():
    """Of two laws there are two orders of the masses; columns of one of them pay nothing, and the bound is false."""
    gaps = []
    for seed in range(30):
        problem = listed.problem("MarginalDual", np.random.default_rng(seed), 3)
        if len(problem.kept.criteria) > 1:
            continue
        pair, columns = problem.kept.criteria[0][0][1], listed.own_columns(problem)
        first, second = (columns @ np.array(p) for p in (pair.p0, pair.p1))
        best, _ = listed.optimum(problem)
        for gone, looked in ((0, first <= second), (1, first >= second)):
            numbers = listed.least_numbers(problem, columns[looked])
            if numbers is not None and best > 1e-6:
                with without.left_out("MarginalDual", gone):
                    gaps.append(listed.certificate(problem, numbers).bound / best - 1)
    assert min(gaps) < NOTICED


def trees(name, kind, seed):
    """Honest trees of boxes of a class, with what their channels keep."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        build, method = attack.makers()[name](rng)
        design = attack.designed(build, attack.SECONDS, method)
        proof = getattr(design, "certificate", None)
        if type(proof).__name__ == kind and len(proof.nodes) <= 60:
            certificate = proof.rebind(design.utility, design.constraints, design.channel)
            if best := attack.witness(certificate):
                yield certificate, best


@pytest.mark.full
def test_a_vertex_of_a_box_that_is_not_looked_at_is_noticed(monkeypatch):
    """The best channel is often in several boxes; without one of its columns in any of them, they prove too little."""
    whole, found = Chambers._vertices, 0
    for certificate, best in trees("chamber", "ChamberDual", 11):
        for column in np.asarray(certificate.channel.matrix).T:

            def fewer(self, low, high, column=column):
                values, rounded = whole(self, low, high)
                kept = np.abs(values - column).max(axis=1, initial=0.0) > 1e-9
                return values[kept], rounded[kept]

            with monkeypatch.context() as patched:
                patched.setattr(Chambers, "_vertices", fewer)
                value, _ = attacked(certificate, np.random.default_rng(2), 12, best * (1 - 1e-4), 12, 2.0)
            found += value / best - 1 < NOTICED
        if found:
            break
    assert found
