"""A device draws one respondent's reports, and gives nothing else away."""

import json
import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from kit_plans import districts, ten_plans

from ldpopt.errors import InvalidInput
from ldpopt.exact import ExactChannel
from ldpopt_survey import Device, Memoized, Simulated, privatize_frame
from ldpopt_survey.collect.coding import Sampler
from ldpopt_survey.collect.words import ListedWords, create_key
from ldpopt_survey.kit.device import report_position
from ldpopt_survey.kit.folder import boundary_words, public_plan, vectors
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.server.submission import CODE, Reader

PLANS = ten_plans()
WARNER = ExactChannel([[3, 1], [1, 3]], bits=2, inputs=["no", "yes"])


def plan_of(channel=WARNER, respondent=None, **more):
    return Plan("demo", (PlannedQuestion("vote", "vote", channel, **more),), respondent=respondent)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_a_word_gives_the_sampler_s_report(plan):
    """At every step's edges and at random words, a device's report is that of the sampler of files."""
    import random

    rng = random.Random(5)
    for question in plan.questions:
        for x in range(min(len(question.categories), 8)):
            words = boundary_words(question, x, rng)
            made = Sampler(question.channel).reports(
                np.full(len(words), x, np.uint16), ListedWords(np.array(words, np.uint64))
            )
            assert [report_position(question, x, word) for word in words] == made.tolist()


def test_a_memoized_device_repeats_the_reports_of_a_file(tmp_path):
    """Under one key a device's reports are those that `privatize_frame` gives the respondent, again and again."""
    import pyarrow as pa

    create_key(tmp_path / "key")
    plan = plan_of(districts(20), respondent="id")
    randomness = Memoized(tmp_path / "key")
    frame = pa.table({"id": [f"p{i}" for i in range(20)], "vote": [f"District {i}" for i in range(20)]})
    expected = privatize_frame(plan, frame, randomness)[0].column("vote").combine_chunks().indices.to_pylist()
    for _ in range(2):
        made = [Device(plan, randomness, f"p{i}").respond({"vote": f"District {i}"})["vote"] for i in range(20)]
        assert made == expected


def test_a_submission_has_the_fields_of_the_format():
    """A submission has the plan's checksum and round, a new id each time, and the reports; JSON holds it."""
    plan = plan_of()
    first, second = Device(plan).submission({"vote": "no"}), Device(plan).submission({"vote": "no"}, "abc")
    assert set(first) == {"schema", "version", "plan", "round", "id", "reports"}
    assert (first["schema"], first["version"], first["plan"], first["round"]) == (
        "ldpopt-submission", 1, plan.checksum, 1)  # fmt: skip
    assert len(first["id"]) == 32
    assert int(first["id"], 16) != int(second["id"], 16)
    assert second["invitation"] == "abc"
    assert json.loads(json.dumps(first)) == first


def test_simulated_shares_are_the_channel_s():
    """Of simulated reports, the share of each is within five standard errors of its weight."""
    device = Device(plan_of(), Simulated(np.random.default_rng(3)))
    made = [device.respond({"vote": "yes"})["vote"] for _ in range(4000)]
    assert abs(np.mean(made) - 0.75) < 5 * math.sqrt(0.75 * 0.25 / 4000)


@pytest.mark.parametrize("answers", [{"vote": "secret"}, {}, {"vote": None}, {"vote": "no", "other": "secret"}])
def test_a_wrong_answer_is_refused_and_not_quoted(answers):
    """What is no answer of the plan is refused before anything is drawn, and its text is not in the message."""
    with pytest.raises(InvalidInput) as refused:
        Device(plan_of()).respond(answers)
    assert "secret" not in str(refused.value)


def test_missing_answers_follow_the_policy():
    """Where the plan says what a missing answer counts as, leaving it out is that answer."""
    always = ExactChannel([[8, 0], [1, 7]], bits=3, inputs=["no", "yes"])
    plan = plan_of(always, missing="no")
    assert {Device(plan).respond({})["vote"] for _ in range(50)} == {0}


def test_a_memoized_plan_needs_a_key():
    """A plan that names respondents is not answered with fresh randomness unasked."""
    with pytest.raises(InvalidInput, match="key_file"):
        Device(plan_of(respondent="id"))


def test_the_public_plan_holds_only_the_channels():
    """The public plan has the plan's integers and checksum; no pilot shares, precision or columns."""
    channel = WARNER
    question = PlannedQuestion(
        "vote", "column_17", channel, pilot=np.array([0.123456, 0.876544]), expected={"n": 4711.0}
    )
    plan = Plan("demo", (question,), respondent="social_security", carry=("ward",))
    made = json.dumps(public_plan(plan))
    for secret in ("0.123456", "0.876544", "4711", "column_17", "social_security", "ward", "pilot", "expected"):
        assert secret not in made
    assert plan.checksum in made
    assert public_plan(plan)["questions"][0]["weights"] == [["3", "1"], ["1", "3"]]


def test_a_question_that_protects_nothing_gets_no_kit():
    """A channel that gives answers away for certain is refused; one of bounded distance alone is not."""
    with pytest.raises(InvalidInput, match="guarantees something"):
        public_plan(plan_of(ExactChannel([[4, 0], [0, 4]], bits=2, inputs=["no", "yes"])))
    erased = ExactChannel([[1, 0, 3], [0, 1, 3]], bits=2, inputs=["no", "yes"])
    assert public_plan(plan_of(erased))["questions"][0]["bits"] == 2


@pytest.mark.full(but=3)
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_vectors_hold_in_rational_arithmetic(plan):
    """The report of a vector is the first whose cumulative probability exceeds the word over 2**64."""
    made = vectors(plan)
    assert made["plan"] == plan.checksum
    assert bool(made["words"]) == (plan.respondent is not None)
    for q, x, word, position in made["reports"]:
        channel = plan.questions[q].channel
        at = Fraction(int(word, 16), 1 << 64)
        chances = [Fraction(weight, 1 << channel.bits) for weight in channel.weights[x].tolist()]
        assert position == sum(total <= at for total in accumulate(chances))
        assert chances[position] > 0


@pytest.mark.full
def test_the_collector_takes_a_device_s_submission(tmp_path):
    """What a device sends is what the collector's reader takes, code by code, for plans of every kind."""
    create_key(tmp_path / "key")
    for plan in PLANS:
        randomness = Memoized(tmp_path / "key") if plan.respondent else None
        answers = {question.name: question.categories[0] for question in plan.questions}
        sent = Device(plan, randomness).submission(answers, "an_invitation-1")
        read = Reader(plan).read(json.dumps(sent).encode())
        assert np.frombuffer(read.codes, CODE).tolist() == [
            sent["reports"][question.name] for question in plan.questions
        ]
