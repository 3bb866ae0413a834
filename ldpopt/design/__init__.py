"""Optimal channels with certificates.

Words that recur in this package:

answer : what a person has; also called input, a row of the channel. report : what is sent; also called output, a
column of the channel. column : the k probabilities of one report, one for each answer.
law : a probability distribution. marginal : the law of the report under a hypothesis.
ratio : the likelihood ratio of two hypotheses, P0/P1 of an answer or M0/M1 of a report.
erasure : a report that is equally likely under all answers, so that it says nothing.
pattern : a staircase pattern, a column with one value on a set of answers, and exp(epsilon) times less on the others.
block : answers that are neighbours in the order of their ratios and are treated alike.
multiplier : the dual value of a constraint; a design's upper bound is made of multipliers.
price : what a column costs at given multipliers. Pricing looks for a column that is worth more than it costs.
tangent : a linear function that touches a convex one at a point, and lies below it everywhere.
enclosed : computed as an interval, with two ends between which the exact number lies.
"""

from ldpopt.design.candidate import Method
from ldpopt.design.certificates.base import Certificate, Verification
from ldpopt.design.certificates.boxes import BranchDual
from ldpopt.design.certificates.capacity import InformationCapacity
from ldpopt.design.certificates.contraction import Contraction
from ldpopt.design.certificates.decisions import AlphabetLossDual, SamplingDual
from ldpopt.design.certificates.dominated import Dominated
from ldpopt.design.certificates.envelope import EnvelopeDual
from ldpopt.design.certificates.equivalence import EquivalenceDual
from ldpopt.design.certificates.information import InformationDual
from ldpopt.design.certificates.integer_columns import IntegerColumns
from ldpopt.design.certificates.intervals import IntervalDual
from ldpopt.design.certificates.levels import LevelDual, LevelVariationDual
from ldpopt.design.certificates.losses import LossDual
from ldpopt.design.certificates.marginals import MarginalDual
from ldpopt.design.certificates.pairwise import PairwiseInformation
from ldpopt.design.certificates.parts import PartsBound
from ldpopt.design.certificates.patterns import PatternDual
from ldpopt.design.certificates.policies import PolicyDual
from ldpopt.design.certificates.ratios import RatioDual
from ldpopt.design.certificates.relaxed import Relaxed
from ldpopt.design.certificates.saddle import SaddlePoint
from ldpopt.design.constraints import (
    ZCDP,
    AlphabetConstraint,
    ApproximateLDP,
    CapacityBounded,
    ColumnConstraint,
    ConcentratedLDP,
    Constraint,
    Denominator,
    Invariant,
    LocalDP,
    Outputs,
    RenyiLDP,
    Support,
    TotalVariation,
    TradeOff,
)
from ldpopt.design.design import Design
from ldpopt.design.load import load_design
from ldpopt.design.methods.balanced import BalancedSets
from ldpopt.design.methods.branch_and_bound import BranchAndBound
from ldpopt.design.methods.choose import METHODS
from ldpopt.design.methods.column_generation import ColumnGeneration
from ldpopt.design.methods.decisions import DecisionProgram, SamplingProgram
from ldpopt.design.methods.erasure import Erasure
from ldpopt.design.methods.estimation import EstimationColumns
from ldpopt.design.methods.even_pilot import EvenPilot
from ldpopt.design.methods.exchange import Exchange
from ldpopt.design.methods.given_outputs import GivenDecisions, GivenSearch
from ldpopt.design.methods.integer_program import IntegerProgram
from ldpopt.design.methods.levels import LevelLP
from ldpopt.design.methods.local_search import LocalSearch
from ldpopt.design.methods.marginals import MarginalPatterns
from ldpopt.design.methods.partition import MergedPartition, Partition
from ldpopt.design.methods.patterns import PatternLP
from ldpopt.design.methods.policies import PolicyLP
from ldpopt.design.methods.rounded import Rounded
from ldpopt.design.methods.saddle import Saddle
from ldpopt.design.methods.sampled_columns import SampledColumns, SmallSets
from ldpopt.design.methods.shapes import LevelShapes
from ldpopt.design.methods.tangent_exchange import TangentExchange
from ldpopt.design.methods.threshold_columns import ThresholdColumns
from ldpopt.design.optimal import estimation_design, optimal_channel
from ldpopt.design.structure import Structure, Structures, structures
from ldpopt.design.utilities.against_set import AgainstSet
from ldpopt.design.utilities.base import ColumnUtility, Utility
from ldpopt.design.utilities.column import MutualInformation, WeightedSum, WorstOf
from ldpopt.design.utilities.criteria import AOptimal, COptimal, Criterion, DOptimal, MVOptimal
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.expected_loss import ExpectedLoss
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.utilities.marginals import Marginals
from ldpopt.design.utilities.neighbourhood import Box, Contamination, Neighbourhood, TotalVariationBall
from ldpopt.design.utilities.private_sampling import PrivateSampling
from ldpopt.design.utilities.sets import Around, Hull, HypothesisSet

# Former names, kept for one release.
EstimationDesign = Design
Tests = WorstOf
CutDual = LabelDual = RatioDual

__all__ = [
    "METHODS",
    "ZCDP",
    "AOptimal",
    "AgainstSet",
    "AlphabetConstraint",
    "AlphabetLossDual",
    "ApproximateLDP",
    "Around",
    "BalancedSets",
    "Box",
    "BranchAndBound",
    "BranchDual",
    "COptimal",
    "CapacityBounded",
    "Certificate",
    "ColumnConstraint",
    "ColumnGeneration",
    "ColumnUtility",
    "ConcentratedLDP",
    "Constraint",
    "Contamination",
    "Contraction",
    "Criterion",
    "CutDual",
    "DOptimal",
    "DecisionProgram",
    "Denominator",
    "Design",
    "Divergence",
    "Dominated",
    "EnvelopeDual",
    "EquivalenceDual",
    "Erasure",
    "EstimationColumns",
    "EstimationDesign",
    "EvenPilot",
    "Exchange",
    "ExpectedLoss",
    "FisherInformation",
    "GivenDecisions",
    "GivenSearch",
    "Hull",
    "HypothesisSet",
    "InformationCapacity",
    "InformationDual",
    "IntegerColumns",
    "IntegerProgram",
    "IntervalDual",
    "Invariant",
    "LabelDual",
    "LevelDual",
    "LevelLP",
    "LevelShapes",
    "LevelVariationDual",
    "LocalDP",
    "LocalSearch",
    "LossDual",
    "MVOptimal",
    "MarginalDual",
    "MarginalPatterns",
    "MergedPartition",
    "Method",
    "MutualInformation",
    "Neighbourhood",
    "Outputs",
    "PairwiseInformation",
    "Partition",
    "PartsBound",
    "PatternDual",
    "PatternLP",
    "PolicyDual",
    "PolicyLP",
    "PrivateSampling",
    "RatioDual",
    "Relaxed",
    "RenyiLDP",
    "Rounded",
    "Saddle",
    "SaddlePoint",
    "SampledColumns",
    "SamplingDual",
    "SamplingProgram",
    "SmallSets",
    "Structure",
    "Structures",
    "Support",
    "TangentExchange",
    "Tests",
    "TotalVariation",
    "TotalVariationBall",
    "TradeOff",
    "Utility",
    "Verification",
    "WeightedSum",
    "WorstOf",
    "estimation_design",
    "load_design",
    "optimal_channel",
    "structures",
]
