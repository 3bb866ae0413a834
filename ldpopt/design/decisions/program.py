"""Programs of expected losses whose entries are of very different sizes, in units that a solver can handle.

The excess of a channel over the best decision of every input is at least 0 in every entry, E[x, y] = L[x, y] - min
L[x]:

    min over Q of max over priors j of  d_j + sum_x p_jx sum_y E[x, y] Q[x, y],     d_j = sum_x p_jx min L[x] - c

with the largest of the d_j equal to 0. The optimum loses at most V, the excess of a known channel, so that an entry
with p E far above V is hardly used. Its cost in the program is `steep` V, which a solver can distinguish from V. Less
is lost then, so that the multipliers still bound the true loss. If the program's channel has almost no weight there, it
is optimal for the true one.

`ratio_program` is the program under pure LDP alone. A column has a ceiling u and entries a u + (1 - a) w, a =
e^-epsilon, 0 <= w <= u. The cost of its floor is that of a ceiling, so no ratio is too large, nor any loss at it.

    max  -t   s.t.  a sum_y u_y + (1 - a) sum_y w[x, y] = 1   (rho),   w[x, y] <= u_y,   cost_j(u, w) <= t   (omega)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.design.solve import solve_linear
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array

COST_LIMITS = (
    1e5,
    1e7,
)  # In units of the known excess, above which a cost is cut; the second where the first matters.
CONIC_COST_LIMITS = (1e2, 1e4)  # For programs with cones, which are solved to fewer digits.
PROHIBITIVE_FACTOR = 1e3  # In units of a common decision's excess; a larger cost needs these programs.
MAX_RESCALINGS = 12  # A program is solved again in units nearer to its optimum.


@dataclass(frozen=True, eq=False)
class Excess:
    """The loss beyond the best decision of every input.

    - `priors` : (j, k).
    - `base` : (j, k) the losses of the best decisions, raised for a prior that lies far below the others.
    - `costs` : (j, k, m) p E.
    - `ahead` : (j,) the d.
    - `unit` : V.
    """

    priors: Array
    base: Array
    costs: Array
    ahead: Array
    unit: float

    @classmethod
    def from_loss(cls, priors: Array, loss: Array) -> Excess:
        """Compute the excess, in units of that of the best common decision for all inputs.

        priors : (j, k). loss : (k, m).
        """
        return cls._over_base(priors, loss, np.broadcast_to(loss.min(axis=1), priors.shape))

    def raise_inactive(self, loss: Array) -> Excess | None:
        """Raise the losses of an inactive prior, which lies far below the others.

        The distance would hide its other losses. It is None without such a prior.
        """
        shortfall = np.maximum(-self.ahead - PROHIBITIVE_FACTOR * self.unit, 0.0)
        raised_excess = (
            Excess._over_base(self.priors, loss, self.base + shortfall[:, None]) if shortfall.any() else None
        )
        return raised_excess if raised_excess is not None and 0 < raised_excess.unit < np.inf else None

    @classmethod
    def _over_base(cls, priors: Array, loss: Array, base: Array) -> Excess:
        with np.errstate(over="ignore", invalid="ignore"):
            costs = np.where(priors[:, :, None] > 0, priors[:, :, None] * (loss - base[:, :, None]), 0.0)
            first = (priors * base).sum(axis=1)
        excess = cls(priors, base, costs, first - first.max(), 0.0)
        return replace(
            excess, unit=excess.worst_excess(constant_channel(loss.shape, best_common_decision(priors, loss)))
        )

    def worst_excess(self, matrix: Array) -> float:
        """Compute the excess of a channel under the worst of the priors.

        It is at most about 0 if every input has its best decision.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            losses = np.where(matrix > 0, self.costs * matrix, 0.0).sum(axis=(1, 2))
            return float((self.ahead + losses).max())

    def over_common_decision(self, loss: Array) -> Excess | None:
        """Compute the excess over the best common decision for all inputs.

        It is in units of that decision's loss, or None if the loss is 0. Losses that outweigh each other are visible
        here. An example is a large loss of a decision that gains much elsewhere.
        """
        common_decision = best_common_decision(self.priors, loss)
        unit = abs(float((self.priors @ loss[:, common_decision]).max()))
        base = np.broadcast_to(loss[:, common_decision], self.priors.shape)
        return replace(Excess._over_base(self.priors, loss, base), unit=unit) if 0 < unit < np.inf else None

    def prohibitive(self, loss: Array) -> bool:
        """Return True if the usual program, in units of the largest loss, would lose the decisive part."""
        common_loss = abs(float((self.priors @ loss[:, best_common_decision(self.priors, loss)]).max()))
        largest = np.abs(self.priors[:, :, None] * loss).max()
        return bool(largest > PROHIBITIVE_FACTOR * min(self.unit, common_loss))

    def scale(self, prior: int) -> float:
        """Return the units of one prior's criterion: its distance ahead, or the usual ones."""
        return max(self.unit, abs(float(self.ahead[prior])))

    def gains(self, steep: float) -> Array:
        """Compute (j, m, k) minus the costs in units of V, cut at `steep`.

        The d_j of the criteria are in every row.
        """
        ahead = self.ahead[:, None] * self.priors
        costs = np.clip(self.costs / self.unit, -steep, steep) + np.maximum(ahead / self.unit, -steep)[:, :, None]
        return -np.swapaxes(costs, 1, 2)

    def rows(self, multipliers: Array, weights: Array, includes_ahead: bool = False) -> Array:
        """Convert (k,) multipliers of rows from units of V to those of the losses.

        weights : (j,) of the priors. includes_ahead : True if the program had the d_j in its gains, not separately.
        """
        rows = multipliers * self.unit - weights @ (self.priors * self.base)
        return np.asarray(rows + (weights * self.ahead) @ self.priors if includes_ahead else rows)


