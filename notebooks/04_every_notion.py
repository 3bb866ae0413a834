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

from ldpopt import audit
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
# Each row names the two answers and the reports at which the value is attained. Any channel will do; here is one that
# nobody published, with an answer that is never confused with another. The audit does not fail: it says infinity.

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
for name, one in {"Warner, 0.7": channel, "4-ary randomized response, ε = 2": randomized_response(4, 2.0)}.items():
    curve = trade_off(one)
    ax.plot(*curve.knots.T, marker="o", ms=4, label=name)
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
for alpha in (0.0, 0.3, 0.9):
    pair = dominating_pair(1.0, eta=(1 - alpha) * np.tanh(0.5)).channel
    values = np.array([guarantee.value for guarantee in renyi(pair, list(orders))])
    ax.semilogx(orders, values / orders, label=f"erased with probability {alpha:g}")
ax.set(xlabel="order α", ylabel="D_α / α", title="zCDP is the supremum of these curves (ε = 1)")
ax.legend(frameon=False)
figure

# %% [markdown]
# With much erasure the supremum moves to an interior order. A formula that assumes $\alpha \to 1$ would claim too
# little privacy loss.
#
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
for order, printed in ((3.0, 0.00199601), (6.0, 6.3999e-06)):
    exact = noise.restricted_renyi(order).value
    print(f"order {order:g}: exact {exact:.6g}, printed bound {printed:g}: {exact / printed:,.1f} times too small")
