"""What a channel guarantees: one file a notion, each measure a function from a channel to a `Guarantee`."""

from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.total_variation import total_variation

__all__ = ["Guarantee", "Witness", "local_dp", "total_variation"]

# Claims, conversions and what follows from them.
from ldpopt.privacy import calibrate, conversions, group, information
from ldpopt.privacy.antipodal import antipodal_pair
from ldpopt.privacy.claims import MCDP, TV, ZCDP, ApproximateDP, ApproximateZCDP, Claim, PureDP, RenyiDP, as_claim

__all__ += [
    "MCDP",
    "TV",
    "ZCDP",
    "ApproximateDP",
    "ApproximateZCDP",
    "Claim",
    "PureDP",
    "RenyiDP",
    "antipodal_pair",
    "as_claim",
    "calibrate",
    "conversions",
    "group",
    "information",
]
