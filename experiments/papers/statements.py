"""Experiments made of several inequalities, each a statement of the paper or a step of one of its proofs.

Their rows have the cells ``part`` (the name of the inequality), ``exact``, and ``claimed`` (a bound on the exact value,
or its claimed value).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, TypeAlias

import numpy as np

from experiments.papers.drawing import COLOURS, TEXT_WIDTH, finish
from experiments.papers.experiment import Cell, Experiment, Outcome, Row, Subject, Table, Verdict
from ldpopt.numbers.tolerances import CLAIM_ATTAINED, CLAIM_ROUNDING
from ldpopt.plots import label_text, panels
from ldpopt.values.distribution import Array


def outcome_of(*ratios: Array, tolerance: float = CLAIM_ATTAINED) -> Outcome:
    """Return the outcome for a claim that `ratios` (claimed / exact) are at least 1.

    It fails if a ratio is below 1, holds if each array of ratios attains 1, and holds loosely otherwise.
    """
    arrays = [np.ravel(part) for part in ratios]
    all_ratios = np.concatenate(arrays)
    if not len(all_ratios) or np.isnan(all_ratios).any() or all_ratios.min() < 1 - tolerance:
        return Outcome.FAILS
    attained = all(part.min(initial=np.inf) <= 1 + tolerance for part in arrays)
    return Outcome.HOLDS if attained else Outcome.LOOSELY


def holds_if(condition: object) -> Outcome:
    """Return `Outcome.HOLDS` or `Outcome.FAILS`."""
    return Outcome.HOLDS if condition else Outcome.FAILS


def off_by(values: Array) -> float:
    """Return the largest distance of ratios from 1."""
    return float(np.abs(values - 1).max())


class Ends:
    """Numbers of a verdict: recorded, and in its sentence shown, by the smallest and the largest of them.

    >>> f"{Ends(np.array([1.23456, 7.0])):.4f|.3g}"
    '1.2346 to 7'
    """

    def __init__(self, values: Array) -> None:
        self.values, self.count = values, len(values)
        self.low, self.high = float(np.min(values, initial=np.inf)), float(np.max(values, initial=-np.inf))

    def __format__(self, spec: str) -> str:
        low, _, high = spec.partition("|")
        return f"{self.low:{low or '.3g'}} to {self.high:{high or low or '.3g'}}"


Quantity: TypeAlias = str | float | Callable[[Table], Any]
"""A number, a column of the rows, a ratio ``"a / b"`` of two, or a function of the rows."""
Quantities: TypeAlias = Mapping[str, Quantity] | Callable[[Table], Mapping[str, Any]]


def positive(table: Table) -> Table:
    """Select the rows whose exact value is above 0."""
    return table.having(lambda row: row["exact"] > 0)


def among(quantity: Quantity, **where: Any) -> Callable[[Table], Any]:
    """Return a quantity of the rows with these cells, as in `Table.where`."""
    return lambda table: _value(table.where(**where), quantity)


def equal(quantity: str, tolerance: float, **where: Any) -> Callable[[Table], Array]:
    """Return 1 where a ratio among the rows with these cells is 1 up to a tolerance, else 0."""
    return lambda table: np.where(np.abs(among(quantity, **where)(table) - 1) < tolerance, 1.0, 0.0)


class _Sentence(Formatter):
    """Formats a sentence whose fields are names with blanks and dots, and perhaps an attribute or a cell of them."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        name = max((name for name in kwargs if field_name.startswith(name)), key=len)
        return super().get_field(f"0{field_name.removeprefix(name)}", (kwargs[name],), {})


