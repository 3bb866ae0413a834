"""Honest certificates to start from: small problems of every kind, nice and nasty, with the designs that prove them."""

from __future__ import annotations

import dataclasses
import signal
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import networkx as nx
import numpy as np
from method_examples import proved_by
from scipy import stats
from truth.problems import KINDS, of_kind

from forging.judge import Judge
from ldpopt import InvalidInput, LocalDP, SolverError, TotalVariation, optimal_channel
from ldpopt import design as ld
from ldpopt.design.codec.kinds import encodable_subtypes
from ldpopt.divergences import CHI_SQUARED, KL, TOTAL_VARIATION, hockey_stick

SECONDS = 8.0
"""No design of a base takes more of a processor's time: it is left out."""
P0, P1, P2 = (0.5, 0.25, 0.25), (0.125, 0.375, 0.5), (0.25, 0.5, 0.25)
Problem = tuple[Any, list[Any]]


@dataclass(frozen=True)
class Base:
    """An honest design; `certificate` is its own, or another that proves a bound for it."""

    name: str
    design: Any
    certificate: Any


class Late(Exception):
    """A design takes too long."""


def simple() -> dict[str, Callable[[], Problem]]:
    """Nice problems, at least one for every class of certificates."""
    kl, sampled = ld.Divergence(KL, P0, P1), np.array([P0, P1])
    wide = np.random.default_rng(5).dirichlet(np.ones(14), 2)
    mask = np.array([[True, True, False], [True, True, True], [True, False, True]])
    loss = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    return {
        "divergence": lambda: (kl, [LocalDP(1.0)]),
        "divergence and TV": lambda: (ld.Divergence(CHI_SQUARED, P0, P1), [LocalDP(1.5), TotalVariation(0.2)]),
        "hockey stick": lambda: (ld.Divergence(hockey_stick(1.5), P0, P1), [LocalDP(2.0), TotalVariation(0.3)]),
        "normal": lambda: (ld.Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)), [LocalDP(1.0), TotalVariation(0.3)]),
        "information": lambda: (ld.MutualInformation(P0), [LocalDP(1.0), TotalVariation(0.3)]),
        "information of many": lambda: (ld.MutualInformation(wide[0]), [LocalDP(1.0)]),
        "information of more": lambda: (
            ld.MutualInformation(np.random.default_rng(5).dirichlet(np.ones(24))), [LocalDP(1.0)]
        ),
        "information, even": lambda: (ld.MutualInformation(np.full(9, 1 / 9)), [LocalDP(2.0)]),
        "information, groups": lambda: (ld.MutualInformation([0.3, 0.3, 0.2, 0.1, 0.1]), [LocalDP(1.0)]),
        "information, groups, TV": lambda: (
            ld.MutualInformation([0.2, 0.1, 0.2, 0.3, 0.2]), [LocalDP(1.0), TotalVariation(0.2)]
        ),
        "divergence of many": lambda: (ld.Divergence(KL, wide[0], wide[1]), [LocalDP(1.0), TotalVariation(0.3)]),
        "worst": lambda: (ld.WorstOf(KL, P0, [P1, P2]), [LocalDP(1.0), TotalVariation(0.2)]),
        "sum": lambda: (ld.WeightedSum([1.0, 2.0], [kl, ld.MutualInformation(P2)]), [LocalDP(1.0)]),
        "sum of divergences": lambda: (
            ld.WeightedSum([1.0, 2.0], [ld.Divergence(TOTAL_VARIATION, p, P1) for p in (P0, P2)]), [LocalDP(1.0)]
        ),
        "worst, approximate": lambda: (ld.WorstOf(KL, P0, [P1, P2]), [ld.ApproximateLDP(1.0, 0.01)]),
        "worst, approximate, TV": lambda: (
            ld.WorstOf(KL, P0, [P1, P2]), [ld.ApproximateLDP(0.5, 0.1), TotalVariation(0.25)]
        ),
        "information along a path": lambda: (
            ld.MutualInformation(P0), [LocalDP(1.0, graph=nx.path_graph(3)), TotalVariation(0.3)]
        ),
        "sum, approximate": lambda: (
            ld.WeightedSum([1.0, 2.0], [kl, ld.MutualInformation(P2)]), [ld.ApproximateLDP(0.5, 0.1)],
        ),
        "total variation": lambda: (kl, [TotalVariation(0.2)]),
        "information, TV": lambda: (ld.MutualInformation(P0), [TotalVariation(0.2)]),
        "approximate": lambda: (kl, [ld.ApproximateLDP(1.0, 0.01)]),
        "approximate, chi": lambda: (ld.Divergence(CHI_SQUARED, P0, P1), [ld.ApproximateLDP(0.5, 0.05)]),
        "renyi": lambda: (kl, [ld.RenyiLDP(2.0, 0.1)]),
        "information, renyi": lambda: (ld.MutualInformation(P0), [ld.RenyiLDP(2.0, 0.1)]),
        "renyi and LDP": lambda: (kl, [ld.RenyiLDP(2.0, 0.1), LocalDP(1.0)]),
        "tied": lambda: (
            ld.Divergence(KL, (0.25, 0.25, 0.25, 0.25), (0.125, 0.125, 0.5, 0.25)), [LocalDP(1.0), TotalVariation(0.3)]
        ),
        "ties": lambda: (
            ld.Divergence(KL, (0.25, 0.25, 0.25, 0.25), (0.125, 0.125, 0.5, 0.25)), [ld.ApproximateLDP(1.0, 0.01)]
        ),
        "outputs": lambda: (ld.Divergence(KL, P0, P1), [LocalDP(1.0), ld.Outputs(2)]),
        "outputs and TV": lambda: (ld.Divergence(KL, P0, P1), [LocalDP(2.0), TotalVariation(0.2), ld.Outputs(2)]),
        "support": lambda: (kl, [ld.Support(mask), TotalVariation(0.4)]),
        "support, two answers": lambda: (
            ld.Divergence(TOTAL_VARIATION, (0.375, 0.625), (0.625, 0.375)), [ld.Support(mask[:2]), TotalVariation(0.4)]
        ),
        "support, approximate": lambda: (
            ld.Divergence(TOTAL_VARIATION, (0.375, 0.625), (0.625, 0.375)),
            [ld.Support(mask[:2]), ld.ApproximateLDP(0.5, 0.25)],
        ),
        "invariant, two answers": lambda: (
            ld.Divergence(hockey_stick(0.5), (0.375, 0.625), (0.625, 0.375)), [ld.Invariant((0.5, 0.5)), LocalDP(1.0)]
        ),
        "invariant": lambda: (ld.Divergence(KL, P0, P1), [ld.Invariant(P2), LocalDP(1.0)]),
        "denominator": lambda: (ld.Divergence(KL, (0.375, 0.625), (0.625, 0.375)), [LocalDP(1.0), ld.Denominator(6)]),
        "loss": lambda: (ld.ExpectedLoss(P0, loss), [LocalDP(1.0)]),
        "worst loss": lambda: (ld.ExpectedLoss(sampled, loss), [LocalDP(1.0), TotalVariation(0.4)]),
        "loss, approximate": lambda: (ld.ExpectedLoss(sampled, loss), [ld.ApproximateLDP(1.0, 0.05)]),
        "loss, support": lambda: (ld.ExpectedLoss(P0, loss), [ld.Support(mask), TotalVariation(0.4)]),
        "loss, two priors, support": lambda: (ld.ExpectedLoss(sampled, loss), [ld.Support(mask), TotalVariation(0.4)]),
        "loss, invariant": lambda: (ld.ExpectedLoss(P0, loss), [ld.Invariant(P2), LocalDP(1.0)]),
        "sampling": lambda: (ld.PrivateSampling(KL, sampled), [LocalDP(0.5)]),
        "sampling, TV": lambda: (ld.PrivateSampling(TOTAL_VARIATION, sampled), [LocalDP(0.5), TotalVariation(0.1)]),
        "set": lambda: (ld.AgainstSet(KL, P0, ld.Hull([P1, P2])), [LocalDP(1.0)]),
        "set, chi": lambda: (ld.AgainstSet(CHI_SQUARED, P0, ld.Hull([P1, P2])), [LocalDP(1.0), TotalVariation(0.3)]),
        "set, approximate": lambda: (ld.AgainstSet(KL, P0, ld.Hull([P1, P2])), [ld.ApproximateLDP(1.0, 0.01)]),
        **{
            f"estimation {criterion!r}": lambda criterion=criterion: (
                ld.FisherInformation(P0, criterion), [LocalDP(1.0), TotalVariation(0.4)]
            )
            for criterion in (ld.AOptimal(), ld.AOptimal([1.0, 2.0, 3.0]), ld.COptimal([1.0, 0.0, -1.0]),
                              ld.MVOptimal(), ld.DOptimal())
        },
    }  # fmt: skip


