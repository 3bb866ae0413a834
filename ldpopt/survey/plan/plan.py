"""The plan: the exact channel of every question with its guarantees, in a file from which they are proved again."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt import strictjson
from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.datafiles.delimited import PLAIN, Dialect
from ldpopt.distribution import Array, distribution, number, positive_integer, unit_interval
from ldpopt.errors import Phrase, invalid
from ldpopt.exact import MAXIMUM_BITS, ExactChannel
from ldpopt.exact_rounding import round_exact
from ldpopt.labels import Label, as_text, distinct_labels, from_jsonable, to_jsonable
from ldpopt.results import ByValue, Pictured, Result
from ldpopt.rounding import float_up
from ldpopt.schema import check, dump, key, kind, listed, load, mapped, record, text, version_of
from ldpopt.survey.plan.spec import (
    PLAIN_READING,
    QuestionSpec,
    Reading,
    SurveySpec,
    check_columns,
    distinct_as_text,
    fitting_reading,
    in_a_word,
    keeps_first,
)
from ldpopt.survey.sample.spec import SampleSpec

FORMAT = "ldpopt-plan"
VERSION, WITH_READINGS, WITH_BOOKLETS = 2, 3, 4
"""Version 3 says how answers are written in files, version 4 who is asked what.

Plans that do not need this keep version 2 and their checksum."""

MAX_CELLS = 2**14
"""The most answers that parts of one report may have together."""

MAX_DENOMINATOR = 10**6
"""The largest denominator of a booklet's probability."""

BOOKLET = "booklet"
"""The column of reports that says which question a respondent was asked, where not everybody is asked everything."""

NOT_APPLICABLE = "not applicable"
"""The answer of those whom a question does not concern, by their answer to another one."""

DERIVATIONS = (1, 2)
"""The ways to compute memoised words from the key: from (round, respondent, question), or from these and the answer."""


def _epsilon(value: Any, what: str) -> float:
    return math.inf if value == "inf" else number(value, what, 'a finite number of nats or "inf"')


def _label(value: Any, what: str) -> Label:
    return from_jsonable([value], what)[0]


def _dialect(value: Any, what: str) -> Dialect:
    if not isinstance(value, list) or len(value) != 3:
        raise invalid(what, "a delimiter, an encoding and a decimal sign", Phrase(kind(value)))
    return Dialect(*value)


def _fraction(value: Any, what: str) -> Fraction:
    short = isinstance(value, str) and re.fullmatch(r"[0-9]{1,7}(/0*[1-9][0-9]{0,6})?", value)
    if not (isinstance(value, Fraction) or short):
        raise invalid(what, 'a fraction such as "3/10"', Phrase(kind(value)))
    share = Fraction(value)
    if not 0 < share <= 1 or share.denominator > MAX_DENOMINATOR:
        raise invalid(what, f"above 0 and at most 1, with a denominator of at most {MAX_DENOMINATOR}", str(share))
    return share


def _conditions(value: Any, what: str) -> tuple[tuple[str, tuple[Label, ...]], ...]:
    if not isinstance(value, (list, tuple)) or any(
        not isinstance(one, (list, tuple)) or len(one) != 2 for one in value
    ):
        raise invalid(what, "pairs of a question and its answers", Phrase(kind(value)))
    return tuple((text(name, what), from_jsonable(list(labels), what)) for name, labels in value)


