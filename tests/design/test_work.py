"""Tests of `ldpopt.design.work`: what a check costs is known before it begins, and more than allowed is not begun."""

import json
import time

import networkx as nx
import numpy as np
import pytest
from design_files import NAMES, OUTPUTS, SETS, design

from ldpopt import Channel, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.cli.program import app
from ldpopt.design import (
    ConcentratedLDP,
    Contraction,
    EnvelopeDual,
    Outputs,
    RenyiLDP,
    Unbounded,
    WeightedSum,
    WorstOf,
)
from ldpopt.design.estimation.policy import PolicyColumns
from ldpopt.design.files import design_text
from ldpopt.design.load import load_proof, parse_design, verify_design
from ldpopt.design.patterns.policy import max_column_count, policy_limits
from ldpopt.design.work import MAX_BYTES, MAX_OPERATIONS, Work, count_numbers, pairwise_work, parsing_work
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput, NotChecked


@pytest.mark.parametrize("name", [*NAMES, *OUTPUTS, *SETS])
def test_every_kind_of_certificate_states_its_work(name):
    """Small designs of all kinds are far within the budget, and balls take no less than floats."""
    made = design(name)
    proof = (made.certificate or Unbounded(made.utility, made.constraints, made.channel)).rebind(
        made.utility, made.constraints, made.channel, made.edges
    )
    floats, balls = proof.cost(), proof.cost(exact=True)
    assert 0 < floats.operations + floats.float_operations < MAX_OPERATIONS / 2
    assert floats.operations <= balls.operations
    assert floats.refusal(1.0) == ""
    refused = made.verify(budget=1e-9)
    assert refused.outcome == "not checked"
    assert "a budget of" in refused.unchecked[0]


def wide(k, m, *constraints, **parts):
    rng = np.random.default_rng(0)
    p0, p1 = rng.dirichlet(np.ones(k), 2)
    channel = Channel(rng.dirichlet(np.ones(m), k))
    return Divergence(KL, p0, p1), constraints, channel


@pytest.mark.parametrize(
    "proof",
    [
        Contraction(*wide(20_000, 2, LocalDP(1.0))),
        Contraction(*wide(3000, 2, ConcentratedLDP(0.1))),
        Contraction(*wide(100, 100, *[RenyiLDP(2.0, 0.5)] * 300)),
        Unbounded(*wide(4, 2, LocalDP(1.0), Outputs(10**9))).rebind(*wide(20_000, 2, LocalDP(1.0))),
        EnvelopeDual(*wide(10**6, 2, LocalDP(1.0)), 1.0, np.zeros(10**6 + 1), None),
    ],
    ids=["rows", "orders", "constraints", "outputs", "points"],
)
def test_checks_over_the_budget_are_not_begun(proof):
    """Many rows, constraints or points fail at once, with a sentence that says what would be allowed."""
    found = proof.verify()
    assert (found.outcome, found.failures) == ("not checked", ())
    assert found.unchecked[0].startswith("not checked: that takes up to")
    assert "a budget of" in found.unchecked[0]
    with pytest.raises(NotChecked, match="neither true nor false"):
        bool(found)


def test_only_the_exceeded_resource_is_named():
    """A check of few operations that needs much memory is not refused for its operations, nor the other way round."""
    assert Work(10.0, 3 * MAX_BYTES).refusal(1.0).count("operations") == 0
    assert Work(3 * MAX_OPERATIONS, 10.0).refusal(1.0).count("MB") == 0
    both = Work(3 * MAX_OPERATIONS, 3 * MAX_BYTES).refusal(1.0)
    assert ("operations" in both, "MB" in both) == (True, True)


@pytest.mark.parametrize("budget", [-1, 0, float("nan"), float("inf"), "2", True, None])
def test_a_budget_is_a_positive_number(budget):
    """Any other budget is refused, not taken for a small or a large one."""
    with pytest.raises(InvalidInput, match="budget"):
        design("potentials").verify(budget=budget)


def test_a_budget_counts_times_ten_seconds_and_two_gigabytes():
    """The sentence names the least whole budget that would be enough, for operations and for memory."""
    assert Work(3.2 * MAX_OPERATIONS).refusal(1.0).endswith("a budget of 4 allows it")
    assert Work(3.2 * MAX_OPERATIONS).refusal(4.0) == ""
    assert Work(0.0, 7 * MAX_BYTES).refusal(1.0).endswith("a budget of 7 allows it")
    assert Work(float("inf")).refusal(1e300).endswith("it is more than any budget")
    assert (Work(1.0, 2.0, 3.0) + Work(4.0, 1.0, 6.0)) == Work(5.0, 2.0, 9.0)


