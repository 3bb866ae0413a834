"""No converted, grouped, calibrated or composed claim is below its formula in 400 digits.

The full form is ``python experiments/trust/claims.py``.
"""

import converted_claims
import numpy as np
import pytest


@pytest.mark.parametrize("seed", range(2))
def test_no_claim_is_understated(seed):
    """Every conversion covers its formula for parameters from 1e-12 to 300 and deltas down to 1e-300."""
    found = [converted_claims.check(np.random.default_rng([seed, number])) for number in range(9)]
    assert [text for wrong in found for text in wrong] == []
