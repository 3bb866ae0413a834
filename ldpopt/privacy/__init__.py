"""What a channel guarantees: one file a notion, each measure a function from a channel to a `Guarantee`."""

from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.total_variation import total_variation

__all__ = ["Guarantee", "Witness", "local_dp", "total_variation"]
