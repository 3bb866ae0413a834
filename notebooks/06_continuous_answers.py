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
# # Continuous answers
#
# Incomes, ages and times are numbers, not classes. Which numbers should be told apart, and where are the borders?
# This notebook designs channels for answers on the real line, and shows how the optimum is bracketed.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import KL, TOTAL_VARIATION

# %% [markdown]
# ## Two normal populations
#
# The answers of one population are normal around 0, those of the other around 1. At $\varepsilon = 1$ the best report
# is a single bit: on which side of a border is the answer? The bit goes through randomized response. The design says
# where the border is, and proves that no other way of reporting keeps more.

# %%
first, second = stats.norm(0, 1), stats.norm(1, 1)
design = optimal_channel(Divergence(KL, first, second), LocalDP(1.0))
design

# %%
print("border:", design.edges.round(4), " proved to within", f"{design.relative_gap:.0e}", "of the optimum")

# %% [markdown]
# ## More privacy budget, more borders
#
# With a larger $\varepsilon$ it is worth telling more intervals apart. The picture shows the borders over
# $\varepsilon$: they appear in steps, and each step moves the older ones.

# %%
figure = Figure(figsize=(6.6, 3.8), layout="constrained")
ax = figure.subplots()
levels = np.linspace(0.5, 5.0, 4)
for epsilon in levels:
    found = optimal_channel(Divergence(KL, first, second), LocalDP(epsilon), certify=False)
    ax.plot(found.edges, np.full(len(found.edges), epsilon), "|", color="#0072B2", ms=8, mew=1.6)
ax.set(xlabel="border between two reports", ylabel="ε in nats")
ax.set_title("Where the optimal channel cuts, N(0, 1) against N(1, 1)", loc="left", fontsize=10.5)
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# ## A cap on total variation
#
# The envelope theorem covers continuous answers, too: under a cap $\eta$ the optimum is a public coin between two
# channels of neighbouring sizes, and it is bracketed in the same way.

# %%
for eta in (0.1, 0.46):
    capped = optimal_channel(Divergence(KL, first, second), [LocalDP(1.0), TotalVariation(eta)])
    print(f"eta {eta:4}: keeps {capped.value:.7f} nats, relative gap {capped.relative_gap:.0e}, {capped.method}")

# %% [markdown]
# ## Two tails
#
# The likelihood ratio of a wide against a narrow normal law does not grow from left to right: both tails speak for
# the wide one, and the middle speaks for the narrow one. The package sorts by the *ratio*, not by the number, so one
# report may stand for two intervals.

# %%
narrow, wide = stats.norm(0, 1), stats.norm(0, 2)
design = optimal_channel(Divergence(KL, wide, narrow), LocalDP(1.0))
print("borders:", design.edges.round(3), " certified:", design.certified)
print("the row of each interval:", *design.channel.matrix.round(3).tolist(), sep="\n")

# %%
x = np.linspace(-6, 6, 400)
figure = Figure(figsize=(6.8, 3.6), layout="constrained")
ax = figure.subplots()
ax.plot(x, narrow.pdf(x), color="#0072B2", label="standard deviation 1")
ax.plot(x, wide.pdf(x), color="#D55E00", ls="--", label="standard deviation 2")
low, high = design.edges
for left, right in ((-6, low), (high, 6)):
    ax.axvspan(left, right, color="0.9", lw=0)
ax.set(xlabel="answer", ylabel="density", xlim=(-6, 6), ylim=(0, 0.45))
ax.set_title("The shaded answers share one row of the channel", loc="left", fontsize=10.5)
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# ## How the bracket works
#
# No computer holds a continuous law. From below, answers of nearly equal ratio are merged: that is a channel one
# could use, so its value is reached. From above, each answer is replaced by two answers with ratios a little further
# apart: that is more informative, so its optimum is a bound. *Large and continuous alphabets* are a page among the
# concepts of the documentation.

# %%
print(f"{'divergence':18} {'value':>12} {'upper bound':>12}")
for f in (KL, TOTAL_VARIATION):
    found = optimal_channel(Divergence(f, first, second), LocalDP(2.0))
    print(f"{f.name:18} {found.value:12.8f} {found.upper_bound:12.8f}")
