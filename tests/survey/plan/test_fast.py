"""Planning loads little and searches no longer than channels need; proofs are made on request, bound by bound."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from ldpopt import LocalDP, optimal_channel
from ldpopt.design import FisherInformation, Marginals
from ldpopt.design.estimation.program_thresholds import ThresholdProgram
from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.plan import survey as planning
from ldpopt_survey.plan.units import product_of, units_of

UNEVEN = SurveySpec(
    "uneven",
    (
        QuestionSpec("a", ("no", "yes"), pilot=[0.3, 0.7]),
        QuestionSpec("b", ("x", "y", "z"), pilot=[0.5, 0.2, 0.3]),
    ),
    epsilon=1.0,
)
SKIPS = SurveySpec(
    "skips",
    (
        QuestionSpec("q0", ("a", "b"), pilot=[0.4, 0.6]),
        QuestionSpec("q1", ("a", "b", "c"), pilot=[0.2, 0.3, 0.5], asked_if=(("q0", ("a",)),)),
        QuestionSpec("q2", ("a", "b"), pilot=[0.3, 0.7], asked_if=(("q1", ("a", "c")),)),
    ),
    epsilon=2.0,
)


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("step", "absent"),
    [
        ("import ldpopt_survey", ["scipy", "pyarrow", "ldpopt.design", "ldpopt_survey.plan"]),
        ("import ldpopt_survey.collect.aggregate", ["scipy.stats", "ldpopt_survey.server", "starlette"]),
        (
            "import ldpopt_survey.plan.survey, ldpopt_survey.cli.plan",
            [
                "scipy.stats",
                "cvxpy",
                "ldpopt.composition",
                "ldpopt.plots",
                "ldpopt_survey.kit",
                "ldpopt_survey.reports",
            ],
        ),
    ],
)
def test_a_step_loads_no_more_than_it_needs(step: str, absent: list[str]) -> None:
    """Names of the package load what defines them, and planning loads neither pages nor servers nor compositions."""
    assert python(f"import sys\n{step}\nprint([name for name in {absent} if name in sys.modules])") == "[]"


def test_a_channel_without_a_proof_is_as_good_and_found_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no proof is wanted, columns that only a proof needs are not searched for, and the value is the same."""
    (unit,) = units_of(SKIPS.questions)
    pilot, targets = product_of((unit,))
    rows = np.array([target.row - target.row @ pilot for target in targets])
    utility, solved = FisherInformation(pilot, Marginals((len(pilot),), [1e-9], contrasts=rows.T)), []
    solve = ThresholdProgram.solve

    def counted(*given):
        solved.append(1)
        return solve(*given)

    monkeypatch.setattr(ThresholdProgram, "solve", counted)
    monkeypatch.setattr(ThresholdProgram, "check_prices", lambda *_: pytest.fail("a proof was searched for"))
    quick = optimal_channel(utility, LocalDP(2.0), certify=False)
    few = len(solved)
    monkeypatch.undo()
    monkeypatch.setattr(ThresholdProgram, "solve", counted)
    proved = optimal_channel(utility, LocalDP(2.0))
    assert quick.certificate is None
    assert proved.certified
    assert 0 < few <= len(solved) - few
    assert quick.value == pytest.approx(proved.value, rel=2e-6)


def test_bounds_come_closer_until_the_best_one() -> None:
    """Each bound that is told is larger, none exceeds the plan, and the last is that of `prove=True`."""
    planned = plan_survey(UNEVEN)
    told = [planned, *planning.closer_bounds(planned, UNEVEN)]
    assert len(told) > 1
    assert all(one.least < other.least <= planned.respondents for one, other in pairwise(told))
    proved = plan_survey(UNEVEN, prove=True)
    assert (proved.least, proved.respondents) == (told[-1].least, planned.respondents)
    assert proved.plan.checksum == planned.plan.checksum
    assert proved.proof is not None
    assert proved.proof.verify()


def test_a_plan_below_its_proved_bound_is_refused() -> None:
    """A plan never states a bound that contradicts it."""
    planned = plan_survey(UNEVEN)
    other = plan_survey(SurveySpec("s", UNEVEN.questions, epsilon=0.5)).proof
    assert other is not None
    with pytest.raises(planning.SolverError, match="a mistake of the planner"):
        planned.bounded_by(other)
