"""The view "Tell two populations apart": the certified optimum for a state, checked by the kernel at once.

Beside it stand textbook mechanisms, published bounds, and curves along epsilon and eta.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ldpopt.bounds import published_bounds
from ldpopt.channel import Channel, ChannelLike
from ldpopt.design import (
    Constraint,
    Design,
    Divergence,
    LocalDP,
    Structure,
    TotalVariation,
    Verification,
    constraints,
    offered_types,
    optimal_channel,
    structures,
    types_with_parameters,
)
from ldpopt.divergences import KL, FDivergence, parse_divergence
from ldpopt.errors import InvalidInput, Phrase
from ldpopt.frontiers import BASELINES, FrontierRow, frontier
from ldpopt.frontiers import envelope as optimum_envelope
from ldpopt.mechanisms import binary_with_erasure, randomized_response
from ldpopt.plots import ratio_order
from ldpopt.values.deadline import Progress
from ldpopt.values.distribution import number
from ldpopt.words import guarantee_in_words, reports_in_words
from ldpopt_studio import fields
from ldpopt_studio.fields import FieldError, Report, State, field, names_of, picked, take, text, whole, wrong
from ldpopt_survey import respondents_to_distinguish
from ldpopt_survey.estimate.intervals import check_level

MAX_ANSWERS = 5000
"""The most answers on the page; the library takes more."""
LIMITS = offered_types(constraints)
"""The kinds of limits, as the constraints declare what they ask for."""
_READ = ("p0", "p1", "labels", "names", "divergence", *(asked.name for kind in LIMITS for asked in kind.asks))


@dataclass(frozen=True)
class Posed:
    """The problem of a state; `quick` if it is pure epsilon with or without a cap eta, which takes milliseconds."""

    utility: Divergence
    constraints: tuple[Constraint, ...]
    names: tuple[str, str]
    epsilon: float
    eta: float | None
    quick: bool


@dataclass(frozen=True)
class Solved:
    """A problem's design, the kernel's verification of it, and the seconds for each."""

    posed: Posed
    design: Design
    checked: Verification
    seconds: Mapping[str, float]


def posed(state: State) -> Posed:
    """The problem of a state: p0, p1, the labels of answers, the names of the populations, the divergence, and limits.

    Limits have the names that constraints ask for, such as epsilon and eta.
    """
    first, second = take(state, "p0", fields.law), take(state, "p1", fields.law)
    k = len(first)
    if not 2 <= k <= MAX_ANSWERS:
        raise wrong("p0", f"2 to {MAX_ANSWERS} answers", k)
    if len(second) != k:
        raise wrong("p1", f"{k} entries, as many as p0", len(second))
    labels = names_of(take(state, "labels", fields.texts, None), k)
    names = take(state, "names", fields.texts, ("P0", "P1"))
    if len(names) != 2 or not all(names):
        raise wrong("names", "two names", Phrase(len(names)))
    f = take(state, "divergence", divergence, KL)
    limits = limits_of(state)
    with field("p1"):
        utility = Divergence(f, first, second, inputs=labels)
    quick = {type(limit) for limit in limits} <= {LocalDP, TotalVariation}
    eta = next((limit.eta for limit in limits if isinstance(limit, TotalVariation)), None)
    return Posed(utility, limits, (names[0], names[1]), take(state, "epsilon", number), eta, quick)


def limits_of(state: State) -> tuple[Constraint, ...]:
    """The constraints whose last number is in a state, such as delta or renyi; epsilon has to be there."""
    take(state, "epsilon", number)
    given = {name for kind in LIMITS if take(state, name := kind.asks[-1].name, number, None) is not None}
    given -= {"delta"} if state.get("delta") == 0 else set()
    wanted = [asked for kind in LIMITS if kind.asks[-1].name in given for asked in kind.asks]
    values = {asked.name: take(state, asked.name, whole if asked.type is int else number) for asked in wanted}
    limits: list[Constraint] = []
    kinds: Any = types_with_parameters(constraints, values)
    for kind in kinds:
        try:
            limits.append(kind.from_values(values))
        except InvalidInput as error:
            named = str(error).partition(":")[0]
            name = next((field.name for field in kind.asks if named in (field.name, field.field)), kind.asks[-1].name)
            raise FieldError(name, str(error)) from None
    return tuple(limits)


def solved(state: State) -> Solved:
    """The design of a state, and whether it verifies. The last few are cached."""
    return _solved(json.dumps({name: state.get(name) for name in _READ}, sort_keys=True))


@lru_cache(maxsize=8)
def _solved(state: str) -> Solved:
    return _found(json.loads(state), False)


def _found(state: State, report: Progress) -> Solved:
    problem = posed(state)
    begun = time.perf_counter()
    design = optimal_channel(problem.utility, problem.constraints, progress=report)
    solved_at = time.perf_counter()
    checked = design.verify()
    return Solved(problem, design, checked, {"design": solved_at - begun, "verify": time.perf_counter() - solved_at})


def view(state: State) -> dict[str, Any]:
    """The content of the page for a state: sorted answers, the channel by blocks, value, bound and proof."""
    return _shown(state, solved(state))


def _shown(state: State, solution: Solved) -> dict[str, Any]:
    """The same of a design that was found."""
    design, utility, names = solution.design, solution.posed.utility, solution.posed.names
    p0, p1 = np.asarray(utility.p0), np.asarray(utility.p1)
    ratios, order = ratio_order(p0, p1)
    m0, m1 = design.channel.push(p0), design.channel.push(p1)
    whole_value = float(utility.value_without_privacy)
    told = reports_in_words(design.channel, p0, p1, names)
    return {
        "names": names,
        "answers": [
            {"at": x, "label": str(design.channel.inputs[x]), "p0": p0[x], "p1": p1[x], "ratio": ratio}
            for x, ratio in ((x, None if math.isnan(ratios[x]) else ratios[x]) for x in order.tolist())
        ],
        "blocks": blocks(design.channel.matrix[order]),
        "reports": [
            {"label": label, "m0": m0[y], "m1": m1[y], "likely": likely[:6], "evidence": evidence}
            for y, (label, likely, evidence) in enumerate(told)
        ],
        "divergence": utility.name,
        **picked(design, "value bound gap relative_gap method note"),
        "unprivate": whole_value,
        "share": design.value / whole_value if 0 < whole_value < math.inf else None,
        "proof": proof(design, solution.checked),
        "guarantees": [
            {"title": kept.title, "value": kept.value, "cap": limit.bound, "words": guarantee_in_words(kept)}
            for kept, limit in zip(design.guarantees, design.constraints, strict=True)
        ],
        "reach": math.tanh(solution.posed.epsilon / 2),
        "respondents": respondents(state, design),
        "seconds": solution.seconds,
    }


def job(state: State, report: Report) -> dict[str, Any]:
    """The content of `view`, for problems that take long."""
    return _shown(state, _found(state, report))


def warm() -> None:
    """Design and verify once, so that the first picture does not wait for imports."""
    view({"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3})


def proof(design: Design, checked: Verification) -> dict[str, Any]:
    """The badge. It is green only if the kernel has verified this design and the design is certified."""
    return {
        "outcome": checked.outcome,
        "verified": checked.proved,
        "certified": checked.proved and design.certified,
        "tolerance": design.tolerance,
        "argument": design.certificate.argument if design.certificate else "",
        "failures": list(checked.reasons),
    }


def blocks(rows: Any) -> list[dict[str, Any]]:
    """Runs of equal rows of a channel whose answers are sorted: they have the same distribution of reports."""
    starts = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
    stops = [*starts[1:].tolist(), len(rows)]
    return [{"start": int(a), "stop": int(b), "row": rows[a]} for a, b in zip(starts, stops, strict=True)]


def respondents(state: State, design: Design) -> dict[str, Any]:
    """The respondents that the best test of one population against the other needs, with and without privacy."""
    power, level = _test_of(state)
    utility = design.utility
    private, open_ = (needed(channel, utility, power, level) for channel in (design.channel, np.eye(len(utility.p0))))
    return {"power": power, "level": level, "private": private, "open": open_}


def _test_of(state: State) -> tuple[float, float]:
    return take(state, "power", check_level, 0.8), take(state, "level", check_level, 0.05)


def divergence(value: Any, what: str) -> FDivergence:
    """The divergence that a text names, as on the command line."""
    return parse_divergence(text(value, what))


def needed(channel: ChannelLike, utility: Divergence, power: float, level: float) -> int | None:
    """The respondents for a test between the populations; None if both give the same reports."""
    try:
        return respondents_to_distinguish(channel, utility.p0, utility.p1, power, level).respondents
    except InvalidInput:
        return None


MAX_COMPARED = 2000
"""The most answers with which the envelope and the mechanisms are shown; more take minutes."""
GRID = 17
"""Number of caps at which the papers' bounds are evaluated for the picture."""


