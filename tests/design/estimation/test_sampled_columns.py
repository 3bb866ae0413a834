"""Designs for estimation with many categories: a bound that prices no column, and sets drawn near the best."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from ldpopt.design import AOptimal, DOptimal, FisherInformation, LocalDP, MVOptimal, TotalVariation, optimal_channel
from ldpopt.design.estimation.method import EstimationColumns
from ldpopt.design.estimation.method_variances import SampledColumns, equivalence_dual
from ldpopt.design.estimation.program import fisher_program
from ldpopt.design.estimation.program_dual import mirror_descent, survey_dual
from ldpopt.design.estimation.program_newton import survey_program
from ldpopt.design.estimation.staircase import StaircaseColumns
from ldpopt.design.kernel.sets import balanced_sets
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.criterion import criterion_at
from ldpopt.errors import InvalidInput


def uniform_optimum(k, epsilon):
    """The least sum of variances at a uniform pilot: subset selection of the best size (theory 3.6)."""
    e = math.exp(epsilon)
    return min((k - 1) ** 2 * (k + (e - 1) * s) ** 2 / ((e - 1) ** 2 * k * s * (k - s)) for s in range(1, k))


def skewed(k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("k", "epsilon"), [(3, 0.5), (5, 1.0), (8, 2.0), (10, 0.1)])
def test_no_channel_is_below_the_bound_without_pricing(seed, k, epsilon):
    """The semidefinite form pays for every pattern, listed one by one, and its bound is below the certified optimum."""
    p, e = skewed(k, seed), math.exp(epsilon)
    dual = survey_dual(p, e, np.ones(k))
    patterns = np.where(np.array(list(itertools.product((False, True), repeat=k))), e, 1.0)
    earned = np.einsum("ni,ij,nj->n", patterns, dual.form, patterns)
    assert (earned <= (patterns @ (2 * dual.shifts)) * (patterns @ p) * (1 + 1e-9)).all()
    best = optimal_channel(FisherInformation(p), LocalDP(epsilon), method=EstimationColumns())
    assert dual.bound - p @ p <= best.value * (1 + 1e-9)
    assert dual.bound - p @ p >= 0.5 * best.value


@pytest.mark.parametrize("weights", [None, [1.0, 4.0, 0.25, 1.0, 2.0, 1.0, 1.0]])
def test_the_kernel_proves_the_bound_from_the_numbers_alone(weights):
    """The certificate recomputes the bound from the numbers alone, in floats and in balls, for any positive weights."""
    p = skewed(7, 3)
    utility = FisherInformation(p, AOptimal(weights))
    best = optimal_channel(utility, LocalDP(1.0))
    factor = np.ones(7) if weights is None else np.sqrt(weights)
    dual = survey_dual(p, math.e, factor)
    made = equivalence_dual(Problem.build(utility, [LocalDP(1.0)]), best.channel, dual)
    w = factor**2
    # Centred at the pilot the same form proves a little more.
    assert dual.bound - w @ p**2 <= made.bound * (1 + 1e-12) <= best.value * (1 + 1e-12)
    assert made.verify(exact=True)
    for forged in (dual.shifts * 0.999, dual.shifts - 1e-3 * dual.shifts.max()):
        other = replace(dual, shifts=forged)
        assert not equivalence_dual(made, best.channel, other).bound > best.value


@pytest.mark.parametrize(("k", "epsilon"), [(26, 0.5), (40, 1.0), (60, 2.0)])
def test_a_uniform_pilot_has_its_closed_form_between_the_ends(k, epsilon):
    """Value and bound enclose the error of the best subset selection, which no channel beats."""
    design = optimal_channel(FisherInformation(np.full(k, 1 / k)), LocalDP(epsilon))
    best = uniform_optimum(k, epsilon)
    assert design.lower_bound <= best * (1 + 1e-12)
    assert design.value >= best * (1 - 1e-12)
    assert design.relative_gap < 3e-3
    assert design.verify()


@pytest.mark.full
@pytest.mark.parametrize(("k", "epsilon"), [(32, 1.0), (48, 0.5)])
def test_skewed_pilots_are_certified(k, epsilon):
    """Certified to one respondent in a thousand; the channel is within epsilon and the value is its own."""
    p = skewed(k)
    design = optimal_channel(FisherInformation(p), LocalDP(epsilon))
    q = design.channel.matrix
    covariance = np.linalg.inv((q / (p @ q)) @ q.T) - np.outer(p, p)
    assert design.certified
    assert "mirror descent" in design.method
    assert design.value == pytest.approx(np.trace(covariance), rel=1e-8)
    assert float(np.log(q.max(axis=0) / q.min(axis=0)).max()) <= epsilon


@pytest.mark.parametrize("criterion", [AOptimal(), AOptimal(1.0 + np.arange(9)), DOptimal()], ids=lambda c: c.name)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 8.0])
def test_newtons_method_agrees_with_the_cone_program(criterion, epsilon):
    """Over the same columns both have one optimum, and Newton's prices prove it for columns that were left out, too."""
    p = skewed(9, 2)
    columns = StaircaseColumns(9, epsilon)
    heights = columns.start()
    newton = survey_program(criterion, p, columns.values(heights), 1e-9)
    cone = fisher_program(criterion, [p], columns.values(heights), epsilon, None)
    reached = [criterion_at(criterion, columns.values(heights).T * one.theta, p) for one in (newton, cone)]
    assert reached[0] == pytest.approx(reached[1], rel=1e-6, abs=1e-6)
    assert columns.values(heights).T @ newton.theta == pytest.approx(np.ones(9), abs=1e-8)
    design = optimal_channel(FisherInformation(p, criterion), LocalDP(epsilon))
    assert design.certified
    assert design.verify()
    assert design.value <= reached[0] + 1e-6 * abs(reached[0])


