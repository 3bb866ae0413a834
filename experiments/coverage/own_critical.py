"""Coverage at once of simultaneous intervals, each survey with its own critical value: writes own_critical.csv.

    python experiments/coverage/own_critical.py [replications]

The critical value of a survey is the 95 % quantile of the largest pivot over 16,384 surveys simulated from its own
estimate, so all its intervals cover the truth exactly when fewer than 95 % of those stay below its own largest pivot
at the truth. The simulated surveys of a larger count begin with those of a smaller one. The question is therefore put
to the first 256 of them, to the first 1,024 and 4,096 where the share is within five standard errors of 95 %, and to
all where it still is. The first `CHECKED` surveys of every setting are also put through the intervals themselves;
`agree` is the share of those with the same answer.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from functools import cache
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from run import subset_selection, truths

from ldpopt.mechanisms import randomized_response
from ldpopt.survey import Binomial, GeneralizedLeastSquares, Simultaneous, Wald
from ldpopt.survey.estimate.intervals import moments

SEED = 20241106
BASES = (Wald(), Binomial())
STAGES = (2**8, 2**10, 2**12, 2**14)
CHECKED = 100
SURE = 5.0
"""Standard errors from 95 % at which a smaller count settles the question."""


def covers(method, m, p):
    """Whether all intervals of a survey cover p."""
    lower, upper = method.limits(m)
    return bool(((lower <= p) & (p <= upper)).all())


def at_once(base, m, p, drawn):
    """Whether all intervals of one survey cover p, as `Simultaneous(base)` has it; drawn(count) simulates surveys."""
    if m.centre.shape[-1] == 2:  # perfectly correlated: the critical value is the normal one
        return covers(Simultaneous(base), m, p)
    reached = base.pivot(m, p).max()
    for count in STAGES:
        below = np.mean(base.pivot(drawn(count), m.centre).max(axis=-1) < reached)
        if abs(below - base.level) > SURE * np.sqrt(base.level * (1 - base.level) / count):
            break
    return bool(below < base.level)


def settings():
    """The slowest first."""
    for k in (24, 7, 4, 2):
        for shape in ("even", "falling"):
            yield "randomized response", randomized_response(k, 1.0), shape, 1000
    for shape in ("even", "falling"):
        yield "subset selection", subset_selection(4, 1.0, 2), shape, 1000


def setting(task):
    at, replications, name, channel, shape, n = task
    rng, started = np.random.default_rng([SEED, at]), time.perf_counter()
    k, outputs = channel.shape
    p, estimator = truths(k)[shape], GeneralizedLeastSquares()
    hits = {base: np.empty(replications, dtype=bool) for base in BASES}
    agree = dict.fromkeys(BASES, 0)
    checked = min(CHECKED, replications)
    for r, counts in enumerate(rng.multinomial(n, channel.push(p), size=replications)):
        made = moments(counts / n, estimator.fit(counts / n, channel)[1], None, n)
        drawn = cache(made.redraw)
        for base in BASES:
            hits[base][r] = at_once(base, made, p, drawn)
            if r < checked:
                agree[base] += covers(Simultaneous(base), made, p) == hits[base][r]
    print(f"{name} k={k} {shape} n={n}: {time.perf_counter() - started:.0f} s", flush=True)
    return [
        {
            "channel": name, "inputs": k, "outputs": outputs, "epsilon": 1.0, "truth": shape, "n": n,
            "method": f"simultaneous {base.name}", "replications": replications, "all": f"{hits[base].mean():.4f}",
            "agree": f"{agree[base] / checked:.4f}",
        }
        for base in BASES
    ]  # fmt: skip


def main(replications):
    tasks = [(at, replications, *one) for at, one in enumerate(settings())]
    rows = []
    with Pool(int(os.environ.get("WORKERS", 0)) or os.cpu_count()) as pool:
        for made in pool.imap(setting, tasks, chunksize=1):
            rows += made
            aside = Path(__file__).with_name("own_critical.csv.part")
            with open(aside, "w", newline="") as file:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
                writer.writerows(rows)
    aside.replace(Path(__file__).with_name("own_critical.csv"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
