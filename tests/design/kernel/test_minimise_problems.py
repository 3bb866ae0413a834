"""The least bound of random problems of each kind is never below the optimum (`tests/helpers/minimise`)."""

import math

import numpy as np
import pytest
from minimise import attack

pytestmark = pytest.mark.full

NONE_BELOW = -1e-9
PROBLEMS = 2
"""Problems of each kind here; `experiments/trust/minimise.py` takes as many as its time allows."""


@pytest.mark.parametrize("name", attack.makers())
def test_random_problems_of_every_kind_are_bounded_correctly(name):
    """Random problems of each kind: trees of boxes, infinite ends, restricted adversaries and all others."""
    rng = np.random.default_rng(7)
    for _ in range(PROBLEMS):
        for outcome in attack.of_problem(name, rng, steps=10):
            assert outcome.package >= NONE_BELOW, outcome
            assert math.isnan(outcome.checked) or outcome.checked >= NONE_BELOW, outcome
