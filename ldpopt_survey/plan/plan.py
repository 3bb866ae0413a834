"""The plan: the exact channel of every question with its guarantees, in a file from which they are proved again."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.errors import Phrase, invalid
from ldpopt.exact import MAXIMUM_BITS, ExactChannel, round_exact
from ldpopt.files import strict
from ldpopt.files.delimited import PLAIN, Dialect
from ldpopt.numbers.rounding import float_up, up
from ldpopt.values.distribution import positive_integer
from ldpopt.values.results import Pictured
from ldpopt.values.schema import kind, version_of
from ldpopt_survey.plan.planned_question import Part, PlannedQuestion, planned_question
from ldpopt_survey.plan.public_question import PublicQuestion
from ldpopt_survey.plan.reading import conditions, wordings
from ldpopt_survey.plan.spec import (
    PERSON,
    QuestionSpec,
    Revealed,
    SurveySpec,
    as_lists,
    check_columns,
    in_a_word,
    keeps_first,
)
from ldpopt_survey.records import check, dump, key, listed, load, record, text
from ldpopt_survey.sample.spec import SampleSpec

FORMAT = "ldpopt-plan"
VERSION, WITH_READINGS, WITH_BOOKLETS = 2, 3, 4
"""Version 3 says how answers are written in files, version 4 who is asked what.

