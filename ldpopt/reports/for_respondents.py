"""From a plan to what respondents read: the steps and promises of printed sheets, and a draft of a consent form."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from ldpopt.labels import as_text
from ldpopt.privacy import Guarantee
from ldpopt.reports.words import guarantee_in_words
from ldpopt.rounding import ceil_digits
from ldpopt.survey.paper.design import PaperSurvey
from ldpopt.survey.plan.plan import Plan, PlannedQuestion

TITLE = "How to answer so that nobody can know"


def steps(survey: PaperSurvey) -> list[str]:
    """The steps that a person follows for each question, in one or two sentences each."""
    device = survey.device
    with_cards = "Look at the question and take the card with your true answer. Hold it so that nobody else sees it."
    told = "Say only that letter. Do not say which card you have"
    told += "." if device.spins else ", and do not say or show what came up."
    return [
        with_cards,
        *device.draw,
        device.find,
        told,
        "Put the card back among the others and mix them.",
    ]


def why(survey: PaperSurvey) -> list[str]:
    """Sentences that explain why this is safe."""
    ratio = max(_ratio(question) for question in survey.plan.questions)
    return [
        "Every letter can come up on every card of its question. Whoever hears your letter cannot know which card you "
        "held: chance chose the letter, too.",
        f"Whatever your answer is, no letter is more than {_times(ratio)} times as likely as with another answer.",
        "Please take the letter that comes up, even if you would like another one better, and do not draw again. Only "
        "then can we find out how many people gave each answer, without ever knowing who did.",
    ]


RULES = (
    "Hand out all cards of the question, face down and mixed, and the device. Then look away.",
    "Never look at a card that somebody holds, nor at what the device shows. If you have seen it, stop: write nothing "
    "for this question, and strike out the line.",
    "Write down the letter only. Do not write names, and do not write what came up.",
    "Each question has letters of its own: a letter of another question is a mistake; ask again which letter it was, "
    "but never to draw again.",
    "Whoever does not want to answer need not. Leave the box empty.",
    "Number the lines of all your sheets from 1 on, and use each number once. Type them in as the column \"sheet\".",
)  # fmt: skip


def promises(survey: PaperSurvey, question: PlannedQuestion) -> list[str]:
    """The guarantees of a question's sheet, and their cost in respondents."""
    D, proof = survey.device.denominator, question.channel.proof()
    ratio, loss = _ratio(question), survey.losses[question.name]
    right = (50 * (1 + Decimal(question.eta))).quantize(Decimal("0.01"), ROUND_CEILING)
    unfair = float(ratio * Fraction(105, 95))
    x, other, y = proof.ratio_at
    named = f"{as_text(question.categories[x])!r} against {as_text(question.categories[other])!r}"
    return [
        f"Each answer has {D} outcomes, all equally likely. The table says how many of them lead to each letter.",
        f"Whatever the answer is, no letter is more than {_times(ratio)} times as likely as with another answer "
        f"(exactly {ratio}: letter {question.reports[y]}, {named}). That is ε = {ceil_digits(proof.epsilon, 5)} of "
        f"local differential privacy; the plan asks for at most {survey.intended[question.name]:.5g}. It follows from "
        "the integers in the table, without rounding.",
        f"Who hesitates between two answers that seem equally likely guesses right at most {float(right):g} % of the "
        "time after hearing the letter, and 50 % of the time without it.",
        f"This holds if {survey.device.assumption}, and if nobody else sees the card or what came up. If outcomes are "
        f"up to 5 % more or less likely than they should be, a letter is at most {ceil_digits(unfair, 3)} times as "
        "likely as with another answer.",
        f"Estimates need {100 * loss:.1f} % more people than with the best chance that a computer could draw for the "
        "same ε; that is the price of a device that people can hold.",
    ]


def _ratio(question: PlannedQuestion) -> Fraction:
    ratio = question.channel.proof().ratio
    assert ratio is not None  # epsilon is finite
    return ratio


def _times(ratio: Fraction) -> str:
    """A ratio, rounded up and written with as few digits as it needs.

    >>> _times(Fraction(13, 5)), _times(Fraction(19, 7))
    ('2.6', '2.72')
    """
    hundredths = -(-ratio.numerator * 100 // ratio.denominator)
    return f"{hundredths / 100:g}"


def consent_paragraph(plan: Plan) -> str:
    """A paragraph for a consent form: what happens to the answers, what a report can tell, and what is not protected.

    It is Markdown, a draft for a person to adapt. The guarantees are those of the plan, rounded up.

    >>> from ldpopt.survey import QuestionSpec, SurveySpec, plan_survey
    >>> plan = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), epsilon=1.0)).plan
    >>> print(consent_paragraph(plan).splitlines()[2])
    Before anybody looks at your answer, a computer replaces it by a report that is drawn at random...
    """
    asked = max((len(q.answers) for q in plan.booklets), default=0) + sum(len(q.answers) for q in plan.everyone)
    several = asked > 1
    what = (
        (f"your answers to {asked} questions" if several else "your answer") if not plan.booklets else "what you answer"
    )
    them, is_ = ("them", "are") if several and not plan.booklets else ("it", "is")
    together = len(plan.everyone) + bool(plan.booklets) > 1
    report = "reports that are" if together else "a report that is"
    promises = [
        guarantee_in_words(Guarantee("local_dp", plan.epsilon, plan.epsilon, None, True, "[GI, Def 6]")),
        guarantee_in_words(Guarantee("total_variation", plan.eta, plan.eta, None, True, "[GI, Def 7]")),
    ]
    if together:
        promises = [one.replace("any report is", "all your reports together are") for one in promises]
        promises = [one.replace("with your report,", "with all your reports,") for one in promises]
    said = [
        f"# {plan.name}: what happens to your answers (draft)",
        "",
        *_drawn(plan),
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


def _drawn(plan: Plan) -> list[str]:
    """A paragraph on who is asked what; none where everybody is asked everything."""
    if not plan.booklets:
        return []
    of = f"one of {len(plan.booklets)} short questionnaires from {len(plan.answers)} questions in all"
    everybody = [one.name for question in plan.everyone for one in question.answers]
    besides = f" Everybody is asked: {', '.join(everybody)}." if everybody else ""
    said = f"You are asked {of}. Chance decides which one, before you answer and whatever you would answer."
    return [f"{said}{besides} Nothing is asked, reported or kept about the other questions.", ""]


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
    left_out = [name for name in plan.answers if plan.part(name).reading.left_out]
    own = [name for name in plan.answers if plan.part(name).reading.own_category]
    if left_out:
        said.append(f"Whether you answered is not hidden for: {', '.join(left_out)}. What you answered is.")
    if own:
        said.append(f"Whether you answered is hidden like the answer itself for: {', '.join(own)}.")
    said.append(
        "That you took part is not hidden."
        if not plan.booklets
        else "That you took part, and which of the short questionnaires you got, is not hidden."
    )
    return said
