"""Proposition 2: how large the total variation of a locally private channel can be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.mechanisms import (
    binary,
    hadamard_response,
    optimized_unary_encoding,
    randomized_response,
    subset_selection,
    truncated_geometric,
)
from ldpopt.privacy import local_dp, total_variation
from ldpopt.reproduce.drawing import COLOURS, finish, frames
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def channels(epsilon: float, k: int) -> Iterator[tuple[str, Channel]]:
    """Mechanisms of the literature for k answers."""
    p = np.arange(1.0, k + 1) / (k * (k + 1) / 2)
    yield "binary", binary(p, p[::-1], epsilon)
    yield "randomized response", randomized_response(k, epsilon)
    yield "subset selection of half", subset_selection(k, epsilon, k // 2)
    yield "truncated geometric", truncated_geometric(k, epsilon)
    yield "unary encoding", optimized_unary_encoding(k, epsilon).channel()
    yield "Hadamard response", hadamard_response(k, epsilon).channel()


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon and number of answers, then random channels."""
    return grid(part=["mechanisms"], epsilon=parameters["epsilons"], k=parameters["sizes"]) + grid(
        part=["random"], epsilon=[0.0], k=[4], seed=list(range(parameters["channels"]))
    )


def measure(part: str, epsilon: float, k: float, seed: float = 0) -> list[Row]:
    """The measured epsilon and eta of the channels, and tanh of half that epsilon."""
    if part == "mechanisms":
        made = list(channels(epsilon, int(k)))
    else:
        rng = np.random.default_rng(int(seed))
        made = [("random", Channel(rng.dirichlet(np.ones(5) * rng.choice([0.5, 2.0, 20.0]), size=int(k))))]
    rows: list[Row] = []
    for name, channel in made:
        found = local_dp(channel).value
        rows.append({"mechanism": name, "measured_epsilon": found, "eta": total_variation(channel).lower,
                     "bound": math.tanh(found / 2)})  # fmt: skip
    return rows


def judge(table: Table) -> Verdict:
    """The ratio of the bound to eta, which is 1 for the binary mechanism."""
    ratios = table.column("bound") / table.column("eta")
    tight = table.where(mechanism="binary")
    reached = tight.column("bound") / tight.column("eta")
    return Verdict(
        outcome_of(np.concatenate([np.minimum(ratios, 1.0), reached])),
        f"No channel of {len(ratios)} exceeds tanh(ε/2), the binary mechanism attains it at every ε (to "
        f"{np.abs(reached - 1).max():.1e}), and others stay as far as {ratios.max():.3g} times below.",
        {"attained to": float(np.abs(reached - 1).max()), "largest ratio": float(ratios.max())},
    )


def draw(table: Table) -> Any:
    """eta against epsilon for every mechanism, below the bound."""
    (ax,) = frames(1, 6.2, 4.3)
    epsilons = np.linspace(0.05, max(table.where(part="mechanisms").column("measured_epsilon")), 200)
    ax.plot(epsilons, np.tanh(epsilons / 2), color="0.2", lw=1.2, label="tanh(ε/2)")
    k = max(table.column("k"))
    shown = table.where(part="mechanisms", k=float(k))
    for at, (name, rows) in enumerate(shown.groups("mechanism")):
        ax.plot(rows.column("measured_epsilon"), rows.column("eta"), "osD^vP"[at % 6], ms=6, mfc="none",
                color=COLOURS[at % 7], ls="", label=str(name))  # fmt: skip
    finish(ax, f"Proposition 2: mechanisms for {k:g} answers", "ε (nats)", "total variation η", "lower right")
    ax.set(xlim=(0, None), ylim=(0, 1.02))
    return ax


EXPERIMENT = Experiment(
    name="gi-proposition-2",
    claim="Every ε-LDP channel has total variation at most (e^ε - 1)/(e^ε + 1) = tanh(ε/2).",
    source="[GI, Prop 2]",
    full={"epsilons": [0.1, 0.5, 1.0, 2.0, 4.0], "sizes": [2, 4, 8], "channels": 50},
    quick={"epsilons": [0.5, 2.0], "sizes": [4], "channels": 5},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="ε and η of six mechanisms: the binary one lies on the bound, the others trade total variation for detail.",
)
