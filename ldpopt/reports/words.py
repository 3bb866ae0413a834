"""Guarantees, reports, proofs and plans in plain words: numbers in a guarantee are rounded up.

For respondents: a draft of a consent form. The sentences of printed sheets are in `sheets`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ldpopt.channel import ERASED, Channel
from ldpopt.design import Design, Verification
from ldpopt.design.certificates.base import believed, taken_on_trust
from ldpopt.escapes import for_markdown
from ldpopt.labels import Label, as_text
from ldpopt.privacy import Guarantee
from ldpopt.reports.page import render
from ldpopt.rounding import ceil_digits, up
from ldpopt.tolerances import CERTIFIED_GAP

if TYPE_CHECKING:
    from ldpopt.survey.plan.plan import Plan


def guarantee_in_words(guarantee: Guarantee) -> str:
    """A sentence about what a guarantee means for the person who answers; without such a sentence, its symbols."""
    if guarantee.notion == "shuffled_dp" and "delta" in guarantee.parameters:
        return _shuffled_dp(guarantee)
    say = _SENTENCES.get(guarantee.notion)
    return f"{guarantee}." if say is None else say(guarantee.value)


def _local_dp(epsilon: float) -> str:
    if math.isinf(epsilon):
        return "Some report is possible under one answer and impossible under another, so it can rule answers out."
    if epsilon == 0:
        return "Every answer gives every report equally often: the report says nothing about it."
    ratio = ceil_digits(up(math.exp(epsilon)), 4) if epsilon < 700 else "more than 1e304"
    return (
        f"Whatever you answer, any report is at most {ratio} (e^{ceil_digits(epsilon, 5)}) times likelier than under "
        "any other answer."
    )


def _shuffled_dp(guarantee: Guarantee, fewest: str = "", apart: str = "", others: str = "other answer") -> str:
    if math.isinf(guarantee.value):
        return "Even shuffled, some report may rule out answers."
    ratio = ceil_digits(up(math.exp(min(guarantee.value, 700.0))), 6)
    return (
        f"If a shuffler hides who of {fewest}{guarantee.parameters['respondents']:,} people sent which report, {apart}"
        f"whatever is made of all reports is at most {ratio} (e^{ceil_digits(guarantee.value, 5)}) times likelier than "
        f"under any {others} of yours, but for a chance of {ceil_digits(guarantee.parameters['delta'])}."
    )


def _total_variation(eta: float) -> str:
    return (
        f"Who hesitates between two equally likely answers of yours guesses right at most {guessed_right(eta)} % of "
        "the time with your report, and 50 % without it."
    )


def guessed_right(eta: float) -> str:
    """The largest share of right guesses between two answers, in percent, rounded up."""
    # Decimal arithmetic is exact here. In floats, eta = 0.2 would become 60.01 % by rounding.
    return f"{float((50 * (1 + Decimal(eta))).quantize(Decimal('0.01'), ROUND_CEILING)):g}"


_SENTENCES: dict[str, Callable[[float], str]] = {"local_dp": _local_dp, "total_variation": _total_variation}


def reports_in_words(
    channel: Channel, p0: object, p1: object, names: tuple[str, str]
) -> list[tuple[str, tuple[str, ...], str]]:
    """For every report: its label, the answers that make it likeliest, and what it says about the groups."""
    m0, m1 = channel.push(p0), channel.push(p1)
    said = []
    for y, label in enumerate(channel.outputs):
        column = channel.matrix[:, y]
        uninformative = label == ERASED or np.ptp(column) <= 1e-9 * column.max()
        likely = () if uninformative else np.flatnonzero(column > column.max() * (1 - 1e-9))
        (low, _), (high, group) = sorted([(float(m0[y]), names[0]), (float(m1[y]), names[1])], key=lambda pair: pair[0])
        evidence = f"{high / low:.3g} times as likely from {group}" if low > 0 else f"only from {group}"
        if high <= low * (1 + 1e-9):
            evidence = "says nothing about the group"
        said.append((str(label), tuple(str(channel.inputs[x]) for x in likely), evidence))
    return said


def proof_in_words(design: Design, verification: Verification) -> list[str]:
    """The result of checking a design's proof: the limits that hold, the value, the bound, the gap; or what fails."""
    if not verification:
        stated = f"The file states a value of {design.value!r} and a bound of {design.bound!r}, which is not proved."
        return [stated, *verification.failures]
    told = [
        f"The channel keeps its limit on {guarantee.title}: measured {guarantee.value!r}, at most {limit.bound!r} is "
        "allowed."
        for guarantee, limit in zip(verification.guarantees, design.constraints, strict=True)
    ]
    utility, argument = design.utility, design.certificate.argument if design.certificate else ""
    if utility.error:
        told.append(f"Its {utility.name} is at most {design.value!r} for one respondent.")
    else:
        told.append(f"It keeps at least {design.value!r} ({utility.name}).")
    beyond = "has less" if utility.error else "keeps more"
    scale = "" if utility.logarithmic else " of the value"
    certified = "certified," if design.certified else "not certified"
    return [
        *told,
        f"No channel within these limits {beyond} than {design.bound!r}: {argument}.",
        f"So it is within {design.relative_gap:.3g}{scale} of the best: {certified} to {design.tolerance:g}.",
    ]


