"""Optimal channels and bounds: contraction, capacity, subset selection in surveys, and m questions of one person."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.papers.drawing import curves, line, panel, picture
from experiments.papers.experiment import Axis, Row, Single, Table, Verdict, grid
from experiments.papers.laws import worst_pair
from experiments.papers.statements import bounded, claim, holds_if, off_by
from ldpopt.bounds import asoodeh_zhang, information_capacity
from ldpopt.design import (
    Divergence,
    FisherInformation,
    LocalDP,
    MutualInformation,
    RespondentsBound,
    optimal_channel,
)
from ldpopt.divergences import CHI_SQUARED, KL, SQUARED_HELLINGER
from ldpopt.mechanisms import optimized_unary_encoding, subset_selection
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import CLAIM_ATTAINED
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import efficient_loadings
from ldpopt_survey.plan.units import respondent_information

F = {f.name: f for f in (KL, CHI_SQUARED, SQUARED_HELLINGER)}


def _reached(table: Table) -> float:
    return max(float(rows.column("ratio").min()) for _, rows in table.groups("divergence", "epsilon"))


def _contractions(ax: Any, table: Table) -> None:
    for index, (name, rows) in enumerate(table.groups("divergence")):
        for column, word, style, pick in (("random", "random, median", "-", np.median), ("ratio", "best", ":", np.min)):
            x, y = zip(*((epsilon, pick(by.column(column))) for epsilon, by in rows.groups("epsilon")), strict=True)
            line(ax, x, y, index, f"{name}: {word}", ls=style, marker="o", ms=3)


@claim(
    "az-theorem-1", "[AZ, Thm 1]",
    points=grid(divergence=F, epsilon=Axis([0.1, 0.5, 1.0, 2.0, 4.0], [2.0]), k=Axis([2, 3], [2]),
                starts=Single(3, 1), steps=Single(300, 15))
    + grid(divergence=F, epsilon="epsilon", k="k", pairs=Single(50, 3)),
    judge=bounded(
        "Never below the optimum, and within {_within:.2g} of it at the best populations found, for all three "
        "divergences and every ε. For random populations it is {random populations, median:.3g} times too large in the "
        "middle and {random populations.high:.3g} times at the most.",
        {"tightest": "ratio", "random populations": "random"},
        {"random populations, median": lambda table: float(np.median(table.column("random"))),
         "tightest, worst over ε": _reached, "_within": lambda table: _reached(table) - 1}, 1e-5),
    draw=picture(panel("tanh²(ε/2) D(P0‖P1) over the optimum", "ε (nats)", "bound / optimum", _contractions,
                       scale="x")),
    caption="The contraction bound over the exact optimum, at the best populations found and at random ones.",
)  # fmt: skip
def contraction(
    divergence: str, epsilon: float, k: float, starts: float = 0, steps: float = 0, pairs: float = 0
) -> Row | list[Row]:
    """An ε-LDP channel keeps at most tanh²(ε/2) of a KL, chi-squared or squared Hellinger divergence."""
    f = F[divergence]

    def ratio(p0: Array, p1: Array) -> float:
        optimum = optimal_channel(Divergence(f, p0, p1), LocalDP(epsilon), certify=False).value
        return asoodeh_zhang(f, p0, p1, epsilon) / optimum

    if pairs:
        rng = np.random.default_rng(int(k))
        return [{"random": ratio(*rng.dirichlet(np.ones(int(k)), size=2))} for _ in range(int(pairs))]
    best = worst_pair(lambda p0, p1: 1 / ratio(p0, p1), int(k), int(starts), int(steps))
    return best | {"ratio": 1 / best["ratio"]}


def _column_information(mass: Array, complement: Array, level: float) -> Array:
    """The mutual information of columns level + 1_A, for masses P(A) and `complement` = 1 - P(A), of any shape."""
    mean = level + mass
    return np.asarray(mass * KL.excess_of(complement, mean) + complement * KL.excess_of(-mass, mean))


def _information_verdict(table: Table) -> Verdict:
    names = ("binary", "response", "capacity", "bound")
    binary, response, capacity, loose = (table.ratio(name, "optimum") for name in names)
    epsilon, between = table.column("epsilon"), np.maximum(binary, response)
    low, high = binary[epsilon == epsilon.min()].min(), response[epsilon == epsilon.max()].min()
    largest_ratio, smallest_ratio = np.max([between.max(), loose.max()]), np.min([capacity.min(), low, high])
    right = largest_ratio <= 1 + CLAIM_ATTAINED and smallest_ratio >= 1 - CLAIM_ATTAINED
    return Verdict(
        holds_if(right),
        f"At ε = {epsilon.min():g} the best binary mechanism reaches {low:.7f} of the optimum, at "
        f"ε = {epsilon.max():g} randomized response {high:.7f}. Between them the better of the two "
        f"keeps {between.min():.4f} at the least. The capacity t - 1 - log t is nowhere below the optimum, and at most "
        f"{1 - 1 / capacity.min():.2g} above it where it is nearest.",
        {"binary share at the smallest ε": float(low), "response share at the largest ε": float(high),
         "least share of the better one": between.min(), "least capacity over optimum": capacity.min()},
    )  # fmt: skip


def _entropy(rows: Table) -> Array:
    k = int(rows.rows[0]["k"])
    entropy = MutualInformation(np.random.default_rng(k).dirichlet(np.ones(k))).value_without_privacy
    return np.asarray(np.minimum(entropy / rows.column("capacity"), 1.0))


@claim(
    "kov-information", "[KOV14, section 4]",
    points=grid(k=Axis([4, 8, 12], [4, 6]),
                epsilon=Axis([0.01, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0],
                             [0.01, 1.0, 3.0, 12.0])),
    judge=_information_verdict,
    draw=picture(panel("{k:g} answers", "ε (nats)", "share of t − 1 − log t",
                       curves("epsilon", "optimum / capacity", "optimum"),
                       curves("epsilon", "binary / capacity", "binary mechanism", first=1),
                       curves("epsilon", "response / capacity", "randomized response", first=2),
                       curves("epsilon", _entropy, "entropy, at most 1", first=3),
                       repeat_by="k", scale="x", ylim=(0, 1.05))),
    caption="The optimum, the two mechanisms and the entropy, as shares of the capacity, for a random prior.",
)  # fmt: skip
def information(k: float, epsilon: float) -> Row:
    """For mutual information the binary mechanism is optimal at small ε and randomized response at large ε, for every
    prior. No ε-LDP channel keeps more than t − 1 − log t, t = ε/(1 − e^−ε)."""
    prior = np.random.default_rng(int(k)).dirichlet(np.ones(int(k)))
    level = 1 / math.expm1(epsilon)
    design = optimal_channel(MutualInformation(prior), LocalDP(epsilon))
    sets = (np.arange(2 ** int(k))[:, None] >> np.arange(int(k))) & 1 == 1
    set_mass, complement_mass = sets @ prior, ~sets @ prior
    binary = (
        _column_information(set_mass, complement_mass, level) + _column_information(complement_mass, set_mass, level)
    ) / (2 * level + 1)
    response = _column_information(prior, 1 - prior, level).sum() / (int(k) * level + 1)
    return {
        "optimum": design.value,
        "bound": design.upper_bound,
        "binary": binary.max(),
        "response": float(response),
        "capacity": information_capacity(epsilon),
    }


SEED = 1965


def shares(k: float, top: float) -> Array:
    """Return `top` for one answer and even proportions for the others."""
    first = max(top, 1 / k)
    return np.append(first, np.full(int(k) - 1, (1 - first) / (k - 1)))


def simulated(
    law: Array, loadings: Array, p: Array, n: int, replications: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Compute the mean squared error of simulated surveys, and its standard error."""
    estimates = rng.multinomial(n, law / law.sum(), size=replications) @ loadings.T / n
    errors = ((estimates - p) ** 2).sum(axis=1)
    return float(errors.mean()), float(errors.std() / math.sqrt(replications))


