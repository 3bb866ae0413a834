from ldpopt import bounds as bounds
from ldpopt import channel as channel
from ldpopt import composition as composition
from ldpopt import datasets as datasets
from ldpopt import design as design
from ldpopt import divergences as divergences
from ldpopt import errors as errors
from ldpopt import frontiers as frontiers
from ldpopt import io as io
from ldpopt import mechanisms as mechanisms
from ldpopt import plots as plots
from ldpopt import privacy as privacy
from ldpopt.channel import Channel as Channel
from ldpopt.citation import cite as cite
from ldpopt.composition import compose as compose
from ldpopt.composition import k_fold as k_fold
from ldpopt.composition.ledger import Ledger as Ledger
from ldpopt.design import load_design as load_design
from ldpopt.design import optimal_channel as optimal_channel
from ldpopt.design import structures as structures
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
from ldpopt.design.design import Design as Design
from ldpopt.design.utilities.against_set import AgainstSet as AgainstSet
from ldpopt.design.utilities.column import MutualInformation as MutualInformation
from ldpopt.design.utilities.column import WeightedSum as WeightedSum
from ldpopt.design.utilities.column import WorstOf as WorstOf
from ldpopt.design.utilities.criteria import AOptimal as AOptimal
from ldpopt.design.utilities.criteria import COptimal as COptimal
from ldpopt.design.utilities.criteria import DOptimal as DOptimal
from ldpopt.design.utilities.criteria import MVOptimal as MVOptimal
from ldpopt.design.utilities.decisions import ExpectedLoss as ExpectedLoss
from ldpopt.design.utilities.decisions import PrivateSampling as PrivateSampling
from ldpopt.design.utilities.divergence import Divergence as Divergence
from ldpopt.design.utilities.fisher_information import FisherInformation as FisherInformation
from ldpopt.design.utilities.marginals import Marginals as Marginals
from ldpopt.design.utilities.sets import Around as Around
from ldpopt.design.utilities.sets import Box as Box
from ldpopt.design.utilities.sets import Contamination as Contamination
from ldpopt.design.utilities.sets import Hull as Hull
from ldpopt.design.utilities.sets import TotalVariationBall as TotalVariationBall
from ldpopt.divergences import CHI_SQUARED as CHI_SQUARED
from ldpopt.divergences import JEFFREYS as JEFFREYS
from ldpopt.divergences import JENSEN_SHANNON as JENSEN_SHANNON
from ldpopt.divergences import KL as KL
from ldpopt.divergences import LE_CAM as LE_CAM
from ldpopt.divergences import NEYMAN_CHI_SQUARED as NEYMAN_CHI_SQUARED
from ldpopt.divergences import REVERSE_KL as REVERSE_KL
from ldpopt.divergences import SQUARED_HELLINGER as SQUARED_HELLINGER
from ldpopt.divergences import TOTAL_VARIATION as TOTAL_VARIATION
from ldpopt.errors import BudgetExceeded as BudgetExceeded
from ldpopt.errors import CertificateError as CertificateError
from ldpopt.errors import DroppedResult as DroppedResult
from ldpopt.errors import InvalidInput as InvalidInput
from ldpopt.errors import LdpoptError as LdpoptError
from ldpopt.errors import NotChecked as NotChecked
from ldpopt.errors import SolverError as SolverError
from ldpopt.frontiers import frontier as frontier
from ldpopt.frontiers import sweep as sweep
from ldpopt.mechanisms import binary as binary
from ldpopt.mechanisms import binary_with_erasure as binary_with_erasure
from ldpopt.mechanisms import hadamard_response as hadamard_response
from ldpopt.mechanisms import local_hashing as local_hashing
from ldpopt.mechanisms import optimized_local_hashing as optimized_local_hashing
from ldpopt.mechanisms import optimized_unary_encoding as optimized_unary_encoding
from ldpopt.mechanisms import randomized_response as randomized_response
from ldpopt.mechanisms import sort_partition_randomize as sort_partition_randomize
from ldpopt.mechanisms import subset_selection as subset_selection
from ldpopt.mechanisms import truncated_geometric as truncated_geometric
from ldpopt.mechanisms import two_step as two_step
from ldpopt.mechanisms import unary_encoding as unary_encoding
from ldpopt.mechanisms.noise import gaussian as gaussian
from ldpopt.mechanisms.noise import laplace as laplace
from ldpopt.mechanisms.noise import staircase as staircase
from ldpopt.mechanisms.window import piecewise as piecewise
from ldpopt.mechanisms.window import square_wave as square_wave
from ldpopt.mechanisms.workload import matrix_mechanism as matrix_mechanism
from ldpopt.mechanisms.yes_no import crosswise as crosswise
from ldpopt.mechanisms.yes_no import forced_response as forced_response
from ldpopt.mechanisms.yes_no import kuk as kuk
from ldpopt.mechanisms.yes_no import triangular as triangular
from ldpopt.mechanisms.yes_no import unrelated_question as unrelated_question
from ldpopt.mechanisms.yes_no import warner as warner
from ldpopt.privacy import approximate_dp as approximate_dp
from ldpopt.privacy import approximate_zcdp as approximate_zcdp
from ldpopt.privacy import audit as audit
from ldpopt.privacy import capacity_bounded as capacity_bounded
from ldpopt.privacy import doeblin as doeblin
from ldpopt.privacy import local_dp as local_dp
from ldpopt.privacy import maximal_leakage as maximal_leakage
from ldpopt.privacy import mcdp as mcdp
from ldpopt.privacy import mutual_information as mutual_information
from ldpopt.privacy import renyi as renyi
from ldpopt.privacy import total_variation as total_variation
from ldpopt.privacy import trade_off as trade_off
from ldpopt.privacy import zcdp as zcdp
from ldpopt.privacy.guarantee import Guarantee as Guarantee
from ldpopt.version import __version__ as __version__

