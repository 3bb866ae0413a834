from ldpopt.privacy import calibrate as calibrate
from ldpopt.privacy import conversions as conversions
from ldpopt.privacy import implications as implications
from ldpopt.privacy.approximate_dp import approximate_dp as approximate_dp
from ldpopt.privacy.approximate_dp import hockey_stick as hockey_stick
from ldpopt.privacy.approximate_dp import total_variation as total_variation
from ldpopt.privacy.audits import Audit as Audit
from ldpopt.privacy.audits import audit as audit
from ldpopt.privacy.audits import proved as proved
from ldpopt.privacy.capacity import Affine as Affine
from ldpopt.privacy.capacity import Polynomial as Polynomial
from ldpopt.privacy.capacity import RestrictedAlpha as RestrictedAlpha
from ldpopt.privacy.capacity import RestrictedKL as RestrictedKL
from ldpopt.privacy.capacity import RestrictedRenyi as RestrictedRenyi
from ldpopt.privacy.capacity import RestrictedTotalVariation as RestrictedTotalVariation
from ldpopt.privacy.capacity import capacity_bounded as capacity_bounded
from ldpopt.privacy.claims import MCDP as MCDP
from ldpopt.privacy.claims import TV as TV
from ldpopt.privacy.claims import ZCDP as ZCDP
from ldpopt.privacy.claims import ApproximateDP as ApproximateDP
from ldpopt.privacy.claims import ApproximateZCDP as ApproximateZCDP
from ldpopt.privacy.claims import Claim as Claim
from ldpopt.privacy.claims import PureDP as PureDP
from ldpopt.privacy.claims import RenyiDP as RenyiDP
from ldpopt.privacy.claims import as_claim as as_claim
from ldpopt.privacy.concentrated import MeanConcentrated as MeanConcentrated
from ldpopt.privacy.concentrated import approximate_zcdp as approximate_zcdp
from ldpopt.privacy.concentrated import mcdp as mcdp
from ldpopt.privacy.concentrated import zcdp as zcdp
from ldpopt.privacy.finite_pair import FinitePair as FinitePair
from ldpopt.privacy.guarantee import Guarantee as Guarantee
from ldpopt.privacy.guarantee import Witness as Witness
from ldpopt.privacy.kinks import ReLU as ReLU
from ldpopt.privacy.leakage import chi_squared_contraction as chi_squared_contraction
from ldpopt.privacy.leakage import doeblin as doeblin
from ldpopt.privacy.leakage import hockey_stick_contraction as hockey_stick_contraction
from ldpopt.privacy.leakage import maximal_leakage as maximal_leakage
from ldpopt.privacy.leakage import mutual_information as mutual_information
from ldpopt.privacy.least_pair import antipodal_pair as antipodal_pair
from ldpopt.privacy.local_dp import local_dp as local_dp
from ldpopt.privacy.renyi import renyi as renyi
from ldpopt.privacy.shapes import Thresholds as Thresholds
from ldpopt.privacy.trade_off import TradeOffCurve as TradeOffCurve
from ldpopt.privacy.trade_off import trade_off as trade_off

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
    "ReLU",
    "RenyiDP",
    "RestrictedAlpha",
    "RestrictedKL",
    "RestrictedRenyi",
    "RestrictedTotalVariation",
    "Thresholds",
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
    "hockey_stick",
    "hockey_stick_contraction",
    "implications",
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
