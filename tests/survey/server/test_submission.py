"""What a submission must be, and that nothing else is one."""

import json

import numpy as np
import pytest
from collectors import body_of, habits

from ldpopt.errors import InvalidInput
from ldpopt_survey.kit.device import Device
from ldpopt_survey.plan.plan import make_plan
from ldpopt_survey.plan.public_question import PublicQuestion
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
from ldpopt_survey.server.submission import Reader, Refused, invitation_hash

PLAN = habits()
GOOD = body_of(PLAN, (2, 1, [1, 0]), "0123456789abcdef" * 2)


def read(body):
    return Reader(PLAN, {"f" * 64: 1}).read(body if isinstance(body, bytes) else json.dumps(body).encode())


def test_reports_are_kept_as_positions_of_columns():
    """A list of integers is the column that it names; the same column's position is the same report."""
    made = read(GOOD)
    assert np.frombuffer(made.codes, "<u4").tolist() == [2, 1, 2]
    assert made == read(body_of(PLAN, (2, 1, 2), GOOD["id"]))
    assert made.id.hex() == GOOD["id"]
    assert made.invitation is None


def test_an_invitation_is_kept_as_a_hash_of_its_own_round():
    """The hash says nothing of the invitation, and one round's is another in the next."""
    made = read(GOOD | {"invitation": "abc-DEF_1"})
    assert made.invitation == invitation_hash(PLAN.checksum, "abc-DEF_1")
    assert b"abc" not in made.invitation
    assert made.invitation != invitation_hash(habits(2).checksum, "abc-DEF_1")


def test_the_largest_submission_is_within_the_limit():
    """However a device escapes the names, a submission that is right is not too long."""
    escaped = {"".join(f"\\u{ord(c):04x}" for c in name): value for name, value in GOOD["reports"].items()}
    body = json.dumps(GOOD | {"reports": escaped, "invitation": "a" * 128}, indent=4).replace("\\\\u", "\\u").encode()
    assert read(body).codes == read(GOOD).codes
    assert len(body) < Reader(PLAN).limit


WRONG = {
    "no JSON": b"{",
    "two values": b"{} {}",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "deep": b"[" * 2000,
    "a repeated key": json.dumps(GOOD).replace('"version"', '"version": 1, "version"').encode(),
    "NaN": json.dumps(GOOD | {"round": float("nan")}).encode(),
    "many digits": json.dumps(GOOD).replace('"round": 1', '"round": ' + "1" * 5000).encode(),
}


@pytest.mark.parametrize("name", WRONG)
def test_bytes_that_are_no_json_are_refused(name):
    """Whatever the bytes are, the answer is 400 and quotes none of them."""
    with pytest.raises(Refused) as refused:
        read(WRONG[name])
    assert refused.value.status == 400


NO_SUBMISSION = [
    [],
    None,
    "text",
    {},
    GOOD | {"more": 1},
    {key: value for key, value in GOOD.items() if key != "round"},
    *[GOOD | {"schema": one} for one in ("ldpopt-plan", None, 1)],
    *[GOOD | {"version": one} for one in (2, True, 1.0, "1")],
    *[GOOD | {"plan": one} for one in ("0" * 64, None, [], 1)],
    *[GOOD | {"round": one} for one in (2, None, True, 1.0, "1")],
    *[GOOD | {"id": one} for one in ("0" * 31, "0" * 33, "A" * 32, "g" * 32, 1, None, "0" * 31 + "\n", "٠" * 32)],
    *[GOOD | {"invitation": one} for one in ("", None, 1, "a" * 129, "a b", "\ud800", "é", "a\n")],
    *[GOOD | {"reports": one} for one in ([], None, {}, {"smokes": 0, "drinks": 0}, [2, 1, 2])],
    GOOD | {"reports": GOOD["reports"] | {"more": 0}},
    *[
        GOOD | {"reports": GOOD["reports"] | {"smokes": one}}
        for one in (3, -1, True, 1.0, "1", None, [1], [0, 1], {}, 2**70, 1e3)
    ],
    *[
        GOOD | {"reports": GOOD["reports"] | {"Sorgen über Ärzte": one}}
        for one in (4, [0], [0, 2], [True, False], [0, 0, 0], [[0], 1], [0.0, 1], [None, 0], ["0", "1"])
    ],
]


