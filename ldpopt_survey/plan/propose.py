"""A proposal of questions for a file: which columns could be asked, and with which answers.

A person then corrects it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import BINS, MOST_CATEGORIES, Array, bin_labels, round_edges, shown
from ldpopt.values.labels import Label
from ldpopt.values.results import Result
from ldpopt_survey.datafiles.columns import ColumnProfile, FileProfile
from ldpopt_survey.plan.reading import Reading
from ldpopt_survey.plan.spec import DEFAULT_WIDTH, QuestionSpec
from ldpopt_survey.sample.spec import SampleSpec

MAX_WHOLE_NUMBERS = 12
"""Up to this many different whole numbers are separate answers. More are cut into bins."""

NO_ANSWER = "no answer"

_ID = re.compile(r"(^|.*[_ .-])(id|nr|no|num|number|nummer|uuid|key|case|caseid|respondent|pseudonym)$", re.IGNORECASE)
_SAMPLE = {
    "weights": re.compile(
        r"(^|.*[_ .-])(weights?|wt|wgt|gewicht|poids|peso|pweight|dweight)([_ .-].*|$)", re.IGNORECASE
    ),
    "strata": re.compile(r"(^|.*[_ .-])(strat|stratum|strata|schicht)([_ .-].*|$)", re.IGNORECASE),
    "clusters": re.compile(r"(^|.*[_ .-])(psu|clusters?|klumpen)([_ .-].*|$)", re.IGNORECASE),
}
_SAID_MISSING = {
    "na", "n/a", "n.a.", "nan", "null", ".", "-", "--", "?", "missing", "no answer", "refused", "refusal", "don't know",
    "dont know", "do not know", "dk", "k.a.", "ka", "keine angabe", "weiß nicht", "weiss nicht", "verweigert",
    "sans réponse", "ne sait pas", "nsp", "nr", "no contesta", "no sabe", "ns/nc",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ProposedQuestion(Result):
    """A question that a column could become, with remarks for whoever reads the proposal.

    seen : what was counted in the file, for the holder of the answers alone.

    >>> ProposedQuestion(QuestionSpec("vote", ("no", "yes")), seen=("Seen once in the file: 'yes'.",)).spec.name
    'vote'
    """

    spec: QuestionSpec
    remarks: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "question": [self.spec.name],
            "categories": [len(self.spec.categories)],
            "remarks": [" ".join(self.remarks)],
        }


@dataclass(frozen=True, eq=False)
class Proposal(Result):
    """A proposal for a survey over a file: questions, bins, respondents' ids, and how respondents were drawn.

    questions : the columns that could be asked. aside : the other columns, each with the reason.
    respondent : the column of respondents' ids, if one looks like it.
    sample : columns that look like the weights, strata or clusters of the sample. carry : other public columns, which
        go into the reports unchanged.
    """

    questions: tuple[ProposedQuestion, ...]
    aside: tuple[tuple[str, str], ...]
    respondent: str | None = None
    carry: tuple[str, ...] = ()
    sample: SampleSpec | None = None

    def _columns(self) -> dict[str, list[Any]]:
        asked = self.questions
        columns: dict[str, list[Any]] = {
            "question": self.names,
            "categories": [len(question.spec.categories) for question in asked],
        }
        return columns | {"remarks": [" ".join(question.remarks) for question in asked]}

    @property
    def names(self) -> list[str]:
        """The names of the questions."""
        return [question.spec.name for question in self.questions]


@dataclass(frozen=True)
class Wishes:
    """What a person already knows about a file's columns, so that `propose` need not guess it.

    questions : the columns to ask, in this order; by default all that could be asked. respondent, carry : as in
        `Proposal`.
    bins : for a column, the edges of its bins or their number. missing_codes : for a column, or under "" for all of
        them, the codes that stand for "no answer".
    missing_answers : how missing answers are treated, as in `Reading`. A column without any refuses them.
    half_width : the target half-width of every question.

    >>> Wishes(("income",), bins={"income": (1000, 2000)}, missing_codes={"": ("-9",)}).missing_answers
    'category'
    """

    questions: tuple[str, ...] = ()
    respondent: str = ""
    carry: tuple[str, ...] = ()
    bins: Mapping[str, int | Sequence[float]] = field(default_factory=dict)
    missing_codes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    missing_answers: str = "category"
    half_width: float = DEFAULT_WIDTH


def propose(profile: FileProfile, wishes: Wishes | None = None) -> Proposal:
    """A proposal for every column of a file: categories, codes for missing answers, bins at round numbers.

    The proposal is made from the answers themselves, without privacy. Publishing it reveals which answers occur.
    `InvalidInput` for wishes that the file cannot fulfil.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from ldpopt_survey.datafiles.columns import profile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "people.csv")
    >>> _ = path.write_text("smokes,region\\n" + "1,a\\n" * 40 + "2,b\\n" * 15 + "9,a\\n" * 5)
    >>> made = propose(profile(path))
    >>> folder.cleanup()
    >>> made.questions[0].spec.categories, made.questions[0].spec.reading.missing_codes
    ((1, 2, 'no answer'), ('9',))
    """
    wishes = wishes or Wishes()
    named = [*wishes.questions, *wishes.carry, *filter(None, [wishes.respondent]), *wishes.bins]
    for name in (*named, *filter(None, wishes.missing_codes)):
        profile.column(name)
    ids = (
        column.name
        for column in profile.columns
        if _ID.match(column.name) and column.distinct and column.empty == 0 and column.rows > 1
    )
    respondent = wishes.respondent or next(ids, None)
    sample = _sample(profile, {respondent, *wishes.questions, *wishes.carry})
    carry = wishes.carry
    public = {*carry, *(() if sample is None else sample.columns)}
    order = [profile.column(name) for name in wishes.questions] or list(profile.columns)
    questions, aside = [], []
    for column in order:
        if column.name == respondent or column.name in public:
            if wishes.questions:
                raise invalid("questions", "columns that are not ids and not carried", column.name)
            continue
        proposed = _question(column, wishes)
        if isinstance(proposed, ProposedQuestion):
            questions.append(proposed)
        elif wishes.questions:
            raise invalid("question", "a column of few different answers, or of numbers", Phrase(proposed), column.name)
        else:
            aside.append((column.name, proposed))
    return Proposal(tuple(questions), tuple(aside), respondent, tuple(carry), sample)


def _sample(profile: FileProfile, taken: set[str | None]) -> SampleSpec | None:
    """The first columns without empty cells whose names say that they are weights, strata or clusters of the sample."""
    roles: dict[str, str] = {}
    for column in profile.columns:
        if column.name in taken or column.empty or not column.plain or not column.name.isprintable():
            continue
        for what, name in _SAMPLE.items():
            is_number = column.numeric == column.rows and bool((column.numbers >= 0).all())
            if name.match(column.name) and what not in roles and (what != "weights" or is_number):
                roles[what] = column.name
                break
    return SampleSpec(roles.get("weights"), roles.get("strata"), roles.get("clusters")) if roles else None


def _question(column: ColumnProfile, wishes: Wishes) -> ProposedQuestion | str:
    """The question, or the reason why the column cannot be one."""
    if not column.name.strip() or not column.name.isprintable() or len(column.name) > 200:
        return "its name is empty, too long or has signs that cannot be printed"
    if not column.plain:
        return "it holds lists, records or bytes"
    if column.answered == 0:
        return "it is empty"
    codes = _missing_codes(column, wishes)
    values = None if column.values is None else {v: n for v, n in column.values.items() if v.strip() not in codes}
    if values is not None and len(values) < 2:
        return "everybody has the same answer in it" if values else "it holds codes for missing answers alone"
    if column.values is not None and any(len(v) >= 200 for v in column.values):
        return "it holds long text"
    coded = np.isin(column.numbers, [float(code) for code in codes if _is_number(code)])
    words = _counted(column.words, codes)
    if column.values is None:
        missing = column.empty + words + math.ceil(column.numeric * coded.sum() / max(1, len(coded)))
    else:
        missing = column.empty + _counted(column.values, codes)
    numeric = column.numeric > 0 and column.numeric >= 0.9 * (column.answered - words)
    few = values is not None and len(values) <= (MAX_WHOLE_NUMBERS if numeric else MOST_CATEGORIES)
    if column.name in wishes.bins or (numeric and not few):
        said = column.name in wishes.bins or column.name in wishes.questions
        spread = np.ptp(column.numbers) if len(column.numbers) else math.inf
        if column.distinct and column.whole and not said and spread <= 1.01 * column.rows and column.empty == 0:
            return "it numbers the rows"
        return _binned(column, column.numbers[~coded], codes, missing, wishes)
    if not few or values is None:
        return "every row has its own answer" if column.distinct else f"it has more than {MOST_CATEGORIES} answers"
    once_seen = []
    if once := sorted(value for value, count in values.items() if count == 1):
        shown = ", ".join(map(repr, once[:5])) + (", ..." if len(once) > 5 else "")
        once_seen.append(f"Seen once in the file: {shown}. Is it a slip, or does it give somebody away?")
    merged, spellings = _spellings(values)
    categories = _sorted(merged)
    if not spellings or len(merged) < 2:
        return _proposed(column, _sorted(values), (), codes, missing, wishes, (), once_seen)
    labels = {str(label): label for label in categories}
    pairs = tuple((spelling, labels[common]) for spelling, common in spellings.items())
    remarks = ("Answers that differ only in capitals and blanks are taken as one: `codes` says which.",)
    proposed = _proposed(column, categories, (), codes, missing, wishes, remarks, once_seen)
    reading = replace(proposed.spec.reading, codes=pairs)
    return replace(proposed, spec=replace(proposed.spec, reading=reading))


def _binned(
    column: ColumnProfile, numbers: Array, codes: tuple[str, ...], missing: int, wishes: Wishes
) -> ProposedQuestion | str:
    asked = wishes.bins.get(column.name, BINS)
    if not len(numbers):
        if column.name in wishes.bins:
            raise invalid("bins", "a column of numbers", Phrase("one without"), column.name)
        return "it has no number"
    edges = round_edges(numbers, asked) if isinstance(asked, int) else tuple(float(edge) for edge in asked)
    if not edges:
        return "its numbers are nearly all the same"
    labels = bin_labels(edges, column.whole)
    remarks, seen = ["Numbers, cut into bins."], [f"From {shown(numbers.min())} to {shown(numbers.max())}."]
    if column.numeric + missing < column.rows:
        remarks.append("Some cells are neither numbers nor codes for missing answers: `unknown` says where they go.")
    return _proposed(column, labels, edges, codes, missing, wishes, remarks, seen)


def _proposed(
    column: ColumnProfile,
    categories: Sequence[Label],
    edges: tuple[float, ...],
    codes: tuple[str, ...],
    missing: int,
    wishes: Wishes,
    remarks: Sequence[str],
    seen: list[str],
) -> ProposedQuestion:
    policy = wishes.missing_answers if missing else "refuse"
    label = NO_ANSWER if NO_ANSWER not in categories else f"{NO_ANSWER} at all"
    own = policy == "category"
    if missing:
        about = "About " if column.values is None and codes else ""
        seen.append(f"{about}{missing:,} of {column.rows:,} answers are missing.")
    reading = Reading((), edges, codes, policy)
    spec = QuestionSpec(
        column.name,
        tuple(categories) + ((label,) if own else ()),
        missing=label if own else None,
        half_width=wishes.half_width,
        reading=reading,
    )
    said = [f'"{" ".join(column.wording.split())[:160]}"'] if column.wording else []
    return ProposedQuestion(spec, (*said, *remarks), tuple(seen))


def _missing_codes(column: ColumnProfile, wishes: Wishes) -> tuple[str, ...]:
    """The codes for "no answer": the given ones, or else words that mean it and numbers far from the others."""
    if column.name in wishes.missing_codes or "" in wishes.missing_codes:
        own = [*wishes.missing_codes.get(column.name, ()), *wishes.missing_codes.get("", ())]
        return tuple(dict.fromkeys(own))
    counted = column.words if column.words is not None else column.values
    words = [] if counted is None else [value.strip() for value in counted]
    codes = [word for word in words if word.casefold() in _SAID_MISSING]
    if column.whole or column.values is not None:
        codes += [str(int(number)) for number in _codes_by_distance(column)]
    return tuple(dict.fromkeys(codes))


def _codes_by_distance(column: ColumnProfile) -> list[float]:
    """Numbers that look like codes for "no answer".

    They are negative whole numbers in a column of others, or 7 to 9 (97 to 99, and so on) far above the others.
    """
    if column.values is not None:
        numbers = sorted({float(value) for value in column.values if _is_number(value)})
    else:
        numbers = np.unique(column.numbers).tolist()
    whole = [number for number in numbers if number == math.floor(number)]
    above = [number for number in numbers if number >= 0]
    below = [number for number in whole if number < 0]
    codes = below if len(above) > 1 and len(below) <= 5 and len(below) == len(numbers) - len(above) else []
    for digits in (1, 2, 3, 4, 5):
        top = 10**digits - 1
        family = [number for number in whole if top - 3 < number <= top]
        others = [number for number in above if number not in family]
        if family and others and max(others) < family[0] and family[-1] == above[-1]:
            gap = family[0] - max(others)
            if gap >= max(2, 10 ** (digits - 1)):
                codes = codes + family
    return codes


def _counted(values: Mapping[str, int] | None, codes: Sequence[str]) -> int:
    """How many cells hold one of the codes."""
    return sum(count for value, count in (values or {}).items() if value.strip() in codes)


def _sorted(values: Mapping[str, int]) -> Sequence[Label]:
    """The values in order: as numbers if all are whole numbers, else as texts, with numbers first."""
    if all(re.fullmatch(r"0|-?[1-9][0-9]{0,15}", value) for value in values):
        return sorted(map(int, values))
    return sorted(
        values, key=lambda text: (not _is_number(text), float(text) if _is_number(text) else 0, text.casefold(), text)
    )


def _spellings(values: Mapping[str, int]) -> tuple[dict[str, int], dict[str, str]]:
    """The answers with their counts, each in its commonest spelling, and the other spellings with that one.

    Spellings differ in capitals, blanks and the composition of letters alone.
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        groups.setdefault(" ".join(unicodedata.normalize("NFC", value).casefold().split()), []).append(value)
    merged: dict[str, int] = {}
    others: dict[str, str] = {}
    for spelled in groups.values():
        common = max(spelled, key=lambda spelling: (spelling == spelling.strip(), values[spelling], spelling))
        merged[common] = sum(values[spelling] for spelling in spelled)
        others |= {spelling: common for spelling in spelled if spelling != common}
    return merged, others


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*", text, re.ASCII) is not None and len(text) < 60
