"""Bounds from products of the limits of two inputs: below every channel, and tight where one question is the best."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from ldpopt.design import FisherInformation, LocalDP, Marginals, load_design, optimal_channel
from ldpopt.design.estimation.prices import Charges
from ldpopt.design.estimation.program_paired import paired_dual
from ldpopt.design.estimation.relaxation import Relaxation
from ldpopt.numbers.enclosures import EXACT, FLOAT


def random_pilot_problem(shape, seed=1, spread=4.0):
    rng = np.random.default_rng(seed)
    criterion = Marginals(shape)
    prior = criterion.pilot(*(rng.dirichlet(np.full(k, spread)) for k in shape))
    factor = criterion.factor(len(prior))
    return criterion, prior, factor - prior @ factor


def alone(shape, prior, epsilon):
    """One question at random, each by its own best channel: the squared sum of the roots of their own errors."""
    cells = np.asarray(prior).reshape(shape)
    roots = []
    for j in range(len(shape)):
        shares = cells.sum(axis=tuple(i for i in range(len(shape)) if i != j))
        roots.append(math.sqrt(optimal_channel(FisherInformation(shares), LocalDP(epsilon), certify=False).value))
    return sum(roots) ** 2


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    ("shape", "epsilon"),
    [((2, 2, 2), 0.2), ((2, 2, 2), 2.5), ((2, 2, 3), 1.0), ((3, 4), 0.2), ((3, 4), 2.5), ((2, 2, 2, 2), 1.0)],
)
def test_no_column_earns_more_than_its_price(shape, epsilon):
    """|K S|^2 <= (p.S)(lambda.S) for every one of the 2^k staircase patterns, computed one by one."""
    _, prior, factor = random_pilot_problem(shape)
    ratio = math.exp(epsilon)
    found = paired_dual(prior, ratio, factor, 1e-6, shape)
    columns = np.where(np.array(list(itertools.product((False, True), repeat=len(prior)))), ratio, 1.0)
    earned, paid = ((columns @ found.kernel.T) ** 2).sum(axis=1), (columns @ prior) * (columns @ found.rows)
    assert (earned <= paid + 1e-9 * found.rows.sum()).all()
    assert found.bound == pytest.approx(np.trace(found.kernel @ factor) ** 2 / found.rows.sum(), rel=1e-6)
    for arithmetic in (FLOAT, EXACT):
        charges = Charges.from_kernel(arithmetic.of(found.kernel), prior, found.rows, np.zeros((len(prior),) * 2))
        assert found.relaxed.gain_bound(charges, arithmetic.of(epsilon)) <= 1e-8 * found.rows.sum()


@pytest.mark.full(but=3)
@pytest.mark.parametrize(("m", "epsilon"), [(2, 0.3), (3, 1.0), (4, 0.3), (5, 1.0)])
def test_one_yes_no_question_at_random_is_optimal_at_uneven_shares(m, epsilon):
    """Up to epsilon of 1 the bound is met by one question at random, to one part in a million."""
    _, prior, factor = random_pilot_problem((2,) * m)
    found = paired_dual(prior, math.exp(epsilon), factor, 1e-7, (2,) * m)
    best = alone((2,) * m, prior, epsilon)
    assert best * (1 - 1e-6) <= found.bound <= best * (1 + 1e-9)


def test_the_paired_bound_is_at_most_the_certified_optimum():
    """Where pairs are not enough, the bound is below the optimum, and near it."""
    for shape, epsilon in (((2, 2, 2, 2), 2.0), ((3, 3), 0.5), ((2, 5), 3.0)):
        criterion, prior, factor = random_pilot_problem(shape)
        optimum = optimal_channel(FisherInformation(prior, criterion), LocalDP(epsilon))
        assert optimum.certified
        found = paired_dual(prior, math.exp(epsilon), factor, 1e-6, shape)
        assert 0.9 * optimum.value < found.bound <= optimum.value * (1 + 1e-9)


@pytest.mark.full
def test_hostile_numbers_give_a_bound_or_none():
    """Shares of 1e-9, and tiny and large epsilons: None, or a relaxation that proves what it says."""
    criterion = Marginals((2, 2, 2))
    for shares, epsilon in (([1e-9, 1 - 1e-9], 1.0), ([0.3, 0.7], 1e-5), ([0.3, 0.7], 18.0), ([1e-3, 0.999], 6.0)):
        prior = criterion.pilot(shares, [0.5, 0.5], [0.2, 0.8])
        factor = criterion.factor(8)
        found = paired_dual(prior, math.exp(epsilon), factor - prior @ factor, 1e-6, (2, 2, 2))
        if found is not None and np.isfinite(found.bound):
            best = optimal_channel(FisherInformation(prior, criterion), LocalDP(epsilon)).value
            charges = Charges.from_kernel(FLOAT.of(found.kernel), prior, found.rows, np.zeros((8, 8)))
            most = found.relaxed.gain_bound(charges, FLOAT.of(epsilon))
            told = np.trace(found.kernel @ (factor - prior @ factor)) ** 2 / (found.rows.sum() + most)
            assert told <= best * (1 + 1e-9)


@pytest.mark.full
def test_sixty_four_cells_are_proved_and_come_back_from_a_file(tmp_path):
    """Six yes/no questions at uneven shares and epsilon 1 are certified; the file proves it, and not more."""
    criterion, prior, _ = random_pilot_problem((2,) * 6)
    design = optimal_channel(FisherInformation(prior, criterion), LocalDP(1.0))
    assert design.certified
    assert design.value <= alone((2,) * 6, prior, 1.0) * (1 + 1e-6)
    assert isinstance(design.certificate.relaxed, Relaxation)
    design.save(tmp_path / "six.json")
    back = load_design(tmp_path / "six.json")
    assert back.verify()
    relaxed = back.certificate.relaxed
    assert replace(back.certificate, relaxed=relaxed).bound_in(FLOAT).value == pytest.approx(design.lower_bound)
    for wrong in (None, 0.9 * relaxed.products, -relaxed.products, 2 * relaxed.products, relaxed.products * np.nan):
        told = replace(back.certificate, relaxed=replace(relaxed, products=wrong)).bound_in(FLOAT)
        assert told.reason or told.value < 0.999 * design.lower_bound


@pytest.mark.full
def test_more_than_sixty_four_cells_are_certified_to_one_part_in_a_thousand():
    """Seven yes/no questions at epsilon 1."""
    criterion, prior, _ = random_pilot_problem((2,) * 7)
    design = optimal_channel(FisherInformation(prior, criterion), LocalDP(1.0))
    assert design.certified
    assert design.relative_gap < 1e-3
    assert design.value <= alone((2,) * 7, prior, 1.0) * (1 + 1e-3)
