"""Comparisons with the optimum: textbook mechanisms, published bounds, and curves along epsilon and eta."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpopt.bounds.comparison import published
from ldpopt.channel import Channel
from ldpopt.design import Constraint, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.structure import Structure, structures
from ldpopt.frontiers import frontier
from ldpopt.frontiers.envelope import MAX_INPUTS
from ldpopt.frontiers.envelope import envelope as optimum_envelope
from ldpopt.frontiers.grid import BASELINES, CHAIN, row_of
from ldpopt.mechanisms import binary_with_erasure, randomized_response
from ldpopt.plots.frontier import STYLES
from ldpopt.studio.fields import FieldError, State, take
from ldpopt.studio.tell import Posed, Solved, needed, posed, solved
from ldpopt.survey.hypothesis_tests import checked_level

GRID = 17
"""Number of caps at which the papers' bounds are evaluated for the picture."""


def view(state: State) -> dict[str, Any]:
    """Comparisons for a state's design: corners of the envelope, mechanisms and bounds, at its cap and at other caps.

    They exist only for pure epsilon-LDP with or without a cap eta. ``applies`` is false for other limits.

    >>> shown = view({"p0": [0.6, 0.3, 0.1], "p1": [0.1, 0.3, 0.6], "epsilon": 2.0})
    >>> [round(one["eta"], 4) for one in shown["corners"]]
    [0.0, 0.6805]
    """
    made = solved(state)
    if not made.posed.quick or len(made.posed.utility.p0) > MAX_INPUTS:
        return {"applies": False}
    utility, epsilon = made.posed.utility, made.posed.epsilon
    edge = optimum_envelope(utility, epsilon)
    pure, reach = edge.corners[-1].value, math.tanh(epsilon / 2)
    eta = 1.0 if made.posed.eta is None else made.posed.eta
    here = row_of(made.design, epsilon, eta, pure)
    knees = {0.0, (math.exp(epsilon) - 1) / (math.exp(epsilon) + len(utility.p0) - 1), reach}
    rows = [row_of(made.design, epsilon, at, pure) for at in sorted(knees)]
    people = _respondents(state, made, eta)
    mechanisms = [
        {
            "name": STYLES[name][0],
            "value": getattr(here, name),
            "share": getattr(here, name) / made.design.value if made.design.value > 0 else 1.0,
            "respondents": people.get(name),
            "points": [[row.eta, getattr(row, name)] for row in rows],
        }
        for name in BASELINES
    ]
    return {
        "applies": True,
        "reach": reach,
        "corners": [{"eta": one.eta, "value": one.value, "blocks": one.blocks} for one in edge.corners],
        "mechanisms": mechanisms,
        "bounds": _bounds(utility, epsilon, min(eta, reach), reach, pure, made.design.value),
    }


def _bounds(
    utility: Divergence, epsilon: float, eta: float, reach: float, pure: float, value: float
) -> list[dict[str, Any]]:
    """Every published bound at the cap, and its finite values along the caps up to `reach`."""
    grid = [reach * at / (GRID - 1) for at in range(GRID)]
    along: dict[str, list[list[float]]] = {}
    for at in grid:
        for reference, _, bound in published(utility, epsilon, at, pure):
            if math.isfinite(bound):
                along.setdefault(reference, []).append([at, bound])
    told = []
    for reference, above, bound in published(utility, epsilon, eta, pure):
        large, small = (bound, value) if above else (value, bound)
        off = large / small if small > 0 else (1.0 if large == 0 else math.inf)
        told.append(
            {"reference": reference, "above": above, "value": bound, "off": off, "points": along.get(reference, [])}
        )
    return told


def _respondents(state: State, made: Solved, eta: float) -> dict[str, int | None]:
    """Respondents that the test needs with other mechanisms."""
    utility, epsilon = made.posed.utility, made.posed.epsilon
    power, level = take(state, "power", checked_level, 0.8), take(state, "level", checked_level, 0.05)
    k = len(utility.p0)
    shared = math.expm1(epsilon) / (math.exp(epsilon) + k - 1)
    channels: dict[str, Channel] = {
        "binary_with_erasure": binary_with_erasure(utility.p0, utility.p1, epsilon, eta),
        "randomized_response_with_erasure": randomized_response(k, epsilon).erase(1 - min(1.0, eta / shared)),
    }
    return {name: needed(channel, utility, power, level) for name, channel in channels.items()}


POINTS = 40
"""Number of caps at which the envelope is proved."""
PIECES = 16
"""Parts of the range of epsilon, after each of which progress is reported."""
LOW, HIGH = 0.05, 8.0
"""Range of epsilon, in nats, in which phases are searched."""


def envelope(state: State, report: Callable[[float], None]) -> dict[str, Any]:
    """The optimum at `POINTS` caps up to the largest with an effect, each designed and proved.

    >>> made = envelope({"p0": [0.6, 0.3, 0.1], "p1": [0.1, 0.3, 0.6], "epsilon": 2.0}, lambda share: None)
    >>> len(made["points"]), made["certified"]
    (40, 40)
    """
    problem = _quick(state)
    caps = np.tanh(problem.epsilon / 2) * np.arange(1, POINTS + 1) / POINTS
    points: list[dict[str, Any]] = []
    for start in range(0, POINTS, CHAIN):
        rows = frontier(problem.utility, [problem.epsilon], caps[start : start + CHAIN].tolist())
        points += [{"eta": r.eta, "value": r.optimum, "bound": r.upper_bound, "certified": r.certified} for r in rows]
        report(len(points) / POINTS)
    return {"points": points, "certified": sum(point["certified"] for point in points)}


def phases(state: State, report: Callable[[float], None]) -> dict[str, Any]:
    """The structures that are optimal along epsilon, with their values. They show where blocks split and erasure ends.

    >>> made = phases({"p0": [0.6, 0.3, 0.1], "p1": [0.1, 0.3, 0.6], "epsilon": 1.0}, lambda share: None)
    >>> [(piece["name"], round(piece["high"], 2)) for piece in made["pieces"]]
    [('binary mechanism', 1.66), ('randomized response', 8.0)]
    """
    problem = _quick(state)
    ends = np.geomspace(LOW, HIGH, PIECES + 1)
    found: list[Structure] = []
    points: list[list[float]] = []
    eta = 1.0 if problem.eta is None else problem.eta
    for at in range(PIECES):
        low, high = float(ends[at]), float(ends[at + 1])
        for piece in structures(problem.utility, low, high, eta=eta, tolerance=1e-4, grid=4):
            if found and found[-1].patterns == piece.patterns:
                piece = Structure(found.pop().low, piece.high, piece.patterns, piece.classes)
            found.append(piece)
        for epsilon in (low, float(np.sqrt(low * high)), *([high] if at == PIECES - 1 else [])):
            limits: list[Constraint] = [LocalDP(epsilon), TotalVariation(eta)]
            points.append([epsilon, optimal_channel(problem.utility, limits, certify=False).value])
        report((at + 1) / PIECES)
    pieces = [
        {"low": p.low, "high": p.high, "name": p.name, "patterns": [list(map(str, one)) for one in p.patterns]}
        for p in found
    ]
    return {"pieces": pieces, "points": points, "low": LOW, "high": HIGH}


def _quick(state: State) -> Posed:
    problem = posed(state)
    if not problem.quick:
        raise FieldError("delta", "delta, renyi, outputs: expected none of them for a curve, got one")
    return problem
