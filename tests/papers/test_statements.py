"""Experiments made of inequalities are judged as their numbers say, and never hold by default."""

import math

import numpy as np
import pytest

from experiments.papers.experiment import Outcome, Subject, Table
from experiments.papers.statements import Part, judged


def table(*sides, part="a"):
    """Rows of one part with these exact and claimed values."""
    return Table(tuple({"part": part, "exact": exact, "claimed": claimed} for exact, claimed in sides))


@pytest.mark.parametrize(
    ("sides", "outcome"),
    [
        ([(1.0, 2.0), (0.5, 0.5)], Outcome.HOLDS),
        ([(1.0, 2.0), (-3.0, -1.0)], Outcome.LOOSELY),
        ([(1.0, 2.0), (2.1, 2.0)], Outcome.FAILS),
        ([(-1.0, -2.0)], Outcome.FAILS),
        ([(0.0, 0.0)], Outcome.LOOSELY),  # zero on both sides says nothing of tightness
        ([(math.nan, 1.0)], Outcome.FAILS),
        ([(1.0, math.nan)], Outcome.FAILS),
        ([(math.inf, 1.0)], Outcome.FAILS),
        ([(1e-300, 2e-300)], Outcome.LOOSELY),
        ([(2e-300, 1e-300)], Outcome.FAILS),
        ([], Outcome.FAILS),
    ],
)
def test_an_inequality_fails_where_it_is_violated(sides, outcome):
    """It fails where it is violated, where a side is no number and without rows; it holds only where it is attained."""
    assert judged(Part("a"))(table(*sides)).outcome is outcome


@pytest.mark.parametrize(("exact", "holds"), [(1.0, True), (1.0 + 1e-12, True), (1.01, False), (0.99, False)])
def test_an_equality_fails_on_either_side(exact, holds):
    """A violation on either side fails."""
    found = judged(Part("a", equal=True))(table((exact, 1.0)))
    assert found.outcome is (Outcome.HOLDS if holds else Outcome.FAILS)


def test_a_lower_bound_above_the_exact_value_fails():
    """The claimed value must not exceed the exact one."""
    part = Part("a", lower=True)
    assert judged(part)(table((2.0, 1.0))).outcome is Outcome.LOOSELY
    assert judged(part)(table((1.0, 2.0))).outcome is Outcome.FAILS


def test_a_false_part_is_named_with_its_place_and_subject():
    """One false part is enough; the verdict says which, where, and that it is a step of a proof."""
    parts = Part("fine"), Part("wrong", Subject.STEP, cells=("epsilon",))
    rows = Table(
        (*table((1.0, 2.0), part="fine").rows, {"part": "wrong", "exact": 3.0, "claimed": 2.0, "epsilon": 0.5})
    )
    verdict = judged(*parts)(rows)
    assert verdict.outcome is Outcome.FAILS
    assert "Fine: holds" in verdict.detail
    assert "Wrong (step of a proof): fails in 1 of 1 case; the exact value is 3 at epsilon = 0.5" in verdict.detail
    assert np.isfinite(list(verdict.figures.values())).all()
    assert judged(*parts)(table((1.0, 2.0), part="fine")).outcome is Outcome.FAILS  # the other part was not computed
