"""The attack on every class of certificates: problems, their honest certificates, and the least bound of each.

Listed classes are attacked by linear programs (`listed`), all others from honest numbers on (`descent`). What a bound
is compared with is a channel: the optimum of another program, or the design's own channel, whose constraints and value
are computed in high precision by `truth`. No certificate may prove less than a channel within the constraints keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import mpmath
import networkx as nx
import numpy as np
from forging.bases import designed
from forging.plain import Unknown, posed
from scipy import stats
from truth.feasible import violations
from truth.optimum import rows_of
from truth.problems import of_kind
from truth.utilities import Kept

from ldpopt import LocalDP, TotalVariation
from ldpopt import design as ld
from ldpopt.divergences import CHI_SQUARED, KL, SQUARED_HELLINGER, TOTAL_VARIATION, alpha, hockey_stick
from ldpopt.errors import LdpoptError
from ldpopt.numbers.enclosures import EXACT, FLOAT
from ldpopt.privacy import RestrictedKL, RestrictedRenyi, RestrictedTotalVariation
from minimise import checker, listed
from minimise.descent import Numbers, attacked, bound_of

SECONDS = 6.0
"""The most processor time for a design."""


@dataclass(frozen=True)
class Outcome:
    """One attack: the least bound of the package and of the second checker, both less the optimum, relative to it."""

    kind: str
    problem: str
    package: float
    checked: float
    honest: float


def gap(bound: float, best: float, error: bool) -> float:
    """By which share of the optimum a bound exceeds it; below zero for a false one."""
    if not math.isfinite(bound):
        return math.inf if math.isnan(bound) or (bound < 0) == error else -math.inf
    return (best - bound if error else bound - best) / max(abs(best), 1e-12)


# -- listed classes --------------------------------------------------------------------------------------------------


def of_lists(kind: str, rng: np.random.Generator, k: int | None = None) -> Outcome | None:
    """A linear program over the class's own list; None for a problem without numbers."""
    problem = listed.problem(kind, rng, k)
    best, _ = listed.optimum(problem)
    numbers = listed.least_numbers(problem, listed.own_columns(problem))
    if numbers is None:
        return None
    certificate = listed.certificate(problem, numbers)
    told = math.nan if kind in checker.NOT_COVERED else gap(checker.bound(certificate), best, False)
    least = gap(certificate.bound, best, False)
    return Outcome(kind, f"{problem.utility!r} under {problem.constraints}", least, told, least)


# -- the witness -----------------------------------------------------------------------------------------------------


def witness(certificate: Any) -> float | None:
    """What the certificate's channel keeps, or its error, if it keeps the constraints; None where it does not."""
    utility, channel = certificate.utility, np.asarray(certificate.channel.matrix)
    if not utility.continuous:
        try:
            told = posed(utility, certificate.constraints)
        except Unknown:
            told = None
        if told is not None:
            if violations(channel, told.constraints):
                return None
            least = [v for v in channel.ravel().tolist() if v > 0]
            digits = told.utility.digits(*least) if isinstance(told.utility, Kept) else told.utility.digits()
            with mpmath.workdps(digits + 20):
                return float(told.utility.value(rows_of(channel)))
    # Laws of real numbers and restricted adversaries are beyond the truth: the package's own measures, in balls.
    if not all(one.measure(certificate.channel).value <= one.bound for one in certificate.constraints):
        return None
    return float(certificate.value_in(FLOAT if utility.continuous else EXACT))


# -- trees -----------------------------------------------------------------------------------------------------------


