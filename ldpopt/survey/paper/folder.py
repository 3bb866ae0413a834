"""The files that belong to a survey on paper, beside its printed sheets."""

from __future__ import annotations

import csv
import io

from ldpopt.survey.paper.design import SHEET, PaperSurvey


def paper_files(survey: PaperSurvey) -> dict[str, bytes]:
    """The files by name: the plan under which reports are counted, each question's channel, and the empty entry file.

    `ldpopt check` proves the guarantees of the channel files again.

    >>> from ldpopt.survey import QuestionSpec, SurveySpec, plan_survey
    >>> from ldpopt.survey.paper.design import paper_survey
    >>> from ldpopt.survey.paper.devices import TWO_DICE
    >>> plan = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))).plan
    >>> sorted(paper_files(paper_survey(plan, TWO_DICE)))
    ['channel-1.json', 'codes.csv', 'plan.json']
    """
    plan = survey.plan
    made = {"plan.json": plan.to_json().encode()}
    for number, question in enumerate(plan.questions, 1):
        made[f"channel-{number}.json"] = question.channel.to_json().encode()
    head = io.StringIO(newline="")
    csv.writer(head, lineterminator="\n").writerow(
        [SHEET, *(question.name for question in plan.questions), *plan.carry]
    )
    made["codes.csv"] = head.getvalue().encode()
    return made
