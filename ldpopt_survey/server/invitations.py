"""Invitations to a round: the frame of the people, their rounds by the ledger, the codes, and the file of the codes.

The file is written before anybody is counted and before the database needs invitations. So neither a full disk nor
a kill leaves codes that nobody holds: the same command then continues with the codes of that file.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import pa
from ldpopt.files.atomic import create_private, read_text, sync_folder
from ldpopt.files.delimited import PLAIN, sniff
from ldpopt.files.escapes import for_terminal
from ldpopt.values.distribution import positive_integer
from ldpopt_survey.collect.batch import ids_of
from ldpopt_survey.collect.ledger import Ledger, Marks
from ldpopt_survey.collect.people import marks_of
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.spec import PERSON
from ldpopt_survey.server.store import Store
from ldpopt_survey.server.submission import INVITATION_CHARACTERS, invitation_hash

__all__ = ["Invited", "draw_invitations", "invite_by_file", "is_interrupted", "read_frame"]

MIN_GROUP_ROWS = 5
"""The fewest rows of a frame with one combination of groups, unless the plan accepts that people are recognized."""


def read_frame(plan: Plan, path: str | PathLike[str]) -> tuple[list[str], list[str]]:
    """Read a frame, a CSV file: each respondent's id, and the groups of the invitation.

    Each group follows a dash.

    There are ids if the file has the plan's column of them.

    Raises `InvalidInput` for a file without a column for each question that comes with invitations, and for an entry
    that is not one of its answers. It is also raised if fewer than `MIN_GROUP_ROWS` rows share all their groups: their
    reports would nearly identify the senders. A plan accepts this by name, with ``revealed = { respondent = [...] }``.
    """
    invited_questions = [question for question in plan.public if question.invited]
    dialect = sniff(Path(path)) if Path(path).is_file() else PLAIN
    stream = io.StringIO(Path(path).read_bytes().decode(dialect.encoding, "replace").removeprefix("\ufeff"), newline="")
    rows = list(csv.DictReader(stream, delimiter=dialect.delimiter))
    groups = []
    for number, row in enumerate(rows, 1):
        for question in invited_questions:
            if (row.get(question.name) or "").strip() not in question.texts:
                where = f"row {number}, column {question.name!r}"
                raise InvalidInput(f"frame: {where} must have one of {', '.join(question.texts[:8])}")
        groups.append("".join(f"-{question.texts.index(row[question.name].strip())}" for question in invited_questions))
    if not groups:
        raise InvalidInput(f"{path}: the frame has no rows; expected at least one")
    ids = [row[plan.respondent] or "" for row in rows] if plan.respondent in rows[0] else []
    if not (ids or invited_questions):
        raise InvalidInput(f"{path}: the frame has neither respondents' ids nor public questions of the invitations")
    small_groups = sum(1 for count in Counter(groups).values() if count < MIN_GROUP_ROWS)
    accepted_columns = dict(plan.revealed).get(PERSON, ())
    if (
        small_groups
        and invited_questions
        and not {question.name for question in invited_questions} <= set(map(str, accepted_columns))
    ):
        names = ", ".join(json.dumps(question.name, ensure_ascii=False) for question in invited_questions)
        expected = (
            f"{MIN_GROUP_ROWS} rows or more for each combination of groups (or revealed = {{ {PERSON} = [{names}] }})"
        )
        raise invalid("frame", expected, Phrase(f"{small_groups} with fewer"))
    return ids, groups


def new_invitations(plan: Plan, count: int, groups: Sequence[str] = ()) -> list[str]:
    """Generate `count` invitation codes, which no database knows yet.

    The parameters are those of `draw_invitations`.
    """
    codes = [secrets.token_urlsafe(16) for _ in range(positive_integer(count, "invitations"))]
    if any(public.invited for public in plan.public) != bool(groups):
        if groups:
            raise InvalidInput("invitations: no question of the plan comes with them, so the frame must have no groups")
        raise InvalidInput("invitations: questions of the plan come with them, so draw them for a frame (--frame)")
    return [code + group for code, group in zip(codes, groups, strict=True)] if groups else codes


def draw_invitations(plan: Plan, store: Store, count: int, groups: Sequence[str] = ()) -> list[str]:
    """Draw `count` invitations to the round, 128 random bits each; submissions then need one.

    Parameters
    ----------
    plan : The plan of the round.
    store : The round, from `database`.
    count : The number of invitations, a positive integer.
    groups : The group of each invited person, from `read_frame`, if the plan has questions that come with invitations.

    Returns
    -------
    list of str
        The codes. The database stores their hashes and whether each is used, but not the report that used it.

    Raises
    ------
    InvalidInput
        For a count that is not a positive integer, and for a closed round.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt_survey import QuestionSpec, SurveySpec, make_plan
    >>> from ldpopt_survey.server import database
    >>> plan = make_plan(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), {"vote": [[0.75, 0.25]] * 2})
    >>> with TemporaryDirectory() as folder, database(Path(folder, "reports.db"), plan, create=True) as store:
    ...     len(draw_invitations(plan, store, 3)), store.summary().drawn
    (3, 3)
    """
    codes = new_invitations(plan, count, groups)
    store.invite([invitation_hash(plan.checksum, code) for code in codes])
    return codes


class Invited:
    """The people of a frame by their ids, whom the ledger counts as respondents of the round once they are invited.

    - `is_invited` : for each id, True to invite the person.
    - `no_other_rounds` : True if none of them took part in rounds that the ledger does not know.
    - `codes` : those of an interrupted run for the same people.

    Raises `InvalidInput` if an id comes twice. It also does so for people whose consent form does not cover the round,
    unless they are to be left out.
    """

    def __init__(
        self,
        plan: Plan,
        ledger: Path,
        ids: Sequence[str],
        no_other_rounds: bool,
        leave_out: bool,
        codes: Sequence[str] = (),
    ) -> None:
        self._no_other_rounds, self._plan, self._ledger = no_other_rounds, plan, Ledger(ledger)
        normalized_ids = ids_of(pa.array(ids, pa.string()), f"respondent column {plan.respondent!r}")
        marks = marks_of(normalized_ids, self._ledger.secret(), plan.name)
        self._people, places = np.unique(marks, return_inverse=True)
        if len(self._people) < len(marks):
            raise invalid(f"respondent column {plan.respondent!r}", "everybody once", Phrase("somebody twice"))
        standing = self._ledger.standing(plan, _words(codes), self._people, no_other_rounds)
        if not leave_out or standing.reasons.all():
            standing.refuse(plan, ledger)
        self.is_invited = (standing.reasons[places] == 0).tolist()
        self._people = self._people[standing.reasons == 0]

    def enter(self, codes: Sequence[str]) -> None:
        """Record them in the ledger before anybody has an invitation.

        Raises `InvalidInput` if another run came first.
        """
        self._ledger.enter(self._plan, _words(codes), Marks(), self._no_other_rounds, self._people)


def _words(codes: Sequence[str]) -> str:
    """The ledger's name of the run that draws these invitations; a repeated run is the same one."""
    return f"invitations {hashlib.sha256(' '.join(codes).encode()).hexdigest()[:16]}"


