"""One respondent's submission, read strictly: it may hold the plan's reports as numbers, and nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput
from ldpopt.files import strict
from ldpopt_survey.plan.plan import BOOKLET, Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion

__all__ = ["Refused", "Submission", "invitation_hash"]

SCHEMA = "ldpopt-submission"
VERSION, WITH_BOOKLET, WITH_PUBLIC = 1, 2, 3
"""Version 2 names the booklet that the device drew, version 3 has public answers; other plans keep version 1."""
PUBLIC = "public"
"""The field of public answers, positions by the names of questions."""
CODE = np.dtype("<u4")
"""The stored form of a report: its position among the channel's outputs, four bytes."""

_ID = re.compile(r"[0-9a-f]{32}")
_INVITATION = re.compile(r"[A-Za-z0-9_-]{1,128}")
INVITATION_CHARACTERS = 22
"""The number of random characters of an invitation; the groups of the frame follow, each after a dash."""
_FIELDS = {"schema", "version", "plan", "round", "id", "reports"}


class Refused(Exception):
    """A request that is answered with an error: the status of the answer, and one sentence without any quotation."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status, self.error = status, error


@dataclass(frozen=True, slots=True)
class Submission:
    """The stored part of a submission, and the hash of its invitation, which is stored separately.

    - `id` : 16 random bytes from the device.
    - `invitation` : 32 bytes, or None.
    - `codes` : for each question the position of the report, a `CODE` (little-endian unsigned integer). With booklets:
      the position of the booklet, that of its report, and those of the questions that everybody is asked. The positions
      of the answers to public questions follow.

    >>> Submission(bytes(16), bytes([1, 0, 0, 0])).invitation is None
    True
    """

    id: bytes
    codes: bytes
    invitation: bytes | None = None


def version_of(plan: Plan) -> int:
    """Return the version of submissions to a plan."""
    has_asked_questions = any(not question.invited for question in plan.public)
    return WITH_PUBLIC if has_asked_questions else WITH_BOOKLET if plan.booklets else VERSION


class Reader:
    """Reads submissions to one plan from requests.

    other_rounds : the numbers of other plans' rounds, by checksum. Submissions to them come too late.
    """

    def __init__(self, plan: Plan, other_rounds: Mapping[str, int] | None = None) -> None:
        self._plan, self._others = plan.checksum, dict(other_rounds or {})
        self._round = plan.round
        self._everyone = {question.name: _Codes(question) for question in plan.everyone}
        self._booklets = {question.name: (place, _Codes(question)) for place, question in enumerate(plan.booklets)}
        self._version, self._public = version_of(plan), plan.public
        self._asked_questions = {question.name for question in plan.public if not question.invited}
        self._fields = (
            _FIELDS | ({BOOKLET} if self._booklets else set()) | ({PUBLIC} if self._asked_questions else set())
        )
        # In JSON a character takes at most twelve bytes (two escaped surrogates), and a number at most ten.
        self.limit = 2048 + sum(12 * len(name) + 24 * codes.length for name, codes in self._everyone.items())
        self.limit += max((24 * (len(name) + codes.length) for name, (_, codes) in self._booklets.items()), default=0)
        self.limit += sum(12 * len(name) + 24 for name in self._asked_questions)
        """The most bytes that a submission may have."""

    def read(self, body: bytes) -> Submission:
        """Read the submission in the bytes of a request; raise `Refused` for anything else."""
        try:
            data = strict.json_value(body, "submission")
        except InvalidInput:
            raise Refused(400, "The body is not valid JSON.") from None
        if not isinstance(data, dict) or not _FIELDS <= set(data) <= _FIELDS | {"invitation", BOOKLET, PUBLIC}:
            raise Refused(422, "A submission is an object with exactly the fields of the submission format.")
        versions = (VERSION, WITH_BOOKLET, WITH_PUBLIC)
        if data["schema"] != SCHEMA or type(data["version"]) is not int or data["version"] not in versions:
            raise Refused(422, f"The schema is not {SCHEMA}, version {self._version}.")
        if data["plan"] != self._plan:
            is_known = isinstance(data["plan"], str) and data["plan"] in self._others
            raise Refused(503, "This round is closed.") if is_known else Refused(422, "This is another survey's plan.")
        if data["version"] != self._version or not self._fields <= set(data) <= self._fields | {"invitation"}:
            raise Refused(422, "A submission is an object with exactly the fields of the submission format.")
        if type(data["round"]) is not int or data["round"] != self._round:
            raise Refused(422, "This is not the plan's round.")
        if not isinstance(data["id"], str) or not _ID.fullmatch(data["id"]):
            raise Refused(422, "The id is not 32 lowercase hexadecimal digits.")
        codes, invitation = self._codes(data), data.get("invitation", "")
        if "invitation" not in data:
            return Submission(bytes.fromhex(data["id"]), codes)
        if not isinstance(invitation, str) or not _INVITATION.fullmatch(invitation):
            raise Refused(422, "The invitation does not look like one.")
        return Submission(bytes.fromhex(data["id"]), codes, invitation_hash(self._plan, invitation))

    def _codes(self, data: dict[str, Any]) -> bytes:
        reports, booklet_name = data["reports"], data.get(BOOKLET)
        if self._booklets and (not isinstance(booklet_name, str) or booklet_name not in self._booklets):
            raise Refused(422, "The booklet is not one of the plan's.")
        expected_names = {*self._everyone, booklet_name} if self._booklets else set(self._everyone)
        if not isinstance(reports, dict) or set(reports) != expected_names:
            raise Refused(422, "There is not exactly one report for each question that this respondent is asked.")
        positions = [codes.position_of(reports[name]) for name, codes in self._everyone.items()]
        if isinstance(booklet_name, str):
            booklet, codes = self._booklets[booklet_name]
            positions = [booklet, codes.position_of(reports[booklet_name]), *positions]
        return np.array(positions + self._open(data), CODE).tobytes()

    def _open(self, data: dict[str, Any]) -> list[int]:
        """The positions of the answers to public questions, given or known from the invitation."""
        given_answers, answers = data.get(PUBLIC, {}), []
        if not isinstance(given_answers, dict) or set(given_answers) != self._asked_questions:
            raise Refused(422, "There is not exactly one answer to each public question.")
        invitation = data.get("invitation")
        frame_answers = invitation[INVITATION_CHARACTERS:].split("-")[1:] if isinstance(invitation, str) else []
        if any(question.invited for question in self._public) and len(frame_answers) != sum(
            question.invited for question in self._public
        ):
            raise Refused(403, "This round takes only submissions with an invitation that says its group.")
        frame = iter(frame_answers)
        for question in self._public:
            answer = next(frame) if question.invited else given_answers[question.name]
            if question.invited and answer.isdecimal() and answer.isascii() and len(answer) < 4:
                answer = int(answer)
            if type(answer) is not int or not 0 <= answer < len(question.answers):
                raise Refused(422, "A public answer is not one of the plan's.")
            answers.append(answer)
        return answers


def invitation_hash(plan: str, invitation: str) -> bytes:
    """Compute the stored hash (SHA-256, 32 bytes) of an invitation to the plan.

    An invitation has 128 random bits, so nobody can find it from its hash by trying.
    """
    return hashlib.sha256(f"ldpopt invitation {plan} {invitation}".encode()).digest()


class _Codes:
    """Reads the reports of one question: the position of an output, or its label if labels are lists of integers."""

    def __init__(self, question: PlannedQuestion) -> None:
        outputs = question.channel.outputs
        self._size = len(outputs)
        self._lists = {label: position for position, label in enumerate(outputs) if isinstance(label, tuple)}
        self.length = max([1, *map(len, self._lists)])

    def position_of(self, value: Any) -> int:
        if type(value) is int and 0 <= value < self._size:
            return value
        if isinstance(value, list) and all(type(entry) is int for entry in value) and tuple(value) in self._lists:
            return self._lists[tuple(value)]
        raise Refused(422, "A report is not one of those that the plan's channels give.")
