"""A formula as in R, such as ``evade ~ age + C(region) + log(income):sex`` -> its variables and its model matrix.

Formulas are read, and factors are coded, by the library formulaic: an intercept unless it is left out, treatment
contrasts against the first level, and full coding wherever no other term has what it needs.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import Array

FORM = (
    "outcome ~ predictor + predictor, as in R: + - : * / ^ ( ), 0 + or - 1 without an intercept, C(name), I(x**2), "
    "log(x); a name with other signs in backticks"
)

POINTWISE = {"log", "log2", "log10", "exp", "exp2", "exp10", "sqrt", "abs", "I", "C"}
"""Functions of one respondent's value."""

CODINGS = {"Treatment", "Sum", "Helmert", "Diff", "Poly"}
"""Contrasts of a factor by statsmodels' names; formulaic's are ``contr.treatment`` and so on."""

OF_ALL = {"poly", "bs", "cr", "cs", "cc", "center", "scale", "standardize"}
"""Functions that depend on the values of all respondents."""

_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Compare, ast.cmpop, ast.Call, ast.keyword,
    ast.Name, ast.Attribute, ast.Constant, ast.List, ast.Tuple, ast.Load,
)  # fmt: skip
_TOKEN = re.compile(r"""(`[^`]+`)|("[^"]*"|'[^']*')|([^\W\d][\w.]*)(?=(\s*\()?)""")
_ALIAS = re.compile(r"\bcolumn_(\d+)_")


@dataclass(frozen=True)
class Matrix:
    """The model matrix (n, d) with the names of its columns; the public factors alone, (n, q); the reference levels."""

    values: Array
    names: tuple[str, ...]
    public: Array
    levels: dict[str, Label]