ARITHMETIC = {
    False: "float64, rounded outward",
    True: "balls of 256 bits (and float64, rounded outward, where that settles a comparison)",
}
"""How a proof was recomputed, by whether it was exact."""


def recomputed_in(design: Design, exact: bool) -> str:
    """The arithmetic in which a design was checked, and what of it was trusted."""
    return ARITHMETIC[exact] + taken_on_trust(believed(design.utility, design.constraints))


def verdict(design: Design) -> str:
    """A sentence about whether the design's proof holds, after it was recomputed."""
    if design.certificate is None:
        return "no proof asked for"
    checked = design.verify()
    if not checked:
        return "PROOF FAILED: " + "; ".join(checked.failures)
    trusted = taken_on_trust(checked.trusted)
    if design.relative_gap <= CERTIFIED_GAP:
        return f"optimal, proof checked{trusted}"
    if math.isinf(design.relative_gap):
        return "no bound found"
    return f"within {float(ceil_digits(100 * design.relative_gap, 2)):g} % of the optimum, proof checked{trusted}"


def label_in_words(label: Label) -> str:
    """A label as text; that of several questions with commas between."""
    return ", ".join(map(as_text, label)) if isinstance(label, tuple) else as_text(label)


FINEST = 10**6
"""Words for chances near 0 or 1 stop at one in this many."""


def at_most(chance: Fraction) -> str:
    """Words for an upper bound on a chance. The number in them is never smaller than the bound."""
    if chance <= 0:
        return "0"
    if 10 * chance <= 1:
        return f"1 in {_three(math.floor(1 / chance), up=False):,}"
    if (count := math.ceil(1000 * chance)) < 1000:
        return _in_hundred(count)
    parts = 10_000
    while (count := math.ceil(chance * parts)) >= parts and parts < FINEST:
        parts *= 10
    return f"{count:,} in {parts:,}" if count < parts else "1 in 1"


def at_least(chance: Fraction) -> str:
    """Words for a lower bound on a chance. The number in them is never larger than the bound."""
    if chance <= 0:
        return "0"
    if 10 * chance <= 1:
        return f"1 in {_three(math.ceil(1 / chance), up=True):,}"
    return _in_hundred(math.floor(1000 * chance)) if chance < 1 else "1 in 1"


def as_typed(chance: Fraction) -> str:
    """Words for a chance that somebody typed, with six digits."""
    return f"1 in {chance.denominator:,}" if chance.numerator == 1 else f"{float(100 * chance):.6g} in 100"


def _in_hundred(thousandths: int) -> str:
    return f"{thousandths // 10}{f'.{thousandths % 10}' if thousandths % 10 else ''} in 100"


