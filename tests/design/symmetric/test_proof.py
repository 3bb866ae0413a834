"""The symmetric envelope: its bound is that of independent programs, and no number pushes it below the optimum."""

import contextlib
import json
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

import ldpopt_check
from ldpopt.channel import Channel
from ldpopt.design import (
    AOptimal,
    COptimal,
    DOptimal,
    FisherInformation,
    LocalDP,
    MutualInformation,
    MVOptimal,
    SymmetricEnvelope,
    TotalVariation,
    optimal_channel,
)
from ldpopt.design.files import design_text
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.numbers.enclosures import EXACT, FLOAT

CRITERIA = [AOptimal(), AOptimal([3.0] * 6), DOptimal(), MVOptimal()]


def information(columns):
    mean = columns.mean(axis=0)
    return (columns * np.log(columns / mean)).mean(axis=0)


def trace(columns):
    mean = columns.mean(axis=0)
    return ((columns / mean - 1) ** 2).sum(axis=0) * mean


def full_program(k, epsilon, eta, worth):
    """(optimum, price of the cap) of the linear program over all 2^k patterns and all caps of pairs."""
    sets = (np.arange(2**k - 1)[:, None] >> np.arange(k)) & 1
    columns = np.where(sets.T == 1, math.exp(epsilon), 1.0)
    x, y = np.nonzero(~np.eye(k, dtype=bool))
    found = linprog(
        -worth(columns),
        A_ub=np.maximum(columns[x] - columns[y], 0.0),
        b_ub=np.full(len(x), eta),
        A_eq=columns,
        b_eq=np.ones(k),
        method="highs",
    )
    return -found.fun, max(0.0, float(-found.ineqlin.marginals.sum()))


def criterion_of(criterion, k, most):
    """The criterion of information that is spread evenly over all contrasts, computed from the covariance itself."""
    centred = np.eye(k) - 1 / k
    return criterion.value(centred * (k - 1) / most)


