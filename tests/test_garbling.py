"""The refinement order is decided with proofs, in both directions, and exactly between exact channels."""

from fractions import Fraction

import numpy as np
import pytest

from ldpopt import Channel, InvalidInput
from ldpopt.errors import NotChecked
from ldpopt.exact import ExactChannel
from ldpopt.garbling import deficiency, is_garbling
from ldpopt.mechanisms import randomized_response


def random_channel(seed, k, m):
    return np.random.default_rng(seed).dirichlet(np.ones(m), size=k)


@pytest.mark.parametrize("seed", range(6))
def test_post_processing_is_a_garbling_and_rarely_the_other_way(seed):
    """What `@` makes is garbled; the original is not, unless nothing was lost."""
    wide = Channel(random_channel(seed, 3, 4))
    made = wide @ random_channel(seed + 100, 4, 3)
    assert made.garbles(wide)
    assert not wide.garbles(made)
    assert wide.garbles(wide)


def test_a_permutation_of_the_reports_loses_nothing():
    """Renamed, split and merged reports that say the same garble each other."""
    wide = Channel(random_channel(1, 3, 3))
    split = Channel(np.hstack([wide.matrix[:, ::-1] * 0.25, wide.matrix * 0.75]))
    assert split.garbles(wide)
    assert wide.garbles(split)


def test_two_channels_may_be_incomparable():
    """Each tells a pair of answers apart that the other does not."""
    one, other = Channel([[1, 0], [0, 1], [0, 1]]), Channel([[1, 0], [1, 0], [0, 1]])
    assert not one.garbles(other)
    assert not other.garbles(one)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 40.0])
def test_randomized_response_is_ordered_by_epsilon(epsilon):
    """Less epsilon is a garbling of more, for small and for large epsilon."""
    less, more = randomized_response(3, epsilon), randomized_response(3, 1.5 * epsilon)
    assert less.garbles(more)
    if epsilon < 40:
        assert deficiency(more, less).lower > 0


@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-5])
def test_nearly_constant_channels_are_decided_rightly_or_not_at_all(epsilon):
    """What floats leave open is an error that says so, never a wrong answer; exact forms are decided."""
    less, more = randomized_response(3, epsilon), randomized_response(3, 1.5 * epsilon)
    for channel, other, right in ((less, more, True), (more, less, False)):
        try:
            assert channel.garbles(other) is right
        except NotChecked as error:
            assert "open" in str(error)
    steps = [1 + (1 if epsilon < 1e-8 else 5), 1]
    rows = [[[10**9 + step, 10**9 - step], [10**9 - step, 10**9 + step]] for step in steps]
    wide, narrow = (ExactChannel(row, denominator=2 * 10**9) for row in rows)
    assert narrow.garbles(wide)
    assert not wide.garbles(narrow)


def test_the_deficiency_is_known_for_two_answers():
    """Of [DR]'s binary channels: against a constant channel, half of the distance between the rows."""
    for a in (0.5, 0.6, 0.9, 1.0):
        found = deficiency([[a, 1 - a], [1 - a, a]], [[1.0], [1.0]])
        assert found.lower <= a - 0.5 + 1e-15
        assert found.upper >= a - 0.5 - 1e-15
        assert found.upper - found.lower < 1e-12
        assert np.allclose(found.post.sum(axis=1), 1)


def test_exact_channels_are_decided_exactly():
    """A difference of 2**-62, which floats do not show, decides; thirds are reached exactly."""
    third = ExactChannel.from_fractions([["2/3", "1/3"], ["1/3", "2/3"]])
    post = [[Fraction(6, 7), Fraction(1, 7)], [Fraction(1, 11), Fraction(10, 11)]]
    made = [[sum(Fraction(w, 3) * post[z][y] for z, w in enumerate(row)) for y in range(2)] for row in ((2, 1), (1, 2))]
    made = ExactChannel.from_fractions(made)
    assert made.garbles(third)
    assert not third.garbles(made)
    half = 1 << 61
    constant = ExactChannel([[half, half], [half, half]], bits=62)
    nearly = ExactChannel([[half + 1, half - 1], [half, half]], bits=62)
    assert constant.garbles(nearly)
    assert is_garbling(Channel(nearly.matrix), constant)
    assert not nearly.garbles(constant)


def test_answers_are_matched_by_their_labels():
    """Two channels for the same answers in another order are compared answer by answer."""
    one = Channel([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], inputs=["a", "b", "c"])
    other = Channel(one.matrix[[1, 2, 0]], inputs=["b", "c", "a"])
    assert one.garbles(other)
    assert other.garbles(one)
    assert not one.garbles(Channel(other.matrix))
    with pytest.raises(InvalidInput, match="same inputs"):
        one.garbles(Channel(one.matrix, inputs=["a", "b", "d"]))
    with pytest.raises(InvalidInput, match="3 inputs"):
        one.garbles(np.eye(2))
    with pytest.raises(InvalidInput, match="products"):
        Channel(np.full((60, 60), 1 / 60)).garbles(np.full((60, 60), 1 / 60))


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.5, 0.5]], [["1/2", "1/3"]], [["-1/2", "3/2"]], [["1/0", "1"]], [["1e999999999", "0"]], [["x", "1"]], [],
        [[]], "1/2", [["1/2", "1/2"], ["1"]], [[True, False]], [[Fraction(1, 2**63), 1 - Fraction(1, 2**63)]],
        [["nan", "1"]], [[None, 1]],
    ],
)  # fmt: skip
def test_bad_tables_of_fractions_are_refused(matrix):
    """Floats, sums other than 1, negative numbers, ragged tables and denominators too large are errors in one line."""
    with pytest.raises(InvalidInput):
        ExactChannel.from_fractions(matrix)


def test_fractions_are_stored_exactly():
    """Text, fractions, decimals and whole numbers may stand beside each other; the identity has denominator 2."""
    channel = ExactChannel.from_fractions([[Fraction(2, 3), " 1 / 3 "], ["0.25", "3/4"], [1, 0]], ["a", "b", "c"])
    assert channel.weights.tolist() == [[8, 4], [3, 9], [12, 0]]
    assert channel.denominator == 12
    assert ExactChannel.from_fractions([[1, 0], [0, 1]]).weights.tolist() == [[2, 0], [0, 2]]
