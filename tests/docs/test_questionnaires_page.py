"""The numbers of the page on questionnaires are those of the formulas, of the claim and of the recorded experiment."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from experiments.papers import EXPERIMENTS, Table
from ldpopt.design import FisherInformation, LocalDP, Marginals, optimal_channel
from ldpopt.design.estimation.proof import yes_no_limit
from ldpopt.numbers.enclosures import FLOAT
from ldpopt_survey.plan.units import respondent_information

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "questionnaires.md").read_text("utf-8")


def cells(first):
    """The cells of the row of a table that begins with these words, after the first."""
    (line,) = re.findall(rf"^\| {re.escape(first)} \|(.*)\|$", PAGE, re.MULTILINE)
    return [cell.replace("\u00a0", " ").strip() for cell in line.split("|")]


def above(epsilon, questions):
    """By how many percent the proved limit exceeds the rule."""
    any_number = math.tanh(epsilon / 2) ** 2 if epsilon <= math.log(3) else math.expm1(epsilon) / 8
    limit = min(any_number, float(yes_no_limit(FLOAT.of(epsilon), questions).upper))
    return 100 * (limit / respondent_information(questions, epsilon) - 1)


def test_the_best_number_of_questions_is_on_the_page():
    """The best c of c (x/(2^c + x))^2, x = e^epsilon - 1, at the epsilons of the table and up to 1.34."""
    x = np.expm1(np.array([0.01, 1.0, 1.34, 2.0, 3.0, 4.0, 5.0]))
    best = 1 + np.argmax([c * (x / (2**c + x)) ** 2 for c in range(1, 10)], axis=0)
    assert best.tolist() == [1, 1, 1, 2, 3, 4, 5]
    assert cells("questions to ask of each respondent") == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("first", "questions"),
    [
        ("largest possible excess over the optimum, 9 questions", 9),
        ("12 questions", 12),
        ("any number of questions", 10**6),
    ],
)
def test_the_possible_excess_is_on_the_page(first, questions):
    """The limit over the rule at epsilon = 2, 3, 4 and 5, rounded up; up to 1.34 it is 3.0 %, and 0 up to ln 3."""
    told = cells(first)
    assert told[1:] == [f"{math.ceil(10 * above(epsilon, questions)) / 10} %" for epsilon in (2.0, 3.0, 4.0, 5.0)]
    assert max(above(epsilon, questions) for epsilon in np.linspace(0.1, 1.34, 15)) < 3.05
    assert max(above(epsilon, questions) for epsilon in np.linspace(0.1, math.log(3), 10)) < 1e-9
    assert told[0] in ("3.0 %, 0 up to $\\ln 3$", "the same")


def test_how_far_subcubes_are_from_the_profile():
    """f(a)^2 over |v|^2 = c 4^-c at a = 2^-c, and Talagrand's 2 a^2 log(1/a)."""
    assert "reach $f$ to 0.01, 2.3 and 5.8 %" in PAGE
    assert "is 39 % above every subcube" in PAGE
    for c, percent in ((1, 0.01), (2, 2.3), (3, 5.8)):
        arcs = ((1.319, 1.3197, 0.0), (1.3038, 1.309, 0.00076))
        square = min((b * math.exp(-(ndtri((2.0**-c + s) / a) ** 2) / 2)) ** 2 / (2 * math.pi) for a, b, s in arcs)
        assert 100 * (square / (c * 4.0**-c) - 1) == pytest.approx(percent, abs=0.05)
        assert round(100 * (2 * math.log(2) - 1)) == 39


def test_questions_with_more_answers():
    """sinh^2(eps/2) over the information of subset selection, for 3 to 10 answers and epsilon up to 1."""
    assert "within 12.5 % of the bound" in PAGE
    assert "within 7.8 and 6.2 %, and for 6 to 10 answers within 3.1 %" in PAGE
    epsilon = np.geomspace(1e-4, 1, 2000)
    x = np.expm1(epsilon)
    for answers, percent in ({3: 12.5, 4: 7.8, 5: 6.2} | dict.fromkeys(range(6, 11), 3.1)).items():
        share = np.arange(1, answers)[:, None] / answers
        told = (share * (1 - share) * (x / (1 + share * x)) ** 2).max(axis=0)
        excess = 100 * (np.sinh(epsilon / 2) ** 2 / told - 1)
        assert excess.max() <= percent
        assert excess.max() > percent - 0.15 or answers > 6
        assert answers > 3 or excess[epsilon >= 0.25].max() < 5


def test_the_comparison_is_that_of_the_claim():
    """The rows of the last table are those that the claim computes for ten questions."""
    names = {
        "everything, $\\varepsilon$ split": "split",
        "[DJW] a half-space of answer vectors": "half-space",
        "RS+FD: one true answer among fakes [RSFD]": "fakes",
        "[PM]: $\\lfloor \\varepsilon/2.5 \\rfloor$ questions at random, split": "sampled",
        "[Harmony]: one question at random": "one",
        "booklets by the rule": "rule",
        "no protocol is below, if the answers are independent": "bound",
    }
    measure = EXPERIMENTS["questionnaire-rule"].measure
    rows = [measure(m=10, epsilon=epsilon) for epsilon in (0.5, 1.0, 2.0, 3.0)]
    for first, name in names.items():
        assert cells(first) == [f"{row[name]:.2f}" for row in rows], first


def test_the_gaps_are_those_of_the_experiment():
    """The table of gaps has what the experiment's file has, in one or two digits."""
    file = ROOT / "experiments" / "questionnaires" / "certified.csv"
    if not file.exists():  # the tests may run away from the repository
        return
    table = Table.from_csv(file.read_text("utf-8"))
    for shape, rows in table.groups("answers"):
        told = cells(shape.replace("x", ", "))[1:]
        by_epsilon = {row["epsilon"]: row["gap"] for row in rows.rows}
        for epsilon, cell in zip((0.5, 1.0, 2.0, 3.0), told, strict=True):
            gap = by_epsilon.get(epsilon)
            assert (cell == "·") is (gap is None)
            if gap is not None:
                number = float(cell.removesuffix(" %")) * (0.01 if cell.endswith("%") else 1)
                assert number == pytest.approx(gap, rel=0.12)


@pytest.mark.full
def test_a_pilot_at_which_one_question_is_not_best():
    """Five yes/no questions with shares of 1 %: a joint channel has 45.854, one question at random 46.529."""
    assert "45.854, and one question at random 46.529" in PAGE
    questions = Marginals((2,) * 5)
    pilot = questions.pilot(*[[0.99, 0.01]] * 5)
    design = optimal_channel(FisherInformation(pilot, questions), LocalDP(1.0))
    assert design.value == pytest.approx(45.854, abs=1e-3)
    alone = optimal_channel(FisherInformation([0.99, 0.01]), LocalDP(1.0)).value
    assert 25 * alone == pytest.approx(46.529, abs=1e-3)
