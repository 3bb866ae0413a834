"""What a channel guarantees: one file for each notion of privacy, whose function maps a channel to a `Guarantee`."""

from ldpopt.privacy.antipodal import antipodal_pair
from ldpopt.privacy.approximate_dp import approximate_dp
from ldpopt.privacy.approximate_zcdp import approximate_zcdp
from ldpopt.privacy.audit import Audit, audit
from ldpopt.privacy.capacity import (
    RestrictedAlpha,
    RestrictedKL,
    RestrictedRenyi,
    RestrictedTotalVariation,
    capacity_bounded,
)
from ldpopt.privacy.claims import MCDP, TV, ZCDP, ApproximateDP, ApproximateZCDP, Claim, PureDP, RenyiDP, as_claim
from ldpopt.privacy.contraction import chi_squared_contraction, hockey_stick_contraction
from ldpopt.privacy.features import Affine, Polynomial
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.hockey_stick import hockey_stick
from ldpopt.privacy.leakage import doeblin, maximal_leakage, mutual_information
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.mcdp import MeanConcentrated, mcdp
from ldpopt.privacy.proved import proved
from ldpopt.privacy.renyi import renyi
from ldpopt.privacy.total_variation import total_variation
from ldpopt.privacy.trade_off import TradeOffCurve, trade_off
from ldpopt.privacy.zcdp import zcdp

from . import calibrate, conversions, group, information

__all__ = [
    "MCDP",
    "TV",
    "ZCDP",
    "Affine",
    "ApproximateDP",
    "ApproximateZCDP",
    "Audit",
    "Claim",
    "FinitePair",
    "Guarantee",
    "MeanConcentrated",
    "Polynomial",
    "PureDP",
    "RenyiDP",
    "RestrictedAlpha",
    "RestrictedKL",
    "RestrictedRenyi",
    "RestrictedTotalVariation",
    "TradeOffCurve",
    "Witness",
    "antipodal_pair",
    "approximate_dp",
    "approximate_zcdp",
    "as_claim",
    "audit",
    "calibrate",
    "capacity_bounded",
    "chi_squared_contraction",
    "conversions",
    "doeblin",
    "group",
    "hockey_stick",
    "hockey_stick_contraction",
    "information",
    "local_dp",
    "maximal_leakage",
    "mcdp",
    "mutual_information",
    "proved",
    "renyi",
    "total_variation",
    "trade_off",
    "zcdp",
]
