"""Raw answers -> what the file of reports would tell of them beside the drawn reports, before any report is drawn.

Three things stand in reports as they are: the carried columns, which reports are empty, and the order of the rows. They
are searched for answers, and the carried columns for people. Ids, which others may hold, are searched for answers too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

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

TOLD = 0.5
"""What spares this share of the wrong guesses at an answer tells the answer."""

SETTLED = 0.8
"""A value that spares this share among the people who have it tells their answer."""

RULED_OUT = 0.05
"""An answer that comes less than so often as it would by chance is ruled out."""

BY_CHANCE = 1e-6
"""What is rarer than this by chance is no chance."""

BLOCKS = (8, 40)
"""So many neighbours in an order are taken together."""

ALONE = 0.5
"""A column in which this share of people are the only ones with their value singles people out."""

ROWS = 1 << 18
"""So many rows, in stretches that are spread over the files, are looked at."""

Codes = npt.NDArray[np.int64]
Asked = QuestionSpec | Part | PlannedQuestion


@dataclass(frozen=True)
class Leak:
    """What would tell an answer, or a person: the question's name or `PERSON`, and the names of what tells it.

    Neither it nor its message holds a value or a count of the file.
    """

    what: str
    by: tuple[str, ...]
    blank: bool = False

    def __str__(self) -> str:
        names, together = " and ".join(map(repr, self.by)), len(self.by) > 1
        if self.what == PERSON:
            return f"{names}, which {'single' if together else 'singles'} people out: round it, or leave it out"
        if self.by == (ORDER,):
            return f"rows in an order that tells the answer to {self.what!r}: shuffle them"
        if self.blank:
            return f"empty reports of {names} that tell the answer to {self.what!r}: say asked_if, or hide who answered"
        tell = "tell" if together else "tells"
        return f"{names}, which {tell} the answer to {self.what!r}: leave it out, or draw other ids"


@dataclass
class Sight:
    """Rows that are looked at: for each question the codes of its answers and who did not answer; other columns coded.

    codes : for each question, positions from 0; one above the categories stands for an unlisted answer.
    blanks : for each question, where there is no answer. columns : carried columns and ids, as ranks of their values.
    """

    codes: dict[str, Codes] = field(default_factory=dict)
    blanks: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    columns: dict[str, Codes] = field(default_factory=dict)

    @classmethod
    def of(cls, questions: Iterable[Asked], columns: Iterable[str], table: Any) -> Sight:
        """What the rows of a pyarrow table show."""
        seen = cls()
        for question in questions:
            codes, absent = Coder(question).positions(table.column(question.column).combine_chunks())
            seen.codes[question.name] = np.where(codes < 0, len(question.categories), codes).astype(np.int64)
            seen.blanks[question.name] = np.zeros(table.num_rows, bool) if absent is None else absent
        for name in columns:
            seen.columns[name] = _ranks(table.column(name).combine_chunks())
        return seen


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


def tells(groups: Codes, answers: Codes, excludes: bool = False) -> bool:
    """Whether the group of a respondent tells the answer, exactly or nearly.

    It does if guessing the commonest other answer of one's group spares `TOLD` of the wrong guesses that are made
    without groups, over everybody, or `SETTLED` of them inside one group; with `excludes`, also if a group rules an
    answer out. By chance each has a probability of at most `BY_CHANCE`.

    groups, answers : (n,) numbers from 0.

    >>> even = np.arange(40) % 2
    >>> tells(even, even), tells(np.arange(40) // 20, even)
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
    best = table.argmax(axis=1)
    first, second = np.sort(table, axis=1)[:, :-3:-1].T
    without = table[:, shares.argmax()]
    right = np.where(sizes == 1, without, np.where(first - 1 > second, first, 0)).sum()
    wrong = n - without.sum()
    if n - right <= (1 - TOLD) * wrong and bdtr(n - right, n, wrong / n) <= BY_CHANCE:
        return True
    chance = BY_CHANCE / count
    missed, expected = sizes - first, 1 - shares[best]
    settled = missed <= (1 - SETTLED) * expected * sizes
    if (bdtr(missed, sizes, expected)[settled] <= chance).any():
        return True
    rare = table <= RULED_OUT * sizes[:, None] * shares if excludes else np.zeros_like(table, bool)
    return bool((bdtr(table, sizes[:, None], shares)[rare] <= chance / k).any())


def in_order(ranks: Codes, answers: Codes) -> bool:
    """Whether neighbours in an order have one answer, so that the place in it tells the answer."""
    sorted_ = answers[np.argsort(ranks, kind="stable")]
    return any(tells(np.arange(len(sorted_)) // block, sorted_) for block in BLOCKS)


def find_leaks(survey: Plan | SurveySpec, table: Any) -> list[Leak]:
    """All leaks of raw answers, a pyarrow table with the survey's columns in the order of the file."""
    questions = [asked for question in survey.questions for asked in getattr(question, "answers", (question,))]
    questions = list({asked.name: asked for asked in questions}.values())
    ids = () if survey.respondent is None else (survey.respondent,)
    seen = Sight.of(questions, (*survey.carry, *ids), table)
    return list(_found(questions, survey.carry, ids, seen))


def _found(questions: Sequence[Asked], carry: Sequence[str], ids: Sequence[str], seen: Sight) -> Iterator[Leak]:
    empty = [asked.name for asked in questions if asked.reading.left_out and seen.blanks[asked.name].any()]
    carried = [seen.columns[name] for name in carry]
    for question in questions:
        name, codes, blank = question.name, seen.codes[question.name], seen.blanks[question.name]
        some = ~blank if question.reading.left_out else np.ones(len(codes), bool)
        codes = np.where(blank, len(question.categories) + 1, codes)[some]
        alone = False
        for column in carry:
            if tells(seen.columns[column][some], codes) or in_order(seen.columns[column][some], codes):
                alone = True
                yield Leak(name, (column,))
        for column in ids:
            _, first = np.unique(seen.columns[column][some], return_index=True)  # in the order of the ids
            if in_order(np.arange(len(first)), codes[first]):
                yield Leak(name, (column,))
        if len(carry) > 1 and not alone and tells(_groups(carried)[some], codes):
            yield Leak(name, tuple(carry))
        others = [other for other in empty if other != name]
        alone = False
        for other in others:
            if tells(seen.blanks[other][some].astype(np.int64), codes, excludes=True):
                alone = True
                yield Leak(name, (other,), True)
        if len(others) > 1 and not alone:
            together = _groups([seen.blanks[other].astype(np.int64) for other in others])
            if tells(together[some], codes, excludes=True):
                yield Leak(name, tuple(others), True)
        if in_order(np.arange(len(codes)), codes):
            yield Leak(name, (ORDER,))
    single: list[tuple[str, ...]] = [(name,) for name in carry if singles_out(seen.columns[name])]
    if len(carry) > 1 and not single and singles_out(_groups(carried)):
        single = [tuple(carry)]
    for names in single:
        yield Leak(PERSON, names)


def singles_out(values: Codes) -> bool:
    """Whether a share of `ALONE` of the people, of twenty at least, are the only ones with their value."""
    _, counts = np.unique(values, return_counts=True)
    return len(values) >= 20 and int((counts == 1).sum()) >= ALONE * len(values)


def find_routes(questions: Sequence[Asked], table: Any) -> dict[str, tuple[str, tuple[Label, ...]]]:
    """For each question that only some answers to another lead to: that question's name, and these answers.

    A question follows an answer if at least half of those who gave it answered, and it does not if next to none did
    (`RULED_OUT`); each answer must do one or the other, and both must occur, in a file of at least twenty rows.
    """
    seen, routes = Sight.of(questions, (), table), dict[str, tuple[str, tuple[Label, ...]]]()
    for question in questions:
        blank = seen.blanks[question.name]
        if len(blank) < 20 or not blank.any():
            continue
        for other in questions:
            if other is question or question.name in routes:
                continue
            codes = np.where(seen.blanks[other.name], len(other.categories), seen.codes[other.name])
            size = np.bincount(codes, minlength=len(other.categories) + 2)
            answered = np.bincount(codes[~blank], minlength=len(size))
            occurs, asked = size > 0, answered >= size / 2
            plain = (asked | (answered <= RULED_OUT * size))[occurs].all()
            beside = (asked & occurs)[: len(other.categories)]
            skipped = (occurs & ~asked)[: len(other.categories)].any()
            unasked = not (asked & occurs)[len(other.categories) :].any()
            if plain and skipped and unasked and beside.any():
                labels = tuple(label for label, leads in zip(other.categories, beside, strict=True) if leads)
                if tells(blank.astype(np.int64), codes, excludes=True):
                    routes[question.name] = (other.name, labels)
    return routes


def routed(proposal: Proposal, table: Any) -> Proposal:
    """The proposal with `asked_if` for the questions that only some answers to another lead to, after that one.

    Who was asked is then not seen. Of those who were asked, who did not answer is a category of its own.
    """
    questions = {proposed.spec.name: proposed for proposed in proposal.questions}
    single = [proposed.spec for proposed in proposal.questions if proposed.spec.answers == (proposed.spec,)]
    routes = find_routes(single, table)
    if not routes:
        return proposal
    seen = Sight.of(single, (), table)
    for name, (other, labels) in routes.items():
        spec, leading = questions[name].spec, questions[other].spec
        asked = np.isin(seen.codes[other], [code for code, label in enumerate(leading.categories) if label in labels])
        missing = (asked & seen.blanks[name]).any()
        answers = spec.categories[:-1] if spec.reading.own_category else spec.categories
        none = NO_ANSWER if NO_ANSWER not in answers else f"{NO_ANSWER} at all"
        routed_spec = replace(
            spec,
            categories=(*answers, none) if missing else answers,
            missing=none if missing else None,
            asked_if=((other, labels),),
            reading=replace(spec.reading, missing_answers="category" if missing else "refuse"),
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


def sampled_rows(parts: Sequence[Partition], columns: Sequence[str], rows: int = ROWS) -> Any:
    """Stretches of rows of evenly spread partitions, as a pyarrow table; all rows where they are few."""
    few = sum(part.rows for part in parts) <= rows
    spread = range(len(parts)) if few else np.unique(np.linspace(0, len(parts) - 1, 8).round().astype(int))
    stretches: list[Any] = []
    for number in spread:
        left = rows if few else rows // len(spread)
        for batch in batches(parts[number], columns):
            stretches.append(batch.slice(0, left))
            left -= stretches[-1].num_rows
            if left <= 0:
                break
    return pa.concat_tables([pa.Table.from_batches([stretch]) for stretch in stretches], promote_options="permissive")


def unaccepted(leaks: Iterable[Leak], revealed: Revealed) -> list[Leak]:
    """The leaks that are not accepted by name."""
    accepted = {what: {str(source) for source in by} for what, by in revealed}
    return [leak for leak in leaks if not set(leak.by) <= accepted.get(leak.what, set())]


def refuse_leaks(leaks: Iterable[Leak], revealed: Revealed) -> None:
    """`InvalidInput` that names all leaks which a survey does not accept by name, and no value or count."""
    if not (leaks := unaccepted(leaks, revealed)):
        return
    accepted = {what: list(map(str, by)) for what, by in revealed}
    for leak in leaks:
        own = accepted.setdefault(leak.what, [])
        own += [name for name in leak.by if name not in own]
    pairs = (f"{_quoted(what)} = [{', '.join(map(_quoted, by))}]" for what, by in accepted.items())
    option = " ".join(f"--accept {what}={','.join(by)}" for what, by in accepted.items())
    more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
    raise InvalidInput(
        f"answers: expected that nothing beside the drawn reports tells an answer, got {leaks[0]}{more}. To publish it "
        f"all the same and to say so in the consent form: {option} of `survey new`, or "
        f"revealed = {{ {', '.join(pairs)} }} under [survey], and plan again"
    )


def _quoted(name: str) -> str:
    """A name as a key or a text of TOML."""
    return json.dumps(name, ensure_ascii=False)
