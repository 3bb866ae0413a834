"""The picture of a design."""

import numpy as np
import pytest

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import KL
from ldpopt.plots.channel import design_picture


@pytest.mark.full(but=1)
@pytest.mark.parametrize("k", [2, 24, 300])
def test_every_design_has_a_picture(k):
    """Designs of any size are drawn, and the names of the groups appear."""
    rng = np.random.default_rng(k)
    utility = Divergence(KL, rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k)))
    design = optimal_channel(utility, [LocalDP(1.0), TotalVariation(0.3)], certify=False)
    drawn = design_picture(design, ("old", "young"), "svg")
    assert drawn.startswith(b"<?xml")
    assert drawn != design_picture(design, kind="svg")
