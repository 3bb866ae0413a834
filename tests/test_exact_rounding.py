"""Rounding to integers: the claim is proved, and hardly anything is lost.

Integers over a small denominator: what is rounded to them is never beyond what was claimed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.channel import Channel
from ldpopt.divergences import KL
from ldpopt.errors import CertificateError, InvalidInput
from ldpopt.exact import ExactChannel, exp_lower, integers_near, round_exact, round_to_denominator
from ldpopt.files import strict
from ldpopt.io import read_channel, write_channel
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import local_dp, total_variation


def staircase(rng: np.random.Generator, k: int, m: int, epsilon: float) -> np.ndarray:
    """A channel whose columns are staircase patterns, the shape of optimal channels."""
    patterns = np.where(rng.random((k, m)) < 0.5, 1.0, math.exp(-epsilon))
    matrix = patterns * rng.dirichlet(np.ones(m))
    slack = matrix.sum(axis=1)
    # The erasure column gets what rows lack, after scaling; then rows sum to one.
    matrix = matrix / (2 * slack.max())
    return np.hstack([matrix, 1 - matrix.sum(axis=1, keepdims=True)])


def assert_proved(matrix: np.ndarray, bits: int = 62) -> None:
    exact = round_exact(matrix, bits)
    # What is measured is of the laws that the rows are proportional to; their sums are off by a few ulps.
    rounding = 4 * (matrix.shape[1] + 4) * 2.0**-53
    assert exact.epsilon <= local_dp(matrix).value + rounding
    assert exact.eta <= total_variation(matrix).value + rounding
    mpmath.mp.dps = 60
    weights = [[int(w) for w in row] for row in exact.weights]
    assert all(sum(row) == 2**bits for row in weights)
    for column in zip(*weights, strict=True):
        if max(column) > 0 and not math.isinf(exact.epsilon):
            assert mpmath.mpf(max(column)) / min(column) <= mpmath.exp(mpmath.mpf(exact.epsilon))
    for p in weights:
        for q in weights:
            assert mpmath.mpf(sum(max(a - b, 0) for a, b in zip(p, q, strict=True))) / 2**bits <= exact.eta


@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 16, 53, 62]))
@settings(max_examples=150, deadline=None)
def test_the_proved_levels_agree_with_the_measured_ones(seed: int, bits: int) -> None:
    """The proved epsilon and eta are what the float matrix measures, up to its rounding, at any number of bits."""
    rng = np.random.default_rng(seed)
    k, m = (int(n) for n in rng.integers(1, 7, 2))
    kind = rng.integers(4)
    if kind == 0:
        matrix = rng.dirichlet(np.full(m, 0.3), k)
    elif kind == 1:  # nearly constant
        matrix = rng.dirichlet(np.ones(m)) * (1 + 10.0 ** rng.uniform(-17, -3) * rng.random((k, m)))
    elif kind == 2:  # entries down to 1e-300
        matrix = 10.0 ** rng.uniform(-300, 0, (k, m))
    else:
        matrix = staircase(rng, k, m, 10.0 ** rng.uniform(-9, 2.5))
    matrix = np.maximum(matrix, 1e-300)
    matrix /= matrix.sum(axis=1, keepdims=True)
    assert_proved(matrix, bits)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("k", [2, 24])
def test_rounding_preserves_twelve_digits_of_utility(epsilon: float, k: int) -> None:
    """At 62 bits randomized response loses less than 1e-12 of its KL divergence, relatively."""
    e = math.exp(epsilon)
    matrix = (np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1)
    matrix /= matrix.sum(axis=1, keepdims=True)
    exact = round_exact(matrix)
    with mpmath.workdps(60):
        e_, n = mpmath.exp(mpmath.mpf(epsilon)), [[mpmath.mpf(int(w)) / 2**62 for w in row] for row in exact.weights]

        def kl(p: list[mpmath.mpf], q: list[mpmath.mpf]) -> mpmath.mpf:
            return sum(a * mpmath.log(a / b) for a, b in zip(p, q, strict=True))

        ideal = epsilon * (e_ - 1) / (e_ + k - 1)
        # Below epsilon = 1e-6 the floats of the matrix itself are the larger error.
        assert abs(kl(n[0], n[1]) / ideal - 1) < max(1e-12, 1e-14 / epsilon)
    assert exact.loss(matrix).distance < 1e-15


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_staircase_channels_lose_nothing_visible(seed: int) -> None:
    """KL through an optimal-shaped channel changes by less than 1e-12 relatively, and the loss bound says so."""
    rng = np.random.default_rng(seed)
    k, m = (int(n) for n in rng.integers(2, 9, 2))
    matrix = staircase(rng, k, m, float(rng.uniform(0.1, 5)))
    exact = round_exact(matrix)
    p0, p1 = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
    before, after = KL(p0 @ matrix, p1 @ matrix), KL(p0 @ exact.matrix, p1 @ exact.matrix)
    loss = exact.loss(matrix)
    assert loss.fraction < 1e-10
    assert loss.distance < 1e-15
    assert after >= before * (1 - 1e-12) - 1e-15


def test_the_loss_bound_is_a_mixture() -> None:
    """The matrix is (1 - lam) times the exact channel plus lam times a channel."""
    matrix = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    exact = round_exact(matrix, 6)
    lam = exact.loss(matrix).fraction
    rest = (matrix - (1 - lam) * exact.matrix) / lam
    assert rest.min() >= -1e-12
    np.testing.assert_allclose(rest.sum(axis=1), 1)


@pytest.mark.parametrize("eta", [1e-300, 1e-15, 1e-6, 0.2])
def test_a_tighter_claim_is_reached(eta: float) -> None:
    """A claim of eta up to 1e-9 below the measured one is met by pulling rows together."""
    matrix = np.array([[0.5 + eta / 2, 0.5 - eta / 2], [0.5 - eta / 2, 0.5 + eta / 2]])
    claimed = eta * (1 - 4e-10)
    exact = round_exact(matrix, eta=claimed)
    assert exact.proof().distance <= claimed * 2**62
    assert exact.eta >= claimed * (1 - 1e-3) - 2e-18 * 6


def test_a_tighter_epsilon_is_reached() -> None:
    """A claim of epsilon up to 1e-9 below the measured one is met, and at 0 all rows agree."""
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    claimed = math.log(3) - 5e-10
    assert round_exact(matrix, epsilon=claimed).epsilon <= claimed
    flat = round_exact([[1 / 3] * 3, [1 / 3 + 1e-12, 1 / 3, 1 / 3 - 1e-12]], epsilon=0.0)
    assert flat.epsilon == 0
    assert flat.eta == 0


def test_zeros_need_an_infinite_claim_and_stay_zeros() -> None:
    """A column with a zero for one input only has infinite epsilon, and rounding puts no weight on it."""
    matrix = np.array([[0.0, 1 / 3, 1 / 3, 1 / 3], [0.7, 0.1, 0.1, 0.1]])
    exact = round_exact(matrix)
    assert exact.epsilon == math.inf
    assert exact.weights[0, 0] == 0
    with pytest.raises(InvalidInput, match="epsilon"):
        round_exact(matrix, epsilon=5.0)
    assert round_exact(np.eye(5)).weights.tolist() == (np.eye(5, dtype=int) * 2**62).tolist()


def test_large_channels_preserve_their_closed_forms() -> None:
    """A 200 x 200 randomized response keeps its closed-form epsilon and eta to rounding."""
    k, e = 200, math.exp(2.0)
    exact = round_exact((np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1), epsilon=2.0)
    assert 2 - 1e-12 < exact.epsilon <= 2.0
    assert exact.eta == pytest.approx((e - 1) / (e + k - 1), rel=1e-12)


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        ([[0.5, 0.6]], {}, "sum to 1"),
        ([[1.5, -0.5]], {}, "non-negative"),
        ([[0.5, 0.5]], {"bits": 63}, "1 to 62"),
        ([[0.5, 0.5]], {"bits": 0}, "bits"),
        ([[0.75, 0.25], [0.25, 0.75]], {"epsilon": 1.0}, "epsilon"),
        ([[0.75, 0.25], [0.25, 0.75]], {"eta": 0.4}, "eta"),
        ([[0.75, 0.25], [0.25, 0.75]], {"epsilon": -1.0}, "epsilon"),
        ([[0.75, 0.25], [0.25, 0.75]], {"epsilon": math.nan}, "epsilon"),
        ([[0.5, 0.5]], {"inputs": ["a", "b"]}, "1 labels"),
    ],
)
def test_bad_matrices_and_claims_are_refused(
    matrix: list[list[float]], options: dict[str, object], message: str
) -> None:
    """A matrix that cannot be rounded, or a claim that it does not meet, is refused."""
    with pytest.raises(InvalidInput, match=message):
        round_exact(matrix, **options)  # type: ignore[arg-type]


def test_the_channel_method_keeps_labels() -> None:
    """`Channel.exact` rounds the channel's matrix under its own labels."""
    q = Channel([[0.75, 0.25], [0.25, 0.75]], inputs=["no", "yes"], outputs=[("a", 1), "b"])
    exact = q.exact()
    assert (exact.inputs, exact.outputs) == (q.inputs, q.outputs)
    assert strict.json_value(exact.to_json())["outputs"] == [["a", 1], "b"]


