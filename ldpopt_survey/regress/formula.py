"""A formula such as ``evade ~ age + sex`` and columns -> the regressors, one row for each combination of values."""

from __future__ import annotations

import re
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
from ldpopt_survey.estimate.counts import column as as_column
from ldpopt_survey.estimate.counts import factor as codes_of
from ldpopt_survey.estimate.counts import positions
from ldpopt_survey.estimate.linear import require_identifiable

_NAME = r"(?:`[^`]+`|[^\W\d]\w*(?:\.\w+)*)"
_FACTOR = rf"(?:C\s*\(\s*{_NAME}\s*\)|{_NAME})"
_OUTCOME = re.compile(rf"\s*({_NAME})\s*~\s*")
_PIECE = re.compile(rf"([+-])\s*(?:(\d+)|({_FACTOR}(?:\s*[:*]\s*{_FACTOR})*))\s*")
_PART = re.compile(rf"([:*]?)\s*(?:C\s*\(\s*({_NAME})\s*\)|({_NAME}))\s*")
_TERMS = "terms of names, C(name), : and * with + between them (a name with other signs in backticks)"


@dataclass(frozen=True)
class Factor:
    """A column that a term names; `categorical` if it is written ``C(...)``."""

    name: str
    categorical: bool = False


Term = tuple[Factor, ...]
"""One column, or several columns whose products are the regressors."""


@dataclass(frozen=True)
class Formula:
    """The outcome, the terms in their order, and whether there is an intercept."""

    outcome: str
    terms: tuple[Term, ...]
    intercept: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """All predictors in the formula, each once."""
        return tuple(dict.fromkeys(factor.name for term in self.terms for factor in term))


def parse_formula(text: str) -> Formula:
    """A formula from its text: ``outcome ~ term + term``; anything else is `InvalidInput`.

    A term is a column ``a``, labels ``C(a)``, an interaction ``a:b``, or ``a*b``, which stands for ``a + b + a:b``.
    ``0`` or ``-1`` leaves the intercept out. A name with blanks or signs is put in backticks.
    """
    if not isinstance(text, str) or (head := _OUTCOME.match(text)) is None:
        raise invalid("formula", "a text: outcome ~ predictor + predictor", text)
    outcome, rest = head[1].strip("`"), text[head.end() :].strip()
    if not re.match(r"-\s*1\b", rest):
        rest = f"+{rest}"  # every term has a sign before it
    terms: list[Term] = []
    intercept, position = True, 0
    while position < len(rest):
        piece = _PIECE.match(rest, position)
        if piece is None:
            raise invalid("formula", _TERMS, text)
        (sign, number, product), position = piece.groups(), piece.end()
        if number is not None and (number not in ("0", "1") or (sign == "-" and number == "0")):
            raise invalid("formula", "no number but 0, 1 and -1, which are about the intercept", number)
        if number is not None:
            intercept = number == "1" and sign == "+"
        elif sign == "-":
            raise invalid("formula", "- before 1 alone", text)
        else:
            terms += [term for term in _product(product) if set(term) not in map(set, terms)]
    if not terms and not intercept:
        raise invalid("formula", "an intercept or a predictor", text)
    if any(factor.name == outcome for term in terms for factor in term):
        raise invalid("formula", "predictors other than the outcome", outcome)
    return Formula(outcome, tuple(terms), intercept)


def _product(text: str) -> list[Term]:
    """The terms of ``a``, ``a:b`` or ``a*b*c``."""
    crossed: list[Term] = []
    for sign, categorical, name in _PART.findall(text):
        factor = Factor((categorical or name).strip("`"), bool(categorical))
        if sign == ":":
            crossed[-1] = _joined(crossed[-1], (factor,))
        else:
            crossed.append((factor,))
    terms: list[Term] = []
    for following in crossed:
        terms = [*terms, following, *(_joined(term, following) for term in terms)]
    return sorted(terms, key=len)


def _joined(first: Term, second: Term) -> Term:
    return (*first, *(factor for factor in second if factor not in first))


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
    categorical = {factor.name for term in formula.terms for factor in term if factor.categorical}
    columns: dict[str, list[tuple[str, Array, bool]]] = {}
    levels: dict[str, Label] = {}
    for name in formula.columns:
        if inside := name in private:
            code = np.array([cell[list(private).index(name)] for cell in cells], dtype=np.intp)
            kinds = list(private[name])
        else:
            code, kinds = public_column(data, name, n)
        coded = _coded(name, kinds, code, name in categorical, levels, inside)
        columns[name] = [(title, values, inside) for title, values in coded]
    open_columns = [values for coded in columns.values() for _, values, inside in coded if not inside]
    group, firsts = np.zeros(n, dtype=np.intp), np.zeros(1, dtype=np.intp)
    if open_columns:
        unique = np.unique(np.stack(open_columns, axis=1), axis=0, return_index=True, return_inverse=True)
        firsts, group = unique[1], unique[2].reshape(-1)
    terms: list[tuple[str, Array]] = []
    shape = (len(firsts), len(cells))
    if formula.intercept:
        terms.append(("Intercept", np.ones(shape)))
    for term in formula.terms:
        for parts in product(*(columns[factor.name] for factor in term)):
            value = np.ones(shape)
            for _, values, inside in parts:
                value = value * (values[None, :] if inside else values[firsts][:, None])
            terms.append((":".join(title for title, *_ in parts), value))
    values = np.stack([value for _, value in terms], axis=-1)
    flat = values.reshape(-1, values.shape[-1])
    scale = np.abs(flat).max(axis=0)
    if (scale == 0).any() or np.linalg.matrix_rank(flat / scale) < flat.shape[1]:
        raise invalid("formula", "predictors of which none follows from the others", Phrase("collinear ones"))
    public = np.column_stack([np.ones(len(firsts)), *[column[firsts] for column in open_columns]])
    return Regressors(tuple(title for title, _ in terms), values, public, group, levels)


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


def _coded(
    name: str, kinds: list[Any], code: Codes, categorical: bool, levels: dict[str, Label], ordered: bool = False
) -> list[tuple[str, Array]]:
    """The columns of one variable: the number itself, or for a factor an indicator of each level except the first."""
    numbers = None if categorical else numbers_of(kinds)
    if numbers is not None:
        return [(name, numbers[code])]
    if not ordered:
        code, kinds = in_order(code, kinds)
    if len(kinds) < 2:
        raise invalid(f"column {name!r}", "at least two different values", Phrase("one"))
    if len(kinds) > MAX_LEVELS:
        raise invalid(f"column {name!r}", f"numbers, or at most {MAX_LEVELS} levels", len(kinds))
    levels[name] = kinds[0]
    return [(f"{name}[{kind}]", (code == level).astype(float)) for level, kind in enumerate(kinds[1:], 1)]


def in_order(code: Codes, kinds: list[Any]) -> tuple[Codes, list[Any]]:
    """Codes and kinds with the kinds in order."""
    order = sorted(range(len(kinds)), key=lambda place: numbers_first(kinds[place]))
    return np.argsort(order)[code], [kinds[place] for place in order]


def numbers_first(kind: Any) -> tuple[bool, float, str]:
    """A key for sorting: numbers by their size, then others as text."""
    number = numbers_of([kind])
    return number is None, 0.0 if number is None else float(number[0]), str(kind)


def outcome_of(data: Any, name: str, channel: Channel | None) -> tuple[Channel, Any]:
    """The channel of the outcome (the identity if it is public), and the position of every report among its outputs."""
    if channel is not None:
        require_identifiable(channel)
        return channel, positions(data[name], channel.outputs)
    code, kinds = in_order(*public_column(data, name))
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
