"""What a plan guarantees once its reports are shuffled, against enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldpopt.composition import shuffled
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt.survey import QuestionSpec, SurveySpec, make_plan
from ldpopt.survey.plan.shuffling import after_shuffling, fewest


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


def test_what_a_shuffler_does_not_make_alike_is_refused():
    """Public columns, and answers that something else tells: nothing is guaranteed."""
    with pytest.raises(InvalidInput, match="carried columns"):
        after_shuffling(shuffled_plan(1.0, carry=("region",)), 1000)
    with pytest.raises(InvalidInput, match="a respondent column"):
        after_shuffling(shuffled_plan(1.0, respondent="id"), 1000)


def booklet_plan(probabilities, epsilons):
    """A plan of yes/no questions by randomized response, of which each respondent is asked one."""
    plan = shuffled_plan(*epsilons)
    asked = [replace(one, probability=p) for one, p in zip(plan.questions, probabilities, strict=True)]
    return replace(plan, questions=tuple(asked))


@pytest.mark.parametrize("delta", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("epsilons", [(1.0, 1.0), (0.3, 2.0)])
@pytest.mark.parametrize("probability", [Fraction(1, 2), Fraction(1, 5)])
def test_shuffled_booklets_keep_what_is_said(probability, epsilons, delta):
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


def test_booklets_hide_among_their_own_readers():
    """Ten booklets for 10,000 people guarantee less than one question for all of them, and more than one for 700."""
    tenth = [Fraction(1, 10)] * 10
    value = after_shuffling(booklet_plan(tenth, [1.0] * 10), 10_000, 1e-6).value
    alone = {n: after_shuffling(shuffled_plan(1.0), n, 1e-6).value for n in (700, 10_000)}
    assert alone[10_000] < value < alone[700]


@pytest.mark.parametrize(("people", "probability", "delta"), [(10_000, 0.1, 1e-6), (200, 1 / 3, 0.1), (5, 0.5, 0.2)])
def test_the_fewest_readers_are_rarely_fewer(people, probability, delta):
    """By the exact binomial law of the others [Chernoff]."""
    least = fewest(people, Fraction(probability).limit_denominator(100), delta)
    assert stats.binom.cdf(least - 2, people - 1, probability) <= delta
    assert least > 1


@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-12])
def test_nobody_else_may_have_the_booklet(delta):
    """One person, or two, or no delta to spend: the report hides among no others, and the local limit is left."""
    for people in (1, 2):
        found = after_shuffling(booklet_plan([Fraction(1, 2)] * 2, [1.0, 1.0]), people, delta)
        assert found.value == pytest.approx(1.0, abs=1e-9)
