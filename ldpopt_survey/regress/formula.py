"""A formula as in R, such as ``evade ~ age + C(region) + log(income):sex`` -> its variables and its model matrix.

The library formulaic reads formulas and codes factors: an intercept unless it is left out, treatment contrasts against
the first level, and full coding unless another term makes it redundant.
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

POINTWISE_FUNCTIONS = {"log", "log2", "log10", "exp", "exp2", "exp10", "sqrt", "abs", "I", "C"}
"""Functions of one respondent's value."""

CODINGS = {"Treatment", "Sum", "Helmert", "Diff", "Poly"}
"""Contrasts of a factor by statsmodels' names; formulaic's are ``contr.treatment`` and so on."""

WHOLE_COLUMN_FUNCTIONS = {"poly", "bs", "cr", "cs", "cc", "center", "scale", "standardize"}
"""Functions of one value that depend on the values of all respondents."""

_ALLOWED_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Compare, ast.cmpop, ast.Call, ast.keyword,
    ast.Name, ast.Attribute, ast.Constant, ast.List, ast.Tuple, ast.Load,
)  # fmt: skip
_TOKEN = re.compile(r"""(`[^`]+`)|("[^"]*"|'[^']*')|([^\W\d][\w.]*)(?=(\s*\()?)""")
_ALIAS = re.compile(r"\bcolumn_(\d+)_")


@dataclass(frozen=True)
class Matrix:
    """The model matrix of n respondents.

    - `values` : (n, d) the matrix. `names` are the names of its columns.
    - `public` : (n, q) the public factors alone.
    - `levels` : the reference levels.
    """

    values: Array
    names: tuple[str, ...]
    public: Array
    levels: dict[str, Label]


