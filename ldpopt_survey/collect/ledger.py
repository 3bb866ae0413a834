"""The ledger of a survey: by keyed marks it records whose answers were reported already, and the rounds.

A second fresh report of the same answers spends their epsilon again. The ledger lies next to the plans, has its own
key and holds no answer. With the key one can test a guess at a whole stretch of rows, and whether an id took part.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import NO_FILE, create_private, hold_lock, refuse_shared
from ldpopt.values.distribution import number
from ldpopt.values.schema import kind, version_of
from ldpopt_survey.collect.answers import values_hidden
from ldpopt_survey.collect.batch import Rows, drop_rows
from ldpopt_survey.collect.people import Run, Standing, assess_standing
from ldpopt_survey.collect.words import SecretKey
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.spec import SurveySpec
from ldpopt_survey.records import check, dump, key, listed, load, text, whole

FORMAT, VERSION = "ldpopt-ledger", 1
ENDING = ".ledger"
"""Ends the name of the ledger, after the name of the plan."""

STRETCH_BITS = 64.0
"""A stretch of rows is long enough if other people would give the same answers in the same order once in 2 to this."""

MIN_CONTENT_BITS = 20.0
"""The same, of a whole file or of its rows in any order."""

MAX_STRETCH_MARKS = 1024
"""The most marks of stretches that are kept of a run: the smallest, so that they are the same of the same rows."""

MIN_COMMON_STRETCHES = 3
"""So many stretches in common are no chance."""

Numbers = npt.NDArray[np.uint64]
NO_ROWS: Rows = np.empty(0, np.int64)


def _mix(numbers: Numbers) -> Numbers:
    """A bijection of 64-bit numbers without structure (splitmix64)."""
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return numbers ^ (numbers >> np.uint64(31))


def _rows(batch: Any, columns: Sequence[str], secret: bytes) -> Numbers:
    """A keyed number of each row: 5, "5.0" and " 5" in a column are the same, and so is every writing of a file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    mixed = np.zeros(batch.num_rows, np.uint64)
    for place, name in enumerate(columns):
        column = batch.column(name)
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        texts = values_hidden(f"column {name!r}", pc.cast, column.dictionary, pa.large_string())
        distinct_values = texts.cast(pa.large_binary()).to_pylist()
        marks = _marks([*distinct_values, None], name, secret)
        places = np.asarray(pc.fill_null(column.indices, len(distinct_values)).to_numpy(zero_copy_only=False), np.int64)
        mixed = _mix(mixed ^ marks[places] if place == 0 else _mix(mixed) + marks[places])
    return mixed


def _marks(values: Iterable[bytes | None], column: str, secret: bytes) -> Numbers:
    """A keyed number of each value of a column, in UTF-8; 5, "5.0" and " 5" have the same."""
    keyed = hashlib.blake2b(f"{len(column)} {column} ".encode(), key=secret, digest_size=8).copy
    digests = []
    for value in values:
        normalized = (value or b"").strip(_BLANKS)
        if not normalized.isascii():
            normalized = normalized.decode().strip().encode()
        if normalized[:1] in _NUMBER_STARTS or not normalized.isascii():
            with suppress(ValueError):
                normalized = repr(float(normalized.decode())).encode()
        hashed = keyed()  # ends as the hash of the whole text, without being keyed anew
        hashed.update(normalized)
        digests.append(hashed.digest())
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


_BLANKS = bytes(code for code in range(128) if chr(code).isspace())
_NUMBER_STARTS = frozenset(bytes([code]) for code in b"0123456789+-.iInN")
"""The characters of ASCII with which a text that `float` reads can begin."""


def _stretches(rows: Numbers, length: int) -> Numbers:
    """A number of every stretch of so many rows, a power of two, unless it overlaps its own repetition."""
    spans, span = rows, 1
    while span < length:
        spans = _mix(_mix(spans[:-span]) + spans[span:])
        span *= 2
    order = np.argsort(spans, kind="stable")
    is_repeated = (spans[order][1:] == spans[order][:-1]) & (np.diff(order) < length)
    is_periodic = np.isin(spans, spans[order][1:][is_repeated])
    return spans[~is_periodic]


