"""Measure what docs/peers.md says of other packages anew: ``python docs/_ext/peers.py`` writes its made parts.

Compositions are computed here and by dp-accounting (the extra "interop"); the table of speed is that of the last run of
`experiments/benchmarks/run.py`, which installs the peers in environments of their own. What can only be read in the
documentation of a package, the table of features, is written by hand and says so.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ldpopt import k_fold
from ldpopt.composition import kov15

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "peers.md"
RESULTS = ROOT / "experiments" / "benchmarks" / "results" / "results.csv"
EPSILON, DELTA = 0.1, 1e-6
COUNTS = (10, 100, 1000, 10_000)


def composition() -> str:
    """The epsilon of k three-point pairs, exactly and by dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    eta = 0.7 * math.tanh(EPSILON / 2)
    factor = math.exp(EPSILON)
    kept = eta * (1 + factor) / (factor - 1)
    masses = [kept * factor / (1 + factor), 1 - kept, kept / (1 + factor)]
    upper, lower = (dict(enumerate(map(float, np.log(row)))) for row in (masses, masses[::-1]))
    peer = pld.from_two_probability_mass_functions(lower, upper)
    rows = [
        f"| $k$ | exact | `dp-accounting` {version('dp-accounting')} | above the exact value by |",
        "|---|---|---|---|",
    ]
    for k in COUNTS:
        exact = k_fold(EPSILON, eta=eta, count=k).epsilon_at(DELTA)
        theirs = float(peer.self_compose(k).get_epsilon_for_delta(DELTA))
        rows.append(f"| {k} | {exact:.5f} | {theirs:.5f} | {100 * (theirs / exact - 1):.2f} % |")
    return "\n".join(rows)


def counts() -> str:
    """What dp-accounting says of one event that is counted a hundred times, and of a hundred events."""
    import dp_accounting
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=2 / (1 + math.exp(EPSILON)), num_buckets=2)
    said = []
    for composed in (dp_accounting.SelfComposedDpEvent(event, 100), dp_accounting.ComposedDpEvent([event] * 100)):
        accountant = PLDAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
        said.append(accountant.compose(composed).get_epsilon(DELTA))
    exact = kov15(EPSILON, count=100).epsilon_at(DELTA)
    return (
        f"`dp-accounting` {version('dp-accounting')}, a hundred randomized responses of $\\varepsilon = 0.1$ at\n"
        f"$\\delta = 10^{{-6}}$: {said[0]:.4f} if one event is counted a hundred times,\n"
        f"{said[1]:.4f} if a hundred events are composed. The exact value is {exact:.4f}."
    )


def speed() -> str:
    """Times of the last recorded run of the benchmarks, for an answer, beside the peers'."""
    rows = ["| task | ldpopt | peer | its time | times as long |", "|---|---|---|---|---|"]
    with RESULTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            peer, time = row["against"].split(":")[0], row["its seconds or answer"]
            if peer != "this run" and re.fullmatch(r"[\d.e+-]+", time) and row["ratio"]:
                ratio = float(row["ratio"])
                times = f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"
                rows.append(f"| {row['what']} | {_time(row['seconds a unit'])} | `{peer}` | {_time(time)} | {times} |")
    return "\n".join(rows)


def _time(seconds: str) -> str:
    value = float(seconds)
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.2g} ns"


MADE = {"composition": composition, "counts": counts, "speed": speed}


def with_made(text: str, names: list[str]) -> str:
    """The page with these parts made anew; each stands between two comments of its name."""
    for name in names:
        begin, end = f"<!-- made: {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n\n{MADE[name]()}\n\n{end}{rest.split(end)[1]}"
    return text


def main() -> int:
    """Write the page."""
    PAGE.write_text(with_made(PAGE.read_text("utf-8"), list(MADE)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
