"""How respondents were drawn -> the variance of any sum over them, added over strata [SSW, chapters 3 to 5]."""

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
"""(H,) the strata that have a share in an estimate."""
Margin = tuple[Codes, Array]
"""A group for every respondent, and the known total of every group."""


class LonelyUnit(Enum):
    """What a stratum with a single primary unit adds to a variance, since one unit shows no spread [SSW, section 3.7].

    REFUSE : `InvalidInput`; merge such a stratum with a neighbour. CERTAINTY : nothing but the variance of its channel,
        since the unit was certain to be drawn. CENTRED : the square of its difference from the mean of all units, which
        is enough if strata are similar. AVERAGE : as much as the other strata of the estimate add on average.

    A stratum that has no share in an estimate, such as one without anybody of a group, is not asked for.

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

    >>> from ldpopt_survey import SampleDesign
    >>> SampleDesign(weights=[1.0, 3.0, 2.0, 2.0]).total_variance([0, 1, 1, 0])
    SamplingVariance(covariance=array([[9.]]), degrees=3.0)
    """

    covariance: Array
    degrees: float


@dataclass(frozen=True)
class Replication:
    """A method for variances: linearisation, or computing the statistic again with other weights."""

    replicates: ClassVar[bool] = True
    name: ClassVar[str] = "replication"

    def variance(
        self, design: SampleDesign, statistic: Callable[[Array], Array], noise: Array | None, involved: Involved
    ) -> SamplingVariance:
        """The covariance of a statistic, a function from weights (R, n) to values (R, r)."""
        raise invalid("method", "one with replicates (Jackknife, RescaledBootstrap, GivenReplicates)", self.name)


@dataclass(frozen=True)
class Linearization(Replication):
    """Taylor linearisation: the variance of the sum of influence values, without replicates [SSW, section 5.5].

    >>> from ldpopt_survey import SampleDesign
    >>> SampleDesign(size=4, method=Linearization()).total_variance([1, 2, 3, 6]).covariance.round(6)
    array([[18.666667]])
    """

    replicates: ClassVar[bool] = False
    name: ClassVar[str] = "linearisation"