@dataclass(frozen=True)
class Marks:
    """Keyed marks of some rows of answers.

    - `rows` : the number of rows.
    - `content` : the mark of all rows in any order; empty if others might have the same by chance.
    - `orders` : for each batch, the mark of all its rows in their order.
    - `stretches` : the smallest marks of stretches of rows, increasing.
    """

    rows: int = key(whole, default=0)
    content: str = key(default="")
    orders: tuple[str, ...] = key(listed(text), default=())
    stretches: tuple[str, ...] = key(listed(text), default=())

    def __post_init__(self) -> None:
        check(self, "marks")

    def __add__(self, other: Marks) -> Marks:
        sums = [int(digest, 16) for digest in (self.content, other.content) if digest]
        content = f"{sum(sums) % (1 << 64):016x}" if len(sums) == 2 else ""
        smallest = tuple(sorted((*self.stretches, *other.stretches))[:MAX_STRETCH_MARKS])
        return Marks(self.rows + other.rows, content, (*self.orders, *other.orders), smallest)

    @property
    def has_repeated_rows(self) -> bool:
        """True if some of the rows come twice, in one order."""
        repeat_count = len(self.stretches) - len(set(self.stretches))
        return repeat_count >= MIN_COMMON_STRETCHES or len(set(self.orders)) < len(self.orders)

    def overlaps(self, other: Marks) -> bool:
        """Return True if both marks share rows of the same people."""
        is_same_content = bool(self.content) and (self.rows, self.content) == (other.rows, other.content)
        common_count = len(set(self.stretches) & set(other.stretches))
        return is_same_content or common_count >= MIN_COMMON_STRETCHES or bool(set(self.orders) & set(other.orders))


def _entropy(counts: npt.NDArray[Any]) -> float:
    """The bits that one of so many rows of each kind holds."""
    shares = counts / max(1, counts.sum())
    return float(-(shares * np.log2(shares)).sum())


class RowMarker:
    """Marks batches of rows under a key: all columns together, and each column of `answers` in its order."""

    def __init__(self, columns: Sequence[str], answers: Sequence[str], secret: bytes) -> None:
        self._columns, self._secret, self._orders = columns, secret, list[str]()
        self._answers = [
            name for name in answers if [name] != list(columns)
        ]  # the only column is marked as a whole row
        self._count = self._sum = self._different = 0
        self._stretches = np.empty(0, np.uint64)

    def mark_batches(self, batches: Iterable[Any], first_row: int = 1, dropped_rows: Rows = NO_ROWS) -> Iterator[Any]:
        """Yield the record batches, each after its rows were marked, except the dropped rows."""
        for batch in batches:
            retained_rows, _ = drop_rows(batch, first_row, dropped_rows)
            self._add(_rows(retained_rows, self._columns, self._secret))
            for name in self._answers:
                rows = _rows(retained_rows, [name], self._secret)
                self._mark_stretches(rows, _entropy(np.unique(rows, return_counts=True)[1]))
            yield batch
            first_row += batch.num_rows

    def _add(self, rows: Numbers) -> None:
        _, counts = np.unique(rows, return_counts=True)
        n, entropy = len(rows), _entropy(counts)
        self._count, self._different = self._count + n, max(self._different, len(counts))
        self._sum = (self._sum + sum(map(int, rows.tolist()))) % (1 << 64)
        if n * entropy >= MIN_CONTENT_BITS:
            self._orders.append(hashlib.blake2b(rows.tobytes(), key=self._secret, digest_size=8).hexdigest())
        self._mark_stretches(rows, entropy)

    def _mark_stretches(self, rows: Numbers, entropy: float) -> None:
        """Mark stretches of rows. A row holds `entropy` bits."""
        length = 1 << max(3, int(np.ceil(np.log2(STRETCH_BITS / max(entropy, 1e-3)))))
        for span in (length, 2 * length):
            if len(rows) >= span + 2 * MIN_COMMON_STRETCHES:
                self._stretches = np.sort(np.concatenate([self._stretches, _stretches(rows, span)]))[:MAX_STRETCH_MARKS]

    @property
    def marks(self) -> Marks:
        """The marks of all rows that passed."""
        # The same counts of k kinds of rows come by chance with about the probability (n / k) ** (-(k - 1) / 2).
        n, k = self._count, max(1, self._different)
        is_conclusive = (k - 1) / 2 * np.log2(max(2.0, n / k)) >= MIN_CONTENT_BITS
        stretches = tuple(f"{stretch:016x}" for stretch in self._stretches)
        return Marks(n, f"{self._sum:016x}" if is_conclusive else "", tuple(self._orders), stretches)


