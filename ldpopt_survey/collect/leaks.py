"""Find disclosures in the file of reports, other than the drawn reports, before any report is drawn.

Three things are in reports unchanged: the carried columns, which reports are empty, and the order of the rows. They
are searched for answers, and the carried columns for people. Ids, which others may hold, are searched for answers too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from ldpopt.errors import InvalidInput
from ldpopt.extras import pa, pc
from ldpopt.values.labels import Label
from ldpopt_survey.collect.answers import Partition, batches, values_hidden
from ldpopt_survey.collect.coding import Coder
from ldpopt_survey.datafiles.columns import to_numbers
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import Part, PlannedQuestion
from ldpopt_survey.plan.propose import NO_ANSWER, Proposal
from ldpopt_survey.plan.spec import ORDER, PERSON, QuestionSpec, Revealed, SurveySpec

DISCLOSURE_ERROR_REDUCTION = 0.5
"""A column discloses an answer if using it removes at least this fraction of wrong guesses."""

GROUP_ERROR_REDUCTION = 0.8
"""A value discloses the answer of the people who have it if it removes this fraction of the wrong guesses at theirs."""

MAX_EXCLUDED_FREQUENCY_RATIO = 0.05
"""An answer is ruled out if its frequency is below this fraction of its frequency by chance."""

MAX_CHANCE_PROBABILITY = 1e-6
"""Significance level: smaller p-values count as disclosure."""

ORDER_BLOCK_ROWS = (8, 40)
"""Sizes of the blocks of neighbors in an order that are compared, in rows."""

MIN_UNIQUE_FRACTION = 0.5
"""A column identifies individuals if this fraction of people are the only ones with their value."""

MAX_SAMPLED_ROWS = 1 << 18
"""The number of rows that are searched, in stretches that are spread over the files."""

Codes = npt.NDArray[np.int64]
AnswerSource = QuestionSpec | Part | PlannedQuestion


@dataclass(frozen=True)
class Leak:
    """A disclosure risk: the question (or `PERSON`) that is disclosed, and the columns or orders that disclose it.

    - `subject` : the name of the question, or `PERSON`.
    - `sources` : the names of the columns, of `ORDER`, or of the questions whose reports are empty.
    - `blank` : True if the sources disclose it by their empty reports.

    Neither the risk nor its message holds a value or a count of the file.
    """

    subject: str
    sources: tuple[str, ...]
    blank: bool = False

    def __str__(self) -> str:
        names, is_plural = " and ".join(map(repr, self.sources)), len(self.sources) > 1
        if self.subject == PERSON:
            return f"{names}, which {'identify' if is_plural else 'identifies'} individuals: round it, or leave it out"
        if self.sources == (ORDER,):
            return f"rows in an order that discloses the answer to {self.subject!r}: shuffle them"
        if self.blank:
            return (
                f"empty reports of {names} that disclose the answer to {self.subject!r}: set asked_if, or hide who "
                "answered"
            )
        verb = "disclose" if is_plural else "discloses"
        return f"{names}, which {verb} the answer to {self.subject!r}: leave it out, or draw other ids"


@dataclass
class SampledAnswers:
    """The coded rows that are searched for disclosures.

    - `codes` : for each question, positions from 0; the position after the categories stands for an unlisted answer.
    - `blanks` : for each question, a mask of the missing answers.
    - `columns` : carried columns and ids, as ranks of their values.
    """

    codes: dict[str, Codes] = field(default_factory=dict)
    blanks: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    columns: dict[str, Codes] = field(default_factory=dict)

    @classmethod
    def from_table(cls, questions: Iterable[AnswerSource], columns: Iterable[str], table: Any) -> SampledAnswers:
        """Collect the answers and columns of the sampled rows of a pyarrow table."""
        sample = cls()
        for question in questions:
            codes, is_blank = Coder(question).positions(table.column(question.column).combine_chunks())
            sample.codes[question.name] = np.where(codes < 0, len(question.categories), codes).astype(np.int64)
            sample.blanks[question.name] = np.zeros(table.num_rows, bool) if is_blank is None else is_blank
        for name in columns:
            sample.columns[name] = _ranks(table.column(name).combine_chunks())
        return sample


def _ranks(column: Any) -> Codes:
    """The rank of each value among the different values of a column: as numbers where all are, else as text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        numbers = to_numbers(column)
    except ValueError:
        numbers = None
    if numbers is None or numbers.null_count > column.null_count:
        numbers = values_hidden("carried columns", pc.cast, column, pa.large_string())
    ranks = pc.rank(numbers, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks.to_numpy(zero_copy_only=False)).astype(np.int64)


