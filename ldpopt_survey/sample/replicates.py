"""A sample -> other weights: raked to meet known margins of the population, or replicates for variances.

A variance by replication computes the estimate again under many sets of changed weights (the replicates). These come
from the jackknife, the rescaled bootstrap, or a file.
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
from ldpopt.numbers.tolerances import RAKING_RTOL
from ldpopt.values.distribution import Array, finite_array, number, positive_integer
from ldpopt.values.results import ByValue
from ldpopt_survey.estimate.counts import factor, find_positions
from ldpopt_survey.sample.design import Involved, LonelyUnit, Replication, SampleDesign, SamplingVariance

MAX_RAKING_CYCLES = 2000

MAX_WEIGHTS_IN_MEMORY = 4_000_000
"""The largest number of replicate weights in memory at once."""

MAX_REPLICATE_WEIGHTS = 2_000_000_000
"""The largest number of weights of all replicates. With more, replication takes too long."""


def rake_weights(weights: Array, margins: Sequence[tuple[npt.NDArray[np.intp], Array]]) -> Array:
    """Compute the raked weights (n,).

    Within every cell of the margins they are proportional to `weights`, which may be zero.
    """
    w = np.array(weights)
    for _ in range(MAX_RAKING_CYCLES):
        largest_error = 0.0
        for codes, target_totals in margins:
            current_totals = np.bincount(codes, w, len(target_totals))
            if not current_totals.min() > 0:
                raise SolverError("raking: a group of a margin has no respondent left; merge it with another")
            largest_error = max(largest_error, float(np.abs(current_totals / target_totals - 1).max()))
            w *= (target_totals / current_totals)[codes]
        if len(margins) == 1 or largest_error <= RAKING_RTOL:
            return w
    raise SolverError(
        f"raking: after {MAX_RAKING_CYCLES} cycles the weights miss a known total by {largest_error:.2g} of itself; "
        "some combination of groups has no respondent (merge groups, or leave a margin out)"
    )


def calibrate_weights(
    weights: Array, margins: Sequence[tuple[npt.NDArray[np.intp], Array]], bounds: tuple[float, float] | None
) -> Array:
    """Calibrate weights (n,) to the margins: raked, or each within `bounds` times its start.

    Bounded weights are those of the logit method of calibration: w g(x . b), where g goes from the lower bound to the
    upper one. First all are multiplied by one number, so that their sum is that of the margins [DevilleSarndal].
    """
    if bounds is None:
        return rake_weights(weights, margins)
    low, high = bounds
    total = float(margins[0][1].sum())
    w = weights * (total / weights.sum())
    codes = np.stack([code for code, _ in margins], axis=1)
    cells, cell = np.unique(codes, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    mass = np.asarray(np.bincount(cell, w), dtype=np.float64)
    x = np.hstack([np.eye(len(target_totals))[cells[:, index]] for index, (_, target_totals) in enumerate(margins)])
    target = np.concatenate([target_totals for _, target_totals in margins])

    def factors(b: Array) -> Array:
        rise = np.exp(np.clip((high - low) / ((1 - low) * (high - 1)) * (x @ b), -700, 700))
        return np.asarray(low + (high - low) * (1 - low) * rise / ((high - 1) + (1 - low) * rise))

    b = np.zeros(x.shape[1])
    g = factors(b)
    for _ in range(200):
        shortfall = target - (mass * g) @ x
        if np.abs(shortfall / target).max() <= RAKING_RTOL:
            return np.asarray(w * g[cell])
        slope = mass * (g - low) * (high - g) / ((1 - low) * (high - 1))
        step = np.linalg.pinv((x.T * slope) @ x, hermitian=True) @ shortfall
        step_size = 1.0
        while step_size > 1e-6:
            g = factors(b + step_size * step)
            if np.linalg.norm((target - (mass * g) @ x) / target) < np.linalg.norm(shortfall / target):
                break
            step_size /= 2
        if step_size <= 1e-6:
            break
        b = b + step_size * step
    raise SolverError(
        f"calibration: no weights from {low:g} to {high:g} times their first values meet the margins (widen the "
        "bounds, merge groups, or leave a margin out)"
    )


def trim(design: SampleDesign, largest: float) -> SampleDesign:
    """Clip weights above `largest`, and spread the excess evenly over the others.

    The sum of the weights (n,) stays. They are less unequal, which makes variances smaller [Kish] and estimates biased.
    Variances treat the trimmed weights as given.

    Parameters
    ----------
    design : The sample design of n respondents.
    largest : The largest weight.

    Returns
    -------
    SampleDesign
        The design with the new weights.

    Raises
    ------
    InvalidInput
        If `largest` is less than the mean weight.

    >>> trim(SampleDesign(weights=[1.0, 2.0, 3.0, 4.0, 20.0, 1.0, 2.0]), 8).weights
    array([3., 4., 5., 6., 8., 3., 4.])
    """
    cap, w = number(largest, "largest weight"), np.array(design.weights)
    is_weighted = design.weighted
    if not cap >= w[is_weighted].mean():
        raise invalid("largest weight", f"at least the mean weight {w[is_weighted].mean():g}", cap)
    while (is_over := w > cap * (1 + 1e-12)).any():
        can_grow = is_weighted & ~is_over & (w < cap)
        w[can_grow] += (w[is_over] - cap).sum() / can_grow.sum() if can_grow.any() else 0.0
        w[is_over] = cap
    return replace(design, weights=w)


def check_bounds(bounds: Any, name: str = "bounds") -> tuple[float, float]:
    """Check the smallest and the largest factor of a weight, on both sides of 1.

    Others are `InvalidInput`.
    """
    pair = finite_array(bounds, name, 1).tolist()
    if len(pair) != 2 or not 0 <= pair[0] < 1 < pair[1]:
        raise invalid(name, "two numbers on both sides of 1, such as 0.5 and 2", Phrase(f"{pair}"))
    return float(pair[0]), float(pair[1])


def post_stratify(design: SampleDesign, groups: Any, totals: Mapping[Any, float]) -> SampleDesign:
    """Update weights to meet the known total of every group (post-stratification) [SSW, section 7.6].

    Parameters
    ----------
    design : The sample design of n respondents.
    groups : (n,) labels.
    totals : The population of every group, as a number of people or as proportions that sum to 1.

    Returns
    -------
    SampleDesign
        The design with the new weights.

    Raises
    ------
    InvalidInput
        For a group without a total, or a total without a respondent (merge the group with another).

    >>> post_stratify(SampleDesign(size=4), ["f", "m", "m", "m"], {"f": 50, "m": 50}).weights.round(3)
    array([50.   , 16.667, 16.667, 16.667])
    """
    return rake(design, [(groups, totals)])


def rake(
    design: SampleDesign, margins: Sequence[tuple[Any, Mapping[Any, float]]], bounds: ArrayLike | None = None
) -> SampleDesign:
    """Update weights by raking so that they meet the known totals of every margin.

    Variances are those of the residuals from the margins, and replicates are raked, too.

    Parameters
    ----------
    design : The sample design of n respondents.
    margins : Pairs of groups, (n,) labels, and their totals: numbers of people or proportions [DemingStephan].
    bounds : The smallest and the largest factor of a weight, such as (0.5, 2), in addition to the common factor. The
        weights are then those of bounded calibration [DevilleSarndal]. None for no bounds.

    Returns
    -------
    SampleDesign
        The design with the new weights.

    Raises
    ------
    SolverError
        If no weights meet all margins within the bounds.

    >>> sex, age = ["f", "f", "m", "m"], ["old", "young", "old", "young"]
    >>> raked = rake(SampleDesign(weights=[1, 2, 1, 1]), [(sex, {"f": 6, "m": 4}), (age, {"old": 5, "young": 5})])
    >>> raked.weights.round(3), raked.total(np.array(sex) == "f")
    (array([2.589, 3.411, 2.411, 1.589]), array([6.]))
    """
    if not margins:
        raise InvalidInput("margins: no margins given; pass at least one")
    known_margins = []
    for groups, totals in margins:
        codes, names = factor(groups, design.n, "margin")
        known_margins.append((codes, _totals(names, totals, float(design.weights.sum()))))
    sums = [float(target_totals.sum()) for _, target_totals in known_margins]
    if not max(sums) - min(sums) <= 1e-6 * max(sums):
        raise invalid("margins", "totals with the same sum", Phrase(f"sums {min(sums):.10g} and {max(sums):.10g}"))
    known_margins = [
        (codes, group_totals * (sums[0] / total))
        for (codes, group_totals), total in zip(known_margins, sums, strict=True)
    ]
    limits = None if bounds is None else check_bounds(bounds)
    weights = calibrate_weights(design.weights, known_margins, limits)
    return replace(design, weights=weights, margins=tuple(known_margins), bounds=limits)


def _totals(names: list[Any], totals: Mapping[Any, float], weight: float) -> Array:
    """The known totals in the order of the groups' names; proportions become totals of the weights."""
    group_labels = list(totals)
    group_places = find_positions(names, tuple(group_labels))
    if len(group_places) and group_places.min() < 0:
        raise invalid("margin", "a known total for every group of the sample", names[int(np.argmin(group_places))])
    if len(set(group_places.tolist())) != len(group_labels):
        missing = next(label for place, label in enumerate(group_labels) if place not in group_places)
        raise invalid("margin", "a respondent in every group with a known total", missing)
    target_totals = np.array([number(totals[group_labels[place]], "margin") for place in group_places])
    if not target_totals.min() > 0:
        raise invalid("margin", "positive totals", float(target_totals.min()))
    return target_totals * (weight if abs(float(target_totals.sum()) - 1) <= 1e-6 else 1.0)