@pytest.mark.parametrize("k", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("share", [0.15, 0.4, 0.7, 0.95, 2.0])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_best_slope_proves_the_full_program(k, share, epsilon):
    """With the program's own price of the cap, the bound is the optimum over all patterns, for both utilities."""
    eta = min(share * math.tanh(epsilon / 2), 1.0)
    constraints = (LocalDP(epsilon), TotalVariation(eta))
    best, price = full_program(k, epsilon, eta, information)
    for arithmetic in (FLOAT, EXACT):
        bound = SymmetricEnvelope(MutualInformation(np.full(k, 1 / k)), constraints, None, price).bound_in(arithmetic)
        assert best * (1 - 1e-9) <= bound.value <= best * (1 + 1e-7)
    best, price = full_program(k, epsilon, eta, trace)
    for criterion in CRITERIA:
        if k != 6 and criterion is CRITERIA[1]:
            continue
        made = SymmetricEnvelope(FisherInformation(np.full(k, 1 / k), criterion), constraints, None, price)
        truth = criterion_of(criterion, k, best)
        assert made.bound <= truth + 1e-9 * abs(truth)
        assert made.bound == pytest.approx(truth, rel=1e-7, abs=1e-7)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("seed", range(12))
def test_no_slope_pushes_the_bound_below_the_optimum(seed):
    """The least bound over all slopes, by a search and at the ends of floats, is the optimum and never less."""
    rng = np.random.default_rng(seed)
    k, epsilon = int(rng.integers(3, 8)), float(rng.uniform(0.1, 4.0))
    eta = float(rng.choice([0.02, 0.1, 0.3, 0.99, 1.0])) * math.tanh(epsilon / 2)
    constraints = (LocalDP(epsilon), TotalVariation(eta))
    best, price = full_program(k, epsilon, eta, information)
    slopes = [0.0, 5e-324, 1e-300, 1e300, 1.7e308, *(price * rng.uniform(0.5, 2.0, 40)), *rng.exponential(size=20)]
    for utility, least in (
        (MutualInformation(np.full(k, 1 / k)), best),
        (MutualInformation([*np.full(k, 1 / k), 0.0, 0.0]), best),
    ):
        bounds = [SymmetricEnvelope(utility, constraints, None, float(slope)).bound for slope in slopes]
        assert min(bounds) >= least * (1 - 1e-9)
    best, price = full_program(k, epsilon, eta, trace)
    for criterion in (AOptimal(), DOptimal(), MVOptimal()):
        posed = FisherInformation(np.full(k, 1 / k), criterion)
        bounds = [SymmetricEnvelope(posed, constraints, None, float(slope)).bound for slope in [*slopes, price]]
        truth = criterion_of(criterion, k, best)
        assert max(bounds) <= truth + 1e-9 * abs(truth)


@pytest.mark.parametrize(
    ("utility", "constraints", "slope", "why"),
    [
        (MutualInformation([0.3, 0.7]), (LocalDP(1.0),), 0.0, "not even"),
        (FisherInformation([0.25] * 4, COptimal([1, 0, 0, 0])), (LocalDP(1.0),), 0.0, "not even|alike"),
        (FisherInformation([0.25] * 4, AOptimal([1, 1, 1, 2.0])), (LocalDP(1.0),), 0.0, "alike"),
        (FisherInformation([0.25] * 4, MVOptimal(np.eye(4))), (LocalDP(1.0),), 0.0, "alike"),
        (FisherInformation([0.25] * 4), (TotalVariation(0.3),), 0.0, "LocalDP"),
        (FisherInformation([0.25] * 4), (LocalDP(1.0),), -1.0, "slope"),
        (FisherInformation([0.25] * 4), (LocalDP(1.0),), math.nan, "slope"),
        (FisherInformation([0.25] * 4), (LocalDP(1.0),), math.inf, "slope"),
        (FisherInformation([0.25] * 4), (LocalDP(1.0),), "1", "slope"),
        (FisherInformation([0.25] * 4), (LocalDP(1.0),), None, "slope"),
    ],
)
def test_other_problems_and_numbers_prove_nothing(utility, constraints, slope, why):
    """A prior that is not even, a criterion that prefers an answer, no epsilon, or a bad slope: a reason, no bound."""
    with pytest.raises(Unproved, match=why):
        SymmetricEnvelope(utility, constraints, None, slope).proved(FLOAT)


@pytest.mark.parametrize("k", [10, 1000, 10_000])
def test_the_bound_is_had_at_any_size(k):
    """The envelope of up to ten thousand answers, tight for the closed form without a cap."""
    for epsilon in (1e-3, 1.0, 20.0, 700.0):
        ratio = math.expm1(epsilon)
        size = np.arange(1, k, dtype=float)
        mean = k / ratio + size
        made = SymmetricEnvelope(MutualInformation(np.full(k, 1 / k)), (LocalDP(epsilon),), None, 0.0)
        inside = size * math.exp(epsilon) / ratio / mean
        best = (inside * epsilon - np.log(mean * ratio / k)).max()
        assert made.bound == pytest.approx(best, rel=1e-6, abs=1e-12)


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    ("utility", "constraints"),
    [
        (MutualInformation([0.1] * 10), [LocalDP(1.0), TotalVariation(0.2)]),
        (MutualInformation([0.1] * 10 + [0.0]), [LocalDP(2.0)]),
        (FisherInformation([0.1] * 10), [LocalDP(1.0), TotalVariation(0.2)]),
        (FisherInformation([0.1] * 10, AOptimal([2.0] * 10)), [LocalDP(1.0)]),
        (FisherInformation([0.1] * 10, DOptimal()), [LocalDP(1.0), TotalVariation(0.1)]),
        (FisherInformation([0.1] * 10, MVOptimal()), [LocalDP(3.0)]),
    ],
)
def test_both_programs_prove_a_file_and_refuse_a_better_one(utility, constraints):
    """The second checker finds the same bound, to 12 digits; slopes that are changed give worse bounds, or none."""
    design = optimal_channel(utility, constraints)
    assert type(design.certificate) is SymmetricEnvelope
    document = json.loads(design_text(design))
    result = ldpopt_check.check(document)
    assert result.failures == []
    ends = sorted(result.bound)
    stated = design.lower_bound if utility.error else design.upper_bound
    assert ends[0] - 1e-11 * abs(stated) <= stated <= ends[1] + 1e-11 * abs(stated)
    for slope in (0.0, design.certificate.slope * 1.3, design.certificate.slope + 1.0):
        document["certificate"]["slope"] = slope
        worse = ldpopt_check.check(document)
        if slope != design.certificate.slope:
            assert worse.failures
            assert (max(worse.bound) <= ends[1]) if utility.error else (min(worse.bound) >= ends[0])
    for bad in (-1.0, "1", None, [0.0]):
        document["certificate"]["slope"] = bad
        with contextlib.suppress(ldpopt_check.BadInput):
            assert ldpopt_check.check(document).failures


@pytest.mark.full
def test_the_envelope_is_monotone_in_both_limits():
    """More epsilon or eta never lowers the best bound over slopes."""

    def best(epsilon, eta):
        posed = MutualInformation([0.1] * 10)
        slopes = np.linspace(0, 3, 301)
        return min(SymmetricEnvelope(posed, (LocalDP(epsilon), TotalVariation(eta)), None, a).bound for a in slopes)

    for first, second in pairwise([(0.5, 0.05), (0.5, 0.1), (1.0, 0.1), (1.0, 0.3), (2.0, 0.3)]):
        assert best(*first) <= best(*second) * (1 + 1e-12)
    assert Channel(np.full((10, 1), 1.0)).shape == (10, 1)
