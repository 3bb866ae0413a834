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
# # Paper: Concentrated Differential Privacy, simplified
#
# Mark Bun and Thomas Steinke replace worst cases by averages of the privacy loss: one number $\rho$ bounds the Rényi
# divergences of all orders at once [BS]. This notebook computes $\rho$ exactly, shows how loose the usual conversions
# are, and why the older definition was given up.

# %%
import sys

sys.path.append("..")  # the root of the clone, which has the claims of the papers

# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq

from experiments.papers import EXPERIMENTS, compute
from ldpopt.mechanisms import Gaussian, dominating_pair, randomized_response
from ldpopt.privacy import ZCDP, PureDP, conversions, renyi, zcdp


def recomputed(name):
    """The verdict on a claim of the paper, computed now at few points, and its picture."""
    experiment = EXPERIMENTS[name]
    table = compute(experiment, experiment.quick)
    verdict = experiment.judge(table)
    print(f"{experiment.source}\n{experiment.claim}\n{verdict.outcome.value}: {verdict.detail}")
    drawn = experiment.draw(table)
    return (drawn if hasattr(drawn, "figure") else drawn[0]).figure


# %% [markdown]
# ## One number for all orders
#
# A channel is $\rho$-zCDP if $D_\alpha \le \rho\,\alpha$ for every order $\alpha > 1$. So $\rho$ is the height of the
# curve $D_\alpha/\alpha$. For the Gaussian mechanism the curve is flat. For randomized response it falls, and $\rho$
# is its beginning. With nine reports of ten erased it has a hump at $\varepsilon = 2$, and $\rho$ is its top.

# %%
figure = Figure(figsize=(6.8, 3.8), layout="constrained")
ax = figure.subplots()
orders = np.geomspace(1.001, 100, 80)
for share, style in ((1.0, "-"), (0.3, "--"), (0.1, "-.")):
    channel = dominating_pair(2.0, eta=share * np.tanh(1.0)).channel
    heights = np.array([guarantee.value for guarantee in renyi(channel, list(orders))]) / orders
    ax.semilogx(orders, heights, style, label=f"ε = 2, {1 - share:.0%} erased: ρ = {zcdp(channel).value:.4f}")
ax.set(xlabel="order α", ylabel="$D_α / α$")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# ## From pure privacy
#
# Proposition 1.4 says $\rho \le \varepsilon^2/2$. The exact value is $\varepsilon \tanh(\varepsilon/2)$, which is
# half of the bound at the $\varepsilon$ that is printed first.

# %%
half = brentq(lambda epsilon: epsilon * np.tanh(epsilon / 2) - epsilon**2 / 4, 1, 10)
print(f"half of the bound at epsilon = {half:.4f}")
print(f"{'epsilon':>8} {'paper':>10} {'sharp':>10} {'measured':>10}")
for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
    paper, sharp = conversions.pure_to_zcdp(PureDP(epsilon)).rho, conversions.pure_to_zcdp_sharp(PureDP(epsilon)).rho
    print(f"{epsilon:8} {paper:10.6f} {sharp:10.6f} {zcdp(randomized_response(2, epsilon)).value:10.6f}")
recomputed("bs-proposition-1-4")

# %% [markdown]
# ## Back to $(\varepsilon, \delta)$
#
# Two ways from $\rho$ to $(\varepsilon, \delta)$: the closed form of Lemma 3.5, and the best over all orders [CKS].
# Both hold for every mechanism of this $\rho$. For the Gaussian mechanism itself the exact value is known, too.

# %%
for rho in (0.05, 0.5, 2.0):
    closed, sharp = (
        convert(ZCDP(0.0, rho), 1e-6).epsilon
        for convert in (conversions.zcdp_to_approximate, conversions.zcdp_to_approximate_sharp)
    )
    exact = Gaussian(1 / np.sqrt(2 * rho)).pair.approximate_dp(1e-6).value
    print(f"rho {rho:4}: epsilon {closed:.4f} by Lemma 3.5, {sharp:.4f} over all orders, {exact:.4f} for the Gaussian")
recomputed("bs-lemma-3-6-options")

# %% [markdown]
# ## Why not mean-concentrated privacy?
#
# The older definition asks for a small mean and a subgaussian spread of the privacy loss. It has a flaw that the
# appendix points out: looking at *less* of the report can violate it. Zero-concentrated privacy never grows under
# post-processing.

# %%
recomputed("bs-mcdp")

# %% [markdown]
# ## Groups
#
# For groups of $s$ people $\rho$ grows like $s^2$. That is exact for Gaussian noise and pessimistic for Laplace
# noise.

# %%
recomputed("bs-proposition-5-3")

# %% [markdown]
# ## Exercises
#
# 1. Which $\rho$ has Gaussian noise with $\sigma = 2$ for answers in $[0, 1]$, and which noise has $\rho = 1/2$?
# 2. Ten reports of randomized response with $\varepsilon = 0.5$: what is their $\rho$ together, and which
#    $\varepsilon$ does it give at $\delta = 10^{-6}$? Compare it with the plain sum.
# 3. At which order is the hump of the channel with 90 % erased?
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. It is 1/(2 sigma squared).
print(f"rho {1 / (2 * 2**2)}; sigma {1 / np.sqrt(2 * 0.5):g}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The values of rho add. For so few reports the plain sum is the better bound.
ten = 10 * zcdp(randomized_response(2, 0.5)).value
turned = conversions.zcdp_to_approximate_sharp(ZCDP(0.0, ten), 1e-6).epsilon
print(f"rho {ten:.4f}, epsilon {turned:.4f}; plain sum {10 * 0.5}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. Where the last curve of the first picture is largest.
print(f"at order {orders[np.argmax(heights)]:.2f}, where it is {heights.max():.4f}; at order 1: {heights[0]:.4f}")
