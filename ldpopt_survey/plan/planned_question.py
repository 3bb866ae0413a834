"""Define a question with its exact channel: the inputs are the answers, and the integers prove the guarantees.

Several questions may share a report: each of them is a part, and the inputs are the answers possible to all together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.exact import ExactChannel
from ldpopt.values.distribution import Array, number, unit_interval
from ldpopt.values.labels import Label, as_text, distinct_labels, from_jsonable, to_jsonable
from ldpopt.values.results import ByValue, Result
from ldpopt.values.schema import kind
from ldpopt_survey.plan.reading import PLAIN_READING, Reading, check_answers, read_conditions, require_distinct_texts
from ldpopt_survey.plan.spec import QuestionSpec
from ldpopt_survey.records import check, choice, dump, key, listed, mapped, record, text

__all__ = ["NOT_APPLICABLE", "Part", "PlannedQuestion"]

MAX_CELLS = 2**14
"""The most answers that parts of one report may have together."""

NOT_APPLICABLE = "not applicable"
"""The answer of those whom a question does not concern, by their answer to another one."""


def read_label(value: Any, place: str) -> Label:
    """Read a label from its form in a file."""
    return from_jsonable([value], place)[0]


@dataclass(frozen=True, eq=False)
class Part(ByValue):
    """One of several questions that share a report: its name, its answers, and how they are written in files.

    asked_if : pairs of another part's name and those of its answers after which this question is asked. After others
        its answer is `NOT_APPLICABLE`, the last of its categories.
    option_of : the question that has it as an option; its name is that question's, a colon and the option.
    measure : "shares" of its answers, or the "mean" of numbers among those who are asked.
    name, column, categories, unknown, missing, reading, pilot : as for `PlannedQuestion`.
    """

    name: str = key(text)
    column: str = key(text)
    categories: tuple[Label, ...] = key(
        load=listed(read_label), dump=lambda labels: [to_jsonable(label) for label in labels]
    )
    unknown: Label | None = key(default=None, load=read_label, dump=to_jsonable)
    missing: Label | None = key(default=None, load=read_label, dump=to_jsonable)
    reading: Reading = key(record(Reading), default=PLAIN_READING)
    pilot: Array | None = key(default=None)
    asked_if: tuple[tuple[str, tuple[Label, ...]], ...] = key(
        read_conditions, default=(), omit=True,
        dump=lambda pairs: [[name, [to_jsonable(label) for label in labels]] for name, labels in pairs],
    )  # fmt: skip
    option_of: str | None = key(text, default=None, omit=True)
    measure: str = key(choice("shares", "mean"), default="shares", omit=True)

    def __post_init__(self) -> None:
        place = f"question {self.name!r}"
        check(self, place)
        categories = distinct_labels(self.categories, len(self.categories), f"{place}: categories")
        object.__setattr__(self, "categories", categories)
        if self.asked_if and categories[-1:] != (NOT_APPLICABLE,):
            raise invalid(f"{place}: categories", f"{NOT_APPLICABLE!r} as the last", categories[-1:])
        check_answers(self, place)
        if self.asked_if and self.reading.left_out:
            expected = '"category", "counted" or "refuse" beside asked_if (an empty report tells that it was asked)'
            raise invalid(f"{place}: missing_answers", expected, self.reading.missing_answers)
        _check_numbers(self.measure, self.asked, place)

    @property
    def measured(self) -> tuple[Label, ...]:
        """The labels whose shares are estimated: its categories, or for a mean the ends of the range.

        `NOT_APPLICABLE` follows the ends where not everybody is asked.
        """
        if self.measure == "shares":
            return self.categories
        return (*self.ends, NOT_APPLICABLE) if self.asked_if else self.ends

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest answer, of a question whose mean is estimated; else 0 and 1."""
        return _ends_of(self.measure, self.asked)

    @property
    def asked(self) -> tuple[Label, ...]:
        """The categories among which a respondent who is asked chooses."""
        return self.categories[:-1] if self.asked_if else self.categories

    def applies(self, answers: Mapping[str, Label]) -> bool:
        """Return True if the question is asked after these answers to the parts before it."""
        return all(answers[name] in labels for name, labels in self.asked_if)


