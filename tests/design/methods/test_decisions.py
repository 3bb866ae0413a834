"""The programs whose outputs are decisions."""

import numpy as np
import pytest

from ldpopt import LocalDP, TotalVariation, optimal_channel
from ldpopt.design import ExpectedLoss


@pytest.mark.parametrize("eta", [1e-12, 1e-9, 1e-6])
@pytest.mark.parametrize("loss", [[[1.0, 2.0, 3.0], [-0.3, -0.1, -0.5]], [[0.1, -0.3, 1.0], [0.2, 0.5, 0.0]]])
def test_rows_that_must_nearly_agree_take_the_best_common_decision(eta, loss):
    """Under a cap eta on total variation far below e^epsilon - 1, the least loss is that of one decision for all inputs
    alike, but for eta times the spread of the losses at most; no share of it is lost to the units of the program."""
    prior = np.array([0.06, 0.94])
    alike = float((prior @ np.array(loss)).min())
    design = optimal_channel(ExpectedLoss(prior, loss, range(2), range(3)), [LocalDP(3.0), TotalVariation(eta)])
    assert design.certified
    assert design.verify()
    assert alike - eta * np.ptp(loss) - 1e-15 <= -design.value <= alike * (1 + 1e-8 * np.sign(alike))