@dataclass(frozen=True)
class Formula:
    """A formula that was read.

    outcome : its column. transform : the expression on the left side, if it is more than the column. columns : all
        columns on the right side, each once.
    """

    text: str
    outcome: str
    columns: tuple[str, ...]
    transform: str | None
    right: Any = field(repr=False)
    names: Mapping[str, str] = field(repr=False)
    """The columns by their names in `right`, where they are other ones."""

    def matrix(
        self, columns: Mapping[str, Any], everybody: Callable[[], Mapping[str, Any]], private: frozenset[str]
    ) -> Matrix:
        """The regressors of the rows of `columns`; functions of all values take these from `everybody`.

        With no columns there is one row.
        """
        import pandas as pd
        from formulaic import Formula as Read

        frame = self._frame(columns)
        everyone = self._frame(everybody()) if self._of_all(private) else None
        made = self._evaluated(self.right, frame, everyone)
        mains = dict.fromkeys(factor for term in self.right for factor in self._public(term, private))
        parts = [pd.DataFrame({"1": np.ones(len(frame))})]
        if private:
            parts += [self._evaluated(Read(f"1 + {{{main}}}"), frame, everyone) for main in mains]
        names = tuple(self._shown(str(name)) for name in made.columns)
        values = np.asarray(made, dtype=np.float64)
        if not len(names):
            raise invalid("formula", "an intercept or a predictor", self.text)
        if not (finite := np.isfinite(values).all(axis=0)).all():
            raise invalid("formula", "numbers in every row", f"{names[int(np.argmin(finite))]}, which is none in some")
        public = np.hstack([np.asarray(part, dtype=np.float64) for part in parts])
        return Matrix(values, names, public, self._levels(made))

    def transformed(self, numbers: Array) -> Array:
        """The numbers (n,) of the outcome's column as the left side of the formula has them."""
        if self.transform is None:
            return numbers
        from formulaic import Formula as Read

        made = self._evaluated(Read(f"0 + {{{self.transform}}}"), self._frame({self.outcome: numbers}), None)
        values = np.asarray(made, dtype=np.float64).reshape(len(numbers), -1)
        if values.shape[1] != 1 or not np.isfinite(values).all():
            raise invalid(
                "formula", f"a number for every value of {self.outcome!r} on the left", self._shown(self.transform)
            )
        return np.asarray(values[:, 0])

    def require_categories(self) -> None:
        """`InvalidInput` if the left side is a function of the outcome, which categories do not have."""
        if self.transform is not None:
            raise invalid("formula", "the outcome's own name on the left (categories have no logarithm)", self.text)

    def _frame(self, columns: Mapping[str, Any]) -> Any:
        import pandas as pd

        other = {name: alias for alias, name in self.names.items()}
        if not columns:
            return pd.DataFrame({"column_0_": [0.0]})
        return pd.DataFrame({other.get(name, name): column for name, column in columns.items()})

    def _evaluated(self, terms: Any, frame: Any, everyone: Any) -> Any:
        from formulaic.errors import FormulaicError

        context = {"sqrt": np.sqrt, "abs": np.abs}
        try:
            with np.errstate(all="ignore"):
                if everyone is None:
                    return terms.get_model_matrix(frame, context=context, na_action="ignore")
                spec = terms.get_model_matrix(everyone, context=context, na_action="ignore").model_spec
                return spec.get_model_matrix(frame, context=context, na_action="ignore")
        except (FormulaicError, ArithmeticError, TypeError, ValueError, LookupError) as error:
            where = re.search(r"factor `([^`]*)`", str(error))  # the rest may quote values
            got = Phrase(self._shown(where[1])) if where else self.text
            raise invalid("formula", "terms that can be computed from these columns", got) from None

    def _of_all(self, private: frozenset[str]) -> bool:
        """Whether some function depends on all values; `InvalidInput` if it does on those of a private column."""
        found = False
        for term in self.right:
            for factor in term.factors:
                called = [node for node in ast.walk(_tree(factor)) if _function(node) in OF_ALL]
                inside = {name for node in called for name in self._named(node)}
                if inside & private:
                    expected = f"{', '.join(sorted(OF_ALL))} of public columns (I(x**2) is of one answer)"
                    raise invalid("formula", expected, sorted(inside & private)[0])
                found |= bool(called)
        return found

    def _public(self, term: Any, private: frozenset[str]) -> Iterator[str]:
        """The factors of a term that are of public columns alone, and the public columns of the others."""
        for factor in term.factors:
            named = self._named(_tree(factor))
            if named and not set(named) & private:
                yield factor.expr
            else:
                other = {name: alias for alias, name in self.names.items()}
                yield from (other.get(name, name) for name in named if name not in private)

    def _named(self, tree: ast.AST) -> list[str]:
        return [self.names.get(name, name) for name in _variables(tree)]

    def _levels(self, made: Any) -> dict[str, Label]:
        """The reference level of each factor: the base of its contrasts, or its first level."""
        levels: dict[str, Label] = {}
        for expression, contrasts in made.model_spec.factor_contrasts.items():
            named = self._named(_tree(expression))
            if len(named) == 1:
                base = getattr(contrasts.contrasts, "base", None)
                level = base if base in contrasts.levels else contrasts.levels[0]
                levels[named[0]] = int(level) if isinstance(level, float) and level.is_integer() else level
        return levels

    def _shown(self, name: str) -> str:
        """A name or a message of formulaic with the columns' own names: ``C(sex)[T.m]`` is ``sex[m]``."""
        said = re.sub(r"(?<!\w)C\((\w+)\)\[", r"\1[", name).replace("[T.", "[")
        said = re.sub(r"\[((?:[A-Z]\.)?-?\d+)\.0\]", r"[\1]", said)  # whole numbers as labels
        return _ALIAS.sub(lambda found: self.names.get(found[0], found[0]), said)

    @cached_property
    def intercept(self) -> bool:
        """Whether the right side has an intercept."""
        return any(not term.degree for term in self.right)


