"""The reports of one respondent, drawn on the respondent's own device."""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from ldpopt.errors import Phrase, invalid
from ldpopt.labels import Label, as_text
from ldpopt.schema import text
from ldpopt.survey.collect.randomness import Randomness, Simulated, WordSource, default_randomness
from ldpopt.survey.collect.words import WordArray
from ldpopt.survey.plan.plan import Plan, PlannedQuestion

SCHEMA = "ldpopt-submission"
VERSION = 1
ID = "device"
"""The respondent's id on a device with its own key, where no name is needed."""


class Device:
    """A respondent's device. Answers go in, and only reports come out.

    plan : the plan.
    randomness : as in `privatize`. `Fresh()` draws 64 bits of the operating system's generator for each report.
        `Memoised(key_file)` is for a plan with a respondent column, with the key file of this device. `Simulated(rng)`
        protects nobody.
    respondent : the respondent's id under a memoised key. It is needed if several people share one device.

    >>> from ldpopt.survey import QuestionSpec, SurveySpec, make_plan
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> Device(plan).respond({"vote": "no"})["vote"] in (0, 1)
    True
    """

    def __init__(self, plan: Plan, randomness: Randomness | None = None, respondent: str = ID) -> None:
        if not isinstance(plan, Plan):
            raise invalid("plan", "a Plan", Phrase(type(plan).__name__))
        made = default_randomness(plan, randomness)
        self.plan = plan
        self._respondent = text(respondent, "respondent")
        self._rng = made.rng if isinstance(made, Simulated) else None
        self._source = WordSource(plan, made.mode, made.key()) if made.mode == "memoised" else None

    def respond(self, answers: Mapping[str, Label]) -> dict[str, int]:
        """For each question, by name, the position of the drawn report in `PlannedQuestion.reports`.

        answers : by question name, each one of the plan's categories; 7 and "7" are the same answer. None, or a
            question that is left out, counts as the plan's category for missing answers.

        `InvalidInput` unless every answer is valid; then nothing is drawn. The message never quotes an answer.
        """
        if not isinstance(answers, Mapping):
            raise invalid("answers", "a mapping from questions to answers", Phrase(type(answers).__name__))
        known = {question.name for question in self.plan.questions}
        if set(answers) - known:
            raise invalid("answers", f"only the questions {sorted(known)}", Phrase("others"))
        chosen = [_position(question, answers.get(question.name)) for question in self.plan.questions]
        words = [self._word(at, answer) for at, answer in enumerate(chosen)]
        drawn = map(report, self.plan.questions, chosen, words)
        return {question.name: one for question, one in zip(self.plan.questions, drawn, strict=True)}

    def submission(self, answers: Mapping[str, Label], invitation: str | None = None) -> dict[str, Any]:
        """The submission that is sent to a collector for these answers, as JSON-ready values with a new random id.

        To retry, send the same submission again. `InvalidInput` as in `respond`.
        """
        reports = self.respond(answers)
        said = {} if invitation is None else {"invitation": text(invitation, "invitation")}
        head = {"schema": SCHEMA, "version": VERSION, "plan": self.plan.checksum, "round": self.plan.round}
        return {**head, "id": secrets.token_hex(16), **said, "reports": reports}

    def _word(self, question: int, answer: int) -> int:
        if self._source is None:
            return secrets.randbits(64) if self._rng is None else int.from_bytes(self._rng.bytes(8), "little")
        import pyarrow as pa

        respondents = self._source.respondents(pa.array([self._respondent], pa.string()))
        word: WordArray = np.empty(1, np.uint64)
        self._source.words(question, None, respondents, np.array([answer])).fill(word)
        return int(word[0])


def report(question: PlannedQuestion, answer: int, word: int) -> int:
    """The position of the report for an answer's position and a 64-bit word; `drawReport` in the JavaScript client."""
    channel = question.channel
    steps = list(accumulate(channel.weights[answer].tolist()))
    return bisect_right(steps, word >> (64 - channel.bits))


def _position(question: PlannedQuestion, answer: Any) -> int:
    given = question.missing if answer is None else answer
    if isinstance(given, (str, bool, int, float, tuple)):
        texts = [as_text(category) for category in question.categories]
        if as_text(given) in texts:
            return texts.index(as_text(given))
    got = Phrase("no answer" if answer is None else "an answer outside them")
    raise invalid(f"question {question.name!r}", f"one of its {len(question.categories)} categories", got)