def of_tree(certificate: Any, rng: np.random.Generator, best: float, most: int, steps: int) -> tuple[float, Any]:
    """The least bound of a tree of boxes: the largest of what each leaf, alone, can be moved to.

    Leaves that prove less than the optimum already hold no channel that attains it, and stay as they are.
    """
    from ldpopt.design.kernel.numbers import leaves_of

    held: list[Any] = []

    def all_leaves(*given: Any) -> Any:
        held[:] = leaves_of(*given)
        return held

    with mock.patch("ldpopt.design.outputs.proof.leaves_of", all_leaves):
        bound_of(certificate)
    place = {id(node): at for at, node in enumerate(certificate.nodes)}
    whole = certificate
    tried = 0
    for number, (leaf, _) in enumerate(list(held)):
        at = place[id(leaf)]

        def alone(*given: Any, number: int = number) -> Any:
            return [leaves_of(*given)[number]]

        with mock.patch("ldpopt.design.outputs.proof.leaves_of", alone):
            if bound_of(whole) < best or tried >= most:
                continue
            tried += 1
            numbers = Numbers.of(whole, ("nodes", at), whole.nodes[at])
            whole = numbers.at(numbers.least(bound_of, rng, steps, 16, best - 1e-3 * abs(best), 6.0).vector)
    return bound_of(whole), whole


# -- other classes ---------------------------------------------------------------------------------------------------


def of_certificate(
    certificate: Any,
    rng: np.random.Generator,
    steps: int = 20,
    most: int = 16,
    leaves: int = 6,
    seconds: float = 6.0,
) -> Outcome | None:
    """The attack from the numbers of an honest certificate; None where its channel is no witness."""
    best = witness(certificate)
    if best is None or not math.isfinite(best):
        return None
    error = certificate.utility.error
    sign = -1.0 if error else 1.0
    honest = gap(sign * bound_of(certificate), best, error)
    if isinstance(certificate, ld.BranchDual | ld.ChamberDual):
        value, moved = of_tree(certificate, rng, sign * best, leaves, steps)
    else:
        value, moved = attacked(certificate, rng, steps, sign * best - 1e-3 * abs(best), most, seconds)
    name, told = type(certificate).__name__, math.nan
    if name not in checker.NOT_COVERED and not certificate.utility.continuous:
        told = gap(checker.bound(moved), best, error)
    text = f"{certificate.utility.name} under {'; '.join(map(repr, certificate.constraints))}"
    return Outcome(name, text, gap(sign * value, best, error), told, honest)


def inner(certificate: Any) -> Iterator[Any]:
    """The certificate, and what every problem of its kind has: those without numbers, and without some constraints."""
    fields = (certificate.utility, certificate.constraints, certificate.channel)
    utility = certificate.utility
    yield certificate
    if utility.contracts and not utility.continuous:
        yield ld.Contraction(*fields)
    if utility.information:
        yield ld.InformationCapacity(*fields)
    if isinstance(utility, ld.FisherInformation) and utility.criterion.additive:
        yield ld.SharedInformation(*fields)
    if len(certificate.constraints) > 1 and not isinstance(certificate, ld.Relaxed):
        yield ld.Relaxed(*fields, replace(certificate, constraints=certificate.constraints[:1]))
    if isinstance(utility, ld.WorstOf | ld.WeightedSum) and type(certificate) in (
        ld.PatternDual,
        ld.LevelDual,
        ld.PolicyDual,
    ):
        each = [designed(lambda part=part: (part, list(certificate.constraints)), SECONDS) for part in utility.parts()]
        if all(one is not None and one.certificate is not None for one in each):
            yield ld.PartsBound(*fields, tuple(one.certificate for one in each))


Posed = tuple[Any, list[Any]]
Maker = Callable[[np.random.Generator], tuple[Callable[[], Posed], Any]]


def _pair(rng: np.random.Generator, k: int, zero: bool = False) -> tuple[np.ndarray, np.ndarray]:
    p = listed.some_law(rng, k)
    while True:
        q = listed.some_law(rng, k, p)
        if zero:
            q = q * (np.arange(k) != rng.integers(k))
            q = q / q.sum()
        if np.abs(p - q).max() > 0.02 and ((p > 0) & (q > 0)).any() and (zero or q.min() > 0 or p.min() == 0):
            return p, q


