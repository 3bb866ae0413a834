"""One call for every frontier: over (epsilon, eta), or over the parameter of any family of constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

from ldpopt.design.candidate import Method
from ldpopt.errors import invalid
from ldpopt.files import PathLike
from ldpopt.frontiers.family import Family, FamilyFrontier, FamilyRow, Parameter, family_frontier
from ldpopt.frontiers.grid import Factory, Frontier, FrontierRow, eta_frontier


@overload
def frontier(
    utility_factory: Factory,
    epsilons: Iterable[float],
    etas: Iterable[float],
    *,
    each: Callable[[FrontierRow], object] | None = None,
    jobs: int = 1,
    client: Any = None,
    resume: PathLike | None = None,
    progress: bool = False,
) -> Frontier: ...


@overload
def frontier(
    utility_factory: Any,
    epsilons: Family,
    etas: Iterable[Parameter],
    *,
    each: Callable[[FamilyRow], object] | None = None,
    method: Method | None = None,
    jobs: int = 1,
    client: Any = None,
    resume: PathLike | None = None,
    progress: bool = False,
) -> FamilyFrontier: ...


def frontier(
    utility_factory: Any,
    epsilons: Any,
    etas: Any,
    *,
    each: Callable[[Any], object] | None = None,
    method: Method | None = None,
    jobs: int = 1,
    client: Any = None,
    resume: PathLike | None = None,
    progress: bool = False,
) -> Frontier | FamilyFrontier:
    """Design the optimal channel over a range of privacy limits.

    ``frontier(utility, epsilons, etas)`` sets the textbook mechanisms and bounds beside each optimum and gives a
    `Frontier`; ``frontier(utility, family, parameters)`` takes any constraints and gives a `FamilyFrontier`.

    Parameters
    ----------
    utility_factory : a `Divergence` of finite distributions, or a function from (epsilon, eta) to one. With a family,
        anything that `optimal_channel` makes a `Design` of, or a function from the parameter to it.
    epsilons : in nats; or the family, a function from a parameter to a constraint or a list of them.
    etas : in [0, 1] (above tanh(epsilon/2) an eta does not bind); or the parameters, numbers or tuples of numbers.
    each : called with every row when the part that it belongs to is finished. method : as for `optimal_channel`.
    jobs : processes of this machine (joblib), -1 for one a core. client : a `distributed.Client`, or another executor
        with ``submit``, to do the work instead. The rows are the same as with one process.
    resume : a folder, made if need be, that keeps every finished part (a few points). The same call goes on from
        there after an interruption and gives the rows of a run that was not interrupted; another problem is refused.
    progress : shows a bar on standard error.

    `InvalidInput` for empty grids, utilities and constraints that are none, and for a folder of another problem.

    >>> from ldpopt import Divergence, RenyiLDP
    >>> from ldpopt.divergences import KL
    >>> utility = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> table = frontier(utility, [1.0, 2.0], [0.2, 0.4])
    >>> len(table), bool((table.gap("binary_with_erasure") >= -1e-12).all())
    (4, True)
    >>> frontier(utility, lambda epsilon: RenyiLDP(2.0, epsilon), [0.2, 0.4]).value.round(4)
    array([0.0101, 0.0216])
    """
    how = {"each": each, "jobs": jobs, "client": client, "resume": resume, "progress": progress}
    if callable(epsilons):
        return family_frontier(utility_factory, epsilons, etas, method, **how)
    if method is not None:
        raise invalid("method", "None for a frontier over (epsilon, eta), which chooses its own", method)
    return eta_frontier(utility_factory, epsilons, etas, **how)
