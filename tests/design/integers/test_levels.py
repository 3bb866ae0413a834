"""First channels of integers with two entries in each column."""

import math

import numpy as np
import pytest

from ldpopt import Denominator, LocalDP, TotalVariation
from ldpopt.design import AOptimal, FisherInformation, Rounded, optimal_channel
from ldpopt.design.integers.levels import level_starts
from ldpopt.design.integers.task import Task
from ldpopt.design.integers.worth import worth_of
from ldpopt.design.problems.problem import Problem

UNEVEN = np.random.default_rng(5).dirichlet(np.ones(10)) * 0.95 + 0.005


@pytest.mark.parametrize(
    ("epsilon", "eta", "total"), [(0.5, None, 100), (2.0, None, 100), (2.0, 0.3, 100), (1, 0.2, 36)]
)
def test_starts_have_two_entries_in_each_column_and_meet_the_constraints(epsilon, eta, total):
    utility = FisherInformation(UNEVEN)
    limits = [LocalDP(epsilon), *([TotalVariation(eta)] if eta else [])]
    optimum = optimal_channel(utility, limits, certify=False).channel
    task = Task.from_problem(Problem.build(utility, [*limits, Denominator(total)]))
    starts = list(level_starts(task, worth_of(task), optimum.matrix))
    assert starts
    for weights in starts:
        assert (weights.sum(axis=1) == total).all()
        assert task.allows(weights)
        assert np.linalg.matrix_rank(weights) == 10
        low = int(weights.min())
        others = ~np.isin(weights, [low, math.floor(low * math.exp(epsilon))])
        assert others.sum(axis=1).max() <= 1  # That of the rest, if D is not a sum of the two


@pytest.mark.parametrize("matrix", [np.eye(10), np.full((10, 3), 1 / 3), np.zeros((10, 2))])
def test_a_channel_that_prefers_no_answers_or_has_zeros_gives_no_start(matrix):
    task = Task.from_problem(Problem.build(FisherInformation(UNEVEN), [LocalDP(1.0), Denominator(100)]))
    assert list(level_starts(task, worth_of(task), matrix)) == []


@pytest.mark.parametrize(("epsilon", "loss"), [(0.5, 0.30), (1.0, 0.16), (2.0, 0.15)])
@pytest.mark.parametrize("pilot", [np.full(10, 0.1), UNEVEN])
def test_sheets_of_ten_answers_lose_little(pilot, epsilon, loss):
    """Ratios of integers near e^epsilon: 8/5, 8/3 and 7/1 for these."""
    utility = FisherInformation(pilot, AOptimal())
    optimum = optimal_channel(utility, LocalDP(epsilon), certify=False)
    limits = [LocalDP(epsilon), Denominator(100)]
    made = optimal_channel(utility, limits, method=Rounded(optimum.channel), certify=False)
    assert made.channel.matrix.min() > 0
    assert math.isfinite(made.value)
    assert optimum.value <= made.value <= optimum.value * (1 + loss)


def test_a_channel_with_more_reports_than_the_denominator_is_a_start():
    """Sheets for 24 cells, whose channel has hundreds of reports."""
    utility = FisherInformation(np.full(24, 1 / 24))
    optimum = optimal_channel(utility, LocalDP(2.0), certify=False)
    assert optimum.channel.shape[1] > 36
    made = optimal_channel(utility, [LocalDP(2.0), Denominator(100)], method=Rounded(optimum.channel), certify=False)
    assert made.value <= 1.35 * optimum.value


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("total", "loss"), [(1000, 0.04), (10_000, 0.01), (100_000, 0.005)])
def test_fine_denominators_lose_hardly_anything(total, loss):
    utility = FisherInformation(UNEVEN)
    optimum = optimal_channel(utility, LocalDP(1.0), certify=False)
    limits = [LocalDP(1.0), Denominator(total)]
    made = optimal_channel(utility, limits, method=Rounded(optimum.channel), certify=False)
    assert made.value <= optimum.value * (1 + loss)