def _three(count: int, up: bool) -> int:
    """A whole number rounded up or down to three digits."""
    digits = max(0, len(str(count)) - 3)
    step = int(10**digits)
    return (-(-count // step) if up else count // step) * step


def claims_in_words(epsilon: float, eta: float) -> list[str]:
    """The claims of a plan, which its integers prove, in words."""
    claims = (("local_dp", epsilon, "[GI, Def 6]"), ("total_variation", eta, "[GI, Def 7]"))
    return [guarantee_in_words(Guarantee(name, cap, cap, None, True, source)) for name, cap, source in claims]


def promises_in_words(plan: Plan) -> list[str]:
    """What all reports of a respondent together promise, and which answers they do not protect, in words."""
    from ldpopt.survey.plan.spec import PERSON  # surveys load slowly, and the words of a proof need none

    unprotected, seen = plan.unprotected, plan.seen
    several = "all your reports" if len(plan.everyone) + bool(plan.booklets) > 1 else ""
    said = _promised(plan, *plan.promised(), several) if set(unprotected) < set(plan.answers) else []
    if seen:
        names = ", ".join(map(repr, seen))
        said.append(
            f"Leaving {names} empty is seen by everybody, with certainty: no limit holds for whether you answer."
        )
    said += [_not_protected(plan, name) for name in unprotected]
    if plan.public:
        names = ", ".join(repr(question.name) for question in plan.public)
        said.append(f"NOT PROTECTED is what is said about {names}: it is sent as it is, and no limit holds for it.")
    if singled := dict(plan.revealed).get(PERSON):
        columns = ", ".join(map(repr, singled))
        said.append(f"You may be recognised among all who took part, since few others have your {columns}.")
    return said


def rounds_in_words(plan: Plan, answered: Sequence[int]) -> str:
    """How many people had answered one round of the survey, two, ..., and how many they were told of."""
    said = [f"{people:,} in {n} round{'s' * (n > 1)}" for n, people in enumerate(answered, 1) if people]
    told = f", of at most {plan.rounds} that they were told of" if plan.rounds else ""
    return f"With this round, people have taken part: {', '.join(said)}{told}." if said else ""


def question_in_words(plan: Plan, name: str) -> list[str]:
    """What the report about one question promises, in words."""
    if name in plan.unprotected:
        return [_not_protected(plan, name)]
    asked = plan.answers[name]
    return claims_in_words(max(part.epsilon for part in asked), max(part.eta for part in asked))


def _not_protected(plan: Plan, name: str) -> str:
    told = _told_by(plan, plan.unprotected[name])
    return f"NOT PROTECTED is your answer to {name!r}: {told} it, exactly or nearly."


def _told_by(plan: Plan, by: tuple[str, ...]) -> str:
    """What tells an answer, with its verb."""
    from ldpopt.survey.plan.spec import ORDER

    words = {ORDER: "the order in which the reports stand"}
    words |= {name: f"which answers to {name!r} are empty" for name in plan.seen}
    words |= {name: f"{name!r}, which is published as it is," for name in plan.carry}
    words |= {str(plan.respondent): "your number in this survey, to whoever knows it,"}
    return " and ".join(words.get(name, repr(name)) for name in by) + (" tells" if len(by) == 1 else " tell")


def after_shuffling_in_words(plan: Plan, respondents: int, delta: float) -> str:
    """What all reports of a respondent guarantee behind a shuffler, in words."""
    from ldpopt.survey.plan.shuffling import after_shuffling

    several = len(plan.answers) > 1
    apart = "for each question apart, " * (len(plan.everyone) > 1 or (several and not plan.booklets))
    if plan.booklets:
        apart = "for each booklet " + "and each other question " * bool(plan.everyone) + "apart, "
    privacy = after_shuffling(plan, respondents, delta)
    return _shuffled_dp(privacy, "at least ", apart, "other answers" if several else "other answer")


def _promised(plan: Plan, epsilon: float, eta: float, reports: str) -> list[str]:
    """What a report, or `reports` together, promise within epsilon (nats) and eta."""
    said = claims_in_words(epsilon, eta)
    if reports:
        said = [line.replace("any report is", f"{reports} together are") for line in said]
        said = [line.replace("with your report", f"with {reports}").replace("without it", "without") for line in said]
    if plan.seen:
        names = ", ".join(map(repr, plan.seen))
        said = [f"{line[:-1]}, as long as both leave the same questions out of {names} empty." for line in said]
    return said


def out_of_100(epsilon: float) -> str:
    """What somebody can take an answer for, out of 100, before and at most after reports within epsilon (nats)."""
    if not 0 < epsilon < 700:
        return ""
    ratio = Fraction(up(math.exp(epsilon), 4))
    after = [_in_hundred(math.ceil(1000 * before * ratio / (100 + before * (ratio - 1)))) for before in (1, 10, 50)]
    return f"1 in 100 before becomes at most {after[0]}, 10 in 100 at most {after[1]}, and 50 in 100 at most {after[2]}"


def consent_paragraph(plan: Plan, shuffled: tuple[int, float] | None = None) -> str:
    """A draft in Markdown for a consent form: what happens to the answers, and what is protected or not.

    shuffled : the number of respondents whose reports a shuffler mixes, and a delta.
    """
    from ldpopt.survey.plan.plan import over_rounds

    rounds = plan.rounds or 1
    several = len(plan.questions) > 1
    epsilon, eta = plan.promised()
    return render(
        "consent.md.code",
        filters={"md": for_markdown},
        plan=plan,
        several=several and not plan.booklets,
        everybody=[part.name for question in plan.everyone for part in question.answers],
        promised=promises_in_words(plan) + ([after_shuffling_in_words(plan, *shuffled)] if shuffled else []),
        shuffled=shuffled,
        once=ceil_digits(epsilon, 4) if epsilon else "",
        twice=ceil_digits(over_rounds(epsilon, eta, 2)[0], 4),
        rounds=rounds,
        over_all=_promised(plan, *over_rounds(epsilon, eta, rounds), f"your reports of all {rounds} rounds")
        if rounds > 1 and epsilon
        else [],
        out_of_100=out_of_100(over_rounds(epsilon, eta, rounds)[0]),
        asked=list(plan.titles.values()) if plan.wording else [],
        own_category=[name for name in plan.answers if plan.part(name).reading.own_category],
    )
