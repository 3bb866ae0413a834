"""Represent a plan: the exact channel of every question, in a file that proves its guarantees."""

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
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.exact import MAXIMUM_BITS, ExactChannel, round_exact
from ldpopt.files import strict
from ldpopt.files.delimited import PLAIN, Dialect
from ldpopt.numbers.rounding import float_up, up
from ldpopt.values.distribution import positive_integer
from ldpopt.values.results import Pictured
from ldpopt.values.schema import kind, version_of
from ldpopt_survey.plan.planned_question import Part, PlannedQuestion, planned_question
from ldpopt_survey.plan.public_question import PublicQuestion
from ldpopt_survey.plan.reading import read_conditions, read_wordings
from ldpopt_survey.plan.spec import (
    PERSON,
    QuestionSpec,
    Revealed,
    SurveySpec,
    as_lists,
    check_columns,
    duplicates_word,
    read_duplicates,
)
from ldpopt_survey.records import check, dump, key, listed, load, record, text
from ldpopt_survey.sample.spec import SampleSpec

FORMAT = "ldpopt-plan"
BASE_VERSION, READINGS_VERSION, BOOKLETS_VERSION = 2, 3, 4
"""Version 3 says how answers are written in files, version 4 who is asked what.

A plan has the lowest version that says what it needs."""

BOOKLET = "booklet"
"""The column of reports that says which question a respondent was asked, where not everybody is asked everything."""

MAX_COMPOSED_EPSILON = 700.0
"""The largest epsilon whose rounds are composed exactly; above, total variations are by the product rule."""

DERIVATION_VERSION = 2
"""How files say that memoised words are computed from the key and (round, respondent, question, answer)."""


def _dialect(value: Any, place: str) -> Dialect:
    if not isinstance(value, list) or len(value) not in (3, 4):
        raise invalid(place, "a delimiter, an encoding, a decimal sign and the header rows", Phrase(kind(value)))
    return Dialect(*value)


def _dialect_values(dialect: Dialect) -> list[Any]:
    """Return the form in files, without the number of header rows if it is 1."""
    values = list(astuple(dialect))
    return values[:3] if dialect.header_rows == 1 else values


