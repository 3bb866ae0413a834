"""Ten questions of the 1996 election study, split and by booklets: writes booklets.csv.

    python experiments/anes/booklets.py [replications]

Ten yes/no questions (income above four levels, education above three, party beyond two, vote) are asked at the same
epsilon of the same 944 respondents, once with epsilon split over the questions and once by booklets. The errors are
root mean squares over replications and questions, about the shares of the file; the planned ratio is the root of the
ratio of the respondents that the two plans need.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from ldpopt.datasets import load_anes96
from ldpopt.survey import Counts, QuestionSpec, Simulated, Survey, SurveySpec, plan_survey

EPSILONS = (1.0, 2.0, 3.0)


ABOVE = {"income": (7, 12, 16, 19), "education": (2, 3, 5), "party": (1, 4), "vote": (0,)}
"""The categories beyond which the answer is yes."""


def answers() -> pd.DataFrame:
    """(944, 10) yes or no."""
    columns = load_anes96().columns
    return pd.DataFrame(
        {
            f"{name} {at}": np.where(columns[name].codes > at, "yes", "no")
            for name, levels in ABOVE.items()
            for at in levels
        }
    )


def error(survey: Survey, frame: pd.DataFrame, replications: int) -> float:
    """The root mean square error of the shares."""
    truth = {name: float((frame[name] == "yes").mean()) for name in frame.columns}
    off = []
    for seed in range(replications):
        table = survey.privatize(frame, Simulated(seed)).to_pandas()
        counts = {
            (q.name,): table[q.name].astype(str).value_counts().reindex(q.reports, fill_value=0).to_numpy()
            for q in survey.plan.questions
        }
        found = survey.estimates(Counts(survey.plan.checksum, len(frame), counts))
        off += [found[name].values[1] - share for name, share in truth.items()]
    return float(np.sqrt(np.mean(np.square(off))))


def main(replications: int = 400) -> None:
    """Compare the two ways and write the table."""
    frame, made = answers(), []
    for epsilon in EPSILONS:
        asked = tuple(QuestionSpec(name, ("no", "yes")) for name in frame.columns)
        ways = ("split", "booklets")
        plans = {way: plan_survey(SurveySpec("s", asked, epsilon=epsilon, design=way)) for way in ways}
        errors = {way: error(Survey(one.plan), frame, replications) for way, one in plans.items()}
        promised = math.sqrt(plans["split"].respondents / plans["booklets"].respondents)
        made.append({"epsilon": epsilon, **{f"error, {way}": round(one, 5) for way, one in errors.items()},
                     "ratio": round(errors["split"] / errors["booklets"], 4),
                     "planned": round(promised, 4)})  # fmt: skip
        print(*made[-1].values(), flush=True)
    with (Path(__file__).parent / "booklets.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, made[0])
        writer.writeheader()
        writer.writerows(made)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
