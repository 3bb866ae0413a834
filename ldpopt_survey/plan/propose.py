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
from ldpopt.values.distribution import DEFAULT_BINS, MOST_CATEGORIES, Array, bin_labels, number_text, round_edges
from ldpopt.values.labels import Label
from ldpopt.values.results import Result
from ldpopt_survey.datafiles.columns import ColumnProfile, FileProfile
from ldpopt_survey.plan.boxes import Boxes, find_boxes, list_question, quoted_values, ticked_alone
from ldpopt_survey.plan.options_question import NO, YES, AnyOfSpec
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


@dataclass(frozen=True)
class Merging:
    """Answers that a proposal would count as another one, or as none: a guess, to be confirmed by a person.

    question : the question. told : what would be merged, for the holder of the answers alone.
    accept, decline : the options of the command line that confirm it and that keep the answers apart.
    """

    question: str
    told: str
    accept: tuple[str, ...]
    decline: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ProposedQuestion(Result):
    """A question that a column could become, with remarks for whoever reads the proposal.

    seen : what was counted in the file, for the holder of the answers alone.
    merges : the guesses that merge or drop answers.

    >>> ProposedQuestion(QuestionSpec("vote", ("no", "yes")), seen=("Seen once in the file: 'yes'.",)).spec.name
    'vote'
    """

    spec: QuestionSpec
    remarks: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    merges: tuple[Merging, ...] = ()

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
    def merges(self) -> list[Merging]:
        """The guesses of all questions that merge or drop answers."""
        return [merging for question in self.questions for merging in question.merges]

    @property
    def columns(self) -> list[str]:
        """The columns that the questions are read from."""
        return list(dict.fromkeys(part.column for question in self.questions for part in question.spec.answers))

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
    answers : for a column, entries that are answers although they look like codes for "no answer".
    merged, apart : columns whose answers that differ in capitals and blanks alone are one answer, or are not.
    blank_is_no, blank_is_missing : questions whose empty boxes were not ticked, or tell nothing.
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
    answers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    merged: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    blank_is_no: tuple[str, ...] = ()
    blank_is_missing: tuple[str, ...] = ()


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
    boxes = {made.spec.name: made for made in find_boxes(profile.columns, wishes.half_width)}
    boxes = {name: made for name, made in boxes.items() if name not in [column.name for column in profile.columns]}
    named = [*wishes.carry, *filter(None, [wishes.respondent]), *wishes.bins, *wishes.answers]
    named += [name for name in (*wishes.questions, *wishes.merged, *wishes.apart) if name not in boxes]
    named += [name for name in (*wishes.blank_is_no, *wishes.blank_is_missing) if name not in boxes]
    for name in (*named, *filter(None, wishes.missing_codes)):
        profile.column(name)
    ids = (
        column.name
        for column in profile.columns
        if _ID.match(column.name) and column.distinct and column.empty == 0 and column.rows > 1
    )
    respondent = wishes.respondent or next(ids, None)
    sample = _sample(profile, {respondent, *wishes.questions})
    carry = wishes.carry
    public = {*carry, *(() if sample is None else sample.columns)}
    declined = [column for name in wishes.blank_is_missing if name in boxes for column in boxes[name].columns]
    wishes = replace(wishes, blank_is_missing=(*wishes.blank_is_missing, *declined))
    boxed = {column: made for made in boxes.values() for column in made.columns}
    order = [boxes[name].columns[0] if name in boxes else name for name in wishes.questions]
    singly = {name for name in wishes.questions if name not in boxes}
    questions, aside = [], []
    for column in [profile.column(name) for name in order] or list(profile.columns):
        made = None if column.name in singly or boxed.get(column.name) is None else boxed[column.name]
        if column.name == respondent or column.name in public:
            if wishes.questions:
                raise invalid("questions", "columns that are not ids and not carried", column.name)
            continue
        if made is not None and made.spec.name not in wishes.blank_is_missing and not public & {*made.columns}:
            if column.name == made.columns[0]:
                questions.append(_boxes_question(made, wishes))
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


def _boxes_question(made: Boxes, wishes: Wishes) -> ProposedQuestion:
    """The question of columns of ticked boxes."""
    remarks = [f'"{made.text[:160]}"'] if made.text else []
    remarks.append(f"Boxes that people tick, in {len(made.columns)} columns.")
    if made.empty:
        remarks.append("An empty box counts as not ticked, also of people who did not see the question.")
    return ProposedQuestion(made.spec, tuple(remarks), (), _blanks(made.spec.name, made.empty, wishes))


def _blanks(name: str, empty: int, wishes: Wishes) -> tuple[Merging, ...]:
    if not empty or name in wishes.blank_is_no:
        return ()
    told = f"{empty:,} empty boxes would count as not ticked, also of people who did not see the question"
    return (Merging(name, told, ("--blank-is-no", name), ("--blank-is-missing", name)),)


