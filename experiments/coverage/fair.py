"""Whether logistic regressions of four private answers cover: ever had an affair ~ years + religiosity + rating.

    python experiments/coverage/fair.py [replications]

Respondents are drawn anew from the 6,366 of `fair` (statsmodels), and their outcome from the regression fitted to all,
which is the truth. Every answer has randomized response with a quarter of epsilon. A line gives the share of 95 %
intervals that cover each slope, how often the likelihood was penalised, the mean of the slopes, and their scatter
beside the standard errors.
"""

from __future__ import annotations

import sys

import numpy as np
import statsmodels.api as sm

from ldpopt.errors import LdpoptError
from ldpopt.mechanisms import randomized_response
from ldpopt.survey import logit_regression

COLUMNS = {"yrs": "yrs_married", "rel": "religious", "mar": "rate_marriage"}


def main(replications: int = 400) -> None:
    """Both budgets and both sizes."""
    fair = sm.datasets.fair.load_pandas().data
    x = {name: fair[column].to_numpy() for name, column in COLUMNS.items()}
    y = (fair["affairs"] > 0).to_numpy().astype(int)
    fit = sm.Logit(y, sm.add_constant(np.column_stack(list(x.values())))).fit(disp=0)
    truth, chance = fit.params[1:], fit.predict()
    print("truth", truth.round(3), flush=True)
    kinds = {name: np.unique(column) for name, column in x.items()}
    for epsilon in (3.0, 6.0):
        channels = {name: randomized_response(len(of), epsilon / 4, inputs=of.tolist()) for name, of in kinds.items()}
        channels["aff"] = randomized_response(2, epsilon / 4)
        for n in (len(fair), 50_000):
            rng = np.random.default_rng([20261123, int(epsilon), n])
            values, errors, penalised, failed = [], [], 0, 0
            for _ in range(replications):
                who = rng.integers(0, len(fair), n)
                places = {name: np.searchsorted(kinds[name], x[name][who]) for name in kinds}
                data = {name: kinds[name][channels[name].sample_indices(at, rng)] for name, at in places.items()}
                data["aff"] = channels["aff"].sample_indices((rng.random(n) < chance[who]).astype(int), rng)
                try:
                    made = logit_regression("aff ~ yrs + rel + mar", data, channels)
                except LdpoptError:
                    failed += 1
                    continue
                penalised += made.method != "likelihood"
                values.append(made.coefficients[0, 1:])
                errors.append(made.standard_errors[0, 1:])
            b, se = np.array(values), np.array(errors)
            covered = (np.abs(b - truth) <= 1.959964 * se).mean(axis=0)
            print(f"epsilon {epsilon:g}, n = {n}: covered {covered.round(3)}, penalised {penalised} of {len(b)}, "
                  f"failed {failed}, mean {b.mean(axis=0).round(3)}, scatter {b.std(axis=0).round(3)}, "
                  f"errors {se.mean(axis=0).round(3)}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
