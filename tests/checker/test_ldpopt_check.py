"""The checker that shares nothing with the package: accepts honest files, refuses forged ones, its numbers hold."""

import ast
import copy
import json
import math
import random
import subprocess
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import mpmath
import pytest
from honest_design_files import GENERATORS, Problem, excess, honest

import ldpopt_check as checker

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "ldpopt_check").glob("*.py"))


NAMED = [{"name": name} for name in GENERATORS]
ALPHAS = [{"name": "alpha", "parameter": x} for x in (2.0, 0.5, -1.0, 1.0, 0.0, 2.2, 1 + 1e-9, 1e-9)]
HOCKEY_STICKS = [{"name": "hockey-stick", "parameter": x} for x in (1.5, 1.0, 0.6)]
ALL = NAMED + ALPHAS + HOCKEY_STICKS
KL = {"name": "kl"}
P0, P1 = [0.5, 0.3, 0.2], [0.1, 0.3, 0.6]
# With epsilon = 2 and eta = 0.72 the optimum mixes two partitions, and the level is positive.
R0, R1 = [0.15, 0.35, 0.05, 0.45], [0.15, 0.25, 0.3, 0.3]


def name_of(f):
    return "-".join(str(x) for x in f.values())


def laws(kind, generator, k):
    """Two laws of k masses: ordinary, 1e-9 apart, or with zeros."""
    p0, p1 = ([generator.random() for _ in range(k)] for _ in range(2))
    p0 = [x / sum(p0) for x in p0]
    if kind == "close":
        return p0, [p0[0] * (1 + 1e-9), *p0[1:]]
    if kind == "zeros":
        p1[0] = p0[-1] = 0.0
        return [x / sum(p0) for x in p0], [x / sum(p1) for x in p1]
    return p0, [x / sum(p1) for x in p1]


def verdict(document):
    """0, 1 or 2, as the command has it."""
    try:
        return int(bool(checker.check(document).failures))
    except checker.BadInput:
        return 2


@pytest.mark.parametrize("f", ALL, ids=name_of)
@pytest.mark.parametrize("kind", ["ordinary", "close", "zeros"])
def test_an_honest_file_is_accepted(f, kind):
    """Files of optimal channels hold for every divergence, from epsilon = 1e-8 to 700, with and without a cap on TV."""
    generator = random.Random(name_of(f) + kind)
    for epsilon in (1e-8, 1.0, 700.0):
        if f["name"] == "alpha" and epsilon == 700.0 and kind == "zeros":
            continue  # The optimum may exceed the doubles.
        p0, p1 = laws(kind, generator, generator.choice([2, 3, 4, 6]))
        document = honest(f, p0, p1, epsilon, generator.choice([None, 1e-3, 0.05, 0.3, 1.0]))
        found = checker.check(document)
        assert found.failures == []
        assert document["certified"]
        assert found.value[0] <= found.bound[1] <= document["upper_bound"]
        assert document["value"] <= found.value[1]


@pytest.mark.parametrize(
    ("p0", "p1"),
    [
        ([0.25, 0.25, 0.25, 0.25], [0.25, 0.125, 0.5, 0.125]),  # ties
        ([0.5, 0.0, 0.5, 0.0], [0.25, 0.0, 0.75, 0.0]),  # inputs without mass
        ([1 - 1e-300, 1e-300, 1e-16], [0.5, 0.5 - 1e-16, 1e-300]),
        ([0.1] * 10, [0.01, 0.19] * 5),
        ([0.3, 0.7], [0.3, 0.7 * (1 + 2e-16)]),  # an ulp apart
        ([0.5, 0.5], [0.5, 0.5]),  # equal: value 0, bound 0
    ],
)
@pytest.mark.parametrize("f", [KL, {"name": "jensen-shannon"}, {"name": "alpha", "parameter": 1.7}], ids=name_of)
def test_ties_zeros_and_tiny_masses_are_decided(f, p0, p1):
    """Equal ratios, inputs without mass, masses of 1e-300 and distributions an ulp apart are decided."""
    document = honest(f, p0, p1, 1.0, 0.2)
    assert checker.check(document).failures == []


@pytest.mark.parametrize("f", [KL, {"name": "total-variation"}, {"name": "squared-hellinger"}], ids=name_of)
def test_a_file_with_a_cap_on_total_variation_alone_is_certified(f):
    """A cap on total variation alone: erasure keeps eta of the divergence, and the contraction bound meets it."""
    document = honest(f, P0, P1, None, 0.3)
    assert document["certificate"] == {"kind": "Contraction"}
    found = checker.check(document)
    assert (found.failures, found.certified) == ([], True)
    assert verdict({**document, "upper_bound": document["upper_bound"] * (1 - 1e-7)}) == 1


