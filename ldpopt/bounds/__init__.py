"""Published bounds on how much of a divergence any private channel can keep, with one small function for each.

`compare` shows the exact optimum beside all of them; `chernoff`, `stein` and `respondents_to_decide` bound decisions.
"""

from ldpopt.bounds.comparison import BoundRow, Comparison, compare, published_bounds
from ldpopt.bounds.decisions import Decision, Exponent, chernoff, respondents_to_decide, stein
from ldpopt.bounds.published import (
    asoodeh_zhang,
    binary_share,
    binary_share_ghazi_issa,
    binary_share_kairouz,
    capacity_mass,
    dobrushin,
    duchi_jordan_wainwright,
    erased_share,
    ghazi_issa,
    ghazi_issa_corollary,
    ghazi_issa_total_variation,
    information_capacity,
    information_under_cap,
    jeffreys_of_total_variation,
    kairouz_oh_viswanath,
)
from ldpopt.bounds.several import SeveralExponent, chernoff_of_several

__all__ = [
    "BoundRow", "Comparison", "Decision", "Exponent", "SeveralExponent", "asoodeh_zhang", "binary_share",
    "binary_share_ghazi_issa", "binary_share_kairouz", "capacity_mass", "chernoff", "chernoff_of_several", "compare",
    "dobrushin", "duchi_jordan_wainwright", "erased_share", "ghazi_issa", "ghazi_issa_corollary",
    "ghazi_issa_total_variation", "information_capacity", "information_under_cap", "jeffreys_of_total_variation",
    "kairouz_oh_viswanath", "published_bounds", "respondents_to_decide", "stein",
]  # fmt: skip
