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
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_MODULES]

__getattr__ = offering(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
