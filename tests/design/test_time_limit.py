"""Designs that run out of time: what is known by then, with an honest proof, for every method."""

import math
from functools import lru_cache
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from method_examples import design_of

from ldpopt.design import (
    METHODS,
    AgainstSet,
    ApproximateLDP,
    Around,
    BalancedSets,
    BranchAndBound,
    ConcentratedLDP,
    Contamination,
    Denominator,
    Divergence,
    Exchange,
    ExpectedLoss,
    FisherInformation,
    LocalDP,
    LocalSearch,
    Marginals,
    MergedExchange,
    MutualInformation,
    Outputs,
    Partition,
    PatternLP,
    PrivateSampling,
    RenyiLDP,
    TotalVariation,
    WorstOf,
    optimal_channel,
)
from ldpopt.design.candidate import Candidate, Method
from ldpopt.design.estimation.method_variances import SampledColumns
from ldpopt.design.optimal import choose
from ldpopt.design.problems.problem import Problem
from ldpopt.design.several_hypotheses.method import MarginalPatterns
from ldpopt.design.two_hypotheses.method import MAX_INPUTS_FAST_PROOF
from ldpopt.divergences import KL
from ldpopt.errors import SolverError
from ldpopt.values import deadline as module

P = np.arange(1, 9.0) / 36
Q = np.arange(1, 7.0) / 21
PAIR = Divergence(KL, P, P[::-1])
"""Two hypotheses of eight answers."""

LONG = np.arange(1, 17.0) / 136
TWO = Divergence(KL, [0.8, 0.2], [0.3, 0.7])
SMALL = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])

CASES = {
    "partition": (PAIR, [LocalDP(1.0), TotalVariation(0.2)], Partition()),
    "exchange": (PAIR, [LocalDP(1.0), TotalVariation(0.2)], Exchange()),
    "exchange along a graph": (PAIR, LocalDP(1.0, graph=nx.path_graph(8)), Exchange()),
    "exchange with delta": (PAIR, ApproximateLDP(1.0, 0.01), Exchange()),
    "divergences between rows": (PAIR, RenyiLDP(2.0, 0.5), None),
    "concentrated": (TWO, ConcentratedLDP(0.5), None),
    "concentrated and capped": (TWO, [ConcentratedLDP(0.5), TotalVariation(0.3)], None),
    "local search": (PAIR, LocalDP(1.0), LocalSearch(4)),
    "branch and bound": (PAIR, [LocalDP(4.0), Outputs(3)], BranchAndBound()),
    "given outputs": (MutualInformation([0.4, 0.3, 0.2, 0.1]), [LocalDP(4.0), Outputs(3)], None),
    "patterns": (MutualInformation(np.arange(1, 13.0) / 78), [LocalDP(1.0), TotalVariation(0.2)], PatternLP()),
    "balanced sets": (MutualInformation(np.arange(1, 15.0) / 105), LocalDP(1.0), BalancedSets()),
    "balanced sets and capped": (MutualInformation(P), [LocalDP(1.0), TotalVariation(0.2)], BalancedSets()),
    "marginals": (WorstOf(KL, Q, [Q[::-1], np.roll(Q, 3)]), LocalDP(1.0), MarginalPatterns()),
    "merged exchange": (PAIR, ApproximateLDP(1.0, 0.01), MergedExchange()),
    "two sets": (AgainstSet(KL, [0.5, 0.3, 0.2], Around([0.2, 0.3, 0.5], Contamination(0.1))), LocalDP(1.0), None),
    "a loss": (ExpectedLoss([0.5, 0.3, 0.2], 1.0 - np.eye(3)), LocalDP(1.0), None),
    "sampling": (PrivateSampling(KL, [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), LocalDP(0.5), None),
    "estimation": (FisherInformation(LONG), LocalDP(1.0), None),
    "estimation and capped": (FisherInformation(P), [LocalDP(1.0), TotalVariation(0.2)], None),
    "one share of many": (FisherInformation([0.1] + [0.02] * 45), LocalDP(1.0), None),
    "sampled columns": (FisherInformation(np.arange(1, 26.0) / 325), LocalDP(1.0), SampledColumns(300)),
    "small sets": (FisherInformation(np.arange(1, 27.0) / 351), LocalDP(3.0), None),
    "a questionnaire": (FisherInformation(np.full(8, 1 / 8), Marginals((2, 2, 2))), LocalDP(2.0), None),
    "integers": (SMALL, [LocalDP(1.0), Denominator(20)], None),
    "integers for estimation": (FisherInformation([0.5, 0.3, 0.2]), [LocalDP(1.0), Denominator(12)], None),
    "rounded": (PAIR, [LocalDP(1.0), Denominator(20)], None),
}
"""A small problem for every method that has loops, and some that have none."""

ONE_PROGRAM = {"Erasure", "SymmetricSets", "MergedPartition", "LevelLP", "PolicyLP"}
CHOSEN = {type(choose(Problem.build(u, c), method)).__name__ for u, c, method in CASES.values()}
for kind in map(type, METHODS):
    if kind.__name__ not in CHOSEN | ONE_PROGRAM:  # a new method, whose docstring shows its problem
        shown = design_of(kind)
        CASES[kind.__name__] = shown.utility, shown.constraints, kind.default()

CUT = ("exchange", "branch and bound", "patterns", "estimation", "divergences between rows")
"""Some that one round does not settle, so that the clock below is not idle."""


@lru_cache
def in_full(name):
    """The design of a case without a limit, which looks at no clock."""
    utility, constraints, method = CASES[name]
    return optimal_channel(utility, constraints, method=method)


@pytest.fixture
def late(monkeypatch):
    """A clock on which every look takes a second, so that a limit of half a second ends each loop after one round."""
    now = [0.0]

    def look():
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(module, "monotonic", look)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("name", CASES)
def test_a_design_out_of_time_is_verified(name, late):
    """Out of time after one round, a design keeps its constraints, verifies, and claims no more than it proves."""
    utility, constraints, method = CASES[name]
    heard = []
    early = optimal_channel(utility, constraints, method=method, time_limit=0.5, progress=heard.append)
    assert early.verify()
    for guarantee, constraint in zip(early.guarantees, early.constraints, strict=True):
        assert guarantee.value <= constraint.bound
    assert early.lower_bound <= early.value <= early.upper_bound
    assert heard[-1] == 1.0
    assert all(0 <= a <= b <= 1 for a, b in pairwise([0.0, *heard]))
    full = in_full(name)
    # Both enclose the optimum, so they overlap.
    assert max(early.lower_bound, full.lower_bound) <= min(early.upper_bound, full.upper_bound) + 1e-12 * abs(
        full.value
    )
    if not early.certified:
        assert "the time limit of 0.5 s ended the search or its proof" in early.note
    if name in CUT:
        assert "time limit" in early.note
        assert early.relative_gap > 10 * full.relative_gap


def test_a_limit_that_is_far_away_changes_nothing():
    """With an hour to go the design is that of no limit, bit for bit, and nothing is said of time."""
    for name in ("exchange", "estimation", "integers"):
        utility, constraints, method = CASES[name]
        one = in_full(name)
        two = optimal_channel(utility, constraints, method=method, time_limit=3600, progress=lambda share: None)
        assert np.array_equal(one.channel.matrix, two.channel.matrix)
        assert (one.bound, one.note) == (two.bound, two.note)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("after", [1, 2])
def test_exceptions_of_the_listener_are_passed_on(name, after):
    """An exception of the caller's own cancels the work from within, however methods handle those of solvers."""
    utility, constraints, method = CASES[name]
    seen = []

    class Cancelled(Exception):
        pass

    def listen(share):
        seen.append(share)
        if len(seen) >= after:
            raise Cancelled

    try:
        optimal_channel(utility, constraints, method=method, progress=listen)
    except Cancelled:
        assert len(seen) == after
    else:
        assert len(seen) < after
        pytest.fail("the listener was not asked often enough to cancel")


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, "soon"])
def test_no_design_is_begun_with_a_limit_that_is_none(bad):
    """The limit is refused before the problem is looked at."""
    with pytest.raises(ValueError, match="time_limit"):
        optimal_channel(None, None, time_limit=bad)


