"""Propose questions for a file: the columns that could be asked, and their answers.

A person then corrects the proposal.
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
from ldpopt_survey.plan.boxes import Boxes, find_boxes, list_question, only_ticked_value, quoted_values
from ldpopt_survey.plan.options_question import NO, YES, AnyOfSpec
from ldpopt_survey.plan.reading import Reading
from ldpopt_survey.plan.spec import DEFAULT_WIDTH, QuestionSpec
from ldpopt_survey.sample.spec import SampleSpec

MAX_INTEGER_ANSWERS = 12
"""Up to this many different whole numbers are separate answers. More are cut into bins."""

NO_ANSWER = "no answer"

_ID = re.compile(
    r"(^|.*[_ .-])(id|nr|no|num|number|nummer|uuid|key|case|respondent|pseudonym"
    r"|(p|s|u|hh|pers|person|subj|subject|user|resp|respondent|participant|patient|member|record|case)id)$",
    re.IGNORECASE,
)
_SAMPLE = {
    "weights": re.compile(
        r"(^|.*[_ .-])(weights?|wt|wgt|gewicht|poids|peso|pweight|dweight)([_ .-].*|$)", re.IGNORECASE
    ),
    "strata": re.compile(r"(^|.*[_ .-])(strat|stratum|strata|schicht)([_ .-].*|$)", re.IGNORECASE),
    "clusters": re.compile(r"(^|.*[_ .-])(psu|clusters?|klumpen)([_ .-].*|$)", re.IGNORECASE),
}
_WORDS_FOR_MISSING = {
    "na", "n/a", "n.a.", "nan", "null", ".", "-", "--", "?", "missing", "no answer", "refused", "refusal", "don't know",
    "dont know", "do not know", "dk", "k.a.", "ka", "keine angabe", "weiß nicht", "weiss nicht", "verweigert",
    "sans réponse", "ne sait pas", "nsp", "nr", "no contesta", "no sabe", "ns/nc",
}  # fmt: skip


@dataclass(frozen=True)
class Merging:
    """A guess that a person confirms: answers that a proposal would count as another one, or as none.

    - `question` : the question.
    - `change` : a description with the values that would be merged, for the holder of the answers alone.
    - `accept`, `decline` : the options of the command line that confirm it, and that keep the answers separate.
    """

    question: str
    change: str
    accept: tuple[str, ...]
    decline: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ProposedQuestion(Result):
    """Question that a column could become, with remarks for the reader of the proposal.

    observations : counts in the file, for the holder of the answers alone.
    merges : the guesses that merge or drop answers.

    >>> ProposedQuestion(QuestionSpec("vote", ("no", "yes")), observations=("Seen once in the file: 'yes'.",)).spec.name
    'vote'
    """

    spec: QuestionSpec
    remarks: tuple[str, ...] = ()
    observations: tuple[str, ...] = ()
    merges: tuple[Merging, ...] = ()

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "question": [self.spec.name],
            "categories": [len(self.spec.categories)],
            "remarks": [" ".join(self.remarks)],
        }


@dataclass(frozen=True, eq=False)
class Proposal(Result):
    """Proposal for a survey over a file: questions, bins, respondents' ids, and the sample design.

    - `questions` : the columns that could be asked.
    - `aside` : the other columns, each with the reason.
    - `respondent` : the column of respondents' ids, if one looks like it.
    - `sample` : columns that look like the weights, strata or clusters of the sample.
    - `carry` : other public columns, which go into the reports unchanged.
    """

    questions: tuple[ProposedQuestion, ...]
    aside: tuple[tuple[str, str], ...]
    respondent: str | None = None
    carry: tuple[str, ...] = ()
    sample: SampleSpec | None = None

    def _columns(self) -> dict[str, list[Any]]:
        questions = self.questions
        columns: dict[str, list[Any]] = {
            "question": self.names,
            "categories": [len(question.spec.categories) for question in questions],
        }
        return columns | {"remarks": [" ".join(question.remarks) for question in questions]}

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
class ProposalOptions:
    """Facts that a person knows about a file's columns, so that `propose` need not guess them.

    - `questions` : the columns to ask, in this order; by default all that could be asked.
    - `respondent`, `carry` : as in `Proposal`.
    - `bins` : for a column, the edges of its bins or their number.
    - `missing_codes` : for a column, or under "" for all of them, the codes that stand for "no answer".
    - `missing_answers` : the treatment of missing answers, as in `Reading`. A column without any refuses them.
    - `answers` : for a column, entries that are answers although they look like codes for "no answer".
    - `merge`, `keep_apart` : columns whose answers that differ only in case and blanks are one answer, or are not.
    - `blank_is_no`, `blank_is_missing` : questions whose empty boxes were not ticked, or are missing answers.
    - `half_width` : the target half-width of every question.

    >>> ProposalOptions(("income",), bins={"income": (1000, 2000)}, missing_codes={"": ("-9",)}).missing_answers
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
    merge: tuple[str, ...] = ()
    keep_apart: tuple[str, ...] = ()
    blank_is_no: tuple[str, ...] = ()
    blank_is_missing: tuple[str, ...] = ()


