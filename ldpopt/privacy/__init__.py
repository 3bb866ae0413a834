"""What a channel guarantees: one file for each notion of privacy, whose function maps a channel to a `Guarantee`."""

from ldpopt.privacy.approximate_dp import approximate_dp, hockey_stick, total_variation
from ldpopt.privacy.audit import Audit, audit, proved
from ldpopt.privacy.capacity import (
    Affine,
    Polynomial,
    RestrictedAlpha,
    RestrictedKL,
    RestrictedRenyi,
    RestrictedTotalVariation,
    capacity_bounded,
)
from ldpopt.privacy.claims import MCDP, TV, ZCDP, ApproximateDP, ApproximateZCDP, Claim, PureDP, RenyiDP, as_claim
from ldpopt.privacy.concentrated import MeanConcentrated, approximate_zcdp, mcdp, zcdp
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.leakage import (
    chi_squared_contraction,
    doeblin,
    hockey_stick_contraction,
    maximal_leakage,
    mutual_information,
)
from ldpopt.privacy.least_pair import antipodal_pair
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.renyi import renyi
from ldpopt.privacy.trade_off import TradeOffCurve, trade_off

from . import calibrate, conversions, implications

__all__ = [
    "MCDP", "TV", "ZCDP", "Affine", "ApproximateDP", "ApproximateZCDP", "Audit", "Claim", "FinitePair", "Guarantee",
    "MeanConcentrated", "Polynomial", "PureDP", "RenyiDP", "RestrictedAlpha", "RestrictedKL", "RestrictedRenyi",
    "RestrictedTotalVariation", "TradeOffCurve", "Witness", "antipodal_pair", "approximate_dp", "approximate_zcdp",
    "as_claim", "audit", "calibrate", "capacity_bounded", "chi_squared_contraction", "conversions", "doeblin",
    "hockey_stick", "hockey_stick_contraction", "implications", "local_dp", "maximal_leakage", "mcdp",
    "mutual_information", "proved", "renyi", "total_variation", "trade_off", "zcdp",
]  # fmt: skip