class Fruitless(Method):
    """A method whose first round finds nothing."""

    reference = ""

    def refuses(self, problem):
        return ""

    def find(self, problem, ask):
        for number in problem.deadline.rounds(range(3)):
            if number == 1:
                return Candidate(np.ones((3, 1)), "the second round")
        raise SolverError("nothing yet")


def test_where_nothing_is_known_in_time_the_error_says_so(late):
    """A method that has no channel when the time is over ends in a `SolverError` that names the limit."""
    assert optimal_channel(SMALL, LocalDP(1.0), method=Fruitless(), certify=False).value == 0
    with pytest.raises(SolverError, match=r"time_limit: 0\.5 s were over before any channel was known.*nothing yet"):
        optimal_channel(SMALL, LocalDP(1.0), method=Fruitless(), time_limit=0.5)


def test_a_failure_within_time_is_passed_on_unchanged():
    """With time left, an error stays what it was."""

    class Failing(Fruitless):
        def find(self, problem, ask):
            raise SolverError("numbers too large")

    with pytest.raises(SolverError, match=r"^numbers too large$"):
        optimal_channel(SMALL, LocalDP(1.0), method=Failing(), time_limit=3600)


@pytest.mark.full
def test_branch_and_bound_uses_the_time_it_has():
    """Its default number of boxes is no limit where there is a limit of time: it goes on until the bound is met."""
    utility = Divergence(KL, np.arange(1, 6.0) / 15, np.arange(1, 6.0)[::-1] / 15)
    design = optimal_channel(utility, [LocalDP(4.0), Outputs(3)], time_limit=3600)
    assert design.certified


def test_every_method_is_looked_at():
    """The cases above choose each method of `METHODS` that has a loop of its own or asks for other designs."""
    chosen = {type(choose(Problem.build(u, c), method)).__name__ for u, c, method in CASES.values()}
    assert {type(method).__name__ for method in METHODS} <= chosen | ONE_PROGRAM


def test_near_designs_of_early_ones_prove_no_less_than_they_are_worth(late):
    """The proof of a design that was cut short is a proof of its neighbour's bound, no more."""
    early = optimal_channel(PAIR, [LocalDP(1.0), TotalVariation(0.2)], method=Exchange(), time_limit=0.5)
    next_one = optimal_channel(PAIR, [LocalDP(1.0), TotalVariation(0.21)], neighbor=early)
    assert next_one.certified


def test_many_inputs_are_proved_by_fewer_points_when_the_time_is_over(late):
    """A proof that looks at all pairs of thousands of inputs is left out for one by points that dominate them."""
    rng = np.random.default_rng(0)
    utility = Divergence(KL, *rng.dirichlet(np.ones(MAX_INPUTS_FAST_PROOF + 500), 2))
    early = optimal_channel(utility, [LocalDP(1.0), TotalVariation(0.3)], time_limit=0.5)
    assert early.certificate.points is not None
    assert len(early.certificate.points) < 1000
    assert early.relative_gap < 1e-3
    assert early.verify()
