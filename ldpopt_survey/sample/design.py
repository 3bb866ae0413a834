"""The design of a sample -> the variance of any sum over its respondents, added over strata [SSW, chapters 3 to 5]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ldpopt.channel import Label
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Array, finite_array, positive_integer
from ldpopt.values.results import ByValue, Result
from ldpopt_survey.estimate.counts import factor

Codes = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Involved = Mask
"""(H,) mask of the strata that contribute to an estimate."""
Margin = tuple[Codes, Array]
"""A group for every respondent, and the known total of every group."""


class LonelyUnit(Enum):
    """The variance that a stratum with a single primary unit adds, since one unit shows no spread [SSW, section 3.7].

    REFUSE : `InvalidInput`; merge such a stratum with a neighbor.
    CERTAINTY : only the variance of its channel, since the unit was certain to be drawn.
    CENTRED : the square of its difference from the mean of all units, which is enough if strata are similar.
    AVERAGE : the average of the other strata of the estimate.

    A stratum that does not contribute to an estimate, such as one without members of a group, does not matter.

    >>> LonelyUnit("average")
    <LonelyUnit.AVERAGE: 'average'>
    """

    REFUSE = "refuse"
    CERTAINTY = "certainty"
    CENTRED = "centre"
    AVERAGE = "average"


@dataclass(frozen=True, eq=False)
class SamplingVariance(Result):
    """The covariance (r, r) of r linear functions, and its degrees of freedom (inf for a simple sample).

    unit_variances : (r,) the variances that the primary units show, to which the degrees of freedom belong. They may be
        less than those of `covariance`, which is raised to the channel's noise. None: those of `covariance`.

    >>> from ldpopt_survey import SampleDesign
    >>> SampleDesign(weights=[1.0, 3.0, 2.0, 2.0]).total_variance([0, 1, 1, 0])
    SamplingVariance(covariance=array([[9.]]), degrees=3.0)
    """

    covariance: Array
    degrees: float
    unit_variances: Array | None = field(default=None, repr=False)

    @property
    def unit_fractions(self) -> Array:
        """(r,) the `unit_variances` as fractions of the variances: below 1 where these are the channel's noise."""
        variances = np.diag(self.covariance)
        if self.unit_variances is None:
            return np.ones(len(variances))
        return np.divide(self.unit_variances, variances, out=np.ones(len(variances)), where=variances > 0)


@dataclass(frozen=True)
class Replication:
    """A method for variances: linearization, or computing the statistic again with other weights."""

    replicates: ClassVar[bool] = True
    name: ClassVar[str] = "replication"

    def variance(
        self, design: SampleDesign, statistic: Callable[[Array], Array], noise: Array | None, involved: Involved
    ) -> SamplingVariance:
        """Compute the covariance of a statistic, a function from weights (R, n) to values (R, r)."""
        raise invalid("method", "one with replicates (Jackknife, RescaledBootstrap, GivenReplicates)", self.name)


@dataclass(frozen=True)
class Linearization(Replication):
    """Taylor linearization: the variance of the sum of influence values, without replicates [SSW, section 5.5].

    >>> from ldpopt_survey import SampleDesign
    >>> SampleDesign(size=4, method=Linearization()).total_variance([1, 2, 3, 6]).covariance.round(6)
    array([[18.666667]])
    """

    replicates: ClassVar[bool] = False
    name: ClassVar[str] = "linearization"


