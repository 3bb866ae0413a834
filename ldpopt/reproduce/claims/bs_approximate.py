"""Section 8: approximate zero-concentrated privacy, to and from approximate privacy, and a mechanism for all (ε, δ)."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

from ldpopt.composition import compose_approximate_zcdp, kov15
from ldpopt.composition.sums import zcdp_advanced_composition
from ldpopt.distribution import Array
from ldpopt.mechanisms import dominating_pair, gaussian
from ldpopt.privacy import FinitePair, approximate_dp, approximate_zcdp
from ldpopt.privacy.claims import ApproximateDP, ApproximateZCDP
from ldpopt.privacy.conversions import approximate_to_approximate_zcdp, approximate_zcdp_to_approximate
from ldpopt.reproduce.drawing import curves, panel, picture
from ldpopt.reproduce.experiment import Experiment, Row, Table, Verdict, ends, grid, outcome_of, span
from ldpopt.reproduce.laws import random_law, tilted
from ldpopt.reproduce.statements import Part, inequalities

PARTS = {"Cor 8.7": "ρ", "Lemma 8.8": "δ", "Cor 8.9": "ε", "Cor 8.11": "ε"}
CORNER = 1 + 1e-9
"""Delta is multiplied by this number, since at a slightly smaller delta the exact rho is infinite."""


def section_8(
    part: str, delta: float, epsilon: float = 0.0, rho: float = 0.0, deviations: float = 0.0, count: float = 1
) -> Row:
    """The claimed and the exact value of rho, delta or epsilon, depending on the statement."""
    if part == "Cor 8.7":
        rho_exact = approximate_zcdp(dominating_pair(epsilon, delta), delta * CORNER).lower
        return {"claimed": approximate_to_approximate_zcdp(ApproximateDP(epsilon, delta)).rho, "exact": rho_exact}
    if part == "Lemma 8.8":  # reveals its input with probability delta, else adds Gaussian noise
        at = rho + deviations * math.sqrt(2 * rho)
        claimed = approximate_zcdp_to_approximate(ApproximateZCDP(delta, 0.0, rho), at).delta
        noise = gaussian(1 / math.sqrt(2 * rho)).pair.hockey_stick(at).lower
        return {"at": at, "claimed": claimed, "exact": delta + (1 - delta) * noise}
    slack = 1e-6
    claim = zcdp_advanced_composition([(ApproximateDP(epsilon, delta), int(count))], slack)
    norm = epsilon * math.sqrt(count)
    printed = norm**2 / 2 + math.sqrt(2 * math.log(math.sqrt(math.pi / 2) * norm / slack)) * norm  # Corollary 8.11
    exact = kov15(epsilon, delta, int(count)).epsilon_at(claim.delta)
    return {"claimed": claim.epsilon, "simple": printed, "exact": exact}


def _section_8_verdict(table: Table) -> Verdict:
    """The ratio of each statement's value to the exact one."""
    ratios = {part: rows.ratio("claimed", "exact") for part, rows in table.groups("part")}
    ratios["Cor 8.11"] = table.where(part="Cor 8.9").ratio("simple", "exact")
    said = ", ".join(f"{name} ({PARTS[name]}) {span(ratio, '.4g')}" for name, ratio in ratios.items())
    return Verdict(
        outcome_of(*ratios.values(), tolerance=1e-5),
        f"Times too large: {said}. The exact ρ of (ε, δ)-DP mechanisms after removing δ is ε tanh(ε/2).",
        {word: end for name, ratio in ratios.items() for word, end in ends(f"{name} ({PARTS[name]})", ratio).items()},
    )


