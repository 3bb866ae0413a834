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
# # Policy graphs
#
# Not all answers need to be hidden from each other. Whether somebody earns 2,000 or 2,100 may be nobody's business,
# while 2,000 against 20,000 is no secret in the same town. A *policy graph* says which answers must be
# indistinguishable. This notebook shows what it protects, and what a respondent gives up for it.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import networkx as nx
import numpy as np
from matplotlib.figure import Figure

from ldpopt import Divergence, ExpectedLoss, LocalDP, MutualInformation, optimal_channel, plots
from ldpopt.divergences import KL
from ldpopt.privacy import local_dp

p0 = np.array([0.35, 0.25, 0.2, 0.12, 0.08])
p1 = p0[::-1].copy()
utility = Divergence(KL, p0, p1, inputs=("none", "little", "some", "much", "most"))

# %% [markdown]
# ## All pairs, or only neighbours
#
# A path joins each answer to the next. Along the path every edge has the limit $\varepsilon$; answers that are $d$
# steps apart may then differ by $d\varepsilon$. The names of the nodes are those of the answers.

# %%
path = nx.path_graph(utility.inputs)
everywhere = optimal_channel(utility, LocalDP(1.0))
along = optimal_channel(utility, LocalDP(1.0, path))
for name, design in {"all pairs": everywhere, "along the path": along}.items():
    print(f"{name:15} keeps {design.value:.6f} nats, certified: {design.certified}")

# %% [markdown]
# The gain is real, and so is its price. Measured between *all* pairs of answers, the second channel guarantees less:

# %%
print("on the edges: ", local_dp(along.channel, path))
print("on all pairs: ", local_dp(along.channel))

# %% [markdown]
# ## The two channels
#
# Under a limit on all pairs a column has two heights. Along a path it is a staircase: it may climb by a factor
# $e^\varepsilon$ at each step.

# %%
figure = Figure(figsize=(9.2, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
for ax, design, title in ((left, everywhere, "ε = 1 between all answers"), (right, along, "ε = 1 between neighbours")):
    plots.channel(design.channel, ax)
    ax.set_title(title, loc="left", fontsize=10.5)
figure

# %%
figure = Figure(figsize=(6.6, 3.6), layout="constrained")
ax = figure.subplots()
for design, style, name in ((everywhere, "o--", "all pairs"), (along, "s-", "along the path")):
    column = design.channel.matrix[:, 0]
    ax.semilogy(range(5), column / column.min(), style, label=name)
ax.set_xticks(range(5), utility.inputs)
ax.set_yticks(np.exp(range(5)), [f"$e^{step}$" for step in range(5)])
ax.minorticks_off()
ax.set_title("A column, divided by its smallest entry", loc="left", fontsize=10.5)
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# ## Rounding with the least error
#
# Reports that are to be read as answers are decisions with a loss. The mean distance between answer and report is
# smallest under this design, which is proved by linear programming duality.

# %%
distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
for name, limit in {"all pairs": LocalDP(1.0), "path": LocalDP(1.0, nx.path_graph(5))}.items():
    design = optimal_channel(ExpectedLoss(np.full(5, 0.2), distance), limit)
    print(f"{name:10} mean distance {-design.value:.6f}, certified: {design.certified}")

# %% [markdown]
# ## Locations
#
# On a grid of places, neighbours are joined, and a report should tell as much as possible about where somebody is.
# The graph of six places has few extreme columns, all of which are looked at: the design is certified.

# %%
grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(2, 3))
design = optimal_channel(MutualInformation(np.full(6, 1 / 6)), LocalDP(1.0, grid))
whole = optimal_channel(MutualInformation(np.full(6, 1 / 6)), LocalDP(1.0))
print(f"{design.value:.6f} nats of information on the grid, {whole.value:.6f} between all pairs; {design.method}")
design.verify()

# %% [markdown]
# ## Exercises
#
# 1. What is the guarantee of the path's channel between answers that are two steps apart? Read it off the graph,
#    then measure it.
# 2. Halve $\varepsilon$ on the edges. Does the path still keep more than all pairs do with the full $\varepsilon$?
# 3. A star joins one middle answer to the four others. What does its channel guarantee between two of the others?
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. At most twice the limit of an edge; a graph with only these pairs measures it.
two = nx.Graph([(utility.inputs[x], utility.inputs[x + 2]) for x in range(3)])
print(local_dp(along.channel, two))

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The limit between the two ends of the path is then four halves.
half = optimal_channel(utility, LocalDP(0.5, path))
print(f"path with 0.5: {half.value:.6f} nats; all pairs with 1: {everywhere.value:.6f} nats")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. At most twice the limit, since they are two steps apart.
star = nx.Graph([("some", other) for other in utility.inputs if other != "some"])
starred = optimal_channel(utility, LocalDP(1.0, star))
print(local_dp(starred.channel, star), local_dp(starred.channel), sep="\n")
