"""Section 8: approximate zero-concentrated privacy, to and from approximate privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.composition import kov15
from ldpopt.composition.sums import zcdp_advanced_composition
from ldpopt.mechanisms import dominating_pair, gaussian
from ldpopt.privacy import approximate_zcdp
from ldpopt.privacy.claims import ApproximateDP, ApproximateZCDP
from ldpopt.privacy.conversions import approximate_to_approximate_zcdp, approximate_zcdp_to_approximate
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of

PARTS = {"Cor 8.7": "ρ", "Lemma 8.8": "δ", "Cor 8.9": "ε", "Cor 8.11": "ε"}
CORNER = 1 + 1e-9
"""Delta is multiplied by this number, since at a slightly smaller delta the exact rho is infinite."""


def points(parameters: Parameters) -> list[Row]:
    """Corollary 8.7, Lemma 8.8, and Corollaries 8.9 to 8.11."""
    epsilons, deltas = parameters["epsilons"], parameters["deltas"]
    return [
        *grid(part=["Cor 8.7"], epsilon=epsilons, delta=deltas),
        *grid(part=["Lemma 8.8"], rho=parameters["rhos"], delta=deltas, deviations=[0.5, 1.0, 2.0, 4.0]),
        *grid(part=["Cor 8.9"], epsilon=epsilons, delta=[1e-8], count=parameters["counts"]),
    ]


def measure(
    part: str, delta: float, epsilon: float = 0.0, rho: float = 0.0, deviations: float = 0.0, count: float = 1
) -> Row:
    """The claimed and the exact value of rho, delta or epsilon, depending on the statement."""
    if part == "Cor 8.7":
        rho_exact = approximate_zcdp(dominating_pair(epsilon, delta), delta * CORNER).lower
        return {"claimed": approximate_to_approximate_zcdp(ApproximateDP(epsilon, delta)).rho, "exact": rho_exact}
    if part == "Lemma 8.8":  # reveals its input with probability delta, else adds Gaussian noise
        at = rho + deviations * math.sqrt(2 * rho)
        claimed = approximate_zcdp_to_approximate(ApproximateZCDP(delta, 0.0, rho), at).delta
        kept = gaussian(1 / math.sqrt(2 * rho)).pair.hockey_stick(at).lower
        return {"at": at, "claimed": claimed, "exact": delta + (1 - delta) * kept}
    slack = 1e-6
    claim = zcdp_advanced_composition([(ApproximateDP(epsilon, delta), int(count))], slack)
    norm = epsilon * math.sqrt(count)
    printed = norm**2 / 2 + math.sqrt(2 * math.log(math.sqrt(math.pi / 2) * norm / slack)) * norm  # Corollary 8.11
    exact = kov15(epsilon, delta, int(count)).epsilon_at(claim.delta)
    return {"claimed": claim.epsilon, "simple": printed, "exact": exact}


def judge(table: Table) -> Verdict:
    """The ratio of each statement's value to the exact one."""
    ratios = {str(part): one.column("claimed") / one.column("exact") for part, one in table.groups("part")}
    composed = table.where(part="Cor 8.9")
    ratios["Cor 8.11"] = composed.column("simple") / composed.column("exact")
    said = ", ".join(f"{name} ({PARTS[name]}) {one.min():.4g} to {one.max():.4g}" for name, one in ratios.items())
    return Verdict(
        outcome_of(np.concatenate(list(ratios.values())), 1e-5),
        f"Times too large: {said}. The exact ρ of (ε, δ)-DP mechanisms after removing δ is ε tanh(ε/2).",
        {f"{name} ({PARTS[name]}), {word}": float(pick(one)) for name, one in ratios.items()
         for word, pick in (("smallest", np.min), ("largest", np.max))},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """Lemma 8.8 against the exact delta, and the composition corollaries against the exact epsilon."""
    left, right = frames(2)
    lemma = table.where(part="Lemma 8.8")
    delta = float(min(lemma.column("delta")))
    for at, (rho, rows) in enumerate(lemma.where(delta=delta).groups("rho")):
        line(left, rows.column("at"), rows.column("claimed"), at, f"ρ = {rho:g}, Lemma 8.8", ls=":")
        line(left, rows.column("at"), rows.column("exact"), at, f"ρ = {rho:g}, exact", ls="-")
    finish(left, f"δ at ε of a {delta:g}-approximate ρ-zCDP mechanism", "ε (nats)", "δ", scale="xy")
    for at, (epsilon, rows) in enumerate(table.where(part="Cor 8.9").groups("epsilon")):
        for column, label, style in (("simple", "8.11", "-."), ("claimed", "8.9", ":"), ("exact", "exact", "-")):
            line(right, rows.column("count"), rows.column(column), at, f"ε = {epsilon:g}, {label}", ls=style, lw=1.4)
    finish(right, "ε of k mechanisms, δ about 1e-6", "mechanisms k", "ε of all (nats)", "upper left", "xy")
    right.set_ylim(None, 100 * max(right.get_ylim()))
    right.legend(fontsize=7, loc="upper left", framealpha=0.85, edgecolor="none")
    return left


EXPERIMENT = Experiment(
    name="bs-section-8",
    claim="(ε, δ)-DP is δ-approximate ε²/2-zCDP (8.7); approximate zCDP is approximate DP (8.8); together they compose "
    "approximate DP (8.9, 8.11).",
    source="[BS, Cor 8.7; BS, Lemma 8.8; BS, Cor 8.9; BS, Cor 8.11; GI, eq. 6]",
    full={"epsilons": [0.01, 0.1, 0.5], "deltas": [1e-6, 1e-3], "rhos": [0.01, 0.1, 1.0],
          "counts": [1, 10, 100, 1000]},
    quick={"epsilons": [0.1], "deltas": [1e-3], "rhos": [0.1], "counts": [10, 100]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Left: δ of a mechanism that leaks with probability δ and else adds Gaussian noise. Right: composition.",
)  # fmt: skip