@dataclass(frozen=True)
class Formula:
    """A parsed formula.

    - `outcome` : its column.
    - `transform` : the expression on the left side, if it is more than the column.
    - `columns` : all columns on the right side, each once.
    """

    text: str
    outcome: str
    columns: tuple[str, ...]
    transform: str | None
    right: Any = field(repr=False)
    names: Mapping[str, str] = field(repr=False)
    """The columns by their names in `right`, where they are other ones."""

    def matrix(
        self, columns: Mapping[str, Any], all_columns: Callable[[], Mapping[str, Any]], private: frozenset[str]
    ) -> Matrix:
        """Compute the regressors of the rows of `columns`.

        all_columns : returns the columns of all respondents, for functions of all values.
        private : the names of the private columns.

        Without columns there is one row.
        """
        import pandas as pd
        from formulaic import Formula as Read

        frame = self._frame(columns)
        full_frame = self._frame(all_columns()) if self._needs_all_rows(private) else None
        model_matrix = self._model_matrix(self.right, frame, full_frame)
        public_factors = dict.fromkeys(factor for term in self.right for factor in self._public(term, private))
        parts = [pd.DataFrame({"1": np.ones(len(frame))})]
        if private:
            parts += [
                self._model_matrix(Read(f"1 + {{{public_factor}}}"), frame, full_frame)
                for public_factor in public_factors
            ]
        names = tuple(self._readable(str(name)) for name in model_matrix.columns)
        values = np.asarray(model_matrix, dtype=np.float64)
        if not len(names):
            raise invalid("formula", "an intercept or a predictor", self.text)
        if not (is_finite := np.isfinite(values).all(axis=0)).all():
            raise invalid(
                "formula", "numbers in every row", f"{names[int(np.argmin(is_finite))]}, which is none in some"
            )
        public = np.hstack([np.asarray(part, dtype=np.float64) for part in parts])
        return Matrix(values, names, public, self._levels(model_matrix))

    def transform_outcome(self, numbers: Array) -> Array:
        """Transform the numbers (n,) of the outcome's column as on the left side of the formula."""
        if self.transform is None:
            return numbers
        from formulaic import Formula as Read

        model_matrix = self._model_matrix(Read(f"0 + {{{self.transform}}}"), self._frame({self.outcome: numbers}), None)
        values = np.asarray(model_matrix, dtype=np.float64).reshape(len(numbers), -1)
        if values.shape[1] != 1 or not np.isfinite(values).all():
            raise invalid(
                "formula", f"a number for every value of {self.outcome!r} on the left", self._readable(self.transform)
            )
        return np.asarray(values[:, 0])

    def require_categories(self) -> None:
        """Raise `InvalidInput` if the left side is a function of the outcome.

        Categories do not have such functions.
        """
        if self.transform is not None:
            raise invalid("formula", "the outcome's own name on the left (categories have no logarithm)", self.text)

    def _frame(self, columns: Mapping[str, Any]) -> Any:
        import pandas as pd

        alias_of = {name: alias for alias, name in self.names.items()}
        if not columns:
            return pd.DataFrame({"column_0_": [0.0]})
        return pd.DataFrame({alias_of.get(name, name): column for name, column in columns.items()})

    def _model_matrix(self, terms: Any, frame: Any, full_frame: Any) -> Any:
        from formulaic.errors import FormulaicError

        context = {"sqrt": np.sqrt, "abs": np.abs}
        try:
            with np.errstate(all="ignore"):
                if full_frame is None:
                    return terms.get_model_matrix(frame, context=context, na_action="ignore")
                spec = terms.get_model_matrix(full_frame, context=context, na_action="ignore").model_spec
                return spec.get_model_matrix(frame, context=context, na_action="ignore")
        except (FormulaicError, ArithmeticError, TypeError, ValueError, LookupError) as error:
            where = re.search(r"factor `([^`]*)`", str(error))  # the rest may quote values
            got = Phrase(self._readable(where[1])) if where else self.text
            raise invalid("formula", "terms that can be computed from these columns", got) from None

    def _needs_all_rows(self, private: frozenset[str]) -> bool:
        """True if some function depends on all values; `InvalidInput` if it depends on those of a private column."""
        depends_on_all = False
        for term in self.right:
            for factor in term.factors:
                calls = [node for node in ast.walk(_tree(factor)) if _function(node) in WHOLE_COLUMN_FUNCTIONS]
                column_names = {name for node in calls for name in self._column_names(node)}
                if column_names & private:
                    expected = (
                        f"{', '.join(sorted(WHOLE_COLUMN_FUNCTIONS))} of public columns (I(x**2) is of one answer)"
                    )
                    raise invalid("formula", expected, sorted(column_names & private)[0])
                depends_on_all |= bool(calls)
        return depends_on_all

    def _public(self, term: Any, private: frozenset[str]) -> Iterator[str]:
        """The factors of a term that contain public columns alone, and the public columns of the others."""
        for factor in term.factors:
            column_names = self._column_names(_tree(factor))
            if column_names and not set(column_names) & private:
                yield factor.expr
            else:
                alias_of = {name: alias for alias, name in self.names.items()}
                yield from (alias_of.get(name, name) for name in column_names if name not in private)

    def _column_names(self, tree: ast.AST) -> list[str]:
        return [self.names.get(name, name) for name in _variables(tree)]

    def _levels(self, model_matrix: Any) -> dict[str, Label]:
        """The reference level of each factor: the base of its contrasts, or its first level."""
        levels: dict[str, Label] = {}
        for expression, contrasts in model_matrix.model_spec.factor_contrasts.items():
            column_names = self._column_names(_tree(expression))
            if len(column_names) == 1:
                base = getattr(contrasts.contrasts, "base", None)
                level = base if base in contrasts.levels else contrasts.levels[0]
                levels[column_names[0]] = int(level) if isinstance(level, float) and level.is_integer() else level
        return levels

    def _readable(self, name: str) -> str:
        """A name or a message of formulaic with the original column names: ``C(sex)[T.m]`` is ``sex[m]``."""
        readable = re.sub(r"(?<!\w)C\((\w+)\)\[", r"\1[", name).replace("[T.", "[")
        readable = re.sub(r"\[((?:[A-Z]\.)?-?\d+)\.0\]", r"[\1]", readable)  # whole numbers as labels
        return _ALIAS.sub(lambda match: self.names.get(match[0], match[0]), readable)

    @cached_property
    def intercept(self) -> bool:
        """True if the right side has an intercept."""
        return any(not term.degree for term in self.right)


