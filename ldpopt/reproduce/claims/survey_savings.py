"""How many respondents the optimal channel saves over subset selection."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.design import FisherInformation, LocalDP, optimal_channel
from ldpopt.distribution import Array
from ldpopt.mechanisms import optimized_unary_encoding, subset_selection
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid
from ldpopt.survey.estimate.linear import efficient_loadings

SEED = 1965


def shares(k: float, top: float) -> Array:
    """`top` for one answer, the rest spread evenly over the others; even shares when `top` is 1/k or less."""
    first = max(top, 1 / k)
    return np.append(first, np.full(int(k) - 1, (1 - first) / (k - 1)))


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon and every share of the commonest answer, by formula; then simulated surveys at one setting."""
    made = grid(part=["formula"], k=parameters["sizes"], epsilon=parameters["epsilons"], top=parameters["tops"])
    n, times = parameters["respondents"], parameters["replications"]
    return [*made, {"part": "simulated", "k": 5, "epsilon": 1.0, "top": 0.9, "n": n, "replications": times}]


def measure(part: str, k: float, epsilon: float, top: float, n: float = 0, replications: float = 0) -> Row:
    """The sum of variances for one respondent, for the optimum and its rivals; or this sum from simulated surveys."""
    p = shares(k, top)
    utility = FisherInformation(p)
    subsets = [subset_selection(len(p), epsilon, size) for size in range(1, len(p))]
    errors = [utility.value(channel) for channel in subsets]
    design = optimal_channel(utility, LocalDP(epsilon), certify=part == "formula")
    row: Row = {"optimum": design.value, "subset_selection": min(errors), "size": 1 + int(np.argmin(errors))}
    if part == "formula":
        return row | {
            "lower_bound": design.lower_bound,
            "randomized_response": errors[0],
            "unary_encoding": utility.value(optimized_unary_encoding(len(p), epsilon).channel()),
        }
    rng = np.random.default_rng(SEED)
    rival = subsets[int(np.argmin(errors))]
    found = [simulated(channel.push(p), efficient_loadings(channel, p), p, int(n), int(replications), rng)
             for channel in (design.channel, rival)]  # fmt: skip
    (ours, ours_error), (theirs, theirs_error) = found
    seen = 1 - ours / theirs
    error = (1 - seen) * math.hypot(ours_error / ours, theirs_error / theirs)
    return row | {"saved_simulated": seen, "standard_error": error}


def simulated(
    law: Array, loadings: Array, p: Array, n: int, replications: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The mean squared error of the unbiased estimate in simulated surveys of n respondents, and its standard error."""
    estimates = rng.multinomial(n, law / law.sum(), size=replications) @ loadings.T / n
    errors = ((estimates - p) ** 2).sum(axis=1)
    return float(errors.mean()), float(errors.std() / math.sqrt(replications))


def judge(table: Table) -> Verdict:
    """The verdict: the optimum is never worse, equal at even shares, and proved; and the saving at uneven shares."""
    rows = table.where(part="formula")
    ratio = rows.column("optimum") / rows.column("subset_selection")
    even = rows.column("top") * rows.column("k") <= 1
    gap = float(np.max(1 - rows.column("lower_bound") / rows.column("optimum")))
    right = bool((ratio <= 1 + 1e-6).all() and (np.abs(ratio[even] - 1) <= 1e-5).all() and gap <= 2e-3)
    best = rows.with_column("saved", 1 - ratio).row("saved", np.argmax)
    test = table.where(part="simulated").rows[0]
    told = 1 - float(test["optimum"]) / float(test["subset_selection"])
    seen, error = float(test["saved_simulated"]), float(test["standard_error"])
    right = right and abs(seen - told) <= 4 * error
    others = {name: float(np.max(1 - rows.column("optimum") / rows.column(name.replace(" ", "_"))))
              for name in ("randomized response", "unary encoding")}  # fmt: skip
    return Verdict(
        Outcome.HOLDS if right else Outcome.FAILS,
        f"With even shares the optimum is subset selection of the best size, to {np.abs(ratio[even] - 1).max():.1e}. "
        f"With uneven ones it needs up to {best['saved']:.1%} fewer respondents than the best size (k = {best['k']:g}, "
        f"ε = {best['epsilon']:g}, commonest answer {best['top']:g}), up to {others['randomized response']:.1%} fewer "
        f"than randomized response and {others['unary encoding']:.1%} fewer than unary encoding. The "
        f"certificates leave at most {gap:.1e} to any other channel. Simulated surveys at k = 5, ε = 1, 0.9: "
        f"{seen:.2%} (standard error {error:.2%}), by formula {told:.2%}.",
        {
            "largest saving over the best subset selection": float(best["saved"]),
            **{f"largest saving over {name}": value for name, value in others.items()},
            "at even shares, off by": float(np.abs(ratio[even] - 1).max()),
            "largest certified gap": gap,
            "saving at p = (0.9, 0.025 x 4), ε = 1": told,
            "the same, simulated": seen,
        },
    )


def draw(table: Table) -> Any:
    """The share of respondents saved, against the share of the commonest answer."""
    rows = table.where(part="formula")
    sizes = list(rows.groups("k"))
    axes = frames(len(sizes), 5.0, 4.0)
    for ax, (k, by_size) in zip(axes, sizes, strict=True):
        for at, (epsilon, one) in enumerate(by_size.groups("epsilon")):
            saved = 100 * (1 - one.column("optimum") / one.column("subset_selection"))
            line(ax, one.column("top"), saved, at, f"ε = {epsilon:g}", marker="o", ms=3)
        finish(ax, f"{k:g} answers", "share of the commonest answer", "respondents saved, %")
        ax.set_ylim(-1, None)
    return axes[0]


EXPERIMENT = Experiment(
    name="survey-savings",
    claim="Subset selection of the best size has the least sum of variances of all ε-LDP channels when the answers are "
    "evenly spread; where they are not, the optimal channel needs fewer respondents for the same error.",
    source="[YB; KOV14, Thm 2]",
    full={
        "sizes": [3, 5, 8], "epsilons": [0.5, 1.0, 2.0, 4.0],
        "tops": [0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99], "respondents": 20000, "replications": 100000,
    },
    quick={"sizes": [5], "epsilons": [1.0, 2.0], "tops": [0.0, 0.9], "respondents": 20000, "replications": 4000},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Respondents that the optimal channel saves over subset selection of the best size; at 0 the shares are "
    "even.",
)  # fmt: skip