def _load_packed_marks(value: Any, name: str) -> bytes:
    try:
        content = base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        content = b"?"
    if len(content) % 8:
        raise invalid(name, "marks in base64", Phrase(kind(value)))
    return content


@dataclass(frozen=True)
class Entry:
    """A run in the ledger: its plan's survey, round and checksum, the source of its words, and its marks.

    - `rounds` : the number of rounds that the consent form declares; None if it declares none.
    - `claims` : (epsilon, eta), the guarantee of one round.
    - `packed` : the marks of the respondents with ids, eight bytes each.
    """

    survey: str = key(text)
    round: int = key(whole)
    plan: str = key(text)
    words: str = key(text)
    marks: Marks = key(load=lambda data, name: load(Marks, data, name), dump=dump)
    rounds: int | None = key(whole, default=None, omit=True)
    claims: tuple[float, ...] = key(listed(number), default=(), omit=True)
    packed: bytes = key(
        default=b"",
        name="people",
        omit=True,
        load=_load_packed_marks,
        dump=lambda packed: base64.b64encode(packed).decode(),
    )

    def __post_init__(self) -> None:
        check(self, "ledger")
        if self.packed and len(self.claims) != 2:
            raise InvalidInput("ledger: a run must record the epsilon and the eta that its consent form states")

    @classmethod
    def from_plan(cls, plan: Plan, words: str, marks: Marks, people: Numbers | None) -> Entry:
        """Return the entry of a run under `plan`."""
        ids: dict[str, Any] = {}
        if people is not None:
            epsilon, eta = plan.protected_claims()
            ids = {"claims": (min(epsilon, sys.float_info.max), eta), "packed": people.astype("<u8").tobytes()}
        return cls(plan.name, plan.round, plan.checksum, words, marks, plan.rounds, **ids)

    @property
    def run(self) -> Run:
        """The run as its respondents count it; it has no respondents if they have no ids."""
        claims = self.claims or (0.0, 0.0)
        return Run(self.words, self.round, self.rounds, (claims[0], claims[1]), np.frombuffer(self.packed, "<u8"))


