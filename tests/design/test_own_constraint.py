"""A user's own constraint, as the documentation shows it."""

import re
from pathlib import Path

import pytest

from ldpopt.design import Divergence, RenyiLDP, optimal_channel
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput

PAGE = Path(__file__).parents[2] / "docs" / "add-a-constraint.md"


def test_the_page_runs():
    """The documented constraint works, and its optimum with e^(D_2) - 1 = chi-squared is that of Rényi order two."""
    source = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S).group(1)
    names = {}
    exec(source, names)
    design = names["design"]
    assert not design.certified
    assert "class" not in design.note
    utility = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    import math

    own = optimal_channel(utility, names["ChiSquaredLDP"](0.2))
    same = optimal_channel(utility, RenyiLDP(2.0, math.log1p(0.2)))
    assert own.value == pytest.approx(same.value, rel=1e-4)


def test_half_a_constraint_is_refused():
    """A class without the methods is no constraint."""

    class Bound:
        bound = 1.0

    with pytest.raises(InvalidInput, match="constraint"):
        optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), [Bound()])
