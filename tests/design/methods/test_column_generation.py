"""Tests of `ldpopt.design.column_generation`: the pattern program without enumeration."""

import pytest
from design_problems import DIVERGENCES, ORACLE, constraints, utility

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import ApproximateLDP, ColumnGeneration, Exchange
from ldpopt.errors import InvalidInput


@pytest.mark.parametrize("number", range(0, len(ORACLE), 7))
def test_oracle_instances(number):
    """Column generation finds the optimum of brute force to 1e-7, proved, with and without a TV cap."""
    instance = ORACLE[number]
    for name in ("kl", "total_variation", "hockey_stick_1_5", "squared_hellinger"):
        problem = Divergence(DIVERGENCES[name], instance["p0"], instance["p1"])
        for key, caps in (
            ("optimum", constraints(instance["epsilon"], instance["eta"])),
            ("optimum_without_eta", constraints(instance["epsilon"])),
        ):
            design = optimal_channel(problem, caps, method=ColumnGeneration())
            exact = max(instance[key][name], 0.0)
            assert design.value == pytest.approx(exact, rel=1e-7, abs=1e-12)
            assert design.upper_bound == pytest.approx(exact, rel=1e-7, abs=1e-12)
            assert design.verify()


@pytest.mark.parametrize(("k", "epsilon", "eta"), [(25, 1.0, 0.2), (25, 4.0, 0.6), (60, 1.5, None), (60, 1.5, 0.3)])
def test_it_meets_the_partition(k, epsilon, eta):
    """Column generation, which knows nothing of partitions, finds the value of sort-partition-randomize."""
    problem, caps = utility(k, k), constraints(epsilon, eta)
    design = optimal_channel(problem, caps, method=ColumnGeneration())
    assert design.value == pytest.approx(optimal_channel(problem, caps, certify=False).value, rel=1e-7)
    assert design.certified
    assert ("minimum cuts" in design.method) == (eta is not None)
    assert ("sweep of signs" in design.method) == (eta is None)


def test_it_meets_the_exchange():
    """Two routes with nothing in common but the problem: column generation and exchange agree to 1e-7."""
    problem, caps = utility(20, 4), constraints(1.0, 0.2)
    values = [optimal_channel(problem, caps, method=method).value for method in (ColumnGeneration(), Exchange())]
    assert values[0] == pytest.approx(values[1], rel=1e-7)


def test_nothing_to_keep():
    """Where the optimum is 0 the channel is constant and certified."""
    design = optimal_channel(utility(5, 2, DIVERGENCES["hockey_stick_1_5"]), LocalDP(0.1), method=ColumnGeneration())
    assert (design.value, design.certified) == (0.0, True)
    design = optimal_channel(utility(5, 2), constraints(1.0, 0.0), method=ColumnGeneration())
    assert (design.value, design.certified) == (0.0, True)


def test_few_rounds_make_a_looser_bound_not_a_wrong_one():
    """Stopped early, the bound is above the optimum."""
    problem, caps = utility(50, 1), constraints(1.0, 0.2)
    best = optimal_channel(problem, caps)
    early = optimal_channel(problem, caps, method=ColumnGeneration(rounds=1))
    assert early.value <= best.upper_bound
    assert early.upper_bound >= best.value


@pytest.mark.parametrize("bad", [dict(rounds=0), dict(accuracy=0.0), dict(rounds=1.5)])
def test_sensible_settings(bad):
    """Rounds are a positive integer, accuracy is positive."""
    with pytest.raises(InvalidInput):
        ColumnGeneration(**bad)


@pytest.mark.parametrize(
    ("problem", "caps", "message"),
    [
        (utility(4, 0), [TotalVariation(0.2)], "ColumnGeneration: it needs a LocalDP"),
        (utility(4, 0), [ApproximateLDP(1.0, 0.1)], "ColumnGeneration: it takes LocalDP and TotalVariation"),
        (utility(201, 0), [LocalDP(1.0)], "at most 200"),
    ],
)
def test_what_it_does_not_take(problem, caps, message):
    """Other constraints and more inputs are refused with a reason."""
    with pytest.raises(InvalidInput, match=message):
        optimal_channel(problem, caps, method=ColumnGeneration())
