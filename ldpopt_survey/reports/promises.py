"""Describe the promises of a plan to respondents in sentences of one language, also with shuffled reports.

Texts of the survey may add any language if they have all sentences, so that no text is half translated.
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
from ldpopt_survey.kit.folder import LANGUAGES, PLACEHOLDER, languages
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
    """The sentences of a survey's sheets or consent form in one language.

    - `page` : the questionnaire's texts about the survey and its questions.
    - `code` : the language.
    """

    page: Mapping[str, Any]
    code: str

    def label(self, question: str, answer: Label) -> str:
        """Return the text of an answer to a question, or the name of an option."""
        translations = self.page.get("questions", {}).get(question, {}).get("answers", {})
        if answer == NOT_APPLICABLE:
            return str(self.page["notApplicable"])
        return str(translations.get(as_text(answer), label_in_words(answer)))

    def wording(self, question: str) -> str:
        """Return the wording of a question; empty if it has only a name."""
        return str(self.page.get("questions", {}).get(question, {}).get("text", ""))

    def answer(self, question: PlannedQuestion, answer: Label) -> str:
        """Format an answer as text.

        Several answers are separated by commas; of options, the chosen ones are listed.
        """
        if not question.parts or not isinstance(answer, tuple):
            return self.label(question.name, answer)
        labels_by_question: dict[str, list[str]] = {}
        for part, label in zip(question.parts, answer, strict=True):
            labels = labels_by_question.setdefault(part.option_of or part.name, [])
            if not part.option_of:
                labels.append(self.label(part.name, label))
            elif label == part.categories[1]:
                labels.append(self.label(part.option_of, part.name.removeprefix(f"{part.option_of}: ")))
            elif label not in part.asked:
                labels[:] = [self.label(part.option_of, label)]
        return self.say("comma").join(
            " + ".join(labels) or self.page["noneChosen"] for labels in labels_by_question.values()
        )


def words_of(plan: Plan, section: str, language: str = LANGUAGES[0], texts: str | bytes | None = None) -> SurveyWords:
    """Return the sentences of a plan's sheets ("paper") or consent form in one language.

    The language comes with the package, or with the survey's texts.

    texts : JSON as `ldpopt_survey.kit.folder.languages` reads it, with sentences under the name of the section. A
        language that comes with the package may omit some. For any other language the error names all missing ones.
    """
    if texts is None and language not in LANGUAGES:
        raise invalid("language", f"one of {', '.join(LANGUAGES)} (or texts of its own)", language)
    ((code, page),) = languages(plan, [f'{{"code": "{language}"}}' if texts is None else texts]).items()
    load_sentences = SENTENCES[section]
    custom_sentences, english, base_language = page.pop(section, {}), load_sentences(), code.split("-")[0]
    sentences = {**(load_sentences(base_language) if base_language in LANGUAGES else {}), **custom_sentences}
    missing = [f"{section}: {key}" for key in english if key not in sentences]
    if missing := missing + [key for key in ("noneChosen", "notApplicable") if key not in page]:
        expected = "all sentences in the language, as none is shown in English"
        raise invalid(f"texts of {code!r}", expected, Phrase(f"none for {', '.join(missing)}"))
    for key, text in sentences.items():
        if key not in english:
            raise invalid(f"texts of {code!r}: {section}", "keys of the English sentences", key)
        placeholders, required_placeholders = (
            sorted(set(PLACEHOLDER.findall(sentence))) for sentence in (text, english[key])
        )
        if placeholders != required_placeholders:
            raise invalid(
                f"texts of {code!r}: {section}: {key}", f"the placeholders {required_placeholders}", placeholders
            )
    return SurveyWords(sentences, page, code)


def after_shuffling(plan: Plan, respondents: int, delta: float = 1e-6) -> Guarantee:
    """Bound the guarantee of a plan if a shuffler hides the senders of reports.

    The reports about each question are shuffled separately, and the questions' guarantees add up [KOV15]. An adversary
    is assumed to know the booklet of a person, whose report hides among those of the same booklet. Half of delta allows
    that only few were asked it.

    Empty reports may show who did not answer a question (`Plan.questions_with_empty_reports`). Then only people who
    leave no such question empty count, and the guarantee is between answers that leave the same questions empty. A
    report hides among the others that are not empty.

    Parameters
    ----------
    plan : The plan.
    respondents : The least number of people who send reports.
    delta : The delta of the guarantee, in (0, 1).

    Returns
    -------
    Guarantee
        The epsilon in nats at this delta.

    Raises
    ------
    InvalidInput
        For plans whose reports stay distinguishable after shuffling: with public columns, with respondents by name, or
        with answers that other data disclose.
    """
    obstacles = {
        "carried columns": bool(plan.carry),
        "a respondent column": plan.respondent is not None,
        "answers that something else tells": bool(plan.revealed),
    }
    for obstacle, is_present in obstacles.items():
        if is_present:
            raise invalid(
                "shuffled", "a plan whose reports say nothing but the answers", Phrase(f"one with {obstacle}")
            )
    delta, people = unit_interval(delta, "delta"), positive_integer(respondents, "respondents")
    parts = len(plan.everyone) + bool(plan.booklets)
    part_delta = math.nextafter(delta / parts, 0.0) if parts > 1 else delta

    @cache  # many questions have one channel
    def shuffled_guarantee(channel: ExactChannel, people: int, delta: float) -> Guarantee:
        from ldpopt.composition import shuffled

        return shuffled(channel, people).epsilon_at(delta)

    values = [shuffled_guarantee(question.channel, people, part_delta).value for question in plan.everyone]
    if plan.booklets:
        booklet_delta = part_delta / 2
        counts = [fewest_in_booklet(people, question.probability, booklet_delta) for question in plan.booklets]
        values.append(max(
            shuffled_guarantee(question.channel, count, booklet_delta).value
            for question, count in zip(plan.booklets, counts, strict=True)
        ))  # fmt: skip
    value = math.inf if math.inf in values else float_up(sum(map(Fraction, values), Fraction(0)))
    # If all others were asked the same, a booklet would cost a person its probability times its own loss.
    lower = max(
        shuffled_guarantee(question.channel, people, min(1.0, float_up(Fraction(delta) / question.probability))).lower
        for question in plan.questions
    )
    parameters = {"delta": delta, "respondents": people}
    return Guarantee("shuffled_dp", value, lower, None, False, "[BBGN]; [KOV15]", parameters)


def fewest_in_booklet(people: int, probability: Fraction, delta: float) -> int:
    """Bound the number of `people` asked a booklet from below, except with probability `delta`.

    One of them was asked it. Each of the others is asked it with the given probability, in (0, 1). At most k of them
    are asked it with a probability of at most exp(-n D) [Chernoff], where n is the number of the others. D is the KL
    divergence of k/n from the given probability.

    >>> fewest_in_booklet(10_000, Fraction(1, 10), 1e-6), fewest_in_booklet(50, Fraction(1, 10), 1e-6)
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


