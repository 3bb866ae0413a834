"""Results for readers: self-contained HTML reports, and the checks of a delivered survey folder."""

from __future__ import annotations

from ldpopt.extras import offering
from ldpopt_survey.reports.page import embed as embed
from ldpopt_survey.reports.page import page as page  # a module of this name, too
from ldpopt_survey.reports.page import table as table

_HOMES = {
    "ldpopt_survey.reports.delivery": ("Finding", "Findings", "results", "verify_delivery"),
    "ldpopt_survey.reports.survey": ("survey_report",),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["embed", "page", "table", *_MODULES]


__getattr__ = offering(__name__, _MODULES)  # pages alone need no survey


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
