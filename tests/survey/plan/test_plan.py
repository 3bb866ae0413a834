"""The plan file proves itself, and any change to it is caught."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.channel import Channel
from ldpopt.errors import CertificateError, InvalidInput
from ldpopt.exact import ExactChannel
from ldpopt_survey.plan.plan import Plan, make_plan, over_rounds
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec


def randomized_response(k: int, epsilon: float) -> np.ndarray:
    e = math.exp(epsilon)
    return (np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1)


SPEC = SurveySpec(
    "health",
    (
        QuestionSpec("smoker", ("no", "yes"), pilot=np.array([0.8, 0.2]), missing="no"),
        QuestionSpec("children", (0, 1, 2), column="q7"),
    ),
    round=3,
    respondent="id",
    carry=("stratum",),
)
CHANNELS = {"smoker": randomized_response(2, 1.0), "children": randomized_response(3, 0.5)}
PLAN = make_plan(SPEC, CHANNELS)


def resealed(**changes: Any) -> str:
    """The plan with fields changed and the checksum made to fit again."""
    content = {**json.loads(PLAN.to_json()), **changes}
    content.pop("checksum")
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return json.dumps({**content, "checksum": hashlib.sha256(canonical.encode()).hexdigest()})


def test_the_file_carries_the_plan() -> None:
    """A plan survives its file with the same checksum, channels and claims."""
    again = Plan.from_json(PLAN.to_json().encode())
    assert again.to_json() == PLAN.to_json()
    assert again.checksum == PLAN.checksum
    assert [q.channel for q in again.questions] == [q.channel for q in PLAN.questions]
    assert again.question("smoker").missing == "no"
    assert again.question("smoker").pilot is not None


def test_any_change_breaks_the_checksum() -> None:
    """A plan with one field changed is refused."""
    for old, new in (('"round": 3', '"round": 4'), ('"health"', '"wealth"'), ('"missing": "no"', '"missing": "yes"')):
        assert old in PLAN.to_json()
        with pytest.raises(InvalidInput, match="checksum"):
            Plan.from_json(PLAN.to_json().replace(old, new, 1))


def test_a_resealed_overclaim_is_caught_by_the_proof() -> None:
    """With the checksum recomputed, a smaller claim still fails: the integers do not prove it."""
    questions = json.loads(PLAN.to_json())["questions"]
    questions[0]["epsilon"] = 0.9
    with pytest.raises(CertificateError, match="epsilon"):
        Plan.from_json(resealed(questions=questions))
    questions[0]["epsilon"], questions[0]["channel"]["eta"] = 1.1, 0.1
    with pytest.raises(CertificateError, match="eta"):
        Plan.from_json(resealed(questions=questions))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 3},
        {"format": "x"},
        {"more": 1},
        {"questions": {}},
        {"questions": []},
        {"questions": [1]},
        {"questions": [{}]},
        {"round": 0},
        {"round": "3"},
        {"name": ""},
        {"name": None},
        {"respondent": 5},
        {"respondent": "q7"},
        {"duplicates": "all"},
        {"carry": "q7"},
        {"carry": ["q7"]},
        {"carry": [["x"]]},
    ],
)
def test_malformed_plans(changes: dict[str, Any]) -> None:
    """Malformed plans are `InvalidInput` even when their checksum fits."""
    with pytest.raises(InvalidInput):
        Plan.from_json(resealed(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "much"},
        {"epsilon": None},
        {"eta": []},
        {"unknown": "maybe"},
        {"missing": {"a": 1}},
        {"pilot": [1.0]},
        {"pilot": "flat"},
        {"expected": 3},
        {"expected": {"n": "many"}},
        {"channel": None},
        {"column": 7},
        {"name": "children"},
    ],
)
def test_malformed_questions(changes: dict[str, Any]) -> None:
    """Malformed questions are `InvalidInput`."""
    questions = json.loads(PLAN.to_json())["questions"]
    questions[0].update(changes)
    with pytest.raises(InvalidInput):
        Plan.from_json(resealed(questions=questions))


def test_questions_and_rounds_compose() -> None:
    """One respondent's loss is the sum over questions, and over rounds; distances compose to less than by products."""
    epsilons, etas = zip(*((q.channel.epsilon, q.channel.eta) for q in PLAN.questions), strict=True)
    assert PLAN.epsilon >= math.fsum(epsilons)
    assert PLAN.epsilon == pytest.approx(1.5, rel=1e-12)
    assert PLAN.eta < 0.9 * (1 - (1 - etas[0]) * (1 - etas[1]))
    assert PLAN.over_rounds(4)[0] >= 4 * PLAN.epsilon
    assert PLAN.over_rounds(1) == (PLAN.epsilon, PLAN.eta)
    # The distance bound holds for the product channel itself.
    product = Channel(PLAN.questions[0].channel.matrix).product(PLAN.questions[1].channel.matrix).matrix
    assert max(np.abs(p - q).sum() / 2 for p in product for q in product) <= PLAN.eta


