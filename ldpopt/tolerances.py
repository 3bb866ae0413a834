"""Every tolerance of the package, each with its name.

No tolerance enters a privacy claim. Claims are rounded outward instead, so that they are never too small
(`ldpopt.rounding`).
"""

from __future__ import annotations

ROW_SUM = 1e-9
"""How far a row of a channel, or a distribution, may be from summing to one."""

TIE = 1e-9
"""Candidates whose values differ by no more than this share of the largest are tied: the first of them is named."""

RATIO = 1e-14
"""Inputs whose likelihood ratios agree to this relative difference count as one input."""

FEASIBILITY = 1e-9
"""How far a solver's point may be from feasible before it is refused."""

REGULAR = 1e12
"""A matrix whose condition number is below this is inverted; of others the singular values decide its rank."""

CERTIFIED_GAP = 1e-6
"""A design is certified when its upper bound lies within this relative gap of its value."""

BRACKET_GAP = 1e-4
"""The same gap for a design that merges inputs, as designs for large or continuous alphabets do."""

COARSE_GAP = 1e-3
"""The same gap for an estimation design with too many possible columns to check each: one respondent in a thousand."""

CONVEXITY = 1e-9
"""How far, relatively, a user's generator f may lie above a chord of its graph before it is refused as not convex."""

MINIMUM_EPSILON = 1e-9
MAXIMUM_EPSILON = 700.0
"""The range of epsilon, in nats, in which a float64 channel can represent entries whose ratio is exp(epsilon)."""

CLAIM_ROUNDING = 1e-9
"""In `reproduce`: the largest relative difference of two sides of an inequality that can be due to rounding."""

CLAIM_ATTAINED = 1e-6
"""In `reproduce`: a bound counts as attained when the exact value comes this near, relatively."""
