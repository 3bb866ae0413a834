"""The named mechanisms: closed forms, each a channel or a frozen value with its exact guarantees."""

from ldpopt.mechanisms.binary import binary
from ldpopt.mechanisms.binary_with_erasure import binary_with_erasure
from ldpopt.mechanisms.randomized_response import randomized_response
from ldpopt.mechanisms.sort_partition_randomize import sort_partition_randomize
from ldpopt.mechanisms.subset_selection import subset_selection

__all__ = [
    "binary",
    "binary_with_erasure",
    "randomized_response",
    "sort_partition_randomize",
    "subset_selection",
]
