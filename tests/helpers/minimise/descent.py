"""The attack on numbers that are no linear program: cutting planes of the bound itself, from honest numbers on.

The bound that a certificate proves is a function of its numbers, and for most classes a convex one: differences of it
give planes below it, and a linear program over the planes, near the best numbers so far, gives the next ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from forging.tamper import Path, put
from scipy.optimize import linprog

from ldpopt import design as ld
from ldpopt.errors import LdpoptError

Function = Callable[[np.ndarray], float]
FIXED = {"utility", "constraints", "channel", "edges", "classes", "whole", "posed", "columns", "support", "relaxed",
         "orders", "epsilon", "least", "pilots", "targets", "variances", "output", "input", "left", "right", "term",
         "cuts", "mixtures", "p0", "p1", "points", "knots", "cut", "ratios", "prior"}  # fmt: skip
"""Parts of certificates that are not moved here: the problem, whole numbers, and what makes the bound a jagged one."""
SIGNED = {"rows", "potentials", "kernel", "slope", "fixed"}
"""The parts that may be negative; of all others, negative numbers are refused."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of a certificate in one vector: where they are, and which may be negative."""

    certificate: Any
    paths: tuple[Path, ...]
    masks: tuple[np.ndarray, ...]
    start: np.ndarray
    lowest: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, certificate: Any, root: Path = (), part: Any = None) -> Numbers:
        """All numbers of a certificate, or of one part of it."""
        found = list(_sites(certificate if part is None else part, root))
        paths, masks, values, lowest, scale = [], [], [], [], []
        for path, value, mask in found:
            array = np.asarray(value, dtype=float)
            own = array[mask].ravel()
            size = float(np.abs(array).max(initial=0.0)) or 1.0
            paths.append(path)
            masks.append(mask)
            values.append(own)
            signed = any(name in SIGNED for name in path if isinstance(name, str))
            lowest.append(np.full(len(own), -np.inf if signed else 0.0))
            scale.append(np.full(len(own), size))
        joined = [np.concatenate(each) if each else np.zeros(0) for each in (values, lowest, scale)]
        return cls(certificate, tuple(paths), tuple(masks), *joined)

    def at(self, vector: np.ndarray) -> Any:
        """The certificate with other numbers."""
        made, place = self.certificate, 0
        for path, mask in zip(self.paths, self.masks, strict=True):
            old = _get(made, path)
            count = int(mask.sum())
            if isinstance(old, np.ndarray):
                new: Any = old.astype(float)
                new[mask] = vector[place : place + count]
            else:
                new = float(vector[place])
            place += count
            made = put(made, path, new)
        return made

    def least(
        self,
        bound: Callable[[Any], float],
        rng: np.random.Generator,
        steps: int = 20,
        most: int = 24,
        enough: float = -math.inf,
        seconds: float = 6.0,
    ) -> Least:
        """The least value of a function of the certificate, by `descend`."""

        def function(vector: np.ndarray) -> float:
            return bound(self.at(vector))

        if len(self.start) <= most:
            return descend(function, self.start, self.lowest, self.scale, rng, steps, most, enough, seconds)
        # Many numbers are first scaled and shifted part by part, and then moved a few at a time.
        parts = self.parts()

        def of_parts(shares: np.ndarray) -> float:
            return function(np.maximum(self.start + parts @ shares, self.lowest))

        free, size = np.full(parts.shape[1], -np.inf), np.ones(parts.shape[1])
        first = descend(of_parts, 0 * size, free, size, rng, steps, most, enough, seconds / 2)
        start = np.maximum(self.start + parts @ first.vector, self.lowest)
        return descend(function, start, self.lowest, self.scale, rng, steps, most, enough, seconds / 2)

    def parts(self) -> np.ndarray:
        """(n, parts) directions: every array of numbers by a share of itself, and by a constant."""
        place, columns = 0, []
        for mask in self.masks:
            own = np.arange(len(self.start)) - place
            inside = (own >= 0) & (own < mask.sum())
            columns += [inside * self.start, inside * self.scale]
            place += int(mask.sum())
        return np.stack(columns, axis=1)[:, :20]


def _get(value: Any, path: Path) -> Any:
    for step in path:
        value = getattr(value, step) if isinstance(step, str) else value[step]
    return value


def _sites(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any, np.ndarray]]:
    """(path, numbers, which of them are free) of every part with numbers."""
    if isinstance(value, ld.OrbitDual):  # Its pairs are of groups, so that those on the diagonal count.
        for name in ("rows", "pairs"):
            numbers = getattr(value, name)
            yield (*path, name), numbers, np.ones(numbers.shape, dtype=bool)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.init and field.name not in FIXED:
                yield from _sites(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, tuple):
        for at, part in enumerate(value):
            yield from _sites(part, (*path, at))
    elif isinstance(value, float):
        yield path, value, np.ones((), dtype=bool)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
        mask = np.ones(value.shape, dtype=bool)
        if path[-1] in ("pairs", "spreads") and value.ndim == 2 and len(value) == value.shape[1]:
            mask &= ~np.eye(len(value), dtype=bool)
        moments = path[-1] == "values" and len(value) == 4 and value.ndim == 2
        if moments and (value[:2] == np.floor(value[:2])).all() and value[:3].any():
            mask[:3] = False  # pairs, labels and ratios of tangents
        yield path, value, mask


