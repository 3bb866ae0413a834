"""Optimal channels with certificates."""

from ldpopt.design.certificate import Certificate, Contraction, LabelDual, PatternDual, Verification
from ldpopt.design.constraints import Constraint, LocalDP, TotalVariation
from ldpopt.design.design import Design
from ldpopt.design.frontiers import Frontier, FrontierRow, frontier
from ldpopt.design.methods import Erasure, MergedPartition, Method, Partition, PatternLP
from ldpopt.design.optimal import optimal_channel
from ldpopt.design.utilities import Divergence

__all__ = [
    "Certificate",
    "Constraint",
    "Contraction",
    "Design",
    "Divergence",
    "Erasure",
    "Frontier",
    "FrontierRow",
    "LabelDual",
    "LocalDP",
    "MergedPartition",
    "Method",
    "Partition",
    "PatternDual",
    "PatternLP",
    "TotalVariation",
    "Verification",
    "frontier",
    "optimal_channel",
]
