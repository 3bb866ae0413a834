"""How respondents were drawn -> the variance of any sum over them; known margins of the population set the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.distribution import Array, finite_array, number, positive_integer
from ldpopt.errors import Phrase, invalid
from ldpopt.results import ByValue
from ldpopt.survey.estimate.counts import factor, places
from ldpopt.survey.sample.replicates import Linearization, LonelyUnit, Replication, SamplingVariance, over_strata, raked

Codes = npt.NDArray[np.intp]
Margin = tuple[Codes, Array]
"""A group for every respondent, and the known total of every group."""


@dataclass(frozen=True, eq=False, repr=False)
class SampleDesign(ByValue):
    """How n respondents were drawn from their population [SSW, chapters 3 to 5; Kish].

    Parameters
    ----------
    weights : (n,) positive numbers: how many people of the population a respondent stands for; 1 by default.
    strata : (n,) labels of the parts of the population, from each of which a sample was drawn independently.
    clusters : (n,) labels of the primary units (villages, schools) that were drawn; by default each respondent is a
        unit. The same label in two strata means two units.
    fpc : (n,) finite population correction: for every respondent the number of primary units of the stratum in the
        population, or the share of them that was drawn (all at most 1). Without it, units count as drawn with
        replacement.
    lonely : how a stratum with a single unit enters the variance.
    method : how variances are computed: `Linearization()`, `Jackknife()`, `RescaledBootstrap()` or
        `GivenReplicates(...)`.
    size : n, needed only if no other argument shows it.
    margins : known totals of the population, set by `post_stratify` and `rake`.

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
        put = _setter(self)
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

    # -- properties --------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of respondents."""
        return len(self.weights)

    @property
    def stratum_names(self) -> tuple[Label, ...]:
        """The H strata; (None,) if there are none."""
        return self._codes.names

    @property
    def unit(self) -> Codes:
        """(n,) the primary unit of every respondent, 0 to U - 1."""
        return self._codes.unit

    @property
    def unit_stratum(self) -> Codes:
        """(U,) the stratum of every primary unit, 0 to H - 1."""
        return self._codes.unit_stratum

    @cached_property
    def _codes(self) -> _Codes:
        return _Codes.of(self.strata, self.clusters, self.n)

    @cached_property
    def units(self) -> Array:
        """(H,) number of primary units drawn in every stratum."""
        return np.bincount(self.unit_stratum, minlength=len(self.stratum_names)).astype(np.float64)

    @cached_property
    def fractions(self) -> Array:
        """(H,) share of every stratum's primary units that was drawn; 0 without `fpc`."""
        return np.zeros(len(self.stratum_names)) if self.fpc is None else self._codes.fractions(self.fpc)

    def degrees(self, inside: Any = None) -> float:
        """Degrees of freedom: the primary units minus the strata that have a respondent `inside`, a mask (n,)."""
        if inside is None:
            return float(len(self.unit_stratum) - len(self.stratum_names))
        units = np.unique(self.unit[_mask(inside, self.n)])
        return float(len(units) - len(np.unique(self.unit_stratum[units])))

    @property
    def design_effect(self) -> float:
        """Kish's n sum w^2 / (sum w)^2: by how much unequal weights alone raise a variance [Kish]."""
        w = self.weights
        return float(self.n * (w @ w) / w.sum() ** 2)

    # -- totals and their variance -----------------------------------------------------------------

    def total(self, scores: Any) -> Array:
        """(r,) the weighted sums of scores (n,) or (n, r)."""
        return np.asarray(self.weights @ _columns(scores, self.n))

    def total_variance(self, scores: Any, noise: Any = None) -> SamplingVariance:
        """The covariance (r, r) of `total(scores)`, with its degrees of freedom.

        scores : (n,) or (n, r). For a ratio, a regression or another smooth estimate these are its influence values,
            whose weighted sum is the estimate's error in large samples (Taylor linearisation). They are 0 outside a
            subgroup.
        noise : (H, r, r), for every stratum the sum of w_i^2 times the covariance of score i due to the channel alone.
            It is needed for finite populations and for units that were certain to be drawn; zeros for scores that are
            not private.
        """
        s = _columns(scores, self.n)
        extra = None if noise is None else finite_array(noise, "noise", 3)
        if extra is not None and extra.shape != (len(self.stratum_names), s.shape[1], s.shape[1]):
            raise invalid(
                "noise", f"shape {(len(self.stratum_names), s.shape[1], s.shape[1])}", Phrase(f"{extra.shape}")
            )
        with np.errstate(over="ignore", invalid="ignore"):
            if self.method.replicates:
                found = self.replicate(lambda weights: weights @ s, extra)
            else:
                scatter = self._scatter(self.residuals(s))
                found = over_strata(scatter, self.units, self.stratum_names, self.fractions, extra, self.lonely)
        if not np.isfinite(found.covariance).all():
            raise invalid("scores", "weights and scores whose squares are finite numbers", Phrase("larger ones"))
        return found

    def replicate(self, statistic: Callable[[Array], Array], noise: Array | None = None) -> SamplingVariance:
        """The covariance of a statistic by replication, that is from its values under other weights.

        statistic : a function from weights (R, n) to values (R, r); it is called with a few replicates at a time.

        `InvalidInput` if the method is linearisation.
        """
        return self.method.variance(self, statistic, noise)

    def residuals(self, scores: Array) -> Array:
        """(n, r) residuals of the scores after weighted least squares on the known margins [SSW, section 6.5]."""
        if not self.margins:
            return scores
        x = self._indicators
        weighted = x * self.weights[:, None]
        return np.asarray(scores - x @ (np.linalg.pinv(x.T @ weighted, hermitian=True) @ (weighted.T @ scores)))

    @cached_property
    def _indicators(self) -> Array:
        return np.hstack([np.eye(len(totals))[codes] for codes, totals in self.margins])

    def _scatter(self, scores: Array) -> Array:
        """(H, r, r) scatter of the unit totals around the mean of their stratum (of all units for a single one)."""
        totals = self.unit_totals(scores)
        made = np.zeros((len(self.units), scores.shape[1], scores.shape[1]))
        order = np.argsort(self.unit_stratum, kind="stable")
        everywhere = totals.mean(axis=0)
        for h, rows in enumerate(np.split(order, np.cumsum(self.units.astype(int))[:-1])):
            z = totals[rows]
            z = z - (z.mean(axis=0) if len(z) > 1 else everywhere)
            made[h] = z.T @ z
        return made

    def unit_totals(self, scores: Array) -> Array:
        """(U, r) weighted totals of scores (n, r) in every primary unit."""
        u = len(self.unit_stratum)
        return np.stack([np.bincount(self.unit, self.weights * column, u) for column in scores.T], axis=1)

    # -- changed designs ---------------------------------------------------------------------------

    def weighted(self, weights: Array, margins: tuple[Margin, ...] | None = None) -> SampleDesign:
        """The same sample with other weights, and perhaps with known margins that the weights meet."""
        return replace(self, weights=weights, margins=self.margins if margins is None else margins)

    def by(self, method: Replication) -> SampleDesign:
        """The same sample with another method of variance.

        >>> from ldpopt.survey import Jackknife
        >>> design = SampleDesign(weights=[1.0, 3.0, 2.0, 2.0]).by(Jackknife())
        >>> design.total_variance([0, 1, 1, 0]).covariance  # what linearisation gives, too
        array([[9.]])
        """
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


