"""Every speed claim as a ratio measured in one run, beside peers in environments of their own.

    python experiments/benchmarks/run.py [--quick] [--environments FOLDER] [--out FOLDER]

Peers are installed with pip into one environment each, kept in FOLDER for the next run; one that cannot be installed or
does not run is a row that says so. Times are processor time of one thread, the least of a few runs. Writes results.csv,
results.md, growth.csv and growth.png. Takes about ten minutes once the peers are installed. With --quick there are no
peers, every task of up to 20,000 runs once, and nothing is written: two minutes that show that all of it still runs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

import ours

HERE = Path(__file__).resolve().parent
PEERS = {
    "pure-ldp": ["pure-ldp", "scikit-learn", "statsmodels", "xxhash<4"],
    "multi-freq-ldpy": ["multi-freq-ldpy", "scipy", "xxhash<4", "numba"],
    "opendp": ["opendp", "numpy"],
    "dp-accounting": ["dp-accounting"],
    "prv-accountant": ["prv-accountant"],
    "qif": ["qif", "numpy"],
}

# (what, our task, its argument, [(peer, its task)], floor task or None, promised ratio to the fastest peer or None)
COMPARISONS = [
    (
        "randomized response, simulated, k = 32",
        "simulate_rr",
        32,
        [("multi-freq-ldpy", "multi_freq_grr_numba"), ("multi-freq-ldpy", "multi_freq_grr"), ("opendp", "opendp_rr")],
        "uniform_numbers",
        2,
    ),
    (
        "randomized response, exact, with keys, k = 32",
        "privatize_rr",
        32,
        [("multi-freq-ldpy", "multi_freq_grr_numba")],
        "keystream",
        None,
    ),
    (
        "randomized response, server, k = 32",
        "count_rr",
        32,
        [
            ("multi-freq-ldpy", "multi_freq_rr_server"),
            ("pure-ldp", "pure_ldp_rr_server"),
            ("opendp", "opendp_counts"),
        ],
        "read_answers",
        None,
    ),
    (
        "optimised unary encoding, client, k = 4",
        "sample_oue",
        4,
        [("multi-freq-ldpy", "multi_freq_oue"), ("pure-ldp", "pure_ldp_oue")],
        "random_bytes",
        20,
    ),
    (
        "optimised unary encoding, client, k = 32",
        "sample_oue",
        32,
        [("multi-freq-ldpy", "multi_freq_oue"), ("pure-ldp", "pure_ldp_oue")],
        "random_bytes",
        20,
    ),
    (
        "optimised unary encoding, client, k = 256",
        "sample_oue",
        256,
        [("multi-freq-ldpy", "multi_freq_oue"), ("pure-ldp", "pure_ldp_oue")],
        "random_bytes",
        20,
    ),
    (
        "optimised unary encoding, server, k = 32",
        "count_oue",
        32,
        [("multi-freq-ldpy", "multi_freq_oue_server"), ("pure-ldp", "pure_ldp_oue_server")],
        "read_reports",
        None,
    ),
    (
        "subset selection, client, k = 4",
        "sample_subset",
        4,
        [("multi-freq-ldpy", "multi_freq_subset")],
        "uniform_numbers",
        20,
    ),
    (
        "local hashing, client, k = 32",
        "sample_olh",
        32,
        [("multi-freq-ldpy", "multi_freq_olh"), ("pure-ldp", "pure_ldp_olh")],
        "uniform_numbers",
        20,
    ),
    (
        "local hashing, server, k = 256",
        "count_olh",
        256,
        [("multi-freq-ldpy", "multi_freq_olh_server"), ("pure-ldp", "pure_ldp_olh_server")],
        None,
        100,
    ),
    (
        "composition of 10^4 three-point pairs",
        "compose_k_fold",
        10_000,
        [("dp-accounting", "dp_accounting_composition")],
        None,
        20,
    ),
    (
        "composition of 10^4 randomized responses",
        "compose_rr",
        10_000,
        [("prv-accountant", "prv_composition")],
        None,
        None,
    ),
    ("least 0/1 loss under LDP, k = 16", "least_loss", 16, [("qif", "qif_loss")], None, None),
    ("least 0/1 loss under LDP, k = 16", "least_loss", 16, [("this run", "plain_expected_loss")], None, None),
    ("least 0/1 loss under LDP, k = 32", "least_loss", 32, [("qif", "qif_loss")], None, None),
    ("KL, k = 12: partition", "partition", 12, [("this run", "plain_lp")], None, None),
    ("KL, k = 12: partition, certified", "partition_certified", 12, [("this run", "plain_lp")], None, None),
    ("KL, k = 12: pattern program, certified", "pattern_certified", 12, [("this run", "plain_lp")], None, None),
    ("KL, k = 12: exchange", "exchange", 12, [("this run", "plain_lp")], None, None),
    ("KL, k = 14: partition, certified", "partition_certified", 14, [("this run", "plain_lp")], None, None),
    ("KL, k = 14: pattern program, certified", "pattern_certified", 14, [("this run", "plain_lp")], None, None),
    ("with eta, k = 10^4: search and proof, beside the proof", "capped_certified", 10_000,
     [("this run", "capped_proof")], None, None),
    ("with eta, k = 10^5: search and proof, beside the proof", "capped_certified", 100_000,
     [("this run", "capped_proof")], None, None),
    ("local_dp, 1000 x 1000", "measure_local_dp", 1000, [("this run", "plain_ratio")], "read_matrix", None),
    ("total variation, 1000 x 1000", "measure_total_variation", 1000, [("this run", "plain_distance")],
     "read_matrix", None),
    ("hockey stick, 1000 x 1000", "measure_hockey_stick", 1000, [("this run", "plain_hockey_stick")],
     "read_matrix", None),
    ("Rényi of order 2, 1000 x 1000", "measure_renyi", 1000, [("this run", "plain_renyi")], "read_matrix", None),
    ("linear estimate with errors, 32 counts", "estimate", 32, [("this run", "plain_estimate")], None, None),
    ("maximum likelihood, 32 counts", "estimate_likelihood", 32, [("this run", "plain_em")], None, None),
]  # fmt: skip

# (what, task, argument, promised seconds, what the answer must be: a number within 1e-9, or a gap in text)
ABSOLUTE = [
    ("partition, KL, k = 10^4", "partition", 10_000, 2.0, None),
    ("with eta, certified, k = 10^4", "capped_gap", 10_000, 0.8, 1e-9),
    ("with eta, certified, k = 10^5", "capped_gap", 100_000, 6.0, 1e-9),
    ("bracket, KL, k = 10^6", "bracket", 1_000_000, 20.0, 1e-5),
    ("10^4 three-point pairs, epsilon at 1e-6", "compose_k_fold", 10_000, None, 73.890500428),
    ("exact rounding with proof, 200 x 200", "exact", 200, None, None),
]

GROWTH = [  # (what, task, sizes, promised exponent)
    ("partition, certified, in k", "partition_certified", (5000, 20_000, 80_000), 1.0),
    ("k-fold composition, in the count", "compose_k_fold", (10**4, 10**5, 10**6), 1.0),
    ("local_dp, in k = m", "measure_local_dp", (500, 1000, 2000), 2.0),
    ("total variation, in k = m", "measure_total_variation", (125, 250, 500, 1000), 3.0),
    ("simulated reports, in n", "simulate_n", (10**5, 10**6, 10**7), 1.0),
    ("local hashing, server, a report, in k", "count_olh", (64, 256, 1024), 1.0),
    ("unary encoding, client, a report, in k", "sample_oue", (64, 256, 1024), 1.0),
    ("exact privatized reports, in k", "privatize_rr", (8, 32, 128), 0.0),
    ("exact rounding with proof, in k = m", "exact", (50, 100, 200), 3.0),
    ("bracket, in k", "bracket", (10**4, 10**5, 10**6), 1.0),
]

QUICK = 20_000  # The largest size that --quick runs.
EACH = {"count_olh", "sample_oue"}
"""Tasks of which larger sizes get fewer reports: the time of one is what grows."""


def environment(folder: Path, peer: str) -> Path | str:
    """The peer's python, or why there is none."""
    home = folder / peer
    python = home / "bin" / "python"
    if not (home / "installed").exists():
        venv.create(home, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *PEERS[peer]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"not installed: {(done.stderr.strip().splitlines() or ['?'])[-1][:100]}"
        (home / "installed").touch()
    return python


def ask(python: Path | str, task: str, argument: int) -> tuple[float | None, str]:
    """(seconds a unit, what else came back) of a peer's task."""
    if isinstance(python, str):
        return None, python
    command = [str(python), str(HERE / "peer_tasks.py"), task, str(argument)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    except subprocess.TimeoutExpired:
        return None, "more than 900 s"
    if done.returncode:
        return None, f"failed: {(done.stderr.strip().splitlines() or ['?'])[-1][:100]}"
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return float(found[0]), f"answers {found[1]}" if len(found) > 1 else ""


COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""What an installed package has: modules that were compiled before."""


def start(*command: str) -> float:
    """The least processor time of nine runs of a command of Python, in seconds."""
    times = []
    for _ in range(9):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, capture_output=True, env=COMPILED)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def start_up() -> list[list[object]]:
    """Import and command line beside numpy's import. The commands check and verify start in less than four of it."""
    bare, numpy = start("-c", "pass"), start("-c", "import numpy")
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "design.json")
        posed = ["--p0", "0.5,0.3,0.2", "--p1", "0.2,0.3,0.5", "--epsilon", "1", "--out", f"{folder}/channel.json"]
        subprocess.run([sys.executable, "-m", "ldpopt", "-q", "design", *posed, "--save-design", file], check=True)
        for what, command, most in (
            ("import ldpopt", ("-c", "import ldpopt"), None),
            ("ldpopt --help", ("-m", "ldpopt", "--help"), None),
            ("ldpopt check", ("-m", "ldpopt", "check", file), 4),
            ("ldpopt verify", ("-m", "ldpopt", "verify", file), 4),
        ):
            spent = start(*command)
            floor, ratio = f"{bare:.3g}; {numpy:.3g}", f"{spent / numpy:.3g}"
            promised, kept = (f"at most {most}", spent < most * numpy) if most else ("", "")
            rows.append([what, "", f"{spent:.3g}", "bare python; import numpy", floor, ratio, "", promised, kept])
    return rows


def memory(task: str, argument: int) -> float:
    """Peak resident memory of a task in a process of its own, in MB (Linux)."""
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import ours; ours.TASKS[{task!r}]({argument})();"
        "print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-2]) / 1024


def growth() -> list[list[object]]:
    """Time and peak memory against size, with exponents fitted between the sizes."""
    import numpy as np

    rows = []
    for what, task, sizes, promised in GROWTH:
        spent = [ours.measure(task, size)[0] * (1 if task in EACH else ours.units(task, size)) for size in sizes]
        peak = [memory(task, size) for size in sizes]
        exponent = float(np.polyfit(np.log(sizes), np.log(spent), 1)[0])
        for size, seconds, megabytes in zip(sizes, spent, peak, strict=True):
            rows.append([what, size, f"{seconds:.4g}", f"{megabytes:.0f}", f"{exponent:.2f}", promised])
    return rows


def quick() -> None:
    """Every task once, at its smaller sizes."""
    asked = [(task, size) for _, task, size, *_ in (*COMPARISONS, *ABSOLUTE)]
    asked += [(floor, size) for _, _, size, _, floor, _ in COMPARISONS if floor]
    asked += [(task, size) for _, _, size, peers, *_ in COMPARISONS for peer, task in peers if peer == "this run"]
    asked += [(task, sizes[0]) for _, task, sizes, _ in GROWTH]
    for task, size in sorted(set(asked)):
        if size <= QUICK:
            spent, said = ours.measure(task, size, 0)
            print(task, size, f"{spent:.3g} s a unit", said, sep=" | ", flush=True)


def compare(python: Callable[[str], Path | str]) -> list[list[object]]:
    """One row for each comparison and peer, ours measured once for each row so that both see the same machine."""
    rows = []
    for what, task, argument, peers, floor, promised in COMPARISONS:
        base = ours.measure(floor, argument)[0] if floor else None
        for peer, peer_task in peers:
            mine, _ = ours.measure(task, argument)
            theirs, said = (
                ours.measure(peer_task, argument) if peer == "this run" else ask(python(peer), peer_task, argument)
            )
            ratio = None if theirs is None else theirs / mine
            rows.append(
                [
                    what,
                    argument,
                    f"{mine:.3g}",
                    f"{peer}: {peer_task}",
                    said if theirs is None else f"{theirs:.3g}",
                    ratio and f"{ratio:.3g}",
                    base and f"{mine / base:.3g} x {floor}",
                    promised and f"{promised} x",
                    "" if not promised or ratio is None else ratio >= promised,
                ]
            )
            print(*rows[-1], sep=" | ", flush=True)
    return rows


def main() -> None:
    """Measure, and write the tables."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != "1" for name in threads):  # they count when the libraries are loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | threads)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, default=Path.home() / ".cache" / "ldpopt-benchmarks")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    if given.quick:
        quick()
        return
    given.environments.mkdir(parents=True, exist_ok=True)
    given.out.mkdir(exist_ok=True)
    found: dict[str, Path | str] = {}

    def python(peer: str) -> Path | str:
        if peer not in found:
            found[peer] = environment(given.environments, peer)
        return found[peer]

    rows = compare(python)
    for what, task, argument, promised, right in ABSOLUTE:
        spent, said = ours.measure(task, argument)
        answer = float(said.split()[-1]) if right else 0.0
        kept = (answer <= right if right < 1 else abs(answer - right) <= 1e-9) if right else True
        limits = [f"under {promised} s" if promised else "", f"a gap of at most {right:g}" if right and right < 1 else
                  f"{right!r} within 1e-9" if right else ""]  # fmt: skip
        kept = kept and (promised is None or spent < promised)
        words = ", ".join(filter(None, limits))
        rows.append([what, argument, f"{spent:.3g}", "", said, "", "", words, kept if words else ""])
        print(*rows[-1], sep=" | ", flush=True)
    rows += start_up()
    header = [
        "what",
        "size",
        "seconds a unit",
        "against",
        "its seconds or answer",
        "ratio",
        "to the floor",
        "promised",
        "kept",
    ]
    write(given.out / "results.csv", header, rows)
    curve = growth()
    columns = ["what", "size", "seconds", "peak MB", "fitted exponent", "promised exponent"]
    write(given.out / "growth.csv", columns, curve)
    draw(given.out / "growth.png", curve)
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    first = f"Measured in one run on {where}; processor time of one thread."
    pages = [first, table(header, rows), "## Growth", "![growth](growth.png)", table(columns, curve)]
    (given.out / "results.md").write_text("# Speed\n\n" + "\n\n".join(pages) + "\n", encoding="utf-8")


def draw(path: Path, curve: list[list[object]]) -> None:
    """Time and memory against size, each routine beside the slope it promises."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    figure, axes = plt.subplots(4, 3, figsize=(11, 11), layout="constrained")
    for axis, what in zip(axes.flat, dict.fromkeys(row[0] for row in curve), strict=False):
        rows = [row for row in curve if row[0] == what]
        size, seconds, memory = (np.array([float(str(row[at])) for row in rows]) for at in (1, 2, 3))
        fitted, promised = rows[0][4], float(str(rows[0][5]))
        axis.loglog(size, seconds, "o-", color="tab:blue", label=f"time, exponent {fitted}")
        line = seconds[-1] * (size / size[-1]) ** promised
        axis.loglog(size, line, "--", color="tab:gray", label=f"promised {promised:g}")
        axis.set_title(str(what), fontsize=9)
        axis.set_ylabel("seconds", fontsize=8)
        other = axis.twinx()
        other.plot(size, memory, "s:", color="tab:orange", markersize=3)
        other.set_ylim(0, 1.2 * max(memory))
        other.set_ylabel("peak MB", fontsize=8, color="tab:orange")
        axis.set_xticks(size, [f"{int(at)}" for at in size])
        axis.minorticks_off()
        axis.tick_params(labelsize=7)
        other.tick_params(labelsize=7)
        axis.margins(y=0.25)
        axis.legend(fontsize=7, loc="upper left")
    for axis in axes.flat[len({row[0] for row in curve}) :]:
        axis.set_visible(False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    """A CSV table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *(["" if cell is None else cell for cell in row] for row in rows)])


def table(header: list[str], rows: list[list[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join("" if cell is None else str(cell) for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    main()
