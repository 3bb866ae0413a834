"""Minimum cuts that give the best column under a cap on total variation, and the flow that proves it optimal.

For profits h of the inputs (negative ones are losses) and multipliers nu >= 0 of the ordered pairs, every column q in
[1, E]^k has

    h.q - sum nu[x,x'] (q_x - q_x')_+  <=  sum h' + (E-1) sum h'_+,      h' = h - div z,  0 <= z <= nu,

because nu (a)_+ >= z a. Here z is a flow between the inputs, and div z is the net outflow of each input. The maximum
flow from profits to losses makes it an equality: the best column is E on one side of the minimum cut, and 1 on the
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array, Index

MAX_INTEGER_FLOW = 2.0**30  # Flows are computed in integers below this.
SECOND_PASS_UNIT = 2.0**-16  # A second pass routes the remainder in units this much finer: 2^-46 of the largest pair.
ARCS_PER_BATCH = 1 << 17
Members = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Arcs between k inputs, a source k and a sink k + 1, ordered by tail, each with its reverse.

    - `starts` : where each tail's arcs begin.
    - `inner` : the arcs between inputs.
    - `supply`, `demand` : the arcs from the source, and to the sink.
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

    passes : 2 for flows good to 1e-13 of the largest pair; 1 where 1e-9 is enough.
    """

    pairs: Array
    passes: int = 2

    @cached_property
    def _outward(self) -> Array:
        """The largest flow (k,) out of each input, or into it: a larger profit or loss makes no difference."""
        return np.asarray(np.maximum(self.pairs.sum(axis=1), self.pairs.sum(axis=0)))

    @cached_property
    def _arcs(self) -> _Arcs:
        k = len(self.pairs)
        is_arc = np.zeros((k + 2, k + 2), dtype=bool)
        is_arc[:k, :k] = (self.pairs > 0) | (self.pairs.T > 0)
        is_arc[:k, k:] = is_arc[k:, :k] = True
        tail, head = np.nonzero(is_arc)
        number = np.zeros((k + 2, k + 2), dtype=np.intp)
        number[tail, head] = np.arange(len(tail))
        starts = np.concatenate([[0], np.cumsum(is_arc.sum(axis=1))]).astype(np.int32)
        inner = np.flatnonzero((tail < k) & (head < k))
        supply, demand = number[k, :k], number[:k, k + 1]
        return _Arcs(tail, head.astype(np.int32), starts, inner, supply, demand)

    def route(self, profits: Array) -> tuple[Array, Members]:
        """Compute each input's net outflow, and the side of the minimum cut with profit left.

        profits : (n, k), a problem in each row; so are the answers. The flow z has 0 <= z <= pairs and moves as much of
        the profits as it can to where there is loss. Many rows are routed at a time, as one network of separate parts.
        """
        loads = np.clip(profits, -self._outward, self._outward)
        net_outflow, is_source_side = np.zeros(profits.shape), profits > 0
        mixed_columns = np.flatnonzero((loads.max(axis=1) > 0) & (loads.min(axis=1) < 0))
        step = max(1, ARCS_PER_BATCH // len(self._arcs.tail))
        for batch_start in range(0, len(mixed_columns), step):
            rows = mixed_columns[batch_start : batch_start + step]
            net_outflow[rows], is_source_side[rows] = self._route(profits[rows], loads[rows])
        return net_outflow, is_source_side

    def sent_and_sides(self, profits: Array) -> tuple[Enclosure, Members]:
        """Compute both answers of `route`, with the first one enclosed."""
        net_outflow, sides = self.route(profits)
        # Outflows are sums of at most 2 (k - 1) floats, each at most its pair: their rounding is below this.
        rounding_error = 4 * len(self.pairs) * ULP * (self.pairs.sum(axis=0) + self.pairs.sum(axis=1))
        rounding_error = np.where((net_outflow != 0).any(axis=1, keepdims=True), rounding_error, 0.0)
        return FLOAT.between(net_outflow - rounding_error, net_outflow + rounding_error), sides

    def _route(self, profits: Array, loads: Array) -> tuple[Array, Members]:
        n, k = profits.shape
        arcs = self._arcs
        tail, head = arcs.tail[arcs.inner], arcs.head[arcs.inner]
        limit = self.pairs[tail, head]
        capacity = np.zeros((n, len(arcs.tail)))
        capacity[:, arcs.inner] = limit
        capacity[:, arcs.supply], capacity[:, arcs.demand] = np.maximum(loads, 0.0), np.maximum(-loads, 0.0)
        unit = 2.0 ** np.ceil(np.log2(capacity.max(axis=1, keepdims=True) / MAX_INTEGER_FLOW))
        net = np.zeros(capacity.shape)
        for _ in range(self.passes):
            net += self._maximum_flow(capacity - net, unit)
            unit = unit * SECOND_PASS_UNIT
        # Arcs and profits of the size of the last unit are rounding.
        rounding = 4 * unit / SECOND_PASS_UNIT
        z = np.zeros((n, k, k))
        z[:, tail, head] = np.clip(net[:, arcs.inner], 0.0, limit)
        net_outflow = z.sum(axis=2) - z.sum(axis=1)
        has_capacity = np.zeros((n, k, k), dtype=bool)
        has_capacity[:, tail, head] = limit - net[:, arcs.inner] > rounding
        is_reached = profits - net_outflow > rounding
        while True:
            is_reached_next = is_reached | (is_reached[:, None] @ has_capacity)[:, 0]
            if (is_reached_next == is_reached).all():
                return net_outflow, is_reached
            is_reached = is_reached_next

    def _maximum_flow(self, capacity: Array, unit: Array) -> Array:
        """Compute the net flow on every arc, minus that on its reverse, routed in integer `unit`s: (n, arcs)."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        n, k = len(capacity), len(self.pairs)
        integer_capacity = np.floor(np.clip(capacity / unit, 0.0, MAX_INTEGER_FLOW)).astype(np.int32)
        head, starts, order = self._copies(n)
        nodes = n * k + 2
        graph = csr_array((integer_capacity.ravel()[order], head, starts), shape=(nodes, nodes))
        flows = maximum_flow(graph, nodes - 2, nodes - 1).flow
        flow = flows.data
        if len(flow) != len(order):
            flow = flows[np.repeat(np.arange(nodes), np.diff(starts)), head]
        net = np.empty(integer_capacity.size)
        net[order] = flow
        return net.reshape(integer_capacity.shape) * unit

    def _copies(self, n: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Index]:
        """List heads, starts and order of the arcs of n copies of the inputs that share one source and one sink."""
        arcs, k = self._arcs, len(self.pairs)
        arcs_per_copy = int(arcs.starts[k])
        copy = np.arange(n)[:, None]
        local_head = arcs.head[:arcs_per_copy]
        copied_inputs = np.arange(n * k)
        head = np.concatenate(
            [
                np.where(local_head < k, local_head + copy * k, local_head - k + n * k).ravel(),
                copied_inputs,
                copied_inputs,
            ]
        )
        sizes = np.concatenate([np.tile(np.diff(arcs.starts[: k + 1]), n), [n * k, n * k]])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        number = copy * len(arcs.tail) + np.arange(len(arcs.tail))
        order = np.concatenate(
            [
                number[:, part].ravel()
                for part in np.split(np.arange(len(arcs.tail)), [arcs_per_copy, arcs_per_copy + k])
            ]
        )
        return head.astype(np.int32), starts.astype(np.int32), order