def test_weights_of_a_mixture_make_exact_rows():
    """Rows sum to one however few steps are taken; columns that cannot make them do not make a mixture."""
    p, e = skewed(12), math.e
    dual = survey_dual(p, e, np.ones(12))
    sets = balanced_sets(p, dual.squares, dual.target, e, 500, np.random.default_rng(0))
    assert not sets.all(axis=1).any()
    assert sets.any(axis=1).all()
    share = dual.squares / dual.squares.sum()
    assert np.abs(1 + (e - 1) * sets @ share - 2 * e / (e + 1)).max() <= (e - 1) * share.max()
    columns = np.where(np.vstack([sets, np.eye(12, dtype=bool)]), e, 1.0)
    columns /= (columns @ p)[:, None]
    few, many = (mirror_descent(columns, np.ones(12), steps, 1e-9) for steps in (6, 200))
    for weights in (few, many):
        assert weights.min() >= 0
        assert columns.T @ weights == pytest.approx(np.ones(12), abs=1e-12)
    worse, better = (np.trace(np.linalg.inv((columns * w[:, None]).T @ columns)) for w in (few, many))
    assert dual.bound <= better < worse
    assert mirror_descent(columns[:3], np.ones(12), 20, 1e-9) is None


@pytest.mark.parametrize(
    ("utility", "constraints", "words"),
    [
        (FisherInformation(np.ones(20) / 20), [LocalDP(1.0)], "priced"),
        (FisherInformation(np.ones(257) / 257), [LocalDP(1.0)], "at most 256"),
        (FisherInformation(np.ones(30) / 30, MVOptimal()), [LocalDP(1.0)], "sum of variances"),
        (FisherInformation(np.ones(30) / 30), [LocalDP(1.0), TotalVariation(0.1)], "total variation"),
        (FisherInformation(np.ones(30) / 30), [LocalDP(13.0)], "above 12"),
        (FisherInformation(np.append(np.ones(30) / 30, 0.0)), [LocalDP(1.0)], "never occurs"),
    ],
)
def test_unsupported_problems_are_refused_with_a_reason(utility, constraints, words):
    """The reason names the limit that a problem exceeds."""
    with pytest.raises(InvalidInput, match=words):
        optimal_channel(utility, constraints, method=SampledColumns())


def test_a_cap_that_does_not_bind_is_no_obstacle():
    """TotalVariation(0.9) says nothing beyond epsilon = 1 [GI, Prop 2]."""
    p = skewed(26)
    plain = optimal_channel(FisherInformation(p), LocalDP(1.0))
    capped = optimal_channel(FisherInformation(p), [LocalDP(1.0), TotalVariation(0.9)])
    assert capped.value == plain.value
    assert capped.verify()
