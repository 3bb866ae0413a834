"""Optimal channels with certificates."""

from ldpopt.design.certificate import Certificate, Contraction, LabelDual, PatternDual, Verification
from ldpopt.design.constraints import Constraint, LocalDP, TotalVariation
from ldpopt.design.criteria import AOptimal, COptimal, Criterion, DOptimal
from ldpopt.design.design import Design
from ldpopt.design.estimation import estimation_design
from ldpopt.design.estimation_certificate import EquivalenceDual
from ldpopt.design.estimation_result import EstimationDesign
from ldpopt.design.fisher import FisherInformation
from ldpopt.design.frontiers import Frontier, FrontierRow, frontier
from ldpopt.design.methods import Erasure, MergedPartition, Method, Partition, PatternLP
from ldpopt.design.neighbourhood import Box, Contamination, Neighbourhood
from ldpopt.design.optimal import optimal_channel
from ldpopt.design.utilities import Divergence

__all__ = [
    "AOptimal",
    "Box",
    "COptimal",
    "Certificate",
    "Constraint",
    "Contamination",
    "Contraction",
    "Criterion",
    "DOptimal",
    "Design",
    "Divergence",
    "EquivalenceDual",
    "Erasure",
    "EstimationDesign",
    "FisherInformation",
    "Frontier",
    "FrontierRow",
    "LabelDual",
    "LocalDP",
    "MergedPartition",
    "Method",
    "Neighbourhood",
    "Partition",
    "PatternDual",
    "PatternLP",
    "TotalVariation",
    "Verification",
    "estimation_design",
    "frontier",
    "optimal_channel",
]
