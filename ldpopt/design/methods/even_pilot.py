"""The channel of least error of an estimate where all shares are expected to be equal: subset selection by few sets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import nnls

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.equivalence import EquivalenceDual
from ldpopt.design.columns.choose import columns_for
from ldpopt.design.columns.sizes import Sizes
from ldpopt.design.columns.staircase import FULL
from ldpopt.design.constraints import LocalDP, TotalVariation
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.methods.estimation_columns import inward
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

MOST = 200
"""The most categories: the channel has up to k^2 / 2 reports, so that 200 take four million numbers."""

WIDEST = 30.0
"""The largest epsilon."""

TRIED = 4
"""Sets that are drawn for each frequency."""

ROUNDS = 4
"""Draws, each twice as large as the one before."""


@dataclass(frozen=True)
class EvenPilot(Method):
    """The exact survey design for a pilot of equal shares: each report favours a set of one size [YB].

    It makes the sum of variances small, under `LocalDP` alone. By convexity an optimal channel treats all categories
    alike. So subset selection of the best size s is optimal, and so is every family of sets of that size that contains
    all pairs of categories equally often. The k rotations {x + i mod k} of a set do so if the power spectrum of the set
    is flat, and a mixture of such families does if the mean of the spectra is. About k/2 sets are drawn at random, with
    weights that make it flat.

    It takes 9 to 200 categories. For more, the least error is that of subset selection,
    (k-1)^2 (k + (E-1) s)^2 / ((E-1)^2 k s (k-s)) with E = exp(epsilon), but the channel is too large for a matrix.

    >>> from ldpopt.design import FisherInformation, LocalDP, optimal_channel
    >>> design = optimal_channel(FisherInformation([1 / 20] * 20), LocalDP(1.0))
    >>> round(design.value, 6), design.relative_gap < 1e-11
    (66.634366, True)
    """

    reference: ClassVar[str] = "[YB]"
    preference: ClassVar[int] = 120

    def refuses(self, problem: Problem) -> str:
        """It needs the sum of variances at equal shares, under LocalDP alone."""
        utility = problem.utility
        if not isinstance(utility, FisherInformation):
            return f"{utility.name} is no error of an estimate"
        if utility.neighbourhood is not None:
            return "it designs for one distribution, not for its neighbourhood"
        roots = utility.criterion.diagonal(utility.size)
        if roots is None or (roots != 1).any():
            return "it takes the sum of all variances, each of weight one"
        if np.ptp(utility.prior) > 0:
            return "the pilot's shares are not all equal"
        if not utility.size > FULL:
            return f"it takes {FULL + 1} to {MOST} categories, and here are {utility.size}"
        if not all(isinstance(c, LocalDP | TotalVariation) for c in problem.constraints):
            return "it takes LocalDP, and caps on total variation that do not bind"
        if not any(isinstance(c, LocalDP) for c in problem.constraints):
            return "a design for estimation needs constraints with LocalDP among them"
        if not problem.symmetric:
            return "it takes one epsilon between all categories, not a policy graph"
        columns, eta = columns_for(utility, problem.constraints)
        if eta is not None:
            return "it takes no cap on total variation that binds"
        if not columns.epsilon <= WIDEST:
            return f"epsilon is above {WIDEST:g}"
        if utility.size > MOST:
            size, error = _best(utility.size, columns.epsilon)
            return Limit(f"subset selection of size {size} is optimal, of error {error:.6g}, too large for a matrix")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The weighed rotations of sets of the best size."""
        utility: Any = problem.utility
        k, epsilon = utility.size, columns_for(utility, problem.constraints)[0].epsilon
        best, error = _best(k, epsilon)
        sets, weights = _flat(k, best)
        turned = (np.arange(k)[None, :] - np.arange(k)[:, None]) % k  # the place that comes to x by a turn of i
        members = sets[:, turned].reshape(-1, k)
        kept = math.exp(epsilon * inward(epsilon))
        matrix = stochastic(np.where(members, kept, 1.0).T * np.repeat(weights, k))

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            # The kernel 1, centred, earns n (k - n) / k from the pattern of n inputs, of mass t + n/k.
            rows = np.full(k, (k - 1) ** 2 / (k * error) * (1 + 2.0**-44))
            fields = (posed.utility, posed.constraints, channel, utility.prior, np.eye(k), rows, np.zeros((k, k)))
            yield EquivalenceDual(*fields, Sizes())

        return Candidate(matrix, f"subset selection of size {best}, by the rotations of {len(sets)} sets", prove)


def _best(k: int, epsilon: float) -> tuple[int, float]:
    """The size of the best subset selection, and the sum of the variances that it leaves."""
    size = np.arange(1, k)
    error = (k - 1) ** 2 * (k / math.expm1(epsilon) + size) ** 2 / (k * size * (k - size))
    return int(size[np.argmin(error)]), float(error.min())


def _flat(k: int, size: int) -> tuple[Array, Array]:
    """(n, k) sets of one size, and weights with which the power spectra of all their rotations are flat."""
    rng = np.random.default_rng([k, size])
    aim = np.full(k // 2, size * (k - size) / (k - 1))
    count = TRIED * (k // 2)
    for _ in range(ROUNDS):
        sets = rng.permuted(np.tile(np.arange(k) < size, (count, 1)), axis=1)
        power = np.abs(np.fft.rfft(sets, axis=1)[:, 1:]) ** 2
        weights, off = nnls(power.T, aim)
        if off <= 1e-9 * float(np.linalg.norm(aim)):
            return sets[weights > 0], weights[weights > 0]
        count *= 2
    raise SolverError("designs for equal shares: no rotations that treat all pairs alike were found")
