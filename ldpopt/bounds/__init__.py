"""Published bounds on the divergence that any private channel can preserve, with one small function for each.

`compare` shows the exact optimum next to all of them; `chernoff`, `stein` and `respondents_to_decide` bound decisions.
"""

from ldpopt.extras import offering

_HOMES = {
    "ldpopt.bounds.comparison": ("BoundRow", "Comparison", "compare", "published_bounds"),
    "ldpopt.bounds.decisions": ("Decision", "Exponent", "chernoff", "respondents_to_decide", "stein"),
    "ldpopt.bounds.published": (
        "asoodeh_diaz_calmon", "asoodeh_zhang", "binary_share", "binary_share_ghazi_issa", "binary_share_kairouz",
        "bound_by_tests", "capacity_mass", "contraction", "dobrushin", "duchi_jordan_wainwright", "erased_share",
        "ghazi_issa", "ghazi_issa_corollary", "ghazi_issa_total_variation", "information_capacity",
        "information_under_cap", "jeffreys_of_total_variation", "kairouz_oh_viswanath", "kept_by_binary", "reach",
    ),
    "ldpopt.bounds.several": ("SeveralExponent", "chernoff_of_several"),
}  # fmt: skip

__all__, __getattr__, __dir__ = offering(__name__, _HOMES)
