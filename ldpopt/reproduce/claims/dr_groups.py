"""Corollary 3.3, section 4 and the guess of section 1: groups under mean-concentrated privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.mechanisms import gaussian
from ldpopt.privacy import FinitePair, mcdp
from ldpopt.privacy.implications import group_gaussian_mcdp
from ldpopt.reproduce.drawing import COLOURS, curves, level, panel, picture
from ldpopt.reproduce.experiment import Outcome, Points, Row, Subject, Table, Verdict, grid, off_by
from ldpopt.reproduce.laws import kl, random_law, tilted
from ldpopt.reproduce.statements import Part, claim


def _noise_verdict(table: Table) -> Verdict:
    off = max(off_by(table.ratio(f"{name}_corrected", name)) for name in ("mu", "tau"))
    ratio = table.ratio("tau", "tau_printed")
    top = table.top(ratio)
    figures = {"exact τ over printed τ, largest": ratio.max(), "smallest": ratio.min(),
               "printed μ off by": off_by(table.ratio("mu_printed", "mu")), "corrected form off by": off}  # fmt: skip
    if ratio.max() <= 1 + 1e-9:
        return Verdict(Outcome.LOOSELY, "No counterexample at these σ.", figures)
    return Verdict(
        Outcome.FAILS,
        f"Theorem 3.2 and μ are exact, but the printed τ = sΔ of a group is not: at σ = {top['sigma']:g}, s = "
        f"{top['size']:g} the exact τ is {top['tau']:.6g}, printed {top['tau_printed']:.6g}. The text before it "
        f"gives sΔ/σ, with which both are exact (to {off:.1e}); for σ ≥ 1 the printed one is a true bound, too large.",
        figures,
    )


@claim(
    "dr-corollary-3-3", "[DR, Cor 3.3; DR, Thm 3.2]",
    full={"sigmas": [0.25, 0.5, 1.0, 2.0, 4.0], "sizes": [1, 2, 5]}, quick={"sigmas": [0.5, 1.0], "sizes": [1, 3]},
    points=grid(sigma="sigmas", size="sizes"), judge=_noise_verdict,
    draw=picture(panel("Corollary 3.3: τ of Gaussian noise, Δ = 1", "σ", "τ",
                       curves("sigma", {"tau": ("exact: s/σ", "-"), "tau_printed": ("printed: s", ":")},
                              "s = {size:g}, {}", by=("size",), marker="o", ms=3), scale="2y"), width=6.0, height=4.2),
    caption="The subgaussian standard of the privacy loss: exact (solid), and sΔ as printed (dotted).",
)  # fmt: skip
def noise(sigma: float, size: float) -> Row:
    """Gaussian noise of standard deviation σ is ((Δ/σ)²/2, Δ/σ)-CDP, and ((sΔ/σ)²/2, sΔ)-CDP for groups of s (as
    printed)."""
    # The sensitivity is 1.
    exact, corrected = gaussian(sigma, size).pair.mcdp(), group_gaussian_mcdp(1.0, sigma, int(size))
    return {
        "mu": exact.mu.value, "tau": exact.tau.value, "mu_printed": (size / sigma) ** 2 / 2, "tau_printed": size,
        "mu_corrected": corrected.mu, "tau_corrected": corrected.tau,
    }  # fmt: skip


PURE = Part("pure privacy with μ = ε(e^ε-1)/2 and τ = ε", cells=("first", "second", "third"))
CHAIN = Part("two outcomes: τ of the pair at distance 2", Subject.QUESTION, cells=("first", "second", "third"))

KNOWN = (0.99484, 0.97907, 0.93180)
"""Probabilities of the first of two outcomes under three inputs. The middle input is a neighbour of the other two."""


def _chains(parameters: Any) -> list[Row]:
    """The counterexample, and chains of three probabilities whose log odds fall by two random steps."""
    rng = np.random.default_rng(18)
    count = parameters["chains"]
    odds = rng.uniform(0, 6, (count, 1)) - np.cumsum(rng.uniform(0.05, 2, (count, 2)), axis=1)
    start = np.concatenate([odds[:, :1] + rng.uniform(0.05, 2, (count, 1)), odds], axis=1)
    chains = [KNOWN, *np.round(1 / (1 + np.exp(-start)), 6).tolist()]
    return [{"kind": "chain", "first": a, "second": b, "third": c} for a, b, c in chains]


def both_ways(p: Array, q: Array) -> tuple[float, float]:
    """(mu, tau) of a pair, each the larger value of both directions."""
    own = mcdp(FinitePair(p, q))
    return float(own.mu.value), float(own.tau.value)


def _guess_in_numbers(table: Table) -> str:
    known = table.where(first=KNOWN[0], second=KNOWN[1]).rows[0]
    wrong = int((table.column("mu") > table.column("mu_claimed") * (1 + 1e-9)).sum())
    return (
        "With Pr(first outcome) = 0.99484, 0.97907, 0.93180 the neighbours have τ at most "
        f"{known['claimed'] / 2:.5f}, the ends {known['exact']:.5f}, more than twice that, though their μ = "
        f"{known['mu']:.4f} is below 4 times the neighbours'. The mean s²μ is exceeded in {wrong} of "
        f"{len(table.rows)} cases."
    )


def _chain_marks(ax: Any, table: Table) -> None:
    ratio, near = table.ratio("exact", "claimed"), table.column("claimed") / 2
    wrong = ratio > 1 + 1e-9
    ax.plot(near[~wrong], ratio[~wrong], "o", ms=4, mfc="none", color=COLOURS[0], label="at most s τ")
    ax.plot(near[wrong], ratio[wrong], "o", ms=4, color=COLOURS[1], label="more than s τ")
    ax.plot(near[0], ratio[0], "*", ms=13, color=COLOURS[4], mec="black", label="0.99484, 0.97907, 0.93180")


@claim(
    "dr-group-guess", "[DR, section 1]",
    PURE, CHAIN, ending=_guess_in_numbers,
    full={"chains": 400, "epsilons": [0.1, 0.5, 1.0, 2.0, 4.0]}, quick={"chains": 20, "epsilons": [1.0]},
    points=Points((_chains,)) + grid(kind=["pure"], first="epsilons", second=[2.0], third=[0.0]),
    subject=Subject.QUESTION,
    draw=picture(panel("Groups of two, mechanisms with two outcomes", "τ of the neighbours", "τ of the ends / (2 τ)",
                       _chain_marks, level(), where={"part": CHAIN.name}, legend="lower left", ylim=(0.3, 1.12)),
                 width=6.2, height=4.3),
    caption="The standard of two inputs at distance 2 over twice that of neighbours: above the line the guess is "
    "wrong.",
)  # fmt: skip
def guess(kind: str, first: float, second: float, third: float) -> Row:
    """Every (μ, τ)-CDP mechanism is (s²μ, sτ)-CDP for groups of s (suspected; shown for pure privacy and Gaussian
    noise)."""

    def standards(a: float, b: float) -> tuple[float, float]:
        return both_ways(np.array([a, 1 - a]), np.array([b, 1 - b]))

    if kind == "pure":  # s people: the pair that dominates s epsilon
        high = 1 / (1 + math.exp(-first * second))
        mu, tau = standards(high, 1 - high)
        return PURE(tau, second * first) | {"mu": mu, "mu_claimed": second**2 * first * math.expm1(first) / 2}
    near = standards(first, second), standards(second, third)
    mu, tau = standards(first, third)
    return CHAIN(tau, 2 * max(near[0][1], near[1][1])) | {"mu": mu, "mu_claimed": 4 * max(near[0][0], near[1][0])}


MEAN = Part("Lemma 4.2 as printed, 2τ₁²τ₂", cells=("seed", "spread"))
PROVED = Part("Lemma 4.2 as proved, 3τ₁²τ₂", cells=("seed", "spread"))
STANDARD = Part("Lemma 4.3", cells=("seed", "spread"))
SQUARE = Part("Claim 4.4", Subject.STEP, cells=("seed", "spread"))
SERIES = Part("Claim 4.5", Subject.STEP, cells=("seed", "spread", "scale"))
FACT = Part("Fact 4.1, a and b at least 0", Subject.STEP, cells=("a", "b", "k"))
ANY = Part("Fact 4.1 for any two reals", Subject.STEP, cells=("a", "b", "k"))


@claim(
    "dr-section-4", "[DR, Lemma 4.2; DR, Lemma 4.3; DR, Claim 4.4; DR, Claim 4.5; DR, Fact 4.1]",
    MEAN, PROVED, STANDARD, SQUARE, SERIES, FACT, ANY, title="Section 4: lemmas of group privacy",
    ending="The printed 2τ₁²τ₂ is one less than what the proof ends with; no chain needs more than the printed one.",
    full={"spreads": [0.02, 0.05, 0.1, 0.2], "chains": 40}, quick={"spreads": [0.05, 0.1], "chains": 5},
    points=grid(kind=["chain"], spread="spreads", seed="chains")
    + grid(lambda row: row["k"] != 1.5 or (row["a"] > 0 and row["b"] >= 0), kind=["reals"], a=[-2.0, 0.5, 1.0, 3.0],
           b=[-1.0, 0.0, 1.0], k=[1.0, 1.5, 2.0, 3.0, 4.0]),
    caption="How far each inequality is from equality, for random chains of three laws and for pairs of reals.",
)  # fmt: skip
def section_4(kind: str, spread: float = 0.0, seed: float = 0, a: float = 0, b: float = 0, k: float = 1) -> list[Row]:
    """KL(D‖D″) ≤ μ₁ + μ₂ + τ₁τ₂ + 2τ₁²τ₂ + (τ₁+3τ₁²)μ₂ (4.2), and the loss from D to D″ is (2τ + 34τ^1.5)-subgaussian
    (4.3); (a+b)^k ≤ 2^(k-1)(a^k + b^k) for any two reals (Fact 4.1)."""
    # A chain of three laws, or two reals; for a lemma, only if its conditions hold.
    if kind == "reals":
        parts = [ANY, FACT] if min(a, b) >= 0 else [ANY]
        return [part((a + b) ** k, 2 ** (k - 1) * (a**k + b**k)) for part in parts]
    rng = np.random.default_rng([42, int(seed), int(1000 * spread)])
    p = random_law(rng, int(rng.integers(2, 5)), least=0.02)
    direction = rng.normal(size=len(p))
    q = p * np.exp(spread * direction)
    q /= q.sum()
    r = q * np.exp(spread * direction) if seed % 2 else tilted(rng, q, spread)  # a straight chain, or a bent one
    r = r / r.sum()
    (mu1, tau1), (mu2, tau2) = both_ways(p, q), both_ways(q, r)
    tau, loss = max(tau1, tau2), np.log(p / r)
    rows = []
    if tau1 <= 1 / 3:
        rest = mu1 + mu2 + tau1 * tau2 + (tau1 + 3 * tau1**2) * mu2
        rows += [part(kl(p, r), rest + factor * tau1**2 * tau2) for part, factor in ((MEAN, 2), (PROVED, 3))]
    if tau <= 1 / 4 and max(mu1, mu2) <= tau**2 / 2 * (1 + 1e-12):
        bound = 2 * (tau1**2 + tau2**2) + 2 * mu1**2 + 2 * mu2**2 + 50 * tau1 * tau2**2
        rows.append(SQUARE(float(p @ loss**2), bound))
        for scale in (-0.99, -0.3, 0.3, 0.99):  # in units of 1/(8 sqrt(tau)), the limit of the claim
            at = scale / (8 * math.sqrt(tau))
            beyond = float(p @ (np.expm1(at * loss) - at * loss - (at * loss) ** 2 / 2))
            rows.append(SERIES(beyond, (33 * tau1**2.5 + 32 * tau2**2.5) * at**2, scale=scale))
        rows.append(STANDARD(float(mcdp(FinitePair(p, r)).tau.lower), 2 * tau + 34 * tau**1.5))
    return rows or [{"part": "conditions not met", "exact": 0.0, "claimed": 0.0}]
