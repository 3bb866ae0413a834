from ldpopt.design.candidate import Candidate as Candidate
from ldpopt.design.candidate import Method as Method
from ldpopt.design.certificates.base import Certificate as Certificate
from ldpopt.design.certificates.base import Unbounded as Unbounded
from ldpopt.design.certificates.base import Verification as Verification
from ldpopt.design.certificates.boxes import BranchDual as BranchDual
from ldpopt.design.certificates.capacity import InformationCapacity as InformationCapacity
from ldpopt.design.certificates.capacity import PairwiseInformation as PairwiseInformation
from ldpopt.design.certificates.chambers import ChamberDual as ChamberDual
from ldpopt.design.certificates.decisions import AlphabetLossDual as AlphabetLossDual
from ldpopt.design.certificates.decisions import SamplingDual as SamplingDual
from ldpopt.design.certificates.envelope import EnvelopeDual as EnvelopeDual
from ldpopt.design.certificates.equivalence import EquivalenceDual as EquivalenceDual
from ldpopt.design.certificates.information import InformationDual as InformationDual
from ldpopt.design.certificates.intervals import IntervalDual as IntervalDual
from ldpopt.design.certificates.intervals import LossDual as LossDual
from ldpopt.design.certificates.levels import IntegerColumns as IntegerColumns
from ldpopt.design.certificates.levels import LevelDual as LevelDual
from ldpopt.design.certificates.levels import LevelVariationDual as LevelVariationDual
from ldpopt.design.certificates.listed import PatternDual as PatternDual
from ldpopt.design.certificates.listed import PolicyDual as PolicyDual
from ldpopt.design.certificates.marginals import MarginalDual as MarginalDual
from ldpopt.design.certificates.relaxed import Contraction as Contraction
from ldpopt.design.certificates.relaxed import Dominated as Dominated
from ldpopt.design.certificates.relaxed import PartsBound as PartsBound
from ldpopt.design.certificates.relaxed import Relaxed as Relaxed
from ldpopt.design.certificates.relaxed import SaddlePoint as SaddlePoint
from ldpopt.design.certificates.respondents import RespondentsBound as RespondentsBound
from ldpopt.design.certificates.respondents import SharedInformation as SharedInformation
from ldpopt.design.certificates.symmetric import SymmetricEnvelope as SymmetricEnvelope
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
from ldpopt.design.design import Design as Design
from ldpopt.design.design import is_certified as is_certified
from ldpopt.design.load import load_design as load_design
from ldpopt.design.load import load_respondents as load_respondents
from ldpopt.design.load import parse_design as parse_design
from ldpopt.design.load import verify_design as verify_design
from ldpopt.design.methods.balanced import BalancedSets as BalancedSets
from ldpopt.design.methods.branch_and_bound import BranchAndBound as BranchAndBound
from ldpopt.design.methods.chambers import EntryBoxes as EntryBoxes
from ldpopt.design.methods.convex_program import ConvexProgram as ConvexProgram
from ldpopt.design.methods.convex_program import PosedProgram as PosedProgram
from ldpopt.design.methods.convex_program import problem as problem
from ldpopt.design.methods.decisions import DecisionProgram as DecisionProgram
from ldpopt.design.methods.decisions import GivenSearch as GivenSearch
from ldpopt.design.methods.decisions import SamplingProgram as SamplingProgram
from ldpopt.design.methods.estimation import EstimationColumns as EstimationColumns
from ldpopt.design.methods.exchange import Exchange as Exchange
from ldpopt.design.methods.exchange import MergedExchange as MergedExchange
from ldpopt.design.methods.integer_program import IntegerProgram as IntegerProgram
from ldpopt.design.methods.integer_program import Rounded as Rounded
from ldpopt.design.methods.listed import LevelLP as LevelLP
from ldpopt.design.methods.listed import PatternLP as PatternLP
from ldpopt.design.methods.listed import PolicyLP as PolicyLP
from ldpopt.design.methods.local_search import LocalSearch as LocalSearch
from ldpopt.design.methods.marginals import MarginalPatterns as MarginalPatterns
from ldpopt.design.methods.partition import Erasure as Erasure
from ldpopt.design.methods.partition import MergedPartition as MergedPartition
from ldpopt.design.methods.partition import Partition as Partition
from ldpopt.design.methods.saddle import Saddle as Saddle
from ldpopt.design.methods.symmetric import SymmetricSets as SymmetricSets
from ldpopt.design.methods.symmetric_marginals import SymmetricMarginals as SymmetricMarginals
from ldpopt.design.methods.symmetric_marginals import respondents_kernel as respondents_kernel
from ldpopt.design.methods.tangent_exchange import TangentExchange as TangentExchange
from ldpopt.design.methods.threshold_columns import ThresholdColumns as ThresholdColumns
from ldpopt.design.methods.variances import SampledColumns as SampledColumns
from ldpopt.design.methods.variances import SmallSets as SmallSets
from ldpopt.design.optimal import METHODS as METHODS
from ldpopt.design.optimal import optimal_channel as optimal_channel
from ldpopt.design.registry import command_options as command_options
from ldpopt.design.registry import offered_types as offered_types
from ldpopt.design.registry import parameter_values as parameter_values
from ldpopt.design.registry import types_with_parameters as types_with_parameters
from ldpopt.design.structure import Structure as Structure
from ldpopt.design.structure import Structures as Structures
from ldpopt.design.structure import structures as structures
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
    "Outputs",
    "PairwiseInformation",
    "Partition",
    "PartsBound",
    "PatternDual",
    "PatternLP",
    "PolicyDual",
    "PolicyLP",
    "PosedProgram",
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