def _savings_verdict(table: Table) -> Verdict:
    rows = table.where(part="formula")
    ratio = rows.ratio("optimum", "subset_selection")
    even = ratio[rows.column("top") * rows.column("k") <= 1]
    gap = float(np.max(1 - rows.ratio("lower_bound", "optimum")))
    saved, test = float((1 - ratio).max()), table.where(part="simulated").rows[0]
    best = rows.with_column("saved", 1 - ratio).row("saved", np.argmax)
    predicted, simulated_saving, error = (
        1 - test["optimum"] / test["subset_selection"],
        test["saved_simulated"],
        test["standard_error"],
    )
    right = (
        (ratio <= 1 + 1e-6).all()
        and off_by(even) <= 1e-5
        and gap <= 2e-3
        and abs(simulated_saving - predicted) <= 4 * error
    )
    others = {
        name: float(np.max(1 - rows.ratio("optimum", name.replace(" ", "_"))))
        for name in ("randomized response", "unary encoding")
    }
    return Verdict(
        holds_if(right),
        f"With even shares the optimum is subset selection of the best size, to {off_by(even):.1e}. "
        f"With uneven ones it needs up to {saved:.1%} fewer respondents than the best size (k = {best['k']:g}, "
        f"ε = {best['epsilon']:g}, commonest answer {best['top']:g}), up to {others['randomized response']:.1%} fewer "
        f"than randomized response and {others['unary encoding']:.1%} fewer than unary encoding. The "
        f"certificates leave at most {gap:.1e} to any other channel. Simulated surveys at k = 5, ε = 1, 0.9: "
        f"{simulated_saving:.2%} (standard error {error:.2%}), by formula {predicted:.2%}.",
        {"largest saving over the best subset selection": saved}
        | {f"largest saving over {name}": value for name, value in others.items()}
        | {"at even shares, off by": off_by(even), "largest certified gap": gap,
           "saving at p = (0.9, 0.025 x 4), ε = 1": predicted, "the same, simulated": simulated_saving},
    )  # fmt: skip