def bound_of(certificate: Any) -> float:
    """The bound, of an error with the other sign, so that less is bolder; inf where nothing is proved."""
    try:
        bound = float(certificate.bound)
    except LdpoptError:
        return math.inf
    bound = -bound if certificate.utility.error else bound
    return math.inf if math.isnan(bound) else bound


@dataclass
class Least:
    """The least value that was found, and where; how often the function was asked."""

    value: float
    vector: np.ndarray
    asked: int = 0


def descend(
    function: Function, start: np.ndarray, lowest: np.ndarray, scale: np.ndarray, rng: np.random.Generator,
    steps: int = 20, most: int = 24, enough: float = -math.inf, seconds: float = 6.0,
) -> Least:  # fmt: skip
    """The least value that cutting planes reach from `start`; `most` of the numbers are moved at a time.

    Planes are taken at points near the best one, not at that itself, which is a corner; and at every point tried.
    """
    late = time.process_time() + seconds
    best = Least(function(start), start.copy(), 1)
    if not math.isfinite(best.value) or not len(start):
        return best
    size = abs(best.value) or 1.0
    reach, planes = 0.05, list[tuple[float, np.ndarray, np.ndarray]]()
    moved = np.arange(len(start))
    for step in range(steps):
        if best.value < enough or reach < 1e-12 or time.process_time() > late:
            break
        if step % 10 == 0 or not planes:
            planes = []
            if len(start) > most:
                moved = np.sort(rng.choice(len(start), most, replace=False))
            for share in (1e-4, 1e-2, 1.0):
                near = best.vector.copy()
                near[moved] += share * reach * scale[moved] * rng.normal(size=len(moved))
                _plane(function, np.maximum(near, lowest), moved, lowest, scale, planes, best)
        if not planes:  # all points near it are refused
            reach /= 30
            continue
        tried = _next(planes, best.vector, moved, lowest, scale, reach, size)
        if tried is None:
            break
        before = best.value
        value = _plane(function, tried, moved, lowest, scale, planes, best)
        reach = min(reach * 3, 1e4) if value < before - 1e-12 * size else reach / 2
    return best


def _plane(
    function: Function, place: np.ndarray, moved: np.ndarray, lowest: np.ndarray, scale: np.ndarray,
    planes: list[tuple[float, np.ndarray, np.ndarray]], best: Least,
) -> float:  # fmt: skip
    """Ask at a point and beside it; keep the plane and whatever is best."""
    value = _asked(function, place, best)
    if not math.isfinite(value):
        return value
    gradient = np.zeros(len(place))
    for at in moved:
        for way in (1.0, -1.0):
            near = place.copy()
            near[at] += way * 1e-7 * scale[at]
            if near[at] < lowest[at]:
                continue
            other = _asked(function, near, best)
            if math.isfinite(other):  # what is refused on both sides counts as flat
                gradient[at] = (other - value) / (near[at] - place[at])
                break
    planes.append((value, place.copy(), gradient))
    return value


def _asked(function: Function, place: np.ndarray, best: Least) -> float:
    value = function(place)
    best.asked += 1
    if value < best.value:
        best.value, best.vector = value, place.copy()
    return value


def _next(
    planes: Sequence[tuple[float, np.ndarray, np.ndarray]], centre: np.ndarray, moved: np.ndarray, lowest: np.ndarray,
    scale: np.ndarray, reach: float, size: float,
) -> np.ndarray | None:  # fmt: skip
    """Where the highest of the planes is least, within reach."""
    n = len(moved)
    rows, right = [], []
    for value, place, gradient in planes:
        rows.append(np.append(gradient[moved] * scale[moved] / size, -1.0))
        right.append(float(gradient[moved] @ (place - centre)[moved]) / size - value / size)
    limits = [(max(-reach, (lowest[at] - centre[at]) / scale[at]), reach) for at in moved]
    found = linprog(
        np.append(np.zeros(n), 1.0), np.array(rows), np.array(right), bounds=[*limits, (None, None)], method="highs"
    )
    if found.status != 0:
        return None
    tried = centre.copy()
    tried[moved] = np.maximum(centre[moved] + found.x[:n] * scale[moved], lowest[moved])
    return tried


def attacked(
    certificate: Any,
    rng: np.random.Generator,
    steps: int = 20,
    enough: float = -math.inf,
    most: int = 24,
    seconds: float = 6.0,
) -> tuple[float, Any]:
    """The least bound that the certificate's numbers can be moved to, and the certificate with these numbers."""
    numbers = Numbers.of(certificate)
    found = numbers.least(bound_of, rng, steps, most, enough, seconds)
    return found.value, numbers.at(found.vector)
