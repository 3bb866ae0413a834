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
# # From zero to theory
#
# What is a private answer, how is privacy measured, and which way of answering is best? This notebook starts with a
# spinner and ends with a proof. It needs no knowledge of privacy, only probabilities and matrices.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linprog

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel, plots
from ldpopt.divergences import KL
from ldpopt.privacy import local_dp, total_variation
from ldpopt_survey import estimate

# %% [markdown]
# ## A spinner
#
# A person is asked a question that may embarrass: *have you ever evaded taxes?* Nobody should have to trust the
# interviewer. So each person turns a spinner where nobody sees it: with probability 3/4 the report is the true answer,
# and with probability 1/4 it is the opposite. The interviewer sees the report alone.
#
# All of this is in one matrix, the *channel*. It has a row for each true answer and a column for each report, and
# each row sums to one.

# %%
channel = np.array([[0.75, 0.25], [0.25, 0.75]])
rng = np.random.default_rng(1965)
answers = rng.random(10_000) < 0.2
reports = np.where(rng.random(10_000) < 0.75, answers, ~answers)
print(f"{answers.mean():.1%} of the answers are yes, but {reports.mean():.1%} of the reports are")

# %% [markdown]
# A single report proves nothing about the person behind it. Many reports together still tell the share: if a share
# $p$ of the answers is *yes*, then a share $\tfrac34 p + \tfrac14 (1-p)$ of the reports is. That can be solved for
# $p$. The interval is wider than that of an open question, and that is the price of privacy.

# %%
estimate([(~reports).sum(), reports.sum()], channel)

# %% [markdown]
# ## How private is it?
#
# Compare two rows of the channel, that is, what two different answers would have led to.
#
# - **Odds.** The report *yes* is three times as probable after the answer *yes* as after *no*. Whatever odds somebody
#   gave the two answers before, the report changes them by a factor of at most 3. The logarithm of this factor is
#   $\varepsilon$ (*local differential privacy*).
# - **Guesses.** Somebody who must guess between two equally probable answers is right with probability 3/4 after
#   seeing the report. That is $(1 + \eta)/2$ with $\eta = 1/2$, the *total variation* of the two rows.

# %%
print(f"by hand: epsilon = log 3 = {np.log(3):.6f}, eta = {0.5 * np.abs(channel[0] - channel[1]).sum()}")
print(local_dp(channel), total_variation(channel), sep="\n")

# %% [markdown]
# The package prints bounds: they are rounded up, so that no guarantee is smaller than the truth.
#
# ## Which channel is best? Two answers
#
# Suppose that you want to tell two populations apart: in one, 60 % would answer *yes*; in the other 30 %. Every
# channel with two reports has two free numbers, the probabilities $a$ and $b$ of the report 1 after the two answers.
# The limit on the odds says $a \le e^\varepsilon b$ and $b \le e^\varepsilon a$, and the same for $1-a$ and $1-b$.
# That is a four-sided region. How much a channel keeps can be drawn over it.

# %%
epsilon, p0, p1 = 1.0, np.array([0.4, 0.6]), np.array([0.7, 0.3])
utility = Divergence(KL, p0, p1)
a, b = np.meshgrid(np.linspace(0.005, 0.995, 120), np.linspace(0.005, 0.995, 120))
factor = np.exp(epsilon)
allowed = (a <= factor * b) & (b <= factor * a) & (1 - a <= factor * (1 - b)) & (1 - b <= factor * (1 - a))
m0, m1 = p0[0] * a + p0[1] * b, p1[0] * a + p1[1] * b
kept = m0 * np.log(m0 / m1) + (1 - m0) * np.log((1 - m0) / (1 - m1))

figure = Figure(figsize=(5.6, 4.4), layout="constrained")
ax = figure.subplots()
levels = ax.contourf(
    a, b, np.where(allowed, kept, np.nan), levels=np.linspace(0, 0.05, 11), cmap="viridis", extend="max"
)
corner = np.array([1, factor]) / (1 + factor)
ax.plot(corner, corner[::-1], "o", color="#D55E00", ms=9, clip_on=False)
ax.set(xlabel="a = Pr(report 1 | answer 1)", ylabel="b = Pr(report 1 | answer 2)", aspect="equal")
ax.set_title("All channels of two answers with ε = 1", loc="left", fontsize=10.5)
figure.colorbar(levels, ax=ax, label="kept, in nats")
figure

# %% [markdown]
# What is kept is zero on the diagonal, where the report does not depend on the answer, and grows towards the two
# corners. It is a *convex* function, and a convex function is largest at a corner. The corner is a spinner like the one
# above, with odds of exactly $e^\varepsilon$: randomized response is the best channel with two reports. The package
# compares it with channels of any number of reports, and finds the same channel.

# %%
design = optimal_channel(utility, LocalDP(epsilon))
print(design.channel.matrix.round(6), "\ncorner:", corner.round(6))

