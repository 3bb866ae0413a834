"""Logistic regression with a privatized outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import ChannelLike, Label, as_channel
from ldpopt.distribution import Array, finite_array
from ldpopt.errors import SolverError, invalid
from ldpopt.results import Pictured
from ldpopt.survey.estimate.counts import positions, report_column
from ldpopt.survey.estimate.intervals import Intervals, two_sided
from ldpopt.survey.estimate.linear import require_identifiable


@dataclass(frozen=True, eq=False, repr=False)
class LogisticRegression(Pictured):
    """A fitted model, in which design @ coefficients is the log-odds that the true answer is `success`.

    coefficients : (d,). names : the regressor that each coefficient multiplies.
    covariance : (d, d), inverse of the Fisher information at the estimate.
    log_likelihood, null_log_likelihood : log-likelihood of the reports (nats), at the estimate and for a model with an
        intercept alone. If the design cannot express an intercept, the second has probability one half for everybody.
    iterations : Fisher-scoring steps taken.
    """

    coefficients: Array
    names: tuple[str, ...]
    covariance: Array
    n: int
    success: Label
    log_likelihood: float
    null_log_likelihood: float
    iterations: int

    @property
    def standard_errors(self) -> Array:
        """Square roots of the diagonal of `covariance`."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def z_values(self) -> Array:
        """Coefficients over standard errors."""
        return self.coefficients / self.standard_errors

    @property
    def p_values(self) -> Array:
        """Two-sided normal p-values of zero coefficients."""
        from scipy.stats import norm

        return np.asarray(2 * norm.sf(np.abs(self.z_values)))

    def intervals(self, level: float = 0.95) -> Intervals:
        """Wald intervals of the coefficients."""
        reach = two_sided(level) * self.standard_errors
        return Intervals(tuple(self.names), self.coefficients - reach, self.coefficients + reach, level, "Wald")

    def odds_ratios(self, level: float = 0.95) -> Intervals:
        """Intervals of exp(coefficient)."""
        made = self.intervals(level)
        return Intervals(made.labels, np.exp(made.lower), np.exp(made.upper), level, "Wald, odds ratio")

    def predict(self, design: Any) -> Array:
        """Probability of the true answer `success` for rows of a design (n, d)."""
        from scipy.special import expit

        x = finite_array(design, "design", 2)
        if x.shape[1] != len(self.coefficients):
            raise invalid("design", f"{len(self.coefficients)} columns", x.shape[1])
        return np.asarray(expit(x @ self.coefficients))

    _picture, _heads = "coefficients", 1

    def _drawn(self) -> tuple[Any, ...]:
        made = self.intervals()
        return self.names, self.coefficients, made.lower, made.upper

    def _columns(self) -> dict[str, list[Any]]:
        made = self.intervals()
        columns = (self.coefficients, self.standard_errors, self.z_values, self.p_values, made.lower, made.upper)
        inside = zip(_HEADS, (column.tolist() for column in columns), strict=True)
        return {"": list(self.names), **dict(inside)}

    def _cells(self) -> list[tuple[str, list[str]]]:
        (_, names), *columns = self._columns().items()
        forms = ("{:.4f}", "{:.4f}", "{:.3f}", "{:.3f}", "{:.3f}", "{:.3f}")
        inside = zip(forms, columns, strict=True)
        return [("", names), *((head, [form.format(v) for v in column]) for form, (head, column) in inside)]

    def _title(self) -> str:
        return f"Logistic regression, {self.n} reports"

    def summary(self) -> str:
        """The table of coefficients as text, in the form that statistics packages print."""
        (_, names), *columns = self._cells()
        wide = max(10, *(len(name) for name in self.names))
        title = f"Logistic regression of a privatized outcome (success: {self.success!r})"
        line = "-" * (wide + 66)
        rows = zip(names, zip(*(cells for _, cells in columns), strict=True), strict=True)
        body = [f"{name:<{wide}}" + "".join(f"{cell:>11}" for cell in row) for name, row in rows]
        head = " " * wide + "".join(f"{h:>11}" for h, _ in columns)
        facts = (
            f"reports {self.n}   log-likelihood {self.log_likelihood:.4f}   "
            f"null log-likelihood {self.null_log_likelihood:.4f}   Fisher-scoring steps {self.iterations}"
        )
        return "\n".join([title, facts, line, head, line, *body, line])

    def __repr__(self) -> str:
        return self.summary()


_HEADS = ("coef", "std err", "z", "P>|z|", "[0.025", "0.975]")


def with_constant(design: Any) -> Any:
    """The design (n, d) with a first column of ones, shape (n, d + 1). In a data frame the new column is ``const``.

    >>> with_constant([[2.0], [3.0]])
    array([[1., 2.],
           [1., 3.]])
    """
    if hasattr(design, "columns") and hasattr(design, "insert"):
        made = design.copy()
        made.insert(0, "const", 1.0)
        return made
    x = finite_array(design, "design", np.ndim(design))
    return np.column_stack([np.ones(len(x)), x])