def _f(rng: np.random.Generator, p: np.ndarray, q: np.ndarray) -> Any:
    every = [KL, CHI_SQUARED, SQUARED_HELLINGER, TOTAL_VARIATION, hockey_stick(1.5), alpha(1.5)]
    return every[rng.integers(6)] if min(p.min(), q.min()) > 0 else every[rng.integers(2, 5)]


def _divergence(rng: np.random.Generator, k: int) -> Any:
    p, q = _pair(rng, k)
    return ld.Divergence(_f(rng, p, q), p, q)


def _plain(rng: np.random.Generator) -> list[Any]:
    epsilon = float(rng.choice([1e-3, 0.5, 1.0, 2.0, 5.0]))
    caps: list[Any] = [LocalDP(epsilon)]
    if rng.random() < 0.6:
        caps.append(TotalVariation(float(rng.choice([0.02, 0.2, 0.6, 1.0])) * math.tanh(epsilon / 2)))
    return caps


def _other(rng: np.random.Generator, k: int) -> list[Any]:
    """Constraints with a column form other than pure LDP."""
    way = int(rng.integers(6))
    epsilon = float(rng.choice([0.2, 1.0, 2.0]))
    if way == 0:
        return [ld.ApproximateLDP(epsilon, float(rng.choice([0.0, 1e-3, 0.05, 0.4])))]
    if way == 1:
        return [ld.RenyiLDP(float(rng.choice([1.5, 2.0, 4.0])), epsilon / 4)]
    if way == 2:
        graph = nx.path_graph(k) if rng.random() < 0.6 else nx.Graph([(0, 1)])
        graph.add_nodes_from(range(k))
        return [LocalDP(epsilon, graph)]
    if way == 3:
        return [ld.ApproximateLDP(epsilon, 0.05), TotalVariation(0.2)]
    if way == 4:
        return [ld.RenyiLDP(2.0, epsilon / 2), LocalDP(epsilon)]
    return [ld.ConcentratedLDP(epsilon / 8)]


def _fixed(rng: np.random.Generator, k: int) -> list[Any]:
    """Constraints that say what the outputs are."""
    way = int(rng.integers(3))
    if way == 0:
        return [ld.Outputs(2), *_plain(rng)]
    if way == 1:
        mask = rng.random((k, 3)) < 0.7
        mask[:, 0] = True
        return [ld.Support(mask), TotalVariation(float(rng.choice([0.1, 0.4])))]
    p = rng.dirichlet(np.ones(k)) + 0.05
    return [ld.Invariant(p / p.sum()), *_plain(rng)]


def _k(rng: np.random.Generator, most: int = 3) -> int:
    return int(rng.integers(2, most + 1))


