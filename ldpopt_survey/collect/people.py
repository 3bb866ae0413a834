"""Decide which respondents a further run may report, from keyed marks of them and the runs that each was in.

Each run's consent form told a respondent a number of rounds, and the guarantee of the reports of all these rounds. The
smallest of these limits binds. Runs with the same words repeat the same reports, and count as one round.
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
"""Reasons to exclude a respondent: they have a report of this round, or the run would exceed their consent form."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run in the ledger: the source of its words, and the round of its plan.

    - `rounds` : the number of rounds that the consent form declares; None if it declares none.
    - `claims` : (epsilon, eta), the guarantee of one round in the plan. Epsilon is in nats.
    - `people` : the marks of its respondents, increasing.
    """

    words: str
    round: int
    rounds: int | None
    claims: tuple[float, float]
    people: Numbers


def marks_of(ids: Any, secret: bytes, survey: str) -> Numbers:
    """Compute keyed 64-bit marks of respondent ids, the same in all rounds of a survey.

    ids : a pyarrow string array of normalized ids (`batch.ids_of`).
    """
    return Respondents(SecretKey(secret), ids).macs(tag("person", survey))[:, 0]


def distinct_marks(marks: Numbers) -> Numbers:
    """Return the different marks, increasing.

    This takes a fraction of the time of `np.unique`, which uses a hash table.
    """
    sorted_marks = np.sort(marks)
    is_first = np.ones(len(sorted_marks), bool)
    np.not_equal(sorted_marks[1:], sorted_marks[:-1], out=is_first[1:])
    return sorted_marks[is_first]


@dataclass(frozen=True, eq=False)
class Standing:
    """The decision about each respondent of a run.

    - `reasons` : (n,) 0 for a respondent whom the run may report; otherwise `ALREADY_REPORTED` or `BEYOND_PROMISE`.
    - `rounds` : of the respondents whom it may report, how many will have answered one round, two, ... of the survey.
    - `absent_count` : the number of respondents of the survey's previous round who are not in this one.
    """

    reasons: npt.NDArray[np.int8]
    rounds: tuple[int, ...]
    absent_count: int

    def refuse(self, plan: Plan, where: object) -> None:
        """Raise `InvalidInput`, with counts and no ids, if a respondent may not be in the run."""
        already_reported, beyond_promise = (
            int((self.reasons == reason).sum()) for reason in (ALREADY_REPORTED, BEYOND_PROMISE)
        )
        if already_reported or beyond_promise:
            raise InvalidInput(
                f"respondent column {plan.respondent!r}: expected people within what they were told, got "
                f"{already_reported:,} with other reports of round {plan.round}, which would spend their epsilon "
                f"twice, and {beyond_promise:,} whose reports of all rounds would exceed what they were "
                f"told. Nothing was reported of anybody; --leave-out (leave_out=True) leaves them out, at {where}"
            )


def assess_standing(run: Run, earlier_runs: Sequence[Run]) -> Standing:
    """Return the decision about each respondent of `run`.

    earlier_runs : the earlier runs of the same survey, in their order.
    """
    codes, histories = np.zeros(len(run.people), np.intp), [tuple[Run, ...]()]
    for past in earlier_runs:
        is_present = np.isin(run.people, past.people, assume_unique=True)
        kinds, codes = np.unique(2 * codes + is_present, return_inverse=True)
        histories = [histories[kind // 2] + (past,) * int(kind % 2) for kind in kinds]
    reasons = np.array([refusal_reason(run, history) for history in histories], np.int8)[codes]
    # A repeated run returns the counts of its first entry, without the runs since.
    earlier_words = {past.words for past in takewhile(lambda past: past.words != run.words, earlier_runs)}
    rounds_answered = np.array(
        [1 + len({past_run.words for past_run in history} & earlier_words) for history in histories]
    )[codes]
    round_counts = np.bincount(rounds_answered[reasons == 0], minlength=1)[1:]
    last_round = max((past.round for past in earlier_runs if past.round < run.round), default=0)
    people_of_last_round = [past.people for past in earlier_runs if past.round == last_round]
    absent_count = 0
    if people_of_last_round:
        absent_count = int(
            (~np.isin(distinct_marks(np.concatenate(people_of_last_round)), run.people, assume_unique=True)).sum()
        )
    return Standing(reasons, tuple(map(int, round_counts)), absent_count)


def refusal_reason(run: Run, earlier_runs: Sequence[Run]) -> int:
    """Return the reason why a person who was in `earlier_runs` may not be in `run`, or 0."""
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


def exceeds(claims: Sequence[tuple[float, float]], stated_claims: tuple[float, float]) -> bool:
    """Return True if reports within these (epsilon, eta) exceed a form's rounded-up limits."""
    return len(set(claims)) > 1 and any(
        composed_value > float(ceil_digits(stated_value, 4))
        for composed_value, stated_value in zip(compose_claims(claims), stated_claims, strict=True)
    )