@dataclass(frozen=True)
class Reweighted(Replication, ABC):
    """Variances by computing the statistic again under many sets of changed weights."""

    @abstractmethod
    def _scales(self, design: SampleDesign) -> Array:
        """Factors (R,) of the replicates' squared deviations in the variance."""

    @abstractmethod
    def _factors(self, design: SampleDesign) -> Iterator[Array]:
        """Factors of the weights, (c, U) for the primary units or (c, n) for the respondents, R rows in all."""

    def variance(
        self, design: SampleDesign, statistic: Callable[[Array], Array], noise: Array | None, involved: Involved
    ) -> SamplingVariance:
        """Compute sum_r c_r (t_r - t)(t_r - t)^T, where t is the full estimate.

        Every replicate meets the known margins.
        """
        scales = self._scales(design)
        if len(scales) * design.n > MAX_REPLICATE_WEIGHTS:
            max_replicates = MAX_REPLICATE_WEIGHTS // design.n
            expected = f"at most {max_replicates} for {design.n} respondents (linearization has no such limit)"
            raise invalid("replicates", expected, len(scales))
        shares = design.certain_fractions(noise, involved)
        if (involved & (design.units == 1)).any() and design.lonely is LonelyUnit.CENTRED:
            raise InvalidInput("lonely: expected refuse, certainty or average with replicate weights, got centre")
        if noise is None and design.fractions.any():
            raise InvalidInput("noise: not given; it must be the channel's variance for a finite population")
        centre = statistic(design.weights[None])[0]
        covariance = np.zeros((len(centre), len(centre)))
        start = 0
        for factors in self._factors(design):
            weights = design.weights * (factors if factors.shape[1] == design.n else factors[:, design.unit])
            if design.margins:
                weights = np.stack([calibrate_weights(row, design.margins, design.bounds) for row in weights])
            deviations = statistic(weights) - centre
            covariance += (deviations * scales[start : start + len(deviations), None]).T @ deviations
            start += len(deviations)
        if noise is not None and noise.ndim == 3:
            covariance += np.einsum("h,hrs->rs", shares, noise)
        return SamplingVariance(covariance * design.average_factor(involved), self._degrees(design, len(scales)))

    def _degrees(self, design: SampleDesign, replicates: int) -> float:
        return min(design.degrees(), replicates - 1.0)