def propose(profile: FileProfile, options: ProposalOptions | None = None) -> Proposal:
    r"""Propose a question for every column: categories, codes for missing answers, bins.

    The proposal is made from the answers themselves, without privacy. Publishing it reveals which answers occur.

    Parameters
    ----------
    profile : The columns of the file, from `datafiles.columns.profile`.
    options : Facts about the columns; by default all are guessed.

    Returns
    -------
    Proposal
        The questions that could be asked, and the roles of the other columns.

    Raises
    ------
    InvalidInput
        For options that the file cannot fulfill.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from ldpopt_survey.datafiles.columns import profile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "people.csv")
    >>> _ = path.write_text("smokes,region\n" + "1,a\n" * 40 + "2,b\n" * 15 + "9,a\n" * 5)
    >>> made = propose(profile(path))
    >>> folder.cleanup()
    >>> made.questions[0].spec.categories, made.questions[0].spec.reading.missing_codes
    ((1, 2, 'no answer'), ('9',))
    """
    options = options or ProposalOptions()
    boxes = {box.spec.name: box for box in find_boxes(profile.columns, options.half_width)}
    boxes = {name: box for name, box in boxes.items() if name not in [column.name for column in profile.columns]}
    known_columns = [*options.carry, *filter(None, [options.respondent]), *options.bins, *options.answers]
    known_columns += [name for name in (*options.questions, *options.merge, *options.keep_apart) if name not in boxes]
    known_columns += [name for name in (*options.blank_is_no, *options.blank_is_missing) if name not in boxes]
    for name in (*known_columns, *filter(None, options.missing_codes)):
        profile.column(name)
    ids = (
        column.name
        for column in profile.columns
        if _ID.match(column.name) and column.is_distinct and column.empty == 0 and column.rows > 1
    )
    respondent = options.respondent or next(ids, None)
    sample = _sample(profile, {respondent, *options.questions})
    carry = options.carry
    public = {*carry, *(() if sample is None else sample.columns)}
    declined_columns = [column for name in options.blank_is_missing if name in boxes for column in boxes[name].columns]
    options = replace(options, blank_is_missing=(*options.blank_is_missing, *declined_columns))
    box_by_column = {column: box for box in boxes.values() for column in box.columns}
    order = [boxes[name].columns[0] if name in boxes else name for name in options.questions]
    single_columns = {name for name in options.questions if name not in boxes}
    questions, other_columns = [], []
    for column in [profile.column(name) for name in order] or list(profile.columns):
        box = (
            None
            if column.name in single_columns or box_by_column.get(column.name) is None
            else box_by_column[column.name]
        )
        if column.name == respondent or column.name in public:
            if options.questions:
                raise invalid("questions", "columns that are not ids and not carried", column.name)
            continue
        if box is not None and box.spec.name not in options.blank_is_missing and not public & {*box.columns}:
            if column.name == box.columns[0]:
                questions.append(_boxes_question(box, options))
            continue
        proposed_question = _question(column, options)
        if isinstance(proposed_question, ProposedQuestion):
            if profile.dialect.decimal == "," and (observation := _observed_pairs(column)):
                observations = (*proposed_question.observations, observation)
                proposed_question = replace(proposed_question, observations=observations)
            questions.append(proposed_question)
        elif options.questions:
            raise invalid(
                "question", "a column of few different answers, or of numbers", Phrase(proposed_question), column.name
            )
        else:
            other_columns.append((column.name, proposed_question))
    return Proposal(tuple(questions), tuple(other_columns), respondent, tuple(carry), sample)


