"""Read ``survey.toml`` into a checked `SurveySpec`: questions, the form of answers in files, the budget."""

from __future__ import annotations

import importlib
import math
import pkgutil
from copy import copy
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import AOptimal, Design, FisherInformation, optimal_channel
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.delimited import PLAIN, Dialect
from ldpopt.values.deadline import Deadline
from ldpopt.values.distribution import Array, distribution, positive_epsilon, positive_integer, unit_interval
from ldpopt.values.labels import Label, distinct_labels
from ldpopt.values.results import ByValue
from ldpopt_survey.plan.precision import (
    HalfWidth,
    Precision,
    RelativeError,
    TestPower,
    Together,
    limits,
    prior_for_search,
)
from ldpopt_survey.plan.public_question import PublicQuestion
from ldpopt_survey.plan.reading import PLAIN_READING, Reading, check_answers, read_conditions, read_wordings
from ldpopt_survey.plan.targets import TargetSpec
from ldpopt_survey.records import check, choice, key, listed, load, mapping, record, text, within
from ldpopt_survey.sample.spec import SampleSpec

TEST_LEVEL = 0.05
DEFAULT_POWER = 0.8
DEFAULT_WIDTH = 0.05
"""The target half-width of a question that names no target."""

ORDER, PERSON = "row order", "respondent"
"""What `revealed` calls the order of the rows, and a respondent whom carried columns single out."""


