"""Experiments made of several inequalities, each a statement of the paper or a step of one of its proofs.

Their rows have the cells ``part`` (the name of the inequality), ``exact``, and ``claimed`` (a bound on the exact value,
or its claimed value).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.reproduce.drawing import COLOURS, finish, frames
from ldpopt.reproduce.experiment import Cell, Experiment, Outcome, Row, Subject, Table, Verdict
from ldpopt.tolerances import CLAIM_ATTAINED, CLAIM_ROUNDING


@dataclass(frozen=True)
class Part:
    """One inequality of an experiment: `exact` is at most `claimed` (or equal) in the rows whose ``part`` is `name`.

    subject : its role in the paper. equal : whether an equality is claimed. lower : whether the claimed value is a
        lower bound.
    cells : the cells that a sentence about a violation names.
    tolerance : the accuracy of the two sides, relative to the larger one or to `floor`.
    """

    name: str
    subject: Subject = Subject.STATEMENT
    equal: bool = False
    lower: bool = False
    cells: tuple[str, ...] = ()
    tolerance: float = CLAIM_ROUNDING
    floor: float = 1e-300

    def __call__(self, exact: float, claimed: float, **cells: Cell) -> Row:
        """A row of this inequality, with further cells."""
        return {"part": self.name, **cells, "exact": exact, "claimed": claimed}

    def of(self, table: Table) -> Table:
        """The rows of this inequality."""
        return table.where(part=self.name)

    def sides(self, rows: Table) -> tuple[Array, Array]:
        """The side that is claimed to be smaller, and the side that is claimed to be larger."""
        exact, claimed = rows.column("exact"), rows.column("claimed")
        return (claimed, exact) if self.lower else (exact, claimed)

    def excess(self, rows: Table) -> Array:
        """The violation of the inequality by each row, relative to its larger side. NaN and infinity violate it."""
        exact, claimed = self.sides(rows)
        size = np.maximum(np.maximum(np.abs(exact), np.abs(claimed)), self.floor)
        with np.errstate(invalid="ignore"):
            excess = np.where(exact == claimed, 0.0, (exact - claimed) / size)
        excess = np.abs(excess) if self.equal else excess
        return np.where(np.isnan(excess), np.inf, excess)

    def holds(self, rows: Table) -> bool:
        """Whether there are rows and none violates the inequality."""
        return bool(len(rows.rows)) and bool((self.excess(rows) <= self.tolerance).all())

    def nearest(self, rows: Table) -> float:
        """The largest violation (negative if there is none) among rows that are not 0 on both sides."""
        smaller, larger = self.sides(rows)
        return float(self.excess(rows)[(smaller != 0) | (larger != 0)].max(initial=-1.0))

    def attained(self, rows: Table) -> bool:
        """Whether some row attains the bound. Equalities count as attained."""
        return self.equal or self.nearest(rows) >= -CLAIM_ATTAINED

    def words(self, rows: Table) -> str:
        """The sentence of the verdict."""
        said = self.name if self.subject is Subject.STATEMENT else f"{self.name} ({self.subject.value})"
        said = said[0].upper() + said[1:] if said[0].isascii() else said
        excess = self.excess(rows)
        if not len(excess):
            return f"{said}: not computed"
        if not self.holds(rows):
            top = rows.with_column("excess", excess).row("excess", np.argmax)
            where = ", ".join(f"{name} = {_shown(top[name])}" for name in self.cells if name in top)
            at = f" at {where}" if where else ""
            wrong = int((excess > self.tolerance).sum())
            relation = "where an equality is printed" if self.equal else "where the printed bound is"
            return (
                f"{said}: fails in {wrong} of {len(excess)} cases; the exact value is "
                f"{float(top['exact']):.6g}{at}, {relation} {float(top['claimed']):.6g}"
            )
        if self.equal:
            return f"{said}: holds, an equality to {excess.max():.1g} in {len(excess)} cases"
        if self.attained(rows):
            return f"{said}: holds in {len(excess)} cases, and is attained"
        share = 1 + self.nearest(rows)
        if self.lower:
            return f"{said}: holds in {len(excess)} cases, where the bound is at most {share:.4f} of the exact value"
        return f"{said}: holds in {len(excess)} cases, where at most {share:.4f} of the bound is reached"


def judged(*parts: Part, ending: str | Callable[[Table], str] = "") -> Callable[[Table], Verdict]:
    """The `judge` of an experiment with these parts. It fails if one part fails, and holds if all are attained."""

    def judge(table: Table) -> Verdict:
        rows = {part: part.of(table) for part in parts}
        held = all(part.holds(cases) for part, cases in rows.items())
        attained = held and all(part.attained(cases) for part, cases in rows.items())
        outcome = (Outcome.HOLDS if attained else Outcome.LOOSELY) if held else Outcome.FAILS
        last = ending(table) if callable(ending) else ending
        detail = ". ".join(part.words(cases) for part, cases in rows.items()) + "." + (f" {last}" if last else "")
        figures = {
            f"{part.name}, largest excess over the bound": float(part.excess(cases).max(initial=-np.inf))
            for part, cases in rows.items()
        }
        return Verdict(outcome, detail, figures)

    return judge


def drawn(parts: Sequence[Part], title: str) -> Callable[[Table], Any]:
    """The `draw` of such an experiment: a row for each inequality, with the distance of every case from its bound."""

    def draw(table: Table) -> Any:
        (ax,) = frames(1, 8.0, 1.3 + 0.55 * len(parts))
        for at, part in enumerate(parts):
            excess = part.excess(part.of(table))
            wrong = excess > part.tolerance
            place = at + 0.25 * np.sin(2.4 * np.arange(len(excess)))  # points are spread, so that many remain visible
            ax.plot(excess[~wrong], place[~wrong], "o", ms=3.5, mfc="none", color=COLOURS[0], ls="")
            ax.plot(excess[wrong], place[wrong], "D", ms=4, color=COLOURS[1], ls="")
        ax.plot([], [], "o", ms=3.5, mfc="none", color=COLOURS[0], label="as claimed")
        ax.plot([], [], "D", ms=4, color=COLOURS[1], label="violated")
        ax.axvline(0, color="0.3", lw=1)
        ax.set_yticks(range(len(parts)), [fill(part.name, 40) for part in parts], fontsize=8)
        ax.set_ylim(len(parts) - 0.5, -0.5)
        low, high = ax.get_xlim()
        ax.set_xlim(min(low, -0.12), max(high, 0.06))
        finish(ax, title, "relative distance from the bound (equalities: at 0)", "", None)
        ax.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
        return ax

    return draw


def _shown(cell: float | str) -> str:
    return cell if isinstance(cell, str) else f"{cell:.4g}"


def claim(
    name: str, source: str, *parts: Part, title: str = "", ending: str | Callable[[Table], str] = "",
    judge: Callable[[Table], Verdict] | None = None, draw: Callable[[Table], Any] | None = None, **named: Any,
) -> Callable[[Callable[..., Row | Iterable[Row]]], Experiment]:  # fmt: skip
    """Make an `Experiment` of the function that measures a claim; its docstring is the sentence that is claimed.

    parts : the inequalities that are claimed; they are `judged` and `drawn` unless `judge` and `draw` are given.
    title : of the picture. ending : a last sentence of the verdict, or a function from the rows to it. named : the
        other fields of `Experiment`.
    """

    def experiment(measure: Callable[..., Row | Iterable[Row]]) -> Experiment:
        return Experiment(
            name, source, " ".join((measure.__doc__ or "").split()), measure=measure,
            judge=judge or judged(*parts, ending=ending), draw=draw or drawn(parts, title), **named,
        )  # fmt: skip

    return experiment
