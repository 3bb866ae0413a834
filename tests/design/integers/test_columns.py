"""Columns of integers: every column within the ratio is a sum of those that are listed, in its own order."""

import math
from fractions import Fraction
from itertools import product

import pytest

from ldpopt.design.patterns.proof_levels import count_columns, indivisible_pairs, integer_columns
from ldpopt.exact import exp_lower


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.0, math.log(3) + 1e-12])
@pytest.mark.parametrize(("k", "total"), [(2, 24), (3, 12)])
def test_every_column_is_a_sum_of_listed_ones_in_its_order(epsilon, k, total):
    """By brute force over all columns with entries up to D: a split exists whose parts keep the order of entries."""
    ratio = exp_lower(epsilon)
    columns, complete = integer_columns(k, ratio, total)
    assert complete
    listed = {tuple(column) for column in columns.T.tolist()}
    assert len(listed) == columns.shape[1]
    assert all(max(column) <= ratio * min(column) for column in listed)

    def ordered_alike(one, other):
        return all((a - b) * (c - d) >= 0 for a, c in zip(one, other, strict=True)
                   for b, d in zip(one, other, strict=True))  # fmt: skip

    reachable = {(0,) * k}
    every = [c for c in product(range(1, total + 1), repeat=k) if max(c) <= ratio * min(c)]
    for column in sorted(every, key=sum):
        parts = (
            part for part in listed
            if all(a <= b for a, b in zip(part, column, strict=True)) and ordered_alike(part, column)
            and (rest := tuple(b - a for a, b in zip(part, column, strict=True))) in reachable
            and ordered_alike(rest, column)
        )  # fmt: skip
        assert next(parts, None) is not None, column
        reachable.add(column)


def test_counts_and_pairs():
    ratio = Fraction(27, 10)
    assert indivisible_pairs(ratio, 40) == [(1, 0), (1, 1), (2, 3), (3, 5), (10, 17)]
    columns, complete = integer_columns(3, ratio, 40)
    assert complete
    assert columns.shape[1] == sum(count_columns(3, rise) for _, rise in indivisible_pairs(ratio, 40))
    few, complete = integer_columns(3, ratio, 40, max_columns_per_pair=20)
    assert not complete
    assert few.shape[1] < columns.shape[1]


def test_without_a_ratio_columns_are_zeros_and_ones():
    columns, _ = integer_columns(3, None, 6)
    assert sorted(columns.T.tolist()) == sorted([list(c) for c in product((0, 1), repeat=3) if any(c)])
