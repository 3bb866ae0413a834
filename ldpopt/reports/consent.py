"""A draft of the text that respondents read before they answer, made from the plan."""

from __future__ import annotations

from ldpopt.privacy import Guarantee
from ldpopt.reports.words import guarantee_in_words
from ldpopt.survey.plan.plan import Plan


def consent_paragraph(plan: Plan) -> str:
    """A paragraph for a consent form: what happens to the answers, what a report can tell, and what is not protected.

    It is Markdown, a draft for a person to adapt. The guarantees are those of the plan, rounded up.

    >>> from ldpopt.survey import QuestionSpec, SurveySpec, plan_survey
    >>> plan = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), epsilon=1.0)).plan
    >>> print(consent_paragraph(plan).splitlines()[2])
    Before anybody looks at your answer, a computer replaces it by a report that is drawn at random...
    """
    several = len(plan.questions) > 1
    what = f"your answers to {len(plan.questions)} questions" if several else "your answer"
    them, is_ = ("them", "are") if several else ("it", "is")
    report = "reports that are" if several else "a report that is"
    promises = [
        guarantee_in_words(Guarantee("local_dp", plan.epsilon, plan.epsilon, None, True, "[GI, Def 6]")),
        guarantee_in_words(Guarantee("total_variation", plan.eta, plan.eta, None, True, "[GI, Def 7]")),
    ]
    if several:
        promises = [one.replace("any report is", "all your reports together are") for one in promises]
        promises = [one.replace("with your report,", "with all your reports,") for one in promises]
    said = [
        f"# {plan.name}: what happens to your answers (draft)",
        "",
        f"Before anybody looks at {what}, a computer replaces {them} by {report} drawn at random: often near the "
        f"truth, often not. Only the reports are kept and published; {what} {is_} deleted. Shares of all respondents "
        "can be computed from many reports together. What can be told from yours alone is limited:",
        "",
        *[f"- {one}" for one in promises],
        f"- This holds for one round of the survey{_rounds(plan)}.",
        *[f"- {one}" for one in not_protected(plan)],
        "",
        "Taking part is voluntary. <!-- Say here: who asks, what for, how long the answers are kept before they are "
        "replaced, and whom to ask. -->",
        "",
    ]
    return "\n".join(said)


def _rounds(plan: Plan) -> str:
    epsilon, _ = plan.over_rounds(2)
    return f"; a second one adds to it (then e^{epsilon:.4g} takes the place of e^{plan.epsilon:.4g})"


def not_protected(plan: Plan) -> list[str]:
    """Sentences about what the guarantee does not cover.

    >>> from ldpopt.survey import QuestionSpec, SurveySpec, plan_survey
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), epsilon=1.0, carry=("region",))
    >>> not_protected(plan_survey(spec).plan)[0]
    'These are kept and published as they are, not replaced: region.'
    """
    said = []
    if plan.carry:
        said.append(f"These are kept and published as they are, not replaced: {', '.join(plan.carry)}.")
    left_out = [question.name for question in plan.questions if question.reading.left_out]
    own = [question.name for question in plan.questions if question.reading.own_category]
    if left_out:
        said.append(f"Whether you answered is not hidden for: {', '.join(left_out)}. What you answered is.")
    if own:
        said.append(f"Whether you answered is hidden like the answer itself for: {', '.join(own)}.")
    said.append("That you took part is not hidden.")
    return said
