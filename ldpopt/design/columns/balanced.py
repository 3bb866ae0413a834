"""Staircase patterns near a target: sets whose columns have, on average, a wanted mean and covariance.

Let a channel have the information J, and draw its columns S in proportion to their probabilities. Then S has the mean
t 1 and the second moments t^2 J, where t = S.p. Near the target of `programs.survey_dual`, all columns have nearly the
same d.S = |d| t*, t* = 2 E / (E + 1), E = e^epsilon. Random sets with the mean and the covariance that follow from this
are good columns where all 2^k patterns are too many. They are drawn by thresholds of a Gaussian vector, and changed by
single inputs until d.S is within half an input of its aim.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ldpopt.distribution import Array

Members = npt.NDArray[np.bool_]

ADAPTED = 2
"""The number of trials by which the thresholds are moved, so that the mean is right after rounding to sets."""

TRIAL = 4000
"""The number of sets in a trial."""


def balanced_sets(
    prior: Array,
    squares: Array,
    target: Array,
    ratio: float,
    count: int,
    rng: np.random.Generator,
    eta: float | None = None,
) -> Members:
    """(n, k) at most `count` different sets, neither empty nor full, for d = `squares` (k,) and J = `target` (k, k).

    prior : p (k,). ratio : E. eta : a cap on total variation, for which sets may be made smaller (`_size`); the
    covariance is scaled to their size.
    """
    k, gain = len(prior), ratio - 1
    size = _size(k, gain, eta)
    aim, best = 1 + gain * size, 1 / (ratio + 1)
    share = squares / squares.sum()
    apart = (target - 1.0) * (size * (1 - size) / aim**2) / (best * (1 - best) * ((ratio + 1) / (2 * ratio)) ** 2)
    pulled = apart @ share
    mean = aim * (1 - pulled + share @ pulled)
    away = np.eye(k) - share[None, :]
    spread = aim**2 * away @ apart @ away.T / gain**2
    chance = np.clip((mean - 1) / gain, 0.003, 0.997)
    threshold = np.asarray(ndtri(chance))
    density = np.exp(-(threshold**2) / 2) / np.sqrt(2 * np.pi)
    latent = np.clip(spread / np.outer(density, density), -0.98, 0.98)
    np.fill_diagonal(latent, 1.0)
    values, vectors = np.linalg.eigh(latent)
    mixing = vectors * np.sqrt(np.maximum(values, 1e-6))
    mixing = mixing / np.sqrt((mixing * mixing).sum(axis=1))[:, None]

    def drawn(n: int) -> Members:
        sets = rng.standard_normal((n, k)) @ mixing.T < threshold
        return _level(sets, share, (aim - 1) / gain, rng)

    for _ in range(ADAPTED):
        columns = 1 + gain * drawn(TRIAL)
        off = (columns / (columns @ prior)[:, None]).mean(axis=0) - 1
        density = np.exp(-(threshold**2) / 2) / np.sqrt(2 * np.pi)
        threshold = threshold - np.clip(off * aim / (gain * np.maximum(density, 0.02)), -0.5, 0.5)
    sets = np.unique(drawn(count), axis=0)
    return np.asarray(sets[sets.any(axis=1) & ~sets.all(axis=1)])


def _size(k: int, gain: float, eta: float | None) -> float:
    """The share of the inputs in a set: that of the best sets, or the one at which sets of equal size reach the cap.

    With a share s of k inputs in each set, and every input in as many, the rows of the channel are at a total
    variation of gain s (1 - s) k / (k - 1) / (1 + gain s).
    """
    best = 1 / (gain + 2)
    if eta is None:
        return best
    among = k / (k - 1)
    root = (among - eta) ** 2 - 4 * among * eta / gain
    return best if root <= 0 else min(best, max(1 / k, ((among - eta) - root**0.5) / (2 * among)))


def _level(sets: Members, share: Array, aim: float, rng: np.random.Generator) -> Members:
    """The sets, with inputs added or removed at random until their share is within half an average input of `aim`."""
    off = sets @ share - aim
    for _ in range(40):
        open_ = np.flatnonzero(np.abs(off) > 0.5 / len(share))
        if len(open_) == 0:
            break
        wanted = sets[open_] == (off[open_] > 0)[:, None]
        at = np.where(wanted, rng.random(wanted.shape), -1.0).argmax(axis=1)
        sets[open_, at] ^= True
        off = sets @ share - aim
    return sets
