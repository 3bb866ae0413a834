import json
import math
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest

from ldpopt.privacy import hockey_stick, pairs
from ldpopt.privacy.approximate_dp import hockey_stick_of_pairs

CASES = json.loads((Path(__file__).parents[1] / "data" / "channel_measures.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES)
def test_hockey_stick_meets_the_oracle(case):
    """The values of the reference computation, to 1e-7."""
    for epsilon, delta in case["hockey_stick"].items():
        assert hockey_stick(case["channel"], float(epsilon)).value == pytest.approx(delta, rel=1e-7)


def test_delta_is_the_largest_gain_over_events():
    """delta = max over pairs and sets S of Q[x, S] - e^epsilon Q[x', S], over every set; the witness attains it."""
    rng = np.random.default_rng(1)
    for epsilon in (0.0, 0.4, 1.1):
        q = rng.dirichlet(np.full(5, 0.6), 3)
        sets = [list(s) for s in chain.from_iterable(combinations(range(5), n) for n in range(6))]
        gain = {
            (x, y, tuple(s)): q[x, s].sum() - math.exp(epsilon) * q[y, s].sum()
            for s in sets
            for x in range(3)
            for y in range(3)
        }
        found = hockey_stick(q, epsilon)
        assert found.value == pytest.approx(max(gain.values()), rel=1e-12)
        assert gain[(*found.witness.inputs, found.witness.outputs)] == pytest.approx(found.value, rel=1e-12)


def test_tiny_deltas_keep_their_relative_accuracy():
    """A delta of 1e-40 from one rare output is measured to rounding, and exactly zero past epsilon."""
    q = [[1 - 2.0**-130, 2.0**-130], [1.0, 0.0]]
    assert hockey_stick(q, 3.0).value == pytest.approx(2.0**-130, rel=1e-14)
    assert Fraction(hockey_stick(q, 3.0).lower) <= Fraction(1, 2**130) <= Fraction(hockey_stick(q, 3.0).value)
    assert hockey_stick([[0.6, 0.4], [0.5, 0.5]], 2.0).value == 0


def test_the_screen_of_a_large_channel_finds_the_worst_pair(monkeypatch):
    """Where all pairs are screened by their city-block distances, the value is that of measuring every pair."""
    monkeypatch.setattr(pairs, "BUDGET", 2000 * 12)  # 2000 of the 3540 pairs
    rng = np.random.default_rng(2)
    i, j = np.nonzero(~np.eye(60, dtype=bool))
    nearly_equal = 1 + 1e-15 * rng.random((60, 12))
    for q in (
        rng.dirichlet(np.ones(12), 60), np.exp(-rng.uniform(0, 60, (60, 12))), np.ones((60, 60)) + np.eye(60),
        nearly_equal, np.vstack([np.eye(12), nearly_equal[12:]]),
    ):  # fmt: skip
        q = q / q.sum(axis=1, keepdims=True)
        for epsilon in (0.0, 0.3, 5.0, 800.0):
            lower, upper = hockey_stick_of_pairs(q[i], q[j], epsilon)
            found = hockey_stick(q, epsilon)
            assert lower.max() <= found.value <= upper.max() + 1e-12
            assert found.lower <= upper.max()


def test_the_witness_of_impossible_outputs_survives_any_epsilon():
    """Past the range of exp, delta is the mass of outputs impossible under the other input, which witness it."""
    found = hockey_stick([[0.7, 0.3, 0.0], [0.7, 0.0, 0.3]], 800.0)
    assert found.value == pytest.approx(0.3, rel=1e-12)
    assert found.witness.outputs == (1,)
