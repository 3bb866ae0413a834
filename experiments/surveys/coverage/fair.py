"""Whether logistic regressions of four private answers cover: ever had an affair ~ years + religiosity + rating.

    python experiments/surveys/coverage/fair.py [replications [method ...]]

Respondents are drawn anew from the 6,366 of `fair` (statsmodels). Their outcome is drawn from the regression fitted to
all, or is their own, in which case that regression is not the law of the outcome but what it would be fitted to. Its
slopes are the truth in both. Every answer has randomized response with a quarter of epsilon. `fair.csv` has for each
slope the share of 95 % intervals that cover it, the mean of the estimates, their scatter and the mean standard error.
"""

from __future__ import annotations

import csv
import sys
from itertools import product
from pathlib import Path

import numpy as np
import statsmodels.api as sm

from ldpopt.errors import LdpoptError, SolverError
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import logit_by_moments, logit_regression

COLUMNS = {"yrs": "yrs_married", "rel": "religious", "mar": "rate_marriage"}
HEADER = (
    "method", "outcome", "epsilon", "n", "surveys", "by moments", "penalised", "not fitted", "slope", "truth",
    "covered, %", "mean", "scatter", "standard error",
)  # fmt: skip


def by_default(formula, data, channels):
    """By moments, else by the likelihood, as `Respondents.logit` and `ldpopt survey regress`."""
    try:
        return logit_by_moments(formula, data, channels)
    except SolverError:
        return logit_regression(formula, data, channels)


METHODS = {"likelihood": logit_regression, "default": by_default}


def main(replications: int = 400, *methods: str) -> None:
    """Both outcomes, both budgets and both sizes, by both methods or those that are named; others' lines are kept."""
    fair = sm.datasets.fair.load_pandas().data
    x = {name: fair[column].to_numpy() for name, column in COLUMNS.items()}
    y = (fair["affairs"] > 0).to_numpy().astype(int)
    whole = sm.Logit(y, sm.add_constant(np.column_stack(list(x.values())))).fit(disp=0)
    truth, chance = whole.params[1:], whole.predict()
    kinds = {name: np.unique(column) for name, column in x.items()}
    path = Path(__file__).with_suffix(".csv")
    methods = methods or tuple(METHODS)
    with path.open(newline="", encoding="utf-8") as file:
        kept = [line for line in list(csv.reader(file))[1:] if line[0] not in methods and line[0] in METHODS]
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerows([HEADER, *kept])
        settings = product(methods, ("of the file", "of the model"), (6.0, 3.0), (len(fair), 50_000))
        for method, outcome, epsilon, n in settings:
            channels = {
                name: randomized_response(len(of), epsilon / 4, inputs=of.tolist()) for name, of in kinds.items()
            }
            channels["aff"] = randomized_response(2, epsilon / 4)
            rng = np.random.default_rng([20261123, int(epsilon), n])
            fits, failed = [], 0
            for _ in range(replications):
                who = rng.integers(0, len(fair), n)
                places = {name: np.searchsorted(kinds[name], x[name][who]) for name in kinds}
                data = {name: kinds[name][channels[name].sample_indices(at, rng)] for name, at in places.items()}
                drawn = (rng.random(n) < chance[who]).astype(int)
                data["aff"] = channels["aff"].sample_indices(drawn if outcome == "of the model" else y[who], rng)
                try:
                    fits.append(METHODS[method]("aff ~ yrs + rel + mar", data, channels))
                except LdpoptError:
                    failed += 1
            b, se = (
                np.array([getattr(one, part)[0, 1:] for one in fits]) for part in ("coefficients", "standard_errors")
            )
            covered = 100 * (np.abs(b - truth) <= 1.959964 * se).mean(axis=0)
            ways = [sum(one.method == way for one in fits) for way in ("moments", "penalised likelihood")]
            for at, name in enumerate(COLUMNS):
                numbers = (f"{one:.3f}" for one in (b[:, at].mean(), b[:, at].std(), se[:, at].mean()))
                lines.writerow([method, outcome, epsilon, n, replications, *ways, failed, name, f"{truth[at]:.3f}",
                                f"{covered[at]:.1f}", *numbers])  # fmt: skip
            file.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400, *sys.argv[2:])
