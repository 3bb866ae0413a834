"""A condition of several methods: two hypotheses, epsilon-LDP between all inputs, with `TotalVariation` or without."""

from __future__ import annotations

import math

from ldpopt.design.problems.problem import Problem


def needs_pure_ldp(problem: Problem) -> str:
    """Why a method for two hypotheses under `LocalDP`, with `TotalVariation` or without, refuses; empty if not."""
    if problem.utility.pair is None:
        return f"it goes by the likelihood ratio of two hypotheses, and {problem.utility.name} has none, or several"
    if not problem.plain:
        return "it takes LocalDP and TotalVariation between all inputs, and there are other constraints"
    if math.isinf(problem.epsilon):
        return "it needs a LocalDP constraint; Erasure solves a cap on total variation alone"
    return ""
