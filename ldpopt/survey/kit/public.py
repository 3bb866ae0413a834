"""The public plan: the part of a plan that a respondent's device needs, without the owner's confidential data."""

from __future__ import annotations

import math
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.labels import as_text
from ldpopt.survey.collect.randomness import word_tags
from ldpopt.survey.plan.plan import Plan, PlannedQuestion

FORMAT = "ldpopt-public-plan"
VERSION = 1


def public_plan(plan: Plan) -> dict[str, Any]:
    """The public plan as JSON-ready values (schema ``ldpopt-public-plan``, version 1), under the plan's checksum.

    It has the integers of every channel, since everybody may know how reports are drawn. It also has the tags of the
    questions, from which memoised words are computed together with a device's secret key. It leaves out the pilot
    shares (expected shares of the answers, perhaps from confidential data), the expected precision, and column names.

    Raises `InvalidInput` for a plan with a question whose integers prove no guarantee. Its reports could reveal the
    answer, and nobody should be told that they are protected.
    """
    memoised = plan.respondent is not None
    return {
        "format": FORMAT,
        "version": VERSION,
        "checksum": plan.checksum,
        "name": plan.name,
        "round": plan.round,
        "randomness": "memoised" if memoised else "fresh",
        "questions": [_question(plan, question, memoised) for question in plan.questions],
    }


def _question(plan: Plan, question: PlannedQuestion, memoised: bool) -> dict[str, Any]:
    proof = question.channel.proof()
    if not (proof.epsilon < math.inf or proof.eta < 1):
        got = Phrase("one whose reports can give an answer away for certain")
        raise invalid(f"question {question.name!r}", "a channel that guarantees something", got)
    tags = [tag.hex() for tag in word_tags(plan, question)]
    missing = None if question.missing is None else question.categories.index(question.missing)
    return {
        "name": question.name,
        "answers": [as_text(category) for category in question.categories],
        "reports": list(question.reports),
        "missing": missing,
        "bits": question.channel.bits,
        "weights": [[str(weight) for weight in row] for row in question.channel.weights.tolist()],
        # Plans of version 1 have one tag for all answers.
        "tags": (tags if len(tags) > 1 else tags * len(question.categories)) if memoised else None,
    }
