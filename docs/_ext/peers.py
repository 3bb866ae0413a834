"""Measure other packages anew: ``python docs/_ext/peers.py [FOLDER]`` writes parts of related-packages.md.

Each package is installed into an environment of its own below FOLDER, kept for the next run, and asked by its probes
(`peer_probes`) what it does; what they find is kept in docs/peers.json, of which `peer_page` makes tables. It takes
three minutes of a processor, most of them for a program of qif. Without FOLDER the record stays as it is. Compositions
are computed here and by dp-accounting (the extra "interop"); the table of speed is that of the last run of
`experiments/benchmarks/run.py`. The one table that is read, of the packages of R, is written by hand and says so.
"""

from __future__ import annotations

import csv
import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
import venv
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from peer_page import RECORD, evidence, features, loss, pitfalls, searched, spent
from peer_probes.base import run

from ldpopt import k_fold
from ldpopt.composition import kov15

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "related-packages.md"
RESULTS = ROOT / "experiments" / "benchmarks" / "results" / "results.csv"
EPSILON, DELTA = 0.1, 1e-6
COUNTS = (10, 100, 1000, 10_000)
INSTALLED = {
    "pure-ldp": ["pure-ldp", "scikit-learn", "statsmodels", "matplotlib", "seaborn", "xxhash<4"],
    "multi-freq-ldpy": ["multi-freq-ldpy>=0.2.5", "scipy", "xxhash<4", "numba"],
    "qif": ["qif", "numpy"],
    "opendp": ["opendp", "numpy"],
    "dp-accounting": ["dp-accounting"],
    "prv-accountant": ["prv-accountant"],
    "autodp": ["autodp"],
    "diffprivlib": ["diffprivlib", "scikit-learn<1.9"],
    "samplics": ["samplics"],
}
"""What pip is asked for; bounds are on what a package does not work with in its newest release."""
NEWEST = {
    "diffprivlib": (["diffprivlib", "scikit-learn>=1.9"], "import diffprivlib.models"),
    "pure-ldp": (
        ["pure-ldp", "scikit-learn", "statsmodels", "xxhash>=4"],
        "from pure_ldp.frequency_oracles.local_hashing import LHClient; LHClient(1, 4, index_mapper=int).privatise(2)",
    ),
    "multi-freq-ldpy": (
        ["multi-freq-ldpy>=0.2.5", "xxhash>=4"],
        "from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client; LH_Client(2, 4, 1.0)",
    ),
}
"""The same packages with the newest of what they need, and what is tried there."""


def environment(folder: Path, name: str, wanted: list[str]) -> Path:
    """The python of an environment with these packages, made once."""
    home = folder / name
    python = home / "bin" / "python"
    if not (home / "installed").exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True, timeout=900)
        (home / "installed").touch()
    return python


def asked(folder: Path) -> dict[str, Any]:
    """What every package answers."""
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}
    found: dict[str, Any] = {}
    for peer, wanted in INSTALLED.items():
        command = [environment(folder, peer, wanted), "-m", "peer_probes", peer]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=900)
        found[peer] = json.loads(done.stdout.splitlines()[-1])
    for peer, (wanted, code) in NEWEST.items():
        python = environment(folder, f"{peer}-newest", wanted)
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, timeout=100)
        said = re.sub(r" \(/.*", "", done.stderr.strip().splitlines()[-1]) if done.returncode else "works"
        found[peer]["pitfalls"]["with the newest"] = {"tried": code, "with": wanted[-1], "said": said}
    importlib.import_module("peer_probes.own_probes")
    found["ldpopt"] = run("ldpopt")
    found["plain programs"] = {str(k): _plain_program(k) for k in (8, 14, 16)}
    return found


def _plain_program(k: int) -> float:
    """Processor seconds of a linear program over all patterns of k answers, as one writes it in cvxpy."""
    import cvxpy as cp

    rng = np.random.default_rng(k)
    p0, p1 = rng.dirichlet(np.ones(k), 2)
    columns = np.where(np.arange(1, 2**k - 1)[:, None] >> np.arange(k) & 1, math.e, 1.0)
    value = (columns @ p0) * np.log((columns @ p0) / (columns @ p1))
    theta = cp.Variable(len(columns), nonneg=True)
    problem = cp.Problem(cp.Maximize(value @ theta), [columns.T @ theta == 1])
    times = []
    for _ in range(3):
        start = time.process_time()
        problem.solve(solver=cp.HIGHS)
        times.append(time.process_time() - start)
    return min(times)


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
                rows.append(f"| {row['what']} | {spent(row['seconds a unit'])} | `{peer}` | {spent(time)} | {times} |")
    return "\n".join(rows)


MADE = {
    "features": features, "searched": searched, "evidence": evidence, "loss": loss, "pitfalls": pitfalls,
    "composition": composition, "counts": counts, "speed": speed,
}  # fmt: skip


def with_made(text: str, names: list[str]) -> str:
    """The page with these parts made anew; each stands between two comments of its name."""
    for name in names:
        begin, end = f"<!-- made: {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n\n{MADE[name]()}\n\n{end}{rest.split(end)[1]}"
    return text


def main() -> int:
    """Ask the packages if a folder for their environments is given, and write the page."""
    if len(sys.argv) > 1:
        RECORD.write_text(json.dumps(asked(Path(sys.argv[1])), indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(with_made(PAGE.read_text("utf-8"), list(MADE)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
