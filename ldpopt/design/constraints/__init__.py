"""What a design must guarantee: one file per notion, named like the measure in `ldpopt.privacy` that checks it."""

from ldpopt.design.constraints.base import AlphabetConstraint, ColumnConstraint, Constraint
from ldpopt.design.constraints.capacity import CapacityBounded
from ldpopt.design.constraints.hockey_stick import ApproximateLDP, TotalVariation, TradeOff
from ldpopt.design.constraints.invariant import Invariant
from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.constraints.moment import ConcentratedLDP, RenyiLDP
from ldpopt.design.constraints.outputs import Denominator, Outputs, Support

__all__ = [
    "AlphabetConstraint", "ApproximateLDP", "CapacityBounded", "ColumnConstraint", "ConcentratedLDP", "Constraint",
    "Denominator", "Invariant", "LocalDP", "Outputs", "RenyiLDP", "Support", "TotalVariation", "TradeOff",
]  # fmt: skip