SECTION_8 = Experiment(
    "bs-section-8", "[BS, Cor 8.7; BS, Lemma 8.8; BS, Cor 8.9; BS, Cor 8.11; GI, eq. 6]",
    "(ε, δ)-DP is δ-approximate ε²/2-zCDP (8.7); approximate zCDP is approximate DP (8.8); together they compose "
    "approximate DP (8.9, 8.11).",
    full={"epsilons": [0.01, 0.1, 0.5], "deltas": [1e-6, 1e-3], "rhos": [0.01, 0.1, 1.0],
          "counts": [1, 10, 100, 1000]},
    quick={"epsilons": [0.1], "deltas": [1e-3], "rhos": [0.1], "counts": [10, 100]},
    points=grid(part=["Cor 8.7"], epsilon="epsilons", delta="deltas")
    + grid(part=["Lemma 8.8"], rho="rhos", delta="deltas", deviations=[0.5, 1.0, 2.0, 4.0])
    + grid(part=["Cor 8.9"], epsilon="epsilons", delta=[1e-8], count="counts"),
    measure=section_8, judge=_section_8_verdict,
    draw=picture(
        panel("δ at ε of a {delta:g}-approximate ρ-zCDP mechanism", "ε (nats)", "δ",
              curves("at", {"claimed": ("Lemma 8.8", ":"), "exact": ("exact", "-")}, "ρ = {rho:g}, {}", by=("rho",)),
              where={"part": "Lemma 8.8", "delta": min}, scale="xy"),
        panel("ε of k mechanisms, δ about 1e-6", "mechanisms k", "ε of all (nats)",
              curves("count", {"simple": ("8.11", "-."), "claimed": ("8.9", ":"), "exact": ("exact", "-")},
                     "ε = {epsilon:g}, {}", by=("epsilon",), lw=1.4),
              where={"part": "Cor 8.9"}, legend="upper left", scale="xy",
              ylim=lambda ax: (None, 100 * max(ax.get_ylim())))),
    caption="Left: δ of a mechanism that leaks with probability δ and else adds Gaussian noise. Right: composition.",
)  # fmt: skip

SUM = Part("8.2: ρ of two mechanisms at δ+δ'-δδ'", cells=("seed", "delta"))
LEAST = Part("8.6: the least ε at which a T exists", equal=True, cells=("seed", "delta"), tolerance=1e-5, floor=0.1)


def response(epsilon: float, delta: float) -> Array:
    """The rows of Definition 8.5's mechanism, (2, 4)."""
    high, low = (1 - delta) / (1 + math.exp(-epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    return np.array([[delta, high, low, 0.0], [0.0, low, high, delta]])


def missing(from_rows: Array, to_rows: Array) -> float:
    """The least total deviation of from_rows T from to_rows over row-stochastic T; it is 0 if T exists."""
    m, n = from_rows.shape[1], to_rows.shape[1]
    size = 2 * n
    match, stochastic = np.kron(from_rows, np.eye(n)), np.kron(np.eye(m), np.ones((1, n)))
    left = np.block([[match, np.eye(size), -np.eye(size)], [stochastic, np.zeros((m, 2 * size))]])
    cost = np.concatenate([np.zeros(m * n), np.ones(2 * size)])
    right = np.concatenate([to_rows.ravel(), np.ones(m)])
    return float(linprog(cost, A_eq=left, b_eq=right, method="highs").fun)


def simulated(seed: float, delta: float) -> list[Row]:
    """Both lemmas on random pairs."""
    rng = np.random.default_rng([82, int(seed), int(1e6 * delta)])
    pairs = [np.stack([law, tilted(rng, law, 1.0)]) for law in [random_law(rng, 3, least=0.003) for _ in range(2)]]
    together = compose_approximate_zcdp(
        [ApproximateZCDP(delta, 0.0, approximate_zcdp(pair, delta).value) for pair in pairs]
    )
    joint = np.stack([np.outer(pairs[0][i], pairs[1][i]).ravel() for i in range(2)])
    epsilon = approximate_dp(FinitePair(*pairs[0]), delta).value
    low, high = 0.0, 2 * epsilon + 1
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if missing(response(middle, delta), pairs[0]) <= 1e-9 else (middle, high)
    return [SUM(approximate_zcdp(joint, together.delta).lower, together.rho), LEAST(high, epsilon)]


SIMULATED = inequalities(
    "bs-lemma-8-6", "[BS, Lemma 8.6; BS, Lemma 8.2]",
    "Every (ε, δ)-DP pair is a post-processing of randomized response with a leak of δ (8.6), and δ- and "
    "δ'-approximate (0, ρ), (0, ρ')-zCDP compose to δ+δ'-δδ' with ρ+ρ' (8.2).",
    SUM, LEAST, title="Lemmas 8.2 and 8.6",
    full={"pairs": 30, "deltas": [0.001, 0.01, 0.1]}, quick={"pairs": 3, "deltas": [0.01]},
    points=grid(seed="pairs", delta="deltas"), measure=simulated,
    caption="The exact ρ of two mechanisms against the sum; the least ε at which a post-processing T exists, by "
    "bisection over linear programs, against the least ε for which the pair is (ε, δ)-DP.",
)  # fmt: skip