@dataclass(frozen=True, eq=False)
class Plan(Pictured):
    """Survey that is ready to be executed. It cannot be changed, and the checksum of its content identifies it.

    The fields are those of `SurveySpec`, with planned questions. The columns of `sample` are among the carried columns.
    """

    name: str = key(text)
    questions: tuple[PlannedQuestion, ...] = key(listed(record(PlannedQuestion)))
    round: int = key(positive_integer, default=1)
    respondent: str | None = key(text, default=None)
    first_of_duplicates: bool = key(default=False, name="duplicates", load=read_duplicates, dump=duplicates_word)
    carry: tuple[str, ...] = key(listed(text), default=())
    file: Dialect = key(default=PLAIN, load=_dialect, dump=_dialect_values)
    sample: SampleSpec | None = key(record(SampleSpec), default=None, omit=True, dump=SampleSpec.to_dict)
    revealed: Revealed = key(read_conditions, default=(), omit=True, dump=as_lists)
    public: tuple[PublicQuestion, ...] = key(listed(record(PublicQuestion)), default=(), omit=True)
    wording: tuple[tuple[str, str], ...] = key(read_wordings, default=(), omit=True, dump=dict)
    rounds: int | None = key(positive_integer, default=None, omit=True)

    _picture, _heads = "budget_split", 1

    def _columns(self) -> dict[str, list[Any]]:
        questions = self.questions
        columns = {name: [getattr(question, name) for question in questions] for name in ("column", "epsilon", "eta")}
        sizes = {"categories": [len(q.categories) for q in questions], "reports": [len(q.reports) for q in questions]}
        return {"question": [question.name for question in questions], **columns, **sizes}

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
        if missing_columns := [
            public_question.name for public_question in self.public if public_question.name not in self.carry
        ]:
            raise invalid("public", "questions that are carried into the reports", missing_columns[0])
        if self.sample is not None and (missing_columns := [c for c in self.sample.columns if c not in self.carry]):
            raise invalid("sample", "columns that are carried into the reports", missing_columns[0])

    @property
    def booklets(self) -> tuple[PlannedQuestion, ...]:
        """The questions that are alternatives for a respondent; empty if everybody is asked everything."""
        return tuple(question for question in self.questions if question.probability < 1)

    @property
    def everyone(self) -> tuple[PlannedQuestion, ...]:
        """The questions that everybody is asked."""
        return tuple(question for question in self.questions if question.probability == 1)

    @cached_property
    def answers(self) -> dict[str, tuple[PlannedQuestion, ...]]:
        """The planned questions that report on each part, by the part's name."""
        questions_by_name: dict[str, list[PlannedQuestion]] = {}
        for question in self.questions:
            for part in question.answers:
                questions_by_name.setdefault(part.name, []).append(question)
        return {name: tuple(questions) for name, questions in questions_by_name.items()}

    def ways(self, names: tuple[str, ...]) -> list[list[PlannedQuestion]]:
        """List, for each booklet, the planned questions that together report on all these names."""
        questions_by_names: dict[tuple[str, ...], list[PlannedQuestion]] = {}
        for booklet in self.booklets or (None,):
            questions = [question for question in (*self.everyone, booklet) if question is not None]
            holder = {part.name: question for question in questions for part in question.answers}
            if all(name in holder for name in names):
                holders = {holder[name].name: holder[name] for name in names}
                questions_by_names[tuple(holders)] = list(holders.values())
        return list(questions_by_names.values())

    @property
    def titles(self) -> dict[str, str]:
        """The name of every question that a person may be asked, public ones last, with its wording or its name."""
        wording_by_name = dict(self.wording)
        names = [getattr(self.part(name), "option_of", None) or name for name in self.answers]
        return {name: wording_by_name.get(name, name) for name in (*names, *(public.name for public in self.public))}

    def part(self, name: str) -> Part | PlannedQuestion:
        """Return the planned question, or the part of one, of that name."""
        if name not in self.answers:
            raise invalid("question", f"one of {list(self.answers)}", name)
        return next(part for part in self.answers[name][0].answers if part.name == name)

    @property
    def questions_with_empty_reports(self) -> tuple[str, ...]:
        """The questions whose empty reports show everybody who did not answer."""
        return tuple(name for name in self.answers if self.part(name).reading.left_out)

    @property
    def unprotected(self) -> dict[str, tuple[str, ...]]:
        """The questions whose answers are disclosed by other data in the reports, with these data."""
        return {name: tuple(map(str, sources)) for name, sources in self.revealed if name != PERSON}

    def protected_claims(self) -> tuple[float, float]:
        """Return (epsilon, eta) of a respondent's reports, for all but `unprotected` answers.

        The compared answers must leave the same of the `questions_with_empty_reports` empty. Nothing is guaranteed
        between answering and not answering one of these, since an empty report shows it. Both are 0 if no answer is
        protected.
        """
        protected = [q for q in self.questions if any(part.name not in self.unprotected for part in q.answers)]
        return _of_one_round(protected)

    @property
    def epsilon(self) -> float:
        """A bound on the epsilon (nats) of a respondent's reports in one round, if the same of them are empty.

        It is the sum of the claims of the questions that everybody is asked, and the largest claim of a booklet. The
        booklet of a respondent does not depend on answers. Rounded up.
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
        """Return (epsilon, eta) of all reports after `rounds` rounds under such plans."""
        return over_rounds(self.epsilon, self.eta, rounds)

    def question(self, name: str) -> PlannedQuestion:
        """Return the question of that name."""
        questions_by_name = {question.name: question for question in self.questions}
        if name in questions_by_name:
            return questions_by_name[name]
        if (holders := self.answers.get(name)) is not None:
            expected = 'one with a report of its own (design = "one question" in [budget] gives each one)'
            raise invalid("question", expected, f"{name} in {holders[0].name!r}")
        raise invalid("question", f"one of {list(questions_by_name)}", name)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the plan's canonical JSON, in hexadecimal."""
        return _checksum(self._content())

    def _content(self) -> dict[str, Any]:
        """Return the content of the file, without the checksum.

        A file states no more than its survey needs: only from version 3 on it states how answers are read.
        """
        has_readings = self.file != PLAIN or not all(question.plainly_read for question in self.questions)
        version = READINGS_VERSION if has_readings else BASE_VERSION
        if self.booklets or any(question.parts for question in self.questions):
            version, has_readings = BOOKLETS_VERSION, True
        content: dict[str, Any] = {"format": FORMAT, "version": version}
        for name, value in dump(self).items():
            content |= {"derivation": DERIVATION_VERSION} if name == "file" else {}
            content[name] = value
        if not has_readings:
            content.pop("file")
            for question in content["questions"]:
                question.pop("reading")
        return content

    def to_json(self) -> str:
        """Write the plan as JSON text (schema ``ldpopt-plan``), with its checksum.

        It has version 2, version 3 if it states how answers are written in files, or version 4 if it has booklets or
        questions that share a report.
        """
        content = self._content()
        return strict.json_text({**content, "checksum": _checksum(content)})

    @classmethod
    def from_json(cls, content: str | bytes) -> Plan:
        """Read a plan written by `to_json`, compare its checksum and prove its guarantees again.

        Malformed or altered plans are `InvalidInput`. Claims that the integers do not prove are `CertificateError`.
        """
        data = strict.json_value(content, "plan")
        version = version_of(data, "plan", FORMAT, (BASE_VERSION, READINGS_VERSION, BOOKLETS_VERSION))
        claimed = data.pop("checksum", None)
        if claimed != _checksum(data):
            raise InvalidInput("plan: its checksum does not match its content; the file was altered or damaged")
        if data.get("derivation") != DERIVATION_VERSION or isinstance(data["derivation"], bool | float):
            raise invalid("plan", f"derivation {DERIVATION_VERSION}", data.get("derivation"))
        values = {name: data[name] for name in data if name not in ("format", "version", "derivation")}
        plan = load(cls, values, "plan")
        if plan.checksum != claimed:  # keys are missing, or the version is another than that which the content asks for
            raise invalid("plan", "every key that a plan of its version has", version)
        return plan