@dataclass(frozen=True, eq=False)
class QuestionSpec(ByValue):
    """Question to plan: its name, its answers, and the target precision of the estimate.

    name : unique in the survey.
    column : the column of the answers in files; `name` by default.
    categories : the k possible answers, at least two; they must also differ when written as text. In a file the key is
        ``answers``; ``categories`` and ``options`` are accepted in its place.
    unknown : the category for an answer that is not listed; without one the file is refused.
    missing : the category for a missing answer; without one the file is refused.
    pilot : the expected shares of the categories, shape (k,), if known.
    epsilon (nats) : the guarantee of this question alone, if fixed.
    eta : its total variation, if capped.
    half_width : the target half-width of a 95 % interval, if any.
    power : the target power of a goodness-of-fit test, at level 0.05, of the pilot against `alternative`; by
        default 0.8.
    alternative : the shares that the test is to find, shape (k,).
    coefficient_of_variation : the largest standard error of each share, or of the mean, as a part of it, if any: 0.1
        asks for shares of 20 % with a standard error of 2 points. It needs expected shares above 0.
    asked_if : a table from earlier questions to the answers after which this one is asked: ``{"drug": ["yes"]}``. Both
        then share a report. "Not applicable" is one of its answers, so nobody sees who was asked. The pilot and target
        are about the respondents who are asked.
    reading : how answers are written in files, and how missing answers are treated.

    A type of question is a subclass, ``class Rating(QuestionSpec, type="rating")``, in a separate file of this folder.
    It defines its keys and their categories. It overrides `target`, `design` and `expected` if they differ.
    `NumberSpec` and `AnyOfSpec` are such types.

    >>> QuestionSpec("vote", ("no", "yes"), epsilon=1.0).categories
    ('no', 'yes')
    """

    name: str = key(text)
    categories: tuple[Label, ...] = key(name="answers", aliases=("categories", "options"))
    column: str = key(default="")
    unknown: Label | None = key(default=None)
    missing: Label | None = key(default=None)
    pilot: Any = key(default=None)
    epsilon: float | None = key(positive_epsilon, default=None)
    eta: float | None = key(unit_interval, default=None)
    half_width: float | None = key(within(0, 1, "()"), default=None)
    power: float | None = key(within(TEST_LEVEL, 1, "()"), default=None)
    alternative: Any = key(default=None)
    coefficient_of_variation: float | None = key(within(0, math.inf, "()"), default=None)
    asked_if: tuple[tuple[str, tuple[Label, ...]], ...] = key(read_conditions, default=())
    reading: Reading = key(record(Reading), default=PLAIN_READING, inline=True)

    option_of: str = field(default="", init=False)
    """The question with several options of which it is one."""

    type_name: ClassVar[str] = "choice"
    measure: ClassVar[str] = "shares"
    """What is estimated: the "shares" of the answers, or their "mean"."""
    types: ClassVar[dict[str, type[QuestionSpec]]] = {}

    def __post_init__(self) -> None:
        place = f"question {self.name!r}"
        check(self, place)
        if not isinstance(self.categories, (list, tuple)) or len(self.categories) < 2:
            raise invalid(f"{place}: categories", "a list of at least two", self.categories)
        categories = distinct_labels(self.categories, len(self.categories), f"{place}: categories")
        if self.alternative is None and self.power is not None:
            raise invalid(f"{place}: power", "an alternative beside it, the shares that a test is to find", "none")
        set_field = object.__setattr__
        set_field(self, "categories", categories)
        set_field(self, "column", text(self.column or self.name, f"{place}: column"))
        check_answers(self, place)
        if self.coefficient_of_variation is not None and self.scores is None and not self.shares.min() > 0:
            expected = "a pilot without a share 0 (give the least share that is to be told, or join answers)"
            raise invalid(f"{place}: coefficient_of_variation", expected, Phrase("a share 0"))
        if not (self.shares > 0).sum() > 1:
            raise invalid(f"{place}: pilot", "shares of at least two answers", Phrase("one answer alone"))
        if self.alternative is not None:
            alternative = distribution(self.alternative, f"{place}: alternative", len(categories), categories)
            if np.array_equal(alternative, self.shares):
                raise invalid(f"{place}: alternative", "shares that differ from the pilot", Phrase("the same"))
            set_field(self, "alternative", alternative)
            set_field(self, "power", self.power or DEFAULT_POWER)

    def __init_subclass__(cls, type: str) -> None:
        """Register the subclass for ``type = "..."`` in a file."""
        cls.type_name = type
        QuestionSpec.types[type] = cls

    @property
    def answers(self) -> tuple[QuestionSpec, ...]:
        """The questions that are answered under this name: itself, or one for each option."""
        return (self,)

    @property
    def scores(self) -> Array | None:
        """The answers (k,) as numbers from 0 to 1 if their mean is estimated; None if their shares are."""
        return None

    @property
    def lowest(self) -> float:
        """The smallest answer, in the units of the answers."""
        return 0.0

    @property
    def span(self) -> float:
        """The range of the answers, in their units."""
        return 1.0

    @property
    def shares(self) -> Array:
        """The pilot, or equal shares if there is none, shape (k,)."""
        k = len(self.categories)
        return np.full(k, 1 / k) if self.pilot is None else np.asarray(self.pilot)

    def with_pilot(self, pilot: Array) -> Self:
        """Return the question with another pilot (k,); it stays an option of its question."""
        question = copy(self)
        object.__setattr__(question, "pilot", pilot)
        return question

    @property
    def test(self) -> TestPower | None:
        """The target power, if there is one."""
        return None if self.alternative is None else TestPower(self.alternative, self.power or DEFAULT_POWER)

    @property
    def width(self) -> HalfWidth | None:
        """The target half-width; `DEFAULT_WIDTH` if the question names no target, None if it names others alone."""
        if self.half_width is None and not (self.alternative is None and self.coefficient_of_variation is None):
            return None
        return HalfWidth(self.half_width or DEFAULT_WIDTH)

    @property
    def relative(self) -> RelativeError | None:
        """The target coefficient of variation, if there is one."""
        return None if self.coefficient_of_variation is None else RelativeError(self.coefficient_of_variation)

    @property
    def target(self) -> Precision:
        """The precision that the respondents must reach: half-width, coefficient of variation, power, or several."""
        targets = [precision for precision in (self.width, self.relative, self.test) if precision is not None]
        return targets[0] if len(targets) == 1 else Together(tuple(targets))

    def design(self, epsilon: float, eta: float | None, deadline: Deadline, certify: bool = True) -> Design:
        """Design the optimal channel within epsilon (nats) and eta, if it is capped.

        It is optimal for the widest interval if a half-width is the only target. Otherwise it is optimal for the sum of
        variances, which is as good if all shares are equal.

        With a cap on eta and many answers it is optimal for even shares (`prior_for_search`).

        certify : False to leave out the proof.
        """
        prior = prior_for_search(self.shares, eta)
        is_for_widest = self.width is not None and self.test is None and np.ptp(prior) > 0
        criterion = self.width.criterion(len(self.shares)) if is_for_widest and self.width is not None else AOptimal()
        utility = FisherInformation(prior, criterion, inputs=self.categories)
        return optimal_channel(utility, limits(epsilon, eta), certify=certify, **deadline.passed)

    def channel_of(self, design: Design) -> Array:
        """Return the channel (k, m) of the answers, from a design of `design`."""
        return design.channel.matrix

    def expected(self, channel: Channel, respondents: float | None) -> dict[str, float]:
        """Return the precision that the channel should reach at `shares`, by name.

        respondents : the number of people at hand, counted as in a simple random sample, if known.
        """
        width, test = self.width or HalfWidth(DEFAULT_WIDTH), self.test
        variance = width.variance_of(channel, self.shares)
        expected = {"design_effect": variance / float(np.max(self.shares * (1 - self.shares)))}
        if self.width is not None:
            expected |= {"half_width": width.width, "respondents": float(width.respondents_for(variance))}
        if self.relative is not None:
            required = self.relative.respondents(channel, self.shares)
            largest = max(expected.get("respondents", 0.0), float(required))
            expected |= {"coefficient_of_variation": self.relative.limit, "respondents": largest}
            if respondents is not None:
                reached_error = self.relative.reached(channel, self.shares, max(1, int(respondents)))
                expected["coefficient_of_variation_at_hand"] = reached_error
        if test is not None:
            required = test.respondents(channel, self.shares)
            expected |= {"power": test.power, "respondents_for_power": float(required)}
        if respondents is not None:
            expected["half_width_at_hand"] = width.width_for(variance, respondents)
            if test is not None:
                expected["power_at_hand"] = test.reached(channel, self.shares, max(1, int(respondents)))
        return expected