@dataclass(frozen=True)
class Jackknife(Reweighted):
    """The jackknife, which omits one primary unit at a time [Wolter, chapter 4]: JK1, or JKn with strata.

    The weights of the other units of the stratum are multiplied by n_h / (n_h - 1). The factor of the squared
    deviation is (1 - f_h)(n_h - 1) / n_h.

    >>> from ldpopt_survey import SampleDesign
    >>> SampleDesign(size=4, method=Jackknife()).total_variance([1, 2, 3, 6]).covariance.round(6)
    array([[18.666667]])
    """

    name: ClassVar[str] = "jackknife"

    def _scales(self, design: SampleDesign) -> Array:
        by_stratum = (1 - design.fractions) * (design.units - 1) / np.maximum(design.units, 1)
        return np.asarray(by_stratum[design.unit_stratum])

    def _factors(self, design: SampleDesign) -> Iterator[Array]:
        stratum, u = design.unit_stratum, len(design.unit_stratum)
        reweighting = design.units / np.maximum(design.units - 1, 1)
        step = max(1, MAX_WEIGHTS_IN_MEMORY // max(design.n, u))
        for start in range(0, u, step):
            omitted_units = np.arange(start, min(start + step, u))
            factors = np.where(stratum[omitted_units, None] == stratum, reweighting[stratum], 1.0)
            factors[np.arange(len(omitted_units)), omitted_units] = np.where(
                design.units[stratum[omitted_units]] == 1, 1.0, 0.0
            )
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
        step = max(1, MAX_WEIGHTS_IN_MEMORY // max(design.n, u))
        for start in range(0, self.replications, step):
            count = min(step, self.replications - start)
            factors = np.ones((count, u))
            for rows, fraction in zip(members, design.fractions, strict=True):
                n = len(rows)
                if n > 1:
                    draws = rng.multinomial(n - 1, np.full(n, 1 / n), size=count)
                    s = np.sqrt(1 - fraction)
                    factors[:, rows] = 1 - s + s * n / (n - 1) * draws
            yield factors


@dataclass(frozen=True, eq=False)
class GivenReplicates(ByValue, Reweighted):
    """Replicate weights from a data file. Statistical offices publish them instead of the design.

    - `weights` : (n, R), nonnegative, one column for each replicate; full weights, not factors of the weights.
    - `scale` : (R,) or one number, the factor of each squared deviation: 1 / R for the bootstrap, (R - 1) / R for JK1,
      and 4 / R for Fay's method with 0.5.

    Raises `InvalidInput` for other shapes and negative numbers.

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
        step = max(1, MAX_WEIGHTS_IN_MEMORY // design.n)
        for start in range(0, self.weights.shape[1], step):
            replicate = self.weights[:, start : start + step].T
            yield np.divide(replicate, design.weights, out=np.zeros(replicate.shape), where=design.weighted)

    def _degrees(self, design: SampleDesign, replicates: int) -> float:
        return replicates - 1.0