def constant_channel(shape: tuple[int, ...], decision: int) -> Array:
    """Build (k, m) the channel of one decision for all inputs."""
    channel = np.zeros(shape)
    channel[:, decision] = 1.0
    return channel


def best_common_decision(priors: Array, loss: Array) -> int:
    """Find the common decision for all inputs with the least loss under the worst prior."""
    with np.errstate(over="ignore", invalid="ignore"):
        return int(np.nan_to_num((priors @ loss).max(axis=0), nan=np.inf).argmin())


Solution = tuple[Array, Array, Array]
"""A channel (k, m), and row multipliers (k,) and weights of the priors (j,) that bound the loss."""


def ratio_program(excess: Excess, epsilon: float) -> list[Solution]:
    """Compute the candidate channels under epsilon-LDP alone, and multipliers.

    The multipliers may bound the loss. Costs that are cut lose less than the true ones, and entries that are left out
    lose more: where both programs agree, both are right. They are solved again in smaller units while that gives a far
    smaller excess. Raises `SolverError` if no solver succeeds.
    """
    solutions: list[Solution] = []
    failure: SolverError | None = None
    for _ in range(MAX_RESCALINGS):
        smallest_excess = excess.unit
        is_cut = np.abs(excess.costs).max() > COST_LIMITS[-1] * excess.unit
        for is_cut_kept in (True, False) if is_cut else (True,):
            try:
                solutions.append(_solve_ratio_program(excess, epsilon, COST_LIMITS[-1], is_cut_kept))
                smallest_excess = min(smallest_excess, excess.worst_excess(solutions[-1][0]))
            except SolverError as error:
                failure = error
        if not 0 < smallest_excess < 1e-2 * excess.unit:
            break
        excess = replace(excess, unit=smallest_excess)
    if not solutions and failure is not None:
        raise failure
    return solutions


def _solve_ratio_program(excess: Excess, epsilon: float, steep: float, keeps_cut_costs: bool) -> Solution:
    """Solve the program in units of the excess's V; the multipliers are in the units of the utility.

    keeps_cut_costs : True if costs are cut at `steep`; otherwise, larger costs are left out.
    """
    from scipy import sparse

    priors, k, m = excess.costs.shape
    a, inner = math.exp(-epsilon), -math.expm1(-epsilon)
    scales = np.array([excess.scale(j) for j in range(priors)])
    with np.errstate(over="ignore"):
        floor = a * excess.costs.sum(axis=1) / scales[:, None]
        rise = inner * excess.costs / scales[:, None, None]
    is_used = np.full(m, True) if keeps_cut_costs else (floor <= steep).all(axis=0)
    is_free = np.full((k, m), True) if keeps_cut_costs else is_used & (rise <= steep).all(axis=0)
    column_index, (x, y) = np.cumsum(is_used) - 1, np.nonzero(is_free)
    columns, cells = int(is_used.sum()), len(x)
    if not columns:
        raise SolverError("linear program on the decisions: every decision is prohibitive for some input")
    # Of the entries w[x, y], each is at most its column's ceiling.
    ceilings = sparse.csr_array((np.ones(cells), (np.arange(cells), column_index[y])), (cells, columns))
    limits = sparse.hstack([-ceilings, sparse.eye_array(cells), sparse.csr_array((cells, 1))])
    costs = np.hstack([np.clip(floor, -steep, steep)[:, is_used], np.clip(rise, -steep, steep)[:, is_free]])
    limits = sparse.vstack([limits, sparse.csr_array(np.column_stack([costs, -excess.unit / scales]))], format="csr")
    sums = sparse.csr_array((np.full(cells, inner), (x, np.arange(cells))), (k, cells))
    equal = sparse.hstack([np.full((k, columns), a), sums, sparse.csr_array((k, 1))], format="csr")
    gains = np.append(np.zeros(columns + cells), -1.0)
    upper = np.append(np.zeros(cells), -excess.ahead / scales)
    values, _, row_multipliers, limit_multipliers = solve_linear(
        gains, equal, np.ones(k), limits, upper, "linear program on the decisions"
    )
    ceiling, entries = np.zeros(m), np.zeros((k, m))
    ceiling[is_used] = np.maximum(values[:columns], 0.0)
    entries[is_free] = values[columns:-1]
    entries = np.clip(entries, 0.0, ceiling)
    entries = np.where(entries >= (1 - 1e-9) * ceiling, ceiling, np.where(entries <= 1e-9 * ceiling, 0.0, entries))
    # A rare decision is usually a solver's noise, but may matter.
    candidates = [np.where(ceiling > threshold, a * ceiling + inner * entries, 0.0) for threshold in (1e-9, 0.0)]
    matrices = [
        candidate / candidate.sum(axis=1, keepdims=True)
        for candidate in candidates
        if (candidate.sum(axis=1) > 0).all()
    ]
    if not matrices:
        raise SolverError("linear program on the decisions: the solver gave some input no decision at all")
    matrix = min(matrices, key=excess.worst_excess)
    weights = np.maximum(limit_multipliers[-priors:], 0.0) * (excess.unit / scales)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(priors, 1 / priors)
    return matrix, excess.rows(row_multipliers, weights), weights
