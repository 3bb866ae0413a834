"""Curves that take longer: the envelope with every point proved, and the changes of the design along epsilon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ldpopt.design import Constraint, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.structure import Structure, structures
from ldpopt.frontiers import frontier
from ldpopt.frontiers.grid import CHAIN
from ldpopt.studio.fields import FieldError, State
from ldpopt.studio.tell import Posed, posed

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
