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
# # The trade-off frontier and optimality gaps
#
# How much utility does privacy cost, and how much of the cost is the mechanism's fault? This tour draws the exact
# frontier over $(\varepsilon, \eta)$, sets the textbook mechanisms and the published bounds beside it, and shows how
# the optimum is made.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import numpy as np

from ldpopt import Divergence, LocalDP, TotalVariation, bounds, frontier, optimal_channel, plots
from ldpopt.design import Partition, PatternLP
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, SQUARED_HELLINGER, TOTAL_VARIATION
from ldpopt.frontiers import envelope

p0 = np.array([0.36, 0.24, 0.16, 0.11, 0.08, 0.05])
p1 = p0[::-1].copy()
utility = Divergence(KL, p0, p1)

# %% [markdown]
# ## The frontier
#
# Every curve is straight from the origin to its first corner, where the channel of that corner is erased. Between two
# corners it is straight, too: a public coin chooses between their channels. After the last corner it is flat, since
# $\eta$ no longer binds. The corners are listed below the picture.

# %%
etas = np.linspace(0, 1, 21)
table = frontier(utility, [1.0, 2.0, 4.0], etas)
ax = plots.frontier(table)
ax.figure

# %%
for epsilon in (1.0, 2.0, 4.0):
    corners = envelope(utility, epsilon).corners[1:]
    print(f"epsilon {epsilon:g}:", *(f"{one.blocks} blocks at eta = {one.eta:.4f};" for one in corners))

# %% [markdown]
# Every point is certified: the value and a proven upper bound agree, to the relative gap that is printed.

# %%
open_gaps = [row.upper_bound / row.optimum - 1 for row in table if row.optimum > 0]
print(f"all certified: {all(row.certified for row in table)}; largest relative gap {max(open_gaps):.1e}")

# %% [markdown]
# ## The gap of erasure
#
# The simplest way to a cap on total variation is to erase the reports of the best $\varepsilon$-LDP channel [GI, Thm
# 8]. That need not be optimal. Here is the share of the optimum that it loses, at the worst of ten caps. Up to the
# first corner both grow in proportion to the cap, so several caps are equally bad: the largest of them is named.

# %%
for f in (TOTAL_VARIATION, KL, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON):
    for epsilon in (1.0, 2.0, 4.0):
        caps = np.linspace(0.1, 1, 10) * np.tanh(epsilon / 2)
        one = frontier(Divergence(f, p0, p1), [epsilon], caps)
        gaps = one.gap("erased_optimum")
        alike = caps[gaps >= gaps.max() * (1 - 1e-9)]  # those that are equal but for rounding
        loss = (
            f"{gaps.max():.2%}, at {len(alike)} of the caps, up to {alike[-1]:.3f}" if gaps.max() > 1e-6 else "nothing"
        )
        print(f"{f.name:30} epsilon {epsilon:g}: loses {loss}")

# %% [markdown]
# For total variation itself nothing is lost [GI, Thm 5]. At $\varepsilon = 1$ the envelope has a single corner here,
# with two blocks: the channel that is best without a cap also keeps most for its total variation. This is a matter of
# these two populations. [The first notebook](01_from_zero_to_theory.ipynb) has three answers for which erasing loses
# at $\varepsilon = 1$, too.
#
# ## A map of the gap
#
# The same for $k$-ary randomized response, over a grid: bright is far from the optimum. In the cells above the line
# $\eta$ no longer binds.

# %%
grid = frontier(utility, [0.5, 1.0, 1.5, 2.0, 3.0, 4.0], [0.1, 0.2, 0.4, 0.6, 0.8, 1.0])
ax = plots.gap_map(grid, "randomized_response_with_erasure")
ax.figure

# %% [markdown]
# ## The optimum and the published bounds
#
# Upper bounds on the KL divergence that any channel keeps, against what the best one does keep. (DJW and Theorem 7
# bound the symmetrised divergence, which is larger.)

# %%
print(f"{'epsilon':>8} {'optimum':>10} {'AZ':>10} {'DJW':>10} {'GI Thm 7':>10}")
for epsilon in (0.25, 0.5, 1.0, 2.0):
    optimum = optimal_channel(utility, LocalDP(epsilon)).value
    contraction = bounds.asoodeh_zhang(KL, p0, p1, epsilon)
    djw = bounds.duchi_jordan_wainwright(p0, p1, epsilon)
    gi = bounds.ghazi_issa(p0, p1, epsilon, np.tanh(epsilon / 2))
    print(f"{epsilon:8g} {optimum:10.5f} {contraction:10.5f} {djw:10.5f} {gi:10.5f}")

# %% [markdown]
# ## Two roads to the optimum
#
# The dynamic program over partitions and the linear program over all $2^6 - 1$ staircase patterns are different
# algorithms. To ten digits they agree.

# %%
limits = [LocalDP(2.0), TotalVariation(0.55)]
for method in (Partition(), PatternLP()):
    design = optimal_channel(utility, limits, method=method)
    print(f"{design.value:.10f}  {design.method}")

# %%
ax = plots.channel(design.channel)
ax.figure

# %% [markdown]
# ## Exercises
#
# 1. At which cap does erasing stop to lose anything at $\varepsilon = 2$, for the KL divergence? Explain it by the
#    corners.
# 2. At $\varepsilon = 4$ there is a single corner as well, and yet erasing loses. What is different from
#    $\varepsilon = 1$?
# 3. Which published bound is tightest at $\varepsilon = 0.5$, and by what factor is it above the optimum?
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. From the last corner on: there the optimum is the channel that Theorem 8 erases, and nothing is erased.
last = envelope(utility, 2.0).corners[-1].eta
for cap in (0.9 * last, last, 1.0):
    one = frontier(utility, [2.0], [cap])
    print(f"eta {cap:.4f} ({cap / last:.1f} of the last corner): loses {max(0.0, one.gap('erased_optimum')[0]):.4%}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The erased channel starts at tanh(epsilon/2), the largest total variation that epsilon allows. With two
# blocks the corner is there; with five it is at a smaller cap, so that less must be erased.
for epsilon in (1.0, 4.0):
    corner = envelope(utility, epsilon).corners[-1]
    print(f"epsilon {epsilon:g}: corner at {corner.eta:.4f}, tanh(epsilon/2) = {np.tanh(epsilon / 2):.4f}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. The bounds of one comparison, sorted.
rows = [row for row in bounds.compare(utility, 0.5).rows if row.above and row.looseness is not None]
tightest = min(rows, key=lambda row: row.looseness)
print(f"{tightest.reference}: {tightest.looseness:.6f} times the optimum, the tightest of {len(rows)}")
