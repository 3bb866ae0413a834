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
# # Paper: Capacity Bounded Differential Privacy
#
# Kamalika Chaudhuri, Jacob Imola and Ashwin Machanavajjhala ask what an adversary learns who can only compute simple
# functions of the report [CIM]. This notebook measures such adversaries, and shows where a printed formula promises
# more privacy than there is.

# %%
import sys

sys.path.append("..")  # the root of the clone, which has the claims of the papers

# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import numpy as np
from matplotlib.figure import Figure

from experiments.papers import EXPERIMENTS, compute
from ldpopt.mechanisms import laplace, randomized_response
from ldpopt.privacy import Affine, Polynomial, RestrictedKL, RestrictedRenyi, capacity_bounded, renyi


def recomputed(name):
    """The verdict on a claim of the paper, computed now at few points, and its picture."""
    experiment = EXPERIMENTS[name]
    table = compute(experiment, experiment.quick)
    verdict = experiment.judge(table)
    print(f"{experiment.source}\n{experiment.claim}\n{verdict.outcome.value}: {verdict.detail}")
    drawn = experiment.draw(table)
    return (drawn if hasattr(drawn, "figure") else drawn[0]).figure


# %% [markdown]
# ## Adversaries of growing capacity
#
# A number between 0 and 7 is reported by randomized response. An adversary who averages reports uses affine functions
# of them; one who also looks at squares uses polynomials of degree two, and so on. With more functions it finds more
# of the divergence between two answers, up to all of it.

# %%
noisy = randomized_response(8, 2.0)
numbers = np.arange(8.0)
full = float(renyi(noisy, 1))
figure = Figure(figsize=(6.6, 3.6), layout="constrained")
ax = figure.subplots()
found = [capacity_bounded(noisy, Polynomial(numbers, degree), RestrictedKL()).value for degree in range(1, 7)]
ax.plot(range(1, 7), found, "o-", color="#0072B2", label="found by polynomials")
ax.axhline(full, color="#D55E00", ls="--", label="found by all adversaries")
ax.set(xlabel="degree", ylabel="KL divergence in nats", ylim=(0, 1.1 * full))
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# The guarantee is about these adversaries alone. It survives the post-processing that stays within the class
# (Theorem 1). The package never converts it into a guarantee against all adversaries.

# %%
print(capacity_bounded(noisy, Affine(numbers), RestrictedKL()))
print(capacity_bounded(noisy, Affine(numbers), RestrictedRenyi(2.0)))

# %% [markdown]
# ## The figures of the paper
#
# At $\varepsilon = 1$ the bound for linear adversaries is above the unrestricted divergence from an order of about
# 3.3 on: a bound that is worse than none.

# %%
_ = recomputed("cim-figures-1-2")

# %% [markdown]
# ## A formula that is too small
#
# Theorem 13 bounds the Rényi divergence that linear adversaries find under Laplace noise. For orders above 2 and
# small $\varepsilon$ the printed value is *below* the exact one. A promise that relied on it would be too large.

# %%
epsilons = np.geomspace(0.05, 1.0, 12)
figure = Figure(figsize=(6.6, 3.8), layout="constrained")
ax = figure.subplots()
for order, colour in ((3.0, "#0072B2"), (6.0, "#D55E00")):
    exact = [laplace(epsilon).restricted_renyi(order).value for epsilon in epsilons]
    ax.loglog(epsilons, exact, color=colour, label=f"order {order:g}, exact")
    printed = np.log1p(epsilons * (2 * epsilons) ** (order - 1)) / (order - 1)
    ax.loglog(epsilons, printed, "--", color=colour, label=f"order {order:g}, printed bound")
ax.set(xlabel="ε of the Laplace noise", ylabel="divergence in nats")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
ax.spines[["top", "right"]].set_visible(False)
figure

# %%
_ = recomputed("cim-table-1")

# %% [markdown]
# ## Composition
#
# Parameters add up when the mechanisms are fixed in advance (Theorem 4). When the second is chosen by the first
# report, they do not: the choice hands the adversary a function that was not in the class.

# %%
recomputed("cim-adaptive-composition")

# %% [markdown]
# ## Exercises
#
# 1. Which share of the divergence do affine adversaries find in the first example, and which share do polynomials
#    of degree 6 find?
# 2. From which $\varepsilon$ on is the printed bound of order 3 above the exact value?
# 3. An adversary may look at the report *7* alone, yes or no. How much does it find? Give this function as the only
#    feature.
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. Divide by the unrestricted value.
print(f"degree 1: {found[0] / full:.1%}, degree 6: {found[-1] / full:.1%}")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The printed bound falls like the third power, the exact value like the square; they cross once in this
# range.
bound = np.log1p(epsilons * (2 * epsilons) ** 2) / 2
exact = np.array([laplace(epsilon).restricted_renyi(3.0).value for epsilon in epsilons])
print("bound / exact:", (bound / exact).round(3))
print(f"above from epsilon = {epsilons[np.argmax(bound > exact)]:.3f} on, among these values")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. One feature, which is 1 at the report 7 and 0 elsewhere.
print(capacity_bounded(noisy, Affine((numbers == 7).astype(float)), RestrictedKL()))
