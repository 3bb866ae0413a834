"""A sample -> other weights: raked to meet known margins of the population, or replicates for variances.

A variance by replication computes the estimate again under many sets of changed weights (the replicates): by the
jackknife, the rescaled bootstrap, or with weights that come with a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.numbers.tolerances import RAKED
from ldpopt.values.distribution import Array, finite_array, number, positive_integer
from ldpopt.values.results import ByValue
from ldpopt_survey.estimate.counts import factor, places
from ldpopt_survey.sample.design import Involved, LonelyUnit, Replication, SampleDesign, SamplingVariance

MAX_CYCLES = 2000

CHUNK = 4_000_000
"""The most weights in memory at a time."""

MAX_WEIGHTS = 2_000_000_000
"""The most weights of all replicates. With more, replication takes too long."""


def raked(weights: Array, margins: Sequence[tuple[npt.NDArray[np.intp], Array]]) -> Array:
    """The raked weights (n,): within every cell of the margins proportional to `weights`, which may be zero."""
    w = np.array(weights)
    for _ in range(MAX_CYCLES):
        worst = 0.0
        for codes, known in margins:
            now = np.bincount(codes, w, len(known))
            if not now.min() > 0:
                raise SolverError("raking: a group of a margin has no respondent left; merge it with another")
            worst = max(worst, float(np.abs(now / known - 1).max()))
            w *= (known / now)[codes]
        if len(margins) == 1 or worst <= RAKED:
            return w
    raise SolverError(
        f"raking: after {MAX_CYCLES} cycles the weights miss a known total by {worst:.2g} of itself; some combination "
        "of groups has no respondent (merge groups, or leave a margin out)"
    )


def calibrated(
    weights: Array, margins: Sequence[tuple[npt.NDArray[np.intp], Array]], bounds: tuple[float, float] | None
) -> Array:
    """The weights (n,) that meet the margins: raked, or with each between `bounds` times its first value.

    Bounded weights are those of the logit method of calibration: w g(x . b), where g goes from the lower bound to the
    upper one. First all are multiplied by one number, so that their sum is that of the margins [DevilleSarndal].
    """
    if bounds is None:
        return raked(weights, margins)
    low, high = bounds
    total = float(margins[0][1].sum())
    w = weights * (total / weights.sum())
    codes = np.stack([code for code, _ in margins], axis=1)
    cells, cell = np.unique(codes, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    mass = np.asarray(np.bincount(cell, w), dtype=np.float64)
    x = np.hstack([np.eye(len(known))[cells[:, place]] for place, (_, known) in enumerate(margins)])
    target = np.concatenate([known for _, known in margins])

    def factors(b: Array) -> Array:
        rise = np.exp(np.clip((high - low) / ((1 - low) * (high - 1)) * (x @ b), -700, 700))
        return np.asarray(low + (high - low) * (1 - low) * rise / ((high - 1) + (1 - low) * rise))

    b = np.zeros(x.shape[1])
    g = factors(b)
    for _ in range(200):
        away = target - (mass * g) @ x
        if np.abs(away / target).max() <= RAKED:
            return np.asarray(w * g[cell])
        slope = mass * (g - low) * (high - g) / ((1 - low) * (high - 1))
        step = np.linalg.pinv((x.T * slope) @ x, hermitian=True) @ away
        size = 1.0
        while size > 1e-6:
            g = factors(b + size * step)
            if np.linalg.norm((target - (mass * g) @ x) / target) < np.linalg.norm(away / target):
                break
            size /= 2
        if size <= 1e-6:
            break
        b = b + size * step
    raise SolverError(
        f"calibration: no weights from {low:g} to {high:g} times their first values meet the margins (widen the "
        "bounds, merge groups, or leave a margin out)"
    )


def trim(design: SampleDesign, largest: float) -> SampleDesign:
    """The design with no weight above `largest`; what is taken off is spread evenly over the others, so the sum stays.

    The weights (n,) are less unequal then, which makes variances smaller [Kish] and estimates biased; variances take
    them as given. `InvalidInput` if `largest` is less than the mean weight, which leaves no room.

    >>> trim(SampleDesign(weights=[1.0, 2.0, 3.0, 4.0, 20.0, 1.0, 2.0]), 8).weights
    array([3., 4., 5., 6., 8., 3., 4.])
    """
    top, w = number(largest, "largest weight"), np.array(design.weights)
    inside = design.weighted
    if not top >= w[inside].mean():
        raise invalid("largest weight", f"at least the mean weight {w[inside].mean():g}", top)
    while (over := w > top * (1 + 1e-12)).any():
        rest = inside & ~over & (w < top)
        w[rest] += (w[over] - top).sum() / rest.sum() if rest.any() else 0.0
        w[over] = top
    return replace(design, weights=w)


def checked_bounds(bounds: Any, what: str = "bounds") -> tuple[float, float]:
    """The least and the largest factor of a weight, on both sides of 1; else `InvalidInput`."""
    pair = finite_array(bounds, what, 1).tolist()
    if len(pair) != 2 or not 0 <= pair[0] < 1 < pair[1]:
        raise invalid(what, "two numbers on both sides of 1, such as 0.5 and 2", Phrase(f"{pair}"))
    return float(pair[0]), float(pair[1])


def post_stratify(design: SampleDesign, groups: Any, totals: Mapping[Any, float]) -> SampleDesign:
    """Post-stratification: the design with weights changed so that every group has its known total [SSW, section 7.6].

    groups : (n,) labels. totals : the population of every group, as a number of people or as shares that sum to 1.
    `InvalidInput` for a group without a total, or a total without a respondent (merge the group with another).

    >>> post_stratify(SampleDesign(size=4), ["f", "m", "m", "m"], {"f": 50, "m": 50}).weights.round(3)
    array([50.   , 16.667, 16.667, 16.667])
    """
    return rake(design, [(groups, totals)])


def rake(
    design: SampleDesign, margins: Sequence[tuple[Any, Mapping[Any, float]]], bounds: ArrayLike | None = None
) -> SampleDesign:
    """Raking: the design with weights that meet the known totals of every margin [DemingStephan].

    margins : pairs of groups, (n,) labels, and their totals, numbers of people or shares.
    bounds : the least and the largest factor of a weight, beside the one that all have in common, such as (0.5, 2);
        then weights are those of bounded calibration [DevilleSarndal]. None for no bounds.

    Variances are then those of the residuals from the margins, and replicates are raked, too. `SolverError` if no
    weights meet all margins, within the bounds if there are any.

    >>> sex, age = ["f", "f", "m", "m"], ["old", "young", "old", "young"]
    >>> made = rake(SampleDesign(weights=[1, 2, 1, 1]), [(sex, {"f": 6, "m": 4}), (age, {"old": 5, "young": 5})])
    >>> made.weights.round(3), made.total(np.array(sex) == "f")
    (array([2.589, 3.411, 2.411, 1.589]), array([6.]))
    """
    if not margins:
        raise invalid("margins", "at least one", Phrase("none"))
    known_margins = []
    for groups, totals in margins:
        codes, names = factor(groups, design.n, "margin")
        known_margins.append((codes, _totals(names, totals, float(design.weights.sum()))))
    sums = [float(known.sum()) for _, known in known_margins]
    if not max(sums) - min(sums) <= 1e-6 * max(sums):
        raise invalid("margins", "totals with the same sum", Phrase(f"sums {min(sums):.10g} and {max(sums):.10g}"))
    known_margins = [(codes, own * (sums[0] / total)) for (codes, own), total in zip(known_margins, sums, strict=True)]
    limits = None if bounds is None else checked_bounds(bounds)
    weights = calibrated(design.weights, known_margins, limits)
    return replace(design, weights=weights, margins=tuple(known_margins), bounds=limits)


def _totals(names: list[Any], totals: Mapping[Any, float], weight: float) -> Array:
    """The known totals in the order of the groups' names; shares become totals of the weights."""
    given = list(totals)
    group_places = places(names, tuple(given))
    if len(group_places) and group_places.min() < 0:
        raise invalid("margin", "a known total for every group of the sample", names[int(np.argmin(group_places))])
    if len(set(group_places.tolist())) != len(given):
        missing = next(label for place, label in enumerate(given) if place not in group_places)
        raise invalid("margin", "a respondent in every group with a known total", missing)
    known = np.array([number(totals[given[place]], "margin") for place in group_places])
    if not known.min() > 0:
        raise invalid("margin", "positive totals", float(known.min()))
    return known * (weight if abs(float(known.sum()) - 1) <= 1e-6 else 1.0)


