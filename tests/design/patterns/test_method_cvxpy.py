"""The plain convex program is the optimum: it agrees with methods that share nothing with it, and can be extended."""

import cvxpy as cp
import numpy as np
import pytest

from ldpopt import ApproximateLDP, Divergence, InvalidInput, LocalDP, MutualInformation, TotalVariation, optimal_channel
from ldpopt.design import (
    METHODS,
    AOptimal,
    ConvexProgram,
    COptimal,
    DOptimal,
    ExpectedLoss,
    FisherInformation,
    MVOptimal,
    Outputs,
    WorstOf,
    problem,
)
from ldpopt.divergences import CHI_SQUARED, KL
from ldpopt.errors import SolverError
from ldpopt.privacy import local_dp

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
PURE, CAPPED = [LocalDP(1.0)], [LocalDP(0.7), TotalVariation(0.1)]
LOOSE = [ApproximateLDP(1.0, 0.05), TotalVariation(0.2)]
CASES = [
    *((Divergence(KL, P0, P1), caps) for caps in (PURE, CAPPED, LOOSE)),
    (Divergence(CHI_SQUARED, [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]), CAPPED),
    (MutualInformation(P0), PURE),
    (WorstOf(KL, P0, [P1, [0.1, 0.3, 0.6]]), CAPPED),
    *((FisherInformation(P0, one), CAPPED) for one in (AOptimal(), COptimal([1, -1, 0]), MVOptimal(), DOptimal())),
    (ExpectedLoss([0.6, 0.4], [[0.0, 1.0], [2.0, 0.0]]), CAPPED),
]


@pytest.mark.parametrize(("utility", "caps"), CASES)
def test_the_program_s_optimum_is_the_certified_one(utility, caps) -> None:
    """Posed over all extreme columns, the optimum is that of the method that is chosen otherwise [KOV14, Thm 4]."""
    best = optimal_channel(utility, caps)
    posed = problem(utility, caps)
    posed.program.solve(solver="CLARABEL")
    assert best.certified
    assert posed.program.value == pytest.approx(best.value, rel=2e-5)
    assert utility.value(posed.channel) == pytest.approx(best.value, rel=2e-5)
    plain = optimal_channel(utility, caps, method=ConvexProgram())
    assert plain.value == pytest.approx(best.value, rel=2e-6)
    assert all(g.value <= c.bound for g, c in zip(plain.guarantees, caps, strict=True))
    assert abs(plain.relative_gap) < 2e-6


def test_the_cvxpy_problem_can_be_extended_and_solved_again() -> None:
    """A further limit on the matrix of a loss, added in cvxpy, is met by the channel that is read off."""
    posed = problem(ExpectedLoss([0.5, 0.5], 1 - np.eye(2)), LocalDP(1.0))
    free = posed.program.solve()
    limited = cp.Problem(posed.program.objective, [*posed.program.constraints, cp.sum(posed.matrix[:, 0]) <= 0.3])
    assert limited.solve(solver="CLARABEL") < free
    assert posed.channel.matrix[:, 0].sum() <= 0.3 + 1e-6
    assert float(local_dp(posed.channel)) <= 1 + 1e-6


def test_columns_of_zero_weight_are_no_outputs() -> None:
    """The channel has the columns in use; before a solution there is none."""
    posed = problem(Divergence(KL, P0, P1), LocalDP(1.0))
    with pytest.raises(SolverError, match="no solution yet"):
        _ = posed.channel
    posed.program.solve(solver="HIGHS")
    assert posed.channel.shape[1] <= 4 < posed.weights.size == 7


def test_unsupported_problems_are_refused_with_a_reason() -> None:
    """Too many columns, no list of columns, fixed outputs and functions of single outputs are refused with a reason."""
    many = Divergence(KL, np.full(11, 1 / 11), np.arange(1, 12) / 66)
    with pytest.raises(InvalidInput, match="11 inputs have too many patterns"):
        problem(many, LocalDP(1.0))
    for caps, why in (
        ([TotalVariation(0.2)], "neither LocalDP between all inputs nor one ApproximateLDP"),
        ([LocalDP(1.0), Outputs(2)], "constraints fix the outputs"),
        ([LocalDP(1.0), lambda q: q[0, 0] <= 0.2], "constraints fix the outputs"),
    ):
        with pytest.raises(InvalidInput, match=why):
            problem(Divergence(KL, P0, P1), caps)


def test_the_error_of_a_wrong_method_names_those_that_call_cvxpy() -> None:
    """A string is no method; the message lists the methods that solve programs through cvxpy."""
    with pytest.raises(InvalidInput, match=r"one that calls cvxpy \(.*ConvexProgram\), got 'ECOS'"):
        optimal_channel(Divergence(KL, P0, P1), PURE, method="ECOS")  # type: ignore[arg-type]
    assert ConvexProgram() in METHODS
