"""Random and nasty problems against programs that share no code with the package; in full in experiments/trust."""

import pytest
from truth import problems
from truth.trial import WRONG, trial

NUMBERS = {kind: 6 if "divergence" in kind else 3 for kind in problems.KINDS}
LONG = {("zcdp", 1)}
"""Problems that take most of a minute: one without end under zCDP, beside a mass of 1e-248."""
CASES = [(kind, n) for kind, most in NUMBERS.items() for n in range(most) if (kind, n) not in LONG]


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_a_nasty_problem_is_designed_with_a_true_bound_or_refused_in_words(kind, number):
    """No bound on the wrong side, nothing certified beyond its tolerance, a feasible channel, no raw exception."""
    case = problems.of_kind(kind, 7, number)
    wrong = [said for said in trial(case, steps=10) if said[0] in WRONG]
    assert not wrong, f"{wrong}\n{case.text}"
