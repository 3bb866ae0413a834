"""Attacks on numbers whose bound is no convex function: pairs of sets, points that dominate, cuts of real answers.

For these the numbers are drawn, many times, and what each draw proves is made as small as it can be: the potentials of
its blocks are the solution of a linear program. The bound on respondents is attacked here, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import mpmath
import networkx as nx
import numpy as np
from forging.bases import designed
from forging.plain import posed
from mpmath import mpf
from scipy import stats
from scipy.optimize import linprog
from truth.objects import named
from truth.optimum import envelope, rows_of
from truth.utilities import EXCESS, Generator, Pair, law

import ldpopt_check
from ldpopt import Channel, LocalDP, TotalVariation
from ldpopt import design as ld
from ldpopt.design.files import respondents_text
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.design.problems.reduction import Cells
from ldpopt.errors import LdpoptError
from ldpopt.numbers.enclosures import FLOAT
from minimise import checker, listed
from minimise.attack import SECONDS, Outcome, gap, witness
from minimise.descent import Numbers, attacked

OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
FINITE: list[Generator] = [("kl",), ("chi-squared",), ("squared-hellinger",), ("total-variation",), ("jensen-shannon",),
                           ("le-cam",), ("hockey-stick", 1.5), ("hockey-stick", 0.7), ("reverse-kl",)]  # fmt: skip


def potentials(f: Generator, p0: np.ndarray, p1: np.ndarray, epsilon: float, eta: float) -> tuple[float, np.ndarray]:
    """The level and the potentials with the least bound, by a linear program over all blocks."""
    with mpmath.workdps(30):
        first, second = law(p0.tolist()), law(p1.tolist())
        used = [x for x in range(len(first)) if first[x] + second[x] > 0]
        used.sort(key=lambda x: first[x] / (first[x] + second[x]))
        t = 1 / mpmath.expm1(epsilon)
        below0, below1 = [mpf(0)], [mpf(0)]
        for x in used:
            below0.append(below0[-1] + first[x])
            below1.append(below1[-1] + second[x])
        n = len(used)
        blocks = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
        worths = np.array(
            [float(EXCESS[f[0]](t + below0[j] - below0[i], t + below1[j] - below1[i], *f[1:])) for i, j in blocks]
        )
    scale = float(worths.max()) or 1.0
    above = np.zeros((len(blocks) + 1, n + 3))  # level, u_0..u_n, excess of U over the level
    for row, (i, j) in zip(above, blocks, strict=False):
        row[0], row[1 + i], row[1 + j] = -float(t), 1.0, -1.0
    above[-1, 0], above[-1, 1], above[-1, n + 1], above[-1, n + 2] = -1.0, -1.0, 1.0, -1.0
    cost = np.zeros(n + 3)
    cost[0], cost[-1] = 1.0, eta
    ends = [(0, None), (0, 0), *[(-1e5, 1e5)] * n, (0, None)]
    found = linprog(cost, above, np.append(-worths / scale, 0.0), bounds=ends, method="highs-ds", options=OPTIONS)
    assert found.status == 0, found.message
    rise = 1e-11 * np.arange(n + 1)
    return float(found.x[0]) * scale, (found.x[1 : n + 2] + rise) * scale


def blackwell(rng: np.random.Generator, p0: np.ndarray, p1: np.ndarray) -> np.ndarray:
    """Points that dominate two laws, or very nearly."""
    way = int(rng.integers(4))
    if way == 0:
        return np.stack([p0, p1], axis=1)
    if way == 1:  # each input as two, apart from each other
        apart = rng.random() * min(p0.min(), p1.min())
        masses = [
            np.concatenate([p / 2 + sign * apart / 2, p / 2 - sign * apart / 2]) for p, sign in ((p0, 1), (p1, -1))
        ]
        return np.maximum(np.stack(masses, axis=1), 0.0)
    if way == 2:  # a little towards the other law, which dominates no longer
        share = 10.0 ** rng.uniform(-16, -3)
        return np.stack([p0 * (1 - share) + p1 * share, p1], axis=1)
    n = int(rng.integers(2, 5))
    corners = rng.dirichlet(np.ones(n), 2).T
    return np.concatenate([corners * rng.random(), np.stack([p0, p1], axis=1)]) if rng.random() < 0.5 else corners


def of_envelope(rng: np.random.Generator, most: int = 8) -> Outcome | None:
    """The envelope theorem, with points that dominate the inputs, or should not count as such, and without."""
    k = int(rng.integers(2, most + 1))
    epsilon = float(rng.choice([1e-3, 0.3, 1.0, 2.0, 6.0]))
    eta = math.tanh(epsilon / 2) * float(rng.choice([0.05, 0.4, 0.9, 1.0]))
    p0 = listed.some_law(rng, k)
    p1 = listed.some_law(rng, k, p0)
    f = FINITE[rng.integers(len(FINITE))]
    if np.abs(p0 - p1).max() < 1e-3 or (min(p0.min(), p1.min()) == 0 and f[0] in ("kl", "chi-squared", "reverse-kl")):
        return None
    points = None if rng.random() < 0.4 else blackwell(rng, p0, p1)
    a, b = (p0, p1) if points is None else points.T
    level, steps = potentials(f, a, b, epsilon, eta)
    constraints = (LocalDP(epsilon), TotalVariation(eta))
    certificate = ld.EnvelopeDual(ld.Divergence(named(f), p0, p1), constraints, None, level, steps, points)
    bound = certificate.bound
    if math.isinf(bound):
        return None
    best = float(envelope(Pair(f, tuple(p0.tolist()), tuple(p1.tolist())), epsilon, min(eta, math.tanh(epsilon / 2))))
    least = gap(bound, best, False)
    text = f"{f} {p0.tolist()} {p1.tolist()} {points}"
    return Outcome("EnvelopeDual", text, least, gap(checker.bound(certificate), best, False), least)


def of_dominated(rng: np.random.Generator) -> Outcome | None:
    """Points for (epsilon, delta): the least bound of the columns of levels, of points that count as dominating."""
    problem = listed.problem("LevelDual", rng, int(rng.integers(2, 4)))
    if (
        len(problem.kept.criteria) > 1
        or len(problem.kept.criteria[0]) > 1
        or not isinstance(problem.kept.criteria[0][0][1], Pair)
    ):
        return None
    best, _ = listed.optimum(problem)
    pair = problem.kept.criteria[0][0][1]
    points = blackwell(rng, np.array(pair.p0), np.array(pair.p1))
    points = points / points.sum(axis=0)
    if len(points) > 4 or (points <= 0).any():
        return None
    kept = type(problem.kept)((((1.0, Pair(pair.f, *(tuple(map(float, p)) for p in points.T))),),))
    try:
        utility = ld.Divergence(named(pair.f), *points.T)
    except LdpoptError:
        return None
    other = replace(problem, kept=kept, utility=utility)
    numbers = listed.least_numbers(other, listed.own_columns(other))
    if numbers is None:
        return None
    own = listed.certificate(other, numbers)
    certificate = ld.Dominated(problem.utility, problem.constraints, None, np.asarray([utility.p0, utility.p1]).T, own)
    bound = certificate.bound
    if math.isinf(bound):
        return None
    least = gap(bound, best, False)
    return Outcome("Dominated", f"{pair} {points.tolist()}", least, math.nan, least)


def of_pairs(rng: np.random.Generator, draws: int = 6) -> Outcome | None:
    """Pairs of two sets: every member of the set gives a bound, none of them below the optimum."""
    k = int(rng.integers(2, 4))
    p, q, r = (rng.dirichlet(np.ones(k)) * 0.9 + 0.1 / k for _ in range(3))
    f = [("kl",), ("chi-squared",), ("squared-hellinger",)][rng.integers(3)]
    epsilon = float(rng.choice([0.5, 1.0, 3.0]))
    eta = math.tanh(epsilon / 2) * float(rng.choice([0.3, 1.0]))
    try:
        utility = ld.AgainstSet(named(f), p, ld.Hull([q, r]))
    except LdpoptError:
        return None
    constraints = (LocalDP(epsilon), TotalVariation(eta))
    design = designed(lambda: (utility, list(constraints)), SECONDS)
    if design is None or not isinstance(design.certificate, ld.SaddlePoint):
        return None
    best = witness(design.certificate)
    if best is None:
        return None
    honest = gap(design.certificate.bound, best, False)
    shares, least = np.concatenate([np.linspace(0, 1, draws), rng.random(draws)]), honest
    centre = design.certificate.mixtures[1]
    if centre is not None:
        middle = float(np.asarray(centre)[0] / np.sum(centre))
        shares = np.concatenate([shares, np.clip(middle + np.array([-1e-2, -1e-4, 1e-4, 1e-2]), 0, 1)])
    for share in shares:
        member = share * utility.sets[1].vertices[0] + (1 - share) * utility.sets[1].vertices[1]
        member = member / member.sum()
        level, steps = potentials(f, np.asarray(utility.sets[0].vertices[0]), member, epsilon, eta)
        pair = ld.EnvelopeDual(ld.Divergence(named(f), p, member), constraints, None, level, steps, None)
        moved = replace(design.certificate, p1=member, mixtures=(None, np.array([share, 1 - share])), pair=pair)
        least = min(least, gap(moved.bound, best, False))
    return Outcome("SaddlePoint", f"{f} {p} {q} {r}", least, math.nan, honest)


NORMAL = stats.norm(0, 1)
LAWS = [
    (NORMAL, stats.norm(1, 1)), (NORMAL, stats.norm(0.2, 2)), (stats.expon(), stats.expon(scale=2)),
    (stats.laplace(), stats.laplace(1)), (NORMAL, stats.norm(0, 0.2)), (stats.poisson(3), stats.poisson(6)),
    (NORMAL, stats.norm(0.01, 1)), (stats.gamma(2), stats.gamma(3)), (stats.logistic(), stats.logistic(1)),
]  # fmt: skip


def of_cells(rng: np.random.Generator) -> Outcome | None:
    """Laws of real answers with cuts that are drawn: the points of the cells, and the least potentials for them."""
    p, q = LAWS[rng.integers(len(LAWS))]
    f = [("kl",), ("total-variation",), ("squared-hellinger",)][rng.integers(3)]
    epsilon = float(rng.choice([0.5, 1.0, 3.0]))
    ends = np.concatenate([one.ppf([1e-6, 0.5, 1 - 1e-6]) for one in (p, q)])
    count = int(rng.choice([1, 3, 8, 20]))
    cuts = np.unique(
        rng.uniform(ends.min(), ends.max(), count)
        if rng.random() < 0.6
        else np.round(rng.choice(ends, count) + rng.normal(size=count), 1)
    )
    try:
        a, b = Cells(p, q, cuts).endpoints()
    except LdpoptError:
        return None
    if rng.random() < 0.4:  # not quite the points that the cells may hold
        share = 10.0 ** rng.uniform(-14, -2)
        middle = a + b
        a, b = a * (1 - share) + middle / middle.sum() * share, b * (1 - share) + middle / middle.sum() * share
    level, steps = potentials(f, a, b, epsilon, math.tanh(epsilon / 2))
    certificate = ld.EnvelopeDual(
        ld.Divergence(named(f), p, q),
        (LocalDP(epsilon),),
        None,
        level,
        steps,
        np.stack([a, b], axis=1),
        cuts,
        edges=cuts,
    )
    try:
        bound = certificate.bound
    except LdpoptError:
        return None
    if math.isinf(bound):
        return None
    # What a channel of many cells keeps is kept for the laws themselves.
    grid = np.unique(np.concatenate([one.ppf(np.linspace(0.001, 0.999, 40)) for one in (p, q)]))
    masses = [np.diff(one.cdf(np.concatenate([[-np.inf], grid, [np.inf]]))) for one in (p, q)]
    masses = [np.maximum(one, 0.0) for one in masses]
    best = float(envelope(Pair(f, *(tuple(one.tolist()) for one in masses)), epsilon)) * (1 - 1e-12)
    least = gap(bound, best, False)
    return Outcome(
        "EnvelopeDual",
        f"real answers: {p.dist.name} {q.dist.name} {f} {epsilon} {cuts.tolist()}",
        least,
        math.nan,
        least,
    )


def of_pairwise(rng: np.random.Generator) -> Outcome | None:
    """Moments and excesses under (epsilon, delta), whose optimum is known: from weights that are drawn."""
    k = int(rng.integers(2, 4))
    problem = listed.problem("LevelDual", rng, k)
    prior = listed.some_law(rng, k)
    kept = listed.Kept((((1.0, listed.Prior(tuple(map(float, prior)))),),))
    problem = replace(problem, kept=kept, utility=ld.MutualInformation(prior))
    best, _ = listed.optimum(problem)
    epsilon = problem.constraints[0].epsilon
    drawn = 10.0 ** rng.uniform(-1, 1, (2, 2))
    certificate = ld.PairwiseInformation(
        problem.utility,
        problem.constraints,
        None,
        np.zeros(0),
        np.zeros(0),
        np.array([epsilon, epsilon * 0.5]),
        drawn[0],
        drawn[1],
        0.0,
    )
    if math.isinf(certificate.bound):
        return None
    value, _ = attacked(certificate, rng, 30, best - 1e-3 * abs(best), seconds=3.0)
    return Outcome(
        "PairwiseInformation",
        f"{prior} {problem.constraints}",
        gap(value, best, False),
        math.nan,
        gap(certificate.bound, best, False),
    )


def of_respondents(rng: np.random.Generator) -> Outcome | None:
    """The number of respondents: what a survey by one good channel needs is never below what is proved."""
    k = int(rng.integers(2, 4))
    p = rng.dirichlet(np.ones(k)) * 0.9 + 0.1 / k
    epsilon = float(rng.choice([0.5, 1.0, 2.0]))
    even = bool(rng.random() < 0.3)
    if even:  # two yes/no questions, one of them asked at random
        half = np.full(2, 0.5)
        error, targets = 2 / math.tanh(epsilon / 2) ** 2 / 4, np.array([[1.0, 0.0]])
        bound = ld.RespondentsBound(
            epsilon, (half, half), (targets,) * 2, (np.array([1e-4]),) * 2, (rng.random(1) + 0.1,) * 2, 0
        )
        needed = error / 1e-4
    else:
        design = designed(lambda: (ld.FisherInformation(p, ld.MVOptimal()), [LocalDP(epsilon)]), SECONDS)
        if design is None or not isinstance(design.certificate, ld.EquivalenceDual):
            return None
        needed = witness(design.certificate) or math.nan
        needed, own = needed / 1e-4, design.certificate
        bound = ld.RespondentsBound(
            epsilon,
            (p,),
            (np.eye(k),),
            (np.full(k, 1e-4),),
            (rng.random(k) + 0.1,),
            0,
            np.asarray(own.kernel),
            np.asarray(own.rows),
        )

    def proved(one: Any) -> float:
        try:
            return -one.proved(FLOAT)
        except Unproved:
            return math.inf

    numbers = Numbers.of(bound)
    found = numbers.least(proved, rng, 25, 16, -needed * 1.001)
    moved = numbers.at(found.vector)
    document = json.loads(respondents_text(replace(moved, least=1)))
    told = ldpopt_check.check(document, budget=100.0).bound[0]
    return Outcome(
        "RespondentsBound",
        f"{p} {epsilon} {even}",
        gap(-found.value, needed, True),
        gap(told, needed, True),
        gap(-proved(bound), needed, True),
    )


def of_no_mass(rng: np.random.Generator) -> Outcome | None:
    """An answer of no mass outside of a graph: whatever its multiplier is, no channel has an error below the bound.

    The package refuses such priors; the second checker takes what the kernel takes to zero.
    """
    first = float(rng.choice([0.5, 0.3, 0.9]))
    prior, epsilon = np.array([first, 1 - first, 0.0]), float(rng.choice([0.5, 1.0, 2.0]))
    criteria = [ld.AOptimal(), ld.COptimal([1.0, -1.0, 0.0]), ld.MVOptimal(), ld.AOptimal([1.0, 1.0, 1e-3])]
    utility = ld.FisherInformation(prior, criteria[rng.integers(4)])
    design = designed(lambda: (utility, [LocalDP(epsilon)]), SECONDS)
    if design is None or not isinstance(design.certificate, ld.EquivalenceDual):
        return None
    graph = nx.Graph([(0, 1)])
    graph.add_node(2)
    share, high = 10.0 ** -float(rng.choice([2, 4, 8])), 1 / (1 + math.exp(-epsilon))
    rows = np.array([[high, 1 - high], [1 - high, high]]) * (1 - share)
    channel = Channel(np.vstack([np.column_stack([rows, np.full(2, share)]), [0.0, 0.0, 1.0]]))
    with mpmath.workdps(60):
        best = float(posed(utility, ()).utility.value(rows_of(np.asarray(channel.matrix))))
    numbers, kernel = np.array(design.certificate.rows), np.array(design.certificate.kernel)
    numbers[2] -= float(rng.choice([0.0, 0.5, 1.0, 3.0])) * abs(numbers).max()
    if rng.random() < 0.5:
        kernel[..., 2] = 0.0
    constraints = (LocalDP(epsilon, graph),)
    moved = replace(design.certificate, constraints=constraints, rows=numbers, kernel=kernel, channel=channel)
    least, told = (gap(bound, best, True) for bound in (moved.bound, checker.bound(moved)))
    return Outcome("EquivalenceDual", f"{prior} {utility.criterion} {numbers}", least, told, math.inf)


def every(rng: np.random.Generator) -> Iterator[Outcome]:
    """One draw of each of these attacks."""
    for attack in (of_envelope, of_dominated, of_pairs, of_cells, of_pairwise, of_respondents, of_no_mass):
        outcome = attack(rng)
        if outcome is not None:
            yield outcome
