"""The envelope theorem, checked by programs that do not use it: all partitions, all patterns, and its own proof."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize

from experiments.papers.drawing import COLOURS, Layer, marks, panel, picture
from experiments.papers.envelope import (
    Pair,
    Problem,
    distances,
    envelope_at,
    lay,
    partition_points,
    pattern_optimum,
    prove,
)
from experiments.papers.experiment import Axis, Outcome, Row, Single, Table, Verdict, grid
from experiments.papers.statements import claim
from ldpopt.design import Divergence, LocalDP, Partition, TotalVariation, optimal_channel
from ldpopt.divergences import NAMED, FDivergence, alpha, hockey_stick
from ldpopt.numbers.tolerances import STEP_ROUNDING, STEP_SMALL
from ldpopt.values.distribution import Array

DIVERGENCES = [*NAMED.values(), hockey_stick(1.5), alpha(3), alpha(0.5)]
FORMS = ("spread out", "concentrated", "nearly equal", "mirrored", "clustered", "steep", "zeros")
STEPS = ("channel", "exchanged", "split", "windows", "kept", "allowed")
"""The utility after each step of the proof, and the envelope's value at the channel's own distance."""

MIN_OTHER_SHARE = 0.05
"""The share of the weight that a search keeps on patterns that are not blocks."""

LEAST_MASS = 0.03
"""In searches every input has at least this probability, so that no pattern becomes a block as an input vanishes."""


def _instance(rng: np.random.Generator, f: FDivergence, form: str, pair: Pair, epsilon: float) -> Row:
    """The envelope from all partitions, the optimum over all patterns, and the certified design."""
    gain, k = math.expm1(epsilon), len(pair)
    tv_bound, kink = gain / (gain + 2), gain / (gain + rng.integers(2, k + 1))
    eta = float(rng.choice([tv_bound * rng.uniform(0.02, 0.99), kink, tv_bound], p=[0.7, 0.15, 0.15]))
    row: Row = {"pairs": form, "k": k, "divergence": f.name, "epsilon": epsilon, "eta": eta}
    return row | _compared(f, pair, gain, eta)


def _compared(f: FDivergence, pair: Pair, gain: float, eta: float) -> Row:
    design = optimal_channel(
        Divergence(f, pair.p0, pair.p1), [LocalDP(math.log1p(gain)), TotalVariation(eta)], method=Partition()
    )
    return {
        "envelope": envelope_at(partition_points(f.excess, pair.p0, pair.p1, gain), eta),
        "patterns": pattern_optimum(f.excess, pair.p0, pair.p1, gain, eta),
        "design": design.value,
        "bound": design.upper_bound,
    }


def _channel(rng: np.random.Generator, f: FDivergence, form: str, pair: Pair, epsilon: float) -> Row:
    """The steps of the proof for a random channel that need not be optimal, with either kind of distance."""
    gain, m = math.expm1(epsilon), int(rng.integers(2, 3 * len(pair)))
    kinds = rng.random((len(pair), m)), (rng.random((len(pair), m)) < 0.5).astype(np.float64)
    columns = (1 + gain * kinds[rng.integers(2)]) * rng.dirichlet(np.ones(m))
    lacking = columns.sum(axis=1).max() - columns.sum(axis=1)
    matrix = np.column_stack([columns, lacking + max(lacking.max() / gain, 1e-3)])
    matrix /= matrix[0].sum()
    line, _ = Problem(f, pair, gain).sorted(lay(matrix, gain))
    kind = int(rng.integers(2))
    length = distances(line.masses)[kind]
    proof = prove(f, pair, matrix, gain, length)
    allowed = envelope_at(partition_points(f.excess, pair.p0, pair.p1, gain), gain * length)
    row: Row = {"pairs": form, "k": len(pair), "divergence": f.name, "epsilon": epsilon, "eta": gain * length}
    over = max(sum(share for share, _ in proof.mixture) - 1, proof.variation - gain * length, proof.backward)
    return row | {"distance": ("total variation", "Kolmogorov")[kind], "over": over} | dict(
        zip(STEPS, (*proof.values, allowed), strict=True)
    )  # fmt: skip


def _draw_problem(rng: np.random.Generator, largest: int) -> tuple[FDivergence, str, Pair, float]:
    """A divergence, hypotheses in order of their ratio, and epsilon."""
    k = int(rng.integers(3, largest + 1))
    form = FORMS[int(rng.integers(len(FORMS)))]
    p, q = rng.dirichlet(np.full(k, 0.2 if form == "concentrated" else 1.0), 2) + 1e-5
    if form == "mirrored":
        q = p[::-1].copy()
    elif form == "clustered":
        q = p * np.exp(rng.choice([-2.0, -0.1, 0.1, 1.5], k) + 1e-3 * rng.normal(size=k))
    elif form in ("nearly equal", "steep"):
        q = p * np.exp((0.05 if form == "nearly equal" else 3.0) * rng.normal(size=k))
    order = np.argsort(p / q)
    p, q = p[order], q[order]
    if form == "zeros":
        p[0], q[-1] = 0.0, 0.0
    f = DIVERGENCES[int(rng.integers(len(DIVERGENCES)))]
    return f, form, Pair(p / p.sum(), q / q.sum()), float(np.exp(rng.uniform(math.log(0.05), math.log(6))))


def _searched(rng: np.random.Generator, number: int, k: int, steps: int) -> Row:
    """Search for the instance (hypotheses, epsilon, eta) that minimizes the loss of patterns other than blocks."""
    f = DIVERGENCES[number % len(DIVERGENCES)]

    def instance_of(x: Array) -> tuple[Pair, float, float]:
        raw = np.exp(np.clip(x[: 2 * k], -6, 6)).reshape(2, k)
        p0, p1 = (1 - k * LEAST_MASS) * raw / raw.sum(axis=1, keepdims=True) + LEAST_MASS
        order = np.argsort(p0 / p1)
        epsilon = math.exp(float(np.clip(x[-2], -2, 1.8)))
        eta = math.tanh(epsilon / 2) * (0.02 + 0.96 / (1 + math.exp(-float(x[-1]))))
        return Pair(p0[order], p1[order]), math.expm1(epsilon), eta

    def loss(x: Array) -> float:
        pair, gain, eta = instance_of(x)
        envelope = envelope_at(partition_points(f.excess, pair.p0, pair.p1, gain), eta)
        if envelope <= STEP_SMALL:
            return 1.0
        return 1 - pattern_optimum(f.excess, pair.p0, pair.p1, gain, eta, MIN_OTHER_SHARE) / envelope

    starts = sorted((rng.normal(size=2 * k + 2) for _ in range(8)), key=loss)
    best = minimize(loss, starts[0], method="Nelder-Mead", options={"maxfev": steps, "xatol": 1e-6, "fatol": 1e-10})
    pair, gain, eta = instance_of(best.x)
    row: Row = {"pairs": "searched", "k": k, "divergence": f.name, "epsilon": math.log1p(gain), "eta": eta}
    return row | {"cost": float(best.fun)} | _compared(f, pair, gain, eta)


def _verdict(table: Table) -> Verdict:
    instances, channels = _instances(table), table.where(part="channels")
    envelope, patterns, design, bound = (instances.column(x) for x in ("envelope", "patterns", "design", "bound"))
    size = np.maximum(envelope, STEP_SMALL)
    pattern_excess, room = (patterns - envelope) / size, (bound - envelope) / size
    steps = np.array([channels.column(name) for name in STEPS])
    step_losses = (steps[:-1] - steps[1:]) / np.maximum(steps.max(axis=0), STEP_SMALL)
    costs = table.column("cost")
    worst = {
        "a channel of the pattern program is above the envelope": pattern_excess.max(),
        "the pattern program stays below the envelope": float((-pattern_excess).max()),
        "the certified design differs from the envelope": float((np.abs(design - envelope) / size).max()),
        "a certified bound lies below the envelope": float(-room.min()),
        "a step of the proof loses": step_losses.max(),
        "the mixture of the proof exceeds its caps": float(channels.column("over").max()),
        "patterns that are no blocks gain": float(-costs.min()),
    }
    figures = {
        "instances": float(len(instances.rows)),
        "channels taken through the proof": float(len(channels.rows)),
        "largest that the bounds leave room for": room.max(),
        "least cost of patterns that are no blocks": costs.min(),
    } | {f"by how much {quantity}, at the most": amount for quantity, amount in worst.items()}
    failed = [f"{quantity}, by {amount:.3g}" for quantity, amount in worst.items() if not amount <= STEP_ROUNDING]
    if failed:
        return Verdict(Outcome.FAILS, f"Relatively: {'; '.join(failed)}.", figures)
    return Verdict(
        Outcome.HOLDS,
        f"In {len(instances.rows)} instances (k ≤ {instances.column('k').max():g}, {len(DIVERGENCES)} divergences) the "
        f"envelope over all partitions, listed one by one, and the linear program over all sets of inputs agree to "
        f"{np.abs(pattern_excess).max():.1g}, relatively, and the certificates exclude anything better by more than "
        f"{room.max():.1g}. In {len(costs)} of them, searched for over P0, P1, ε and η, channels with "
        f"{MIN_OTHER_SHARE:.0%} of their weight on patterns that are no blocks gain nothing. "
        f"{len(channels.rows)} random channels, taken "
        "through the steps of the proof, come out as mixtures of partitions that keep no less; no step loses more "
        f"than {max(0.0, step_losses.max()):.1g}.",
        figures,
    )


def _instances(table: Table) -> Table:
    return table.having(lambda row: "patterns" in row)


def _distance_curve(column: str, colour: int, label: str) -> Layer:
    """Return the layer of a column's relative distance from the envelope, over epsilon."""

    def difference(table: Table) -> Array:
        envelope, other = (_instances(table).column(name) for name in ("envelope", column))
        return np.asarray(np.maximum(np.abs(other - envelope) / np.maximum(envelope, STEP_SMALL), 1e-17))

    return marks(lambda table: _instances(table).column("epsilon"), difference, label, ".", color=COLOURS[colour], ms=3)


