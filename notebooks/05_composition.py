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
# # Composition
#
# People answer more than once. This tour adds up what their reports reveal: exactly where that is possible, and beside
# the bounds that are usually quoted.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import numpy as np
from matplotlib.figure import Figure

from ldpopt import Ledger, compose, k_fold
from ldpopt.composition import (
    advanced_composition,
    compose_same_input,
    gaussian_limit,
    kov15,
    largest_count,
    largest_epsilon,
)
from ldpopt.mechanisms import randomized_response, warner
from ldpopt.privacy import ApproximateDP, PureDP

# %% [markdown]
# ## A thousand small reports
#
# Each report is 0.1-LDP. In one survey it is randomized response; in the other 30 % of the reports are erased, so that
# the total variation is capped. What is $\varepsilon$ of all of them together, at $\delta = 10^{-6}$?

# %%
epsilon, delta = 0.1, 1e-6
eta = 0.7 * np.tanh(epsilon / 2)
print(f"{'k':>6} {'sum':>9} {'advanced':>9} {'exact':>9} {'with cap':>9}")
for k in (10, 100, 1000, 10_000):
    exact = kov15(epsilon, count=k).epsilon_at(delta)
    capped = k_fold(epsilon, eta=eta, count=k).epsilon_at(delta)
    advanced = advanced_composition(PureDP(epsilon), k, delta).epsilon
    print(f"{k:6d} {k * epsilon:9.3f} {advanced:9.3f} {exact:9.3f} {capped:9.3f}")

# %% [markdown]
# For ten reports the advanced theorem is worse than the plain sum. It comes nearer to the exact value as the reports
# grow in number. One run gives all pairs $(\varepsilon, \delta)$ at once.

# %%
figure = Figure(figsize=(6.2, 4.2), layout="constrained")
ax = figure.subplots()
for share, style in ((0.0, "-"), (0.3, "--"), (0.6, "-.")):
    composed = k_fold(epsilon, eta=(1 - share) * np.tanh(epsilon / 2), count=1000)
    shown = composed.deltas > 1e-12
    ax.semilogy(composed.epsilons[shown], composed.deltas[shown], style, label=f"{share:.0%} erased")
ax.set(xlabel="ε (nats)", ylabel="δ", xlim=(0, 25), title="1000 reports, each 0.1-LDP")
ax.legend(frameon=False)
figure

# %% [markdown]
# ## Different mechanisms
#
# A list of different channels composes just as well. The result brackets the truth between two printed ends.

# %%
asked = [warner(0.7).channel] * 3 + [randomized_response(4, 0.5)] * 2
together = compose(asked)
for d in (0.0, 1e-6, 1e-3):
    total = together.approximate_dp(d)
    print(f"{total}; at least {total.lower:.6f}")

# %% [markdown]
# ## The same answer, asked again
#
# If all reports are about one answer, the worst pair of answers is the same throughout. The joint channel reveals at
# most as much as the worst cases of the single channels together, and here less.

# %%
first = [[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [0.3, 0.3, 0.4]]
second = [[0.4, 0.6], [0.6, 0.4], [0.45, 0.55]]
print("worst of each: ", compose([first, second]).approximate_dp(0.01))
print("one answer:     ", compose_same_input([first, second]).approximate_dp(0.01))

# %% [markdown]
# ## Keeping account
#
# A ledger is an immutable list of what has been spent: `add` returns a longer one.

# %%
ledger = Ledger().add(warner(0.7).channel, count=3, name="sensitive item").add((0.1, 0.0, eta), count=100, name="diary")
print(ledger.local_dp())
print(ledger.approximate_dp(delta))

# %% [markdown]
# ## Planning backwards
#
# How many reports fit into a budget, and how private must each be for a given number? Both answers are rounded to the
# private side.

# %%
target = ApproximateDP(3.0, delta)
fit = largest_count((0.1, 0.0, eta), target), largest_count((0.1,), target)
print(f"{fit[0]} reports with the cap, {fit[1]} without")
print(f"epsilon = {largest_epsilon(target, 100).epsilon:.6f} each, for a hundred reports")

# %% [markdown]
# ## The Gaussian limit
#
# Many small mechanisms together look like one Gaussian mechanism [GI, Thm 3]. The distance is between the exact
# trade-off curve and its limit. It falls about tenfold as $k$ grows tenfold.

# %%
for k in (10, 100, 1000):
    small = 1 / np.sqrt(k)
    limit = gaussian_limit([small] * k, [0.7 * np.tanh(small / 2)] * k)
    print(f"k = {k:5d}: mu = {limit.mu:.5f}, distance {limit.distance:.6f}")

# %% [markdown]
# ## Exercises
#
# 1. From how many reports of $\varepsilon = 0.1$ on is the advanced theorem below the plain sum, at $\delta =
#    10^{-6}$?
# 2. How much of the budget does the cap save? Compare $\varepsilon$ with and without 30 % erased reports, for 100
#    and for 10,000 reports.
# 3. Add three entries to a ledger in a loop, and print how many it holds.
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. Where the square root begins to pay.
counts = range(1, 200)
below = next(k for k in counts if advanced_composition(PureDP(epsilon), k, delta).epsilon < k * epsilon)
print(f"from {below} reports on")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The saving grows with the number of reports.
for k in (100, 10_000):
    plain, capped = (k_fold(epsilon, eta=e, count=k).epsilon_at(delta) for e in (np.tanh(epsilon / 2), eta))
    print(f"{k:6} reports: {1 - capped / plain:.1%} less")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. The ledger that `add` returns must be kept: a call alone changes nothing.
kept = Ledger()
for _ in range(3):
    kept = kept.add(warner(0.7).channel)
print(len(kept.entries), "entries")
