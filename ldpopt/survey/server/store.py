"""The database of a collector: each submission is stored once, and one durable commit stores many."""

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
    """The result of a submission.

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
    """Whether a round is closed to submissions, and whether a submission needs an invitation.

    >>> RoundState(closed=False, invited=True)
    RoundState(closed=False, invited=True)
    """

    closed: bool
    invited: bool


@dataclass(frozen=True, eq=False)
class Summary(Result):
    """The content of a round in numbers: reports by day, and invitations drawn and used.

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
    """Decide about a batch of submissions, in their order.

    stored : by id, the codes of the submissions in the batch that are in the database already.
    unused : the invitations in the batch that may still be used.

    An identical retry counts as repeated, also without its invitation or after the end of the round. So a device to
    which the answer was lost learns that nothing is left to do. A given invitation must be valid even if none is
    needed, since otherwise a wrong link would go unnoticed.

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
    """One round in a database.

    `write`, `state` and `close` share a connection, so only one thread at a time may call them. The other methods open
    their own connection. All raise `Unavailable` if the database does not answer or has no room. Then nothing of the
    call is stored or, if only the answer to a commit was lost, all of it.
    """

    def write(self, batch: Sequence[Submission], day: str) -> list[Outcome]:
        """Decide about a batch and store its new submissions. It returns after the commit is durable."""

    def state(self) -> RoundState:
        """Whether the round is closed, and whether it needs invitations, as the database says now."""

    def others(self) -> dict[str, int]:
        """The numbers of other plans' rounds in the database, by the checksums of the plans."""

    def summary(self) -> Summary:
        """The numbers of reports and invitations of the round."""

    def invite(self, hashes: Sequence[bytes]) -> None:
        """Add invitations. From then on every submission to the round needs one."""

    def close_round(self) -> None:
        """Accept no more submissions.

        Keep only the number of invitations, and leave no order of arrival in the rows.
        """

    def rows(self, at_once: int) -> Iterator[Rows]:
        """The round's reports at one moment, in the order of their ids, at most `at_once` at a time."""

    def close(self) -> None:
        """Close the database."""