def makers() -> dict[str, Maker]:
    """For each class that is attacked from honest numbers: a random problem, and the method that proves it so."""

    def envelope(rng: np.random.Generator) -> Any:
        k = _k(rng, 6)
        u, caps = _divergence(rng, k), _plain(rng)
        return lambda: (u, caps), None

    def branch(rng: np.random.Generator) -> Any:
        k = _k(rng, 2) if rng.random() < 0.7 else 3
        u, caps = _divergence(rng, k), _fixed(rng, k)
        return lambda: (u, caps), None

    def chamber(rng: np.random.Generator) -> Any:
        u = ld.MutualInformation(listed.some_law(rng, 2)) if rng.random() < 0.5 else None
        if u is None:
            p, q = _pair(rng, 2)
            u = ld.WorstOf(TOTAL_VARIATION, p, [q, q[::-1]])
        caps = [ld.Outputs(2), *_plain(rng)] if rng.random() < 0.5 else _fixed(rng, 2)
        return lambda: (u, caps), ld.EntryBoxes()

    def interval(rng: np.random.Generator) -> Any:
        k = _k(rng)
        u, caps = _divergence(rng, k), _other(rng, k)
        return lambda: (u, caps), None

    def endless(rng: np.random.Generator) -> Any:
        k = _k(rng)
        p, q = _pair(rng, k, zero=True)
        f = [KL, CHI_SQUARED, alpha(1.5)][rng.integers(3)]
        caps = [[ld.RenyiLDP(2.0, 0.3)], [ld.RenyiLDP(3.0, 0.5), TotalVariation(0.3)], [ld.ConcentratedLDP(0.1)]][
            rng.integers(3)
        ]
        return lambda: (ld.Divergence(f, p, q), caps), None

    def capacity_bounded(rng: np.random.Generator) -> Any:
        p, q = _pair(rng, 2)
        features = np.array([0.0, 1.0, float(rng.choice([2.0, 0.5]))])[: int(rng.integers(2, 4))]
        restricted = [RestrictedTotalVariation(), RestrictedKL(), RestrictedRenyi(2.0)][rng.integers(3)]
        caps = [ld.CapacityBounded(features, restricted, float(rng.choice([0.02, 0.1])))]
        return lambda: (ld.Divergence(TOTAL_VARIATION, p, q), caps), None

    def loss(rng: np.random.Generator) -> Any:
        k = _k(rng)
        priors = np.stack([listed.some_law(rng, k) for _ in range(int(rng.integers(1, 3)))])
        u = ld.ExpectedLoss(priors, np.round(rng.random((k, 3)) * 4, 1))
        caps = [_plain, lambda r: _other(r, k)][rng.integers(2)](rng)
        return lambda: (u, caps), None

    def alphabet_loss(rng: np.random.Generator) -> Any:
        k = 3
        u = ld.ExpectedLoss(listed.some_law(rng, k), np.round(rng.random((k, 3)) * 4, 1))
        mask = rng.random((k, 3)) < 0.7
        mask[:, 0] = True
        caps = (
            [ld.Support(mask), TotalVariation(0.3)]
            if rng.random() < 0.5
            else [ld.Invariant([0.25, 0.25, 0.5]), *_plain(rng)]
        )
        return lambda: (u, caps), None

    def sampling(rng: np.random.Generator) -> Any:
        k = _k(rng)
        held = np.stack([(listed.some_law(rng, k) + 0.02) / (1 + 0.02 * k) for _ in range(2)])
        u = ld.PrivateSampling([KL, TOTAL_VARIATION, CHI_SQUARED][rng.integers(3)], held)
        return lambda: (u, _plain(rng)[:1]), None

    def estimation(rng: np.random.Generator) -> Any:
        k = _k(rng)
        p = rng.dirichlet(np.ones(k)) + 0.02
        each = [ld.AOptimal(), ld.DOptimal(), ld.MVOptimal(), ld.AOptimal(list(rng.random(k) + 0.1))]
        contrast = rng.normal(size=k)
        each.append(ld.COptimal(list(contrast - contrast.mean())))
        u = ld.FisherInformation(p / p.sum(), each[rng.integers(5)])
        graph = LocalDP(1.0, nx.path_graph(k))
        caps = _plain(rng) if rng.random() < 0.7 else [graph, *([TotalVariation(0.3)] if rng.random() < 0.5 else [])]
        return lambda: (u, caps), None

    def information(rng: np.random.Generator) -> Any:
        k = int(rng.choice([3, 14, 24]))
        u, caps = ld.MutualInformation(listed.some_law(rng, k)), _plain(rng)
        return lambda: (u, caps), None

    def orbits(rng: np.random.Generator) -> Any:
        sizes = rng.integers(1, 4, int(rng.integers(1, 5)))
        masses = np.append(
            np.repeat(rng.random(len(sizes)) + 0.01, sizes + (len(sizes) == 1)), np.zeros(rng.integers(2))
        )
        u, caps = ld.MutualInformation(rng.permutation(masses / masses.sum())), _plain(rng)
        return lambda: (u, caps), ld.OrbitProgram()

    def pairwise(rng: np.random.Generator) -> Any:
        k = int(rng.choice([2, 3, 6]))
        u = ld.MutualInformation(listed.some_law(rng, k))
        caps = [[ld.RenyiLDP(2.0, 0.2)], [ld.RenyiLDP(4.0, 1.0)], [ld.ConcentratedLDP(0.2)]][rng.integers(3)]
        return lambda: (u, caps), None

    def integers(rng: np.random.Generator) -> Any:
        p, q = _pair(rng, 2)
        u = ld.Divergence(_f(rng, p, q), p, q)
        caps = [LocalDP(float(rng.choice([0.5, 1.0, 2.0]))), ld.Denominator(int(rng.integers(3, 9)))]
        return lambda: (u, caps), None

    def contraction(rng: np.random.Generator) -> Any:
        k = _k(rng)
        u = ld.MutualInformation(listed.some_law(rng, k)) if rng.random() < 0.3 else _divergence(rng, k)
        return lambda: (u, [TotalVariation(float(rng.choice([0.05, 0.3, 0.9])))]), None

    def dominated(rng: np.random.Generator) -> Any:
        k = _k(rng)
        u = _divergence(rng, k)
        return lambda: (u, [ld.ApproximateLDP(1.0, float(rng.choice([0.01, 0.2])))]), ld.MergedExchange(3)

    def saddle(rng: np.random.Generator) -> Any:
        k = _k(rng)
        while True:
            p, q, r = (rng.dirichlet(np.ones(k)) * 0.9 + 0.1 / k for _ in range(3))
            if np.abs(p - q).max() > 0.1 and np.abs(p - r).max() > 0.1:
                break
        sets = [ld.Hull([q, r]), ld.Around(q, ld.Contamination(0.05)), ld.Around(q, ld.TotalVariationBall(0.05))]
        u = ld.AgainstSet([KL, CHI_SQUARED, TOTAL_VARIATION][rng.integers(3)], p, sets[rng.integers(3)])
        return lambda: (u, _plain(rng) if rng.random() < 0.7 else [ld.ApproximateLDP(1.0, 0.05)]), None

    def cells(rng: np.random.Generator) -> Any:
        normal = stats.norm(0, 1)
        laws = [(normal, stats.norm(1, 1)), (normal, stats.norm(0.2, 2)), (stats.expon(), stats.expon(scale=2)),
                (stats.laplace(), stats.laplace(1)), (normal, stats.laplace(0, 1))]  # fmt: skip
        p, q = laws[rng.integers(len(laws))]
        f = [KL, TOTAL_VARIATION, SQUARED_HELLINGER][rng.integers(3)]
        return lambda: (ld.Divergence(f, p, q), _plain(rng)[:1]), None

    def random_kind(rng: np.random.Generator) -> Any:
        kinds = ["worst of several", "weighted sum", "columns, other constraints", "trade-off"]
        case = of_kind(kinds[rng.integers(4)], int(rng.integers(10**6)), int(rng.integers(10**6)))
        return case.build, None

    return {
        "envelope": envelope, "branch": branch, "chamber": chamber, "interval": interval, "infinite end": endless,
        "capacity bounded": capacity_bounded, "loss": loss, "alphabet loss": alphabet_loss, "sampling": sampling,
        "estimation": estimation, "information": information, "orbits": orbits, "pairwise": pairwise,
        "integers": integers,
        "contraction": contraction, "dominated": dominated, "saddle": saddle, "cells": cells, "any": random_kind,
    }  # fmt: skip


def of_problem(
    name: str, rng: np.random.Generator, steps: int = 20, most: int = 16, seconds: float = SECONDS
) -> Iterator[Outcome]:
    """A random problem of one kind, and the attack on each of its certificates."""
    build, method = makers()[name](rng)
    design = designed(build, seconds, method)
    if design is None or design.certificate is None:
        return
    own = design.certificate.rebind(design.utility, design.constraints, design.channel, design.edges)
    for certificate in inner(own):
        try:
            outcome = of_certificate(certificate, rng, steps, most)
        except LdpoptError:
            continue
        if outcome is not None:
            yield outcome
