"""Collecting reports from respondents' devices: an ASGI application over SQLite or PostgreSQL, invitations, export."""

from ldpopt_survey.server.app import collector
from ldpopt_survey.server.databases import database
from ldpopt_survey.server.decide import Outcome, RoundState, Summary
from ldpopt_survey.server.export import export_reports
from ldpopt_survey.server.invitations import draw_invitations
from ldpopt_survey.server.store import Store, Unavailable
from ldpopt_survey.server.submission import Submission
from ldpopt_survey.server.web import StaticFile, static_files

__all__ = [
    "Outcome", "RoundState", "StaticFile", "Store", "Submission", "Summary", "Unavailable", "collector", "database",
    "draw_invitations", "export_reports", "static_files",
]  # fmt: skip
