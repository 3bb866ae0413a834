"""Tests of `ldpopt.design.candidate`: too large programs are refused in words, before they are posed."""

import tracemalloc

import networkx as nx
import numpy as np
import pytest

from ldpopt.design import (
    AgainstSet,
    AOptimal,
    ApproximateLDP,
    ConcentratedLDP,
    COptimal,
    Divergence,
    DOptimal,
    Exchange,
    ExpectedLoss,
    FisherInformation,
    Hull,
    LocalDP,
    LocalSearch,
    MutualInformation,
    MVOptimal,
    Outputs,
    PrivateSampling,
    RenyiLDP,
    TotalVariation,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.design.candidate import pairs_of
from ldpopt.design.problems.problem import Problem
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput

CONSTRAINTS = {
    "pure": lambda k: [LocalDP(1.0)],
    "pure and variation": lambda k: [LocalDP(1.0), TotalVariation(0.2)],
    "approximate": lambda k: [ApproximateLDP(1.0, 0.01)],
    "Renyi": lambda k: [RenyiLDP(2.0, 0.5)],
    "concentrated": lambda k: [ConcentratedLDP(0.2)],
    "path": lambda k: [LocalDP(1.0, nx.path_graph(k))],
    "variation": lambda k: [TotalVariation(0.3)],
    "two outputs": lambda k: [LocalDP(1.0), Outputs(2)],
    "two outputs, approximate": lambda k: [ApproximateLDP(1.0, 0.01), Outputs(2)],
}
PAIRED = ["approximate", "Renyi", "concentrated"]
NOT_PURE = [*PAIRED, "path"]


def utilities(k):
    p, q, r = np.random.default_rng(k).dirichlet(np.ones(k), 3)
    divergence = Divergence(KL, p, q)
    return {
        "divergence": lambda: divergence,
        "information": lambda: MutualInformation(p),
        "worst": lambda: WorstOf(KL, p, [q, r]),
        "sum": lambda: WeightedSum([1.0, 2.0], [divergence, MutualInformation(p)]),
        "set": lambda: AgainstSet(KL, p, Hull([q, r])),
        "loss": lambda: ExpectedLoss(p, 1 - np.eye(k)),
        "sampling": lambda: PrivateSampling(KL, [p, q]),
        "A": lambda: FisherInformation(p, AOptimal()),
        "D": lambda: FisherInformation(p, DOptimal()),
        "MV": lambda: FisherInformation(p, MVOptimal()),
        "c": lambda: FisherInformation(p, COptimal(np.arange(k) / k)),
    }


COLUMNS, FISHER = ["information", "worst", "sum"], ["A", "D", "MV", "c"]
REFUSED = [
    *(
        (k, u, c)
        for k in (150, 1000)
        for u in ("divergence", "set")
        for c in PAIRED
        if (u, c) != ("divergence", "approximate")
    ),
    *((k, "set", "variation") for k in (150, 1000)),
    (1000, "set", "path"),
    *((k, u, c) for k in (150, 1000) for u in COLUMNS[1:] for c in ("pure", "pure and variation")),
    *((k, u, c) for k in (150, 1000) for u in COLUMNS for c in NOT_PURE if (k, c) != (1000, "path")),
    *((50, u, "approximate") for u in COLUMNS),
    *((k, "loss", c) for k in (150, 1000) for c in (*PAIRED, "variation", "pure and variation")),
    *((1000, "loss", c) for c in ("pure", "path")),
    *((1000, "sampling", c) for c in ("pure", "pure and variation", *PAIRED, "variation")),
    *((k, u, c) for k in (50, 150, 1000) for u in FISHER[1:] for c in ("pure and variation", "path")),
    *((k, u, "pure") for k in (50, 150, 1000) for u in FISHER[1:3]),
    *((k, "c", "pure") for k in (150, 1000)),
    *((k, "A", c) for k in (50, 150, 1000) for c in ("pure and variation", "path")),
    (1000, "A", "pure"),
    *((1000, u, "two outputs, approximate") for u in ("divergence", *COLUMNS)),
]


@pytest.mark.full(but=40)
@pytest.mark.parametrize(("k", "utility", "constraints"), REFUSED, ids=lambda one: str(one))
def test_problems_too_large_for_memory_are_refused_early(k, utility, constraints):
    """A sentence says what is too large, and no more memory is taken than for lists of all pairs of 1000 inputs."""
    made = utilities(k)[utility]()
    posed = CONSTRAINTS[constraints](k)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=r"at most \d+|too large"):
            optimal_channel(made, posed)
        assert tracemalloc.get_traced_memory()[1] < 5e8
    finally:
        tracemalloc.stop()


@pytest.mark.full(but=1)
@pytest.mark.parametrize("constraint", [ApproximateLDP(1.0, 0.01), RenyiLDP(2.0, 0.5), TotalVariation(0.1)])
def test_pairs_of_very_many_inputs_are_not_listed(constraint):
    """A million inputs have 10^12 pairs, which are counted without being listed, and refused."""
    p = np.full(10**6, 1e-6)
    utility = MutualInformation(p)
    assert pairs_of(Problem.build(utility, [constraint, LocalDP(1.0)]), 10**6) == 10**6 * (10**6 - 1)
    with pytest.raises(InvalidInput, match="at most"):
        optimal_channel(utility, [constraint, LocalDP(1.0)])


def test_pairs_are_those_of_the_constraints():
    """All ordered pairs for (epsilon, delta), both ways along a path, none for a box of ratios."""
    p, q = np.random.default_rng(0).dirichlet(np.ones(9), 2)
    count = {
        name: pairs_of(Problem.build(Divergence(KL, p, q), CONSTRAINTS[name](9)), 9)
        for name in ("pure", "approximate", "path", "two outputs", "variation")
    }
    assert count == {"pure": 0, "approximate": 72, "path": 16, "two outputs": 0, "variation": 36}


@pytest.mark.parametrize("method", [Exchange(), LocalSearch(1)])
def test_a_named_method_refuses_too(method):
    """Naming the method does not lead past its limit; fewer outputs do, for a search."""
    utility = Divergence(KL, *np.random.default_rng(0).dirichlet(np.ones(150), 2))
    with pytest.raises(InvalidInput, match="at most"):
        optimal_channel(utility, ApproximateLDP(1.0, 0.01), method=method)
