"""The papers' results recomputed: each claim with its numbers, a picture and a verdict.

`EXPERIMENTS` has them by name, and `run` computes one into a folder. The command is ``python -m experiments.papers``.
"""

from experiments.papers.claims import EXPERIMENTS, experiment_named, recorded
from experiments.papers.experiment import Experiment, Outcome, Table, Verdict
from experiments.papers.folder import compute, index_page, run

__all__ = [
    "EXPERIMENTS", "Experiment", "Outcome", "Table", "Verdict", "compute", "experiment_named", "index_page", "recorded",
    "run",
]  # fmt: skip
