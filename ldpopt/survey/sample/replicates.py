"""A sample with strata -> variances: summed over strata, by the jackknife, the rescaled bootstrap, or given weights.

A variance by replication computes the estimate again under many sets of changed weights (the replicates), which are
raked to meet the known totals of every margin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.distribution import Array, finite_array, positive_integer
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.results import ByValue, Result


class LonelyUnit(Enum):
    """What a stratum with a single primary unit adds to a variance, since one unit shows no spread [SSW, section 3.7].

    REFUSE : `InvalidInput`; merge such a stratum with a neighbour.
    CERTAINTY : nothing, since the unit was certain to be drawn (the variance of its channel still counts).
    CENTRED : the square of its difference from the mean of all units, which is enough if strata are similar.
    AVERAGE : as much as the other strata add on average.

    >>> LonelyUnit.from_word("average")
    <LonelyUnit.AVERAGE: 'average'>
    """

    REFUSE = "refuse"
    CERTAINTY = "certainty"
    CENTRED = "centre"
    AVERAGE = "average"

    @classmethod
    def from_word(cls, word: object) -> LonelyUnit:
        """The member that a file or a flag names; `InvalidInput` for another word."""
        words = {one.value: one for one in cls}
        if not isinstance(word, str) or word not in words:
            raise invalid("lonely", f"one of {', '.join(words)}", word)
        return words[word]


@dataclass(frozen=True, eq=False)
class SamplingVariance(Result):
    """The covariance (r, r) of r linear functions, and its degrees of freedom (inf for a simple sample).

    >>> from ldpopt.survey import SampleDesign
    >>> SampleDesign(weights=[1.0, 3.0, 2.0, 2.0]).total_variance([0, 1, 1, 0])
    SamplingVariance(covariance=array([[9.]]), degrees=3.0)
    """

    covariance: Array
    degrees: float


def refuse_lonely(units: Array, names: Sequence[Label], lonely: LonelyUnit) -> None:
    """`InvalidInput` that names a stratum of a single unit, if such strata are refused."""
    alone = np.flatnonzero(units == 1)
    if len(alone) and lonely is LonelyUnit.REFUSE:
        expected = "at least two clusters or respondents in each (merge a stratum that has one, or say what it counts: "
        raise InvalidInput(f"strata: expected {expected}LonelyUnit, --lonely), got one{_inside(names[int(alone[0])])}")


def _inside(name: Label) -> str:
    return "" if name is None else f" in {name!r}"


def over_strata(
    scatter: Array,
    units: Array,
    names: Sequence[Label],
    fractions: Array | None = None,
    noise: Array | None = None,
    lonely: LonelyUnit = LonelyUnit.REFUSE,
) -> SamplingVariance:
    """sum_h (1 - f_h) n_h / (n_h - 1) S_h + f_h N_h [SSW, sections 3.7 and 4.3].

    scatter : (H, r, r), S_h, the scatter of the n_h unit totals of stratum h around their mean. For a single unit it is
        the square around the mean of all units.
    units : (H,), n_h; strata with n_h = 0 are left out. fractions : (H,), f_h, the share of the population's units that
        was drawn.
    noise : (H, r, r), N_h, the variance due to the channel's randomness alone. Even a census of a stratum, which has no
        sampling error, has this part. Without `noise` the fractions are not used, which is on the safe side.
    """
    refuse_lonely(units, names, lonely)
    alone = units == 1
    shares = np.zeros(len(units)) if fractions is None or noise is None else fractions
    if lonely is LonelyUnit.CERTAINTY and alone.any():
        if noise is None:
            raise invalid("noise", "the channel's own variance where a unit is certain", Phrase("none"))
        shares = np.where(alone, 1.0, shares)
    factor = np.where(alone, 1.0, units / np.maximum(units - 1.0, 1.0))
    left_out = alone if lonely is LonelyUnit.AVERAGE else np.zeros(len(units), dtype=bool)
    kept = (units > 0) & ~left_out
    if left_out.any() and not kept.any():
        raise invalid("strata", "one with at least two units, to take an average of", Phrase("none"))
    covariance = np.einsum("h,hrs->rs", ((1 - shares) * factor)[kept], scatter[kept])
    if noise is not None and shares.any():
        covariance = covariance + np.einsum("h,hrs->rs", shares[kept], noise[kept])
    if left_out.any():
        covariance = covariance * ((kept.sum() + left_out.sum()) / kept.sum())
    return SamplingVariance(covariance, float(units.sum() - (units > 0).sum()))


CLOSE = 1e-10
"""The relative accuracy to which raked weights must meet every known total."""

CYCLES = 2000


def raked(weights: Array, margins: Sequence[tuple[npt.NDArray[np.intp], Array]]) -> Array:
    """The raked weights (n,).

    Within every cell of the margins they are proportional to `weights`, which may be zero.
    """
    w = np.array(weights)
    for _ in range(CYCLES):
        worst = 0.0
        for codes, known in margins:
            now = np.bincount(codes, w, len(known))
            if not now.min() > 0:
                raise SolverError("raking: a group of a margin has no respondent left; merge it with another")
            worst = max(worst, float(np.abs(now / known - 1).max()))
            w *= (known / now)[codes]
        if len(margins) == 1 or worst <= CLOSE:
            return w
    raise SolverError(
        f"raking: after {CYCLES} cycles the weights miss a known total by {worst:.2g} of itself; some combination of "
        "groups has no respondent (merge groups, or leave a margin out)"
    )


CELLS = 4_000_000
"""The most weights in memory at a time."""

MOST = 2_000_000_000
"""The most weights of all replicates. With more, replication takes too long."""


class Sample(Protocol):
    """The part of a `SampleDesign` that replication needs. `SampleDesign` explains each name."""

    @property
    def n(self) -> int:
        """Respondents."""
        ...

    @property
    def weights(self) -> Array:
        """(n,) weights."""
        ...

    @property
    def margins(self) -> tuple[tuple[npt.NDArray[np.intp], Array], ...]:
        """Known margins."""
        ...

    @property
    def lonely(self) -> LonelyUnit:
        """How a stratum with a single unit counts."""
        ...

    @property
    def unit(self) -> npt.NDArray[np.intp]:
        """(n,) primary units."""
        ...

    @property
    def unit_stratum(self) -> npt.NDArray[np.intp]:
        """(U,) their strata."""
        ...

    @property
    def stratum_names(self) -> tuple[Label, ...]:
        """The H strata."""
        ...

    @property
    def units(self) -> Array:
        """(H,) units drawn."""
        ...

    @property
    def fractions(self) -> Array:
        """(H,) share of units drawn."""
        ...

    def degrees(self) -> float:
        """Units less strata."""
        ...


@dataclass(frozen=True)
class Replication:
    """A method for variances: linearisation, or computing the statistic again with other weights."""

    replicates: ClassVar[bool] = True
    name: ClassVar[str] = "replication"

    def scales(self, design: Sample) -> Array:
        """(R,) the factor of every replicate's squared deviation in the variance."""
        raise NotImplementedError

    def factors(self, design: Sample) -> Iterator[Array]:
        """Factors of the weights, (c, U) for the primary units or (c, n) for the respondents, R rows in all."""
        raise NotImplementedError

    def variance(self, design: Sample, statistic: Callable[[Array], Array], noise: Array | None) -> SamplingVariance:
        """sum_r c_r (t_r - t)(t_r - t)^T, where t is the full estimate. Every replicate meets the known margins."""
        scales = self.scales(design)
        if len(scales) * design.n > MOST:
            expected = f"at most {MOST // design.n} for {design.n} respondents (linearisation has no such limit)"
            raise invalid("replicates", expected, len(scales))
        refuse_lonely(design.units, design.stratum_names, design.lonely)
        alone = design.units == 1
        if alone.any() and design.lonely is LonelyUnit.CENTRED:
            raise InvalidInput("lonely: expected refuse, certainty or average with replicate weights, got centre")
        centre = statistic(design.weights[None])[0]
        covariance = np.zeros((len(centre), len(centre)))
        at = 0
        for factors in self.factors(design):
            spread = factors if factors.shape[1] == design.n else factors[:, design.unit]
            weights = design.weights * spread
            if design.margins:
                weights = np.stack([raked(row, design.margins) for row in weights])
            away = statistic(weights) - centre
            covariance += (away * scales[at : at + len(away), None]).T @ away
            at += len(away)
        shares = design.fractions if noise is not None else np.zeros(len(design.units))
        if alone.any() and design.lonely is LonelyUnit.CERTAINTY:
            if noise is None:
                raise invalid("noise", "the channel's own variance where a unit is certain", Phrase("none"))
            shares = np.where(alone, 1.0, shares)
        if noise is not None and shares.any():
            covariance += np.einsum("h,hrs->rs", shares, noise)
        elif noise is None and design.fractions.any():
            raise invalid("noise", "the channel's own variance for a finite population", Phrase("none"))
        if alone.any() and design.lonely is LonelyUnit.AVERAGE:
            covariance *= len(design.units) / (~alone).sum()
        return SamplingVariance(covariance, self.degrees(design))

    def degrees(self, design: Sample) -> float:
        """Degrees of freedom of the variance."""
        return design.degrees()


