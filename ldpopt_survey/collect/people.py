"""Keyed marks of respondents, and the runs that each was in -> whom a further run may report, by what they were told.

A respondent was told by each run's consent form of so many rounds, and of what the reports of all of them tell; the
least of it binds. Runs whose words are the same repeat the same reports, and are one round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput
from ldpopt.numbers.rounding import ceil_digits
from ldpopt_survey.collect.words import Respondents, SecretKey, tag
from ldpopt_survey.plan.plan import Plan, compose_claims, over_rounds

Numbers = npt.NDArray[np.uint64]

AGAIN, BEYOND = 1, 2
"""Why a run may not report somebody: their report of this round is there, or it would exceed what they were told."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run in the ledger: what its words come from, and the round of its plan.

    rounds : how many rounds respondents were told of, if that was declared. claims : (epsilon, eta) that its plan
        promises of one. people : the marks of its respondents, rising.
    """

    words: str
    round: int
    rounds: int | None
    claims: tuple[float, float]
    people: Numbers


def marks_of(ids: Any, secret: bytes, survey: str) -> Numbers:
    """Keyed 64-bit marks of respondent ids (a pyarrow string array, in one writing) in all rounds of a survey."""
    return Respondents(SecretKey(secret), ids).macs(tag("person", survey))[:, 0]


def distinct(marks: Numbers) -> Numbers:
    """The different marks, rising; numpy's `unique` looks each up in a table, which takes several times as long."""
    rising = np.sort(marks)
    first = np.ones(len(rising), bool)
    np.not_equal(rising[1:], rising[:-1], out=first[1:])
    return rising[first]


@dataclass(frozen=True, eq=False)
class Standing:
    """Whom of its respondents a run may report.

    why : for each of them 0, or why not, `AGAIN` or `BEYOND`.
    rounds : of those whom it may report, how many have then answered one round, two, ... of the survey.
    gone : how many of the survey's last round before are not in this one.
    """

    why: npt.NDArray[np.int8]
    rounds: tuple[int, ...]
    gone: int

    def refuse(self, plan: Plan, where: object) -> None:
        """`InvalidInput`, with counts and no ids, if there is anybody whom the run may not report."""
        again, beyond = (int((self.why == kind).sum()) for kind in (AGAIN, BEYOND))
        if again or beyond:
            raise InvalidInput(
                f"respondent column {plan.respondent!r}: expected people within what they were told, got {again:,} "
                f"with other reports of round {plan.round}, which would spend their epsilon twice, and {beyond:,} "
                "whose reports of all rounds would exceed what they were told. Nothing was reported of anybody; "
                f"--leave-out (leave_out=True) leaves them out, at {where}"
            )


def standing(run: Run, before: Sequence[Run]) -> Standing:
    """Whom of its respondents `run` may report, after the runs `before` of the same survey, in their order."""
    codes, histories = np.zeros(len(run.people), np.intp), [tuple[Run, ...]()]
    for past in before:
        there = np.isin(run.people, past.people, assume_unique=True)
        kinds, codes = np.unique(2 * codes + there, return_inverse=True)
        histories = [histories[kind // 2] + (past,) * int(kind % 2) for kind in kinds]
    why = np.array([why_not(run, history) for history in histories], np.int8)[codes]
    # What a repeated run counts does not depend on the runs since it was first entered.
    earlier = {past.words for past in takewhile(lambda past: past.words != run.words, before)}
    answered = np.array([1 + len({each.words for each in history} & earlier) for history in histories])[codes]
    rounds = np.bincount(answered[why == 0], minlength=1)[1:]
    last = max((past.round for past in before if past.round < run.round), default=0)
    of_last = [past.people for past in before if past.round == last]
    gone = 0
    if of_last:
        gone = int((~np.isin(distinct(np.concatenate(of_last)), run.people, assume_unique=True)).sum())
    return Standing(why, tuple(map(int, rounds)), gone)


def why_not(run: Run, before: Sequence[Run]) -> int:
    """Return why a person who was in the runs `before` may not be in `run`, or 0."""
    runs = list({taken.words: taken for taken in (*before, run)}.values())
    if any(taken.words == run.words for taken in before):
        return 0
    if any(taken.round == run.round for taken in before):
        return AGAIN
    spent = [taken.claims for taken in runs]
    for taken in runs:
        if taken.rounds and (len(runs) > taken.rounds or exceeds(spent, over_rounds(*taken.claims, taken.rounds))):
            return BEYOND
    return 0


def exceeds(spent: Sequence[tuple[float, float]], told: tuple[float, float]) -> bool:
    """Return whether reports within these (epsilon, eta) together exceed what a form says, rounded up."""
    return len(set(spent)) > 1 and any(
        reached > float(ceil_digits(said, 4)) for reached, said in zip(compose_claims(spent), told, strict=True)
    )