def parse_formula(text: str) -> Formula:
    """A formula from its text: ``outcome ~ term + term``, as R reads it; anything else is `InvalidInput`.

    ``a:b`` is an interaction, ``a*b`` stands for ``a + b + a:b``, ``(a + b)^2`` for all with at most two of them, and
    ``0 +`` or ``- 1`` leaves the intercept out. ``C(a)`` takes numbers as labels, and
    ``C(a, contr.treatment("x"))`` compares with the level x. ``log(a)``, ``exp(a)``, ``sqrt(a)``, ``I(a**2)`` are of
    one answer; ``poly``, ``bs``, ``center``, ``scale`` of all answers of a public column. A name with blanks or signs
    is put in backticks. Nothing else of Python is read.
    """
    from formulaic import Formula as Read
    from formulaic.errors import FormulaicError

    if not isinstance(text, str):
        raise invalid("formula", FORM, text)
    if text.partition("~")[2].strip() == "":
        raise invalid("formula", FORM, text)
    plain, names = _plain(text)
    try:
        read = Read(plain)
        left, right = list(read.lhs), read.rhs
        factors = [factor for term in right for factor in term.factors]
    except (FormulaicError, AttributeError, SyntaxError, TypeError, ValueError, RecursionError):
        raise invalid("formula", FORM, text) from None
    if len(left) != 1 or len(left[0].factors) != 1:
        raise invalid("formula", f"one outcome: {FORM}", text)
    outcome = left[0].factors[0]
    columns: list[str] = []
    for factor in (outcome, *factors):
        tree = _tree(factor)
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED):
                raise invalid("formula", FORM, text)
            if isinstance(node, ast.Call) and _function(node) is None:
                known = sorted(POINTWISE | OF_ALL)
                raise invalid("formula", f"the functions {', '.join(known)}", Phrase(ast.unparse(node.func)))
            if isinstance(node, ast.Attribute) and not _namespace(node):
                raise invalid("formula", FORM, text)
        columns.append("\n".join(names.get(name, name) for name in _variables(tree)))
    if not columns[0] or "\n" in columns[0]:
        raise invalid("formula", f"one column as outcome: {FORM}", text)
    if any(_function(node) in OF_ALL | {"C"} for node in ast.walk(_tree(outcome))):
        raise invalid("formula", "a column on the left, or a function of one value", text)
    predictors = tuple(dict.fromkeys(name for several in columns[1:] for name in several.split("\n") if name))
    if columns[0] in predictors:
        raise invalid("formula", "predictors other than the outcome", columns[0])
    if not factors:
        raise invalid("formula", "an intercept or a predictor", text)
    transform = None if isinstance(_tree(outcome), ast.Name) else outcome.expr
    return Formula(text, columns[0], predictors, transform, right, names)


def _plain(text: str) -> tuple[str, dict[str, str]]:
    """The formula with another name for each column that is no plain name of Python, and the columns by these names."""
    names: dict[str, str] = {}
    if _ALIAS.search(text):
        raise invalid("formula", "names other than column_1_", text)

    def alias(name: str) -> str:
        found = next((key for key, known in names.items() if known == name), f"column_{len(names)}_")
        names[found] = name
        return found

    def replaced(token: re.Match[str]) -> str:
        quoted, string, name, called = token.groups()
        if quoted:
            return alias(quoted.strip("`"))
        if string or called is not None or name in ("True", "False", "None") or name.split(".")[0] in ("contr", "np"):
            return token[0]
        return name if name.isascii() and name.isidentifier() and not keyword.iskeyword(name) else alias(name)

    plain = _TOKEN.sub(replaced, text)
    return plain, names


def _tree(factor: Any) -> ast.AST:
    """The expression of a factor, as Python reads it."""
    return ast.parse(factor if isinstance(factor, str) else factor.expr, mode="eval").body


def _function(node: ast.AST) -> str | None:
    """The name of a function of a formula that a node calls; None for others."""
    if not isinstance(node, ast.Call):
        return None
    name = ast.unparse(node.func)
    if name.startswith("contr.") or name in CODINGS:
        return "contr"
    return plain if (plain := name.removeprefix("np.")) in POINTWISE | OF_ALL else None


def _namespace(node: ast.Attribute) -> bool:
    inside = node.value
    return isinstance(inside, ast.Name) and inside.id in ("contr", "np") and not node.attr.startswith("_")


def _variables(tree: ast.AST) -> list[str]:
    """The columns of an expression: its names but those of functions."""
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    spaces = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if any(isinstance(node, ast.Call) and ast.unparse(node.func) == "C" for node in ast.walk(tree)):
        spaces |= {id(node) for node in named if node.id in CODINGS}  # as in C(f, Sum)
    return list(dict.fromkeys(node.id for node in named if id(node) not in functions | spaces))
