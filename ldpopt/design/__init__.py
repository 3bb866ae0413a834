"""Design optimal channels with certificates.

Terms of this package:

- `answer`, `input` : the true response of a person; a row of the channel.
- `report`, `output` : the privatized response; a column of the channel.
- `column` : the k probabilities of one report, one per answer.
- `marginal` : the distribution of the report under a hypothesis.
- `ratio` : the likelihood ratio of two hypotheses, P0/P1 of an answer or M0/M1 of a report.
- `erasure` : a report that is equally likely under all answers, and therefore uninformative.
- `pattern` : a staircase pattern, a column with one value on a set of answers, and exp(epsilon) times less on the
  others.
- `block` : answers that are neighbors in the order of their ratios and share one row.
- `multiplier` : the dual value of a constraint; the upper bound of a design consists of multipliers.
- `price` : the cost of a column at given multipliers. Pricing searches for a column whose value exceeds its cost.
- `tangent` : a linear function that touches a convex one at a point, and lies below it everywhere.
- `enclosed` : computed as an interval that contains the exact number.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from ldpopt.design.registry import CERTIFICATE_MODULES as _CERTIFICATES
from ldpopt.design.registry import METHOD_MODULES as _METHODS
from ldpopt.design.registry import ModuleGroup as _ModuleGroup
from ldpopt.design.registry import registered_type as _registered_kind
from ldpopt.design.registry import registered_types as _registered

_HOMES = {
    "ldpopt.design.kernel.certificate": ("Certificate", "Verification"),
    "ldpopt.design.candidate": ("Candidate", "Method"),
    "ldpopt.design.constraints.repair": ("Unrepairable", "repair"),
    "ldpopt.design.constraints.base": ("AlphabetConstraint", "ColumnConstraint", "Constraint"),
    "ldpopt.design.design": ("Design", "is_certified"),
    "ldpopt.design.load": ("load_design", "load_respondents", "parse_design", "verify_design"),
    "ldpopt.design.patterns.method_cvxpy": ("DesignProgram", "problem"),
    "ldpopt.design.estimation.method_marginals": ("respondents_kernel",),
    "ldpopt.design.optimal": ("METHODS", "optimal_channel"),
    "ldpopt.design.registry": (
        "command_options", "offered_types", "parameter_values", "types_with_parameters",
    ),
    "ldpopt.design.structure": ("Structure", "Structures", "structures"),
    "ldpopt.design.utilities.base": ("ColumnUtility", "Utility"),
    "ldpopt.design.utilities.criterion": ("Criterion",),
    "ldpopt.design.utilities.sets": ("HypothesisSet", "Neighbourhood"),
}  # fmt: skip
"""The modules of the names that are not registered types; `registry` finds the types."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
_PACKAGES = ("utilities", "constraints")


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: loading a design needs no method, and measuring a channel no solver."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    if name == "__all__":
        return sorted({*_MODULES, *_registered(*_rooms())})
    if name[:1].isupper() and (kind := _registered_kind(name, *_rooms())):
        return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _rooms() -> tuple[ModuleType | _ModuleGroup, ...]:
    return *(importlib.import_module(f"{__name__}.{name}") for name in _PACKAGES), _CERTIFICATES, _METHODS


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