@claim(
    "survey-savings", "[YB; KOV14, Thm 2]",
    points=grid(part=["formula"], k=Axis([3, 5, 8], [5]), epsilon=Axis([0.5, 1.0, 2.0, 4.0], [1.0, 2.0]),
                top=Axis([0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99], [0.0, 0.9]))
    + grid(part=["simulated"], k=[5], epsilon=[1.0], top=[0.9], n=Single(20000),
           replications=Single(100000, 4000)),
    judge=_savings_verdict,
    draw=picture(panel("{k:g} answers", "share of the commonest answer", "respondents saved, %",
                       curves("top", lambda rows: 100 * (1 - rows.ratio("optimum", "subset_selection")),
                              "ε = {epsilon:g}", by=("epsilon",), marker="o", ms=3),
                       where={"part": "formula"}, repeat_by="k", ylim=(-1, None))),
    caption="Respondents that the optimal channel saves over subset selection of the best size; at 0 the shares are "
    "even.",
)  # fmt: skip
def savings(part: str, k: float, epsilon: float, top: float, n: float = 0, replications: float = 0) -> Row:
    """Subset selection of the best size has the smallest sum of variances of all ε-LDP channels when the answers are
    evenly spread. Otherwise the optimal channel needs fewer respondents for the same error."""
    p = shares(k, top)
    utility = FisherInformation(p)
    subsets = [subset_selection(len(p), epsilon, size) for size in range(1, len(p))]
    errors = [utility.value(channel) for channel in subsets]
    design, best = optimal_channel(utility, LocalDP(epsilon), certify=part == "formula"), int(np.argmin(errors))
    row: Row = {"optimum": design.value, "subset_selection": min(errors), "size": 1 + best}
    if part == "formula":
        return row | {
            "lower_bound": design.lower_bound, "randomized_response": errors[0],
            "unary_encoding": utility.value(optimized_unary_encoding(len(p), epsilon).channel()),
        }  # fmt: skip
    rng = np.random.default_rng(SEED)
    (ours, ours_error), (theirs, theirs_error) = (
        simulated(channel.push(p), efficient_loadings(channel, p), p, int(n), int(replications), rng)
        for channel in (design.channel, subsets[best])
    )
    simulated_saving = 1 - ours / theirs
    error = (1 - simulated_saving) * math.hypot(ours_error / ours, theirs_error / theirs)
    return row | {"saved_simulated": simulated_saving, "standard_error": error}


