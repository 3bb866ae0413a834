import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey.regress.formula import in_order, parse_formula


def shown(text):
    made = parse_formula(text)
    return made.outcome, [":".join(factor.name for factor in term) for term in made.terms], made.intercept


def test_terms_are_read_in_their_order():
    """Names, products, both at once, quoted names and names in any script are read as they stand."""
    assert shown("y ~ a + b:c") == ("y", ["a", "b:c"], True)
    assert shown("y~a*b") == ("y", ["a", "b", "a:b"], True)
    assert shown("y ~ a*b*c") == ("y", ["a", "b", "c", "a:b", "a:c", "b:c", "a:b:c"], True)
    assert shown("`how many` ~ `the age` + größe") == ("how many", ["the age", "größe"], True)
    assert shown("y ~ 1") == ("y", [], True)
    assert parse_formula("y ~ C(a)").terms[0][0].categorical


def test_the_intercept_can_be_left_out():
    """0, -1 before and after other terms."""
    for text in ("y ~ 0 + a", "y ~ -1 + a", "y ~ a - 1", "y ~ a + 0"):
        assert shown(text) == ("y", ["a"], False)


def test_a_term_twice_counts_once():
    """a + a, and a:b after a*b."""
    assert shown("y ~ a + a + b:a + a:b") == ("y", ["a", "b:a"], True)


@pytest.mark.parametrize(
    "text", ["", "y", "y ~", "~ a", "y ~ a +", "y ~ + a +", "y ~ a b", "y ~ 2", "y ~ a - b", "y ~ y", "y ~ C(a",
             "y ~ a ~ b", "y ~ 0", "y ~ a^2", "y ~ `a", None, 3, "y ~ a ++ b", "y ~ :a", "- ~ a"]
)  # fmt: skip
def test_what_is_no_formula_is_refused(text):
    """Anything else is one clear error."""
    with pytest.raises(InvalidInput):
        parse_formula(text)


def test_levels_are_ordered_numbers_first():
    """Numbers come by their size, whatever they are written as, and other labels after them as text."""
    code, kinds = in_order(np.array([0, 1, 2, 3, 0]), ["b", "10", 9, "a"])
    assert kinds == [9, "10", "a", "b"]
    assert code.tolist() == [3, 1, 0, 2, 3]
