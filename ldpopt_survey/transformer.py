"""A frame of answers -> a frame of private reports, as a transformer of scikit-learn, for pipelines and pilots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import need, pa
from ldpopt_survey.collect.batch import privatize_frame
from ldpopt_survey.collect.coding import Coder
from ldpopt_survey.collect.randomness import Fresh, Randomness
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
from ldpopt_survey.plan.survey import plan_survey

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ImportError:  # the class says so when one is made
    BaseEstimator, TransformerMixin = type("BaseEstimator", (), {}), type("TransformerMixin", (), {})


class PrivatizingTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Designs a channel for every column, and replaces answers by reports that together are epsilon-LDP.

    It has the interface of scikit-learn: `fit` plans, `transform` draws, `get_feature_names_out` names the columns of
    the reports, parameters are those of a pipeline. A frame of pandas gives one of pandas (with categories), one of
    Polars one of Polars, an arrow table the same, and anything else (n, columns) an array of texts.

    Parameters
    ----------
    epsilon : of the whole row, in nats. eta : a cap on total variation, for each column. categories : "observed", or
        the answers of every column by its name, which are then not taken from the data. pilot : the expected shares of
        the categories, by column; even where none are given. design : as `[budget] design` of a survey; by default
        "split", a report in every column, where "booklets" asks each row one part and leaves the others empty.
    randomness : as in `privatize`; fresh words by default. `Simulated(rng)` protects nobody.

    What is fitted (categories, pilot) is published with the plan: fit on a pilot, or give categories.

    >>> import numpy as np
    >>> from ldpopt_survey.collect.randomness import Simulated
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
        design: str = "split", randomness: Randomness | None = None,
    ) -> None:  # fmt: skip
        need("sklearn")
        self.epsilon, self.eta, self.categories = epsilon, eta, categories
        self.pilot, self.design, self.randomness = pilot, design, randomness

    def fit(self, X: Any, y: Any = None) -> Self:
        """Plan the channels of the columns of X, (n, columns). `InvalidInput` for what no plan is made of."""
        table = _table(X)
        names, pilot = table.column_names, self.pilot or {}
        listed = {} if isinstance(self.categories, str) else self.categories
        if isinstance(self.categories, str) and self.categories != "observed":
            raise invalid("categories", "'observed' or the answers by column", self.categories)
        for what, given in (("categories", listed), ("pilot", pilot)):
            if strange := sorted(set(given) - set(names)):
                raise invalid(what, f"columns among {', '.join(names)}", ", ".join(strange))
        questions = tuple(
            QuestionSpec(name, tuple(listed.get(name) or _observed(table, name)), pilot=pilot.get(name), eta=self.eta)
            for name in names
        )
        for question in questions:  # as `transform` does
            codes, absent = Coder(question).positions(table.column(question.name).combine_chunks())
            if (codes < 0).any() or (absent is not None and absent.any()):
                raise invalid(
                    f"column {question.name!r}", "answers among its categories, none missing", Phrase("others")
                )
        self.plan_ = plan_survey(SurveySpec("transformer", questions, epsilon=self.epsilon, design=self.design)).plan
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        return self

    def transform(self, X: Any) -> Any:
        """Reports for the rows of X, in a frame of its kind; drawing twice spends epsilon twice."""
        table = _table(X)
        plan = self._plan()
        if table.column_names != list(self.feature_names_in_):
            expected = f"the columns that were fitted, {', '.join(self.feature_names_in_)}"
            raise invalid("X", expected, Phrase(f"{len(table.column_names)} columns, not the same"))
        reports = privatize_frame(plan, table, self.randomness or Fresh())[0]
        return _like(X, reports.replace_schema_metadata(None))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """The columns of the reports."""
        plan = self._plan()
        booklet = ["booklet"] if plan.booklets else []
        return np.array([*booklet, *(question.name for question in plan.questions)], dtype=object)

    def _plan(self) -> Plan:
        if not hasattr(self, "plan_"):
            raise InvalidInput("PrivatizingTransformer: expected a fitted one, got one before fit()")
        return self.plan_


def _table(X: Any) -> Any:
    """The frame as an arrow table; the columns of an array are called x0, x1, ..."""
    if hasattr(X, "__arrow_c_stream__"):
        table = pa.table(X)
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise invalid("X", "a frame, or an array of shape (n, columns)", Phrase(f"shape {array.shape}"))
        table = pa.table({f"x{number}": pa.array(column.tolist()) for number, column in enumerate(array.T)})
    wanted = [name for name in table.column_names if not name.startswith("__index_level_")]
    return table.select(wanted).replace_schema_metadata(None)


def _observed(table: Any, name: str) -> list[Label]:
    """The answers of a column: the categories of a categorical, in their order, else the distinct values, sorted."""
    column = table.column(name).combine_chunks()
    if pa.types.is_dictionary(column.type):
        values = column.dictionary.to_pylist()
        return list(values)
    values = [value for value in column.unique().to_pylist() if value is not None]
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    try:
        return sorted(int(value) if whole else value for value in values)
    except TypeError:
        raise invalid(f"column {name!r}", "answers of one type", Phrase("several")) from None


def _like(X: Any, reports: Any) -> Any:
    """Reports, an arrow table, as a frame of the kind of X."""
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
