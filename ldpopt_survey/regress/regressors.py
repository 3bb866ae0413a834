"""A formula and columns -> the regressors, one row for each combination of public values and private answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, Label
from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import Array
from ldpopt.values.labels import as_text
from ldpopt_survey.estimate.counts import column as as_column
from ldpopt_survey.estimate.counts import factor as codes_of
from ldpopt_survey.estimate.counts import positions
from ldpopt_survey.estimate.linear import require_identifiable
from ldpopt_survey.regress.formula import Formula

Codes = npt.NDArray[np.intp]

MAX_CELLS = 256
"""The most combinations of private answers over which a likelihood is summed."""

MAX_LEVELS = 100
"""The most levels of a public predictor that is not a number."""


@dataclass(frozen=True)
class Regressors:
    """The design of n respondents. Respondents of one `group` have the same public values.

    values : (u, z, d), the d regressors, called `names`, for each of u different rows of public values and each of z
        cells. A cell is a combination of answers to the private predictors.
    public : (u, q), the public columns with a constant, from which the private predictors are modelled.
    group : (n,), the public row of each respondent. levels : the reference level of each factor.
    """

    names: tuple[str, ...]
    values: Array
    public: Array
    group: Codes
    levels: dict[str, Label]

    @property
    def private(self) -> bool:
        """Whether some predictor is private."""
        return bool(self.values.shape[1] > 1)


def regressors(formula: Formula, data: Any, private: Mapping[str, Sequence[Label]], n: int) -> Regressors:
    """The design of `formula` from the public columns of `data` and the answers of its `private` predictors."""
    cells = list(product(*(range(len(labels)) for labels in private.values())))
    if len(cells) > MAX_CELLS:
        raise invalid("private predictors", f"at most {MAX_CELLS} combinations of answers", len(cells))
    codes: list[Codes] = []
    kinds: dict[str, Kinds] = {}
    for name in formula.columns:
        if name in private:
            kinds[name] = _kinds(name, list(private[name]))
        else:
            code, found = in_order(*public_column(data, name, n), declared(data, name))
            codes.append(code)
            kinds[name] = _kinds(name, found)
    group, rows = np.zeros(n, dtype=np.intp), np.zeros((1, 0), dtype=np.intp)
    if codes:
        rows, group = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        group = group.reshape(-1)
    places = {name: place for place, name in enumerate(name for name in formula.columns if name not in private)}
    answers = dict(zip(private, np.array(cells, dtype=np.intp).T, strict=True)) if private else {}

    def columns(public: Codes, every: int) -> dict[str, Any]:
        """The values of all columns for rows of public codes, each with `every` combination of private answers."""
        repeated = np.repeat(public, every, axis=0)
        combined = np.tile(np.arange(len(cells)), -(-len(repeated) // len(cells)))[: len(repeated)]
        own = {name: repeated[:, place] for name, place in places.items()}
        return {name: kinds[name].at(own[name] if name in own else answers[name][combined]) for name in formula.columns}

    made = formula.matrix(columns(rows, len(cells)), lambda: columns(rows[group], 1), frozenset(private))
    values = made.values.reshape(len(rows), len(cells), -1)
    flat = values.reshape(-1, values.shape[-1])
    scale = np.abs(flat).max(axis=0)
    if (scale == 0).any() or np.linalg.matrix_rank(flat / scale) < flat.shape[1]:
        raise invalid("formula", "predictors of which none follows from the others", Phrase("collinear ones"))
    public = _independent(made.public.reshape(len(rows), len(cells), -1)[:, 0]) if private else np.ones((len(rows), 1))
    return Regressors(made.names, values, public, group, made.levels)


def _independent(columns: Array) -> Array:
    """The columns, each divided by its largest entry's order, without those that follow from earlier ones."""
    kept: list[int] = []
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    for place in range(columns.shape[1]):
        if np.linalg.matrix_rank(columns[:, [*kept, place]] / scale[[*kept, place]]) > len(kept):
            kept.append(place)
    return columns[:, kept]


@dataclass(frozen=True, eq=False)
class Kinds:
    """The different values of a variable: numbers, or the levels of a factor as text."""

    values: Any
    factor: bool

    def at(self, code: Codes) -> Any:
        """The column (n,) whose values are those at the codes."""
        if not self.factor:
            return self.values[code]
        import pandas as pd

        return pd.Categorical.from_codes(code, self.values)