@dataclass(frozen=True)
class Linearization(Replication):
    """Taylor linearisation: the variance of the sum of influence values, without replicates [SSW, section 5.5].

    >>> from ldpopt.survey import SampleDesign
    >>> SampleDesign(size=4, method=Linearization()).total_variance([1, 2, 3, 6]).covariance.round(6)
    array([[18.666667]])
    """

    replicates: ClassVar[bool] = False
    name: ClassVar[str] = "linearisation"

    def variance(self, design: Sample, statistic: Callable[[Array], Array], noise: Array | None) -> SamplingVariance:
        """Always `InvalidInput`, since there are no replicates."""
        raise invalid("method", "one with replicates (Jackknife, RescaledBootstrap, GivenReplicates)", self.name)


@dataclass(frozen=True)
class Jackknife(Replication):
    """The jackknife, which leaves out one primary unit at a time [Wolter, chapter 4].

    It is called JK1 without strata and JKn with strata. The weights of the other units of the stratum are multiplied by
    n_h / (n_h - 1), and the factor of the squared deviation is (1 - f_h)(n_h - 1) / n_h.

    >>> from ldpopt.survey import SampleDesign
    >>> SampleDesign(size=4, method=Jackknife()).total_variance([1, 2, 3, 6]).covariance.round(6)
    array([[18.666667]])
    """

    name: ClassVar[str] = "jackknife"

    def scales(self, design: Sample) -> Array:
        """(U,) one factor for each primary unit."""
        each = (1 - design.fractions) * (design.units - 1) / np.maximum(design.units, 1)
        return np.asarray(each[design.unit_stratum])

    def factors(self, design: Sample) -> Iterator[Array]:
        """(c, U) at a time."""
        stratum, u = design.unit_stratum, len(design.unit_stratum)
        lift = design.units / np.maximum(design.units - 1, 1)
        step = max(1, CELLS // max(design.n, u))
        for start in range(0, u, step):
            out = np.arange(start, min(start + step, u))
            made = np.where(stratum[out, None] == stratum, lift[stratum], 1.0)
            made[np.arange(len(out)), out] = np.where(design.units[stratum[out]] == 1, 1.0, 0.0)
            yield made


@dataclass(frozen=True)
class RescaledBootstrap(Replication):
    """Rao and Wu's bootstrap: n_h - 1 primary units drawn again with replacement in every stratum [RaoWu].

    A unit that was drawn r times has its weights multiplied by 1 - s + s n_h / (n_h - 1) r, where s = sqrt(1 - f_h).
    The seed makes a result repeatable.

    >>> from ldpopt.survey import SampleDesign
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

    def scales(self, design: Sample) -> Array:
        """(replications,) all equal."""
        return np.full(self.replications, 1 / self.replications)

    def factors(self, design: Sample) -> Iterator[Array]:
        """(c, U) at a time."""
        rng, u = np.random.default_rng(self.seed), len(design.unit_stratum)
        members = [np.flatnonzero(design.unit_stratum == h) for h in range(len(design.units))]
        step = max(1, CELLS // max(design.n, u))
        for start in range(0, self.replications, step):
            count = min(step, self.replications - start)
            made = np.ones((count, u))
            for rows, share in zip(members, design.fractions, strict=True):
                n = len(rows)
                if n > 1:
                    drawn = rng.multinomial(n - 1, np.full(n, 1 / n), size=count)
                    s = np.sqrt(1 - share)
                    made[:, rows] = 1 - s + s * n / (n - 1) * drawn
            yield made

    def degrees(self, design: Sample) -> float:
        """The smaller of two numbers: units minus strata, and replicates minus one."""
        return min(design.degrees(), self.replications - 1.0)


@dataclass(frozen=True, eq=False)
class GivenReplicates(ByValue, Replication):
    """Replicate weights that come with a data file. Statistical offices publish them instead of the design.

    weights : (n, R), non-negative, one column for each replicate; full weights, not factors of the weights.
    scales : (R,) or one number, the factor of each squared deviation: 1 / R for the bootstrap, 4 / R for Fay's method
        with 0.5, (R - 1) / R for JK1.

    `InvalidInput` for other shapes and negative numbers.

    >>> from ldpopt.survey import SampleDesign
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
            raise invalid(
                "replicate weights", "at least two columns, none negative, with a positive scale each", w.shape
            )
        object.__setattr__(self, "weights", w)
        object.__setattr__(self, "scale", c)

    def scales(self, design: Sample) -> Array:
        """(R,) as they were given."""
        if len(self.weights) != design.n:
            raise invalid("replicate weights", f"{design.n} rows, one a respondent", len(self.weights))
        return np.asarray(self.scale)

    def factors(self, design: Sample) -> Iterator[Array]:
        """(c, n) at a time."""
        step = max(1, CELLS // design.n)
        for start in range(0, self.weights.shape[1], step):
            yield self.weights[:, start : start + step].T / design.weights

    def degrees(self, design: Sample) -> float:
        """The number of replicates minus one."""
        return float(self.weights.shape[1] - 1)