def test_a_contraction_that_is_not_tight_is_a_bound_but_not_certified():
    """eta tanh(epsilon/2) D_f is a bound where f is operator convex, and not certified where it is not tight."""
    document = honest(KL, P0, P1, 1.0, 0.1)
    whole = sum(excess(KL, mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(P0, P1, strict=True))
    exact = float(mpmath.mpf("0.1") * mpmath.tanh(0.5) * whole)
    loose = {**document, "certificate": {"kind": "Contraction"}, "upper_bound": exact * (1 + 1e-9), "certified": False}
    assert verdict(loose) == 0
    assert verdict({**loose, "certified": True}) == 1
    assert verdict({**loose, "upper_bound": exact * (1 - 1e-9)}) == 1


@pytest.mark.parametrize(
    ("name", "parameter", "convex"),
    [
        ("alpha", -1.0, True),
        ("alpha", 2.0, True),
        ("alpha", 2.001, False),
        ("alpha", -1.001, False),
        ("le-cam", None, True),
        ("hockey-stick", 1.1, False),
    ],
)
def test_only_operator_convex_divergences_contract_twice(name, parameter, convex):
    """They keep at most eta tanh(epsilon/2) D_f; others, such as alpha-divergences beyond -1 to 2, at most eta D_f."""
    f = {"name": name} | ({} if parameter is None else {"parameter": parameter})
    document = honest(f, P0, P1, 1.0, 0.1) | {"certificate": {"kind": "Contraction"}, "certified": False}
    whole = float(sum(excess(f, mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(P0, P1, strict=True)))
    twice = max(0.1 * math.tanh(0.5) * whole, document["value"]) * (1 + 1e-9)
    assert verdict(document | {"upper_bound": twice}) == (0 if convex else 1)
    assert verdict(document | {"upper_bound": 0.1 * whole * (1 + 1e-9)}) == 0


def test_a_contraction_of_an_infinite_divergence_proves_nothing():
    """eta times infinity is no bound."""
    document = honest(KL, [0.5, 0.3, 0.2], [0.2, 0.8, 0.0], 1.0, 0.3)
    assert verdict(document) == 0
    assert verdict({**document, "certificate": {"kind": "Contraction"}}) == 1
    assert verdict({**document, "certificate": {"kind": "Contraction"}, "upper_bound": "inf"}) == 1


@pytest.mark.parametrize("epsilon", [1e-8, 1.0, 700.0])
def test_close_hypotheses_are_decided(epsilon):
    """Between hypotheses 1e-9 apart, a bound 2e-9 below what the proof gives is refused, for values near 1e-35 too."""
    p0, p1 = laws("close", random.Random(9), 4)
    document = honest(KL, p0, p1, epsilon, 0.2)
    assert verdict(document) == 0
    bound = checker.check(document).bound
    assert bound[1] - bound[0] <= 1e-15 * bound[1]
    for factor, code in ((1 - 2e-9, 1), (1 + 2e-9, 0)):
        assert verdict({**document, "upper_bound": bound[0] * factor}) == code


@pytest.mark.full
def test_forty_inputs_are_accepted_in_any_order():
    """A problem of forty inputs holds, in any order of the inputs, with its potentials in the sorted order."""
    p0, p1 = laws("ordinary", random.Random(4), 40)
    document = honest(KL, p0, p1, 1.0, 0.3)
    assert checker.check(document).failures == []
    order = random.Random(1).sample(range(40), 40)
    document["utility"] |= {"p0": [p0[x] for x in order], "p1": [p1[x] for x in order]}
    document["channel"]["matrix"] = [document["channel"]["matrix"][x] for x in order]
    assert checker.check(document).failures == []


def with_points():
    """Hypotheses that are a slight garbling of three points, and a file proved through these."""
    share = 1e-7
    q0, q1 = ([x * (1 - share) + share / 3 for x in p] for p in (P0, P1))
    return honest(KL, q0, q1, 1.0, 0.3, points=[[a, b] for a, b in zip(P0, P1, strict=True)])


def test_points_that_dominate_the_hypotheses():
    """A bound for laws of which the hypotheses are a garbling holds for the hypotheses."""
    document = with_points()
    assert document["certified"]
    assert verdict(document) == 0


def test_exact_ties_are_decided():
    """A value that is the very divergence kept, and a bound that is the very one proved, hold; an ulp beyond, not."""
    matrix = [[0.75, 0.25], [0.25, 0.75]]
    document = honest({"name": "total-variation"}, [0.75, 0.25], [0.25, 0.75], 1.25, 0.5)
    document |= {"value": 0.25, "lower_bound": 0.25, "upper_bound": 0.25, "certificate": {"kind": "Contraction"}}
    document["channel"] = {"inputs": [0, 1], "outputs": ["a", "b"], "matrix": matrix}
    stated = {"local_dp": math.nextafter(math.log(3), 2), "total_variation": 0.5}
    document["guarantees"] = [{"notion": notion, "value": value} for notion, value in stated.items()]
    assert checker.check(document).failures == []
    above = math.nextafter(0.25, 1)
    assert verdict({**document, "value": above, "lower_bound": above, "upper_bound": above}) == 1
    assert verdict({**document, "upper_bound": math.nextafter(0.25, 0), "certified": False}) == 1


# --- Forgeries: each is a change of an honest file, and the exit code that it must meet -------------------------------


def change(path, value):
    """A forgery: the entry at a path is replaced, by a function of itself or a value."""

    def forge(document):
        *way, last = path
        place = document
        for key in way:
            place = place[key]
        place[last] = value(place[last]) if callable(value) else value

    return forge


def drop(*path):
    def forge(document):
        *way, last = path
        place = document
        for key in way:
            place = place[key]
        del place[last]

    return forge


def lowered(document):
    """The bound, and all that goes with it, below the optimum."""
    low = document["value"] * (1 - 1e-7)
    document.update(upper_bound=low, value=low, lower_bound=low)


def raised(document):
    document.update(value=document["upper_bound"], lower_bound=document["upper_bound"])


def too_large_a_ratio(document):
    """A ratio in excess of e^epsilon by 1e-12, in an otherwise fair channel."""
    e = math.exp(1.0) * (1 + 1e-12)
    a = e / (1 + e)
    document["channel"] = {
        "inputs": [0, 1, 2, 3],
        "outputs": [0, 1],
        "matrix": [[a, 1 - a], [a, 1 - a], [1 - a, a], [a, 1 - a]],
    }
    document["constraints"] = [{"kind": "LocalDP", "epsilon": 1.0}]
    document["guarantees"] = [{"notion": "local_dp", "value": 1.0}]


def zero_in_a_column(document):
    for row in document["channel"]["matrix"]:
        row.append(0.0)
    document["channel"]["matrix"][0][-1] = 1e-12
    document["channel"]["outputs"].append("rare")


U, M = ("certificate", "potentials"), ("channel", "matrix")
FORGERIES = {
    "bound lowered": (change(["upper_bound"], lambda x: x * (1 - 1e-7)), 1),
    "bound lowered, with the value": (lowered, 1),
    "bound zero": (change(["upper_bound"], 0.0), 1),
    "bound negative": (change(["upper_bound"], lambda x: -x), 1),
    "bound minus infinity": (change(["upper_bound"], "-inf"), 1),
    "bound infinite, still certified": (change(["upper_bound"], "inf"), 1),
    "bound loose, still certified": (change(["upper_bound"], lambda x: x * 1.001), 1),
    "bound NaN": (change(["upper_bound"], float("nan")), 2),
    "bound a text": (change(["upper_bound"], "NaN"), 2),
    "bound true": (change(["upper_bound"], True), 2),
    "bound null": (change(["upper_bound"], None), 2),
    "value raised": (raised, 1),
    "value infinite": (lambda d: d.update(value="inf", lower_bound="inf", upper_bound="inf"), 1),
    "value minus infinity": (lambda d: d.update(value="-inf", lower_bound="-inf"), 1),
    "value zero": (lambda d: d.update(value=0.0, lower_bound=0.0), 1),
    "value negative": (lambda d: d.update(value=-d["value"], lower_bound=-d["value"]), 1),
    "lower bound is not the value": (change(["lower_bound"], lambda x: x / 2), 1),
    "lower bound infinite": (change(["lower_bound"], "inf"), 1),
    "tolerance wide": (change(["tolerance"], 1.1e-3), 1),
    "tolerance zero": (change(["tolerance"], 0.0), 1),
    "tolerance negative": (change(["tolerance"], -1e-6), 1),
    "tolerance infinite": (change(["tolerance"], "inf"), 2),
    "certified a number": (change(["certified"], 1), 2),
    "level negative": (change(["certificate", "level"], lambda x: -x - 1e-3), 1),
    "level zero": (change(["certificate", "level"], 0.0), 1),
    "level lowered": (change(["certificate", "level"], lambda x: x * 0.99), 1),
    "level a text": (change(["certificate", "level"], "0.1"), 2),
    "potentials scaled down": (change(U, lambda u: [x * 0.999 for x in u]), 1),
    "potentials all zero": (change(U, lambda u: [0.0 for _ in u]), 1),
    "potentials reversed": (change(U, lambda u: u[::-1]), 1),
    "potentials shuffled": (change(U, lambda u: [u[0], u[2], u[1], *u[3:]]), 1),
    "potentials negative": (change(U, lambda u: [-x for x in u]), 1),
    "last potential lowered": (change(U, lambda u: [*u[:-1], u[-1] * (1 - 1e-4)]), 1),
    "first potential raised": (change(U, lambda u: [u[-1] * 1e-4, *u[1:]]), 1),
    "potentials NaN": (change(U, lambda u: ["NaN", *u[1:]]), 2),
    "potentials infinite": (change(U, lambda u: [*u[:-1], "inf"]), 2),
    "potentials float NaN": (change(U, lambda u: [*u[:-1], float("nan")]), 2),
    "too few potentials": (change(U, lambda u: u[:-1]), 2),
    "too many potentials": (change(U, lambda u: [*u, u[-1]]), 2),
    "no potentials": (change(U, []), 2),
    "potentials an object": (change(U, {}), 2),
    "points without mass": (change(["certificate", "points"], [[0.0, 0.0]] * 4), 2),
    "points negative": (change(["certificate", "points"], [[1.5, 0.5], [-0.5, 0.5], [0.1, 0.1], [0.1, 0.1]]), 2),
    "points equal": (change(["certificate", "points"], [[0.3, 0.3], [0.3, 0.3], [0.2, 0.2], [0.2, 0.2]]), 1),
    "points garbled": (
        change(["certificate", "points"], [[0.15, 0.15], [0.35, 0.25], [0.051, 0.299], [0.449, 0.301]]),
        1,
    ),
    "points of one number": (change(["certificate", "points"], [[0.25]] * 4), 2),
    "points ragged": (change(["certificate", "points"], [[0.15, 0.15], [0.35, 0.25], [0.05, 0.3], [0.45]]), 2),
    "points empty": (change(["certificate", "points"], []), 2),
    "another certificate": (change(["certificate"], {"kind": "PatternDual", "multipliers": [1.0]}), 2),
    "certificate without level": (drop("certificate", "level"), 2),
    "contraction, not tight": (change(["certificate"], {"kind": "Contraction"}), 1),
    "no certificate": (change(["certificate"], None), 2),
    "certificate with its own epsilon": (change(["certificate", "epsilon"], lambda _=None: 0.1), 2),
    "epsilon swapped": (change(["constraints", 0, "epsilon"], 3.0), 1),
    "epsilon lowered": (change(["constraints", 0, "epsilon"], lambda x: x * (1 - 1e-9)), 1),
    "epsilon zero": (change(["constraints", 0, "epsilon"], 0.0), 2),
    "epsilon negative": (change(["constraints", 0, "epsilon"], -1.0), 2),
    "epsilon infinite": (change(["constraints", 0, "epsilon"], "inf"), 2),
    "eta raised": (change(["constraints", 1, "eta"], lambda x: x * (1 + 1e-5)), 1),
    "eta lowered": (change(["constraints", 1, "eta"], lambda x: x * (1 - 1e-9)), 1),
    "eta negative": (change(["constraints", 1, "eta"], -0.3), 2),
    "LocalDP dropped": (drop("constraints", 0), 1),
    "TotalVariation dropped": (drop("constraints", 1), 1),
    "constraints empty": (change(["constraints"], []), 2),
    "a policy graph": (change(["constraints", 0], {"kind": "LocalDP", "epsilon": 1.0, "graph": []}), 2),
    "another constraint": (change(["constraints", 0], {"kind": "RenyiLDP", "order": 2.0, "epsilon": 1.0}), 2),
    "guarantee lowered": (change(["guarantees", 0, "value"], lambda x: x * (1 - 1e-9)), 1),
    "guarantee of TV lowered": (change(["guarantees", 1, "value"], lambda x: x * (1 - 1e-9)), 1),
    "guarantee negative": (change(["guarantees", 0, "value"], -1.0), 1),
    "guarantee minus infinity": (change(["guarantees", 0, "value"], "-inf"), 1),
    "guarantee above its cap": (change(["guarantees", 0, "value"], 2.01), 1),
    "guarantee huge": (change(["guarantees", 0, "value"], 1e300), 1),
    "guarantee hugely negative": (change(["guarantees", 0, "value"], -1e300), 1),
    "epsilon huge": (change(["constraints", 0, "epsilon"], 1e300), 2),
    "order huge": (change(["utility", "f"], {"name": "alpha", "parameter": 1e300}), 2),
    "guarantee infinite": (change(["guarantees", 0, "value"], "inf"), 1),
    "guarantee of another notion": (change(["guarantees", 0, "notion"], "zcdp"), 1),
    "guarantee without value": (drop("guarantees", 0, "value"), 2),
    "hypotheses swapped": (lambda d: d["utility"].update(p0=R1, p1=R0), 1),
    "hypothesis moved": (change(["utility", "p0"], [0.15, 0.35 + 1e-6, 0.05, 0.45 - 1e-6]), 1),
    "hypothesis reordered": (change(["utility", "p0"], [0.35, 0.15, 0.05, 0.45]), 1),
    "hypothesis negative": (change(["utility", "p0"], [0.9, 0.3, -0.2, 0.0]), 2),
    "hypothesis without mass": (change(["utility", "p0"], [0.0, 0.0, 0.0, 0.0]), 2),
    "hypothesis not normalised": (change(["utility", "p0"], [1.5, 3.5, 0.5, 4.5]), 2),
    "hypothesis shortened": (change(["utility", "p0"], [0.5, 0.5]), 2),
    "inputs of the utility in another order": (change(["utility", "inputs"], [1, 0, 2, 3]), 2),
    "another divergence": (change(["utility", "f"], {"name": "jeffreys"}), 1),
    "a smaller divergence": (change(["utility", "f"], {"name": "jensen-shannon"}), 1),
    "a divergence of one's own": (change(["utility", "f"], {"name": "mine"}), 2),
    "a divergence with a parameter": (change(["utility", "f"], {"name": "kl", "parameter": 2.0}), 2),
    "alpha without order": (change(["utility", "f"], {"name": "alpha"}), 2),
    "alpha of infinite order": (change(["utility", "f"], {"name": "alpha", "parameter": "inf"}), 2),
    "hockey stick of a negative": (change(["utility", "f"], {"name": "hockey-stick", "parameter": -1.0}), 2),
    "another utility": (change(["utility", "kind"], "MutualInformation"), 2),
    "rows swapped": (change(M, lambda q: [q[3], q[1], q[0], q[2]]), 1),
    "full disclosure": (
        change(["channel"], {"inputs": [0, 1, 2, 3], "outputs": [0, 1], "matrix": [[1, 0], [0, 1], [0, 1], [1, 0]]}),
        1,
    ),
    "constant channel": (change(M, lambda q: [q[0]] * 4), 1),
    "zero in a column": (zero_in_a_column, 1),
    "ratio too large by 1e-12": (too_large_a_ratio, 1),
    "row dropped": (change(M, lambda q: q[:-1]), 2),
    "row too long": (change(M, lambda q: [[*q[0], 0.0], *q[1:]]), 2),
    "row scaled": (change([*M, 0], lambda row: [2 * x for x in row]), 2),
    "row negative": (change([*M, 0], lambda row: [row[0] + 2 * row[1], -row[1], *row[2:]]), 2),
    "entry a text": (change([*M, 0, 0], "0.5"), 2),
    "entry true": (change([*M, 0, 0], True), 2),
    "matrix empty": (change(M, []), 2),
    "labels twice": (change(["channel", "outputs"], lambda ys: [ys[0]] * len(ys)), 2),
    "a label twice and a row too short": (
        change(["channel"], {"inputs": [0, 1, 2, 3], "outputs": [0, 0], "matrix": [[0.5, 0.5], [1.0], [1.0], [1.0]]}),
        2,
    ),
    "a label twice and a mass too few": (
        lambda d: (d["utility"].update(p0=[0.3, 0.3, 0.4]), d["channel"].update(inputs=[0, 1, 2, 2])),
        2,
    ),
    "labels missing": (change(["channel", "inputs"], [0, 1]), 2),
    "another schema": (change(["schema"], "ldpopt-channel"), 2),
    "another version": (change(["version"], 2), 2),
    "version true": (change(["version"], True), 2),
    "edges": (change(["edges"], [0.0]), 2),
    "an unknown key": (lambda d: d.update(epsilon=0.1), 2),
    "a huge integer": (change(["value"], 10**400), 2),
    "method a list": (change(["method"], []), 2),
}


@pytest.fixture(scope="module")
def document():
    return honest(KL, R0, R1, 2.0, 0.72)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_refused(document, forgery):
    """A change of any field is refused: as false (1) or as no such file (2)."""
    assert verdict(document) == 0
    forged = copy.deepcopy(document)
    forge, code = FORGERIES[forgery]
    if forgery == "certificate with its own epsilon":
        forged["certificate"]["epsilon"] = 0.1
    else:
        forge(forged)
    assert verdict(forged) == code


@pytest.mark.parametrize("key", sorted(honest(KL, P0, P1, 1.0, 0.3)))
def test_a_missing_key_is_refused(document, key):
    """Every key is needed, and none may be another kind of thing."""
    forged = copy.deepcopy(document)
    del forged[key]
    assert verdict(forged) == 2
    for thing in ({}, [], [[]], {"kind": []}, [None], "text", -1, {"kind": {}}, {"name": 1}):
        if not (isinstance(thing, str) and key in ("method", "reference", "note")) and not (
            thing == -1 and key in ("value", "lower_bound", "upper_bound", "tolerance")
        ):
            assert verdict({**document, key: thing}) == 2


def test_a_loose_file_may_not_be_called_certified(document):
    """An uncertified bound may be loose; calling it certified is refused."""
    loose = {**document, "upper_bound": document["upper_bound"] * 1.01, "certified": False}
    found = checker.check(loose)
    assert (found.failures, found.certified) == ([], False)
    assert verdict({**loose, "certified": True}) == 1


@pytest.mark.parametrize("swap", [(0, 1), (1, 2), (0, 2)])
def test_points_that_do_not_dominate(swap):
    """Points that are moved or exchanged prove nothing about the hypotheses."""
    document = with_points()
    i, j = swap
    points = document["certificate"]["points"]
    points[i][0], points[j][0] = points[j][0], points[i][0]
    assert verdict(document) == 1


def test_no_potentials_prove_less_than_the_optimum():
    """Whatever potentials and level are tried, the bound that is accepted is not below the optimum."""
    generator = random.Random(5)
    f, accepted = {"name": "squared-hellinger"}, 0
    with mpmath.workdps(40):
        for _ in range(60):
            p0, p1 = laws("ordinary", generator, 3)
            epsilon, eta = generator.choice([0.1, 1.0, 4.0]), generator.choice([0.02, 0.3, 0.9])
            document = honest(f, p0, p1, epsilon, eta)
            optimum = Problem(f, p0, p1, epsilon).weights(min(eta, mpmath.tanh(mpmath.mpf(epsilon) / 2)))[0]
            proof = document["certificate"]
            proof["level"] *= generator.choice([0.0, 0.5, 1.0, 1.5, 10.0])
            proof["potentials"] = [x * generator.uniform(0.2, 2) for x in proof["potentials"]]
            bound = checker.check(document).bound[1]
            accepted += bound < math.inf
            assert bound >= optimum * (1 - mpmath.mpf(10) ** -20)
    assert accepted > 10


# --- The command ------------------------------------------------------------------------------------------------------


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "ldpopt_check", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def test_the_exit_code_states_the_verdict(document, tmp_path):
    """0: holds, 1: does not, 2: bad input; as text and as JSON."""
    path = tmp_path / "design.json"
    path.write_text(json.dumps(document))
    good = run(path)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("The proof holds")
    told = json.loads(run(path, "--json", "--bits", "256").stdout)
    assert (told["holds"], told["failures"], told["certified"]) == (True, [], True)
    assert told["value"][0] <= told["bound"][1] <= document["upper_bound"]
    path.write_text(json.dumps({**document, "certificate": {**document["certificate"], "level": -1.0}}))
    bad = run(path, "--json")
    assert (bad.returncode, bad.stderr) == (1, "")
    told = json.loads(bad.stdout, parse_constant=lambda text: pytest.fail(text))
    assert (told["holds"], told["bound"][1]) == (False, "inf")
    assert "Claim 3: the level is negative" in run(path).stdout


TEXTS = {
    "empty": b"",
    "not JSON": b"{",
    "a number": b"1",
    "NaN": b'{"schema": NaN}',
    "Infinity": b'{"value": Infinity}',
    "a key twice": b'{"schema": 1, "schema": 1}',
    "deep": b"[" * 200_000,
    "deep objects": b'{"a":' * 100_000,
    "closed and deep": b"[" * 900 + b"]" * 900,
    "not UTF-8": b'{"schema": "\xff"}',
    "with a byte order mark": "\ufeff{}".encode(),
    "a long integer": b"1" * 5000,
    "an overflow": b'{"value": 1e999}',
    "a surrogate": b'{"\\ud800": 1}',
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_bad_file_is_refused_without_a_traceback(tmp_path, text):
    """Whatever the bytes are, the answer is one line and exit code 2, as text or, for every other file, as JSON."""
    path = tmp_path / "bad.json"
    path.write_bytes(TEXTS[text])
    found = run(path, *["--json"][: list(TEXTS).index(text) % 2])
    assert (found.returncode, found.stderr) == (2, "")
    assert len(found.stdout.splitlines()) == 1


def test_a_missing_file_and_a_bad_precision_are_refused(document, tmp_path):
    """No file, a folder, and a precision out of range are bad input."""
    path = tmp_path / "design.json"
    path.write_text(json.dumps(document))
    for arguments in ((tmp_path / "none",), (tmp_path,), (path, "--bits", "1"), (path, "--bits", "x"), ()):
        found = run(*arguments)
        assert found.returncode == 2
        assert "Traceback" not in found.stderr


def test_a_label_nested_deeply_is_refused(document, tmp_path):
    """A label that JSON can read and Python can hardly hold ends in exit code 2."""
    text = json.dumps({**document, "channel": {**document["channel"], "inputs": [0, 1, "DEEP"]}})
    path = tmp_path / "deep.json"
    path.write_text(text.replace('"DEEP"', "[" * 960 + "]" * 960))
    found = run(path)
    assert found.returncode in (0, 2)
    assert found.stderr == ""


# --- The file itself --------------------------------------------------------------------------------------------------


def test_the_checker_is_short_and_uses_the_standard_library_alone():
    """They import the standard library alone, have at most 1280 lines of code, and share none with the package."""
    text = "\n".join(path.read_text() for path in FILES)
    imported, told = set(), 0
    for node in (node for path in FILES for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module.partition(".")[0])
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            told += node.body[0].end_lineno - node.body[0].lineno + 1
    assert imported - {"ldpopt_check"} <= sys.stdlib_module_names
    lines = text.splitlines()
    assert len(FILES) == 4
    assert sum(line.strip()[:1] not in ("", "#") for line in lines) - told <= 1280
    package = {line.strip() for path in (ROOT / "ldpopt").rglob("*.py") for line in path.read_text().splitlines()}
    assert [line for line in lines if len(line.strip()) > 45 and line.strip() in package] == []


# --- The numbers ------------------------------------------------------------------------------------------------------


def as_mpf(x):
    return mpmath.mpf(x.numerator) / x.denominator


def contains(found, truth, relative=None):
    """Whether an interval holds a number of many digits, and is as narrow as it should be."""
    slack = abs(truth) * mpmath.mpf(10) ** (120 - mpmath.mp.dps)  # what mpmath itself may round
    assert as_mpf(found.lo) - slack <= truth <= as_mpf(found.hi) + slack
    if relative is not None:
        assert as_mpf(found.hi - found.lo) <= abs(truth) * relative


PAIRS = [
    *[(Fraction(1), 1 + Fraction(10) ** -k) for k in (0, 1, 3, 9, 17, 40)],
    *[(1 + Fraction(10) ** -k, Fraction(1)) for k in (1, 3, 9, 17, 40)],
    (Fraction(1, 3), Fraction(2, 3)),
    (Fraction(2, 3), Fraction(1, 3)),
    (Fraction(10) ** -300, Fraction(1)),
    (Fraction(1), Fraction(10) ** -300),
    (10**8 + Fraction(1, 7), 10**8 + Fraction(1, 7) + Fraction(10) ** -9),
    (Fraction(5), Fraction(1)),
    (Fraction(1e-320), Fraction(3e-320)),
    (Fraction(7, 10**200), Fraction(9, 10**200)),
]


@pytest.mark.parametrize("f", ALL, ids=name_of)
@pytest.mark.parametrize("bits", [64, 128, 400])
def test_divergences_lie_within_their_enclosures(f, bits):
    """mu(a, b) - f'(1) (a - b) lies within its enclosure, which is narrow relative to it, also for a near b."""
    g = checker.NAMED.get(f["name"]) or partial(checker.FAMILIES[f["name"]], Fraction(f["parameter"]))
    with mpmath.workdps(1000):
        for a, b in PAIRS:
            truth = excess(f, as_mpf(a), as_mpf(b))
            found = 0 + checker.Interval(Fraction(0), Fraction(0), bits) + g(a, b, bits)
            if truth == 0 and f["name"] in ("hockey-stick",):
                assert found.lo == found.hi == 0
            else:
                contains(found, truth, mpmath.mpf(2) ** (12 - bits))


@pytest.mark.full(but=6)
@pytest.mark.parametrize("f", [f for f in ALL if f.get("parameter") not in (1e-9, 1 + 1e-9)], ids=name_of)
def test_divergences_at_zero_are_their_limits(f):
    """The limits at a = 0 and b = 0 are those of f, or a division by zero where they are infinite."""
    g = checker.NAMED.get(f["name"]) or partial(checker.FAMILIES[f["name"]], Fraction(f["parameter"]))
    one, zero, tiny = Fraction(1), Fraction(0), Fraction(1, 10**4000)
    with mpmath.workdps(9000):
        for a, b in ((zero, one), (one, zero)):
            near = excess(f, as_mpf(a or tiny), as_mpf(b or tiny))
            far = excess(f, as_mpf(a or tiny**2), as_mpf(b or tiny**2))
            grows = far > near * mpmath.mpf("1.000001")
            if grows:
                with pytest.raises(ZeroDivisionError):
                    g(a, b, 128)
            else:
                found = checker.Interval(zero, zero, 128) + g(a, b, 128)
                assert abs(as_mpf(found.lo) - near) <= mpmath.mpf(10) ** -5 * near
                assert found.hi - found.lo <= Fraction(1, 2**100)


@pytest.mark.parametrize("bits", [64, 128, 1000])
def test_logarithms_and_exponentials_lie_within_their_enclosures(bits):
    """log x and e^x lie within their enclosures, e^x - 1 to `bits` digits."""
    with mpmath.workdps(1500):
        for x in (
            Fraction(1, 3),
            Fraction(3),
            Fraction(2),
            Fraction(10) ** 300,
            Fraction(10) ** -300,
            Fraction(99, 100),
        ):
            contains(checker.log(x, bits), mpmath.log(as_mpf(x)), mpmath.mpf(2) ** (8 - bits))
        for x in map(Fraction, (1e-300, 1e-8, 0.1, 1.0, 2.5, 700.0, 9999.0, -1e-8, -3.0, -700.0)):
            lo, hi = (checker.exp_bound(x, bits, up) for up in (False, True))
            truth = mpmath.exp(as_mpf(x))
            assert as_mpf(lo) < truth < as_mpf(hi)
            assert as_mpf(hi - lo) <= abs(truth - 1) * mpmath.mpf(2) ** (2 - bits)
        assert checker.exp_bound(Fraction(0), bits, True) == 1


def test_rounding_is_outward():
    """A shortened number lies on the side that was asked for, within its digits."""
    generator = random.Random(1)
    for _ in range(500):
        x = Fraction(generator.randrange(-(10**60), 10**60), generator.randrange(1, 10 ** generator.randrange(1, 90)))
        lo, hi = checker.shortened(x, 64, False), checker.shortened(x, 64, True)
        assert lo <= x <= hi
        assert hi - lo <= abs(x) / 2**62
    found = checker.outward(checker.Interval(Fraction(1, 3), Fraction(10) ** 400, 64))
    assert found[0] < Fraction(1, 3) < Fraction(math.nextafter(found[0], 1)) + Fraction(1, 10**15)
    assert found[1] == math.inf


@pytest.mark.parametrize("values", [[[0.1], {}], {"shape": [0]}, [["0.1"], [0.1]], [[[0.1]], [[0.1]]], "0.1", None])
def test_malformed_multipliers_are_refused(values):
    """Values of chosen pairs that are no matrix are bad input, not an error of Python's."""
    document = json.loads((ROOT / "docs" / "vectors" / "06-expected-loss.json").read_text())
    assert verdict(document) == 0
    document["certificate"]["multipliers"][0]["values"] = values
    assert verdict(document) == 2
