"""The named mechanisms: closed forms, each a channel or a frozen value with its exact guarantees.

Channels: `binary`, `randomized_response` and other staircase matrices. Frequency oracles, whose reports are too many
for a table: `unary_encoding`, `local_hashing`, `hadamard_response`. Designs for a sensitive yes-or-no question:
`warner` to `triangular`. Numbers in an interval: `piecewise` for their mean, `square_wave` for their distribution. One
draw from a secret distribution: `PrivateSampler`. Additive noise: `laplace`, `gaussian`, `staircase`,
`matrix_mechanism`. Dominating pairs, at least as easy to distinguish as any two answers: `dominating_pair`,
`FinitePair`, `ContinuousPair`.
"""

from ldpopt.extras import offering

_HOMES = {
    "ldpopt.mechanisms.continuous_pair": ("ContinuousPair", "dominating_pair"),
    "ldpopt.mechanisms.workload": ("MatrixMechanism", "matrix_mechanism"),
    "ldpopt.mechanisms.noise": (
        "Gaussian", "GaussianPair", "Laplace", "LaplacePair", "Staircase", "gaussian", "laplace", "staircase",
    ),
    "ldpopt.mechanisms.oracles": (
        "FrequencyOracle", "HadamardResponse", "LocalHashing", "UnaryEncoding", "hadamard_response", "local_hashing",
        "optimized_local_hashing", "optimized_unary_encoding", "unary_encoding",
    ),
    "ldpopt.mechanisms.response": (
        "PrivateSampler", "binary", "binary_with_erasure", "randomized_response", "sort_partition_randomize",
        "subset_selection", "truncated_geometric", "two_step",
    ),
    "ldpopt.mechanisms.window": ("Piecewise", "SquareWave", "piecewise", "square_wave"),
    "ldpopt.mechanisms.yes_no": (
        "Crosswise", "ForcedResponse", "Kuk", "SurveyDesign", "Triangular", "UnrelatedQuestion", "Warner",
        "crosswise", "forced_response", "kuk", "triangular", "unrelated_question", "warner",
    ),
    "ldpopt.privacy.finite_pair": ("FinitePair",),
}  # fmt: skip

__all__, __getattr__, __dir__ = offering(__name__, _HOMES)
