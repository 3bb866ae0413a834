from ldpopt.design.candidate import Candidate as Candidate
from ldpopt.design.candidate import Method as Method
from ldpopt.design.constraints.base import AlphabetConstraint as AlphabetConstraint
from ldpopt.design.constraints.base import ColumnConstraint as ColumnConstraint
from ldpopt.design.constraints.base import Constraint as Constraint
from ldpopt.design.constraints.capacity import CapacityBounded as CapacityBounded
from ldpopt.design.constraints.hockey_stick import ApproximateLDP as ApproximateLDP
from ldpopt.design.constraints.hockey_stick import TotalVariation as TotalVariation
from ldpopt.design.constraints.hockey_stick import TradeOff as TradeOff
from ldpopt.design.constraints.invariant import Invariant as Invariant
from ldpopt.design.constraints.local_dp import LocalDP as LocalDP
from ldpopt.design.constraints.moment import ConcentratedLDP as ConcentratedLDP
from ldpopt.design.constraints.moment import RenyiLDP as RenyiLDP
from ldpopt.design.constraints.outputs import Denominator as Denominator
from ldpopt.design.constraints.outputs import Outputs as Outputs
from ldpopt.design.constraints.outputs import Support as Support
from ldpopt.design.constraints.repair import Unrepairable as Unrepairable
from ldpopt.design.constraints.repair import repair as repair
from ldpopt.design.decisions.method import DecisionProgram as DecisionProgram
from ldpopt.design.decisions.method import GivenSearch as GivenSearch
from ldpopt.design.decisions.method import SamplingProgram as SamplingProgram
from ldpopt.design.decisions.proof import AlphabetLossDual as AlphabetLossDual
from ldpopt.design.decisions.proof import SamplingDual as SamplingDual
from ldpopt.design.design import Design as Design
from ldpopt.design.design import is_certified as is_certified
from ldpopt.design.estimation.method import EstimationColumns as EstimationColumns
from ldpopt.design.estimation.method_marginals import SymmetricMarginals as SymmetricMarginals
from ldpopt.design.estimation.method_marginals import respondents_kernel as respondents_kernel
from ldpopt.design.estimation.method_thresholds import ThresholdColumns as ThresholdColumns
from ldpopt.design.estimation.method_variances import SampledColumns as SampledColumns
from ldpopt.design.estimation.method_variances import SmallSets as SmallSets
from ldpopt.design.estimation.proof import EquivalenceDual as EquivalenceDual
from ldpopt.design.estimation.proof import RespondentsBound as RespondentsBound
from ldpopt.design.estimation.proof import SharedInformation as SharedInformation
from ldpopt.design.hypothesis_sets.method import Saddle as Saddle
from ldpopt.design.hypothesis_sets.proof import SaddlePoint as SaddlePoint
from ldpopt.design.information.method import BalancedSets as BalancedSets
from ldpopt.design.information.proof import InformationDual as InformationDual
from ldpopt.design.information.proof_capacity import InformationCapacity as InformationCapacity
from ldpopt.design.information.proof_capacity import PairwiseInformation as PairwiseInformation
from ldpopt.design.integers.method import IntegerProgram as IntegerProgram
from ldpopt.design.integers.method import Rounded as Rounded
from ldpopt.design.kernel.certificate import Certificate as Certificate
from ldpopt.design.kernel.certificate import Unbounded as Unbounded
from ldpopt.design.kernel.certificate import Verification as Verification
from ldpopt.design.kernel.proof import Contraction as Contraction
from ldpopt.design.kernel.proof import Dominated as Dominated
from ldpopt.design.kernel.proof import PartsBound as PartsBound
from ldpopt.design.kernel.proof import Relaxed as Relaxed
from ldpopt.design.load import load_design as load_design
from ldpopt.design.load import load_respondents as load_respondents
from ldpopt.design.load import parse_design as parse_design
from ldpopt.design.load import verify_design as verify_design
from ldpopt.design.optimal import METHODS as METHODS
from ldpopt.design.optimal import optimal_channel as optimal_channel
from ldpopt.design.outputs.method import BranchAndBound as BranchAndBound
from ldpopt.design.outputs.method import EntryBoxes as EntryBoxes
from ldpopt.design.outputs.method_search import LocalSearch as LocalSearch
from ldpopt.design.outputs.proof import BranchDual as BranchDual
from ldpopt.design.outputs.proof import ChamberDual as ChamberDual
from ldpopt.design.patterns.method import LevelLP as LevelLP
from ldpopt.design.patterns.method import PatternLP as PatternLP
from ldpopt.design.patterns.method import PolicyLP as PolicyLP
from ldpopt.design.patterns.method_cvxpy import ConvexProgram as ConvexProgram
from ldpopt.design.patterns.method_cvxpy import DesignProgram as DesignProgram
from ldpopt.design.patterns.method_cvxpy import problem as problem
from ldpopt.design.patterns.proof import PatternDual as PatternDual
from ldpopt.design.patterns.proof import PolicyDual as PolicyDual
from ldpopt.design.patterns.proof_levels import IntegerColumns as IntegerColumns
from ldpopt.design.patterns.proof_levels import LevelDual as LevelDual
from ldpopt.design.patterns.proof_levels import LevelVariationDual as LevelVariationDual
from ldpopt.design.ratios.method import Exchange as Exchange
from ldpopt.design.ratios.method import MergedExchange as MergedExchange
from ldpopt.design.ratios.method_tangents import TangentExchange as TangentExchange
from ldpopt.design.ratios.proof import IntervalDual as IntervalDual
from ldpopt.design.ratios.proof import LossDual as LossDual
from ldpopt.design.registry import command_options as command_options
from ldpopt.design.registry import offered_types as offered_types
from ldpopt.design.registry import parameter_values as parameter_values
from ldpopt.design.registry import types_with_parameters as types_with_parameters
from ldpopt.design.several_hypotheses.method import MarginalPatterns as MarginalPatterns
from ldpopt.design.several_hypotheses.proof import MarginalDual as MarginalDual
from ldpopt.design.structure import Structure as Structure
from ldpopt.design.structure import Structures as Structures
from ldpopt.design.structure import structures as structures
from ldpopt.design.symmetric.method import SymmetricSets as SymmetricSets
from ldpopt.design.symmetric.method_orbits import OrbitProgram as OrbitProgram
from ldpopt.design.symmetric.proof import SymmetricEnvelope as SymmetricEnvelope
from ldpopt.design.symmetric.proof_orbits import OrbitDual as OrbitDual
from ldpopt.design.two_hypotheses.method import Erasure as Erasure
from ldpopt.design.two_hypotheses.method import MergedPartition as MergedPartition
from ldpopt.design.two_hypotheses.method import Partition as Partition
from ldpopt.design.two_hypotheses.proof import EnvelopeDual as EnvelopeDual
from ldpopt.design.utilities.against_set import AgainstSet as AgainstSet
from ldpopt.design.utilities.base import ColumnUtility as ColumnUtility
from ldpopt.design.utilities.base import Utility as Utility
from ldpopt.design.utilities.column import MutualInformation as MutualInformation
from ldpopt.design.utilities.column import WeightedSum as WeightedSum
from ldpopt.design.utilities.column import WorstOf as WorstOf
from ldpopt.design.utilities.criteria import AOptimal as AOptimal
from ldpopt.design.utilities.criteria import COptimal as COptimal
from ldpopt.design.utilities.criteria import DOptimal as DOptimal
from ldpopt.design.utilities.criteria import MVOptimal as MVOptimal
from ldpopt.design.utilities.criterion import Criterion as Criterion
from ldpopt.design.utilities.decisions import ExpectedLoss as ExpectedLoss
from ldpopt.design.utilities.decisions import PrivateSampling as PrivateSampling
from ldpopt.design.utilities.divergence import Divergence as Divergence
from ldpopt.design.utilities.fisher_information import FisherInformation as FisherInformation
from ldpopt.design.utilities.marginals import Marginals as Marginals
from ldpopt.design.utilities.sets import Around as Around
from ldpopt.design.utilities.sets import Box as Box
from ldpopt.design.utilities.sets import Contamination as Contamination
from ldpopt.design.utilities.sets import Hull as Hull
from ldpopt.design.utilities.sets import HypothesisSet as HypothesisSet
from ldpopt.design.utilities.sets import Neighbourhood as Neighbourhood
from ldpopt.design.utilities.sets import TotalVariationBall as TotalVariationBall

