"""From the text of ``survey.toml`` to a checked `SurveySpec`: questions, how answers are written, the budget."""

from __future__ import annotations

import importlib
import math
import pkgutil
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import AOptimal, Design, FisherInformation, optimal_channel
from ldpopt.errors import Phrase, invalid
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
from ldpopt_survey.plan.reading import PLAIN_READING, Reading, check_answers, conditions, wordings
from ldpopt_survey.plan.targets import TargetSpec
from ldpopt_survey.records import check, choice, key, listed, load, mapping, record, text, within
from ldpopt_survey.sample.spec import SampleSpec

LEVEL_OF_TESTS = 0.05
DEFAULT_POWER = 0.8
DEFAULT_WIDTH = 0.05
"""The target half-width of a question that names no target."""

ORDER, PERSON = "row order", "respondent"
"""What `revealed` calls the order of the rows, and a respondent whom carried columns single out."""


@dataclass(frozen=True, eq=False)
class QuestionSpec(ByValue):
    """A question to plan: its name, its answers, and how precise the estimate shall be.

    name : unique in the survey. column : the column of the answers in files; `name` by default.
    categories : the k possible answers, at least two; they must also differ when written as text.
    unknown : the category for an answer that is not listed; without one the file is refused.
    missing : the category for a missing answer; without one the file is refused.
    pilot : the expected shares of the categories, shape (k,), if known.
    epsilon (nats) : the guarantee of this question alone, if fixed. eta : its total variation, if capped.
    half_width : the target half-width of a 95 % interval, if any.
    power : the target power of a goodness-of-fit test, at level 0.05, of the pilot against `alternative`; by
        default 0.8.
    alternative : the shares that the test is to find, shape (k,).
    coefficient_of_variation : the largest standard error of each share, or of the mean, as a part of it, if any: 0.1
        asks for shares of 20 % with a standard error of 2 points. It needs expected shares above 0.
    asked_if : a table from questions before it to those of their answers after which this one is asked: ``{"drug":
        ["yes"]}``. Both then share a report, in which "not applicable" is an answer like any other, so that nobody sees
        who was asked. Its pilot and target are about those who are asked.
    reading : how answers are written in files, and how missing answers are treated.

    A type of question is a subclass, ``class Rating(QuestionSpec, type="rating")``, in a file of its own in this
    folder: its keys, the categories that they mean, and, where they are others, its `target`, `design` and `expected`
    precision. `NumberSpec` and `AnyOfSpec` are such types.

    >>> QuestionSpec("vote", ("no", "yes"), epsilon=1.0).categories
    ('no', 'yes')
    """

    name: str = key(text)
    categories: tuple[Label, ...] = key()
    column: str = key(default="")
    unknown: Label | None = key(default=None)
    missing: Label | None = key(default=None)
    pilot: Any = key(default=None)
    epsilon: float | None = key(positive_epsilon, default=None)
    eta: float | None = key(unit_interval, default=None)
    half_width: float | None = key(within(0, 1, "()"), default=None)
    power: float | None = key(within(LEVEL_OF_TESTS, 1, "()"), default=None)
    alternative: Any = key(default=None)
    coefficient_of_variation: float | None = key(within(0, math.inf, "()"), default=None)
    asked_if: tuple[tuple[str, tuple[Label, ...]], ...] = key(conditions, default=())
    reading: Reading = key(record(Reading), default=PLAIN_READING, inline=True)

    option_of: str = field(default="", init=False)
    """The question with several options of which it is one."""

    type_name: ClassVar[str] = "choice"
    measure: ClassVar[str] = "shares"
    """What is estimated: the "shares" of the answers, or their "mean"."""
    types: ClassVar[dict[str, type[QuestionSpec]]] = {}

    def __post_init__(self) -> None:
        what = f"question {self.name!r}"
        check(self, what)
        if not isinstance(self.categories, (list, tuple)) or len(self.categories) < 2:
            raise invalid(f"{what}: categories", "a list of at least two", self.categories)
        categories = distinct_labels(self.categories, len(self.categories), f"{what}: categories")
        if self.alternative is None and self.power is not None:
            raise invalid(f"{what}: power", "an alternative beside it, the shares that a test is to find", "none")
        put = object.__setattr__
        put(self, "categories", categories)
        put(self, "column", text(self.column or self.name, f"{what}: column"))
        check_answers(self, what)
        if self.coefficient_of_variation is not None and self.scores is None and not self.shares.min() > 0:
            expected = "a pilot without a share 0 (give the least share that is to be told, or join answers)"
            raise invalid(f"{what}: coefficient_of_variation", expected, Phrase("a share 0"))
        if not (self.shares > 0).sum() > 1:
            raise invalid(f"{what}: pilot", "shares of at least two answers", Phrase("one answer alone"))
        if self.alternative is not None:
            moved = distribution(self.alternative, f"{what}: alternative", len(categories), categories)
            if np.array_equal(moved, self.shares):
                raise invalid(f"{what}: alternative", "shares that differ from the pilot", Phrase("the same"))
            put(self, "alternative", moved)
            put(self, "power", self.power or DEFAULT_POWER)

    def __init_subclass__(cls, type: str) -> None:
        """Let ``type = "..."`` in a file mean a subclass."""
        cls.type_name = type
        QuestionSpec.types[type] = cls

    @property
    def answers(self) -> tuple[QuestionSpec, ...]:
        """The questions that are answered under this name: itself, or one for each option."""
        return (self,)

    @property
    def scores(self) -> Array | None:
        """(k,) the answers as numbers from 0 to 1 where their mean is wanted; None where their shares are."""
        return None

    @property
    def least(self) -> float:
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
        """What the respondents must suffice for: half-width, coefficient of variation, power, or several of these."""
        wanted = [precision for precision in (self.width, self.relative, self.test) if precision is not None]
        return wanted[0] if len(wanted) == 1 else Together(tuple(wanted))

    def design(self, epsilon: float, eta: float | None, deadline: Deadline) -> Design:
        """The optimal channel within epsilon (nats) and eta, if that is capped: for the widest interval where a
        half-width alone is wanted, else for the sum of variances, which is as good where all shares are equal.

        With a cap on eta and many answers it is optimal for even shares (`prior_for_search`).
        """
        prior = prior_for_search(self.shares, eta)
        widest = self.width is not None and self.test is None and np.ptp(prior) > 0
        criterion = self.width.criterion(len(self.shares)) if widest and self.width is not None else AOptimal()
        utility = FisherInformation(prior, criterion, inputs=self.categories)
        return optimal_channel(utility, limits(epsilon, eta), **deadline.passed)

    def channel_of(self, design: Design) -> Array:
        """(k, m) the channel of the answers, by a design of `design`."""
        return design.channel.matrix

    def expected(self, channel: Channel, people: float | None) -> dict[str, float]:
        """The precision that the channel should reach at `shares`, by name.

        people : the number of people at hand, counted as in a simple random sample, if known.
        """
        width, test = self.width or HalfWidth(DEFAULT_WIDTH), self.test
        variance = width.variance_of(channel, self.shares)
        expected = {"design_effect": variance / float(np.max(self.shares * (1 - self.shares)))}
        if self.width is not None:
            expected |= {"half_width": width.width, "respondents": float(width.respondents_for(variance))}
        if self.relative is not None:
            needed = self.relative.respondents(channel, self.shares)
            most = max(expected.get("respondents", 0.0), float(needed))
            expected |= {"coefficient_of_variation": self.relative.limit, "respondents": most}
            if people is not None:
                reached = self.relative.reached(channel, self.shares, max(1, int(people)))
                expected["coefficient_of_variation_at_hand"] = reached
        if test is not None:
            needed = test.respondents(channel, self.shares)
            expected |= {"power": test.power, "respondents_for_power": float(needed)}
        if people is not None:
            expected["half_width_at_hand"] = width.width_for(variance, people)
            if test is not None:
                expected["power_at_hand"] = test.reached(channel, self.shares, max(1, int(people)))
        return expected


