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

p0 = np.array([0.36, 0.24, 0.16, 0.11, 0.08, 0.05])
p1 = p0[::-1].copy()
utility = Divergence(KL, p0, p1)

# %% [markdown]
# ## The frontier
#
# Every curve is straight from the origin up to a kink, then concave, then flat. Straight: the best channel, erased.
# Concave: a public coin between channels with more and with fewer blocks. Flat: $\eta$ no longer binds.

# %%
etas = np.linspace(0, 1, 21)
table = frontier(utility, [1.0, 2.0, 4.0], etas)
ax = plots.frontier(table)
ax.figure

# %% [markdown]
# Every point is certified: the value and a proven upper bound agree.

# %%
open_gaps = [row.upper_bound / row.optimum - 1 for row in table if row.optimum > 0]
print(f"all certified: {all(row.certified for row in table)}; largest relative gap {max(open_gaps):.1e}")

# %% [markdown]
# ## The gap of erasure
#
# The simplest way to a cap on total variation is to erase the reports of the best $\varepsilon$-LDP channel [GI, Thm
# 8]. For most divergences that is not optimal. Here is by how much it fails, at the cap where it fails most.

# %%
for f in (TOTAL_VARIATION, KL, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON):
    for epsilon in (1.0, 2.0, 4.0):
        caps = np.linspace(0.1, 1, 10) * np.tanh(epsilon / 2)
        one = frontier(Divergence(f, p0, p1), [epsilon], caps)
        gaps = one.gap("erased_optimum")
        worst = int(np.argmax(gaps >= gaps.max() * (1 - 1e-9)))  # the first of those that are equal but for rounding
        loss = f"up to {gaps[worst]:.2%}, at eta = {caps[worst]:.3f}" if gaps[worst] > 1e-6 else "nothing"
        print(f"{f.name:30} epsilon {epsilon:g}: loses {loss}")

# %% [markdown]
# For total variation itself nothing is lost [GI, Thm 5]. At $\varepsilon = 1$ the best channel has two blocks here, and
# two is the fewest: nothing is gained by a coin between more and fewer.
#
# ## A map of the gap
#
# The same for $k$-ary randomized response over the whole plane: bright is far from the optimum.

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
# The dynamic program over partitions and the linear program over all $2^6 - 1$ staircase patterns share no code. They
# agree.

# %%
limits = [LocalDP(2.0), TotalVariation(0.55)]
for method in (Partition(), PatternLP()):
    design = optimal_channel(utility, limits, method=method)
    print(f"{design.value:.10f}  {design.method}")

# %%
ax = plots.channel(design.channel)
ax.figure
