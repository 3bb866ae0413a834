"""The contraction theorem: what share of a divergence survives a private channel, beside the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.bounds import asoodeh_zhang
from ldpopt.design import Divergence, LocalDP, optimal_channel
from ldpopt.distribution import Array
from ldpopt.divergences import CHI_SQUARED, KL, SQUARED_HELLINGER
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of
from ldpopt.reproduce.laws import worst_pair

F = {f.name: f for f in (KL, CHI_SQUARED, SQUARED_HELLINGER)}


def points(parameters: Parameters) -> list[Row]:
    """Every divergence and epsilon: the search for the best populations, and random ones."""
    made = grid(divergence=list(F), epsilon=parameters["epsilons"], k=parameters["sizes"])
    search = [row | {"starts": parameters["starts"], "steps": parameters["steps"]} for row in made]
    return [*search, *(row | {"pairs": parameters["pairs"]} for row in made)]


def measure(
    divergence: str, epsilon: float, k: float, starts: float = 0, steps: float = 0, pairs: float = 0
) -> Row | list[Row]:
    """bound / optimum: the smallest found over P0 and P1 with its pair, or the ratios of random pairs."""
    f = F[divergence]

    def ratio(p0: Array, p1: Array) -> float:
        optimum = optimal_channel(Divergence(f, p0, p1), LocalDP(epsilon), certify=False).value
        return asoodeh_zhang(f, p0, p1, epsilon) / optimum

    if pairs:
        rng = np.random.default_rng(int(k))
        return [{"random": ratio(*rng.dirichlet(np.ones(int(k)), size=2))} for _ in range(int(pairs))]
    found = worst_pair(lambda p0, p1: 1 / ratio(p0, p1), int(k), int(starts), int(steps))
    return found | {"ratio": 1 / float(found["ratio"])}


def judge(table: Table) -> Verdict:
    """The verdict: the bound is never below the optimum, and is attained in the limit."""
    ratios, random = table.column("ratio"), table.column("random")
    reached = [by.column("ratio").min() for _, one in table.groups("divergence") for _, by in one.groups("epsilon")]
    return Verdict(
        outcome_of(np.concatenate([ratios, random]), 1e-5),
        f"Never below the optimum, and within {max(reached) - 1:.2g} of it at the best populations found, for all "
        f"three divergences and every ε. For random populations it is {np.median(random):.3g} times too large in the "
        f"middle and {random.max():.3g} times at the most.",
        {
            "tightest of all": float(ratios.min()),
            "tightest, worst over ε": float(max(reached)),
            "random populations, median": float(np.median(random)),
            "random populations, largest": float(random.max()),
        },
    )


def draw(table: Table) -> Any:
    """The median over random populations and the smallest ratio found, against epsilon for each divergence."""
    (ax,) = frames(1, 6.2, 4.2)
    for at, (name, one) in enumerate(table.groups("divergence")):
        for column, word, style, pick in (("random", "random, median", "-", np.median), ("ratio", "best", ":", np.min)):
            found = [(float(e), pick(by.column(column))) for e, by in one.groups("epsilon")]
            line(ax, [e for e, _ in found], [r for _, r in found], at, f"{name}: {word}", ls=style, marker="o", ms=3)
    finish(ax, "tanh²(ε/2) D(P0‖P1) over the optimum", "ε (nats)", "bound / optimum", "upper right", "x")
    ax.set_ylim(0.95, 1.35 * max(ax.get_ylim()))
    return ax


EXPERIMENT = Experiment(
    name="az-theorem-1",
    claim="An ε-LDP channel keeps at most tanh²(ε/2) of a KL, chi-squared or squared Hellinger divergence.",
    source="[AZ, Thm 1]",
    full={"epsilons": [0.1, 0.5, 1.0, 2.0, 4.0], "sizes": [2, 3], "starts": 3, "steps": 300, "pairs": 50},
    quick={"epsilons": [0.5, 2.0], "sizes": [2], "starts": 2, "steps": 100, "pairs": 5},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The contraction bound over the exact optimum, at the best populations found and at random ones.",
)
