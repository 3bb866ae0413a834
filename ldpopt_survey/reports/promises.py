"""A plan -> what respondents are promised, in words of one language: the consent form, also if reports are shuffled.

A text of the survey's own may bring any language, if all its sentences are there: nothing is half translated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.exact import ExactChannel
from ldpopt.files.escapes import for_markdown
from ldpopt.numbers.rounding import ceil_digits, down, float_up, up
from ldpopt.privacy import Guarantee
from ldpopt.values.distribution import positive_integer, unit_interval
from ldpopt.values.labels import Label, as_text
from ldpopt.words import Words, guarantee_in_words, label_in_words
from ldpopt_survey.kit.folder import LANGUAGES, PLACE, languages
from ldpopt_survey.paper.design import shipped_texts
from ldpopt_survey.plan.plan import Plan, over_rounds
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE, PlannedQuestion
from ldpopt_survey.plan.spec import ORDER, PERSON
from ldpopt_survey.reports.page import render
from ldpopt_survey.reports.words import ENGLISH, consent_texts, tenths

__all__ = ["promises_in_words"]

SENTENCES = {"paper": shipped_texts, "consent": consent_texts}
"""The sentences that come with the package, by their key in a survey's own texts."""


@dataclass(frozen=True, eq=False)
class SurveyWords(Words):
    """The words of a survey's sheets or consent form in one language.

    page : what the questionnaire's texts say of the survey and its questions. code : the language.
    """

    page: Mapping[str, Any]
    code: str

    def label(self, question: str, answer: Label) -> str:
        """An answer to a question, or the name of an option."""
        own = self.page.get("questions", {}).get(question, {}).get("answers", {})
        if answer == NOT_APPLICABLE:
            return str(self.page["notApplicable"])
        return str(own.get(as_text(answer), label_in_words(answer)))

    def wording(self, question: str) -> str:
        """The words in which a question is asked; empty if there are none but its name."""
        return str(self.page.get("questions", {}).get(question, {}).get("text", ""))

    def answer(self, question: PlannedQuestion, answer: Label) -> str:
        """An answer as text; several answers with commas between, and of options those that are chosen."""
        if not question.parts or not isinstance(answer, tuple):
            return self.label(question.name, answer)
        said: dict[str, list[str]] = {}
        for part, label in zip(question.parts, answer, strict=True):
            own = said.setdefault(part.option_of or part.name, [])
            if not part.option_of:
                own.append(self.label(part.name, label))
            elif label == part.categories[1]:
                own.append(self.label(part.option_of, part.name.removeprefix(f"{part.option_of}: ")))
            elif label not in part.asked:
                own[:] = [self.label(part.option_of, label)]
        return self.say("comma").join(" + ".join(own) or self.page["noneChosen"] for own in said.values())


def words_of(plan: Plan, section: str, language: str = LANGUAGES[0], texts: str | bytes | None = None) -> SurveyWords:
    """The words of a plan's sheets ("paper") or consent form in a language of the package, or that of the survey's own.

    texts : JSON as `ldpopt_survey.kit.folder.languages` reads it, with sentences under the name of the section. Those
        of a language that comes with the package may be left out; of any other all must be there, and are named.
    """
    if texts is None and language not in LANGUAGES:
        raise invalid("language", f"one of {', '.join(LANGUAGES)} (or texts of its own)", language)
    ((code, page),) = languages(plan, [f'{{"code": "{language}"}}' if texts is None else texts]).items()
    shipped = SENTENCES[section]
    own, english, base = page.pop(section, {}), shipped(), code.split("-")[0]
    said = {**(shipped(base) if base in LANGUAGES else {}), **own}
    lacking = [f"{section}: {key}" for key in english if key not in said]
    if lacking := lacking + [key for key in ("noneChosen", "notApplicable") if key not in page]:
        expected = "all sentences in the language, as none is shown in English"
        raise invalid(f"texts of {code!r}", expected, Phrase(f"none for {', '.join(lacking)}"))
    for key, text in said.items():
        if key not in english:
            raise invalid(f"texts of {code!r}: {section}", "keys of the English sentences", key)
        places, asked = (sorted(set(PLACE.findall(sentence))) for sentence in (text, english[key]))
        if places != asked:
            raise invalid(f"texts of {code!r}: {section}: {key}", f"the places {asked}", places)
    return SurveyWords(said, page, code)


