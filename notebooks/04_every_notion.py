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
# # What a channel guarantees under every notion
#
# One matrix, many promises. This tour measures a classical survey design under every notion of privacy that the package
# knows, shows how the notions relate, and where a published formula understates the loss.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import numpy as np
from matplotlib.figure import Figure

from ldpopt import audit, plots
from ldpopt.channel import Channel
from ldpopt.mechanisms import dominating_pair, laplace, randomized_response, warner
from ldpopt.privacy import (
    PureDP,
    RestrictedKL,
    RestrictedRenyi,
    capacity_bounded,
    conversions,
    hockey_stick,
    local_dp,
    mcdp,
    renyi,
    total_variation,
    trade_off,
    zcdp,
)

# %% [markdown]
# ## Warner's design
#
# In 1965 Stanley Warner let a spinner decide whether a respondent answers the question or its negation. With
# probability 0.7 it is the question itself.

# %%
design = warner(0.7)
channel = design.channel
audit(channel)

# %% [markdown]
# Each row names the two answers and the reports at which the value is attained. Where several pairs attain it, the
# first is named. Any channel will do; here is one with a report that only one of the answers can cause. The measure
# does not fail: it says infinity.

# %%
careless = Channel([[0.6, 0.4, 0.0], [0.3, 0.5, 0.2]], inputs=["no", "yes"])
for guarantee in (local_dp(careless), total_variation(careless), hockey_stick(careless, 1.0)):
    print(guarantee)

# %% [markdown]
# ## The trade-off curve
#
# All hypothesis-testing guarantees are in one curve: the least type II error that an adversary pays for each type I
# error. It is exact and piecewise linear. Perfect privacy is the diagonal.

# %%
figure = Figure(figsize=(5.5, 4.2), layout="constrained")
ax = figure.subplots()
drawn = {"Warner, 0.7": channel, "4-ary randomized response, ε = 2": randomized_response(4, 2.0)}
for (name, one), style, colour in zip(drawn.items(), ("-", "--"), (plots.FIRST_COLOR, plots.SECOND_COLOR), strict=True):
    ax.plot(*trade_off(one).knots.T, style, color=colour, marker="o", ms=4, label=name)
ax.plot([0, 1], [1, 0], color="gray", lw=1, ls=":", label="nothing is revealed")
ax.set(xlabel="type I error", ylabel="type II error")
ax.legend(frameon=False)
figure

# %% [markdown]
# ## Rényi, concentrated, mean-concentrated
#
# For binary randomized response, the exact values are $\rho = \mu = \varepsilon\tanh(\varepsilon/2)$ and $\tau^2 =
# 2\varepsilon\tanh(\varepsilon/2)$. The conversions from $\varepsilon$ alone are looser.

# %%
print(f"{'epsilon':>8} {'rho':>9} {'from eps':>9} {'mu':>9} {'tau^2 / 2':>9}")
for epsilon in (0.5, 1.0, 2.0, 4.0):
    q = randomized_response(2, epsilon)
    converted = conversions.pure_to_zcdp(PureDP(epsilon)).rho
    both = mcdp(q)
    half = both.tau.value**2 / 2
    print(f"{epsilon:8g} {zcdp(q).value:9.5f} {converted:9.5f} {both.mu.value:9.5f} {half:9.5f}")

# %%
figure = Figure(figsize=(6.2, 4.2), layout="constrained")
ax = figure.subplots()
orders = np.geomspace(1.001, 200, 120)
for alpha, style in ((0.0, "-"), (0.3, "--"), (0.9, "-.")):
    pair = dominating_pair(1.0, eta=(1 - alpha) * np.tanh(0.5)).channel
    values = np.array([guarantee.value for guarantee in renyi(pair, list(orders))])
    ax.semilogx(orders, values / orders, style, label=f"erased with probability {alpha:g}")
ax.set(xlabel="order α", ylabel="$D_α / α$ in nats", title="zCDP is the supremum of these curves (ε = 1)")
ax.legend(frameon=False)
figure

# %% [markdown]
# With much erasure the supremum may move to an interior order. A formula that assumes $\alpha \to 1$ would then claim
# too little privacy loss. The cell below says where the largest value over these orders is.

# %%
for alpha in (0.0, 0.3, 0.9):
    pair = dominating_pair(1.0, eta=(1 - alpha) * np.tanh(0.5)).channel
    heights = np.array([guarantee.value for guarantee in renyi(pair, list(orders))]) / orders
    at = orders[np.argmax(heights)]
    print(f"erased {alpha:g}: largest at order {at:.3f}, {heights.max() / heights[0]:.4f} times the value near order 1")

# %% [markdown]
# ## Adversaries of bounded capacity
#
# An adversary that can only compute affine functions of the report learns less. Give every report a number, and measure
# that, too.

# %%
ordinal = np.array([[0.5, 0.3, 0.15, 0.05], [0.3, 0.3, 0.25, 0.15], [0.05, 0.15, 0.3, 0.5]])
features = np.arange(4.0)
restricted, full = capacity_bounded(ordinal, features, RestrictedKL()), renyi(ordinal, 1)
print(f"KL against affine adversaries {restricted.value:.6f}, against all {full.value:.6f}")
restricted, full = capacity_bounded(ordinal, features, RestrictedRenyi(2.0)), renyi(ordinal, 2.0)
print(f"order 2 against affine adversaries {restricted.value:.6f}, against all {full.value:.6f}")

# %% [markdown]
# The printed bound for this quantity under Laplace noise [CIM, Thm 13] is too small for orders above 2 and small
# $\varepsilon$:

# %%
noise = laplace(0.1)
for order in (3.0, 6.0):
    printed = np.log1p(0.1 * (2 * 0.1) ** (order - 1)) / (order - 1)
    exact = noise.restricted_renyi(order).value
    print(f"order {order:g}: exact {exact:.6g}, printed bound {printed:g}: {exact / printed:,.1f} times too small")

# %% [markdown]
# ## Exercises
#
# 1. Warner's design with probability 0.7 and randomized response with some $\varepsilon$ are the same channel.
#    Which $\varepsilon$?
# 2. An attacker wants at most 5 % type I errors. How many type II errors does Warner's design force on them? Read
#    the curve.
# 3. Find an erased channel whose $\rho$ is more than a tenth above its value at order 1.
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. The odds are 0.7 against 0.3.
print(f"log(7/3) = {np.log(0.7 / 0.3):.6f}, measured {local_dp(channel).value:.6f}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The curve goes straight from (0, 1) to its corner at (0.3, 0.3).
print(f"{np.interp(0.05, *trade_off(channel).knots[np.argsort(trade_off(channel).knots[:, 0])].T):.4f}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. A larger epsilon and much erasure: rare reports tell much.
rare = dominating_pair(4.0, eta=0.1 * np.tanh(2.0)).channel
print(f"rho {zcdp(rare).value:.4f}, at order 1 {renyi(rare, 1).value:.4f}")
