"""Draw the picture of the README anew: ``python docs/images/frontier.py``."""

from pathlib import Path

from ldpopt import Divergence, demo, plots
from ldpopt.datasets import load_anes96
from ldpopt.divergences import KL

survey = load_anes96()
utility = Divergence(KL, *survey.conditional("income", given="vote"))
ax = plots.frontier(demo.curves(utility))
ax.set_title("Clinton against Dole voters, 1996: what their privatized income still tells", fontsize=11, loc="left")
Path(__file__).with_suffix(".png").write_bytes(plots.picture(ax))
