"""No guarantee is below the truth: measures and compositions of near-degenerate channels in high precision.

The full form is ``python experiments/trust/claims.py``.
"""

import measured_claims
import numpy as np
import truth


def test_no_guarantee_is_understated():
    """On random channels, entries down to 5e-324 and ratios to e^700, every guarantee covers its definition."""
    found = [measured_claims.check(np.random.default_rng([2, number])) for number in range(11)]
    assert [text for wrong in found for text in wrong] == []


def test_no_approximate_zcdp_is_understated():
    """After an event of probability delta is set aside, rho covers every order's divergence of what is left."""
    found = [measured_claims.check_approximate_zcdp(np.random.default_rng([2, n])) for n in range(11)]
    assert [text for wrong in found for text in wrong] == []


def test_the_families_contain_the_stated_degenerate_cases():
    """Zeros, subnormal entries, ratios near e^700, rows that agree to an ulp and rows that do not sum to one occur."""
    made = [truth.channels(np.random.default_rng([9, number])) for number in range(400)]
    smallest = [q[q > 0].min() for q in made]
    assert min(smallest) < 1e-308
    assert max(q.max() / q.min() for q in made if q.min() > 1e-300) > np.exp(600)
    assert any((q == 0).any() for q in made)
    assert min(np.ptp(q, axis=0).max() for q in made) < 1e-14
    assert max(abs(q.sum(axis=1) - 1).max() for q in made) > 1e-10
