# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A survey, from the plan to the report
#
# Two questions, a privacy budget, and a file of answers. This notebook plans the channels, privatizes the answers,
# estimates the shares from the reports alone, and compares them with the truth, which a real survey would never see.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import csv
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from ldpopt import plots
from ldpopt.privacy import local_dp
from ldpopt_survey import (
    QuestionSpec,
    Simulated,
    Survey,
    SurveySpec,
    plan_survey,
    privatize,
    respondents_needed,
    two_way,
)
from ldpopt_survey.pictures import planning
from ldpopt_survey.reports import survey_report

# %% [markdown]
# ## What is asked, and what is promised
#
# The pilot shares are a guess, perhaps from an older survey. They decide which channel is most precise; privacy does
# not depend on them. The budget is for both reports of a person together: everybody is asked both questions, so that
# their table can be estimated, too. Without `design`, the plan itself chooses what each person is asked.

# %%
spec = SurveySpec(
    "health",
    (
        QuestionSpec("smokes", ("never", "sometimes", "daily"), pilot=(0.7, 0.1, 0.2), half_width=0.04),
        QuestionSpec("drinks", ("no", "yes"), pilot=(0.6, 0.4), half_width=0.04),
    ),
    epsilon=3.0,
    design="split",
)
for needed in respondents_needed(spec, [1.0, 3.0]):
    print(f"epsilon {needed.epsilon}: {needed.respondents:6,} respondents")

# %% [markdown]
# ## The plan
#
# `plan_survey` splits the budget between the questions, designs a channel for each, and rounds it to integers whose
# guarantees are proved.

# %%
planned = plan_survey(spec, n=5000)
plan = planned.plan
for question in plan.questions:
    width = question.expected["half_width_at_hand"]
    print(
        f"{question.name}: epsilon {question.epsilon:.4f}, widest interval ±{100 * width:.1f} points, 5000 respondents"
    )

# %%
planning(plan).figure

# %% [markdown]
# ## Privatize
#
# A real survey draws its random numbers from a secret key of the operating system. Here a seed stands in for the key,
# so that the notebook always shows the same; the reports then say of themselves that they are simulated.

# %%
folder = tempfile.TemporaryDirectory()
raw, sent = Path(folder.name, "answers.csv"), Path(folder.name, "reports.csv")
rng = np.random.default_rng(2026)
smokes = rng.choice(["never", "sometimes", "daily"], size=5000, p=[0.62, 0.13, 0.25])
drinks = np.where(rng.random(5000) < np.where(smokes == "daily", 0.6, 0.3), "yes", "no")
raw.write_text("smokes,drinks\n" + "".join(f"{a},{b}\n" for a, b in zip(smokes, drinks, strict=True)), encoding="utf-8")
tally = privatize(plan, raw, sent, Simulated(rng))
print(f"{tally.rows} reports; the first three:")
print(*sent.read_text("utf-8").splitlines()[:4], sep="\n")

# %% [markdown]
# From here on the raw file is not needed, and a real one would be deleted. The notebook keeps the answers themselves,
# to compare the estimates with them.
#
# ## Estimate
#
# The plan knows the channels, so the reports and the plan are enough.

# %%
survey = Survey(plan)
found, counts = survey.findings(sent)
found["smokes"].whole

# %%
truth = [(smokes == answer).mean() for answer in plan.question("smokes").categories]
whole = found["smokes"].whole
interval = whole.intervals()
plots.shares(whole.labels, whole.values, interval.lower, interval.upper, truth).figure

# %% [markdown]
# The diamonds are the shares among the very people who were asked. Each interval should contain its share in 95 % of
# all surveys; all three together do so less often.

# %%
for label, low, high, share in zip(whole.labels, interval.lower, interval.upper, truth, strict=True):
    print(f"{label:10} {share:.4f} is {'within' if low <= share <= high else 'outside'} [{low:.4f}, {high:.4f}]")

# %% [markdown]
# ## Do the two answers go together?
#
# Reports of one person can be analysed together. In this population, people who smoke daily drink more often. The table
# shows it, although it is made of reports alone.

# %%
with sent.open(encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
first, second = ([int(row[name]) for row in rows] for name in ("smokes", "drinks"))
together = two_way(first, second, plan.question("smokes").channel, plan.question("drinks").channel)
together

# %%
table = together.proportions
for label, row in zip(plan.question("smokes").categories, table, strict=True):
    seen = (drinks[smokes == label] == "yes").mean()
    print(f"{label:10} drink: {row[1] / row.sum():.1%} by the reports, {seen:.1%} in truth")

# %% [markdown]
# ## The page
#
# One file, for printing and for the archive: shares with intervals, channels, and what respondents were promised.

# %%
page = survey_report(plan, found, counts)
print(f"{len(page) / 1000:.0f} kB of HTML; it says that it is a simulation: {'Simulation' in page}")
folder.cleanup()

# %% [markdown]
# ## Exercises
#
# 1. How many respondents does a half-width of 2 instead of 4 percentage points take? Guess first.
# 2. How wide would the intervals be without privacy, with 5000 respondents and the pilot shares?
# 3. Print the channel of *smokes*. It has a report more than there are answers: what does it tell, and does the
#    measured $\varepsilon$ stay within the plan?
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. Four times as many: the half-width falls like one over the square root of the number.
finer = replace(spec, questions=tuple(replace(one, half_width=0.02) for one in spec.questions))
for asked in (spec, finer):
    print(f"±{asked.questions[0].half_width:.0%}: {respondents_needed(asked, [3.0])[0].respondents:,} respondents")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. That of a share p is 1.96 times the root of p(1 - p)/n; the widest is that of the share nearest to a
# half.
for one in spec.questions:
    widest = max(1.96 * np.sqrt(p * (1 - p) / 5000) for p in one.pilot)
    print(f"{one.name}: ±{100 * widest:.1f} points")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. The last report is likelier after "sometimes" and "daily" alike, by the factor that epsilon allows: it tells
# both of them from "never", and not from each other.
print(plan.question("smokes").channel.matrix.round(3))
print(local_dp(plan.question("smokes").channel), " planned:", plan.question("smokes").epsilon)
