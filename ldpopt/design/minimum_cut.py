"""Minimum cuts that price a column under a cap on total variation: the best subset, and the flow that proves it.

For profits h of the inputs and multipliers nu of the ordered pairs, every column q in [1, E]^k has

    h.q - sum nu[x,x'] (q_x - q_x')_+  <=  sum h' + (E-1) sum h'_+,      h' = h - div z,  0 <= z <= nu,

because nu (a)_+ >= z a. The flow z from profits to losses that leaves the least of h'_+ makes it an equality: the
maximum flow, and the best column is E on one side of the minimum cut, 1 on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array, Index

WHOLE = 2.0**30
"""Flows are routed in whole numbers below this."""

FINER = 2.0**-16
"""What a flow leaves is routed once more, in units finer by this: 2^-46 of the largest pair."""

Members = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Arcs between k inputs, a source k and a sink k + 1, ordered by tail, each with its reverse.

    starts : where each tail's arcs begin. inner : those between inputs. supply, demand : from the source, to the sink.
    """

    tail: Index
    head: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    inner: Index
    supply: Index
    demand: Index


@dataclass(frozen=True, eq=False)
class Network:
    """The arcs that multipliers `pairs` (k, k), non-negative and zero on the diagonal, put between inputs.

    passes : 2 for flows good to 1e-13 of the largest pair; 1 where 1e-9 will do.
    """

    pairs: Array
    passes: int = 2

    @cached_property
    def _outward(self) -> Array:
        """What can leave each input, or reach it: no profit or loss above that matters."""
        return np.asarray(np.maximum(self.pairs.sum(axis=1), self.pairs.sum(axis=0)))

    @cached_property
    def _arcs(self) -> _Arcs:
        k = len(self.pairs)
        joined = np.zeros((k + 2, k + 2), dtype=bool)
        joined[:k, :k] = (self.pairs > 0) | (self.pairs.T > 0)
        joined[:k, k:] = joined[k:, :k] = True
        tail, head = np.nonzero(joined)
        number = np.zeros((k + 2, k + 2), dtype=np.intp)
        number[tail, head] = np.arange(len(tail))
        starts = np.concatenate([[0], np.cumsum(joined.sum(axis=1))]).astype(np.int32)
        inner = np.flatnonzero((tail < k) & (head < k))
        supply, demand = number[k, :k], number[:k, k + 1]
        return _Arcs(tail, head.astype(np.int32), starts, inner, supply, demand)

    def route(self, profits: Array) -> tuple[Array, Members]:
        """What each input sends less what it receives, (k,), and the side of the minimum cut that keeps its profit.

        The flow z has 0 <= z <= pairs and moves as much of the profits (k,) as it can to where there is loss.
        """
        k = len(profits)
        loads = np.clip(profits, -self._outward, self._outward)
        if loads.max() <= 0 or loads.min() >= 0:
            return np.zeros(k), profits > 0
        arcs = self._arcs
        tail, head = arcs.tail[arcs.inner], arcs.head[arcs.inner]
        limit = self.pairs[tail, head]
        capacity = np.zeros(len(arcs.tail))
        capacity[arcs.inner] = limit
        capacity[arcs.supply], capacity[arcs.demand] = np.maximum(loads, 0.0), np.maximum(-loads, 0.0)
        unit = 2.0 ** np.ceil(np.log2(float(capacity.max()) / WHOLE))
        net = np.zeros(len(capacity))
        for _ in range(self.passes):
            net += self._maximum_flow(capacity - net, unit)
            unit *= FINER
        # Arcs and profits of the size of the last unit are rounding.
        tiny = 4 * unit / FINER
        z = np.clip(net[arcs.inner], 0.0, limit)
        sent = np.asarray(np.bincount(tail, z, k) - np.bincount(head, z, k), dtype=np.float64)
        free = np.zeros((k, k), dtype=bool)
        free[tail, head] = limit - net[arcs.inner] > tiny
        reached = profits - sent > tiny
        while True:
            wider = reached | free[reached].any(axis=0)
            if (wider == reached).all():
                return sent, np.asarray(reached)
            reached = wider

    def _maximum_flow(self, capacity: Array, unit: float) -> Array:
        """The net flow on every arc, minus that on its reverse, routed in whole `unit`s."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        arcs = self._arcs
        n = len(arcs.starts) - 1
        whole = np.floor(np.clip(capacity / unit, 0.0, WHOLE)).astype(np.int32)
        found = maximum_flow(csr_array((whole, arcs.head, arcs.starts), shape=(n, n)), n - 2, n - 1)
        flow = found.flow
        if len(flow.data) != len(arcs.tail):
            return np.asarray(flow.toarray()[arcs.tail, arcs.head] * unit)
        return np.asarray(flow.data * unit)
