"""Tables and outcomes."""

import math

import numpy as np
import pytest

from experiments.papers import EXPERIMENTS, Outcome, Table, experiment_named
from experiments.papers.laws import worst_pair
from experiments.papers.statements import Ends, bounded, decided, equal, outcome_of, refuted, vacuous
from ldpopt.errors import InvalidInput
from ldpopt.values.references import cited


def test_a_table_survives_csv():
    """Floats keep all digits, words stay words, absent cells stay absent."""
    table = Table(({"a": 0.1 + 0.2, "b": "x, y"}, {"a": 1e-300, "c": 2.0}))
    assert Table.from_csv(table.to_csv()) == table


def test_outcomes_follow_from_the_ratios():
    """Below one fails; a bound that is attained holds, one that is not holds loosely; without a number it fails."""
    assert outcome_of(np.array([1.0, 1.0])) is Outcome.HOLDS
    assert outcome_of(np.array([1.0, 1.2])) is Outcome.HOLDS
    assert outcome_of(np.array([1.1, 1.2])) is Outcome.LOOSELY
    assert outcome_of(np.array([1.0, 1.2]), np.array([1.1])) is Outcome.LOOSELY
    assert outcome_of(np.array([1.0, 1.2]), np.array([])) is Outcome.LOOSELY
    assert outcome_of(np.array([0.99, 1.2])) is Outcome.FAILS
    assert outcome_of(np.array([np.nan, 1.2])) is Outcome.FAILS
    assert outcome_of(np.array([])) is Outcome.FAILS


def test_verdicts_name_their_figures():
    """A sentence names quantities, blanks and dots included; arrays are recorded by both ends, hidden ones are not."""
    rows = Table(({"exact": 1.0, "claimed": 1.0, "at": 0.5}, {"exact": 2.0, "claimed": 5.0, "at": 3.0}))
    judge = bounded(
        "{Lemma 3.7, ε = 0.1:.2f|.3g}, {Lemma 3.7, ε = 0.1.count} at {_top[at]:g}: {_all}.",
        {"Lemma 3.7, ε = 0.1": "claimed / exact", "_equal": equal("exact / exact", 1e-9)},
        {"_top": lambda table: table.top("claimed / exact"), "rows": lambda table: len(table.rows)},
    )
    verdict = judge(rows)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.detail == "1.00 to 2.5, 2 at 3: Lemma 3.7, ε = 0.1 1 to 2.5."
    assert verdict.figures == {"Lemma 3.7, ε = 0.1, smallest": 1.0, "Lemma 3.7, ε = 0.1, largest": 2.5, "rows": 2}
    assert judge(Table(tuple(row | {"claimed": 0.5} for row in rows.rows))).outcome is Outcome.FAILS
    assert judge(Table(tuple(row | {"claimed": math.nan} for row in rows.rows))).outcome is Outcome.FAILS
    assert (Ends(np.array([])).low, Ends(np.array([])).high) == (math.inf, -math.inf)


def test_verdicts_that_are_decided_or_refuted():
    """A condition that is not true fails, NaN included; what should be refuted and is not says so."""
    for value, outcome in ((1e-12, Outcome.HOLDS), (1.0, Outcome.FAILS), (math.nan, Outcome.FAILS)):
        found = decided("{off:.0e}", {"off": value}, lambda figures: figures["off"] <= 1e-9)(Table(()))
        assert found.outcome is outcome
        wrong = refuted("{off:.0e}", {"off": value}, lambda figures: not figures["off"] <= 1e-9)(Table(()))
        assert (wrong.outcome is Outcome.FAILS) is (outcome is Outcome.FAILS)
    assert refuted("wrong", {}, lambda figures: False)(Table(())).detail == "No counterexample here."


def test_verdicts_that_are_vacuous():
    """A contradiction of the hypotheses makes a claim vacuous; without one, or with NaN, it does not hold."""
    for value, outcome in ((2.0, Outcome.VACUOUS), (0.5, Outcome.FAILS), (math.nan, Outcome.FAILS)):
        judge = vacuous("{least}", {"least": value}, lambda figures: figures["least"] > 1)
        assert judge(Table(())).outcome is outcome


def test_the_search_finds_a_known_extreme():
    """The largest total variation of two pairs of distributions is 1, at disjoint supports."""
    found = worst_pair(lambda p, q: float(np.abs(p - q).sum() / 2), 2, 2, 300)
    assert found["ratio"] == pytest.approx(1, abs=1e-3)


def test_names():
    """Every experiment is found by its name and cites a registered paper; another name is an error that lists them."""
    for name, experiment in EXPERIMENTS.items():
        assert experiment_named(name) is experiment
        assert experiment.name == name
        assert cited(experiment.source)
        assert set(experiment.quick) == set(experiment.full)
    with pytest.raises(InvalidInput, match="experiment: expected one of az-theorem-1, bs-appendices"):
        experiment_named("gi-theorem-99")


def test_a_row_that_is_named_is_the_first_of_those_that_are_tied():
    """Rounding does not decide which point a verdict names; the value is still the largest."""
    for order in (1, -1):
        table = Table(tuple({"x": float(x), "y": y} for x, y in enumerate([0.5, *[1.0, 1.0 + 2e-16][::order]])))
        assert table.row("y", np.argmax) == {"x": 1.0, "y": 1.0 + 2e-16}
        assert table.top(-table.column("y"))["x"] == 0.0
