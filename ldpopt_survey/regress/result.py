"""A fitted regression -> its errors, intervals and tests; and the sample of a regression, or a subgroup of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.errors import Phrase, SolverError, invalid
from ldpopt.values.distribution import Array, finite_array
from ldpopt.values.results import ByValue
from ldpopt_survey.estimate.intervals import two_sided
from ldpopt_survey.estimate.results import Estimated, Intervals, p_values_of, quotient, text_table
from ldpopt_survey.hypothesis_tests import TestResult, wald_result
from ldpopt_survey.sample.design import Linearization, SampleDesign, SamplingVariance

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
        a complex one units minus strata minus the slopes, 0 at least.
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
        shown = {name: [value if math.isfinite(value) else None for value in array.ravel().tolist()]
                 for name, array in arrays.items()}  # fmt: skip
        return {**head, "labels": list(self.labels), **shown,
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

    @property
    def stratum(self) -> npt.NDArray[np.intp]:
        """(n,) the stratum of each of the subgroup, for a variance of the channel's own; one for all if none is needed.

        It is needed by stratum where a part of the population was drawn for certain.
        """
        design = self.design
        every = design.unit_stratum[design.unit] if design.needs_noise else np.zeros(design.n, dtype=np.intp)
        return np.asarray(every[self.inside], dtype=np.intp)

    @property
    def top(self) -> float:
        """The largest weight."""
        return float(self.weights.max())

    def summed(self, parts: Callable[[npt.NDArray[np.intp], Array], Array]) -> Array:
        """The noise for `SampleDesign.total_variance`, from a function of respondents and squared weights.

        The weights are divided by the largest one, `top`, so that no square is too large or too small.
        """
        strata, squares = self.stratum, (self.weights / self.top) ** 2
        codes = range(len(self.design.units)) if self.design.needs_noise else range(1)
        rows = [np.flatnonzero((strata == code) & (squares > 0)) for code in codes]
        noise = np.array([_positive(parts(who, squares[who])) for who in rows])
        return noise if self.design.needs_noise else np.asarray(noise[0])

    def variance(
        self, scores: Array, noise: Array, statistic: Callable[[Array], Array], slopes: int
    ) -> SamplingVariance:
        """The covariance of coefficients, and degrees of freedom as in R's `svyglm`: units less strata less slopes.

        scores : (n, r) influence values of the subgroup. noise : from `summed`. statistic : a function from weights
            (n,) of the subgroup to the coefficients (r,), for replicates. slopes : coefficients but the intercept.
        """
        design, degrees = self.design, self.design.degrees(self.inside)

        def refitted(weights: Array) -> Array:
            inside = weights[:, self.inside]
            if not inside.any(axis=1).all():
                raise invalid(
                    "replicates", "somebody of the group in each (linearisation needs none)", Phrase("nobody")
                )
            try:
                return np.stack([statistic(row) for row in inside])
            except SolverError:
                expected = "finite coefficients under each (linearisation needs none)"
                raise invalid("replicates", expected, Phrase("none under one")) from None

        if design.method.replicates and degrees:  # with no degrees, some replicate has nobody of the group
            sampling = design.replicate(refitted, noise, self.inside)
            degrees = min(degrees, sampling.degrees)
        else:
            every = np.zeros((design.n, scores.shape[1]))
            every[self.inside] = scores
            sampling = design.by(Linearization()).total_variance(every, noise)
        known = math.isinf(design.degrees_within(self.inside))  # nothing but the channel is random
        return SamplingVariance(sampling.covariance, math.inf if known else max(0.0, degrees - slopes))


Sample = SampleDesign | Subsample


def as_subsample(sample: Sample | None, n: int) -> Subsample | None:
    """The sample as a subgroup of a design, perhaps all of it. `InvalidInput` unless it has n respondents."""
    if sample is not None and sample.n != n:
        raise invalid("sample", f"{n} respondents", sample.n)
    return Subsample(sample, np.ones(n, dtype=bool)) if isinstance(sample, SampleDesign) else sample


def _positive(matrix: Array) -> Array:
    """The nearest matrix without negative eigenvalues, which rounding and chance may give."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray(vectors * np.maximum(values, 0.0) @ vectors.T)


FLAT = 1e-6
"""The least information of a coefficient, in log-odds per root mean square of its regressor: errors of a thousand."""


def require_finite(information: Array, scale: Array, weight: float, unfitted: str) -> None:
    """`SolverError` where a coefficient of a logit could go on without end, since nothing holds it."""
    held = np.linalg.eigvalsh(information / np.outer(scale, scale)).min() / weight
    if not held > FLAT:
        raise SolverError(unfitted)


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
