"""No mechanism claims less than its parameters give.

The full form is ``python experiments/trust/claims.py --kinds 4``.
"""

import class_claims
import numpy as np


def test_no_mechanism_is_understated():
    """Designs, oracles, noise, its calibration and subsampling hold what they claim of random parameters."""
    assert [text for n in range(10) for text in class_claims.check(np.random.default_rng([0, n]))] == []
