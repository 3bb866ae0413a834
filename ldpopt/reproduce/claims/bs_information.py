"""Section 6 and Lemmas 7.3 and 7.4: information, the exponential mechanism, and the lower bound from a packing."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.distribution import Array
from ldpopt.mechanisms import dominating_pair, gaussian
from ldpopt.privacy import FinitePair, local_dp
from ldpopt.privacy.claims import ZCDP
from ldpopt.privacy.implications import information_any, information_blocks
from ldpopt.reproduce.drawing import curves, level, panel, picture
from ldpopt.reproduce.experiment import Experiment, Row, Table, Verdict, ends, grid, outcome_of, span
from ldpopt.reproduce.statements import Part, inequalities

LETTERS = {"randomized response": "ε", "noisy sum": "1/σ"}


def information(mechanism: str, parameter: float, blocks: float, size: float) -> Row:
    """The bound and the exact mutual information in nats, of m independent blocks of n people who share a bit."""
    m, n = int(blocks), int(size)
    if mechanism == "randomized response":
        rho, exact = dominating_pair(parameter).zcdp().value, m * _responses(parameter, n)
    else:
        rho, exact = gaussian(1 / parameter).pair.zcdp().value, _noisy_sum(m, n, parameter)
    return {"rho": rho, "bound": information_blocks(ZCDP(0.0, rho), m, n), "exact": exact}


def _responses(epsilon: float, n: int) -> float:
    """I(bit; n randomized responses to it), from the law of their number of ones."""
    ones = np.arange(n + 1)
    choose = np.array([math.comb(n, i) for i in ones], dtype=np.float64)
    truth = 1 / (1 + math.exp(-epsilon))
    law = choose * truth**ones * (1 - truth) ** (n - ones)
    return float(law @ (np.log(law) - np.log((law + law[::-1]) / 2)))


def _noisy_sum(m: int, n: int, precision: float) -> float:
    """I(sum; sum + noise) for n times the sum of m fair bits and noise of standard deviation 1/precision."""
    at = n * precision * np.arange(m + 1)
    weights = np.array([math.comb(m, i) for i in range(m + 1)], dtype=np.float64) / 2**m
    y = np.linspace(-12, at[-1] + 12, 20001)
    density: Array = np.exp(-((y[:, None] - at) ** 2) / 2) @ weights / math.sqrt(2 * math.pi)
    inside = density > 0
    entropy = -np.sum(density[inside] * np.log(density[inside])) * (y[1] - y[0])
    return float(entropy - 0.5 * math.log(2 * math.pi * math.e))


def _information_verdict(table: Table) -> Verdict:
    """The bound over the exact information, for each of the three statements."""
    parts = {
        "Lemma 6.2 (independent people)": table.where(size=1),
        "Proposition 6.1 (one block)": table.where(blocks=1),
        "Theorem 6.3 (blocks)": table.having(lambda row: row["size"] > 1 and row["blocks"] > 1),
    }
    ratios = {name: rows.ratio("bound", "exact") for name, rows in parts.items()}
    worst = table.top(table.ratio("bound", "exact"))
    return Verdict(
        outcome_of(table.ratio("bound", "exact")),
        f"Never below the exact information. Times too large: "
        f"{'; '.join(f'{name}: {span(ratio)}' for name, ratio in ratios.items())} (most for {worst['mechanism']}, "
        f"{LETTERS[worst['mechanism']]} = {worst['parameter']:g}, "
        f"{worst['blocks']:g} x {worst['size']:g} people: a bit cannot tell more than log 2).",
        {name: figure for part, ratio in ratios.items() for name, figure in ends(part, ratio).items()},
    )


INFORMATION = Experiment(
    "bs-section-6", "[BS, Prop 6.1; BS, Lemma 6.2; BS, Thm 6.3]",
    "A ρ-zCDP mechanism has I(X; M(X)) at most ρn² for any n people, ρm for m independent ones, and ρml² for m "
    "independent blocks of l.",
    full={"parameters": [0.1, 0.5, 2.0], "blocks": [1, 2, 5], "sizes": [1, 2, 4, 8, 16]},
    quick={"parameters": [0.5], "blocks": [1, 2], "sizes": [1, 4]},
    points=grid(mechanism=LETTERS, parameter="parameters", blocks="blocks", size="sizes"),
    measure=information, judge=_information_verdict,
    draw=picture(*(
        panel(f"{name.capitalize()}: n people with one bit", "n", "I(X; M(X)) (nats)",
              curves("size", {"exact": ("exact", "-"), "bound": ("ρ n²", ":")}, letter + " = {parameter:g}, {}",
                     by=("parameter",), where={"blocks": min}),
              level(math.log(2), color="0.5", lw=0.8), where={"mechanism": name}, legend="lower right", scale="xy")
        for name, letter in LETTERS.items())),
    caption="Exact information (solid) about one bit that n people share, and Proposition 6.1 (dotted); grey: log 2.",
)  # fmt: skip

PRIVACY = Part("7.3: it is ε-DP", cells=("epsilon", "size", "n"))
TAIL = Part("7.3: Pr(loss > min + 2Δ/ε log(|T|/β)) ≤ β", cells=("epsilon", "size", "beta"))
MEAN = Part("7.3: E loss ≤ min + 2Δ/ε log |T|", cells=("epsilon", "size"))
PACKING = Part("7.4: (1-β) log |T| - log 2 ≤ ρn²", cells=("epsilon", "size", "n"))


def exponential(losses: Array, epsilon: float) -> Array:
    """The law of the exponential mechanism, proportional to exp(-epsilon loss / 2), along the last axis."""
    weights = np.exp(-epsilon / 2 * (losses - losses.min(axis=-1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def votes(epsilon: float, size: float, n: float) -> list[Row]:
    """Data sets are votes: the loss of an answer is the number of people against it, which a person changes by 1."""
    answers, people = int(size), int(n)
    unanimous = people * (1.0 - np.eye(answers))
    one_less = unanimous + np.roll(np.eye(answers), 1, axis=1) * -1 + np.eye(answers)  # one person changes sides
    laws, near = exponential(unanimous, epsilon), exponential(one_less, epsilon)
    rows = [PRIVACY(max(local_dp(np.stack([a, b])).lower for a, b in zip(laws, near, strict=True)), epsilon)]
    rng = np.random.default_rng([73, answers, people])
    for losses in (np.sort(rng.uniform(0, people, answers)), np.append(0.0, np.full(answers - 1, float(people)))):
        law, best = exponential(losses, epsilon), float(losses.min())
        rows.append(MEAN(float(law @ losses) - best, 2 / epsilon * math.log(answers)))
        beyond = {beta: losses > best + 2 / epsilon * math.log(answers / beta) for beta in (0.5, 0.1, 0.01)}
        rows += [TAIL(float(law[far].sum()), beta, beta=beta) for beta, far in beyond.items()]
    wrong = 1 - float(laws[0, 0])  # the chance of an answer other than the unanimous one
    rho = float(FinitePair(laws[0], near[0]).zcdp().value)
    told = (1 - wrong) * math.log(answers) - math.log(2)
    return [*rows, *([PACKING(told, information_any(ZCDP(0.0, rho), people))] if told > 0 else [])]


VOTES = inequalities(
    "bs-lemma-7-3", "[BS, Lemma 7.3; BS, Lemma 7.4]",
    "The exponential mechanism is ε-DP with loss at most min + 2Δ/ε log(|T|/β) but for probability β, and "
    "2Δ/ε log |T| on average (7.3); a (0, ρ)-zCDP mechanism that tells |T| apart has (1-β) log |T| - log 2 ≤ ρn² "
    "(7.4).",
    PRIVACY, TAIL, MEAN, PACKING, title="Lemmas 7.3 and 7.4",
    ending="Votes of n people on |T| answers, all changes of a vote; ρ is the mechanism's own.",
    full={"epsilons": [0.1, 0.5, 1.0, 2.0], "sizes": [2, 4, 16, 64], "people": [1, 4, 10, 30]},
    quick={"epsilons": [0.5, 2.0], "sizes": [4, 16], "people": [4, 10]},
    points=grid(epsilon="epsilons", size="sizes", n="people"), measure=votes,
    caption="What the exponential mechanism does exactly, against the bounds.",
)  # fmt: skip
