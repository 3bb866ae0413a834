"""What a collector asks of a database: submissions stored once each, in one durable commit for many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from ldpopt.errors import LdpoptError
from ldpopt.results import Result
from ldpopt.survey.server.submission import Submission

Rows = list[tuple[bytes, str, bytes]]
"""Stored reports: id, day as YYYY-MM-DD, codes."""


class Unavailable(LdpoptError, RuntimeError):
    """The database cannot store or read now: the disk is full, the server is gone, another program holds it."""


class Outcome(Enum):
    """What became of a submission.

    >>> [outcome.value for outcome in Outcome]
    ['stored', 'repeated', 'conflict', 'uninvited', 'closed']
    """

    STORED = "stored"
    REPEATED = "repeated"
    CONFLICT = "conflict"
    UNINVITED = "uninvited"
    CLOSED = "closed"


@dataclass(frozen=True, eq=False)
class RoundState(Result):
    """Whether a round takes no more submissions, and whether it takes only those with an invitation.

    >>> RoundState(closed=False, invited=True)
    RoundState(closed=False, invited=True)
    """

    closed: bool
    invited: bool


@dataclass(frozen=True, eq=False)
class Summary(Result):
    """What a round holds: reports by day, and invitations drawn and used.

    >>> Summary(closed=False, days={"2026-01-30": 2, "2026-01-31": 3}, drawn=0, used=0).reports
    5
    """

    closed: bool
    days: Mapping[str, int]
    drawn: int
    used: int

    def _columns(self) -> dict[str, list[Any]]:
        return {"day": list(self.days), "reports": list(self.days.values())}

    @property
    def reports(self) -> int:
        """The number of reports."""
        return sum(self.days.values())


@dataclass(frozen=True)
class Decision:
    """What to do with a batch: each submission's outcome, what to store, and which invitations are used by it."""

    outcomes: list[Outcome]
    new: list[Submission]
    used: list[bytes]


def decide(
    batch: Sequence[Submission], stored: Mapping[bytes, bytes], unused: Iterable[bytes], state: RoundState
) -> Decision:
    """What becomes of a batch, in its order, given what the database holds.

    stored : codes by id, of those ids of the batch that are stored. unused : those of its invitations that may be used.

    An identical retry is repeated, also without its invitation or after the end, so that a device whose answer was lost
    on the way learns that nothing else is to be done. An invitation that is given must be good even where none is
    needed: else a mistaken link would go unnoticed.

    >>> one = Submission(b"a" * 16, b"0000")
    >>> made = decide([one, one, Submission(one.id, b"1111")], {}, (), RoundState(closed=False, invited=False))
    >>> [outcome.value for outcome in made.outcomes], len(made.new)
    (['stored', 'repeated', 'conflict'], 1)
    """
    known, free = dict(stored), set(unused)
    outcomes: list[Outcome] = []
    new: list[Submission] = []
    used: list[bytes] = []
    for one in batch:
        if one.id in known:
            outcomes.append(Outcome.REPEATED if known[one.id] == one.codes else Outcome.CONFLICT)
        elif state.closed:
            outcomes.append(Outcome.CLOSED)
        elif (one.invitation is None and state.invited) or (one.invitation is not None and one.invitation not in free):
            outcomes.append(Outcome.UNINVITED)
        else:
            if one.invitation is not None:
                free.remove(one.invitation)
                used.append(one.invitation)
            known[one.id] = one.codes
            new.append(one)
            outcomes.append(Outcome.STORED)
    return Decision(outcomes, new, used)


class Store(Protocol):
    """One round in a database. `write`, `state` and `close` belong to one thread at a time; the rest opens its own.

    `Unavailable` where the database does not answer or has no room; then nothing of the call is stored, or, if only
    the answer of a commit was lost, all of it.
    """

    def write(self, batch: Sequence[Submission], day: str) -> list[Outcome]:
        """Decide about a batch and store what is new; returns after the commit is durable."""

    def state(self) -> RoundState:
        """Whether the round is closed, and whether it takes invitations; asks the database."""

    def others(self) -> dict[str, int]:
        """The numbers of other plans' rounds in the database, by the checksums of the plans."""

    def summary(self) -> Summary:
        """What the round holds."""

    def invite(self, hashes: Sequence[bytes]) -> None:
        """Add invitations; from then on the round takes no submission without one."""

    def close_round(self) -> None:
        """Take no more submissions, forget the invitations but for their number, and leave no order in the rows."""

    def rows(self, at_once: int) -> Iterator[Rows]:
        """The round's reports as of one moment, in the order of their ids, at most `at_once` at a time."""

    def close(self) -> None:
        """Let go of the database."""
