"""Of the checker that shares nothing with the package: three outcomes, one labelling, and what was not read."""

import copy
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import ldpopt_check as checker
from ldpopt import Divergence, ExpectedLoss, LocalDP, MutualInformation, TotalVariation, optimal_channel
from ldpopt.design import WeightedSum
from ldpopt.design.files import design_text
from ldpopt.design.load import parse_design
from ldpopt.divergences import CHI_SQUARED, KL, TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt_check.screen import Screen

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["low", "middle", "high"]
P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]


def document(utility, *constraints):
    return json.loads(design_text(optimal_channel(utility, constraints)))


LABELLED = document(Divergence(KL, P0, P1, NAMES), LocalDP(1.0), TotalVariation(0.2))
LOSS = document(ExpectedLoss(P0, [[0, 1, 2], [1, 0, 1], [3, 1, 0]], NAMES, ["a", "b", "c"]), LocalDP(1.0))
SUM = document(WeightedSum([1.0, 2.0], [Divergence(KL, P0, P1, NAMES), MutualInformation(P0, NAMES)]), LocalDP(1.0))
GRAPH = document(MutualInformation(P0), LocalDP(1.0, nx.path_graph(3)))


def outcome(data):
    """What the two programs say of a file: proved, refuted, refused or not checked; they must agree."""
    try:
        found = checker.check(copy.deepcopy(data))
        theirs = "refuted" if found.failures else "proved"
    except checker.NotCovered:
        theirs = "not checked"
    except checker.BadInput:
        theirs = "refused"
    try:
        ours = parse_design(json.dumps(data)).verify().outcome
    except InvalidInput:
        ours = "refused"
    return ours, theirs


def relabelled(data, side, labels):
    return data | {"channel": data["channel"] | {side: labels}}


@pytest.mark.parametrize("data", [LABELLED, LOSS, SUM, GRAPH], ids=["divergence", "loss", "sum", "graph"])
def test_labels_in_another_order_are_refused(data):
    """A channel with the labels of the problem in another order, or with others, is refused by both programs."""
    assert outcome(data) == ("proved", "proved")
    labels = data["channel"]["inputs"]
    for others in (labels[::-1], [labels[1], labels[0], labels[2]], [*labels[:2], "other"], [0.5, 1.5, 2.5]):
        assert outcome(relabelled(data, "inputs", others)) == ("refused", "refused")


def test_decisions_in_another_order_are_refused():
    """A loss of decision "b" is not paid for the report "a"."""
    for others in (["b", "a", "c"], ["c", "b", "a"], ["a", "b", "d"]):
        assert outcome(relabelled(LOSS, "outputs", others)) == ("refused", "refused")
        assert outcome(LOSS | {"utility": LOSS["utility"] | {"decisions": others}}) == ("refused", "refused")


def test_a_problem_without_labels_takes_any_but_its_own_in_another_order():
    """Positions stand for absent labels; they are names, too, so that 2, 1, 0 is another order."""
    data = document(Divergence(KL, P0, P1), LocalDP(1.0))
    assert data["utility"]["inputs"] is None
    assert outcome(relabelled(data, "inputs", NAMES)) == ("proved", "proved")
    for others in ([2, 1, 0], [0, 2, 1], [1, "b", "c"], [0.0, 2.0, 1.0], [True, False, 2]):
        assert outcome(relabelled(data, "inputs", others)) == ("refused", "refused")
    assert outcome(relabelled(data, "inputs", [0.0, True, 2])) == ("proved", "proved")  # the same numbers


def test_labels_of_equal_value_are_one_label():
    """1, 1.0 and true are one label; two of them in one list are refused."""
    data = document(Divergence(KL, P0, P1), LocalDP(1.0))
    for twice in ([1, 1.0, 5], [1, True, 5], [0, False, 5], [-0.0, 0, 5]):
        assert outcome(relabelled(data, "inputs", twice)) == ("refused", "refused")


def with_graph(**changes):
    graph = GRAPH["constraints"][0]["graph"] | changes
    return GRAPH | {"constraints": [GRAPH["constraints"][0] | {"graph": graph}]}


def test_an_edge_is_there_once_unless_the_graph_is_of_parallel_ones():
    """Both programs refuse an edge that is there twice; where it may be, the least length counts."""
    edges = [[0, 1, 1.0], [1, 2, 1.0]]
    for more in ([[0, 1, 5.0]], [[1, 0, 1.0]], [[1, 0, 0.5]], [[2, 2, 1.0], [2, 2, 1.0]]):
        assert outcome(with_graph(edges=[*edges, *more])) == ("refused", "refused")
    assert outcome(with_graph(edges=[*edges, [1, 0, 5.0]], multiple=True)) == ("proved", "proved")
    assert outcome(with_graph(edges=[[0, 1, 7.0], *edges], multiple=True)) == ("proved", "proved")
    assert outcome(with_graph(edges=[*edges, [1, 0, 0.5]], multiple=True)) == ("refuted", "refuted")
    both = [*edges, [1, 0, 1.0], [2, 1, 1.0]]
    assert outcome(with_graph(edges=both, directed=True)) == ("proved", "proved")
    assert outcome(with_graph(edges=[*both, [0, 1, 1.0]], directed=True)) == ("refused", "refused")


