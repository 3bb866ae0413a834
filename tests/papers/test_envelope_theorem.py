"""The claim on the envelope theorem can fail: with a wrong envelope, or a wrong step of the proof, it does."""

import numpy as np
import pytest

from experiments.papers import EXPERIMENTS, Outcome, compute
from experiments.papers import envelope as programs
from experiments.papers.claims import envelope_theorem as claim
from ldpopt.design import optimal_channel

SMALL = {
    "number": 1, "size": 45, "largest_k": 4, "channel_batches": 1, "channels": 15, "channel_k": 5, "searches": 0,
    "steps": 1, "search_k": 3,
}  # fmt: skip


DESIGNS = {}


@pytest.fixture(autouse=True)
def _designs(monkeypatch):
    """The designs of the package, which no step below changes, are made once."""

    def known(utility, constraints, method):
        at = utility, tuple(constraints)
        if at not in DESIGNS:
            DESIGNS[at] = optimal_channel(utility, constraints, method=method)
        return DESIGNS[at]

    monkeypatch.setattr(claim, "optimal_channel", known)


def verdict():
    """The verdict of a short form with one search."""
    experiment = EXPERIMENTS["envelope-theorem"]
    table = compute(experiment, SMALL)
    searched = experiment.measure(part="search", number=0, size=2, largest_k=3)
    return experiment.judge(type(table)((*table.rows, *searched)))


def plain_upper_hull(points, eta):
    """The upper hull of the points, which falls after the highest one."""
    reached = [(0.0, 0.0), *points]
    sides = [(p, q) for p in reached for q in reached if p[0] <= eta <= q[0]]
    return max(a + (b - a) * (eta - x) / (z - x) if z > x else a for (x, a), (z, b) in sides) if sides else 0.0


WRONG = {
    "two blocks only": (claim, "partition_points", lambda *given: programs.partition_points(*given)[:1]),
    "a point too many": (claim, "partition_points", lambda *given: [*programs.partition_points(*given), (0.05, 1.0)]),
    "the plain envelope": (claim, "envelope_at", plain_upper_hull),
    "no other patterns": (claim, "pattern_optimum", lambda *given: 0.999 * programs.pattern_optimum(*given)),
    "windows anywhere": (programs, "windows", lambda line, gains, most: np.zeros(len(gains))),
    "nothing in common": (programs, "exchange", lambda line, peaks, most: (0 * line.lengths, line.masses * most)),
}


def test_the_short_form_holds():
    """As it is, nothing is wrong."""
    assert verdict().outcome is Outcome.HOLDS


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_theorem_or_proof_is_seen(name, monkeypatch):
    """A false envelope, a false optimum and a false step of the proof are told from the true ones."""
    monkeypatch.setattr(*WRONG[name])
    found = verdict()
    assert found.outcome is Outcome.FAILS
    assert found.detail.startswith("Relatively: ")


@pytest.mark.parametrize("k", [2, 5])
def test_a_cap_beyond_reach_does_not_bind(k):
    """From tanh(epsilon/2) on, the program over all patterns keeps what it keeps there, and with none left nothing."""
    rng = np.random.default_rng(k)
    p0, p1 = rng.dirichlet(np.ones(k), 2)
    f, gain = claim.DIVERGENCES[0], 2.0
    reach = programs.pattern_optimum(f.excess, p0, p1, gain, gain / (gain + 2))
    assert programs.pattern_optimum(f.excess, p0, p1, gain, 0.9) == pytest.approx(reach, rel=1e-9)
    assert programs.pattern_optimum(lambda a, b: 0 * a, p0, p1, gain, 0.3) == 0.0
