"""The utility of a design for estimation: a criterion of the covariance of the best estimate from the reports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label
from ldpopt.design.utilities.base import TRUSTED_RTOL, Utility
from ldpopt.design.utilities.criteria import AOptimal
from ldpopt.design.utilities.criterion import Criterion, criterion_at, enclosed_scores, scores
from ldpopt.design.utilities.laws import labeled_distributions
from ldpopt.design.utilities.sets import Neighbourhood
from ldpopt.design.work import Work
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.values.distribution import Array

MAX_ENCLOSURE_RATIO = (
    1.001  # The enclosure of a criterion is used if its upper end is at most so many times the lower one.
)
MAX_CATEGORIES = 5000  # The covariance of estimates has as many rows and columns.


@dataclass(frozen=True, eq=False)
class FisherInformation(Utility):
    """The asymptotic error of the estimate of a distribution from privatized reports: smaller is better.

    Let q_y be the column of report y, and J = sum_y q_y q_y^T / (q_y . p) the Fisher information of one report about
    the distribution p. With n reports, the efficient estimate of p has the covariance C / n for C = J^-1 - p p^T. The
    utility is a criterion, a number made of C, at the prior.

    Parameters
    ----------
    prior : The distribution (k,), k >= 2, that is expected, also called the pilot. If it is wrong, estimates are still
        right, only less precise.
    criterion : `AOptimal(weights)`, `COptimal(contrast)`, `MVOptimal()` or `DOptimal()`; the sum of variances by
        default.
    neighbourhood : `Box(radius)`, `Contamination(share)` or `TotalVariationBall(radius)`: the criterion is then the
        worst case over the distributions around the pilot; None trusts the pilot. It cannot be had with `MVOptimal`.
    inputs : Labels of the k categories, which designed channels carry.

    Raises `InvalidInput` for anything else.

    >>> u = FisherInformation([0.2] * 5)
    >>> round(u.value(np.where(np.eye(5) > 0, np.e, 1.0) / (np.e + 4)), 6)
    12.229751
    """

    prior: Any
    criterion: Criterion = field(default_factory=AOptimal)
    neighbourhood: Neighbourhood | None = None
    inputs: Iterable[Label] | None = None
    error = True

    def __post_init__(self) -> None:
        (prior,), inputs = labeled_distributions([("prior", self.prior)], self.inputs)
        vars(self).update(prior=prior, inputs=inputs)
        if not isinstance(self.criterion, Criterion):
            raise invalid("criterion", "AOptimal, COptimal or DOptimal", type(self.criterion).__name__)
        if len(prior) > MAX_CATEGORIES:
            raise invalid("prior", f"at most {MAX_CATEGORIES} categories", len(prior))
        self.criterion.check(len(prior))
        if self.neighbourhood is not None and not isinstance(self.neighbourhood, Neighbourhood):
            raise invalid("neighbourhood", "Box, Contamination or None", type(self.neighbourhood).__name__)
        if self.neighbourhood is not None and self.criterion.limited:
            raise invalid("criterion", "one that is concave in the distribution, under a neighbourhood", self.criterion)

    @property
    def size(self) -> int:
        """The number k of categories."""
        return len(self.prior)

    @property
    def logarithmic(self) -> bool:
        """True if the criterion is a logarithm."""
        return self.criterion.logarithmic

    @property
    def name(self) -> str:
        """The name of the criterion, with the neighborhood of pilots if the worst of them counts."""
        worst = "" if self.neighbourhood is None else f", worst case over {self.neighbourhood.name}"
        return self.criterion.name + worst

    def value(self, channel: ChannelLike) -> float:
        """Compute the criterion at the prior, inf if the channel does not identify the distribution.

        With a neighborhood, an upper bound on the worst case over it, to a relative 1e-7.
        """
        matrix = self.check(channel).matrix
        if self.neighbourhood is None:
            return criterion_at(self.criterion, matrix, self.prior)
        return worst_case(self, matrix).upper

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the criterion at the distribution that is proportional to the prior.

        Two values are computed in floats and assumed accurate to a relative 2^-40, in both arithmetics. One is the
        worst case over a neighborhood. The other is the criterion of a channel that does not distinguish all
        proportions, such as a question about one category. For such a channel, rounding decides which proportions can
        be estimated at all; a proved lower end is used.
        """
        self.check(channel)
        proved_lower = -math.inf
        # Floats decide in either arithmetic: the enclosures of scores of full rank by rounding alone are useless.
        for tried_arithmetic in dict.fromkeys((FLOAT, arithmetic)) if self.neighbourhood is None else ():
            enclosure = self.criterion.enclosed(enclosed_scores(channel, self.prior, tried_arithmetic))
            if enclosure is None or not math.isfinite(enclosure.upper):
                break
            if not (self.logarithmic or enclosure.upper <= MAX_ENCLOSURE_RATIO * enclosure.lower):
                proved_lower = float(enclosure.lower)
                break
            if tried_arithmetic is arithmetic:
                return enclosure
        value = max(self.value(channel), proved_lower)
        # Ball arithmetic gets a little less, because its ends are rounded outward once more.
        share = TRUSTED_RTOL * (1 - 2.0**-10) if arithmetic.exact else TRUSTED_RTOL
        slack = share * (max(abs(value), 1.0) if self.logarithmic else abs(value))
        return arithmetic.of(value) if math.isinf(value) else arithmetic.between(value - slack, value + slack)

    def work(self, channel: Channel) -> Work:
        """Bound the work of products and inverses of matrices, for each step towards the worst case."""
        k, m = channel.shape
        operations = 0.3 * float(k) ** 2 * m + 2.0 * float(k) ** 3 + 10_000
        times = 1 if self.neighbourhood is None else 30 * MAX_WORST_CASE_STEPS
        own_work = Work(operations * times, 100.0 * (float(k) ** 2 + float(k) * m))
        return super().work(channel) + (own_work if times == 1 else own_work.in_floats)

    def stands_for(self, prior: Array) -> bool:
        """Return True if the distribution proportional to `prior` is exactly that of the utility, or in its
        neighborhood.
        """
        if np.array_equal(prior, self.prior):
            return True
        return self.neighbourhood is not None and self.neighbourhood.holds(prior, self.prior)

    @property
    def value_without_privacy(self) -> float:
        """The criterion without any privacy, at the prior: of the covariance of one multinomial draw."""
        return self.criterion.value(np.diag(self.prior) - np.outer(self.prior, self.prior))

    def __repr__(self) -> str:
        return f"FisherInformation({self.name}, {len(self.prior)} inputs)"


