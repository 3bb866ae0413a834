"""Exchanges of inputs, found from probabilities and contrasts."""

import numpy as np
import pytest

from ldpopt.design import EstimationColumns, FisherInformation, LocalDP, MVOptimal, ThresholdColumns, optimal_channel
from ldpopt.design.estimation.exchanges import Exchanges
from ldpopt_survey import QuestionSpec
from ldpopt_survey.plan.units import binding_targets, product_of, units_of


def skip_pattern(*counts):
    """Pilot and contrasts of even questions, each asked of those who gave one or two of the answers before."""
    questions = []
    for number, count in enumerate(counts):
        answers = tuple(f"{number}{answer}" for answer in range(count))
        condition = {f"q{number - 1}": (f"{number - 1}0", f"{number - 1}1")[:number]} if number else {}
        questions.append(QuestionSpec(f"q{number}", answers, pilot=[1 / count] * count, asked_if=condition))
    pilot, targets = product_of(units_of(tuple(questions)))
    targets = binding_targets(targets)
    scale = min(target.variance for target in targets)
    rows = [(target.row - target.row @ pilot) * np.sqrt(scale / target.variance) for target in targets]
    return pilot, np.array(rows).T


def test_the_shares_of_even_answers_may_all_be_exchanged():
    exchanges = Exchanges(np.full(5, 0.2), np.eye(5) - 0.2)
    assert [list(members) for members in exchanges.classes] == [[0, 1, 2, 3, 4]]
    rng = np.random.default_rng(1)
    drawn = {tuple(exchanges.draw(rng)) for _ in range(2000)}
    assert len(drawn) == 120  # all permutations


def test_uneven_answers_may_not_be_exchanged():
    pilot = np.array([0.1, 0.2, 0.3, 0.4])
    exchanges = Exchanges(pilot, np.eye(4) - pilot)
    assert exchanges.classes == ()
    assert list(exchanges.draw(np.random.default_rng(0))) == [0, 1, 2, 3]


def test_answers_to_a_later_question_are_exchanged_for_all_who_are_asked_it():
    pilot, contrasts = skip_pattern(3, 3, 4)
    exchanges = Exchanges(pilot, contrasts)
    # The answers that lead to no other question, those that do, and those of the last question.
    assert sorted(map(len, exchanges.classes)) == [2, 2, 4]
    covariance, rng = contrasts @ contrasts.T, np.random.default_rng(2)
    drawn = [exchanges.draw(rng) for _ in range(1500)]
    assert len({tuple(order) for order in drawn}) == 2 * 2 * 24
    for order in drawn:
        assert sorted(order) == list(range(len(pilot)))
        assert pilot[order] == pytest.approx(pilot)
        assert covariance[np.ix_(order, order)] == pytest.approx(covariance, abs=1e-12)


@pytest.mark.parametrize("counts", [(3, 4, 5), pytest.param((2, 5, 6), marks=pytest.mark.full), (4, 3, 4)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_search_with_a_gap_finds_the_columns_of_even_skip_patterns(counts, epsilon):
    """Independent search: it prices all sets of inputs. Without exchanges the first one is up to 6 % worse."""
    pilot, contrasts = skip_pattern(*counts)
    utility = FisherInformation(pilot, MVOptimal(contrasts))
    design = optimal_channel(utility, LocalDP(epsilon), method=ThresholdColumns(1e-3), certify=False)
    best = optimal_channel(utility, LocalDP(epsilon), method=EstimationColumns(), certify=False)
    assert design.value <= best.value * (1 + 1e-3)
