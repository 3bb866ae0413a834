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
# where the border is, and proves how little any other way of reporting can keep beyond it.

# %%
first, second = stats.norm(0, 1), stats.norm(1, 1)
design = optimal_channel(Divergence(KL, first, second), LocalDP(1.0))
design

# %%
print("border:", design.edges.round(4), " proved to within", f"{design.relative_gap:.0e}", "of the optimum")

# %% [markdown]
# ## More privacy budget, more borders
#
# With a larger $\varepsilon$ it is worth telling more intervals apart. The picture shows the borders of the best
# channel found at each of four values of $\varepsilon$.

# %%
figure = Figure(figsize=(6.6, 3.8), layout="constrained")
ax = figure.subplots()
levels = np.linspace(0.5, 5.0, 4)
for epsilon in levels:
    found = optimal_channel(Divergence(KL, first, second), LocalDP(epsilon), certify=False)
    ax.plot(found.edges, np.full(len(found.edges), epsilon), "|", color="#0072B2", ms=8, mew=1.6)
    print(f"epsilon {epsilon:g}: borders at", found.edges.round(3))
ax.set(xlabel="border between two reports", ylabel="ε (nats)")
ax.set_title("Where the optimal channel cuts, N(0, 1) against N(1, 1)", loc="left", fontsize=10.5)
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# ## A cap on total variation
#
# The envelope theorem covers continuous answers, too: under a cap $\eta$ the optimum is a public coin between two
# channels, or between a channel and silence. It is bracketed in the same way. The last column says which channels.

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

# %% [markdown]
# ## Exercises
#
# 1. At $\varepsilon = 1$ the border is near 0.476 and not at 0.5, halfway between the means. Which border is best
#    for the total variation, and which for the KL divergence in the other direction?
# 2. Exponential waiting times with means 1 and 2: where is the border at $\varepsilon = 1$?
# 3. Below which share of the unprivate divergence does the report stay at $\varepsilon = 1$? The divergence of the
#    two normals is 1/2.
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. The total variation treats both populations alike, and so its border is in the middle; the other
# direction mirrors the border at 0.5.
for name, utility in {
    "total variation": Divergence(TOTAL_VARIATION, first, second),
    "KL, the other way": Divergence(KL, second, first),
}.items():
    print(f"{name:18} {optimal_channel(utility, LocalDP(1.0)).edges.round(4)}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The ratio of the densities grows with the answer, so a single border parts them.
waiting = optimal_channel(Divergence(KL, stats.expon(scale=1), stats.expon(scale=2)), LocalDP(1.0))
print("border:", waiting.edges.round(4), "certified:", waiting.certified)

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. The upper bound of the design, divided by 1/2.
bound = optimal_channel(Divergence(KL, first, second), LocalDP(1.0)).upper_bound
print(f"{bound / 0.5:.2%}")
