"""Results for readers: self-contained HTML reports, and the checks of a delivered survey folder."""

from __future__ import annotations

from ldpopt.extras import offering
from ldpopt_survey.reports.page import embed, page, table  # `page` is a module, too

_HOMES = {
    "ldpopt_survey.reports.delivery": ("Finding", "Findings", "results", "verify_delivery"),
    "ldpopt_survey.reports.survey": ("survey_report",),
}

# Pages alone need no survey.
__all__, __getattr__, __dir__ = offering(__name__, _HOMES, (embed, page, table))
