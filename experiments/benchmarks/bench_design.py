"""Speed of the designs, each beside a plain alternative in the same run.

    pytest experiments/benchmarks/bench_design.py --benchmark-columns=median,rounds

Groups compare within themselves: "twelve inputs" sets the partition, the pattern program and their certificates beside
the textbook program over all 2^k patterns in cvxpy; "start" sets the import and the command line's help beside a bare
interpreter.
"""

import subprocess
import sys

import numpy as np
import pytest

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import Partition, PatternLP
from ldpopt.divergences import KL


def problem(k):
    return Divergence(KL, *np.random.default_rng(k).dirichlet(np.ones(k), 2))


def plain_lp(utility, epsilon):
    """The staircase program as written in [KOV14], every pattern a variable."""
    import cvxpy as cp

    k = len(utility.p0)
    inside = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    columns = np.exp(epsilon * inside)
    theta = cp.Variable(2**k, nonneg=True)
    value = utility.f.excess(columns @ utility.p0, columns @ utility.p1)
    cp.Problem(cp.Maximize(value @ theta), [columns.T @ theta == 1]).solve(solver=cp.HIGHS)
    return float(value @ theta.value)


@pytest.mark.benchmark(group="twelve inputs, epsilon 1")
@pytest.mark.parametrize("method", ["plain 2^k program", "partition", "partition, certified", "pattern LP, certified"])
def test_twelve_inputs(benchmark, method):
    utility = problem(12)
    run = {
        "plain 2^k program": lambda: plain_lp(utility, 1.0),
        "partition": lambda: optimal_channel(utility, LocalDP(1.0), certify=False).value,
        "partition, certified": lambda: optimal_channel(utility, LocalDP(1.0)).value,
        "pattern LP, certified": lambda: optimal_channel(utility, LocalDP(1.0), method=PatternLP()).value,
    }[method]
    assert benchmark(run) == pytest.approx(plain_lp(utility, 1.0), rel=1e-6)


@pytest.mark.benchmark(group="certified")
@pytest.mark.parametrize("eta", [None, 0.2], ids=["pure", "eta 0.2"])
@pytest.mark.parametrize("k", [16, 100, 1000])
def test_certified(benchmark, k, eta):
    caps = [LocalDP(1.0)] if eta is None else [LocalDP(1.0), TotalVariation(eta)]
    utility = problem(k)
    design = benchmark.pedantic(optimal_channel, (utility, caps), rounds=3, warmup_rounds=1)
    assert design.certificate.verify()


@pytest.mark.benchmark(group="partition alone")
@pytest.mark.parametrize("k", [100, 1000, 10_000])
def test_partition(benchmark, k):
    utility = problem(k)
    call = {"method": Partition(), "certify": False}
    assert benchmark.pedantic(optimal_channel, (utility, LocalDP(1.0)), call, rounds=3, warmup_rounds=1).value > 0


@pytest.mark.benchmark(group="bracket")
def test_a_million_inputs(benchmark):
    utility = problem(1_000_000)
    design = benchmark.pedantic(optimal_channel, (utility, LocalDP(1.0)), rounds=2)
    assert design.relative_gap < 1e-4


@pytest.mark.benchmark(group="start")
@pytest.mark.parametrize("code", ["pass", "import numpy", "import ldpopt", "ldpopt --help"])
def test_start(benchmark, code):
    command = [sys.executable, "-c", code]
    if code == "ldpopt --help":
        command[2] = "import sys; from ldpopt.cli import main; sys.argv = ['ldpopt', '--help']; main()"
    benchmark.pedantic(subprocess.run, (command,), {"capture_output": True}, rounds=5, warmup_rounds=1)
