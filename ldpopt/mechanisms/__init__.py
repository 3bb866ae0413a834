"""The named mechanisms: closed forms, each a channel or a frozen value with its exact guarantees.

Channels: `binary`, `randomized_response` and other staircase matrices. Frequency oracles, whose reports are too many
for a table: `unary_encoding`, `local_hashing`, `hadamard_response`. Designs for a sensitive yes-or-no question:
`warner` to `triangular`. Numbers in an interval: `piecewise` for their mean, `square_wave` for their distribution. One
draw from a secret distribution: `PrivateSampler`. Additive noise: `laplace`, `gaussian`, `staircase`,
`matrix_mechanism`. Dominating pairs, at least as easy to tell apart as any two answers: `dominating_pair`,
`FinitePair`, `ContinuousPair`.
"""

from ldpopt.mechanisms.continuous_pair import ContinuousPair
from ldpopt.mechanisms.hashing import (
    HadamardResponse,
    LocalHashing,
    hadamard_response,
    local_hashing,
    optimized_local_hashing,
)
from ldpopt.mechanisms.matrix_mechanism import MatrixMechanism, matrix_mechanism
from ldpopt.mechanisms.noise import Gaussian, GaussianPair, Laplace, LaplacePair, gaussian, laplace
from ldpopt.mechanisms.oracles import FrequencyOracle, UnaryEncoding, optimized_unary_encoding, unary_encoding
from ldpopt.mechanisms.response import (
    PrivateSampler,
    binary,
    binary_with_erasure,
    randomized_response,
    sort_partition_randomize,
    subset_selection,
    truncated_geometric,
    two_step,
)
from ldpopt.mechanisms.staircase import Staircase, dominating_pair, staircase
from ldpopt.mechanisms.window import Piecewise, SquareWave, piecewise, square_wave
from ldpopt.mechanisms.yes_no import (
    Crosswise,
    ForcedResponse,
    Kuk,
    SurveyDesign,
    Triangular,
    UnrelatedQuestion,
    Warner,
    crosswise,
    forced_response,
    kuk,
    triangular,
    unrelated_question,
    warner,
)
from ldpopt.privacy.finite_pair import FinitePair

__all__ = [
    "ContinuousPair", "Crosswise", "FinitePair", "ForcedResponse", "FrequencyOracle", "Gaussian", "GaussianPair",
    "HadamardResponse", "Kuk", "Laplace", "LaplacePair", "LocalHashing", "MatrixMechanism", "Piecewise",
    "PrivateSampler", "SquareWave", "Staircase", "SurveyDesign", "Triangular", "UnaryEncoding", "UnrelatedQuestion",
    "Warner", "binary", "binary_with_erasure", "crosswise", "dominating_pair", "forced_response", "gaussian",
    "hadamard_response", "kuk", "laplace", "local_hashing", "matrix_mechanism", "optimized_local_hashing",
    "optimized_unary_encoding", "piecewise", "randomized_response", "sort_partition_randomize", "square_wave",
    "staircase", "subset_selection", "triangular", "truncated_geometric", "two_step", "unary_encoding",
    "unrelated_question", "warner",
]  # fmt: skip
