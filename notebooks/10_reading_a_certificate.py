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
# # Reading a certificate
#
# A design says: *no channel within these limits keeps more than this*. Why should anybody believe it? This notebook
# opens a certificate, checks it by hand, breaks it, and hands it to a checker that shares no code with the package.

# %%
# %config InlineBackend.figure_formats = ["retina"]
# %matplotlib inline
import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ldpopt import Divergence, LocalDP, TotalVariation, load_design, optimal_channel
from ldpopt.design import PatternLP
from ldpopt.divergences import LE_CAM

# %% [markdown]
# ## A small problem with simple numbers
#
# Three answers, $e^\varepsilon = 5$, and Le Cam's divergence, which is a rational function: so everything can be
# checked in fractions.

# %%
p0, p1 = [0.1, 0.3, 0.6], [0.6, 0.3, 0.1]
design = optimal_channel(Divergence(LE_CAM, p0, p1), [LocalDP(np.log(5)), TotalVariation(0.3)])
design

# %% [markdown]
# ## What is in it
#
# The certificate of this design is five numbers: a price level $A$ and four potentials, one at the start and one
# after each answer.

# %%
certificate = design.certificate
print("level", certificate.level, " potentials", np.round(certificate.potentials, 6))

# %% [markdown]
# ## Checking it by hand
#
# Let $u_0, \dots, u_3$ be potentials and $\alpha$ a price. If each block of the answers $i+1, \dots, j$ is worth at
# most $u_j - u_i + \alpha$, then no channel keeps more than $\alpha + \eta\,(u_3/(e^\varepsilon - 1) - \alpha)_+$.
# With $\alpha = 0$ the potentials $0, \tfrac56, \tfrac56, \tfrac53$ will do. (The certificate stores them divided by
# $e^\varepsilon - 1 = 4$.) Here is the whole proof, in fractions.

# %%
a, b = [Fraction(1, 10), Fraction(3, 10), Fraction(6, 10)], [Fraction(6, 10), Fraction(3, 10), Fraction(1, 10)]
u = [Fraction(0), Fraction(5, 6), Fraction(5, 6), Fraction(5, 3)]
for i in range(3):
    for j in range(i + 1, 4):
        x, y = 1 + 4 * sum(a[i:j]), 1 + 4 * sum(b[i:j])
        worth = (x - y) ** 2 / (x + y)
        names = "".join(str(answer + 1) for answer in range(i, j))
        print(f"block {names:4} worth {worth!s:>5}  rise {u[j] - u[i]!s:>5}  holds: {worth <= u[j] - u[i]}")
bound = Fraction(3, 10) * u[3] / 4
print(f"so nothing keeps more than {bound} = {float(bound)}; the channel keeps {design.value:.12f}")

# %% [markdown]
# ## As a picture
#
# Each bar is a block; the line above it is what the potentials allow. A bar that touches its line is a block that an
# optimal channel may use.

# %%
figure = Figure(figsize=(6.6, 3.6), layout="constrained")
ax = figure.subplots()
blocks = [(i, j) for i in range(3) for j in range(i + 1, 4)]
values = [float((4 * sum(a[i:j]) - 4 * sum(b[i:j])) ** 2 / (2 + 4 * sum(a[i:j]) + 4 * sum(b[i:j]))) for i, j in blocks]
allowed = [float(u[j] - u[i]) for i, j in blocks]
ax.bar(range(6), values, width=0.6, color="#56B4E9", label="worth of the block")
ax.hlines(allowed, np.arange(6) - 0.4, np.arange(6) + 0.4, color="#D55E00", lw=2.2, label="allowed by the potentials")
ax.set_xticks(range(6), ["".join(str(answer + 1) for answer in range(i, j)) for i, j in blocks])
ax.set(xlabel="answers of the block", ylabel="worth")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
ax.spines[["top", "right"]].set_visible(False)
figure

# %% [markdown]
# ## What `verify` does
#
# It measures the channel again, computes its value again, and checks the six inequalities with arithmetic that is
# rounded outward. `exact=True` does the same in balls of 256 bits.

# %%
design.verify()

# %%
design.verify(exact=True)

# %% [markdown]
# ## Breaking it
#
# Wrong numbers cannot prove a wrong claim. Lower one potential in the file: the bound that the numbers prove gets
# *worse*, from 0.125 to 0.139, and the file's claim of 0.125 is refused.

# %%
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "design.json")
design.save(path)
text = json.loads(path.read_text("utf-8"))
print("keys of a design file:", *text)
text["certificate"]["potentials"][1] *= 0.9
path.write_text(json.dumps(text), encoding="utf-8")
broken = load_design(path).verify()
print("holds:", bool(broken))
print(*broken.failures, sep="\n")
folder.cleanup()

# %% [markdown]
# ## A second, independent proof
#
# Another method proves the same optimum with other numbers: prices of the answers, and all $2^3$ columns looked at.

# %%
other = optimal_channel(design.utility, design.constraints, method=PatternLP())
print(type(design.certificate).__name__, f"{design.upper_bound:.12f}")
print(type(other.certificate).__name__, f"{other.upper_bound:.12f}")

# %% [markdown]
# ## A checker of its own
#
# `ldpopt verify design.json` checks a file with the package. `python3 -m ldpopt_check design.json` does so with nothing
# but Python's standard library, in rational arithmetic. Here it reads the two files: the honest one and the broken one.

# %%
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "design.json")
for name in ("honest", "broken"):
    path.write_text(design.to_json() if name == "honest" else json.dumps(text), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "ldpopt_check", path.name], cwd=folder.name, capture_output=True, text=True
    )
    print(f"{name}: exit code {ended.returncode}", ended.stdout.strip(), sep="\n")
folder.cleanup()

# %% [markdown]
# ## Exercises
#
# 1. Raise the middle potentials instead of lowering one: $u = (0, \tfrac56 + t, \tfrac56 + t, \tfrac53)$. For which
#    $t$ do all six inequalities still hold?
# 2. Claim a bound of 0.12 in the file, and verify it. What is refused?
# 3. Without the cap the same potentials and a price still prove a bound. Design without the cap: what are the level
#    and the bound?
#
# The answers are in the folded cells below.

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 1. For none but 0: block 3 leaves no room above, and block 1 none below.
for t in (Fraction(-1, 100), Fraction(0), Fraction(1, 100)):
    v = [u[0], u[1] + t, u[2] + t, u[3]]
    held = []
    for i in range(3):
        for j in range(i + 1, 4):
            x, y = 1 + 4 * sum(a[i:j]), 1 + 4 * sum(b[i:j])
            held.append((x - y) ** 2 / (x + y) <= v[j] - v[i])
    print(f"t = {t!s:>6}: {sum(held)} of {len(held)} hold")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 2. The numbers prove 0.125, which is more than the file claims.
with tempfile.TemporaryDirectory() as name:
    path = Path(name, "design.json")
    design.save(path)
    text = json.loads(path.read_text("utf-8"))
    text["upper_bound"] = 0.12
    path.write_text(json.dumps(text), encoding="utf-8")
    print(*load_design(path).verify().failures, sep="\n")

# %% tags=["hide-cell"] jupyter={"source_hidden": true, "outputs_hidden": true}
# Answer 3. The certificate is of the same kind, or of a simpler one.
free = optimal_channel(design.utility, LocalDP(np.log(5)))
print(type(free.certificate).__name__, f"bound {free.upper_bound:.9f}, value {free.value:.9f}")
