import itertools
import json
import math
import random
import re
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.mechanisms import randomized_response
from ldpopt_studio import meaning
from ldpopt_studio.ask import design_question, read_question
from ldpopt_studio.fields import FieldError, to_json_types
from ldpopt_studio.meaning import posterior_above, posterior_below
from ldpopt_survey.reports.words import as_typed, at_least, at_most

ZERO = [[1.0, 0.0, 0.0], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]]
SKEW = [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.35, 0.25, 0.4]]
SAME = [[0.25, 0.75], [0.25, 0.75]]
CHANNELS = {
    "skew": SKEW,
    "zero": ZERO,
    "same": SAME,
    "classical": randomized_response(4, 0.7).matrix.tolist(),
    "random": np.random.default_rng(3).dirichlet(np.ones(3), size=3).tolist(),
}


def exact_rows(matrix):
    """Convert the rows to exact distributions: rows of floats sum to 1 only up to rounding."""
    rows = [[Fraction(one) for one in row] for row in matrix]
    return [[one / sum(row) for one in row] for row in rows]


def sequences(rows, n):
    """Compute for each answer the chance of each sequence of n fresh reports."""
    places = list(itertools.product(range(len(rows[0])), repeat=n))
    return [[math.prod(row[y] for y in place) for place in places] for row in rows]


def number(words):
    count, parts = words.replace(",", "").split(" in ")
    return Fraction(count) / Fraction(parts)


def view_of(matrix, **more):
    return meaning.view({"source": "matrix", "matrix": matrix, **more})


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("prior", ["0.01", "0.5", "0.999"])
def test_no_sequence_of_reports_exceeds_the_posterior_bounds(name, n, prior):
    """For each sequence of reports and each other answer, Bayes' rule gives a chance between the two bounds.

    A chance of the rest that is spread over several rivals gives a mixture of the same, so rivals alone are enough;
    the ends are attained, and so they cannot be narrower.
    """
    rows = sequences(exact_rows(CHANNELS[name]), n)
    for x in range(len(rows)):
        content = view_of(CHANNELS[name], answer=x, prior=float(prior), rounds=n)
        before, seen = Fraction(prior), []
        for other in range(len(rows)):
            for mine, theirs in zip(rows[x], rows[other], strict=True):
                whole = before * mine + (1 - before) * theirs
                if other != x and whole > 0:
                    seen.append(before * mine / whole)
        most, least = max(seen), min(seen)
        assert Fraction(content["posterior"]["least"]) <= least
        assert Fraction(content["posterior"]["most"]) >= most
        assert content["posterior"]["most"] == pytest.approx(float(most), rel=1e-12)
        assert content["posterior"]["least"] == pytest.approx(float(least), rel=1e-12)
        sentence = content["sentences"][0]
        words = re.search(r"it is at most ([\d,.]+ in [\d,]+) and", sentence).group(1)
        assert number(words) >= most
        last = re.search(r"and at least ([\d,.]+ in [\d,]+|0), whatever", sentence).group(1)
        assert (Fraction(0) if last == "0" else number(last)) <= least


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("n", [1, 3])
def test_no_guess_exceeds_the_bound_on_correct_guesses(name, n):
    """The best guess between two answers is right (1 + TV)/2 of the time, which is at most the bound."""
    rows = sequences(exact_rows(CHANNELS[name]), n)
    for x in range(len(rows)):
        content = view_of(CHANNELS[name], answer=x, rounds=n)
        best = max(
            sum(max(a, b) for a, b in zip(rows[x], rows[other], strict=True)) / 2
            for other in range(len(rows))
            if other != x
        )
        assert Fraction(content["now"]["guess"]) >= best
        words = re.search(r"at most ([\d,.]+ in [\d,]+) times", content["sentences"][1]).group(1)
        assert number(words) >= best
        if n == 1:
            assert content["now"]["guess"] == pytest.approx(float(best), rel=1e-12)


def min_missed(null, other, alpha):
    """Compute the fewest misses by Neyman and Pearson: suspect the largest ratios first, the last one by a coin."""
    order = sorted(range(len(null)), key=lambda y: math.inf if null[y] == 0 else other[y] / null[y], reverse=True)
    left, missed = alpha, Fraction(1)
    for y in order:
        part = Fraction(1) if null[y] <= left else left / null[y]
        left -= part * null[y]
        missed -= part * other[y]
    return missed


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("alpha", ["0.05", "0.3", "0.9"])
def test_no_test_misses_fewer_than_the_bound(name, n, alpha):
    """The best test against each other answer, at that rate of wrong suspicion, misses at least the bound."""
    rows = sequences(exact_rows(CHANNELS[name]), n)
    for x in range(len(rows)):
        content = view_of(CHANNELS[name], answer=x, rounds=n, alpha=float(alpha))
        best = min(min_missed(rows[other], rows[x], Fraction(alpha)) for other in range(len(rows)) if other != x)
        assert Fraction(content["test"]["missed"]) <= best
        last = re.search(r"misses at least ([\d,.]+ in [\d,]+|0) of", content["sentences"][2]).group(1)
        assert (Fraction(0) if last == "0" else number(last)) <= best
        for a, b in content["test"]["all"]:
            assert all(
                b <= float(min_missed(rows[other], rows[x], Fraction(a))) + 1e-12
                for other in range(len(rows))
                if other != x
            )


