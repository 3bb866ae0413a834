"""The certificate of an expected loss."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ldpopt import optimal_channel
from ldpopt.design import ApproximateLDP, ExpectedLoss, LocalDP, LossDual, RenyiLDP, TotalVariation
from ldpopt.enclosures import EXACT

LOSS = np.abs(np.subtract.outer(np.arange(3), np.arange(3))) ** 1.5
PRIOR = [0.5, 0.3, 0.2]
DESIGNS = {
    "pure": (PRIOR, LocalDP(1.0)),
    "minimax": (None, [LocalDP(1.0), TotalVariation(0.3)]),
    "approximate": (PRIOR, ApproximateLDP(0.5, 0.05)),
    "Renyi": (PRIOR, RenyiLDP(2.0, 0.3)),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_forged_numbers_prove_nothing_that_is_false(name):
    """No weights, rows or multipliers prove a loss that is larger than the one reached."""
    prior, constraints = DESIGNS[name]
    design = optimal_channel(ExpectedLoss(prior, LOSS), constraints)
    dual = design.certificate
    assert isinstance(dual, LossDual)
    assert design.verify()
    assert dual.verify(exact=True).bound == pytest.approx(dual.bound, rel=1e-9)
    rng = np.random.default_rng(0)
    for bad in (math.nan, math.inf, -math.inf, -1.0, 0.0, 1e300, 1e-300):
        weights, rows = dual.weights.copy(), dual.rows.copy()
        weights[rng.integers(len(weights))] = bad
        rows[rng.integers(len(rows))] = bad
        for forged in (
            replace(dual, weights=weights),
            replace(dual, rows=rows),
            replace(dual, weights=np.zeros_like(weights)),
        ):
            assert not forged.bound < design.value - 1e-12
            assert not forged.bound_in(EXACT).value < design.value - 1e-12
        for number, one in enumerate(dual.multipliers):
            if one.values.size:
                values = one.values.copy()
                values[rng.integers(len(values)), rng.integers(values.shape[1])] = bad
                changed = list(dual.multipliers)
                changed[number] = replace(one, values=values)
                assert not replace(dual, multipliers=tuple(changed)).bound < design.value - 1e-12
    for weights in (np.ones(9), [[1.0]], "no", None, []):
        assert replace(dual, weights=weights).bound == math.inf


@pytest.mark.parametrize("epsilon", [30.0, 100.0, 700.0])
def test_losses_far_below_the_reach_of_programs(epsilon):
    """Randomised response is optimal for wrong answers under a nearly uniform prior, at a loss of size e^-epsilon."""
    design = optimal_channel(ExpectedLoss([0.5, 0.3, 0.2], 1 - np.eye(3)), LocalDP(epsilon))
    least = -2 * np.exp(-epsilon)  # 2/(e^epsilon + 2), up to a relative e^-epsilon
    assert design.certified
    assert design.value == pytest.approx(least, rel=1e-9)
    assert least * (1 + 1e-9) <= design.upper_bound <= least * (1 - 1e-6)
