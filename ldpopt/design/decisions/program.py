"""Programs of expected losses whose entries are of very different sizes, in units in which a solver sees them.

What a channel loses beyond the best decision of every input is at least 0 in every entry, E[x, y] = L[x, y] - min L[x]:

    min over Q of max over priors j of  d_j + sum_x p_jx sum_y E[x, y] Q[x, y],     d_j = sum_x p_jx min L[x] - c

with the largest of the d_j equal to 0. No more than V, the excess of a known channel, is lost at the optimum, so that
an entry with p E far above V is hardly used. It is posed as `steep` V, which a solver can tell from V. Less is lost
then, so that the multipliers still bound the true loss; where the program's channel has next to nothing there, it is
optimal for the true one.

`ratio_program` is the program under pure LDP alone. A column has a ceiling u and entries a u + (1 - a) w, a =
e^-epsilon, 0 <= w <= u, and the cost of its floor is that of a ceiling: no ratio is too large, nor any loss at it.

    max  -t   s.t.  a sum_y u_y + (1 - a) sum_y w[x, y] = 1   (rho),   w[x, y] <= u_y,   cost_j(u, w) <= t   (omega)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.design.solve import solve_linear
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array

STEEP = (1e5, 1e7)  # Above how many times the known excess a cost is cut: the second where the first decides something
CONIC_STEEP = (1e2, 1e4)  # The same for programs with cones, which are solved to fewer digits
PROHIBITIVE = 1e3  # A cost that is more than this many times the excess of one decision for all needs these programs
RESCALED = 12  # How often, at most, a program is posed again in units nearer to its optimum


@dataclass(frozen=True, eq=False)
class Excess:
    """What is lost beyond the best decision of every input.

    priors : (j, k). base : (j, k) the losses of the best decisions, for a prior that lies far below the others raised.
    costs : (j, k, m) p E. ahead : (j,) the d. unit : V.
    """

    priors: Array
    base: Array
    costs: Array
    ahead: Array
    unit: float

    @classmethod
    def of(cls, priors: Array, loss: Array) -> Excess:
        """In units of the excess of the best decision for all inputs alike. priors : (j, k). loss : (k, m)."""
        return cls._above(priors, loss, np.broadcast_to(loss.min(axis=1), priors.shape))

    def raised(self, loss: Array) -> Excess | None:
        """The same, where a prior lies far below the others and decides nothing, with what it loses raised to them.

        How far it is below would hide what else it loses. None where there is no such prior.
        """
        below = np.maximum(-self.ahead - PROHIBITIVE * self.unit, 0.0)
        raised = Excess._above(self.priors, loss, self.base + below[:, None]) if below.any() else None
        return raised if raised is not None and 0 < raised.unit < np.inf else None

    @classmethod
    def _above(cls, priors: Array, loss: Array, base: Array) -> Excess:
        with np.errstate(over="ignore", invalid="ignore"):
            costs = np.where(priors[:, :, None] > 0, priors[:, :, None] * (loss - base[:, :, None]), 0.0)
            first = (priors * base).sum(axis=1)
        made = cls(priors, base, costs, first - first.max(), 0.0)
        return replace(made, unit=made.lost(constant_channel(loss.shape, best_alike(priors, loss))))

    def lost(self, matrix: Array) -> float:
        """The excess of a channel under the worst of the priors; at most about 0 where every input has its best."""
        with np.errstate(over="ignore", invalid="ignore"):
            paid = np.where(matrix > 0, self.costs * matrix, 0.0).sum(axis=(1, 2))
            return float((self.ahead + paid).max())

    def beside(self, loss: Array) -> Excess | None:
        """The same beyond the best decision for all inputs alike, in units of its loss, or None where that is 0.

        Losses that outweigh each other, such as a large loss of a decision that gains much elsewhere, are seen here.
        """
        alike = best_alike(self.priors, loss)
        unit = abs(float((self.priors @ loss[:, alike]).max()))
        base = np.broadcast_to(loss[:, alike], self.priors.shape)
        return replace(Excess._above(self.priors, loss, base), unit=unit) if 0 < unit < np.inf else None

    def prohibitive(self, loss: Array) -> bool:
        """Whether the usual program, in units of the largest loss, would not see what decides."""
        alike = abs(float((self.priors @ loss[:, best_alike(self.priors, loss)]).max()))
        largest = np.abs(self.priors[:, :, None] * loss).max()
        return bool(largest > PROHIBITIVE * min(self.unit, alike))

    def scale(self, prior: int) -> float:
        """The units of one prior's criterion: of how far it is ahead, or the usual ones."""
        return max(self.unit, abs(float(self.ahead[prior])))

    def gains(self, steep: float) -> Array:
        """(j, m, k) minus the costs in units of V, cut at `steep`, with the d_j of the criteria in every row."""
        ahead = self.ahead[:, None] * self.priors
        costs = np.clip(self.costs / self.unit, -steep, steep) + np.maximum(ahead / self.unit, -steep)[:, :, None]
        return -np.swapaxes(costs, 1, 2)

    def rows(self, multipliers: Array, weights: Array, ahead: bool = False) -> Array:
        """(k,) multipliers of the rows for the losses themselves, from those of a program in units of V.

        weights : (j,) of the priors. ahead : whether the program had the d_j in its gains, not beside them.
        """
        rows = multipliers * self.unit - weights @ (self.priors * self.base)
        return np.asarray(rows + (weights * self.ahead) @ self.priors if ahead else rows)


