"""Mutual information: the binary mechanism at small epsilon, randomized response at large, and the capacity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.bounds import information_capacity
from ldpopt.design import LocalDP, MutualInformation, optimal_channel
from ldpopt.design.columns.sets import members
from ldpopt.design.columns.shares import information_of, level_of
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid

SAME = 1e-6
"""Values that agree to this share of themselves are the same optimum."""


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon for every number of answers."""
    return grid(k=parameters["sizes"], epsilon=parameters["epsilons"])


def measure(k: float, epsilon: float) -> Row:
    """The optimum and its bound, the best binary mechanism and randomized response, for a random prior of each size."""
    prior = np.random.default_rng(int(k)).dirichlet(np.ones(int(k)))
    level = level_of(epsilon)
    design = optimal_channel(MutualInformation(prior), LocalDP(epsilon))
    sets = members(np.arange(2 ** int(k)), int(k))
    one, other = sets @ prior, ~sets @ prior
    binary = (information_of(one, other, level) + information_of(other, one, level)) / (2 * level + 1)
    response = information_of(prior, 1 - prior, level).sum() / (int(k) * level + 1)
    return {
        "optimum": design.value, "bound": design.upper_bound, "binary": float(binary.max()),
        "response": float(response), "capacity": information_capacity(epsilon),
    }  # fmt: skip


def judge(table: Table) -> Verdict:
    """The verdict: whether each mechanism is optimal at its end of the range, and nothing is above the capacity."""
    best = table.column("optimum")
    binary, response = table.column("binary") / best, table.column("response") / best
    capacity, loose = table.column("capacity") / best, table.column("bound") / best
    epsilon = table.column("epsilon")
    low, high = epsilon == epsilon.min(), epsilon == epsilon.max()
    ends = (binary[low] >= 1 - SAME).all() and (response[high] >= 1 - SAME).all()
    below = (np.maximum(binary, response) <= 1 + SAME).all() and (capacity >= 1 - SAME).all()
    proved = (loose <= 1 + SAME).all()
    between = np.maximum(binary, response)
    return Verdict(
        Outcome.HOLDS if ends and below and proved else Outcome.FAILS,
        f"At ε = {epsilon.min():g} the best binary mechanism reaches {binary[low].min():.7f} of the optimum, at "
        f"ε = {epsilon.max():g} randomized response {response[high].min():.7f}. Between them the better of the two "
        f"keeps {between.min():.4f} at the least. The capacity t - 1 - log t is nowhere below the optimum, and at most "
        f"{1 - 1 / capacity.min():.2g} above it where it is nearest.",
        {
            "binary share at the smallest ε": float(binary[low].min()),
            "response share at the largest ε": float(response[high].min()),
            "least share of the better one": float(between.min()),
            "least capacity over optimum": float(capacity.min()),
        },
    )


def draw(table: Table) -> Any:
    """All values as a share of the capacity, with a panel for each number of answers."""
    sizes = [k for k, _ in table.groups("k")]
    axes = frames(len(sizes))
    for ax, (k, rows) in zip(axes, table.groups("k"), strict=True):
        epsilon, capacity = rows.column("epsilon"), rows.column("capacity")
        for at, (name, label) in enumerate(
            (("optimum", "optimum"), ("binary", "binary mechanism"), ("response", "randomized response"))
        ):
            line(ax, epsilon, rows.column(name) / capacity, at, label)
        entropy = MutualInformation(np.random.default_rng(int(float(k))).dirichlet(np.ones(int(float(k))))).unprivate
        line(ax, epsilon, np.minimum(entropy / capacity, 1.0), 3, "entropy, at most 1")
        finish(ax, f"{float(k):g} answers", "ε (nats)", "share of t − 1 − log t", "lower left", scale="x")
        ax.set_ylim(0, 1.05)
    return axes[0]


EXPERIMENT = Experiment(
    name="kov-information",
    claim="For mutual information the binary mechanism is optimal at small ε and randomized response at large ε, for "
    "every prior; no ε-LDP channel keeps more than t − 1 − log t, t = ε/(1 − e^−ε).",
    source="[KOV14, section 4]",
    full={"sizes": [4, 8, 12], "epsilons": [0.01, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0]},
    quick={"sizes": [4, 6], "epsilons": [0.01, 1.0, 3.0, 12.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The optimum, the two mechanisms and the entropy, as shares of the capacity, for a random prior.",
)