@dataclass(frozen=True, eq=False)
class Part(ByValue):
    """One of several questions that share a report: its name, its answers, and how they are written in files.

    asked_if : pairs of another part's name and those of its answers after which this question is asked. After others
        its answer is `NOT_APPLICABLE`, the last of its categories.
    name, column, categories, unknown, missing, reading, pilot : as for `PlannedQuestion`.
    """

    name: str = key(text)
    column: str = key(text)
    categories: tuple[Label, ...] = key(
        load=lambda labels, what: from_jsonable(list(listed(lambda one, _: one)(labels, what)), what),
        dump=lambda labels: [to_jsonable(one) for one in labels],
    )
    unknown: Label | None = key(default=None, load=_label, dump=to_jsonable)
    missing: Label | None = key(default=None, load=_label, dump=to_jsonable)
    reading: Reading = key(record(Reading), default=PLAIN_READING)
    pilot: Array | None = key(default=None)
    asked_if: tuple[tuple[str, tuple[Label, ...]], ...] = key(
        default=(), omit=True, load=_conditions,
        dump=lambda conditions: [[name, [to_jsonable(one) for one in labels]] for name, labels in conditions],
    )  # fmt: skip

    def __post_init__(self) -> None:
        what, put = f"question {self.name!r}", object.__setattr__
        check(self, what)
        categories = distinct_labels(self.categories, len(self.categories), f"{what}: categories")
        distinct_as_text(categories, f"{what}: categories")
        if self.asked_if and categories[-1:] != (NOT_APPLICABLE,):
            raise invalid(f"{what}: categories", f"{NOT_APPLICABLE!r} as the last", categories[-1:])
        put(self, "categories", categories)
        put(self, "reading", fitting_reading(self, what))
        if self.asked_if and self.reading.left_out:
            expected = '"category", "counted" or "refuse" beside asked_if (an empty report tells that it was asked)'
            raise invalid(f"{what}: missing_answers", expected, self.reading.missing_answers)
        if self.pilot is not None:
            put(self, "pilot", distribution(self.pilot, f"{what}: pilot", len(categories), categories))

    @property
    def asked(self) -> tuple[Label, ...]:
        """The categories among which a respondent who is asked chooses."""
        return self.categories[:-1] if self.asked_if else self.categories

    def applies(self, answers: Mapping[str, Label]) -> bool:
        """Whether the question is asked after these answers to the parts before it."""
        return all(answers[name] in labels for name, labels in self.asked_if)


