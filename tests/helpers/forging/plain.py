"""The package's problems as plain numbers, for the truth: what a design says its utility and its constraints are."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np
from truth.decisions import Against, Estimate, Loss, Sampling
from truth.feasible import Told
from truth.utilities import Generator, Kept, Pair, Prior
from truth.verdict import Posed

from ldpopt import design as ld
from ldpopt.divergences import FDivergence


class Unknown(Exception):
    """The truth has no program for this problem."""


def posed(utility: Any, constraints: Any) -> Posed:
    """The problem in plain numbers; `Unknown` where the truth cannot judge it."""
    return Posed(_utility(utility), tuple(_constraint(one) for one in constraints))


CELLS = 48
"""Cells that normal laws are cut into: what a channel of these cells keeps, a channel of the reals keeps, too."""


def _generator(f: FDivergence) -> Generator:
    if f.recipe is None:
        raise Unknown(f.name)
    return tuple(f.recipe)


def _law(values: Any) -> tuple[float, ...]:
    return tuple(map(float, np.asarray(values)))


def _pair(utility: Any) -> Pair:
    f = _generator(utility.f)
    if not utility.continuous:
        return Pair(f, _law(utility.p0), _law(utility.p1))
    laws = (utility.p0, utility.p1)
    if any(law.dist.name != "norm" or law.kwds for law in laws):
        raise Unknown("laws that are not normal")
    (m0, s0), (m1, s1) = (_places(law.args) for law in laws)
    low, high = min(m0 - 8 * s0, m1 - 8 * s1), max(m0 + 8 * s0, m1 + 8 * s1)
    near = np.sort(np.concatenate([m + s * np.linspace(-4.5, 4.5, CELLS // 2) for m, s in ((m0, s0), (m1, s1))]))
    cuts = [-mpmath.inf, *(mpmath.mpf(c) for c in near[(near > low) & (near < high)]), mpmath.inf]
    with mpmath.workdps(40):
        each = [[mpmath.ncdf(c, m, s) for c in cuts] for m, s in ((m0, s0), (m1, s1))]
        masses = [[float(b - a) for a, b in itertools.pairwise(one)] for one in each]
    return Pair(f, tuple(masses[0]), tuple(masses[1]))


def _places(args: Any) -> tuple[float, float]:
    return float(args[0]) if args else 0.0, float(args[1]) if len(args) > 1 else 1.0


def _part(utility: Any) -> Pair | Prior:
    if isinstance(utility, ld.MutualInformation):
        return Prior(_law(utility.prior))
    if isinstance(utility, ld.Divergence):
        return _pair(utility)
    raise Unknown(type(utility).__name__)


def _utility(utility: Any) -> Any:
    if isinstance(utility, ld.WorstOf):
        return Kept(tuple(((1.0, _part(one)),) for one in utility.each))
    if isinstance(utility, ld.WeightedSum):
        each = zip(utility.weights, utility.utilities, strict=True)
        return Kept((tuple((float(weight), _part(one)) for weight, one in each),))
    if isinstance(utility, ld.ExpectedLoss):
        return Loss(np.asarray(utility.priors), np.asarray(utility.loss))
    if isinstance(utility, ld.PrivateSampling):
        return Sampling(_generator(utility.f), np.asarray(utility.distributions))
    if isinstance(utility, ld.AgainstSet):
        sets = [one.vertices if isinstance(one, ld.Hull) else None for one in utility.sets]
        if any(one is None for one in sets):
            raise Unknown("sets that are no hulls")
        return Against(_generator(utility.f), np.asarray(sets[0]), np.asarray(sets[1]))
    if isinstance(utility, ld.FisherInformation):
        if utility.neighbourhood is not None:
            raise Unknown("neighbourhoods")
        return Estimate(np.asarray(utility.prior), *_criterion(utility.criterion))
    return Kept((((1.0, _part(utility)),),))


def _criterion(criterion: Any) -> tuple[str, tuple[float, ...] | None]:
    if isinstance(criterion, ld.COptimal):
        return "c", _law(criterion.contrast)
    if isinstance(criterion, ld.AOptimal):
        if criterion.weights is None:
            return "a", None
        weights = np.asarray(criterion.weights)
        if np.count_nonzero(weights - np.diag(np.diag(weights))):
            raise Unknown("weights that are no diagonal")
        return "a", _law(np.diag(weights))
    if not isinstance(criterion, ld.MVOptimal | ld.DOptimal):
        raise Unknown(type(criterion).__name__)
    return ("mv" if isinstance(criterion, ld.MVOptimal) else "d"), None


def _constraint(one: Any) -> Told:
    if isinstance(one, ld.LocalDP):
        if one.graph is None:
            return ("local-dp", float(one.epsilon))
        edges = [(a, b, float(w)) for a, b, w in one.graph.edges(data="weight", default=1.0)]
        both = edges if one.graph.is_directed() else edges + [(b, a, w) for a, b, w in edges]
        return ("graph", float(one.epsilon), tuple(both))
    if isinstance(one, ld.TotalVariation):
        return ("total-variation", float(one.eta))
    if isinstance(one, ld.ApproximateLDP):
        return ("approximate", float(one.epsilon), float(one.delta))
    if isinstance(one, ld.RenyiLDP):
        return ("renyi", float(one.order), float(one.epsilon))
    if isinstance(one, ld.ConcentratedLDP):
        return ("zcdp", float(one.rho))
    if isinstance(one, ld.TradeOff) and not one.curve.slack:
        return ("trade-off", tuple(map(tuple, np.asarray(one.curve.knots).tolist())))
    if isinstance(one, ld.Outputs):
        return ("outputs", int(one.m))
    if isinstance(one, ld.Denominator):
        return ("denominator", int(one.D))
    if isinstance(one, ld.Support):
        return ("support", tuple(map(tuple, np.asarray(one.mask).tolist())))
    if isinstance(one, ld.Invariant):
        return ("invariant", _law(one.p))
    raise Unknown(type(one).__name__)
