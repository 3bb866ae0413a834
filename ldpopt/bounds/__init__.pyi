from ldpopt.bounds.comparison import BoundRow as BoundRow
from ldpopt.bounds.comparison import Comparison as Comparison
from ldpopt.bounds.comparison import compare as compare
from ldpopt.bounds.comparison import published_bounds as published_bounds
from ldpopt.bounds.decisions import Decision as Decision
from ldpopt.bounds.decisions import Exponent as Exponent
from ldpopt.bounds.decisions import chernoff as chernoff
from ldpopt.bounds.decisions import respondents_to_decide as respondents_to_decide
from ldpopt.bounds.decisions import stein as stein
from ldpopt.bounds.published import asoodeh_diaz_calmon as asoodeh_diaz_calmon
from ldpopt.bounds.published import asoodeh_zhang as asoodeh_zhang
from ldpopt.bounds.published import binary_share as binary_share
from ldpopt.bounds.published import binary_share_ghazi_issa as binary_share_ghazi_issa
from ldpopt.bounds.published import binary_share_kairouz as binary_share_kairouz
from ldpopt.bounds.published import bound_by_tests as bound_by_tests
from ldpopt.bounds.published import capacity_mass as capacity_mass
from ldpopt.bounds.published import contraction as contraction
from ldpopt.bounds.published import dobrushin as dobrushin
from ldpopt.bounds.published import duchi_jordan_wainwright as duchi_jordan_wainwright
from ldpopt.bounds.published import erased_share as erased_share
from ldpopt.bounds.published import ghazi_issa as ghazi_issa
from ldpopt.bounds.published import ghazi_issa_corollary as ghazi_issa_corollary
from ldpopt.bounds.published import ghazi_issa_total_variation as ghazi_issa_total_variation
from ldpopt.bounds.published import information_capacity as information_capacity
from ldpopt.bounds.published import information_under_cap as information_under_cap
from ldpopt.bounds.published import jeffreys_of_total_variation as jeffreys_of_total_variation
from ldpopt.bounds.published import kairouz_oh_viswanath as kairouz_oh_viswanath
from ldpopt.bounds.published import kept_by_binary as kept_by_binary
from ldpopt.bounds.published import reach as reach
from ldpopt.bounds.several import SeveralExponent as SeveralExponent
from ldpopt.bounds.several import chernoff_of_several as chernoff_of_several

__all__ = [
    "BoundRow",
    "Comparison",
    "Decision",
    "Exponent",
    "SeveralExponent",
    "asoodeh_diaz_calmon",
    "asoodeh_zhang",
    "binary_share",
    "binary_share_ghazi_issa",
    "binary_share_kairouz",
    "bound_by_tests",
    "capacity_mass",
    "chernoff",
    "chernoff_of_several",
    "compare",
    "contraction",
    "dobrushin",
    "duchi_jordan_wainwright",
    "erased_share",
    "ghazi_issa",
    "ghazi_issa_corollary",
    "ghazi_issa_total_variation",
    "information_capacity",
    "information_under_cap",
    "jeffreys_of_total_variation",
    "kairouz_oh_viswanath",
    "kept_by_binary",
    "published_bounds",
    "reach",
    "respondents_to_decide",
    "stein",
]
