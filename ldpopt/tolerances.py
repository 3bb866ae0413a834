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

CENTRAL_GAIN, VERTEX_GAIN = 1e-9, 1e-11
"""Columns that gain less than this share of the best one join no program, at central dual values, or a vertex's."""

COLUMN_GAP = 1e-10
"""The relative distance of a program's value from the best bound at which no further columns join it."""

ASKED = 1e-8
"""Of every criterion at least this share of its best column's value is asked; a mixture spends about that on it."""
