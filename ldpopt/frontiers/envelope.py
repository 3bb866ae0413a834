"""The frontier in eta as it is: corners, straight between them, by the envelope theorem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.deadline import Progress, watched
from ldpopt.design import Divergence, LocalDP
from ldpopt.design.methods.blocks import Blocks
from ldpopt.design.methods.coins import Cut
from ldpopt.design.problems.problem import pose
from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.errors import invalid
from ldpopt.results import Result

MOST_INPUTS = 2000
"""Inputs of distinct ratio for which all corners are looked for; more take minutes."""


@dataclass(frozen=True, eq=False)
class Corner(Result):
    """A partition that is optimal for a cap: its total variation `eta`, what it keeps, and its number of blocks.

    >>> Corner(0.5, 0.1, 3).blocks
    3
    """

    eta: float
    value: float
    blocks: int


@dataclass(frozen=True, eq=False)
class Envelope(Result):
    """The optimum for every cap eta at one epsilon: straight between its corners, flat after the last [SPR].

    corners : by eta, beginning with erasure at (0, 0). Values are those of partitions, not of repaired channels, and
    carry no proof; `optimal_channel` gives one for each cap. complete : False where the time was over before all
    corners were found; the optimum may then be above the straight lines between those that were.
    """

    utility: Divergence
    epsilon: float
    corners: tuple[Corner, ...]
    complete: bool = True

    def _columns(self) -> dict[str, list[Any]]:
        return {name: [getattr(one, name) for one in self.corners] for name in ("eta", "value", "blocks")}

    def at(self, eta: float) -> float:
        """The optimum for a cap in [0, 1], in the unit of the divergence.

        >>> from ldpopt.divergences import KL
        >>> found = envelope(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), 1.0)
        >>> round(found.at(0.3), 6), len(found.corners)
        (0.029225, 3)
        """
        eta = unit_interval(eta, "eta")
        return float(np.interp(eta, [one.eta for one in self.corners], [one.value for one in self.corners]))


def envelope(
    utility: Divergence, epsilon: float, *, time_limit: float | None = None, progress: Progress = False
) -> Envelope:
    """All corners of the optimum as a function of the cap eta, for one epsilon in nats [SPR].

    utility : between finite distributions with up to 2000 different likelihood ratios; `InvalidInput` for others.
    For a hockey stick or another piecewise linear divergence the corners may be collinear up to rounding.
    time_limit, progress : as for `optimal_channel`; `complete` says whether the time was enough.

    >>> from ldpopt.divergences import KL
    >>> found = envelope(Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]), 2.0)
    >>> [(round(one.eta, 4), round(one.value, 4), one.blocks) for one in found.corners]
    [(0.0, 0.0, 1), (0.6805, 0.368, 3)]
    """
    if not isinstance(utility, Divergence) or utility.continuous:
        raise invalid("utility", "a Divergence of finite distributions", utility)
    epsilon = positive_epsilon(epsilon)
    pair = pose(utility, LocalDP(epsilon)).reduction.pair
    if len(pair) > MOST_INPUTS:
        raise invalid("utility", f"at most {MOST_INPUTS} different likelihood ratios", len(pair))
    blocks = Blocks(utility.f, pair, epsilon)
    level = blocks.level
    with watched(time_limit, progress, "finding corners") as deadline:
        best = blocks.coin(None, deadline.inner).parts[0][1]
        found: dict[int, Cut] = {1: Cut((0, len(pair)), 0.0), best.blocks: best}
        waiting = [(0.0, best.variation(level))]
        while waiting and not deadline.over():
            left = sum(high - low for low, high in waiting)
            deadline.tell(1 - left / best.variation(level) if left > 0 else 1.0)
            low, high = waiting.pop()
            if not low < high:
                continue
            # The edge above the middle has its ends on the envelope; what is left lies on both sides of it.
            ends = [cut for _, cut in blocks.coin((low + high) / 2, deadline.inner).parts]
            found |= {cut.blocks: cut for cut in ends if cut.blocks not in found}
            spans = [cut.variation(level) for cut in ends]
            waiting += [(low, min(spans)), (max(spans), high)]
    corners = sorted((cut.variation(level), cut.rate(level), cut.blocks) for cut in found.values())
    return Envelope(utility, epsilon, tuple(Corner(*one) for one in corners), not deadline.late)
