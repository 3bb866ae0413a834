"""Answers of any column type become positions, and policies decide about the rest.

The sampler: every word is accounted for, and nothing but words decides.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ldpopt.errors import InvalidInput
from ldpopt.exact import ExactChannel, round_exact
from ldpopt_survey.collect.coding import Coder, Sampler, Tally
from ldpopt_survey.collect.words import CHUNK_WORDS, Keystream, ListedWords, SecretKey
from ldpopt_survey.plan.plan import make_plan
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec


def question(categories: tuple[Any, ...], **policies: Any) -> PlannedQuestion:
    k = len(categories)
    spec = SurveySpec("s", (QuestionSpec("q", categories, column="raw", **policies),))
    return make_plan(spec, {"q": np.full((k, k), 1 / k)}).questions[0]


def codes(categories: tuple[Any, ...], column: pa.Array, **policies: Any) -> tuple[list[int], Tally]:
    tally = Tally()
    return Coder(question(categories, **policies)).read(column, tally, lambda at: at + 100)[0].tolist(), tally


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["10", "-2", "3"]),
        pa.array(["10", "-2", "3"], pa.large_string()),
        pa.array([10, -2, 3], pa.int8()),
        pa.array([10.0, -2.0, 3.0]),
        pa.array([10.0, -2.0, 3.0], pa.float32()),
        pa.array(["10", "-2", "3"]).dictionary_encode(),
        pa.array([10, -2, 3]).dictionary_encode(),
    ],
)
def test_one_answer_in_every_type_of_column(column: pa.Array) -> None:
    """The numbers 10, -2, 3 are the same answers as text, integers, floats and dictionaries."""
    for categories in ((3, -2, 10), ("3", "-2", "10")):
        assert codes(categories, column)[0] == [2, 1, 0]


def test_booleans_and_tuples_have_their_text() -> None:
    """Booleans are true and false; a tuple is its compact JSON."""
    assert codes((True, False), pa.array([False, True]))[0] == [1, 0]
    assert codes((("a", 1), ("b", 2)), pa.array(['["b",2]', '["a",1]']))[0] == [1, 0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 1, 7]),
        pa.array([0, 1, 2**63], pa.uint64()),
        pa.array([0.0, 1.0, 0.5]),
        pa.array([0.0, 1.0, math.inf]),
        pa.array([0.0, 1.0, 1e300]),
        pa.array(["0", "1", "01"]),
        pa.array(["0", "1", ""]),
        pa.array(["0", "1", "1 "]),
        pa.array([Decimal("0"), Decimal("1"), Decimal("2")]),
        pa.array(["0", "1", "zz"]).dictionary_encode(),
    ],
)
def test_an_answer_outside_the_categories(column: pa.Array) -> None:
    """It is refused by row and column without being shown, or mapped and counted."""
    with pytest.raises(InvalidInput, match="row 102, column 'raw'") as caught:
        codes((0, 1), column)
    assert not any(value in str(caught.value) for value in ("zz", "7", "0.5", "1e", "92233", "01", "inf"))
    found, tally = codes((0, 1), column, unknown=1)
    assert (found, tally.unknown, tally.missing) == ([0, 1, 1], {"q": 1}, {})


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, None, 1]),
        pa.array([0.0, math.nan, 1.0]),
        pa.array(["0", None, "1"]),
        pa.array(["0", None, "1"]).dictionary_encode(),
    ],
)
def test_no_answer(column: pa.Array) -> None:
    """A null or NaN is missing, not unknown: refused, or mapped and counted."""
    with pytest.raises(InvalidInput, match=r"no answer.* at row 101"):
        codes((0, 1), column, unknown=0)
    found, tally = codes((0, 1), column, missing=1)
    assert (found, tally.unknown, tally.missing) == ([0, 1, 1], {}, {"q": 1})


def test_nulls_are_missing_when_some_categories_are_text() -> None:
    """Numbers meet only the categories that are numbers; a null among them is missing, never a category."""
    found, tally = codes((0, "none"), pa.array([0, None, 5]), missing="none", unknown=0)
    assert (found, tally.unknown, tally.missing) == ([0, 1, 0], {"q": 1}, {"q": 1})


def test_tallies_add_up() -> None:
    """Sums run over all questions, those without counts included."""
    one, two = Tally(3, 1, {"a": 2}), Tally(4, 0, {"a": 1, "b": 5}, {"a": 1})
    assert one + two == Tally(7, 1, {"a": 3, "b": 5}, {"a": 1})
    plan = make_plan(SurveySpec("s", (QuestionSpec("a", (0, 1)), QuestionSpec("b", (0, 1)))), lambda _: np.eye(2))
    assert Tally.total([], plan) == Tally(0, 0, {"a": 0, "b": 0}, {"a": 0, "b": 0})


def weights(seed: int, k: int, m: int, bits: int) -> np.ndarray:
    """Random integer rows that sum to 2**bits, with zeros at either end and in the middle."""
    rng = np.random.default_rng(seed)
    rows = rng.multinomial(2**bits, rng.dirichlet(np.full(m, 0.3)), size=k)
    return np.where(rng.random((k, 1)) < 0.3, np.eye(m, dtype=int)[rng.integers(m, size=k)] * 2**bits, rows)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 5, 8, 12, 14]), st.integers(1, 5), st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_every_word_of_a_small_version_is_accounted_for(seed: int, bits: int, k: int, m: int) -> None:
    """Over all 2**bits first bits, output y comes up exactly weights[x, y] times, whatever the bits below."""
    exact = ExactChannel(weights(seed, k, m, bits), bits=bits)
    sampler = Sampler(exact)
    below = np.random.default_rng(seed).integers(0, 2 ** (64 - bits), 2**bits, dtype=np.uint64)
    words = (np.arange(2**bits, dtype=np.uint64) << np.uint64(64 - bits)) | below
    for x in range(k):
        reports = sampler.reports(np.full(2**bits, x, np.uint8), ListedWords(words))
        assert np.bincount(reports, minlength=m).tolist() == exact.weights[x].tolist()


def test_thresholds_of_62_bits_decide_to_the_unit() -> None:
    """On both sides of every threshold the report changes, at full width."""
    rng = np.random.default_rng(1)
    exact = round_exact(rng.dirichlet(np.ones(24), 3))
    sampler = Sampler(exact)
    for x in range(3):
        steps = [sum(exact.weights[x, : y + 1].tolist()) for y in range(24)]
        inside = np.array([4 * step for step in [0, *steps[:-1]]], np.uint64)
        before = np.array([4 * step - 1 for step in steps], np.uint64)
        for words in (inside, before):
            reports = sampler.reports(np.full(24, x, np.uint8), ListedWords(words))
            assert reports.tolist() == list(range(24))


@pytest.mark.parametrize(("k", "m"), [(2, 2), (24, 24), (3, 400)])
def test_chi_square_of_many_draws(k: int, m: int) -> None:
    """Two million keystream reports a row follow the exact probabilities (fixed key)."""
    exact = round_exact(np.random.default_rng(k).dirichlet(np.ones(m), 2))
    sampler, n = Sampler(exact), 2_000_000
    for x in range(2):
        reports = sampler.reports(np.full(n, x, np.uint8), Keystream(SecretKey(bytes(range(32))), k, x))
        counts, expected = np.bincount(reports, minlength=m), exact.matrix[x] * n
        common = expected >= 5
        observed = np.append(counts[common], counts[~common].sum())
        wanted = np.append(expected[common], max(expected[~common].sum(), 1e-9))
        assert stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), common.sum() - 1) > 1e-4


def test_reports_do_not_depend_on_how_they_are_cut() -> None:
    """Drawing in one call or several gives the same reports from the same words."""
    exact = round_exact(np.random.default_rng(5).dirichlet(np.ones(5), 4))
    sampler, rng = Sampler(exact), np.random.default_rng(6)
    words = rng.integers(0, 2**64, 3 * CHUNK_WORDS + 17, dtype=np.uint64)
    answers = rng.integers(0, 4, len(words)).astype(np.uint8)
    whole = sampler.reports(answers, ListedWords(words))
    source = ListedWords(words)
    cut = [sampler.reports(part, source) for part in np.split(answers, [5, CHUNK_WORDS, 2 * CHUNK_WORDS + 9])]
    assert np.array_equal(whole, np.concatenate(cut))
    steps = np.cumsum(exact.weights, axis=1).astype(object)
    one_by_one = [sum(s <= int(w) >> 2 for s in steps[x]) for x, w in zip(answers[:500], words[:500], strict=True)]
    assert whole[:500].tolist() == one_by_one


def test_answers_out_of_range_are_refused() -> None:
    """A position that is no input never meets a table, and nothing is drawn for nobody."""
    sampler = Sampler(ExactChannel([[1, 1], [2, 0]], bits=1))
    with pytest.raises(InvalidInput, match="below 2"):
        sampler.reports(np.array([2], np.uint8), ListedWords(np.zeros(1, np.uint64)))
    with pytest.raises(InvalidInput, match="below 2"):
        sampler.reports(np.array([0]), ListedWords(np.zeros(1, np.uint64)))
    assert sampler.reports(np.empty(0, np.uint8), ListedWords(np.empty(0, np.uint64))).size == 0
