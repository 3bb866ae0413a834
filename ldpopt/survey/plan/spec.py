"""From the text of ``survey.toml`` to a checked `SurveySpec`: questions, how answers are written, the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ldpopt import stricttoml
from ldpopt.datafiles.dialect import PLAIN, Dialect
from ldpopt.distribution import distribution, number, positive_epsilon, positive_integer, unit_interval
from ldpopt.errors import invalid
from ldpopt.labels import Label, as_text, distinct_labels, from_jsonable, to_jsonable
from ldpopt.results import ByValue
from ldpopt.survey.sample.spec import SampleSpec

MISSING_ANSWERS = ("refuse", "counted", "category", "left out")
MOST_CODES = 10_000


@dataclass(frozen=True)
class Reading:
    """How an entry of a file becomes a category, and how missing answers are treated.

    codes : the category for each entry, with the entry as text: ``{"1": "yes", "2": "no"}`` or pairs.
    bins : the m - 1 rising edges between m categories of numbers; a number on an edge belongs to the category above it.
    missing_codes : entries that mean "no answer", besides an empty cell, such as -9, 99 or "refused". They are
        recognised before codes and bins.
    missing_answers : how missing answers are treated.

    - ``"refuse"``: the file is refused.
    - ``"counted"``: they count as the category `missing`, as if it had been answered.
    - ``"category"``: the category `missing` stands for them and for nothing else. Whether somebody answered is
    protected like the answer. Shares among the people who answered are estimated, too.
    - ``"left out"``: their report is empty. Everybody sees who did not answer; given answers are protected.

    Anything else is `InvalidInput`.

    >>> Reading(bins=(1000, 2000), missing_codes=(-9,)).missing_codes
    ('-9',)
    """

    codes: tuple[tuple[str, Label], ...] = ()
    bins: tuple[float, ...] = ()
    missing_codes: tuple[str, ...] = ()
    missing_answers: str = "refuse"

    def __post_init__(self) -> None:
        codes = self.codes.items() if isinstance(self.codes, Mapping) else self.codes
        if not isinstance(self.missing_codes, (list, tuple)) or not isinstance(self.bins, (list, tuple)):
            raise invalid("bins and missing_codes", "lists", type(self.bins).__name__)
        try:
            pairs = tuple((_text(code, "codes"), label) for code, label in codes)
        except (TypeError, ValueError) as error:
            raise invalid("codes", 'a table from codes to categories, { "1" = "yes" }', type(error).__name__) from None
        bins = tuple(number(edge, "bins") for edge in self.bins)
        missing = tuple(_text(code, "missing_codes") for code in self.missing_codes)
        if any(not low < high for low, high in pairwise(bins)):
            raise invalid("bins", "rising edges", list(bins)[:8])
        if pairs and bins:
            raise invalid("codes and bins", "one of them", "both")
        for what, found in (("codes", [code for code, _ in pairs]), ("missing_codes", list(missing))):
            if len(set(found)) != len(found) or len(found) > MOST_CODES:
                raise invalid(what, f"distinct ones, at most {MOST_CODES}", f"{len(found)}")
        if self.missing_answers not in MISSING_ANSWERS:
            raise invalid("missing_answers", " or ".join(f'"{one}"' for one in MISSING_ANSWERS), self.missing_answers)
        for name, value in (("codes", pairs), ("bins", bins), ("missing_codes", missing)):
            object.__setattr__(self, name, value)

    @property
    def left_out(self) -> bool:
        """Whether missing answers have empty reports."""
        return self.missing_answers == "left out"

    @property
    def own_category(self) -> bool:
        """Whether missing answers have a category of their own."""
        return self.missing_answers == "category"

    def require(self, categories: tuple[Label, ...], missing: Label | None, what: str) -> None:
        """`InvalidInput` unless this fits a question's categories and its `missing` category."""
        if self.bins and len(self.bins) + 1 != len(categories) - self.own_category:
            counted = f"{len(categories) - self.own_category - 1}, one fewer than the categories of numbers"
            raise invalid(f"{what}: bins", counted, len(self.bins))
        if self.bins and self.own_category and missing != categories[-1]:
            raise invalid(f"{what}: missing", "the last category, after those of the bins", missing)
        for _, label in self.codes:
            if not any(type(label) is type(one) and label == one for one in categories):
                raise invalid(f"{what}: codes", f"codes of the categories {categories[:8]}", label)
        if (missing is None) != (self.missing_answers in ("refuse", "left out")):
            expected = "a category in `missing`" if missing is None else 'no `missing`, or "counted" or "category"'
            raise invalid(f"{what}: missing_answers", expected, self.missing_answers)
        if self.own_category and len(categories) < 3:
            raise invalid(f"{what}: categories", "two besides the one of missing answers", len(categories) - 1)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values."""
        return {
            "codes": [[code, to_jsonable(label)] for code, label in self.codes],
            "bins": list(self.bins),
            "missing_codes": list(self.missing_codes),
            "missing_answers": self.missing_answers,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Reading:
        """The reading that `to_dict` gave; anything else is `InvalidInput`."""
        if not isinstance(data, dict) or set(data) != set(Reading().to_dict()) or not isinstance(data["codes"], list):
            raise invalid("plan question", "a reading of codes, bins, missing_codes and missing_answers", "another")
        if any(not isinstance(pair, list) or len(pair) != 2 for pair in data["codes"]):
            raise invalid("plan question", "codes as pairs", "others")
        codes = tuple((code, from_jsonable([label], "codes")[0]) for code, label in data["codes"])
        return cls(codes, data["bins"], data["missing_codes"], data["missing_answers"])


PLAIN_READING = Reading()


def _text(code: Any, what: str) -> str:
    """A code as text, in the form of data files."""
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    if isinstance(code, bool) or not isinstance(code, (str, int, float)) or code != code:
        raise invalid(what, "texts or numbers", type(code).__name__)
    made = as_text(code)
    if not made.strip() or len(made) > 200:
        raise invalid(what, "texts of 1 to 200 characters", f"{len(made)} characters")
    return made


@dataclass(frozen=True, eq=False)
class QuestionSpec(ByValue):
    """A question to plan: its name, its answers, and how precise the estimate shall be.

    name : unique in the survey. column : the column of the answers in files; `name` by default.
    categories : the k possible answers, at least two; they must also differ when written as text.
    unknown, missing : the category for an answer that is not listed, and for a missing one; None refuses the file.
    pilot : the expected shares of the categories, shape (k,), if known.
    epsilon (nats), eta : the guarantee of this question alone, if fixed.
    half_width : the target half-width of a 95 % interval, if any.
    power, alternative : the target power of a goodness-of-fit test of the pilot, at level 0.05, against the shares
        `alternative`, shape (k,). The power is 0.8 if only the alternative is given.
    reading : how answers are written in files, and how missing answers are treated.

    >>> QuestionSpec("vote", ("no", "yes"), epsilon=1.0).categories
    ('no', 'yes')
    """

    name: str
    categories: tuple[Label, ...]
    column: str = ""
    unknown: Label | None = None
    missing: Label | None = None
    pilot: Any = None
    epsilon: float | None = None
    eta: float | None = None
    half_width: float | None = None
    power: float | None = None
    alternative: Any = None
    reading: Reading = PLAIN_READING

    def __post_init__(self) -> None:
        what = f"question {self.name!r}"
        put = _setter(self)
        put("name", text(self.name, "question name"))
        put("column", text(self.column or self.name, f"{what}: column"))
        if not isinstance(self.categories, (list, tuple)) or len(self.categories) < 2:
            raise invalid(f"{what}: categories", "a list of at least two", self.categories)
        put("categories", distinct_labels(self.categories, len(self.categories), f"{what}: categories"))
        distinct_as_text(self.categories, f"{what}: categories")
        for name in ("unknown", "missing"):
            category_or_none(getattr(self, name), self.categories, f"{what}: {name}")
        if self.missing is not None and self.reading.missing_answers == "refuse":
            put("reading", replace(self.reading, missing_answers="counted"))
        self.reading.require(self.categories, self.missing, what)
        if self.alternative is not None:
            put("alternative", distribution(self.alternative, f"{what}: alternative", size=len(self.categories)))
            put("power", number(0.8 if self.power is None else self.power, f"{what}: power"))
            if self.power is None or not 0.05 < self.power < 1:
                raise invalid(f"{what}: power", "a number between 0.05 and 1", self.power)
        elif self.power is not None:
            raise invalid(f"{what}: power", "an alternative beside it, the shares that a test is to find", "none")
        if self.pilot is not None:
            k = len(self.categories)
            put("pilot", distribution(self.pilot, f"{what}: pilot", size=k, labels=self.categories))
        if self.epsilon is not None:
            put("epsilon", positive_epsilon(self.epsilon, f"{what}: epsilon"))
        if self.eta is not None:
            put("eta", unit_interval(self.eta, f"{what}: eta"))
        if self.half_width is not None:
            put("half_width", number(self.half_width, f"{what}: half_width"))
            if not 0 < self.half_width < 1:
                raise invalid(f"{what}: half_width", "a number between 0 and 1", self.half_width)


@dataclass(frozen=True)
class SurveySpec:
    """A survey to plan: its questions, and the privacy budget of one respondent.

    name, round : the survey, and the number of its wave. A new round has new randomness and new privacy loss.
    questions : at least one, with distinct names.
    epsilon (nats), eta : the budget of one respondent over all questions, if limited.
    delta : if positive, all questions composed must be (epsilon, delta)-DP [GI, Thm 2]. If 0, epsilons add up.
    respondent : the column of respondent ids, or None. With ids, privatization should repeat a respondent's report
        instead of drawing a second one (memoised words), and asks for a key file.
    first_of_duplicates : if a respondent has several rows, whether to keep the first (True) or refuse the file (False).
    carry : columns that are public and go into the reports unchanged.
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

    name: str
    questions: tuple[QuestionSpec, ...]
    round: int = 1
    epsilon: float | None = None
    eta: float | None = None
    respondent: str | None = None
    first_of_duplicates: bool = False
    carry: tuple[str, ...] = ()
    delta: float = 0.0
    file: Dialect = PLAIN
    nonresponse: float = 0.0
    design_effect: float = 1.0
    sample: SampleSpec | None = None

    def __post_init__(self) -> None:
        put = _setter(self)
        put("delta", unit_interval(self.delta, "budget delta"))
        if self.delta > 0 and self.epsilon is None:
            raise invalid("budget delta", "an epsilon beside it", "none")
        put("name", text(self.name, "survey name"))
        put("round", positive_integer(self.round, "round"))
        put("questions", tuple(self.questions))
        design = () if self.sample is None else self.sample.columns
        put("carry", tuple(dict.fromkeys([*self.carry, *design])) if design else tuple(self.carry))
        put("nonresponse", number(self.nonresponse, "nonresponse", "a share in [0, 1)"))
        put("design_effect", number(self.design_effect, "design_effect", "a number, 1 or more"))
        if not 0 <= self.nonresponse < 1:
            raise invalid("nonresponse", "a share in [0, 1)", self.nonresponse)
        if not 1 <= self.design_effect <= 1e6:
            raise invalid("design_effect", "a number from 1 to 1e6", self.design_effect)
        if self.epsilon is not None:
            put("epsilon", positive_epsilon(self.epsilon, "budget epsilon"))
        if self.eta is not None:
            put("eta", unit_interval(self.eta, "budget eta"))
        check_columns(self.questions, self.respondent, self.carry, self.first_of_duplicates)

    @classmethod
    def from_toml(cls, content: str | bytes) -> SurveySpec:
        """The survey described by TOML text; anything wrong in it is `InvalidInput`.

        Tables: ``[survey]`` (name, round, respondent, duplicates = "refuse" or "first", carry), ``[budget]``
        (epsilon, delta, eta), ``[file]`` (delimiter, encoding, decimal), ``[planning]`` (nonresponse, design_effect),
        ``[sample]`` (the fields of `SampleSpec`) and one ``[[questions]]`` for each question, with the fields of
        `QuestionSpec` and `Reading`.
        """
        data = stricttoml.loads(content, "survey.toml")
        _known(data, {"survey", "budget", "sample", "questions", "file", "planning"}, "survey.toml")
        survey, budget, questions = data.get("survey"), data.get("budget", {}), data.get("questions")
        if not isinstance(survey, dict) or not isinstance(budget, dict) or not isinstance(questions, list):
            raise invalid("survey.toml", "[survey], perhaps [budget], and [[questions]]", sorted(data))
        _known(survey, {"name", "round", "respondent", "duplicates", "carry"}, "[survey]")
        _known(budget, {"epsilon", "delta", "eta"}, "[budget]")
        file = _table(data, "file", {"delimiter", "encoding", "decimal"})
        planning = _table(data, "planning", {"nonresponse", "design_effect"})
        return cls(
            name=survey.get("name", ""),
            questions=tuple(_question(question) for question in questions),
            round=survey.get("round", 1),
            respondent=survey.get("respondent"),
            first_of_duplicates=duplicates_from_text(survey.get("duplicates", "refuse")),
            carry=texts(survey.get("carry", []), "carry"),
            file=Dialect(**file),
            **planning,
            sample=SampleSpec.from_dict(data["sample"]) if "sample" in data else None,
            **budget,
        )


