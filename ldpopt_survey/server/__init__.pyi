from ldpopt_survey.server.app import collector as collector
from ldpopt_survey.server.databases import database as database
from ldpopt_survey.server.decide import Outcome as Outcome
from ldpopt_survey.server.decide import RoundState as RoundState
from ldpopt_survey.server.decide import Summary as Summary
from ldpopt_survey.server.export import export_reports as export_reports
from ldpopt_survey.server.invitations import draw_invitations as draw_invitations
from ldpopt_survey.server.store import Store as Store
from ldpopt_survey.server.store import Unavailable as Unavailable
from ldpopt_survey.server.submission import Submission as Submission
from ldpopt_survey.server.web import StaticFile as StaticFile
from ldpopt_survey.server.web import static_files as static_files

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