def _tick_question(column: ColumnProfile, value: str, wishes: Wishes) -> ProposedQuestion:
    """The yes/no question of one box."""
    spec = QuestionSpec(
        column.name,
        (NO, YES),
        missing=NO,
        half_width=wishes.half_width,
        reading=Reading(((value, YES),), (), (), "counted"),
    )
    said = [f'"{column.wording[:160]}"'] if column.wording else []
    remarks = (*said, "One box: an empty cell counts as not ticked, also of people who did not see the question.")
    return ProposedQuestion(spec, remarks, (), _blanks(column.name, column.empty, wishes))


def _question(column: ColumnProfile, wishes: Wishes) -> ProposedQuestion | str:
    """The question, or the reason why the column cannot be one."""
    if not column.name.strip() or not column.name.isprintable() or len(column.name) > 200:
        return "its name is empty, too long or has signs that cannot be printed"
    if not column.plain:
        return "it holds lists, records or bytes"
    if column.answered == 0:
        return "it is empty"
    repeated = column.values is None or len(column.values) > column.answered / 2
    if _ID.match(column.name) and not column.distinct and repeated and column.name not in wishes.questions:
        return (
            f"it looks like respondents' ids, of which some stand twice (--respondent {column.name} takes it as such)"
        )
    if (tick := ticked_alone(column)) is not None and column.name not in wishes.blank_is_missing:
        return _tick_question(column, tick, wishes)
    codes, guessed = _missing_codes(column, wishes)
    if isinstance(listed := list_question(column, codes, wishes.half_width), AnyOfSpec):
        told = (*_blanks(column.name, column.empty, wishes), *_codes_asked(column, guessed))
        return ProposedQuestion(
            listed, (f"Lists in a cell, with {listed.reading.separator!r} between entries.",), (), told
        )
    if listed is not None and column.name not in wishes.bins:
        return listed
    values = None if column.values is None else {v: n for v, n in column.values.items() if v.strip() not in codes}
    declared = _declared(column, values, codes)
    values = dict.fromkeys(declared, 0) | (values or {}) if declared else values
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
    numeric = column.numeric > 0 and column.numeric >= 0.9 * (column.answered - words) and not declared
    few = values is not None and len(values) <= (MAX_WHOLE_NUMBERS if numeric else MOST_CATEGORIES)
    if column.name in wishes.bins or (numeric and not few):
        said = column.name in wishes.bins or column.name in wishes.questions
        spread = np.ptp(column.numbers) if len(column.numbers) else math.inf
        if column.distinct and column.whole and not said and spread <= 1.01 * column.rows and column.empty == 0:
            return "it numbers the rows"
        return _binned(column, column.numbers[~coded], codes, missing, wishes, guessed)
    if not few or values is None:
        return "every row has its own answer" if column.distinct else f"it has more than {MOST_CATEGORIES} answers"
    once_seen, asked = [], _codes_asked(column, guessed)
    if once := sorted(value for value, count in values.items() if count == 1):
        shown = ", ".join(map(repr, once[:5])) + (", ..." if len(once) > 5 else "")
        once_seen.append(f"Seen once in the file: {shown}. Is it a slip, or does it give somebody away?")
    if declared:
        remarks = ["Answers and their order as the file declares them."]
        if unchosen := [value for value in declared if not values[value]]:
            once_seen.append(f"Declared, and chosen by nobody: {quoted_values(unchosen)}.")
        return _proposed(column, declared, (), codes, missing, wishes, remarks, once_seen, asked)
    merged, spellings = ({}, {}) if column.name in wishes.apart else _spellings(values)
    if not spellings or len(merged) < 2:
        return _proposed(column, _sorted(values), (), codes, missing, wishes, (), once_seen, asked)
    categories = _sorted(merged)
    labels = {str(label): label for label in categories}
    pairs = tuple((spelling, labels[common]) for spelling, common in spellings.items())
    remarks = ["Answers that differ only in capitals and blanks are taken as one: `codes` says which."]
    if column.name not in wishes.merged:
        shown = ", ".join(f"{spelling!r} as {common!r}" for spelling, common in list(spellings.items())[:5])
        merging = f"answers that differ in capitals and blanks would count as one: {shown}"
        asked += (Merging(column.name, merging, ("--merge", column.name), ("--keep-apart", column.name)),)
    proposed = _proposed(column, categories, (), codes, missing, wishes, remarks, once_seen, asked)
    reading = replace(proposed.spec.reading, codes=pairs)
    return replace(proposed, spec=replace(proposed.spec, reading=reading))


def _codes_asked(column: ColumnProfile, guessed: Sequence[str]) -> tuple[Merging, ...]:
    """What the guessed codes for "no answer" would drop."""
    return tuple(
        Merging(
            column.name, f"{code!r} would count as no answer",
            ("--missing-code", f"{column.name}={code}"), ("--answer", f"{column.name}={code}"),
        )
        for code in guessed
    )  # fmt: skip