def verdict(outcome: Outcome, detail: str, values: Mapping[str, Any]) -> Verdict:
    """Build the verdict whose sentence names numbers in braces, as for `str.format`.

    Numbers named ``_...`` are not recorded. An array is shown and recorded as `Ends`.
    """
    printable = {name: Ends(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}
    figures: dict[str, float] = {}
    for name, value in printable.items():
        ends = (
            {f"{name}, smallest": value.low, f"{name}, largest": value.high}
            if isinstance(value, Ends)
            else {name: value}
        )
        figures |= {} if name.startswith("_") else ends
    return Verdict(outcome, _Sentence().vformat(detail, (), printable), figures)


def computed(table: Table, quantities: Quantities | None) -> dict[str, Any]:
    """Compute the quantities of a table by name."""
    if quantities is None or callable(quantities):
        return {} if quantities is None else dict(quantities(table))
    return {name: _value(table, quantity) for name, quantity in quantities.items()}


def _value(table: Table, quantity: Quantity) -> Any:
    return table.values(quantity) if isinstance(quantity, str) else quantity(table) if callable(quantity) else quantity


def bounded(
    detail: str, ratios: Quantities, figures: Quantities | None = None, tolerance: float = CLAIM_ATTAINED
) -> Callable[[Table], Verdict]:  # fmt: skip
    """Return the `judge` of a claim that `ratios` are at least 1, as in `outcome_of`.

    `detail`, `figures` : as in `verdict`. In the sentence ``_all`` is replaced by all ratios, each after its name.
    """

    def judge(table: Table) -> Verdict:
        values = computed(table, ratios)
        summary = ", ".join(
            f"{name} {Ends(value):.4g|.3g}" for name, value in values.items() if not name.startswith("_")
        )
        outcome = outcome_of(*values.values(), tolerance=tolerance)
        return verdict(outcome, detail, {**values, "_all": summary, **computed(table, figures)})

    return judge


def decided(detail: str, figures: Quantities, holds: Callable[[dict[str, Any]], Any]) -> Callable[[Table], Verdict]:
    """Return the `judge` of a claim that holds if `holds` is true of the figures."""

    def judge(table: Table) -> Verdict:
        values = computed(table, figures)
        return verdict(Outcome.HOLDS if holds(values) else Outcome.FAILS, detail, values)

    return judge


def refuted(
    detail: str, figures: Quantities, is_refuted: Callable[[dict[str, Any]], Any], otherwise: Outcome = Outcome.LOOSELY
) -> Callable[[Table], Verdict]:  # fmt: skip
    """Return the `judge` of a claim that fails if `is_refuted` is true of the figures."""

    def judge(table: Table) -> Verdict:
        values = computed(table, figures)
        failed = is_refuted(values)
        return verdict(*((Outcome.FAILS, detail) if failed else (otherwise, "No counterexample here.")), values)

    return judge


def vacuous(
    detail: str, figures: Quantities, contradictory: Callable[[dict[str, Any]], Any]
) -> Callable[[Table], Verdict]:  # fmt: skip
    """Return the `judge` of a claim whose hypotheses may contradict each other.

    They do if `contradictory` is true of the figures. Without a contradiction the outcome is `Outcome.FAILS`: this
    judge sees no inequality that could hold.
    """

    def judge(table: Table) -> Verdict:
        values = computed(table, figures)
        if contradictory(values):
            return verdict(Outcome.VACUOUS, detail, values)
        return verdict(Outcome.FAILS, "No contradiction here, and no inequality was computed.", values)

    return judge


@dataclass(frozen=True)
class Part:
    """One inequality of an experiment: `exact` is at most `claimed` in the rows whose ``part`` is `name`.

    - `subject` : its role in the paper.
    - `equal`, `lower` : True if an equality, or a bound from below, is claimed.
    - `cells` : the cells that a sentence about a violation names.
    - `tolerance` : relative to the larger side or to `floor`.
    """

    name: str
    subject: Subject = Subject.STATEMENT
    equal: bool = False
    lower: bool = False
    cells: tuple[str, ...] = ()
    tolerance: float = CLAIM_ROUNDING
    floor: float = 1e-300

    def __call__(self, exact: float, claimed: float, **cells: Cell) -> Row:
        """Return a row of this inequality, with further cells."""
        return {"part": self.name, **cells, "exact": exact, "claimed": claimed}

    def rows_of(self, table: Table) -> Table:
        """Select the rows of this inequality."""
        return table.where(part=self.name)

    def sides(self, rows: Table) -> tuple[Array, Array]:
        """Return the side that is claimed to be smaller, and the other side."""
        exact, claimed = rows.column("exact"), rows.column("claimed")
        return (claimed, exact) if self.lower else (exact, claimed)

    def excess(self, rows: Table) -> Array:
        """Compute the relative violation of the inequality by each row; NaN and infinity violate it."""
        exact, claimed = self.sides(rows)
        size = np.maximum(np.maximum(np.abs(exact), np.abs(claimed)), self.floor)
        with np.errstate(invalid="ignore"):
            excess = np.where(exact == claimed, 0.0, (exact - claimed) / size)
        excess = np.abs(excess) if self.equal else excess
        return np.where(np.isnan(excess), np.inf, excess)

    def holds(self, rows: Table) -> bool:
        """Return True if there are rows and none violates the inequality."""
        return bool(len(rows.rows)) and bool((self.excess(rows) <= self.tolerance).all())

    def nearest(self, rows: Table) -> float:
        """Return the largest violation (negative if none) among rows not 0 on both sides."""
        smaller, larger = self.sides(rows)
        return float(self.excess(rows)[(smaller != 0) | (larger != 0)].max(initial=-1.0))

    def attained(self, rows: Table) -> bool:
        """Return True if some row attains the bound. Equalities count as attained."""
        return self.equal or self.nearest(rows) >= -CLAIM_ATTAINED

    def words(self, rows: Table) -> str:
        """Format the sentence of the verdict."""
        subject_text = self.name if self.subject is Subject.STATEMENT else f"{self.name} ({self.subject.value})"
        subject_text = subject_text[0].upper() + subject_text[1:] if subject_text[0].isascii() else subject_text
        excess = self.excess(rows)
        cases, tightness = f"{len(excess)} case{'s' * (len(excess) != 1)}", f"{1 + self.nearest(rows):.4f}"
        if not len(excess):
            return f"{subject_text}: not computed"
        if not self.holds(rows):
            top = rows.top(excess)
            location = ", ".join(f"{name} = {_formatted(top[name])}" for name in self.cells if name in top)
            claimed_value = f"{float(top['claimed']):.6g}"
            claim_text = (
                f"equality with {claimed_value} is printed" if self.equal else f"the printed bound is {claimed_value}"
            )
            return (
                f"{subject_text}: fails in {int((excess > self.tolerance).sum())} of {cases}; the exact value is "
                f"{float(top['exact']):.6g}{f' at {location}' if location else ''}, where {claim_text}"
            )
        if self.equal:
            return f"{subject_text}: holds, an equality to {excess.max():.1g} in {cases}"
        if self.attained(rows):
            return f"{subject_text}: holds in {cases}, and is attained"
        bound_text = (
            f"the bound is at most {tightness} of the exact value"
            if self.lower
            else f"at most {tightness} of the bound"
        )
        return f"{subject_text}: holds in {cases}, where {bound_text}{'' if self.lower else ' is reached'}"


def judged(*parts: Part, ending: str | Callable[[Table], str] = "") -> Callable[[Table], Verdict]:
    """Return the `judge` of an experiment with these parts."""

    # It fails if one part fails, and holds if all are attained.
    def judge(table: Table) -> Verdict:
        rows = {part: part.rows_of(table) for part in parts}
        all_hold = all(part.holds(cases) for part, cases in rows.items())
        attained = all_hold and all(part.attained(cases) for part, cases in rows.items())
        last = ending(table) if callable(ending) else ending
        detail = ". ".join(part.words(cases) for part, cases in rows.items()) + "." + (f" {last}" if last else "")
        return Verdict(
            (Outcome.HOLDS if attained else Outcome.LOOSELY) if all_hold else Outcome.FAILS, detail,
            {f"{part.name}, largest excess over the bound": float(part.excess(cases).max(initial=-np.inf))
             for part, cases in rows.items()},
        )  # fmt: skip

    return judge


def drawing_of(parts: Sequence[Part], title: str) -> Callable[[Table], Any]:
    """Return the `draw` of such an experiment: the distance of every case from its bound."""

    def draw(table: Table) -> Any:
        (ax,) = panels((TEXT_WIDTH,), 1.0 + 0.36 * len(parts))
        for row, part in enumerate(parts):
            excess = part.excess(part.rows_of(table))
            is_violated = excess > part.tolerance
            place = row + 0.25 * np.sin(2.4 * np.arange(len(excess)))  # points are spread, so that many remain visible
            ax.plot(excess[~is_violated], place[~is_violated], "o", ms=3.5, mfc="none", color=COLOURS[0], ls="")
            ax.plot(excess[is_violated], place[is_violated], "D", ms=4, color=COLOURS[1], ls="")
        ax.plot([], [], "o", ms=3.5, mfc="none", color=COLOURS[0], label="as claimed")
        ax.plot([], [], "D", ms=4, color=COLOURS[1], label="violated")
        ax.axvline(0, color="0.3", lw=1)
        ax.set_yticks(range(len(parts)), [label_text(part.name, 52) for part in parts])
        ax.set_ylim(len(parts) - 0.5, -0.5)
        low, high = ax.get_xlim()
        ax.set_xlim(min(low, -0.12), max(high, 0.06))
        finish(ax, title, "relative distance from the bound (equalities: at 0)", "", "beside")
        return ax

    return draw


def _formatted(cell: float | str) -> str:
    return cell if isinstance(cell, str) else f"{cell:.4g}"


def claim(
    name: str, source: str, *parts: Part, title: str = "", ending: str | Callable[[Table], str] = "",
    judge: Callable[[Table], Verdict] | None = None, draw: Callable[[Table], Any] | None = None, **named: Any,
) -> Callable[[Callable[..., Row | Iterable[Row]]], Experiment]:  # fmt: skip
    """Build an `Experiment` of the function that measures a claim.

    The docstring of the function is the sentence of the claim.

    - `parts` : the claimed inequalities; they are `judged` and `drawn` unless `judge` and `draw` are given.
    - `title` : the title of the figure.
    - `ending` : a last sentence of the verdict, or a function from the rows to it.
    - `named` : the other fields of `Experiment`.
    """

    def experiment(measure: Callable[..., Row | Iterable[Row]]) -> Experiment:
        return Experiment(
            name, source, " ".join((measure.__doc__ or "").split()), measure=measure,
            judge=judge or judged(*parts, ending=ending), draw=draw or drawing_of(parts, title), **named,
        )  # fmt: skip

    return experiment
