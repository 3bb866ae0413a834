"""No converted, grouped, calibrated or composed claim is below its formula in 400 digits.

The full form is ``python experiments/trust/claims.py``.
"""

import converted_claims
import numpy as np


def test_no_claim_is_understated():
    """Every conversion covers its formula for parameters from 1e-12 to 300 and deltas down to 1e-300."""
    found = [converted_claims.check(np.random.default_rng([0, number])) for number in range(9)]
    assert [text for wrong in found for text in wrong] == []
