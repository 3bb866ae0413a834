"""The Gaussian limit of the composition of many small mechanisms, and the distance of a composition from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.composition.compose import ComposedPair
from ldpopt.composition.parametric import ParametricPair
from ldpopt.composition.totals import MOST
from ldpopt.composition.trinomial import trinomial_log_pmf
from ldpopt.distribution import Array, number, positive_integer
from ldpopt.errors import invalid
from ldpopt.privacy.parameters import checked, kept_mass, largest_eta
from ldpopt.results import Result


def gaussian_total_variation(mu: float, count: int = 1) -> float:
    """The total variation of `count` mu-GDP mechanisms together: 2 Phi(mu sqrt(count)/2) - 1 [GI, section VI-D].

    mu-GDP is Gaussian differential privacy: no easier to tell apart than N(0, 1) and N(mu, 1). mu >= 0.

    >>> round(gaussian_total_variation(1.0, 4), 9)
    0.682689492
    """
    mu, count = _mu(mu), positive_integer(count, "count", maximum=MOST)
    return math.erf(mu * math.sqrt(count) / (2 * math.sqrt(2)))


def gaussian_trade_off(mu: float, type_one: Any) -> Array:
    """G_mu: the least type II error of a test of N(0, 1) against N(mu, 1), for each type I error [GI, eq. 13].

    mu : at least 0. type_one : a number or an array of any shape, in [0, 1].

    >>> gaussian_trade_off(1.0, [0.05, 0.5]).round(6)
    array([0.740489, 0.158655])
    """
    from scipy.special import ndtr, ndtri

    try:
        t = np.asarray(type_one, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise invalid("type I error", "numbers in [0, 1]", type_one) from None
    if t.size and not (t.min() >= 0 and t.max() <= 1):
        raise invalid("type I error", "numbers in [0, 1]", t)
    return np.asarray(ndtr(-ndtri(t) - _mu(mu)))


@dataclass(frozen=True, eq=False)
class GaussianLimit(Result):
    """The mu of the limit G_mu, and the distance sup |f - G_mu| of the composition's trade-off curve f from it."""

    mu: float
    distance: float


def gaussian_limit(epsilons: Iterable[Any], etas: Iterable[Any]) -> GaussianLimit:
    """The limit of composing (epsilon_i)-DP and (eta_i)-TV mechanisms: mu^2/2 = sum epsilon_i eta_i [GI, Thm 3].

    epsilons in nats; etas in [0, 1], as many as epsilons. An eta above tanh(epsilon/2) is lowered to it. The `distance`
    of the result is the largest difference between the composition's own trade-off curve and G_mu, to about 1e-9; if
    the epsilons are not multiples of one number, it is computed on a grid.

    >>> limit = gaussian_limit([0.1] * 100, [0.035] * 100)
    >>> round(limit.mu, 6), limit.distance < 0.001
    (0.83666, True)
    """
    parts, epsilons, etas = [], _list(epsilons), _list(etas)
    if len(epsilons) != len(etas):
        raise invalid("etas", f"as many as the {len(epsilons)} epsilons", len(etas))
    for epsilon, eta in zip(epsilons, etas, strict=True):
        e, _, t = checked(epsilon, 0.0, eta)
        parts.append((e, min(t if t is not None else 1.0, largest_eta(e, 0.0))))
    if not parts:
        raise invalid("epsilons", "at least one", "none")
    mu = math.sqrt(2 * math.fsum(e * t for e, t in parts))
    if len(set(parts)) == 1:
        e, t = parts[0]
        kept = kept_mass(e, 0.0, t)[1]
        log_mass = trinomial_log_pmf(len(parts), e, 1 - kept, kept)
        losses = e * np.arange(-len(parts), len(parts) + 1, dtype=np.float64)
        return GaussianLimit(mu, _distance(losses, np.exp(log_mass), mu))
    composed = ComposedPair.of((ParametricPair.of(e, 0.0, t), 1) for e, t in parts)
    losses, masses = composed.law()
    return GaussianLimit(mu, _distance(losses, masses, mu))


def _distance(losses: Array, masses: Array, mu: float) -> float:
    """sup |f - G_mu| for the trade-off curve f of the pair with these losses and masses under the first hypothesis.

    Between two corners f is a line with slope -e^loss, and G_mu is convex. So G_mu - f is largest at a corner, and
    f - G_mu is largest where the slopes agree, or else at a corner.
    """
    from scipy.special import ndtr

    order = np.argsort(-losses)
    losses, p = losses[order], masses[order] / masses.sum()
    with np.errstate(divide="ignore", under="ignore"):
        q = np.exp(np.log(p) - losses)
    # The test rejects the outcomes A with the largest losses: its size is Q(A), its type II error 1 - P(A).
    size = np.minimum(np.concatenate([[0.0], np.cumsum(q)]), 1.0)
    error = np.maximum(1 - np.concatenate([[0.0], np.cumsum(p)]), 0.0)
    corner = np.abs(error - gaussian_trade_off(mu, size)).max()
    if mu == 0:
        return float(corner)
    touching = np.clip(ndtr(-(losses / mu + mu / 2)), size[:-1], size[1:])
    with np.errstate(over="ignore", invalid="ignore"):
        line = error[:-1] - np.where(touching > size[:-1], np.exp(losses) * (touching - size[:-1]), 0.0)
    inside = np.abs(line - gaussian_trade_off(mu, touching)).max()
    return float(max(corner, inside))


def _list(values: Iterable[Any]) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise invalid("parameters", "a list of numbers", values)
    return list(values)


def _mu(mu: Any) -> float:
    value = number(mu, "mu", "a non-negative number")
    if value < 0:
        raise invalid("mu", "a non-negative number", value)
    return value
