"""The envelope theorem without `ldpopt.design`: envelope and optimum by two short programs, and its proof in steps.

`envelope_at` goes through all partitions of the sorted inputs. `pattern_optimum` is the linear program over all sets
of inputs, and shares no code with it. Columns of epsilon-LDP channels are sums of staircases S_A = 1 + (E-1) 1_A
[KOV14, Thm 2], and differences between rows add up over these. `prove` takes any channel, optimal or not, through the
steps of the proof (docs/explanation/envelope.md). Each step builds a channel of no smaller utility; no program is
solved.

Columns are written as b (1 + (E-1) m), E = e^epsilon, with smallest entry b and densities 0 <= m <= 1. They are laid on
a line, each with length b, in the order of their likelihood ratio. On a column an input has the mass b m. Densities
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
    """Compute ((E-1)/(E+m-1), V_m/(E+m-1)) for m = 2..k blocks, with `gain` = E - 1."""
    # The inputs are in increasing order of p0/p1.
    k = len(p0)
    before = np.concatenate([[[0.0, 0.0]], np.cumsum([p0, p1], axis=1).T])
    value = np.zeros((k + 1, k + 1))
    for i, j in combinations(range(k + 1), 2):
        block_mass = before[j] - before[i]
        value[i, j] = utility(p0.sum() + gain * block_mass[:1], p1.sum() + gain * block_mass[1:])[0]
    points = []
    for m in range(2, k + 1):
        cuts = [(0, *inner, k) for inner in combinations(range(1, k), m - 1)]
        best = max(sum(value[i, j] for i, j in pairwise(cut)) for cut in cuts)
        points.append((gain / (gain + m), best / (gain + m)))
    return points


def envelope_at(points: Sequence[tuple[float, float]], eta: float) -> float:
    """Compute the smallest non-decreasing concave majorant of the origin and the points, at eta."""
    reached = [(0.0, 0.0), *points]
    chords = [
        height + (other - height) * (eta - x) / (z - x) for x, height in reached for z, other in reached if x <= eta < z
    ]
    return max([height for x, height in reached if x <= eta] + chords)


def pattern_optimum(
    utility: Utility, p0: Array, p1: Array, gain: float, eta: float, share: float | None = None
) -> float:
    """Compute the optimum over all channels under LocalDP(log(1 + gain)) and a cap eta > 0.

    With a `share`, only channels count whose staircases have at least this share of their weight, without erasure, on
    sets of inputs that are not neighbours.

    phi_A = theta_A (E-1)/eta are the weights of the sets A. They have the same total n for all inputs:

        max (eta/(E-1)) sum phi_A utility(S_A)   s.t.   sum_{A with x} phi_A = n,
                          sum_{A with x, without x'} phi_A <= 1,   (eta/(E-1)) sum phi_A + eta n <= 1.
    """
    k = len(p0)
    indicators = (np.arange(1, 2**k)[:, None] >> np.arange(k)) & 1
    values = utility(p0.sum() + gain * (indicators @ p0), p1.sum() + gain * (indicators @ p1))
    scale = float(values.max())
    if scale <= 0:
        return 0.0
    rows = np.column_stack([indicators.T, np.full(k, -1.0)])
    differences = [
        np.append(indicators[:, x] * (1 - indicators[:, y]), 0.0) for x in range(k) for y in range(k) if x != y
    ]
    total_row = np.append(np.full(len(indicators), eta / gain), eta)
    limits, bounds = np.ones(len(differences) + 1), [*differences, total_row]
    if share is not None:
        others = np.abs(np.diff(indicators, axis=1, prepend=0, append=0)).sum(axis=1) > 2
        limits, bounds = np.append(limits, 0.0), [*bounds, np.append(share - others, 0.0)]
    solution = linprog(
        np.append(-values / scale, 0.0),
        np.vstack(bounds),
        limits,
        rows,
        np.zeros(k),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.status != 0:
        raise SolverError(f"the pattern program was not solved: {solution.message}")
    return float(-solution.fun * scale * eta / gain)


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
        """The densities in the cells, (k, n); 0 in cells of length 0."""
        return np.divide(self.masses, self.lengths, out=np.zeros_like(self.masses), where=self.lengths > 0)

    @property
    def edges(self) -> Array:
        """The ends of the cells on the line, (n + 1,)."""
        return np.append(0.0, np.cumsum(self.lengths))

    def take(self, order: Index) -> Line:
        """Return the cells in another order."""
        return Line(self.lengths[order], self.masses[:, order])


@dataclass(frozen=True, eq=False)
class Problem:
    """The utility f between the laws of the reports, for inputs in increasing order of likelihood ratio; gain = E-1."""

    f: FDivergence
    pair: Pair
    gain: float

    def laws(self, line: Line) -> tuple[Array, Array]:
        """Compute M0 and M1 of the cells, (n,), taken as columns of a channel."""
        first, second = (line.lengths * p.sum() + self.gain * (p @ line.masses) for p in (self.pair.p0, self.pair.p1))
        return first, second

    def value(self, line: Line) -> float:
        """Compute the utility of the cells, taken as columns of a channel."""
        return float(self.f.excess(*self.laws(line)).sum())

    def sorted(self, line: Line) -> tuple[Line, Array]:
        """Sort the cells of positive length by their ratio M0/M1, and return these ratios."""
        line = line.take(np.flatnonzero(line.lengths > 0))
        ratio = np.divide(*self.laws(line))
        order = np.argsort(ratio, kind="stable")
        return line.take(order), np.asarray(ratio[order])

    def gains(self, ratio: Array) -> Array:
        """Compute the gain (k, n) from a unit of each input's mass in each cell, by tangents of g."""
        slope, level = (np.asarray(part) for part in self.f.tangent(ratio))
        return np.asarray(np.outer(self.pair.p0, slope) + np.outer(self.pair.p1, level)) * self.gain

    def peaks(self, ratio: Array) -> Index:
        """Count, for each input, the cells whose ratio is at most its own, (k,)."""
        # Gains rise over these cells, then fall.
        with np.errstate(divide="ignore"):
            return np.searchsorted(ratio, self.pair.p0 / self.pair.p1, side="right")


def lay(matrix: Array, gain: float) -> Line:
    """Convert the columns of a channel (k, m) to a line: each has its smallest entry as length."""
    # The channel is epsilon-LDP.
    lengths = matrix.min(axis=0)
    return Line(lengths, np.minimum((matrix - lengths) / gain, lengths))


def distances(masses: Array) -> tuple[float, float]:
    """Compute the largest total variation and Kolmogorov distance between densities of two inputs."""
    difference = masses[:, None] - masses
    cumulative = np.maximum(np.cumsum(difference, axis=2), 0.0)
    return float(np.maximum(difference, 0.0).sum(axis=2).max()), float(cumulative.max(initial=0.0))


def exchange(line: Line, peaks: Index, length: float) -> tuple[Array, Array]:
    """Compute the common part c, (n,), and the rest, (k, n), of the exchange lemma.

    Densities whose distribution functions F_x differ by at most D = `length` are replaced by c + n_x with

        C(s) = max(0, max_y F_y(max(s, p_y)) - (p_y - s)_+ - D)

    as the distribution function of c. Left of the peak p_x, C is at most F_x. The difference F_x(p_x) - C(p_x) is
    placed as near to the peak as the space left by c allows. Right of the peak C >= F_x - D, and the other side is
    treated equally. The total of each rest is `length`.
    """
    edges = line.edges
    cumulative = np.concatenate([np.zeros((len(line.masses), 1)), np.cumsum(line.masses, axis=1)], axis=1)
    peak_edge, tops = edges[peaks][:, None], np.take_along_axis(cumulative, peaks[:, None], axis=1)
    lowest = np.where(edges >= peak_edge, cumulative, tops - (peak_edge - edges))
    common = np.diff(np.maximum(0.0, (lowest - length).max(axis=0)))
    room = np.maximum(line.lengths - common, 0.0)
    rest = np.zeros_like(line.masses)
    for x, peak in enumerate(peaks):
        left = cumulative[x, peak] - common[:peak].sum()
        for side, total in ((np.arange(peak)[::-1], left), (np.arange(peak, len(room)), length - left)):
            before = np.cumsum(room[side]) - room[side]
            rest[x, side] = np.clip(total - before, 0.0, room[side])
    return common, rest


def windows(line: Line, gains: Array, length: float) -> Array:
    """Find the start of the leftmost window of this `length` with the largest gain, for each input."""
    edges = line.edges
    sums = np.concatenate([np.zeros((len(gains), 1)), np.cumsum(gains * line.lengths, axis=1)], axis=1)
    starts = np.unique(np.clip(np.concatenate([edges, edges - length]), 0.0, edges[-1] - length))
    gain = np.array([np.interp(starts + length, edges, row) - np.interp(starts, edges, row) for row in sums])
    best = gain >= gain.max(axis=1, keepdims=True) - 1e-12 * np.abs(sums).max(axis=1, keepdims=True)
    return np.asarray(starts[best.argmax(axis=1)])


def comb(starts: Array, length: float) -> list[tuple[float, tuple[int, ...]]]:
    """Decompose windows [a_x, a_x + D) that move right with x into partitions: (length, cuts) pairs.

    A comb has teeth at u, u + D, u + 2 D, ... Each window contains exactly one. Inputs that share a tooth are a block
    of a partition, whose length is that of the offsets u in [0, D) that give it.

    >>> comb(np.array([0.0, 0.0, 0.25]), 1.0)
    [(0.25, (0, 2, 3)), (0.75, (0, 3))]
    """
    if not length > 0:
        return []
    tooth = np.floor(starts / length)
    offset = np.clip(starts - tooth * length, 0.0, length)
    parts = []
    for low, high in pairwise(np.unique(np.concatenate([[0.0], offset, [length]])).tolist()):
        teeth = tooth + (offset > low)
        cuts = (0, *(np.flatnonzero(np.diff(teeth)) + 1).tolist(), len(starts))
        parts.append((high - low, cuts))
    return parts


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of the proof for a channel.

    - `values` : the utility of the channel, with a common part and the rest, after erasing the common part, with each
      input in one window, and of the mixture.
    - `mixture` : (probability, cuts) of its partitions.
    - `variation` : the total variation of the mixture.
    - `backward` : the largest violation of the order of windows, which is 0 except for rounding.
    - `lines` : the line of each step.
    - `common`, `starts`, `most` : the common part, and the windows and their length.
    """

    values: tuple[float, ...]
    mixture: tuple[tuple[float, tuple[int, ...]], ...]
    variation: float
    backward: float
    lines: tuple[Line, ...]
    common: Array
    starts: Array
    window_length: float


def prove(f: FDivergence, pair: Pair, matrix: Array, gain: float, window_length: float) -> Steps:
    """Compute the steps of the proof for a channel (k, m).

    pair : inputs in increasing order of likelihood ratio, all of different ratios.
    gain : e^epsilon - 1.
    window_length : D, at least the distance of its densities.
    """
    problem = Problem(f, pair, gain)
    line, ratio = problem.sorted(lay(matrix, gain))
    window_length = min(window_length, float(line.masses.sum(axis=1).mean()))
    common, rest = exchange(line, problem.peaks(ratio), window_length)
    combined, remainder = Line(line.lengths, common + rest), Line(line.lengths, rest)
    sorted_remainder, ratio = problem.sorted(remainder)
    leftmost = windows(sorted_remainder, problem.gains(ratio), window_length)
    starts = np.maximum.accumulate(leftmost)
    edges = np.unique(np.concatenate([sorted_remainder.edges, starts, starts + window_length]))
    in_window = (edges[:-1] >= starts[:, None]) & (edges[1:] <= starts[:, None] + window_length)
    filled = Line(np.diff(edges), np.where(in_window, np.diff(edges), 0.0))
    mixture, mixture_value, variation = [], 0.0, 0.0
    for length, cuts in comb(starts, window_length):
        blocks = np.array([[a <= x < b for x in range(len(starts))] for a, b in pairwise(cuts)], dtype=np.float64).T
        value = problem.value(Line(np.ones(len(cuts) - 1), blocks)) if len(cuts) > 2 else 0.0
        mixture.append((length * (gain + len(cuts) - 1), cuts))
        mixture_value, variation = mixture_value + length * value, variation + length * gain * (len(cuts) > 2)
    values = (*(problem.value(step) for step in (line, combined, remainder, filled)), mixture_value)
    backward, lines = float((starts - leftmost).max(initial=0.0)), (line, combined, remainder, sorted_remainder, filled)
    return Steps(values, tuple(mixture), variation, backward, lines, common, starts, window_length)
