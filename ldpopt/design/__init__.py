"""Optimal channels with certificates."""

from ldpopt.design.against_set import AgainstSet
from ldpopt.design.alphabet_design import AlphabetLossDual
from ldpopt.design.branch import BranchAndBound
from ldpopt.design.branch_dual import BranchDual, Relaxed
from ldpopt.design.certificate import Certificate, Contraction, LabelDual, PatternDual, Verification
from ldpopt.design.column_generation import ColumnGeneration
from ldpopt.design.column_utility import ColumnUtility, MutualInformation, Tests, WeightedSum
from ldpopt.design.constraints import (
    ZCDP,
    AlphabetConstraint,
    ApproximateLDP,
    CapacityBounded,
    ColumnConstraint,
    Constraint,
    Invariant,
    LocalDP,
    Outputs,
    RenyiLDP,
    Support,
    TotalVariation,
    TradeOff,
)
from ldpopt.design.criteria import AOptimal, COptimal, Criterion, DOptimal, MVOptimal
from ldpopt.design.cut_dual import CutDual
from ldpopt.design.design import Design
from ldpopt.design.estimation import estimation_design
from ldpopt.design.estimation_certificate import EquivalenceDual
from ldpopt.design.estimation_result import EstimationDesign
from ldpopt.design.expected_loss import ExpectedLoss
from ldpopt.design.fisher import FisherInformation
from ldpopt.design.hypothesis_set import Around, Hull, HypothesisSet
from ldpopt.design.interval_dual import IntervalDual, LossDual
from ldpopt.design.labels import Exchange
from ldpopt.design.local_search import LocalSearch
from ldpopt.design.methods import Erasure, MergedPartition, Method, Partition, PatternLP
from ldpopt.design.neighbourhood import Box, Contamination, Neighbourhood, TotalVariationBall
from ldpopt.design.optimal import optimal_channel
from ldpopt.design.private_sampling import PrivateSampling, SamplingDual
from ldpopt.design.saddle import SaddlePoint
from ldpopt.design.structure import Structure, Structures, structures
from ldpopt.design.tangent_exchange import TangentExchange
from ldpopt.design.utilities import Divergence

__all__ = [
    "ZCDP",
    "AOptimal",
    "AgainstSet",
    "AlphabetConstraint",
    "AlphabetLossDual",
    "ApproximateLDP",
    "Around",
    "Box",
    "BranchAndBound",
    "BranchDual",
    "COptimal",
    "CapacityBounded",
    "Certificate",
    "ColumnConstraint",
    "ColumnGeneration",
    "ColumnUtility",
    "Constraint",
    "Contamination",
    "Contraction",
    "Criterion",
    "CutDual",
    "DOptimal",
    "Design",
    "Divergence",
    "EquivalenceDual",
    "Erasure",
    "EstimationDesign",
    "Exchange",
    "ExpectedLoss",
    "FisherInformation",
    "Hull",
    "HypothesisSet",
    "IntervalDual",
    "Invariant",
    "LabelDual",
    "LocalDP",
    "LocalSearch",
    "LossDual",
    "MVOptimal",
    "MergedPartition",
    "Method",
    "MutualInformation",
    "Neighbourhood",
    "Outputs",
    "Partition",
    "PatternDual",
    "PatternLP",
    "PrivateSampling",
    "Relaxed",
    "RenyiLDP",
    "SaddlePoint",
    "SamplingDual",
    "Structure",
    "Structures",
    "Support",
    "TangentExchange",
    "Tests",
    "TotalVariation",
    "TotalVariationBall",
    "TradeOff",
    "Verification",
    "WeightedSum",
    "estimation_design",
    "optimal_channel",
    "structures",
]
