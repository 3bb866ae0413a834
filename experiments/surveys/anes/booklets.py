"""Ten questions of the 1996 election study, split and by booklets: writes booklets.csv.

    python experiments/surveys/anes/booklets.py [replications ["even" or "of the file"]]

Ten yes/no questions (income above four levels, education above three, party beyond two, vote) are asked at the same
epsilon of the same 944 respondents, once with epsilon split over the questions and once by booklets. The errors are
root mean squares over replications and questions, about the shares of the file. The planned ratio is the root of the
ratio of the respondents that the two plans need. With an even pilot, the planner's own, all of the file is asked; the
predicted ratio is then of the variances that the plans' channels have at the file's shares, less that of drawing the
respondents, who are all there is. With the file's shares as the pilot, 944 respondents are drawn from the file for each
survey, as from a population, which is what the plan is for.
"""

from __future__ import annotations

import csv
import math
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from ldpopt.channel import Channel
from ldpopt.datasets import load_anes96
from ldpopt_survey import Counts, Plan, QuestionSpec, Simulated, Survey, SurveySpec, plan_survey
from ldpopt_survey.estimate.linear import contrast_variances

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


def error(survey: Survey, frame: pd.DataFrame, replications: int, drawn: bool = False) -> float:
    """The root mean square error of the shares; `drawn` if each survey draws its respondents from the frame."""
    truth = {name: float((frame[name] == "yes").mean()) for name in frame.columns}
    off = []
    for seed in range(replications):
        people = frame.sample(len(frame), replace=True, random_state=seed) if drawn else frame
        table = survey.privatize(people, Simulated(seed)).to_pandas()
        counts = {
            (q.name,): table[q.name].astype(str).value_counts().reindex(q.reports, fill_value=0).to_numpy()
            for q in survey.plan.questions
        }
        found = survey.estimates(Counts(survey.plan.checksum, len(frame), counts))
        off += [found[name].values[1] - share for name, share in truth.items()]
    return float(np.sqrt(np.mean(np.square(off))))


def predicted(plan: Plan, frame: pd.DataFrame, drawn: bool = False) -> float:
    """The root mean square error that the channels of a plan have about the shares of the file."""
    truth = (frame == "yes").mean()
    told = dict.fromkeys(frame.columns, 0.0)
    for question in plan.questions:
        names = [part.name for part in question.answers]
        cells, law = np.arange(2 ** len(names)), np.ones(1)
        for name in names:
            law = np.outer(law, [1 - truth[name], truth[name]]).ravel()
        yes = np.array([(cells >> at) & 1 for at in range(len(names))[::-1]], dtype=float)
        variances = contrast_variances(Channel(question.channel.matrix), law, yes)
        for name, variance in zip(names, variances, strict=True):
            told[name] += float(question.probability) / variance
    variances = [1 / told[name] - (not drawn) * truth[name] * (1 - truth[name]) for name in frame.columns]
    return math.sqrt(float(np.mean(variances)) / len(frame))


def main(replications: int = 400, *pilots: str) -> None:
    """Compare the two ways and write the table, whose lines about other pilots than those named are kept."""
    table = Path(__file__).with_suffix(".csv")
    with table.open(newline="") as file:
        made = [row for row in csv.DictReader(file) if pilots and row["pilot"] not in pilots]
    frame = answers()
    shares = (frame == "yes").mean()
    for pilot, epsilon in product(pilots or ("even", "of the file"), EPSILONS):
        drawn = pilot == "of the file"
        asked = tuple(
            QuestionSpec(name, ("no", "yes"), pilot=[1 - shares[name], shares[name]] if drawn else None)
            for name in frame.columns
        )
        ways = ("split", "booklets")
        plans = {way: plan_survey(SurveySpec("s", asked, epsilon=epsilon, design=way)) for way in ways}
        errors = {way: error(Survey(one.plan), frame, replications, drawn) for way, one in plans.items()}
        promised = math.sqrt(plans["split"].respondents / plans["booklets"].respondents)
        expected = {way: predicted(one.plan, frame, drawn) for way, one in plans.items()}
        made.append({"pilot": pilot, "epsilon": epsilon, "surveys": replications,
                     **{f"error, {way}": round(one, 5) for way, one in errors.items()},
                     "ratio": round(errors["split"] / errors["booklets"], 4),
                     "planned": round(promised, 4),
                     "predicted": round(expected["split"] / expected["booklets"], 4)})  # fmt: skip
        print(*made[-1].values(), flush=True)
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, made[0])
        writer.writeheader()
        writer.writerows(made)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400, *sys.argv[2:])
