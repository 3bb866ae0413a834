"""The guarantees of a design: one file per privacy definition, named like its measure in `ldpopt.privacy`.

A constraint loads when its name is first used.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpopt.design.constraints.base import AlphabetConstraint, ColumnConstraint, Constraint
    from ldpopt.design.constraints.capacity import CapacityBounded
    from ldpopt.design.constraints.hockey_stick import ApproximateLDP, TotalVariation, TradeOff
    from ldpopt.design.constraints.invariant import Invariant
    from ldpopt.design.constraints.local_dp import LocalDP
    from ldpopt.design.constraints.moment import ConcentratedLDP, RenyiLDP
    from ldpopt.design.constraints.outputs import Denominator, Outputs, Support

__all__ = [
    "AlphabetConstraint", "ApproximateLDP", "CapacityBounded", "ColumnConstraint", "ConcentratedLDP", "Constraint",
    "Denominator", "Invariant", "LocalDP", "Outputs", "RenyiLDP", "Support", "TotalVariation", "TradeOff",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        from ldpopt.design.registry import import_defining_module

        return getattr(import_defining_module(name, sys.modules[__name__]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