def check_columns(questions: Any, respondent: str | None, carry: tuple[str, ...], first_of_duplicates: bool) -> None:
    """`InvalidInput` unless names and columns of a survey fit together, and no column of answers is carried."""
    if not questions:
        raise invalid("questions", "at least one", "none")
    names, columns = [q.name for q in questions], {q.column for q in questions}
    named = set(names)
    for what, found in (("question names", names), ("carried columns", list(carry))):
        if len(set(found)) != len(found):
            raise invalid(what, "distinct", found)
    if respondent is not None:
        text(respondent, "respondent column")
    if first_of_duplicates and respondent is None:
        raise invalid("duplicates", "a respondent column to find them by", "none")
    if respondent in columns:
        raise invalid("respondent column", "a column that is no question's", respondent)
    for column in carry:
        text(column, "carried column")
        if column in columns:
            raise invalid("carried columns", "none that holds raw answers", column)
        if column in named:
            raise invalid("carried columns", "none named like a question", column)


def duplicates_from_text(value: Any) -> bool:
    """Whether the first of duplicate rows is kept, from the word "refuse" or "first" in a file."""
    if value not in ("refuse", "first"):
        raise invalid("duplicates", '"refuse" or "first"', value)
    return bool(value == "first")


def distinct_as_text(labels: tuple[Label, ...], what: str) -> None:
    """`InvalidInput` unless the labels differ when they are written as text."""
    written = [as_text(label) for label in labels]
    if len(set(written)) != len(written) or "" in written:
        raise invalid(what, "labels that are distinct and not empty as text", written)