def over_rounds(epsilon: float, eta: float, rounds: int) -> tuple[float, float]:
    """Return (epsilon, eta) of the joint reports of `rounds` rounds, rounded up.

    Each round is within epsilon (nats) and eta.

    eta is that of the composition of any channels within both, which may depend on earlier reports [GI, Thm 2].
    """
    return compose_claims([(epsilon, eta)], positive_integer(rounds, "rounds"))


def compose_claims(claims: Sequence[tuple[float, float]], times: int = 1) -> tuple[float, float]:
    """Compose rounds within these (epsilon, eta), each repeated `times`, as in `over_rounds`."""
    if len(claims) * times == 1:
        return claims[0]
    from ldpopt.composition import compose

    if max(epsilon for epsilon, _ in claims) > MAX_COMPOSED_EPSILON:
        log_product = times * math.fsum(-math.inf if eta == 1 else math.log1p(-eta) for _, eta in claims)
        return up(times * math.fsum(epsilon for epsilon, _ in claims)), min(1.0, up(-math.expm1(log_product), 16))
    variation = compose([(epsilon, 0.0, eta) for epsilon, eta in claims], times).total_variation().value
    return float_up(sum((Fraction(epsilon) for epsilon, _ in claims), Fraction(0)) * times), variation


def _of_one_round(questions: Sequence[PlannedQuestion]) -> tuple[float, float]:
    """Return (epsilon, eta) of all reports of one respondent about these questions, rounded up."""
    everyone = [q for q in questions if q.probability == 1]
    booklets = [q for q in questions if q.probability < 1]
    claims = [q.epsilon for q in everyone] + [max((q.epsilon for q in booklets), default=0.0)]
    etas = [q.eta for q in everyone] + [max((q.eta for q in booklets), default=0.0)]
    epsilon = math.inf if math.inf in claims else float_up(sum(map(Fraction, claims), Fraction(0)))
    by_product = float_up(1 - math.prod((1 - Fraction(eta) for eta in etas), start=Fraction(1)))
    pairs = [(claim, eta) for claim, eta in zip(claims, etas, strict=True) if claim > 0]
    if len(pairs) < 2 or not max(claim for claim, _ in pairs) <= MAX_COMPOSED_EPSILON:
        return epsilon, by_product
    return epsilon, min(by_product, compose_claims(pairs)[1])


