"""Results for readers: guarantees in plain words, pictures of a design, and self-contained pages."""

from __future__ import annotations

import importlib
from typing import Any

from ldpopt.reports.page import embed as embed
from ldpopt.reports.page import page as page  # a module of this name, too
from ldpopt.reports.page import table as table

_HOMES = {
    "ldpopt.plots.channel": ("design_picture",),
    "ldpopt.reports.delivery": ("Finding", "Findings", "results", "verify_delivery"),
    "ldpopt.reports.survey": ("survey_report",),
    "ldpopt.reports.words": ("guarantee_in_words", "reports_in_words", "verdict"),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["embed", "page", "table", *_MODULES]


def __getattr__(name: str) -> Any:
    """A name when it is first used: the words of a proof need neither surveys nor pictures."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
