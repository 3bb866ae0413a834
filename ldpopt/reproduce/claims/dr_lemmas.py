"""Section 2 and Lemmas 3.7 to 3.10: subgaussian variables, antipodal distributions, and the mean of the loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.privacy import FinitePair, antipodal_pair, mcdp
from ldpopt.reproduce.drawing import COLOURS, formula, marks, panel, picture
from ldpopt.reproduce.experiment import Experiment, Row, Table, Verdict, grid, off_by, outcome_of, span
from ldpopt.reproduce.laws import random_law, renyi, tilted
from ldpopt.reproduce.statements import Part, inequalities

TAIL = Part("Lemma 2.1", cells=("seed", "t"))
VARIANCE = Part("Fact 2.1", cells=("seed",))
MOMENTS = Part("Fact 2.2", cells=("seed", "k"))
PRODUCT = Part("Lemma 2.3, first line", cells=("seed", "tilt"), floor=1e-3)
SECOND = Part("Lemma 2.3, second line", cells=("seed", "tilt"), floor=1e-3)
USED = Part("Lemma 2.3, second line, E[X] ≥ 0", cells=("seed", "tilt"), floor=1e-3)


def subgaussian(seed: float) -> list[Row]:
    """Both sides of every inequality, for the centred privacy loss Y of a random pair and another variable X.

    The loss is subgaussian, and its exact standard is known.
    """
    rng = np.random.default_rng([21, int(seed)])
    p = random_law(rng, int(rng.integers(2, 6)), least=0.01)
    q = tilted(rng, p, float(rng.choice([0.05, 0.3, 1.0])))
    y = np.log(p / q) - float(p @ np.log(p / q))
    tau = float(mcdp(FinitePair(p, q)).tau.value)
    rows = [VARIANCE(float(p @ y**2), tau**2)]
    rows += [TAIL(float(p[y >= t * tau].sum()), math.exp(-t * t / 2), t=t) for t in (0.5, 1.0, 2.0)]
    for k in (2, 3, 4, 5, 6):
        half = math.ceil(k / 2)
        rows.append(MOMENTS(float(p @ y**k), math.factorial(half) * 2 ** (half + 1) * tau**k, k=k))
    for tilt in (-1.0, 0.0, 1.0):
        rows += _products(p, rng.normal(size=len(p)) + tilt, y * min(1.0, 1 / (3 * tau)), min(tau, 1 / 3), tilt)
    return rows


def _products(p: Array, x: Array, y: Array, tau: float, tilt: float) -> list[Row]:
    """E[X exp(Y)] and its two bounds."""
    mean, square = float(p @ x), float(p @ x**2)
    exact, more = float(p @ (x * np.exp(y))), tau + 3 * tau**2
    second = mean + (math.sqrt(max(0.0, square - mean**2)) + mean) * more
    both = [(PRODUCT, mean + math.sqrt(square) * more), (SECOND, second)] + ([(USED, second)] if mean >= 0 else [])
    return [part(exact, bound, tilt=tilt) for part, bound in both]


SUBGAUSSIAN = inequalities(
    "dr-section-2", "[DR, Lemma 2.3; DR, Fact 2.1; DR, Fact 2.2; DR, Lemma 2.1]",
    "A τ-subgaussian Y has tails at most exp(-t²/2) (2.1), variance at most τ², k-th moment at most "
    "⌈k/2⌉! 2^(⌈k/2⌉+1) τ^k, and E[X e^Y] ≤ E[X] + √E[X²] (τ+3τ²) ≤ E[X] + (√Var X + E[X]) (τ+3τ²) for τ ≤ 1/3 (2.3).",
    TAIL, VARIANCE, MOMENTS, PRODUCT, SECOND, USED, title="Section 2: subgaussian variables",
    ending="The second line of Lemma 2.3 puts E[X] for |E[X]|: it needs E[X] ≥ 0, which the paper's uses of it have.",
    full={"pairs": 80}, quick={"pairs": 6}, points=grid(seed="pairs"), measure=subgaussian,
    caption="How far each inequality is from equality, for the centred privacy losses of random pairs.",
)  # fmt: skip


def antipodal(epsilon: float, k: float, seed: float) -> Row:
    """KL of a random pair of largest loss epsilon, and of its antipodal refinement, both ways, beside the bounds.

    Seed 0 is randomized response.
    """
    if seed == 0:
        p = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
        q = p[::-1]
    else:
        rng = np.random.default_rng([int(k), int(seed)])
        tilt = rng.uniform(-epsilon, epsilon, int(k))
        q = rng.dirichlet(np.ones(int(k)))
        p = q * np.exp(tilt / 2)
        p /= p.sum()
    split_p, split_q = antipodal_pair(p, q)
    loss = float(np.max(np.abs(np.log(p / q))))
    return {
        "loss": loss, "kl": renyi(p, q, 1), "antipodal": renyi(split_p, split_q, 1),
        "reversed": renyi(split_q, split_p, 1), "bound": loss * math.expm1(loss) / 2,
        "both": renyi(p, q, 1) + renyi(q, p, 1), "older": loss * math.expm1(loss), "sharp": loss * math.tanh(loss / 2),
    }  # fmt: skip


def _antipodal_verdict(table: Table) -> Verdict:
    """KL never falls, is the same in both directions, and stays below both bounds."""
    even, grown = off_by(table.ratio("reversed", "antipodal")), table.ratio("antipodal", "kl")
    bound, sharp = table.ratio("bound", "antipodal"), table.ratio("sharp", "antipodal")
    older = table.ratio("older", "both")  # Lemma 3.7 bounds the sum of both directions
    return Verdict(
        outcome_of(grown, sharp, bound, older, np.array([1.0 if even < 1e-9 else 0.0])),
        f"The refinement multiplies KL by {span(grown, '.4f', '.3g')}; it is the same "
        f"in both directions then (to {even:.1e}). Lemma 3.8's ε(e^ε - 1)/2 is {span(bound, '.4f', '.3g')} times too "
        f"large, Lemma 3.7's ε(e^ε - 1), for both directions together, {span(older, '.4f', '.3g')} times, ε tanh(ε/2) "
        f"{sharp.min():.4f} times at the least: randomized response attains it.",
        {"KL after / before, smallest": float(grown.min()), "directions differ by": even,
         "bound over KL, smallest": float(bound.min()), "Lemma 3.7 over both, smallest": float(older.min()),
         "ε tanh(ε/2) over KL, smallest": float(sharp.min())},
    )  # fmt: skip


def _beside(column: str, mark: str, colour: int, label: str) -> Any:
    return marks("loss", column, label, mark, color=COLOURS[colour])


ANTIPODAL = Experiment(
    "dr-lemma-3-9", "[DR, Lemma 3.9; DR, Lemma 3.10; DR, Lemma 3.8; DR, Lemma 3.7]",
    "Every pair refines to one whose losses are -ε, 0 and ε, of no smaller KL divergence (3.9), the same in both "
    "directions (3.10) and at most ε(e^ε - 1)/2 (3.8); both directions together have at most ε(e^ε - 1) (3.7).",
    full={"epsilons": [0.1, 0.5, 1.0, 3.0], "sizes": [2, 4, 10], "pairs": 12},
    quick={"epsilons": [0.5, 3.0], "sizes": [4], "pairs": 3},
    points=grid(epsilon="epsilons", k="sizes", seed="pairs"), measure=antipodal, judge=_antipodal_verdict,
    draw=picture(panel("Lemmas 3.8 to 3.10", "largest loss ε (nats)", "KL divergence (nats)",
                       _beside("kl", "o", 0, "KL of the pair"), _beside("antipodal", "x", 1, "KL of its refinement"),
                       formula(lambda x: x * np.expm1(x) / 2, "loss", "ε(e^ε - 1)/2", color="0.5", ls="--"),
                       formula(lambda x: x * np.tanh(x / 2), "loss", "ε tanh(ε/2)", color="0.2"), scale="xy"),
                 width=6.0, height=4.3),
    caption="KL of random pairs before and after the refinement, and the two bounds on it.",
)  # fmt: skip
