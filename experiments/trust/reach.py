"""What is certified, of which utility under which constraint and for how many answers, how fast, and checked by whom.

    python experiments/trust/reach.py [--sizes 8 40 200] [--problems N] [--limit SECONDS] [--csv FILE] [--quick]

Each cell of the table {utility x constraint x number of answers} is N random problems (`kinds.utility_of`), designed
within a limit of processor seconds. A cell says how many are certified, the widest gap relative to the value, the
processor seconds of the slowest search (with its proof), of `verify` and of `ldpopt_check`, and what that says of the
files: how many it accepts, or why it does not judge them. Cells in the file are not computed again. What takes three
times the limit and half a minute, or 3 GB of address space, is ended. Exit code 1 if a certified design does not
verify, or the checker refuses one.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import resource
import sys
import time
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from kinds import CONSTRAINTS, UTILITIES, asked, checker, utility_of

from ldpopt.design import optimal_channel
from ldpopt.errors import LdpoptError
from ldpopt.values import deadline

COLUMNS = (
    "utility", "constraint", "k", "problems", "certified", "gap", "search seconds", "verify seconds", "checker seconds",
    "checker accepts", "note",
)  # fmt: skip
MEMORY = 3 * 2**30


def timed(work: Any) -> tuple[Any, float]:
    """What a function says, and the processor seconds that it took."""
    begun = time.process_time()
    return work(), time.process_time() - begun


def judged(kind: str, name: str, k: int, number: int, limit: float) -> dict[str, Any]:
    """What became of one problem."""
    rng = np.random.default_rng([zlib.crc32(f"{kind}, {name}".encode()), k, number])
    utility, constraints = utility_of(kind, k, rng), asked(name, k, rng)
    begun = time.process_time()
    try:
        design = optimal_channel(utility, constraints, time_limit=limit)
    except LdpoptError as error:
        return {"certified": 0, "search seconds": time.process_time() - begun, "note": str(error)}
    row: dict[str, Any] = {"search seconds": time.process_time() - begun, "gap": design.relative_gap}
    verified, row["verify seconds"] = timed(design.verify)
    row["certified"] = int(design.certified and verified.proved)
    if design.certified and not verified.proved:
        row["wrong"] = str(verified)
    if not design.certified:
        row["note"] = design.note
    try:
        said, row["checker seconds"] = timed(lambda: checker.check(json.loads(design.to_json())))
        row["checker accepts"] = int(not said.failures)
        if design.certified and said.failures:
            row["wrong"] = f"the checker: {said.failures[0]}"
    except checker.BadInput as error:
        row["note"] = f"the checker: {error}" if design.certified else row["note"]
    return row


def told(kind: str, name: str, k: int, number: int, limit: float, pipe: Any) -> None:
    """`judged`, in a process of its own, whose limits are processor seconds."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(3 * limit) + 30, int(3 * limit) + 30))
    vars(deadline)["monotonic"] = time.process_time
    try:
        pipe.send(judged(kind, name, k, number, limit))
    except MemoryError:
        pipe.send({"certified": 0, "note": "more than 3 GB"})


def cell(kind: str, name: str, k: int, problems: int, limit: float) -> dict[str, Any]:
    """One row of the table."""
    rows = []
    for number in range(problems):
        here, there = multiprocessing.Pipe(False)
        process = multiprocessing.get_context("fork").Process(target=told, args=(kind, name, k, number, limit, there))
        process.start()
        there.close()
        try:
            rows.append(here.recv())
            process.join()
        except EOFError:
            process.join()
            rows.append({"certified": 0, "note": f"its process was ended (exit code {process.exitcode})"})
    row: dict[str, Any] = {"utility": kind, "constraint": name, "k": k, "problems": problems}
    for column in COLUMNS[4:]:
        own = [one[column] for one in rows if column in one]
        if column in ("certified", "checker accepts"):
            row[column] = sum(own)
        elif column == "note":
            row[column] = next((one for one in own if one), "").partition("\n")[0][:160]
        elif own:
            row[column] = f"{max(own):.2g}"
    wrong = [one["wrong"] for one in rows if "wrong" in one]
    return row | ({"note": f"WRONG: {wrong[0]}"} if wrong else {})


def main() -> int:
    """Fill the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 40, 200])
    parser.add_argument("--problems", type=int, default=3, help="of each cell")
    parser.add_argument("--limit", type=float, default=10.0, help="processor seconds for each")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--quick", action="store_true", help="a few cells of four answers")
    given = parser.parse_args()
    cells: Any = ((k, kind, name) for k, name, kind in product(given.sizes, CONSTRAINTS, UTILITIES))
    if given.quick:
        given.problems, cells = 1, product([4], ("divergence", "loss", "A", "marginals"), CONSTRAINTS[:2])
    rows: list[dict[str, Any]] = []
    if given.csv and given.csv.exists():
        with given.csv.open(newline="") as lines:
            rows = [*csv.DictReader(lines)]
    known = {(row["utility"], row["constraint"], int(row["k"])) for row in rows}
    for k, kind, name in cells:
        if (kind, name, k) in known:
            continue
        rows.append(cell(kind, name, k, given.problems, given.limit))
        print(*(rows[-1].get(column, "") for column in COLUMNS), sep=", ", flush=True)
        if given.csv:
            with given.csv.open("w", newline="") as lines:
                writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    return 1 if any(row["note"].startswith("WRONG") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
