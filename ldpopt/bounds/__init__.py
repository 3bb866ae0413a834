"""Published bounds on how much of a divergence any private channel can keep, with one small function for each.

`compare` shows the exact optimum beside all of them.
"""

from ldpopt.bounds.comparison import BoundRow, Comparison, compare
from ldpopt.bounds.published import (
    asoodeh_zhang,
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
    kairouz_oh_viswanath,
)

__all__ = [
    "BoundRow", "Comparison", "asoodeh_zhang", "binary_share_ghazi_issa", "binary_share_kairouz", "capacity_mass",
    "compare", "dobrushin", "duchi_jordan_wainwright", "erased_share", "ghazi_issa", "ghazi_issa_corollary",
    "ghazi_issa_total_variation", "information_capacity", "information_under_cap", "kairouz_oh_viswanath",
]  # fmt: skip
