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

ALREADY_REPORTED, BEYOND_PROMISE = 1, 2
"""Why a run may not report somebody: their report of this round is there, or it would exceed what they were told."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run in the ledger: the source of its words, and the round of its plan.

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

    why : for each of them 0, or why not, `ALREADY_REPORTED` or `BEYOND_PROMISE`.
    rounds : of those whom it may report, how many have then answered one round, two, ... of the survey.
    gone : how many of the survey's last round before are not in this one.
    """

    why: npt.NDArray[np.int8]
    rounds: tuple[int, ...]
    gone: int

    def refuse(self, plan: Plan, where: object) -> None:
        """`InvalidInput`, with counts and no ids, if there is anybody whom the run may not report."""
        already_reported, beyond_promise = (
            int((self.why == reason).sum()) for reason in (ALREADY_REPORTED, BEYOND_PROMISE)
        )
        if already_reported or beyond_promise:
            raise InvalidInput(
                f"respondent column {plan.respondent!r}: expected people within what they were told, got "
                f"{already_reported:,} with other reports of round {plan.round}, which would spend their epsilon "
                f"twice, and {beyond_promise:,} whose reports of all rounds would exceed what they were "
                f"told. Nothing was reported of anybody; --leave-out (leave_out=True) leaves them out, at {where}"
            )


def assess_standing(run: Run, earlier_runs: Sequence[Run]) -> Standing:
    """Whom of its respondents `run` may report, after the runs `earlier_runs` of the same survey, in their order."""
    codes, histories = np.zeros(len(run.people), np.intp), [tuple[Run, ...]()]
    for past in earlier_runs:
        is_present = np.isin(run.people, past.people, assume_unique=True)
        kinds, codes = np.unique(2 * codes + is_present, return_inverse=True)
        histories = [histories[kind // 2] + (past,) * int(kind % 2) for kind in kinds]
    reasons = np.array([refusal_reason(run, history) for history in histories], np.int8)[codes]
    # What a repeated run counts does not depend on the runs since it was first entered.
    earlier = {past.words for past in takewhile(lambda past: past.words != run.words, earlier_runs)}
    answered = np.array([1 + len({past_run.words for past_run in history} & earlier) for history in histories])[codes]
    rounds = np.bincount(answered[reasons == 0], minlength=1)[1:]
    last = max((past.round for past in earlier_runs if past.round < run.round), default=0)
    of_last = [past.people for past in earlier_runs if past.round == last]
    absent_count = 0
    if of_last:
        absent_count = int((~np.isin(distinct(np.concatenate(of_last)), run.people, assume_unique=True)).sum())
    return Standing(reasons, tuple(map(int, rounds)), absent_count)


def refusal_reason(run: Run, earlier_runs: Sequence[Run]) -> int:
    """Return why a person who was in the runs `earlier_runs` may not be in `run`, or 0."""
    runs = list({entry.words: entry for entry in (*earlier_runs, run)}.values())
    if any(entry.words == run.words for entry in earlier_runs):
        return 0
    if any(entry.round == run.round for entry in earlier_runs):
        return ALREADY_REPORTED
    claims = [entry.claims for entry in runs]
    for entry in runs:
        if entry.rounds and (len(runs) > entry.rounds or exceeds(claims, over_rounds(*entry.claims, entry.rounds))):
            return BEYOND_PROMISE
    return 0


def exceeds(claims: Sequence[tuple[float, float]], promised: tuple[float, float]) -> bool:
    """Return whether reports within these (epsilon, eta) together exceed what a form says, rounded up."""
    return len(set(claims)) > 1 and any(
        composed_value > float(ceil_digits(promised_value, 4))
        for composed_value, promised_value in zip(compose_claims(claims), promised, strict=True)
    )