def category_or_none(value: Any, categories: tuple[Label, ...], what: str) -> None:
    """`InvalidInput` unless `value` is one of the categories, or None."""
    if value is not None and not any(type(value) is type(label) and value == label for label in categories):
        raise invalid(what, f"one of the categories {categories[:8]}", value)


def text(value: Any, what: str) -> str:
    """`value` as a non-empty string of at most 200 characters without control characters."""
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
        raise invalid(what, "a printable text of 1 to 200 characters", value)
    return value


def texts(value: Any, what: str) -> tuple[str, ...]:
    """`value` as a tuple of such strings."""
    if not isinstance(value, (list, tuple)):
        raise invalid(what, "a list of texts", value)
    return tuple(text(one, what) for one in value)


def _question(data: Any) -> QuestionSpec:
    fields = {"name", "column", "categories", "unknown", "missing", "pilot", "epsilon", "eta", "half_width"}
    fields |= {"power", "alternative"}
    reading = {"codes", "bins", "missing_codes", "missing_answers"}
    if not isinstance(data, dict):
        raise invalid("questions", "tables", type(data).__name__)
    _known(data, fields | reading, "[[questions]]")
    given = {name: value for name, value in data.items() if name not in reading}
    read = Reading(**{name: value for name, value in data.items() if name in reading})
    return QuestionSpec(**{"name": "", "categories": (), "reading": read, **given})


def _table(data: dict[str, Any], name: str, fields: set[str]) -> dict[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise invalid(f"[{name}]", "a table", type(found).__name__)
    _known(found, fields, f"[{name}]")
    return found


def _known(data: dict[str, Any], fields: set[str], what: str) -> None:
    if set(data) - fields:
        raise invalid(what, f"only {', '.join(sorted(fields))}", sorted(set(data) - fields)[0])


def _setter(made: Any) -> Any:
    return lambda name, value: object.__setattr__(made, name, value)
