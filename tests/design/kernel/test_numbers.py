"""What stands in the place of a certificate's parts: of its kind, or refused with a sentence on what is wrong."""

import numpy as np
import pytest

from ldpopt.design.kernel.numbers import (
    Unproved,
    expect,
    expect_each,
    increasing,
    nonnegative,
    nonnegative_list,
    position,
    positions,
    printed_length,
    real_array,
)

HUGE = 10**400


def kind(given):
    """The name of a case."""
    return type(given).__name__


RAGGED = [[1.0], [1.0, 2.0]]
NONE_OF_THEM = [
    None, "x", "1", b"1", True, {}, object(), iter([1.0]), RAGGED, [HUGE], 1j, np.array([1 + 0j]), np.array(["1.0"]),
    np.array([None]), np.array([True]), np.array([1.0], dtype=object), np.array([0], dtype="datetime64[s]"),
    [float("nan")], [float("inf")],
]  # fmt: skip


@pytest.mark.parametrize("given", NONE_OF_THEM, ids=kind)
def test_values_that_are_not_lists_of_finite_numbers_are_refused(given):
    """The only error is `Unproved`, and there is no warning, for any value in place of numbers."""
    with pytest.raises(Unproved, match="the prices"):
        real_array(given, (-1,), "the prices")


@pytest.mark.parametrize("given", [*NONE_OF_THEM, [0.0, 1.0], [-1, 0], [0, 3], [[0, 1]], [0, 2**63], 0], ids=kind)
def test_positions_are_whole_numbers_within_their_range(given):
    """Numbers with a fraction, negative ones and those beyond the end are no positions."""
    with pytest.raises(Unproved, match="the pairs"):
        positions(given, -1, 3, "the pairs")


def test_positions_accept_any_whole_numbers_of_the_right_count():
    """Any kind of whole number serves, and none at all, but not another number of them than was asked for."""
    for given in ([2, 0], (2, 0), np.array([2, 0], dtype=np.uint8)):
        assert positions(given, 2, 3, "the pairs").tolist() == [2, 0]
    assert positions([], -1, 0, "the pairs").dtype == np.intp
    with pytest.raises(Unproved, match="are 2, not 3"):
        positions([0, 1], 3, 3, "the pairs")


@pytest.mark.parametrize(
    "given", [None, -1, 3, HUGE, -HUGE, 1.0, True, "1", [1], np.array([1]), np.float64(1)], ids=kind
)
def test_a_position_is_one_whole_number_within_its_range(given):
    """No float, truth value or array counts as one."""
    with pytest.raises(Unproved, match="the term is not one of 3"):
        position(given, 3, "the term")
    assert position(np.int64(2), 3, "the term") == 2


def test_a_record_is_of_its_kind():
    """The kind that is expected, and the one that is given, are named."""
    assert expect(1.5, float, "the level") == 1.5
    assert expect_each((), float, "the levels") == ()
    assert expect_each((1.0, 2.0), float, "the levels") == (1.0, 2.0)
    with pytest.raises(Unproved, match="the level: expected float, got str"):
        expect("1.5", float, "the level")
    for given in (None, 1.0, [1.0], (1.0, None), ((1.0,),), "x"):
        with pytest.raises(Unproved, match="the levels: expected"):
            expect_each(given, float, "the levels")


def test_only_lists_are_counted_in_messages():
    """Messages about a tampered certificate do not fail either."""
    assert [printed_length(one) for one in (np.zeros((4, 2)), (1, 2), [1], np.zeros(()), None, 1.0, "four")] == [
        4,
        2,
        1,
        0,
        0,
        0,
        0,
    ]


@pytest.mark.parametrize("given", [[], [1.0, 1.0], [0.0, 1.0, 0.5], [2.0, 1.0], [0.0, np.nan], [[0.0, 1.0]]])
def test_numbers_that_do_not_increase_throughout_are_refused(given):
    """One fall or one repetition is enough."""
    with pytest.raises(Unproved, match="cuts"):
        increasing(given, "cuts")
    assert increasing([-1.0, 0.0, 2.0], "cuts").tolist() == [-1.0, 0.0, 2.0]
    assert increasing([3], "cuts").tolist() == [3.0]


def test_lists_of_prices_have_a_length_and_no_sign():
    """Not empty, not negative."""
    assert nonnegative_list([0.0, 1.0], "prices").tolist() == [0.0, 1.0]
    for wrong in ([], [-1e-300], [np.inf], [[1.0]]):
        with pytest.raises(Unproved, match="prices"):
            nonnegative_list(wrong, "prices")
    with pytest.raises(Unproved, match="price"):
        nonnegative(-1.0, "price")
    assert nonnegative(0.0, "price") == 0.0