_PAIR = re.compile(r"(0|[1-9]\d*)\.([1-9]\d*)", re.ASCII)


def _observed_pairs(column: ColumnProfile) -> str:
    """A question to the user if all numbers with a decimal comma could be pairs of codes; else an empty text.

    A pair of codes is in ascending order, and not all pairs end in the same code.
    """
    pairs = [pair.groups() for value in column.values or () if (pair := _PAIR.fullmatch(value))]
    is_ascending = all(int(first) < int(second) for first, second in pairs)
    if not is_ascending or len({second for _, second in pairs}) < 2:
        return ""
    first, second = min(pairs)
    return (
        f"'{first},{second}' is read as the number {first}.{second}. If the cells have lists of codes, pass --decimal ."
    )


def _sample(profile: FileProfile, other_roles: set[str | None]) -> SampleSpec | None:
    """Return the first columns without empty cells whose names are those of weights, strata or clusters."""
    roles: dict[str, str] = {}
    for column in profile.columns:
        if column.name in other_roles or column.empty or not column.has_scalars or not column.name.isprintable():
            continue
        for role, pattern in _SAMPLE.items():
            is_number = column.numeric == column.rows and bool((column.numbers >= 0).all())
            if pattern.match(column.name) and role not in roles and (role != "weights" or is_number):
                roles[role] = column.name
                break
    return SampleSpec(roles.get("weights"), roles.get("strata"), roles.get("clusters")) if roles else None


def _boxes_question(boxes: Boxes, options: ProposalOptions) -> ProposedQuestion:
    remarks = [f'"{boxes.text[:160]}"'] if boxes.text else []
    remarks.append(f"Boxes that people tick, in {len(boxes.columns)} columns.")
    if boxes.empty:
        remarks.append("An empty box counts as not ticked, also of people who did not see the question.")
    return ProposedQuestion(boxes.spec, tuple(remarks), (), _blank_merges(boxes.spec.name, boxes.empty, options))


def _blank_merges(name: str, empty: int, options: ProposalOptions) -> tuple[Merging, ...]:
    if not empty or name in options.blank_is_no:
        return ()
    description = f"{empty:,} empty boxes would count as not ticked, also of people who did not see the question"
    return (Merging(name, description, ("--blank-is-no", name), ("--blank-is-missing", name)),)


def _tick_question(column: ColumnProfile, value: str, options: ProposalOptions) -> ProposedQuestion:
    """Return the yes/no question of one box."""
    spec = QuestionSpec(
        column.name,
        (NO, YES),
        missing=NO,
        half_width=options.half_width,
        reading=Reading(((value, YES),), (), (), "counted"),
    )
    wording = [f'"{column.wording[:160]}"'] if column.wording else []
    remarks = (*wording, "One box: an empty cell counts as not ticked, also of people who did not see the question.")
    return ProposedQuestion(spec, remarks, (), _blank_merges(column.name, column.empty, options))


def _numbers_rows(column: ColumnProfile) -> bool:
    """Return whether the integers of a column are consecutive numbers of its rows, with at most a tenth repeated.

    Of as many numbers drawn at random from as many values only 63 % differ.
    """
    if not column.has_only_integers or column.empty or not len(column.numbers):
        return False
    if np.ptp(column.numbers) > 1.01 * column.rows:
        return False
    has_every_number = len(column.numbers) == column.rows
    return column.is_distinct or (has_every_number and len(np.unique(column.numbers)) >= 0.9 * column.rows >= 18)


