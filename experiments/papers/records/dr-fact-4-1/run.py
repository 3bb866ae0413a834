"""Recompute this claim: `python run.py`, or `python run.py --quick` for a short form that leaves nothing."""

from experiments.papers.folder import main

main(__file__)