def _kinds(name: str, kinds: list[Any]) -> Kinds:
    """The values of a variable: as numbers if they are numbers, and as levels if they are text or anything else."""
    numbers = None if any(isinstance(kind, str) for kind in kinds) else numbers_of(kinds)
    if numbers is not None:
        return Kinds(numbers, False)
    if len(kinds) < 2:
        raise invalid(f"column {name!r}", "at least two different values", Phrase("one"))
    if len(kinds) > MAX_LEVELS:
        raise invalid(f"column {name!r}", f"numbers, or at most {MAX_LEVELS} levels", len(kinds))
    texts = [as_text(kind) for kind in kinds]
    return Kinds(texts if len(set(texts)) == len(texts) else [repr(kind) for kind in kinds], True)


def private_predictors(formula: Formula, channels: Mapping[str, Channel]) -> dict[str, Channel]:
    """The channels of the private predictors, in order. `NotIdentifiable` for one that does not determine answers."""
    private = {name: channels[name] for name in formula.columns if name in channels}
    for channel in private.values():
        require_identifiable(channel)
    return private


def reports_together(private: Mapping[str, Channel], data: Any, n: int) -> tuple[Array, Codes]:
    """The product of the predictors' channels (z, r), and the position of every respondent's reports in it (n,)."""
    matrix: Array = np.ones((1, 1))
    reports: Codes = np.zeros(n, dtype=np.intp)
    for name, channel in private.items():
        places = positions(data[name], channel.outputs)
        if len(places) != n:
            raise invalid(f"column {name!r}", f"{n} reports", len(places))
        reports = reports * channel.shape[1] + places
        matrix = np.asarray(np.kron(matrix, channel.matrix), dtype=np.float64)
    return matrix, reports


def public_column(data: Any, name: str, n: int | None = None) -> tuple[Codes, list[Any]]:
    """Codes and kinds of a public column, (n,), without missing values; else `InvalidInput`."""
    if n is None:
        n = len(next(iter(data.values()))) if isinstance(data, Mapping) else len(data)
    try:
        values = data[name]
    except (KeyError, IndexError, ValueError):
        raise invalid("formula", "columns of the data", name) from None
    column = as_column(values, f"column {name!r}")
    code, kinds = codes_of(column, n, f"column {name!r}")
    if any(isinstance(kind, str) and not kind.strip() for kind in kinds):
        raise invalid(f"column {name!r}", "a value for every respondent", Phrase("an empty one"))
    return code, kinds


def numbers_of(kinds: list[Any]) -> Array | None:
    """The kinds as numbers, if all of them are; None for labels."""
    if any(isinstance(kind, (bool, tuple)) or (isinstance(kind, str) and "_" in kind) for kind in kinds):
        return None
    with suppress(TypeError, ValueError):
        numbers = np.array([float(kind) for kind in kinds])
        return numbers if np.isfinite(numbers).all() else None
    return None


def declared(data: Any, name: str) -> dict[Any, int]:
    """The places of the categories in the order that a column of a data frame declares; empty if it declares none."""
    with suppress(Exception):
        return {kind: place for place, kind in enumerate(data[name].cat.categories)}
    return {}


def in_order(code: Codes, kinds: list[Any], order: Mapping[Any, int] | None = None) -> tuple[Codes, list[Any]]:
    """Codes and kinds with the kinds in order: the declared one, or numbers by their size and then text."""
    places = order or {}
    sequence = sorted(range(len(kinds)), key=lambda at: (places.get(kinds[at], 0), numbers_first(kinds[at])))
    return np.argsort(sequence)[code], [kinds[place] for place in sequence]


def numbers_first(kind: Any) -> tuple[bool, float, str]:
    """A key for sorting: numbers by their size, then others as text."""
    number = numbers_of([kind])
    return number is None, 0.0 if number is None else float(number[0]), str(kind)


def outcome_of(data: Any, name: str, channel: Channel | None) -> tuple[Channel, Any]:
    """The channel of the outcome (the identity if it is public), and the position of every report among its outputs."""
    if channel is not None:
        require_identifiable(channel)
        return channel, positions(data[name], channel.outputs)
    code, kinds = in_order(*public_column(data, name), declared(data, name))
    if not 2 <= len(kinds) <= 50:
        raise invalid(f"outcome {name!r}", "2 to 50 categories (linear_regression is for numbers)", len(kinds))
    return Channel(np.eye(len(kinds)), kinds), code


def from_reference(answers: Channel, reference: Label) -> tuple[Array, tuple[Label, ...]]:
    """The rows of the channel and their labels, with the reference first."""
    labels = answers.inputs
    first = [0] if reference is None else [x for x, label in enumerate(labels) if reference in (label, str(label))]
    if len(first) != 1:
        raise invalid("reference", f"one of the categories {labels[:8]}", reference)
    order = [*first, *(x for x in range(len(labels)) if x not in first)]
    return answers.matrix[order], tuple(labels[x] for x in order)