class Ledger:
    """The ledger at a path. The first run creates the file."""

    def __init__(self, path: Path) -> None:
        if path.is_dir() or not path.name:
            raise invalid("ledger", "the path of a file", Phrase("a folder"), str(path))
        self.path = path

    def _content(self) -> tuple[bytes, list[Entry]] | None:
        try:
            with self.path.open("rb") as file:
                refuse_shared(os.fstat(file.fileno()), "ledger", self.path)
                data = strict.json_value(file.read(), str(self.path))
        except NO_FILE:
            return None
        version_of(data, f"ledger {self.path}", FORMAT, (VERSION,))
        try:
            secret = bytes.fromhex(data["key"])
        except (KeyError, TypeError, ValueError):
            raise InvalidInput(f"{self.path}: the ledger has no valid key") from None
        runs = data.get("runs")
        if not isinstance(runs, list) or len(secret) != 32:
            raise invalid("ledger", "a list of runs and a key", Phrase(kind(runs)), str(self.path))
        return secret, [load(Entry, run, f"ledger {self.path}") for run in runs]

    def knows(self, survey: str) -> bool:
        """Return True if a run of the survey is in the ledger."""
        return any(run.survey == survey for run in (self._content() or (b"", []))[1])

    def runs(self, survey: str) -> list[Run]:
        """Return the runs of a survey in their order, or an empty list without a ledger."""
        return [entry.run for entry in (self._content() or (b"", []))[1] if entry.survey == survey]

    def secret(self) -> bytes:
        """Return the key of the ledger, and create the ledger if it is missing."""
        if (content := self._content()) is None:
            with suppress(FileExistsError):
                self._write(SecretKey.fresh().derive(b"ldpopt ledger"), [], new=True)
            content = self._content()
        assert content is not None
        return content[0]

    def _write(self, secret: bytes, runs: Sequence[Entry], new: bool = False) -> None:
        content = {"format": FORMAT, "version": VERSION, "key": secret.hex(), "runs": [dump(run) for run in runs]}
        create_private(self.path, strict.json_text(content).encode(), force=not new)

    def standing(self, plan: Plan, words: str, people: Numbers, different_people: bool) -> Standing:
        """Return which of these respondents, given by their marks, a run may report.

        The parameters are those of `enter`.
        """
        runs = (self._content() or (b"", []))[1]
        return self._standing(Entry.from_plan(plan, words, Marks(), people), runs, different_people)

    def _standing(self, entry: Entry, runs: Sequence[Entry], different_people: bool) -> Standing:
        survey_runs = [run for run in runs if run.survey == entry.survey]
        if entry.rounds and entry.round > 1 and not (survey_runs or different_people):
            expected = f"a ledger of the rounds of {entry.survey!r} before round {entry.round}"
            raise invalid(
                "ledger", f"{expected} (or --alike, alike=True, if nobody took part in them)", None, str(self.path)
            )
        return assess_standing(entry.run, [run.run for run in survey_runs])

    def enter(
        self, plan: Plan, words: str, marks: Marks, different_people: bool, people: Numbers | None = None
    ) -> tuple[int, Standing | None]:
        """Record a run before its reports appear, and count the other rounds of the same answers.

        - `words` : the source of the words, a key or a run. The same words repeat the same reports and spend nothing.
        - `different_people` : True if equal answers are those of other people.
        - `people` : the marks of all respondents; None if they have no ids.

        Returns the number of other rounds with reports of the same answers, and the standing of `people`.

        Raises `InvalidInput` for answers that were reported in this round with other words. With ids, it also does for
        people whom the run may not report. Without ids, it does for a round beyond those that respondents were told of.
        """
        with hold_lock(self.path.with_name(f".{self.path.name}.lock"), "ledger", "no other run that writes it"):
            secret = self.secret()
            runs = (self._content() or (secret, []))[1]
            entry = Entry.from_plan(plan, words, marks, people)
            declared_rounds = min(
                (run.rounds for run in runs if run.rounds and run.survey == plan.name), default=plan.round
            )
            if people is not None:
                standing = self._standing(entry, runs, different_people)
                standing.refuse(plan, self.path)
            elif plan.round > declared_rounds and not different_people:
                raise InvalidInput(
                    f"round: expected at most {declared_rounds}, of which respondents of {plan.name!r} were told "
                    f"before, got {plan.round}. Ask for consent anew, "
                    f"as a survey of another name (or --alike, alike=True, for "
                    f"other people's answers), at {self.path}"
                )
            same_answer_runs = [
                run for run in runs if run.words != words and not different_people and run.marks.overlaps(marks)
            ]
            if any(run.round == plan.round for run in same_answer_runs):
                raise InvalidInput(
                    f"answers: expected ones of which no reports were drawn in round {plan.round} before, got the same "
                    "people's again, which would spend their epsilon twice. Take the reports that are there, or a "
                    "plan of another round, which counts them again (or --alike, alike=True, for other people's), "
                    f"at {self.path}"
                )
            if entry not in runs:
                self._write(secret, [*runs, entry])
        return len({run.round for run in same_answer_runs}), None if people is None else standing


def ledger_of(plan: Path, survey: Plan | SurveySpec | None = None) -> Path:
    """Return the path of a plan's ledger: next to its file, or that of another plan.

    Another plan of the survey in the same folder may have the ledger.

    Raises `InvalidInput` if several ledgers of the folder have rounds of the survey.
    """
    default_path = plan.with_name(plan.name + ENDING)
    if survey is None or survey.respondent is None:
        return default_path
    ledgers = [path for path in sorted(default_path.parent.glob(f"*{ENDING}")) if Ledger(path).knows(survey.name)]
    if len(ledgers) > 1:
        expected, got = (
            f"one of all rounds of {survey.name!r} (--ledger names it)",
            " and ".join(ledger.name for ledger in ledgers),
        )
        raise invalid("ledger", expected, Phrase(got), str(default_path.parent))
    return ledgers[0] if ledgers else default_path
