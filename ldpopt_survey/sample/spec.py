"""What public columns say: how respondents were drawn (``[sample]`` of ``survey.toml``), groups, and conditions.

Conditions have the form that is written after ``--where``.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import Array, number, positive_integer
from ldpopt.values.results import ByValue
from ldpopt.values.schema import kind
from ldpopt_survey.records import check, choice, dump, key, listed, load, mapped, text
from ldpopt_survey.sample.design import Linearization, LonelyUnit, Replication, SampleDesign
from ldpopt_survey.sample.replicates import GivenReplicates, Jackknife, RescaledBootstrap, rake

METHODS = ("linearization", "jackknife", "bootstrap", "replicates")
COLUMNS = ("weights", "strata", "clusters", "fpc")
_FORM = re.compile(r"\s*(?P<column>.+?)\s*(?P<sign><=|>=|!=|==|=|<|>)\s*(?P<value>.*?)\s*")
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MISSING = "missing"
"""The name of the group of respondents without a value."""


def _margin(value: Any, what: str) -> Mapping[str, float]:
    """Known totals by group, whose labels are taken as text."""
    if not isinstance(value, Mapping):
        raise invalid(what, "a table of totals", Phrase(kind(value)))
    totals = {str(label): number(total, what) for label, total in value.items()}
    if not totals or not min(totals.values()) > 0:
        raise invalid(what, "positive totals or shares", Phrase("others"))
    if max(totals.values()) <= 1 and abs(sum(totals.values()) - 1) > 1e-3:
        raise invalid(what, "shares that sum to 1, or totals", Phrase(f"shares that sum to {sum(totals.values()):g}"))
    return MappingProxyType(totals)


def _at_least(least: int) -> Any:
    return lambda value, what: positive_integer(value, what, least)


@dataclass(frozen=True, eq=False)
class SampleSpec(ByValue):
    """The public columns that say how a sample was drawn, and how variances are computed from them.

    weights, strata, clusters : the columns of the weights, of the strata, and of the primary units.
    fpc : the column with the number of primary units in the stratum's population, or the share of them that was drawn.
    lonely : how a stratum with one unit enters the variance, a word of `LonelyUnit`.
    variance : "linearization", "jackknife", "bootstrap", or "replicates".
    replications, seed : of the bootstrap, how many, and the seed from which they are drawn.
    replicate_weights, replicate_scale : of replicates, the columns of their weights, and the factor of the variance.
    margins : for a column, the known totals or shares of its groups in the population. With one column the weights are
        post-stratified, with several they are raked.

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

    def __post_init__(self) -> None:
        check(self, "sample")
        given = bool(self.replicate_weights)
        if given != (self.variance == "replicates") or given != (self.replicate_scale is not None):
            expected = 'variance = "replicates" with replicate_weights and replicate_scale, or none of the three'
            raise invalid("sample", expected, Phrase("some of them"))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the reports that the design needs, each once."""
        named = [getattr(self, name) for name in COLUMNS] + [*self.replicate_weights, *self.margins]
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def method(self) -> Replication:
        """The method of variance. For given replicate weights the method is made later, by `design`."""
        methods = {"jackknife": Jackknife(), "bootstrap": RescaledBootstrap(self.replications, self.seed)}
        return methods.get(self.variance, Linearization())

    def design(self, table: Mapping[str, Any]) -> SampleDesign:
        """The design from the public columns in `table`, (n,) each; `InvalidInput` if one is missing."""
        for name in self.columns:
            if name not in table:
                expected = f"a public column {name!r} in the reports (carry = [{name!r}])"
                raise invalid("sample", expected, Phrase("none"))
        columns = {name: np.asarray(table[name]) for name in self.columns}
        size = len(next(iter((columns or table).values())))
        weights, fpc = (name and numbers(columns[name], name) for name in (self.weights, self.fpc))
        strata, clusters = (name and columns[name] for name in (self.strata, self.clusters))
        design = SampleDesign(weights, strata, clusters, fpc, LonelyUnit(self.lonely), self.method, size)
        if self.replicate_weights:
            weights = np.stack([numbers(columns[name], name) for name in self.replicate_weights], axis=1)
            design = design.by(GivenReplicates(weights, self.replicate_scale))
        known = [(columns[name], {**totals}) for name, totals in self.margins.items()]
        return rake(design, known) if known else design

    @classmethod
    def from_dict(cls, data: Any) -> SampleSpec:
        """The design that a ``[sample]`` table describes; anything wrong in it is `InvalidInput`."""
        return load(cls, data, "[sample]")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, without those that are the default."""
        plain = dump(SampleSpec())
        return {name: value for name, value in dump(self).items() if value != plain[name]}

    def changed(self, **fields: Any) -> SampleSpec:
        """The same with some fields changed; fields given as None are kept."""
        given = {name: value for name, value in fields.items() if value is not None}
        return replace(self, **given) if given else self

    @property
    def trivial(self) -> bool:
        """Whether it declares a simple sample."""
        return not self.columns


def numbers(values: Any, name: str) -> Array:
    """A column of numbers, which files may hold as text. `InvalidInput` names the first entry that is not a number."""
    column = np.asarray(values, dtype=object)
    floats = np.empty(len(column))
    for row, value in enumerate(column.tolist()):
        try:
            floats[row] = float(value)
        except (TypeError, ValueError):
            raise invalid(f"column {name!r}", "a number in every row", Phrase("another"), f"row {row + 1}") from None
    return floats


@dataclass(frozen=True)
class Condition:
    """A comparison of a public column: ``sex = f``, ``region != north``, ``age >= 30``.

    = and != compare numbers if both sides are numbers, else text; the other signs compare numbers. A missing value
    fulfils only the condition ``column = ``, with nothing after the sign.

    >>> Condition.parse("age >= 30").holds({"age": ["29", "30", None]})
    array([False,  True, False])
    """

    column: str
    sign: str
    value: str

    @classmethod
    def parse(cls, written: str) -> Condition:
        """The condition that is written in a text; `InvalidInput` for another form."""
        match = _FORM.fullmatch(written)
        if match is None:
            raise invalid("condition", "column = value (or !=, <, <=, >, >=)", written)
        sign, value = match["sign"].replace("==", "="), match["value"]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":  # as in the languages of statistics
            value = value[1:-1]
        if sign in _ORDERS and math.isnan(_number(value)):
            raise invalid("condition", f"a number after {sign}", value)
        return cls(match["column"], sign, value)

    def holds(self, table: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """(n,) mask of the respondents who fulfil it."""
        return np.array([self._holds(value) for value in table[self.column]], dtype=bool)

    def _holds(self, value: Any) -> bool:
        if _missing(value):
            return self.sign == "=" and self.value == ""
        if self.sign in _ORDERS:
            given = _number(value)
            if math.isnan(given):
                raise invalid(f"column {self.column!r}", f"numbers, to compare by {self.sign}", Phrase("others"))
            return bool(_ORDERS[self.sign](given, _number(self.value)))
        same = str(value) == self.value or _number(value) == _number(self.value)
        return same == (self.sign == "=")

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.value}"


def groups_of(table: Mapping[str, Any], columns: Sequence[str]) -> npt.NDArray[Any]:
    """(n,) the values of public columns as text. Values of several columns are joined by ×."""
    parts = ([MISSING if _missing(value) else str(value) for value in table[name]] for name in columns)
    return np.array([" × ".join(row) for row in zip(*parts, strict=True)], dtype=object)


def _missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
