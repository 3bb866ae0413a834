"""Whether logistic regressions of four private answers cover: ever had an affair ~ years + religiosity + rating.

    python experiments/coverage/fair.py [replications]

Respondents are drawn anew from the 6,366 of `fair` (statsmodels). Their outcome is drawn from the regression fitted to
all, or is their own, in which case that regression is not the law of the outcome but what it would be fitted to. Its
slopes are the truth in both. Every answer has randomized response with a quarter of epsilon. `fair.csv` has for each
slope the share of 95 % intervals that cover it, the mean of the estimates, their scatter and the mean standard error.
"""

from __future__ import annotations

import csv
import sys
from functools import reduce
from itertools import product
from pathlib import Path

import numpy as np
import statsmodels.api as sm

from ldpopt.errors import LdpoptError
from ldpopt.mechanisms import randomized_response
from ldpopt.survey import logit_regression
from ldpopt.survey.estimate.counts import positions
from ldpopt.survey.estimate.groups import Source
from ldpopt.survey.regress.moments import moment_regression

COLUMNS = {"yrs": "yrs_married", "rel": "religious", "mar": "rate_marriage"}
HEADER = (
    "method", "outcome", "epsilon", "n", "surveys", "penalised", "not fitted", "slope", "truth", "covered, %", "mean",
    "scatter", "standard error",
)  # fmt: skip


def by_moments(formula, data, channels):
    """`moment_regression` of the reports of all questions as one."""
    names = list(channels)
    at = [positions(data[name], channels[name].outputs) for name in names]
    joint = reduce(lambda one, other: one.product(other), channels.values())
    k = joint.shape[0]
    code = np.ravel_multi_index(at, [channel.shape[1] for channel in channels.values()])
    source = Source("all", joint, code, np.eye(k), np.full(k, 1 / k))
    return moment_regression(formula, {}, {name: channels[name].inputs for name in names}, [source])


def main(replications: int = 400) -> None:
    """By the likelihood both outcomes, both budgets and both sizes; by moments a quarter of the surveys."""
    fair = sm.datasets.fair.load_pandas().data
    x = {name: fair[column].to_numpy() for name, column in COLUMNS.items()}
    y = (fair["affairs"] > 0).to_numpy().astype(int)
    whole = sm.Logit(y, sm.add_constant(np.column_stack(list(x.values())))).fit(disp=0)
    truth, chance = whole.params[1:], whole.predict()
    kinds = {name: np.unique(column) for name, column in x.items()}
    with Path(__file__).with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(HEADER)
        sizes = (len(fair), 50_000)
        settings = [("likelihood", *one) for one in product(("of the model", "of the file"), (3.0, 6.0), sizes)]
        for method, outcome, epsilon, n in [*settings, *(("moments", "of the file", 6.0, n) for n in sizes)]:
            surveys = replications if method == "likelihood" else replications // 4
            channels = {
                name: randomized_response(len(of), epsilon / 4, inputs=of.tolist()) for name, of in kinds.items()
            }
            channels["aff"] = randomized_response(2, epsilon / 4)
            rng = np.random.default_rng([20261123, int(epsilon), n])
            fits, failed = [], 0
            for _ in range(surveys):
                who = rng.integers(0, len(fair), n)
                places = {name: np.searchsorted(kinds[name], x[name][who]) for name in kinds}
                data = {name: kinds[name][channels[name].sample_indices(at, rng)] for name, at in places.items()}
                drawn = (rng.random(n) < chance[who]).astype(int)
                data["aff"] = channels["aff"].sample_indices(drawn if outcome == "of the model" else y[who], rng)
                try:
                    fit = logit_regression if method == "likelihood" else by_moments
                    fits.append(fit("aff ~ yrs + rel + mar", data, channels))
                except LdpoptError:
                    failed += 1
            b, se = (
                np.array([getattr(one, part)[0, 1:] for one in fits]) for part in ("coefficients", "standard_errors")
            )
            covered = 100 * (np.abs(b - truth) <= 1.959964 * se).mean(axis=0)
            penalised = sum(one.method.startswith("penalised") for one in fits)
            for at, name in enumerate(COLUMNS):
                numbers = (f"{one:.3f}" for one in (b[:, at].mean(), b[:, at].std(), se[:, at].mean()))
                lines.writerow([method, outcome, epsilon, n, surveys, penalised, failed, name, f"{truth[at]:.3f}",
                                f"{covered[at]:.1f}", *numbers])  # fmt: skip
            file.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
