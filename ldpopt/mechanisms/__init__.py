"""The named mechanisms: closed forms, each a channel or a frozen value with its exact guarantees.

Channels: `binary`, `binary_with_erasure`, `randomized_response`, `sort_partition_randomize`, `subset_selection`,
`truncated_geometric`, `two_step`.

Frequency oracles, which estimate how frequent each answer is and have too many possible reports for a table:
`unary_encoding`, `optimized_unary_encoding`, `local_hashing`, `optimized_local_hashing`, `hadamard_response`.

Survey designs for a sensitive yes-or-no question: `warner`, `forced_response`, `unrelated_question`, `kuk`,
`crosswise`, `triangular`.

Numbers in an interval: `piecewise` for their mean, and `square_wave` for their distribution.

One draw from a secret distribution: `PrivateSampler`.

Additive noise: `laplace`, `gaussian`, `staircase`, and `matrix_mechanism` for vectors of counts.

Dominating pairs, two distributions that are at least as easy to tell apart as the reports of any two answers:
`dominating_pair`, `FinitePair`, `ContinuousPair`.
"""

from ldpopt.mechanisms.binary import binary
from ldpopt.mechanisms.binary_with_erasure import binary_with_erasure
from ldpopt.mechanisms.continuous_pair import ContinuousPair
from ldpopt.mechanisms.dominating_pair import dominating_pair
from ldpopt.mechanisms.forced_response import ForcedResponse, UnrelatedQuestion, forced_response, unrelated_question
from ldpopt.mechanisms.frequency_oracle import FrequencyOracle
from ldpopt.mechanisms.gaussian import Gaussian, GaussianPair, gaussian
from ldpopt.mechanisms.hadamard_response import HadamardResponse, hadamard_response
from ldpopt.mechanisms.kuk import Kuk, kuk
from ldpopt.mechanisms.laplace import Laplace, LaplacePair, laplace
from ldpopt.mechanisms.local_hashing import LocalHashing, local_hashing, optimized_local_hashing
from ldpopt.mechanisms.matrix_mechanism import MatrixMechanism, matrix_mechanism
from ldpopt.mechanisms.piecewise import Piecewise, piecewise
from ldpopt.mechanisms.private_sampler import PrivateSampler
from ldpopt.mechanisms.randomized_response import randomized_response
from ldpopt.mechanisms.sort_partition_randomize import sort_partition_randomize
from ldpopt.mechanisms.square_wave import SquareWave, square_wave
from ldpopt.mechanisms.staircase import Staircase, staircase
from ldpopt.mechanisms.subset_selection import subset_selection
from ldpopt.mechanisms.survey_design import SurveyDesign
from ldpopt.mechanisms.triangular import Triangular, triangular
from ldpopt.mechanisms.truncated_geometric import truncated_geometric
from ldpopt.mechanisms.two_step import two_step
from ldpopt.mechanisms.unary_encoding import UnaryEncoding, optimized_unary_encoding, unary_encoding
from ldpopt.mechanisms.warner import Crosswise, Warner, crosswise, warner
from ldpopt.privacy.finite_pair import FinitePair

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
