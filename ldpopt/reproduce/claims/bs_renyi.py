"""Lemma 2.2 and Lemma B.6: properties of every Rényi divergence."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.reproduce.experiment import Experiment, Parameters, Row, grid
from ldpopt.reproduce.laws import random_law, renyi, tilted
from ldpopt.reproduce.statements import Part, inequalities

CELLS = ("order", "seed")
SIGN = Part("0 ≤ D_α", cells=CELLS, floor=1e-5)
ABOVE = Part("composition, with the largest", cells=CELLS, floor=1e-5)
BELOW = Part("composition, with the least", cells=CELLS, floor=1e-5)
QUASI = Part("quasi-convexity", cells=CELLS, floor=1e-5)
MIXED = Part("Lemma B.6: exp((α-1)D_α) is convex", cells=CELLS, floor=1e-5)
PROCESSED = Part("post-processing", cells=CELLS, floor=1e-5)
MONOTONE = Part("monotone in α", cells=CELLS, floor=1e-5)
PARTS = (SIGN, ABOVE, BELOW, QUASI, MIXED, PROCESSED, MONOTONE)


def points(parameters: Parameters) -> list[Row]:
    """Random laws at every order; some are near each other, some are products."""
    return grid(order=parameters["orders"], seed=list(range(parameters["pairs"])))


def measure(order: float, seed: float) -> list[Row]:
    """Both sides of every inequality, on joint laws of a first and a second outcome."""
    rng = np.random.default_rng([22, int(seed)])
    spread = float(rng.choice([0.1, 1.0, 3.0]))
    p1 = random_law(rng, 3)
    q1 = tilted(rng, p1, spread)
    second_p = np.stack([random_law(rng, 4) for _ in range(3)])
    second_q = np.stack([tilted(rng, law, spread) for law in second_p])
    if seed % 5 == 0:  # product laws, where composition is an equality
        second_p, second_q = second_p[[0, 0, 0]], second_q[[0, 0, 0]]
    joint_p, joint_q = (p1[:, None] * second_p).ravel(), (q1[:, None] * second_q).ravel()
    joint, first = renyi(joint_p, joint_q, order), renyi(p1, q1, order)
    each = [renyi(p, q, order) for p, q in zip(second_p, second_q, strict=True)]
    if seed % 5 == 1:  # equal laws, where the divergence is zero
        joint_q, q1, first, joint = joint_p, p1, 0.0, 0.0
        each = [0.0, 0.0, 0.0]
        second_q = second_p
    t = float(rng.random())
    mixed = renyi(t * second_p[0] + (1 - t) * second_p[1], t * second_q[0] + (1 - t) * second_q[1], order)
    power = order - 1 if 1 < order < 1e3 else 1.0
    if order == 1:
        both = t * each[0] + (1 - t) * each[1]
    else:
        both = t * math.exp(power * each[0]) + (1 - t) * math.exp(power * each[1])
    kernel = np.stack([random_law(rng, 3) for _ in range(3)])
    if seed % 5 == 2:  # a relabelling loses nothing
        kernel = np.eye(3)[::-1]
    sides = {
        SIGN: (1.0, 1.0 + joint),
        ABOVE: (joint, first + max(each)),
        BELOW: (first + min(each), joint),
        QUASI: (mixed, max(each[:2])),
        MIXED: (mixed if order == 1 else math.exp(power * mixed), both),
        PROCESSED: (renyi(p1 @ kernel, q1 @ kernel, order), first),
        MONOTONE: (renyi(joint_p, joint_q, 1 + (order - 1) * 0.8), joint),
    }
    if order > 1e3:
        del sides[MIXED]
    return [{"part": part.name, "exact": exact, "claimed": claimed} for part, (exact, claimed) in sides.items()]


EXPERIMENT: Experiment = inequalities(
    PARTS,
    title="Lemma 2.2: Rényi divergences",
    name="bs-lemma-2-2",
    claim="Rényi divergences are nonnegative, quasi-convex and monotone in the order, fall under post-processing, "
    "and a joint law's lies between the first's plus the least and plus the largest of the second's.",
    source="[BS, Lemma 2.2; BS, Lemma B.6]",
    full={"orders": [1.0, 1.5, 2.0, 8.0, 40.0, 1e6], "pairs": 40},
    quick={"orders": [1.0, 2.0, 1e6], "pairs": 6},
    points=points,
    measure=measure,
    caption="Left side against right side of each inequality on random laws.",
)
