"""The studio, from a slider's move to the repainted picture of a verified design, in Chromium.

    python experiments/benchmarks/bench_studio.py [--moves 200] [--out FOLDER]

The program is started as a user starts it, and each move is made on its page: half of the moves are of epsilon's
slider, half of eta's, to random places. A move ends when the badge says that the kernel has verified this very design
and the browser has painted. Party and income of the ANES voters (7 and 24 answers), and random populations of 100
answers. Wall clock, with the studio and the browser on the same cores as whatever else runs; beside it the processor
time that a move takes of the studio. Writes studio.csv. Needs the extra `studio`, playwright and a Chromium.
"""

from __future__ import annotations

import argparse
import base64
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt.datasets import load_anes96

HERE = Path(__file__).resolve().parent
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
MOVES = """async ({moves, seed}) => {
  let state = seed;
  const random = () => ((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648);
  const panel = document.getElementById("panel"), badge = document.getElementById("badge");
  const painted = () => new Promise((then) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = then;
    channel.port2.postMessage(0);
  }));
  const took = [];
  for (let at = 0; at < moves; at++) {
    const slider = panel.querySelector(at % 2 ? "[name=eta-slider]" : "[name=epsilon-slider]");
    const place = String(Math.round((at % 2 ? 0.05 + 0.5 * random() : 0.45 + 0.45 * random()) * Number(slider.max)));
    if (place === slider.value) continue;
    const before = panel.dataset.painted;
    slider.value = place;
    const start = performance.now();
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    await new Promise((then) => {
      const look = () => panel.dataset.state === "done" && panel.dataset.painted !== before;
      if (look()) return then();
      const watch = new MutationObserver(() => look() && (watch.disconnect(), then()));
      watch.observe(panel, {attributes: true});
    });
    await painted();
    if (!badge.classList.contains("good")) throw new Error(badge.textContent);
    took.push(performance.now() - start);
  }
  return took;
}"""


def states() -> list[tuple[str, dict[str, Any]]]:
    """Populations of 7, 24 and 100 answers, by what they are."""
    table, rng = load_anes96(), np.random.default_rng(100)
    pairs = [(f"ANES {name}", *table.conditional(name, "vote")) for name in ("party", "income")]
    pairs.append(("random", rng.dirichlet(np.ones(100)), rng.dirichlet(np.ones(100))))
    limits = {"epsilon": 1.0, "eta": 0.3, "names": ["P0", "P1"]}
    return [
        (name, {"p0": p0.tolist(), "p1": p1.tolist(), "labels": [f"a{x}" for x in range(len(p0))], **limits})
        for name, p0, p1 in pairs
    ]


def processor(pid: int) -> float:
    """Processor seconds of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(address: str, pid: int, moves: int, name: str, state: dict[str, Any], browser: Any) -> dict[str, Any]:
    """The row of one pair of populations."""
    text = base64.urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    begun = time.perf_counter()
    page.goto(f"{address}#view=tell&state={text}")
    page.wait_for_selector("#panel[data-state=done]", timeout=30000)
    first = time.perf_counter() - begun
    page.evaluate(MOVES, {"moves": 10, "seed": 1})
    before = processor(pid)
    took = np.array(page.evaluate(MOVES, {"moves": moves, "seed": 7}))
    used = (processor(pid) - before) / len(took)
    page.close()
    return {
        "populations": name,
        "answers": len(state["p0"]),
        "moves": len(took),
        "median ms": round(float(np.median(took)), 1),
        "95th percentile ms": round(float(np.quantile(took, 0.95)), 1),
        "studio's processor ms": round(1000 * used, 1),
        "first picture s": round(first, 2),
    }


def main() -> int:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=200)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    command = [sys.executable, "-m", "ldpopt", "studio", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program, sync_playwright() as playwright:
        try:
            address = program.stdout.readline().strip() if program.stdout else ""
            if not re.match(r"http://127\.0\.0\.1:\d+/\?token=", address):
                raise SystemExit("the studio did not start")
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            rows = [measured(address, program.pid, given.moves, *one, browser) for one in states()]
            browser.close()
        finally:
            program.terminate()
    load = os.getloadavg()[0]
    for row in rows:
        row["load of the machine"] = round(load, 1)
        print(row)
    with (given.out / "studio.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
