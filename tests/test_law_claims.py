"""No guarantee is below the truth where rows are nearly laws, nearly equal, or subnormal.

The full form is ``python experiments/trust/claims.py --kinds 3``.
"""

import law_claims
import numpy as np
import pytest


@pytest.mark.full
def test_no_measure_is_understated():
    """Every bracket encloses the truth of the laws that rows are proportional to."""
    assert [text for n in range(10) for text in law_claims.check(np.random.default_rng([1, n]))] == []


def test_the_families_contain_the_stated_near_ties():
    """Sums off by 1e-10, rows a few ulps apart, entries below 1e-308, and mass that only one input gives occur."""
    made = {
        family.__name__: [family(np.random.default_rng([7, n]), 3, 4) for n in range(60)]
        for family in law_claims.FAMILIES
    }
    assert max(abs(q.sum(axis=1) - 1).max() for q in made["_off_one"]) > 5e-10
    assert min(np.ptp(q, axis=0).max() for q in made["_ulps_apart"]) < 1e-15
    assert min(q[q > 0].min() for q in made["_subnormal"]) < 1e-308
    assert all((q == 0).any() for q in made["_lost_mass"])