@dataclass(frozen=True)
class Reweighted(Replication, ABC):
    """Variances by computing the statistic again under many sets of changed weights."""

    @abstractmethod
    def _scales(self, design: SampleDesign) -> Array:
        """(R,) the factor of every replicate's squared deviation in the variance."""

    @abstractmethod
    def _factors(self, design: SampleDesign) -> Iterator[Array]:
        """Factors of the weights, (c, U) for the primary units or (c, n) for the respondents, R rows in all."""

    def variance(
        self, design: SampleDesign, statistic: Callable[[Array], Array], noise: Array | None, involved: Involved
    ) -> SamplingVariance:
        """sum_r c_r (t_r - t)(t_r - t)^T, where t is the full estimate. Every replicate meets the known margins."""
        scales = self._scales(design)
        if len(scales) * design.n > MAX_WEIGHTS:
            expected = f"at most {MAX_WEIGHTS // design.n} for {design.n} respondents (linearisation has no such limit)"
            raise invalid("replicates", expected, len(scales))
        shares = design.shares_drawn(noise, involved)
        if (involved & (design.units == 1)).any() and design.lonely is LonelyUnit.CENTRED:
            raise InvalidInput("lonely: expected refuse, certainty or average with replicate weights, got centre")
        if noise is None and design.fractions.any():
            raise invalid("noise", "the channel's own variance for a finite population", Phrase("none"))
        centre = statistic(design.weights[None])[0]
        covariance = np.zeros((len(centre), len(centre)))
        start = 0
        for factors in self._factors(design):
            weights = design.weights * (factors if factors.shape[1] == design.n else factors[:, design.unit])
            if design.margins:
                weights = np.stack([calibrated(row, design.margins, design.bounds) for row in weights])
            away = statistic(weights) - centre
            covariance += (away * scales[start : start + len(away), None]).T @ away
            start += len(away)
        if noise is not None and noise.ndim == 3:
            covariance += np.einsum("h,hrs->rs", shares, noise)
        return SamplingVariance(covariance * design.averaged(involved), self._degrees(design, len(scales)))

    def _degrees(self, design: SampleDesign, replicates: int) -> float:
        return min(design.degrees(), replicates - 1.0)


