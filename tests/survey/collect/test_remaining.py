"""A panel's later round is planned within what its people were told, so that a run of it refuses nobody."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ldpopt.cli import app
from ldpopt.errors import InvalidInput
from ldpopt_survey import within_promises
from ldpopt_survey.collect.people import Run, refusal_reason
from ldpopt_survey.collect.remaining import MIN_REMAINING_EPSILON, remaining_budget
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import over_rounds
from ldpopt_survey.plan.spec import SurveySpec

PEOPLE = 400

TOML = """
[survey]
name = "panel"
respondent = "id"
round = {round}
{rounds}
[budget]
epsilon = {epsilon}
{eta}
[[questions]]
name = "vote"
categories = ["no", "yes"]
pilot = {pilot}
[[questions]]
name = "smokes"
categories = ["no", "yes", "once"]
"""


def run(*words: object, code: int = 0) -> str:
    """The output of a command, which must end with a code."""
    result = CliRunner().invoke(app, ["survey", *map(str, words)])
    assert result.exit_code == code, result.output
    return result.output


def described(folder: Path, number: int, epsilon: float, rounds: int | None = 3, **more: Any) -> Path:
    """A survey.toml of a round."""
    said = {"eta": "", "pilot": [0.5, 0.5], **more}
    path = folder / f"survey-{number}.toml"
    path.write_text(TOML.format(round=number, epsilon=epsilon, rounds=f"rounds = {rounds}" if rounds else "", **said))
    return path


def answered(folder: Path, number: int, first: int = 0) -> Path:
    """The answers of a round, other ones than before."""
    rng = np.random.default_rng(number)
    path = folder / f"answers-{number}.csv"
    lines = [f"p{first + i},{rng.choice(['no', 'yes'])},{rng.choice(['no', 'yes', 'once'])}" for i in range(PEOPLE)]
    path.write_text("\n".join(["id,vote,smokes", *lines]) + "\n")
    return path


def take_round(folder: Path, number: int, epsilon: float, *options: object, **more: Any) -> dict[str, Any]:
    """Plan a round and privatize its answers; what the plan says as JSON."""
    plan = folder / f"plan-{number}.json"
    told = json.loads(run("plan", described(folder, number, epsilon, **more), "-o", plan, "--json", *options))
    key = folder / "key"
    if not key.exists():
        create_key(key)
    run("privatize", plan, answered(folder, number), "-o", folder / f"reports-{number}", "--key", key)
    return told


def test_a_later_round_gets_the_remaining_budget(tmp_path: Path) -> None:
    """Three rounds of 1 were promised: after one, 2 are left, and after a round of 2 nothing is."""
    assert "remaining" not in take_round(tmp_path, 1, 1.0)
    told = take_round(tmp_path, 2, 5.0, pilot=[0.2, 0.8])
    assert told["remaining"]["people"] == PEOPLE
    assert 1.99 < told["epsilon"] <= told["remaining"]["epsilon"] <= 2.0001
    said = run("plan", described(tmp_path, 3, 1.0), "-o", tmp_path / "plan-3.json", code=2)
    assert "a budget left of the promise to the 400 people of earlier rounds" in said
    assert not (tmp_path / "plan-3.json").exists()


def test_rounds_of_other_pilots_are_within_the_promise_to_the_last(tmp_path: Path) -> None:
    """The channels, and with them eta, differ from round to round; each round is privatized without a refusal."""
    for number, pilot in enumerate(([0.5, 0.5], [0.1, 0.9], [0.7, 0.3]), 1):
        told = take_round(tmp_path, number, 1.0, pilot=pilot)
        assert told["epsilon"] <= 1.0
    said = run("plan", described(tmp_path, 4, 1.0, rounds=4), "-o", tmp_path / "plan-4.json", code=2)
    assert "a budget left" in said


def test_a_form_below_the_spent_budget_is_refused(tmp_path: Path) -> None:
    """Three rounds of 0.4 are less than 1 and 0.4 together, which the plan's own form must cover."""
    take_round(tmp_path, 1, 1.0)
    said = run("plan", described(tmp_path, 2, 0.3), "-o", tmp_path / "plan-2.json", code=2)
    assert "an epsilon of at least 0.5" in said
    assert take_round(tmp_path, 2, 0.8)["epsilon"] == pytest.approx(0.8)