def compare(state: State) -> dict[str, Any]:
    """Comparisons for a state's design: the envelope's corners, mechanisms and bounds; only under epsilon and eta."""
    solution = solved(state)
    if not solution.posed.quick or len(solution.posed.utility.p0) > MAX_COMPARED:
        return {"applies": False}
    utility, epsilon = solution.posed.utility, solution.posed.epsilon
    edge = optimum_envelope(utility, epsilon)
    pure, reach = edge.corners[-1].value, math.tanh(epsilon / 2)
    eta = 1.0 if solution.posed.eta is None else solution.posed.eta
    here = FrontierRow.of_design(solution.design, epsilon, eta, pure)
    knees = {0.0, (math.exp(epsilon) - 1) / (math.exp(epsilon) + len(utility.p0) - 1), reach}
    rows = [FrontierRow.of_design(solution.design, epsilon, cap, pure) for cap in sorted(knees)]
    people = _respondents(state, solution, eta)
    mechanisms = [
        {
            "name": title,
            "value": getattr(here, name),
            "share": getattr(here, name) / solution.design.value if solution.design.value > 0 else 1.0,
            "respondents": people.get(name),
            "points": [[row.eta, getattr(row, name)] for row in rows],
        }
        for name, title in BASELINES.items()
    ]
    return {
        "applies": True,
        "reach": reach,
        "corners": [picked(corner, "eta value blocks") for corner in edge.corners],
        "mechanisms": mechanisms,
        "bounds": _bounds(utility, epsilon, min(eta, reach), reach, pure, solution.design.value),
    }


