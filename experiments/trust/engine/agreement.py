"""Do the routes to the optimum agree?

python experiments/trust/engine/agreement.py [seconds to spend on the larger cases]

Every oracle instance (k up to 9, eight divergences, with and without a TV cap) by pattern LP, exchange
and partition, beside brute force; then exchange and partition on larger alphabets. Writes
agreement.csv, one row a case as soon as it is done: the value of each route, the largest relative difference between
any two, and the largest relative gap to a certificate's bound. Cases in the file are not computed again.
"""

import csv
import json
import sys
import time
from pathlib import Path

import numpy as np

from ldpopt.design import (
    Divergence,
    Exchange,
    LocalDP,
    Partition,
    PatternLP,
    TotalVariation,
    optimal_channel,
)
from ldpopt.divergences import KL, NAMED, SQUARED_HELLINGER, hockey_stick

HERE = Path(__file__).resolve().parent
ORACLES = HERE.parents[2] / "tests" / "data" / "optimal_channels.json"
ROUTES = {
    "partition": Partition(),
    "pattern LP": PatternLP(),
    "exchange": Exchange(),
}
COLUMNS = ["case", "k", "epsilon", "eta", "divergence", "oracle", *ROUTES, "difference", "gap", "processor seconds"]
ZERO = 1e-12
"""Optima below this count as equal."""


def named(name):
    return hockey_stick(1.5) if name == "hockey_stick_1_5" else NAMED[name.replace("_", "-")]


def cases():
    """(name, utility, epsilon, eta or None, oracle or None, routes)."""
    for number, one in enumerate(json.loads(ORACLES.read_text())["instances"]):
        for name in one["optimum"]:
            utility = Divergence(named(name), one["p0"], one["p1"])
            for key, eta in (("optimum", one["eta"]), ("optimum_without_eta", None)):
                yield f"oracle {number}", utility, one["epsilon"], eta, max(one[key][name], 0.0), list(ROUTES)
    for k, eta in [(17, 0.3), (100, None), (400, None), (30, 0.3), (60, 0.3)]:
        large = ["partition", "exchange"]
        p0, p1 = np.random.default_rng(0).dirichlet(np.ones(k), 2)
        for f in (KL, SQUARED_HELLINGER):
            yield f"random {k}", Divergence(f, p0, p1), 1.5, eta, None, large


def computed(name, utility, epsilon, eta, oracle, routes):
    caps = [LocalDP(epsilon)] + ([] if eta is None else [TotalVariation(eta)])
    start = time.process_time()
    designs = {route: optimal_channel(utility, caps, method=ROUTES[route]) for route in routes}
    seconds = time.process_time() - start
    values = {route: design.value for route, design in designs.items()}
    seen = [*values.values(), *([] if oracle is None else [oracle])]
    top = max(seen)
    row = {
        "case": name, "k": len(utility.p0), "epsilon": epsilon, "eta": "" if eta is None else eta,
        "divergence": utility.name, "oracle": "" if oracle is None else oracle, **values,
        "difference": (top - min(seen)) / top if top > ZERO else 0.0,
        "gap": max(design.relative_gap if top > ZERO else 0.0 for design in designs.values()),
        "processor seconds": round(seconds, 2),
    }  # fmt: skip
    return {column: row.get(column, "") for column in COLUMNS}


def main(budget):
    path = HERE / "agreement.csv"
    rows = list(csv.DictReader(path.open())) if path.exists() else []
    done = {(row["case"], row["divergence"], row["eta"] != "") for row in rows}
    spent = 0.0
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not rows:
            writer.writeheader()
        for case in cases():
            if (case[0], case[1].name, case[3] is not None) in done or spent > budget:
                continue
            row = computed(*case)
            spent += row["processor seconds"] if case[4] is None else 0.0
            rows.append(row)
            writer.writerow(row)
            file.flush()
    for kind in ("oracle", "random"):
        kept = [row for row in rows if row["case"].startswith(kind)]
        if kept:
            difference, gap = (max(float(row[name]) for row in kept) for name in ("difference", "gap"))
            print(f"{kind}: {len(kept)} cases, largest difference {difference:.2g}, largest gap {gap:.2g}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0)
