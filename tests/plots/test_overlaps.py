"""In no picture of the package do letters touch or leave the figure, and no legend lies on the data."""

from functools import cache

import numpy as np
import pytest
from plots.overlaps import cut_off, legends_on_data, touching

from ldpopt import Divergence, LocalDP, TotalVariation, frontier, optimal_channel, plots, structures
from ldpopt.divergences import KL
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.pictures import planning

P0 = np.array([0.4, 0.3, 0.2, 0.1])
UTILITY = Divergence(KL, P0, P0[::-1], inputs=("never", "once a year", "once a month", "more often"))


def _planning():
    questions = (QuestionSpec("a long name of a question", ("no", "yes")), QuestionSpec("b", (1, 2, 3)))
    return planning(plan_survey(SurveySpec("demo", questions, epsilon=2.0)).plan)


def _shares():
    values = np.array([0.5, 0.3, 0.2])
    return plots.shares(["no", "yes", "no answer"], values, values - 0.05, values + 0.05, values + 0.01)


PICTURES = {
    "channel": lambda: plots.channel(randomized_response(5, 2.0, inputs=list("abcde"))),
    "channel with long names": lambda: plots.channel(
        optimal_channel(UTILITY, [LocalDP(2.0), TotalVariation(0.3)]).channel
    ),
    "blocks": lambda: plots.blocks(optimal_channel(UTILITY, LocalDP(2.0)), names=("Clinton", "Dole")),
    "frontier": lambda: plots.frontier(frontier(UTILITY, [1.0, 2.0], np.linspace(0, 1, 6))),
    "gap map": lambda: plots.gap_map(frontier(UTILITY, [0.5, 1.0, 2.0], [0.1, 0.3, 0.6]), "binary_with_erasure"),
    "structures": lambda: plots.structures(structures(Divergence(KL, P0, P0[::-1]), 0.1, 6.0, tolerance=1e-4)),
    "planning": _planning,
    "shares": _shares,
}


@cache
def picture(name):
    return PICTURES[name]().figure


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", PICTURES)
def test_letters_do_not_touch(name):
    """Every text of the picture has room of its own, within the figure."""
    figure = picture(name)
    assert touching(figure) == []
    assert cut_off(figure) == []


@pytest.mark.full(but=3)
@pytest.mark.parametrize("name", PICTURES)
def test_legends_are_off_the_data(name):
    """A legend beside, above or below the axes hides nothing."""
    assert legends_on_data(picture(name)) == []
