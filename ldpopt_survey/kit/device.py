"""The reports of one respondent, drawn on the respondent's own device."""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import pa
from ldpopt.values.labels import Label, as_text
from ldpopt_survey.collect.randomness import Randomness, Simulated, WordSource, booklet_steps, default_randomness
from ldpopt_survey.collect.words import Respondents, WordArray
from ldpopt_survey.plan.plan import BOOKLET, Plan
from ldpopt_survey.plan.planned_question import Part, PlannedQuestion
from ldpopt_survey.records import text
from ldpopt_survey.server.submission import PUBLIC, SCHEMA, version_of

DEVICE_ID = "device"
"""The respondent's id on a device with its own key, where no name is needed."""


class Device:
    """A respondent's device. Answers go in, and only reports come out.

    Parameters
    ----------
    plan : The plan.
    randomness : As in `privatize`. `Fresh()` draws 64 bits of the operating system's generator for each report.
        `Memoized(key_file)` is for a plan with a respondent column, with the key file of this device. `Simulated(rng)`
        protects nobody.
    respondent : The respondent's id under a memoized key. It is needed if several people share one device.

    If the plan has booklets, a new device draws its respondent's booklet before any answer is known. Under
    a memoized key the same respondent gets the same booklet again.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, make_plan
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> Device(plan).respond({"vote": "no"})["vote"] in (0, 1)
    True
    """

    def __init__(self, plan: Plan, randomness: Randomness | None = None, respondent: str = DEVICE_ID) -> None:
        if not isinstance(plan, Plan):
            raise invalid("plan", "a Plan", Phrase(type(plan).__name__))
        source = default_randomness(plan, randomness)
        self.plan = plan
        self._respondent = text(respondent, "respondent")
        self._rng = source.rng if isinstance(source, Simulated) else None
        self._source = WordSource(plan, source.mode, source.key()) if source.mode == "memoised" else None
        self._booklet = self._draw_booklet() if plan.booklets else None

    @property
    def booklet(self) -> str | None:
        """The name of the booklet that this device asks; None if everybody is asked everything."""
        return None if self._booklet is None else self._booklet.name

    @property
    def asked_questions(self) -> tuple[Part | PlannedQuestion, ...]:
        """The questions that the respondent is asked, in order; a part with `asked_if` only after those answers."""
        return tuple(part for question in self.plan.questions if self._is_asked(question) for part in question.answers)

    def _is_asked(self, question: PlannedQuestion) -> bool:
        return question.probability == 1 or question is self._booklet

    def respond(self, answers: Mapping[str, Label]) -> dict[str, int]:
        """Draw the reports: for each planned question, a position in `PlannedQuestion.reports`.

        answers : by question name, each one of the plan's categories; 7 and "7" are the same answer. None, or a missing
            question, counts as the plan's category for missing answers. Answers to questions that the
            respondent is not asked are not read.

        Raises `InvalidInput` unless every answer is valid; then nothing is drawn. The message never quotes an answer.
        """
        if not isinstance(answers, Mapping):
            raise invalid("answers", "a mapping from questions to answers", Phrase(type(answers).__name__))
        if set(answers) - set(self.plan.answers):
            raise InvalidInput(f"answers: a key is not one of the questions {sorted(self.plan.answers)}")
        questions = [
            (number, question) for number, question in enumerate(self.plan.questions) if self._is_asked(question)
        ]
        positions = [answer_position(question, answers) for _, question in questions]
        return {
            question.name: report_position(question, answer, self._word(number, answer))
            for (number, question), answer in zip(questions, positions, strict=True)
        }

    def submission(
        self, answers: Mapping[str, Label], invitation: str | None = None, public: Mapping[str, Label] | None = None
    ) -> dict[str, Any]:
        """Build the submission of these answers for a collector.

        It has JSON-ready values with a new random id. To retry, send the same submission again.

        public : the answers to the plan's public questions that are asked, which are sent unchanged.

        Raises `InvalidInput` as in `respond`.
        """
        public_questions = {question.name: question.texts for question in self.plan.public if not question.invited}
        public_answers = {name: as_text(label) for name, label in (public or {}).items()}
        if set(public_answers) != set(public_questions) or any(
            label not in public_questions[name] for name, label in public_answers.items()
        ):
            raise InvalidInput(
                f"public: each of the questions {sorted(public_questions)} must have one of its answers, and no other "
                "question may have any"
            )
        reports = self.respond(answers)
        optional_fields: dict[str, Any] = {} if invitation is None else {"invitation": text(invitation, "invitation")}
        booklet_field = {} if self.booklet is None else {BOOKLET: self.booklet}
        optional_fields |= (
            {PUBLIC: {name: public_questions[name].index(label) for name, label in public_answers.items()}}
            if public_questions
            else {}
        )
        version = version_of(self.plan)
        head = {"schema": SCHEMA, "version": version, "plan": self.plan.checksum, "round": self.plan.round}
        return {**head, "id": secrets.token_hex(16), **optional_fields, **booklet_field, "reports": reports}

    def _draw_booklet(self) -> PlannedQuestion:
        if self._source is None:
            return self.plan.booklets[booklet_position(self.plan, self._random_word())]
        return self.plan.booklets[int(self._source.booklets(None, self._state(self._source), 1)[0])]

    def _word(self, question: int, answer: int) -> int:
        if self._source is None:
            return self._random_word()
        word: WordArray = np.empty(1, np.uint64)
        self._source.words(question, None, self._state(self._source), np.array([answer])).fill(word)
        return int(word[0])

    def _random_word(self) -> int:
        return secrets.randbits(64) if self._rng is None else int.from_bytes(self._rng.bytes(8), "little")

    def _state(self, source: WordSource) -> Respondents:
        return source.respondents(pa.array([self._respondent], pa.string()))


def booklet_position(plan: Plan, word: int) -> int:
    """Return the position of the booklet that a 64-bit word draws.

    It is the number of steps that are at most the word.
    """
    return bisect_right(booklet_steps(plan).tolist(), word)


def report_position(question: PlannedQuestion, answer: int, word: int) -> int:
    """Return the position of the report for an answer's position and a 64-bit word.

    The JavaScript client has the same function, `drawReport`.
    """
    channel = question.channel
    steps = list(accumulate(channel.weights[answer].tolist()))
    return bisect_right(steps, word >> (64 - channel.bits))


def answer_position(question: PlannedQuestion, answers: Mapping[str, Any]) -> int:
    """Return the position of the answers among a planned question's categories.

    A part that does not apply is not read.
    """
    if not question.parts:
        return _position(question, question.categories, answers.get(question.name))
    chosen_labels, cell = dict[str, Label](), list[int]()
    for part in question.parts:
        is_asked = part.applies(chosen_labels)
        cell.append(_position(part, part.asked, answers.get(part.name)) if is_asked else len(part.categories) - 1)
        chosen_labels[part.name] = part.categories[cell[-1]]
    return int(np.flatnonzero((question.places == cell).all(axis=1))[0])


def _position(question: Part | PlannedQuestion, categories: tuple[Label, ...], answer: Any) -> int:
    value = question.missing if answer is None else answer
    if isinstance(value, (str, bool, int, float, tuple)):
        texts = [as_text(category) for category in categories]
        if as_text(value) in texts:
            return texts.index(as_text(value))
    got = Phrase("no answer" if answer is None else "an answer outside them")
    raise invalid(f"question {question.name!r}", f"one of its {len(categories)} categories", got)
