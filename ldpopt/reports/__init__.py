"""Results for readers: guarantees in plain words, pictures of a design, and self-contained pages."""

from ldpopt.plots.channel import design_picture
from ldpopt.reports.delivery import Finding, Findings, results, verify_delivery
from ldpopt.reports.page import embed, page, table
from ldpopt.reports.survey import survey_report
from ldpopt.reports.words import guarantee_in_words, reports_in_words, verdict

__all__ = [
    "Finding", "Findings", "design_picture", "embed", "guarantee_in_words", "page", "reports_in_words", "results",
    "survey_report", "table", "verdict", "verify_delivery",
]  # fmt: skip
