"""How often tests at level 5 % reject what is true, with few respondents: writes sizes.csv beside this file.

    python experiments/surveys/coverage/sizes.py [surveys]

Randomized response of even and of falling shares. Goodness of fit is tested against the truth, two samples are of one
population, and the rows and columns of a table are independent.
"""

from __future__ import annotations

import csv
import sys
from itertools import product
from pathlib import Path

import numpy as np

from ldpopt.errors import LdpoptError
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import CountTable, goodness_of_fit, two_sample, two_way

SIZES, EPSILONS, ANSWERS = (20, 30, 100, 1000), (1.0, 3.0), (2, 4)


def p_values(p, channel, n, rng):
    """The p-value of each test in one survey; NaN if it is refused."""
    k = len(p)

    def counts():
        return CountTable.from_counts(rng.multinomial(n, channel.push(p)), channel.outputs)

    def independence():
        rows, columns = (channel.sample_indices(rng.choice(k, n, p=p), rng) for _ in range(2))
        return two_way(rows, columns, channel, channel).independence()

    for test in (
        lambda: goodness_of_fit(counts(), channel, p), lambda: two_sample(counts(), counts(), channel), independence
    ):  # fmt: skip
        try:
            yield test().p_value
        except LdpoptError:
            yield np.nan


def main(surveys: int = 2000) -> None:
    """All settings."""
    with Path(__file__).with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["test", "answers", "epsilon", "truth", "n", "surveys", "rejected, %", "refused"])
        for k, epsilon, truth, n in product(ANSWERS, EPSILONS, ("even", "falling"), SIZES):
            rng = np.random.default_rng([20261123, k, int(10 * epsilon), n])
            p = np.full(k, 1 / k) if truth == "even" else 1 / np.arange(1, k + 1) ** 2.0
            channel = randomized_response(k, epsilon)
            found = np.array([list(p_values(p / p.sum(), channel, n, rng)) for _ in range(surveys)])
            for test, values in zip(("goodness of fit", "two samples", "independence"), found.T, strict=True):
                known = values[~np.isnan(values)]
                rejected = f"{100 * (known < 0.05).mean():.2f}" if len(known) else ""
                lines.writerow([test, k, epsilon, truth, n, surveys, rejected, surveys - len(known)])
            file.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
