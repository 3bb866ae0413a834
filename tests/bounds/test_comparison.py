"""`bounds.compare`: every bound on its side of the exact optimum, and tight where the papers say so."""

import contextlib
import csv
import io
import math

import numpy as np
import pytest

from ldpopt import Divergence, InvalidInput, LocalDP, bounds, frontier, optimal_channel
from ldpopt.bounds.textbook import _named, textbook
from ldpopt.divergences import KL, TOTAL_VARIATION, FDivergence
from ldpopt.privacy import local_dp


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


def test_csv_and_text_hold_all_bounds():
    """The CSV holds every row with its looseness; the text names each divergence once with all its bounds."""
    table = bounds.compare([0.9, 0.1], [0.4, 0.6], 1.0, 0.3)
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [float(row["looseness"]) for row in rows] == [row.looseness for row in table]
    text = repr(table)
    assert text.count("optimum") == 9
    assert text.count("exact") + text.count(" times  ") == len(table)
    assert "[AZ] Asoodeh, Zhang: Contraction of Locally" in text
    assert table._repr_html_().count("<tr>") == len(table) + 1


QUESTION = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])


def test_a_comparison_over_a_grid_agrees_with_the_frontier():
    """Every row of a point is on its side of the optimum there, which is that of `frontier`, with its mechanisms."""
    table = bounds.compare(QUESTION, [0.5, 2.0], [0.1, 0.4, None])
    grid = frontier(QUESTION, [0.5, 2.0], [0.1, 0.4, 1.0])
    assert table.points == tuple((row.epsilon, row.eta) for row in grid)
    assert [limits[0] for limits in table.limits] == [0.5] * 2 + [2.0] * 3  # tanh(0.25) < 0.4, and all above are one
    designs = dict(zip(table.limits, table.designs, strict=True))
    for (epsilon, eta), row in zip(table.points, grid, strict=True):
        design = designs[epsilon, min(eta, math.tanh(epsilon / 2))]
        these = {r.reference: r for r in table.rows_at(epsilon, eta)}
        assert all(r.looseness >= 1 - 1e-7 and r.certified for r in these.values())
        assert design.value == pytest.approx(row.optimum, rel=1e-9)
        assert these["binary mechanism"].value == pytest.approx(row.binary_with_erasure, rel=1e-9)
        assert these["randomized response"].value == pytest.approx(row.randomized_response_with_erasure, rel=1e-9)
        assert these["[GI, Thm 8]"].value == pytest.approx(row.erased_optimum, rel=1e-9)
    assert set(these) >= {"subset selection, best size [YB]", "Hadamard response [HR]", "[AZ, Thm 1]"}
    assert len(repr(table).splitlines()) < 60


def test_a_divergence_of_one_s_own_has_the_bounds_that_hold_for_all():
    """Dobrushin's bound and the erased optimum hold for every f; a single number is a grid of one point."""
    own = FDivergence(lambda t: (t - 1) ** 2 / (t + 1))
    table = bounds.compare(Divergence(own, QUESTION.p0, QUESTION.p1), 1.0, 0.3)
    references = [row.reference for row in table]
    assert references[:2] == ["every test at once [ADC]", "[Dobrushin]"]
    assert "[GI, Thm 8]" in references
    assert all(row.looseness >= 1 - 1e-6 for row in table)


def test_the_tightest_comes_first():
    """Upper bounds rise and lower bounds fall within a block, and the two never cross."""
    for row in (rows := bounds.compare(QUESTION, 1.0, 0.3).rows)[1:]:
        before = rows[rows.index(row) - 1]
        assert before.above >= row.above
        assert before.above != row.above or (before.value <= row.value) == row.above or before.value == row.value
    assert rows[0].exact


def test_infinite_bounds_have_no_factor():
    """Where P1 lacks an answer the whole divergence is infinite: those bounds are named together, without a ratio."""
    table = bounds.compare(Divergence(KL, [0.5, 0.3, 0.2], [0.3, 0.7, 0.0]), 1.0)
    endless = {row.reference for row in table if row.looseness is None}
    assert endless == {"[AZ, Thm 1]", "contraction by both limits [OP; CRS]", "[Dobrushin]"}
    assert "infinite: " in repr(table)
    assert "inf " not in repr(table) + table._repr_html_().replace("infinite", "")
    nothing = bounds.compare(QUESTION, 1.0, 0.0)
    assert {row.looseness for row in nothing} <= {1.0, None}
    assert "nan" not in repr(nothing)