# %% [markdown]
# ## Three answers: seven columns are enough
#
# With three answers there are many more channels, and perhaps with many reports. The same idea works for the
# *columns*. A column is allowed if no two of its entries are more than a factor $e^\varepsilon$ apart. The corners of
# this set are the *staircase columns*: some entries are $e^\varepsilon$ and the others are 1. An optimal channel uses
# only these [KOV14, Thm 2]. There are $2^3 - 1 = 7$ of them, and what remains is a linear program: how much of each?

# %%
p0, p1 = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
sets = [[(number >> x) & 1 for x in range(3)] for number in range(7)]
columns = np.where(np.array(sets, dtype=bool), factor, 1.0)
q0, q1 = columns @ p0, columns @ p1
solution = linprog(-q0 * np.log(q0 / q1), A_eq=columns.T, b_eq=np.ones(3))
for pattern, weight in zip(sets, solution.x, strict=True):
    print("favours", [x for x in range(3) if pattern[x]], f"with weight {abs(weight):.6f}")
design = optimal_channel(Divergence(KL, p0, p1), LocalDP(epsilon))
print(f"by hand {-solution.fun:.9f}, by the package {design.value:.9f}")

# %% [markdown]
# ## A second promise
#
# Let us keep $\varepsilon = 1$ and also promise that guesses are hardly better than chance: $\eta \le 0.2$. The obvious
# way is to say nothing at all from time to time, an *erased* report. The channel from above has $\eta =
# \tanh(\varepsilon/2) = 0.46$, so it may speak in a share $0.2/0.46$ of all cases, and keeps this share of its value.
# The optimal channel erases reports, too, but those of another channel: it has three blocks instead of two, and keeps
# more.

# %%
capped = optimal_channel(Divergence(KL, p0, p1), [LocalDP(epsilon), TotalVariation(0.2)])
erased = 0.2 / np.tanh(epsilon / 2) * design.value
blocks = [len(np.unique(one.channel.matrix, axis=0)) for one in (design, capped)]
print(f"blocks: {blocks[0]} before, {blocks[1]} now")
print(f"kept: {erased:.6f} by the channel from above with erased reports, {capped.value:.6f} by the optimal channel")
capped

# %%
plots.channel(capped.channel).figure

# %% [markdown]
# ## Why nothing better exists
#
# A search that finds nothing better is no proof. The proof is *duality*: choose a price $\lambda_x$ for each answer.
# If no allowed column is worth more than its price $\sum_x \lambda_x s_x$, then no channel keeps more than $\sum_x
# \lambda_x$, because the columns of a channel add up to one in each row. The linear program gives the prices. A reader
# who doubts them needs to check only seven columns: every allowed column is a mixture of these, up to a factor, and a
# mixture is worth no more than its parts. The check is of the first design, without the second promise.

# %%
prices = -solution.eqlin.marginals
worth = q0 * np.log(q0 / q1)
print(f"{'column':22} {'worth':>9} {'price':>9}")
for column, one, price in zip(columns, worth, columns @ prices, strict=True):
    print(f"{np.array2string(column, precision=3):22} {one:9.6f} {price:9.6f}")
print(f"sum of the prices: {prices.sum():.9f}, kept: {-solution.fun:.9f}")

# %% [markdown]
# No column is worth more than its price, and the prices add up to what the channel keeps. So it is optimal. Every
# *certified* design carries such a proof, its certificate. Here `verify` checks that of the design with both promises,
# without any solver.

# %%
capped.verify()

# %% [markdown]
# ## Exercises
#
# 1. What share of *yes* among the reports belongs to a share of 35 % *yes* among the answers? Which share of
#    answers belongs to 30 % *yes* among the reports?
# 2. From which $\eta$ on does the cap cost nothing at $\varepsilon = 1$? Compute it by hand, and design once just
#    below it and once above it.
# 3. Change one price of the proof by a hundredth. Which columns refute it?
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. Multiply by the channel, and solve for the share.
print("reports:", np.array([0.65, 0.35]) @ channel)
print(f"answers: {(0.30 - 0.25) / (0.75 - 0.25):.2f}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. From tanh(1/2) on, which is the total variation of the design without a cap.
print(f"tanh(1/2) = {np.tanh(0.5):.6f}, measured {total_variation(design.channel).value:.6f}")
for cap in (0.46, 0.47):
    under = optimal_channel(Divergence(KL, p0, p1), [LocalDP(epsilon), TotalVariation(cap)])
    print(f"eta {cap}: keeps {under.value:.9f} of {design.value:.9f}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. A lower price is refuted by each column that is then worth more than it costs.
lower = prices - np.array([0.01, 0, 0])
for column, one, price in zip(columns, worth, columns @ lower, strict=True):
    if one > price + 1e-9:
        print(f"{column.round(3)} is worth {one:.6f} and costs {price:.6f}")
