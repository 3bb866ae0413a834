"""What qif does."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from peer_probes.base import FLIP, THREE, near, pitfall, probe


def _unequal(x: int, y: int) -> float:
    return float(x != y)


@probe("qif", "response")
def _() -> str:
    import qif

    channel = qif.mechanism.d_privacy.randomized_response(4, 1.0)
    near(float(channel[0, 0]), math.e / (math.e + 3), 1e-12)
    return "mechanism.d_privacy.randomized_response, channel.sample"


@probe("qif", "number")
def _() -> str:
    import qif

    channel = qif.mechanism.d_privacy.geometric(5, 1.0)
    near(float(np.asarray(channel).sum(axis=1).max()), 1.0, 1e-9)
    return "mechanism.d_privacy.geometric; whole numbers"


@probe("qif", "bayes")
def _() -> str:
    import qif

    truth, channel = np.array([0.3, 0.7]), np.array([[0.9, 0.1], [0.4, 0.6]])
    found, _ = qif.channel.iterative_bayesian_update(channel, truth @ channel, max_diff=1e-12)
    near(float(found[0]), 0.3, 1e-4)
    return "channel.iterative_bayesian_update"


@probe("qif", "epsilon")
def _() -> str:
    import qif

    near(qif.measure.d_privacy.smallest_epsilon(FLIP, _unequal), math.log(3), 1e-12)
    return "measure.d_privacy.smallest_epsilon"


@probe("qif", "variation")
def _() -> str:
    import qif

    distance = qif.metric.total_variation()
    found = max(distance(a, b) for a in THREE for b in THREE)
    near(found, 0.3, 1e-12)
    return "metric.total_variation; two rows at a time"


@probe("qif", "leakage")
def _() -> str:
    import qif

    prior = np.array([0.5, 0.5])
    near(qif.measure.shannon.add_leakage(prior, FLIP), 1 + 0.75 * math.log2(0.75) + 0.25 * math.log2(0.25), 1e-9)
    near(qif.measure.bayes_vuln.min_entropy_leakage(prior, FLIP), math.log2(1.5), 1e-9)
    return "measure.shannon.add_leakage, bayes_vuln.min_entropy_leakage"


@probe("qif", "loss")
def _() -> str:
    import qif

    prior = qif.probab.uniform(4)
    channel = np.asarray(qif.mechanism.d_privacy.min_loss_given_d(prior, 4, _unequal, _unequal))
    near(float(np.trace(channel)) / 4, math.e / (math.e + 3), 1e-6)
    return "mechanism.d_privacy.min_loss_given_d"


@pitfall("qif", "times")
def _() -> dict[str, Any]:
    import qif

    found = {}
    for k, runs in ((4, 5), (16, 3), (32, 2), (64, 1)):
        prior, best = qif.probab.uniform(k), math.inf
        for _ in range(runs):
            start = time.process_time()
            qif.mechanism.d_privacy.min_loss_given_d(prior, k, _unequal, _unequal)
            best = min(best, time.process_time() - start)
        found[str(k)] = best
    return found


@pitfall("qif", "near zeros")
def _() -> dict[str, Any]:
    import qif

    found: dict[str, Any] = {}
    for solver in ("AUTO", "INTERNAL", "CLP", "GLOP", "HIGHS", "SOPLEX"):
        qif.lp.defaults.solver = solver
        infinite, largest, solved, improper = 0, 0.0, 0, 0
        for seed in range(20):
            k = 3 + seed % 6
            prior = np.random.default_rng(seed).dirichlet(np.ones(k))
            try:
                made = qif.mechanism.d_privacy.min_loss_given_d(prior, k, _unequal, _distance)
            except Exception:
                continue
            solved += 1
            if not qif.channel.is_proper(made):
                improper += 1
                continue
            columns = [column for column in np.asarray(made).T if (column == 0).any() and (column != 0).any()]
            infinite += bool(columns)
            largest = max([largest, *(float(column.max()) for column in columns)])
        if solved:
            found[solver] = {"solved": solved, "no channel": improper, "infinite": infinite, "largest": largest}
    qif.lp.defaults.solver = "AUTO"
    return found


def _distance(x: int, y: int) -> float:
    return float(abs(x - y))