QUICK = 0.02
"""Seconds that a bound may take; of a class without such a certificate the first one is taken."""
LEFT_OUT = {"zcdp", "mixed"}
"""Kinds of random problems whose designs take many seconds."""


def designs(each: int, only: set[str] | None = None, seed: int = 77) -> Iterator[tuple[str, Any]]:
    """Nice problems, `only` these if given, and `each` random ones of every kind, with their designs."""
    made: dict[str, Callable[[], Problem]] = {
        name: problem for name, problem in simple().items() if only is None or name in only
    }
    for kind in KINDS:
        for number in range(0 if kind in LEFT_OUT else each):
            made[f"{kind} {number}"] = of_kind(kind, seed, number).build
    for name, problem in made.items():
        design = designed(problem)
        if design is not None:
            yield name, design
        if name == "approximate":
            design = designed(problem, method=ld.MergedExchange(2, points=3))
            if design is not None:
                yield f"{name}, by shapes", design
        if name.startswith("information, groups"):
            design = designed(problem, method=ld.OrbitProgram())
            if design is not None:
                yield f"{name}, by orbits", design
        if name in ("worst", "sum of divergences"):
            design = designed(problem, method=ld.MarginalPatterns())
            if design is not None:
                yield f"{name}, by marginals", design


def designed(problem: Callable[[], Problem], seconds: float = SECONDS, method: Any = None) -> Any:
    """The design, or None where there is none in time."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Late

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return optimal_channel(*problem(), method=method)
    except (Late, InvalidInput, SolverError):
        return None
    except Exception as error:
        # No forgery: the finding of another tool, and no base for this one.
        warnings.warn(f"no base: {type(error).__name__}: {error}", stacklevel=2)
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def bases(
    found: Iterator[tuple[str, Any]], judge: Judge, most: int = 20, quick: float = QUICK
) -> dict[str, list[Base]]:
    """The certificates of designs by class, of which the truth is known; at most `most` a class, and `quick` ones."""
    made: dict[str, list[Base]] = defaultdict(list)
    slow: dict[str, Base] = {}

    def take(name: str, design: Any) -> None:
        judge.found(design.utility, design.constraints, None if design.utility.continuous else design.channel.matrix)
        for certificate in _certificates(design):
            kind = type(certificate).__name__ + ", real answers" * design.utility.continuous
            if len(made[kind]) < most and _took(certificate) <= quick:
                made[kind].append(Base(name, design, certificate))
            elif not made[kind]:
                slow.setdefault(kind, Base(name, design, certificate))

    for name, design in found:
        take(name, design)
    known = {type(base.certificate) for each in made.values() for base in each}
    for design in proved_by(
        {*encodable_subtypes(ld.Certificate)} - known - {type(base.certificate) for base in slow.values()}
    ):
        take(f"example of {design.method}", design)
    return {kind: made[kind] or [slow[kind]] for kind in sorted({*made, *slow}) if made[kind] or kind in slow}


def _pruned(branch: Any) -> Any:
    """The tree cut off below its first split, with leaves of its own: a proof that is soon checked."""
    nodes, root = branch.nodes, branch.nodes[0]
    if not hasattr(root, "cut"):
        return branch

    def leaf(at: int) -> Any:
        while hasattr(nodes[at], "cut"):
            at = nodes[at].left
        return nodes[at]

    cut = (dataclasses.replace(root, left=1, right=2), leaf(root.left), leaf(root.right))
    return dataclasses.replace(branch, nodes=cut)


def _took(certificate: Any) -> float:
    """Seconds for a bound, of which thousands are to be computed."""
    start = time.process_time()
    assert isinstance(certificate.bound, float)
    return time.process_time() - start


def _certificates(design: Any) -> Iterator[Any]:
    """The design's own, those that it is made of, and the one that needs no numbers."""
    own = design.certificate
    fields = (design.utility, design.constraints, design.channel)
    if own is None:
        return
    yield own
    if isinstance(own, ld.Relaxed):
        yield own.relaxation
    if isinstance(own, ld.SamplingDual):
        yield own.loss
    if isinstance(own, ld.SaddlePoint):
        yield own.pair
    if design.utility.contracts and not design.utility.continuous and not isinstance(own, ld.Contraction):
        yield ld.Contraction(*fields)
    if design.utility.information and not isinstance(own, ld.InformationCapacity):
        capacity = ld.InformationCapacity(*fields)
        yield capacity
        if np.isfinite(capacity.bound) and not isinstance(own, ld.InformationDual):
            first = float(design.utility.prior[0])
            rows = 1.01 * capacity.bound * np.array([first, 1 - first])
            yield ld.InformationDual(*fields, np.array([0]), rows, np.full((2, 2), 0.01 * capacity.bound))
    if isinstance(own, ld.BranchDual | ld.ChamberDual):
        yield _pruned(own)
    if isinstance(design.utility, ld.FisherInformation) and design.utility.criterion.additive:
        yield ld.SharedInformation(*fields)
    if any(isinstance(one, ld.Outputs) for one in design.constraints) and not isinstance(own, ld.Relaxed):
        kept = tuple(one for one in design.constraints if not isinstance(one, ld.Outputs))
        yield ld.Relaxed(*fields, ld.Contraction(design.utility, kept, design.channel))
