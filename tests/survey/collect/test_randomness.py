"""An answer that is changed inside a memoised round costs at most twice epsilon."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect.batch import privatize_frame
from ldpopt_survey.collect.randomness import Memoized, WordSource
from ldpopt_survey.collect.words import CHUNK_WORDS, Respondents, SecretKey, create_key, tag
from ldpopt_survey.plan.plan import Plan, _checksum, make_plan
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

KEY = SecretKey(bytes(range(32)))
ANSWERS = ("never", "some", "daily")
MATRIX = np.array([[0.6, 0.25, 0.15], [0.2, 0.6, 0.2], [0.15, 0.25, 0.6]])
SPEC = SurveySpec("demo", (QuestionSpec("drink", ANSWERS),), respondent="id")
PLAN = make_plan(SPEC, {"drink": MATRIX}, bits=16)


def cmac(identity: str, question: bytes) -> int:
    content = identity.encode()
    mac = CMAC(algorithms.AES(KEY.derive(b"ldpopt memo")))
    mac.update(content + bytes((-len(content) - 2) % 16) + len(content).to_bytes(2, "little") + question)
    return int.from_bytes(mac.finalize()[:8], "little")


def words(plan: Plan, ids: list[str], answers: list[int]) -> list[int]:
    source = WordSource(plan, "memoised", KEY)
    found = source.words(0, None, source.respondents(pa.array(ids, pa.string())), np.array(answers, np.uint8))
    made = np.empty(len(ids), np.uint64)
    for start in range(0, len(ids), CHUNK_WORDS):
        found.fill(made[start : start + CHUNK_WORDS])
    return made.tolist()


def parts(question: PlannedQuestion) -> tuple[str, ...]:
    return "demo", "1", "drink", question.channel.to_json()


def test_a_word_is_the_cmac_of_the_answer_too() -> None:
    """Each word is the library's CMAC under the tag of question, channel and answer, also beyond one chunk."""
    ids = [f"p{i}" for i in range(CHUNK_WORDS + 50)]
    answers = [i % 3 for i in range(len(ids))]
    found = words(PLAN, ids, answers)
    tags = [tag("word of answer", *parts(PLAN.questions[0]), answer) for answer in ANSWERS]
    for at in [*range(40), CHUNK_WORDS - 1, CHUNK_WORDS, CHUNK_WORDS + 49]:
        assert found[at] == cmac(ids[at], tags[answers[at]])


def test_a_plan_file_names_the_derivation_of_words() -> None:
    """A plan is read with its checksum and written as it was; a file with another derivation or version is refused."""
    content = json.loads(PLAN.to_json())
    assert (content["version"], content["derivation"]) == (2, 2)
    assert Plan.from_json(PLAN.to_json()).to_json() == PLAN.to_json()
    changes: tuple[dict[str, Any], ...] = (
        {"version": 1}, {"version": True}, {"version": 3}, {"derivation": 1}, {"derivation": 3}, {"derivation": 2.0},
        {"derivation": True}, {"derivation": None},
    )  # fmt: skip
    for change in changes:
        changed = {name: value for name, value in {**content, **change}.items() if name != "checksum"}
        with pytest.raises(InvalidInput):
            Plan.from_json(json.dumps({**changed, "checksum": _checksum(changed)}))
    kept = Path(__file__).parents[2] / "data" / "anes_plan.json"
    assert Plan.from_json(kept.read_bytes()).to_json() == kept.read_text("utf-8")


def pair_law(plan: Plan, x: int, y: int) -> dict[tuple[int, int], Fraction]:
    """The law of the two reports of one respondent who answers x and then y, over all words of the channel's bits."""
    channel = plan.questions[0].channel
    steps = np.cumsum(channel.weights, axis=1)
    size = 1 << channel.bits
    every = np.arange(size)
    first, second = (np.searchsorted(steps[row], every, side="right") for row in (x, y))
    counts = np.outer(np.bincount(first, minlength=3), np.bincount(second, minlength=3)).ravel()  # a word for each
    return {(a, b): Fraction(int(counts[3 * a + b]), size * size) for a, b in product(range(3), repeat=2)}


def largest_ratio(plan: Plan) -> float:
    """Of the laws of the pair of reports, over all two pairs of different answers."""
    laws = [pair_law(plan, x, y) for x, y in product(range(3), repeat=2) if x != y]
    ratios = [
        one[cell] / other[cell] if other[cell] else float("inf")
        for one, other in product(laws, repeat=2)
        for cell in one
        if one[cell]
    ]
    return float(max(ratios))


def test_a_changed_answer_costs_at_most_twice_epsilon() -> None:
    """Over all words, in rationals: no pair of reports is e^(2 epsilon) times likelier under two other answers."""
    assert largest_ratio(PLAN) <= np.exp(2 * PLAN.epsilon) * (1 + 1e-12)
    assert largest_ratio(PLAN) > np.exp(1.9 * PLAN.epsilon)  # and about that it is


def test_reports_of_changed_answers_have_the_joint_distribution(tmp_path: Path) -> None:
    """60,000 respondents change their answer: pairs of reports are as frequent as the law says, within 5 sigma."""
    create_key(tmp_path / "key")
    n = 60_000
    ids = [f"p{i}" for i in range(n)]
    made = [
        privatize_frame(PLAN, pa.table({"id": ids, "drink": [answer] * n}), Memoized(tmp_path / "key"))[0]["drink"]
        .cast(pa.string())
        .to_numpy()
        .astype(int)
        for answer in ANSWERS
    ]
    for x, y in product(range(3), repeat=2):
        if x == y:
            continue
        found = np.bincount(made[x] * 3 + made[y], minlength=9) / n
        for (a, b), share in pair_law(PLAN, x, y).items():
            p = float(share)
            assert abs(found[3 * a + b] - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12


def test_the_same_answer_repeats_its_report(tmp_path: Path) -> None:
    """Whoever answers the same gives the same report, in whatever order, beside whatever other answers."""
    create_key(tmp_path / "key")
    rng = np.random.default_rng(1)
    ids = np.array([f"p{i}" for i in range(3000)])
    answers = rng.choice(ANSWERS, len(ids))
    order = rng.permutation(len(ids))
    changed = np.where(rng.random(len(ids)) < 0.3, "some", answers)
    key = Memoized(tmp_path / "key")
    one = privatize_frame(PLAN, pa.table({"id": ids, "drink": answers}), key)[0]["drink"].to_pylist()
    two = privatize_frame(PLAN, pa.table({"id": ids[order], "drink": changed[order]}), key)[0]["drink"].to_pylist()
    same = (changed == answers)[order]
    assert [r for r, kept in zip(two, same, strict=True) if kept] == [one[at] for at in order[same]]


def test_answers_and_ids_go_together() -> None:
    """As many answers as ids; anything else is refused."""
    with pytest.raises(InvalidInput, match="one an id"):
        Respondents(KEY, pa.array(["a", "b"])).words([tag("x")], np.zeros(3, np.uint8))