MAX_WORST_CASE_STEPS = 400


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The distribution `prior` with the largest criterion found, `value`; `upper` bounds the criterion over the set."""

    prior: Array
    value: float
    upper: float


def worst_case(utility: FisherInformation, matrix: Array, accuracy: float = 1e-7) -> WorstCase:
    """Find the worst case of a channel's matrix (k, m) over the utility's neighborhood, to a relative `accuracy`."""
    from scipy.optimize import minimize_scalar

    assert utility.neighbourhood is not None
    pilot, criterion = utility.prior, utility.criterion
    p = 0.999 * pilot + 0.001 * utility.neighbourhood.highest(-pilot, pilot)
    value, gradient = slope(criterion, matrix, p)
    best = WorstCase(p, value, math.inf)
    if math.isinf(value):
        return best
    corners = [p]
    weights = np.ones(1)
    for _ in range(MAX_WORST_CASE_STEPS):
        corner = utility.neighbourhood.highest(gradient, pilot)
        upper = min(best.upper, value + float(gradient @ (corner - p)))
        best = WorstCase(p, value, max(upper, value)) if value >= best.value else WorstCase(
            best.prior, best.value, max(upper, best.value)
        )  # fmt: skip
        if best.upper - best.value <= accuracy * max(abs(best.value), 1e-12):
            break
        # Pairwise steps move weight from the worst active corner to the best one, with less zigzagging.
        scores = [float(gradient @ c) for c in corners]
        worst_corner = int(np.argmin(scores))
        move = corner - corners[worst_corner]
        reach = float(weights[worst_corner])

        def negative_value(t: float, p: Array = p, move: Array = move) -> float:
            return -slope(criterion, matrix, p + t * move)[0]

        step = float(minimize_scalar(negative_value, bounds=(0.0, reach), method="bounded", options={"xatol": 1e-9}).x)
        if -negative_value(reach) >= -negative_value(step):
            step = reach
        corner_index = next((i for i, c in enumerate(corners) if np.abs(c - corner).max() < 1e-12), -1)
        if corner_index < 0:
            corners.append(corner)
            weights, corner_index = np.append(weights, 0.0), len(corners) - 1
        weights[worst_corner] -= step
        weights[corner_index] += step
        active = np.flatnonzero(weights > 1e-15)
        corners, weights = [corners[i] for i in active], weights[active] / weights[active].sum()
        p = np.asarray(weights @ np.array(corners))
        value, gradient = slope(criterion, matrix, p)
    return best


def slope(criterion: Criterion, matrix: Array, prior: Array) -> tuple[float, Array]:
    """Compute the criterion at `prior` (k,) and its gradient (k,) there.

    Let l_y = F^T p + h_y be the influence of report y on the estimate of F^T p. The derivative by p_x is sum_y Q[x,y]
    |l_y|^2 - 2 (F F^T p)_x, because the estimate is the best one.
    """
    influence = criterion.influence(scores(matrix, prior))
    mass = prior @ matrix
    mean = influence.factor.T @ prior
    report_estimates = mean[:, None] + influence.loadings / np.sqrt(np.where(mass > 0, mass, 1.0))
    return influence.value, np.asarray(matrix @ (report_estimates**2).sum(axis=0) - 2 * influence.factor @ mean)
