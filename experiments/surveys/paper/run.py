"""What a device costs: the best sheets for k answers and epsilon, beside the best channel without a denominator.

``python experiments/surveys/paper/run.py`` writes ``losses.csv``, ``classical.csv`` and the tables of README.md,
docs/how-to/survey/paper-forms.md and docs/explanation/randomizing-by-hand.md. It takes about twenty minutes on two
cores, and continues an interrupted run.
"""

from __future__ import annotations

import csv
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from ldpopt import LocalDP, optimal_channel
from ldpopt.design import Denominator, FisherInformation
from ldpopt.exact import ExactChannel
from ldpopt.mechanisms import Crosswise, ForcedResponse, Kuk, Warner
from ldpopt_survey import device_named
from ldpopt_survey.paper.design import DEVICES, design_sheet

HERE = Path(__file__).parent
ANSWERS = (2, 3, 4, 5, 6)
EPSILONS = (0.5, 1.0, 2.0)


def loss(device: str, k: int, epsilon: float) -> dict[str, object]:
    """One line of losses.csv."""
    D = device_named(device).denominator
    row: dict[str, object] = {"device": device, "denominator": D, "answers": k, "epsilon": epsilon}
    sheet = design_sheet(np.full(k, 1 / k), epsilon, D)
    if sheet is None:
        return row
    proof = ExactChannel(sheet.weights, denominator=D).verify(epsilon)
    return row | {
        "loss": round(sheet.least, 5), "loss of the sheet": round(sheet.loss, 5),
        "letters of the sheet": sheet.weights.shape[1], "ratio": str(proof.ratio),
        "proved epsilon": round(proof.epsilon, 6), "eta": round(proof.eta, 6),
    }  # fmt: skip


def classical() -> list[dict[str, object]]:
    """Yes-or-no designs of the literature with devices, beside the best channel over the same denominator."""
    designs = [
        ("Warner, two dice", Warner(26 / 36), 36, Fraction(26, 10)),
        ("crosswise, a birthday in 26 of 36 parts", Crosswise(26 / 36), 36, Fraction(26, 10)),
        ("forced response, one die: 1 says yes, 6 says no", ForcedResponse(1 / 6, 1 / 6), 6, Fraction(5)),
        ("forced response, one die: 1 and 2 say yes, 6 says no", ForcedResponse(1 / 3, 1 / 6), 6, Fraction(4)),
        ("Kuk, one card of 52 from two decks, 38 and 14 red", Kuk(38 / 52, 14 / 52), 52, Fraction(38, 14)),
        ("Kuk, two cards of 10, 6 and 4 red", Kuk(0.6, 0.4, 2), 100, Fraction(9, 4)),
    ]  # fmt: skip
    rows = []
    for share in (0.1, 0.5):
        utility = FisherInformation([share, 1 - share])
        for name, design, D, ratio in designs:
            epsilon = math.nextafter(math.log(ratio), math.inf) + 1e-12
            best = optimal_channel(utility, [LocalDP(epsilon), Denominator(D)])
            free = optimal_channel(utility, LocalDP(epsilon))
            own = utility.value(design.channel)
            rows.append({
                "design": name, "share of yes": share, "denominator": D, "epsilon": round(math.log(ratio), 6),
                "variance": round(own / 2, 6), "best over the denominator": round(best.value / 2, 6),
                "without a denominator": round(free.value / 2, 6),
                "reports": design.channel.shape[1], "reports of the best": best.channel.shape[1],
            })  # fmt: skip
    return rows


def write(name: str, rows: list[dict[str, object]]) -> None:
    """A CSV file with the columns of its fullest row."""
    with open(HERE / name, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, max(rows, key=len), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def done() -> dict[tuple[str, int, float], dict[str, object]]:
    """The lines that an earlier run wrote: what was interrupted goes on."""
    path = HERE / "losses.csv"
    if not path.exists():
        return {}
    with open(path, encoding="utf-8", newline="") as file:
        rows = [{name: cell for name, cell in row.items() if cell} for row in csv.DictReader(file)]
    return {(row["device"], int(row["answers"]), float(row["epsilon"])): dict(row) for row in rows}


def table(rows: list[dict[str, object]], epsilon: float) -> str:
    """The losses at one epsilon as a Markdown table."""
    lines = ["| device | D |" + "".join(f" k = {k} |" for k in ANSWERS), "| --- | --- |" + " --- |" * len(ANSWERS)]
    for device in DEVICES:
        own = [row for row in rows if row["device"] == device and float(str(row["epsilon"])) == epsilon]
        cells = [f"{100 * float(str(row['loss'])):.1f} %" if row.get("loss") else "–" for row in own]
        lines.append(f"| {device} | {device_named(device).denominator} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def classical_table(rows: list[dict[str, object]]) -> str:
    """The classical designs as a Markdown table."""
    shown = [name for name in rows[0] if name not in ("denominator", "reports", "reports of the best")]
    lines = ["| " + " | ".join(shown) + " |", "| --- |" + " --- |" * (len(shown) - 1)]
    for row in rows:
        cells = [f"{row[name]:.4g}" if isinstance(row[name], float) else str(row[name]) for name in shown]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def fill(path: Path, name: str, text: str) -> None:
    """Put a table where a page has its place."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = path.read_text("utf-8").split(begin)
    path.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[-1]}", "utf-8")


def main() -> int:
    """All of it."""
    todo = [(device, k, epsilon) for epsilon in (1.0, 0.5, 2.0) for k in ANSWERS for device in DEVICES]
    rows = done()
    left = [one for one in todo if one not in rows]
    for one, row in zip(
        left, Parallel(n_jobs=2, return_as="generator")(delayed(loss)(*one) for one in left), strict=True
    ):
        rows[one] = row
        write("losses.csv", list(rows.values()))
        print(*row.values(), flush=True)
    designs = classical()
    write("classical.csv", designs)
    every = [rows[one] for one in todo]
    docs = HERE.parents[2] / "docs"
    for epsilon in EPSILONS:
        fill(HERE / "README.md", f"losses at {epsilon:g}", table(every, epsilon))
    fill(docs / "how-to" / "survey" / "paper-forms.md", "losses at 1", table(every, 1.0))
    for page in (HERE / "README.md", docs / "explanation" / "randomizing-by-hand.md"):
        fill(page, "classical", classical_table(designs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