@pytest.mark.parametrize("bits", [3, 8, 20, 62])
@pytest.mark.parametrize("seed", range(5))
def test_the_loss_covers_the_rational_truth(bits: int, seed: int) -> None:
    """The reported distance and fraction are at least the exact ones, and no more than rounding above them."""
    rng = np.random.default_rng(seed)
    matrix = 0.7 * rng.dirichlet(np.ones(4), 3) + 0.075
    matrix /= matrix.sum(axis=1, keepdims=True)
    exact = round_exact(matrix, bits)
    given = [[Fraction(float(value)) for value in row] for row in matrix]
    made = [[Fraction(int(weight), 1 << bits) for weight in row] for row in exact.weights]
    pairs = [list(zip(p, q, strict=True)) for p, q in zip(given, made, strict=True)]
    distance = max(sum(abs(a - b) for a, b in row) / 2 for row in pairs)
    fraction = max(0, 1 - min(a / b for row in pairs for a, b in row if b > 0))
    loss = exact.loss(matrix)
    assert (
        distance - Fraction(2, 10**16)
        <= Fraction(loss.distance)
        <= distance * (1 + Fraction(1, 10**13)) + Fraction(2, 10**16)
    )
    assert fraction <= Fraction(loss.fraction) <= fraction + Fraction(1, 10**15)


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


def test_a_denominator_too_small_for_epsilon_is_refused():
    """One die cannot randomize five answers at epsilon 0.1."""
    with pytest.raises(InvalidInput, match="denominator: expected a larger one"):
        randomized_response(5, 0.1).exact(denominator=6)


@pytest.mark.parametrize("denominator", [0, 1, -3, 2.0, True, 10**7])
def test_bad_denominators_are_refused(denominator):
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
    assert read_channel(write_channel(tmp_path / "q.json", made)) == made
    text = (tmp_path / "q.json").read_text()
    assert '"denominator": 100' in text
    assert '"bits"' not in text
    (tmp_path / "w.json").write_text(text.replace(f'"epsilon": {made.epsilon}', '"epsilon": 0.5'))
    with pytest.raises(CertificateError, match="not proved"):
        read_channel(tmp_path / "w.json")
    (tmp_path / "v.json").write_text(text.replace('"version": 2', '"version": 1'))
    with pytest.raises(InvalidInput):
        read_channel(tmp_path / "v.json")