@dataclass(frozen=True, eq=False)
class _Codes:
    """Strata and primary units as positions."""

    stratum: Codes
    names: tuple[Label, ...]
    unit: Codes
    unit_stratum: Codes

    @classmethod
    def of(cls, strata: Any, clusters: Any, n: int) -> _Codes:
        stratum, names = factor(strata, n, "strata")
        if clusters is None:
            return cls(stratum, tuple(names), np.arange(n), stratum)
        cluster, _ = factor(clusters, n, "clusters")
        pairs, unit = np.unique(stratum * n + cluster, return_inverse=True)
        return cls(stratum, tuple(names), unit, np.asarray(pairs // n, dtype=np.intp))

    def fractions(self, given: Array) -> Array:
        """(H,) sampling fractions from populations or fractions (n,), the same within a stratum."""
        if len(given) != len(self.stratum) or not given.min() > 0:
            raise invalid(
                "fpc", f"{len(self.stratum)} positive numbers", Phrase(f"{len(given)} of them, or one not positive")
            )
        h = len(self.names)
        low, high = np.full(h, np.inf), np.zeros(h)
        np.minimum.at(low, self.stratum, given)
        np.maximum.at(high, self.stratum, given)
        if (odd := np.flatnonzero(low != high)).size:
            raise invalid("fpc", "one number in every stratum", Phrase("two"), repr(self.names[int(odd[0])]))
        units = np.bincount(self.unit_stratum, minlength=h)
        shares = low if given.max() <= 1 else units / low
        if (odd := np.flatnonzero(~(shares <= 1))).size:
            at = int(odd[0])
            expected = f"at least the {units[at]} units that were drawn (or shares, all at most 1)"
            raise invalid("fpc", expected, float(low[at]), repr(self.names[at]))
        return np.asarray(shares, dtype=np.float64)


def _columns(scores: Any, n: int) -> Array:
    s = finite_array(scores, "scores", np.ndim(scores))
    s = s[:, None] if s.ndim == 1 else s
    if s.ndim != 2 or len(s) != n:
        raise invalid("scores", f"{n} rows, one a respondent", Phrase(f"shape {s.shape}"))
    return s


def _mask(inside: Any, n: int) -> npt.NDArray[np.bool_]:
    made = np.asarray(inside)
    if made.shape != (n,) or made.dtype != bool:
        raise invalid("inside", f"{n} truth values, one a respondent", Phrase(f"{made.dtype} of shape {made.shape}"))
    return made


def _setter(made: Any) -> Any:
    return lambda name, value: object.__setattr__(made, name, value)


def post_stratify(design: SampleDesign, groups: Any, totals: Mapping[Any, float]) -> SampleDesign:
    """Post-stratification: the design with weights changed so that every group has its known total [SSW, section 7.6].

    groups : (n,) labels. totals : the population of every group, as a number of people or as shares that sum to 1.

    `InvalidInput` for a group without a total, or a total without a respondent (merge the group with another).

    >>> from ldpopt.survey import SampleDesign
    >>> post_stratify(SampleDesign(size=4), ["f", "m", "m", "m"], {"f": 50, "m": 50}).weights.round(3)
    array([50.   , 16.667, 16.667, 16.667])
    """
    return rake(design, [(groups, totals)])


def rake(design: SampleDesign, margins: Sequence[tuple[Any, Mapping[Any, float]]]) -> SampleDesign:
    """Raking: the design with weights that meet the known totals of every margin [DemingStephan].

    margins : pairs of groups, (n,) labels, and their totals, numbers of people or shares.

    The method is iterative proportional fitting. Afterwards variances are those of the residuals from the margins, and
    replicates are raked, too. `SolverError` if no weights meet all margins, for example if two of them have different
    sums.

    >>> from ldpopt.survey import SampleDesign
    >>> sex, age = ["f", "f", "m", "m"], ["old", "young", "old", "young"]
    >>> made = rake(SampleDesign(weights=[1, 2, 1, 1]), [(sex, {"f": 6, "m": 4}), (age, {"old": 5, "young": 5})])
    >>> made.weights.round(3), made.total(np.array(sex) == "f")
    (array([2.589, 3.411, 2.411, 1.589]), array([6.]))
    """
    if not margins:
        raise invalid("margins", "at least one", Phrase("none"))
    made = []
    for groups, totals in margins:
        codes, names = factor(groups, design.n, "margin")
        made.append((codes, _totals(names, totals, float(design.weights.sum()))))
    sums = [float(known.sum()) for _, known in made]
    if not max(sums) - min(sums) <= 1e-6 * max(sums):
        raise invalid("margins", "totals with the same sum", Phrase(f"sums {min(sums):.10g} and {max(sums):.10g}"))
    made = [(codes, known * (sums[0] / total)) for (codes, known), total in zip(made, sums, strict=True)]
    return design.weighted(raked(design.weights, made), tuple(made))


def _totals(names: list[Any], totals: Mapping[Any, float], weight: float) -> Array:
    """The known totals in the order of the groups' names; shares become totals of the weights."""
    given = list(totals)
    at = places(names, tuple(given))
    if len(at) and at.min() < 0:
        raise invalid("margin", "a known total for every group of the sample", names[int(np.argmin(at))])
    if len(set(at.tolist())) != len(given):
        missing = next(label for place, label in enumerate(given) if place not in at)
        raise invalid("margin", "a respondent in every group with a known total", missing)
    known = np.array([number(totals[given[place]], "margin") for place in at])
    if not known.min() > 0:
        raise invalid("margin", "positive totals", float(known.min()))
    return known * (weight if abs(float(known.sum()) - 1) <= 1e-6 else 1.0)