A plan has the lowest version that says what it needs."""

BOOKLET = "booklet"
"""The column of reports that says which question a respondent was asked, where not everybody is asked everything."""

MAX_COMPOSED = 700.0
"""The largest epsilon whose rounds are composed exactly; above, total variations are by the product rule."""

DERIVATION = 2
"""How files say that memoised words are computed from the key and (round, respondent, question, answer)."""


def _dialect(value: Any, what: str) -> Dialect:
    if not isinstance(value, list) or len(value) not in (3, 4):
        raise invalid(what, "a delimiter, an encoding, a decimal sign and the header rows", Phrase(kind(value)))
    return Dialect(*value)


def _dialect_values(dialect: Dialect) -> list[Any]:
    """The form in files; one header row, as most files have, is not said."""
    values = list(astuple(dialect))
    return values[:3] if dialect.header_rows == 1 else values


@dataclass(frozen=True, eq=False)
class Plan(Pictured):
    """A survey that is ready to be run. It cannot be changed, and the checksum of its content identifies it.

    The fields are those of `SurveySpec`, with planned questions. The columns of `sample` are among the carried columns.
    """

    name: str = key(text)
    questions: tuple[PlannedQuestion, ...] = key(listed(record(PlannedQuestion)))
    round: int = key(positive_integer, default=1)
    respondent: str | None = key(text, default=None)
    first_of_duplicates: bool = key(default=False, name="duplicates", load=keeps_first, dump=in_a_word)
    carry: tuple[str, ...] = key(listed(text), default=())
    file: Dialect = key(default=PLAIN, load=_dialect, dump=_dialect_values)
    sample: SampleSpec | None = key(record(SampleSpec), default=None, omit=True, dump=SampleSpec.to_dict)
    revealed: Revealed = key(conditions, default=(), omit=True, dump=as_lists)
    public: tuple[PublicQuestion, ...] = key(listed(record(PublicQuestion)), default=(), omit=True)
    wording: tuple[tuple[str, str], ...] = key(wordings, default=(), omit=True, dump=dict)
    rounds: int | None = key(positive_integer, default=None, omit=True)

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
        check_columns(self)
        if self.booklets and sum(question.probability for question in self.booklets) != 1:
            raise invalid(
                "probabilities", "those of the questions that not everybody is asked to sum to 1", Phrase("another sum")
            )
        if self.booklets and BOOKLET in (*self.carry, *(question.name for question in self.questions)):
            raise invalid("columns", f"no carried column and no question named {BOOKLET!r}", BOOKLET)
        if lacking := [asked.name for asked in self.public if asked.name not in self.carry]:
            raise invalid("public", "questions that are carried into the reports", lacking[0])
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

    @cached_property
    def answers(self) -> dict[str, tuple[PlannedQuestion, ...]]:
        """For the name of everything that is asked, the planned questions whose reports are about it."""
        asked: dict[str, list[PlannedQuestion]] = {}
        for question in self.questions:
            for part in question.answers:
                asked.setdefault(part.name, []).append(question)
        return {name: tuple(questions) for name, questions in asked.items()}

    def ways(self, names: tuple[str, ...]) -> list[list[PlannedQuestion]]:
        """The planned questions whose reports are about all of these names, for each booklet where there are some."""
        ways: dict[tuple[str, ...], list[PlannedQuestion]] = {}
        for drawn in self.booklets or (None,):
            asked = [question for question in (*self.everyone, drawn) if question is not None]
            holder = {part.name: question for question in asked for part in question.answers}
            if all(name in holder for name in names):
                several = {holder[name].name: holder[name] for name in names}
                ways[tuple(several)] = list(several.values())
        return list(ways.values())

    @property
    def titles(self) -> dict[str, str]:
        """The name of every question that a person may be asked, public ones last, with its wording or its name."""
        worded = dict(self.wording)
        asked = [getattr(self.part(name), "option_of", None) or name for name in self.answers]
        return {name: worded.get(name, name) for name in (*asked, *(public.name for public in self.public))}

    def part(self, name: str) -> Part | PlannedQuestion:
        """What is asked under that name: a planned question, or a part of one."""
        if name not in self.answers:
            raise invalid("question", f"one of {list(self.answers)}", name)
        return next(asked for asked in self.answers[name][0].answers if asked.name == name)

    @property
    def seen(self) -> tuple[str, ...]:
        """The questions of which everybody sees who did not answer, since their reports are empty then."""
        return tuple(name for name in self.answers if self.part(name).reading.left_out)

    @property
    def unprotected(self) -> dict[str, tuple[str, ...]]:
        """The questions whose answers are told by something else in the reports, with what tells them."""
        return {name: tuple(map(str, by)) for name, by in self.revealed if name != PERSON}

    def promised(self) -> tuple[float, float]:
        """(epsilon, eta) of a respondent's reports together, between answers to all questions but the `unprotected`.

        The answers must leave the same questions among `seen` empty: between answering and not answering one of these
        nothing is promised, since an empty report shows it. Both are 0 if no answer is protected.
        """
        kept = [q for q in self.questions if any(part.name not in self.unprotected for part in q.answers)]
        return _of_one_round(kept)

    @property
    def epsilon(self) -> float:
        """A bound on the epsilon (nats) of a respondent's reports in one round, if the same of them are empty.

        It is the sum of the claims of what everybody is asked, and the largest claim of a booklet: which booklet a
        respondent gets does not depend on answers. Rounded up.
        """
        return _of_one_round(self.questions)[0]

    @property
    def eta(self) -> float:
        """A bound on the total variation of all reports of one round together, rounded up.

        It is that of the composition of any channels within the questions' epsilon and eta [GI, Thm 2], and at most
        1 - product of (1 - eta). Of the booklets, the largest eta counts.
        """
        return _of_one_round(self.questions)[1]

    def over_rounds(self, rounds: int) -> tuple[float, float]:
        """(epsilon, eta) of all reports after `rounds` rounds under plans with these guarantees."""
        return over_rounds(self.epsilon, self.eta, rounds)

    def question(self, name: str) -> PlannedQuestion:
        """The question of that name."""
        named = {question.name: question for question in self.questions}
        if name in named:
            return named[name]
        if (shared := self.answers.get(name)) is not None:
            own = 'one with a report of its own (design = "one question" in [budget] gives each one)'
            raise invalid("question", own, f"{name} in {shared[0].name!r}")
        raise invalid("question", f"one of {list(named)}", name)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the plan's canonical JSON, in hexadecimal."""
        return _checksum(self._content())

    def _content(self) -> dict[str, Any]:
        """What the file says, without the checksum.

        A file says no more than its survey needs: only from version 3 on it says how answers are read.
        """
        read = self.file != PLAIN or not all(question.plainly_read for question in self.questions)
        version = WITH_READINGS if read else VERSION
        if self.booklets or any(question.parts for question in self.questions):
            version, read = WITH_BOOKLETS, True
        content: dict[str, Any] = {"format": FORMAT, "version": version}
        for name, value in dump(self).items():
            content |= {"derivation": DERIVATION} if name == "file" else {}
            content[name] = value
        if not read:
            content.pop("file")
            for question in content["questions"]:
                question.pop("reading")
        return content

    def to_json(self) -> str:
        """The plan as JSON text (schema ``ldpopt-plan``), with its checksum.

        It has version 2; version 3 if it says how answers are written in files; version 4 if it says who is asked what.
        """
        content = self._content()
        return strict.json_text({**content, "checksum": _checksum(content)})

    @classmethod
    def from_json(cls, content: str | bytes) -> Plan:
        """The plan written by `to_json`. Its checksum is compared and its guarantees are proved again.

        Malformed or altered plans are `InvalidInput`. Claims that the integers do not prove are `CertificateError`.
        """
        data = strict.json_value(content, "plan")
        version = version_of(data, "plan", FORMAT, (VERSION, WITH_READINGS, WITH_BOOKLETS))
        claimed = data.pop("checksum", None)
        if claimed != _checksum(data):
            raise invalid("plan", "the checksum of its content", Phrase("another"))
        if data.get("derivation") != DERIVATION or isinstance(data["derivation"], bool | float):
            raise invalid("plan", f"derivation {DERIVATION}", data.get("derivation"))
        stated = {name: data[name] for name in data if name not in ("format", "version", "derivation")}
        plan = load(cls, stated, "plan")
        if plan.checksum != claimed:  # keys are missing, or the version is another than that which the content asks for
            raise invalid("plan", "every key that a plan of its version has", version)
        return plan