QuestionSpec.types[QuestionSpec.type_name] = QuestionSpec


def question_types(package: ModuleType) -> dict[str, type[QuestionSpec]]:
    """List the types of questions by class name, after importing a package's modules."""
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    return {kind.__name__: kind for kind in QuestionSpec.types.values()}


def _question(value: Any, place: str) -> QuestionSpec:
    """Return a question unchanged, or the question of its ``type`` that a table describes."""
    if isinstance(value, QuestionSpec):
        return value
    data = dict(mapping(value, place))
    type_name = data.pop("type", QuestionSpec.type_name)
    if type_name != QuestionSpec.type_name:
        question_types(importlib.import_module(__package__))
    others = sorted(set(QuestionSpec.types) - {QuestionSpec.type_name})  # in any order of the imports
    type_name = choice(QuestionSpec.type_name, *others)(type_name, f"{place}: type")
    return load(QuestionSpec.types[type_name], data, place)


def _pair(value: Any, place: str) -> tuple[str, str]:
    if not isinstance(value, (list, tuple)) or len(value) != 2 or value[0] == value[1]:
        raise InvalidInput(f"{place}: each entry must be a pair of two different questions")
    return text(value[0], place), text(value[1], place)


def read_duplicates(word: Any, place: str) -> bool:
    """Return True for "first", the word in files for using the first of duplicate rows."""
    return bool(choice("refuse", "first")(word, place) == "first")


def duplicates_word(first: bool) -> str:
    """Return the word that `read_duplicates` reads."""
    return "first" if first else "refuse"


Revealed = tuple[tuple[str, tuple[Label, ...]], ...]
"""Pairs of a question, or `PERSON`, and what reveals it."""