@dataclass(frozen=True, eq=False, repr=False)
class SampleDesign(ByValue):
    """How n respondents were drawn from their population [SSW, chapters 3 to 5; Kish].

    weights : (n,) how many people of the population a respondent stands for; 1 by default. Not negative; a respondent
        of weight 0 contributes nothing, neither to estimates nor to the numbers of units and strata.
    strata : (n,) labels of the parts of the population, from each of which a sample was drawn independently.
    clusters : (n,) labels of the primary units (villages, schools) that were drawn; by default each respondent is a
        unit. The same label in two strata means two units.
    fpc : (n,) finite population correction: for every respondent the number of primary units of the stratum in the
        population, or the share of them that was drawn (all at most 1); by default drawn with replacement.
    lonely : how a stratum with a single unit enters the variance.
    method : how variances are computed: `Linearization()`, `Jackknife()`, `RescaledBootstrap()` or
        `GivenReplicates(...)`.
    size : n, needed only if no other argument shows it. margins, bounds : known totals, and how much weights may be
        changed to meet them, set by `post_stratify` and `rake`.

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
        put = partial(object.__setattr__, self)
        given = next((v for v in (self.weights, self.strata, self.clusters, self.fpc) if v is not None), None)
        n = positive_integer(self.size if given is None or self.size is not None else len(given), "size")
        put("size", n)
        w = np.ones(n) if self.weights is None else finite_array(self.weights, "weights", 1)
        if len(w) != n or not (w.min() >= 0 and w.max() > 0):
            got = Phrase(f"{len(w)} from {w.min():g} to {w.max():g}" if len(w) else "none")
            raise invalid("weights", f"{n} numbers, none negative and one positive", got)
        w.setflags(write=False)
        put("weights", w)
        if self.fpc is not None:
            put("fpc", finite_array(self.fpc, "fpc", 1))
        if not self.fractions.max() <= 1:
            raise invalid("fpc", "sampling fractions of at most 1", float(self.fractions.max()))

    @property
    def n(self) -> int:
        """Number of respondents."""
        return len(self.weights)

    @property
    def weighted(self) -> Mask:
        """(n,) mask of the respondents whose weight is not 0."""
        return np.asarray(self.weights > 0)

    @cached_property
    def _strata(self) -> tuple[Codes, list[Label]]:
        code, names = factor(self.strata, self.n, "strata")
        present, within = np.unique(code[self.weighted], return_inverse=True)
        code = np.zeros(self.n, dtype=np.intp)  # for weights of 0, which count nowhere
        code[self.weighted] = within
        return code, [names[place] for place in present]

    @property
    def stratum_names(self) -> tuple[Label, ...]:
        """The H strata; (None,) if there are none."""
        return tuple(self._strata[1])

    @cached_property
    def _units(self) -> tuple[Codes, Codes]:
        stratum = self._strata[0]
        inside = self.weighted
        cluster = np.arange(self.n) if self.clusters is None else factor(self.clusters, self.n, "clusters")[0]
        pairs, within = np.unique((stratum * self.n + cluster)[inside], return_inverse=True)
        unit = np.zeros(self.n, dtype=np.intp)
        unit[inside] = within
        return unit, np.asarray(pairs // self.n, dtype=np.intp)

    @property
    def unit(self) -> Codes:
        """(n,) the primary unit of every respondent, 0 to U - 1; for a weight of 0 it means nothing."""
        return self._units[0]

    @property
    def unit_stratum(self) -> Codes:
        """(U,) the stratum of every primary unit, 0 to H - 1."""
        return self._units[1]

    @cached_property
    def units(self) -> Array:
        """(H,) number of primary units drawn in every stratum."""
        return np.bincount(self.unit_stratum, minlength=len(self.stratum_names)).astype(np.float64)

    @cached_property
    def fractions(self) -> Array:
        """(H,) share of every stratum's primary units that was drawn; 0 without `fpc`."""
        (stratum, names), given = self._strata, self.fpc
        if given is None:
            return np.zeros(len(self.units))
        if len(given) != self.n or not given[self.weighted].min() > 0:
            raise invalid("fpc", f"{self.n} positive numbers", Phrase(f"{len(given)} of them, or one not positive"))
        low, high = np.full(len(names), np.inf), np.zeros(len(names))
        stratum, given = stratum[self.weighted], given[self.weighted]
        np.minimum.at(low, stratum, given)
        np.maximum.at(high, stratum, given)
        if (odd := np.flatnonzero(low != high)).size:
            raise invalid("fpc", "one number in every stratum", Phrase("two"), repr(names[int(odd[0])]))
        shares = low if given.max() <= 1 else self.units / low
        if (odd := np.flatnonzero(~(shares <= 1))).size:
            place = int(odd[0])
            expected = f"at least the {self.units[place]:.0f} units that were drawn (or shares, all at most 1)"
            raise invalid("fpc", expected, float(low[place]), repr(names[place]))
        return shares

    def degrees(self, inside: Any = None) -> float:
        """Degrees of freedom: the primary units minus the strata that have a respondent `inside`, a mask (n,)."""
        mask = np.ones(self.n, dtype=bool) if inside is None else np.asarray(inside)
        if mask.shape != (self.n,) or mask.dtype != bool:
            got = Phrase(f"{mask.dtype} of shape {mask.shape}")
            raise invalid("inside", f"{self.n} truth values, one a respondent", got)
        units = np.unique(self.unit[mask & self.weighted])
        return float(len(units) - len(np.unique(self.unit_stratum[units])))

    def degrees_within(self, inside: Mask) -> float:
        """Degrees of freedom of an estimate about the respondents in a mask (n,), which has its channel's variance.

        Units whose squared weights sum to S tell as much of a variance as (sum S)^2 / sum S^2 units with equal ones
        [BM]. 0 for a group inside one unit of every stratum: nothing shows how units differ. inf where every unit of
        the population was drawn, so that the variance is that of the channel, which is known.
        """
        if (self._drawn[np.unique(self.unit_stratum[self.unit[inside & self.weighted]])] == 1).all():
            return np.inf
        squares = np.bincount(self.unit, (self.weights / self.weights.max()) ** 2 * inside)
        equal = squares.sum() ** 2 / (squares**2).sum() / np.count_nonzero(squares)
        degrees = self.degrees(inside)
        return float(max(1.0, equal * degrees)) if degrees else 0.0

    @property
    def design_effect(self) -> float:
        """Kish's n sum w^2 / (sum w)^2: by how much unequal weights alone raise a variance [Kish]."""
        w = self.weights / self.weights.max()
        return float(self.n * (w @ w) / w.sum() ** 2)

    def total(self, scores: ArrayLike) -> Array:
        """(r,) the weighted sums of scores (n,) or (n, r)."""
        return np.asarray(self.weights @ _columns(scores, self.n))

    def total_variance(self, scores: ArrayLike, noise: ArrayLike | None = None) -> SamplingVariance:
        """The covariance (r, r) of `total(scores)`, with its degrees of freedom.

        scores : (n,) or (n, r). For a ratio, a regression or another smooth estimate these are its influence values,
            whose weighted sum is the estimate's error in large samples (Taylor linearisation); 0 outside a subgroup.
        noise : (H, r, r), for every stratum the sum of w_i^2 times the covariance of score i due to the channel alone,
            which finite populations and units that were certain to be drawn need; (r, r) where no stratum is either.
            No variance is less than theirs, however few units there are. None for scores that are not private.
        """
        s = _columns(scores, self.n)
        extra = None if noise is None else finite_array(noise, "noise", np.ndim(noise))
        r, shares = s.shape[1], self._drawn
        if extra is not None and extra.shape not in ((len(shares), r, r), *(() if shares.any() else ((r, r),))):
            raise invalid("noise", f"shape {(len(shares), r, r)}", Phrase(f"{extra.shape}"))
        with np.errstate(over="ignore", invalid="ignore"):
            if self.method.replicates:
                variance = self.replicate(lambda weights: weights @ s, extra, np.any(s != 0, axis=1))
            else:
                away = self.residuals(s)
                size = np.abs(away).max(axis=1)
                covariance = self._over_strata(self._scatter(away), extra, self._involved(size > 1e-12 * size.max()))
                degrees = float(self.units.sum() - len(self.units))
                variance = SamplingVariance(at_least(covariance, extra), degrees)
        if not np.isfinite(variance.covariance).all():
            raise invalid("scores", "weights and scores whose squares are finite numbers", Phrase("larger ones"))
        return variance

    def replicate(
        self, statistic: Callable[[Array], Array], noise: Array | None = None, inside: Mask | None = None
    ) -> SamplingVariance:
        """The covariance of a statistic by replication, that is from its values under other weights.

        statistic : a function from weights (R, n) to values (R, r), called with a few replicates at a time.
        noise : as in `total_variance`. inside : (n,) mask of the respondents with a share in it; None for everybody.
        """
        variance = self.method.variance(self, statistic, noise, self._involved(inside))
        return replace(variance, covariance=at_least(variance.covariance, noise))

    def _involved(self, inside: Mask | None) -> Involved:
        """(H,) mask of the strata that have respondents in a mask (n,)."""
        rows = self.weighted if inside is None else self.weighted & inside
        return np.bincount(self.unit_stratum[self.unit[rows]], minlength=len(self.units)) > 0

    def residuals(self, scores: Array) -> Array:
        """(n, r) residuals of the scores after weighted least squares on the known margins [SSW, section 6.5]."""
        if not self.margins:
            return scores
        x = np.hstack([np.eye(len(totals))[codes] for codes, totals in self.margins])
        weighted = x * self.weights[:, None]
        return np.asarray(scores - x @ (np.linalg.pinv(x.T @ weighted, hermitian=True) @ (weighted.T @ scores)))

    def _scatter(self, scores: Array) -> Array:
        """(H, r, r) scatter of the unit totals around the mean of their stratum (of all units for a single one)."""
        units = len(self.unit_stratum)
        totals = np.stack([np.bincount(self.unit, self.weights * column, units) for column in scores.T], axis=1)
        scatter = np.zeros((len(self.units), scores.shape[1], scores.shape[1]))
        order = np.argsort(self.unit_stratum, kind="stable")
        everywhere = totals.mean(axis=0)
        for h, rows in enumerate(np.split(order, np.cumsum(self.units.astype(int))[:-1])):
            z = totals[rows]
            z = z - (z.mean(axis=0) if len(z) > 1 else everywhere)
            scatter[h] = z.T @ z
        return scatter

    @property
    def _drawn(self) -> Array:
        """(H,) how much of each stratum counts as drawn, whose variance is that of the channel alone."""
        certain = (self.units == 1) & (self.lonely is LonelyUnit.CERTAINTY)
        return np.where(certain, 1.0, self.fractions)

    @property
    def needs_noise(self) -> bool:
        """Whether variances need the channel's own by stratum: some of the population was drawn for certain."""
        return bool(self._drawn.any())

    def shares_drawn(self, noise: Array | None, involved: Involved) -> Array:
        """(H,) how much of each stratum counts as drawn; with no `noise` known, nothing, which is on the safe side.

        `InvalidInput` for a stratum among the `involved` with a single unit, unless the design says what it counts.
        """
        alone = (self.units == 1) & involved
        if alone.any() and self.lonely is LonelyUnit.REFUSE:
            expected = "at least two clusters or respondents in each (merge a stratum that has one, or say what it "
            name = self.stratum_names[int(np.argmax(alone))]
            where = "" if name is None else f" in {name!r}"
            raise InvalidInput(f"strata: expected {expected}counts: LonelyUnit, --lonely), got one{where}")
        if noise is None and alone.any() and self.lonely is LonelyUnit.CERTAINTY:
            raise invalid("noise", "the channel's own variance where a unit is certain", Phrase("none"))
        return np.zeros(len(self.units)) if noise is None else self._drawn

    def averaged(self, involved: Involved) -> float:
        """The factor of a variance by which single units add as much as the other strata that are `involved`."""
        if self.lonely is not LonelyUnit.AVERAGE or not involved.any():
            return 1.0
        used = involved & (self.units > 1)
        if not used.any():
            raise invalid("strata", "one with at least two units, to take an average of", Phrase("none"))
        return float(involved.sum() / used.sum())

    def _over_strata(self, scatter: Array, noise: Array | None, involved: Involved) -> Array:
        """sum_h (1 - f_h) n_h / (n_h - 1) S_h + f_h N_h [SSW, sections 3.7 and 4.3].

        scatter : (H, r, r), S_h, of the n_h unit totals of stratum h around their mean (of all units for a single one).
        noise : (H, r, r), N_h, the variance due to the channel's randomness alone, which even a census has.
        """
        units, shares = self.units, self.shares_drawn(noise, involved)
        used = units > 1 if self.lonely is LonelyUnit.AVERAGE else np.ones(len(units), dtype=bool)
        factor = np.where(units == 1, 1.0, units / np.maximum(units - 1.0, 1.0))
        covariance = np.einsum("h,hrs->rs", ((1 - shares) * factor)[used], scatter[used])
        if noise is not None and noise.ndim == 3:
            covariance = covariance + np.einsum("h,hrs->rs", shares[used], noise[used])
        return np.asarray(covariance * self.averaged(involved))

    def by(self, method: Replication) -> SampleDesign:
        """The same sample with another method of variance."""
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


def at_least(covariance: Array, noise: Array | None) -> Array:
    """The covariance (r, r), with no variance below that of the noise, (r, r) or (H, r, r) by stratum.

    Correlations stay as they are; what has no variance at all gets the covariance of the noise.
    """
    if noise is None:
        return covariance
    least = noise if noise.ndim == 2 else noise.sum(axis=0)
    low, now = np.maximum(np.diag(least), 0.0), np.maximum(np.diag(covariance), 0.0)
    if (now >= low).all():
        return covariance
    some = now > 1e-9 * low
    lift = np.sqrt(np.where(some & (low > now), low / np.where(some, now, 1.0), 1.0))
    return np.where(np.outer(some, some), covariance * np.outer(lift, lift), np.where(np.outer(~some, ~some), least, 0))


def _columns(scores: ArrayLike, n: int) -> Array:
    s = finite_array(scores, "scores", np.ndim(scores))
    s = s[:, None] if s.ndim == 1 else s
    if s.ndim != 2 or len(s) != n:
        raise invalid("scores", f"{n} rows, one a respondent", Phrase(f"shape {s.shape}"))
    return s
