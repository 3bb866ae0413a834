"""The frontier over the parameter of a family of constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ldpopt import strictjson
from ldpopt.channel import Channel
from ldpopt.design import AgainstSet, Constraint, Design, Divergence, ExpectedLoss, PrivateSampling, optimal_channel
from ldpopt.design.candidate import Method
from ldpopt.design.problems.problem import listed
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Array, number
from ldpopt.errors import Phrase, invalid
from ldpopt.frontiers.run import Work, number_from_json, number_to_json, run
from ldpopt.frontiers.table import Table, shown
from ldpopt.privacy import Guarantee

Parameter: TypeAlias = float | tuple[float, ...]
Family: TypeAlias = Callable[[Any], Constraint | Iterable[Constraint]]


@dataclass(frozen=True, eq=False, repr=False)
class FamilyRow:
    """The optimum at one parameter: what a `Design` says, but for its certificate.

    parameter : what the family was called with. value, upper_bound : of the utility; inf where nothing bounds it.
    certified : whether the two agree within the design's tolerance. method, note : as in `Design`.
    channel : the mechanism. guarantees : its own measures, one for each constraint, each within its cap.
    """

    parameter: Parameter
    value: float
    upper_bound: float
    certified: bool
    method: str
    note: str
    channel: Channel
    guarantees: tuple[Guarantee, ...]

    @property
    def relative_gap(self) -> float:
        """(upper_bound - value) / |upper_bound|, at least 0; 0 when the two are equal."""
        gap = max(0.0, self.upper_bound - self.value)
        return gap if gap in (0.0, math.inf) else gap / abs(self.upper_bound)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FamilyRow) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __repr__(self) -> str:
        shown = "certified" if self.certified else "not certified"
        return f"FamilyRow(parameter {self.parameter}, value {self.value:.9g}, {shown})"


@dataclass(frozen=True, eq=False, repr=False)
class FamilyFrontier(Table):
    """The rows of a frontier in the order of its parameters, as a small table."""

    rows: tuple[FamilyRow, ...]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the family was called with."""
        return tuple(row.parameter for row in self.rows)

    @property
    def value(self) -> Array:
        """(rows,) utilities of the designs."""
        return np.array([row.value for row in self.rows])

    @property
    def upper_bound(self) -> Array:
        """(rows,) bounds that no channel exceeds; inf where nothing bounds it."""
        return np.array([row.upper_bound for row in self.rows])

    @property
    def certified(self) -> bool:
        """Whether every row is."""
        return all(row.certified for row in self.rows)

    def _columns(self) -> dict[str, list[Any]]:
        table: dict[str, list[Any]] = {"parameter": list(self.parameters)}
        for name in ("value", "upper_bound", "relative_gap", "certified"):
            table[name] = [getattr(row, name) for row in self.rows]
        for row in self.rows:
            for guarantee in row.guarantees:
                table.setdefault(guarantee.notion, [math.nan] * len(self.rows))
        for at, row in enumerate(self.rows):
            for guarantee in row.guarantees:
                table[guarantee.notion][at] = guarantee.value
        return table | {"outputs": [row.channel.shape[1] for row in self.rows]}

    def __iter__(self) -> Iterator[FamilyRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        lines = [f"FamilyFrontier of {len(self)} designs", f"{'parameter':>18}{'value':>14}{'gap':>10}  certified"]
        for row in self.rows[:30]:
            proved = "yes" if row.certified else "no"
            lines.append(f"{shown(row.parameter):>18}{row.value:>14.7g}{row.relative_gap:>10.2g}  {proved}")
        return "\n".join(lines + ([f"... {len(self) - 30} more rows"] if len(self) > 30 else []))


@dataclass(frozen=True, eq=False)
class Point:
    """One design of a frontier."""

    utility: Any
    parameter: Parameter
    constraints: tuple[Constraint, ...]
    method: Method | None


def family_frontier(
    utility: Any, family: Family, parameters: Iterable[Parameter], method: Method | None, **how: Any
) -> FamilyFrontier:
    """The frontier over `parameters`; see `ldpopt.frontier`. how : what `run` takes besides."""
    points = []
    for given in parameters:
        parameter = tuple(map(_number, given)) if isinstance(given, tuple) else _number(given)
        posed = utility(parameter) if callable(utility) else utility
        if not isinstance(posed, (Divergence, ExpectedLoss, ColumnUtility, AgainstSet, PrivateSampling)):
            raise invalid("utility", "a Divergence, an ExpectedLoss or a column utility", type(posed).__name__)
        points.append(Point(posed, parameter, listed(family(parameter)), method))
    if not points:
        raise invalid("frontier", "at least one parameter", "none")
    return FamilyFrontier(run(Work(points, _design, _pack, _unpack, _one), **how))


def _number(given: Any) -> float:
    return number(given, "parameter", "a finite number, or a tuple of them")


def _one(_: Point) -> int:
    return 1


def _design(point: Point) -> list[FamilyRow]:
    design: Design = optimal_channel(point.utility, point.constraints, method=point.method)
    fields = (design.value, design.upper_bound, design.certified, design.method, design.note)
    return [FamilyRow(point.parameter, *fields, design.channel, design.guarantees)]


def _pack(row: FamilyRow) -> dict[str, Any]:
    return {
        "value": number_to_json(row.value),
        "upper_bound": number_to_json(row.upper_bound),
        "certified": row.certified,
        "method": row.method,
        "note": row.note,
        "channel": strictjson.loads(row.channel.to_json()),
    }


def _unpack(point: Point, _: int, saved: dict[str, Any]) -> FamilyRow:
    """The row as it was; what the channel guarantees is measured again, not read."""
    value, bound = number_from_json(saved["value"]), number_from_json(saved["upper_bound"])
    channel = Channel.from_json(strictjson.dumps(saved["channel"]))
    size = None if getattr(point.utility, "continuous", False) else getattr(point.utility, "size", None)
    if size is not None and channel.shape[0] != size:
        raise invalid("channel", f"{size} inputs", channel.shape[0])
    fields = (value, bound, saved["certified"] is True, str(saved["method"]), str(saved["note"]))
    guarantees = tuple(constraint.measure(channel) for constraint in point.constraints)
    for constraint, guarantee in zip(point.constraints, guarantees, strict=True):
        if not guarantee.value <= constraint.bound:
            raise invalid("channel", f"one that meets {constraint!r}", Phrase(f"{guarantee}"))
    return FamilyRow(point.parameter, *fields, channel, guarantees)