def test_channels_from_a_function_and_with_labels() -> None:
    """A function from the question, a channel with the categories, and an exact channel serve equally."""
    by_function = make_plan(SPEC, lambda question: randomized_response(len(question.categories), 0.5))
    assert by_function.question("children").channel == PLAN.question("children").channel
    labelled = Channel(CHANNELS["smoker"], inputs=("no", "yes"))
    made = make_plan(SPEC, {"smoker": labelled, "children": PLAN.question("children").channel})
    assert made.checksum == PLAN.checksum


@pytest.mark.parametrize(
    ("channels", "message"),
    [
        ({"smoker": CHANNELS["smoker"]}, "children"),
        ({**CHANNELS, "smoker": CHANNELS["children"]}, "2 rows"),
        ({**CHANNELS, "smoker": Channel(CHANNELS["smoker"])}, "categories"),
        ({**CHANNELS, "smoker": Channel(CHANNELS["smoker"], inputs=("yes", "no"))}, "categories"),
        ({**CHANNELS, "smoker": Channel(CHANNELS["smoker"], ("no", "yes"), outputs=("1", 1))}, "distinct"),
    ],
)
def test_channels_must_fit(channels: dict[str, Any], message: str) -> None:
    """A channel that is missing, or whose inputs are not the categories in order, is refused."""
    with pytest.raises(InvalidInput, match=message):
        make_plan(SPEC, channels)


def test_targets_and_budgets_are_kept() -> None:
    """A question's own epsilon and the respondent's budget bind what the exact channels prove."""
    question = QuestionSpec("smoker", ("no", "yes"), epsilon=1.0, eta=0.47)
    plan = make_plan(SurveySpec("s", (question,), epsilon=1.0, eta=0.47), CHANNELS)
    assert plan.epsilon <= 1.0
    for spec in (
        SurveySpec("s", (QuestionSpec("smoker", ("no", "yes"), epsilon=0.9),)),
        SurveySpec("s", (QuestionSpec("smoker", ("no", "yes"), eta=0.4),)),
        SurveySpec("s", (QuestionSpec("smoker", ("no", "yes")),), epsilon=0.9),
        SurveySpec("s", (QuestionSpec("smoker", ("no", "yes")),), eta=0.4),
    ):
        with pytest.raises(InvalidInput, match=r"at most|at least"):
            make_plan(spec, CHANNELS)


def test_claims_of_a_planned_question_are_proved() -> None:
    """A claim above the proof stands; one below is refused; expectations are kept read-only."""
    channel = ExactChannel([[3, 1], [1, 3]], bits=2, inputs=("no", "yes"))
    made = PlannedQuestion("q", "q", channel, epsilon=1.2, eta=0.5, expected={"half_width": 0.02})
    assert (made.epsilon, made.eta) == (1.2, 0.5)
    with pytest.raises(CertificateError, match="epsilon"):
        PlannedQuestion("q", "q", channel, epsilon=1.0)
    with pytest.raises(TypeError):
        made.expected["half_width"] = 1.0  # type: ignore[index]
    with pytest.raises(InvalidInput, match="one of"):
        PLAN.question("age")