def test_the_bound_for_one_report_is_tight():
    """For one report of a channel of two answers the curve is that of the best test, up to rounding."""
    rows = exact_rows([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]])
    content = view_of([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]], alpha=0.1)
    assert content["test"]["missed"] == pytest.approx(float(min_missed(rows[1], rows[0], Fraction("0.1"))), rel=1e-12)


@pytest.mark.parametrize("name", ["skew", "classical", "random"])
@pytest.mark.parametrize("n", [1, 3])
def test_the_composed_epsilon_holds_at_its_delta(name, n):
    """At the composed epsilon no set of sequences exceeds e^eps times its other probability by more than delta."""
    rows = sequences(exact_rows(CHANNELS[name]), n)
    for delta in (0.05, 1e-6):
        content = view_of(CHANNELS[name], rounds=n, delta=delta)["now"]
        for epsilon, allowed in ((content["epsilon_at_delta"], Fraction(delta)), (content["epsilon"], Fraction(0))):
            factor = Fraction(math.nextafter(math.exp(epsilon), math.inf))
            for other in range(1, len(rows)):
                for a, b in ((rows[0], rows[other]), (rows[other], rows[0])):
                    above = sum(max(Fraction(0), p - factor * q) for p, q in zip(a, b, strict=True))
                    assert above <= allowed * (1 + Fraction(1, 10**9))


def test_each_report_has_its_posterior_by_bayes_rule():
    """A report's bounds and its chance under the pilot agree with a computation by hand."""
    pilot = [0.5, 0.25, 0.25]
    content = view_of(SKEW, prior=0.01, answer=0, pilot=pilot)
    rows, before = exact_rows(SKEW), Fraction("0.01")
    for one in content["reports"]:
        y = int(one["report"])
        others = (rows[1][y] + rows[2][y]) / 2
        likely = before * rows[0][y] / (before * rows[0][y] + (1 - before) * others)
        assert one["likely"] == pytest.approx(float(likely), rel=1e-12)
        each = [before * rows[0][y] / (before * rows[0][y] + (1 - before) * rows[x][y]) for x in (1, 2)]
        assert Fraction(one["most"]) >= max(each)
        assert Fraction(one["least"]) <= min(each)
        assert one["most"] == pytest.approx(float(max(each)), rel=1e-12)
    assert content["reports"][0]["most"] == content["posterior"]["most"]
    assert content["exposed"] == 1  # 0.7 / 0.1, the largest ratio


def test_at_epsilon_1_one_in_100_becomes_at_most_one_in_37():
    """At epsilon 1, 1 in 100 becomes at most 0.01 e / (0.01 e + 0.99) = 1 in 37.4."""
    content = meaning.view({"question": {"pilot": [0.5, 0.5]}, "epsilon": 1.0, "prior": 0.01})
    assert content["posterior"]["words"] == "at most 1 in 37"
    assert content["posterior"]["most"] == pytest.approx(0.01 * math.e / (0.01 * math.e + 0.99), rel=1e-9)
    assert content["epsilon"] <= 1.0


def test_bounds_are_monotone_in_rounds_and_priors():
    """More rounds never reveal less, and a larger prior never gives a smaller chance."""
    content = view_of(SKEW, rounds=12)
    for name, sign in (("most", 1), ("guess", 1), ("missed", -1), ("epsilon", 1)):
        values = [sign * one[name] for one in content["rounds"]]
        assert values == sorted(values)
    for column in range(1, 5):
        values = [row[column] for row in content["priors"]]
        assert values == sorted(values)
    assert content["now"] == next(one for one in content["rounds"] if one["rounds"] == 12)


def test_the_document_is_plain_json():
    """The document contains only finite numbers, text, lists and objects, even with impossible reports."""
    for matrix in CHANNELS.values():
        json.dumps(to_json_types(view_of(matrix, rounds=7)), allow_nan=False)


def test_a_question_and_its_channel_s_matrix_give_the_same_view():
    """The views of a question and of the matrix of its channel are equal."""
    state = {"pilot": [0.5, 0.3, 0.2], "labels": ["a", "b", "c"]}
    asked = meaning.view({"question": state, "epsilon": 0.8, "answer": 2, "rounds": 4})
    channel = design_question(read_question(state), 0.8).channel
    assert isinstance(channel, Channel)
    again = view_of(
        channel.matrix.tolist(), inputs=["a", "b", "c"], outputs=[str(one) for one in channel.outputs],
        pilot=[0.5, 0.3, 0.2], answer=2, rounds=4,
    )  # fmt: skip
    assert to_json_types(asked) == to_json_types(again)


