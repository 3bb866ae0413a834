"""Invitations: random words, each of which allows one submission to a round. The database keeps only their hashes."""

from __future__ import annotations

import secrets

from ldpopt.distribution import positive_integer
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.server.store import Store
from ldpopt.survey.server.submission import invitation_hash

_AT_ONCE = 10_000


def draw_invitations(plan: Plan, store: Store, count: int) -> list[str]:
    """Draw `count` invitations to the round, 128 random bits each. From then on every submission needs one.

    The database keeps their hashes and which are used, but not by which report. `InvalidInput` for a count that is not
    a positive integer.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt.survey import QuestionSpec, SurveySpec, make_plan
    >>> from ldpopt.survey.server import database
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> with TemporaryDirectory() as folder, database(Path(folder, "reports.db"), plan, create=True) as store:
    ...     len(draw_invitations(plan, store, 3)), store.summary().drawn
    (3, 3)
    """
    count = positive_integer(count, "invitations")
    drawn = [secrets.token_urlsafe(16) for _ in range(count)]
    for start in range(0, count, _AT_ONCE):
        store.invite([invitation_hash(plan.checksum, one) for one in drawn[start : start + _AT_ONCE]])
    return drawn
