"""Experiments made of several inequalities: each is a statement of the paper, or a step of one of its proofs.

Their rows have the cells ``part`` (which inequality), ``exact`` and ``claimed`` (an upper bound on it, or an equal).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.reproduce.drawing import COLOURS, finish, frames
from ldpopt.reproduce.experiment import Experiment, Outcome, Subject, Table, Verdict

TOLERANCE = 1e-9
"""What the two sides may differ by, relatively, through rounding alone."""

ATTAINED = 1e-6
"""A bound counts as attained when the exact value comes this near, relatively."""


@dataclass(frozen=True)
class Part:
    """One inequality of an experiment: `exact` is at most `claimed` (or equal) in the rows whose ``part`` is `name`.

    subject : what it is to the paper. equal : an equality is claimed. lower : the claimed value is a lower bound.
    cells : the cells that say where it is violated.
    tolerance : the accuracy of the two sides, relative to the larger one or to `floor`.
    """

    name: str
    subject: Subject = Subject.STATEMENT
    equal: bool = False
    lower: bool = False
    cells: tuple[str, ...] = ()
    tolerance: float = TOLERANCE
    floor: float = 1e-300

    def sides(self, rows: Table) -> tuple[Array, Array]:
        """The side that is claimed to be the smaller one, and the larger."""
        exact, claimed = rows.column("exact"), rows.column("claimed")
        return (claimed, exact) if self.lower else (exact, claimed)

    def excess(self, rows: Table) -> Array:
        """By how much each row violates the inequality, in units of its larger side; NaN and infinity violate it."""
        exact, claimed = self.sides(rows)
        size = np.maximum(np.maximum(np.abs(exact), np.abs(claimed)), self.floor)
        with np.errstate(invalid="ignore"):
            excess = np.where(exact == claimed, 0.0, (exact - claimed) / size)
        excess = np.abs(excess) if self.equal else excess
        return np.where(np.isnan(excess), np.inf, excess)

    def holds(self, rows: Table) -> bool:
        """Whether no row violates it; without rows it does not."""
        return bool(len(rows.rows)) and bool((self.excess(rows) <= self.tolerance).all())

    def attained(self, rows: Table) -> bool:
        """Whether some row attains it; equalities are."""
        return self.equal or bool((self.excess(rows) >= -ATTAINED).any())

    def words(self, rows: Table) -> str:
        """The sentence of the verdict."""
        said = self.name if self.subject is Subject.STATEMENT else f"{self.name} ({self.subject.value})"
        excess = self.excess(rows)
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
        share = 1 + float(excess.max())
        if self.lower:
            return f"{said}: holds in {len(excess)} cases, where the bound is at most {share:.4f} of the exact value"
        return f"{said}: holds in {len(excess)} cases, where at most {share:.4f} of the bound is reached"


def judged(*parts: Part, ending: str | Callable[[Table], str] = "") -> Callable[[Table], Verdict]:
    """The `judge` of an experiment with these parts: it fails when one does, and holds when all are attained."""

    def judge(table: Table) -> Verdict:
        rows = {part: table.where(part=part.name) for part in parts}
        held = all(part.holds(found) for part, found in rows.items())
        attained = held and all(part.attained(found) for part, found in rows.items())
        outcome = (Outcome.HOLDS if attained else Outcome.LOOSELY) if held else Outcome.FAILS
        last = ending(table) if callable(ending) else ending
        detail = ". ".join(part.words(found) for part, found in rows.items()) + "." + (f" {last}" if last else "")
        figures = {
            f"{part.name}, largest excess over the bound": float(part.excess(found).max(initial=-np.inf))
            for part, found in rows.items()
        }
        return Verdict(outcome, detail, figures)

    return judge


def drawn(parts: Sequence[Part], title: str, unit: str, width: float = 5.8) -> Callable[[Table], Any]:
    """The `draw` of such an experiment: one side against the other; a point above the line is a violation."""

    def draw(table: Table) -> Any:
        (ax,) = frames(1, width, 4.7)
        ends: list[float] = []
        for at, part in enumerate(parts):
            rows = table.where(part=part.name)
            exact, claimed = part.sides(rows)
            shown = (exact > 0) & (claimed > 0) & np.isfinite(exact) & np.isfinite(claimed)
            wrong = shown & (part.excess(rows) > part.tolerance)
            right = shown & ~wrong
            style = {"color": COLOURS[at % 7], "ls": "", "ms": 5, "marker": "os^Dv*P"[at % 7]}
            ax.plot(claimed[right], exact[right], mfc="none", label=part.name, **style)
            if wrong.any():
                ax.plot(claimed[wrong], exact[wrong], label=f"{part.name}: violated", **style)
            ends += [*exact[shown], *claimed[shown]]
        low, high = min(ends) / 1.5, max(ends) * 1.5
        ax.plot([low, high], [low, high], color="0.5", lw=1, label="equal")
        ax.fill_between([low, high], [low, high], [high, high], color="#D55E00", alpha=0.06, lw=0)
        ax.set_xlim(low, high)
        ax.set_ylim(low, high)
        finish(ax, title, f"side claimed to be larger{unit}", f"side claimed to be smaller{unit}", None, scale="xy")
        ax.legend(fontsize=7.5, loc="upper left", framealpha=0.85, edgecolor="none")
        return ax

    return draw


def _shown(cell: float | str) -> str:
    return cell if isinstance(cell, str) else f"{cell:.4g}"


def inequalities(parts: Sequence[Part], *, title: str, unit: str = "", ending: str | Callable[[Table], str] = "",
                 draw: Callable[[Table], Any] | None = None, **named: Any) -> Experiment:  # fmt: skip
    """The experiment of these parts: judged and, unless `draw` is given, drawn alike; `named` as in `Experiment`."""
    picture = drawn(parts, title, unit) if draw is None else draw
    return Experiment(judge=judged(*parts, ending=ending), draw=picture, **named)
