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
# # Paper: Concentrated Differential Privacy
#
# Cynthia Dwork and Guy Rothblum look at the privacy loss as a random variable: how large is its mean, and how far
# does it stray [DR]? This notebook draws the loss, composes it, and shows a theorem that does not hold for the
# adaptive game it states.

# %%
import sys

sys.path.append("..")  # the root of the clone, which has the claims of the papers

# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import numpy as np
from matplotlib.figure import Figure

from experiments.papers import EXPERIMENTS, compute
from ldpopt.composition import advanced_composition, compose_mcdp, kov15
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import MCDP, PureDP, conversions, mcdp


def recomputed(name):
    """The verdict on a claim of the paper, computed now at few points, and its picture."""
    experiment = EXPERIMENTS[name]
    table = compute(experiment, experiment.quick)
    verdict = experiment.judge(table)
    print(f"{experiment.source}\n{experiment.claim}\n{verdict.outcome.value}: {verdict.detail}")
    drawn = experiment.draw(table)
    return (drawn if hasattr(drawn, "figure") else drawn[0]).figure


# %% [markdown]
# ## The privacy loss
#
# The loss of a report is the logarithm of how much more probable it is under one answer than under another. A hundred
# reports of randomized response with $\varepsilon = 0.2$ could lose 20 in all. They hardly ever do: the sum has a
# bell shape around a small mean.

# %%
epsilon, count = 0.2, 100
rng = np.random.default_rng(0)
signs = 2 * (rng.random((20_000, count)) < np.exp(epsilon) / (1 + np.exp(epsilon))) - 1
losses = epsilon * signs.sum(axis=1)
measured = mcdp(randomized_response(2, epsilon))
mu, tau = measured.mu.value, measured.tau.value
figure = Figure(figsize=(6.6, 3.6), layout="constrained")
ax = figure.subplots()
ax.hist(losses, bins=np.arange(-4.2, 8.3, 0.4), density=True, color="#56B4E9", label="20,000 simulations")
x = np.linspace(-4, 8, 200)
spread = tau * np.sqrt(count)
bell = np.exp(-((x - count * mu) ** 2) / (2 * spread**2)) / (spread * np.sqrt(2 * np.pi))
ax.plot(x, bell, color="#D55E00", label="normal with mean kμ and standard √k τ")
ax.set(xlabel="privacy loss of 100 reports, in nats", ylabel="density")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# ## Mean and spread, exactly
#
# Theorem 3.5 gives $(\varepsilon(e^\varepsilon - 1)/2,\; \varepsilon)$ for every $\varepsilon$-DP mechanism. The
# exact values of randomized response are smaller.

# %%
print(f"{'epsilon':>8} {'mu, paper':>10} {'mu, exact':>10} {'tau, paper':>10} {'tau, exact':>10}")
for one in (0.1, 0.5, 1.0, 2.0):
    paper, exact = conversions.pure_to_mcdp(PureDP(one)), mcdp(randomized_response(2, one))
    print(f"{one:8} {paper.mu:10.6f} {exact.mu.value:10.6f} {paper.tau:10.6f} {exact.tau.value:10.6f}")
recomputed("dr-theorem-3-5")

# %% [markdown]
# ## Composition
#
# By the advanced composition theorem (Theorem 1.1), the loss of many reports with a small $\varepsilon$ grows like
# $\sqrt{k}$ at first, not like $k$. For ten reports its bound is above the plain sum. The exact composition is below
# both.

# %%
for k in (10, 100, 1000):
    advanced = advanced_composition(PureDP(0.1), k, 1e-6).epsilon
    exact = kov15(0.1, count=k).epsilon_at(1e-6)
    print(f"{k:5} reports of 0.1: sum {0.1 * k:6.1f}, advanced {advanced:8.4f}, exact {exact:8.4f}")
recomputed("dr-theorem-1-1")

# %% [markdown]
# ## A theorem that fails for the game it states
#
# Theorem 3.4 adds the means and the squares of the spreads, also when each mechanism is chosen after seeing the
# reports before it. Then the mean of the next loss is itself random, and its spread counts. After randomized response
# at $\varepsilon = 2$, run it at 3 only if the first report was 0: the exact spread is larger than the formula.

# %%
first, second = (mcdp(randomized_response(2, one)) for one in (2.0, 3.0))
pairs = [MCDP(one.mu.value, one.tau.value) for one in (first, second)]
print(f"printed formula: tau = {np.hypot(first.tau.value, second.tau.value):.4f}")
print(f"what always holds: tau = {compose_mcdp(pairs).tau:.4f}")
recomputed("dr-theorem-3-4-adaptive")

# %% [markdown]
# ## Groups of people
#
# The paper suspects that groups of $s$ people cost $(s^2\mu, s\tau)$. Three answers with two reports are enough to
# refute it.

# %%
recomputed("dr-group-guess")

# %% [markdown]
# ## Exercises
#
# 1. Which share of the simulated losses is above 8, and what does the exact composition say of that loss?
# 2. How large are the mean and the spread of the loss of ten reports with $\varepsilon = 0.5$, fixed in advance?
# 3. By how much may the spread of the adaptive game exceed the printed formula, at most, for the two steps above?
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. The simulation counts; the exact delta at 8 is smaller than the share, since it weighs only the excess.
print(f"simulated above 8: {(losses > 8).mean():.4%}")
print(f"exact delta at epsilon 8: {kov15(epsilon, count=count).delta_at(8.0):.2e}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The means add, and the squares of the spreads.
one = mcdp(randomized_response(2, 0.5))
print(f"mean {10 * one.mu.value:.4f}, spread {np.sqrt(10) * one.tau.value:.4f}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. The bound that always holds, over the printed one.
print(f"{compose_mcdp(pairs).tau / np.hypot(first.tau.value, second.tau.value):.4f} times")