def _groups(keys: Sequence[Codes]) -> Codes:
    """Numbers from 0 of the different combinations of several columns."""
    numbers = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        numbers = np.unique(numbers * (int(key.max()) + 1) + key, return_inverse=True)[1].reshape(-1)
    return numbers


def discloses(groups: Codes, answers: Codes, excludes: bool = False) -> bool:
    """Return True if the group of a respondent discloses the answer, exactly or nearly.

    It does if guessing the commonest other answer in the group avoids enough of the errors made without groups: the
    fraction `DISCLOSURE_ERROR_REDUCTION` over all respondents, or `GROUP_ERROR_REDUCTION` inside one group. With
    `excludes`, it also does if a group rules an answer out. By chance, each of these has a probability of at most
    `MAX_CHANCE_PROBABILITY`.

    groups, answers : (n,) numbers from 0.

    >>> even = np.arange(40) % 2
    >>> discloses(even, even), discloses(np.arange(40) // 20, even)
    (True, False)
    """
    n = len(answers)
    if n == 0:
        return False
    groups, answers = (np.unique(codes, return_inverse=True)[1].reshape(-1) for codes in (groups, answers))
    k, count = int(answers.max()) + 1, int(groups.max()) + 1
    table = np.bincount(groups * k + answers, minlength=count * k).reshape(count, k)
    sizes, shares = table.sum(axis=1), table.sum(axis=0) / n
    if k == 1:
        return False
    commonest_answers = table.argmax(axis=1)
    first, second = np.sort(table, axis=1)[:, :-3:-1].T
    baseline_counts = table[:, shares.argmax()]
    correct_guesses = np.where(sizes == 1, baseline_counts, np.where(first - 1 > second, first, 0)).sum()
    baseline_errors = n - baseline_counts.sum()
    if (
        n - correct_guesses <= (1 - DISCLOSURE_ERROR_REDUCTION) * baseline_errors
        and scipy.special.bdtr(n - correct_guesses, n, baseline_errors / n) <= MAX_CHANCE_PROBABILITY
    ):
        return True
    chance = MAX_CHANCE_PROBABILITY / count
    group_errors, expected = sizes - first, 1 - shares[commonest_answers]
    is_settled = group_errors <= (1 - GROUP_ERROR_REDUCTION) * expected * sizes
    if (scipy.special.bdtr(group_errors, sizes, expected)[is_settled] <= chance).any():
        return True
    is_rare = (
        table <= MAX_EXCLUDED_FREQUENCY_RATIO * sizes[:, None] * shares if excludes else np.zeros_like(table, bool)
    )
    return bool((scipy.special.bdtr(table, sizes[:, None], shares)[is_rare] <= chance / k).any())