@dataclass(frozen=True)
class Jackknife(Reweighted):
    """The jackknife, which leaves out one primary unit at a time [Wolter, chapter 4]: JK1, or JKn with strata.

    The weights of the other units of the stratum are multiplied by n_h / (n_h - 1), and the factor of the squared
    deviation is (1 - f_h)(n_h - 1) / n_h.

    >>> from ldpopt_survey import SampleDesign
    >>> SampleDesign(size=4, method=Jackknife()).total_variance([1, 2, 3, 6]).covariance.round(6)
    array([[18.666667]])
    """

    name: ClassVar[str] = "jackknife"

    def _scales(self, design: SampleDesign) -> Array:
        each = (1 - design.fractions) * (design.units - 1) / np.maximum(design.units, 1)
        return np.asarray(each[design.unit_stratum])

    def _factors(self, design: SampleDesign) -> Iterator[Array]:
        stratum, u = design.unit_stratum, len(design.unit_stratum)
        lift = design.units / np.maximum(design.units - 1, 1)
        step = max(1, CHUNK // max(design.n, u))
        for start in range(0, u, step):
            out = np.arange(start, min(start + step, u))
            factors = np.where(stratum[out, None] == stratum, lift[stratum], 1.0)
            factors[np.arange(len(out)), out] = np.where(design.units[stratum[out]] == 1, 1.0, 0.0)
            yield factors


@dataclass(frozen=True)
class RescaledBootstrap(Reweighted):
    """Rao and Wu's bootstrap: n_h - 1 primary units drawn again with replacement in every stratum [RaoWu].

    A unit that was drawn r times has its weights multiplied by 1 - s + s n_h / (n_h - 1) r, where s = sqrt(1 - f_h).
    The seed makes a result repeatable.

    >>> from ldpopt_survey import SampleDesign
    >>> made = SampleDesign(size=4, method=RescaledBootstrap(4000)).total_variance([1, 2, 3, 6]).covariance
    >>> bool(abs(made[0, 0] - 18.67) < 1.5)
    True
    """

    replications: int = 500
    seed: int = 0
    name: ClassVar[str] = "bootstrap"

    def __post_init__(self) -> None:
        positive_integer(self.replications, "replications", 2)
        positive_integer(self.seed, "seed", 0)

    def _scales(self, design: SampleDesign) -> Array:
        return np.full(self.replications, 1 / self.replications)

    def _factors(self, design: SampleDesign) -> Iterator[Array]:
        rng, u = np.random.default_rng(self.seed), len(design.unit_stratum)
        members = [np.flatnonzero(design.unit_stratum == h) for h in range(len(design.units))]
        step = max(1, CHUNK // max(design.n, u))
        for start in range(0, self.replications, step):
            count = min(step, self.replications - start)
            factors = np.ones((count, u))
            for rows, share in zip(members, design.fractions, strict=True):
                n = len(rows)
                if n > 1:
                    drawn = rng.multinomial(n - 1, np.full(n, 1 / n), size=count)
                    s = np.sqrt(1 - share)
                    factors[:, rows] = 1 - s + s * n / (n - 1) * drawn
            yield factors


@dataclass(frozen=True, eq=False)
class GivenReplicates(ByValue, Reweighted):
    """Replicate weights that come with a data file. Statistical offices publish them instead of the design.

    weights : (n, R), non-negative, one column for each replicate; full weights, not factors of the weights.
    scale : (R,) or one number, the factor of each squared deviation: 1 / R for the bootstrap, 4 / R for Fay's method
        with 0.5, (R - 1) / R for JK1. `InvalidInput` for other shapes and negative numbers.

    >>> from ldpopt_survey import SampleDesign
    >>> halves = GivenReplicates([[2, 0], [0, 2]], 0.5)
    >>> SampleDesign(size=2, method=halves).total_variance([1.0, 3.0]).covariance
    array([[4.]])
    """

    weights: Any
    scale: Any
    name: ClassVar[str] = "given replicates"

    def __post_init__(self) -> None:
        w = finite_array(self.weights, "replicate weights", 2)
        c = finite_array(self.scale, "scales", np.ndim(self.scale))
        c = np.full(w.shape[1], float(c)) if c.ndim == 0 else c
        if w.shape[1] < 2 or w.min() < 0 or c.shape != (w.shape[1],) or not c.min() > 0:
            expected = "at least two columns, none negative, with a positive scale each"
            raise invalid("replicate weights", expected, w.shape)
        object.__setattr__(self, "weights", w)
        object.__setattr__(self, "scale", c)

    def _scales(self, design: SampleDesign) -> Array:
        if len(self.weights) != design.n:
            raise invalid("replicate weights", f"{design.n} rows, one a respondent", len(self.weights))
        return np.asarray(self.scale)

    def _factors(self, design: SampleDesign) -> Iterator[Array]:
        step = max(1, CHUNK // design.n)
        for start in range(0, self.weights.shape[1], step):
            replicate = self.weights[:, start : start + step].T
            yield np.divide(replicate, design.weights, out=np.zeros(replicate.shape), where=design.weighted)

    def _degrees(self, design: SampleDesign, replicates: int) -> float:
        return replicates - 1.0