Channels = Mapping[str, ChannelLike] | Callable[[QuestionSpec], ChannelLike]


def make_plan(spec: SurveySpec, channels: Channels, bits: int = MAXIMUM_BITS) -> Plan:
    """Build the plan of the questions of `spec` with `channels`, rounded to exact ones.

    Parameters
    ----------
    spec : The description of the survey.
    channels : A channel for each question's name, or a function from a `QuestionSpec` to one. Rows are the
        categories, in order. An array takes the categories as its inputs; a channel must have them.
    bits : The probabilities are multiples of 2^-bits.

    Returns
    -------
    Plan
        The plan, with the guarantees that its integers prove.

    Raises
    ------
    InvalidInput
        If a channel does not fit, or the questions together exceed the budget.

    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), epsilon=1.1)
    >>> make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]}, bits=8).eta
    0.5
    """
    planned_questions = []
    for question in spec.questions:
        if not callable(channels) and question.name not in channels:
            raise invalid("channels", f"one for the question {question.name!r}", sorted(channels))
        if question.asked_if:
            raise invalid(
                f"question {question.name!r}", "no asked_if (plan_survey designs such questions together)", "one"
            )
        channel = channels(question) if callable(channels) else channels[question.name]
        planned_questions.append(planned_question(question, _exact(channel, question, bits)))
    return plan_of(spec, planned_questions)


def plan_of(spec: SurveySpec, planned_questions: Sequence[PlannedQuestion]) -> Plan:
    """Build the plan of these questions; `InvalidInput` if together they exceed the budget."""
    values = {field.name: getattr(spec, field.name) for field in fields(Plan) if hasattr(spec, field.name)}
    plan = Plan(**{**values, "questions": tuple(planned_questions)})
    consumed_budget = {
        "epsilon": plan.epsilon if spec.delta == 0 else composed_epsilon(plan, spec.delta),
        "eta": plan.eta,
    }
    for limit, consumed in consumed_budget.items():
        budget = getattr(spec, limit)
        if budget is not None and consumed > budget:
            raise invalid(f"budget {limit}", f"questions that use at most {budget!r} together", consumed)
    return plan


def composed_epsilon(plan: Plan, delta: float) -> float:
    """Compose the epsilon (nats) of all questions at `delta` [GI, Thm 2].

    It uses the guarantees of each question.
    """
    from ldpopt.composition import compose

    everyone = [(question.epsilon, 0.0, question.eta) for question in plan.everyone]
    booklets = {(question.epsilon, 0.0, question.eta) for question in plan.booklets}
    epsilons = [
        float(compose([*everyone, *booklet]).epsilon_at(delta)) for booklet in ([[d] for d in booklets] or [[]])
    ]
    return min(plan.epsilon, max(epsilons))


def _exact(channel: ChannelLike | ExactChannel, question: QuestionSpec, bits: int) -> ExactChannel:
    place = f"question {question.name!r}: channel"
    if not isinstance(channel, ExactChannel):
        labelled = as_channel(channel, place)
        inputs = labelled.inputs if labelled is channel else question.categories
        if len(inputs) != labelled.shape[0]:
            raise invalid(place, f"{len(inputs)} rows, one a category", labelled.shape[0])
        channel = round_exact(labelled.matrix, bits, question.epsilon, question.eta, inputs, labelled.outputs)
    if channel.inputs != question.categories:
        raise invalid(place, f"the categories {question.categories[:8]} as its inputs", channel.inputs[:8])
    return channel


def _checksum(content: dict[str, Any]) -> str:
    try:
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (ValueError, RecursionError):
        raise invalid("plan", "finite numbers of moderate size", "others") from None
    return hashlib.sha256(canonical.encode()).hexdigest()