def test_parts_are_counted_with_all_their_numbers():
    """Arrays count their entries, also inside of tuples and records; texts and functions count one."""
    assert count_numbers((np.zeros((2, 3)), (np.zeros(4), "text", 1.0))) == 12
    assert count_numbers(Divergence(KL, [0.5, 0.5], [0.2, 0.8])) >= 4
    assert (
        pairwise_work(1000, 2, 60.0, 2.0**14).float_operations < pairwise_work(2000, 2, 60.0, 2.0**14).float_operations
    )


def test_files_are_refused_by_their_size_before_they_are_read(tmp_path):
    """A file whose objects might not fit into memory is refused, unless a larger budget is given."""
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write("[" + "[]," * 1000 + "[]]")
    few = parsing_work(path.read_text()).memory / MAX_BYTES
    with pytest.raises(NotChecked, match="a budget of 1 allows it"):
        load_proof(path, budget=0.9 * few)
    with pytest.raises(InvalidInput, match="schema"):
        load_proof(path, budget=1.1 * few)


def test_balls_are_tried_only_where_they_are_within_the_budget():
    """A claim that floats do not confirm is checked again in balls, but not beyond what is allowed."""
    data = json.loads(design_text(design("potentials")))
    data["upper_bound"] = data["value"]
    broken = parse_design(json.dumps(data))
    assert verify_design(broken) == verify_design(broken, budget=1e9) or not verify_design(broken)[0]
    assert "not checked" in verify_design(broken, exact=True, budget=1e-9)[0].unchecked[0]


def test_the_command_takes_a_budget(tmp_path):
    """`ldpopt verify --budget` allows more or less, and says so of a file that takes too much."""
    path = tmp_path / "design.json"
    design("potentials").save(path)
    for budget, code in (("1", 0), ("1e-7", 3), ("-1", 2), ("nan", 2)):
        with pytest.raises(SystemExit) as ended:
            app(["verify", str(path), "--budget", budget], standalone_mode=True)
        assert ended.value.code == code


@pytest.mark.parametrize(
    "graph", [nx.path_graph(5), nx.cycle_graph(5), nx.complete_graph(4), nx.star_graph(4)], ids=str
)
@pytest.mark.parametrize("flat", [False, True])
def test_extreme_columns_are_no_more_than_counted(graph, flat):
    """The bound on their number, from trees of edges, holds for graphs with few and many edges."""
    for weight, edge in enumerate(graph.edges):
        graph.edges[edge]["weight"] = 1 + weight / 7
    constraints = [LocalDP(1.0, graph)]
    limits = policy_limits(constraints, tuple(graph.nodes))
    listed = PolicyColumns(limits, flat).count
    assert 0 < listed <= max_column_count(len(graph), constraints, flat)


@pytest.mark.parametrize("alternatives", [2, 9])
def test_designs_of_many_alternatives_verify_by_default(alternatives):
    """What a list of extreme columns takes is not that of the longest list there may be."""
    rng = np.random.default_rng(9)
    p0, *others = rng.dirichlet(np.ones(6), 1 + alternatives)
    made = optimal_channel(WorstOf(KL, p0, others), LocalDP(1.0, nx.path_graph(6)))
    assert made.certified
    assert made.verify().outcome == "proved"


@pytest.mark.full
def test_many_parts_of_a_sum_take_the_announced_work():
    """Divergences of one f are computed together, and what each takes for itself is counted."""
    rng = np.random.default_rng(0)
    parts = [Divergence(KL, *rng.dirichlet(np.ones(2), 2)) for _ in range(2000)]
    utility = WeightedSum(rng.uniform(0.1, 1.0, 2000), parts)
    made = parse_design(design_text(optimal_channel(utility, LocalDP(1.0))))
    begun = time.process_time()
    assert made.verify()
    seconds = time.process_time() - begun
    work = made.certificate.rebind(made.utility, made.constraints, made.channel).cost()
    assert seconds < 3 * (work.operations + work.float_operations) / 1e8 + 1  # of a busy machine
    assert work.memory < 1e8


@pytest.mark.parametrize("k", [1000, pytest.param(100_000, marks=pytest.mark.full)])
def test_large_designs_verify_by_default(k, tmp_path):
    """A file of many answers is read and checked within the budget, in the memory that is announced."""
    rng = np.random.default_rng(1)
    made = optimal_channel(
        Divergence(KL, rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))), [LocalDP(1.0), TotalVariation(0.2)]
    )
    assert made.certified
    made.save(tmp_path / "design.json")
    found, exact = verify_design(load_proof(tmp_path / "design.json"))
    assert (found.outcome, exact) == ("proved", False)
