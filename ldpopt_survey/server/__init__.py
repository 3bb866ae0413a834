"""Collecting reports from respondents' devices: an ASGI application over SQLite or PostgreSQL, invitations, export."""

from ldpopt.extras import offering

_HOMES = {
    "ldpopt_survey.server.app": ("collector",),
    "ldpopt_survey.server.databases": ("database",),
    "ldpopt_survey.server.decide": ("Outcome", "RoundState", "Summary"),
    "ldpopt_survey.server.export": ("export_reports",),
    "ldpopt_survey.server.invitations": ("draw_invitations",),
    "ldpopt_survey.server.store": ("Store", "Unavailable"),
    "ldpopt_survey.server.submission": ("Submission",),
    "ldpopt_survey.server.web": ("StaticFile", "static_files"),
}  # fmt: skip

__all__, __getattr__, __dir__ = offering(__name__, _HOMES)