@pytest.mark.parametrize(
    ("given", "name", "words"),
    [
        ({}, "question", "a value is required"),
        ({"question": {"pilot": [1, 1]}}, "epsilon", "a value is required"),
        ({"question": {"pilot": [1, 1]}, "epsilon": 0}, "epsilon", "nats"),
        ({"question": {"pilot": [1, 1]}, "epsilon": 200}, "epsilon", "0.01 to 16"),
        ({"question": {"pilot": [1, -1]}, "epsilon": 1}, "question.pilot", "non-negative"),
        ({"source": "matrix", "matrix": [[0.5, 0.6], [0.5, 0.5]]}, "matrix", "sum to 1"),
        ({"source": "matrix", "matrix": [[1, 0]]}, "matrix", "2 to 100 answers"),
        ({"source": "matrix", "matrix": 3}, "matrix", "a list"),
        ({"source": "matrix", "matrix": SAME, "inputs": ["a", "a"]}, "matrix", "distinct"),
        ({"source": "matrix", "matrix": SAME, "pilot": [1, 1, 1]}, "pilot", "2 shares"),
        ({"source": "matrix", "matrix": SAME, "prior": 0}, "prior", "between 0 and 1"),
        ({"source": "matrix", "matrix": SAME, "prior": 1}, "prior", "between 0 and 1"),
        ({"source": "matrix", "matrix": SAME, "alpha": 1}, "alpha", "between 0 and 1"),
        ({"source": "matrix", "matrix": SAME, "delta": -1}, "delta", "between 0 and 1"),
        ({"source": "matrix", "matrix": SAME, "rounds": 0}, "rounds", "whole number"),
        ({"source": "matrix", "matrix": SAME, "rounds": 366}, "rounds", "1 to 365"),
        ({"source": "matrix", "matrix": SAME, "answer": 2}, "answer", "a position"),
        ({"source": "file"}, "source", "one of"),
    ],
)
def test_invalid_input_names_its_field(given, name, words):
    """Each error names the field that is wrong, with the package's message."""
    with pytest.raises(FieldError, match=words) as caught:
        meaning.view(given)
    assert caught.value.field == name


def chance_in(words):
    """Return the chance that words state."""
    if words == "0":
        return Fraction(0)
    count, parts = words.replace(",", "").split(" in ")
    return Fraction(count) / Fraction(parts)


def chances():
    rng = random.Random(7)
    yield from (Fraction(1), Fraction(0), Fraction(1, 2), Fraction(1, 10), Fraction(9999999, 10000000))
    yield from (Fraction(1, 10**30), 1 - Fraction(1, 10**30), Fraction(1, 100), Fraction(999, 1000))
    for size in (10, 100, 10**4, 10**9):
        for _ in range(100):
            yield Fraction(rng.randint(0, size), size)
            yield Fraction(1, rng.randint(1, size))


def test_words_round_upper_bounds_up_and_lower_bounds_down():
    """Upper bounds are rounded up, lower bounds down."""
    upper = [Fraction(1, 37), Fraction(27, 1000), Fraction(2, 3), Fraction(1)]
    assert list(map(at_most, upper)) == ["1 in 37", "1 in 37", "66.7 in 100", "1 in 1"]
    lower = [Fraction(1, 37), Fraction(27, 1000), Fraction(2, 3), Fraction(0)]
    assert list(map(at_least, lower)) == ["1 in 37", "1 in 38", "66.6 in 100", "0"]


def test_words_are_valid_and_near_the_chance():
    """The words of an upper bound are not below the chance, those of a lower bound not above, and both are near it."""
    for chance in chances():
        most, least = chance_in(at_most(chance)), chance_in(at_least(chance))
        assert least <= chance <= most
        assert most <= chance * Fraction(12, 10)
        assert least >= chance * Fraction(8, 10)


def test_a_typed_chance_has_the_typed_words():
    """One in a hundred is one in a hundred, without rounding of floats."""
    assert as_typed(Fraction("0.01")) == "1 in 100"
    assert as_typed(Fraction("0.3")) == "30 in 100"
    assert as_typed(Fraction("0.07")) == "7 in 100"


def test_posterior_bounds_match_bayes_rule_by_hand():
    """A prior of 1 in 100 and a ratio of 3 give 3 in 102; a report with only one possible answer gives certainty."""
    assert posterior_above(Fraction(1, 100), Fraction(3)) == Fraction(3, 102)
    assert posterior_above(Fraction(1, 100), Fraction(3), 2) == Fraction(9, 108)
    assert posterior_below(Fraction(1, 100), Fraction(3)) == Fraction(1, 298)
    assert posterior_above(Fraction(1, 100), None) == 1
    assert posterior_below(Fraction(1, 100), None) == 0
    assert (
        posterior_above(Fraction(1, 100), Fraction(1))
        == posterior_below(Fraction(1, 100), Fraction(1))
        == Fraction(1, 100)
    )
