"""Results for readers: self-contained HTML reports, and the checks of a delivered survey folder."""

from __future__ import annotations

import importlib
from typing import Any

from ldpopt_survey.reports.page import embed as embed
from ldpopt_survey.reports.page import page as page  # a module of this name, too
from ldpopt_survey.reports.page import table as table

_HOMES = {
    "ldpopt_survey.reports.delivery": ("Finding", "Findings", "results", "verify_delivery"),
    "ldpopt_survey.reports.survey": ("survey_report",),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["embed", "page", "table", *_MODULES]


def __getattr__(name: str) -> Any:
    """A name when it is first used: pages alone need no survey."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
