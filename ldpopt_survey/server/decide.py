"""A batch of submissions and the stored rows determine the new rows, without a database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from ldpopt.values.results import Result
from ldpopt_survey.server.submission import Submission

__all__ = ["Outcome", "RoundState", "Summary", "drawn_mark", "spent_mark"]


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
    """The state of a round: closed to submissions or not, and if a submission needs an invitation.

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


class Decision(NamedTuple):
    """The decision about a batch: each submission's outcome, the rows to store, and the used invitations."""

    outcomes: list[Outcome]
    new: list[Submission]
    used: list[bytes]


def decide(
    batch: Sequence[Submission],
    stored_codes: Mapping[bytes, bytes],
    unused_invitations: Iterable[bytes],
    state: RoundState,
) -> Decision:
    """Resolve a batch of submissions, in their order.

    - `stored_codes` : by id, the codes of the submissions in the batch that are in the database already.
    - `unused_invitations` : the invitations in the batch that may still be used.

    An identical retry counts as repeated, also without its invitation or after the end of the round. So a device that
    lost the answer learns that nothing is left to do. A given invitation must be valid even if none is needed, since
    otherwise a wrong link would go unnoticed.
    """
    known_codes, usable_invitations = dict(stored_codes), {*unused_invitations, *(() if state.invited else (None,))}
    decision = Decision([], [], [])
    for submission in batch:
        if submission.id in known_codes:
            outcome = Outcome.REPEATED if known_codes[submission.id] == submission.codes else Outcome.CONFLICT
        elif state.closed:
            outcome = Outcome.CLOSED
        elif submission.invitation not in usable_invitations:
            outcome = Outcome.UNINVITED
        else:
            outcome = Outcome.STORED
            if submission.invitation is not None:
                usable_invitations.remove(submission.invitation)
                decision.used.append(submission.invitation)
            known_codes[submission.id] = submission.codes
            decision.new.append(submission)
        decision.outcomes.append(outcome)
    return decision


def drawn_mark(invitation: bytes) -> bytes:
    """Compute the stored form of a drawn invitation, unchanged until the round is closed."""
    return hashlib.sha256(b"ldpopt drawn " + invitation).digest()


def spent_mark(invitation: bytes) -> bytes:
    """Compute the stored form of a used invitation.

    Without the invitation's text nobody can tell which of the drawn ones it was.
    """
    return hashlib.sha256(b"ldpopt spent " + invitation).digest()