def cells_of(parts: Sequence[Part]) -> tuple[tuple[Label, ...], ...]:
    """The possible answers to several parts together, the last part's fastest.

    `InvalidInput` for parts of one name, for conditions on other than earlier parts, and for too many answers.
    """
    cells: list[tuple[Label, ...]] = [()]
    for at, part in enumerate(parts):
        before = [one.name for one in parts[:at]]
        if part.name in before or any(name not in before for name, _ in part.asked_if):
            raise invalid(
                f"question {part.name!r}", "a name of its own, and conditions on parts before it", Phrase("others")
            )
        if len(cells) * len(part.categories) > MAX_CELLS:
            raise invalid(
                f"question {part.name!r}", f"at most {MAX_CELLS} answers of all parts together", Phrase("more")
            )
        longer = []
        for cell in cells:
            asked = part.applies(dict(zip([one.name for one in parts], cell, strict=False)))
            longer += [(*cell, label) for label in (part.asked if asked else [NOT_APPLICABLE])]
        cells = longer
    return tuple(cells)


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

    >>> from ldpopt.survey import QuestionSpec, SurveySpec, plan_survey
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))
    >>> plan_survey(spec).plan.question("vote").reports
    ('0', '1')
    """

    name: str = key(text)
    column: str = key()
    channel: ExactChannel = key(load=lambda data, _: ExactChannel.from_dict(data), dump=ExactChannel.to_dict)
    epsilon: float = key(default=math.nan, load=_epsilon, dump=lambda value: "inf" if math.isinf(value) else value)
    eta: float = key(default=math.nan, load=unit_interval)
    unknown: Label | None = key(default=None, load=_label, dump=to_jsonable)
    missing: Label | None = key(default=None, load=_label, dump=to_jsonable)
    pilot: Array | None = key(default=None)
    expected: Mapping[str, float] | None = key(mapped(number), default=None)
    reading: Reading = key(record(Reading), default=PLAIN_READING)
    probability: Fraction = key(_fraction, default=Fraction(1), omit=True, dump=str)
    parts: tuple[Part, ...] = key(listed(record(Part)), default=(), omit=True)

    def __post_init__(self) -> None:
        what = f"question {self.name!r}"
        check(self, what)
        put = object.__setattr__
        put(self, "column", "" if self.parts and self.column == "" else text(self.column, f"{what}: column"))
        if not isinstance(self.channel, ExactChannel):
            raise invalid(f"{what}: channel", "an ExactChannel", type(self.channel).__name__)
        proof = self.channel.proof()
        for name, proved in (("epsilon", proof.epsilon), ("eta", proof.eta)):
            claimed = float(getattr(self, name))
            put(self, name, proved if math.isnan(claimed) else claimed)
        self.channel.verify(self.epsilon, self.eta)
        distinct_as_text(self.channel.inputs, f"{what}: categories")
        distinct_as_text(self.channel.outputs, f"{what}: reports")
        put(self, "reading", fitting_reading(self, what))
        if self.pilot is not None:
            put(self, "pilot", distribution(self.pilot, f"{what}: pilot", len(self.categories), self.categories))
        if self.parts and (self.categories != cells_of(self.parts) or self.column or self.reading != PLAIN_READING):
            raise invalid(f"{what}: channel", "the cells of its parts as inputs, and no column", self.categories[:8])

    @property
    def answers(self) -> tuple[Part | PlannedQuestion, ...]:
        """The questions that a report is about: the parts, or the question itself."""
        return self.parts or (self,)

    @property
    def may_be_empty(self) -> bool:
        """Whether some respondents have no report of this question."""
        return self.probability < 1 or any(one.reading.left_out for one in self.answers)

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """(k, answers) for each category, the positions of its answers among those of the parts."""
        if not self.parts:
            return np.arange(len(self.categories))[:, None]
        known = [{label: at for at, label in enumerate(part.categories)} for part in self.parts]
        return np.array([[of[label] for of, label in zip(known, cell, strict=True)] for cell in cells_of(self.parts)])

    def members(self, *names: str) -> Array:
        """(r, k) 1 where an answer to one of its parts, or answers to several together, are those of a category."""
        asked = [one.name for one in self.answers]
        at = [asked.index(name) for name in names]
        wanted = np.array(list(product(*(range(len(self.answers[i].categories)) for i in at))))
        return np.asarray((self.places[:, at] == wanted[:, None]).all(axis=2), dtype=np.float64)

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
        """Whether files hold the categories themselves, without codes or bins, and no missing answer is left out."""
        return all(
            one.reading == Reading(missing_answers="refuse" if one.missing is None else "counted")
            for one in self.answers
        )

    def to_dict(self) -> dict[str, Any]:
        """The question as JSON-ready values."""
        return dump(self)


@dataclass(frozen=True, eq=False)
class Plan(Pictured):
    """A survey that is ready to be run. It cannot be changed, and the checksum of its content identifies it.

    The fields are those of `SurveySpec`, with planned questions. The columns of `sample` are among the carried columns.
    derivation : how the random words of memoised reports are computed: 2, or 1 for plans of version 1. Under 1, an
        answer that changes inside a round uses the same word again, so that both reports together may reveal it.
    """

    name: str = key(text)
    questions: tuple[PlannedQuestion, ...] = key(listed(record(PlannedQuestion)))
    round: int = key(positive_integer, default=1)
    respondent: str | None = key(text, default=None)
    first_of_duplicates: bool = key(default=False, name="duplicates", load=keeps_first, dump=in_a_word)
    carry: tuple[str, ...] = key(listed(text), default=())
    derivation: int = key(default=DERIVATIONS[-1])
    file: Dialect = key(default=PLAIN, load=_dialect, dump=lambda dialect: list(astuple(dialect)))
    sample: SampleSpec | None = key(record(SampleSpec), default=None, omit=True, dump=SampleSpec.to_dict)

    _picture, _heads = "budget_split", 1

    def _columns(self) -> dict[str, list[Any]]:
        asked = self.questions
        columns = {name: [getattr(question, name) for question in asked] for name in ("column", "epsilon", "eta")}
        sizes = {"categories": [len(q.categories) for q in asked], "reports": [len(q.reports) for q in asked]}
        return {"question": [question.name for question in asked], **columns, **sizes}

    def _title(self) -> str:
        return f"Plan {self.name}"

    def __post_init__(self) -> None:
        check(self, "plan")
        if type(self.derivation) is not int or self.derivation not in DERIVATIONS:
            raise invalid("derivation", "1 or 2", self.derivation)
        check_columns(self)
        if self.booklets and sum(question.probability for question in self.booklets) != 1:
            raise invalid(
                "probabilities", "those of the questions that not everybody is asked to sum to 1", Phrase("another sum")
            )
        if self.booklets and BOOKLET in (*self.carry, *(question.name for question in self.questions)):
            raise invalid("columns", f"no carried column and no question named {BOOKLET!r}", BOOKLET)
        if self.sample is not None and (lacking := [c for c in self.sample.columns if c not in self.carry]):
            raise invalid("sample", "columns that are carried into the reports", lacking[0])

    @property
    def booklets(self) -> tuple[PlannedQuestion, ...]:
        """The questions of which each respondent is asked one; empty if everybody is asked everything."""
        return tuple(question for question in self.questions if question.probability < 1)

    @property
    def everyone(self) -> tuple[PlannedQuestion, ...]:
        """The questions that everybody is asked."""
        return tuple(question for question in self.questions if question.probability == 1)

    @property
    def answers(self) -> dict[str, tuple[PlannedQuestion, ...]]:
        """For the name of everything that is asked, the planned questions whose reports are about it."""
        asked: dict[str, tuple[PlannedQuestion, ...]] = {}
        for question in self.questions:
            for one in question.answers:
                asked[one.name] = (*asked.get(one.name, ()), question)
        return asked

    def part(self, name: str) -> Part | PlannedQuestion:
        """What is asked under that name: a planned question, or a part of one."""
        if name not in self.answers:
            raise invalid("question", f"one of {list(self.answers)}", name)
        return next(one for one in self.answers[name][0].answers if one.name == name)

    @property
    def epsilon(self) -> float:
        """A bound on the epsilon (nats) of a respondent's reports in one round.

        It is the sum of the claims of what everybody is asked, and the largest claim of a booklet: which booklet a
        respondent gets does not depend on answers. Rounded up.
        """
        claims = [question.epsilon for question in self.everyone]
        claims.append(max((question.epsilon for question in self.booklets), default=0.0))
        return math.inf if math.inf in claims else float_up(sum(map(Fraction, claims), Fraction(0)))

    @property
    def eta(self) -> float:
        """A bound on the total variation of all reports of one round together: 1 - product of (1 - eta), rounded up.

        Of the booklets, the largest eta counts.
        """
        etas = [question.eta for question in self.everyone]
        etas.append(max((question.eta for question in self.booklets), default=0.0))
        return float_up(1 - math.prod((1 - Fraction(eta) for eta in etas), start=Fraction(1)))

    def over_rounds(self, rounds: int) -> tuple[float, float]:
        """(epsilon, eta) of all reports after `rounds` rounds under plans with these guarantees."""
        rounds = positive_integer(rounds, "rounds")
        epsilon = math.inf if math.isinf(self.epsilon) else float_up(Fraction(self.epsilon) * rounds)
        return epsilon, float_up(1 - (1 - Fraction(self.eta)) ** rounds)

    def question(self, name: str) -> PlannedQuestion:
        """The question of that name."""
        for question in self.questions:
            if question.name == name:
                return question
        if (shared := self.answers.get(name)) is not None:
            own = 'one with a report of its own (design = "one question" in [budget] gives each one)'
            raise invalid("question", own, f"{name} in {shared[0].name!r}")
        raise invalid("question", f"one of {[question.name for question in self.questions]}", name)

    @property
    def checksum(self) -> str:
        """SHA-256 of the plan's canonical JSON, in hexadecimal."""
        return _checksum(self._content())

    def _content(self) -> dict[str, Any]:
        """What the file says, without the checksum.

        A file says no more than its survey needs, so that old plans keep their checksum and their words: version 1
        names no derivation, and only version 3 says how answers are read.
        """
        read = self.file != PLAIN or not all(question.plainly_read for question in self.questions)
        if read and self.derivation == 1:
            raise invalid("plan", "derivation 2 for answers that are read otherwise than as they stand", 1)
        version = WITH_READINGS if read else 1 if self.derivation == 1 else VERSION
        if self.booklets or any(question.parts for question in self.questions):
            version, read = WITH_BOOKLETS, True
        content = {"format": FORMAT, "version": version, **dump(self)}
        if not read:
            content.pop("file")
            for question in content["questions"]:
                question.pop("reading")
        if version == 1:
            content.pop("derivation")
        return content

    def to_json(self) -> str:
        """The plan as JSON text (schema ``ldpopt-plan``), with its checksum.

        It has version 2; version 1 if it was read from such a file; and version 3 if it says how answers are written in
        files.
        """
        content = self._content()
        return strictjson.dumps({**content, "checksum": _checksum(content)})

    @classmethod
    def from_json(cls, content: str | bytes) -> Plan:
        """The plan written by `to_json`. Its checksum is compared and its guarantees are proved again.

        Malformed or altered plans are `InvalidInput`. Claims that the integers do not prove are `CertificateError`.
        """
        data = strictjson.loads(content, "plan")
        version = version_of(data, "plan", FORMAT, (1, VERSION, WITH_READINGS, WITH_BOOKLETS))
        claimed = data.pop("checksum", None)
        if claimed != _checksum(data):
            raise invalid("plan", "the checksum of its content", Phrase("another"))
        old = {"derivation": 1} if version == 1 else {}
        plan = load(cls, {**old, **{name: data[name] for name in data if name not in ("format", "version")}}, "plan")
        if plan.checksum != claimed:  # keys are missing, or the version is another than that which the content asks for
            raise invalid("plan", "every key that a plan of its version has", version)
        return plan


