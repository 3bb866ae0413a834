"""Privacy guarantees of a channel: one file for each privacy definition, with a function from channels to `Guarantee`.

The names that design files need load at once, the others at first use.
"""

from ldpopt.extras import offering
from ldpopt.privacy.approximate_dp import approximate_dp, hockey_stick, total_variation
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.renyi import renyi
from ldpopt.privacy.trade_off import TradeOffCurve, trade_off

_HOMES = {
    "ldpopt.privacy": ("calibrate", "conversions", "implications"),
    "ldpopt.privacy.audits": ("Audit", "audit", "proved"),
    "ldpopt.privacy.capacity": (
        "Affine", "Polynomial", "RestrictedAlpha", "RestrictedKL", "RestrictedRenyi", "RestrictedTotalVariation",
        "capacity_bounded",
    ),
    "ldpopt.privacy.claims": (
        "ApproximateDP", "ApproximateZCDP", "Claim", "MCDP", "PureDP", "RenyiDP", "TV", "ZCDP", "as_claim",
    ),
    "ldpopt.privacy.concentrated": ("MeanConcentrated", "approximate_zcdp", "mcdp", "zcdp"),
    "ldpopt.privacy.finite_pair": ("FinitePair",),
    "ldpopt.privacy.kinks": ("ReLU",),
    "ldpopt.privacy.leakage": (
        "chi_squared_contraction", "doeblin", "hockey_stick_contraction", "maximal_leakage", "mutual_information",
    ),
    "ldpopt.privacy.least_pair": ("antipodal_pair",),
    "ldpopt.privacy.shapes": ("Thresholds",),
}  # fmt: skip
_LOADED = (
    Guarantee, TradeOffCurve, Witness, approximate_dp, hockey_stick, local_dp, renyi, total_variation, trade_off,
)  # fmt: skip

__all__, __getattr__, __dir__ = offering(__name__, _HOMES, _LOADED)