def claims_in_words(epsilon: float, eta: float, words: Words = ENGLISH, scope: str = "", **places: object) -> list[str]:
    """Describe the claims of a plan, which its integers prove.

    The other arguments are those of `guarantee_in_words`.
    """
    claims = (("local_dp", epsilon, "[GI, Def 6]"), ("total_variation", eta, "[GI, Def 7]"))
    guarantees = [Guarantee(name, cap, cap, None, True, source) for name, cap, source in claims]
    return [guarantee_in_words(guarantee, words, scope, **places) for guarantee in guarantees]


def promises_in_words(plan: Plan, words: Words = ENGLISH) -> list[str]:
    """Describe the promise of all reports of a respondent, and list unprotected answers."""
    unprotected, questions_left_empty = plan.unprotected, _quoted(plan.questions_with_empty_reports)
    scope = ".all" * (len(plan.everyone) + bool(plan.booklets) > 1)
    sentences = (
        _limits_in_words(plan, *plan.protected_claims(), words, scope) if set(unprotected) < set(plan.answers) else []
    )
    sentences += [words.say("seen", questions=questions_left_empty)] * bool(questions_left_empty)
    sentences += [_not_protected(plan, name, words) for name in unprotected]
    if plan.public:
        sentences.append(words.say("public", questions=_quoted(question.name for question in plan.public)))
    if identifying := dict(plan.revealed).get(PERSON):
        sentences.append(words.say("recognised", columns=_quoted(identifying)))
    return sentences


def _quoted(names: Iterable[Label]) -> str:
    return ", ".join(map(repr, names))


def rounds_in_words(plan: Plan, people_by_rounds: Sequence[int]) -> str:
    """Describe the number of people by rounds answered, and the announced limit of rounds."""
    counts = [f"{people:,} in {n} round{'s' * (n > 1)}" for n, people in enumerate(people_by_rounds, 1) if people]
    limit = f", of at most {plan.rounds} that they were told of" if plan.rounds else ""
    return f"With this round, people have taken part: {', '.join(counts)}{limit}." if counts else ""


def question_in_words(plan: Plan, name: str) -> list[str]:
    """Describe the promise of the report about one question."""
    if name in plan.unprotected:
        return [_not_protected(plan, name, ENGLISH)]
    holders = plan.answers[name]
    return claims_in_words(max(part.epsilon for part in holders), max(part.eta for part in holders))


