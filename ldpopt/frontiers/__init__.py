"""Frontiers and sweeps: the optimum for many (epsilon, eta), or for many values of a constraint's parameter."""

from ldpopt.frontiers.central import ShuffledComparison, ShuffledRow, after_shuffling
from ldpopt.frontiers.envelope import Corner, Envelope, envelope
from ldpopt.frontiers.grid import BASELINES, Frontier, FrontierRow, frontier
from ldpopt.frontiers.sweeps import Sweep, SweepRow, sweep

__all__ = [
    "BASELINES", "Corner", "Envelope", "Frontier", "FrontierRow", "ShuffledComparison", "ShuffledRow", "Sweep",
    "SweepRow", "after_shuffling", "envelope", "frontier", "sweep",
]  # fmt: skip
