"""ldpopt: design, certify and use locally private mechanisms.

This package exports the names for everyday use. A problem consists of utilities, the criteria, sets and neighborhoods
that they take, and constraints; `optimal_channel` solves it. The divergences, the named mechanisms and the measures of
a channel are exported too, and `compose`, `k_fold`, `Ledger`, `audit`, `frontier`, `sweep`, `cite` and every error.
Methods and certificates are in `ldpopt.design`, and everything else in its module. A name loads when it is first used,
so importing the package stays fast.

>>> import ldpopt
>>> sorted(ldpopt.__all__)[:3]
['AOptimal', 'AgainstSet', 'ApproximateLDP']
"""

from __future__ import annotations

import importlib
from typing import Any

from ldpopt.extras import load_with as _load_with
from ldpopt.version import __version__ as __version__

_HOMES = {
    "ldpopt.channel": ("Channel",),
    "ldpopt.citation": ("cite",),
    "ldpopt.composition": ("Ledger", "compose", "k_fold"),
    "ldpopt.design": ("Design", "load_design", "optimal_channel", "structures"),
    "ldpopt.divergences": (
        "CHI_SQUARED", "JEFFREYS", "JENSEN_SHANNON", "KL", "LE_CAM", "NEYMAN_CHI_SQUARED", "REVERSE_KL",
        "SQUARED_HELLINGER", "TOTAL_VARIATION",
    ),
    "ldpopt.errors": (
        "BudgetExceeded", "CertificateError", "DroppedResult", "InvalidInput", "LdpoptError", "NotChecked",
        "SolverError",
    ),
    "ldpopt.frontiers": ("frontier", "sweep"),
    "ldpopt.mechanisms": (
        "binary", "binary_with_erasure", "crosswise", "forced_response", "gaussian", "hadamard_response", "kuk",
        "laplace", "local_hashing", "matrix_mechanism", "optimized_local_hashing", "optimized_unary_encoding",
        "piecewise", "randomized_response", "sort_partition_randomize", "square_wave", "staircase",
        "subset_selection", "triangular", "truncated_geometric", "two_step", "unary_encoding", "unrelated_question",
        "warner",
    ),
    "ldpopt.privacy": (
        "Guarantee", "approximate_dp", "approximate_zcdp", "audit", "capacity_bounded", "doeblin", "local_dp",
        "maximal_leakage", "mcdp", "mutual_information", "renyi", "total_variation", "trade_off", "zcdp",
    ),
}  # fmt: skip
"""The modules of the names that pose no problem; `hockey_stick`, a divergence and a measure, is left to its modules."""

_MODULES = {name: module for module, names in _HOMES.items() for name in names}
_SUBMODULES = (
    "bounds", "channel", "composition", "datasets", "design", "divergences", "errors", "frontiers", "io", "mechanisms",
    "plots", "privacy",
)  # fmt: skip


_load_with(lambda: importlib.import_module("ldpopt.plots"))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    if name in _SUBMODULES:
        return importlib.import_module(f"ldpopt.{name}")
    if name == "__all__":
        return sorted({*_MODULES, *_posing()})
    if name[:1].isupper():
        from ldpopt.design import constraints, registry, utilities

        if kind := registry.registered_type(name, utilities, constraints):
            return kind
    raise AttributeError(f"module 'ldpopt' has no attribute {name!r}")


def _posing() -> dict[str, type]:
    """The utilities and the constraints, and their arguments."""
    from ldpopt.design import constraints, registry, utilities

    return dict(registry.registered_types(utilities, constraints))


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *__getattr__("__all__")})
