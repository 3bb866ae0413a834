"""The method for a problem when the caller names none."""

from __future__ import annotations

import math

from ldpopt.design.candidate import Method
from ldpopt.design.methods.erasure import Erasure
from ldpopt.design.methods.partition import PARTITION_LIMIT, MergedPartition, Partition
from ldpopt.design.problems.problem import Problem


def choose(problem: Problem) -> Method:
    """The method for a problem when the caller names none."""
    if not problem.plain:
        from ldpopt.design.constraints import ZCDP, RenyiLDP
        from ldpopt.design.methods.exchange import Exchange
        from ldpopt.design.methods.tangent_exchange import TangentExchange

        given = problem.constraints
        smooth = all(isinstance(c, RenyiLDP) and c.order <= 1.2 for c in given)
        if not smooth and not any(isinstance(c, ZCDP) for c in given):
            return Exchange()
        # Beyond a dozen inputs the last digits take most of the time.
        return TangentExchange() if len(problem.reduction.pair) <= 12 else TangentExchange(accuracy=5e-6)
    if math.isinf(problem.epsilon):
        return Erasure()
    return Partition() if len(problem.reduction.pair) <= PARTITION_LIMIT else MergedPartition()
