"""Section 4: the two lemmas behind group privacy, and the claims in their proofs."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.distribution import Array
from ldpopt.privacy import FinitePair, mcdp
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, grid
from ldpopt.reproduce.laws import kl, random_law, tilted
from ldpopt.reproduce.statements import Part, old_inequalities

MEAN = Part("Lemma 4.2 as printed, 2τ₁²τ₂", cells=("seed", "spread"))
PROVED = Part("Lemma 4.2 as proved, 3τ₁²τ₂", cells=("seed", "spread"))
STANDARD = Part("Lemma 4.3", cells=("seed", "spread"))
SQUARE = Part("Claim 4.4", Subject.STEP, cells=("seed", "spread"))
SERIES = Part("Claim 4.5", Subject.STEP, cells=("seed", "spread", "scale"))
FACT = Part("Fact 4.1, a and b at least 0", Subject.STEP, cells=("a", "b", "k"))
ANY = Part("Fact 4.1 for any two reals", Subject.STEP, cells=("a", "b", "k"))
PARTS = (MEAN, PROVED, STANDARD, SQUARE, SERIES, FACT, ANY)


def points(parameters: Parameters) -> list[Row]:
    """Chains of three laws, at several distances; then pairs of reals."""
    chains = grid(kind=["chain"], spread=parameters["spreads"], seed=list(range(parameters["chains"])))
    reals = grid(kind=["reals"], a=[-2.0, 0.5, 1.0, 3.0], b=[-1.0, 0.0, 1.0], k=[1.0, 1.5, 2.0, 3.0, 4.0])
    return chains + [row for row in reals if float(row["k"]) != 1.5 or (float(row["a"]) > 0 and float(row["b"]) >= 0)]


def both_ways(p: Array, q: Array) -> tuple[float, float]:
    """(mu, tau), each the larger value of both directions."""
    found = mcdp(FinitePair(p, q))
    return float(found.mu.value), float(found.tau.value)


def measure(kind: str, spread: float = 0.0, seed: float = 0, a: float = 0, b: float = 0, k: float = 1) -> list[Row]:
    """Both sides of each inequality. For a lemma, only if its conditions hold."""
    if kind == "reals":
        exact, claimed = (a + b) ** k, 2 ** (k - 1) * (a**k + b**k)
        parts = [ANY, FACT] if min(a, b) >= 0 else [ANY]
        return [{"part": part.name, "exact": exact, "claimed": claimed} for part in parts]
    rng = np.random.default_rng([42, int(seed), int(1000 * spread)])
    p = random_law(rng, int(rng.integers(2, 5)), least=0.02)
    direction = rng.normal(size=len(p))
    q = p * np.exp(spread * direction)
    q /= q.sum()
    r = q * np.exp(spread * direction) if seed % 2 else tilted(rng, q, spread)  # a straight chain, or a bent one
    r = r / r.sum()
    (mu1, tau1), (mu2, tau2) = both_ways(p, q), both_ways(q, r)
    tau = max(tau1, tau2)
    exact, loss = kl(p, r), np.log(p / r)
    rest = (tau1 + 3 * tau1**2) * mu2
    rows: list[Row] = []
    if tau1 <= 1 / 3:
        for part, factor in ((MEAN, 2), (PROVED, 3)):
            bound = mu1 + mu2 + tau1 * tau2 + factor * tau1**2 * tau2 + rest
            rows.append({"part": part.name, "exact": exact, "claimed": bound})
    if tau <= 1 / 4 and max(mu1, mu2) <= tau**2 / 2 * (1 + 1e-12):
        bound = 2 * (tau1**2 + tau2**2) + 2 * mu1**2 + 2 * mu2**2 + 50 * tau1 * tau2**2
        rows.append({"part": SQUARE.name, "exact": float(p @ loss**2), "claimed": bound})
        for scale in (-0.99, -0.3, 0.3, 0.99):  # in units of 1/(8 sqrt(tau)), the limit of the claim
            at = scale / (8 * math.sqrt(tau))
            rest = float(p @ (np.expm1(at * loss) - at * loss - (at * loss) ** 2 / 2))
            bound = (33 * tau1**2.5 + 32 * tau2**2.5) * at**2
            rows.append({"part": SERIES.name, "scale": scale, "exact": rest, "claimed": bound})
        standard = float(mcdp(FinitePair(p, r)).tau.lower)
        rows.append({"part": STANDARD.name, "exact": standard, "claimed": 2 * tau + 34 * tau**1.5})
    return rows or [{"part": "conditions not met", "exact": 0.0, "claimed": 0.0}]


EXPERIMENT: Experiment = old_inequalities(
    PARTS,
    title="Section 4: lemmas of group privacy",
    ending="The printed 2τ₁²τ₂ is one less than what the proof ends with; no chain needs more than the printed one.",
    name="dr-section-4",
    claim="KL(D‖D″) ≤ μ₁ + μ₂ + τ₁τ₂ + 2τ₁²τ₂ + (τ₁+3τ₁²)μ₂ (4.2), and the loss from D to D″ is (2τ + "
    "34τ^1.5)-subgaussian (4.3); (a+b)^k ≤ 2^(k-1)(a^k + b^k) for any two reals (Fact 4.1).",
    source="[DR, Lemma 4.2; DR, Lemma 4.3; DR, Claim 4.4; DR, Claim 4.5; DR, Fact 4.1]",
    full={"spreads": [0.02, 0.05, 0.1, 0.2], "chains": 40},
    quick={"spreads": [0.05, 0.1], "chains": 5},
    points=points,
    measure=measure,
    caption="How far each inequality is from equality, for random chains of three laws and for pairs of reals.",
)
