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
Margin = tuple[Codes, Array]
"""A group for every respondent, and the known total of every group."""


class LonelyUnit(Enum):
    """What a stratum with a single primary unit adds to a variance, since one unit shows no spread [SSW, section 3.7].

    REFUSE : `InvalidInput`; merge such a stratum with a neighbour. CERTAINTY : nothing but the variance of its channel,
        since the unit was certain to be drawn. CENTRED : the square of its difference from the mean of all units, which
        is enough if strata are similar. AVERAGE : as much as the other strata add on average.

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
        self, design: SampleDesign, statistic: Callable[[Array], Array], noise: Array | None
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

    weights : (n,) positive numbers: how many people of the population a respondent stands for; 1 by default.
    strata : (n,) labels of the parts of the population, from each of which a sample was drawn independently.
    clusters : (n,) labels of the primary units (villages, schools) that were drawn; by default each respondent is a
        unit. The same label in two strata means two units.
    fpc : (n,) finite population correction: for every respondent the number of primary units of the stratum in the
        population, or the share of them that was drawn (all at most 1); by default drawn with replacement.
    lonely : how a stratum with a single unit enters the variance.
    method : how variances are computed: `Linearization()`, `Jackknife()`, `RescaledBootstrap()` or
        `GivenReplicates(...)`.
    size : n, needed only if no other argument shows it. margins : known totals, set by `post_stratify` and `rake`.

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

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        given = next((v for v in (self.weights, self.strata, self.clusters, self.fpc) if v is not None), None)
        n = positive_integer(self.size if given is None or self.size is not None else len(given), "size")
        put("size", n)
        w = np.ones(n) if self.weights is None else finite_array(self.weights, "weights", 1)
        if len(w) != n or not w.min() > 0:
            raise invalid("weights", f"{n} positive numbers", Phrase(f"{len(w)} from {w.min() if len(w) else 0}"))
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

    @cached_property
    def _strata(self) -> tuple[Codes, list[Label]]:
        return factor(self.strata, self.n, "strata")

    @property
    def stratum_names(self) -> tuple[Label, ...]:
        """The H strata; (None,) if there are none."""
        return tuple(self._strata[1])

    @cached_property
    def _units(self) -> tuple[Codes, Codes]:
        stratum = self._strata[0]
        if self.clusters is None:
            return np.arange(self.n), stratum
        pairs, unit = np.unique(stratum * self.n + factor(self.clusters, self.n, "clusters")[0], return_inverse=True)
        return unit, np.asarray(pairs // self.n, dtype=np.intp)

    @property
    def unit(self) -> Codes:
        """(n,) the primary unit of every respondent, 0 to U - 1."""
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
        if len(given) != self.n or not given.min() > 0:
            raise invalid("fpc", f"{self.n} positive numbers", Phrase(f"{len(given)} of them, or one not positive"))
        low, high = np.full(len(names), np.inf), np.zeros(len(names))
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
        units = np.unique(self.unit[mask])
        return float(len(units) - len(np.unique(self.unit_stratum[units])))

    @property
    def design_effect(self) -> float:
        """Kish's n sum w^2 / (sum w)^2: by how much unequal weights alone raise a variance [Kish]."""
        w = self.weights
        return float(self.n * (w @ w) / w.sum() ** 2)

    def total(self, scores: ArrayLike) -> Array:
        """(r,) the weighted sums of scores (n,) or (n, r)."""
        return np.asarray(self.weights @ _columns(scores, self.n))

    def total_variance(self, scores: ArrayLike, noise: ArrayLike | None = None) -> SamplingVariance:
        """The covariance (r, r) of `total(scores)`, with its degrees of freedom.

        scores : (n,) or (n, r). For a ratio, a regression or another smooth estimate these are its influence values,
            whose weighted sum is the estimate's error in large samples (Taylor linearisation); 0 outside a subgroup.
        noise : (H, r, r), for every stratum the sum of w_i^2 times the covariance of score i due to the channel alone,
            which finite populations and units that were certain to be drawn need; zeros for scores that are not
            private.
        """
        s = _columns(scores, self.n)
        extra, shape = None if noise is None else finite_array(noise, "noise", 3), (len(self.units), *[s.shape[1]] * 2)
        if extra is not None and extra.shape != shape:
            raise invalid("noise", f"shape {shape}", Phrase(f"{extra.shape}"))
        with np.errstate(over="ignore", invalid="ignore"):
            if self.method.replicates:
                variance = self.replicate(lambda weights: weights @ s, extra)
            else:
                scatter = self._scatter(self.residuals(s))
                variance = self._over_strata(scatter, extra)
        if not np.isfinite(variance.covariance).all():
            raise invalid("scores", "weights and scores whose squares are finite numbers", Phrase("larger ones"))
        return variance

    def replicate(self, statistic: Callable[[Array], Array], noise: Array | None = None) -> SamplingVariance:
        """The covariance of a statistic by replication, that is from its values under other weights.

        statistic : a function from weights (R, n) to values (R, r), called with a few replicates at a time.
        """
        return self.method.variance(self, statistic, noise)

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

    def shares_drawn(self, noise: Array | None) -> Array:
        """(H,) how much of each stratum counts as drawn, whose variance is that of the channel alone, the `noise`.

        Without the noise the fractions are not used, which is on the safe side.
        """
        alone = self.units == 1
        if alone.any() and self.lonely is LonelyUnit.REFUSE:
            expected = "at least two clusters or respondents in each (merge a stratum that has one, or say what it "
            name = self.stratum_names[int(np.argmax(alone))]
            where = "" if name is None else f" in {name!r}"
            raise InvalidInput(f"strata: expected {expected}counts: LonelyUnit, --lonely), got one{where}")
        shares = np.zeros(len(alone)) if noise is None else self.fractions
        if alone.any() and self.lonely is LonelyUnit.CERTAINTY:
            if noise is None:
                raise invalid("noise", "the channel's own variance where a unit is certain", Phrase("none"))
            shares = np.where(alone, 1.0, shares)
        return shares

    def _over_strata(self, scatter: Array, noise: Array | None) -> SamplingVariance:
        """sum_h (1 - f_h) n_h / (n_h - 1) S_h + f_h N_h [SSW, sections 3.7 and 4.3].

        scatter : (H, r, r), S_h, of the n_h unit totals of stratum h around their mean (of all units for a single one).
        noise : (H, r, r), N_h, the variance due to the channel's randomness alone, which even a census has.
        """
        units, shares = self.units, self.shares_drawn(noise)
        alone = units == 1
        used = ~alone if self.lonely is LonelyUnit.AVERAGE else np.ones(len(units), dtype=bool)
        if not used.any():
            raise invalid("strata", "one with at least two units, to take an average of", Phrase("none"))
        factor = np.where(alone, 1.0, units / np.maximum(units - 1.0, 1.0))
        covariance = np.einsum("h,hrs->rs", ((1 - shares) * factor)[used], scatter[used])
        if noise is not None:
            covariance = covariance + np.einsum("h,hrs->rs", shares[used], noise[used])
        return SamplingVariance(covariance * (len(units) / used.sum()), float(units.sum() - len(units)))

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


def _columns(scores: ArrayLike, n: int) -> Array:
    s = finite_array(scores, "scores", np.ndim(scores))
    s = s[:, None] if s.ndim == 1 else s
    if s.ndim != 2 or len(s) != n:
        raise invalid("scores", f"{n} rows, one a respondent", Phrase(f"shape {s.shape}"))
    return s
