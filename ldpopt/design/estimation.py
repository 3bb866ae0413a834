"""The optimal channel for estimation: column generation over staircase patterns, repair, measure, prove."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.channel import ERASED, Channel, Label
from ldpopt.design.constraints import Constraint, LocalDP, TotalVariation
from ldpopt.design.criteria import Criterion
from ldpopt.design.estimation_certificate import EquivalenceDual
from ldpopt.design.estimation_result import EstimationDesign
from ldpopt.design.fisher import FisherInformation
from ldpopt.design.fisher_program import FisherSolution, fisher_program
from ldpopt.design.pricing import EXACT_LIMIT, Members, Prices, relaxed_multipliers
from ldpopt.design.repair import repair
from ldpopt.design.scores import criterion_at
from ldpopt.design.solve import solve
from ldpopt.design.worst_case import worst_case
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.rounding import toward_privacy
from ldpopt.tolerances import BRACKET_GAP, CERTIFIED_GAP

ROUNDS = 40
"""Rounds of pricing; what is left unpriced shows as a gap, not as an error of the bound."""

NEGLIGIBLE = 1e-6
"""Weights below this share of the largest are taken for the solver's zero."""

CERTAIN = 14
"""Up to this many inputs designs are certified to `tolerances.CERTIFIED_GAP`, beyond to `COARSE_GAP`."""

BATCH = 200
"""Patterns that join in a round."""

KEEP = 0.004
"""Patterns stay while their price is within this share of the criterion."""

COARSE_GAP = 1e-3
"""The relative gap at which generation stops for larger alphabets: one respondent in a thousand."""

FULL = 8
"""Up to this many inputs all patterns enter at once."""


def estimation_design(
    utility: FisherInformation, constraints: Constraint | Iterable[Constraint], *, certify: bool = True
) -> EstimationDesign:
    """The channel of least error within `constraints`, with a proof of how close to the least it is.

    min over channels Q of criterion(J(Q)^-1 - p p^T)  subject to  Q epsilon-LDP, Q eta-TV

    Every term of J = sum_y q_y q_y^T / (q_y . p) is a convex, homogeneous function of its column, so staircase
    patterns are enough [KOV14, Thm 2]. They are generated: the program over a few is solved, all 2^k are priced at its
    dual values (beyond 24 categories a local search does), and those that pay join, until none does.

    utility : a `FisherInformation`. constraints : `LocalDP(epsilon)` between all categories, perhaps with
    `TotalVariation(eta)`. certify : False skips the certificate, and with it the lower bound.

    >>> p = [0.9, 0.025, 0.025, 0.025, 0.025]
    >>> design = estimation_design(FisherInformation(p), LocalDP(1.0))
    >>> round(design.value, 6), design.certified
    (10.150574, True)
    """
    listed, epsilon, eta = _caps(utility, constraints)
    if utility.neighbourhood is None:
        found = _generate(utility.criterion, utility.prior, epsilon, eta, _start(len(utility.prior), epsilon))
        prior = utility.prior
    else:
        found, prior = _minimax(utility, epsilon, eta)
    matrix = repair(found.fewer(utility, epsilon).matrix(toward_privacy(epsilon)), listed)
    channel = _labelled(matrix, utility)
    value = utility.value(channel)
    certificate = None
    if certify:
        if utility.neighbourhood is not None:  # the multipliers of the least favourable distribution alone
            found = _generate(utility.criterion, prior, epsilon, eta, found.members)
        certificate = _prove(utility, listed, channel, epsilon, eta, prior, found.solution)
    bound = min(value, certificate.lower_bound) if certificate else -math.inf
    made = EstimationDesign(
        utility, listed, channel, value, bound, tuple(c.measure(channel) for c in listed),
        f"column generation over staircase patterns, {len(found.members)} generated", certificate, False,
        _tolerance(len(prior)) if utility.neighbourhood is None else BRACKET_GAP, "",
    )  # fmt: skip
    certified = certificate is not None and made.relative_gap <= made.tolerance
    return EstimationDesign(**{**vars(made), "certified": certified, "note": _note(made, certified, eta)})


def _caps(
    utility: FisherInformation, constraints: Constraint | Iterable[Constraint]
) -> tuple[tuple[Constraint, ...], float, float | None]:
    """The constraints, epsilon, and the eta that can bind."""
    listed = (constraints,) if isinstance(constraints, Constraint) else tuple(constraints)
    for constraint in listed:
        if not isinstance(constraint, (LocalDP, TotalVariation)):
            raise invalid("constraint", "LocalDP or TotalVariation in a design for estimation", constraint)
        if getattr(constraint, "graph", None) is not None:
            raise invalid("constraint", "LocalDP between all categories in a design for estimation", constraint)
    epsilon = min((c.epsilon for c in listed if isinstance(c, LocalDP)), default=math.inf)
    if math.isinf(epsilon):
        raise InvalidInput("constraints: expected LocalDP among them, got none")
    if epsilon > 30:
        raise invalid("epsilon", "at most 30 in a design for estimation", epsilon)
    eta = min((c.eta for c in listed if isinstance(c, TotalVariation)), default=1.0)
    if eta <= 0:
        raise InvalidInput("eta: expected a positive number, since a channel of eta 0 says nothing, got 0")
    return listed, epsilon, (eta if eta < math.tanh(epsilon / 2) else None)