def _single_question(epsilon: float) -> float:
    """coth(eps/2)^2 / 4: the variance of a share, for one respondent, by randomized response."""
    return 0.25 / math.tanh(epsilon / 2) ** 2


WAYS = ("split", "half-space", "fakes", "sampled", "one")
"""The ways of asking that are compared with the rule."""


@claim(
    "questionnaire-rule", "[Scarf; DJW]",
    points=grid(m=Axis([2, 3, 5, 7, 10, 30], [3, 10]),
                epsilon=Axis([0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0], [0.5, 1.0, 2.0])),
    judge=bounded(
        "Attained for ε up to ln 3 ({_small:.1g} away) and for up to 7 questions; elsewhere at most "
        "{_rule.high:.3g} times the bound. Splitting ε needs up to {split over the rule, largest:.3g} times the "
        "respondents.",
        {"_rule": "rule / bound"},
        {f"{name} over the rule, largest": lambda table, name=name: float(table.ratio(name, "rule").max())
         for name in WAYS}
        | {"_small": lambda table: off_by(table.having(lambda row: row["epsilon"] <= 1.0986).ratio("rule", "bound"))},
        1e-9),
    draw=picture(panel("ten yes/no questions: variance over the bound", "ε (nats)", "variance / bound",
                       *(curves("epsilon", f"{name} / bound", name, first=index, where={"m": 10.0}, marker="o", ms=3)
                         for index, name in enumerate((*WAYS, "rule", "bound"))), scale="xy")),
    caption="Ways to ask ten yes/no questions of one respondent, over the variance that no protocol can be below.",
)  # fmt: skip
def yes_no_bound(m: float, epsilon: float) -> Row:
    """For independent uniform answers no ε-LDP protocol estimates m yes/no shares with less than m/(4ρ²) per
    respondent. Therefore none does at every joint distribution of the answers. Here ρ² = tanh²(ε/2) up to ln 3."""
    m = int(m)
    sampled = max(1, min(m, int(epsilon / 2.5)))
    # Half of the vectors are near a vector of answers; for even m those in the middle are on both sides [DJW].
    pairs_of_sets = 2 ** (m - 1) + (math.comb(m, m // 2) / 2 if m % 2 == 0 else 0)
    spread = pairs_of_sets / math.comb(m - 1, m // 2)
    best = 0.25 * m / respondent_information(m, epsilon)
    halves, share, unit_variance = (np.full(2, 0.5),), (np.array([[1.0, 0.0]]),), (np.ones(1),)
    respondents_bound = RespondentsBound.from_targets(
        epsilon, halves * m, share * m, unit_variance * m, unit_variance * m
    )  # each share with the variance 1
    return {
        "split": _single_question(epsilon / m),
        "half-space": spread**2 * _single_question(epsilon),
        "fakes": m**2
        * _single_question(epsilon),  # the amplified epsilon holds where one answer changes, not the whole vector
        "sampled": m / sampled * _single_question(epsilon / sampled),
        "one": m * _single_question(epsilon),
        "rule": best,
        "bound": respondents_bound.proved(FLOAT),
    }
