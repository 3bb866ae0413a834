"""Every tolerance of the package, named once.

None of them enters a privacy claim: claims are rounded outward (`ldpopt.rounding`).
"""

from __future__ import annotations

ROW_SUM = 1e-9
"""How far a row of a channel, or a distribution, may be from summing to one."""

RATIO = 1e-14
"""Inputs whose likelihood ratios agree to this relative difference count as one input."""

FEASIBILITY = 1e-9
"""How far a solver's point may be from feasible before it is refused."""

CERTIFIED_GAP = 1e-6
"""A design is certified when its bound lies within this relative gap of its value."""

BRACKET_GAP = 1e-4
"""The same for a design on merged inputs: large or continuous alphabets."""

COARSE_GAP = 1e-3
"""The same for a design for estimation whose columns are too many to price: one respondent in a thousand."""

VERIFY = 1e-9
"""Relative slack for rounding when a certificate's inequalities are recomputed."""

CONVEXITY = 1e-9
"""How far, relatively, a user's generator may lie above its chord before it is refused as not convex."""

MINIMUM_EPSILON = 1e-9
MAXIMUM_EPSILON = 700.0
"""The range of epsilon in which a float64 channel still represents exp(epsilon) ratios."""