def _question(column: ColumnProfile, options: ProposalOptions) -> ProposedQuestion | str:
    """Return the question, or the reason why the column cannot be one."""
    if not column.name.strip() or not column.name.isprintable() or len(column.name) > 200:
        return "its name is empty, too long or has signs that cannot be printed"
    if not column.has_scalars:
        return "it holds lists, records or bytes"
    if column.answer_count == 0:
        return "it is empty"
    is_repeated = column.values is None or len(column.values) > column.answer_count / 2
    if _ID.match(column.name) and not column.is_distinct and is_repeated and column.name not in options.questions:
        return (
            f"it looks like respondents' ids, of which some stand twice (--respondent {column.name} takes it as such)"
        )
    if (tick := only_ticked_value(column)) is not None and column.name not in options.blank_is_missing:
        return _tick_question(column, tick, options)
    codes, guessed_codes = _missing_codes(column, options)
    if isinstance(list_spec := list_question(column, codes, options.half_width), AnyOfSpec):
        merges = (*_blank_merges(column.name, column.empty, options), *_code_merges(column, guessed_codes))
        return ProposedQuestion(
            list_spec, (f"Lists in a cell, with {list_spec.reading.separator!r} between entries.",), (), merges
        )
    if list_spec is not None and column.name not in options.bins:
        return list_spec
    values = None if column.values is None else {v: n for v, n in column.values.items() if v.strip() not in codes}
    declared_labels = _declared_categories(column, values, codes)
    values = dict.fromkeys(declared_labels, 0) | (values or {}) if declared_labels else values
    if values is not None and len(values) < 2:
        return "everybody has the same answer in it" if values else "it holds codes for missing answers alone"
    if column.values is not None and any(len(v) >= 200 for v in column.values):
        return "it holds long text"
    is_code = np.isin(column.numbers, [float(code) for code in codes if _is_number(code)])
    missing_words = _count_codes(column.words, codes)
    if column.values is None:
        missing = column.empty + missing_words + math.ceil(column.numeric * is_code.sum() / max(1, len(is_code)))
    else:
        missing = column.empty + _count_codes(column.values, codes)
    is_numeric = (
        column.numeric > 0 and column.numeric >= 0.9 * (column.answer_count - missing_words) and not declared_labels
    )
    has_few_values = values is not None and len(values) <= (MAX_INTEGER_ANSWERS if is_numeric else MOST_CATEGORIES)
    if column.name in options.bins or (is_numeric and not has_few_values):
        is_requested = column.name in options.bins or column.name in options.questions
        if not is_requested and _numbers_rows(column):
            return "it numbers the rows" if column.is_distinct else "it numbers the rows, some of which stand twice"
        return _binned_question(column, column.numbers[~is_code], codes, missing, options, guessed_codes)
    if not has_few_values or values is None:
        return "every row has its own answer" if column.is_distinct else f"it has more than {MOST_CATEGORIES} answers"
    observations, code_merges = [], _code_merges(column, guessed_codes)
    if single_values := sorted(value for value, count in values.items() if count == 1):
        examples = ", ".join(map(repr, single_values[:5])) + (", ..." if len(single_values) > 5 else "")
        observations.append(f"Seen once in the file: {examples}. Is it a slip, or does it give somebody away?")
    if declared_labels:
        remarks = ["Answers and their order as the file declares them."]
        if empty_labels := [value for value in declared_labels if not values[value]]:
            observations.append(f"Declared, and chosen by nobody: {quoted_values(empty_labels)}.")
        return _proposed_question(
            column, declared_labels, (), codes, missing, options, remarks, observations, code_merges
        )
    counts, spellings = ({}, {}) if column.name in options.keep_apart else _spellings(values)
    if not spellings or len(counts) < 2:
        return _proposed_question(column, _sorted(values), (), codes, missing, options, (), observations, code_merges)
    categories = _sorted(counts)
    labels = {str(label): label for label in categories}
    pairs = tuple((spelling, labels[common]) for spelling, common in spellings.items())
    remarks = ["Answers that differ only in capitals and blanks are taken as one: `codes` says which."]
    if column.name not in options.merge:
        examples = ", ".join(f"{spelling!r} as {common!r}" for spelling, common in list(spellings.items())[:5])
        merging = f"answers that differ in capitals and blanks would count as one: {examples}"
        code_merges += (Merging(column.name, merging, ("--merge", column.name), ("--keep-apart", column.name)),)
    proposed_question = _proposed_question(
        column, categories, (), codes, missing, options, remarks, observations, code_merges
    )
    reading = replace(proposed_question.spec.reading, codes=pairs)
    return replace(proposed_question, spec=replace(proposed_question.spec, reading=reading))


