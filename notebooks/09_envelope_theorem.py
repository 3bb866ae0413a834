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
# # The envelope theorem
#
# Which channel is best under a limit $\varepsilon$ on odds *and* a cap $\eta$ on total variation? The answer fits
# into one picture. This notebook draws it, takes a case apart by hand, and checks it against a linear program that
# knows nothing of the theorem.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
from itertools import combinations, pairwise

import numpy as np
from matplotlib.figure import Figure

from ldpopt import Divergence, LocalDP, TotalVariation, frontier, frontiers, optimal_channel
from ldpopt.design import PatternLP
from ldpopt.divergences import KL

p0 = np.array([0.30, 0.25, 0.20, 0.15, 0.10])
p1 = p0[::-1].copy()
epsilon = 3.0
factor = np.exp(epsilon)
utility = Divergence(KL, p0, p1)

# %% [markdown]
# ## Points: one for each number of blocks
#
# Sort the answers by $P_0/P_1$ and cut the list into $m$ blocks. Randomized response of the block's number is
# $\varepsilon$-LDP. Its total variation depends on $m$ alone, $(E-1)/(E+m-1)$ with $E = e^\varepsilon$. Among all
# ways to cut into $m$ blocks take the one that keeps most, and the first of them if several do. Here all ways are
# simply tried.


# %%
def worth(cuts):
    """What randomized response between the blocks keeps, in nats: the blocks end at `cuts`."""
    ends = [0, *cuts, len(p0)]
    a, b = (np.array([1 + (factor - 1) * p[i:j].sum() for i, j in pairwise(ends)]) for p in (p0, p1))
    return float((a * np.log(a / b)).sum()) / (factor + len(ends) - 2)


points = {}
for m in range(2, len(p0) + 1):
    best = max(combinations(range(1, len(p0)), m - 1), key=worth)
    points[m] = ((factor - 1) / (factor + m - 1), worth(best))
    print(f"{m} blocks, cut at {best}: total variation {points[m][0]:.4f}, keeps {points[m][1]:.6f} nats")

# %% [markdown]
# ## The envelope
#
# A public coin between two of these channels reaches every point on the line between them, and saying nothing reaches
# the origin. The theorem says that nothing else is better: the optimum is the least non-decreasing concave curve
# above the points and the origin.

# %%
etas = np.linspace(0.75, 1, 51)
rows = frontier(utility, [epsilon], etas)
figure = Figure(figsize=(6.8, 4.2), layout="constrained")
ax = figure.subplots()
ax.plot(etas, [row.optimum for row in rows], color="#0072B2", lw=2, label="optimum, computed by the package")
ax.plot(*zip(*points.values(), strict=True), "o", color="black", label="best partition into m blocks")
for m, (x, y) in points.items():
    ax.annotate(f"m = {m}", (x, y), (6, -12) if m > 2 else (-6, -14), textcoords="offset points", fontsize=9)
top = max(points.values(), key=lambda point: point[1])
ax.plot([0, top[0]], [0, top[1]], ":", color="0.4", label="the best channel for ε alone, erased")
ax.set(xlabel="cap η on total variation", ylabel="kept, in nats", xlim=(0.75, 0.95), ylim=(0.155, 0.182))
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# ## A program that knows nothing of partitions
#
# The linear program over all $2^5 - 1$ staircase columns was there before the theorem. To ten digits it gives the same
# numbers.

# %%
for eta in (0.2, 0.5, 0.8, 0.85, 0.9):
    limits = [LocalDP(epsilon), TotalVariation(eta)]
    program = optimal_channel(utility, limits, method=PatternLP())
    envelope = optimal_channel(utility, limits)
    print(f"eta {eta:4}: {program.value:.10f} by the program, {envelope.value:.10f} ({envelope.method})")

# %% [markdown]
# ## The proof as numbers
#
# Give each border between answers a height $u_i$, and each block a fixed price. If no block of answers is worth more
# than the rise between its two borders plus its price, then adding up over the blocks of any partition bounds them
# all. One set of heights bounds *every* cap, and is tight for the caps up to the first corner, as the table shows.

# %%
design = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(0.5)])
potentials = np.asarray(design.certificate.potentials)
print("heights:", potentials.round(6), " price level:", round(design.certificate.level, 6))
for eta in (0.2, 0.5, 0.8, 0.85, 0.9):
    bound = design.certificate.level + eta * max(0.0, potentials[-1] - design.certificate.level)
    optimum = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(eta)]).value
    print(f"eta {eta:4}: these heights prove {bound:.10f}, the optimum is {optimum:.10f}")

# %%
design.verify(exact=True)

# %%
figure = Figure(figsize=(6.8, 3.4), layout="constrained")
ax = figure.subplots()
ax.step(range(len(potentials)), potentials, where="post", color="#009E73", lw=2)
ax.set_xticks(range(len(potentials)), ["start", *[f"after answer {x + 1}" for x in range(len(p0))]], fontsize=8)
ax.set_ylabel("potential u")
ax.set_title("Six heights prove the design", loc="left", fontsize=10.5)
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# ## A thousand answers
#
# The dynamic program needs no list of sets. A thousand answers have $2^{1000}$ of them, and take seconds.

# %%
rng = np.random.default_rng(3)
many = optimal_channel(Divergence(KL, *rng.dirichlet(np.ones(1000), 2)), [LocalDP(2.0), TotalVariation(0.5)])
print(f"k = 1000: {many.value:.9f} nats, relative gap {many.relative_gap:.0e}, {many.method}")

# %% [markdown]
# ## Exercises
#
# 1. Between which caps is the optimum a coin between 4 and 3 blocks? With which probability does the coin choose 3
#    blocks at $\eta = 0.85$?
# 2. Which of the four points lie on the envelope?
# 3. Take $\varepsilon = 1$. How many corners does the envelope have?
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. Between the total variations of the two; the weight is linear in the cap.
four, three = points[4][0], points[3][0]
weight = (0.85 - four) / (three - four)
print(f"from {four:.4f} to {three:.4f}; at 0.85 with probability {weight:.4f}")
print(f"kept: {weight * points[3][1] + (1 - weight) * points[4][1]:.10f}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. A point is a corner of the envelope, or it lies below it.
for m, (x, y) in points.items():
    best = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(x)]).value
    print(f"{m} blocks: {y:.6f} of {best:.6f}, {'on the envelope' if y > best * (1 - 1e-9) else 'below it'}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. As many as the package lists, beside the origin.
for corner in frontiers.envelope(utility, 1.0).corners[1:]:
    print(f"{corner.blocks} blocks at eta = {corner.eta:.4f}, keeps {corner.value:.6f} nats")
