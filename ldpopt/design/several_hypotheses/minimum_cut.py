"""Minimum cuts that find the best column under a cap on total variation, and the flow that proves it the best.

For profits h of the inputs (negative ones are losses) and multipliers nu >= 0 of the ordered pairs, every column q in
[1, E]^k has

    h.q - sum nu[x,x'] (q_x - q_x')_+  <=  sum h' + (E-1) sum h'_+,      h' = h - div z,  0 <= z <= nu,

because nu (a)_+ >= z a. Here z is a flow between the inputs, and div z is what each input sends less what it receives.
The maximum flow from profits to losses makes it an equality: the best column is E on one side of the minimum cut, and 1
on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array, Index

WHOLE = 2.0**30  # Flows are computed in whole numbers below this.
FINER = 2.0**-16  # A second pass routes what the first one left, in units this much finer: 2^-46 of the largest pair.
ARCS = 1 << 17  # About as many arcs are routed at a time.
Members = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Arcs between k inputs, a source k and a sink k + 1, ordered by tail, each with its reverse. starts : where each
    tail's arcs begin. inner : the arcs between inputs. supply, demand : the arcs from the source, and to the sink.
    """

    tail: Index
    head: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    inner: Index
    supply: Index
    demand: Index


@dataclass(frozen=True, eq=False)
class Network:
    """The network whose arcs between inputs have the capacities `pairs` (k, k): multipliers, zero on the diagonal.
    passes : 2 for flows good to 1e-13 of the largest pair; 1 where 1e-9 will do.
    """

    pairs: Array
    passes: int = 2

    @cached_property
    def _outward(self) -> Array:
        """(k,) the most that can leave each input, or reach it: a larger profit or loss makes no difference."""
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
        """What each input sends less what it receives, and the side of the minimum cut with profit left. profits : (n,
        k), a problem in each row; so are the answers. The flow z has 0 <= z <= pairs and moves as much of the profits
        as it can to where there is loss. Rows are routed many at a time, as one network of separate parts.
        """
        loads = np.clip(profits, -self._outward, self._outward)
        sent, side = np.zeros(profits.shape), profits > 0
        mixed = np.flatnonzero((loads.max(axis=1) > 0) & (loads.min(axis=1) < 0))
        step = max(1, ARCS // len(self._arcs.tail))
        for begin in range(0, len(mixed), step):
            rows = mixed[begin : begin + step]
            sent[rows], side[rows] = self._route(profits[rows], loads[rows])
        return sent, side

    def sent_and_sides(self, profits: Array) -> tuple[Enclosure, Members]:
        """Both answers of `route`, the first one enclosed."""
        middle, sides = self.route(profits)
        # These are sums of at most 2 (k - 1) floats, each at most its pair: their rounding is below this.
        hidden = 4 * len(self.pairs) * ULP * (self.pairs.sum(axis=0) + self.pairs.sum(axis=1))
        hidden = np.where((middle != 0).any(axis=1, keepdims=True), hidden, 0.0)
        return FLOAT.between(middle - hidden, middle + hidden), sides

    def _route(self, profits: Array, loads: Array) -> tuple[Array, Members]:
        n, k = profits.shape
        arcs = self._arcs
        tail, head = arcs.tail[arcs.inner], arcs.head[arcs.inner]
        limit = self.pairs[tail, head]
        capacity = np.zeros((n, len(arcs.tail)))
        capacity[:, arcs.inner] = limit
        capacity[:, arcs.supply], capacity[:, arcs.demand] = np.maximum(loads, 0.0), np.maximum(-loads, 0.0)
        unit = 2.0 ** np.ceil(np.log2(capacity.max(axis=1, keepdims=True) / WHOLE))
        net = np.zeros(capacity.shape)
        for _ in range(self.passes):
            net += self._maximum_flow(capacity - net, unit)
            unit = unit * FINER
        # Arcs and profits of the size of the last unit are rounding.
        tiny = 4 * unit / FINER
        z = np.zeros((n, k, k))
        z[:, tail, head] = np.clip(net[:, arcs.inner], 0.0, limit)
        sent = z.sum(axis=2) - z.sum(axis=1)
        free = np.zeros((n, k, k), dtype=bool)
        free[:, tail, head] = limit - net[:, arcs.inner] > tiny
        reached = profits - sent > tiny
        while True:
            wider = reached | (reached[:, None] @ free)[:, 0]
            if (wider == reached).all():
                return sent, reached
            reached = wider

    def _maximum_flow(self, capacity: Array, unit: Array) -> Array:
        """The net flow on every arc, minus that on its reverse, routed in whole `unit`s: (n, arcs)."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        n, k = len(capacity), len(self.pairs)
        whole = np.floor(np.clip(capacity / unit, 0.0, WHOLE)).astype(np.int32)
        head, starts, order = self._copies(n)
        nodes = n * k + 2
        network = csr_array((whole.ravel()[order], head, starts), shape=(nodes, nodes))
        flows = maximum_flow(network, nodes - 2, nodes - 1).flow
        flow = flows.data
        if len(flow) != len(order):
            flow = flows[np.repeat(np.arange(nodes), np.diff(starts)), head]
        net = np.empty(whole.size)
        net[order] = flow
        return net.reshape(whole.shape) * unit

    def _copies(self, n: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Index]:
        """Heads, starts and order of the arcs of n copies of the inputs that share one source and one sink."""
        arcs, k = self._arcs, len(self.pairs)
        own = int(arcs.starts[k])
        copy = np.arange(n)[:, None]
        local = arcs.head[:own]
        ends = np.arange(n * k)
        head = np.concatenate([np.where(local < k, local + copy * k, local - k + n * k).ravel(), ends, ends])
        sizes = np.concatenate([np.tile(np.diff(arcs.starts[: k + 1]), n), [n * k, n * k]])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        number = copy * len(arcs.tail) + np.arange(len(arcs.tail))
        order = np.concatenate(
            [number[:, part].ravel() for part in np.split(np.arange(len(arcs.tail)), [own, own + k])]
        )
        return head.astype(np.int32), starts.astype(np.int32), order
