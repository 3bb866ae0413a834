"""A fitted regression -> its errors, intervals and tests; and the sample of a regression, or a subgroup of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.values.distribution import Array, finite_array
from ldpopt.values.results import ByValue
from ldpopt_survey.estimate.intervals import wald_half_widths
from ldpopt_survey.estimate.results import Estimated, Intervals, p_values_of, quotient, text_table
from ldpopt_survey.hypothesis_tests import TestResult, wald_result
from ldpopt_survey.sample.design import Linearization, SampleDesign, SamplingVariance

ESTIMANDS = {
    "moments": "the limit of the same regression on true answers, whatever their distribution",
    "likelihood": "the true ones if the formula is the distribution of the answers, and otherwise to others than true "
    "answers would give, which depend on the channels",
}
"""The limit of the coefficients of each method."""


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Estimated):
    """A fitted regression. Its coefficients describe the true answers, not the reports.

    - `formula` : the text of the formula.
    - `kind` : "logistic", "multinomial" or "linear".
    - `names` : the d regressors.
    - `equations` : the e categories whose log-odds against `reference` are explained; for a linear regression the
      outcome alone.
    - `coefficients` : (e, d).
    - `covariance` : (e d, e d), in the order of the rows of `coefficients`.
    - `n` : the number of respondents.
    - `degrees` : degrees of freedom. For a simple random sample they are n - d (linear) or inf (likelihood); for a
      complex one they are units minus strata minus the slopes, at least 0.
    - `log_likelihood` : of the reports, in nats; None for a linear regression and a weighted sample.
    - `null_log_likelihood` : the same for a model with an intercept alone (or, for a design that cannot express one,
      for equal probabilities); None also for private predictors.
    - `levels` : the reference level of each factor, its first one.
    - `unit_fractions` : (e d,) the variance that the primary units of a complex sample show, as a fraction of the
      variance of each coefficient. It is below 1 where that is the channel's noise; None for a simple random sample.
    - `method` : "likelihood" of the reports, "penalised likelihood" if it has no finite maximum, or "moments": the
      equations for true answers, in unbiased indicators of them. `estimand` states the limit of the coefficients.

    >>> from ldpopt_survey import logit_regression
    >>> data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    >>> fit = logit_regression("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]})
    >>> fit.names, fit.coefficients.round(3)
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
    unit_fractions: Array | None = field(default=None, repr=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """The regressor of each coefficient, after the name of the equation if there are several."""
        if len(self.equations) == 1:
            return self.names
        return tuple(f"{equation}: {name}" for equation in self.equations for name in self.names)

    def without_equations(self, labels: tuple[Label, ...]) -> Regression:
        """Remove the equations of some answers; `InvalidInput` if one is the reference."""
        equation_places = [place for place, label in enumerate(self.equations) if label not in labels]
        if self.reference in labels or not equation_places:
            raise invalid("reference", "an answer that is not left out", self.reference)
        places = np.arange(self.coefficients.size).reshape(self.coefficients.shape)[equation_places].ravel()
        equations = tuple(self.equations[place] for place in equation_places)
        fractions = None if self.unit_fractions is None else self.unit_fractions[places]
        return replace(self, equations=equations, coefficients=self.coefficients[equation_places],
                       covariance=self.covariance[np.ix_(places, places)], unit_fractions=fractions)  # fmt: skip

    @property
    def estimand(self) -> str:
        """The limit of the coefficients for many respondents, in words, by the method."""
        return ESTIMANDS["moments" if self.method == "moments" else "likelihood"]

    def difference_from(self, other: Regression) -> tuple[float, str]:
        """Find the largest difference from another fit, in standard errors of this one.

        The second result is the name of that coefficient. `InvalidInput` for other coefficients.
        """
        if other.labels != self.labels:
            raise InvalidInput("regression: the two fits have different coefficients and cannot be compared")
        differences = quotient(np.abs(self.values - other.values), self.standard_errors.ravel())
        return float(differences.max()), self.labels[int(np.argmax(differences))]

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
        return p_values_of(self.statistics, self.degrees, self.unit_fractions)

    def intervals(self, level: float = 0.95) -> Intervals:
        """Compute Wald intervals of the coefficients, in the order of `labels`."""
        half_widths = wald_half_widths(self.standard_errors.ravel(), level, self.degrees, self.unit_fractions)
        return Intervals(self.labels, self.values - half_widths, self.values + half_widths, level, "Wald")

    def odds_ratios(self, level: float = 0.95) -> Intervals:
        """Compute intervals of exp(coefficient): the change of the odds against the reference."""
        limits = self.intervals(level)
        return Intervals(limits.labels, np.exp(limits.lower), np.exp(limits.upper), level, "Wald, odds ratio")

    def predict(self, design: Any) -> Array:
        """Compute the expected outcome (n,) for rows of a design (n, d).

        For a logit the result has the probabilities (n, e) of `equations`.
        """
        x = finite_array(design, "design", 2)
        if x.shape[1] != len(self.names):
            raise invalid("design", f"{len(self.names)} columns", x.shape[1])
        linear_predictor = x @ self.coefficients.T
        if self.kind == "linear":
            return np.asarray(linear_predictor[:, 0])
        return np.asarray(softmax(np.column_stack([np.zeros(len(x)), linear_predictor]))[:, 1:])

    def slopes(self) -> TestResult:
        """Test that all coefficients except the intercepts are zero, by Wald's statistic."""
        is_slope = np.array([name != "Intercept" for _ in self.equations for name in self.names])
        slope_covariance, error = self.covariance[np.ix_(is_slope, is_slope)], self.standard_errors.ravel()[is_slope]
        # In units of their errors, since regressors may have any units.
        fractions = None if self.unit_fractions is None else self.unit_fractions[is_slope]
        correlation = slope_covariance / np.outer(error, error)
        return wald_result("all slopes zero", self.values[is_slope] / error, correlation, self.degrees, fractions)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return JSON-ready values."""
        limits = self.intervals(level)
        head = {name: getattr(self, name) for name in ("formula", "kind", "method", "n", "reference")}
        arrays = {"coefficients": self.values, "standard_errors": self.standard_errors, "p_values": self.p_values,
                  "lower": limits.lower, "upper": limits.upper}  # fmt: skip
        degrees = None if math.isinf(self.degrees) else self.degrees
        columns = {name: [value if math.isfinite(value) else None for value in array.ravel().tolist()]
                 for name, array in arrays.items()}  # fmt: skip
        return {**head, "labels": list(self.labels), **columns,
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
    """A subgroup of the respondents of a design: `in_group` is a mask (n,).

    The others remain in the design, which makes the variance of the subgroup right [SSW, section 5.8].

    >>> from ldpopt_survey import SampleDesign
    >>> Subsample(SampleDesign(weights=[1.0, 3.0, 2.0]), np.array([True, False, True])).n
    2
    """

    design: SampleDesign
    in_group: npt.NDArray[np.bool_]

    @property
    def n(self) -> int:
        """The number of respondents in the subgroup."""
        return int(self.in_group.sum())

    @property
    def weights(self) -> Array:
        """The weights of the subgroup."""
        return np.asarray(self.design.weights[self.in_group])

    @property
    def stratum(self) -> npt.NDArray[np.intp]:
        """Stratum (n,) of each respondent in the subgroup, for the channel's part of a variance.

        It is 0 for all unless a part of the population was drawn with certainty.
        """
        design = self.design
        strata = design.unit_stratum[design.unit] if design.needs_noise else np.zeros(design.n, dtype=np.intp)
        return np.asarray(strata[self.in_group], dtype=np.intp)

    @property
    def largest_weight(self) -> float:
        """The largest weight."""
        return float(self.weights.max())

    def channel_noise(self, variance_of: Callable[[npt.NDArray[np.intp], Array], Array]) -> Array:
        """Compute the noise for `SampleDesign.total_variance`.

        variance_of : a function of respondents and their squared weights.

        The weights are divided by the largest one, `largest_weight`, so that no square is too large or too small.
        """
        strata, squares = self.stratum, (self.weights / self.largest_weight) ** 2
        codes = range(len(self.design.units)) if self.design.needs_noise else range(1)
        rows = [np.flatnonzero((strata == code) & (squares > 0)) for code in codes]
        noise = np.array([_nearest_positive(variance_of(respondents, squares[respondents])) for respondents in rows])
        return noise if self.design.needs_noise else np.asarray(noise[0])

    def variance(
        self, scores: Array, noise: Array, statistic: Callable[[Array], Array], slopes: int
    ) -> SamplingVariance:
        """Compute the covariance of coefficients, and degrees of freedom as in R's `svyglm`.

        The degrees are units less strata less slopes.

        - `scores` : (n, r) influence values of the subgroup.
        - `noise` : from `channel_noise`.
        - `statistic` : a function from weights (n,) of the subgroup to the coefficients (r,), for replicates.
        - `slopes` : the number of coefficients except the intercept.
        """
        design, degrees = self.design, self.design.degrees(self.in_group)

        def refit_replicates(weights: Array) -> Array:
            group_weights = weights[:, self.in_group]
            if not group_weights.any(axis=1).all():
                raise invalid(
                    "replicates", "somebody of the group in each (linearization needs none)", Phrase("nobody")
                )
            try:
                return np.stack([statistic(row) for row in group_weights])
            except SolverError:
                expected = "finite coefficients under each (linearization needs none)"
                raise invalid("replicates", expected, Phrase("none under one")) from None

        if design.method.replicates and degrees:  # with no degrees, some replicate has nobody of the group
            sampling = design.replicate(refit_replicates, noise, self.in_group)
            degrees = min(degrees, sampling.degrees)
        else:
            all_scores = np.zeros((design.n, scores.shape[1]))
            all_scores[self.in_group] = scores
            sampling = design.with_method(Linearization()).total_variance(all_scores, noise)
        is_known = math.isinf(design.degrees_within(self.in_group))  # nothing but the channel is random
        return replace(sampling, degrees=math.inf if is_known else max(0.0, degrees - slopes))


Sample = SampleDesign | Subsample


def as_subsample(sample: Sample | None, n: int) -> Subsample | None:
    """Convert the sample to a subgroup of a design, perhaps all of it.

    `InvalidInput` unless it has n respondents.
    """
    if sample is not None and sample.n != n:
        raise invalid("sample", f"{n} respondents", sample.n)
    return Subsample(sample, np.ones(n, dtype=bool)) if isinstance(sample, SampleDesign) else sample


def _nearest_positive(matrix: Array) -> Array:
    """The nearest matrix without negative eigenvalues, which rounding and sampling may cause."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray(vectors * np.maximum(values, 0.0) @ vectors.T)


MIN_INFORMATION = 1e-6
"""The smallest information of a coefficient per respondent, in squared units of the regressor's root mean square."""


WEAK_INFORMATION = 1e-6
"""A direction of coefficients is weak if its information is at most this fraction of the largest."""

NULL_PART = 1e-6
"""A column takes part in a linear dependence if its part of the dependence, in its own units, is larger than this."""

WEAK_PART = 0.2
"""A term is named if its part of a weak direction is at least this fraction of the largest part."""

MAX_TERMS = 6
"""The most terms that a message names."""


def require_finite(information: Array, scale: Array, weight: float, names: Sequence[str]) -> None:
    """Raise `SolverError` if a coefficient of a logit has too little information to be finite.

    names : as in `weak_terms`.
    """
    least_information = np.linalg.eigvalsh(information / np.outer(scale, scale)).min() / weight
    if not least_information > MIN_INFORMATION:
        raise no_finite_coefficients(information, scale, names)


def no_finite_coefficients(information: Array, scale: Array, names: Sequence[str]) -> SolverError:
    """Describe that the coefficients of a logit have no finite solution, and which terms are at fault.

    The arguments are those of `weak_terms`.
    """
    return SolverError(
        f"regression: no finite coefficients of {weak_terms(information, scale, names)} were reached; the terms "
        "separate the reports, or so few reports carry the answer that nothing holds them (drop predictors, join "
        "categories, or collect more reports)"
    )


def weak_terms(information: Array, scale: Array, names: Sequence[str]) -> str:
    """List the terms whose coefficients the reports determine least, in words.

    Where a term separates the answers its coefficient grows without limit, and the information in this direction tends
    to zero. The intercept is named only if it is alone.

    information : (c, c). scale : (c,) the units of the coefficients.
    names : (c,) the term of each coefficient.
    """
    scaled = information / np.outer(scale, scale)
    if not np.isfinite(scaled).all():
        return "some terms"
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    is_weak = values <= max(values[0], WEAK_INFORMATION * values[-1])
    parts = np.sqrt((vectors[:, is_weak] ** 2).sum(axis=1))
    terms = dict.fromkeys(name for name, part in zip(names, parts, strict=True) if part >= WEAK_PART * parts.max())
    return in_words([name for name in terms if name != "Intercept"] or list(terms))


def dependent_terms(columns: Array, names: Sequence[str]) -> str:
    """List the columns (n, d) that are linear combinations of others, together with these others, in words.

    The text is empty if all are independent, with the tolerance of `numpy.linalg.matrix_rank`.
    """
    scale = np.abs(columns).max(axis=0)
    triangle = np.linalg.qr(columns / np.where(scale > 0, scale, 1.0), mode="r")
    _, singular_values, directions = np.linalg.svd(triangle)
    sizes = np.zeros(len(names))
    sizes[: len(singular_values)] = singular_values
    is_null = sizes <= sizes.max() * max(columns.shape) * np.finfo(np.float64).eps
    parts = np.sqrt((directions[is_null] ** 2).sum(axis=0))
    return in_words([name for name, part in zip(names, parts, strict=True) if part > NULL_PART])


def in_words(terms: Sequence[str]) -> str:
    """List terms in words, six at most."""
    text = ", ".join(terms[:MAX_TERMS])
    return f"{text} and {len(terms) - MAX_TERMS} more" if len(terms) > MAX_TERMS else text


def softmax(odds: Array) -> Array:
    """Compute probabilities from log-odds, along the last axis."""
    weights = np.exp(odds - odds.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def inverse_of(information: Array, names: Sequence[str]) -> Array:
    """Compute the inverse of an information or moment matrix.

    `InvalidInput` if the reports do not distinguish the coefficients.

    names : as in `weak_terms`.
    """
    scale = np.sqrt(np.abs(np.diag(information)))
    if not (scale > 0).all() or not np.linalg.cond(information / np.outer(scale, scale)) < 1e13:
        terms = weak_terms(information, np.where(scale > 0, scale, 1.0), names)
        raise InvalidInput(f"regression: the reports do not distinguish the coefficients of {terms}")
    return np.asarray(np.linalg.inv(information / np.outer(scale, scale)) / np.outer(scale, scale))