QuestionSpec.types[QuestionSpec.type_name] = QuestionSpec


def question_types(room: ModuleType) -> dict[str, type[QuestionSpec]]:
    """The types of questions by the names of their classes, after every module of a package was imported."""
    for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        importlib.import_module(module.name)
    return {kind.__name__: kind for kind in QuestionSpec.types.values()}


def _question(value: Any, what: str) -> QuestionSpec:
    """A question as it is, or the one of its ``type`` that a table describes."""
    if isinstance(value, QuestionSpec):
        return value
    data = dict(mapping(value, what))
    word = data.pop("type", QuestionSpec.type_name)
    if word != QuestionSpec.type_name:
        question_types(importlib.import_module(__package__))
    word = choice(*QuestionSpec.types)(word, f"{what}: type")
    return load(QuestionSpec.types[word], data, what)


def _pair(value: Any, what: str) -> tuple[str, str]:
    if not isinstance(value, (list, tuple)) or len(value) != 2 or value[0] == value[1]:
        raise invalid(what, "pairs of two different questions", value if isinstance(value, str) else Phrase("another"))
    return text(value[0], what), text(value[1], what)


def keeps_first(word: Any, what: str) -> bool:
    """Whether the first of duplicate rows is kept, from the word "refuse" or "first" in a file."""
    return bool(choice("refuse", "first")(word, what) == "first")


