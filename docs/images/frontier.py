"""Draw the picture of the README anew: ``python docs/images/frontier.py``."""

import math
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from ldpopt import Divergence, plots
from ldpopt.datasets import load_anes96
from ldpopt.divergences import KL
from ldpopt.frontiers import Frontier, frontier

survey = load_anes96()
utility = Divergence(KL, *survey.conditional("income", given="vote"))
rows = []
for epsilon in (1.0, 2.0, 4.0):
    # The optimum can have kinks at the caps of randomized response on m blocks.
    kinks = [math.expm1(epsilon) / (math.exp(epsilon) + m - 1) for m in (*range(2, 9), utility.size)]
    rows += frontier(utility, [epsilon], sorted({*np.linspace(0, 1, 6).tolist(), *kinks}))
axes = plt.subplots(figsize=(5.6, 4.6), layout="constrained")[1]  # narrow, so a phone shows letters that can be read
ax = plots.frontier(Frontier(tuple(rows), utility), axes, legend="below")
ax.set_title("Information in privatized income: Clinton and Dole voters, 1996", fontsize=10, loc="left")
Path(__file__).with_suffix(".png").write_bytes(plots.picture(ax))
