"""Proposition 1: sampling before a mechanism shrinks epsilon, delta and eta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.composition import subsample
from ldpopt.mechanisms import dominating_pair
from ldpopt.privacy import hockey_stick, local_dp, total_variation
from ldpopt.privacy.claims import TV, ApproximateDP
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of

POPULATION = 100


def points(parameters: Parameters) -> list[Row]:
    """The worst mechanism at every setting, then random mechanisms of three answers."""
    worst = grid(
        part=["worst"], epsilon=parameters["epsilons"], delta=parameters["deltas"], share=parameters["shares"],
        sampled=parameters["sampled"],
    )  # fmt: skip
    return worst + grid(part=["random"], seed=list(range(parameters["mechanisms"])), sampled=parameters["sampled"])


def measure(
    part: str, sampled: float, epsilon: float = 0.0, delta: float = 0.0, share: float = 0.0, seed: float = 0
) -> Row:
    """The delta at the claimed epsilon and the eta, claimed and exact, for one differing person among 100.

    Without that person in the sample the mechanism sees the answers of others: the same report under both inputs.
    """
    p = sampled / POPULATION
    if part == "worst":
        eta = delta + share * (1 - delta) * math.tanh(epsilon / 2)
        pair = dominating_pair(epsilon, delta, eta)
        yes, no, other = pair.p, pair.q, pair.q  # the others give the same answer as the second input
    else:
        rng = np.random.default_rng(int(seed))
        yes, no, other = rng.dirichlet(np.ones(4), size=3) * 0.9 + 0.025
        rows = np.stack([yes, no, other])
        epsilon, eta = local_dp(rows).value, total_variation(rows).value
    mixed = np.stack([p * yes + (1 - p) * other, p * no + (1 - p) * other])
    claimed = subsample(ApproximateDP(epsilon, delta), int(sampled), POPULATION)
    assert isinstance(claimed, ApproximateDP)
    variation = subsample(TV(eta), int(sampled), POPULATION)
    assert isinstance(variation, TV)
    row: Row = {"eta_claimed": variation.eta, "eta_exact": total_variation(mixed).lower}
    if delta > 0:
        return row | {"claimed": claimed.delta, "exact": hockey_stick(mixed, claimed.epsilon).lower}
    return row | {"claimed": claimed.epsilon, "exact": local_dp(mixed).lower}


def judge(table: Table) -> Verdict:
    """The verdict: the worst mechanism attains the bounds, and none exceeds them."""
    worst, other = table.where(part="worst"), table.where(part="random")
    tight = np.concatenate([one.column("claimed") / one.column("exact") for one in (worst,)]
                           + [worst.column("eta_claimed") / worst.column("eta_exact")])  # fmt: skip
    loose = np.concatenate([other.column("claimed") / other.column("exact"),
                            other.column("eta_claimed") / other.column("eta_exact")])  # fmt: skip
    outcome = outcome_of(np.concatenate([tight, np.minimum(loose, 1.0)]))
    return Verdict(
        outcome,
        f"Attained, in ε, δ and η, by the dominating pair when the others answer like the second input (to "
        f"{np.abs(tight - 1).max():.1e}); over {len(other.rows)} samples from random mechanisms the claim is "
        f"{loose.min():.3g} to {loose.max():.3g} times the exact value.",
        {"off at the worst mechanism": float(np.abs(tight - 1).max()), "random, smallest": float(loose.min()),
         "random, largest": float(loose.max())},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """The amplified epsilon (or delta) and eta against the sampled share."""
    left, right = frames(2)
    worst = table.where(part="worst", delta=0.0)
    share = max(worst.column("share"))
    for at, (epsilon, rows) in enumerate(worst.where(share=float(share)).groups("epsilon")):
        line(left, rows.column("sampled") / POPULATION, rows.column("claimed"), at, f"ε = {epsilon:g}", lw=1.4)
        left.plot(rows.column("sampled") / POPULATION, rows.column("exact"), "o", ms=4, mfc="none", color="0.2")
        line(right, rows.column("sampled") / POPULATION, rows.column("eta_claimed"), at, f"ε = {epsilon:g}", lw=1.4)
        right.plot(rows.column("sampled") / POPULATION, rows.column("eta_exact"), "o", ms=4, mfc="none", color="0.2")
    for ax, name in ((left, "ε of the sampled mechanism (nats)"), (right, "η of the sampled mechanism")):
        ax.plot([], [], "o", ms=4, mfc="none", color="0.2", label="exact, worst mechanism")
        finish(ax, "Proposition 1", "sampled share m/n", name)
    return left


EXPERIMENT = Experiment(
    name="gi-proposition-1",
    claim="Sampling m of n without replacement first makes an (ε, δ)-DP and η-TV mechanism (log(1 + p(e^ε - 1)), "
    "pδ)-DP and pη-TV, p = m/n.",
    source="[GI, Prop 1]",
    full={"epsilons": [0.3, 1.0, 3.0], "deltas": [0.0, 0.05], "shares": [0.3, 1.0],
          "sampled": [1, 10, 25, 50, 75, 100], "mechanisms": 20},
    quick={"epsilons": [1.0], "deltas": [0.0, 0.05], "shares": [0.3, 1.0], "sampled": [10, 50], "mechanisms": 3},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="ε and η after sampling: the claim (lines) and the exact value of the worst mechanism (circles), δ = 0.",
)  # fmt: skip
