"""Sections 6 to 8: information, the exponential mechanism, packing, and approximate zero-concentrated privacy."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog
from scipy.special import log_softmax, ndtr
from scipy.stats import binom

from experiments.papers.drawing import curves, level, panel, picture
from experiments.papers.experiment import Axis, Row, grid
from experiments.papers.laws import random_law, tilted
from experiments.papers.statements import Part, among, bounded, claim
from ldpopt.composition import compose_approximate_zcdp, kov15, zcdp_advanced_composition
from ldpopt.mechanisms import dominating_pair, gaussian
from ldpopt.privacy import ZCDP, ApproximateDP, ApproximateZCDP, FinitePair, approximate_dp, approximate_zcdp, local_dp
from ldpopt.privacy.conversions import approximate_to_approximate_zcdp, approximate_zcdp_to_approximate
from ldpopt.privacy.implications import information_any, information_blocks
from ldpopt.values.distribution import Array

LETTERS = {"randomized response": "ε", "noisy sum": "1/σ"}


def _responses(epsilon: float, n: int) -> float:
    """I(bit; n randomized responses to it), from the law of their number of ones."""
    ones = np.arange(n + 1)
    choose = np.array([math.comb(n, i) for i in ones], dtype=np.float64)
    truth = 1 / (1 + math.exp(-epsilon))
    law = choose * truth**ones * (1 - truth) ** (n - ones)
    return float(law @ (np.log(law) - np.log((law + law[::-1]) / 2)))


def _noisy_sum(m: int, n: int, precision: float) -> float:
    """I(sum; sum + noise) for n times the sum of m fair bits and noise of standard deviation 1/precision."""
    centres = n * precision * np.arange(m + 1)
    weights = np.array([math.comb(m, i) for i in range(m + 1)], dtype=np.float64) / 2**m
    y = np.linspace(-12, centres[-1] + 12, 20001)
    density: Array = np.exp(-((y[:, None] - centres) ** 2) / 2) @ weights / math.sqrt(2 * math.pi)
    is_positive = density > 0
    entropy = -np.sum(density[is_positive] * np.log(density[is_positive])) * (y[1] - y[0])
    return float(entropy - 0.5 * math.log(2 * math.pi * math.e))


@claim(
    "bs-section-6", "[BS, Prop 6.1; BS, Lemma 6.2; BS, Thm 6.3]",
    points=grid(mechanism=LETTERS, parameter=Axis([0.1, 0.5, 2.0], [0.5]), blocks=Axis([1, 2, 5], [1, 2]),
                size=Axis([1, 2, 4, 8, 16], [1, 4])),
    judge=bounded(
        "Never below the exact information. Times too large: {_all} (most for {_worst[mechanism]}, {_letter} = "
        "{_worst[parameter]:g}, {_worst[blocks]:g} x {_worst[size]:g} people: a bit cannot tell more than log 2).",
        {"Lemma 6.2 (independent people)": among("bound / exact", size=1),
         "Proposition 6.1 (one block)": among("bound / exact", blocks=1),
         "Theorem 6.3 (blocks)":
         lambda table: table.having(lambda row: row["size"] > 1 and row["blocks"] > 1).ratio("bound", "exact")},
        {"_worst": lambda table: table.top("bound / exact"),
         "_letter": lambda table: LETTERS[table.top("bound / exact")["mechanism"]]}),
    draw=picture(*(
        panel(f"{name.capitalize()}: n people with one bit", "n", "I(X; M(X)) (nats)",
              curves("size", {"exact": ("exact", "-"), "bound": ("ρ n²", ":")}, letter + " = {parameter:g}, {}",
                     by=("parameter",), where={"blocks": min}),
              level(math.log(2), color="0.5", lw=0.8), where={"mechanism": name}, scale="xy")
        for name, letter in LETTERS.items())),
    caption="Exact information (solid) about one bit that n people share, and Proposition 6.1 (dotted); grey: log 2.",
)  # fmt: skip
def information(mechanism: str, parameter: float, blocks: float, size: float) -> Row:
    """A ρ-zCDP mechanism has I(X; M(X)) at most ρn² for any n people, ρm for m independent ones, and ρml² for m
    independent blocks of l."""
    m, n = int(blocks), int(size)
    if mechanism == "randomized response":
        rho, exact = dominating_pair(parameter).zcdp().value, m * _responses(parameter, n)
    else:
        rho, exact = gaussian(1 / parameter).pair.zcdp().value, _noisy_sum(m, n, parameter)
    return {"rho": rho, "bound": information_blocks(ZCDP(0.0, rho), m, n), "exact": exact}


PRIVACY = Part("7.3: it is ε-DP", cells=("epsilon", "size", "n"))
TAIL = Part("7.3: Pr(loss > min + 2Δ/ε log(|T|/β)) ≤ β", cells=("epsilon", "size", "beta"))
MEAN = Part("7.3: E loss ≤ min + 2Δ/ε log |T|", cells=("epsilon", "size"))
PACKING = Part("7.4: (1-β) log |T| - log 2 ≤ ρn²", cells=("epsilon", "size", "n"))


def exponential(losses: Array, epsilon: float) -> Array:
    """Compute the distribution of the exponential mechanism along the last axis."""
    weights = np.exp(-epsilon / 2 * (losses - losses.min(axis=-1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


@claim(
    "bs-lemma-7-3", "[BS, Lemma 7.3; BS, Lemma 7.4]", PRIVACY, TAIL, MEAN, PACKING, title="Lemmas 7.3 and 7.4",
    ending="Votes of n people on |T| answers, all changes of a vote; ρ is the mechanism's own.",
    points=grid(epsilon=Axis([0.1, 0.5, 1.0, 2.0], [0.5, 2.0]), size=Axis([2, 4, 16, 64], [4, 16]),
                n=Axis([1, 4, 10, 30], [4, 10])),
    caption="What the exponential mechanism does exactly, against the bounds.",
)  # fmt: skip
def votes(epsilon: float, size: float, n: float) -> list[Row]:
    """The exponential mechanism is ε-DP with loss at most min + 2Δ/ε log(|T|/β) except with probability β, and 2Δ/ε
    log |T| on average (7.3). A (0, ρ)-zCDP mechanism that distinguishes |T| cases has (1-β) log |T| - log 2 ≤ ρn²
    (7.4)."""
    # Data sets are votes: the loss of an answer is the number of people against it, which a person changes by 1.
    answers, people = int(size), int(n)
    unanimous = people * (1.0 - np.eye(answers))
    one_less = unanimous + np.roll(np.eye(answers), 1, axis=1) * -1 + np.eye(answers)  # one person changes sides
    laws, neighbor_laws = exponential(unanimous, epsilon), exponential(one_less, epsilon)
    rows = [PRIVACY(max(local_dp(np.stack([a, b])).lower for a, b in zip(laws, neighbor_laws, strict=True)), epsilon)]
    rng = np.random.default_rng([73, answers, people])
    for losses in (np.sort(rng.uniform(0, people, answers)), np.append(0.0, np.full(answers - 1, float(people)))):
        law, best = exponential(losses, epsilon), losses.min()
        rows.append(MEAN(float(law @ losses) - best, 2 / epsilon * math.log(answers)))
        beyond = {beta: losses > best + 2 / epsilon * math.log(answers / beta) for beta in (0.5, 0.1, 0.01)}
        rows += [TAIL(float(law[is_beyond].sum()), beta, beta=beta) for beta, is_beyond in beyond.items()]
    error_chance = 1 - float(laws[0, 0])  # the chance of an answer other than the unanimous one
    rho = float(FinitePair(laws[0], neighbor_laws[0]).zcdp().value)
    information = (1 - error_chance) * math.log(answers) - math.log(2)
    return [*rows, *([PACKING(information, information_any(ZCDP(0.0, rho), people))] if information > 0 else [])]


POPULATION = Part("C.3: E|M(x) - q(D)| ≤ α + √(2ρ)", cells=("n", "noise", "share"))
SAMPLE = Part("C.3: E|q(x) - q(D)| ≤ 2α + √(2ρ)", cells=("n", "noise", "share"))
NEAREST = Part("7.5: some n people answer like n' within 2α + √(2ρ)", cells=("n", "noise"))
NET = Part("7.2: the packing is a net", cells=("n", "noise", "epsilon"))
PURE = Part("7.1: it is ε-DP", cells=("n", "noise", "epsilon"))
ERROR = Part("7.1: E|M'(x) - q(x)| ≤ 10α", cells=("n", "noise", "epsilon"))
FAR = Part("7.1: Pr(|M'(x) - q(x)| > 10α + 4/(εn') log 1/β) ≤ β", cells=("n", "noise", "epsilon", "beta"))


@claim(
    "bs-theorem-7-1", "[BS, Thm 7.1; BS, Lemma 7.2; BS, Lemma 7.5; BS, Prop C.3]", POPULATION, SAMPLE, NEAREST, NET,
    PURE, ERROR, FAR, title="Theorem 7.1 and its lemmas, for the mean of bits",
    ending="The mean of bits ±1 with Gaussian noise, √noise times the least that ρ ≤ α² allows, and the exponential "
    "mechanism that the proof makes of it.",
    points=grid(n=Axis([1, 10, 100], [10]), noise=Axis([1.0, 4.0], [1.0]), epsilon=Axis([0.1, 1.0], [1.0])),
    caption="Exact errors of both mechanisms, and the distances between samples, against the bounds.",
)  # fmt: skip
def from_zcdp_to_pure(n: float, noise: float, epsilon: float) -> list[Row]:
    """A (0, ρ)-zCDP mechanism of error α has error at most α + √(2ρ) on the population, whose samples are within 2α +
    √(2ρ) (C.3, 7.5). If ρ ≤ α², some ε-DP mechanism has error 10α with n' = 4(ρn²+1)/(εα) people (7.1)."""
    sigma = math.sqrt(noise * math.sqrt(math.pi) / n)
    alpha, rho = sigma * math.sqrt(2 / math.pi), 2 / (n * sigma) ** 2
    spread, rows = math.sqrt(2 * rho), [NEAREST(1 / n, 2 * alpha + math.sqrt(2 * rho))]
    ones = np.arange(int(n) + 1)
    for share in (0.5, 0.1):
        law, deviation = binom.pmf(ones, n, share), 2 * (ones / n - share)
        folded = alpha * np.exp(-((deviation / sigma) ** 2) / 2) + deviation * (
            1 - 2 * ndtr(-deviation / sigma)
        )  # E|off + noise|
        rows.append(POPULATION(float(law @ folded), alpha + spread, share=share))
        rows.append(SAMPLE(float(law @ np.abs(deviation)), 2 * alpha + spread, share=share))
    people = math.ceil(4 / (epsilon * alpha) * (rho * n**2 + 1))
    means = np.linspace(-1, 1, people + 1)
    packing = [-1.0]
    while len(further := means[means > packing[-1] + 4 * alpha]):
        packing.append(float(further[0]))
    errors = np.abs(means[:, None] - np.array(packing))
    logs = log_softmax(-epsilon / 4 * people * errors, axis=1)  # the exponential mechanism: one person moves 2/people
    laws = np.exp(logs)
    rows.append(NET(float(errors.min(axis=1).max()), 4 * alpha))
    rows.append(PURE(float(np.abs(np.diff(logs, axis=0)).max()), epsilon))
    rows.append(ERROR(float((laws * errors).sum(axis=1).max()), 10 * alpha))
    for beta in (0.1, 0.001):
        is_inaccurate = errors > 10 * alpha - 4 / (epsilon * people) * math.log(beta)
        rows.append(FAR(float((laws * is_inaccurate).sum(axis=1).max()), beta, beta=beta))
    return rows


