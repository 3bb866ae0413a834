"""`bounds.compare`: every bound on its side of the exact optimum, and tight where the papers say so."""

import csv
import io
import math

import numpy as np
import pytest

from ldpopt import Divergence, InvalidInput, bounds, frontier
from ldpopt.divergences import KL, TOTAL_VARIATION, FDivergence


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("share", [None, 0.4])
def test_no_bound_is_on_the_wrong_side(epsilon, share):
    """Every published bound holds for the exact optimum: those above lie above it, Theorem 8 below."""
    rng = np.random.default_rng(12)
    for k in (2, 5):
        p0, p1 = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
        table = bounds.compare(p0, p1, epsilon, None if share is None else share * math.tanh(epsilon / 2))
        assert len({row.divergence for row in table}) == 9
        for row in table:
            assert row.certified
            assert row.looseness >= 1 - 1e-6


def test_total_variation_attains_its_bounds():
    """[GI, Thm 4-5] The optimum of total variation is tanh(eps/2) TV without a cap and eta TV under one."""
    p0, p1 = [0.5, 0.3, 0.2], [0.1, 0.4, 0.5]
    free, capped = bounds.compare(p0, p1, 1.0), bounds.compare(p0, p1, 1.0, 0.2)
    (row,) = [row for row in free if "KOV14" in row.reference and row.divergence == TOTAL_VARIATION.name]
    assert row.value == pytest.approx(math.tanh(0.5) * 0.4, rel=1e-12)
    assert row.looseness == pytest.approx(1, rel=1e-9)
    (row,) = [row for row in capped if row.reference == "[GI, Thm 5]"]
    assert row.value == pytest.approx(0.08, rel=1e-12)
    assert row.looseness == pytest.approx(1, rel=1e-9)


def test_theorem_8_is_tight_without_a_cap():
    """[GI, Thm 8] Without a binding eta the erased optimum is the optimum; with one it may fall short of it."""
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    assert all(r.looseness == pytest.approx(1) for r in bounds.compare(p0, p1, 1.0, 0.9) if not r.above)
    short = [r.looseness for r in bounds.compare(p0, p1, 1.0, 0.3) if not r.above]
    assert max(short) > 1.1


def test_the_table_as_csv_and_text():
    """The CSV holds every row with its looseness; the text names each divergence once with all its bounds."""
    table = bounds.compare([0.9, 0.1], [0.4, 0.6], 1.0, 0.3)
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [float(row["looseness"]) for row in rows] == [row.looseness for row in table]
    text = repr(table)
    assert text.count("optimum") == 9
    assert text.count("times off") == len(table)
    assert table._repr_html_().count("<tr>") == len(table) + 1


QUESTION = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])


def test_one_question_over_a_grid():
    """Every row of a point is on its side of the optimum there, which is that of `frontier`, with its mechanisms."""
    table = bounds.compare(QUESTION, [0.5, 2.0], [0.1, 0.4, None])
    grid = frontier(QUESTION, [0.5, 2.0], [0.1, 0.4, 1.0])
    assert [limits[0] for limits in table.limits] == [0.5] * 3 + [2.0] * 3
    for (epsilon, eta), row, design in zip(table.limits, grid, table.designs, strict=True):
        these = {r.reference: r for r in table if (r.epsilon, r.eta) == (epsilon, eta)}
        assert all(r.looseness >= 1 - 1e-7 and r.certified for r in these.values())
        assert design.value == pytest.approx(row.optimum, rel=1e-9)
        assert these["binary mechanism"].value == pytest.approx(row.binary_with_erasure, rel=1e-9)
        assert these["randomized response"].value == pytest.approx(row.randomized_response_with_erasure, rel=1e-9)
        assert these["[GI, Thm 8]"].value == pytest.approx(row.erased_optimum, rel=1e-9)
    assert set(these) >= {"subset selection, best size", "truncated geometric", "best constant [SPR]", "[AZ, Thm 1]"}
    assert "at epsilon 0.5, eta 0.4: optimum" in repr(table)


def test_a_divergence_of_one_s_own_has_the_bounds_that_hold_for_all():
    """Dobrushin's bound and the erased optimum hold for every f; a single number is a grid of one point."""
    own = FDivergence(lambda t: (t - 1) ** 2 / (t + 1))
    table = bounds.compare(Divergence(own, QUESTION.p0, QUESTION.p1), 1.0, 0.3)
    references = [row.reference for row in table]
    assert references[:2] == ["[Dobrushin]", "[GI, Thm 8]"]
    assert all(row.looseness >= 1 - 1e-6 for row in table)


def test_a_grid_is_drawn_in_three_pictures():
    """The frontier, the gap of the binary mechanism, and the gap to the tightest bound, side by side."""
    table = bounds.compare(QUESTION, [0.5, 1.0], [0.1, 0.4])
    drawn = [one.get_xlabel() for one in table.plot().figure.axes]
    assert drawn[:3] == ["cap η on total variation", "ε (nats)", "ε (nats)"]


def test_bad_input():
    """A bad epsilon, eta or population is an error, and so are two equal populations."""
    for arguments in (
        ([1, 0], [1, 0], 1),
        ([1, 0], [0, 1], 0),
        ([1, 0], [0, 1], 1, 2),
        ([1, 1], [0, 1], 1),
        ([1, 0], [0, 0, 1], 1),
        (QUESTION, []),
        (QUESTION, 1.0, [0.3, 2.0]),
        (QUESTION, 0.0),
    ):
        with pytest.raises(InvalidInput):
            bounds.compare(*arguments)