def as_lists(pairs: Revealed) -> dict[str, list[str]]:
    """Convert the pairs to a table of lists, as files have them."""
    return {name: [str(source) for source in sources] for name, sources in pairs}


@dataclass(frozen=True)
class SurveySpec:
    """Survey to plan: its questions, and the privacy budget of one respondent.

    name : the name of the survey, in reports and on pages.
    round : the number of the round; a new round has new randomness and new privacy loss.
    rounds : the largest number of rounds per respondent, if it is fixed. The consent form then states the privacy loss
        of all reports together. Without respondent ids, further rounds are refused. With them, as in a panel that
        people join and leave, a ledger counts the rounds of each respondent.
    questions : at least one, with distinct names.
    epsilon (nats) : the budget of one respondent over all questions, if limited.
    eta : the largest total variation of all reports of one respondent together, if limited.
    design : the assignment of questions to respondents. "booklets": each respondent is asked one booklet, drawn
        independently of answers, with all of epsilon; a booklet is a question, or a few that share a report. "one
        question": each booklet is a single question. "joint": one report is about all answers together. "split":
        everybody is asked everything, and epsilon is split. The default is "booklets" if several questions share the
        budget, or "split" if it needs fewer respondents. A question with a separate epsilon is asked of everybody.
    together : pairs of questions with a two-way table: ``[["drug", "age"]]``.
    everyone : questions that everybody is asked.
    delta : if positive, all questions composed must be (epsilon, delta)-DP [GI, Thm 2]. If 0, epsilons add up.
    respondent : the column of respondent ids, if any. With ids, privatization should repeat a respondent's report
        instead of drawing a second one. It then requires a key file.
    first_of_duplicates : True to keep the first of several rows of a respondent, False to refuse the file; in a file
        "first" or "refuse".
    carry : columns that are public and go into the reports unchanged.
    public : questions, in a file ``[[public]]``, whose answers are sent as they are; they are carried, too.
    wording : for a question, its text: ``drug = "Did you take it?"``. It replaces the name in the web questionnaire, on
        paper, in the consent form and in reports. Translations are texts of the web questionnaire.
    revealed : accepted disclosures, in a file a table ``{ drug = ["age"] }``: pairs of a question and the sources that
        disclose its answer. A source is a carried column, the ids, a question with empty reports, or "row order". The
        key "respondent" is for carried columns that identify individuals. The consent form lists the disclosures.
        Privatization refuses all other sources that disclose an answer.
    targets : precision of tables, groups of respondents and regressions; in a file ``[[targets]]``. The planned
        respondents meet them, too.
    file : the format of text files of answers.
    nonresponse : the expected fraction of invited people who do not answer, in [0, 1). The plan states how many people
        to invite.
    design_effect : the ratio of respondents needed with clusters and weights to those of a simple random sample.
    sample : the sample design. Its columns (weights, strata) are carried, too.

    >>> SurveySpec.from_toml('''
    ... [survey]
    ... name = "demo"
    ... [[questions]]
    ... name = "vote"
    ... answers = ["no", "yes"]
    ... ''').questions[0].categories
    ('no', 'yes')
    """

    name: str = key(text, table="survey")
    questions: tuple[QuestionSpec, ...] = key(listed(_question))
    round: int = key(positive_integer, default=1, table="survey")
    rounds: int | None = key(positive_integer, default=None, table="survey")
    epsilon: float | None = key(positive_epsilon, default=None, table="budget")
    eta: float | None = key(unit_interval, default=None, table="budget")
    respondent: str | None = key(text, default=None, table="survey")
    first_of_duplicates: bool = key(
        default=False, name="duplicates", table="survey", load=read_duplicates, dump=duplicates_word
    )
    carry: tuple[str, ...] = key(listed(text), default=(), table="survey")
    delta: float = key(unit_interval, default=0.0, table="budget")
    design: str | None = key(choice("booklets", "one question", "joint", "split"), default=None, table="budget")
    together: tuple[tuple[str, str], ...] = key(listed(_pair), default=(), table="budget")
    everyone: tuple[str, ...] = key(listed(text), default=(), table="budget")
    file: Dialect = key(record(Dialect), default=PLAIN)
    nonresponse: float = key(within(0, 1, "[)"), default=0.0, table="planning")
    design_effect: float = key(within(1, 1e6), default=1.0, table="planning")
    sample: SampleSpec | None = key(record(SampleSpec), default=None)
    revealed: Revealed = key(read_conditions, default=(), table="survey", omit=True, dump=as_lists)
    public: tuple[PublicQuestion, ...] = key(listed(record(PublicQuestion)), default=(), omit=True)
    wording: tuple[tuple[str, str], ...] = key(read_wordings, default=(), omit=True, dump=dict)
    targets: tuple[TargetSpec, ...] = key(listed(record(TargetSpec)), default=(), omit=True)

    def __post_init__(self) -> None:
        check(self, "survey")
        if self.delta > 0 and self.epsilon is None:
            raise InvalidInput("[budget] delta requires [budget] epsilon")
        public_columns = [*(part.name for part in self.public), *(() if self.sample is None else self.sample.columns)]
        object.__setattr__(
            self, "carry", tuple(dict.fromkeys([*self.carry, *public_columns])) if public_columns else self.carry
        )
        check_columns(self)
        if self.together and self.design in ("one question", "split"):
            expected = f'none with design = "{self.design}" ("booklets" asks such questions together)'
            raise invalid("[budget] together", expected, " and ".join(self.together[0]))
        names = [question.name for question in self.questions]
        options = [part.name for q in self.questions for part in q.answers if part is not q]
        if len({*names, *options}) != len(names) + len(options):
            raise invalid("question names", "distinct ones, those of options included", Phrase("one twice"))
        left_out = [question.name for question in self.questions if question.reading.left_out]
        for name in (*self.everyone, *(name for pair in self.together for name in pair)):
            if name not in names:
                raise invalid("[budget] everyone and together", f"names of questions ({', '.join(names[:8])})", name)
            if name in left_out and name not in self.everyone:
                expected = 'questions with missing_answers = "category" (an empty report would leave out both answers)'
                raise invalid("[budget] together", expected, name)

        self._check_targets({*names, *options})

    def _check_targets(self, names: set[str]) -> None:
        """Raise `InvalidInput` unless all targets are about existing questions and groups."""
        means = [question.name for question in self.questions if question.scores is not None]
        for target in self.targets:
            place = f"[[targets]] {target.title}"
            if unknown_names := [name for name in target.names if name not in names]:
                expected = f"names of questions ({', '.join(sorted(names)[:8])})"
                if target.regression is not None:
                    expected += "; precision is planned for regressions on questions alone"
                raise invalid(place, expected, unknown_names[0])
            if target.by is not None and target.by not in names and target.by not in self.carry:
                expected = f"a public question, a carried column or a question ({', '.join([*self.carry, *names][:8])})"
                raise invalid(f"{place}: by", expected, target.by)
            group_shares = self.groups_of(target)
            if group_shares is not None and target.pilot is not None:
                raise invalid(f"{place}: pilot", "no pilot with a public column in `by`", Phrase("a pilot"))
            if target.by is not None and target.by in names and target.groups is not None:
                raise invalid(f"{place}: groups", f"none (the pilot of {target.by!r} has their shares)", Phrase("some"))
            if group_shares is None:
                choice_names = {part.name for question in self.questions for part in question.answers}
                single_names = (target.by,) if target.by is not None else target.names
                if several_options := [name for name in single_names if name in names and name not in choice_names]:
                    options = [q.answers[0].name for q in self.questions if q.name == several_options[0]]
                    raise invalid(place, f"one of its options, such as {options[0]!r}", several_options[0])
                left_out = [question.name for question in self.questions if question.reading.left_out]
                if empty_names := [name for name in self.asked_together(target) if name in left_out]:
                    expected = 'questions with missing_answers = "category" (an empty report would leave out others)'
                    raise invalid(place, expected, empty_names[0])
                if mean_names := [name for name in self.asked_together(target) if name in means]:
                    expected = "questions whose shares are wanted (the mean of a number takes a public `by`)"
                    raise invalid(place, expected, mean_names[0])
                if self.design in ("one question", "joint"):
                    expected = f'no design = "{self.design}" ("booklets" asks such questions together)'
                    raise invalid(place, expected, Phrase("this target"))

    def groups_of(self, target: TargetSpec) -> dict[str, float] | None:
        """Return the expected shares of the groups of a target by a public column; None for other targets."""
        if target.by is None or target.by in {part.name for q in self.questions for part in (q, *q.answers)}:
            return None
        texts = [public_question.texts for public_question in self.public if public_question.name == target.by]
        return target.within_group(texts[0] if texts else None)

    def asked_together(self, target: TargetSpec) -> tuple[str, ...]:
        """Return the questions of a target that must share a booklet."""
        questions = target.questions or tuple(
            question.name for question in self.questions if question.name != target.by
        )
        return target.names if target.by is None else (target.by, *questions)

    @property
    def shared(self) -> tuple[QuestionSpec, ...]:
        """The questions that share the budget by booklets; none if it is split."""
        candidates = [
            question for question in self.questions if question.epsilon is None and question.name not in self.everyone
        ]
        has_booklets = self.design in ("booklets", "one question", "joint") or (
            self.design is None and len(candidates) > 1
        )
        return tuple(candidates) if has_booklets and self.epsilon is not None else ()

    @classmethod
    def from_toml(cls, content: str | bytes) -> SurveySpec:
        """Read the survey described by TOML text; raise `InvalidInput` for any error in it.

        `schema.reference` prints every table and key. There is one ``[[questions]]`` for each question, with the keys
        of `QuestionSpec` and `Reading`.
        """
        return load(cls, strict.toml_value(content, "survey.toml"), "survey.toml")


