"""Respondents of the simplest, the default and the joint plan, and the seconds of each: writes plans.csv.

    python experiments/surveys/questionnaires/plans.py [--brief]

Questionnaires of two to six questions, with even and uneven pilots, at epsilon 1 to 4: one question each, booklets
(the default), and one joint report where all answers together are at most 24; then one question of 40 answers with a
cap on its total variation. Seconds are of the processor, after everything was loaded once.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from time import process_time

import numpy as np

from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey

SEED, JOINT_CELLS = 7, 24
SIZES = ((2, 2), (2, 3), (3, 3), (2, 2, 2), (2, 3, 4), (2,) * 6, (2, 3, 4, 2, 5, 3), (10,) * 6)


def questionnaire(sizes, even):
    """Questions of so many answers."""
    rng = np.random.default_rng([SEED, *sizes])
    laws = [None if even else rng.dirichlet(np.full(k, 2.0)) for k in sizes]
    return tuple(QuestionSpec(f"q{i}", tuple(range(k)), pilot=p) for i, (k, p) in enumerate(zip(sizes, laws)))  # noqa: B905


def planned(asked, **more):
    """A plan, and the seconds that it took."""
    begun = process_time()
    plan = plan_survey(SurveySpec("s", asked, **more))
    return plan, process_time() - begun


def main(sizes=SIZES, epsilons=(1.0, 2.0, 3.0, 4.0)):
    """Plan everything and write the file."""
    planned(questionnaire((2, 3), False), epsilon=2.0)
    made = []
    for kinds in sizes:
        for even in (True, False):
            asked = questionnaire(kinds, even)
            for epsilon in epsilons:
                ways = ["one question", "booklets"] + (["joint"] if math.prod(kinds) <= JOINT_CELLS else [])
                row = {"answers": " ".join(map(str, kinds)), "pilot": "even" if even else "uneven", "epsilon": epsilon}
                for way in ("one question", "booklets", "joint"):
                    plan, seconds = planned(asked, epsilon=epsilon, design=way) if way in ways else (None, "")
                    row[way] = plan.respondents if plan else ""
                    row[f"{way}, s"] = round(seconds, 2) if plan else ""
                    row["joint, estimated"] = round(plan.joint) if plan and math.isfinite(plan.joint) else ""
                    row["closed-form bound"] = plan.least if plan else row["closed-form bound"]
                made.append(row)
    with Path(__file__).with_name("plans.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, made[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(made)
    for even in (True, False):
        plan, seconds = planned(questionnaire((40,), even), epsilon=1.0, eta=0.2)
        print(f"40 answers, {'even' if even else 'uneven'}: {plan.respondents:,} respondents, {seconds:.2f} s")
    return made


if __name__ == "__main__":
    main(SIZES[:2], (2.0,)) if "--brief" in sys.argv else main()
