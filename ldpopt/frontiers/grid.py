"""The frontier over (epsilon, eta): the optimum, the textbook mechanisms and the papers' bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ldpopt.bounds import duchi_jordan_wainwright, erased_share, ghazi_issa, ghazi_issa_total_variation
from ldpopt.design import Design, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.utilities.base import ColumnUtility, Utility
from ldpopt.divergences import JEFFREYS, KL, REVERSE_KL, TOTAL_VARIATION
from ldpopt.errors import invalid
from ldpopt.files.atomic import PathLike
from ldpopt.frontiers.baselines import NO_BASELINES, Baselines, Values, check_baselines, require_use, value_at_point
from ldpopt.frontiers.run import Work, number_from_json, run, table_text, utility_at
from ldpopt.mechanisms import binary_with_erasure, randomized_response
from ldpopt.values.deadline import Progress
from ldpopt.values.distribution import Array, one_or_several, positive_epsilon, unit_interval
from ldpopt.values.results import Pictured, Result, Rows

BOUNDS = ("tv_bound", "thm6", "thm7")
BASELINES = {
    "binary_with_erasure": "binary with erasure",
    "randomized_response_with_erasure": "k-ary randomized response, erased",
    "erased_optimum": "optimum for ε, erased",
}
"""The columns of the mechanisms that a frontier compares with the optimum, and their names in figures."""


@dataclass(frozen=True, eq=False)
class FrontierRow(Result):
    """One point (epsilon, eta) of a frontier, with all values in the unit of its utility.

    A value that does not apply is None. The binary mechanism and the bounds need one pair of finite hypotheses. Erased
    mechanisms are compared for a `Divergence` and other utilities that are sums over reports.

    Attributes
    ----------
    optimum, lower_bound, upper_bound, certified : Those of the designed channel. One bound is `optimum` itself: the
        lower one, or the upper one if the utility is an error (less is better).
    binary_with_erasure, randomized_response_with_erasure : The values of these mechanisms.
    erased_optimum : The value of the best epsilon-LDP channel, whose reports are erased until it is eta-TV [GI, Thm 8].
    tv_bound : The bound eta TV(P0, P1) [GI, Thm 5], for the total variation.
    thm6, thm7 : The bounds of [GI, Thm 6 and 7], for the Jeffreys divergence and the two KL divergences below it.
    baselines : The values of a user's own mechanisms, by name.
    """

    epsilon: float
    eta: float
    optimum: float
    lower_bound: float
    upper_bound: float
    certified: bool
    binary_with_erasure: float | None
    randomized_response_with_erasure: float | None
    erased_optimum: float | None
    tv_bound: float | None
    thm6: float | None
    thm7: float | None
    baselines: Values = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of_design(cls, design: Design, epsilon: float, eta: float, pure: float | None) -> FrontierRow:
        """Return the row of a design under `epsilon` (nats) and `eta`. pure : the optimum under epsilon alone.

        Without `pure`, None, the erased mechanisms are left out.
        """
        columns: dict[str, Any] = dict.fromkeys((*BASELINES, *BOUNDS))
        if pure is not None:
            columns["erased_optimum"] = erased_share(epsilon, eta) * pure
            columns["randomized_response_with_erasure"] = _erased_response(design.utility, epsilon, eta)
        if isinstance(design.utility, Divergence) and not design.utility.continuous:
            columns |= _pair_values(design.utility, epsilon, eta)
        summary = (design.value, design.lower_bound, design.upper_bound, design.certified)
        return cls(epsilon, eta, *summary, **columns)


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Rows[FrontierRow], Pictured):
    """The rows of a frontier, by epsilon and then eta, as a small table."""

    rows: tuple[FrontierRow, ...]
    utility: Utility

    _picture = "frontier"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a user's own mechanisms."""
        return tuple(self.rows[0].baselines) if self.rows else ()

    def column(self, name: str) -> Array:
        """Return a column as a float64 array, shape (rows,); NaN where its value is None."""
        names = (*_FIELDS, *self.names)
        if name not in names:
            raise invalid("column", f"one of {', '.join(names)}", name)
        values = [row.baselines[name] if name in self.names else getattr(row, name) for row in self.rows]
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)

    def gap(self, name: str) -> Array:
        """Return the gap 1 - column / optimum, shape (rows,): negative for an upper bound, 0 where the optimum is 0.

        For an error (less is better), it is 1 - optimum / column: negative for a lower bound.
        """
        smaller, larger = self.column(name), self.column("optimum")
        if self.utility.error:
            smaller, larger = larger, smaller
        return np.asarray(
            1 - np.divide(smaller, larger, out=np.ones_like(smaller), where=(larger > 0) | np.isnan(larger))
        )

    def _columns(self) -> dict[str, list[Any]]:
        table = super()._columns()
        del table["upper_bound" if self.utility.error else "lower_bound"]  # the optimum itself
        del table["baselines"]
        comparisons = (*BASELINES, *BOUNDS)
        gap_names = [name for name in comparisons if any(value is not None for value in table[name])] + list(self.names)
        table |= {name: [row.baselines[name] for row in self.rows] for name in self.names}
        return table | {f"gap_{name}": self.gap(name).tolist() for name in gap_names}

    def _title(self) -> str:
        return f"Frontier of {self.utility.name}"

    def __repr__(self) -> str:
        gaps = [(head, self.gap(name)) for head, name in zip(_HEADS, BASELINES, strict=True) if self._has(name)]
        gaps += [(name, self.gap(name)) for name in self.names]
        suffix = "; what each mechanism loses" if gaps else ""
        heads = ["epsilon", "eta", "optimum", *(head for head, _ in gaps)]
        widths = [max(10, 2 + len(head)) for head in heads]
        lines = []
        for i, row in enumerate(self.rows):
            # Adding zero turns a loss of -0.0 % into 0.0 %.
            losses = ["" if math.isnan(gap[i]) else f"{round(gap[i], 4) + 0.0:.1%}" for _, gap in gaps]
            cells = [*(f"{value:.4g}" for value in (row.epsilon, row.eta, row.optimum)), *losses]
            lines.append("".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))
        title = f"Frontier of {self.utility!r}{suffix}"
        return table_text([title, "".join(head.rjust(width) for head, width in zip(heads, widths, strict=True))], lines)

    def _has(self, name: str) -> bool:
        return any(getattr(row, name) is not None for row in self.rows)


