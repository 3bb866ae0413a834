"""The exact channel: what it proves, and what its file must prove again."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.errors import CertificateError, InvalidInput
from ldpopt.exact import ExactChannel, exp_lower

EXACT = ExactChannel([[3, 1], [1, 3]], bits=2, inputs=["no", "yes"])


@given(st.floats(1e-12, 44))
@settings(max_examples=300, deadline=None)
def test_the_exponential_is_rounded_down(epsilon: float) -> None:
    """`exp_lower` lies below exp(epsilon), and within 1e-57 of it relatively."""
    with mpmath.workdps(120):
        bound = exp_lower(epsilon)
        gap = mpmath.exp(mpmath.mpf(epsilon)) - mpmath.mpf(bound.numerator) / bound.denominator
        assert 0 < gap < mpmath.exp(epsilon) * mpmath.mpf("1e-57")


def test_the_exponential_of_huge_arguments_is_a_bound() -> None:
    """Beyond the ratios of 62-bit integers any bound above 2**62 serves, and none is a lie."""
    assert 2**62 < exp_lower(44.0) == exp_lower(1e300) == exp_lower(math.inf)


@given(st.integers(1, 2**61 - 1), st.integers(1, 2**61 - 1))
@settings(max_examples=300, deadline=None)
def test_epsilon_is_the_exact_log_ratio_rounded_up(a: int, b: int) -> None:
    """The proved epsilon of two rows is at least the true log ratio and at most 2 ulps above it."""
    exact = ExactChannel([[a, 2**62 - a], [b, 2**62 - b]], bits=62)
    with mpmath.workdps(80):
        ratios = [mpmath.mpf(a) / b, mpmath.mpf(2**62 - a) / (2**62 - b)]
        truth = max(abs(mpmath.log(r)) for r in ratios)
        assert truth <= exact.epsilon <= truth * (1 + mpmath.mpf(2) ** -51)
        assert mpmath.mpf(abs(a - b)) / 2**62 <= exact.eta <= mpmath.mpf(abs(a - b)) / 2**62 * (1 + 2.0**-51)
    assert exact.verify(exact.epsilon, exact.eta).ratio == max(Fraction(a, b), Fraction(b, a),
        Fraction(2**62 - a, 2**62 - b), Fraction(2**62 - b, 2**62 - a))  # fmt: skip


def test_one_unit_too_many_is_caught() -> None:
    """Integers whose ratio exceeds exp(epsilon) by one part in 2**61 do not prove epsilon."""
    low = 2**30
    high = int(Fraction(low) * exp_lower(20.0))
    rest = 2**62 - low - high
    fine = ExactChannel([[high, low, rest], [low, high, rest]], bits=62)
    fine.verify(20.0)
    with pytest.raises(CertificateError, match="epsilon"):
        ExactChannel([[high + 1, low, rest - 1], [low, high + 1, rest - 1]], bits=62).verify(20.0)
    with pytest.raises(CertificateError, match="eta"):
        fine.verify(20.0, math.nextafter(fine.eta, 0) - 1e-16)


def test_witnesses_attain_the_proof() -> None:
    """The positions of a proof give back its ratio and its distance."""
    rng = np.random.default_rng(3)
    weights = rng.multinomial(2**20, np.full(5, 0.2), size=7)
    exact = ExactChannel(weights, bits=20)
    proof = exact.proof()
    x, other, y = proof.ratio_at
    assert Fraction(int(weights[x, y]), int(weights[other, y])) == proof.ratio
    p, q = proof.distance_at
    assert int(np.maximum(weights[p] - weights[q], 0).sum()) == proof.distance
    assert proof.distance == max(int(np.maximum(a - b, 0).sum()) for a in weights for b in weights)


def test_infinite_epsilon_is_only_proved_when_claimed() -> None:
    """A zero against a non-zero proves nothing finite."""
    exact = ExactChannel([[4, 0], [3, 1]], bits=2)
    assert exact.epsilon == math.inf
    exact.verify(math.inf)
    with pytest.raises(CertificateError, match="supports"):
        exact.verify(700.0)
    assert ExactChannel.from_json(exact.to_json()) == exact


@pytest.mark.parametrize("claim", [{"epsilon": math.nan}, {"epsilon": -math.inf}, {"eta": math.nan}, {"epsilon": "1"}])
@pytest.mark.parametrize("weights", [[[4, 0], [3, 1]], [[3, 1], [1, 3]]])
def test_a_claim_that_is_no_number_is_never_proved(claim: dict[str, Any], weights: list[list[int]]) -> None:
    """NaN, minus infinity and text are refused as claims, also where the supports of two rows differ."""
    with pytest.raises(InvalidInput):
        ExactChannel(weights, bits=2).verify(**claim)


@pytest.mark.parametrize("claim", [{"epsilon": -1e-300}, {"eta": -1e-300}])
def test_negative_claims_are_never_proved(claim: dict[str, float]) -> None:
    """No channel, not even a constant one, proves a negative epsilon or eta."""
    with pytest.raises(CertificateError, match="not proved"):
        ExactChannel([[3, 1], [3, 1]], bits=2).verify(**claim)


def test_the_file_carries_everything() -> None:
    """A channel, its labels and its 62-bit integers survive the file."""
    big = 2**61 + 12345678901234567
    exact = ExactChannel([[big, 2**62 - big], [2**62 - big, big]], bits=62, inputs=[("a", 1), 2.5], outputs=["é", True])
    again = ExactChannel.from_json(exact.to_json().encode())
    assert again == exact
    assert hash(again) == hash(exact)
    assert again != ExactChannel(exact.weights, bits=62)


def edited(**changes: Any) -> str:
    return json.dumps({**json.loads(EXACT.to_json()), **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other"},
        {"version": 2},
        {"extra": 1},
        {"weights": [[3, 1], [1, 2]]},
        {"weights": [[3, 1], [1]]},
        {"weights": [["3", "-1"], [1, 3]]},
        {"weights": [["3", "0x1"], [1, 3]]},
        {"weights": [["3", "9" * 5000], [1, 3]]},
        {"weights": [[3.0, 1.0], [1.0, 3.0]]},
        {"weights": [[True, 3], [1, 3]]},
        {"weights": []},
        {"weights": [None, []]},
        {"weights": [[[3], 1], [1, 3]]},
        {"weights": [[], []]},
        {"weights": 5},
        {"weights": [[5, -1], [1, 3]]},
        {"weights": [[10**30, 1], [1, 3]]},
        {"bits": 63},
        {"bits": "2"},
        {"bits": None},
        {"inputs": ["a", "a"]},
        {"inputs": ["a"]},
        {"inputs": [None, "a"]},
        {"epsilon": "big"},
        {"epsilon": None},
        {"eta": 2},
        {"eta": -0.5},
    ],
)
def test_malformed_exact_files_are_refused(changes: dict[str, Any]) -> None:
    """Anything malformed in a file is `InvalidInput`."""
    with pytest.raises(InvalidInput):
        ExactChannel.from_json(edited(**changes))


@pytest.mark.parametrize("changes", [{"epsilon": 1.0}, {"epsilon": -1.0}, {"eta": 0.49}])
def test_files_that_overclaim_are_refused(changes: dict[str, Any]) -> None:
    """A file whose integers do not prove its claim is refused."""
    with pytest.raises(CertificateError, match="not proved"):
        ExactChannel.from_json(edited(**changes))


def test_weights_are_read_only_and_integers() -> None:
    """Weights cannot be changed afterwards, and floats are refused."""
    with pytest.raises(ValueError, match="read-only"):
        EXACT.weights[0, 0] = 2
    with pytest.raises(InvalidInput, match="integers"):
        ExactChannel(np.array([[3.0, 1.0], [1.0, 3.0]]), bits=2)
    with pytest.raises(InvalidInput, match="shape"):
        EXACT.loss(np.ones((1, 1)))


def test_a_proof_is_computed_anew_when_the_integers_have_changed() -> None:
    channel = ExactChannel([[3, 1], [1, 3]], bits=2)
    assert channel.proof() is channel.proof()
    channel.weights.setflags(write=True)
    channel.weights[0] = [4, 0]
    assert channel.proof().ratio is None
    assert channel.epsilon == math.inf
    assert channel.eta == 0.75
    with pytest.raises(CertificateError):
        channel.verify(2.0)


def test_a_proof_is_computed_anew_for_another_shape_or_denominator() -> None:
    """A read-only array can be reshaped in place, and the same integers over another total are other probabilities."""
    reshaped = ExactChannel([[3, 1], [1, 3]], bits=2)
    assert reshaped.proof().distance == 2
    reshaped.weights.shape = (1, 4)
    assert (reshaped.proof().ratio, reshaped.proof().distance) == (1, 0)
    rescaled = ExactChannel([[3, 1], [1, 3]], bits=2)
    assert rescaled.eta == 0.5
    object.__setattr__(rescaled, "denominator", 8)
    assert rescaled.eta == 0.25
