"""Designs of questionnaires at even shares, by symmetry: certified at any number of yes/no questions that is listed."""

import math

import pytest

import ldpopt
from ldpopt.design import FisherInformation, LocalDP, Marginals, load_design, optimal_channel
from ldpopt.design.estimation.method_marginals import SymmetricMarginals
from ldpopt.design.estimation.method_thresholds import ThresholdColumns
from ldpopt.design.estimation.scores import SymmetricScores
from ldpopt.errors import InvalidInput


def designed(shape, epsilon, weights=None, method=None):
    criterion = Marginals(shape, weights)
    return optimal_channel(FisherInformation(criterion.pilot(), criterion), LocalDP(epsilon), method=method)


@pytest.mark.full(but=4)
@pytest.mark.parametrize(("m", "epsilon"), [(6, 0.5), (6, 3.0), (7, 2.0), (8, 1.0), (8, 3.0), (9, 2.0)])
def test_yes_no_questions_follow_the_rule(m, epsilon):
    """c of the m questions, drawn at random and answered together, are optimal (theory.md 12.4); for m = 8, 9, too."""
    gain = math.expm1(epsilon)
    best = m * m / (2 * max(c * (gain / (2**c + gain)) ** 2 for c in range(1, m + 1)))
    design = designed((2,) * m, epsilon)
    assert design.certified
    assert design.relative_gap < 2e-7
    assert design.value == pytest.approx(best, rel=1e-9)
    assert design.lower_bound <= best * (1 + 1e-12)


@pytest.mark.full(but=3)
@pytest.mark.parametrize("shape", [(2, 2, 3), (3, 3, 3), (2, 3, 4), (8, 8), (2, 2, 2, 2, 4), (2, 2, 2, 3, 3)])
def test_mixed_questions_are_certified(shape):
    """One question at random, with probabilities like the roots of the questions' errors, is optimal at epsilon = 1."""
    alone = [optimal_channel(FisherInformation([1 / k] * k), LocalDP(1.0), certify=False).value for k in shape]
    design = designed(shape, 1.0)
    assert design.certified
    assert design.value == pytest.approx(sum(map(math.sqrt, alone)) ** 2, rel=1e-7)
    assert design.verify()
    assert designed(shape, 3.0).value < sum(map(math.sqrt, alone)) ** 2
    assert ldpopt.privacy.local_dp(design.channel).value <= 1.0


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_marginal_designs_agree_with_the_cone_program(epsilon):
    """Weights of questions count; another method that knows no symmetry finds and proves the same value."""
    here, there = designed((2, 3), epsilon, (1.0, 4.0)), designed((2, 3), epsilon, (1.0, 4.0), ThresholdColumns())
    assert "images" in here.method
    assert here.value == pytest.approx(there.value, rel=2e-6)
    assert here.certified


def test_a_design_comes_back_from_its_file_with_its_proof(tmp_path):
    """The shape and level stand in the file; a smaller level proves nothing."""
    design = designed((2, 2, 3), 1.0)
    design.save(tmp_path / "design.json")
    read = load_design(tmp_path / "design.json")
    assert isinstance(read.certificate.relaxed, SymmetricScores)
    assert read.verify()
    assert read.certificate.relaxed.shape == (2, 2, 3)


@pytest.mark.parametrize(
    ("criterion", "said"),
    [(Marginals((2, 2), pairs=[(0, 1)]), "single questions"), (Marginals((2, 2), [[1, 2], [1, 1]]), "one weight")],
)
def test_problems_without_symmetry_are_refused(criterion, said):
    """Pairs, and shares of one question with different weights, have no such symmetry; neither has an uneven pilot."""
    with pytest.raises(InvalidInput, match=said):
        optimal_channel(FisherInformation(criterion.pilot(), criterion), LocalDP(1.0), method=SymmetricMarginals())
    uneven = Marginals((2, 2))
    pilot = uneven.pilot([0.4, 0.6], [0.5, 0.5])
    with pytest.raises(InvalidInput, match="even pilot"):
        optimal_channel(FisherInformation(pilot, uneven), LocalDP(1.0), method=SymmetricMarginals())


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 3), (2, 3, 4)])
def test_no_report_is_a_trace_of_the_solver(shape):
    """Every report is sent by somebody with a probability that is worth a column: at least one in a hundred here."""
    criterion = Marginals(shape)
    for epsilon in (0.5, 2.0, 3.0):
        design = optimal_channel(FisherInformation(criterion.pilot(), criterion), LocalDP(epsilon))
        assert design.certified
        assert design.channel.matrix.max(axis=0).min() > 1e-2