def after_shuffling(plan: Plan, respondents: int, delta: float = 1e-6) -> Guarantee:
    """What a plan guarantees if a shuffler hides which of at least so many people sent which report.

    The reports about each question are shuffled apart, and the questions' guarantees add up [KOV15]. Which booklet a
    person was asked is taken as known: their report hides among those of the same booklet, for which half of delta
    allows that few were asked it. epsilon in nats.

    Raises `InvalidInput` for plans whose reports a shuffler does not make alike: with public columns, with respondents
    by name, or with answers that something else tells.
    """
    told = {
        "carried columns": bool(plan.carry),
        "a respondent column": plan.respondent is not None,
        "answers that something else tells": bool(plan.revealed),
    }
    for what, there in told.items():
        if there:
            raise invalid("shuffled", "a plan whose reports say nothing but the answers", Phrase(f"one with {what}"))
    if plan.seen:
        expected = 'questions with missing_answers = "category", as an empty report hides among no others'
        raise invalid("shuffled", expected, Phrase(f'{", ".join(plan.seen)} with "left out"'))
    delta, people = unit_interval(delta, "delta"), positive_integer(respondents, "respondents")
    parts = len(plan.everyone) + bool(plan.booklets)
    each = math.nextafter(delta / parts, 0.0) if parts > 1 else delta

    @cache  # many questions have one channel
    def kept(channel: ExactChannel, people: int, delta: float) -> Guarantee:
        from ldpopt.composition import shuffled

        return shuffled(channel, people).epsilon_at(delta)

    values = [kept(question.channel, people, each).value for question in plan.everyone]
    if plan.booklets:
        values.append(max(
            kept(question.channel, fewest(people, question.probability, each / 2), each / 2).value
            for question in plan.booklets
        ))  # fmt: skip
    value = math.inf if math.inf in values else float_up(sum(map(Fraction, values), Fraction(0)))
    # If all others were asked the same, a booklet would cost a person its probability times what it tells.
    lower = max(
        kept(question.channel, people, min(1.0, float_up(Fraction(delta) / question.probability))).lower
        for question in plan.questions
    )
    parameters = {"delta": delta, "respondents": people}
    return Guarantee("shuffled_dp", value, lower, None, False, "[BBGN]; [KOV15]", parameters)


def fewest(people: int, probability: Fraction, delta: float) -> int:
    """So many of `people`, one who was asked a booklet among them, were asked it at least, but for a chance of `delta`.

    Each of the others is asked it with the given probability, in (0, 1), which leaves at most k of them with a chance
    of at most exp(-n D), D the KL divergence of k/n from the probability [Chernoff].

    >>> fewest(10_000, Fraction(1, 10), 1e-6), fewest(50, Fraction(1, 10), 1e-6)
    (847, 1)
    """
    n, q = people - 1, float(probability)

    def is_rare(k: int) -> bool:
        a = k / n
        exponent = (a * math.log(a / q) if a else 0.0) + (1 - a) * math.log((1 - a) / (1 - q))
        return delta > 0 and down(n * exponent, 64.0) >= -math.log(delta)

    # The largest k below the mean whose chance is at most delta; -1 if there is none.
    low, high = -1, math.floor(n * probability) if n else 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_rare(middle) else (low, middle)
    return low + 2


def claims_in_words(epsilon: float, eta: float, words: Words = ENGLISH, what: str = "", **places: object) -> list[str]:
    """The claims of a plan, which its integers prove; the other arguments are those of `guarantee_in_words`."""
    claims = (("local_dp", epsilon, "[GI, Def 6]"), ("total_variation", eta, "[GI, Def 7]"))
    claimed = [Guarantee(name, cap, cap, None, True, source) for name, cap, source in claims]
    return [guarantee_in_words(guarantee, words, what, **places) for guarantee in claimed]


def promises_in_words(plan: Plan, words: Words = ENGLISH) -> list[str]:
    """What all reports of a respondent together promise, and which answers they do not protect."""
    unprotected, seen = plan.unprotected, _quoted(plan.seen)
    several = ".all" * (len(plan.everyone) + bool(plan.booklets) > 1)
    said = _promised(plan, *plan.promised(), words, several) if set(unprotected) < set(plan.answers) else []
    said += [words.say("seen", questions=seen)] * bool(seen)
    said += [_not_protected(plan, name, words) for name in unprotected]
    if plan.public:
        said.append(words.say("public", questions=_quoted(question.name for question in plan.public)))
    if singled := dict(plan.revealed).get(PERSON):
        said.append(words.say("recognised", columns=_quoted(singled)))
    return said


def _quoted(names: Iterable[Label]) -> str:
    return ", ".join(map(repr, names))


def rounds_in_words(plan: Plan, answered: Sequence[int]) -> str:
    """How many people had answered one round of the survey, two, ..., and how many they were told of."""
    said = [f"{people:,} in {n} round{'s' * (n > 1)}" for n, people in enumerate(answered, 1) if people]
    told = f", of at most {plan.rounds} that they were told of" if plan.rounds else ""
    return f"With this round, people have taken part: {', '.join(said)}{told}." if said else ""