__all__ = [
    "CHI_SQUARED",
    "JEFFREYS",
    "JENSEN_SHANNON",
    "KL",
    "LE_CAM",
    "NEYMAN_CHI_SQUARED",
    "REVERSE_KL",
    "SQUARED_HELLINGER",
    "TOTAL_VARIATION",
    "AOptimal",
    "AgainstSet",
    "ApproximateLDP",
    "Around",
    "Box",
    "BudgetExceeded",
    "COptimal",
    "CapacityBounded",
    "CertificateError",
    "Channel",
    "ConcentratedLDP",
    "Contamination",
    "DOptimal",
    "Denominator",
    "Design",
    "Divergence",
    "DroppedResult",
    "ExpectedLoss",
    "FisherInformation",
    "Guarantee",
    "Hull",
    "InvalidInput",
    "Invariant",
    "LdpoptError",
    "Ledger",
    "LocalDP",
    "MVOptimal",
    "Marginals",
    "MutualInformation",
    "NotChecked",
    "Outputs",
    "PrivateSampling",
    "RenyiLDP",
    "SolverError",
    "Support",
    "TotalVariation",
    "TotalVariationBall",
    "TradeOff",
    "WeightedSum",
    "WorstOf",
    "approximate_dp",
    "approximate_zcdp",
    "audit",
    "binary",
    "binary_with_erasure",
    "capacity_bounded",
    "cite",
    "compose",
    "crosswise",
    "doeblin",
    "forced_response",
    "frontier",
    "gaussian",
    "hadamard_response",
    "k_fold",
    "kuk",
    "laplace",
    "load_design",
    "local_dp",
    "local_hashing",
    "matrix_mechanism",
    "maximal_leakage",
    "mcdp",
    "mutual_information",
    "optimal_channel",
    "optimized_local_hashing",
    "optimized_unary_encoding",
    "piecewise",
    "randomized_response",
    "renyi",
    "sort_partition_randomize",
    "square_wave",
    "staircase",
    "structures",
    "subset_selection",
    "sweep",
    "total_variation",
    "trade_off",
    "triangular",
    "truncated_geometric",
    "two_step",
    "unary_encoding",
    "unrelated_question",
    "warner",
    "zcdp",
]
