"""Conversions from one notion of privacy to another.

Each takes a claim (or a measured `Guarantee`) and returns a claim that follows from it, with numbers rounded outward.
`tight` says whether no better conversion exists, and `reference` names the theorem. The plain name is the statement of
the paper; a name that ends in ``_sharp`` is a better bound of the same kind.
"""

from ldpopt.privacy.conversions.concentrated import (
    approximate_curve_to_zcdp,
    approximate_to_approximate_zcdp,
    approximate_to_approximate_zcdp_sharp,
    mcdp_to_zcdp,
    zcdp_to_mcdp_mean,
)
from ldpopt.privacy.conversions.pure import (
    approximate_to_tv,
    pure_to_approximate,
    pure_to_mcdp,
    pure_to_mcdp_sharp,
    pure_to_renyi,
    pure_to_tv,
    pure_to_zcdp,
    pure_to_zcdp_sharp,
    tv_to_approximate,
)
from ldpopt.privacy.conversions.to_approximate import (
    approximate_zcdp_to_approximate,
    approximate_zcdp_to_epsilon,
    renyi_to_approximate,
    renyi_to_approximate_closed,
    renyi_to_approximate_sharp,
    zcdp_delta,
    zcdp_to_approximate,
    zcdp_to_approximate_sharp,
    zcdp_to_renyi,
)

__all__ = [
    "approximate_curve_to_zcdp",
    "approximate_to_approximate_zcdp",
    "approximate_to_approximate_zcdp_sharp",
    "approximate_to_tv",
    "approximate_zcdp_to_approximate",
    "approximate_zcdp_to_epsilon",
    "mcdp_to_zcdp",
    "pure_to_approximate",
    "pure_to_mcdp",
    "pure_to_mcdp_sharp",
    "pure_to_renyi",
    "pure_to_tv",
    "pure_to_zcdp",
    "pure_to_zcdp_sharp",
    "renyi_to_approximate",
    "renyi_to_approximate_closed",
    "renyi_to_approximate_sharp",
    "tv_to_approximate",
    "zcdp_delta",
    "zcdp_to_approximate",
    "zcdp_to_approximate_sharp",
    "zcdp_to_mcdp_mean",
    "zcdp_to_renyi",
]
