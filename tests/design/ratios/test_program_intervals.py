"""Tests of `ldpopt.design.interval_program`."""

import numpy as np
import pytest

from ldpopt.design.constraints.hockey_stick import HockeyStick, every_pair
from ldpopt.design.constraints.terms import Ratio
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.ratios.program import chord_gains, label_program, uniform_knots
from ldpopt.design.ratios.program_intervals import interval_program
from ldpopt.design.ratios.proof_chords import residual
from ldpopt.divergences import KL

PAIR = np.random.default_rng(3).dirichlet(np.ones(8), 2)
EDGES = np.arange(7)

CASES = {
    "approximate": (every_pair(8, 1.0, 0.05),),
    "approximate, none": (every_pair(8, 1.0, 0.0),),
    "capped": (Ratio(1.5), every_pair(8, 0.0, 0.3)),
    "path": (HockeyStick.from_pairs(np.append(EDGES, EDGES + 1), np.append(EDGES + 1, EDGES), np.log(2.0), 0.0),),
    "pure and approximate": (Ratio(2.0), every_pair(8, 1.0, 0.02), every_pair(8, 0.0, 0.4)),
}


def random_problem(count):
    p0, p1 = PAIR
    s = p0 / (p0 + p1)
    knots = uniform_knots(s.min(), s.max(), count)
    return knots, chord_gains(KL, Pair.from_distributions(p0, p1), knots).entries


def proved(gains, terms, solved):
    """The bound of the multipliers, and nothing else of the solution."""
    reduced, bound = gains - solved.rows, float(solved.rows.sum())
    for term, multiplier in zip(terms, solved.multipliers, strict=True):
        if not isinstance(term, Ratio):
            reduced = reduced - term.support(multiplier, len(gains), 8)
            bound += term.charge(multiplier)
    return bound + residual(reduced, min((t.ratio for t in terms if isinstance(t, Ratio)), default=np.inf))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", CASES)
def test_few_intervals_are_as_good_as_all(name):
    """Posed intervals and cells give the value of the whole program, a matrix within the terms, and its proof."""
    terms = CASES[name]
    knots, gains = random_problem(30)
    whole = label_program(gains, terms)
    solved, memory = interval_program(gains, terms, knots, None)
    assert solved.value == pytest.approx(whole.value, rel=1e-8)
    assert proved(gains, terms, solved) == pytest.approx(whole.value, rel=1e-8)
    assert (gains.T * solved.matrix).sum() == pytest.approx(whole.value, rel=1e-8)
    assert solved.matrix.sum(axis=1) == pytest.approx(np.ones(8))
    for term in terms:
        if isinstance(term, Ratio):
            assert (solved.matrix.max(axis=0) <= term.ratio * solved.matrix.min(axis=0) + 1e-8).all()
        else:
            assert term.excess(solved.matrix).max() <= 1e-8
    finer, gains = random_problem(40)
    again, _ = interval_program(gains, terms, finer, memory)
    assert again.value == pytest.approx(label_program(gains, terms).value, rel=1e-8)
    assert proved(gains, terms, again) == pytest.approx(again.value, rel=1e-8)
