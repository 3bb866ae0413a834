"""What a channel guarantees: one file for each notion of privacy, whose function maps a channel to a `Guarantee`.

What design files need loads at once, the rest when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ldpopt.privacy.approximate_dp import approximate_dp, hockey_stick, total_variation
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.renyi import renyi
from ldpopt.privacy.trade_off import TradeOffCurve, trade_off

if TYPE_CHECKING:
    from ldpopt.privacy import calibrate, conversions, implications
    from ldpopt.privacy.audits import Audit, audit, proved
    from ldpopt.privacy.capacity import (
        Affine,
        Polynomial,
        RestrictedAlpha,
        RestrictedKL,
        RestrictedRenyi,
        RestrictedTotalVariation,
        capacity_bounded,
    )
    from ldpopt.privacy.claims import (
        MCDP,
        TV,
        ZCDP,
        ApproximateDP,
        ApproximateZCDP,
        Claim,
        PureDP,
        RenyiDP,
        as_claim,
    )
    from ldpopt.privacy.concentrated import MeanConcentrated, approximate_zcdp, mcdp, zcdp
    from ldpopt.privacy.finite_pair import FinitePair
    from ldpopt.privacy.leakage import (
        chi_squared_contraction,
        doeblin,
        hockey_stick_contraction,
        maximal_leakage,
        mutual_information,
    )
    from ldpopt.privacy.least_pair import antipodal_pair

__all__ = [
    "MCDP", "TV", "ZCDP", "Affine", "ApproximateDP", "ApproximateZCDP", "Audit", "Claim", "FinitePair", "Guarantee",
    "MeanConcentrated", "Polynomial", "PureDP", "RenyiDP", "RestrictedAlpha", "RestrictedKL", "RestrictedRenyi",
    "RestrictedTotalVariation", "TradeOffCurve", "Witness", "antipodal_pair", "approximate_dp", "approximate_zcdp",
    "as_claim", "audit", "calibrate", "capacity_bounded", "chi_squared_contraction", "conversions", "doeblin",
    "hockey_stick", "hockey_stick_contraction", "implications", "local_dp", "maximal_leakage", "mcdp",
    "mutual_information", "proved", "renyi", "total_variation", "trade_off", "zcdp",
]  # fmt: skip

_LATER = (
    "claims", "leakage", "least_pair", "capacity", "concentrated", "finite_pair", "audits", "calibrate", "conversions",
    "implications",
)  # fmt: skip
"""The other modules, in the order in which they are looked through for a name."""


def __getattr__(name: str) -> Any:
    for later in _LATER if name in __all__ else ():
        module = importlib.import_module(f"{__name__}.{later}")
        if name == later or hasattr(module, name):
            return module if name == later else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
