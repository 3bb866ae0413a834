"""What a plan guarantees once its reports are shuffled, against enumeration, and consent forms in every language."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldpopt.composition import shuffled
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import QuestionSpec, SurveySpec, make_plan, plan_survey
from ldpopt_survey.kit.folder import LANGUAGES, PLACEHOLDER
from ldpopt_survey.plan.reading import Reading
from ldpopt_survey.reports.delivery import verify_delivery
from ldpopt_survey.reports.promises import (
    after_shuffling,
    after_shuffling_in_words,
    consent_paragraph,
    fewest_in_booklet,
    words_of,
)
from ldpopt_survey.reports.words import consent_texts


def shuffled_plan(*epsilons, **more):
    """A plan of yes/no questions, each asked of everybody by randomized response."""
    questions = tuple(QuestionSpec(f"q{at}", ("no", "yes")) for at in range(len(epsilons)))
    channels = {q.name: randomized_response(2, e).matrix for q, e in zip(questions, epsilons, strict=True)}
    return make_plan(SurveySpec("demo", questions, **more), channels)


def counts_of_yes(chances):
    """The law of the number of yes among independent reports with these chances."""
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    return law


def test_after_shuffling_one_question_is_its_channel():
    """A plan with one question guarantees what its channel does [BBGN]."""
    plan = shuffled_plan(1.0)
    found, expected = after_shuffling(plan, 2000, 1e-6), shuffled(plan.questions[0].channel, 2000).epsilon_at(1e-6)
    assert (found.value, found.lower) == (expected.value, expected.lower)
    assert found.value < 0.1


@pytest.mark.parametrize("delta", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("epsilons", [(0.5, 1.0), (1.5, 1.5), (0.3, 2.0)])
def test_shuffled_guarantees_of_questions_add_up(epsilons, delta):
    """Whatever the others answered, the shuffled reports about two questions keep (value, delta) [KOV15].

    Every data set of four people is enumerated, with the exact law of both numbers of yes.
    """
    plan, others = shuffled_plan(*epsilons), 3
    value = after_shuffling(plan, others + 1, delta).value
    yes = [np.array([1 / (1 + math.exp(e)), 1 / (1 + math.exp(-e))]) for e in epsilons]
    worst = 0.0
    for said in itertools.product(range(others + 1), repeat=2):  # how many of the others have yes, by question
        laws = [
            [counts_of_yes([chances[own], *[chances[1]] * n, *[chances[0]] * (others - n)]) for own in (0, 1)]
            for chances, n in zip(yes, said, strict=True)
        ]
        joint = [np.outer(laws[0][a], laws[1][b]) for a, b in itertools.product((0, 1), repeat=2)]
        for one, other in itertools.permutations(joint, 2):
            worst = max(worst, float(np.maximum(one - math.exp(value) * other, 0).sum()))
    assert worst <= delta


def test_plans_with_distinguishable_shuffled_reports_are_refused():
    """Public columns, and answers that other data disclose: nothing is guaranteed."""
    with pytest.raises(InvalidInput, match="carried columns"):
        after_shuffling(shuffled_plan(1.0, carry=("region",)), 1000)
    with pytest.raises(InvalidInput, match="a respondent column"):
        after_shuffling(shuffled_plan(1.0, respondent="id"), 1000)


LEFT_OUT = Reading(missing_answers="left out")


@pytest.mark.full(but=1)
@pytest.mark.parametrize("delta", [0.02, 0.2])
def test_a_question_left_out_hides_among_those_who_answer_it(delta):
    """Whoever of the others leaves it empty: if three leave nothing empty, equally empty answers keep (value, delta).

    Every data set of three who answer both questions and two who may leave the second empty is enumerated.
    """
    epsilons, certain, doubtful = (0.5, 1.5), 3, 2
    plan = shuffled_plan(*epsilons)
    questions = tuple(replace(one, reading=LEFT_OUT) if one.name == "q1" else one for one in plan.questions)
    left_out = replace(plan, questions=questions)
    assert left_out.questions_with_empty_reports == ("q1",)
    value = after_shuffling(left_out, certain + 1, delta).value
    assert value == after_shuffling(plan, certain + 1, delta).value
    assert value > after_shuffling(plan, certain + doubtful + 1, delta).value
    yes = [np.array([1 / (1 + math.exp(e)), 1 / (1 + math.exp(-e))]) for e in epsilons]
    worst = 0.0
    for empty in range(doubtful + 1):
        others = certain + doubtful, certain + doubtful - empty
        for told in itertools.product(*(range(n + 1) for n in others)):
            laws = [
                [counts_of_yes([chances[own], *[chances[1]] * k, *[chances[0]] * (n - k)]) for own in (0, 1)]
                for chances, n, k in zip(yes, others, told, strict=True)
            ]
            joint = [np.outer(laws[0][a], laws[1][b]) for a, b in itertools.product((0, 1), repeat=2)]
            for one, other in itertools.permutations(joint, 2):
                worst = max(worst, float(np.maximum(one - math.exp(value) * other, 0).sum()))
    assert 0 < worst <= delta


@pytest.mark.full(but=1)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_form_says_who_counts_if_a_question_may_be_left_out(language, tmp_path):
    """In every language the sentence on the shuffler names the question; the form is verified."""
    asked = QuestionSpec("zq", ("no", "yes"), reading=LEFT_OUT, epsilon=1.0)
    plan = plan_survey(SurveySpec("s", (asked, QuestionSpec("b", ("no", "yes"), epsilon=1.0)))).plan
    words = words_of(plan, "consent", language)
    text = consent_paragraph(plan, (1000, 1e-6), words)
    sentence = after_shuffling_in_words(plan, 1000, 1e-6, words)
    assert sentence.count("'zq'") == 2
    assert sentence.split("'zq'")[0][-40:] in text
    (tmp_path / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    (tmp_path / "consent.md").write_text(text, encoding="utf-8")
    (finding,) = [one for one in verify_delivery(tmp_path).findings if one.name == "consent.md"]
    assert finding.holds


def booklet_plan(probabilities, epsilons):
    """A plan of yes/no questions by randomized response, of which each respondent is asked one."""
    plan = shuffled_plan(*epsilons)
    asked = [replace(one, probability=p) for one, p in zip(plan.questions, probabilities, strict=True)]
    return replace(plan, questions=tuple(asked))


@pytest.mark.parametrize("delta", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("epsilons", [(1.0, 1.0), (0.3, 2.0)])
@pytest.mark.parametrize("probability", [Fraction(1, 2), Fraction(1, 5)])
def test_shuffled_booklets_meet_the_stated_guarantee(probability, epsilons, delta):
    """Whatever the others answered, shuffled reports keep (value, delta), and for some answers they
    do not keep (lower, delta) [BBGN].

    All data sets of five people, and all booklets of the other four, are enumerated.
    """
    shares, others = (probability, 1 - probability), 4
    plan = booklet_plan(shares, epsilons)
    found = after_shuffling(plan, others + 1, delta)

    def spent(b, n, epsilon):  # delta of a person with booklet b, if n of the others have yes to its question
        q, chances = float(shares[b]), [1 / (1 + math.exp(epsilons[b])), 1 / (1 + math.exp(-epsilons[b]))]
        total = 0.0
        for same in itertools.product((False, True), repeat=others):  # who of the others has the same booklet
            answers = [chances[at < n] for at, here in enumerate(same) if here]
            laws = [counts_of_yes([chances[own], *answers]) for own in (0, 1)]
            away = max(float(np.maximum(x - math.exp(epsilon) * y, 0).sum()) for x, y in (laws, laws[::-1]))
            total += q ** sum(same) * (1 - q) ** (others - sum(same)) * away
        return total

    for b in (0, 1):
        assert max(spent(b, n, found.value) for n in range(others + 1)) <= delta
    apart = [max(spent(b, n, found.lower * (1 - 1e-9)) for n in range(others + 1)) for b in (0, 1)]
    assert found.lower == 0 or sum(float(q) * one for q, one in zip(shares, apart, strict=True)) >= delta


@pytest.mark.full
def test_booklets_hide_among_their_own_readers():
    """Ten booklets for 10,000 people guarantee less than one question for all of them, and more than one for 700."""
    tenth = [Fraction(1, 10)] * 10
    value = after_shuffling(booklet_plan(tenth, [1.0] * 10), 10_000, 1e-6).value
    alone = {n: after_shuffling(shuffled_plan(1.0), n, 1e-6).value for n in (700, 10_000)}
    assert alone[10_000] < value < alone[700]


@pytest.mark.parametrize(("people", "probability", "delta"), [(10_000, 0.1, 1e-6), (200, 1 / 3, 0.1), (5, 0.5, 0.2)])
def test_the_fewest_readers_are_rarely_fewer(people, probability, delta):
    """By the exact binomial law of the others [Chernoff]."""
    least = fewest_in_booklet(people, Fraction(probability).limit_denominator(100), delta)
    assert stats.binom.cdf(least - 2, people - 1, probability) <= delta
    assert least > 1


@pytest.mark.full(but=1)
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-12])
def test_nobody_else_may_have_the_booklet(delta):
    """One person, or two, or no delta to spend: the report hides among no others, and the local limit is left."""
    for people in (1, 2):
        found = after_shuffling(booklet_plan([Fraction(1, 2)] * 2, [1.0, 1.0]), people, delta)
        assert found.value == pytest.approx(1.0, abs=1e-9)


def every_promise():
    """Plans whose consent forms together have every sentence, each with whether a shuffler may mix its reports."""
    asked = [QuestionSpec(name, ("no", "yes")) for name in ("a", "b", "c")]
    seen = QuestionSpec("a", ("no", "yes"), reading=Reading(missing_answers="left out"))
    own = QuestionSpec("a", ("no", "yes", "none"), missing="none", reading=Reading(missing_answers="category"))
    for questions, more in (
        (asked[:1], {}),
        (asked[:1], {"rounds": 1}),
        (asked[:1], {"rounds": 3, "respondent": "id"}),
        (asked[:1], {"rounds": 1, "respondent": "id"}),
        (asked[:2], {"rounds": 4, "wording": (("a", "Wirklich?"),)}),
        (asked, {"everyone": ("a",), "carry": ("sex",)}),
        (asked[:2], {"everyone": ("a", "b")}),
        ([seen, asked[1]], {}),
        ([own], {}),
        (asked[:2], {"carry": ("sex",), "revealed": (("a", ("sex", "row order")), ("b", ("row order",)))}),
        (asked[:1], {"carry": ("sex",), "revealed": (("respondent", ("sex",)),), "rounds": 2}),
    ):
        yield plan_survey(SurveySpec("demo", tuple(questions), epsilon=1.0, **more)).plan


@pytest.mark.parametrize("language", LANGUAGES)
def test_consent_forms_have_the_same_sentences_in_every_language(language):
    """None is missing, and none lacks a number or a name that another one tells."""
    english, found = consent_texts(), consent_texts(language)
    assert set(found) == set(english)
    for key, text in found.items():
        assert text.strip()
        assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(english[key])), key


@pytest.mark.full(but=1)
@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_a_consent_form_in_another_language_promises_the_same_in_no_english(language):
    """No two words of English follow each other, no place is unfilled, and the numbers are those in English."""
    sign = consent_texts(language)["decimal"]
    english = {" ".join(pair) for text in consent_texts().values() for pair in itertools.pairwise(words_in(text))}
    for plan in every_promise():
        form = consent_paragraph(plan, words=words_of(plan, "consent", language))
        body = form.rsplit("<!--", 1)[0].replace("div dir", "")
        assert not english & {" ".join(pair) for pair in itertools.pairwise(words_in(body))}
        assert not PLACEHOLDER.search(form)
        said, wanted = (
            sorted(re.findall(r"\d+(?:\.\d+)?", text))
            for text in (body.replace(sign, "."), consent_paragraph(plan).rsplit("<!--", 1)[0])
        )
        assert [float(number) for number in said] == [float(number) for number in wanted]
    mixed = next(every_promise())
    assert "500" in consent_paragraph(mixed, (500, 1e-6), words_of(mixed, "consent", language))


def words_in(text):
    return re.findall(r"[a-z']+", PLACEHOLDER.sub(" . ", text.lower()))


def test_a_form_in_a_language_of_its_own_needs_all_sentences(tmp_path):
    """Missing sentences and places are named; a form in such a language is neither confirmed nor refused."""
    plan = next(every_promise())
    page = {"code": "fr", "noneChosen": "aucun", "notApplicable": "sans objet"}
    whole = {key: text.upper() if not PLACEHOLDER.search(text) else text for key, text in consent_texts().items()}
    for own, lacking in (({}, "consent: title"), (whole | {"ratio": "Jamais."}, "placeholders")):
        with pytest.raises(InvalidInput, match=lacking):
            words_of(plan, "consent", texts=json.dumps(page | {"consent": own}))
    words = words_of(plan, "consent", texts=json.dumps(page | {"consent": whole}))
    (tmp_path / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    for form, holds, said in (
        (consent_paragraph(plan, words=words), None, "do not come with ldpopt"),
        (consent_paragraph(plan, words=words_of(plan, "consent", "de")), True, "word for word"),
        (consent_paragraph(plan, words=words_of(plan, "consent", "de")).replace("e^1", "e^0,1"), None, "by hand"),
    ):
        (tmp_path / "consent.md").write_text(form, encoding="utf-8")
        (finding,) = [one for one in verify_delivery(tmp_path).findings if one.name == "consent.md"]
        assert finding.holds is holds
        assert said in finding.said