def cells_of(parts: Sequence[Part]) -> tuple[tuple[Label, ...], ...]:
    """List the possible answers to several parts together, with the last part's fastest.

    `InvalidInput` for parts of one name, for conditions on other than earlier parts, and for too many answers.
    """
    cells: list[tuple[Label, ...]] = [()]
    names: list[str] = []
    for part in parts:
        place = f"question {part.name!r}"
        if part.name in names or any(name not in names for name, _ in part.asked_if):
            raise InvalidInput(f"{place} needs a distinct name, and conditions on earlier parts only")
        if len(cells) * len(part.categories) > MAX_CELLS:
            raise invalid(
                place,
                f"at most {MAX_CELLS:,} answers of all parts together (a larger step, fewer answers)",
                len(cells) * len(part.categories),
            )
        cells = [
            (*cell, label)
            for cell in cells
            for label in (part.asked if part.applies(dict(zip(names, cell, strict=True))) else [NOT_APPLICABLE])
        ]
        names.append(part.name)
    return tuple(cells)


def _check_numbers(measure: str, answers: tuple[Label, ...], place: str) -> None:
    """Raise `InvalidInput` unless answers whose mean is estimated are two different numbers or more."""
    if measure == "mean" and not (len(answers) > 1 and all(type(answer) in (int, float) for answer in answers)):
        raise invalid(f"{place}: categories", "numbers, whose mean is estimated", answers[:8])


def _ends_of(measure: str, answers: tuple[Label, ...]) -> tuple[Any, Any]:
    """Return the smallest and the largest number if the mean is estimated; else 0 and 1, the ends of a share."""
    if measure == "shares":
        return 0.0, 1.0
    numbers: list[Any] = list(answers)
    return min(numbers), max(numbers)


def _measured_rows(question: Part | PlannedQuestion) -> Array:
    """Return weights (r, categories) that sum a question's categories to its `measured` shares.

    A number between the ends of its range counts as shares of both, with the number as their mean.
    """
    if question.measure == "shares":
        return np.eye(len(question.categories))
    numbers, (low, high) = np.array(getattr(question, "asked", question.categories), dtype=np.float64), question.ends
    upper_share = (numbers - low) / (high - low)
    rows = np.zeros((len(question.measured), len(question.categories)))
    rows[:2, : len(numbers)] = 1 - upper_share, upper_share
    rows[2:, len(numbers) :] = 1.0
    return rows


MAX_DENOMINATOR = 10**6
"""The largest denominator of a booklet's probability."""


def _epsilon(value: Any, place: str) -> float:
    return math.inf if value == "inf" else number(value, place, 'a finite number of nats or "inf"')


def _fraction(value: Any, place: str) -> Fraction:
    is_short_text = isinstance(value, str) and re.fullmatch(r"[0-9]{1,7}(/0*[1-9][0-9]{0,6})?", value)
    if not (isinstance(value, Fraction) or is_short_text):
        raise invalid(place, 'a fraction such as "3/10"', Phrase(kind(value)))
    fraction = Fraction(value)
    if not 0 < fraction <= 1 or fraction.denominator > MAX_DENOMINATOR:
        raise invalid(place, f"above 0 and at most 1, with a denominator of at most {MAX_DENOMINATOR}", str(fraction))
    return fraction