def _bounds(
    utility: Divergence, epsilon: float, eta: float, reach: float, pure: float, value: float
) -> list[dict[str, Any]]:
    """Every published bound at the cap, and its finite values along the caps up to `reach`."""
    grid = [reach * cap / (GRID - 1) for cap in range(GRID)]
    along: dict[str, list[list[float]]] = {}
    for cap in grid:
        for reference, _, bound in published_bounds(utility, epsilon, cap, pure):
            if math.isfinite(bound):
                along.setdefault(reference, []).append([cap, bound])
    told = []
    for reference, above, bound in published_bounds(utility, epsilon, eta, pure):
        large, small = (bound, value) if above else (value, bound)
        off = large / small if small > 0 else (1.0 if large == 0 else math.inf)
        points = along.get(reference, [])
        told.append({"reference": reference, "above": above, "value": bound, "off": off, "points": points})
    return told


def _respondents(state: State, solution: Solved, eta: float) -> dict[str, int | None]:
    """Respondents that the test needs with other mechanisms."""
    utility, epsilon = solution.posed.utility, solution.posed.epsilon
    power, level = _test_of(state)
    k = len(utility.p0)
    shared = math.expm1(epsilon) / (math.exp(epsilon) + k - 1)
    channels: dict[str, Channel] = {
        "binary_with_erasure": binary_with_erasure(utility.p0, utility.p1, epsilon, eta),
        "randomized_response_with_erasure": randomized_response(k, epsilon).erase(1 - min(1.0, eta / shared)),
    }
    return {name: needed(channel, utility, power, level) for name, channel in channels.items()}


POINTS = 40
"""Number of caps at which the envelope is proved."""
STEP = 8
"""Number of caps after which progress is reported."""
PIECES = 16
"""Parts of the range of epsilon, after each of which progress is reported."""
LOW, HIGH = 0.05, 8.0
"""Range of epsilon, in nats, in which phases are searched."""


def envelope(state: State, report: Report) -> dict[str, Any]:
    """The optimum at `POINTS` caps up to the largest with an effect, each designed and proved."""
    problem = _quick(state)
    caps = np.tanh(problem.epsilon / 2) * np.arange(1, POINTS + 1) / POINTS
    points: list[dict[str, Any]] = []
    for start in range(0, POINTS, STEP):
        rows = frontier(problem.utility, [problem.epsilon], caps[start : start + STEP].tolist())
        points += [{"eta": r.eta, "value": r.optimum, "bound": r.upper_bound, "certified": r.certified} for r in rows]
        report(len(points) / POINTS)
    return {"points": points, "certified": sum(point["certified"] for point in points)}


def phases(state: State, report: Report) -> dict[str, Any]:
    """The structures that are optimal along epsilon, with their values: where blocks split and erasure ends."""
    problem = _quick(state)
    ends = np.geomspace(LOW, HIGH, PIECES + 1)
    joined: list[Structure] = []
    points: list[list[float]] = []
    eta = 1.0 if problem.eta is None else problem.eta
    for step in range(PIECES):
        low, high = float(ends[step]), float(ends[step + 1])
        for piece in structures(problem.utility, low, high, eta=eta, tolerance=1e-4, grid=4):
            if joined and joined[-1].patterns == piece.patterns:
                piece = Structure(joined.pop().low, piece.high, piece.patterns, piece.classes)
            joined.append(piece)
        for epsilon in (low, float(np.sqrt(low * high)), *([high] if step == PIECES - 1 else [])):
            limits: list[Constraint] = [LocalDP(epsilon), TotalVariation(eta)]
            points.append([epsilon, optimal_channel(problem.utility, limits, certify=False).value])
        report((step + 1) / PIECES)
    pieces = [{**picked(p, "low high name"), "patterns": [list(map(str, row)) for row in p.patterns]} for p in joined]
    return {"pieces": pieces, "points": points, "low": LOW, "high": HIGH}


def _quick(state: State) -> Posed:
    problem = posed(state)
    if not problem.quick:
        raise FieldError("delta", "delta, renyi, outputs: expected none of them for a curve, got one")
    return problem
