"""The sweep: the optimum at every value of a parameter of a family of constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import Constraint, Design, optimal_channel
from ldpopt.design.candidate import Method
from ldpopt.design.constraints.base import stated_guarantees
from ldpopt.design.problems.problem import constraint_tuple
from ldpopt.design.utilities.base import Utility
from ldpopt.errors import Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import PathLike
from ldpopt.frontiers.baselines import NONE, Baselines, Values, applied, at_parameter, checked_baselines
from ldpopt.frontiers.run import Work, number_from_json, posed_utility, run, table_text
from ldpopt.privacy import Guarantee
from ldpopt.values.deadline import Progress
from ldpopt.values.distribution import Array, number, one_or_several
from ldpopt.values.results import Pictured, Result, Rows, cell_text

Parameter: TypeAlias = float | tuple[float, ...]
Family: TypeAlias = Callable[[Any], Constraint | Iterable[Constraint]]


@dataclass(frozen=True, eq=False, repr=False)
class SweepRow(Result):
    """The optimum at one parameter, with the fields of its `Design` except the certificate.

    parameter : the value with which the family was called.
    value : the utility, or the error, of the channel.
    lower_bound, upper_bound : the optimum lies between them. One is the value itself; the other is infinite if nothing
        is proved.
    relative_gap, method, note : as in `Design`.
    certified : whether the gap is within the tolerance of the design.
    channel : the designed mechanism. guarantees : its measured guarantees, one for each constraint, within its limit.
    baselines : the values of a user's own mechanisms, by name.
    """

    parameter: Parameter
    value: float
    lower_bound: float
    upper_bound: float
    relative_gap: float
    certified: bool
    method: str
    note: str
    channel: Channel
    guarantees: tuple[Guarantee, ...]
    baselines: Values = field(default_factory=lambda: MappingProxyType({}))

    def __repr__(self) -> str:
        proved = "certified" if self.certified else "not certified"
        return f"SweepRow(parameter {cell_text(self.parameter)}, value {self.value:.9g}, {proved})"


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Rows[SweepRow], Pictured):
    """The rows of a sweep in the order of its parameters, as a small table.

    utility : the utility of the designs; if it depends on the parameter, that of the first design.
    """

    rows: tuple[SweepRow, ...]
    utility: Utility

    _picture = "sweep"
    _named = ("parameter", "value", "lower_bound", "upper_bound", "relative_gap", "certified")

    def _is_limit(self, name: str) -> bool:
        # Columns that are not fields of the row hold guarantees, or the values of baselines.
        return super()._is_limit(name) or name not in {*_FIELDS, "outputs", *self.names}

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters with which the family was called."""
        return tuple(row.parameter for row in self.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a user's own mechanisms."""
        return tuple(self.rows[0].baselines) if self.rows else ()

    def baseline(self, name: str) -> Array:
        """The values of one of a user's own mechanisms, shape (rows,); NaN where it is not within the constraints."""
        if name not in self.names:
            raise invalid("baseline", f"one of {', '.join(self.names) or 'none'}", name)
        return np.array([math.nan if row.baselines[name] is None else row.baselines[name] for row in self.rows])

    @property
    def value(self) -> Array:
        """The utilities, or errors, of the designs, shape (rows,)."""
        return np.array([row.value for row in self.rows])

    @property
    def upper_bound(self) -> Array:
        """Upper bounds on the optima, shape (rows,); inf where nothing is proved."""
        return np.array([row.upper_bound for row in self.rows])

    @property
    def lower_bound(self) -> Array:
        """Lower bounds on the optima, shape (rows,); the values of the designs, unless less is better."""
        return np.array([row.lower_bound for row in self.rows])

    @property
    def certified(self) -> bool:
        """Whether every row is certified."""
        return all(row.certified for row in self.rows)

    def _columns(self) -> dict[str, list[Any]]:
        table = super()._columns()
        del table["upper_bound" if self.utility.error else "lower_bound"]  # the value itself
        for row in self.rows:
            for guarantee in row.guarantees:
                table.setdefault(guarantee.notion, [math.nan] * len(self.rows))
        for position, row in enumerate(self.rows):
            for guarantee in row.guarantees:
                table[guarantee.notion][position] = guarantee.value
        table["outputs"] = [row.channel.shape[1] for row in self.rows]
        return table | {name: [row.baselines[name] for row in self.rows] for name in self.names}

    def _title(self) -> str:
        return f"Sweep of {self.utility.name}, {len(self)} designs"

    def __repr__(self) -> str:
        own = [(name, max(14, 2 + len(name))) for name in self.names]
        heads = f"{'parameter':>18}{'value':>14}{'gap':>10}  certified" + "".join(
            name.rjust(wide) for name, wide in own
        )
        lines = [
            f"{cell_text(row.parameter):>18}{row.value:>14.7g}{row.relative_gap:>10.2g}  "
            + f"{('no', 'yes')[row.certified]:9}"
            + "".join(_cell(row.baselines[name]).rjust(wide) for name, wide in own)
            for row in self.rows
        ]
        lines = [line.rstrip() for line in lines]
        return table_text([self._title(), heads], lines)


_FIELDS = tuple(one.name for one in fields(SweepRow) if one.name != "baselines")


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"


@dataclass(frozen=True, eq=False)
class Point:
    """One design problem of a sweep."""

    utility: Any
    parameter: Parameter
    constraints: tuple[Constraint, ...]
    method: Method | None


def sweep(
    utility: Any,
    family: Family,
    parameters: Iterable[Parameter],
    *,
    baselines: Baselines = NONE,
    each: Callable[[SweepRow], object] | None = None,
    method: Method | None = None,
    jobs: int = 1,
    resume: PathLike | None = None,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Sweep:
    """Design the optimal channel at every parameter of a family of constraints.

    Parameters
    ----------
    utility : any utility that `optimal_channel` takes, or a function from the parameter to one.
    family : a function from a parameter to a constraint or a list of them, such as `LocalDP`.
    parameters : numbers, or tuples of numbers. method : as for `optimal_channel`.
    baselines : mechanisms of your own by name, for the table and the picture: a function from the parameter to a
        channel that is within the family's constraints, or one channel for all parameters, compared where it is.
    each, jobs, resume, time_limit, progress : as for `frontier`.

    Raises `InvalidInput` if there are no parameters, for something that is not a utility or a constraint, for a
    baseline that is measured beyond the constraints, and for a folder of another problem.

    >>> from ldpopt import Divergence, RenyiLDP
    >>> from ldpopt.divergences import KL
    >>> utility = Divergence(KL, [0.7, 0.3], [0.4, 0.6])
    >>> sweep(utility, lambda epsilon: RenyiLDP(2.0, epsilon), [0.2, 0.4]).value.round(4)
    array([0.0095, 0.0198])
    """
    if not callable(family):
        raise invalid("family", "a function from a parameter to constraints (frontier takes epsilons and etas)", family)
    points = []
    for given in one_or_several(parameters, "parameters"):
        several = given if isinstance(given, tuple) else (given,)
        numbers = tuple(number(value, "parameter", "a finite number, or a tuple of them") for value in several)
        parameter = numbers if isinstance(given, tuple) else numbers[0]
        posed = posed_utility(utility, parameter)
        points.append(Point(posed, parameter, constraint_tuple(family(parameter)), method))
    if not points:
        raise invalid("sweep", "at least one parameter", "none")
    own = checked_baselines(baselines, (*_FIELDS, "outputs"))
    values = [
        MappingProxyType(
            {
                name: at_parameter(name, mechanism, at.parameter, at.constraints, at.utility)
                for name, mechanism in own.items()
            }
        )
        for at in points
    ]
    applied(values, own)
    known = {id(at): row for at, row in zip(points, values, strict=True)}

    def compared(point: Point, _: int, row: SweepRow) -> SweepRow:
        return replace(row, baselines=known[id(point)])

    rows = run(Work(points, _design, _unpack, lambda _: 1, compared), each, jobs, resume, progress, time_limit)
    return Sweep(rows, points[0].utility)


def _design(point: Point, time_limit: float | None, progress: Callable[[float], object]) -> list[SweepRow]:
    design: Design = optimal_channel(
        point.utility, point.constraints, method=point.method, time_limit=time_limit, progress=progress
    )
    bounds = (design.value, design.lower_bound, design.upper_bound, design.relative_gap)
    fields = (*bounds, design.certified, design.method, design.note)
    return [SweepRow(point.parameter, *fields, design.channel, design.guarantees)]


def _unpack(point: Point, _: int, saved: dict[str, Any]) -> SweepRow:
    """The saved row. The guarantees of the channel are measured again instead of being read."""
    names = ("value", "lower_bound", "upper_bound", "relative_gap")
    value, below, above, gap = (number_from_json(saved[name]) for name in names)
    channel = Channel.from_json(strict.json_text(saved["channel"]))
    size = None if getattr(point.utility, "continuous", False) else getattr(point.utility, "size", None)
    if size is not None and channel.shape[0] != size:
        raise invalid("channel", f"{size} inputs", channel.shape[0])
    told = (saved["certified"] is True, str(saved["method"]), str(saved["note"]))
    guarantees = stated_guarantees(channel, point.constraints)
    for constraint, guarantee in zip(point.constraints, guarantees, strict=True):
        if not guarantee.value <= constraint.bound:
            raise invalid("channel", f"one that meets {constraint!r}", Phrase(f"{guarantee}"))
    return SweepRow(point.parameter, value, below, above, gap, *told, channel, guarantees)
