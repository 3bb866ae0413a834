"""The envelope theorem of sort, partition, randomize, put to the test: a search for a channel that does better."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.design import Divergence, LocalDP, Partition, PatternLP, TotalVariation, optimal_channel
from ldpopt.design.columns.masks import members
from ldpopt.design.problems.reduction import Pair, reduce
from ldpopt.design.programs.kernels import blocks, every_block
from ldpopt.distribution import Array
from ldpopt.divergences import NAMED, FDivergence, alpha, hockey_stick
from ldpopt.errors import SolverError
from ldpopt.reproduce.drawing import finish, frames
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict

DIVERGENCES = [*NAMED.values(), hockey_stick(1.5), alpha(3), alpha(0.5)]
FORMS = ("spread out", "concentrated", "nearly equal", "mirrored", "clustered", "steep")

ARITHMETIC = 1e-9
"""A channel better by more than this, relatively, is no rounding: values are good to 1e-12, repair costs that much."""

SHARE = 0.05
"""The share of the weight that a search keeps on patterns that are no blocks."""

LEAST_MASS = 0.03
"""Searches keep every input this likely, so that a pattern cannot become a block by an input that never occurs."""


def points(parameters: Parameters) -> list[Row]:
    """Batches of random instances, then one search for each divergence and start."""
    batches = [
        {"form": "random", "number": i, "size": parameters["size"], "largest k": parameters["largest_k"]}
        for i in range(parameters["batches"])
    ]
    searches = [
        {"form": "search", "number": i, "size": parameters["steps"], "largest k": parameters["search_k"]}
        for i in range(len(DIVERGENCES) * parameters["starts"])
    ]
    return [*batches, *searches]


def measure(**point: Any) -> list[Row]:
    """The rows of one batch or one search."""
    rng = np.random.default_rng([int(point["number"]), FORMS.index("steep") + (point["form"] == "search")])
    if point["form"] == "search":
        return [_searched(rng, int(point["number"]), int(point["largest k"]), int(point["size"]))]
    return [_instance(*_drawn(rng, int(point["largest k"]))) for _ in range(int(point["size"]))]


def _instance(f: FDivergence, form: str, p0: Array, p1: Array, epsilon: float, share: float) -> Row:
    """The envelope's value, by how much the pattern program's channel exceeds it, and by how much any could."""
    utility, caps = Divergence(f, p0, p1), [LocalDP(epsilon), TotalVariation(share * math.tanh(epsilon / 2))]
    row: Row = {"pairs": form, "k": len(p0), "divergence": f.name, "epsilon": epsilon, "share of eta": share}
    envelope = optimal_channel(utility, caps, method=Partition())
    value = envelope.value
    if value <= 1e-12:
        return row | {"envelope": value, "violation": 0.0, "room": 0.0}
    try:
        pattern = optimal_channel(utility, caps, method=PatternLP(), certify=False).value
    except SolverError:
        pattern = value
    return row | {
        "envelope": value, "violation": (pattern - value) / value, "room": (envelope.upper_bound - value) / value,
    }  # fmt: skip


def _drawn(rng: np.random.Generator, largest: int) -> tuple[FDivergence, str, Array, Array, float, float]:
    k = int(rng.integers(3, largest + 1))
    form = FORMS[int(rng.integers(len(FORMS)))]
    p = rng.dirichlet(np.full(k, 0.2 if form == "concentrated" else 1.0)) + 1e-5
    if form == "mirrored":
        q = p[::-1].copy()
    elif form in ("spread out", "concentrated"):
        q = rng.dirichlet(np.full(k, 0.2 if form == "concentrated" else 1.0)) + 1e-5
    elif form == "clustered":
        q = p * np.exp(rng.choice([-2.0, -0.1, 0.1, 1.5], k) + 1e-3 * rng.normal(size=k))
    else:
        q = p * np.exp((0.05 if form == "nearly equal" else 3.0) * rng.normal(size=k))
    f = DIVERGENCES[int(rng.integers(len(DIVERGENCES)))]
    epsilon = float(np.exp(rng.uniform(math.log(0.05), math.log(8))))
    return f, form, p / p.sum(), q / q.sum(), epsilon, float(rng.uniform(0.02, 0.99))


def _searched(rng: np.random.Generator, number: int, k: int, steps: int) -> Row:
    """The hypotheses, epsilon and eta at which patterns that are no blocks cost least, as an instance."""
    from scipy.optimize import minimize

    f = DIVERGENCES[number % len(DIVERGENCES)]

    def posed(x: Array) -> tuple[Array, Array, float, float]:
        raw = np.exp(np.clip(x[: 2 * k], -6, 6)).reshape(2, k)
        p0, p1 = (1 - k * LEAST_MASS) * raw / raw.sum(axis=1, keepdims=True) + LEAST_MASS
        return p0, p1, math.exp(float(np.clip(x[-2], -2, 2))), 0.02 + 0.96 / (1 + math.exp(-float(x[-1])))

    def loss(x: Array) -> float:
        p0, p1, epsilon, share = posed(x)
        return cost_of_others(f, reduce(p0, p1).pair, epsilon, share * math.tanh(epsilon / 2), SHARE)

    starts = sorted((rng.normal(size=2 * k + 2) for _ in range(8)), key=loss)
    found = minimize(loss, starts[0], method="Nelder-Mead", options={"maxfev": steps, "xatol": 1e-6, "fatol": 1e-10})
    return _instance(f, "searched", *posed(found.x)) | {"cost": float(found.fun)}


def cost_of_others(f: FDivergence, pair: Pair, epsilon: float, eta: float, share: float) -> float:
    """The relative loss of the best channel with at least `share` of its weight on patterns that are no blocks.

    Negative where such a channel does better than all mixtures of blocks: a counterexample.
    """
    from scipy.optimize import linprog

    k, gain = len(pair), math.expm1(epsilon)
    inside = members(np.arange(2**k - 1), k)
    worth = f.excess(1 + gain * (inside @ pair.p0), 1 + gain * (inside @ pair.p1))
    if worth.max() <= 0:
        return 1.0
    block = (inside[:, None, :] == blocks(*every_block(k), k).T).all(axis=2).any(axis=1) | ~inside.any(axis=1)
    x, y = np.triu_indices(k, 1)
    cap = gain * (inside[:, x] & ~inside[:, y]).T
    balance = {"A_eq": 1.0 + gain * inside.T, "b_eq": np.ones(k), "method": "highs"}
    weight = np.where(inside.any(axis=1), share - (~block).astype(float), 0.0)
    objective = -worth / worth.max()
    blocks_only = linprog(
        objective, A_ub=cap, b_ub=np.full(len(x), eta), bounds=[(0, None if is_block else 0) for is_block in block],
        **balance,
    )  # fmt: skip
    others = linprog(objective, A_ub=np.vstack([cap, weight]), b_ub=np.append(np.full(len(x), eta), 0.0), **balance)
    if blocks_only.status != 0 or others.status != 0 or blocks_only.fun >= 0:
        return 1.0
    return float((others.fun - blocks_only.fun) / -blocks_only.fun)


def judge(table: Table) -> Verdict:
    """Whether any channel beat the envelope by more than the arithmetic explains."""
    violation, room = table.column("violation"), table.column("room")
    top, far = table.row("violation", np.argmax), table.row("room", np.argmax)
    costs = table.column("cost")
    # Piecewise linear ones have ties: there other patterns cost nothing.
    smooth = Table(tuple(row for row in table.rows if not str(row["divergence"]).startswith(("total", "hockey"))))
    least = float(smooth.column("cost").min())
    figures = {
        "instances": float(len(table.rows)),
        "largest relative violation": float(violation.max()),
        "largest that the bounds leave room for": float(room.max()),
        "median of that": float(np.median(room)),
        "instances with room below 1e-7": float((room < 1e-7).mean()),
        "least cost of patterns that are no blocks": float(costs.min()),
        "least such cost, smooth divergences": least,
    }
    if violation.max() > ARITHMETIC:
        return Verdict(
            Outcome.FAILS,
            f"A channel of the pattern program is {violation.max():.3g} better (relatively) than the envelope: "
            f"{top['divergence']}, k = {top['k']:g}, ε = {top['epsilon']:.6g}.",
            figures,
        )
    return Verdict(
        Outcome.HOLDS,
        f"No counterexample in {len(table.rows)} instances (k ≤ {table.column('k').max():g}, {len(DIVERGENCES)} "
        f"divergences). The largest relative violation is {violation.max():.2g}, of the size of rounding; in every "
        f"instance the certificate excludes one above {room.max():.2g} (worst for {far['divergence']}, "
        f"k = {far['k']:g}). In the {len(costs)} local searches over P0, P1, ε and η, channels with {SHARE:.0%} of "
        f"their weight on patterns that are no blocks gain {max(0.0, -costs.min()):.1g} at the most, less than the "
        "linear programs' accuracy of 1e-7. The pattern program does not use the theorem: this is a check, no proof.",
        figures,
    )


def draw(table: Table) -> Any:
    """Violations and the room for them, by epsilon."""
    left, right = frames(2, 5.4, 4.2)
    epsilon = table.column("epsilon")
    floor = 1e-16
    left.scatter(epsilon, np.maximum(table.column("room"), floor), s=6, color="#56B4E9", label="room left by the bound")
    left.scatter(epsilon, np.maximum(table.column("violation"), floor), s=6, color="#D55E00", label="violation found")
    finish(left, "Above the envelope, relatively", "ε (nats)", "excess (1e-16: none)", scale="xy")
    costs = np.sort(table.column("cost"))
    right.plot(np.arange(1, len(costs) + 1), np.maximum(costs, floor), ".", color="#009E73")
    finish(right, f"Cost of {SHARE:.0%} on patterns that are no blocks", "search, sorted", "loss", None, scale="y")
    return left


EXPERIMENT = Experiment(
    name="spr-envelope",
    claim="Under ε-LDP and an η cap on total variation no channel beats the envelope over η of the optimal m-block "
    "sort-partition-randomize channels (proved in [SPR] without the cap; with it, the envelope theorem).",
    source="[SPR], [GI, section VII]",
    full={"batches": 120, "size": 25, "largest_k": 12, "starts": 3, "steps": 200, "search_k": 5},
    quick={"batches": 1, "size": 12, "largest_k": 7, "starts": 1, "steps": 8, "search_k": 4},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="What the certified engine leaves room for, and the largest violation found, at every instance.",
)
