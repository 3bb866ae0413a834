"""Ways to ask one respondent m yes/no questions, beside the bound that no protocol passes, as an experiment [Scarf]."""

from __future__ import annotations

import math
from typing import Any

from ldpopt.reproduce.drawing import line, panel, picture
from ldpopt.reproduce.experiment import Experiment, Row, Table, Verdict, grid, outcome_of
from ldpopt.survey.plan.booklets import EXACT, rule


def _one(epsilon: float) -> float:
    """coth(eps/2)^2 / 4: the variance of a share, for one respondent, by randomized response."""
    return 0.25 / math.tanh(epsilon / 2) ** 2


def asked(m: float, epsilon: float) -> Row:
    """The variance of each of m even shares, times the respondents, by seven ways to ask, and the proved least."""
    m = int(m)
    sampled = max(1, min(m, int(epsilon / 2.5)))
    # Half of the vectors are near a vector of answers; for even m those in the middle are on both sides [DJW].
    near = 2 ** (m - 1) + (math.comb(m, m // 2) / 2 if m % 2 == 0 else 0)
    spread = near / math.comb(m - 1, m // 2)
    best = 0.25 * m / rule(m, epsilon)
    least = math.tanh(epsilon / 2) ** 2 if epsilon <= math.log(3) else math.expm1(epsilon) / 8
    return {
        "split": _one(epsilon / m),
        "half-space": spread**2 * _one(epsilon),
        "fakes": m**2 * _one(epsilon),  # the amplified epsilon holds where one answer changes, not the whole vector
        "sampled": m / sampled * _one(epsilon / sampled),
        "one": m * _one(epsilon),
        "rule": best,
        "bound": best if m <= EXACT else 0.25 * m / least,
    }


def _verdict(table: Table) -> Verdict:
    ratio = table.column("rule") / table.column("bound")
    others = ("split", "half-space", "fakes", "sampled", "one")
    gains = {name: float((table.column(name) / table.column("rule")).max()) for name in others}
    small = ratio[table.column("epsilon") <= math.log(3)]
    return Verdict(
        outcome_of(ratio, tolerance=1e-9),
        f"Attained for ε up to ln 3 ({small.max() - 1:.1g} away) and for up to {EXACT} questions; elsewhere at most "
        f"{ratio.max():.3g} times the bound. Splitting ε needs up to {gains['split']:.3g} times the respondents.",
        {f"{name} over the rule, largest": gain for name, gain in gains.items()},
    )


def _ways(ax: Any, table: Table) -> None:
    for at, name in enumerate(("split", "half-space", "fakes", "one", "rule", "bound")):
        rows = next(rows for m, rows in table.groups("m") if m == 10)
        line(ax, rows.column("epsilon"), rows.column(name) / rows.column("bound"), at, name, marker="o", ms=3)


QUESTIONNAIRE = Experiment(
    "questionnaire-rule", "[Scarf; DJW]",
    "No ε-LDP protocol estimates m yes/no shares with less than m/(4ρ²) per respondent, ρ² = tanh²(ε/2) up to ln 3.",
    full={"sizes": [2, 3, 5, 7, 10, 30], "epsilons": [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0]},
    quick={"sizes": [3, 10], "epsilons": [0.5, 1.0, 2.0]},
    points=grid(m="sizes", epsilon="epsilons"),
    measure=asked, judge=_verdict,
    draw=picture(panel("ten yes/no questions: variance over the bound", "ε (nats)", "variance / bound", _ways,
                       legend="upper left", scale="xy", ylim=(0.8, 1e4)), width=6.2, height=4.2),
    caption="Ways to ask ten yes/no questions of one respondent, over the variance that no protocol can be below.",
)  # fmt: skip