def _code_merges(column: ColumnProfile, guessed_codes: Sequence[str]) -> tuple[Merging, ...]:
    """Return the answers that guessed codes for "no answer" would drop."""
    return tuple(
        Merging(
            column.name, f"{code!r} would count as no answer",
            ("--missing-code", f"{column.name}={code}"), ("--answer", f"{column.name}={code}"),
        )
        for code in guessed_codes
    )  # fmt: skip


def _declared_categories(column: ColumnProfile, values: Mapping[str, int] | None, codes: Sequence[str]) -> list[str]:
    """Return the file's categories in order, without codes for missing answers; empty if answers differ.

    Answers without a label, among labels of numbers, have the position of their number.
    """
    labels = [(number, label) for number, label in column.levels if label.strip() not in codes]
    label_names = {label for _, label in labels}
    other_values = [value for value in values or () if value not in label_names]
    if not labels or values is None or len(labels) + len(other_values) > MOST_CATEGORIES:
        return []
    if not other_values:
        return [label for _, label in labels]
    if (
        len(other_values) > MAX_INTEGER_ANSWERS
        or not all(map(_is_number, other_values))
        or any(n is None for n, _ in labels)
    ):
        return []
    pairs = [
        *((float(number or 0), label) for number, label in labels),
        *((float(text), text) for text in other_values),
    ]
    return [label for _, label in sorted(pairs)]


def _binned_question(
    column: ColumnProfile,
    numbers: Array,
    codes: tuple[str, ...],
    missing: int,
    options: ProposalOptions,
    guessed_codes: tuple[str, ...],
) -> ProposedQuestion | str:
    bins = options.bins.get(column.name, DEFAULT_BINS)
    if not len(numbers):
        if column.name in options.bins:
            raise invalid("bins", "a column of numbers", Phrase("one without"), column.name)
        return "it has no number"
    edges = round_edges(numbers, bins) if isinstance(bins, int) else tuple(float(edge) for edge in bins)
    if not edges:
        return "its numbers are nearly all the same"
    labels = bin_labels(edges, column.has_only_integers)
    remarks, observations = (
        ["Numbers, cut into bins."],
        [f"From {number_text(numbers.min())} to {number_text(numbers.max())}."],
    )
    if column.numeric + missing < column.rows:
        remarks.append("Some cells are neither numbers nor codes for missing answers: `unknown` says where they go.")
    return _proposed_question(
        column, labels, edges, codes, missing, options, remarks, observations, _code_merges(column, guessed_codes)
    )


def _proposed_question(
    column: ColumnProfile,
    categories: Sequence[Label],
    edges: tuple[float, ...],
    codes: tuple[str, ...],
    missing: int,
    options: ProposalOptions,
    remarks: Sequence[str],
    observations: list[str],
    merges: tuple[Merging, ...],
) -> ProposedQuestion:
    policy = options.missing_answers if missing else "refuse"
    label = NO_ANSWER if NO_ANSWER not in categories else f"{NO_ANSWER} at all"
    has_category = policy == "category"
    if missing:
        qualifier = "About " if column.values is None and codes else ""
        observations.append(f"{qualifier}{missing:,} of {column.rows:,} answers are missing.")
    reading = Reading((), edges, codes, policy)
    spec = QuestionSpec(
        column.name,
        tuple(categories) + ((label,) if has_category else ()),
        missing=label if has_category else None,
        half_width=options.half_width,
        reading=reading,
    )
    wording = [f'"{" ".join(column.wording.split())[:160]}"'] if column.wording else []
    return ProposedQuestion(spec, (*wording, *remarks), tuple(observations), merges)


