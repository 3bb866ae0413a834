"""The named mechanisms: closed forms, each a channel or a frozen value with its exact guarantees."""

from ldpopt.mechanisms.binary import binary
from ldpopt.mechanisms.binary_with_erasure import binary_with_erasure
from ldpopt.mechanisms.continuous_pair import ContinuousPair
from ldpopt.mechanisms.finite_pair import FinitePair, dominating_pair
from ldpopt.mechanisms.gaussian import Gaussian, GaussianPair, gaussian
from ldpopt.mechanisms.laplace import Laplace, LaplacePair, laplace
from ldpopt.mechanisms.randomized_response import randomized_response
from ldpopt.mechanisms.sort_partition_randomize import sort_partition_randomize
from ldpopt.mechanisms.staircase import Staircase, staircase
from ldpopt.mechanisms.subset_selection import subset_selection

__all__ = [
    "ContinuousPair",
    "FinitePair",
    "Gaussian",
    "GaussianPair",
    "Laplace",
    "LaplacePair",
    "Staircase",
    "binary",
    "binary_with_erasure",
    "dominating_pair",
    "gaussian",
    "laplace",
    "randomized_response",
    "sort_partition_randomize",
    "staircase",
    "subset_selection",
]
