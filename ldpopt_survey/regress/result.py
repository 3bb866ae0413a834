"""A fitted regression -> its errors, intervals and tests; and the sample of a regression, or a subgroup of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import Array, finite_array
from ldpopt.values.results import ByValue
from ldpopt_survey.estimate.intervals import two_sided
from ldpopt_survey.estimate.results import Estimated, Intervals, p_values_of, quotient, text_table
from ldpopt_survey.hypothesis_tests import TestResult, wald_result
from ldpopt_survey.sample.design import SampleDesign, SamplingVariance

ESTIMANDS = {
    "moments": "what the same regression of the true answers tends to, whatever their law",
    "likelihood": "those of the law of the answers if the formula is that law, and else to others than true answers "
    "would give, which depend on the channels",
}
"""What the coefficients of each method tend to."""


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Estimated):
    """A fitted regression. Its coefficients describe the true answers, not the reports.

    formula : as it was given. kind : "logistic", "multinomial" or "linear".
    names : the d regressors. equations : the e categories whose log-odds against `reference` are explained; for a
        linear regression the outcome alone.
    coefficients : (e, d). covariance : (e d, e d), in the order of the rows of `coefficients`.
    n : number of respondents. degrees : degrees of freedom: for a simple sample n - d (linear) or inf (likelihood), for
        a complex one units minus strata.
    log_likelihood : of the reports, in nats; None for a linear regression and a weighted sample.
    null_log_likelihood : the same for a model with an intercept alone (for a design that cannot express one, for equal
        chances); None also for private predictors.
    levels : the first level of each factor, with which the others are compared.
    method : "likelihood" of the reports, "penalised likelihood" where it has no finite maximum, or "moments": the
        equations for true answers, in unbiased indicators of them. `estimand` says what each tends to.

    >>> from ldpopt_survey import logit_regression
    >>> data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    >>> made = logit_regression("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]})
    >>> made.names, made.coefficients.round(3)
    (('Intercept', 'group[b]'), array([[-1.466,  2.933]]))
    """

    formula: str
    kind: str
    names: tuple[str, ...]
    equations: tuple[Label, ...]
    reference: Label
    coefficients: Array
    covariance: Array
    n: int
    degrees: float
    levels: Mapping[str, Label]
    log_likelihood: float | None = None
    null_log_likelihood: float | None = None
    method: str = "likelihood"

    @property
    def labels(self) -> tuple[str, ...]:
        """The regressor of each coefficient, after the name of the equation if there are several."""
        if len(self.equations) == 1:
            return self.names
        return tuple(f"{equation}: {name}" for equation in self.equations for name in self.names)

    def without(self, labels: tuple[Label, ...]) -> Regression:
        """The regression without the equations of some answers; `InvalidInput` if one is the reference."""
        kept = [place for place, label in enumerate(self.equations) if label not in labels]
        if self.reference in labels or not kept:
            raise invalid("reference", "an answer that is not left out", self.reference)
        places = np.arange(self.coefficients.size).reshape(self.coefficients.shape)[kept].ravel()
        equations = tuple(self.equations[place] for place in kept)
        return replace(self, equations=equations, coefficients=self.coefficients[kept],
                       covariance=self.covariance[np.ix_(places, places)])  # fmt: skip

    @property
    def estimand(self) -> str:
        """What the coefficients tend to with more respondents, in words, by the method."""
        return ESTIMANDS["moments" if self.method == "moments" else "likelihood"]

    def compared(self, other: Regression) -> tuple[float, str]:
        """The largest difference from another fit of the same formula, in standard errors of this one, and of what."""
        if other.labels != self.labels:
            raise invalid("regression", "one with the same coefficients", Phrase("another"))
        away = quotient(np.abs(self.values - other.values), self.standard_errors.ravel())
        return float(away.max()), self.labels[int(np.argmax(away))]

    @property
    def values(self) -> Array:
        """The coefficients in the order of `labels`, (e d,)."""
        return self.coefficients.ravel()

    @property
    def standard_errors(self) -> Array:
        """Square roots of the diagonal of `covariance`, (e, d)."""
        return super().standard_errors.reshape(self.coefficients.shape)

    @property
    def statistics(self) -> Array:
        """Coefficients over their standard errors, (e, d)."""
        return quotient(self.coefficients, self.standard_errors)

    @property
    def p_values(self) -> Array:
        """Two-sided p-values of zero coefficients, (e, d): normal, or Student's with `degrees`."""
        return p_values_of(self.statistics, self.degrees)

    def intervals(self, level: float = 0.95) -> Intervals:
        """Wald intervals of the coefficients, in the order of `labels`."""
        reach = two_sided(level, self.degrees) * self.standard_errors.ravel()
        return Intervals(self.labels, self.values - reach, self.values + reach, level, "Wald")

    def odds_ratios(self, level: float = 0.95) -> Intervals:
        """Intervals of exp(coefficient): how the odds against the reference change."""
        limits = self.intervals(level)
        return Intervals(limits.labels, np.exp(limits.lower), np.exp(limits.upper), level, "Wald, odds ratio")

    def predict(self, design: Any) -> Array:
        """The expected outcome (n,) for rows of a design (n, d); for a logit the chances (n, e) of `equations`."""
        x = finite_array(design, "design", 2)
        if x.shape[1] != len(self.names):
            raise invalid("design", f"{len(self.names)} columns", x.shape[1])
        fitted = x @ self.coefficients.T
        if self.kind == "linear":
            return np.asarray(fitted[:, 0])
        return np.asarray(softmax(np.column_stack([np.zeros(len(x)), fitted]))[:, 1:])

    def slopes(self) -> TestResult:
        """Test that all coefficients except the intercepts are zero, by Wald's statistic."""
        kept = np.array([name != "Intercept" for _ in self.equations for name in self.names])
        inside, error = self.covariance[np.ix_(kept, kept)], self.standard_errors.ravel()[kept]
        # In units of their errors, since regressors may have any units.
        return wald_result("all slopes zero", self.values[kept] / error, inside / np.outer(error, error), self.degrees)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """JSON-ready values."""
        limits = self.intervals(level)
        head = {name: getattr(self, name) for name in ("formula", "kind", "method", "n", "reference")}
        arrays = {"coefficients": self.values, "standard_errors": self.standard_errors, "p_values": self.p_values,
                  "lower": limits.lower, "upper": limits.upper}  # fmt: skip
        degrees = None if math.isinf(self.degrees) else self.degrees
        return {**head, "labels": list(self.labels), **{name: array.ravel().tolist() for name, array in arrays.items()},
                "level": level, "degrees": degrees, "log_likelihood": self.log_likelihood}  # fmt: skip

    _picture, _label = "coefficients", "label"

    def _estimates(self) -> dict[str, tuple[str, Any]]:
        return {"coefficient": ("{:11.4f}", self.values), "se": ("{:9.4f}", self.standard_errors.ravel()),
                "p": ("{:7.4f}", self.p_values.ravel())}  # fmt: skip

    def _title(self) -> str:
        return f"{self.kind.capitalize()} regression of privatized answers, {self.n} respondents: {self.formula}"

    def __repr__(self) -> str:
        lines = [self._title()]
        if self.kind != "linear":
            lines.append(f"log-odds of {', '.join(map(str, self.equations))} against {self.reference}")
            lines.append(f"by {self.method}: {self.estimand}")
        return "\n".join([*lines, *text_table(self.labels, self._estimates(), self.intervals(), "95 % interval", 4)])


@dataclass(frozen=True, eq=False)
class Subsample(ByValue):
    """A subgroup of the respondents of a design: `inside` is a mask (n,).

    The others stay in the design, which makes the variance of the subgroup right [SSW, section 5.8].

    >>> from ldpopt_survey import SampleDesign
    >>> Subsample(SampleDesign(weights=[1.0, 3.0, 2.0]), np.array([True, False, True])).n
    2
    """

    design: SampleDesign
    inside: npt.NDArray[np.bool_]

    @property
    def n(self) -> int:
        """The number of respondents in the subgroup."""
        return int(self.inside.sum())

    @property
    def weights(self) -> Array:
        """The weights of the subgroup."""
        return np.asarray(self.design.weights[self.inside])

    def total_variance(self, scores: Array) -> SamplingVariance:
        """The covariance of the weighted total of scores, which have one row for each respondent of the subgroup."""
        every = np.zeros((self.design.n, scores.shape[1]))
        every[self.inside] = scores
        return self.design.total_variance(every)


Sample = SampleDesign | Subsample


def check_size(sample: Sample | None, n: int) -> None:
    """`InvalidInput` unless the sample, if there is one, has n respondents."""
    if sample is not None and sample.n != n:
        raise invalid("sample", f"{n} respondents", sample.n)


def softmax(odds: Array) -> Array:
    """Probabilities from log-odds, along the last axis."""
    weights = np.exp(odds - odds.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def inverse_of(information: Array) -> Array:
    """The inverse of an information or moment matrix; `InvalidInput` if the reports do not tell coefficients apart."""
    scale = np.sqrt(np.abs(np.diag(information)))
    if not (scale > 0).all() or not np.linalg.cond(information / np.outer(scale, scale)) < 1e13:
        raise invalid("regression", "reports that tell the coefficients apart", Phrase("reports that do not"))
    return np.asarray(np.linalg.inv(information / np.outer(scale, scale)) / np.outer(scale, scale))
