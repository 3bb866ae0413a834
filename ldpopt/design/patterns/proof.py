"""Proofs over every extreme column of a list: staircase patterns, and the columns of a policy graph.

`PatternDual`: the 2^k - 1 columns are the patterns S_A = t + 1_A with t = 1/(e^epsilon - 1). The cap is eta, on sum_{A
with x, without x'} theta_A. They are the extreme rays of `estimation.staircase.staircase_arrangement`.

`PolicyDual`: the columns are those of `patterns.policy`. The cap is eta, on sum_c theta_c (c_x - c_x')_+. They are the
extreme rays of `PolicyColumns.arrangement`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import plain_caps
from ldpopt.design.kernel.listed import COLUMNS_PER_BLOCK, Caps, Listed, ListedDual, finite_size
from ldpopt.design.kernel.numbers import Unproved, require
from ldpopt.design.kernel.sets import members
from ldpopt.design.patterns.policy import ListedColumns, is_listable, listing_work, max_column_count, policy_limits
from ldpopt.design.work import Work
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure

MAX_PATTERN_INPUTS = 20  # Inputs whose patterns are all checked.


@dataclass(frozen=True, eq=False, repr=False)
class PatternDual(ListedDual):
    """Multipliers of the pattern program of any column utility [KOV14, Thm 4], with a cap on total variation or none.

    rows, pairs, weights : as in `ListedDual`; the entry (x, x') of `pairs` is for patterns with x and without x'.
    """

    argument = "linear-programming duality over all staircase patterns"

    def work(self) -> Work:
        """Bound the work to check all patterns of up to `MAX_PATTERN_INPUTS` inputs."""
        k = min(self.answers, MAX_PATTERN_INPUTS)
        return Work.on(2.0**k, 60.0 * self.criteria + 12.0 * k, min(COLUMNS_PER_BLOCK, 2**k) * (k + self.criteria))

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute sum l + kappa (sum rows + eta sum pairs), with l and kappa as in `listed`."""
        k = finite_size(self.utility)
        require(k <= MAX_PATTERN_INPUTS, f"{k} inputs have too many patterns to look at all of them")
        caps = Caps.from_constraints(self.constraints, arithmetic)
        return self._total_price(self._patterns(caps, arithmetic), caps.eta, arithmetic)

    def _patterns(self, caps: Caps, arithmetic: Arithmetic) -> Iterator[Listed]:
        _, pairs = self._multipliers()
        k = len(pairs)
        prices = arithmetic.of(pairs) if pairs.any() else None
        count = 2**k - 1  # the full pattern is a multiple of the empty one
        for start in range(0, count, COLUMNS_PER_BLOCK):
            membership = members(np.arange(start, min(start + COLUMNS_PER_BLOCK, count), dtype=np.int64), k).astype(
                np.float64
            )
            pair_charges = None if prices is None else ((membership @ prices) * (1 - membership)).sum(axis=1)
            yield Listed(caps.level * np.ones(len(membership)), arithmetic.of(membership.T), pair_charges)


@dataclass(frozen=True, eq=False, repr=False)
class PolicyDual(ListedDual):
    """Multipliers of the program over all extreme columns of the policy graphs of `LocalDP`, for any column utility.

    rows, pairs, weights : as in `ListedDual`.
    """

    argument = "linear-programming duality over all extreme columns of the policy graph"

    def work(self) -> Work:
        """Bound the work to list the extreme columns, and to price each of them."""
        operations_per_column = 60.0 * self.criteria + 12.0 * self.answers
        columns = max_column_count(self.answers, self.constraints, bool(np.any(self.pairs)))
        pricing_work = Work.on(columns, operations_per_column, min(COLUMNS_PER_BLOCK, columns) * self.answers).in_floats
        return (
            listing_work(self.answers, self.constraints)
            + pricing_work
            + Work.on(min(COLUMNS_PER_BLOCK, columns), operations_per_column)
        )

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute sum l + kappa (sum rows + eta sum pairs), with l and kappa as in `listed`."""
        k = finite_size(self.utility)
        limits = policy_limits(self.constraints, self.utility.labels)
        if not np.isfinite(limits[~np.eye(k, dtype=bool)]).any():
            raise Unproved("no constraint asks for LocalDP between any two inputs")
        if not is_listable(limits):
            raise Unproved("a graph of such weights and so many edges has too many extreme columns to look at all")
        _, eta = plain_caps(self.constraints)
        columns = ListedColumns(limits, bool(self._multipliers()[1].any()))
        listed_columns = self._listed(columns, FLOAT)
        if arithmetic.exact:
            # Floats decide most columns; only the others are checked again in exact arithmetic.
            listed_columns = self._listed(columns, arithmetic, self._unsettled(listed_columns))
        return self._total_price(listed_columns, eta, arithmetic)

    def _listed(self, columns: ListedColumns, arithmetic: Arithmetic, indices: Any = slice(None)) -> Iterator[Listed]:
        left, right = np.nonzero(self._multipliers()[1])
        prices = arithmetic.of(self._multipliers()[1][left, right])
        base, rise = columns.enclosed(arithmetic, indices)
        for start in range(0, len(base), COLUMNS_PER_BLOCK):
            rise_block = rise[start : start + COLUMNS_PER_BLOCK]
            pair_charges = (rise_block[:, left] - rise_block[:, right]).positive() @ prices if len(left) else None
            yield Listed(base[start : start + COLUMNS_PER_BLOCK], rise_block.T, pair_charges)