@dataclass(frozen=True, eq=False)
class PlannedQuestion(Result):
    """A question with its exact channel; the channel's inputs are the categories.

    epsilon (nats), eta : the claimed guarantees of the channel; by default the best that its integers prove. A claim
        that they do not prove is `CertificateError`.
    unknown, missing : the category for an answer that is not listed, and for a missing one; None refuses the file.
    pilot : the expected shares of the answers, for which the channel was designed, if any.
    expected : planned precision, by name (e.g. ``{"half_width": 0.02, "respondents": 1500}``), if known.
    reading : how answers are written in files, and how missing answers are treated.
    probability : the share of respondents who are asked; below 1, each respondent is asked one of such questions.
    parts : for several questions that share a report, each of them; the categories are then tuples of their answers.
    measure : what is estimated, the "shares" of the answers or, of answers that are numbers, their "mean".
    eta_cap : the largest eta that its description allows, if it has a cap. Other versions, as on paper, keep it, too.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))
    >>> plan_survey(spec).plan.question("vote").reports
    ('0', '1')
    """

    name: str = key(text)
    column: str = key()
    channel: ExactChannel = key(load=lambda data, _: ExactChannel.from_dict(data), dump=ExactChannel.to_dict)
    epsilon: float = key(default=math.nan, load=_epsilon, dump=lambda value: "inf" if math.isinf(value) else value)
    eta: float = key(default=math.nan, load=unit_interval)
    unknown: Label | None = key(default=None, load=read_label, dump=to_jsonable)
    missing: Label | None = key(default=None, load=read_label, dump=to_jsonable)
    pilot: Array | None = key(default=None)
    expected: Mapping[str, float] | None = key(mapped(number), default=None)
    reading: Reading = key(record(Reading), default=PLAIN_READING)
    probability: Fraction = key(_fraction, default=Fraction(1), omit=True, dump=str)
    parts: tuple[Part, ...] = key(listed(record(Part)), default=(), omit=True)
    measure: str = key(choice("shares", "mean"), default="shares", omit=True)
    eta_cap: float | None = key(unit_interval, default=None, omit=True)

    def __post_init__(self) -> None:
        place = f"question {self.name!r}"
        check(self, place)
        set_field = object.__setattr__
        set_field(self, "column", "" if self.parts and self.column == "" else text(self.column, f"{place}: column"))
        if not isinstance(self.channel, ExactChannel):
            raise invalid(f"{place}: channel", "an ExactChannel", type(self.channel).__name__)
        proof = self.channel.proof()
        for name, proved in (("epsilon", proof.epsilon), ("eta", proof.eta)):
            claimed = float(getattr(self, name))
            set_field(self, name, proved if math.isnan(claimed) else claimed)
        self.channel.verify(self.epsilon, self.eta)
        if self.eta_cap is not None and self.eta > self.eta_cap:
            raise invalid(f"{place}: eta", f"at most eta_cap, {self.eta_cap!r}", self.eta)
        require_distinct_texts(self.channel.outputs, f"{place}: reports")
        check_answers(self, place)
        has_no_column = self.column == "" and self.reading == Reading(missing_answers="refuse")
        if self.parts and not (self.categories == cells_of(self.parts) and has_no_column):
            raise invalid(f"{place}: channel", "the cells of its parts as inputs, and no column", self.categories[:8])
        if self.measure == "mean" and self.parts:
            raise invalid(f"{place}: measure", "none beside parts, each of which has its own", self.measure)
        _check_numbers(self.measure, self.categories, place)

    @property
    def answers(self) -> tuple[Part | PlannedQuestion, ...]:
        """The questions that a report is about: the parts, or the question itself."""
        return self.parts or (self,)

    @property
    def measured(self) -> tuple[Label, ...]:
        """The labels whose shares are estimated: its categories, or the ends of the range for a mean."""
        return self.categories if self.measure == "shares" else self.ends

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest answer, of a question whose mean is estimated; else 0 and 1."""
        return _ends_of(self.measure, self.categories)

    @property
    def may_be_empty(self) -> bool:
        """True if some respondents have no report of this question."""
        return self.probability < 1 or any(part.reading.left_out for part in self.answers)

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """The positions (k, answers) of each category's answers among those of the parts."""
        if not self.parts:
            return np.arange(len(self.categories))[:, None]
        positions_by_part = [{label: place for place, label in enumerate(part.categories)} for part in self.parts]
        return np.array(
            [
                [positions[label] for positions, label in zip(positions_by_part, cell, strict=True)]
                for cell in cells_of(self.parts)
            ]
        )

    def members(self, *names: str) -> Array:
        """Return rows (r, k) of the categories, one for each combination of the `measured` labels of these parts.

        Shares of answers have 0/1 rows. A number counts as shares of both ends of its range, with itself as their mean.
        """
        part_names = [part.name for part in self.answers]
        rows = np.ones((1, len(self.categories)))
        for position in map(part_names.index, names):
            of_part = _measured_rows(self.answers[position])[:, self.places[:, position]]
            rows = (rows[:, None] * of_part).reshape(-1, len(self.categories))
        return rows

    def rows_among_asked(self, name: str) -> Array | None:
        """Return the rows (r, k) of the linearized estimates among those who are asked [SSW, 5.6].

        They are those of the shares of its answers, or of its mean on a scale from 0 to 1. Their expectations are these
        values at the pilot; they are nan if that asks nobody. None for shares of a question that everybody is asked.
        """
        part = next(part for part in self.answers if part.name == name)
        if part.measure == "shares" and not asks_some(part):
            return None
        members = self.members(name)
        numerators = members[1:2] if part.measure == "mean" else members[: len(part.categories) - 1]
        is_asked = members[:2].sum(axis=0) if part.measure == "mean" else numerators.sum(axis=0)
        share = float(is_asked @ self.shares)
        if not share > 0:
            return np.full(numerators.shape, np.nan)
        values = (numerators @ self.shares / share)[:, None]
        return np.asarray((numerators - values * is_asked) / share + values)

    @property
    def largest_eta(self) -> float:
        """The largest eta that other versions of the question may have: its cap, or its own eta without one."""
        return self.eta if self.eta_cap is None else self.eta_cap

    @property
    def categories(self) -> tuple[Label, ...]:
        """The possible answers, in the order of the channel's rows."""
        return self.channel.inputs

    @property
    def reports(self) -> tuple[str, ...]:
        """The possible reports as text, in the order of the channel's columns."""
        return tuple(as_text(label) for label in self.channel.outputs)

    @property
    def shares(self) -> Array:
        """The pilot, or equal shares if there is none, shape (k,)."""
        k = len(self.categories)
        return np.full(k, 1 / k) if self.pilot is None else self.pilot

    @property
    def report_channel(self) -> Channel:
        """The channel in floats, with its reports as the text that data files hold."""
        return Channel(self.channel.matrix, self.categories, self.reports)

    @property
    def plainly_read(self) -> bool:
        """True if files hold the categories themselves, without codes or bins, and no missing answer is left out."""
        return all(
            part.reading == Reading(missing_answers="refuse" if part.missing is None else "counted")
            for part in self.answers
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert the question to JSON-ready values."""
        return dump(self)


def planned_question(
    question: QuestionSpec, channel: ExactChannel, probability: Fraction = Fraction(1), eta_cap: float | None = None
) -> PlannedQuestion:
    """Build a planned question from its description and its exact channel.

    `InvalidInput` if the channel exceeds the epsilon or eta of the description.
    """
    names = ("name", "column", "unknown", "missing", "pilot", "reading", "measure")
    values = {name: getattr(question, name) for name in names}
    planned = PlannedQuestion(channel=channel, probability=probability, eta_cap=eta_cap, **values)
    for claim in ("epsilon", "eta"):
        limit = getattr(question, claim)
        if limit is not None and getattr(planned, claim) > limit:
            raise invalid(f"question {question.name!r}: {claim}", f"at most {limit!r}", getattr(planned, claim))
    return planned


def non_answers(part: Part | PlannedQuestion) -> tuple[Label, ...]:
    """Return the categories without an answer: of missing ones, and "not applicable"."""
    missing = (part.missing,) if part.reading.own_category and part.missing is not None else ()
    return (*missing, *((NOT_APPLICABLE,) if asks_some(part) else ()))


def asks_some(part: Part | PlannedQuestion) -> bool:
    """Return True if the question is asked only after some answers to others."""
    return bool(getattr(part, "asked_if", ()))
