"""Problems in plain numbers as the package's own objects."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

import ldpopt
from ldpopt import design as ld
from ldpopt import divergences
from ldpopt.privacy import TradeOffCurve
from truth.decisions import Against, Estimate, Loss, Sampling
from truth.feasible import Told
from truth.utilities import Generator, Prior


def named(f: Generator) -> Any:
    """The package's divergence."""
    if f[0] == "hockey-stick":
        return divergences.hockey_stick(f[1])
    if f[0] == "alpha":
        return divergences.alpha(f[1])
    return getattr(divergences, f[0].upper().replace("-", "_"))


def built(utility: Any, constraints: tuple[Told, ...]) -> tuple[Any, list[Any]]:
    """The utility and the constraints; `InvalidInput` where the package does not take them."""
    return _utility(utility), [_constraint(told, utility) for told in constraints]


def _utility(utility: Any) -> Any:
    if isinstance(utility, Loss):
        return ld.ExpectedLoss(utility.priors, utility.loss)
    if isinstance(utility, Sampling):
        return ld.PrivateSampling(named(utility.f), utility.distributions)
    if isinstance(utility, Against):
        return ld.AgainstSet(named(utility.f), utility.first[0], ld.Hull(utility.second))
    if isinstance(utility, Estimate):
        criterion = {"a": lambda n: ld.AOptimal(n), "c": lambda n: ld.COptimal(n), "d": lambda _: ld.DOptimal(),
                     "mv": lambda _: ld.MVOptimal()}[utility.criterion](utility.numbers)  # fmt: skip
        return ld.FisherInformation(utility.prior, criterion)
    if len(utility.criteria) > 1:
        parts = [criterion[0][1] for criterion in utility.criteria]
        return ld.WorstOf(named(parts[0].f), parts[0].p0, [part.p1 for part in parts])
    made = [
        ld.MutualInformation(p.prior) if isinstance(p, Prior) else ld.Divergence(named(p.f), p.p0, p.p1)
        for _, p in utility.criteria[0]
    ]
    return made[0] if len(made) == 1 else ld.WeightedSum([w for w, _ in utility.criteria[0]], made)


def _constraint(told: Told, utility: Any) -> Any:
    kind, *given = told
    if kind == "graph":
        graph = nx.Graph()
        graph.add_weighted_edges_from(given[1])
        return ldpopt.LocalDP(given[0], graph)
    if kind == "trade-off":
        return ld.TradeOff(TradeOffCurve(given[0]))
    made = {
        "local-dp": ldpopt.LocalDP, "total-variation": ldpopt.TotalVariation, "approximate": ldpopt.ApproximateLDP,
        "renyi": ldpopt.RenyiLDP, "zcdp": ld.ConcentratedLDP, "outputs": ld.Outputs,
    }  # fmt: skip
    if kind in made:
        return made[kind](*given)
    return ld.Support(np.array(given[0])) if kind == "support" else ld.Invariant(given[0])