@pytest.mark.parametrize("body", NO_SUBMISSION, ids=str)
def test_json_that_is_no_submission_is_refused(body):
    """Fields, kinds and ranges are exactly those of the format; true is no 1, and 1.0 is not either."""
    with pytest.raises(Refused) as refused:
        read(body)
    assert refused.value.status == 422


def test_an_earlier_round_of_the_database_is_closed():
    """A device that comes with the plan of a round that is over hears so, not that its plan is unknown."""
    with pytest.raises(Refused) as refused:
        read(GOOD | {"plan": "f" * 64})
    assert refused.value.status == 503


def test_a_device_sends_a_valid_submission():
    """The kit's Python device and this reader have one format, memoised or not, with an invitation and without."""
    plan = make_plan(
        SurveySpec("Habits", (QuestionSpec("smokes", ("no", "yes")), QuestionSpec("drinks", (1, 2, 3)))),
        {"smokes": [[0.75, 0.25], [0.25, 0.75]], "drinks": np.full((3, 3), 0.2) + 0.4 * np.eye(3)},
    )
    device = Device(plan)
    for invitation in (None, "abc_-"):
        sent = device.submission({"smokes": "no", "drinks": 3}, invitation)
        made = Reader(plan).read(json.dumps(sent).encode())
        assert np.frombuffer(made.codes, "<u4").tolist() == list(sent["reports"].values())
        assert (made.invitation is None) is (invitation is None)


OPEN = make_plan(
    SurveySpec(
        "open", (QuestionSpec("vote", ("no", "yes")),),
        public=(PublicQuestion("age", ("young", "old")), PublicQuestion("w", (0.8, 1.5, 2.0), invited=True)),
    ),
    {"vote": [[0.75, 0.25], [0.25, 0.75]]},
)  # fmt: skip
TOKEN = "A" * 21 + "-"


def open_body(**more):
    made = Device(OPEN).submission({"vote": "no"}, TOKEN + "-2", {"age": "old"})
    return json.dumps({name: value for name, value in (made | more).items() if value is not None}).encode()


def test_public_answers_are_kept_behind_the_reports():
    """What is asked comes with the device, what the frame says with the invitation, whose dashes mislead nobody."""
    made = Reader(OPEN).read(open_body())
    assert np.frombuffer(made.codes, "<u4").tolist()[1:] == [1, 2]
    assert made.invitation == invitation_hash(OPEN.checksum, TOKEN + "-2")


@pytest.mark.parametrize(
    "wrong",
    [
        {"public": None}, {"public": {}}, {"public": {"age": 2}}, {"public": {"age": True}}, {"public": {"age": "old"}},
        {"public": {"age": 1, "w": 0}}, {"public": [1]}, {"version": 1}, {"version": 2}, {"invitation": None},
        {"invitation": TOKEN}, {"invitation": TOKEN + "-3"}, {"invitation": TOKEN + "-1-1"}, {"public": {"w": 1}},
        {"invitation": TOKEN + "--1"}, {"invitation": TOKEN + "-"}, {"invitation": TOKEN + "-9999"},
    ],
)  # fmt: skip
def test_other_public_answers_are_refused(wrong):
    """None, others, those that the frame says, and invitations without a group or with another's."""
    with pytest.raises(Refused):
        Reader(OPEN).read(open_body(**wrong))


def test_the_device_sends_no_other_public_answers():
    """An answer too few, too many, or outside the list is refused before anything is drawn."""
    for public in (None, {}, {"age": "middle"}, {"age": "old", "w": 0.8}):
        with pytest.raises(InvalidInput, match="public"):
            Device(OPEN).submission({"vote": "no"}, TOKEN + "-2", public)
    with pytest.raises(Refused):
        read(GOOD | {"public": {"age": 1}})
