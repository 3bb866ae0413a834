"""Frontiers: the optimum over a range of privacy limits."""

from ldpopt.frontiers.envelope import Corner, Envelope, envelope
from ldpopt.frontiers.family import FamilyFrontier, FamilyRow
from ldpopt.frontiers.grid import BASELINES, Frontier, FrontierRow
from ldpopt.frontiers.tabulate import frontier

__all__ = [
    "BASELINES",
    "Corner",
    "Envelope",
    "FamilyFrontier",
    "FamilyRow",
    "Frontier",
    "FrontierRow",
    "envelope",
    "frontier",
]
