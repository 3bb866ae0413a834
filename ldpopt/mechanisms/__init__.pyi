from ldpopt.mechanisms.continuous_pair import ContinuousPair as ContinuousPair
from ldpopt.mechanisms.continuous_pair import dominating_pair as dominating_pair
from ldpopt.mechanisms.noise import Gaussian as Gaussian
from ldpopt.mechanisms.noise import GaussianPair as GaussianPair
from ldpopt.mechanisms.noise import Laplace as Laplace
from ldpopt.mechanisms.noise import LaplacePair as LaplacePair
from ldpopt.mechanisms.noise import Staircase as Staircase
from ldpopt.mechanisms.noise import gaussian as gaussian
from ldpopt.mechanisms.noise import laplace as laplace
from ldpopt.mechanisms.noise import staircase as staircase
from ldpopt.mechanisms.oracles import FrequencyOracle as FrequencyOracle
from ldpopt.mechanisms.oracles import HadamardResponse as HadamardResponse
from ldpopt.mechanisms.oracles import LocalHashing as LocalHashing
from ldpopt.mechanisms.oracles import UnaryEncoding as UnaryEncoding
from ldpopt.mechanisms.oracles import hadamard_response as hadamard_response
from ldpopt.mechanisms.oracles import local_hashing as local_hashing
from ldpopt.mechanisms.oracles import optimized_local_hashing as optimized_local_hashing
from ldpopt.mechanisms.oracles import optimized_unary_encoding as optimized_unary_encoding
from ldpopt.mechanisms.oracles import unary_encoding as unary_encoding
from ldpopt.mechanisms.response import PrivateSampler as PrivateSampler
from ldpopt.mechanisms.response import binary as binary
from ldpopt.mechanisms.response import binary_with_erasure as binary_with_erasure
from ldpopt.mechanisms.response import randomized_response as randomized_response
from ldpopt.mechanisms.response import sort_partition_randomize as sort_partition_randomize
from ldpopt.mechanisms.response import subset_selection as subset_selection
from ldpopt.mechanisms.response import truncated_geometric as truncated_geometric
from ldpopt.mechanisms.response import two_step as two_step
from ldpopt.mechanisms.window import Piecewise as Piecewise
from ldpopt.mechanisms.window import SquareWave as SquareWave
from ldpopt.mechanisms.window import piecewise as piecewise
from ldpopt.mechanisms.window import square_wave as square_wave
from ldpopt.mechanisms.workload import MatrixMechanism as MatrixMechanism
from ldpopt.mechanisms.workload import matrix_mechanism as matrix_mechanism
from ldpopt.mechanisms.yes_no import Crosswise as Crosswise
from ldpopt.mechanisms.yes_no import ForcedResponse as ForcedResponse
from ldpopt.mechanisms.yes_no import Kuk as Kuk
from ldpopt.mechanisms.yes_no import SurveyDesign as SurveyDesign
from ldpopt.mechanisms.yes_no import Triangular as Triangular
from ldpopt.mechanisms.yes_no import UnrelatedQuestion as UnrelatedQuestion
from ldpopt.mechanisms.yes_no import Warner as Warner
from ldpopt.mechanisms.yes_no import crosswise as crosswise
from ldpopt.mechanisms.yes_no import forced_response as forced_response
from ldpopt.mechanisms.yes_no import kuk as kuk
from ldpopt.mechanisms.yes_no import triangular as triangular
from ldpopt.mechanisms.yes_no import unrelated_question as unrelated_question
from ldpopt.mechanisms.yes_no import warner as warner
from ldpopt.privacy.finite_pair import FinitePair as FinitePair

__all__ = [
    "ContinuousPair",
    "Crosswise",
    "FinitePair",
    "ForcedResponse",
    "FrequencyOracle",
    "Gaussian",
    "GaussianPair",
    "HadamardResponse",
    "Kuk",
    "Laplace",
    "LaplacePair",
    "LocalHashing",
    "MatrixMechanism",
    "Piecewise",
    "PrivateSampler",
    "SquareWave",
    "Staircase",
    "SurveyDesign",
    "Triangular",
    "UnaryEncoding",
    "UnrelatedQuestion",
    "Warner",
    "binary",
    "binary_with_erasure",
    "crosswise",
    "dominating_pair",
    "forced_response",
    "gaussian",
    "hadamard_response",
    "kuk",
    "laplace",
    "local_hashing",
    "matrix_mechanism",
    "optimized_local_hashing",
    "optimized_unary_encoding",
    "piecewise",
    "randomized_response",
    "sort_partition_randomize",
    "square_wave",
    "staircase",
    "subset_selection",
    "triangular",
    "truncated_geometric",
    "two_step",
    "unary_encoding",
    "unrelated_question",
    "warner",
]
