"""Optimal channels with certificates."""

from __future__ import annotations

import importlib
from typing import Any

from ldpopt.design.certificate import Certificate, Contraction, LabelDual, PatternDual, Verification
from ldpopt.design.constraints import Constraint, LocalDP, TotalVariation
from ldpopt.design.design import Design
from ldpopt.design.methods import Erasure, MergedPartition, Method, Partition, PatternLP
from ldpopt.design.optimal import optimal_channel
from ldpopt.design.utilities import Divergence

__all__ = [
    "Certificate",
    "Constraint",
    "Contraction",
    "Design",
    "Divergence",
    "Erasure",
    "LabelDual",
    "LocalDP",
    "MergedPartition",
    "Method",
    "Partition",
    "PatternDual",
    "PatternLP",
    "TotalVariation",
    "Verification",
    "optimal_channel",
]


def __getattr__(name: str) -> Any:
    # A frontier also needs the published bounds, a layer above designs; it is found here because users look here.
    if name in {"Frontier", "FrontierRow", "frontier"}:
        return getattr(importlib.import_module("ldpopt.frontiers"), name)
    raise AttributeError(f"module 'ldpopt.design' has no attribute {name!r}")
