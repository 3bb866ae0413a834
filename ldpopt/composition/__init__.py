"""Composition: the privacy of several mechanisms together, exact where that is possible."""

from ldpopt.composition.compose import ComposedPair, compose, compose_same_input
from ldpopt.composition.filters import PrivacyFilter, PrivacyOdometer
from ldpopt.composition.interop import from_dp_accounting, to_dp_accounting, to_dp_event
from ldpopt.composition.k_fold import (
    GaussianLimit,
    KFold,
    gaussian_limit,
    gaussian_total_variation,
    gaussian_trade_off,
    k_fold,
    kov15,
    trinomial_log_pmf,
)
from ldpopt.composition.ledger import Ledger, largest_count, largest_epsilon
from ldpopt.composition.shuffling import Shuffled, shuffled
from ldpopt.composition.sums import (
    advanced_composition,
    compose_approximate,
    compose_approximate_zcdp,
    compose_mcdp,
    compose_pure,
    compose_renyi,
    compose_zcdp,
    renyi_advanced_composition,
    restricted_parallel,
    restricted_sequential,
    subsample,
    zcdp_advanced_composition,
    zcdp_advanced_delta,
)
from ldpopt.privacy.finite_pair import FinitePair

__all__ = [
    "ComposedPair", "FinitePair", "GaussianLimit", "KFold", "Ledger", "PrivacyFilter", "PrivacyOdometer", "Shuffled",
    "advanced_composition", "compose", "compose_approximate", "compose_approximate_zcdp", "compose_mcdp",
    "compose_pure", "compose_renyi", "compose_same_input", "compose_zcdp", "from_dp_accounting", "gaussian_limit",
    "gaussian_total_variation", "gaussian_trade_off", "k_fold", "kov15", "largest_count", "largest_epsilon",
    "renyi_advanced_composition", "restricted_parallel", "restricted_sequential", "shuffled", "subsample",
    "to_dp_accounting", "to_dp_event", "trinomial_log_pmf", "zcdp_advanced_composition", "zcdp_advanced_delta",
]  # fmt: skip