def test_an_edge_between_no_nodes_is_refused():
    """The ends of an edge are among the nodes, and nodes among the inputs."""
    assert outcome(with_graph(nodes=[0, 1])) == ("refused", "refused")
    assert outcome(with_graph(nodes=[0, 1, 2, 3]))[1] == "refused"
    assert outcome(with_graph(edges=[[0, 1, 0.0], [1, 2, 1.0]]))[1] == "refused"


@pytest.mark.parametrize("key", ["lower", "exact", "witness", "reference"])
def test_guarantees_of_older_files_are_not_judged(key):
    """The checker reports that it does not cover guarantees of older files; `verify` compares them."""
    value = {"lower": 1e300, "exact": True, "witness": {"inputs": [0, 2]}, "reference": "[X]"}[key]
    data = copy.deepcopy(LABELLED)
    data["guarantees"][0][key] = value
    with pytest.raises(checker.NotCovered, match="older files"):
        checker.check(data)


def test_unread_parts_of_a_file_are_named():
    """Parts without any computation are named, however deep they are; compared parts count as read."""
    said = {"method": "by hand", "reference": "", "note": "a note"}
    assert checker.check(LABELLED | said).unchecked == ("method", "note")
    assert checker.check(LABELLED | said | {"method": "", "note": ""}).unchecked == ()
    inner = LABELLED["certificate"] | {"channel": LABELLED["channel"]}
    data = LABELLED | said | {"certificate": {"kind": "Relaxed", "relaxation": inner}}
    assert "certificate.relaxation.channel" in checker.check(data).unchecked


def run(path, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "ldpopt_check", path, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def test_the_command_has_an_exit_code_for_each_outcome(tmp_path):
    """0: proved. 1: refuted. 2: no design file. 3: not checked, as it is not covered or over the budget."""
    path = tmp_path / "design.json"
    cases = [
        (LABELLED, (), 0, "proved", True),
        (LABELLED | {"upper_bound": LABELLED["value"] / 2}, (), 1, "refuted", False),
        (relabelled(LABELLED, "inputs", NAMES[::-1]), (), 2, "bad file", None),
        (LABELLED | {"certificate": {"kind": "MarginalDual"}}, (), 3, "not checked", None),
        (LABELLED, ("--budget", "1e-6"), 3, "not checked", None),
    ]
    for data, arguments, code, word, holds in cases:
        path.write_text(json.dumps(data))
        found = run(path, "--json", *arguments)
        said = json.loads(found.stdout)
        assert (found.returncode, said["outcome"], said["holds"]) == (code, word, holds)


# --- The screen -------------------------------------------------------------------------------------------------------


def many(k, f, *constraints, seed=0, alpha=1.0):
    rng = np.random.default_rng(seed)
    return document(Divergence(f, rng.dirichlet(np.full(k, alpha)), rng.dirichlet(np.full(k, alpha))), *constraints)


@pytest.mark.full
@pytest.mark.parametrize("f", [CHI_SQUARED, KL, TOTAL_VARIATION], ids=str)
def test_boxes_reach_the_verdict_of_all_pairs(f, monkeypatch):
    """For 150 inputs, forged or not, the verdict is that of every block looked at in rational numbers."""
    data = many(150, f, LocalDP(0.7), TotalVariation(0.2))
    u, generator, verdicts = data["certificate"]["potentials"], random.Random(1), set()
    cases = [u]
    for size in (1e-2, 1e-6, 1e-10, -1e-10, -1e-6, -1e-2):
        place = generator.randrange(1, len(u))
        cases.append([x + (size * u[-1] if at >= place else 0.0) for at, x in enumerate(u)])
        cases.append([x + size * u[-1] * (at == place) for at, x in enumerate(u)])
    whole = Screen.unsettled
    for potentials in cases:
        forged = data | {"certificate": data["certificate"] | {"potentials": potentials}}
        monkeypatch.setattr(Screen, "unsettled", whole)
        quick = checker.check(forged, budget=10)
        monkeypatch.setattr(Screen, "unsettled", lambda self: ((i, j) for i in self.cuts for j in self.cuts if i < j))
        slow = checker.check(forged, budget=10)
        assert bool(quick.failures) == bool(slow.failures)
        assert quick.bound[1] >= slow.bound[1] * (1 - 1e-15)
        assert quick.bound[1] <= slow.bound[1] * (1 + 2**-41)
        verdicts.add(not slow.failures)
    assert verdicts == {True, False}


@pytest.mark.full
@pytest.mark.parametrize("alpha", [0.02, 1.0], ids=["a few masses", "even"])
def test_a_thousand_inputs_take_a_second(alpha):
    """Boxes settle nearly all of half a million blocks."""
    data = many(1000, KL, LocalDP(1.0), alpha=alpha)
    begun = time.process_time()
    assert checker.check(data).failures == []
    assert time.process_time() - begun < 20  # of a busy machine; 1 s alone


@pytest.mark.full
def test_ten_thousand_inputs_are_within_the_budget():
    """The estimate of work lets them pass, and is not below what they take."""
    data = many(10_000, KL, LocalDP(1.0), TotalVariation(0.2))
    assert checker.check(data).failures == []
