"""Guarantees after shuffling: never below an enumeration of all data sets, and close to it at large n."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from ldpopt import Channel
from ldpopt.composition import shuffled
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response, subset_selection
from ldpopt.privacy import approximate_dp, hockey_stick, local_dp


def histogram_law(rows):
    """The law of the histogram of one report from each row."""
    law = {(0,) * len(rows[0]): 1.0}
    for row in rows:
        grown = defaultdict(float)
        for counts, chance in law.items():
            for y, p in enumerate(row):
                grown[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += chance * p
        law = grown
    return law


def true_deltas(matrix, n, epsilons):
    """For each epsilon, the largest hockey stick over all pairs of answers and all answers of the others."""
    worst, growth = np.zeros(len(epsilons)), np.exp(epsilons)[:, None]
    k, m = matrix.shape
    for others in itertools.combinations_with_replacement(range(k), n - 1):
        rest = histogram_law([matrix[x] for x in others]) if others else {(0,) * m: 1.0}
        laws = []
        for x in range(k):
            law = defaultdict(float)
            for counts, chance in rest.items():
                for y in range(m):
                    law[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += chance * matrix[x, y]
            laws.append(law)
        every = sorted(set().union(*laws))
        for a, b in itertools.permutations([np.array([law[counts] for counts in every]) for law in laws], 2):
            worst = np.maximum(worst, np.maximum(a - growth * b, 0.0).sum(axis=1))
    return worst


CHANNELS = {
    "two": randomized_response(2, 1.0).matrix,
    "three": randomized_response(3, 2.0).matrix,
    "subsets": subset_selection(4, 1.0, 2).matrix,
    "uneven": np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]),
    "zeros": np.array([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5]]),
}


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    ("name", "n"),
    [
        *((name, 1) for name in CHANNELS),
        ("two", 8),
        ("three", 3),
        ("subsets", 3),
        ("uneven", 8),
        ("zeros", 2),
        ("zeros", 3),
    ],
)
def test_the_truth_lies_between_the_bounds(name, n):
    """delta after shuffling, maximal over every data set, lies in [lower, value] [BBGN]: enumerated in full."""
    matrix = CHANNELS[name]
    made = shuffled(matrix, n)
    epsilons = (0.0, 0.8)
    for epsilon, truth in zip(epsilons, true_deltas(matrix, n, epsilons).tolist(), strict=True):
        found = made.delta_at(epsilon)
        assert found.lower <= truth * (1 + 1e-12) + 1e-15
        assert found.value >= truth * (1 - 1e-12)
        if 0 < truth < 1:
            assert made.epsilon_at(truth).lower <= epsilon + 1e-9
            assert made.epsilon_at(truth * (1 - 1e-9)).value >= epsilon - 1e-9


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("channel", "ratio"),
    [(randomized_response(2, 1.0), 1.02), (randomized_response(10, 1.0), 1.001), (subset_selection(10, 1.0, 3), 1.11)],
    ids=["two", "ten", "subsets"],
)
def test_bounds_are_close_for_many(channel, ratio):
    """Upper over lower epsilon at delta = 1e-6 and ten thousand respondents; far below the local epsilon."""
    found = shuffled(channel, 10_000).epsilon_at(1e-6)
    assert found.lower <= found.value <= ratio * found.lower
    assert found.value < 0.05


def test_epsilon_and_delta_agree():
    """delta at the epsilon of some delta is at most that delta, and epsilon falls with n and with delta."""
    made = shuffled(randomized_response(5, 2.0), 500)
    epsilon = made.epsilon_at(1e-5)
    assert made.delta_at(epsilon.value).value <= 1e-5 * (1 + 1e-9)
    assert made.delta_at(epsilon.lower).lower > 1e-5 * (1 - 1e-9)
    assert (
        made.epsilon_at(1e-3).value < epsilon.value < shuffled(randomized_response(5, 2.0), 250).epsilon_at(1e-5).value
    )


def test_shuffling_never_weakens_privacy():
    """Shuffling never costs: value is at most the local one, and equal for one respondent and for delta 0."""
    channel = CHANNELS["uneven"]
    assert shuffled(channel, 1).delta_at(0.3).value == hockey_stick(channel, 0.3).value
    assert shuffled(channel, 50).epsilon_at(0.0).value == local_dp(channel).value
    assert shuffled(channel, 2).epsilon_at(0.05).value <= approximate_dp(channel, 0.05).value
    assert shuffled(channel, 10**6).delta_at(800.0).value == 0
    assert shuffled([[0.5, 0.5], [0.5, 0.5]], 10).epsilon_at(1e-6).value == 0
    assert shuffled([[1.0, 0.0], [0.0, 1.0]], 100).epsilon_at(1e-6).value == math.inf


def test_variation_ratio_understates_delta():
    """[WangVR]'s counts of two clones and the rest give 0.00331 for 4-ary responses; 0.00418 is reached [FMT]."""
    e = math.e
    matrix, n, epsilon = randomized_response(4, 1.0).matrix, 4, 0.8
    clone = 1 / (e + 3)
    person = [e * clone, clone, 1 - (e + 1) * clone]
    rest = [[clone, clone, 1 - 2 * clone]] * (n - 1)
    first, second = histogram_law([person, *rest]), histogram_law([[person[1], person[0], person[2]], *rest])
    counted = sum(max(p - math.exp(epsilon) * second[c], 0.0) for c, p in first.items())
    assert counted == pytest.approx(0.00330909, rel=1e-5)
    assert shuffled(matrix, n).delta_at(epsilon).lower > 0.00417
    assert true_deltas(matrix, n, [epsilon])[0] >= 0.00417756


def test_bad_crowds_and_levels_are_refused():
    """No respondents, too many, fractions of one, and a delta above 1 are refused by name."""
    for n in (0, 10**8 + 1, 2.5, True):
        with pytest.raises(InvalidInput, match="respondents"):
            shuffled(CHANNELS["two"], n)
    with pytest.raises(InvalidInput, match="delta"):
        shuffled(CHANNELS["two"], 10).epsilon_at(1.5)
    with pytest.raises(InvalidInput, match="epsilon"):
        shuffled(CHANNELS["two"], 10).delta_at(-math.inf)


def test_the_result_is_a_table_with_labels():
    """The result is a table, and its witness names inputs."""
    channel = Channel(CHANNELS["two"], ("a", "b"), ("x", "y"))
    made = shuffled(channel, 100)
    assert list(made.to_pandas().columns) == ["delta", "epsilon", "lower"]
    assert str(made.epsilon_at(1e-6)).startswith("shuffled dp (delta 1e-06, respondents 100) ≤ ")
    assert set(made.epsilon_at(1e-6).witness.inputs) == {"a", "b"}


@pytest.mark.parametrize(
    "rows",
    [
        [[0.7212843434029907, 1e-200, 0.27871565659700925], [1.0, 1e-100, 0.0]],
        [[1.0, 1e-320, 1e-323], [0.8256396351789308, 1e-323, 0.1743603648210692], [0.65, 0.35, 5e-324]],
        [[0.999999999, 0.0, 1e-9], [0.2338297485542291, 0.17119407770955825, 0.5949761737362126], [1.0, 0.0, 3e-310]],
    ],
)
@pytest.mark.filterwarnings("error")
def test_subnormal_entries_give_bounds_and_no_warning(rows):
    """Reports that nearly never occur, at the ends of what floats hold."""
    for n in (2, 1000):
        made = shuffled(rows, n)
        for found in (made.epsilon_at(1e-9), made.epsilon_at(1e-30), made.delta_at(40.0), made.delta_at(300.0)):
            assert 0 <= found.lower <= found.value