@dataclass(frozen=True, eq=False)
class _Found:
    """Patterns `members` (n, k) with their weights and the dual values."""

    members: Members
    solution: FisherSolution

    def fewer(self, utility: FisherInformation, epsilon: float) -> _Found:
        """The same information from at most k(k+1)/2 + 1 patterns: a vertex of the weights that give it.

        Under a neighbourhood the information at other distributions counts too, and all patterns stay.
        """
        k = self.members.shape[1]
        used = self.solution.theta > NEGLIGIBLE * self.solution.theta.max()
        if utility.neighbourhood is not None or used.sum() <= k * (k + 1) // 2 + 1:
            return self
        import cvxpy as cp

        columns = np.where(self.members[used], math.exp(epsilon), 1.0)
        mass = columns @ utility.prior
        u = columns / mass[:, None] - 1
        x, other = np.triu_indices(k)
        moments = np.hstack([np.ones((len(u), 1)), u, u[:, x] * u[:, other]])
        moments = moments / np.abs(moments).max(axis=0)
        now = self.solution.theta[used] * mass
        w = cp.Variable(len(u), nonneg=True)
        cost = np.random.default_rng(k).random(len(u))
        try:
            solve(cp.Problem(cp.Minimize(cost @ w), [moments.T @ w == moments.T @ now]), "fewer reports", ("HIGHS",))
        except SolverError:
            return self
        theta = np.zeros(len(used))
        theta[used] = np.maximum(np.asarray(w.value), 0.0) / mass
        return _Found(self.members, replace(self.solution, theta=theta))

    def matrix(self, epsilon: float) -> Array:
        """The channel's matrix. Patterns of no account are left out, and the rest balanced again.

        What a solver leaves on them would make a report that says something of a proportion that the others do not,
        at an error too large to compute.
        """
        theta = self.solution.theta
        used = theta > NEGLIGIBLE * theta.max()
        columns, theta = np.where(self.members[used], math.exp(epsilon), 1.0), theta[used]
        # The least relative change of weights that makes the rows sum to one.
        missing = 1 - theta @ columns
        theta = theta * (1 + np.linalg.lstsq((columns * theta[:, None]).T, missing, rcond=1e-12)[0])
        made = columns.T * np.maximum(theta, 0.0)
        return np.asarray(made / made.sum(axis=1, keepdims=True))


def _start(k: int, epsilon: float) -> Members:
    """The first patterns: all of a small alphabet; else singletons, their complements, and sets of near-best size."""
    if k <= FULL:
        return ((np.arange(2**k - 1)[:, None] >> np.arange(k)) & 1).astype(bool)
    rng = np.random.default_rng(k)
    best = min(max(round(k / (math.exp(epsilon) + 1)), 1), k - 1)
    sets = [np.zeros((1, k), dtype=bool), np.eye(k, dtype=bool), ~np.eye(k, dtype=bool)]
    for size in {max(best - 1, 1), best, min(best + 1, k - 1)}:
        circle = np.arange(k) < size
        for order in (np.arange(k), rng.permutation(k)):
            turned = np.array([np.roll(circle, turn) for turn in range(k)])
            sets.append(turned[:, order])
    return np.unique(np.vstack(sets), axis=0)


def _generate(criterion: Criterion, prior: Array, epsilon: float, eta: float | None, members: Members) -> _Found:
    ratio, k = math.exp(epsilon), len(prior)
    for _ in range(ROUNDS):
        solution = fisher_program(criterion, [prior], np.where(members, ratio, 1.0), ratio, eta)
        found = _Found(members, solution)
        if len(members) >= 2**k - 1:
            return found
        prices = _prices(prior, solution, epsilon)
        size = abs(float(prices.rows.sum())) + (eta or 0.0) * float(prices.pairs.sum())
        least = 0.9 * _tolerance(k) * size
        used = members[solution.theta > NEGLIGIBLE * solution.theta.max()]
        new = _unknown(prices.climb(used, BATCH, least), members)
        if len(new) == 0 and k <= EXACT_LIMIT:
            new = _unknown(prices.best(BATCH, least)[1], members)
        if len(new) == 0:
            return found
        # Patterns far from paying leave, so that the program stays small.
        gains = prices.gains(np.where(members, ratio, 1.0))
        members = np.vstack([members[gains > -KEEP * size], new])
    return found


