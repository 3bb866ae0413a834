"""Chi-square test of 100 million keystream reports for each row of several channels.

    python experiments/surveys/sampler_chi_square.py [DRAWS]

Prints a p-value for each row, and the Kolmogorov-Smirnov p-value of all of them against uniform.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy import stats

from ldpopt.exact import round_exact
from ldpopt_survey.collect.coding import Sampler
from ldpopt_survey.collect.words import Keystream, SecretKey

STEP = 1 << 22


def randomized_response(k: int, epsilon: float) -> np.ndarray:
    e = math.exp(epsilon)
    return (np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1)


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    channels = {
        "binary, epsilon 1": randomized_response(2, 1.0),
        "24 answers, epsilon 1": randomized_response(24, 1.0)[:3],
        "dense random rows": np.random.default_rng(0).dirichlet(np.ones(24), 3),
        "400 outputs": np.random.default_rng(1).dirichlet(np.ones(400), 2),
    }
    key, values = SecretKey.fresh(), []
    for number, (name, matrix) in enumerate(channels.items()):
        exact = round_exact(matrix)
        sampler = Sampler(exact)
        for x in range(len(matrix)):
            stream, counts = Keystream(key, number, x), np.zeros(matrix.shape[1], np.int64)
            for start in range(0, draws, STEP):
                answers = np.full(min(STEP, draws - start), x, np.uint8 if len(matrix) < 256 else np.uint16)
                counts += np.bincount(sampler.reports(answers, stream), minlength=len(counts))
            expected = exact.matrix[x] * draws
            common = expected >= 5
            statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
            values.append(stats.chi2.sf(statistic, common.sum() - 1))
            print(f"{name}, row {x}: chi-square {statistic:.2f}, p = {values[-1]:.4f}", flush=True)
    print(f"all rows: Kolmogorov-Smirnov p = {stats.kstest(values, 'uniform').pvalue:.4f}")


if __name__ == "__main__":
    main()