def check_columns(survey: Any) -> None:
    """Raise `InvalidInput` unless names and columns of a spec or plan fit together.

    No column of answers may be a public column.
    """
    if not survey.questions:
        raise invalid("questions", "at least one", "none")
    if survey.rounds is not None and survey.round > survey.rounds and survey.respondent is None:
        expected = f"at most {survey.rounds}, the `rounds` that respondents were told of (ask them anew for more)"
        raise invalid("round", expected, survey.round)
    names, parts = [q.name for q in survey.questions], [part for q in survey.questions for part in q.answers]
    answers, public = [part.name for part in parts], [part.name for part in survey.public]
    for place, entries in (("question names", names), ("carried columns", survey.carry), ("public questions", public)):
        if len(set(entries)) != len(entries):
            raise invalid(place, "distinct", list(entries))
    if survey.first_of_duplicates and survey.respondent is None:
        raise invalid("duplicates", "a respondent column to find them by", "none")
    if survey.respondent in (*(part.column for part in parts), *public):
        raise invalid("respondent column", "a column that is no question's", survey.respondent)
    for column in survey.carry:
        if column in [part.column for part in parts]:
            raise invalid("carried columns", "none that holds raw answers", column)
        if column in (*names, *answers):
            raise invalid("carried columns", "none named like a question", column)
    titled_names = {*public, *(getattr(part, "option_of", "") or part.name for part in parts)}
    if unknown_names := [name for name, _ in survey.wording if name not in titled_names]:
        raise invalid("wording", f"names of questions ({', '.join(sorted(titled_names)[:8])})", unknown_names[0])
    sources = [*survey.carry, *answers, *filter(None, [survey.respondent]), ORDER]
    for place, revealing in survey.revealed:
        for name, known_names in ((place, [*answers, PERSON]), *((column, sources) for column in revealing)):
            if name not in known_names:
                raise invalid("revealed", f"names out of {', '.join(map(str, known_names[:8]))}", name)