_HEADS = ("binary", "k-RR", "erased")
_FIELDS = tuple(column.name for column in fields(FrontierRow) if column.name != "baselines")

Factory: TypeAlias = Utility | Callable[[float, float], Utility]

CAPS_PER_PART = 8
"""The number of caps eta of one epsilon in a part; within it, the multipliers of one design help to prove the next."""


def frontier(
    utility: Factory,
    epsilons: Iterable[float] | float,
    etas: Iterable[float] | float,
    *,
    baselines: Baselines = NO_BASELINES,
    on_row: Callable[[FrontierRow], object] | None = None,
    jobs: int = 1,
    resume: PathLike | None = None,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Frontier:
    """Design the optimal channel at every (epsilon, eta).

    The result compares it with textbook mechanisms and bounds where they apply. For other constraints, use `sweep`.

    Parameters
    ----------
    utility : Any utility that `optimal_channel` takes, or a function from (epsilon, eta) to one.
    epsilons : Limits of local differential privacy, in nats; one number or several.
    etas : Limits of total variation, in [0, 1], one or several; a value above tanh(epsilon/2) limits nothing.
    baselines : Custom mechanisms by name, for the table and the picture. Each is a function from epsilon, or from
        epsilon and eta, to a channel, or one channel for all points, and is measured at each point. A mechanism without
        an argument eta is erased until it is within eta, like the textbook mechanisms. A channel for all points is
        compared where it is within epsilon, and None elsewhere.
    on_row : A function that is called with every row, when the part of the grid that contains it is finished.
    jobs : The number of processes on this machine, or -1 for one on each core. The processes are those of joblib, so
        within ``joblib.parallel_config("dask")`` the workers of a cluster take their place. The rows do not depend on
        it.
    resume : A folder, created if it does not exist, that stores every finished part (a few points). After an
        interruption, the same call continues from there. The rows are the same as without the interruption.
    time_limit : Seconds for each design, not for all of them: a row whose time ends holds the results so far. It is
        part of the problem that a folder belongs to.
    progress : True shows a bar on standard error. A function is called with the completed fraction in [0, 1], and an
        exception from it ends the work.

    Returns
    -------
    Frontier
        One row for each (epsilon, eta), in order; `column` and `gap` give arrays.

    Raises
    ------
    InvalidInput
        If the grid is empty, `utility` is not a utility, or the folder belongs to another problem. Also if a baseline
        is measured beyond the epsilon, or the eta, that it was called with.

    Examples
    --------
    >>> from ldpopt import Divergence, MutualInformation
    >>> from ldpopt.divergences import KL
    >>> table = frontier(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [1.0, 2.0], [0.2, 0.4])
    >>> len(table), bool((table.gap("binary_with_erasure") >= -1e-12).all())
    (4, True)
    >>> frontier(MutualInformation([0.5, 0.3, 0.2]), [1.0], [0.2, 0.4]).column("optimum").round(4)
    array([0.0627, 0.1141])
    >>> from ldpopt.mechanisms import subset_selection
    >>> own = {"pairs": lambda epsilon: subset_selection(3, epsilon, 2)}
    >>> frontier(MutualInformation([0.5, 0.3, 0.2]), 1.0, [0.2, 1.0], baselines=own).gap("pairs").round(3)
    array([0.089, 0.332])
    """
    if callable(epsilons):
        raise invalid("epsilons", "numbers (sweep takes a family of constraints)", epsilons)
    epsilon_values = [positive_epsilon(epsilon) for epsilon in one_or_several(epsilons, "epsilons")]
    caps = [unit_interval(eta, "eta") for eta in one_or_several(etas, "etas")]
    if not epsilon_values or not caps:
        raise invalid("frontier", "at least one epsilon and one eta", "none")
    parts = [
        tuple((utility_at(utility, epsilon, eta), epsilon, eta) for eta in caps[start : start + CAPS_PER_PART])
        for epsilon in epsilon_values
        for start in range(0, len(caps), CAPS_PER_PART)
    ]
    mechanisms = check_baselines(baselines, _FIELDS)
    values: dict[Any, Values] = {
        (id(point_utility), epsilon, eta): MappingProxyType(
            {
                name: value_at_point(name, mechanism, epsilon, eta, point_utility)
                for name, mechanism in mechanisms.items()
            }
        )
        for part in parts
        for point_utility, epsilon, eta in part
    }
    require_use(values.values(), mechanisms)

    def add_baselines(part: Part, position: int, row: FrontierRow) -> FrontierRow:
        point_utility, epsilon, eta = part[position]
        return replace(row, baselines=values[id(point_utility), epsilon, eta])

    work = Work(parts, _design_part, _row_from_json, len, add_baselines)
    rows = run(work, on_row, jobs, resume, progress, time_limit)
    return Frontier(rows, parts[0][0][0])


Part: TypeAlias = tuple[tuple[Utility, float, float], ...]


def _design_part(part: Part, time_limit: float | None, progress: Callable[[float], object]) -> list[FrontierRow]:
    """The rows of a part. Each design is proved by the multipliers of the design before it, if these suffice."""
    rows: list[FrontierRow] = []
    design: Design | None = None
    optima_without_cap: dict[int, float | None] = {}
    for position, (utility, epsilon, eta) in enumerate(part):

        def report_progress(share: float, position: int = position) -> None:
            progress((position + share) / len(part))

        if id(utility) not in optima_without_cap:
            optima_without_cap[id(utility)] = None
            if isinstance(utility, ColumnUtility):
                constraint = LocalDP(epsilon)
                design_without_cap = optimal_channel(
                    utility, constraint, certify=False, time_limit=time_limit, progress=report_progress
                )
                optima_without_cap[id(utility)] = design_without_cap.value
        neighbor = (
            design if design is not None and design.utility is utility and isinstance(utility, Divergence) else None
        )
        limits = [LocalDP(epsilon), TotalVariation(eta)]
        design = optimal_channel(utility, limits, neighbor=neighbor, time_limit=time_limit, progress=report_progress)
        rows.append(FrontierRow.of_design(design, epsilon, eta, optima_without_cap[id(utility)]))
    return rows


def _row_from_json(part: Part, position: int, saved_row: dict[str, Any]) -> FrontierRow:
    if set(saved_row) != set(_FIELDS):
        raise invalid("row", f"the columns {', '.join(_FIELDS)}", ", ".join(sorted(saved_row)))
    optional = (*BASELINES, *BOUNDS)
    numbers: dict[str, Any] = {
        name: None if value is None and name in optional else number_from_json(value)
        for name, value in saved_row.items()
        if name != "certified"
    }
    row = FrontierRow(**numbers, certified=saved_row["certified"] is True)
    if (row.epsilon, row.eta) != part[position][1:]:
        raise ValueError(f"the point {(row.epsilon, row.eta)}")
    return row


def _erased_response(utility: ColumnUtility, epsilon: float, eta: float) -> float | None:
    """The value of randomized response that is erased until it is eta-TV; erasing multiplies a sum over reports."""
    if utility.continuous:
        return None
    k = utility.size
    variation = math.expm1(epsilon) / (math.exp(epsilon) + k - 1)
    return utility.value(randomized_response(k, epsilon)) * min(1.0, eta / variation)


def _pair_values(utility: Divergence, epsilon: float, eta: float) -> dict[str, float | None]:
    """The values that exist only for one pair of finite hypotheses."""
    p0, p1, cap = utility.p0, utility.p1, min(eta, math.tanh(epsilon / 2))
    is_relative_entropy = any(utility.f is f for f in (KL, REVERSE_KL, JEFFREYS))
    return {
        "binary_with_erasure": utility.value(binary_with_erasure(p0, p1, epsilon, eta)),
        "tv_bound": ghazi_issa_total_variation(p0, p1, cap) if utility.f is TOTAL_VARIATION else None,
        "thm6": duchi_jordan_wainwright(p0, p1, epsilon) if is_relative_entropy else None,
        "thm7": ghazi_issa(p0, p1, epsilon, eta) if is_relative_entropy else None,
    }