__all__ = [
    "METHODS",
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
    "Candidate",
    "CapacityBounded",
    "Certificate",
    "ChamberDual",
    "ColumnConstraint",
    "ColumnUtility",
    "ConcentratedLDP",
    "Constraint",
    "Contamination",
    "Contraction",
    "ConvexProgram",
    "Criterion",
    "DOptimal",
    "DecisionProgram",
    "Denominator",
    "Design",
    "DesignProgram",
    "Divergence",
    "Dominated",
    "EntryBoxes",
    "EnvelopeDual",
    "EquivalenceDual",
    "Erasure",
    "EstimationColumns",
    "Exchange",
    "ExpectedLoss",
    "FisherInformation",
    "GivenSearch",
    "Hull",
    "HypothesisSet",
    "InformationCapacity",
    "InformationDual",
    "IntegerColumns",
    "IntegerProgram",
    "IntervalDual",
    "Invariant",
    "LevelDual",
    "LevelLP",
    "LevelVariationDual",
    "LocalDP",
    "LocalSearch",
    "LossDual",
    "MVOptimal",
    "MarginalDual",
    "MarginalPatterns",
    "Marginals",
    "MergedExchange",
    "MergedPartition",
    "Method",
    "MutualInformation",
    "Neighbourhood",
    "OrbitDual",
    "OrbitProgram",
    "Outputs",
    "PairwiseInformation",
    "Partition",
    "PartsBound",
    "PatternDual",
    "PatternLP",
    "PolicyDual",
    "PolicyLP",
    "PrivateSampling",
    "Relaxed",
    "RenyiLDP",
    "RespondentsBound",
    "Rounded",
    "Saddle",
    "SaddlePoint",
    "SampledColumns",
    "SamplingDual",
    "SamplingProgram",
    "SharedInformation",
    "SmallSets",
    "Structure",
    "Structures",
    "Support",
    "SymmetricEnvelope",
    "SymmetricMarginals",
    "SymmetricSets",
    "TangentExchange",
    "ThresholdColumns",
    "TotalVariation",
    "TotalVariationBall",
    "TradeOff",
    "Unbounded",
    "Unrepairable",
    "Utility",
    "Verification",
    "WeightedSum",
    "WorstOf",
    "command_options",
    "is_certified",
    "load_design",
    "load_respondents",
    "offered_types",
    "optimal_channel",
    "parameter_values",
    "parse_design",
    "problem",
    "repair",
    "respondents_kernel",
    "structures",
    "types_with_parameters",
    "verify_design",
]
