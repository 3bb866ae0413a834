"""The ratios that constraints allow between entries of a column, and the posteriors that follow for its output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.problems.reduction import Pair


def told_posteriors(pair: Pair, terms: Sequence[Term], low: float, high: float) -> tuple[float, float]:
    """About the range of posteriors that columns can have, within `low` and `high`.

    A column q with entries between m and ratio m has (P0 - P1).q of at most (ratio - 1) m times the total variation of
    the hypotheses.
    """
    ratio = widest_ratio(terms, len(pair))
    if not ratio < 2:
        return low, high
    tilt = 0.55 * (ratio - 1) * float(np.maximum(pair.apart, 0.0).sum())
    return max(low, 0.5 - tilt), min(high, 0.5 + tilt)


def widest_ratio(terms: Sequence[Term], inputs: int) -> float:
    """The largest ratio between two entries of a column; inf where none is implied."""
    from scipy.sparse.csgraph import shortest_path

    kinds = ByKind(terms)
    spread = np.full((inputs, inputs), np.log(kinds.ratio))
    for _, term in kinds.sticks:
        bound = term.cap <= 0
        np.minimum.at(spread, (term.left[bound], term.right[bound]), (term.epsilon * term.weight)[bound])
    if not np.isfinite(spread).any():
        return np.inf
    np.fill_diagonal(spread, 0.0)
    longest = float(shortest_path(np.where(spread > 0, spread, 1e-300), method="FW").max())
    return float(np.exp(min(longest, 700.0))) if np.isfinite(longest) else np.inf