def _prices(prior: Array, solution: FisherSolution, epsilon: float) -> Prices:
    centred = solution.kernel - np.outer(solution.kernel.sum(axis=1), prior)
    return Prices(centred.T @ centred, prior, solution.rows, solution.pairs, math.exp(epsilon))


def _tolerance(k: int) -> float:
    return CERTIFIED_GAP if k <= CERTAIN else COARSE_GAP


def _unknown(new: Members, members: Members) -> Members:
    known = {row.tobytes() for row in members}
    return np.array([row for row in new if row.tobytes() not in known], dtype=bool).reshape(-1, members.shape[1])


def _minimax(utility: FisherInformation, epsilon: float, eta: float | None) -> tuple[_Found, Array]:
    """The saddle point: a channel for the worst case, and the least favourable distribution.

    The criterion is convex in the weights and concave in the distribution. Over the patterns at hand, distributions
    join until the worst case of the channel is among them; their mixture by dual values is least favourable, and the
    best channel for it alone brings further patterns, or proves that none is needed.
    """
    ratio, accuracy = math.exp(epsilon), 1e-5
    found = _generate(utility.criterion, utility.prior, epsilon, eta, _start(len(utility.prior), epsilon))
    members, priors, best = found.members, [utility.prior], (math.inf, found, utility.prior)
    for _ in range(ROUNDS):
        found = _Found(members, fisher_program(utility.criterion, priors, np.where(members, ratio, 1.0), ratio, eta))
        worst = worst_case(utility, found.matrix(epsilon), accuracy / 10)
        mixture = found.solution.shares @ np.array(priors)
        mixture = mixture / mixture.sum()
        if worst.upper < best[0]:
            best = (worst.upper, found, mixture)
        reached = max(criterion_at(utility.criterion, found.matrix(epsilon), p) for p in priors)
        if worst.value - reached > accuracy * max(abs(reached), 1e-12):
            heavy = found.solution.shares > 1e-7
            priors = [*(p for p, keep in zip(priors, heavy, strict=True) if keep or p is utility.prior), worst.prior]
            continue
        alone = _generate(utility.criterion, mixture, epsilon, eta, members)
        least = criterion_at(utility.criterion, alone.matrix(epsilon), mixture)
        if worst.upper - least <= 10 * accuracy * max(abs(least), 1e-12):
            break
        new = _unknown(alone.members, members)
        if len(new) == 0:
            break
        members = np.vstack([members, new])
    return best[1], best[2]


def _prove(
    utility: FisherInformation,
    constraints: tuple[Constraint, ...],
    channel: Channel,
    epsilon: float,
    eta: float | None,
    prior: Array,
    solution: FisherSolution,
) -> EquivalenceDual:
    rows, pairs, squares = solution.rows, solution.pairs, None
    if len(prior) > EXACT_LIMIT:
        rows, squares = relaxed_multipliers(_prices(prior, solution, epsilon).gram, prior, math.exp(epsilon))
        pairs = np.zeros_like(pairs)
    cap = 1.0 if eta is None else eta
    return EquivalenceDual(utility, constraints, channel, epsilon, cap, prior, solution.kernel, rows, pairs, squares)


def _labelled(matrix: Array, utility: FisherInformation) -> Channel:
    """The channel with its reports ordered by the categories that they favour, the silent one last."""
    favoured = matrix > 0.5 * (matrix.max(axis=0) + matrix.min(axis=0))
    silent = np.ptp(matrix, axis=0) <= 1e-9 * matrix.max(axis=0)
    keys = [
        (bool(silent[y]), int(favoured[:, y].sum()), tuple(np.flatnonzero(favoured[:, y])))
        for y in range(matrix.shape[1])
    ]
    order = sorted(range(matrix.shape[1]), key=lambda y: keys[y])
    outputs: list[Label] = [ERASED if silent[y] else at for at, y in enumerate(order)]
    if outputs.count(ERASED) > 1:
        return Channel(matrix[:, order], utility.inputs)
    return Channel(matrix[:, order], utility.inputs, outputs)


def _note(made: EstimationDesign, certified: bool, eta: float | None) -> str:
    parts = []
    caps = [c.eta for c in made.constraints if isinstance(c, TotalVariation)]
    if caps and eta is None:
        parts.append(f"eta = {min(caps):g} does not bind: it is at least tanh(epsilon/2) [GI, Prop 2]")
    if made.certificate is None:
        parts.append("no certificate was asked for, so nothing bounds the optimum")
    elif not certified and made.channel.shape[0] > EXACT_LIMIT:
        parts.append(
            f"not certified: with more than {EXACT_LIMIT} categories the bound is a semidefinite relaxation"
            + (", in which the TV cap does not count" if eta is not None else "")
            + "; it is rigorous but coarse"
        )
    elif not certified:
        parts.append("not certified: the bound is rigorous but not within the tolerance")
    return "; ".join(parts)
