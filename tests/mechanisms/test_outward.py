import math

import pytest

from ldpopt.mechanisms.additive import enlarge, guarantee
from ldpopt.rounding import toward_privacy


@pytest.mark.parametrize("value", [1e-9, 0.3, 1.0, 40.0, 500.0])
def test_enlarging_undoes_rounding_toward_privacy(value):
    """What is enlarged and then rounded toward privacy is not below the value it came from by more than an ulp."""
    assert enlarge(value) > value
    assert toward_privacy(enlarge(value)) >= value - 4 * math.ulp(value) - 1e-9 * value * (value < 1e-6)
    assert enlarge(math.inf) == math.inf


def test_claims_are_rounded_outward():
    """The interval of a guarantee strictly holds the one it is made of; a lower bound is never negative."""
    made = guarantee("renyi", 0.2, 0.3, "[M, Def 3]", parameters={"order": 2.0})
    assert made.lower < 0.2 < 0.3 < made.value
    assert guarantee("renyi", -1e-9, 0.0, "[M, Def 3]").lower == 0
    assert guarantee("renyi", math.inf, math.inf, "[M, Def 3]").value == math.inf