def test_caps_that_limit_nothing_are_one_block():
    """Every eta from tanh(epsilon/2) on, and None, share their rows, which the text says."""
    table = bounds.compare(QUESTION, 1.0, [0.5, 0.9, None])
    assert table.limits == [(1.0, math.tanh(0.5))]
    assert table.points == ((1.0, 0.5), (1.0, 0.9), (1.0, 1.0))
    assert table.rows_at(1.0, 0.7) == table.rows == bounds.compare(QUESTION, 1.0).rows
    assert "every eta from 0.462117" in repr(table)


def test_bits_are_nats_divided_by_log_2():
    """A bit is log 2 nats, for divergences with a logarithm alone; bounds stay on their side."""
    nats, bits = (bounds.compare(QUESTION, 1.0, 0.2, unit=unit) for unit in ("nats", "bits"))
    for one, other in zip(nats, bits, strict=True):
        assert (one.unit, other.unit) == ("nats", "bits")
        assert other.value == pytest.approx(one.value / math.log(2), rel=1e-14)
        assert (other.value * math.log(2) >= one.value) if one.above else (other.value * math.log(2) <= one.value)
    assert " bits" in repr(bits)
    mixed = {row.divergence: row.unit for row in bounds.compare([0.9, 0.1], [0.4, 0.6], 1.0, unit="bits")}
    assert mixed["KL divergence"] == "bits"
    assert mixed["chi-squared divergence"] == ""
    with pytest.raises(InvalidInput, match="unit: expected 'nats', as the total variation is a pure number"):
        bounds.compare(Divergence(TOTAL_VARIATION, QUESTION.p0, QUESTION.p1), 1.0, unit="bits")
    with pytest.raises(InvalidInput, match="unit: expected one of nats, bits"):
        bounds.compare(QUESTION, 1.0, unit="ban")


def test_a_long_grid_is_printed_in_few_lines():
    """Sixty limits are printed in fewer than 65 lines; the CSV has every row."""
    table = bounds.compare(QUESTION, [0.5, 1.0, 2.0], [i / 20 for i in range(21)])
    assert len(repr(table).splitlines()) < 70
    assert len(table.to_csv().splitlines()) == len(table) + 1 > 600


@pytest.mark.parametrize("k", [2, 3, 6])
def test_textbook_mechanisms_are_epsilon_ldp_and_below_the_optimum(k):
    """Each is private as the question demands, and keeps no more than the certified bound."""
    rng = np.random.default_rng(k)
    for epsilon in (0.01, 1.0, 4.0):
        question = Divergence(KL, rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k)))
        best = optimal_channel(question, LocalDP(epsilon)).upper_bound
        for makers in _named(question, epsilon).values():
            for make in makers:
                with contextlib.suppress(InvalidInput):
                    assert local_dp(make()).value <= epsilon * (1 + 1e-12)
        kept = list(textbook(question, epsilon))
        assert len({each.name for each in kept}) >= 8
        assert all(0 < each.value <= best for each in kept)
        assert all(each.under(0.0) == 0 for each in kept)


@pytest.mark.full
def test_a_grid_is_drawn_in_three_pictures():
    """The frontier, the gap of the binary mechanism, and the gap to the tightest bound, side by side."""
    table = bounds.compare(QUESTION, [0.5, 1.0], [0.1, 0.4])
    drawn = [one.get_xlabel() for one in table.plot().figure.axes]
    assert drawn[:3] == ["cap η on total variation", "ε (nats)", "ε (nats)"]


def test_bad_levels_and_equal_populations_are_refused():
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


@pytest.mark.parametrize(("epsilon", "eta"), [(700.0, 1e-300), (700.0, 1.0), (1e-9, 1e-12)])
def test_limits_at_the_ends_of_floats(epsilon, eta):
    """A share that is below all floats bounds nothing, and no bound is below the optimum."""
    question = Divergence(KL, [1 - 1e-12, 1e-12, 0.0], [1e-12, 1 - 2e-12, 1e-12])
    table = bounds.compare(question, [epsilon], [eta])
    assert all(row.value >= row.optimum for row in table.rows if row.above)
