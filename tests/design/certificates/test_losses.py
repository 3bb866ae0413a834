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
            assert not forged.bound_in(EXACT) < design.value - 1e-12
        for number, one in enumerate(dual.multipliers):
            if one.values.size:
                values = one.values.copy()
                values[rng.integers(len(values)), rng.integers(values.shape[1])] = bad
                changed = list(dual.multipliers)
                changed[number] = replace(one, values=values)
                assert not replace(dual, multipliers=tuple(changed)).bound < design.value - 1e-12
    for weights in (np.ones(9), [[1.0]], "no", None, []):
        assert replace(dual, weights=weights).bound == math.inf