def _not_protected(plan: Plan, name: str, words: Words) -> str:
    """The sentence that an answer can be inferred, with the columns that disclose it."""
    descriptions = {ORDER: words.say("by.order")}
    descriptions |= {name: words.say("by.empty", question=repr(name)) for name in plan.questions_with_empty_reports}
    descriptions |= {name: words.say("by.carried", column=repr(name)) for name in plan.carry}
    descriptions |= {str(plan.respondent): words.say("by.number")}
    sources = [descriptions.get(name, repr(name)) for name in plan.unprotected[name]]
    key = "told.one" if len(sources) == 1 else "told.several"
    return words.say(key, question=repr(name), by=words.say("and").join(sources))


def after_shuffling_in_words(plan: Plan, respondents: int, delta: float, words: Words = ENGLISH) -> str:
    """Describe the guarantee of all reports of a respondent behind a shuffler."""
    has_several = len(plan.answers) > 1
    separation = "questions" if len(plan.everyone) > 1 or (has_several and not plan.booklets) else ""
    if plan.booklets:
        separation = "both" if plan.everyone else "booklets"
    people = words.say("atLeast", people=words.number(f"{respondents:,}"))
    places = {"people": people, "apart": words.say(f"apart.{separation}") if separation else ""}
    sentence = guarantee_in_words(after_shuffling(plan, respondents, delta), words, ".several" * has_several, **places)
    if not plan.questions_with_empty_reports:
        return sentence
    who_counts = words.say("mixed", questions=_quoted(plan.questions_with_empty_reports))
    return f"{_with_same_empty(sentence, plan, words)} {who_counts}"


def _limits_in_words(plan: Plan, epsilon: float, eta: float, words: Words, scope: str, **places: object) -> list[str]:
    """The promise within epsilon (nats) and eta, for people who leave the same questions empty."""
    sentences = claims_in_words(epsilon, eta, words, scope, **places)
    return (
        [_with_same_empty(line, plan, words) for line in sentences] if plan.questions_with_empty_reports else sentences
    )


def _with_same_empty(sentence: str, plan: Plan, words: Words) -> str:
    """The sentence, limited to answers that leave the same questions empty."""
    return f"{sentence[:-1]}{words.say('asLong', questions=_quoted(plan.questions_with_empty_reports))}"


def _before_and_after(epsilon: float, words: Words, key: str) -> str:
    """The chance of an answer, out of 100, before reports within epsilon (nats) and at most after them."""
    if not 0 < epsilon < 700:
        return ""
    ratio = Fraction(up(math.exp(epsilon), 4))
    posterior_tenths = [math.ceil(1000 * prior * ratio / (100 + prior * (ratio - 1))) for prior in (1, 10, 50)]
    names = zip(("rare", "some", "half"), posterior_tenths, strict=True)
    return words.say(key, **{name: words.number(tenths(posterior)) for name, posterior in names})


def consent_paragraph(plan: Plan, shuffled: tuple[int, float] | None = None, words: SurveyWords | None = None) -> str:
    """Generate the draft of a consent form in Markdown.

    It states how answers are processed, and which of them are protected.

    shuffled : the number of respondents whose reports a shuffler mixes, and a delta.

    words : the sentences of the form's language.
    """
    words = words_of(plan, "consent") if words is None else words
    rounds = plan.rounds or 1
    epsilon, eta = plan.protected_claims()
    claims_over_rounds, has_several_rounds = over_rounds(epsilon, eta, rounds), rounds > 1 and epsilon > 0
    everybody = [part.name for question in plan.everyone for part in question.answers] if plan.booklets else []
    scope = ".several" if len(plan.questions) > 1 else ""
    if plan.booklets:
        scope = ".booklets" if everybody else ".booklet"
    variant = "protected" if plan.unprotected else ""
    if has_several_rounds:
        variant = "protectedRounds" if variant else "rounds"
    promises = promises_in_words(plan, words)
    if shuffled is not None:
        promises.append(after_shuffling_in_words(plan, *shuffled, words))
    language = f" language {words.code}" if words.code != LANGUAGES[0] else ""
    return render(
        "consent.md.code",
        filters={"md": for_markdown},
        plan=plan,
        say=words.say,
        rtl=words.page.get("direction") == "rtl",
        person="person" if plan.respondent else "survey",
        drawn=scope,
        everybody=everybody,
        promised=promises,
        once=words.number(ceil_digits(epsilon, 4)) if epsilon else "",
        twice=words.number(ceil_digits(over_rounds(epsilon, eta, 2)[0], 4)),
        rounds=rounds,
        over_all=_limits_in_words(plan, *claims_over_rounds, words, ".rounds", rounds=rounds)
        if has_several_rounds
        else [],
        before=_before_and_after(claims_over_rounds[0], words, f"before.{variant}" if variant else "before"),
        asked=[words.wording(name) or title for name, title in plan.titles.items()]
        if any(map(words.wording, plan.titles))
        else [],
        own_category=[name for name in plan.answers if plan.part(name).reading.own_category],
        stamp=language + (f" shuffled {shuffled[0]:d} {shuffled[1]!r}" if shuffled else ""),
    )