@dataclass(frozen=True, eq=False, repr=False)
class SampleDesign(ByValue):
    """The design of a sample of n respondents from their population [SSW, chapters 3 to 5; Kish].

    - `weights` : (n,) the number of people of the population that a respondent represents; 1 by default. Not negative.
      A respondent of weight 0 contributes nothing, neither to estimates nor to the numbers of units and strata.
    - `strata` : (n,) labels of the parts of the population. An independent sample was drawn from each.
    - `clusters` : (n,) labels of the primary units (villages, schools) that were drawn; by default each respondent is a
      unit. The same label in two strata means two units.
    - `fpc` : (n,) finite population correction: for every respondent the number of primary units of the stratum in the
      population, or the fraction of them that was drawn (all at most 1). By default they were drawn with replacement.
    - `lonely` : the treatment of a stratum with a single primary unit.
    - `method` : the method of variance: `Linearization()`, `Jackknife()`, `RescaledBootstrap()` or
      `GivenReplicates(...)`.
    - `size` : n, needed only if no other argument shows it.
    - `margins`, `bounds` : known totals, and the permitted changes of weights to meet them, set by `post_stratify` and
      `rake`.

    Raises `InvalidInput` for other lengths, missing labels, and populations smaller than their samples.

    >>> design = SampleDesign(weights=[1.0, 3.0, 2.0, 2.0], strata=["a", "a", "b", "b"])
    >>> design.total([0, 1, 1, 0]), design.total_variance([0, 1, 1, 0]).covariance, design.degrees()
    (array([5.]), array([[13.]]), 2.0)
    """

    weights: Any = None
    strata: Any = None
    clusters: Any = None
    fpc: Any = None
    lonely: LonelyUnit = LonelyUnit.REFUSE
    method: Replication = field(default_factory=Linearization)
    size: int | None = None
    margins: tuple[Margin, ...] = ()
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        set_field = partial(object.__setattr__, self)
        first_column = next((v for v in (self.weights, self.strata, self.clusters, self.fpc) if v is not None), None)
        n = positive_integer(self.size if first_column is None or self.size is not None else len(first_column), "size")
        set_field("size", n)
        w = np.ones(n) if self.weights is None else finite_array(self.weights, "weights", 1)
        if len(w) != n or not (w.min() >= 0 and w.max() > 0):
            description = Phrase(f"{len(w)} from {w.min():g} to {w.max():g}" if len(w) else "none")
            raise invalid("weights", f"{n} numbers, none negative and one positive", description)
        w.setflags(write=False)
        set_field("weights", w)
        if self.fpc is not None:
            set_field("fpc", finite_array(self.fpc, "fpc", 1))
        if not self.fractions.max() <= 1:
            raise invalid("fpc", "sampling fractions of at most 1", float(self.fractions.max()))

    @property
    def n(self) -> int:
        """Number of respondents."""
        return len(self.weights)

    @property
    def weighted(self) -> Mask:
        """Mask (n,) of the respondents whose weight is not 0."""
        return np.asarray(self.weights > 0)

    @cached_property
    def _strata(self) -> tuple[Codes, list[Label]]:
        code, names = factor(self.strata, self.n, "strata")
        present, stratum_codes = np.unique(code[self.weighted], return_inverse=True)
        code = np.zeros(self.n, dtype=np.intp)  # 0 also for weights of 0, which contribute nothing
        code[self.weighted] = stratum_codes
        return code, [names[place] for place in present]

    @property
    def stratum_names(self) -> tuple[Label, ...]:
        """The H strata; (None,) if there are none."""
        return tuple(self._strata[1])

    @cached_property
    def _units(self) -> tuple[Codes, Codes]:
        stratum = self._strata[0]
        is_weighted = self.weighted
        cluster = np.arange(self.n) if self.clusters is None else factor(self.clusters, self.n, "clusters")[0]
        pairs, unit_codes = np.unique((stratum * self.n + cluster)[is_weighted], return_inverse=True)
        unit = np.zeros(self.n, dtype=np.intp)
        unit[is_weighted] = unit_codes
        return unit, np.asarray(pairs // self.n, dtype=np.intp)

    @property
    def unit(self) -> Codes:
        """Primary unit (n,) of every respondent, 0 to U - 1; arbitrary for a weight of 0."""
        return self._units[0]

    @property
    def unit_stratum(self) -> Codes:
        """Stratum (U,) of every primary unit, 0 to H - 1."""
        return self._units[1]

    @cached_property
    def units(self) -> Array:
        """Number (H,) of primary units drawn in every stratum."""
        return np.bincount(self.unit_stratum, minlength=len(self.stratum_names)).astype(np.float64)

    @cached_property
    def fractions(self) -> Array:
        """Fraction (H,) of every stratum's primary units that was drawn; 0 without `fpc`."""
        (stratum, names), fpc = self._strata, self.fpc
        if fpc is None:
            return np.zeros(len(self.units))
        if len(fpc) != self.n or not fpc[self.weighted].min() > 0:
            raise invalid("fpc", f"{self.n} positive numbers", Phrase(f"{len(fpc)} of them, or one not positive"))
        low, high = np.full(len(names), np.inf), np.zeros(len(names))
        stratum, fpc = stratum[self.weighted], fpc[self.weighted]
        np.minimum.at(low, stratum, fpc)
        np.maximum.at(high, stratum, fpc)
        if (inconsistent := np.flatnonzero(low != high)).size:
            raise invalid("fpc", "one number in every stratum", Phrase("two"), repr(names[int(inconsistent[0])]))
        shares = low if fpc.max() <= 1 else self.units / low
        if (inconsistent := np.flatnonzero(~(shares <= 1))).size:
            place = int(inconsistent[0])
            expected = f"at least the {self.units[place]:.0f} units that were drawn (or shares, all at most 1)"
            raise invalid("fpc", expected, float(low[place]), repr(names[place]))
        return shares

    def degrees(self, in_group: Any = None) -> float:
        """Count degrees of freedom: the primary units minus the strata of a group.

        in_group : a mask (n,) of the group; by default all respondents.
        """
        mask = np.ones(self.n, dtype=bool) if in_group is None else np.asarray(in_group)
        if mask.shape != (self.n,) or mask.dtype != bool:
            description = Phrase(f"{mask.dtype} of shape {mask.shape}")
            raise invalid("inside", f"{self.n} truth values, one a respondent", description)
        units = np.unique(self.unit[mask & self.weighted])
        return float(len(units) - len(np.unique(self.unit_stratum[units])))

    def degrees_within(self, in_group: Mask) -> float:
        """Compute the degrees of freedom of an estimate about the respondents in a mask (n,).

        Units whose squared weights sum to S have the precision of (sum S)^2 / sum S^2 units with equal ones [BM]. The
        result is 0 for a group inside one unit of every stratum: nothing shows the differences of units. It is inf
        where every unit of the population was drawn, so that the variance is that of the channel, which is known.
        """
        if (self._certain_fractions[np.unique(self.unit_stratum[self.unit[in_group & self.weighted]])] == 1).all():
            return np.inf
        if not (degrees := self.degrees(in_group)):
            return 0.0
        weights = np.where(in_group, self.weights, 0.0)  # of any size beside the weights of others
        squares = np.bincount(self.unit, (weights / weights.max()) ** 2)
        equal_fraction = squares.sum() ** 2 / (squares**2).sum() / np.count_nonzero(squares)
        return float(max(1.0, equal_fraction * degrees))

    @property
    def design_effect(self) -> float:
        """Kish's n sum w^2 / (sum w)^2: the variance inflation due to unequal weights alone [Kish]."""
        w = self.weights / self.weights.max()
        return float(self.n * (w @ w) / w.sum() ** 2)

    def total(self, scores: ArrayLike) -> Array:
        """Compute the weighted sums (r,) of scores (n,) or (n, r)."""
        return np.asarray(self.weights @ _columns(scores, self.n))

    def total_variance(self, scores: ArrayLike, noise: ArrayLike | None = None) -> SamplingVariance:
        """Compute the covariance (r, r) of `total(scores)`, with its degrees of freedom.

        scores : (n,) or (n, r). For a ratio, a regression or another smooth estimate these are its influence values; 0
            outside a subgroup. Their weighted sum is the estimate's error in large samples (Taylor linearization).
        noise : (H, r, r), for every stratum the sum of w_i^2 times the covariance of score i due to the channel alone.
            Finite populations and units that were certain to be drawn need it; (r, r) if no stratum is either. No
            variance is less than the noise, even with few units. None for scores that are not private.
        """
        s = _columns(scores, self.n)
        noise_array = None if noise is None else finite_array(noise, "noise", np.ndim(noise))
        r, shares = s.shape[1], self._certain_fractions
        if noise_array is not None and noise_array.shape not in (
            (len(shares), r, r),
            *(() if shares.any() else ((r, r),)),
        ):
            raise invalid("noise", f"shape {(len(shares), r, r)}", Phrase(f"{noise_array.shape}"))
        with np.errstate(over="ignore", invalid="ignore"):
            if self.method.replicates:
                variance = self.replicate(lambda weights: weights @ s, noise_array, np.any(s != 0, axis=1))
            else:
                residuals = self.residuals(s)
                size = np.abs(residuals).max(axis=1)
                covariance = self._over_strata(
                    self._scatter(residuals), noise_array, self._involved(size > 1e-12 * size.max())
                )
                degrees = float(self.units.sum() - len(self.units))
                variance = SamplingVariance(raise_to_noise(covariance, noise_array), degrees, np.diag(covariance))
        if not np.isfinite(variance.covariance).all():
            raise invalid("scores", "weights and scores whose squares are finite numbers", Phrase("larger ones"))
        return variance

    def replicate(
        self, statistic: Callable[[Array], Array], noise: Array | None = None, in_group: Mask | None = None
    ) -> SamplingVariance:
        """Compute the covariance of a statistic by replication: from values under other weights.

        statistic : a function from weights (R, n) to values (R, r), called with a few replicates at a time.
        noise : as in `total_variance`.
        in_group : (n,) mask of the respondents who contribute to it; None for all.
        """
        variance = self.method.variance(self, statistic, noise, self._involved(in_group))
        raised = raise_to_noise(variance.covariance, noise)
        return replace(variance, covariance=raised, unit_variances=np.diag(variance.covariance))

    def _involved(self, in_group: Mask | None) -> Involved:
        """Mask (H,) of the strata that have respondents in a mask (n,)."""
        rows = self.weighted if in_group is None else self.weighted & in_group
        return np.bincount(self.unit_stratum[self.unit[rows]], minlength=len(self.units)) > 0

    def residuals(self, scores: Array) -> Array:
        """Compute residuals (n, r) of the scores after weighted least squares on the margins.

        The margins are the known ones [SSW, section 6.5].
        """
        if not self.margins:
            return scores
        x = np.hstack([np.eye(len(totals))[codes] for codes, totals in self.margins])
        weighted = x * self.weights[:, None]
        return np.asarray(scores - x @ (np.linalg.pinv(x.T @ weighted, hermitian=True) @ (weighted.T @ scores)))

    def _scatter(self, scores: Array) -> Array:
        """Scatter (H, r, r) of the unit totals around the mean of their stratum (of all units for a single one)."""
        units = len(self.unit_stratum)
        totals = np.stack([np.bincount(self.unit, self.weights * column, units) for column in scores.T], axis=1)
        scatter = np.zeros((len(self.units), scores.shape[1], scores.shape[1]))
        order = np.argsort(self.unit_stratum, kind="stable")
        overall_mean = totals.mean(axis=0)
        for h, rows in enumerate(np.split(order, np.cumsum(self.units.astype(int))[:-1])):
            z = totals[rows]
            z = z - (z.mean(axis=0) if len(z) > 1 else overall_mean)
            scatter[h] = z.T @ z
        return scatter

    @property
    def _certain_fractions(self) -> Array:
        """Fraction (H,) of each stratum that counts as drawn, whose variance is that of the channel alone."""
        certain = (self.units == 1) & (self.lonely is LonelyUnit.CERTAINTY)
        return np.where(certain, 1.0, self.fractions)

    @property
    def needs_noise(self) -> bool:
        """True if variances need the channel's variance by stratum: some units were drawn with certainty."""
        return bool(self._certain_fractions.any())

    def certain_fractions(self, noise: Array | None, involved: Involved) -> Array:
        """Return the fraction (H,) of each stratum that counts as drawn.

        Without `noise` it is zero, which is conservative. `InvalidInput` for a stratum among the `involved` with a
        single unit, unless `lonely` allows it.
        """
        is_single = (self.units == 1) & involved
        if is_single.any() and self.lonely is LonelyUnit.REFUSE:
            expected = "at least two clusters or respondents in each (merge a stratum that has one, or say what it "
            name = self.stratum_names[int(np.argmax(is_single))]
            where = "" if name is None else f" in {name!r}"
            raise InvalidInput(f"strata: expected {expected}counts: LonelyUnit, --lonely), got one{where}")
        if noise is None and is_single.any() and self.lonely is LonelyUnit.CERTAINTY:
            raise InvalidInput("noise: not given; it must be the channel's variance where a unit is certain")
        return np.zeros(len(self.units)) if noise is None else self._certain_fractions

    def average_factor(self, involved: Involved) -> float:
        """Return the variance factor that gives single units the average of the other strata.

        These are the other strata among the `involved`.
        """
        if self.lonely is not LonelyUnit.AVERAGE or not involved.any():
            return 1.0
        has_spread = involved & (self.units > 1)
        if not has_spread.any():
            raise InvalidInput(
                "strata: no stratum has two units or more, so there is no average; choose another LonelyUnit"
            )
        return float(involved.sum() / has_spread.sum())

    def _over_strata(self, scatter: Array, noise: Array | None, involved: Involved) -> Array:
        """sum_h (1 - f_h) n_h / (n_h - 1) S_h + f_h N_h [SSW, sections 3.7 and 4.3].

        scatter : (H, r, r), S_h, of the n_h unit totals of stratum h around their mean (of all units for a single one).
        noise : (H, r, r), N_h, the variance due to the channel's randomness alone, which even a census has.
        """
        units, shares = self.units, self.certain_fractions(noise, involved)
        is_included = units > 1 if self.lonely is LonelyUnit.AVERAGE else np.ones(len(units), dtype=bool)
        factor = np.where(units == 1, 1.0, units / np.maximum(units - 1.0, 1.0))
        covariance = np.einsum("h,hrs->rs", ((1 - shares) * factor)[is_included], scatter[is_included])
        if noise is not None and noise.ndim == 3:
            covariance = covariance + np.einsum("h,hrs->rs", shares[is_included], noise[is_included])
        return np.asarray(covariance * self.average_factor(involved))

    def with_method(self, method: Replication) -> SampleDesign:
        """Return the same sample with another method of variance."""
        return replace(self, method=method)

    def __repr__(self) -> str:
        parts = [f"{self.n} respondents"]
        if len(self.unit_stratum) != self.n:
            parts.append(f"{len(self.unit_stratum)} clusters")
        if self.stratum_names != (None,):
            parts.append(f"{len(self.stratum_names)} strata")
        if self.fpc is not None:
            parts.append("finite populations")
        if self.margins:
            parts.append(f"{len(self.margins)} known margin{'s' if len(self.margins) > 1 else ''}")
        return f"SampleDesign({', '.join(parts)}; {self.method.name})"


def raise_to_noise(covariance: Array, noise: Array | None) -> Array:
    """Raise the variances of a covariance (r, r) to at least those of the noise.

    noise : (r, r) or (H, r, r) by stratum.

    Correlations remain unchanged. Quantities without any variance get the covariance of the noise.
    """
    if noise is None:
        return covariance
    floor = noise if noise.ndim == 2 else noise.sum(axis=0)
    floor_variances, variances = np.maximum(np.diag(floor), 0.0), np.maximum(np.diag(covariance), 0.0)
    if (variances >= floor_variances).all():
        return covariance
    is_positive = variances > 1e-9 * floor_variances
    scale = np.sqrt(
        np.where(
            is_positive & (floor_variances > variances), floor_variances / np.where(is_positive, variances, 1.0), 1.0
        )
    )
    return np.where(
        np.outer(is_positive, is_positive),
        covariance * np.outer(scale, scale),
        np.where(np.outer(~is_positive, ~is_positive), floor, 0),
    )


def _columns(scores: ArrayLike, n: int) -> Array:
    s = finite_array(scores, "scores", np.ndim(scores))
    s = s[:, None] if s.ndim == 1 else s
    if s.ndim != 2 or len(s) != n:
        raise invalid("scores", f"{n} rows, one a respondent", Phrase(f"shape {s.shape}"))
    return s
