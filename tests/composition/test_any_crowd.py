"""One report among others with any answers: never below an exact law of the histogram, and close to the worst."""

import itertools
import math

import numpy as np
import pytest

from ldpopt.composition import shuffled
from ldpopt.composition.any_crowd import AnyCrowd
from ldpopt.mechanisms import randomized_response, subset_selection


def exact_delta(rows, others, epsilon):
    """The hockey stick of the histograms of n - 1 others and a person, over all ordered pairs of the person's answers.

    The histogram without its first count has n^(m-1) cells; its law is a product of transforms.
    """
    m, n = rows.shape[1], sum(others) + 1
    axes = tuple(range(m - 1))

    def transform(row):
        one = np.zeros((n + 1,) * (m - 1))
        one[(0,) * (m - 1)] = row[0]
        for y in range(1, m):
            one[tuple(int(y == axis + 1) for axis in axes)] = row[y]
        return np.fft.fftn(one, axes=axes)

    parts = [transform(row) for row in rows]
    rest = math.prod(part**count for part, count in zip(parts, others, strict=True))
    laws = [np.fft.ifftn(rest * part, axes=axes).real for part in parts]
    return max(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() for p, q in itertools.permutations(laws, 2))


def mixtures(k, n, rng, count):
    """All others with one answer, halves, and random counts."""
    pure = np.eye(k, dtype=int) * (n - 1)
    random = rng.multinomial(n - 1, rng.dirichlet(np.ones(k), count))
    halves = [pure[i] // 2 + (pure[j] - pure[j] // 2) for i in range(k) for j in range(i)]
    return [*pure.tolist(), *(half.tolist() for half in halves), *random.tolist()]


CASES = [
    ("two reports", np.array([[0.7, 0.3], [0.5, 0.5], [0.35, 0.65]]), 2000, 0.045, 1.5),
    ("skewed", np.array([[0.9, 0.1], [0.8, 0.2], [0.95, 0.05]]), 3000, 0.045, 1.6),
    ("three reports", randomized_response(3, 1.0).matrix, 256, 0.2, 6.0),
    ("uneven", np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5], [0.25, 0.35, 0.4]]), 256, 0.15, 5.0),
]


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("rows", "n", "epsilon", "ratio"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_no_mixture_of_answers_is_above_the_bound(rows, n, epsilon, ratio):
    """delta of every mixture of the others' answers is at most the bound, and of the worst at least a part of it."""
    rng = np.random.default_rng(0)
    worst = max(exact_delta(rows, others, epsilon) for others in mixtures(len(rows), n, rng, 4))
    bound = AnyCrowd.from_rows(rows, n).delta(epsilon, worst)
    assert 1e-9 < worst <= bound <= ratio * worst


@pytest.mark.parametrize(("n", "ratio"), [(10**3, 1.05), (10**6, 1.02)])
def test_the_ends_meet_for_subset_selection(n, ratio):
    """Reports that are subsets: the privacy blanket alone stays 1.10 apart, at every n."""
    found = shuffled(subset_selection(10, 1.0, 3), n).epsilon_at(1e-6)
    assert found.lower <= found.value <= ratio * found.lower


def test_small_crowds_and_many_answers_are_not_bounded():
    """Reports that some never send, few respondents, and many kinds of answers are left to the blanket."""
    assert AnyCrowd.from_rows(np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]), 10**4) is None
    assert AnyCrowd.from_rows(randomized_response(2, 1.0).matrix, 99) is None
    assert AnyCrowd.from_rows(randomized_response(100, 1.0).matrix, 10**4) is None


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 3.0, 50.0, 700.0])
@pytest.mark.parametrize("goal", [1e-250, 1e-30, 0.5])
def test_extremes_fail_closed(epsilon, goal):
    """Far from where it is close, the bound is a probability."""
    rows = np.array([[1 - 1e-9, 1e-9], [0.5, 0.5]])
    for matrix in (rows, randomized_response(3, 5.0).matrix, randomized_response(2, 1e-6).matrix):
        bound = AnyCrowd.from_rows(matrix, 10**4)
        assert bound is None or 0 <= bound.delta(epsilon, goal) <= 1


def test_a_crowd_without_other_respondents_has_no_bound():
    """With R above n - 2 no other respondents remain: the integral alone would be 0, and the bound is 1 instead."""
    rows = randomized_response(3, 1.0).matrix
    crowd = AnyCrowd.from_rows(rows, 200)
    assert crowd is not None
    truth = exact_delta(rows, [199, 0, 0], 0.05)
    assert 0 < truth <= crowd.delta(0.05, truth) < 1
    for helpers in (150, 199, 1000):
        crowd = AnyCrowd(rows, 200)
        crowd.helpers = helpers
        assert crowd.delta(0.05, truth) == 1.0
    assert AnyCrowd.from_rows(np.array([[0.5, 0.5, 0.0], [0.4, 0.4, 0.2]]), 200) is None  # min Q = 0
