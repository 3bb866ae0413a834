"""Random and nasty problems against programs that share no code with the package; in full in experiments/trust."""

import pytest
from truth import problems
from truth.trial import WRONG, trial

pytestmark = pytest.mark.full

NUMBERS = {kind: range(4 if "divergence" in kind else 2) for kind in problems.KINDS}
# Of these some take most of a minute, such as zCDP beside a mass of 1e-248; one that is quick stands for the kind.
NUMBERS |= {"zcdp": [0], "mixed": [2], "outputs": [0, 2], "renyi": [1], "invariant": [0], "trade-off": [1],
            "support": [1, 2]}  # fmt: skip
CASES = [(kind, number) for kind, numbers in NUMBERS.items() for number in numbers]


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_a_nasty_problem_is_designed_with_a_true_bound_or_refused_in_words(kind, number):
    """No bound on the wrong side, nothing certified beyond its tolerance, a feasible channel, no raw exception."""
    case = problems.of_kind(kind, 7, number)
    wrong = [said for said in trial(case, steps=10) if said[0] in WRONG]
    assert not wrong, f"{wrong}\n{case.text}"