def invite_by_file(
    plan: Plan, store: Store, path: Path, link: str = "", count: int = 0, groups: Sequence[str] = (),
    invited: Callable[[Sequence[str]], Invited] | None = None,
) -> int:  # fmt: skip
    """Write invitations to a new private file, count the people, draw them, return their number.

    - `path` : the new file.
    - `link` : the text before each code.
    - `count` : the number of invitations, if nobody is named.
    - `groups` : as for `draw_invitations`, one for each person.
    - `invited` : a function from the codes of an interrupted run (none without one) to the people of a frame, whom the
      ledger counts.

    The codes wait in a hidden file next to `path` from before the ledger and the database change until after. An
    interrupted call that is repeated takes the codes from there, so that all of them are drawn, each once.

    Raises `InvalidInput` for an existing path, a closed round, and a waiting file that belongs to another call.
    """
    if for_terminal(link) != link or "\n" in link:
        raise InvalidInput(
            "--link: the text must be one line of printable characters, such as https://survey.example/#invitation="
        )
    if os.path.lexists(path) and not is_interrupted(plan, path):
        raise _path_exists_error(path)
    if store.state().closed:
        raise invalid("round", "one that is open, since codes of a closed one are refused", Phrase("a closed one"))
    waiting_path = _waiting_at(plan, path)
    codes = _waiting_codes(waiting_path, link)
    people = None if invited is None else invited(codes)
    if people is not None:
        groups = [group for group, is_invited in zip(groups, people.is_invited, strict=True) if is_invited]
        count = len(groups)
    groups = groups if any(groups) else []
    if not codes:
        codes = new_invitations(plan, count, groups)
        create_private(waiting_path, "".join(f"{link}{code}\n" for code in codes).encode())
    elif len(codes) != (count or len(groups)) or [code[INVITATION_CHARACTERS:] for code in codes] != (
        list(groups) or [""] * count
    ):
        raise _other_run_error(waiting_path)
    with _reserved(path, waiting_path):
        if people is not None:
            try:
                people.enter(codes)
            except InvalidInput:
                waiting_path.unlink(missing_ok=True)  # nothing was counted and nothing drawn
                raise
        store.invite([invitation_hash(plan.checksum, code) for code in codes])
    return len(codes)


@contextmanager
def _reserved(path: Path, waiting_path: Path) -> Iterator[None]:
    """Keep the name `path` by an empty file during the block, after which it is the waiting file's."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if not _is_reserved(path, waiting_path):
            raise _path_exists_error(path) from None
    try:
        yield
    except BaseException:
        with suppress(OSError):
            if _is_reserved(path, path):
                path.unlink()
        raise
    if not _is_reserved(path, waiting_path):
        raise _path_exists_error(path)
    os.replace(waiting_path, path)
    sync_folder(path.parent)


def _waiting_at(plan: Plan, path: Path) -> Path:
    """The path where the codes for `path` wait."""
    return path.with_name(f".{path.name}.{plan.checksum[:16]}.unfinished")


def is_interrupted(plan: Plan, path: Path) -> bool:
    """Return True if an interrupted run left an empty file at `path`, to be replaced."""
    return _is_reserved(path, _waiting_at(plan, path))


def _is_reserved(path: Path, waiting_path: Path) -> bool:
    return waiting_path.is_file() and path.is_file() and not path.is_symlink() and path.stat().st_size == 0


def _waiting_codes(waiting_path: Path, link: str) -> list[str]:
    """The codes of an interrupted run; an empty list without one."""
    if not waiting_path.exists():
        return []
    codes = [line.removeprefix(link) for line in read_text(waiting_path).splitlines()]
    if not all(re.fullmatch(rf"[A-Za-z0-9_-]{{{INVITATION_CHARACTERS}}}(-[0-9]+)*", code) for code in codes):
        raise _other_run_error(waiting_path)
    return codes


def _path_exists_error(path: Path) -> InvalidInput:
    return invalid("--out", "a path that is not taken", Phrase("one that is"), str(path))


def _other_run_error(waiting_path: Path) -> InvalidInput:
    return InvalidInput(
        f"{waiting_path}: the frame, number or --link differs from that of the interrupted run; repeat that run, or "
        "delete its codes"
    )
