"""What is true, by programs that share no code with the package: privacy, utilities, optima, and nasty problems."""

from truth.privacy import (
    DIGITS,
    FAMILIES,
    Row,
    channels,
    cumulant,
    cut,
    digits,
    hockey_stick,
    kl,
    local_dp,
    ordered_pairs,
    probability,
    product,
    renyi,
    rows,
    worst,
)

__all__ = [
    "DIGITS",
    "FAMILIES",
    "Row",
    "channels",
    "cumulant",
    "cut",
    "digits",
    "hockey_stick",
    "kl",
    "local_dp",
    "ordered_pairs",
    "probability",
    "product",
    "renyi",
    "rows",
    "worst",
]
