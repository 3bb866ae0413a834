"""Compute the largest epsilon and eta of a panel's next round within the promises of earlier rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.values.results import Result
from ldpopt_survey.collect.ledger import Ledger
from ldpopt_survey.collect.people import Run, distinct_marks, exceeds, refusal_reason
from ldpopt_survey.plan.plan import Plan, over_rounds
from ldpopt_survey.plan.spec import SurveySpec

MIN_REMAINING_EPSILON = 0.01
"""The smallest epsilon that counts as left. A smaller one would need millions of respondents."""

MIN_REMAINING_ETA_FRACTION = 0.01
"""The smallest eta that counts as left, as a fraction of the largest eta at its epsilon."""

NEXT_ROUND_WORDS = "next round"


@dataclass(frozen=True, eq=False)
class RemainingBudget(Result):
    """The budget of a panel's next round: all respondents who have a round left may take part.

    - `epsilon` (nats) : the largest epsilon of the round; inf if no form declared its rounds.
    - `people` : the number of earlier respondents who have a round and an epsilon left.
    - `exhausted` : the number of the others. A run excludes them with `--leave-out`.
    - `histories` : the distinct sequences of earlier runs of `people`.
    """

    round: int
    epsilon: float
    people: int
    exhausted: int
    histories: tuple[tuple[Run, ...], ...]

    def allows(self, epsilon: float, eta: float) -> bool:
        """Return True if a round with (epsilon, eta) is within the promises of all earlier forms."""
        return epsilon <= self.epsilon and all(
            not exceeds([*(past.claims for past in history), (epsilon, eta)], over_rounds(*form.claims, form.rounds))
            for history in self.histories
            for form in history
            if form.rounds
        )

    def largest_eta(self, epsilon: float, cap: float | None) -> float | None:
        """Return the largest eta at this epsilon, at most `cap`, or None if no cap is needed.

        Raises `InvalidInput` if nearly no eta is left.
        """
        limit = math.tanh(epsilon / 2) if cap is None else min(cap, math.tanh(epsilon / 2))
        if self.allows(epsilon, limit):
            return cap
        low, high = MIN_REMAINING_ETA_FRACTION * limit, limit
        if not self.allows(epsilon, low):
            self._refuse(f"eta {ceil_digits(low)}")
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.allows(epsilon, middle) else (low, middle)
        return low

    def require(self, plan: Plan) -> None:
        """Raise `InvalidInput` unless a run of this plan may include everybody who has a round left."""
        run = Run(NEXT_ROUND_WORDS, plan.round, plan.rounds, plan.protected_claims(), np.empty(0, np.uint64))
        exceeding_histories = [history for history in self.histories if refusal_reason(run, history)]
        if not exceeding_histories:
            return
        spent_epsilon = max(math.fsum(past.claims[0] for past in history) for history in exceeding_histories)
        fix = "leave `rounds` out of it"
        if plan.rounds and plan.rounds > 1 and max(map(len, exceeding_histories)) < plan.rounds:
            fix = f"an epsilon of at least {ceil_digits(spent_epsilon / (plan.rounds - 1), 4)}, a larger eta, or {fix}"
        raise InvalidInput(
            f"round {plan.round}: expected a plan whose consent form covers the earlier rounds, too "
            f"({fix}), got one of epsilon {ceil_digits(run.claims[0], 4)} after {ceil_digits(spent_epsilon, 4)}"
        )

    def _refuse(self, got: str) -> None:
        raise invalid(
            f"round {self.round}",
            f"a budget left of the promise to the {self.people + self.exhausted:,} people of earlier rounds (ask "
            "other people, or for consent anew as a survey of another name)",
            Phrase(f"none for {got}"),
        )

    def __repr__(self) -> str:
        message = f"round {self.round}: {self.people:,} people of earlier rounds have a round left"
        if self.epsilon < math.inf:
            message += f", with epsilon at most {self.epsilon:.6g}"
        return message + (f"; {self.exhausted:,} have nothing left (--leave-out)" if self.exhausted else "")


def remaining_budget(earlier_runs: Sequence[Run], number: int) -> RemainingBudget:
    """Return the budget of round `number` after the runs `earlier_runs`. Runs of the same round do not count."""
    if not (runs := [run for run in earlier_runs if run.round != number and len(run.people)]):
        return RemainingBudget(number, math.inf, 0, 0, ())
    everybody = distinct_marks(np.concatenate([run.people for run in runs]))
    presence = np.array([np.isin(everybody, run.people, assume_unique=True) for run in runs])
    kinds, counts = np.unique(presence, axis=1, return_counts=True)
    histories, epsilon_limit, people, exhausted = [], math.inf, 0, 0
    for kind, count in zip(kinds.T, counts, strict=True):
        past = {run.words: run for run, is_present in zip(runs, kind, strict=True) if is_present}
        history = tuple(past.values())
        spent_epsilon = math.fsum(run.claims[0] for run in history)
        epsilon_left = min(
            (
                float(ceil_digits(over_rounds(*run.claims, run.rounds)[0], 4)) - spent_epsilon
                if len(history) < run.rounds
                else 0.0
                for run in history
                if run.rounds
            ),
            default=math.inf,
        )
        if epsilon_left < MIN_REMAINING_EPSILON:
            exhausted += int(count)
            continue
        histories.append(history)
        people, epsilon_limit = people + int(count), min(epsilon_limit, epsilon_left)
    return RemainingBudget(number, epsilon_limit * (1 - 1e-12), people, exhausted, tuple(histories))


def within_promises(spec: SurveySpec, ledger: str | Path) -> tuple[SurveySpec, RemainingBudget]:
    """Limit the epsilon (nats) and eta of a panel's later round to the remaining budget.

    Parameters
    ----------
    spec : The description of the round.
    ledger : The file of `privatize` that records the runs of the survey.

    Returns
    -------
    (SurveySpec, RemainingBudget)
        The description with its limits, and the remaining budget. `RemainingBudget.require` then checks the plan.

    Raises
    ------
    InvalidInput
        If nothing is left.

    >>> spec = SurveySpec.from_toml('''
    ... [survey]
    ... name = "panel"
    ... respondent = "id"
    ... round = 2
    ... [budget]
    ... epsilon = 1.0
    ... [[questions]]
    ... name = "vote"
    ... answers = ["no", "yes"]
    ... ''')
    >>> within_promises(spec, "no such file.ledger")[1]
    round 2: 0 people of earlier rounds have a round left
    """
    budget = remaining_budget(Ledger(Path(ledger)).runs(spec.name), spec.round)
    if budget.exhausted and not budget.people:
        budget._refuse("this round")
    if spec.epsilon is None or not budget.people:
        return spec, budget
    limits: dict[str, Any] = {"epsilon": min(spec.epsilon, budget.epsilon)}
    limits["eta"] = budget.largest_eta(limits["epsilon"], spec.eta)
    return replace(spec, **limits), budget
