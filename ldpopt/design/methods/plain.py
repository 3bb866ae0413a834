"""What several methods ask of a problem: epsilon-LDP between all inputs, with a cap on total variation or without."""

from __future__ import annotations

import math

from ldpopt.design.problems.problem import Problem
from ldpopt.errors import invalid


def needs_epsilon(problem: Problem, method: str) -> None:
    """`InvalidInput` unless the problem is epsilon-LDP, with a TV cap or without."""
    if not problem.plain:
        raise invalid(method, "LocalDP and TotalVariation between all inputs (Exchange takes any constraint)", "others")
    if math.isinf(problem.epsilon):
        raise invalid(method, "a LocalDP constraint (Erasure solves a TV cap alone)", "none")
