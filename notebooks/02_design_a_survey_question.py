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
# # Design a survey question
#
# Do income reports still tell how somebody votes, when nobody but the respondent ever sees the income? This tour takes
# a real question through all steps: two populations, a privacy level, the optimal channel and its certificate, a
# simulated survey, and an estimate from privatized reports.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import numpy as np

from ldpopt import Divergence, LocalDP, TotalVariation, audit, optimal_channel, plots
from ldpopt.datasets import load_anes96
from ldpopt.divergences import KL
from ldpopt.mechanisms import binary_with_erasure, randomized_response
from ldpopt_survey import estimate_contrasts, stein_exponent

survey = load_anes96()
survey

# %% [markdown]
# The American National Election Study of 1996 asked 944 voters for their household income (24 classes) and for whom
# they would vote. These shares stand for what an earlier survey has told us. Only they are used below: no single answer
# is.

# %%
p0, p1 = survey.conditional("income", given="vote")
incomes = survey.labels("income")
utility = Divergence(KL, p0, p1, inputs=incomes)
print(f"{utility.value_without_privacy:.4f} nats of KL divergence between the two electorates, without any privacy")

# %% [markdown]
# ## The optimal channel
#
# We promise $\varepsilon = 2$ and $\eta = 0.4$: no report may change anybody's odds by more than a factor of $e^2 =
# 7.4$. And between two incomes that are equally probable beforehand, one report lets nobody guess right in more than
# 70 % of the cases.

# %%
design = optimal_channel(utility, [LocalDP(2.0), TotalVariation(0.4)])
design

# %% [markdown]
# 24 answers, few reports. The channel sorts the incomes by how much they speak for either candidate, cuts the sorted
# list into blocks, and applies randomized response to the label of the block. Silence (*erased*) keeps the cap on total
# variation.

# %%
ax = plots.blocks(design, names=survey.labels("vote"))
ax.figure

# %% [markdown]
# The certificate says that no channel within these limits keeps more than the upper bound. `verify` recomputes this
# bound without any solver.

# %%
design.verify()

# %% [markdown]
# ## What the textbook would have kept
#
# Randomized response on all 24 answers also tells apart incomes that say nearly the same about the vote. It and the
# binary mechanism are erased until they meet the same cap.

# %%
response = randomized_response(24, 2.0, inputs=incomes)
cap = (np.e**2 - 1) / (np.e**2 + 23)
mechanisms = {
    "optimal channel": design.channel,
    "binary with erasure": binary_with_erasure(p0, p1, 2.0, 0.4),
    "24-ary randomized response": response.erase(max(0.0, 1 - 0.4 / cap)),
}
for name, channel in mechanisms.items():
    kept = utility.value(channel)
    print(f"{name:28} {kept:.6f} nats, {kept / utility.value_without_privacy:6.2%} of what an open question keeps")

# %% [markdown]
# ## How many respondents?
#
# The best test of $P_0$ against $P_1$ misses with a probability that falls like $e^{-n\,\mathrm{KL}}$ in the number $n$
# of reports [CT, Thm 11.8.3]. To bring it down to the order of one in a million takes about

# %%
for name, channel in {"open question": np.eye(24), **mechanisms}.items():
    print(f"{name:28} {np.log(1e6) / stein_exponent(channel, p0, p1):8,.0f} respondents")

# %% [markdown]
# ## A simulated survey
#
# Two thousand respondents with the incomes of the first group send their reports. The channel does not identify all 24
# shares, and was not made to. What it does identify is the share of each block, and differences of blocks are what
# tells the electorates apart.

# %%
rng = np.random.default_rng(1996)
answers = rng.choice(24, size=2000, p=p0)
reports = design.channel.sample([incomes[a] for a in answers], rng)
rows = design.channel.matrix
blocks = [np.flatnonzero((rows == row).all(axis=1)) for row in np.unique(rows, axis=0)]
shares = np.array([np.isin(np.arange(24), block) for block in blocks], dtype=float)
labels = tuple(f"block of {len(block)} with {incomes[block[0]]}" for block in blocks)
found = estimate_contrasts(reports, design.channel, shares, labels)
found

# %%
for label, value, truth in zip(labels, found.values, shares @ p0, strict=True):
    print(f"{label:40} estimated {value:.3f}, true {truth:.3f}")

# %% [markdown]
# ## What each respondent was promised
#
# The audit measures the matrix itself under every notion, rounded up.

# %%
audit(design.channel)

# %% [markdown]
# ## Exercises
#
# 1. How many respondents does the optimal channel need at $\varepsilon = 1$ and at $\varepsilon = 4$, under the same
#    cap and without it? Where does the cap cost more?
# 2. Does the optimal channel depend on the direction, $P_0$ against $P_1$ or $P_1$ against $P_0$? Compare the
#    blocks.
# 3. How many of the four intervals above contain the true share? How many would do so on average, in many surveys?
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. Without a cap the channel for 4 is far more informative, so there the cap is what costs.
for epsilon in (1.0, 4.0):
    for limits in ([LocalDP(epsilon), TotalVariation(0.4)], [LocalDP(epsilon)]):
        other = optimal_channel(utility, limits).channel
        needed = np.log(1e6) / stein_exponent(other, p0, p1)
        print(f"epsilon {epsilon:g}, {'cap 0.4' if len(limits) > 1 else 'no cap '}: {needed:7,.0f} respondents")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The sorted list is the same, and here its cuts are, too. That need not be so.
turned = optimal_channel(Divergence(KL, p1, p0, inputs=incomes), [LocalDP(2.0), TotalVariation(0.4)])
parts = [
    {tuple(np.flatnonzero((one.channel.matrix == row).all(axis=1))) for row in one.channel.matrix}
    for one in (design, turned)
]
print("sizes of the blocks:", *(sorted(map(len, part)) for part in parts), " alike:", parts[0] == parts[1])

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. Each of them does in 95 % of all surveys, so 3.8 of four on average.
ends = found.intervals()
print("of four:", int(((ends.lower <= shares @ p0) & (shares @ p0 <= ends.upper)).sum()))
