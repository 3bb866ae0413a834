"""The exact optimum as a function of eta: by the envelope theorem, a curve of straight lines between its corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.design import Divergence, LocalDP
from ldpopt.design.problems.problem import build_problem
from ldpopt.design.two_hypotheses.program import Blocks, Cut
from ldpopt.errors import invalid
from ldpopt.values.deadline import Progress, watched
from ldpopt.values.distribution import positive_epsilon, unit_interval
from ldpopt.values.results import Pictured, Result, Rows

MAX_INPUTS = 2000
"""The largest number of different likelihood ratios for which corners are searched; more would take minutes."""


@dataclass(frozen=True, eq=False)
class Corner(Result):
    """A partition of the answers that is optimal for some cap eta.

    eta : the total variation of randomized response on its blocks. value : the divergence that it keeps. blocks : how
    many blocks it has.

    >>> Corner(0.5, 0.1, 3).blocks
    3
    """

    eta: float
    value: float
    blocks: int


@dataclass(frozen=True, eq=False)
class Envelope(Rows[Corner], Pictured):
    """The optimum for every cap eta at one epsilon: straight between its corners, constant after the last [SPR].

    corners : in the order of eta; the first, at (0, 0), is an uninformative channel.

    The values are computed for partitions of the answers, without a certificate; `optimal_channel` gives a channel with
    a certificate for a cap.
    complete : False if the time was over before all corners were found; the optimum may then lie above the straight
    lines between those that were found.
    """

    utility: Divergence
    epsilon: float
    corners: tuple[Corner, ...]
    complete: bool = True

    _picture, _records = "envelope", "corners"

    def value_at(self, eta: float) -> float:
        """Return the optimum for a cap eta in [0, 1], in the unit of the divergence.

        >>> from ldpopt.divergences import KL
        >>> found = envelope(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), 1.0)
        >>> round(found.value_at(0.3), 6), len(found.corners)
        (0.029225, 3)
        """
        eta = unit_interval(eta, "eta")
        return float(np.interp(eta, [corner.eta for corner in self.corners], [corner.value for corner in self.corners]))


def envelope(
    utility: Divergence, epsilon: float, *, time_limit: float | None = None, progress: Progress = False
) -> Envelope:
    """Compute all corners of the optimum as a function of the cap eta, for one epsilon [SPR].

    For a hockey stick, or another piecewise linear divergence, corners may lie on one line up to rounding.

    Parameters
    ----------
    utility : A `Divergence` of two finite distributions with up to 2000 different likelihood ratios P0(x)/P1(x).
    epsilon : In nats.
    time_limit, progress : As for `optimal_channel`.

    Returns
    -------
    Envelope
        The corners in order of eta; `complete` is False if the time was not enough.

    Raises
    ------
    InvalidInput
        If the utility is another one, or epsilon is out of range.

    Examples
    --------
    >>> from ldpopt.divergences import KL
    >>> found = envelope(Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]), 2.0)
    >>> [(round(one.eta, 4), round(one.value, 4), one.blocks) for one in found.corners]
    [(0.0, 0.0, 1), (0.6805, 0.368, 3)]
    """
    if not isinstance(utility, Divergence) or utility.continuous:
        raise invalid("utility", "a Divergence of finite distributions", utility)
    epsilon = positive_epsilon(epsilon)
    pair = build_problem(utility, LocalDP(epsilon)).reduction.pair
    if len(pair) > MAX_INPUTS:
        raise invalid("utility", f"at most {MAX_INPUTS} different likelihood ratios", len(pair))
    blocks = Blocks(utility.f, pair, epsilon)
    level = blocks.level
    with watched(time_limit, progress, "finding corners") as deadline:
        best = blocks.coin(None, deadline.inner).parts[0][1]
        cuts: dict[int, Cut] = {1: Cut((0, len(pair)), 0.0), best.blocks: best}
        intervals = [(0.0, best.variation(level))]
        while intervals and not deadline.over():
            remaining_width = sum(high - low for low, high in intervals)
            deadline.tell(1 - remaining_width / best.variation(level) if remaining_width > 0 else 1.0)
            low, high = intervals.pop()
            if not low < high:
                continue
            # The straight piece above the middle ends in two corners; further corners can lie on either side of it.
            ends = [cut for _, cut in blocks.coin((low + high) / 2, deadline.inner).parts]
            cuts |= {cut.blocks: cut for cut in ends if cut.blocks not in cuts}
            spans = [cut.variation(level) for cut in ends]
            intervals += [(low, min(spans)), (max(spans), high)]
    corners = sorted((cut.variation(level), cut.rate(level), cut.blocks) for cut in cuts.values())
    return Envelope(utility, epsilon, tuple(Corner(*corner) for corner in corners), not deadline.late)
