"""A user's program over the public API passes `mypy --strict`, and its mistakes do not."""

import subprocess
import sys
from pathlib import Path

import pytest

import ldpopt

PROGRAM = """
import numpy as np

from ldpopt import (
    Channel, Design, Divergence, FisherInformation, Guarantee, Ledger, LocalDP, MutualInformation, TotalVariation,
    audit, compose, frontier, k_fold, load_design, optimal_channel, structures, sweep,
)
from ldpopt.composition import to_dp_event
from ldpopt.design import ColumnUtility, Constraint, Verification
from ldpopt.divergences import KL, FDivergence
from ldpopt.frontiers import Frontier, Sweep
from ldpopt.io import to_opendp
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import local_dp, renyi
from ldpopt_survey import Estimate, Plan, QuestionSpec, SurveySpec, estimate, plan_survey


def best(p: list[float], q: list[float], epsilon: float, eta: float) -> Design:
    constraints: list[Constraint] = [LocalDP(epsilon), TotalVariation(eta)]
    return optimal_channel(Divergence(KL, p, q), constraints)


design = best([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 1.0, 0.3)
checked: Verification = design.verify()
value: float = design.value + design.channel.matrix.sum()
first: Guarantee = design.guarantees[0]
name: str = f"{first} {first.value:.3f} {design.to_latex()}"
table: Frontier = frontier(MutualInformation([0.5, 0.5]), [1.0], [0.2], jobs=1)
swept: Sweep = sweep(FisherInformation([0.5, 0.5]), LocalDP, [0.5, 1.0])
rows: list[float] = [row.optimum for row in table] + [row.value for row in swept]
same: bool = design == load_design("design.json") and bool(checked)
channel: Channel = randomized_response(3, 1.0).erase(0.1)
spent: float = float(Ledger().add(channel, 3).approximate_dp(1e-6)) + k_fold(0.1, count=10).epsilon_at(1e-6)
curve: float = compose([channel, channel]).hockey_stick(0.5).value
report: dict[str, object] = audit(channel).to_dict()
pieces: int = len(structures(Divergence(KL, [0.6, 0.4], [0.4, 0.6]), 0.1, 2.0))
mine = FDivergence(lambda t: (t - 1) ** 4, name="fourth power")
plan: Plan = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))).plan
made: Estimate = estimate(np.array([0, 1, 1]), channel)
print(value, name, rows, same, spent, curve, report, pieces, mine, plan, made.summary(), local_dp(channel))
print(renyi(channel, 2.0), to_dp_event(channel), to_opendp(channel))
"""

MISTAKES = {
    'optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), "1.0")': "arg-type",
    "best([0.5], [0.5], 1.0)": "call-arg",
    "design.values": "attr-defined",
    'LocalDP("one")': "arg-type",
    "number: int = design.value": "assignment",
}


SETTINGS = """[mypy]
strict = True

# The package is checked by its own run of mypy; a program sees its signatures, as it does of an installed package.
[mypy-ldpopt.*,ldpopt_survey.*]
ignore_errors = True

# No name of the program above is typed by these, and to read what is installed of them takes longer than all else.
[mypy-cvxpy.*,pandas.*,polars.*,networkx.*,matplotlib.*,scipy.*,pyarrow.*,joblib.*,cryptography.*,rich.*,typer.*]
follow_imports = skip
ignore_missing_imports = True

[mypy-dask.*,distributed.*,IPython.*,narwhals.*,PIL.*,jinja2.*,fpdf.*,click.*,starlette.*,uvicorn.*,prometheus_client.*,psycopg.*,filelock.*]
follow_imports = skip
ignore_missing_imports = True
"""


@pytest.mark.full
def test_a_users_program_is_typed(tmp_path):
    """Nothing of the package is untyped to a program that is checked strictly; mistakes are found, each as its kind."""
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM + "\n".join(MISTAKES) + "\n", "utf-8")
    (tmp_path / "mypy.ini").write_text(SETTINGS, "utf-8")
    package = Path(ldpopt.__file__).parents[1]
    # What is installed needs no path, and mypy refuses one that it knows.
    path = {} if "site-packages" in str(package) else {"MYPYPATH": str(package)}
    command = [sys.executable, "-P", "-m", "mypy", "--no-error-summary", "--cache-dir", "cache", "program.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, env=path)
    said = [line for line in found.stdout.splitlines() if line.startswith("program.py:") and " error: " in line]
    start = PROGRAM.count("\n") + 1
    assert len(said) == len(MISTAKES), found.stdout + found.stderr
    for at, (line, kind) in enumerate(zip(said, MISTAKES.values(), strict=True)):
        assert line.startswith(f"program.py:{start + at}: "), line
        assert f"[{kind}]" in line
