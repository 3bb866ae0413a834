"""The envelope theorem without `ldpopt.design`: envelope and optimum by two short programs, and its proof in steps.

`envelope_at` goes through all partitions of the sorted inputs. `pattern_optimum` is the linear program over all sets
of inputs and shares nothing with it: columns of epsilon-LDP channels are sums of staircases S_A = 1 + (E-1) 1_A
[KOV14, Thm 2], over which differences between rows add up. `prove` takes any channel, optimal or not, through the
steps of the proof (docs/explanation/envelope.md); each makes a channel that keeps no less, and no program is solved.

Columns are written as b (1 + (E-1) m), E = e^epsilon, with smallest entry b and densities 0 <= m <= 1, and laid on a
line, each with length b, in the order of their likelihood ratio. On a column an input has the mass b m. Densities
have one total N, and those of two inputs differ by at most D = eta / (E-1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from scipy.optimize import linprog

from ldpopt.divergences import FDivergence
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array, Index

Utility = Callable[[Array, Array], Array]
"""The utility of reports with masses M0 and M1, element by element: homogeneous, convex, and 0 if M0 = M1."""


def partition_points(utility: Utility, p0: Array, p1: Array, gain: float) -> list[tuple[float, float]]:
    """((E-1)/(E+m-1), V_m/(E+m-1)) for m = 2..k, for inputs in increasing order of p0/p1 and `gain` = E - 1."""
    k = len(p0)
    before = np.concatenate([[[0.0, 0.0]], np.cumsum([p0, p1], axis=1).T])
    value = np.zeros((k + 1, k + 1))
    for i, j in combinations(range(k + 1), 2):
        inside = before[j] - before[i]
        value[i, j] = utility(p0.sum() + gain * inside[:1], p1.sum() + gain * inside[1:])[0]
    points = []
    for m in range(2, k + 1):
        cuts = [(0, *inner, k) for inner in combinations(range(1, k), m - 1)]
        best = max(sum(value[i, j] for i, j in pairwise(cut)) for cut in cuts)
        points.append((gain / (gain + m), best / (gain + m)))
    return points


def envelope_at(points: Sequence[tuple[float, float]], eta: float) -> float:
    """The least non-decreasing concave majorant of the origin and the points, at eta, over all pairs of points."""
    reached = [(0.0, 0.0), *points]
    chords = [
        height + (other - height) * (eta - x) / (z - x) for x, height in reached for z, other in reached if x <= eta < z
    ]
    return max([height for x, height in reached if x <= eta] + chords)


def pattern_optimum(
    utility: Utility, p0: Array, p1: Array, gain: float, eta: float, share: float | None = None
) -> float:
    """The optimum over all channels under LocalDP(log(1 + gain)) and a total variation of at most eta > 0.

    With a `share`, only channels count whose staircases have at least this share of their weight, without erasure, on
    sets of inputs that are not neighbours.

    phi_A = theta_A (E-1)/eta are the weights of the sets A. They have the same total n for all inputs:

        max (eta/(E-1)) sum phi_A utility(S_A)   s.t.   sum_{A with x} phi_A = n,
                          sum_{A with x, without x'} phi_A <= 1,   (eta/(E-1)) sum phi_A + eta n <= 1.
    """
    k = len(p0)
    inside = (np.arange(1, 2**k)[:, None] >> np.arange(k)) & 1
    values = utility(p0.sum() + gain * (inside @ p0), p1.sum() + gain * (inside @ p1))
    scale = float(values.max())
    if scale <= 0:
        return 0.0
    rows = np.column_stack([inside.T, np.full(k, -1.0)])
    differences = [np.append(inside[:, x] * (1 - inside[:, y]), 0.0) for x in range(k) for y in range(k) if x != y]
    whole = np.append(np.full(len(inside), eta / gain), eta)
    limits, bounds = np.ones(len(differences) + 1), [*differences, whole]
    if share is not None:
        others = np.abs(np.diff(inside, axis=1, prepend=0, append=0)).sum(axis=1) > 2
        limits, bounds = np.append(limits, 0.0), [*bounds, np.append(share - others, 0.0)]
    solved = linprog(
        np.append(-values / scale, 0.0), np.vstack(bounds), limits, rows, np.zeros(k),
        method="highs", options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    if solved.status != 0:
        raise SolverError(f"the pattern program was not solved: {solved.message}")
    return float(-solved.fun * scale * eta / gain)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two hypotheses on inputs in increasing order of likelihood ratio: masses `p0` and `p1`, shape (k,)."""

    p0: Array
    p1: Array

    def __len__(self) -> int:
        return len(self.p0)


@dataclass(frozen=True, eq=False)
class Line:
    """Cells of a line: `lengths` (n,), and the masses (k, n) of the inputs in them, each at most the cell's length."""

    lengths: Array
    masses: Array

    @property
    def columns(self) -> Array:
        """(k, n) the densities in the cells; 0 in cells of length 0."""
        return np.divide(self.masses, self.lengths, out=np.zeros_like(self.masses), where=self.lengths > 0)

    @property
    def edges(self) -> Array:
        """(n + 1,) the ends of the cells on the line."""
        return np.append(0.0, np.cumsum(self.lengths))

    def take(self, order: Index) -> Line:
        """The cells in another order."""
        return Line(self.lengths[order], self.masses[:, order])


@dataclass(frozen=True, eq=False)
class Problem:
    """The utility f between the laws of the reports, for inputs in increasing order of likelihood ratio; gain = E-1."""

    f: FDivergence
    pair: Pair
    gain: float

    def laws(self, line: Line) -> tuple[Array, Array]:
        """(n,) M0 and M1 of the cells, taken as columns of a channel."""
        first, second = (line.lengths * p.sum() + self.gain * (p @ line.masses) for p in (self.pair.p0, self.pair.p1))
        return first, second

    def value(self, line: Line) -> float:
        """The utility of the cells, taken as columns of a channel."""
        return float(self.f.excess(*self.laws(line)).sum())

    def sorted(self, line: Line) -> tuple[Line, Array]:
        """The cells of positive length in the order of their ratio M0/M1, and these ratios."""
        line = line.take(np.flatnonzero(line.lengths > 0))
        ratio = np.divide(*self.laws(line))
        order = np.argsort(ratio, kind="stable")
        return line.take(order), np.asarray(ratio[order])

    def gains(self, ratio: Array) -> Array:
        """(k, n) the gain from a unit of each input's mass in each cell, by the tangent of g at the cell's ratio."""
        slope, level = (np.asarray(part) for part in self.f.tangent(ratio))
        return np.asarray(np.outer(self.pair.p0, slope) + np.outer(self.pair.p1, level)) * self.gain

    def peaks(self, ratio: Array) -> Index:
        """(k,) the number of cells whose ratio is at most the input's own: gains rise over these, then fall."""
        with np.errstate(divide="ignore"):
            return np.searchsorted(ratio, self.pair.p0 / self.pair.p1, side="right")


def lay(matrix: Array, gain: float) -> Line:
    """The columns of a channel (k, m) under epsilon-LDP, each with its smallest entry as its length."""
    lengths = matrix.min(axis=0)
    return Line(lengths, np.minimum((matrix - lengths) / gain, lengths))


def distances(masses: Array) -> tuple[float, float]:
    """The largest total variation between the densities of two inputs, and the largest Kolmogorov distance."""
    difference = masses[:, None] - masses
    far = np.maximum(np.cumsum(difference, axis=2), 0.0)
    return float(np.maximum(difference, 0.0).sum(axis=2).max()), float(far.max(initial=0.0))


def exchange(line: Line, peaks: Index, most: float) -> tuple[Array, Array]:
    """The exchange lemma: (n,) a common part c and (k, n) the rest, masses in the cells, of total `most` each.

    Densities whose distribution functions F_x differ by at most D = `most` are replaced by c + n_x with

        C(s) = max(0, max_y F_y(max(s, p_y)) - (p_y - s)_+ - D)

    as the distribution function of c. Left of the peak p_x, C is at most F_x. The difference F_x(p_x) - C(p_x) is
    placed as near to the peak as the room beside c allows. Right of the peak C >= F_x - D, and the other side is
    treated alike.
    """
    edges = line.edges
    below = np.concatenate([np.zeros((len(line.masses), 1)), np.cumsum(line.masses, axis=1)], axis=1)
    peak_edge, tops = edges[peaks][:, None], np.take_along_axis(below, peaks[:, None], axis=1)
    lowest = np.where(edges >= peak_edge, below, tops - (peak_edge - edges))
    common = np.diff(np.maximum(0.0, (lowest - most).max(axis=0)))
    room = np.maximum(line.lengths - common, 0.0)
    rest = np.zeros_like(line.masses)
    for x, peak in enumerate(peaks):
        left = below[x, peak] - common[:peak].sum()
        for side, total in ((np.arange(peak)[::-1], left), (np.arange(peak, len(room)), most - left)):
            before = np.cumsum(room[side]) - room[side]
            rest[x, side] = np.clip(total - before, 0.0, room[side])
    return common, rest


def windows(line: Line, gains: Array, most: float) -> Array:
    """(k,) for each input the start of the leftmost window of length `most` that has the largest gain."""
    edges = line.edges
    sums = np.concatenate([np.zeros((len(gains), 1)), np.cumsum(gains * line.lengths, axis=1)], axis=1)
    starts = np.unique(np.clip(np.concatenate([edges, edges - most]), 0.0, edges[-1] - most))
    gain = np.array([np.interp(starts + most, edges, row) - np.interp(starts, edges, row) for row in sums])
    best = gain >= gain.max(axis=1, keepdims=True) - 1e-12 * np.abs(sums).max(axis=1, keepdims=True)
    return np.asarray(starts[best.argmax(axis=1)])


def comb(starts: Array, most: float) -> list[tuple[float, tuple[int, ...]]]:
    """Windows [a_x, a_x + D) that move right with x, as a mixture of partitions of the inputs: (length, cuts) pairs.

    A comb has teeth at u, u + D, u + 2 D, ... Each window contains exactly one. Inputs that share a tooth are a block
    of a partition, whose length is that of the offsets u in [0, D) that give it.

    >>> comb(np.array([0.0, 0.0, 0.25]), 1.0)
    [(0.25, (0, 2, 3)), (0.75, (0, 3))]
    """
    if not most > 0:
        return []
    tooth = np.floor(starts / most)
    offset = np.clip(starts - tooth * most, 0.0, most)
    parts = []
    for low, high in pairwise(np.unique(np.concatenate([[0.0], offset, [most]])).tolist()):
        teeth = tooth + (offset > low)
        cuts = (0, *(np.flatnonzero(np.diff(teeth)) + 1).tolist(), len(starts))
        parts.append((high - low, cuts))
    return parts


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of the proof for a channel.

    values : the utility of the channel, with a common part and the rest, after erasing the common part, with each input
        in one window, and of the mixture. mixture : (probability, cuts) of its partitions. variation : its own.
    backward : the largest violation of the order of windows, which is 0 except for rounding.
    lines : the line of each step. common, starts, most : the common part, and the windows and their length.
    """

    values: tuple[float, ...]
    mixture: tuple[tuple[float, tuple[int, ...]], ...]
    variation: float
    backward: float
    lines: tuple[Line, ...]
    common: Array
    starts: Array
    most: float


def prove(f: FDivergence, pair: Pair, matrix: Array, gain: float, most: float) -> Steps:
    """The steps of the proof for a channel (k, m), with D = `most` at least the distance of its densities.

    pair : inputs in increasing order of likelihood ratio, all of different ratios. gain : e^epsilon - 1.
    """
    problem = Problem(f, pair, gain)
    line, ratio = problem.sorted(lay(matrix, gain))
    most = min(most, float(line.masses.sum(axis=1).mean()))
    common, rest = exchange(line, problem.peaks(ratio), most)
    whole, alone = Line(line.lengths, common + rest), Line(line.lengths, rest)
    again, ratio = problem.sorted(alone)
    leftmost = windows(again, problem.gains(ratio), most)
    starts = np.maximum.accumulate(leftmost)
    edges = np.unique(np.concatenate([again.edges, starts, starts + most]))
    inside = (edges[:-1] >= starts[:, None]) & (edges[1:] <= starts[:, None] + most)
    filled = Line(np.diff(edges), np.where(inside, np.diff(edges), 0.0))
    mixture, kept, variation = [], 0.0, 0.0
    for length, cuts in comb(starts, most):
        blocks = np.array([[a <= x < b for x in range(len(starts))] for a, b in pairwise(cuts)], dtype=np.float64).T
        value = problem.value(Line(np.ones(len(cuts) - 1), blocks)) if len(cuts) > 2 else 0.0
        mixture.append((length * (gain + len(cuts) - 1), cuts))
        kept, variation = kept + length * value, variation + length * gain * (len(cuts) > 2)
    values = (*(problem.value(step) for step in (line, whole, alone, filled)), kept)
    backward, lines = float((starts - leftmost).max(initial=0.0)), (line, whole, alone, again, filled)
    return Steps(values, tuple(mixture), variation, backward, lines, common, starts, most)
