"""Privatize a frame of answers by a transformer of scikit-learn, for pipelines and pilots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import need, pa, pc
from ldpopt_survey.collect.batch import privatize_frame
from ldpopt_survey.collect.coding import Coder
from ldpopt_survey.collect.leaks import MAX_SAMPLED_ROWS, find_leaks
from ldpopt_survey.collect.randomness import Fresh, Randomness
from ldpopt_survey.datafiles.pieces import values_hidden
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.reading import Reading
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
from ldpopt_survey.plan.survey import plan_survey

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.exceptions import NotFittedError
except ImportError:  # the class reports it when an instance is created
    BaseEstimator, OneToOneFeatureMixin, TransformerMixin, NotFittedError = (
        type(name, (), {}) for name in ("BaseEstimator", "OneToOneFeatureMixin", "TransformerMixin", "NotFittedError")
    )

NO_ANSWER = "no answer"
ANSWER_TYPES = "text, whole numbers or truth values"
MISSING_POLICIES = ("refuse", "category", "left out")


class NotFitted(InvalidInput, NotFittedError):  # type: ignore[misc]
    """A transformer was used before `fit`: an `InvalidInput`, and a `NotFittedError` for scikit-learn."""


class PrivatizingTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer that designs a channel for every column and replaces answers by reports, jointly epsilon-LDP.

    It has the interface of scikit-learn: `fit` plans, `transform` draws, `get_feature_names_out` names the columns of
    the reports, and `set_output` chooses the type of frame. A frame of pandas gives one of pandas (with categories),
    one of Polars one of Polars, an arrow table the same, and anything else (n, columns) an array of objects. Columns
    without names of text are x0, x1, ..., as everywhere in scikit-learn.

    Parameters
    ----------
    epsilon : The epsilon of the whole row, in nats. In a `ColumnTransformer` the epsilons of its privatizers add up.
    eta : A cap on total variation, for each column.
    categories : "observed", or the answers of every column by its name, which are then not taken from the data. Answers
        are text, whole numbers or truth values; cut other numbers into ranges first (`KBinsDiscretizer`).
    pilot : The expected proportions of the categories, by column; uniform for columns without one.
    design : As `[budget] design` of a survey. The default "split" draws a report in every column. With "booklets" each
        row is asked one part, and the others are empty.
    randomness : As in `privatize`; fresh words by default. `Simulated(rng)` protects nobody.
    missing : The treatment of a missing answer (None, NaN), one of three words:

        - "refuse", the default, raises.
        - "category" adds the answer "no answer" to every column, so that the absence of an answer is protected, too.
        - "left out" leaves the report empty, and everybody sees who did not answer. Epsilon does not cover that, and
          `transform` refuses if it would disclose another answer.

    The fitted values (categories, pilot) are published with the plan: fit on a pilot, or give categories.

    >>> import numpy as np
    >>> from ldpopt_survey import Simulated
    >>> from ldpopt_survey.transformer import PrivatizingTransformer
    >>> answers = np.array([["no", "red"], ["yes", "blue"], ["no", "blue"]])
    >>> privatizer = PrivatizingTransformer(2.0, randomness=Simulated(np.random.default_rng(0))).fit(answers)
    >>> privatizer.plan_.epsilon <= 2.0, privatizer.transform(answers).shape, list(privatizer.get_feature_names_out())
    (True, (3, 2), ['x0', 'x1'])
    """

    plan_: Plan
    feature_names_in_: npt.NDArray[Any]
    n_features_in_: int

    def __init__(
        self, epsilon: float = 1.0, *, eta: float | None = None,
        categories: str | Mapping[str, Sequence[Label]] = "observed", pilot: Mapping[str, Any] | None = None,
        design: str = "split", randomness: Randomness | None = None, missing: str = "refuse",
    ) -> None:  # fmt: skip
        need("sklearn")
        self.epsilon, self.eta, self.categories = epsilon, eta, categories
        self.pilot, self.design, self.randomness, self.missing = pilot, design, randomness, missing

    def fit(self, X: Any, y: Any = None) -> Self:
        """Plan the channels of the columns of X, (n, columns).

        `InvalidInput` if no plan is possible.
        """
        if self.missing not in MISSING_POLICIES:
            raise invalid("missing", f"one of {', '.join(map(repr, MISSING_POLICIES))}", self.missing)
        table = self._table(X, is_fit=True)
        names, pilot = table.column_names, self.pilot or {}
        answers_by_column = {} if isinstance(self.categories, str) else self.categories
        if isinstance(self.categories, str) and self.categories != "observed":
            raise invalid("categories", "'observed' or the answers by column", self.categories)
        for name_of_setting, columns in (("categories", answers_by_column), ("pilot", pilot)):
            if unknown_columns := sorted(set(columns) - set(names)):
                raise invalid(name_of_setting, f"columns among {', '.join(names)}", ", ".join(unknown_columns))
        has_category = self.missing == "category"
        questions = tuple(
            QuestionSpec(
                name,
                tuple(answers_by_column.get(name) or _observed_categories(table, name)) + (NO_ANSWER,) * has_category,
                missing=NO_ANSWER if has_category else None,
                pilot=pilot.get(name),
                eta=self.eta,
                reading=Reading(missing_answers=self.missing),
            )
            for name in names
        )
        for question in questions:  # as `transform` does
            codes, is_missing = Coder(question).positions(table.column(question.name).combine_chunks())
            is_unknown = codes < 0 if is_missing is None else (codes < 0) & ~is_missing
            if is_unknown.any():
                raise InvalidInput(f"column {question.name!r}: an answer is not one of its categories")
        self.plan_ = plan_survey(SurveySpec("transformer", questions, epsilon=self.epsilon, design=self.design)).plan
        return self

    def transform(self, X: Any) -> Any:
        """Randomize the rows of X; the result is a frame of its type.

        Each call consumes epsilon anew.
        """
        from sklearn.utils._set_output import _get_output_config

        plan = self._plan("transform")
        table = self._table(X, is_fit=False)
        if self.missing == "left out" and find_leaks(plan, table.slice(0, MAX_SAMPLED_ROWS)):
            raise InvalidInput("X: missing answers disclose other answers; missing='category' hides who answered")
        reports = privatize_frame(plan, table, self.randomness or Fresh())[0]
        reports = reports.replace_schema_metadata(None)
        if hasattr(X, "to_pandas") and _get_output_config("transform", self)["dense"] == "pandas":
            return reports.to_pandas()  # scikit-learn makes frames of pandas from arrays alone
        return _as_type_of(X, reports)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """List the columns of the reports.

        input_features : the columns of the answers, for frames without names.
        """
        plan = self._plan("get_feature_names_out")
        names = super().get_feature_names_out(input_features)
        return np.array([*(["booklet"] if plan.booklets else []), *names], dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Return the data that scikit-learn may pass: text, integers, and missing values if `missing` allows them."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _plan(self, method: str) -> Plan:
        if not hasattr(self, "plan_"):
            raise NotFitted(f"PrivatizingTransformer: expected a fitted one, got {method}() before fit()")
        return self.plan_

    def _table(self, X: Any, is_fit: bool) -> Any:
        """Return X as an arrow table with the feature names, which are stored or compared."""
        from sklearn.utils.validation import validate_data

        table = _arrow(X)
        named_data = X if hasattr(X, "iloc") else table if hasattr(X, "columns") else np.empty(table.shape)
        validate_data(self, X=named_data, reset=is_fit, skip_check_array=True)
        names = getattr(self, "feature_names_in_", [f"x{number}" for number in range(self.n_features_in_)])
        for name, column in zip(names, table.columns, strict=True):
            if self.missing == "refuse" and pc.any(pc.is_null(column, nan_is_null=True)).as_py():
                expected = "no missing answers (or missing='category' or 'left out')"
                raise invalid(f"column {name!r}", expected, Phrase("some that are missing, None or NaN"))
        return table.rename_columns(list(names))


def _arrow(X: Any) -> Any:
    """Return the answers as an arrow table; columns of an array are x0, x1, ... No message holds an answer."""
    if hasattr(X, "toarray"):
        raise invalid("X", "a dense array or frame (call .toarray())", Phrase("sparse data"))
    is_frame = hasattr(X, "__arrow_c_stream__")
    try:
        array = X if is_frame or isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    except ValueError:
        raise InvalidInput("X: the rows have different lengths") from None
    if len(array.shape) != 2:
        got = Phrase(f"shape {array.shape}. Reshape your data: .reshape(-1, 1) makes one column")
        raise invalid("X", "a frame, or an array of shape (n, columns)", got)
    if not array.shape[1]:
        raise _no_data_error("feature", array.shape)
    if is_frame:
        column_names = list(getattr(X, "column_names", getattr(X, "columns", [])))
        if len(set(column_names)) < len(column_names):
            raise invalid("X", "columns with names of their own", Phrase("a name twice"))
        table = values_hidden("X, a frame of answers", pa.table, X)
        answer_columns = [name for name in table.column_names if not name.startswith("__index_level_")]
        table = table.select(answer_columns).replace_schema_metadata(None)
    elif array.dtype.kind == "c":
        raise invalid("X", ANSWER_TYPES, Phrase("complex numbers. Complex data not supported"))
    else:
        table = pa.table(
            {f"x{position}": _column(f"x{position}", column.tolist()) for position, column in enumerate(array.T)}
        )
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py():
            raise invalid(f"column {name!r}", ANSWER_TYPES, Phrase("infinity"))
    return table


def _column(name: str, values: list[Any]) -> Any:
    """Return an array of arrow, with null for None, NaN and NA."""
    return values_hidden(f"column {name!r}, answers of one type", partial(pa.array, from_pandas=True), values)


def _no_data_error(noun: str, shape: tuple[int, ...]) -> InvalidInput:
    """Return the error for data without columns, or without rows, in scikit-learn's words."""
    return invalid("X", "answers", Phrase(f"0 {noun}(s) (shape={shape}) while a minimum of 1 is required."))


def _observed_categories(table: Any, name: str) -> list[Label]:
    """Return the answers of a column: ordered categories of a categorical, else the sorted distinct values."""
    column = table.column(name).combine_chunks()
    is_categorical = pa.types.is_dictionary(column.type)
    answers = column.dictionary if is_categorical else column
    if pa.types.is_string_view(answers.type):  # whose distinct values hold '' in place of null
        answers = pc.cast(answers, pa.large_string())
    values: list[Any] = []
    if not pa.types.is_nested(answers.type):
        values = pc.drop_null(answers).unique().to_pylist()
        values = [value for value in values if value == value]  # NaN
    if all(isinstance(value, float) and value.is_integer() for value in values):
        values = [int(value) for value in values]
    texts, numbers = (all(isinstance(value, kind) for value in values) for kind in (str, int))
    if pa.types.is_nested(answers.type) or not (texts or numbers):
        raise InvalidInput(
            f"column {name!r}: the answers must be {ANSWER_TYPES}; cut other numbers into ranges first, as "
            "KBinsDiscretizer does"
        )
    if len(values) < 2:
        expected = "at least two different answers (or `categories`, which names them)"
        if not len(column):
            raise _no_data_error("sample", table.shape)
        raise invalid(f"column {name!r}", expected, Phrase(f"{len(values)} in n_samples = {len(column)}"))
    return values if is_categorical else sorted(values)


def _as_type_of(X: Any, reports: Any) -> Any:
    """Return reports, an arrow table, as a frame of the type of X."""
    kind = type(X).__module__.split(".")[0]
    if kind == "pandas":
        frame = reports.to_pandas()
        frame.index = X.index
        return frame
    if kind == "polars":
        import polars

        return polars.from_arrow(reports)
    if kind == "pyarrow":
        return reports
    return np.array([column.to_pylist() for column in reports.columns], dtype=object).T