def constant_channel(shape: tuple[int, ...], decision: int) -> Array:
    """(k, m) the channel of one decision for all inputs."""
    channel = np.zeros(shape)
    channel[:, decision] = 1.0
    return channel


def best_alike(priors: Array, loss: Array) -> int:
    """The decision whose loss is least under the worst of the priors when it is taken for all inputs."""
    with np.errstate(over="ignore", invalid="ignore"):
        return int(np.nan_to_num((priors @ loss).max(axis=0), nan=np.inf).argmin())


Solution = tuple[Array, Array, Array]
"""A channel (k, m), and row multipliers (k,) and weights of the priors (j,) that bound the loss."""


def ratio_program(excess: Excess, epsilon: float) -> list[Solution]:
    """The channels that may be best under epsilon-LDP alone, and multipliers that may bound the loss.

    Costs that are cut lose less than the true ones, and entries that are left out lose more: where both programs
    agree, both are right. They are posed again in smaller units while they find a far smaller excess. Raises
    `SolverError` where no solver answers.
    """
    found: list[Solution] = []
    failure: SolverError | None = None
    for _ in range(RESCALED):
        least = excess.unit
        cut = np.abs(excess.costs).max() > STEEP[-1] * excess.unit
        for whole in (True, False) if cut else (True,):
            try:
                found.append(_solved(excess, epsilon, STEEP[-1], whole))
                least = min(least, excess.lost(found[-1][0]))
            except SolverError as error:
                failure = error
        if not 0 < least < 1e-2 * excess.unit:
            break
        excess = replace(excess, unit=least)
    if not found and failure is not None:
        raise failure
    return found


def _solved(excess: Excess, epsilon: float, steep: float, whole: bool) -> Solution:
    """The program in units of the excess's V, with the multipliers in the units of the utility itself.

    whole : costs are cut at `steep`; otherwise, what would cost more is left out.
    """
    from scipy import sparse

    priors, k, m = excess.costs.shape
    a, inner = math.exp(-epsilon), -math.expm1(-epsilon)
    scales = np.array([excess.scale(j) for j in range(priors)])
    with np.errstate(over="ignore"):
        floor = a * excess.costs.sum(axis=1) / scales[:, None]
        rise = inner * excess.costs / scales[:, None, None]
    used = np.full(m, True) if whole else (floor <= steep).all(axis=0)
    risen = np.full((k, m), True) if whole else used & (rise <= steep).all(axis=0)
    place, (x, y) = np.cumsum(used) - 1, np.nonzero(risen)
    columns, cells = int(used.sum()), len(x)
    if not columns:
        raise SolverError("linear program on the decisions: every decision is prohibitive for some input")
    # Of the entries w[x, y], each is at most its column's ceiling.
    ceilings = sparse.csr_array((np.ones(cells), (np.arange(cells), place[y])), (cells, columns))
    limits = sparse.hstack([-ceilings, sparse.eye_array(cells), sparse.csr_array((cells, 1))])
    costs = np.hstack([np.clip(floor, -steep, steep)[:, used], np.clip(rise, -steep, steep)[:, risen]])
    limits = sparse.vstack([limits, sparse.csr_array(np.column_stack([costs, -excess.unit / scales]))], format="csr")
    sums = sparse.csr_array((np.full(cells, inner), (x, np.arange(cells))), (k, cells))
    equal = sparse.hstack([np.full((k, columns), a), sums, sparse.csr_array((k, 1))], format="csr")
    gains = np.append(np.zeros(columns + cells), -1.0)
    most = np.append(np.zeros(cells), -excess.ahead / scales)
    values, _, paid, charged = solve_linear(gains, equal, np.ones(k), limits, most, "linear program on the decisions")
    ceiling, entries = np.zeros(m), np.zeros((k, m))
    ceiling[used] = np.maximum(values[:columns], 0.0)
    entries[risen] = values[columns:-1]
    entries = np.clip(entries, 0.0, ceiling)
    entries = np.where(entries >= (1 - 1e-9) * ceiling, ceiling, np.where(entries <= 1e-9 * ceiling, 0.0, entries))
    # A rare decision is mostly a solver's noise, but may be worth a lot.
    kept = [np.where(ceiling > least, a * ceiling + inner * entries, 0.0) for least in (1e-9, 0.0)]
    made = [each / each.sum(axis=1, keepdims=True) for each in kept if (each.sum(axis=1) > 0).all()]
    if not made:
        raise SolverError("linear program on the decisions: the solver gave some input no decision at all")
    matrix = min(made, key=excess.lost)
    weights = np.maximum(charged[-priors:], 0.0) * (excess.unit / scales)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(priors, 1 / priors)
    return matrix, excess.rows(paid, weights), weights
