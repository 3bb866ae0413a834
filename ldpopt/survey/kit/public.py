"""The public plan: what a respondent's device needs of a plan, and nothing that the plan's owner knows beside it."""

from __future__ import annotations

import math
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.labels import as_text
from ldpopt.survey.collect.randomness.randomness import word_tags
from ldpopt.survey.plan.plan import Plan, PlannedQuestion

FORMAT = "ldpopt-public-plan"
VERSION = 1


def public_plan(plan: Plan) -> dict[str, Any]:
    """The public plan as JSON-ready values (schema ``ldpopt-public-plan``, version 1), under the plan's checksum.

    It has the integers of every channel, since everybody may know how the reports are drawn, and the tags of memoised
    words, which are no secret without a device's key. It leaves out what a device does not need: pilot shares, which
    may come from confidential data, expected precision, and the names of columns.

    Raises `InvalidInput` for a plan with a question whose integers prove nothing: such a report can give the answer
    away, and nobody should be told that it is protected.
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
