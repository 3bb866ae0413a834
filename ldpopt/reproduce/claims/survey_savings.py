"""How many respondents the optimal channel saves over subset selection."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.design import FisherInformation, LocalDP, optimal_channel
from ldpopt.distribution import Array
from ldpopt.mechanisms import optimized_unary_encoding, subset_selection
from ldpopt.reproduce.drawing import curves, panel, picture
from ldpopt.reproduce.experiment import Experiment, Row, Single, Table, Verdict, grid, holds_if, off_by
from ldpopt.survey.estimate.linear import efficient_loadings

SEED = 1965


def shares(k: float, top: float) -> Array:
    """`top` for one answer, the rest spread evenly over the others; even shares when `top` is 1/k or less."""
    first = max(top, 1 / k)
    return np.append(first, np.full(int(k) - 1, (1 - first) / (k - 1)))


def savings(part: str, k: float, epsilon: float, top: float, n: float = 0, replications: float = 0) -> Row:
    """The sum of variances for one respondent, for the optimum and its rivals; or this sum from simulated surveys."""
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


def _savings_verdict(table: Table) -> Verdict:
    """The optimum is never worse, equal at even shares, and proved; and the saving at uneven shares."""
    rows = table.where(part="formula")
    ratio = rows.ratio("optimum", "subset_selection")
    even = ratio[rows.column("top") * rows.column("k") <= 1]
    gap = float(np.max(1 - rows.ratio("lower_bound", "optimum")))
    saved, test = float((1 - ratio).max()), table.where(part="simulated").rows[0]
    best = rows.with_column("saved", 1 - ratio).where(saved=max).rows[0]
    told, seen, error = 1 - test["optimum"] / test["subset_selection"], test["saved_simulated"], test["standard_error"]
    right = (ratio <= 1 + 1e-6).all() and off_by(even) <= 1e-5 and gap <= 2e-3 and abs(seen - told) <= 4 * error
    others = {name: float(np.max(1 - rows.ratio("optimum", name.replace(" ", "_"))))
              for name in ("randomized response", "unary encoding")}  # fmt: skip
    return Verdict(
        holds_if(right),
        f"With even shares the optimum is subset selection of the best size, to {off_by(even):.1e}. "
        f"With uneven ones it needs up to {saved:.1%} fewer respondents than the best size (k = {best['k']:g}, "
        f"ε = {best['epsilon']:g}, commonest answer {best['top']:g}), up to {others['randomized response']:.1%} fewer "
        f"than randomized response and {others['unary encoding']:.1%} fewer than unary encoding. The "
        f"certificates leave at most {gap:.1e} to any other channel. Simulated surveys at k = 5, ε = 1, 0.9: "
        f"{seen:.2%} (standard error {error:.2%}), by formula {told:.2%}.",
        {"largest saving over the best subset selection": saved}
        | {f"largest saving over {name}": value for name, value in others.items()}
        | {"at even shares, off by": off_by(even), "largest certified gap": gap,
           "saving at p = (0.9, 0.025 x 4), ε = 1": told, "the same, simulated": seen},
    )  # fmt: skip


SAVINGS = Experiment(
    "survey-savings", "[YB; KOV14, Thm 2]",
    "Subset selection of the best size has the least sum of variances of all ε-LDP channels when the answers are "
    "evenly spread; where they are not, the optimal channel needs fewer respondents for the same error.",
    full={"sizes": [3, 5, 8], "epsilons": [0.5, 1.0, 2.0, 4.0],
          "tops": [0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99], "respondents": 20000, "replications": 100000},
    quick={"sizes": [5], "epsilons": [1.0, 2.0], "tops": [0.0, 0.9], "respondents": 20000, "replications": 4000},
    points=grid(part=["formula"], k="sizes", epsilon="epsilons", top="tops")
    + grid(part=["simulated"], k=[5], epsilon=[1.0], top=[0.9], n=Single("respondents"),
           replications=Single("replications")),
    measure=savings, judge=_savings_verdict,
    draw=picture(panel("{k:g} answers", "share of the commonest answer", "respondents saved, %",
                       curves("top", lambda rows: 100 * (1 - rows.ratio("optimum", "subset_selection")),
                              "ε = {epsilon:g}", by=("epsilon",), marker="o", ms=3),
                       where={"part": "formula"}, each="k", ylim=(-1, None)), width=5.0),
    caption="Respondents that the optimal channel saves over subset selection of the best size; at 0 the shares are "
    "even.",
)  # fmt: skip