def _missing_codes(column: ColumnProfile, options: ProposalOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the codes for "no answer": requested ones, or words that mean it and distant numbers.

    The second tuple has those that are guesses.
    """
    if column.name in options.missing_codes or "" in options.missing_codes:
        requested_codes = [*options.missing_codes.get(column.name, ()), *options.missing_codes.get("", ())]
        return tuple(dict.fromkeys(requested_codes)), ()
    values = column.words if column.words is not None else column.values
    words = [] if values is None else [value.strip() for value in values]
    words += [label for _, label in column.levels]
    codes = [word for word in words if word.strip().casefold() in _WORDS_FOR_MISSING]
    if column.has_only_integers or column.values is not None:
        codes += [str(int(number)) for number in _codes_by_distance(column)]
    declared_answers = {str(code) for code in options.answers.get(column.name, ())}
    guessed_codes = tuple(code for code in dict.fromkeys(codes) if code not in declared_answers)
    return guessed_codes, guessed_codes


def _codes_by_distance(column: ColumnProfile) -> list[float]:
    """Return numbers that look like codes for "no answer".

    They are the usual negative codes (-7 to -9, -77, -99, and so on) or 7 to 9 (97 to 99, and so on). A negative code
    is far below the other numbers and the opposite of none of them; a positive one is far above them.
    """
    if column.values is not None:
        numbers = sorted({float(value) for value in column.values if _is_number(value)})
    else:
        numbers = np.unique(column.numbers).tolist()
    integers = [number for number in numbers if number == math.floor(number)]
    nonnegative = [number for number in numbers if number >= 0]
    negative_codes = [number for number in integers if number in _NEGATIVE_CODES and -number not in nonnegative]
    other_numbers = [number for number in numbers if number not in negative_codes]
    codes = (
        negative_codes
        if len(other_numbers) > 1 and negative_codes and min(other_numbers) - max(negative_codes) >= 2
        else []
    )
    for digits in (1, 2, 3, 4, 5):
        top = 10**digits - 1
        high_codes = [number for number in integers if top - 3 < number <= top]
        other_numbers = [number for number in nonnegative if number not in high_codes]
        if high_codes and other_numbers and max(other_numbers) < high_codes[0] and high_codes[-1] == nonnegative[-1]:
            gap = high_codes[0] - max(other_numbers)
            if gap >= max(2, 10 ** (digits - 1)):
                codes = codes + high_codes
    return codes


_NEGATIVE_CODES = {
    *(-number for number in (4, 5, 6, 7, 8, 9, 66, 77, 88)),
    *(-(10**digits - place) for digits in (2, 3, 4, 5) for place in (1, 2, 3, 4)),
    *(-int(str(digit) * length) for digit in (6, 7, 8, 9) for length in (3, 4, 5)),
}
"""Negative numbers that usually stand for a missing answer; -1 to -3 are as often answers."""


def _count_codes(values: Mapping[str, int] | None, codes: Sequence[str]) -> int:
    """Count the cells that hold one of the codes."""
    return sum(count for value, count in (values or {}).items() if value.strip() in codes)


def _sorted(values: Mapping[str, int]) -> Sequence[Label]:
    """Sort the values: as numbers if all are integers, else as texts, with numbers first."""
    if all(re.fullmatch(r"0|-?[1-9][0-9]{0,15}", value) for value in values):
        return sorted(map(int, values))
    return sorted(
        values, key=lambda text: (not _is_number(text), float(text) if _is_number(text) else 0, text.casefold(), text)
    )


def _spellings(values: Mapping[str, int]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the counts of answers in their commonest spelling, and the other spellings of each.

    Spellings differ in capitals, blanks and the composition of letters alone.
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        groups.setdefault(" ".join(unicodedata.normalize("NFC", value).casefold().split()), []).append(value)
    counts: dict[str, int] = {}
    common_spellings: dict[str, str] = {}
    for variants in groups.values():
        common = max(variants, key=lambda spelling: (spelling == spelling.strip(), values[spelling], spelling))
        counts[common] = sum(values[spelling] for spelling in variants)
        common_spellings |= {spelling: common for spelling in variants if spelling != common}
    return counts, common_spellings


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*", text, re.ASCII) is not None and len(text) < 60
