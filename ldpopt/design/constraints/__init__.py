"""What a design must guarantee: one file per notion, named like the measure in `ldpopt.privacy` that checks it."""

from ldpopt.design.constraints.alphabet import AlphabetConstraint
from ldpopt.design.constraints.approximate_dp import ApproximateLDP
from ldpopt.design.constraints.base import ColumnConstraint, Constraint
from ldpopt.design.constraints.capacity import CapacityBounded
from ldpopt.design.constraints.concentrated import ConcentratedLDP
from ldpopt.design.constraints.denominator import Denominator
from ldpopt.design.constraints.invariant import Invariant
from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.constraints.outputs import Outputs
from ldpopt.design.constraints.renyi import RenyiLDP
from ldpopt.design.constraints.support import Support
from ldpopt.design.constraints.total_variation import TotalVariation
from ldpopt.design.constraints.trade_off import TradeOff

__all__ = [
    "AlphabetConstraint",
    "ApproximateLDP",
    "CapacityBounded",
    "ColumnConstraint",
    "ConcentratedLDP",
    "Constraint",
    "Denominator",
    "Invariant",
    "LocalDP",
    "Outputs",
    "RenyiLDP",
    "Support",
    "TotalVariation",
    "TradeOff",
]
