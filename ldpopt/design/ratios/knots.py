"""The points where the ratio-labelled program cuts the likelihood ratios: knots s = P0/(P0 + P1), both ends included.

Distances are measured in log-ratios log s/(1 - s), in units of their range, so that hypotheses that are nearly equal,
and masses that are nearly zero, are cut as finely as others.

They lie within the posteriors that the ratios allow which constraints leave between entries of a column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.problems.reduction import Pair
from ldpopt.values.distribution import Array

FINEST = 25  # Graded knots begin at an eighth of the step of this many even ones
FAR = 21.0  # Even knots end at this log-ratio
WIDE = 4.0  # A wider range of log-ratios counts as this much, because little happens in most of a wide range


def even_knots(low: float, high: float, count: int) -> Array:
    """Knots that are even in log-ratio, and one at ratio one, where many divergences have a kink."""
    first, last = np.clip(_log_ratio(np.array([low, high])), -FAR, FAR)
    inner = _posterior(np.linspace(first, last, count)[1:-1])
    knots = np.unique(np.concatenate([[low, high, 0.5], inner]))
    return _apart(knots[(knots >= low) & (knots <= high)])


def first_labels(low: float, high: float, tv_bound: float) -> Array:
    """A few posteriors on either side of one half, graded by the distance `tv_bound` that rows may have."""
    ends = np.clip(_log_ratio(np.array([low, high])), -FAR, FAR)
    graded = [end * min(1.0, 6 * tv_bound / abs(end)) * 2.5 ** -np.arange(5) for end in ends.tolist() if end != 0]
    return np.unique(_posterior(np.concatenate([np.zeros(1), *graded])))


def joined_knots(new: Array, old: Array) -> Array:
    """`new` and `old` posteriors in order, without old ones that are next to a new one; 1/2 stays."""
    return np.unique(np.concatenate([new, old[far_from(old, new) | (old == 0.5)]]))


def far_from(old: Array, new: Array) -> npt.NDArray[np.bool_]:
    """Whether each of the `old` posteriors is not next to a `new` one."""
    near = np.abs(_log_ratio(old)[:, None] - _log_ratio(new)[None, :]).min(axis=1, initial=np.inf)
    return np.asarray(near > 1e-9 * _range(old[[0, -1]]))


def graded_knots(knots: Array, posteriors: Array) -> Array:
    """The knots, with more at the `posteriors` and around them, at distances that shrink by factors of eight."""
    step = _range(knots) / FINEST * 8.0 ** -np.arange(0, 4)
    new = _posterior(_log_ratio(posteriors)[:, None] + np.concatenate([[0.0], step, -step])).ravel()
    return _apart(np.unique(np.concatenate([knots, posteriors, np.clip(new, knots[0], knots[-1])])), 1e-7)


def cut_knots(knots: Array, posterior: Array, lossy: npt.NDArray[np.bool_]) -> Array:
    """The knots, with `lossy` intervals cut at their outputs' `posterior`, (n,), and a sixteenth to each side of it."""
    cut = np.flatnonzero(lossy)
    inside = np.clip(posterior[cut], knots[cut], knots[cut + 1])
    middle, step = _log_ratio(inside), np.diff(_log_ratio(knots))[cut] / 16
    around = _posterior(np.concatenate([middle - step, middle + step]))
    new = np.clip(np.concatenate([inside, around]), knots[0], knots[-1])
    return _apart(np.unique(np.concatenate([knots, new])))


def parted_knots(knots: Array, parts: npt.NDArray[np.intp]) -> Array:
    """The knots, with every interval cut into its number of `parts`, (n,), evenly in log-ratio."""
    logs = _log_ratio(knots)
    interval = np.repeat(np.arange(len(parts)), parts - 1)
    first = np.cumsum(parts - 1) - (parts - 1)
    share = (np.arange(len(interval)) - first[interval] + 1) / parts[interval]
    new = _posterior(logs[interval] + share * np.diff(logs)[interval])
    return _apart(np.unique(np.concatenate([knots, np.clip(new, knots[0], knots[-1])])))


def _log_ratio(s: Array) -> Array:
    """log s/(1 - s), without cancellation near s = 1/2; for 0 and 1, the value at the float next to them."""
    s = np.clip(s, 5e-324, 1 - 2.0**-53)
    tilt = 2 * s - 1
    near = np.abs(tilt) < 0.5
    far = np.log(s) - np.log1p(-s)
    return np.asarray(np.where(near, 2 * np.arctanh(np.where(near, tilt, 0.0)), far))


def _posterior(log_ratio: Array) -> Array:
    small = np.exp(-np.abs(log_ratio))
    return np.asarray(np.where(log_ratio < 0, small, 1.0) / (1 + small))


def _range(knots: Array) -> float:
    return float(min(np.ptp(_log_ratio(knots[[0, -1]])), WIDE))


def _apart(knots: Array, least: float = 1e-9) -> Array:
    """The knots that are at least `least` of their range apart; both ends and the ratio one always stay."""
    logs = _log_ratio(knots)
    kept = np.concatenate([[True], np.diff(logs) > least * _range(knots)])
    kept[-1] = True
    half = knots == 0.5
    if half.any():
        # A kink at ratio one, and the label that says nothing, need the exact knot: its close neighbours go instead.
        kept |= half
        near = np.abs(logs) <= least * _range(knots)
        near[[0, -1]] = False
        kept &= half | ~near
    chosen = knots[kept]
    return np.asarray(chosen) if len(chosen) > 1 else np.asarray([knots[0], np.nextafter(knots[0], 1.0)])


def allowed_posteriors(pair: Pair, terms: Sequence[Term], low: float, high: float) -> tuple[float, float]:
    """About the range of posteriors that columns can have, within `low` and `high`.

    A column q with entries between m and ratio m has (P0 - P1).q of at most (ratio - 1) m times the total variation of
    the hypotheses.
    """
    ratio = widest_ratio(terms, len(pair))
    if not ratio < 2:
        return low, high
    tilt = 0.55 * (ratio - 1) * float(np.maximum(pair.difference, 0.0).sum())
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
