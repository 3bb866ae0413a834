"""Optimal channels with certificates."""

from ldpopt.design.certificate import Certificate, Contraction, LabelDual, PatternDual, Verification
from ldpopt.design.constraints import (
    ApproximateLDP,
    ColumnConstraint,
    Constraint,
    LocalDP,
    RenyiLDP,
    TotalVariation,
)
from ldpopt.design.design import Design
from ldpopt.design.interval_dual import IntervalDual
from ldpopt.design.labels import Exchange
from ldpopt.design.methods import Erasure, MergedPartition, Method, Partition, PatternLP
from ldpopt.design.optimal import optimal_channel
from ldpopt.design.utilities import Divergence

__all__ = [
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
    "optimal_channel",
]