def _steps(ax: Any, channels: Table) -> None:
    steps = np.array([channels.column(name) for name in STEPS])
    shares, places = steps[:, steps[-1] > STEP_SMALL] / steps[-1, steps[-1] > STEP_SMALL], range(len(STEPS))
    for low, high, shade in ((0, 100, 0.12), (10, 90, 0.2), (25, 75, 0.3)):
        ends = np.percentile(shares, [low, high], axis=1)
        ax.fill_between(places, *ends, color=COLOURS[0], alpha=shade, lw=0, label=f"{high - low} %")
    ax.plot(places, np.median(shares, axis=1), color=COLOURS[0], lw=1.2, label="median")
    names = ("the channel", "common part apart", "it is erased", "windows", "partitions", "envelope")
    ax.set_xticks(places, names, rotation=90)


@claim(
    "envelope-theorem", "[SPR], [GI, section VII]; the envelope theorem of this package",
    points=grid(part=["instances"], number=Axis(120, 1), size=Single(25, 20), largest_k=Single(9, 6))
    + grid(part=["channels"], number=Axis(40, 1, "channel_batches"), size=Single(50, 40, "channels"),
           largest_k=Single(7, 5, "channel_k"))
    + grid(part=["search"], number=Axis(36, 12, "searches"), size=Single(200, 8, "steps"),
           largest_k=Single(5, 4, "search_k")),
    judge=_verdict,
    draw=picture(
        panel("Instances: difference from the envelope", "ε (nats)", "relative (1e-17: none)",
              _distance_curve("bound", 5, "proved bound less envelope"),
              _distance_curve("patterns", 1, "pattern program and envelope apart"), scale="xy", ylim=(3e-18, 1e-8)),
        panel("Random channels through the proof", "", "kept, as a share of the envelope", _steps,
              where={"part": "channels"}),
        panel(f"Cost of {MIN_OTHER_SHARE:.0%} on patterns that are no blocks", "search, sorted", "loss (1e-17: none)",
              marks(lambda rows: np.arange(1.0, len(rows.column("cost")) + 1),
                    lambda rows: np.maximum(np.sort(rows.column("cost")), 1e-17), mark=".",
                    color=COLOURS[2]), legend="none", scale="y")),
    caption="Differences between the envelope and what other programs find and prove; what random channels keep after "
    "each step of the proof; what it costs to use patterns that are no blocks.",
)  # fmt: skip
def measure(part: str, number: float, size: float, largest_k: float) -> list[Row]:
    """Consider channels under ε-LDP and a cap η on total variation. For every f, P0 and P1, the optimum is the least
    non-decreasing concave majorant, at η, of the origin and the points of the optimal m-block
    sort-partition-randomize channels."""
    number, k = int(number), int(largest_k)
    rng = np.random.default_rng([number, ("instances", "channels", "search").index(part)])
    if part == "search":
        return [_searched(rng, number, k, int(size))]
    draw = _instance if part == "instances" else _channel
    return [draw(rng, *_draw_problem(rng, k)) for _ in range(int(size))]
