"""Frontiers and sweeps: the optimum over (epsilon, eta), and over the parameter of any family of constraints."""

from ldpopt.frontiers.envelope import Corner, Envelope, envelope
from ldpopt.frontiers.grid import BASELINES, Frontier, FrontierRow, frontier
from ldpopt.frontiers.sweeps import Sweep, SweepRow, sweep

__all__ = [
    "BASELINES",
    "Corner",
    "Envelope",
    "Frontier",
    "FrontierRow",
    "Sweep",
    "SweepRow",
    "envelope",
    "frontier",
    "sweep",
]
