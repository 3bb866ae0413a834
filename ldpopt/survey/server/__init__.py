"""Collecting reports from respondents' devices: an ASGI application over SQLite or PostgreSQL, invitations, export."""

from ldpopt.survey.server.app import collector
from ldpopt.survey.server.databases import database
from ldpopt.survey.server.decide import Outcome, RoundState, Summary
from ldpopt.survey.server.export import draw_invitations, export_reports
from ldpopt.survey.server.store import Store, Unavailable
from ldpopt.survey.server.submission import Submission
from ldpopt.survey.server.web import StaticFile, static_files

__all__ = [
    "Outcome", "RoundState", "StaticFile", "Store", "Submission", "Summary", "Unavailable", "collector", "database",
    "draw_invitations", "export_reports", "static_files",
]  # fmt: skip