PARTS = {"Cor 8.7": "ρ", "Lemma 8.8": "δ", "Cor 8.9": "ε"}
DELTA_FACTOR = 1 + 1e-9
"""Delta is multiplied by this number, since at a slightly smaller delta the exact rho is infinite."""


@claim(
    "bs-section-8", "[BS, Cor 8.7; BS, Lemma 8.8; BS, Cor 8.9; BS, Cor 8.11; GI, eq. 6]",
    points=grid(part=["Cor 8.7"], epsilon=Axis([0.01, 0.1, 0.5], [0.1]), delta=Axis([1e-6, 1e-3], [1e-3]))
    + grid(part=["Lemma 8.8"], rho=Axis([0.01, 0.1, 1.0], [0.1]), delta="delta", deviations=[0.5, 1.0, 2.0, 4.0])
    + grid(part=["Cor 8.9"], epsilon="epsilon", delta=[1e-8], count=Axis([1, 10, 100, 1000], [10, 100])),
    judge=bounded(
        "Times too large: {_all}. The exact ρ of (ε, δ)-DP mechanisms after removing δ is ε tanh(ε/2).",
        {f"{part} ({letter})": among("claimed / exact", part=part) for part, letter in PARTS.items()}
        | {"Cor 8.11 (ε)": among("simple / exact", part="Cor 8.9")},
        tolerance=1e-5),
    draw=picture(
        panel("δ at ε of a {delta:g}-approximate ρ-zCDP mechanism", "ε (nats)", "δ",
              curves("at", {"claimed": ("Lemma 8.8", ":"), "exact": ("exact", "-")}, "ρ = {rho:g}, {}", by=("rho",)),
              where={"part": "Lemma 8.8", "delta": min}, scale="xy"),
        panel("ε of k mechanisms, δ about 1e-6", "mechanisms k", "ε of all (nats)",
              curves("count", {"simple": ("8.11", "-."), "claimed": ("8.9", ":"), "exact": ("exact", "-")},
                     "ε = {epsilon:g}, {}", by=("epsilon",), lw=1.2),
              where={"part": "Cor 8.9"}, scale="xy")),
    caption="Left: δ of a mechanism that leaks with probability δ and else adds Gaussian noise. Right: composition.",
)  # fmt: skip
def section_8(
    part: str, delta: float, epsilon: float = 0.0, rho: float = 0.0, deviations: float = 0.0, count: float = 1
) -> Row:
    """(ε, δ)-DP is δ-approximate ε²/2-zCDP (8.7); approximate zCDP is approximate DP (8.8); together they compose
    approximate DP (8.9, 8.11)."""
    if part == "Cor 8.7":
        rho_exact = approximate_zcdp(dominating_pair(epsilon, delta), delta * DELTA_FACTOR).lower
        return {"claimed": approximate_to_approximate_zcdp(ApproximateDP(epsilon, delta)).rho, "exact": rho_exact}
    if part == "Lemma 8.8":  # reveals its input with probability delta, else adds Gaussian noise
        level = rho + deviations * math.sqrt(2 * rho)
        claimed = approximate_zcdp_to_approximate(ApproximateZCDP(delta, 0.0, rho), level).delta
        noise = gaussian(1 / math.sqrt(2 * rho)).pair.hockey_stick(level).lower
        return {"at": level, "claimed": claimed, "exact": delta + (1 - delta) * noise}
    slack = 1e-6
    claim = zcdp_advanced_composition([(ApproximateDP(epsilon, delta), int(count))], slack)
    norm = epsilon * math.sqrt(count)
    printed = norm**2 / 2 + math.sqrt(2 * math.log(math.sqrt(math.pi / 2) * norm / slack)) * norm  # Corollary 8.11
    exact = kov15(epsilon, delta, int(count)).epsilon_at(claim.delta)
    return {"claimed": claim.epsilon, "simple": printed, "exact": exact}


