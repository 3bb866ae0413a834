"""Public columns: the sample design (``[sample]`` of ``survey.toml``), groups, and conditions.

Conditions are written as after ``--where``.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Array, number, positive_integer
from ldpopt.values.results import ByValue
from ldpopt.values.schema import kind
from ldpopt_survey.records import check, choice, dump, key, listed, load, mapped, text
from ldpopt_survey.sample.design import Linearization, LonelyUnit, Replication, SampleDesign
from ldpopt_survey.sample.replicates import GivenReplicates, Jackknife, RescaledBootstrap, check_bounds, rake, trim

METHODS = ("linearization", "jackknife", "bootstrap", "replicates")
COLUMNS = ("weights", "strata", "clusters", "fpc")
_FORM = re.compile(r"\s*(?P<column>.+?)\s*(?P<sign><=|>=|!=|==|=|<|>)\s*(?P<value>.*?)\s*")
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MISSING = "missing"
"""The name of the group of respondents without a value."""


def _margin(value: Any, name: str) -> Mapping[str, float]:
    """Known totals by group, whose labels are taken as text."""
    if not isinstance(value, Mapping):
        raise invalid(name, "a table of totals", Phrase(kind(value)))
    totals = {str(label): number(total, name) for label, total in value.items()}
    if not totals or not min(totals.values()) > 0:
        raise InvalidInput(f"{name}: all totals or shares must be positive")
    if max(totals.values()) <= 1 and abs(sum(totals.values()) - 1) > 1e-3:
        raise invalid(name, "shares that sum to 1, or totals", Phrase(f"shares that sum to {sum(totals.values()):g}"))
    return MappingProxyType(totals)


def _at_least(minimum: int) -> Any:
    return lambda value, name: positive_integer(value, name, minimum)


@dataclass(frozen=True, eq=False)
class SampleSpec(ByValue):
    """The public columns of a sample design, and the method of variance.

    weights : the column of the weights, which need not be integers; a respondent of weight 0 does not contribute.
    strata : the column of the strata.
    clusters : the column of the primary units, such as villages, which are drawn as a whole.
    fpc : the column with the number of primary units in the stratum's population, or the fraction of them that was
        drawn.
    lonely : the variance of a stratum with one unit: "refuse" the file, "centre" (its square about the mean of all
        units), "average" (that of the other strata), or "certainty" (only the channel's).
    variance : the method, "linearization", "jackknife", "bootstrap", or "replicates".
    replications : the number of replicates of the bootstrap.
    seed : the seed of the bootstrap.
    replicate_weights : the columns of the weights of given replicates.
    replicate_scale : the factor of the sum of squares in the variance of given replicates.
    margins : for a column, the known totals or proportions of its groups in the population. With one column the weights
        are post-stratified, with several they are raked.
    bounds : the smallest and the largest factor of a weight when margins are met, such as 0.5 and 2.
    largest_weight : the limit at which weights are trimmed, before margins are met.

    >>> spec = SampleSpec(weights="w", margins={"sex": {"f": 0.5, "m": 0.5}})
    >>> spec.columns
    ('w', 'sex')
    >>> spec.design({"w": ["1", "1", "2"], "sex": ["f", "m", "m"]}).weights.round(3)
    array([2.   , 0.667, 1.333])
    """

    weights: str | None = key(text, default=None)
    strata: str | None = key(text, default=None)
    clusters: str | None = key(text, default=None)
    fpc: str | None = key(text, default=None)
    lonely: str = key(choice(*(word.value for word in LonelyUnit)), default=LonelyUnit.REFUSE.value)
    variance: str = key(choice(*METHODS), default=METHODS[0])
    replications: int = key(_at_least(2), default=500)
    seed: int = key(_at_least(0), default=0)
    replicate_weights: tuple[str, ...] = key(listed(text), default=())
    replicate_scale: float | None = key(number, default=None)
    margins: Mapping[str, Mapping[str, float]] = field(default_factory=dict, metadata=key(mapped(_margin)).metadata)
    bounds: tuple[float, ...] = key(listed(number), default=())
    largest_weight: float | None = key(number, default=None)

    def __post_init__(self) -> None:
        check(self, "sample")
        if self.bounds:
            check_bounds(self.bounds, "sample: bounds")
            if not self.margins:
                raise InvalidInput("sample: bounds can only be combined with known margins")
        has_replicate_weights = bool(self.replicate_weights)
        if has_replicate_weights != (self.variance == "replicates") or has_replicate_weights != (
            self.replicate_scale is not None
        ):
            expected = 'variance = "replicates" with replicate_weights and replicate_scale, or none of the three'
            raise invalid("sample", expected, Phrase("some of them"))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the reports that the design needs, each once."""
        names = [getattr(self, name) for name in COLUMNS] + [*self.replicate_weights, *self.margins]
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def method(self) -> Replication:
        """The method of variance. For given replicate weights `design` builds it later."""
        methods = {"jackknife": Jackknife(), "bootstrap": RescaledBootstrap(self.replications, self.seed)}
        return methods.get(self.variance, Linearization())

    def design(self, table: Mapping[str, Any]) -> SampleDesign:
        """Build the design from the public columns in `table`, (n,) each.

        `InvalidInput` if one is missing.
        """
        for name in self.columns:
            if name not in table:
                raise InvalidInput(f"sample: the reports have no public column {name!r}; add it by carry = [{name!r}]")
        columns = {name: np.asarray(table[name]) for name in self.columns}
        size = len(next(iter((columns or table).values())))
        weights, fpc = (name and numbers(columns[name], name) for name in (self.weights, self.fpc))
        strata, clusters = (name and columns[name] for name in (self.strata, self.clusters))
        design = SampleDesign(weights, strata, clusters, fpc, LonelyUnit(self.lonely), self.method, size)
        if self.replicate_weights:
            weights = np.stack([numbers(columns[name], name) for name in self.replicate_weights], axis=1)
            design = design.with_method(GivenReplicates(weights, self.replicate_scale))
        design = design if self.largest_weight is None else trim(design, self.largest_weight)
        known_margins = [(columns[name], {**totals}) for name, totals in self.margins.items()]
        return rake(design, known_margins, self.bounds or None) if known_margins else design

    @classmethod
    def from_dict(cls, data: Any) -> SampleSpec:
        """Load the design that a ``[sample]`` table describes; errors in it are `InvalidInput`."""
        return load(cls, data, "[sample]")

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, without the defaults."""
        defaults = dump(SampleSpec())
        return {name: value for name, value in dump(self).items() if value != defaults[name]}

    def changed(self, **fields: Any) -> SampleSpec:
        """Return the same with some fields changed; fields of value None remain unchanged."""
        changes = {name: value for name, value in fields.items() if value is not None}
        return replace(self, **changes) if changes else self

    @property
    def trivial(self) -> bool:
        """True if it declares a simple random sample."""
        return not self.columns


def numbers(values: Any, name: str) -> Array:
    """Convert a column of numbers, which files may hold as text.

    `InvalidInput` names the first entry that is not a number.
    """
    column = np.asarray(values, dtype=object)
    floats = np.empty(len(column))
    for row, value in enumerate(column.tolist()):
        try:
            floats[row] = float(value)
        except (TypeError, ValueError):
            raise invalid(
                f"column {name!r}", "a number in every row", Phrase("another value"), f"row {row + 1}"
            ) from None
    return floats


@dataclass(frozen=True)
class Condition:
    """A comparison of a public column: ``sex = f``, ``region != north``, ``age >= 30``, ``day < 2024-03-01``.

    = and != compare numbers or dates if both sides are such, else text; the other signs compare numbers or dates. Dates
    are written as in ISO 8601, perhaps with a time; a date without a time is compared with the days of the column. A
    missing value fulfills only the condition ``column = ``, with nothing after the sign.

    >>> Condition.parse("age >= 30").holds({"age": ["29", "30", None]})
    array([False,  True, False])
    >>> Condition.parse("day <= 2024-03-01").holds({"day": ["2024-02-29", "2024-03-01T18:30", "2024-03-02"]})
    array([ True,  True, False])
    """

    column: str
    sign: str
    value: str

    @classmethod
    def parse(cls, expression: str) -> Condition:
        """Parse a condition; `InvalidInput` for another form."""
        match = _FORM.fullmatch(expression)
        if match is None:
            raise invalid("condition", "column = value (or !=, <, <=, >, >=)", expression)
        sign, value = match["sign"].replace("==", "="), match["value"]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":  # as in R, Stata and others
            value = value[1:-1]
        if sign in _ORDERS and math.isnan(_number(value)) and _moment(value) is None:
            raise invalid("condition", f"a number or a date such as 2024-03-01 after {sign}", value)
        return cls(match["column"], sign, value)

    def holds(self, table: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """Test the condition: a mask (n,) of the respondents who fulfill it."""
        return np.array([self._holds(value) for value in table[self.column]], dtype=bool)

    def _holds(self, value: Any) -> bool:
        if _missing(value):
            return self.sign == "=" and self.value == ""
        limit: Any = self._limit
        operand: Any = _number(value) if isinstance(limit, float) else _as_long(_moment(value), limit)
        is_comparable = operand is not None and operand == operand
        if self.sign in _ORDERS:
            if not is_comparable:
                expected_form = "numbers" if isinstance(limit, float) else "dates such as 2024-03-01"
                raise invalid(
                    f"column {self.column!r}", f"{expected_form}, to compare by {self.sign}", Phrase("other values")
                )
            return bool(_ORDERS[self.sign](operand, limit))
        is_equal = str(value) == self.value or (is_comparable and operand == limit)
        return is_equal == (self.sign == "=")

    @cached_property
    def _limit(self) -> float | date:
        """The right side of the comparison: a date, a date with a time, or a number, nan for text."""
        number = _number(self.value)
        moment = _moment(self.value) if math.isnan(number) else None
        return number if moment is None else moment

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.value}"


def groups_of(table: Mapping[str, Any], columns: Sequence[str]) -> npt.NDArray[Any]:
    """Return the values (n,) of public columns as text; several columns are joined by ×."""
    parts = ([MISSING if _missing(value) else str(value) for value in table[name]] for name in columns)
    return np.array([" × ".join(row) for row in zip(*parts, strict=True)], dtype=object)


def _missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _moment(value: Any) -> date | None:
    """A date, or a date with a time in UTC, from a value of a file or from text as in ISO 8601; None for others."""
    if isinstance(value, str):
        with suppress(ValueError):
            return date.fromisoformat(value.strip())
        with suppress(ValueError):
            return _moment(datetime.fromisoformat(value.strip()))
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return value if isinstance(value, date) else None


def _as_long(moment: date | None, other: Any) -> date | None:
    """A moment as a day or with a time, like the other one."""
    if moment is None:
        return None
    if not isinstance(other, datetime):
        return moment.date() if isinstance(moment, datetime) else moment
    return moment if isinstance(moment, datetime) else datetime.combine(moment, time())


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
