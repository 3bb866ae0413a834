"""Exchange with dp_accounting: a pair, channel or composition as a privacy-loss distribution, and back.

This needs the package ``dp-accounting`` (0.4 to 0.6), an optional extra. Probability mass functions are passed, not
events, because dp_accounting loses repetitions of its `RandomizedResponseDpEvent` up to version 0.6.0.
"""

from __future__ import annotations

import math
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from ldpopt.composition.compose import ComposedPair
from ldpopt.composition.lattice import exact_lattice, finite_part, grid
from ldpopt.composition.laws import LatticeLaw
from ldpopt.composition.mechanism import as_pair
from ldpopt.distribution import positive_integer
from ldpopt.errors import invalid
from ldpopt.extras import missing
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.rounding import up


def to_dp_accounting(mechanism: Any, cells: int = 10_000) -> Any:
    """A `dp_accounting` PrivacyLossDistribution that dominates a channel, pair, tuple or `ComposedPair`.

    If the privacy losses are multiples of one number, this number is the discretization interval, and nothing is lost.
    Otherwise each loss is split between two points of a grid of about `cells` cells, such that the result dominates.
    Parts of a composition too rare to be computed count as infinite losses.

    cells : a whole number of at least 16. Raises `MissingExtra` if dp_accounting is not installed, and `InvalidInput`
    for an argument that is not a mechanism.

    >>> round(float(to_dp_accounting((1.0,)).get_delta_for_epsilon(0.5)), 6)
    0.287649
    """
    module = _module()
    cells = positive_integer(cells, "cells", minimum=16)
    parts = mechanism.parts if isinstance(mechanism, ComposedPair) else ((as_pair(mechanism), 1),)
    law = _law(parts, cells)
    forward, infinite = _rounded(law, parts)
    build = module.PrivacyLossDistribution.create_from_rounded_probability
    if all(pair.symmetric for pair, _ in parts):
        return build(forward, infinite, law.spacing)
    swapped = tuple((pair.swapped.ordered, count) for pair, count in parts)
    backward, infinite_back = _rounded(_law(swapped, cells, law.spacing), swapped)
    return build(
        forward,
        infinite,
        law.spacing,
        rounded_probability_mass_function_add=backward,
        infinity_mass_add=infinite_back,
        symmetric=False,
    )


def from_dp_accounting(distribution: Any) -> tuple[FinitePair, FinitePair]:
    """The pairs of a `dp_accounting` PrivacyLossDistribution: (remove, add), equal if it is symmetric.

    At every epsilon >= 0, in nats, each has the delta of the given distribution. Raises `InvalidInput` for a
    distribution that is not a pessimistic estimate, because it may understate the loss.

    >>> remove, add = from_dp_accounting(to_dp_accounting((1.0,)))
    >>> remove == add, round(float(remove.local_dp()), 6)
    (True, 1.0)
    """
    module = _module()
    if not isinstance(distribution, module.PrivacyLossDistribution):
        raise invalid("distribution", "a dp_accounting PrivacyLossDistribution", type(distribution).__name__)
    remove = _pair(distribution._pmf_remove.to_dense_pmf())
    return remove, remove if distribution._symmetric else _pair(distribution._pmf_add.to_dense_pmf())


def _law(parts: tuple[tuple[FinitePair, int], ...], cells: int, spacing: float | None = None) -> LatticeLaw:
    finite = [(*finite_part(pair), count) for pair, count in parts]
    return exact_lattice(finite) or grid(finite, cells, spacing)[0]


def _rounded(law: LatticeLaw, parts: tuple[tuple[FinitePair, int], ...]) -> tuple[dict[int, float], float]:
    """({position: mass}, infinite mass) of the composition's losses; exact for a single pair."""
    if len(law.parts) == 1 and law.parts[0][2] == 1:
        first, at, masses = 0, law.parts[0][0], law.parts[0][1]
    else:
        window = law.window(0.0)
        first, at = window.first, np.arange(len(window.masses))
        masses = window.masses * math.exp(law.cumulant(0.0)[0])
    inside = masses > 0
    rounded: dict[int, float] = {}
    for position, mass in zip((at[inside] + first).tolist(), masses[inside].tolist(), strict=True):
        rounded[position] = rounded.get(position, 0.0) + mass
    infinite = -math.expm1(math.fsum(n * math.log1p(-pair.infinite) for pair, n in parts if pair.infinite < 1))
    if any(pair.infinite == 1 for pair, _ in parts):
        return {0: 0.0}, 1.0
    missing = 1 - math.fsum(rounded.values())
    return rounded, min(1.0, max(up(infinite), missing))


def _pair(pmf: Any) -> FinitePair:
    p = np.asarray(pmf._probs, dtype=np.float64)
    losses = (pmf._lower_loss + np.arange(len(p))) * pmf._discretization
    inside = p > 0
    p, losses = p[inside], losses[inside]
    q = p * np.exp(-losses)
    infinite = float(pmf._infinity_mass)
    rest = 1 - math.fsum(q.tolist())
    below = losses < 0
    if not pmf._pessimistic_estimate or rest < -q[below].sum() / 2 - 1e-9:
        raise invalid("distribution", "a pessimistic estimate", f"masses of {1 - rest} under the second hypothesis")
    if rest < 0:
        # Truncated tails can make q sum to more than one. Raising the negative losses lowers q, which is safe.
        q[below] *= 1 + rest / q[below].sum()
    p, q = np.append(p, [infinite, 0.0]), np.append(q, [0.0, max(rest, 0.0)])
    return FinitePair(p / p.sum(), q / q.sum())


def _module() -> ModuleType:
    try:
        return import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        raise missing("dp_accounting") from None
