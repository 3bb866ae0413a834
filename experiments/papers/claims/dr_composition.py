"""Sections 1 to 3: subgaussian variables, antipodal pairs, pure and mean-concentrated privacy, composed in advance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.papers.drawing import COLOURS, curves, formula, marks, panel, picture
from experiments.papers.experiment import Axis, Row, Subject, Table, grid
from experiments.papers.laws import random_law, renyi, tilted
from experiments.papers.statements import Part, bounded, claim, equal, off_by, positive
from ldpopt.composition import advanced_composition, compose_mcdp, k_fold, trinomial_log_pmf
from ldpopt.mechanisms import dominating_pair
from ldpopt.privacy import MCDP, ApproximateDP, FinitePair, antipodal_pair, mcdp
from ldpopt.values.distribution import Array


@claim(
    "dr-theorem-1-1", "[DR, Thm 1.1; GI, Thm 2]",
    points=grid(epsilon=Axis([0.01, 0.1, 1.0], [0.1]), slack=Axis([1e-3, 1e-6], [1e-6]),
                k=Axis([1, 3, 10, 30, 100, 300, 1000, 3000], [1, 10, 100])),
    judge=bounded(
        "The theorem's ε is {claimed over exact:.4f|.3g} times the exact one at the same δ (most at ε = "
        "{_worst[epsilon]:g}, k = {_worst[k]:g}, δ = {_worst[slack]:g}); in {cells where kε is smaller} of {cells} "
        "cells even the sum kε is smaller.",
        {"claimed over exact": lambda table: positive(table).ratio("claimed", "exact")},
        {"_worst": lambda table: positive(table).top("claimed / exact"), "cells": lambda table: len(table.rows),
         "cells where kε is smaller": lambda table: int((table.column("claimed") > table.column("basic")).sum())}),
    draw=picture(panel("ε = {epsilon:g} each, δ = {slack:g}", "mechanisms k", "ε of all (nats)",
                       curves("k", "claimed", "Theorem 1.1", first=1), curves("k", "basic", "basic: kε", first=2),
                       curves("k", "exact", "exact"), where={"slack": min}, repeat_by="epsilon", scale="xy")),
    caption="The ε of k mechanisms together: advanced composition, the plain sum, and the exact value.",
)  # fmt: skip
def advanced(epsilon: float, slack: float, k: float) -> Row:
    """k adaptive ε-DP mechanisms are (√(2k ln 1/δ) ε + kε(e^ε-1)/2, δ)-DP."""
    claimed = advanced_composition(ApproximateDP(epsilon, 0.0), int(k), slack)
    exact = k_fold(epsilon, 0.0, None, int(k)).epsilon_at(claimed.delta)
    return {"claimed": claimed.epsilon, "basic": k * epsilon, "exact": exact}


@claim(
    "dr-theorem-3-5", "[DR, Thm 3.5]",
    points=grid(epsilon=Axis([0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0], [0.1, 1.0, 3.0])),
    judge=bounded(
        "The mean ε(e^ε-1)/2 is {μ claimed over exact:.4f|.4g} times the exact ε tanh(ε/2), the largest of all ε-DP "
        "mechanisms; τ = ε is {τ claimed over exact:.4f|.3g} times that of randomized response, √(2ε tanh(ε/2)). The "
        "closed forms are exact to {closed forms off by, relative:.1e}.",
        {"μ claimed over exact": "mu_claimed / mu", "τ claimed over exact": "tau_claimed / tau"},
        {"closed forms off by, relative":
         lambda table: max(off_by(table.ratio(name, f"{name}_closed")) for name in ("mu", "tau"))}),
    draw=picture(*(panel(f"{letter} of ε-DP", "ε (nats)", letter,
                         curves("epsilon", f"{name}_claimed", "Theorem 3.5", first=1),
                         curves("epsilon", name, "randomized response, exact", marker="o", ms=3.5), scale="xy")
                   for name, letter in (("mu", "μ"), ("tau", "τ")))),
    caption="The mean and the subgaussian standard of the privacy loss: the theorem and the exact values.",
)  # fmt: skip
def pure(epsilon: float) -> Row:
    """Every ε-DP mechanism is (ε(e^ε-1)/2, ε)-mCDP."""
    exact, mean = mcdp(dominating_pair(epsilon).channel), epsilon * math.tanh(epsilon / 2)
    return {
        "mu": exact.mu.lower, "mu_claimed": epsilon * math.expm1(epsilon) / 2, "mu_closed": mean,
        "tau": exact.tau.lower, "tau_claimed": epsilon, "tau_closed": math.sqrt(2 * mean),
    }  # fmt: skip


def responses(epsilon: float, alpha: float, k: float) -> FinitePair:
    """Build the distribution of hits minus misses of k erased randomized responses."""
    p = np.exp(trinomial_log_pmf(int(k), epsilon, alpha))
    p = p[p > 0]
    return FinitePair(p / p.sum(), p[::-1] / p.sum())


def _sums(table: Table) -> Array:
    rows = table.where(part="composition")
    return np.concatenate([rows.ratio("mu_claimed", "mu"), rows.ratio("tau_claimed", "tau")])


@claim(
    "dr-theorem-3-4", "[DR, Thm 3.4; DR, Cor 3.1]",
    points=grid(part=["composition"], epsilon=Axis([0.1, 1.0, 3.0], [1.0]), alpha=Axis([0.0, 0.3], [0.0]),
                k=Axis([1, 4, 16, 64], [1, 8]))
    + grid(part=["tail"], epsilon="epsilon", alpha="alpha", k="k", t=Axis([0.5, 1.0, 2.0, 3.0, 4.0], [1.0, 2.0])),
    judge=bounded(
        "For mechanisms fixed in advance (Σμ, √Στ²) is exact (to {Theorem 3.4 off by:.1e}). The tail bound of "
        "Corollary 3.1 is {tail bound over exact} times the probability.",
        {"_theorem 3.4": _sums, "tail bound over exact":
         lambda table: positive(table.where(part="tail")).ratio("claimed", "exact")},
        {"Theorem 3.4 off by": lambda table: off_by(_sums(table))}, 1e-5),
    draw=picture(
        panel("Theorem 3.4: τ of k randomized responses", "k", "τ",
              curves("k", "tau_claimed", "ε = {epsilon:g}", by=("epsilon",), lw=1.2), marks("k", "tau", "exact"),
              where={"part": "composition", "alpha": min}, scale="xy"),
        panel("Corollary 3.1: Pr(loss ≥ μ + tτ), ε = {epsilon:g}", "t", "probability",
              curves("t", "exact", "k = {k:g}, exact", by=("k",), marker="o", ms=3),
              formula(lambda t: np.exp(-t * t / 2), "t", "exp(-t²/2)", None, 50, np.linspace),
              where={"part": "tail", "alpha": min, "epsilon": min}, scale="y")),
    caption="Left: τ by Theorem 3.4 (lines) and exactly (circles). Right: the tail of the privacy loss and its bound.",
)  # fmt: skip
def in_advance(part: str, epsilon: float, alpha: float, k: float, t: float = 0.0) -> Row:
    """(μ_i, τ_i)-CDP mechanisms, fixed in advance, compose to (Σμ_i, √Στ_i²)-CDP, and the privacy loss exceeds μ + tτ
    with probability at most exp(-t²/2)."""
    pair = responses(epsilon, alpha, k)
    exact = mcdp(pair)
    if part == "tail":
        threshold = exact.mu.value + t * exact.tau.value
        beyond = float(pair.p[pair.losses >= threshold - 1e-12 * max(1.0, threshold)].sum())
        return {"claimed": math.exp(-t * t / 2), "exact": beyond}
    single = mcdp(responses(epsilon, alpha, 1))
    claim = compose_mcdp([(MCDP(single.mu.value, single.tau.value), int(k))], adaptive=False)
    return {"mu_claimed": claim.mu, "mu": exact.mu.lower, "tau_claimed": claim.tau, "tau": exact.tau.lower}


TAIL = Part("Lemma 2.1", cells=("seed", "t"))
VARIANCE = Part("Fact 2.1", cells=("seed",))
MOMENTS = Part("Fact 2.2", cells=("seed", "k"))
PRODUCT = Part("Lemma 2.3, first line", cells=("seed", "tilt"), floor=1e-3)
SUMS = Part("Lemma 2.2, in logarithms", cells=("seed", "scale"))
SECOND = Part("Lemma 2.3, second line", cells=("seed", "tilt"), floor=1e-3)
USED = Part("Lemma 2.3, second line, E[X] ≥ 0", cells=("seed", "tilt"), floor=1e-3)


SCALES = np.array([-4.0, -1.0, 1.0, 4.0])


def _products(p: Array, x: Array, y: Array, tau: float, tilt: float) -> list[Row]:
    """E[X exp(Y)] and its two bounds."""
    mean, square = float(p @ x), float(p @ x**2)
    exact, exponent = float(p @ (x * np.exp(y))), tau + 3 * tau**2
    second = mean + (math.sqrt(max(0.0, square - mean**2)) + mean) * exponent
    both = [(PRODUCT, mean + math.sqrt(square) * exponent), (SECOND, second)] + ([(USED, second)] if mean >= 0 else [])
    return [part(exact, bound, tilt=tilt) for part, bound in both]


@claim(
    "dr-section-2", "[DR, Lemma 2.3; DR, Fact 2.1; DR, Fact 2.2; DR, Lemma 2.1; DR, Lemma 2.2]", TAIL, VARIANCE,
    MOMENTS, SUMS, PRODUCT, SECOND, USED, title="Section 2: subgaussian variables",
    ending="The second line of Lemma 2.3 puts E[X] for |E[X]|: it needs E[X] ≥ 0, which the paper's uses of it have.",
    points=grid(seed=Axis(80, 3)),
    caption="How far each inequality is from equality, for the centred privacy losses of random pairs.",
)  # fmt: skip
def subgaussian(seed: float) -> list[Row]:
    """A τ-subgaussian Y has tails at most exp(-t²/2) (2.1), variance at most τ², and k-th moment at most ⌈k/2⌉!
    2^(⌈k/2⌉+1) τ^k. Its sum with a variable that is τ'-subgaussian given Y has √(τ²+τ'²) (2.2). For τ ≤ 1/3, E[X
    e^Y] ≤ E[X] + √E[X²] (τ+3τ²) ≤ E[X] + (√Var X + E[X]) (τ+3τ²) (2.3)."""
    # Y is the centred privacy loss of a random pair, whose exact standard is known, and X another variable.
    rng = np.random.default_rng([21, int(seed)])
    p = random_law(rng, int(rng.integers(2, 6)), min_mass=0.01)
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
    moments, standards = [], []  # of a second variable, a loss that depends on the first
    for _ in p:
        first = random_law(rng, 3, min_mass=0.01)
        other = tilted(rng, first, float(rng.choice([0.05, 0.3, 1.0])))
        loss = np.log(first / other) - float(first @ np.log(first / other))
        moments.append(np.exp(SCALES[:, None] * loss) @ first)
        standards.append(float(mcdp(FinitePair(first, other)).tau.value))
    joint = (np.exp(SCALES[:, None] * y) * np.transpose(moments)) @ p
    square = tau**2 + max(standards) ** 2
    return rows + [SUMS(math.log(m), s * s * square / 2, scale=s) for m, s in zip(joint, SCALES.tolist(), strict=True)]


HOEFFDING = Part("Lemma 3.6, in logarithms", cells=("seed", "scale"))
RISING = Part("Claim 3.11: -α(1 - e^-ε) ≥ e^-αε - 1", Subject.STEP, lower=True, cells=("epsilon", "alpha"))
FALLING = Part("Claim 3.12: α(e^ε - 1) ≤ 1 - e^-αε", Subject.STEP, cells=("epsilon", "alpha"))


@claim(
    "dr-lemma-3-6", "[DR, Lemma 3.6; DR, Claim 3.11; DR, Claim 3.12]", HOEFFDING, RISING, FALLING,
    title="Lemma 3.6, Claims 3.11 and 3.12",
    points=grid(seed=Axis(40, 4)) + grid(epsilon=Axis([0.01, 0.5, 2.0, 8.0], [0.5])),
    caption="Moments of bounded variables of mean 0, and both sides of the claims, against the bounds.",
)  # fmt: skip
def bounded_variables(seed: float = 0, epsilon: float = 0.0) -> list[Row]:
    """A variable of mean 0 in [a, b] has E e^(λX) ≤ e^(λ²(b-a)²/8) (3.6). Furthermore, α(e^-ε - 1) ≥ e^-αε - 1 for α
    in [0, 1] (3.11), and α(e^ε - 1) ≤ 1 - e^-αε for α in [-1, 0) (3.12)."""
    if epsilon:
        shares = (0.0, 0.1, 0.5, 0.9, 1.0)
        return [
            *(RISING(a * math.expm1(-epsilon), math.expm1(-a * epsilon), alpha=a) for a in shares),
            *(FALLING(-a * math.expm1(epsilon), -math.expm1(a * epsilon), alpha=-a) for a in shares[1:]),
        ]
    rng = np.random.default_rng([36, int(seed)])
    law = random_law(rng, int(rng.integers(2, 5)), float(rng.choice([0.3, 3.0])))
    x = rng.normal(size=len(law))
    x -= law @ x
    return [HOEFFDING(math.log(law @ np.exp(s * x)), s * s * np.ptp(x) ** 2 / 8, scale=s) for s in SCALES.tolist()]


def _comparison_marks(column: str, mark: str, colour: int, label: str) -> Any:
    return marks("loss", column, label, mark, color=COLOURS[colour])


@claim(
    "dr-lemma-3-9",
    "[DR, Lemma 3.9; DR, Lemma 3.10; DR, Lemma 3.8; DR, Lemma 3.7]",
    points=grid(epsilon=Axis([0.1, 0.5, 1.0, 3.0], [0.5, 3.0]), k=Axis([2, 4, 10], [4]), seed=Axis(12, 3)),
    judge=bounded(
        "The refinement multiplies KL by {KL after / before:.4f|.3g}; it is the same in both directions then (to "
        "{directions differ by:.1e}). Lemma 3.8's ε(e^ε - 1)/2 is {bound over KL:.4f|.3g} times too large, Lemma 3.7's "
        "ε(e^ε - 1), for both directions together, {Lemma 3.7 over both:.4f|.3g} times, ε tanh(ε/2) "
        "{ε tanh(ε/2) over KL.low:.4f} times at the least: randomized response attains it.",
        {
            "KL after / before": "antipodal / kl",
            "bound over KL": "bound / antipodal",
            "Lemma 3.7 over both": "older / both",
            "ε tanh(ε/2) over KL": "sharp / antipodal",
            "_both directions": equal("reversed / antipodal", 1e-9),
        },
        {"directions differ by": lambda table: off_by(table.ratio("reversed", "antipodal"))},
    ),
    draw=picture(
        panel(
            "Lemmas 3.8 to 3.10",
            "largest loss ε (nats)",
            "KL divergence (nats)",
            _comparison_marks("kl", "o", 0, "KL of the pair"),
            _comparison_marks("antipodal", "x", 1, "KL of its refinement"),
            formula(lambda x: x * np.expm1(x) / 2, "loss", "ε(e^ε - 1)/2", color="0.5", ls="--"),
            formula(lambda x: x * np.tanh(x / 2), "loss", "ε tanh(ε/2)", color="0.2"),
            scale="xy",
        ),
    ),
    caption="KL of random pairs before and after the refinement, and the two bounds on it.",
)
def antipodal(epsilon: float, k: float, seed: float) -> Row:
    """Every pair refines to one whose losses are -ε, 0 and ε, of no smaller KL divergence (3.9). This divergence is
    the same in both directions (3.10) and at most ε(e^ε - 1)/2 (3.8). Both directions together have at most ε(e^ε -
    1) (3.7)."""
    # Seed 0 is randomized response.
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
