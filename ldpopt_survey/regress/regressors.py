"""A formula and columns -> the regressors, one row per combination of public values and private answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, Label
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Array
from ldpopt.values.labels import as_text
from ldpopt_survey.estimate.counts import column as as_column
from ldpopt_survey.estimate.counts import factor as codes_of
from ldpopt_survey.estimate.counts import positions
from ldpopt_survey.estimate.linear import require_identifiable
from ldpopt_survey.regress.formula import Formula
from ldpopt_survey.regress.result import dependent_terms

Codes = npt.NDArray[np.intp]

MAX_CELLS = 256
"""The largest number of combinations of private answers in the sum of a likelihood."""

MAX_LEVELS = 100
"""The largest number of levels of a public predictor that is not numeric."""


@dataclass(frozen=True)
class Regressors:
    """The design of n respondents. Respondents of one `group` have the same public values.

    - `values` : (u, z, d), the d regressors, called `names`, for each of u different rows of public values and each of
      z cells. A cell is a combination of answers to the private predictors.
    - `public` : (u, q), the public columns with a constant, which model the private predictors.
    - `group` : (n,), the public row of each respondent.
    - `levels` : the reference level of each factor.
    """

    names: tuple[str, ...]
    values: Array
    public: Array
    group: Codes
    levels: dict[str, Label]

    @property
    def private(self) -> bool:
        """True if some predictor is private."""
        return bool(self.values.shape[1] > 1)


def regressors(formula: Formula, data: Any, private: Mapping[str, Sequence[Label]], n: int) -> Regressors:
    """Build the design of `formula` from public columns and answers of private predictors.

    data : the public columns.
    private : the answers of each private predictor.
    """
    cells = list(product(*(range(len(labels)) for labels in private.values())))
    if len(cells) > MAX_CELLS:
        raise invalid("private predictors", f"at most {MAX_CELLS} combinations of answers", len(cells))
    codes: list[Codes] = []
    kinds: dict[str, Kinds] = {}
    for name in formula.columns:
        if name in private:
            kinds[name] = _kinds(name, list(private[name]))
        else:
            code, levels = sort_codes(*public_column(data, name, n), declared_ranks(data, name))
            codes.append(code)
            kinds[name] = _kinds(name, levels)
    group, rows = np.zeros(n, dtype=np.intp), np.zeros((1, 0), dtype=np.intp)
    if codes:
        rows, group = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        group = group.reshape(-1)
    place_of = {name: place for place, name in enumerate(name for name in formula.columns if name not in private)}
    answers = dict(zip(private, np.array(cells, dtype=np.intp).T, strict=True)) if private else {}

    def columns(public: Codes, repetitions: int) -> dict[str, Any]:
        """Expand rows of public codes to columns of values, with each combination of private answers."""
        repeated_codes = np.repeat(public, repetitions, axis=0)
        cell_numbers = np.tile(np.arange(len(cells)), -(-len(repeated_codes) // len(cells)))[: len(repeated_codes)]
        public_codes = {name: repeated_codes[:, place] for name, place in place_of.items()}
        return {
            name: kinds[name].column(public_codes[name] if name in public_codes else answers[name][cell_numbers])
            for name in formula.columns
        }

    model_matrix = formula.matrix(columns(rows, len(cells)), lambda: columns(rows[group], 1), frozenset(private))
    values = model_matrix.values.reshape(len(rows), len(cells), -1)
    flat = values.reshape(-1, values.shape[-1])
    if terms := dependent_terms(flat, model_matrix.names):
        raise invalid("formula", "linearly independent predictors", Phrase(f"collinear ones: {terms}"))
    public = (
        _independent(model_matrix.public.reshape(len(rows), len(cells), -1)[:, 0])
        if private
        else np.ones((len(rows), 1))
    )
    return Regressors(model_matrix.names, values, public, group, model_matrix.levels)


def _independent(columns: Array) -> Array:
    """The columns, divided by their scale, without those that are linear combinations of earlier ones."""
    selected_columns: list[int] = []
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    for index in range(columns.shape[1]):
        if np.linalg.matrix_rank(columns[:, [*selected_columns, index]] / scale[[*selected_columns, index]]) > len(
            selected_columns
        ):
            selected_columns.append(index)
    return columns[:, selected_columns]


@dataclass(frozen=True, eq=False)
class Kinds:
    """The different values of a variable: numbers, or the levels of a factor as text."""

    values: Any
    factor: bool

    def column(self, code: Codes) -> Any:
        """Return the column (n,) whose values are those at the codes."""
        if not self.factor:
            return self.values[code]
        import pandas as pd

        return pd.Categorical.from_codes(code, self.values)


def _kinds(name: str, entries: list[Any]) -> Kinds:
    """The values of a variable: numbers if all are numbers, and otherwise levels."""
    numbers = None if any(isinstance(entry, str) for entry in entries) else numbers_of(entries)
    if numbers is not None:
        return Kinds(numbers, False)
    if len(entries) < 2:
        raise InvalidInput(f"column {name!r}: all values are equal; a predictor needs at least two different values")
    if len(entries) > MAX_LEVELS:
        raise invalid(f"column {name!r}", f"numbers, or at most {MAX_LEVELS} levels", len(entries))
    texts = [as_text(entry) for entry in entries]
    return Kinds(texts if len(set(texts)) == len(texts) else [repr(entry) for entry in entries], True)


def private_predictors(formula: Formula, channels: Mapping[str, Channel]) -> dict[str, Channel]:
    """Select the channels of the private predictors, in order.

    `NotIdentifiable` for a channel that does not determine answers.
    """
    private = {name: channels[name] for name in formula.columns if name in channels}
    for channel in private.values():
        require_identifiable(channel)
    return private


def combine_reports(private: Mapping[str, Channel], data: Any, n: int) -> tuple[Array, Codes]:
    """Combine the predictors' channels to their product (z, r), and the reports likewise.

    The second result is the position of every respondent's reports in it (n,).
    """
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
    """Return codes and distinct values of a public column, (n,).

    Missing values are `InvalidInput`.
    """
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
    """Convert the entries to numbers, if all of them are; None for labels."""
    if any(isinstance(kind, (bool, tuple)) or (isinstance(kind, str) and "_" in kind) for kind in kinds):
        return None
    with suppress(TypeError, ValueError):
        numbers = np.array([float(kind) for kind in kinds])
        return numbers if np.isfinite(numbers).all() else None
    return None


def declared_ranks(data: Any, name: str) -> dict[Any, int]:
    """Return the ranks of the categories that a data-frame column declares; empty if none."""
    with suppress(Exception):
        return {kind: place for place, kind in enumerate(data[name].cat.categories)}
    return {}


def sort_codes(code: Codes, kinds: list[Any], order: Mapping[Any, int] | None = None) -> tuple[Codes, list[Any]]:
    """Sort the codes and distinct values: by the declared order, or numbers first.

    Numbers are sorted by size, texts alphabetically.
    """
    places = order or {}
    sequence = sorted(range(len(kinds)), key=lambda index: (places.get(kinds[index], 0), numbers_first(kinds[index])))
    return np.argsort(sequence)[code], [kinds[place] for place in sequence]


def numbers_first(kind: Any) -> tuple[bool, float, str]:
    """Return a key for sorting: numbers by their size, then others as text."""
    number = numbers_of([kind])
    return number is None, 0.0 if number is None else float(number[0]), str(kind)


def outcome_of(data: Any, name: str, channel: Channel | None) -> tuple[Channel, Any]:
    """Return the channel of the outcome, and the position of every report among its outputs.

    The channel is the identity if the outcome is public.
    """
    if channel is not None:
        require_identifiable(channel)
        return channel, positions(data[name], channel.outputs)
    code, kinds = sort_codes(*public_column(data, name), declared_ranks(data, name))
    if not 2 <= len(kinds) <= 50:
        raise invalid(f"outcome {name!r}", "2 to 50 categories (linear_regression is for numbers)", len(kinds))
    return Channel(np.eye(len(kinds)), kinds), code


def reference_first(answers: Channel, reference: Label) -> tuple[Array, tuple[Label, ...]]:
    """Return the rows of the channel and their labels, with the reference first."""
    labels = answers.inputs
    first = [0] if reference is None else [x for x, label in enumerate(labels) if reference in (label, str(label))]
    if len(first) != 1:
        raise invalid("reference", f"one of the categories {labels[:8]}", reference)
    order = [*first, *(x for x in range(len(labels)) if x not in first)]
    return answers.matrix[order], tuple(labels[x] for x in order)
