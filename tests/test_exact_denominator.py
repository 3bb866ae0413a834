"""Integers over a small denominator: what is rounded to them is never beyond what was claimed."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpopt import Channel
from ldpopt.errors import CertificateError, InvalidInput
from ldpopt.exact import ExactChannel, exp_lower
from ldpopt.exact_rounding import integers_near, round_to_denominator
from ldpopt.io import read_exact, write_exact
from ldpopt.mechanisms import randomized_response


@given(
    st.integers(2, 5), st.integers(2, 6), st.integers(2, 250), st.floats(0.01, 3.0), st.floats(0.0, 1.0),
    st.integers(0, 10**6),
)  # fmt: skip
def test_integers_are_within_the_claims_in_rational_arithmetic(k, m, total, epsilon, eta, seed):
    """Every row sums to D, every ratio is at most a rational below e^epsilon, every distance at most eta D."""
    matrix = np.random.default_rng(seed).dirichlet(np.ones(m), k)
    rows = integers_near(matrix, total, exp_lower(epsilon), eta).tolist()
    assert all(sum(row) == total and min(row) >= 0 for row in rows)
    for one, other in permutations(rows, 2):
        assert all(a <= exp_lower(epsilon) * b for a, b in zip(one, other, strict=True))
        assert sum(max(a - b, 0) for a, b in zip(one, other, strict=True)) <= Fraction(eta) * total


def test_two_dice_give_warners_design_with_26_of_36():
    """At epsilon 1 the largest share over 36 with a ratio of at most e is 26: 26/10 = 2.6 < e < 27/9."""
    made = randomized_response(2, 1.0).exact(denominator=36)
    assert made.weights.tolist() == [[26, 10], [10, 26]]
    assert made.proof().ratio == Fraction(13, 5)
    assert made.epsilon == pytest.approx(math.log(2.6))
    assert made.denominator == 36


def test_a_claim_below_the_matrix_is_met_by_moving_rows_together():
    """eta 1/4 of 36 is 9 units, which two rows 16 units apart come down to."""
    made = round_to_denominator([[0.75, 0.25], [0.25, 0.75]], 36, eta=0.25)
    assert made.proof().distance == 9


def test_a_ratio_of_two_at_log_two_rounded_down_is_refused():
    """The float log 2 is below log 2, so that e^epsilon is below 2, and 24 to 12 of 36 is not private enough."""
    weights = integers_near(np.array([[2 / 3, 1 / 3], [1 / 3, 2 / 3]]), 36, exp_lower(math.log(2)))
    assert int(weights.max()) == 23


def test_a_denominator_that_leaves_nothing_says_so():
    """One die cannot randomize five answers at epsilon 0.1."""
    with pytest.raises(InvalidInput, match="denominator: expected a larger one"):
        randomized_response(5, 0.1).exact(denominator=6)


@pytest.mark.parametrize("denominator", [0, 1, -3, 2.0, True, 10**7])
def test_what_is_no_denominator_is_refused(denominator):
    with pytest.raises(InvalidInput, match="denominator"):
        Channel([[0.75, 0.25], [0.25, 0.75]]).exact(denominator=denominator)


def test_bits_and_denominator_are_two_names_of_one_number():
    assert ExactChannel([[24, 8], [8, 24]], bits=5) == ExactChannel([[24, 8], [8, 24]], denominator=32)
    with pytest.raises(InvalidInput, match="one of them"):
        ExactChannel([[24, 8], [8, 24]], bits=5, denominator=32)
    with pytest.raises(InvalidInput, match="rows that sum to exactly 36"):
        ExactChannel([[26, 9], [10, 26]], denominator=36)
    with pytest.raises(InvalidInput, match="power of two"):
        _ = ExactChannel([[26, 10], [10, 26]], denominator=36).bits


def test_probabilities_are_the_nearest_floats_of_the_fractions():
    made = ExactChannel([[1, 35], [7, 29]], denominator=36)
    exact = [[Fraction(1, 36), Fraction(35, 36)], [Fraction(7, 36), Fraction(29, 36)]]
    assert made.matrix.tolist() == [[float(value) for value in row] for row in exact]
    huge = ExactChannel([[3, 2**61 - 3], [2**61 - 5, 5]], denominator=2**61)
    assert huge.matrix[0, 1] == float(Fraction(2**61 - 3, 2**61))
    odd = 2**61 - 1
    large = ExactChannel([[3, odd - 3], [odd - 5, 5]], denominator=odd)
    assert large.matrix.tolist()[1] == [(odd - 5) / odd, 5 / odd]


def test_a_file_keeps_the_denominator_and_is_proved_again(tmp_path):
    made = randomized_response(3, 1.0).exact(denominator=100)
    assert read_exact(write_exact(tmp_path / "q.json", made)) == made
    text = (tmp_path / "q.json").read_text()
    assert '"denominator": 100' in text
    assert '"bits"' not in text
    (tmp_path / "w.json").write_text(text.replace(f'"epsilon": {made.epsilon}', '"epsilon": 0.5'))
    with pytest.raises(CertificateError, match="not proved"):
        read_exact(tmp_path / "w.json")
    (tmp_path / "v.json").write_text(text.replace('"version": 2', '"version": 1'))
    with pytest.raises(InvalidInput):
        read_exact(tmp_path / "v.json")