Channels = Mapping[str, ChannelLike | ExactChannel] | Callable[[QuestionSpec], ChannelLike | ExactChannel]


def make_plan(spec: SurveySpec, channels: Channels, bits: int = MAXIMUM_BITS) -> Plan:
    """The plan that asks the questions of `spec` through `channels`, rounded to exact ones.

    channels : a channel for each question's name, or a function from a `QuestionSpec` to one. Rows are the
        categories, in order. An array takes the categories as its inputs; a channel must have them.

    Raises `InvalidInput` if a channel does not fit, or the questions together exceed the budget.

    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), epsilon=1.1)
    >>> make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]}, bits=8).eta
    0.5
    """
    planned = []
    for question in spec.questions:
        if not callable(channels) and question.name not in channels:
            raise invalid("channels", f"one for the question {question.name!r}", sorted(channels))
        if question.asked_if:
            raise invalid(
                f"question {question.name!r}", "no asked_if (plan_survey designs such questions together)", "one"
            )
        channel = channels(question) if callable(channels) else channels[question.name]
        planned.append(planned_question(question, _exact(channel, question, bits)))
    return plan_of(spec, planned)


def planned_question(
    question: QuestionSpec, channel: ExactChannel, probability: Fraction = Fraction(1)
) -> PlannedQuestion:
    """A question of a description with its exact channel; `InvalidInput` if that exceeds its own epsilon or eta."""
    planned = PlannedQuestion(
        name=question.name,
        column=question.column,
        channel=channel,
        unknown=question.unknown,
        missing=question.missing,
        pilot=question.pilot,
        reading=question.reading,
        probability=probability,
    )
    for what in ("epsilon", "eta"):
        asked = getattr(question, what)
        if asked is not None and getattr(planned, what) > asked:
            raise invalid(f"question {question.name!r}: {what}", f"at most {asked!r}", getattr(planned, what))
    return planned