def _declared(column: ColumnProfile, values: Mapping[str, int] | None, codes: Sequence[str]) -> list[str]:
    """The categories that the file declares, in order, without codes for missing answers; none if answers are others.

    Answers without a label, beside labels of numbers, have the place of their number.
    """
    labels = [(number, label) for number, label in column.levels if label.strip() not in codes]
    known = {label for _, label in labels}
    others = [value for value in values or () if value not in known]
    if not labels or values is None or len(labels) + len(others) > MOST_CATEGORIES:
        return []
    if not others:
        return [label for _, label in labels]
    if len(others) > MAX_WHOLE_NUMBERS or not all(map(_is_number, others)) or any(n is None for n, _ in labels):
        return []
    pairs = [*((float(number or 0), label) for number, label in labels), *((float(text), text) for text in others)]
    return [label for _, label in sorted(pairs)]


def _binned(
    column: ColumnProfile,
    numbers: Array,
    codes: tuple[str, ...],
    missing: int,
    wishes: Wishes,
    guessed: tuple[str, ...],
) -> ProposedQuestion | str:
    asked = wishes.bins.get(column.name, DEFAULT_BINS)
    if not len(numbers):
        if column.name in wishes.bins:
            raise invalid("bins", "a column of numbers", Phrase("one without"), column.name)
        return "it has no number"
    edges = round_edges(numbers, asked) if isinstance(asked, int) else tuple(float(edge) for edge in asked)
    if not edges:
        return "its numbers are nearly all the same"
    labels = bin_labels(edges, column.whole)
    remarks, seen = ["Numbers, cut into bins."], [f"From {number_text(numbers.min())} to {number_text(numbers.max())}."]
    if column.numeric + missing < column.rows:
        remarks.append("Some cells are neither numbers nor codes for missing answers: `unknown` says where they go.")
    return _proposed(column, labels, edges, codes, missing, wishes, remarks, seen, _codes_asked(column, guessed))


def _proposed(
    column: ColumnProfile,
    categories: Sequence[Label],
    edges: tuple[float, ...],
    codes: tuple[str, ...],
    missing: int,
    wishes: Wishes,
    remarks: Sequence[str],
    seen: list[str],
    merges: tuple[Merging, ...],
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
    return ProposedQuestion(spec, (*said, *remarks), tuple(seen), merges)


def _missing_codes(column: ColumnProfile, wishes: Wishes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The codes for "no answer": the given ones, or else words that mean it and numbers far from the others.

    Returned twice: all of them, and those that are guesses.
    """
    if column.name in wishes.missing_codes or "" in wishes.missing_codes:
        own = [*wishes.missing_codes.get(column.name, ()), *wishes.missing_codes.get("", ())]
        return tuple(dict.fromkeys(own)), ()
    counted = column.words if column.words is not None else column.values
    words = [] if counted is None else [value.strip() for value in counted]
    words += [label for _, label in column.levels]
    codes = [word for word in words if word.strip().casefold() in _SAID_MISSING]
    if column.whole or column.values is not None:
        codes += [str(int(number)) for number in _codes_by_distance(column)]
    kept = {str(code) for code in wishes.answers.get(column.name, ())}
    guessed = tuple(code for code in dict.fromkeys(codes) if code not in kept)
    return guessed, guessed


def _codes_by_distance(column: ColumnProfile) -> list[float]:
    """Numbers that look like codes for "no answer".

    They are the usual negative codes (-7 to -9, -77, -99, and so on), far below the others and the opposite of none of
    them, or 7 to 9 (97 to 99, and so on) far above the others.
    """
    if column.values is not None:
        numbers = sorted({float(value) for value in column.values if _is_number(value)})
    else:
        numbers = np.unique(column.numbers).tolist()
    whole = [number for number in numbers if number == math.floor(number)]
    above = [number for number in numbers if number >= 0]
    below = [number for number in whole if number in _NEGATIVE_CODES and -number not in above]
    others = [number for number in numbers if number not in below]
    codes = below if len(others) > 1 and below and min(others) - max(below) >= 2 else []
    for digits in (1, 2, 3, 4, 5):
        top = 10**digits - 1
        family = [number for number in whole if top - 3 < number <= top]
        others = [number for number in above if number not in family]
        if family and others and max(others) < family[0] and family[-1] == above[-1]:
            gap = family[0] - max(others)
            if gap >= max(2, 10 ** (digits - 1)):
                codes = codes + family
    return codes


_NEGATIVE_CODES = {
    *(-number for number in (4, 5, 6, 7, 8, 9, 66, 77, 88)),
    *(-(10**digits - place) for digits in (2, 3, 4, 5) for place in (1, 2, 3, 4)),
    *(-int(str(digit) * length) for digit in (6, 7, 8, 9) for length in (3, 4, 5)),
}
"""Negative numbers that usually stand for a missing answer; -1 to -3 are as often answers."""


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
