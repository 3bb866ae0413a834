import re

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt.values.distribution import bin_labels
from ldpopt_survey import estimate, mean, population_total, quantile
from ldpopt_survey.estimate.numbers import bin_edges, scores_of

BINS = ["[0, 10)", "[10, 20)", "[20, 40)", "[40, 80)"]
CHANNEL = randomized_response(4, 1.5, inputs=BINS)


def test_labels_are_read_as_numbers_and_bins():
    """Numbers, bins in several spellings, and bins of whole numbers, which meet half-way."""
    assert scores_of([0, 1, 5]).tolist() == [0, 1, 5]
    assert scores_of(["-1", "2.5"]).tolist() == [-1, 2.5]
    assert bin_edges(["18–29", "30–39"]).tolist() == [[17.5, 29.5], [29.5, 39.5]]
    assert bin_edges(["0 to 10", "10 to 20"]).tolist() == [[0, 10], [10, 20]]
    assert bin_edges(["(-5, 0]", "(0, 5]"]).tolist() == [[-5, 0], [0, 5]]
    for labels in (
        ["a", "b"],
        [1, 2, "3-4"],
        ["0-10", "5-20"],
        [2, 1],
        [True, False],
        ["65+", "70+"],
        ["10-5", "5-1"],
        ["30 and"],
        ["5 more"],
        ["under"],
    ):
        with pytest.raises(InvalidInput):
            bin_edges(labels)


def test_bins_may_be_open_at_the_ends():
    """The bins that a draft of survey.toml names are read, in whole numbers and in others; open ends are infinite."""
    for edges, whole, ends in (
        ((30, 40, 50), True, [[-np.inf, 29.5], [29.5, 39.5], [39.5, 49.5], [49.5, np.inf]]),
        ((0.5, 1.25), False, [[-np.inf, 0.5], [0.5, 1.25], [1.25, np.inf]]),
        ((7,), True, [[-np.inf, 7], [7, np.inf]]),
    ):
        labels = bin_labels(edges, whole)
        assert bin_edges(labels).tolist() == ends, labels
        with pytest.raises(InvalidInput, match=re.escape(labels[0])):
            scores_of(labels)
    assert bin_edges(["<18", "18-64", "65+"]).tolist() == [[-np.inf, 17.5], [17.5, 64.5], [64.5, np.inf]]


def test_a_quantile_in_an_open_bin_is_infinite_and_the_others_are_not():
    """Between open ends a quantile is interpolated as between closed ones; in them it is known to lie outside."""
    counts = {"under 10": 200, "10 to under 20": 300, "20 to under 30": 300, "30+": 200}
    found = estimate(counts, Channel(np.eye(4), inputs=counts, outputs=counts))
    low, middle, high = (quantile(found, share) for share in (0.05, 0.5, 0.95))
    assert low.value == low.lower == -np.inf
    assert low.upper == -np.inf
    assert np.isclose(middle.value, 20)
    assert 15 < middle.lower < 20 < middle.upper < 25
    assert high.value == high.upper == np.inf
    edge = quantile(found, 0.2)
    assert edge.value == 10
    assert edge.lower == -np.inf
    assert 10 < edge.upper < 12


def test_quantiles_without_privacy_are_those_of_the_bins():
    """Linear interpolation of the cumulative shares, by hand."""
    found = estimate([250, 250, 250, 250], np.eye(4))
    made = quantile(found, 0.5, bin_edges(BINS))
    assert np.isclose(made.value, 20)
    assert np.isclose(quantile(found, 0.625, bin_edges(BINS)).value, 30)
    assert made.lower < 20 < made.upper
    numbers = estimate({0: 30, 1: 40, 2: 30}, np.eye(3))
    assert [quantile(numbers, q).value for q in (0.1, 0.3, 0.31, 0.71)] == [0, 0, 1, 2]


def test_means_and_quantiles_cover():
    """Over 200 surveys the intervals of a mean, a total and a median hold the truth as often as they say."""
    rng = np.random.default_rng(341)
    p = np.array([0.1, 0.3, 0.4, 0.2])
    scores, median = scores_of(BINS), 25.0
    hits = np.zeros(3)
    for _ in range(200):
        found = estimate(rng.multinomial(2000, CHANNEL.push(p)), CHANNEL)
        made, total, middle = mean(found), population_total(mean(found), 5000), quantile(found, 0.5)
        hits += [
            made.intervals().contains([p @ scores])[0],
            total.intervals().contains([5000 * (p @ scores)])[0],
            middle.lower <= median <= middle.upper,
        ]
    # Five standard errors of 200 draws.
    assert np.abs(hits / 200 - 0.95).max() < 5 * np.sqrt(0.05 * 0.95 / 200)


def test_extremes_have_limits():
    """Shares that leave [0, 1] still give a value between the ends, inside its interval."""
    found = estimate([990, 10, 0, 0], CHANNEL)
    for share in (0.01, 0.5, 0.99):
        made = quantile(found, share)
        assert 0 <= made.lower <= made.value <= made.upper <= 80


def test_invalid_quantiles_scores_and_edges_are_refused():
    """Shares outside (0, 1), wrong scores, edges that overlap, populations of nobody."""
    found = estimate([250, 250, 250, 250], CHANNEL)
    for share in (0.0, 1.0, np.nan):
        with pytest.raises(InvalidInput):
            quantile(found, share)
    with pytest.raises(InvalidInput):
        mean(found, [1.0, 2.0])
    with pytest.raises(InvalidInput):
        quantile(found, 0.5, [[0, 2], [1, 3], [3, 4], [4, 5]])
    with pytest.raises(InvalidInput):
        population_total(found, 0)