def test_eta_over_rounds_bounds_the_composed_channel() -> None:
    """eta over rounds is at least that of the channel used so often, at most by the product rule, and sharp for RR."""
    for rounds in (2, 3, 5):
        for eps, eta in ((1.0, math.tanh(0.5)), (2.0, 0.3), (1e-3, 2e-4), (20.0, 1.0), (math.inf, 0.3), (800.0, 1.0)):
            epsilon, distance = over_rounds(eps, eta, rounds)
            assert epsilon >= rounds * eps
            assert distance <= min(1.0, (1 - (1 - eta) ** rounds) * (1 + 1e-9))
        p = 1 / (1 + math.exp(-1.0))
        law = [math.comb(rounds, i) * p**i * (1 - p) ** (rounds - i) for i in range(rounds + 1)]
        truth = sum(abs(a - b) for a, b in zip(law, reversed(law), strict=True)) / 2
        assert truth <= over_rounds(1.0, math.tanh(0.5), rounds)[1] <= truth * (1 + 1e-9)


def test_no_round_beyond_those_declared() -> None:
    """A plan keeps how many rounds there are; neither a description nor a file goes beyond them, but where respondents
    have ids, whose rounds the ledger counts one by one.
    """
    planned = make_plan(replace(SPEC, rounds=4), CHANNELS)
    assert Plan.from_json(planned.to_json()).rounds == 4
    assert "rounds" not in json.loads(PLAN.to_json())  # plans that do not declare it keep their checksums
    assert replace(SPEC, rounds=2).rounds == Plan.from_json(resealed(rounds=2)).rounds == 2
    for begin in (
        lambda: replace(SPEC, rounds=2, respondent=None),
        lambda: Plan.from_json(resealed(rounds=2, respondent=None)),
    ):
        with pytest.raises(InvalidInput, match="expected at most 2, the `rounds` that respondents were told of"):
            begin()
    for wrong in (0, -1, 1.5, True, "4"):
        with pytest.raises(InvalidInput, match="rounds"):
            replace(SPEC, rounds=wrong)


def test_an_infinite_claim_survives() -> None:
    """A truthful question has infinite epsilon, and says so in the file."""
    plan = make_plan(SurveySpec("s", (QuestionSpec("q", (0, 1)),)), {"q": np.eye(2)})
    assert Plan.from_json(plan.to_json()).epsilon == math.inf
    assert plan.over_rounds(2) == (math.inf, 1.0)


@given(st.integers(0, 10**6), st.integers(0, 12), st.text(max_size=12))
@settings(max_examples=100, deadline=None)
def test_a_damaged_plan_is_refused_or_the_same(at: int, length: int, replacement: str) -> None:
    """Whatever replaces a few characters of a plan file, it reads as the same plan or fails as documented."""
    text = PLAN.to_json()
    at %= len(text)
    damaged = text[:at] + replacement + text[at + length :]
    try:
        checksum = Plan.from_json(damaged).checksum
    except (InvalidInput, CertificateError):
        checksum = None
    assert checksum == PLAN.checksum or (checksum is None and damaged != text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
                    | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(["0", "1", "a", "weights"]), inner, max_size=3), max_leaves=8),
       st.sampled_from(sorted(json.loads(PLAN.to_json())["questions"][0]["channel"])))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_any_value_in_any_field_of_a_channel(value: Any, field: str) -> None:
    """A channel with one field replaced by an arbitrary value is refused as documented, or is a channel."""
    channel = json.loads(PLAN.to_json())["questions"][0]["channel"]
    try:
        made = ExactChannel.from_dict({**channel, field: value})
    except (InvalidInput, CertificateError):
        return
    assert made.shape == (2, 2)
