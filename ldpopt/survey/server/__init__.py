"""Collecting reports from respondents' devices: an ASGI application over SQLite or PostgreSQL, invitations, export."""

from ldpopt.survey.server.app import collector
from ldpopt.survey.server.export import export_reports
from ldpopt.survey.server.invitations import draw_invitations
from ldpopt.survey.server.location import database
from ldpopt.survey.server.static import StaticFile, static_files
from ldpopt.survey.server.store import Outcome, RoundState, Store, Summary, Unavailable
from ldpopt.survey.server.submission import Submission

__all__ = [
    "Outcome",
    "RoundState",
    "StaticFile",
    "Store",
    "Submission",
    "Summary",
    "Unavailable",
    "collector",
    "database",
    "draw_invitations",
    "export_reports",
    "static_files",
]
