"""Questionnaires at uneven pilots: the certified channel of each, and the respondents that the planner asks for.

    python experiments/surveys/questionnaires/uneven.py            # writes uneven.csv; about three minutes
    python experiments/surveys/questionnaires/uneven.py --quick    # two shapes, nothing written
    python experiments/surveys/questionnaires/uneven.py --large    # 36 and 64 cells, nothing written; about ten minutes

The pilots are drawn from Dirichlet(4, ..., 4), seed 1. Exit code 1: a value is below its bound.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np

from ldpopt import FisherInformation, LocalDP, Marginals, optimal_channel
from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey

SHAPES = [(2, 2, 2, 2), (2, 3, 4), (3, 3, 3), (2, 10), (4, 6), (2,) * 5, (2, 2, 8), (3, 3, 4)]
LARGE = [(2, 2, 3, 3), (6, 6), (4, 4, 4), (8, 8), (2,) * 6]
EPSILONS = [0.5, 1.0, 2.0, 3.0]


def pilots(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Uneven shares of each question."""
    rng = np.random.default_rng(1)
    return [rng.dirichlet(np.full(k, 4.0)) for k in shape]


def row(shape: tuple[int, ...], epsilon: float) -> list[object]:
    """What was designed, what is proved, and the respondents for shares within 5 points."""
    criterion, shares = Marginals(shape), pilots(shape)
    start = time.process_time()
    design = optimal_channel(FisherInformation(criterion.pilot(*shares), criterion), LocalDP(epsilon))
    took = time.process_time() - start
    questions = tuple(
        QuestionSpec(f"q{j}", tuple(f"a{x}" for x in range(len(own))), pilot=tuple(own)) for j, own in enumerate(shares)
    )
    plan = plan_survey(SurveySpec("uneven", questions, epsilon=epsilon))
    told = [plan.split, plan.one_question, plan.respondents, plan.least]
    gap = f"{design.relative_gap:.2g}"
    return ["x".join(map(str, shape)), epsilon, design.value, gap, design.certified, round(took, 1), *told]


def main() -> int:
    """Print the rows, and write them."""
    quick, large = ("--quick" in sys.argv[1:]), ("--large" in sys.argv[1:])
    names = ["answers", "epsilon", "value", "gap", "certified", "seconds", "split", "one_question", "booklets", "least"]
    rows = []
    for shape in LARGE if large else SHAPES[:2] if quick else SHAPES:
        for epsilon in EPSILONS:
            rows.append(row(shape, epsilon))
            print(*rows[-1], flush=True)
    if not quick and not large:
        with Path(__file__).with_name("uneven.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([names, *rows])
    print(sum(bool(one[4]) for one in rows), "of", len(rows), "certified")
    return int(any(float(str(one[8])) < float(str(one[9])) for one in rows))


if __name__ == "__main__":
    sys.exit(main())
