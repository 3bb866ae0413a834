"""Propositions 1 and 2 and Appendix J: total variation beside epsilon, and both after sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.composition import subsample
from ldpopt.distribution import Array
from ldpopt.mechanisms import (
    binary,
    dominating_pair,
    hadamard_response,
    optimized_unary_encoding,
    randomized_response,
    subset_selection,
    truncated_geometric,
)
from ldpopt.privacy import hockey_stick, local_dp, maximal_leakage, total_variation
from ldpopt.privacy.claims import TV, ApproximateDP
from ldpopt.reproduce.drawing import curves, formula, marks, panel, picture
from ldpopt.reproduce.experiment import Row, Subject, Table, Verdict, grid, off_by, outcome_of, span
from ldpopt.reproduce.laws import random_law, rr
from ldpopt.reproduce.statements import Part, claim

POPULATION = 100


def _sampling_verdict(table: Table) -> Verdict:
    tight, loose = (
        np.concatenate([rows.ratio("claimed", "exact"), rows.ratio("eta_claimed", "eta_exact")])
        for rows in (table.where(part="worst"), table.where(part="random"))
    )
    return Verdict(
        outcome_of(tight, np.minimum(loose, 1.0)),
        f"Attained, in ε, δ and η, by the dominating pair when the others answer like the second input (to "
        f"{off_by(tight):.1e}); over {len(loose) // 2} samples from random mechanisms the claim is "
        f"{span(loose)} times the exact value.",
        {"off at the worst mechanism": off_by(tight), "random, smallest": loose.min(),
         "random, largest": loose.max()},
    )  # fmt: skip


def _sampled(column: str, what: str) -> Any:
    def share(rows: Table) -> Array:
        return rows.column("sampled") / POPULATION

    return panel("Proposition 1", "sampled share m/n", f"{what} of the sampled mechanism" + " (nats)" * (what == "ε"),
                 curves(share, f"{column}claimed", "ε = {epsilon:g}", by=("epsilon",), lw=1.4),
                 marks(share, f"{column}exact", "exact, worst mechanism"),
                 where={"part": "worst", "delta": 0.0, "share": max})  # fmt: skip


@claim(
    "gi-proposition-1", "[GI, Prop 1]",
    full={"epsilons": [0.3, 1.0, 3.0], "deltas": [0.0, 0.05], "shares": [0.3, 1.0],
          "sampled": [1, 10, 25, 50, 75, 100], "mechanisms": 20},
    quick={"epsilons": [1.0], "deltas": [0.0, 0.05], "shares": [0.3, 1.0], "sampled": [10, 50], "mechanisms": 3},
    points=grid(part=["worst"], epsilon="epsilons", delta="deltas", share="shares", sampled="sampled")
    + grid(part=["random"], seed="mechanisms", sampled="sampled"),
    judge=_sampling_verdict, draw=picture(_sampled("", "ε"), _sampled("eta_", "η")),
    caption="ε and η after sampling: the claim (lines) and the exact value of the worst mechanism (circles), δ = 0.",
)  # fmt: skip
def sampled_mechanism(
    part: str, sampled: float, epsilon: float = 0.0, delta: float = 0.0, share: float = 0.0, seed: float = 0
) -> Row:
    """Sampling m of n without replacement first makes an (ε, δ)-DP and η-TV mechanism (log(1 + p(e^ε - 1)), pδ)-DP and
    pη-TV, p = m/n."""
    # Without the differing person in the sample the mechanism sees the answers of others: the same report both times.
    p = sampled / POPULATION
    if part == "worst":
        eta = delta + share * (1 - delta) * math.tanh(epsilon / 2)
        pair = dominating_pair(epsilon, delta, eta)
        yes, no, other = pair.p, pair.q, pair.q  # the others give the same answer as the second input
    else:
        yes, no, other = rows = np.random.default_rng(int(seed)).dirichlet(np.ones(4), size=3) * 0.9 + 0.025
        epsilon, eta = local_dp(rows).value, total_variation(rows).value
    mixed = np.stack([p * yes + (1 - p) * other, p * no + (1 - p) * other])
    claimed = subsample(ApproximateDP(epsilon, delta), int(sampled), POPULATION)
    variation = subsample(TV(eta), int(sampled), POPULATION)
    assert isinstance(claimed, ApproximateDP)
    assert isinstance(variation, TV)
    row: Row = {"eta_claimed": variation.eta, "eta_exact": total_variation(mixed).lower}
    if delta > 0:
        return row | {"claimed": claimed.delta, "exact": hockey_stick(mixed, claimed.epsilon).lower}
    return row | {"claimed": claimed.epsilon, "exact": local_dp(mixed).lower}


def channels(epsilon: float, k: int) -> Iterator[tuple[str, Channel]]:
    """Mechanisms of the literature for k answers."""
    p = np.arange(1.0, k + 1) / (k * (k + 1) / 2)
    yield "binary", binary(p, p[::-1], epsilon)
    yield "randomized response", randomized_response(k, epsilon)
    yield "subset selection of half", subset_selection(k, epsilon, k // 2)
    yield "truncated geometric", truncated_geometric(k, epsilon)
    yield "unary encoding", optimized_unary_encoding(k, epsilon).channel()
    yield "Hadamard response", hadamard_response(k, epsilon).channel()


def _variations_verdict(table: Table) -> Verdict:
    ratios, reached = table.ratio("bound", "eta"), table.where(mechanism="binary").ratio("bound", "eta")
    return Verdict(
        outcome_of(np.minimum(ratios, 1.0), reached),
        f"No channel of {len(ratios)} exceeds tanh(ε/2), the binary mechanism attains it at every ε (to "
        f"{off_by(reached):.1e}), and others stay as far as {ratios.max():.3g} times below.",
        {"attained to": off_by(reached), "largest ratio": ratios.max()},
    )


def _to_largest(ax: Any, table: Table) -> None:
    end = table.column("measured_epsilon").max()
    formula(lambda x: np.tanh(x / 2), (0.05, end), "tanh(ε/2)", count=200, space=np.linspace, color="0.2")(ax, table)


@claim(
    "gi-proposition-2", "[GI, Prop 2]",
    full={"epsilons": [0.1, 0.5, 1.0, 2.0, 4.0], "sizes": [2, 4, 8], "channels": 50},
    quick={"epsilons": [0.5, 2.0], "sizes": [4], "channels": 5},
    points=grid(part=["mechanisms"], epsilon="epsilons", k="sizes")
    + grid(part=["random"], epsilon=[0.0], k=[4], seed="channels"),
    judge=_variations_verdict,
    draw=picture(panel("Proposition 2: mechanisms for {k:g} answers", "ε (nats)", "total variation η", _to_largest,
                       marks("measured_epsilon", "eta", "{mechanism}", "osD^vP", by=("mechanism",), where={"k": max},
                             ms=6), where={"part": "mechanisms", "k": max}, legend="lower right", xlim=(0, None),
                       ylim=(0, 1.02)), width=6.2, height=4.3),
    caption="ε and η of six mechanisms: the binary one lies on the bound, the others trade total variation for detail.",
)  # fmt: skip
def variations(part: str, epsilon: float, k: float, seed: float = 0) -> list[Row]:
    """Every ε-LDP channel has total variation at most (e^ε - 1)/(e^ε + 1) = tanh(ε/2)."""
    if part == "mechanisms":
        chosen = list(channels(epsilon, int(k)))
    else:
        rng = np.random.default_rng(int(seed))
        chosen = [("random", Channel(rng.dirichlet(np.ones(5) * rng.choice([0.5, 2.0, 20.0]), size=int(k))))]
    return [
        {"mechanism": name, "measured_epsilon": own, "eta": total_variation(channel).lower, "bound": math.tanh(own / 2)}
        for name, channel in chosen
        for own in [local_dp(channel).value]
    ]


CELLS = ("epsilon", "seed")
SUM = Part("(79) as printed: Σ max ≤ log 2ε/(e^ε+1)", Subject.STEP, cells=CELLS)
LOG = Part("(79) with the logarithm on the left alone", Subject.STEP, cells=CELLS)
SUM_REPAIRED = Part("(79) repaired: log Σ max ≤ log 2e^ε/(e^ε+1)", Subject.STEP, cells=CELLS)
LEAKAGE = Part("(80) as printed: TV = 1 - e^-I", Subject.STEP, equal=True, cells=CELLS)
LEAKAGE_REPAIRED = Part("(80) repaired: TV = e^I - 1", Subject.STEP, equal=True, cells=CELLS)
END = Part("(81) as printed: 1 - 2ε/(e^ε+1) = (e^ε-1)/(e^ε+1)", Subject.STEP, equal=True, cells=CELLS)
PROPOSITION = Part("Proposition 2: TV ≤ (e^ε-1)/(e^ε+1)", cells=CELLS)


@claim(
    "gi-appendix-j", "[GI, eq. 79-81; GI, Prop 2]",
    SUM, LOG, SUM_REPAIRED, LEAKAGE, LEAKAGE_REPAIRED, END, PROPOSITION, title="Appendix J, line by line",
    ending="With the logarithm, 2e^ε and e^I - 1 in their places the chain proves the proposition, which is right.",
    full={"epsilons": [0.1, 0.5, 1.0, 2.0, 4.0], "pairs": 8}, quick={"epsilons": [0.5, 2.0], "pairs": 3},
    points=grid(epsilon="epsilons", seed="pairs"), subject=Subject.STEP,
    caption="How far each line of the chain is from its right side, as printed and repaired.",
)  # fmt: skip
def chain(epsilon: float, seed: float) -> list[Row]:
    """The chain (79) to (81) as printed: ML = Σ max Q(y|x) ≤ log 2ε/(e^ε+1), TV = 1 - e^-ML ≤ (e^ε-1)/(e^ε+1)."""
    # Random pairs whose largest loss is epsilon; seed 0 is randomized response.
    rows = rr(epsilon)
    if seed:
        rng = np.random.default_rng([80, int(seed)])
        q = random_law(rng, 4)
        x = rng.uniform(-1, 1, 4)
        low, high = 0.0, 60.0
        for _ in range(200):  # the tilt at which the largest loss is epsilon
            middle = (low + high) / 2
            p = q * np.exp(middle * x)
            p /= p.sum()
            low, high = (middle, high) if np.abs(np.log(p / q)).max() < epsilon else (low, middle)
        rows = np.stack([p, q])
    total, leakage = float(rows.max(axis=0).sum()), float(maximal_leakage(rows).value)
    variation, printed = total - 1, 2 * epsilon / (math.exp(epsilon) + 1)
    return [
        SUM(total, math.log(printed)),
        LOG(math.log(total), math.log(printed)),
        SUM_REPAIRED(math.log(total), math.log(2 * math.exp(epsilon) / (math.exp(epsilon) + 1))),
        LEAKAGE(variation, -math.expm1(-leakage)),
        LEAKAGE_REPAIRED(variation, math.expm1(leakage)),
        END(math.tanh(epsilon / 2), 1 - printed),
        PROPOSITION(variation, math.tanh(epsilon / 2)),
    ]
