"""Mean- against zero-concentrated privacy: Lemma 4.2, and Appendix A on post-processing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.mechanisms import dominating_pair, gaussian, laplace
from ldpopt.privacy import mcdp, zcdp
from ldpopt.privacy.claims import MCDP
from ldpopt.privacy.conversions import mcdp_to_zcdp
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Lemma 4.2 on four mechanisms; then thresholds of a Gaussian report."""
    names = ["randomized response", "erased, η = 0.5 tanh(ε/2)", "Laplace", "Gaussian"]
    lemma = grid(part=["lemma 4.2"], mechanism=names, epsilon=parameters["epsilons"])
    return lemma + grid(part=["post-processing"], epsilon=[2.0], threshold=parameters["thresholds"])


def measure(part: str, epsilon: float, mechanism: str = "", threshold: float = 0.0) -> Row:
    """The converted claim and the exact rho at its xi; or tau before and after thresholding at sigma = 1."""
    if part == "post-processing":
        return _thresholded(threshold)
    if mechanism in {"Laplace", "Gaussian"}:
        pair = laplace(epsilon).pair if mechanism == "Laplace" else gaussian(1 / epsilon).pair
        found = pair.mcdp()
        mu, tau = found.mu.value, found.tau.value
    else:
        share = 0.5 if mechanism.startswith("erased") else 1.0
        channel = dominating_pair(epsilon, 0.0, share * math.tanh(epsilon / 2)).channel
        measured = mcdp(channel)
        mu, tau = measured.mu.value, measured.tau.value
    claim = mcdp_to_zcdp(MCDP(mu, tau))
    exact = pair.zcdp(claim.xi) if mechanism in {"Laplace", "Gaussian"} else zcdp(channel, claim.xi)
    return {"mu": mu, "tau": tau, "xi": claim.xi, "claimed": claim.rho, "exact": exact.lower}


def _thresholded(threshold: float) -> Row:
    """N(±1, 1), reported as "above t", "below -t" or "neither" [BS, App A]: its tau, and the Gaussian's, which is 2."""
    from scipy.stats import norm

    p, q = float(norm.sf(threshold - 1)), float(norm.sf(threshold + 1))
    rows = [[p, 1 - p - q, q], [q, 1 - p - q, p]]
    return {"before": 2.0, "after": mcdp(rows).tau.value, "rho_before": 2.0, "rho_after": zcdp(rows).value}


def judge(table: Table) -> Verdict:
    """Lemma 4.2's rho against the exact one, and tau, which grows under post-processing while rho does not."""
    lemma, post = table.where(part="lemma 4.2"), table.where(part="post-processing")
    ratios = lemma.column("claimed") / lemma.column("exact")
    slack = {
        str(name): float(np.max(one.column("claimed") / one.column("exact"))) for name, one in lemma.groups("mechanism")
    }
    grown = float(np.max(post.column("after") / post.column("before")))
    shrunk = bool((post.column("rho_after") <= post.column("rho_before") * (1 + 1e-9)).all())
    outcome = outcome_of(ratios) if grown > 1 and shrunk else Outcome.FAILS
    said = ", ".join(f"{name} {ratio:.4f}" for name, ratio in slack.items())
    return Verdict(
        outcome,
        f"Lemma 4.2's ρ over the exact one at its ξ, at most: {said}. Reporting only whether a Gaussian report exceeds "
        f"a threshold multiplies τ by up to {grown:.4f}, so mCDP is not closed under post-processing; ρ never grows.",
        {**{f"Lemma 4.2, {name}": ratio for name, ratio in slack.items()}, "τ after / before": grown},
    )


def draw(table: Table) -> Any:
    """Left Lemma 4.2, right the thresholds."""
    left, right = frames(2)
    for at, (name, rows) in enumerate(table.where(part="lemma 4.2").groups("mechanism")):
        line(left, rows.column("epsilon"), rows.column("claimed"), at, str(name), lw=1.3)
        left.plot(rows.column("epsilon"), rows.column("exact"), "o", ms=4, mfc="none", color="0.2")
    left.plot([], [], "o", ms=4, mfc="none", color="0.2", label="exact ρ at ξ = μ - τ²/2")
    finish(left, "Lemma 4.2: ρ = τ²/2", "ε, or 1/σ", "ρ", scale="xy")
    post = table.where(part="post-processing")
    line(right, post.column("threshold"), post.column("after"), 0, "τ after")
    line(right, post.column("threshold"), post.column("before"), 1, "τ of the Gaussian mechanism", ls="--")
    line(right, post.column("threshold"), post.column("rho_after"), 2, "ρ after (before: 2)")
    finish(right, "Appendix A: a thresholded Gaussian report", "threshold t", "τ, ρ")
    return left


EXPERIMENT = Experiment(
    name="bs-mcdp",
    claim="(μ, τ)-mCDP implies (μ - τ²/2, τ²/2)-zCDP; unlike zCDP, mCDP is not closed under post-processing.",
    source="[BS, Lemma 4.2; BS, App A; DR, Def 3.3]",
    full={
        "epsilons": [0.1, 0.3, 1.0, 2.0, 4.0],
        "thresholds": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0],
    },
    quick={"epsilons": [1.0], "thresholds": [1.0, 7.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Left: the price of Lemma 4.2. Right: τ of a Gaussian report grows when it is thresholded.",
)