def plan_of(spec: SurveySpec, planned: Sequence[PlannedQuestion]) -> Plan:
    """The plan that asks these questions; `InvalidInput` if together they exceed the budget."""
    plan = Plan(
        spec.name,
        tuple(planned),
        spec.round,
        spec.respondent,
        spec.first_of_duplicates,
        spec.carry,
        sample=spec.sample,
        file=spec.file,
    )
    used = {"epsilon": plan.epsilon if spec.delta == 0 else composed_epsilon(plan, spec.delta), "eta": plan.eta}
    for what, together in used.items():
        budget = getattr(spec, what)
        if budget is not None and together > budget:
            raise invalid(f"budget {what}", f"questions that use at most {budget!r} together", together)
    return plan


def composed_epsilon(plan: Plan, delta: float) -> float:
    """The epsilon (nats) of all questions together at `delta`, composed from each question's guarantees [GI, Thm 2]."""
    from ldpopt.composition import compose

    everyone = [(question.epsilon, 0.0, question.eta) for question in plan.everyone]
    drawn = {(question.epsilon, 0.0, question.eta) for question in plan.booklets}
    composed = [float(compose([*everyone, *one]).epsilon_at(delta)) for one in ([[d] for d in drawn] or [[]])]
    return min(plan.epsilon, max(composed))


def _exact(found: ChannelLike | ExactChannel, question: QuestionSpec, bits: int) -> ExactChannel:
    what = f"question {question.name!r}: channel"
    if not isinstance(found, ExactChannel):
        labelled = as_channel(found, what)
        inputs = labelled.inputs if labelled is found else question.categories
        if len(inputs) != labelled.shape[0]:
            raise invalid(what, f"{len(inputs)} rows, one a category", labelled.shape[0])
        found = round_exact(labelled.matrix, bits, question.epsilon, question.eta, inputs, labelled.outputs)
    if found.inputs != question.categories:
        raise invalid(what, f"the categories {question.categories[:8]} as its inputs", found.inputs[:8])
    return found


def _checksum(content: dict[str, Any]) -> str:
    try:
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (ValueError, RecursionError):
        raise invalid("plan", "finite numbers of moderate size", "others") from None
    return hashlib.sha256(canonical.encode()).hexdigest()