def test_words_of_the_command(tmp_path: Path) -> None:
    """What is left is said, and what it changes; a ledger that is none, or a first round, is refused."""
    take_round(tmp_path, 1, 1.0)
    said = run("plan", described(tmp_path, 2, 5.0), "-o", tmp_path / "plan-2.json")
    assert "Round 2: 400 people of earlier rounds have a round left, with epsilon at most 2" in said
    assert "Planned with epsilon at most 2, not 5" in said
    (ledger,) = tmp_path.glob("*.ledger")
    (other := tmp_path / "elsewhere").mkdir()
    plan = ("plan", described(tmp_path, 2, 5.0), "-o", other / "plan.json")
    assert "not 5" not in run(*plan)
    assert "not 5" in run(*plan, "--ledger", ledger, "--force")
    assert "no file" in run(*plan, "--ledger", other / "none", "--force", code=2)
    first = described(tmp_path, 1, 1.0)
    assert "a round from 2" in run("plan", first, "-o", other / "1.json", "--ledger", ledger, code=2)


def runs(*claims: tuple[float, float], rounds: int | None = 4, people: int = 10) -> list[Run]:
    """Runs of one person after the other, with other words."""
    marks = np.arange(1, people + 1, dtype=np.uint64)
    return [Run(f"w{i}", i, rounds, claim, marks) for i, claim in enumerate(claims, 1)]


@pytest.mark.parametrize("claims", [[(1.0, 0.3)], [(1.0, 0.3), (0.9, 0.28)], [(1.0, 0.3), (1.2, 0.3), (0.95, 0.3)]])
@pytest.mark.parametrize("wanted", [0.1, 1.0, 5.0])
def test_the_largest_epsilon_and_eta_are_allowed_and_larger_ones_are_not(
    claims: list[tuple[float, float]], wanted: float
) -> None:
    """By the rule by which runs are refused."""
    before = runs(*claims)
    left = remaining_budget(before, len(claims) + 1)
    spent = math.fsum(epsilon for epsilon, _ in claims)
    assert left.epsilon == pytest.approx(min(4 * epsilon for epsilon, _ in claims) - spent, abs=1e-3)
    epsilon = min(wanted, left.epsilon)
    eta = left.largest_eta(epsilon, None)

    def refused(epsilon: float, eta: float) -> bool:
        return bool(refusal_reason(Run("next", 9, None, (epsilon, eta), before[0].people), before))

    assert not refused(epsilon, math.tanh(epsilon / 2) if eta is None else eta)
    assert refused(left.epsilon * 1.01, 0.0)
    assert eta is None or refused(epsilon, eta * 1.01)


def test_people_with_other_histories_are_counted_separately() -> None:
    """Who joined later has more left; who was in all rounds has nothing."""
    early, late = np.arange(1, 6, dtype=np.uint64), np.arange(1, 11, dtype=np.uint64)
    before = [Run("a", 1, 2, (1.0, 0.4), early), Run("b", 2, 3, (1.0, 0.4), late)]
    left = remaining_budget(before, 3)
    assert (left.people, left.exhausted) == (5, 5)
    assert left.epsilon == pytest.approx(2.0, abs=1e-3)
    again = remaining_budget([*before, Run("a", 1, 2, (1.0, 0.4), early)], 3)  # the same words are one round
    assert (again.people, again.exhausted) == (5, 5)
    assert remaining_budget(before, 2).people == 5  # what the round itself has does not count
    assert remaining_budget([], 2).epsilon == math.inf
    free = remaining_budget(runs((1.0, 0.4), rounds=None), 2)
    assert (free.people, free.epsilon, free.largest_eta(700.0, None)) == (10, math.inf, None)


def test_nearly_nothing_left_is_nothing() -> None:
    """Below `LEAST_EPSILON` no survey is planned; the promise of a form is over all its rounds."""
    told = over_rounds(1.0, 0.4, 2)[0]
    left = remaining_budget(runs((1.0, 0.4), (told - 1.0 - MIN_REMAINING_EPSILON / 2, 0.1), rounds=None, people=3), 5)
    assert left.people == 3
    before = [Run("a", 1, 3, (1.0, 0.4), np.arange(3, dtype=np.uint64)),
              Run("b", 2, None, (2.0 - MIN_REMAINING_EPSILON / 2 + 1e-3, 0.1),
                  np.arange(3, dtype=np.uint64))]  # fmt: skip
    assert remaining_budget(before, 3).exhausted == 3


def test_a_description_without_a_budget_is_left_as_it_is(tmp_path: Path) -> None:
    """Its questions have an epsilon each; the plan is compared with what is left."""
    spec = SurveySpec.from_toml(TOML.format(round=2, rounds="rounds = 2", epsilon=1.0, eta="", pilot=[0.5, 0.5]))
    assert within_promises(spec, tmp_path / "none.ledger")[0] is spec
    with pytest.raises(InvalidInput, match="a folder"):
        within_promises(spec, tmp_path)
