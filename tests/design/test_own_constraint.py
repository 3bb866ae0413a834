"""A user's own constraint, as the documentation shows it."""

import re
from pathlib import Path

import pytest

from ldpopt.design import Divergence, LocalDP, RenyiLDP, optimal_channel
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "design" / "custom-constraint.md"


@pytest.mark.full
def test_the_page_runs():
    """The documented constraint is Rényi-LDP of order one, and finds its optimum without a certificate."""
    source = re.search(r"```{testcode}\n(.*?)```", PAGE.read_text(), re.S).group(1)
    names = {}
    exec(source, names)
    design = names["design"]
    assert not design.certified
    same = optimal_channel(names["utility"], [RenyiLDP(1.0, 0.1), LocalDP(1.0)])
    assert design.value == pytest.approx(same.value, rel=1e-4)


def test_half_a_constraint_is_refused():
    """A class without the methods is no constraint."""

    class Bound:
        bound = 1.0

    with pytest.raises(InvalidInput, match="constraint"):
        optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), [Bound()])