def order_discloses(ranks: Codes, answers: Codes) -> bool:
    """Return True if neighbors in an order share answers, so that the position discloses them."""
    sorted_ = answers[np.argsort(ranks, kind="stable")]
    return any(discloses(np.arange(len(sorted_)) // block, sorted_) for block in ORDER_BLOCK_ROWS)


def find_leaks(survey: Plan | SurveySpec, table: Any) -> list[Leak]:
    """List all disclosure risks of raw answers.

    table : a pyarrow table with the survey's columns, in the order of the file.
    """
    questions = [part for question in survey.questions for part in getattr(question, "answers", (question,))]
    questions = list({part.name: part for part in questions}.values())
    ids = () if survey.respondent is None else (survey.respondent,)
    sample = SampledAnswers.from_table(questions, (*survey.carry, *ids), table)
    return list(_list_leaks(questions, survey.carry, ids, sample))


def _list_leaks(
    questions: Sequence[AnswerSource], carry: Sequence[str], ids: Sequence[str], sample: SampledAnswers
) -> Iterator[Leak]:
    questions_with_blanks = [
        part.name for part in questions if part.reading.left_out and sample.blanks[part.name].any()
    ]
    carried = [sample.columns[name] for name in carry]
    for question in questions:
        name, codes, is_blank = question.name, sample.codes[question.name], sample.blanks[question.name]
        is_relevant = ~is_blank if question.reading.left_out else np.ones(len(codes), bool)
        codes = np.where(is_blank, len(question.categories) + 1, codes)[is_relevant]
        has_single_source = False
        for column in carry:
            if discloses(sample.columns[column][is_relevant], codes) or order_discloses(
                sample.columns[column][is_relevant], codes
            ):
                has_single_source = True
                yield Leak(name, (column,))
        for column in ids:
            _, first_rows = np.unique(sample.columns[column][is_relevant], return_index=True)  # in the order of the ids
            if order_discloses(np.arange(len(first_rows)), codes[first_rows]):
                yield Leak(name, (column,))
        if len(carry) > 1 and not has_single_source and discloses(_groups(carried)[is_relevant], codes):
            yield Leak(name, tuple(carry))
        other_questions = [other for other in questions_with_blanks if other != name]
        has_single_source = False
        for other in other_questions:
            if discloses(sample.blanks[other][is_relevant].astype(np.int64), codes, excludes=True):
                has_single_source = True
                yield Leak(name, (other,), True)
        if len(other_questions) > 1 and not has_single_source:
            joint_groups = _groups([sample.blanks[other].astype(np.int64) for other in other_questions])
            if discloses(joint_groups[is_relevant], codes, excludes=True):
                yield Leak(name, tuple(other_questions), True)
        if order_discloses(np.arange(len(codes)), codes):
            yield Leak(name, (ORDER,))
    identifying_columns: list[tuple[str, ...]] = [
        (name,) for name in carry if identifies_individuals(sample.columns[name])
    ]
    if len(carry) > 1 and not identifying_columns and identifies_individuals(_groups(carried)):
        identifying_columns = [tuple(carry)]
    for names in identifying_columns:
        yield Leak(PERSON, names)


def identifies_individuals(values: Codes) -> bool:
    """Return True if the fraction `MIN_UNIQUE_FRACTION` of at least 20 people have unique values."""
    _, counts = np.unique(values, return_counts=True)
    return len(values) >= 20 and int((counts == 1).sum()) >= MIN_UNIQUE_FRACTION * len(values)


def find_routes(questions: Sequence[AnswerSource], table: Any) -> dict[str, tuple[str, tuple[Label, ...]]]:
    """Find the questions that only some answers to another question lead to.

    An answer to the other question leads to this one if at least half of those who gave it answered this one. It skips
    this one if next to nobody did (`MAX_EXCLUDED_FREQUENCY_RATIO`). Each answer must do one or the other, both must
    occur, and the file must have at least twenty rows.

    Returns, by the name of the question, the other question's name and the answers that lead to it.
    """
    sample, routes = SampledAnswers.from_table(questions, (), table), dict[str, tuple[str, tuple[Label, ...]]]()
    for question in questions:
        is_blank = sample.blanks[question.name]
        if len(is_blank) < 20 or not is_blank.any():
            continue
        for other in questions:
            if other is question or question.name in routes:
                continue
            codes = np.where(sample.blanks[other.name], len(other.categories), sample.codes[other.name])
            answer_counts = np.bincount(codes, minlength=len(other.categories) + 2)
            respondent_counts = np.bincount(codes[~is_blank], minlength=len(answer_counts))
            occurs, is_asked = answer_counts > 0, respondent_counts >= answer_counts / 2
            is_clear_cut = (is_asked | (respondent_counts <= MAX_EXCLUDED_FREQUENCY_RATIO * answer_counts))[
                occurs
            ].all()
            is_leading = (is_asked & occurs)[: len(other.categories)]
            has_skipping_answer = (occurs & ~is_asked)[: len(other.categories)].any()
            skips_nonresponse = not (is_asked & occurs)[len(other.categories) :].any()
            if is_clear_cut and has_skipping_answer and skips_nonresponse and is_leading.any():
                labels = tuple(label for label, leads in zip(other.categories, is_leading, strict=True) if leads)
                if discloses(is_blank.astype(np.int64), codes, excludes=True):
                    routes[question.name] = (other.name, labels)
    return routes


def add_routes(proposal: Proposal, table: Any) -> Proposal:
    """Add `asked_if` to questions that only some answers to another question lead to.

    The reports then hide who was asked. For those who were asked, a missing answer is a category of its own.
    """
    questions = {proposed.spec.name: proposed for proposed in proposal.questions}
    single = [proposed.spec for proposed in proposal.questions if proposed.spec.answers == (proposed.spec,)]
    routes = find_routes(single, table)
    if not routes:
        return proposal
    sample = SampledAnswers.from_table(single, (), table)
    for name, (other, labels) in routes.items():
        spec, leading = questions[name].spec, questions[other].spec
        is_asked = np.isin(
            sample.codes[other], [code for code, label in enumerate(leading.categories) if label in labels]
        )
        has_missing = (is_asked & sample.blanks[name]).any()
        answers = spec.categories[:-1] if spec.reading.own_category else spec.categories
        no_answer_label = NO_ANSWER if NO_ANSWER not in answers else f"{NO_ANSWER} at all"
        routed_spec = replace(
            spec,
            categories=(*answers, no_answer_label) if has_missing else answers,
            missing=no_answer_label if has_missing else None,
            asked_if=((other, labels),),
            reading=replace(spec.reading, missing_answers="category" if has_missing else "refuse"),
        )
        remark = f"Empty where {other!r} has another answer; so who was asked is protected with it, in one report."
        questions[name] = replace(questions[name], spec=routed_spec, remarks=(*questions[name].remarks, remark))
    order: list[str] = []

    def place(name: str) -> None:
        if name not in order:
            if name in routes:
                place(routes[name][0])
            order.append(name)

    for name in questions:
        place(name)
    return replace(proposal, questions=tuple(questions[name] for name in order))


def sample_rows(parts: Sequence[Partition], columns: Sequence[str], rows: int = MAX_SAMPLED_ROWS) -> Any:
    """Read stretches of evenly spread partitions as a pyarrow table; all rows if they are few."""
    is_small = sum(part.rows for part in parts) <= rows
    part_numbers = range(len(parts)) if is_small else np.unique(np.linspace(0, len(parts) - 1, 8).round().astype(int))
    stretches: list[Any] = []
    for number in part_numbers:
        rows_left = rows if is_small else rows // len(part_numbers)
        for batch in batches(parts[number], columns):
            stretches.append(batch.slice(0, rows_left))
            rows_left -= stretches[-1].num_rows
            if rows_left <= 0:
                break
    return pa.concat_tables([pa.Table.from_batches([stretch]) for stretch in stretches], promote_options="permissive")


def list_unaccepted_leaks(leaks: Iterable[Leak], revealed: Revealed) -> list[Leak]:
    """List the disclosure risks that the survey does not accept by name."""
    accepted_sources = {subject: {str(source) for source in by} for subject, by in revealed}
    return [leak for leak in leaks if not set(leak.sources) <= accepted_sources.get(leak.subject, set())]


def refuse_leaks(leaks: Iterable[Leak], revealed: Revealed) -> None:
    """Raise `InvalidInput` that names all risks, without values, that a survey does not accept."""
    if not (leaks := list_unaccepted_leaks(leaks, revealed)):
        return
    accepted = {subject: list(map(str, by)) for subject, by in revealed}
    for leak in leaks:
        accepted_sources = accepted.setdefault(leak.subject, [])
        accepted_sources += [name for name in leak.sources if name not in accepted_sources]
    pairs = (f"{_quoted(subject)} = [{', '.join(map(_quoted, by))}]" for subject, by in accepted.items())
    option = " ".join(f"--accept {subject}={','.join(by)}" for subject, by in accepted.items())
    remainder = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
    raise InvalidInput(
        f"answers: expected that nothing but the drawn reports discloses an answer, got {leaks[0]}{remainder}. To "
        f"publish it anyway, and to state this in the consent form: {option} of `survey new`, or "
        f"revealed = {{ {', '.join(pairs)} }} under [survey], and plan again"
    )


def _quoted(name: str) -> str:
    """A name as a key or a text of TOML."""
    return json.dumps(name, ensure_ascii=False)
