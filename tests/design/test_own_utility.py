"""A user's own utility, as the documentation shows it, and what is claimed of it."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from ldpopt.design import (
    ApproximateLDP,
    ColumnUtility,
    LocalDP,
    LocalSearch,
    PatternDual,
    TotalVariation,
    optimal_channel,
)
from ldpopt.errors import InvalidInput, NotChecked
from ldpopt.mechanisms import randomized_response

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "design" / "custom-utility.md"


@pytest.fixture(scope="module")
def page():
    source = re.search(r"```{testcode}\n(.*?)```", PAGE.read_text(), re.S).group(1)
    names = {}
    exec(source, names)
    return names


def test_the_page_runs(page):
    """The documented utility has its optimum, that of the program over every pattern, certified [KOV14, Thm 4]."""
    prior, eta = np.array([0.4, 0.3, 0.2, 0.1]), 0.3
    columns = np.array(list(itertools.product([1.0, math.e], repeat=4)))
    pairs = [np.maximum(columns[:, x] - columns[:, z], 0.0) for x, z in itertools.permutations(range(4), 2)]
    found = linprog(
        -(prior * columns).max(axis=1), A_ub=np.array(pairs), b_ub=np.full(12, eta), A_eq=columns.T, b_eq=np.ones(4)
    )
    design = page["design"]
    assert isinstance(design.certificate, PatternDual)
    assert design.value == pytest.approx(-found.fun, rel=1e-9)
    assert design.upper_bound >= -found.fun * (1 - 1e-11)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 3.0, 60.0])
def test_a_users_utility_has_a_tight_bound_under_pure_ldp(page, epsilon):
    """The bound is tight at every epsilon; two equally likely answers are guessed with e^epsilon/(1 + e^epsilon)."""
    design = optimal_channel(page["Guessing"]([0.5, 0.5]), LocalDP(epsilon))
    assert design.certified
    assert design.upper_bound == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=1e-9)
    assert optimal_channel(page["Guessing"]([0.5, 0.3, 0.2]), [LocalDP(epsilon), TotalVariation(1e-9)]).certified


def test_a_users_utility_has_no_finite_bound_under_other_constraints(page):
    """Under another constraint nothing bounds it: a search with one report proves nothing about channels with more."""
    utility = page["Guessing"]([0.4, 0.3, 0.3])
    design = optimal_channel(utility, ApproximateLDP(0.5, 0.01), method=LocalSearch(1, outputs=1))
    assert design.upper_bound == math.inf
    assert not design.certified
    assert utility.value(randomized_response(2, 0.5).matrix[[0, 1, 1]]) > design.value * 1.05


def test_a_contracting_utility_is_bounded_by_full_disclosure():
    """One's own mutual information that says that it contracts has the bound of contraction under any constraint."""

    class Information(ColumnUtility):
        name, inputs, value_without_privacy, contracts, size = "own information", None, math.log(2), True, 2

        def columns(self, matrix):
            mean = np.maximum(matrix.mean(axis=0), 1e-300)
            return np.atleast_2d((matrix * np.log(np.maximum(matrix, 1e-300) / mean)).mean(axis=0))

        def gradients(self, matrix):
            mean = np.maximum(matrix.mean(axis=0), 1e-300)
            return (0.5 * np.log(np.maximum(matrix, 1e-12 * mean) / mean)).T[None]

    design = optimal_channel(Information(), ApproximateLDP(0.5, 0.01))
    assert design.value <= design.upper_bound <= math.log(2)
    assert optimal_channel(Information(), LocalDP(1.0)).certified


def test_exact_arithmetic_requires_enclosed_columns(page):
    """A function that is known in floats only is no ground for exact arithmetic, and the check says so."""
    checked = page["design"].certificate.verify(exact=True)
    assert (checked.outcome, checked.failures) == ("not checked", ())
    assert "not covered" in str(checked)
    assert "float64" in str(checked)
    with pytest.raises(NotChecked, match="neither true nor false"):
        bool(checked)
    with pytest.raises(InvalidInput, match="utility"):
        optimal_channel(page["Guessing"], LocalDP(1.0))


WRONG = {
    "a scalar": lambda g: 0.5,
    "too few axes": lambda g: g[0],
    "axes in another order": lambda g: g.transpose(0, 2, 1),
    "an answer short": lambda g: g[..., :-1],
    "a criterion too many": lambda g: np.vstack([g, g]),
    "not a number": lambda g: np.where(g == g.max(), np.nan, g),
    "infinite": lambda g: np.where(g == g.max(), np.inf, g),
    "a ragged list": lambda g: [[0.4], [0.3, 0.2]],
    "text": lambda g: "0.4",
    "objects": lambda g: np.full(g.shape, None),
    "complex": lambda g: g + 0j,
    "nothing": lambda g: None,
}


OF_COLUMNS = [name for name in WRONG if name not in ("axes in another order", "a criterion too many", "infinite")]


@pytest.mark.parametrize("constraint", [LocalDP(1.0), ApproximateLDP(1.0, 0.01)], ids=["patterns", "search"])
@pytest.mark.parametrize(
    ("function", "change"),
    [*(("columns", WRONG[name]) for name in OF_COLUMNS), *(("gradients", change) for change in WRONG.values())],
    ids=[*(f"columns-{name}" for name in OF_COLUMNS), *(f"gradients-{name}" for name in WRONG)],
)
def test_malformed_functions_are_named(page, function, change, constraint):
    """Whatever else than finite numbers of the documented shape comes back, one sentence names the function."""
    base = page["Guessing"]
    wrong = type("Wrong", (base,), {function: lambda self, q: change(getattr(base, function)(self, q))})
    with pytest.raises(InvalidInput, match=f"{function} of chance to guess: expected .*(numbers|shape)"):
        optimal_channel(
            wrong([0.4, 0.3, 0.2]), constraint, method=None if isinstance(constraint, LocalDP) else LocalSearch(1)
        )


@pytest.mark.parametrize("constraint", [LocalDP(1.0), ApproximateLDP(1.0, 0.01)], ids=["patterns", "search"])
def test_nested_lists_of_the_right_shape_serve(page, constraint):
    """Lists of numbers stand for the array that they make."""
    base = page["Guessing"]
    lists = {
        name: lambda self, q, name=name: getattr(base, name)(self, q).tolist() for name in ("columns", "gradients")
    }
    made = type("Lists", (base,), lists)([0.4, 0.3, 0.2])
    same = base([0.4, 0.3, 0.2])
    chosen = {} if isinstance(constraint, LocalDP) else {"method": LocalSearch(1)}
    assert optimal_channel(made, constraint, **chosen).value == optimal_channel(same, constraint, **chosen).value