SUM = Part("8.2: ρ of two mechanisms at δ+δ'-δδ'", cells=("seed", "delta"))
LEAST = Part("8.6: the least ε at which a T exists", equal=True, cells=("seed", "delta"), tolerance=1e-5, floor=0.1)
TRADED = Part("8.3: ρ of a δ-approximate (ξ, 0)-zCDP pair ≤ min(ξ, ξ²/2)", cells=("seed", "delta"))


def response(epsilon: float, delta: float) -> Array:
    """Return the rows of Definition 8.5's mechanism, (2, 4)."""
    high, low = (1 - delta) / (1 + math.exp(-epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    return np.array([[delta, high, low, 0.0], [0.0, low, high, delta]])


def missing(from_rows: Array, to_rows: Array) -> float:
    """Compute the smallest total deviation of from_rows T from to_rows over row-stochastic T."""
    m, n = from_rows.shape[1], to_rows.shape[1]
    size = 2 * n
    match, stochastic = np.kron(from_rows, np.eye(n)), np.kron(np.eye(m), np.ones((1, n)))
    left = np.block([[match, np.eye(size), -np.eye(size)], [stochastic, np.zeros((m, 2 * size))]])
    cost = np.concatenate([np.zeros(m * n), np.ones(2 * size)])
    right = np.concatenate([to_rows.ravel(), np.ones(m)])
    return float(linprog(cost, A_eq=left, b_eq=right, method="highs").fun)


@claim(
    "bs-lemma-8-6", "[BS, Lemma 8.6; BS, Lemma 8.2; BS, Lemma 8.3]", SUM, LEAST, TRADED,
    title="Lemmas 8.2, 8.3 and 8.6",
    points=grid(seed=Axis(30, 1), delta=Axis([0.001, 0.01, 0.1], [0.01])),
    caption="The exact ρ of two mechanisms against the sum; the least ε at which a post-processing T exists, by "
    "bisection over linear programs, against the least ε for which the pair is (ε, δ)-DP.",
)  # fmt: skip
def simulated(seed: float, delta: float) -> list[Row]:
    """Every (ε, δ)-DP pair is a post-processing of randomized response with a leak of δ (8.6). Compositions of δ- and
    δ'-approximate (0, ρ)- and (0, ρ')-zCDP have δ+δ'-δδ' and ρ+ρ' (8.2). (ξ, 0) implies ρ of ξ and of ξ²/2 (8.3)."""
    rng = np.random.default_rng([82, int(seed), int(1e6 * delta)])
    pairs = [np.stack([law, tilted(rng, law, 1.0)]) for law in [random_law(rng, 3, min_mass=0.003) for _ in range(2)]]
    together = compose_approximate_zcdp(
        [ApproximateZCDP(delta, 0.0, approximate_zcdp(pair, delta).value) for pair in pairs]
    )
    joint = np.stack([np.outer(pairs[0][i], pairs[1][i]).ravel() for i in range(2)])
    epsilon = approximate_dp(FinitePair(*pairs[0]), delta).value
    low, high = 0.0, 2 * epsilon + 1
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if missing(response(middle, delta), pairs[0]) <= 1e-9 else (middle, high)
    alone = approximate_zcdp(pairs[0], delta * DELTA_FACTOR).lower
    return [
        SUM(approximate_zcdp(joint, together.delta).lower, together.rho), LEAST(high, epsilon),
        TRADED(alone, min(epsilon, epsilon**2 / 2)),
    ]  # fmt: skip
