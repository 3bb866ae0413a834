"""Tests of `ldpopt.design.solve`: every status is mapped, and only "optimal" is accepted."""

import cvxpy as cp
import pytest

from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.errors import SolverError


@pytest.mark.parametrize("order", [SIMPLEX, INTERIOR])
def test_a_solvable_program_is_solved_by_the_first_solver(order):
    """A solvable program is solved by the first solver of the order."""
    x = cp.Variable(2, nonneg=True)
    assert solve(cp.Problem(cp.Maximize(x[0] + 2 * x[1]), [x[0] + x[1] <= 1]), "test", order) == order[0]
    assert x.value[1] == pytest.approx(1.0, abs=1e-6)


def test_infeasible_and_unbounded_programs_name_the_remedy():
    """Status and remedy are in the message, for every solver that was tried."""
    x = cp.Variable()
    with pytest.raises(SolverError, match=r"mine: HIGHS said infeasible; CLARABEL said infeasible: .*relax one"):
        solve(cp.Problem(cp.Minimize(x), [x >= 1, x <= 0]), "mine")
    with pytest.raises(SolverError, match="unbounded"):
        solve(cp.Problem(cp.Minimize(x)), "mine")


class Fake:
    """A problem whose solvers report what they are told to."""

    value = 1.0
    constraints = ()

    def variables(self):
        return []

    def __init__(self, *statuses):
        self.statuses = list(statuses)

    def solve(self, solver, **options):
        self.status = self.statuses.pop(0)
        if self.status == "crash":
            raise cp.error.SolverError("crashed")


@pytest.mark.parametrize("status", ["optimal_inaccurate", "user_limit", "crash", "infeasible_inaccurate"])
def test_the_next_solver_is_tried_and_inaccurate_refused(status):
    """Anything but optimal goes to the next solver; when all fail, the error lists them."""
    assert solve(Fake(status, "optimal"), "test") == "CLARABEL"
    with pytest.raises(SolverError, match=r"HIGHS said .*; CLARABEL said"):
        solve(Fake(status, status), "test")


def test_optimal_without_a_finite_value_is_refused():
    """A status of "optimal" with an infinite value is not an answer."""
    fake = Fake("optimal", "optimal")
    fake.value = float("inf")
    with pytest.raises(SolverError):
        solve(fake, "test")


def test_a_solver_that_raises_is_one_that_failed():
    """What a solver throws is a status, after which the next one is tried; its own words are not passed on."""

    class Raises(Fake):
        def solve(self, solver, **options):
            if solver == "HIGHS":
                raise RuntimeError("HiGHS Status 4: words of its own")
            super().solve(solver, **options)

    assert solve(Raises("optimal"), "test") == "CLARABEL"
    with pytest.raises(SolverError, match="HIGHS said solver_error") as caught:
        solve(Raises("infeasible"), "test")
    assert "words of its own" not in str(caught.value)