def logistic_regression(
    reports: Any, design: Any, channel: ChannelLike, success: Label = None, names: tuple[str, ...] | None = None
) -> LogisticRegression:
    """Maximum likelihood for a privatized binary answer: Pr(answer = success | x) = 1 / (1 + exp(-x b)) [VHG].

    Parameters
    ----------
    reports : n output labels of `channel`, a channel (2, m).
    design : (n, d) regressors, an array or a data frame; add an intercept by `with_constant`.
    success : the input label counted as 1; the channel's last input by default.

    A report has probability Q[0, y] (1 - pi) + Q[1, y] pi, where pi is the probability of `success`. The method is
    Fisher scoring with step halving, so the likelihood never falls. It need not be concave, so the fit is a stationary
    point, perhaps not the maximum. Raises `InvalidInput` for collinear regressors. Raises `SolverError` without
    convergence, as under separation, when the reports are compatible with infinite coefficients.

    >>> rng = np.random.default_rng(3)
    >>> x = with_constant(rng.normal(size=2000))
    >>> truth = (rng.random(2000) < 1 / (1 + np.exp(-(x @ [-0.5, 1.0])))).astype(int)
    >>> q = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> reports = np.where(rng.random(2000) < q[truth, 1], 1, 0)
    >>> logistic_regression(reports, x, q).coefficients.round(1)
    array([-0.4,  1.1])
    """
    reports, channel = report_column(reports, channel), as_channel(channel)
    if channel.shape[0] != 2:
        raise invalid("channel", "2 inputs, for a binary answer", channel.shape[0])
    require_identifiable(channel)
    if success is None:
        success = channel.inputs[1]
    if success not in channel.inputs:
        raise invalid("success", f"one of the inputs {channel.inputs}", success)
    one = channel.inputs.index(success)
    x = finite_array(design, "design", 2)
    y = positions(reports, channel.outputs)
    n, d = x.shape
    if len(y) != n or n <= d:
        raise invalid("design", f"{len(y)} rows, one a report, and more rows than columns", f"shape {x.shape}")
    if np.linalg.matrix_rank(x) < d:
        raise invalid("design", "linearly independent columns", f"rank {np.linalg.matrix_rank(x)} of {d}")
    if names is None:
        columns = getattr(design, "columns", None)
        names = tuple(str(c) for c in columns) if columns is not None else tuple(f"x{i}" for i in range(d))
    if len(names) != d:
        raise invalid("names", f"{d} names", len(names))
    q1, q0 = channel.matrix[one], channel.matrix[1 - one]
    b, covariance, value, steps = _fisher_scoring(x, y, q0, q1)
    constant = np.ones((n, 1))
    spanned = np.linalg.lstsq(x, constant[:, 0], rcond=None)[0]
    if np.allclose(x @ spanned, 1.0, atol=1e-8):
        null = _fisher_scoring(constant, y, q0, q1)[2]
    else:
        null = float(np.log((q0 + q1)[y] / 2).sum())
    return LogisticRegression(b, names, covariance, n, success, value, null, steps)


def _fisher_scoring(x: Array, y: Any, q0: Array, q1: Array) -> tuple[Array, Array, float, int]:
    from scipy.special import expit

    gain, base = (q1 - q0), q0
    seen = (q0 + q1) > 0

    scale = np.sqrt((x**2).mean(axis=0))
    x = x / scale

    def likely(b: Array) -> Array:
        return np.asarray(expit(np.clip(x @ b, -300, 300)))

    def value(b: Array) -> float:
        return float(np.log(np.maximum(base[y] + gain[y] * likely(b), 1e-300)).sum())

    b = np.zeros(x.shape[1])
    now = value(b)
    for step in range(1, 201):
        pi = likely(b)
        slope = pi * (1 - pi)
        law = np.maximum(base[seen] + np.outer(pi, gain[seen]), 1e-300)
        score = x.T @ (slope * gain[y] / np.maximum(base[y] + gain[y] * pi, 1e-300))
        # Fisher information of one report about its log-odds: slope^2 sum_y gain^2 / Pr(y).
        each = (gain[seen] ** 2 * (slope[:, None] / law) * slope[:, None]).sum(axis=1)
        information = (x * each[:, None]).T @ x
        try:
            move = np.linalg.solve(information, score)
        except np.linalg.LinAlgError:
            break
        # Half of score . move is about the log-likelihood (nats) that is left to gain. Under separation it vanishes,
        # too, but the moves do not.
        if float(score @ move) < 1e-14 * max(1.0, abs(now)) and np.abs(move).max() < 1e-6 * (1 + np.abs(b).max()):
            return b / scale, np.linalg.inv(information) / np.outer(scale, scale), now, step - 1
        size = min(1.0, 5.0 / float(np.abs(move).max()))
        trial = value(b + size * move)
        # The sum of n logarithms has a rounding error, which is allowed for.
        while trial < now - 1e-13 * max(1.0, abs(now)) and size > 1e-12:
            size /= 2
            trial = value(b + size * move)
        b, now = b + size * move, trial
        if np.abs(b).max() > 60:
            break
    raise SolverError(
        "logistic regression: no finite maximum was reached; a regressor separates the reports, or so few reports "
        "carry the answer that their likelihood has no peak (drop regressors, or collect more reports)"
    )
