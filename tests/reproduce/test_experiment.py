"""Tables and outcomes."""

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.references import cited
from ldpopt.reproduce import EXPERIMENTS, Outcome, Table, experiment_named
from ldpopt.reproduce.laws import worst_pair
from ldpopt.reproduce.statements import agreement, outcome_of


def test_a_table_survives_csv():
    """Floats keep all digits, words stay words, absent cells stay absent."""
    table = Table(({"a": 0.1 + 0.2, "b": "x, y"}, {"a": 1e-300, "c": 2.0}))
    assert Table.from_csv(table.to_csv()) == table


def test_outcomes():
    """Below one fails, at one holds, above holds loosely; no ratio or no number at all fails."""
    assert outcome_of(np.array([1.0, 1.0])) is Outcome.HOLDS
    assert outcome_of(np.array([1.0, 1.2])) is Outcome.LOOSELY
    assert outcome_of(np.array([0.99, 1.2])) is Outcome.FAILS
    assert outcome_of(np.array([np.nan, 1.2])) is Outcome.FAILS
    assert outcome_of(np.array([])) is Outcome.FAILS
    assert agreement(np.array([1e-12]), 1e-9) is Outcome.HOLDS
    assert agreement(np.array([np.nan]), 1e-9) is Outcome.FAILS


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
