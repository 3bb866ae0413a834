"""The 1996 election study, income and all, from files to estimates, through a plan made from half of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpopt.datasets import load_anes96
from ldpopt.design import FisherInformation
from ldpopt.errors import LdpoptError
from ldpopt.mechanisms import randomized_response, subset_selection
from ldpopt_survey import CountTable, Memoized, Plan, Simultaneous, aggregate, estimate, privatize
from ldpopt_survey.collect.words import SecretKey

PLAN = Path(__file__).parents[1] / "data" / "anes_plan.json"
ROWS = 30_000


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Made by experiments/surveys/anes/end_to_end.py; reading it proves its guarantees again."""
    return Plan.from_json(PLAN.read_bytes())


@pytest.fixture(scope="module")
def halves():
    order = np.random.default_rng(1996).permutation(944)
    return order[:472], order[472:]


def test_the_plan_is_from_one_half_and_optimal(plan: Plan, halves) -> None:
    """Pilots are the first half's counts plus 1/2; no channel that is in use needs fewer respondents; budget kept."""
    data = load_anes96()
    assert [(q.name, len(q.categories)) for q in plan.questions] == [
        ("income", 24), ("party", 7), ("education", 7), ("vote", 2),
    ]  # fmt: skip
    assert plan.epsilon <= 4.0
    for question in plan.questions:
        counts = np.bincount(data[question.name].codes[halves[0]], minlength=len(question.categories)) + 0.5
        np.testing.assert_allclose(question.pilot, counts / counts.sum(), rtol=1e-12)
        utility, k = FisherInformation(question.pilot), len(question.categories)
        value = utility.value(question.channel.matrix)
        rivals = [randomized_response(k, 1.0)] + [subset_selection(k, 1.0, d) for d in (2, 3) if d < k]
        assert all(value <= utility.value(rival) * (1 + 1e-9) for rival in rivals)


@pytest.mark.full
def test_the_other_half_comes_back(plan: Plan, halves, tmp_path: Path) -> None:
    """The other half drawn to 30,000 rows, privatized from Parquet with a key: every share within 4.5 standard errors,
    and within its simultaneous interval on three questions of four at least (a fixed key, seed 7).
    """
    data, rng = load_anes96(), np.random.default_rng(7)
    drawn = halves[1][rng.integers(0, 472, ROWS)]
    columns = {"id": pa.array(np.arange(ROWS))}
    for question in plan.questions:
        labels = np.array([str(label) for label in question.categories])
        columns[question.name] = pa.array(labels[data[question.name].codes[drawn]])
    pq.write_table(pa.table(columns), tmp_path / "answers.parquet")
    SecretKey(bytes(32)).save(tmp_path / "key")
    tally = privatize(plan, tmp_path / "answers.parquet", tmp_path / "reports", Memoized(tmp_path / "key"))
    assert tally.rows == ROWS
    counts, covered = aggregate(plan, tmp_path / "reports"), 0
    for question in plan.questions:
        channel = question.report_channel
        found = estimate(CountTable.from_counts(counts[question.name], channel.outputs), channel)
        truth = np.bincount(data[question.name].codes[drawn], minlength=len(question.categories)) / ROWS
        assert (np.abs(found.values - truth) <= 4.5 * found.standard_errors).all()
        together = found.intervals(Simultaneous())
        covered += bool(((together.lower <= truth) & (truth <= together.upper)).all())
    assert covered >= 3


def test_an_altered_plan_is_refused(plan: Plan) -> None:
    """A smaller epsilon written into the plan, and it no longer loads."""
    data = json.loads(PLAN.read_text())
    data["questions"][0]["epsilon"] = 0.9
    with pytest.raises(LdpoptError):
        Plan.from_json(json.dumps(data))
