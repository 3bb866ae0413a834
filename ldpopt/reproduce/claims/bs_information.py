"""Section 6: how much information a zero-concentrated mechanism reveals about its input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.mechanisms import dominating_pair, gaussian
from ldpopt.privacy.claims import ZCDP
from ldpopt.privacy.implications import information_blocks
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of

WORDS = ("smallest", "largest")


def points(parameters: Parameters) -> list[Row]:
    """Both mechanisms and every parameter, for m independent blocks of l people who all have the block's bit."""
    return grid(
        mechanism=["randomized response", "noisy sum"], parameter=parameters["parameters"],
        blocks=parameters["blocks"], size=parameters["sizes"],
    )  # fmt: skip


def measure(mechanism: str, parameter: float, blocks: float, size: float) -> Row:
    """The bound and the exact mutual information, in nats. `parameter` is epsilon or 1/sigma."""
    m, n = int(blocks), int(size)
    if mechanism == "randomized response":
        rho = dominating_pair(parameter).zcdp().value
        exact = m * _responses(parameter, n)
    else:
        rho = gaussian(1 / parameter).pair.zcdp().value
        exact = _noisy_sum(m, n, parameter)
    return {"rho": rho, "bound": information_blocks(ZCDP(0.0, rho), m, n), "exact": exact}


def _responses(epsilon: float, n: int) -> float:
    """I(bit; n randomized responses to it), from the law of their number of ones."""
    ones = np.arange(n + 1)
    choose = np.array([math.comb(n, i) for i in ones], dtype=np.float64)
    truth = 1 / (1 + math.exp(-epsilon))
    law = choose * truth**ones * (1 - truth) ** (n - ones)
    return float(law @ (np.log(law) - np.log((law + law[::-1]) / 2)))


def _noisy_sum(m: int, n: int, precision: float) -> float:
    """I(sum; sum + noise) for n times the sum of m fair bits and noise of standard deviation 1/precision."""
    at = n * precision * np.arange(m + 1)
    weights = np.array([math.comb(m, i) for i in range(m + 1)], dtype=np.float64) / 2**m
    y = np.linspace(-12, at[-1] + 12, 20001)
    density: Array = np.exp(-((y[:, None] - at) ** 2) / 2) @ weights / math.sqrt(2 * math.pi)
    inside = density > 0
    entropy = -np.sum(density[inside] * np.log(density[inside])) * (y[1] - y[0])
    return float(entropy - 0.5 * math.log(2 * math.pi * math.e))


def judge(table: Table) -> Verdict:
    """The bound over the exact information, for each of the three statements."""
    ratios = table.column("bound") / table.column("exact")
    shown = table.with_column("r", ratios)
    parts = {
        "Lemma 6.2 (independent people)": shown.where(size=1),
        "Proposition 6.1 (one block)": shown.where(blocks=1),
        "Theorem 6.3 (blocks)": Table(tuple(r for r in shown.rows if float(r["size"]) > 1 and float(r["blocks"]) > 1)),
    }
    ends = {name: (one.column("r").min(), one.column("r").max()) for name, one in parts.items()}
    said = "; ".join(f"{name}: {low:.3g} to {high:.3g}" for name, (low, high) in ends.items())
    worst = shown.row("r", np.argmax)
    return Verdict(
        outcome_of(ratios),
        f"Never below the exact information. Times too large: {said} (most for {worst['mechanism']}, "
        f"{'ε' if worst['mechanism'] == 'randomized response' else '1/σ'} = {worst['parameter']:g}, "
        f"{worst['blocks']:g} x {worst['size']:g} people: a bit cannot tell more than log 2).",
        {f"{name}, {word}": float(end) for name, both in ends.items() for word, end in zip(WORDS, both, strict=True)},
    )


def draw(table: Table) -> Any:
    """Bound and exact information against the size of a block."""
    axes = frames(2)
    for ax, (name, by_name) in zip(axes, table.groups("mechanism"), strict=True):
        letter = "ε" if name == "randomized response" else "1/σ"
        for at, (parameter, by) in enumerate(by_name.groups("parameter")):
            rows = by.where(blocks=float(min(by.column("blocks"))))
            line(ax, rows.column("size"), rows.column("exact"), at, f"{letter} = {parameter:g}, exact", ls="-")
            line(ax, rows.column("size"), rows.column("bound"), at, f"{letter} = {parameter:g}, ρ n²", ls=":")
        ax.axhline(math.log(2), color="0.5", lw=0.8)
        finish(ax, f"{str(name).capitalize()}: n people with one bit", "n", "I(X; M(X)) (nats)", "lower right", "xy")
    return axes[0]


EXPERIMENT = Experiment(
    name="bs-section-6",
    claim="A ρ-zCDP mechanism has I(X; M(X)) at most ρn² for any n people, ρm for m independent ones, and ρml² for m "
    "independent blocks of l.",
    source="[BS, Prop 6.1; BS, Lemma 6.2; BS, Thm 6.3]",
    full={"parameters": [0.1, 0.5, 2.0], "blocks": [1, 2, 5], "sizes": [1, 2, 4, 8, 16]},
    quick={"parameters": [0.5], "blocks": [1, 2], "sizes": [1, 4]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Exact information (solid) about one bit that n people share, and Proposition 6.1 (dotted); grey: log 2.",
)