def parse_formula(text: str) -> Formula:
    """Parse a formula: ``outcome ~ term + term``, as in R; anything else is `InvalidInput`.

    - ``a:b`` is an interaction, ``a*b`` stands for ``a + b + a:b``, and ``(a + b)^2`` for all with at most two of them.
    - ``0 +`` or ``- 1`` leaves the intercept out.
    - ``C(a)`` takes numbers as labels, and ``C(a, contr.treatment("x"))`` compares with the level x.
    - ``log(a)``, ``exp(a)``, ``sqrt(a)``, ``I(a**2)`` are functions of one answer; ``poly``, ``bs``, ``center``,
      ``scale`` of all answers of a public column.
    - A name with blanks or signs is put in backticks.

    No other Python syntax is accepted.
    """
    from formulaic import Formula as Read
    from formulaic.errors import FormulaicError

    if not isinstance(text, str):
        raise invalid("formula", FORM, text)
    if text.partition("~")[2].strip() == "":
        raise invalid("formula", FORM, text)
    aliased_text, names = _with_aliases(text)
    try:
        parsed = Read(aliased_text)
        left_terms, right_terms = list(parsed.lhs), parsed.rhs
        factors = [factor for term in right_terms for factor in term.factors]
    except (FormulaicError, AttributeError, SyntaxError, TypeError, ValueError, RecursionError):
        raise invalid("formula", FORM, text) from None
    if len(left_terms) != 1 or len(left_terms[0].factors) != 1:
        raise invalid("formula", f"one outcome: {FORM}", text)
    outcome = left_terms[0].factors[0]
    columns: list[str] = []
    for factor in (outcome, *factors):
        tree = _tree(factor)
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED_NODES):
                raise invalid("formula", FORM, text)
            if isinstance(node, ast.Call) and _function(node) is None:
                functions = sorted(POINTWISE_FUNCTIONS | WHOLE_COLUMN_FUNCTIONS)
                raise invalid("formula", f"the functions {', '.join(functions)}", Phrase(ast.unparse(node.func)))
            if isinstance(node, ast.Attribute) and not _namespace(node):
                raise invalid("formula", FORM, text)
        columns.append("\n".join(names.get(name, name) for name in _variables(tree)))
    if not columns[0] or "\n" in columns[0]:
        raise invalid("formula", f"one column as outcome: {FORM}", text)
    if any(_function(node) in WHOLE_COLUMN_FUNCTIONS | {"C"} for node in ast.walk(_tree(outcome))):
        raise invalid("formula", "a column on the left, or a function of one value", text)
    predictors = tuple(dict.fromkeys(name for joined_names in columns[1:] for name in joined_names.split("\n") if name))
    if columns[0] in predictors:
        raise invalid("formula", "predictors other than the outcome", columns[0])
    if not factors:
        raise invalid("formula", "an intercept or a predictor", text)
    transform = None if isinstance(_tree(outcome), ast.Name) else outcome.expr
    return Formula(text, columns[0], predictors, transform, right_terms, names)


def _with_aliases(text: str) -> tuple[str, dict[str, str]]:
    """The formula with an alias for each column whose name is not a Python identifier, and the columns by alias."""
    names: dict[str, str] = {}
    if _ALIAS.search(text):
        raise invalid("formula", "names other than column_1_", text)

    def alias(name: str) -> str:
        alias_name = next((key for key, column in names.items() if column == name), f"column_{len(names)}_")
        names[alias_name] = name
        return alias_name

    def replace_token(token: re.Match[str]) -> str:
        quoted, string, name, called = token.groups()
        if quoted:
            return alias(quoted.strip("`"))
        if string or called is not None or name in ("True", "False", "None") or name.split(".")[0] in ("contr", "np"):
            return token[0]
        return name if name.isascii() and name.isidentifier() and not keyword.iskeyword(name) else alias(name)

    aliased_text = _TOKEN.sub(replace_token, text)
    return aliased_text, names


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
    return (
        base_name if (base_name := name.removeprefix("np.")) in POINTWISE_FUNCTIONS | WHOLE_COLUMN_FUNCTIONS else None
    )


def _namespace(node: ast.Attribute) -> bool:
    owner = node.value
    return isinstance(owner, ast.Name) and owner.id in ("contr", "np") and not node.attr.startswith("_")


def _variables(tree: ast.AST) -> list[str]:
    """The columns of an expression: its names except those of functions."""
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    spaces = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if any(isinstance(node, ast.Call) and ast.unparse(node.func) == "C" for node in ast.walk(tree)):
        spaces |= {id(node) for node in names if node.id in CODINGS}  # as in C(f, Sum)
    return list(dict.fromkeys(node.id for node in names if id(node) not in functions | spaces))
