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
from ldpopt.frontiers.baselines import NO_BASELINES, Baselines, Values, check_baselines, require_use, value_at_parameter
from ldpopt.frontiers.run import Work, number_from_json, run, table_text, utility_at
from ldpopt.privacy import Guarantee
from ldpopt.values.deadline import Progress
from ldpopt.values.distribution import Array, number, one_or_several
from ldpopt.values.results import Pictured, Result, Rows, cell_text

Parameter: TypeAlias = float | tuple[float, ...]
Family: TypeAlias = Callable[[Any], Constraint | Iterable[Constraint]]


@dataclass(frozen=True, eq=False, repr=False)
class SweepRow(Result):
    """The optimum at one parameter, with the fields of its `Design` except the certificate.

    Attributes
    ----------
    parameter : The argument of the family.
    value : The utility, or the error, of the channel.
    lower_bound, upper_bound : Bounds on the optimum. One is the value itself; the other is infinite if nothing is
        proved.
    relative_gap, method, note : As in `Design`.
    certified : True if the gap is within the tolerance of the design.
    channel : The designed mechanism.
    guarantees : The measured guarantees of the channel, one for each constraint, within its limit.
    baselines : The values of a user's own mechanisms, by name.
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
        status = "certified" if self.certified else "not certified"
        return f"SweepRow(parameter {cell_text(self.parameter)}, value {self.value:.9g}, {status})"


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
        """The arguments of the calls of the family."""
        return tuple(row.parameter for row in self.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a user's own mechanisms."""
        return tuple(self.rows[0].baselines) if self.rows else ()

    def baseline(self, name: str) -> Array:
        """Return the values of one custom mechanism, shape (rows,); NaN where it is not within the constraints."""
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
        """True if every row is certified."""
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
        columns = [(name, max(14, 2 + len(name))) for name in self.names]
        header = f"{'parameter':>18}{'value':>14}{'gap':>10}  certified" + "".join(
            name.rjust(width) for name, width in columns
        )
        lines = [
            f"{cell_text(row.parameter):>18}{row.value:>14.7g}{row.relative_gap:>10.2g}  "
            + f"{('no', 'yes')[row.certified]:9}"
            + "".join(_cell(row.baselines[name]).rjust(width) for name, width in columns)
            for row in self.rows
        ]
        lines = [line.rstrip() for line in lines]
        return table_text([self._title(), header], lines)


_FIELDS = tuple(column.name for column in fields(SweepRow) if column.name != "baselines")


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
    baselines: Baselines = NO_BASELINES,
    on_row: Callable[[SweepRow], object] | None = None,
    method: Method | None = None,
    jobs: int = 1,
    resume: PathLike | None = None,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Sweep:
    """Design the optimal channel at every parameter of a family of constraints.

    Parameters
    ----------
    utility : Any utility that `optimal_channel` takes, or a function from the parameter to one.
    family : A function from a parameter to a constraint or a list of them, such as `LocalDP`.
    parameters : Numbers, or tuples of numbers.
    method : As for `optimal_channel`.
    baselines : Custom mechanisms by name, for the table and the picture. A function maps the
        parameter to a channel within the family's constraints. One channel for all parameters is compared where it is
        within them.
    on_row, jobs, resume, time_limit, progress : As for `frontier`.

    Returns
    -------
    Sweep
        One row for each parameter, in order.

    Raises
    ------
    InvalidInput
        If the parameters are empty, or an object is not a utility or a constraint. Also if a baseline is measured
        beyond the constraints, or the folder belongs to another problem.

    Examples
    --------
    >>> from ldpopt import Divergence, RenyiLDP
    >>> from ldpopt.divergences import KL
    >>> utility = Divergence(KL, [0.7, 0.3], [0.4, 0.6])
    >>> sweep(utility, lambda epsilon: RenyiLDP(2.0, epsilon), [0.2, 0.4]).value.round(4)
    array([0.0095, 0.0198])
    """
    if not callable(family):
        raise invalid("family", "a function from a parameter to constraints (frontier takes epsilons and etas)", family)
    points = []
    for entry in one_or_several(parameters, "parameters"):
        entries = entry if isinstance(entry, tuple) else (entry,)
        numbers = tuple(number(value, "parameter", "a finite number, or a tuple of them") for value in entries)
        parameter = numbers if isinstance(entry, tuple) else numbers[0]
        point_utility = utility_at(utility, parameter)
        points.append(Point(point_utility, parameter, constraint_tuple(family(parameter)), method))
    if not points:
        raise invalid("sweep", "at least one parameter", "none")
    mechanisms = check_baselines(baselines, (*_FIELDS, "outputs"))
    values = [
        MappingProxyType(
            {
                name: value_at_parameter(name, mechanism, problem.parameter, problem.constraints, problem.utility)
                for name, mechanism in mechanisms.items()
            }
        )
        for problem in points
    ]
    require_use(values, mechanisms)
    values_by_point = {id(problem): row for problem, row in zip(points, values, strict=True)}

    def add_baselines(point: Point, _: int, row: SweepRow) -> SweepRow:
        return replace(row, baselines=values_by_point[id(point)])

    rows = run(
        Work(points, _design, _row_from_json, lambda _: 1, add_baselines), on_row, jobs, resume, progress, time_limit
    )
    return Sweep(rows, points[0].utility)


def _design(point: Point, time_limit: float | None, progress: Callable[[float], object]) -> list[SweepRow]:
    design: Design = optimal_channel(
        point.utility, point.constraints, method=point.method, time_limit=time_limit, progress=progress
    )
    bounds = (design.value, design.lower_bound, design.upper_bound, design.relative_gap)
    fields = (*bounds, design.certified, design.method, design.note)
    return [SweepRow(point.parameter, *fields, design.channel, design.guarantees)]


def _row_from_json(point: Point, _: int, saved_row: dict[str, Any]) -> SweepRow:
    """The saved row. The guarantees of the channel are measured again instead of being read."""
    names = ("value", "lower_bound", "upper_bound", "relative_gap")
    value, lower, upper, gap = (number_from_json(saved_row[name]) for name in names)
    channel = Channel.from_json(strict.json_text(saved_row["channel"]))
    size = None if getattr(point.utility, "continuous", False) else getattr(point.utility, "size", None)
    if size is not None and channel.shape[0] != size:
        raise invalid("channel", f"{size} inputs", channel.shape[0])
    details = (saved_row["certified"] is True, str(saved_row["method"]), str(saved_row["note"]))
    guarantees = stated_guarantees(channel, point.constraints)
    for constraint, guarantee in zip(point.constraints, guarantees, strict=True):
        if not guarantee.value <= constraint.bound:
            raise invalid("channel", f"one that meets {constraint!r}", Phrase(f"{guarantee}"))
    return SweepRow(point.parameter, value, lower, upper, gap, *details, channel, guarantees)