def over_rounds(epsilon: float, eta: float, rounds: int) -> tuple[float, float]:
    """(epsilon, eta) of the reports of `rounds` rounds together, each within epsilon (nats) and eta; rounded up.

    eta is that of the composition of any channels within both, which may depend on earlier reports [GI, Thm 2].
    """
    return together([(epsilon, eta)], positive_integer(rounds, "rounds"))


def together(claims: Sequence[tuple[float, float]], times: int = 1) -> tuple[float, float]:
    """(epsilon, eta) of the reports of rounds within these (epsilon, eta), each so many times, as `over_rounds`."""
    if len(claims) * times == 1:
        return claims[0]
    from ldpopt.composition import compose

    if max(epsilon for epsilon, _ in claims) > MAX_COMPOSED:
        kept = times * math.fsum(-math.inf if eta == 1 else math.log1p(-eta) for _, eta in claims)
        return up(times * math.fsum(epsilon for epsilon, _ in claims)), min(1.0, up(-math.expm1(kept), 16))
    tv = compose([(epsilon, 0.0, eta) for epsilon, eta in claims], times).total_variation().value
    return float_up(sum((Fraction(epsilon) for epsilon, _ in claims), Fraction(0)) * times), tv


def _of_one_round(questions: Sequence[PlannedQuestion]) -> tuple[float, float]:
    """(epsilon, eta) of all reports of one respondent about these questions, rounded up."""
    everyone = [q for q in questions if q.probability == 1]
    drawn = [q for q in questions if q.probability < 1]
    claims = [q.epsilon for q in everyone] + [max((q.epsilon for q in drawn), default=0.0)]
    etas = [q.eta for q in everyone] + [max((q.eta for q in drawn), default=0.0)]
    epsilon = math.inf if math.inf in claims else float_up(sum(map(Fraction, claims), Fraction(0)))
    by_product = float_up(1 - math.prod((1 - Fraction(eta) for eta in etas), start=Fraction(1)))
    pairs = [(own, eta) for own, eta in zip(claims, etas, strict=True) if own > 0]
    if len(pairs) < 2 or not max(own for own, _ in pairs) <= MAX_COMPOSED:
        return epsilon, by_product
    return epsilon, min(by_product, together(pairs)[1])


Channels = Mapping[str, ChannelLike] | Callable[[QuestionSpec], ChannelLike]


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


def plan_of(spec: SurveySpec, planned: Sequence[PlannedQuestion]) -> Plan:
    """The plan that asks these questions; `InvalidInput` if together they exceed the budget."""
    said = {field.name: getattr(spec, field.name) for field in fields(Plan) if hasattr(spec, field.name)}
    plan = Plan(**{**said, "questions": tuple(planned)})
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
    composed = [float(compose([*everyone, *booklet]).epsilon_at(delta)) for booklet in ([[d] for d in drawn] or [[]])]
    return min(plan.epsilon, max(composed))


def _exact(given: ChannelLike | ExactChannel, question: QuestionSpec, bits: int) -> ExactChannel:
    what = f"question {question.name!r}: channel"
    if not isinstance(given, ExactChannel):
        labelled = as_channel(given, what)
        inputs = labelled.inputs if labelled is given else question.categories
        if len(inputs) != labelled.shape[0]:
            raise invalid(what, f"{len(inputs)} rows, one a category", labelled.shape[0])
        given = round_exact(labelled.matrix, bits, question.epsilon, question.eta, inputs, labelled.outputs)
    if given.inputs != question.categories:
        raise invalid(what, f"the categories {question.categories[:8]} as its inputs", given.inputs[:8])
    return given


def _checksum(content: dict[str, Any]) -> str:
    try:
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (ValueError, RecursionError):
        raise invalid("plan", "finite numbers of moderate size", "others") from None
    return hashlib.sha256(canonical.encode()).hexdigest()
