"""Tests of `ldpopt.design.work`: what a check costs is known before it begins, and more than allowed is not begun."""

import json

import numpy as np
import pytest
from design_files import NAMES, OUTPUTS, SETS, design

from ldpopt import Channel, Divergence, LocalDP
from ldpopt.cli.program import app
from ldpopt.design import ConcentratedLDP, Contraction, EnvelopeDual, Outputs, RenyiLDP, Unbounded
from ldpopt.design.files import design_text
from ldpopt.design.load import load_proof, parse_design, verify_design
from ldpopt.design.work import MEMORY, OPERATIONS, PARSED, Work, of_pairs, size
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput


@pytest.mark.parametrize("name", [*NAMES, *OUTPUTS, *SETS])
def test_every_kind_of_certificate_says_what_it_takes(name):
    """Small designs of all kinds are far within the budget, and balls take no less than floats."""
    made = design(name)
    proof = (made.certificate or Unbounded(made.utility, made.constraints, made.channel)).of(
        made.utility, made.constraints, made.channel, made.edges
    )
    floats, balls = proof.cost(), proof.cost(exact=True)
    assert 0 < floats.operations + floats.floats < OPERATIONS / 2
    assert floats.operations <= balls.operations
    assert floats.refused(1.0) == ""
    assert "a budget of" in made.verify(budget=1e-9).failures[0]


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
        Unbounded(*wide(4, 2, LocalDP(1.0), Outputs(10**9))).of(*wide(20_000, 2, LocalDP(1.0))),
        EnvelopeDual(*wide(10**6, 2, LocalDP(1.0)), 1.0, np.zeros(10**6 + 1), None),
    ],
    ids=["rows", "orders", "constraints", "outputs", "points"],
)
def test_what_takes_too_long_is_not_begun(proof):
    """Many rows, constraints or points fail at once, with a sentence that says what would be allowed."""
    found = proof.verify()
    assert not found
    assert found.failures[0].startswith("not checked: that takes up to")
    assert "a budget of" in found.failures[0]


def test_a_budget_counts_times_ten_seconds_and_500_megabytes():
    """The sentence names the least whole budget that would be enough, for operations and for memory."""
    assert Work(3.2 * OPERATIONS).refused(1.0).endswith("a budget of 4 allows it")
    assert Work(3.2 * OPERATIONS).refused(4.0) == ""
    assert Work(0.0, 7 * MEMORY).refused(1.0).endswith("a budget of 7 allows it")
    assert Work(float("inf")).refused(1e300).endswith("it is more than any budget")
    assert (Work(1.0, 2.0, 3.0) + Work(4.0, 1.0, 6.0)) == Work(5.0, 2.0, 9.0)


def test_parts_are_counted_with_all_their_numbers():
    """Arrays count their entries, also inside of tuples and records; texts and functions count one."""
    assert size((np.zeros((2, 3)), (np.zeros(4), "text", 1.0))) == 12
    assert size(Divergence(KL, [0.5, 0.5], [0.2, 0.8])) >= 4
    assert of_pairs(1000, 2, 60.0, 2.0**14).floats < of_pairs(2000, 2, 60.0, 2.0**14).floats


def test_files_are_refused_by_their_size_before_they_are_read(tmp_path):
    """A file whose objects might not fit into memory is refused, unless a larger budget is given."""
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write("[" + " " * int(1.2 * MEMORY / PARSED) + "]")
    with pytest.raises(InvalidInput, match="a budget of 2 allows it"):
        load_proof(path)
    with pytest.raises(InvalidInput, match="schema"):
        load_proof(path, budget=2)


def test_balls_are_tried_only_where_they_are_within_the_budget():
    """A claim that floats do not confirm is checked again in balls, but not beyond what is allowed."""
    data = json.loads(design_text(design("potentials")))
    data["upper_bound"] = data["value"]
    broken = parse_design(json.dumps(data))
    assert verify_design(broken) == verify_design(broken, budget=1e9) or not verify_design(broken)[0]
    assert "not checked" in verify_design(broken, exact=True, budget=1e-9)[0].failures[0]


def test_the_command_takes_a_budget(tmp_path):
    """`ldpopt verify --budget` allows more or less, and says so of a file that takes too much."""
    path = tmp_path / "design.json"
    design("potentials").save(path)
    for budget, code in (("1", 0), ("1e-7", 2), ("-1", 2)):
        with pytest.raises(SystemExit) as ended:
            app(["verify", str(path), "--budget", budget], standalone_mode=True)
        assert ended.value.code == code
