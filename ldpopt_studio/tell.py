"""The view "Distinguish two populations": the certified optimum for a state, verified by the kernel at once.

It also has textbook mechanisms, published bounds, and curves along epsilon and eta.
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
from ldpopt_studio.fields import (
    FieldError,
    Report,
    State,
    answer_labels,
    attributes_of,
    field,
    field_error,
    positive_integer,
    take,
    text,
)
from ldpopt_survey import respondents_to_distinguish
from ldpopt_survey.estimate.intervals import check_level

MAX_ANSWERS = 5000
"""Largest number of answers on the page; the library accepts more."""
CONSTRAINT_TYPES = offered_types(constraints)
"""Types of constraints, which declare their parameters."""
_PROBLEM_FIELDS = (
    "p0",
    "p1",
    "labels",
    "names",
    "divergence",
    *(parameter.name for kind in CONSTRAINT_TYPES for parameter in kind.asks),
)


@dataclass(frozen=True)
class Problem:
    """The design problem of a state.

    `is_quick` is True for pure epsilon with or without a cap eta, which takes milliseconds.
    """

    utility: Divergence
    constraints: tuple[Constraint, ...]
    names: tuple[str, str]
    epsilon: float
    eta: float | None
    is_quick: bool


@dataclass(frozen=True)
class Solution:
    """A problem's design, the kernel's verification of it, and the seconds that each took."""

    problem: Problem
    design: Design
    verification: Verification
    seconds: Mapping[str, float]


def read_problem(state: State) -> Problem:
    """Read the problem of a state.

    Parameters
    ----------
    state : mapping
        - ``p0`` and ``p1``, with ``labels`` of the answers and ``names`` of the populations.
        - ``divergence``, and limits under the names of the constraints' parameters, such as epsilon and eta.
    """
    p0, p1 = take(state, "p0", fields.probabilities), take(state, "p1", fields.probabilities)
    k = len(p0)
    if not 2 <= k <= MAX_ANSWERS:
        raise field_error("p0", f"2 to {MAX_ANSWERS} answers", k)
    if len(p1) != k:
        raise field_error("p1", f"{k} entries, as many as p0", len(p1))
    labels = answer_labels(take(state, "labels", fields.texts, None), k)
    names = take(state, "names", fields.texts, ("P0", "P1"))
    if len(names) != 2 or not all(names):
        raise field_error("names", "two names", Phrase(len(names)))
    f = take(state, "divergence", read_divergence, KL)
    limits = read_constraints(state)
    with field("p1"):
        utility = Divergence(f, p0, p1, inputs=labels)
    is_quick = {type(limit) for limit in limits} <= {LocalDP, TotalVariation}
    eta = next((limit.eta for limit in limits if isinstance(limit, TotalVariation)), None)
    return Problem(utility, limits, (names[0], names[1]), take(state, "epsilon", number), eta, is_quick)


def read_constraints(state: State) -> tuple[Constraint, ...]:
    """Read the constraints whose last parameter is in a state; epsilon is required."""
    take(state, "epsilon", number)
    names = {name for kind in CONSTRAINT_TYPES if take(state, name := kind.asks[-1].name, number, None) is not None}
    names -= {"delta"} if state.get("delta") == 0 else set()
    parameters = [parameter for kind in CONSTRAINT_TYPES if kind.asks[-1].name in names for parameter in kind.asks]
    values = {
        parameter.name: take(state, parameter.name, positive_integer if parameter.type is int else number)
        for parameter in parameters
    }
    limits: list[Constraint] = []
    kinds: Any = types_with_parameters(constraints, values)
    for kind in kinds:
        try:
            limits.append(kind.from_values(values))
        except InvalidInput as error:
            error_name = str(error).partition(":")[0]
            name = next(
                (field.name for field in kind.asks if error_name in (field.name, field.field)), kind.asks[-1].name
            )
            raise FieldError(name, str(error)) from None
    return tuple(limits)


def solve(state: State) -> Solution:
    """Design and verify the channel of a state. The last few are cached."""
    return _solve_cached(json.dumps({name: state.get(name) for name in _PROBLEM_FIELDS}, sort_keys=True))


@lru_cache(maxsize=8)
def _solve_cached(state: str) -> Solution:
    return _solve(json.loads(state), False)


def _solve(state: State, report: Progress) -> Solution:
    problem = read_problem(state)
    start = time.perf_counter()
    design = optimal_channel(problem.utility, problem.constraints, progress=report)
    design_end = time.perf_counter()
    verification = design.verify()
    return Solution(
        problem, design, verification, {"design": design_end - start, "verify": time.perf_counter() - design_end}
    )


def view(state: State) -> dict[str, Any]:
    """Compute the page for a state: sorted answers, channel by blocks, value, bound and proof."""
    return _solution_view(state, solve(state))


def _solution_view(state: State, solution: Solution) -> dict[str, Any]:
    """Describe a design for the page."""
    design, utility, names = solution.design, solution.problem.utility, solution.problem.names
    p0, p1 = np.asarray(utility.p0), np.asarray(utility.p1)
    ratios, order = ratio_order(p0, p1)
    m0, m1 = design.channel.push(p0), design.channel.push(p1)
    value_without_privacy = float(utility.value_without_privacy)
    report_rows = reports_in_words(design.channel, p0, p1, names)
    return {
        "names": names,
        "answers": [
            {"at": x, "label": str(design.channel.inputs[x]), "p0": p0[x], "p1": p1[x], "ratio": ratio}
            for x, ratio in ((x, None if math.isnan(ratios[x]) else ratios[x]) for x in order.tolist())
        ],
        "blocks": blocks(design.channel.matrix[order]),
        "reports": [
            {"label": label, "m0": m0[y], "m1": m1[y], "likely": likely[:6], "evidence": evidence}
            for y, (label, likely, evidence) in enumerate(report_rows)
        ],
        "divergence": utility.name,
        **attributes_of(design, "value bound gap relative_gap method note"),
        "unprivate": value_without_privacy,
        "share": design.value / value_without_privacy if 0 < value_without_privacy < math.inf else None,
        "proof": proof_view(design, solution.verification),
        "guarantees": [
            {
                "title": guarantee.title,
                "value": guarantee.value,
                "cap": limit.bound,
                "words": guarantee_in_words(guarantee),
            }
            for guarantee, limit in zip(design.guarantees, design.constraints, strict=True)
        ],
        "reach": math.tanh(solution.problem.epsilon / 2),
        "respondents": respondents_view(state, design),
        "seconds": solution.seconds,
    }


def view_with_progress(state: State, report: Report) -> dict[str, Any]:
    """Compute the content of `view` for problems that take long."""
    return _solution_view(state, _solve(state, report))


def warm() -> None:
    """Run one design and its verification, so that the first figure does not wait for imports."""
    view({"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3})


def proof_view(design: Design, verification: Verification) -> dict[str, Any]:
    """Return the content of the badge.

    It is green only if the kernel has verified this design and the design is certified.
    """
    return {
        "outcome": verification.outcome,
        "verified": verification.proved,
        "certified": verification.proved and design.certified,
        "tolerance": design.tolerance,
        "argument": design.certificate.argument if design.certificate else "",
        "failures": list(verification.reasons),
    }


def blocks(rows: Any) -> list[dict[str, Any]]:
    """Find runs of equal rows in a channel whose answers are sorted.

    The answers of a run have the same distribution of reports.
    """
    starts = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
    stops = [*starts[1:].tolist(), len(rows)]
    return [{"start": int(a), "stop": int(b), "row": rows[a]} for a, b in zip(starts, stops, strict=True)]


def respondents_view(state: State, design: Design) -> dict[str, Any]:
    """Count the respondents that the best test between the populations needs.

    The counts are those with the design and without privacy.
    """
    power, level = _read_test(state)
    utility = design.utility
    private_count, open_count = (
        respondents_needed(channel, utility, power, level) for channel in (design.channel, np.eye(len(utility.p0)))
    )
    return {"power": power, "level": level, "private": private_count, "open": open_count}


def _read_test(state: State) -> tuple[float, float]:
    return take(state, "power", check_level, 0.8), take(state, "level", check_level, 0.05)


def read_divergence(value: Any, name: str) -> FDivergence:
    """Read the name of a divergence, as on the command line."""
    return parse_divergence(text(value, name))


def respondents_needed(channel: ChannelLike, utility: Divergence, power: float, level: float) -> int | None:
    """Count the respondents for a test between the populations; None if the reports are equal."""
    try:
        return respondents_to_distinguish(channel, utility.p0, utility.p1, power, level).respondents
    except InvalidInput:
        return None


MAX_COMPARED = 2000
"""Largest number of answers with an envelope and mechanisms; more would take minutes."""
BOUND_GRID_SIZE = 17
"""Number of caps at which the published bounds are evaluated for the figure."""


def compare(state: State) -> dict[str, Any]:
    """Compare a state's design with the envelope's corners, mechanisms and bounds.

    The comparison applies only under epsilon and eta.
    """
    solution = solve(state)
    if not solution.problem.is_quick or len(solution.problem.utility.p0) > MAX_COMPARED:
        return {"applies": False}
    utility, epsilon = solution.problem.utility, solution.problem.epsilon
    optimal_envelope = optimum_envelope(utility, epsilon)
    unconstrained_optimum, reach = optimal_envelope.corners[-1].value, math.tanh(epsilon / 2)
    eta = 1.0 if solution.problem.eta is None else solution.problem.eta
    current_row = FrontierRow.of_design(solution.design, epsilon, eta, unconstrained_optimum)
    corner_caps = {0.0, (math.exp(epsilon) - 1) / (math.exp(epsilon) + len(utility.p0) - 1), reach}
    rows = [FrontierRow.of_design(solution.design, epsilon, cap, unconstrained_optimum) for cap in sorted(corner_caps)]
    respondents = _baseline_respondents(state, solution, eta)
    mechanisms = [
        {
            "name": title,
            "value": getattr(current_row, name),
            "share": getattr(current_row, name) / solution.design.value if solution.design.value > 0 else 1.0,
            "respondents": respondents.get(name),
            "points": [[row.eta, getattr(row, name)] for row in rows],
        }
        for name, title in BASELINES.items()
    ]
    return {
        "applies": True,
        "reach": reach,
        "corners": [attributes_of(corner, "eta value blocks") for corner in optimal_envelope.corners],
        "mechanisms": mechanisms,
        "bounds": _bound_rows(utility, epsilon, min(eta, reach), reach, unconstrained_optimum, solution.design.value),
    }


def _bound_rows(
    utility: Divergence, epsilon: float, eta: float, reach: float, unconstrained_optimum: float, value: float
) -> list[dict[str, Any]]:
    """Return the published bounds at the cap, and their finite values along the caps up to `reach`."""
    grid = [reach * cap / (BOUND_GRID_SIZE - 1) for cap in range(BOUND_GRID_SIZE)]
    points_by_reference: dict[str, list[list[float]]] = {}
    for cap in grid:
        for reference, _, bound in published_bounds(utility, epsilon, cap, unconstrained_optimum):
            if math.isfinite(bound):
                points_by_reference.setdefault(reference, []).append([cap, bound])
    rows = []
    for reference, is_upper, bound in published_bounds(utility, epsilon, eta, unconstrained_optimum):
        large, small = (bound, value) if is_upper else (value, bound)
        ratio = large / small if small > 0 else (1.0 if large == 0 else math.inf)
        points = points_by_reference.get(reference, [])
        rows.append({"reference": reference, "above": is_upper, "value": bound, "off": ratio, "points": points})
    return rows


def _baseline_respondents(state: State, solution: Solution, eta: float) -> dict[str, int | None]:
    """Count the respondents that the test needs with other mechanisms."""
    utility, epsilon = solution.problem.utility, solution.problem.epsilon
    power, level = _read_test(state)
    k = len(utility.p0)
    response_eta = math.expm1(epsilon) / (math.exp(epsilon) + k - 1)
    channels: dict[str, Channel] = {
        "binary_with_erasure": binary_with_erasure(utility.p0, utility.p1, epsilon, eta),
        "randomized_response_with_erasure": randomized_response(k, epsilon).erase(1 - min(1.0, eta / response_eta)),
    }
    return {name: respondents_needed(channel, utility, power, level) for name, channel in channels.items()}


ENVELOPE_POINTS = 40
"""Number of caps at which the envelope is proved."""
CAPS_PER_BATCH = 8
"""Number of caps after which progress is reported."""
EPSILON_INTERVALS = 16
"""Parts of the range of epsilon, after each of which progress is reported."""
MIN_PHASE_EPSILON, MAX_PHASE_EPSILON = 0.05, 8.0
"""Range of epsilon, in nats, in which phases are searched."""


def envelope(state: State, report: Report) -> dict[str, Any]:
    """Compute and prove the optimum at `ENVELOPE_POINTS` caps up to the largest with effect."""
    problem = _read_quick_problem(state)
    caps = np.tanh(problem.epsilon / 2) * np.arange(1, ENVELOPE_POINTS + 1) / ENVELOPE_POINTS
    points: list[dict[str, Any]] = []
    for batch_start in range(0, ENVELOPE_POINTS, CAPS_PER_BATCH):
        rows = frontier(problem.utility, [problem.epsilon], caps[batch_start : batch_start + CAPS_PER_BATCH].tolist())
        points += [{"eta": r.eta, "value": r.optimum, "bound": r.upper_bound, "certified": r.certified} for r in rows]
        report(len(points) / ENVELOPE_POINTS)
    return {"points": points, "certified": sum(point["certified"] for point in points)}


def phases(state: State, report: Report) -> dict[str, Any]:
    """Find the structures that are optimal along epsilon, with their values.

    Blocks split and erasure ends at the changes.
    """
    problem = _read_quick_problem(state)
    endpoints = np.geomspace(MIN_PHASE_EPSILON, MAX_PHASE_EPSILON, EPSILON_INTERVALS + 1)
    merged: list[Structure] = []
    points: list[list[float]] = []
    eta = 1.0 if problem.eta is None else problem.eta
    for step in range(EPSILON_INTERVALS):
        low, high = float(endpoints[step]), float(endpoints[step + 1])
        for piece in structures(problem.utility, low, high, eta=eta, tolerance=1e-4, grid=4):
            if merged and merged[-1].patterns == piece.patterns:
                piece = Structure(merged.pop().low, piece.high, piece.patterns, piece.classes)
            merged.append(piece)
        for epsilon in (low, float(np.sqrt(low * high)), *([high] if step == EPSILON_INTERVALS - 1 else [])):
            limits: list[Constraint] = [LocalDP(epsilon), TotalVariation(eta)]
            points.append([epsilon, optimal_channel(problem.utility, limits, certify=False).value])
        report((step + 1) / EPSILON_INTERVALS)
    pieces = [
        {**attributes_of(p, "low high name"), "patterns": [list(map(str, row)) for row in p.patterns]} for p in merged
    ]
    return {"pieces": pieces, "points": points, "low": MIN_PHASE_EPSILON, "high": MAX_PHASE_EPSILON}


def _read_quick_problem(state: State) -> Problem:
    problem = read_problem(state)
    if not problem.is_quick:
        raise FieldError(
            "delta", "curves are available only for ε with or without η; remove the limits delta, renyi and outputs"
        )
    return problem
