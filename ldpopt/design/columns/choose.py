"""The columns that a problem of estimation has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.design.columns.base import Columns
from ldpopt.design.columns.labelings import TooManyColumns
from ldpopt.design.columns.policy import PolicyColumns, SearchedColumns, _listed
from ldpopt.design.columns.policy_relaxation import OUTWARD
from ldpopt.design.columns.staircase import StaircaseColumns
from ldpopt.design.constraints import LocalDP, TotalVariation
from ldpopt.design.constraints.local_dp import shortest_paths
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput


@lru_cache(maxsize=64)
def _too_many(raw: bytes, k: int, ordered: bool) -> bool:
    try:
        _listed(raw, k, ordered)
    except TooManyColumns:
        return True
    return False


def policy_limits(constraints: Sequence[Any], inputs: Sequence[Label]) -> Array:
    """(k, k) the largest log-ratios, in nats, that all `LocalDP` in `constraints` together allow every two inputs."""
    k = len(inputs)
    limits = np.full((k, k), np.inf)
    for constraint in constraints:
        if not isinstance(constraint, LocalDP):
            continue
        if constraint.listed is None:
            limits = np.minimum(limits, constraint.epsilon)
        else:
            left, right, weight = constraint.listed.needed(inputs)
            limits[left, right] = np.minimum(limits[left, right], weight * constraint.epsilon)
    np.fill_diagonal(limits, 0.0)
    if all(c.listed is None for c in constraints if isinstance(c, LocalDP)):
        return limits  # no path is shorter
    return shortest_paths(limits)


def columns_for(utility: FisherInformation, constraints: Sequence[Any]) -> tuple[Columns, float | None]:
    """The columns within `constraints`, and the cap on total variation, None if it cannot bind.

    Raises `InvalidInput` where two inputs have no path, so that entries may be 0, and a category's share may be 0, too.
    """
    k = len(utility.prior)
    limits = policy_limits(constraints, tuple(utility.inputs or range(k)))
    apart = limits[~np.eye(k, dtype=bool)]
    widest = float(apart.max())
    eta = min((c.eta for c in constraints if isinstance(c, TotalVariation)), default=1.0)
    capped = eta < math.tanh(widest / 2)  # [GI, Prop 2], of every two inputs
    if math.isinf(widest) and (utility.prior.min() <= 0 or utility.neighbourhood is not None):
        raise InvalidInput(
            "policy graph: expected a path between any two inputs where the share of a category may be 0, got none"
        )
    if math.isfinite(widest) and widest == apart.min():
        # Limits along a graph are rounded products and sums, so that a little is added to be safe.
        if any(isinstance(c, LocalDP) and c.listed is not None for c in constraints):
            widest *= 1 + OUTWARD
        # True for the variance of one contrast, whose kernel has one row.
        one = getattr(utility.criterion, "additive", False) and utility.criterion.kernel_rows(k) == 1
        line = bool(one and not capped and utility.prior.min() > 0 and utility.neighbourhood is None)
        return StaircaseColumns(k, widest, line), eta if capped else None
    if _too_many(np.ascontiguousarray(limits).tobytes(), k, capped):
        return SearchedColumns(limits), eta if capped else None
    return PolicyColumns(limits, capped), eta if capped else None
