"""What a design must guarantee: one file a notion, named as the measure in `ldpopt.privacy` that re-checks it."""

from ldpopt.design.constraints.base import Constraint
from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.constraints.total_variation import TotalVariation

__all__ = ["Constraint", "LocalDP", "TotalVariation"]