def question_in_words(plan: Plan, name: str) -> list[str]:
    """What the report about one question promises."""
    if name in plan.unprotected:
        return [_not_protected(plan, name, ENGLISH)]
    asked = plan.answers[name]
    return claims_in_words(max(part.epsilon for part in asked), max(part.eta for part in asked))


def _not_protected(plan: Plan, name: str, words: Words) -> str:
    """That something tells an answer, and what."""
    known = {ORDER: words.say("by.order")}
    known |= {name: words.say("by.empty", question=repr(name)) for name in plan.seen}
    known |= {name: words.say("by.carried", column=repr(name)) for name in plan.carry}
    known |= {str(plan.respondent): words.say("by.number")}
    by = [known.get(name, repr(name)) for name in plan.unprotected[name]]
    told = "told.one" if len(by) == 1 else "told.several"
    return words.say(told, question=repr(name), by=words.say("and").join(by))


def after_shuffling_in_words(plan: Plan, respondents: int, delta: float, words: Words = ENGLISH) -> str:
    """What all reports of a respondent guarantee behind a shuffler."""
    several = len(plan.answers) > 1
    apart = "questions" if len(plan.everyone) > 1 or (several and not plan.booklets) else ""
    if plan.booklets:
        apart = "both" if plan.everyone else "booklets"
    people = words.say("atLeast", people=words.number(f"{respondents:,}"))
    places = {"people": people, "apart": words.say(f"apart.{apart}") if apart else ""}
    return guarantee_in_words(after_shuffling(plan, respondents, delta), words, ".several" * several, **places)


def _promised(plan: Plan, epsilon: float, eta: float, words: Words, what: str, **places: object) -> list[str]:
    """What reports promise within epsilon (nats) and eta, as long as they leave the same questions empty."""
    said = claims_in_words(epsilon, eta, words, what, **places)
    same = words.say("asLong", questions=_quoted(plan.seen))
    return [f"{line[:-1]}{same}" for line in said] if plan.seen else said


def _before_and_after(epsilon: float, words: Words, key: str) -> str:
    """What somebody can take an answer for, out of 100, before and at most after reports within epsilon (nats)."""
    if not 0 < epsilon < 700:
        return ""
    ratio = Fraction(up(math.exp(epsilon), 4))
    after = [math.ceil(1000 * before * ratio / (100 + before * (ratio - 1))) for before in (1, 10, 50)]
    names = zip(("rare", "some", "half"), after, strict=True)
    return words.say(key, **{name: words.number(tenths(share)) for name, share in names})


def consent_paragraph(plan: Plan, shuffled: tuple[int, float] | None = None, words: SurveyWords | None = None) -> str:
    """A draft in Markdown for a consent form: what happens to the answers, and what is protected or not.

    shuffled : the number of respondents whose reports a shuffler mixes, and a delta. words : of the form's language.
    """
    words = words_of(plan, "consent") if words is None else words
    rounds = plan.rounds or 1
    epsilon, eta = plan.promised()
    together, several = over_rounds(epsilon, eta, rounds), rounds > 1 and epsilon > 0
    everybody = [part.name for question in plan.everyone for part in question.answers] if plan.booklets else []
    drawn = ".several" if len(plan.questions) > 1 else ""
    if plan.booklets:
        drawn = ".booklets" if everybody else ".booklet"
    before = "protected" if plan.unprotected else ""
    if several:
        before = "protectedRounds" if before else "rounds"
    promised = promises_in_words(plan, words)
    if shuffled is not None:
        promised.append(after_shuffling_in_words(plan, *shuffled, words))
    language = f" language {words.code}" if words.code != LANGUAGES[0] else ""
    return render(
        "consent.md.code",
        filters={"md": for_markdown},
        plan=plan,
        say=words.say,
        rtl=words.page.get("direction") == "rtl",
        person="person" if plan.respondent else "survey",
        drawn=drawn,
        everybody=everybody,
        promised=promised,
        once=words.number(ceil_digits(epsilon, 4)) if epsilon else "",
        twice=words.number(ceil_digits(over_rounds(epsilon, eta, 2)[0], 4)),
        rounds=rounds,
        over_all=_promised(plan, *together, words, ".rounds", rounds=rounds) if several else [],
        before=_before_and_after(together[0], words, f"before.{before}" if before else "before"),
        asked=[words.wording(name) or title for name, title in plan.titles.items()]
        if any(map(words.wording, plan.titles))
        else [],
        own_category=[name for name in plan.answers if plan.part(name).reading.own_category],
        stamp=language + (f" shuffled {shuffled[0]:d} {shuffled[1]!r}" if shuffled else ""),
    )