def in_a_word(first: bool) -> str:
    """The word that `keeps_first` reads."""
    return "first" if first else "refuse"


Revealed = tuple[tuple[str, tuple[Label, ...]], ...]
"""Pairs of a question, or `PERSON`, and what reveals it."""


def as_lists(pairs: Revealed) -> dict[str, list[str]]:
    """The pairs as a table of lists, as files have them."""
    return {name: [str(source) for source in by] for name, by in pairs}


@dataclass(frozen=True)
class SurveySpec:
    """A survey to plan: its questions, and the privacy budget of one respondent.

    name : the name of the survey, in reports and on pages.
    round : the number of its wave; a new one has new randomness and new privacy loss.
    rounds : in how many waves a respondent takes part at most, if that is settled. The consent form then says what the
        reports of all together tell. Without respondent ids there are no more waves; with them, as in a panel that
        people join and leave, a ledger counts the waves of each.
    questions : at least one, with distinct names.
    epsilon (nats) : the budget of one respondent over all questions, if limited.
    eta : the largest total variation of all reports of one respondent together, if limited.
    design : who is asked what. "booklets": each respondent is asked one booklet, a question or a few that share a
        report, with all of epsilon; which one is drawn without regard to answers. "one question": each booklet is a
        single question. "joint": one report is about all answers together. "split": everybody is asked everything,
        and epsilon is split. By default "booklets", if several questions share the budget, or "split" where that needs
        fewer respondents. A question with an epsilon of its own is asked of everybody.
    together : pairs of questions of which a two-way table is wanted: ``[["drug", "age"]]``. everyone : questions that
        everybody is asked.
    delta : if positive, all questions composed must be (epsilon, delta)-DP [GI, Thm 2]. If 0, epsilons add up.
    respondent : the column of respondent ids, if any. With ids, privatization should repeat a respondent's report
        instead of drawing a second one (memoised words), and asks for a key file.
    first_of_duplicates : if a respondent has several rows, whether to keep the first or refuse the file; in a file
        "first" or "refuse".
    carry : columns that are public and go into the reports unchanged.
    public : questions, in a file ``[[public]]``, whose answers are sent as they are; they are carried, too.
    wording : for a question, the words in which it is asked: ``drug = "Did you take it?"``. They stand in place of its
        name on the page, on paper, in the consent form and in reports. Translations are texts of the page.
    revealed : what may be published although it tells an answer: pairs of the question and of the carried columns, ids,
        questions with empty reports, or "row order", that tell it; in a file a table ``{ drug = ["age"] }``. A key
        "respondent" stands for whom carried columns single out. The consent form says so. Anything else that tells an
        answer is refused when answers are privatized.
    targets : precision that tables, groups of respondents and regressions must reach, beside the questions; in a file
        ``[[targets]]``. The fewest respondents meet them, too.
    file : how files of answers are written, if they are text.
    nonresponse : the share of invited people who will not answer, in [0, 1). The plan says how many to invite.
    design_effect : the factor by which clusters and weights raise the respondents needed, compared with a simple random
        sample.
    sample : how respondents were drawn. Its columns (weights, strata) are carried, too.

    >>> SurveySpec.from_toml('''
    ... [survey]
    ... name = "demo"
    ... [[questions]]
    ... name = "vote"
    ... categories = ["no", "yes"]
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
    first_of_duplicates: bool = key(default=False, name="duplicates", table="survey", load=keeps_first, dump=in_a_word)
    carry: tuple[str, ...] = key(listed(text), default=(), table="survey")
    delta: float = key(unit_interval, default=0.0, table="budget")
    design: str | None = key(choice("booklets", "one question", "joint", "split"), default=None, table="budget")
    together: tuple[tuple[str, str], ...] = key(listed(_pair), default=(), table="budget")
    everyone: tuple[str, ...] = key(listed(text), default=(), table="budget")
    file: Dialect = key(record(Dialect), default=PLAIN)
    nonresponse: float = key(within(0, 1, "[)"), default=0.0, table="planning")
    design_effect: float = key(within(1, 1e6), default=1.0, table="planning")
    sample: SampleSpec | None = key(record(SampleSpec), default=None)
    revealed: Revealed = key(conditions, default=(), table="survey", omit=True, dump=as_lists)
    public: tuple[PublicQuestion, ...] = key(listed(record(PublicQuestion)), default=(), omit=True)
    wording: tuple[tuple[str, str], ...] = key(wordings, default=(), omit=True, dump=dict)
    targets: tuple[TargetSpec, ...] = key(listed(record(TargetSpec)), default=(), omit=True)

    def __post_init__(self) -> None:
        check(self, "survey")
        if self.delta > 0 and self.epsilon is None:
            raise invalid("[budget] delta", "an epsilon beside it", "none")
        more = [*(asked.name for asked in self.public), *(() if self.sample is None else self.sample.columns)]
        object.__setattr__(self, "carry", tuple(dict.fromkeys([*self.carry, *more])) if more else self.carry)
        check_columns(self)
        if self.together and self.design in ("one question", "split"):
            expected = f'none with design = "{self.design}" ("booklets" asks such questions together)'
            raise invalid("[budget] together", expected, " and ".join(self.together[0]))
        names = [question.name for question in self.questions]
        options = [asked.name for q in self.questions for asked in q.answers if asked is not q]
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
        """`InvalidInput` unless all targets are about questions and groups that there are."""
        means = [question.name for question in self.questions if question.scores is not None]
        for target in self.targets:
            what = f"[[targets]] {target.title}"
            if unknown := [name for name in target.names if name not in names]:
                expected = f"names of questions ({', '.join(sorted(names)[:8])})"
                if target.regression is not None:
                    expected += "; precision is planned for regressions on questions alone"
                raise invalid(what, expected, unknown[0])
            if target.by is not None and target.by not in names and target.by not in self.carry:
                expected = f"a public question, a carried column or a question ({', '.join([*self.carry, *names][:8])})"
                raise invalid(f"{what}: by", expected, target.by)
            within = self.groups_of(target)
            if within is not None and target.pilot is not None:
                raise invalid(f"{what}: pilot", "no pilot with a public column in `by`", Phrase("a pilot"))
            if target.by is not None and target.by in names and target.groups is not None:
                raise invalid(f"{what}: groups", f"none (the pilot of {target.by!r} has their shares)", Phrase("some"))
            if within is None:
                choices = {asked.name for question in self.questions for asked in question.answers}
                of_one = (target.by,) if target.by is not None else target.names
                if several := [name for name in of_one if name in names and name not in choices]:
                    options = [q.answers[0].name for q in self.questions if q.name == several[0]]
                    raise invalid(what, f"one of its options, such as {options[0]!r}", several[0])
                left_out = [question.name for question in self.questions if question.reading.left_out]
                if empty := [name for name in self.asked_together(target) if name in left_out]:
                    expected = 'questions with missing_answers = "category" (an empty report would leave out others)'
                    raise invalid(what, expected, empty[0])
                if mean := [name for name in self.asked_together(target) if name in means]:
                    expected = "questions whose shares are wanted (the mean of a number takes a public `by`)"
                    raise invalid(what, expected, mean[0])
                if self.design in ("one question", "joint"):
                    expected = f'no design = "{self.design}" ("booklets" asks such questions together)'
                    raise invalid(what, expected, Phrase("this target"))

    def groups_of(self, target: TargetSpec) -> dict[str, float] | None:
        """Return the expected shares of the groups of a target by a public column; None for other targets."""
        if target.by is None or target.by in {part.name for q in self.questions for part in (q, *q.answers)}:
            return None
        texts = [asked.texts for asked in self.public if asked.name == target.by]
        return target.within_group(texts[0] if texts else None)

    def asked_together(self, target: TargetSpec) -> tuple[str, ...]:
        """Return the questions of a target that must share a booklet."""
        every = target.questions or tuple(question.name for question in self.questions if question.name != target.by)
        return target.names if target.by is None else (target.by, *every)

    @property
    def shared(self) -> tuple[QuestionSpec, ...]:
        """The questions that share the budget by booklets; none if it is split."""
        free = [
            question for question in self.questions if question.epsilon is None and question.name not in self.everyone
        ]
        drawn = self.design in ("booklets", "one question", "joint") or (self.design is None and len(free) > 1)
        return tuple(free) if drawn and self.epsilon is not None else ()

    @classmethod
    def from_toml(cls, content: str | bytes) -> SurveySpec:
        """The survey described by TOML text; anything wrong in it is `InvalidInput`.

        `schema.reference` prints every table and key. There is one ``[[questions]]`` for each question, with the keys
        of `QuestionSpec` and `Reading`.
        """
        return load(cls, strict.toml_value(content, "survey.toml"), "survey.toml")


def check_columns(survey: Any) -> None:
    """`InvalidInput` unless names and columns of a spec or plan fit together, and no column of answers is carried."""
    if not survey.questions:
        raise invalid("questions", "at least one", "none")
    if survey.rounds is not None and survey.round > survey.rounds and survey.respondent is None:
        told = f"at most {survey.rounds}, the `rounds` that respondents were told of (ask them anew for more)"
        raise invalid("round", told, survey.round)
    names, asked = [q.name for q in survey.questions], [part for q in survey.questions for part in q.answers]
    answers, public = [part.name for part in asked], [part.name for part in survey.public]
    for what, entries in (("question names", names), ("carried columns", survey.carry), ("public questions", public)):
        if len(set(entries)) != len(entries):
            raise invalid(what, "distinct", list(entries))
    if survey.first_of_duplicates and survey.respondent is None:
        raise invalid("duplicates", "a respondent column to find them by", "none")
    if survey.respondent in (*(part.column for part in asked), *public):
        raise invalid("respondent column", "a column that is no question's", survey.respondent)
    for column in survey.carry:
        if column in [part.column for part in asked]:
            raise invalid("carried columns", "none that holds raw answers", column)
        if column in (*names, *answers):
            raise invalid("carried columns", "none named like a question", column)
    titled = {*public, *(getattr(part, "option_of", "") or part.name for part in asked)}
    if unknown := [name for name, _ in survey.wording if name not in titled]:
        raise invalid("wording", f"names of questions ({', '.join(sorted(titled)[:8])})", unknown[0])
    sources = [*survey.carry, *answers, *filter(None, [survey.respondent]), ORDER]
    for what, by in survey.revealed:
        for name, known in ((what, [*answers, PERSON]), *((column, sources) for column in by)):
            if name not in known:
                raise invalid("revealed", f"names out of {', '.join(map(str, known[:8]))}", name)
