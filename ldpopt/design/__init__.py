"""Optimal channels with certificates."""

from ldpopt.design.certificate import Certificate, Contraction, LabelDual, PatternDual, Verification
from ldpopt.design.column_utility import ColumnUtility, MutualInformation, Tests, WeightedSum
from ldpopt.design.constraints import (
    ApproximateLDP,
    ColumnConstraint,
    Constraint,
    LocalDP,
    RenyiLDP,
    TotalVariation,
    TradeOff,
    ZCDP,
)
from ldpopt.design.design import Design
from ldpopt.design.expected_loss import ExpectedLoss
from ldpopt.design.interval_dual import IntervalDual, LossDual
from ldpopt.design.labels import Exchange
from ldpopt.design.frontiers import Frontier, FrontierRow, frontier
from ldpopt.design.methods import Erasure, MergedPartition, Method, Partition, PatternLP
from ldpopt.design.optimal import optimal_channel
from ldpopt.design.utilities import Divergence

__all__ = [
    "LossDual",
    "ExpectedLoss",
    "ZCDP",
    "TradeOff",
    "WeightedSum",
    "Tests",
    "MutualInformation",
    "ColumnUtility",
    "ApproximateLDP",
    "Certificate",
    "ColumnConstraint",
    "Constraint",
    "Contraction",
    "Design",
    "Divergence",
    "Erasure",
    "Exchange",
    "IntervalDual",
    "Frontier",
    "FrontierRow",
    "LabelDual",
    "LocalDP",
    "MergedPartition",
    "Method",
    "Partition",
    "PatternDual",
    "PatternLP",
    "RenyiLDP",
    "TotalVariation",
    "Verification",
    "frontier",
    "optimal_channel",
]
