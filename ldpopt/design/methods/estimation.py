"""The optimal channel for estimation: column generation over staircase patterns, repair, measure, prove."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ldpopt.channel import ERASED, Channel, Label
from ldpopt.design.certificates.equivalence import EquivalenceDual
from ldpopt.design.columns.base import Columns
from ldpopt.design.columns.choose import columns_for
from ldpopt.design.columns.prices import EXACT_LIMIT
from ldpopt.design.columns.staircase import StaircaseColumns
from ldpopt.design.constraints import Constraint, LocalDP, TotalVariation
from ldpopt.design.constraints.repair import repair
from ldpopt.design.design import EstimationDesign
from ldpopt.design.methods.estimation_columns import ROUNDS, Mixture, generate, prices_at, unknown
from ldpopt.design.programs.fisher import fisher_program, kernel_at, least_multipliers
from ldpopt.design.utilities.fisher_information import FisherInformation, worst_case
from ldpopt.design.utilities.scores import criterion_at
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.rounding import toward_privacy
from ldpopt.tolerances import BRACKET_GAP, CERTIFIED_GAP

SHARPENED = 8
"""Rounds of sharper multipliers."""


FINE = 14
"""Up to this many inputs designs without a certificate are as good as those with one."""


COARSE_GAP = 1e-3
"""The relative gap at which generation stops beyond, and where not all patterns are priced: one respondent in 1000."""


def estimation_design(
    utility: FisherInformation, constraints: Constraint | Iterable[Constraint], *, certify: bool = True
) -> EstimationDesign:
    """The channel of least error within `constraints`, with a proof of how close to the least it is.

    min over channels Q of criterion(J(Q)^-1 - p p^T)  subject to  Q epsilon-LDP, Q eta-TV

    Every term of J = sum_y q_y q_y^T / (q_y . p) is a convex, homogeneous function of its column, so staircase
    patterns are enough [KOV14, Thm 2], and under a policy graph its extreme columns. They are generated: the program
    over a few is solved, all are priced at its dual values, and those that pay join, until none does. Beyond 24
    categories, and under graphs with more than 65,536 extreme columns, a local search finds them, and the bound is
    that of a semidefinite relaxation, which is coarse under such graphs where total variation is capped, too.

    utility : a `FisherInformation`. constraints : `LocalDP(epsilon)`, perhaps with a policy graph, perhaps with
    `TotalVariation(eta)`. certify : False skips the certificate, and with it the lower bound.
    Raises `InvalidInput` for other constraints.

    >>> p = [0.9, 0.025, 0.025, 0.025, 0.025]
    >>> design = estimation_design(FisherInformation(p), LocalDP(1.0))
    >>> round(design.value, 6), design.certified
    (10.150574, True)
    """
    listed = _listed(constraints)
    columns, eta = columns_for(utility, listed)
    gap = _tolerance(columns, len(utility.prior), certify)
    if utility.neighbourhood is None:
        found = generate(utility.criterion, utility.prior, columns, eta, columns.start(), gap)
        prior = utility.prior
    else:
        found, prior = _minimax(utility, columns, eta, gap)
    labels = None if utility.inputs is None else tuple(utility.inputs)
    matrix = repair(found.fewer(utility, columns, eta).matrix(columns, toward_privacy(1.0)), listed, labels)
    channel = _labelled(matrix, utility)
    value = utility.value(channel)
    made = EstimationDesign(
        utility, listed, channel, value, -math.inf, tuple(c.measure(channel) for c in listed),
        f"column generation over {columns.kind}, {len(found.heights)} generated", None, False,
        gap if utility.neighbourhood is None else BRACKET_GAP, "",
    )  # fmt: skip
    certificate, bound = None, -math.inf
    if certify:
        if utility.neighbourhood is not None:  # the multipliers of the least favourable distribution alone
            found = generate(utility.criterion, prior, columns, eta, found.heights, gap)
        certificate = _prove(made, columns, eta, prior, found)
        bound = min(value, certificate.lower_bound)
    made = replace(made, lower_bound=bound, certificate=certificate)
    certified = certificate is not None and bool(made.relative_gap <= made.tolerance)
    return replace(made, certified=certified, note=_note(made, certified, columns, eta))


def _listed(constraints: Constraint | Iterable[Constraint]) -> tuple[Constraint, ...]:
    """The constraints, checked."""
    listed = (constraints,) if isinstance(constraints, Constraint) else tuple(constraints)
    for constraint in listed:
        if not isinstance(constraint, (LocalDP, TotalVariation)):
            raise invalid("constraint", "LocalDP or TotalVariation in a design for estimation", constraint)
        if isinstance(constraint, LocalDP) and constraint.epsilon > 30:
            raise invalid("epsilon", "at most 30 in a design for estimation", constraint.epsilon)
        if isinstance(constraint, TotalVariation) and constraint.eta <= 0:
            raise InvalidInput("eta: expected a positive number, since a channel of eta 0 says nothing, got 0")
    if not any(isinstance(constraint, LocalDP) for constraint in listed):
        raise InvalidInput("constraints: expected LocalDP among them, got none")
    return listed


def _tolerance(columns: Columns, k: int, certify: bool) -> float:
    if k <= FINE:
        return CERTIFIED_GAP
    return BRACKET_GAP if certify and columns.exact else COARSE_GAP


def _minimax(utility: FisherInformation, columns: Columns, eta: float | None, gap: float) -> tuple[Mixture, Array]:
    """The saddle point: a channel for the worst case, and the least favourable distribution.

    The criterion is convex in the weights and concave in the distribution. Over the columns at hand, distributions
    join until the worst case of the channel is among them; their mixture by dual values is least favourable, and the
    best channel for it alone brings further columns, or proves that none is needed.
    """
    accuracy = 1e-5
    found = generate(utility.criterion, utility.prior, columns, eta, columns.start(), gap)
    heights, priors, best = found.heights, [utility.prior], (math.inf, found, utility.prior)
    for _ in range(ROUNDS):
        values = columns.values(heights)
        found = Mixture(heights, fisher_program(utility.criterion, priors, values, columns.epsilon, eta))
        worst = worst_case(utility, found.matrix(columns), accuracy / 10)
        mixture = found.solution.shares @ np.array(priors)
        mixture = mixture / mixture.sum()
        if worst.upper < best[0]:
            best = (worst.upper, found, mixture)
        reached = max(criterion_at(utility.criterion, found.matrix(columns), p) for p in priors)
        if worst.value - reached > accuracy * max(abs(reached), 1e-12):
            heavy = found.solution.shares > 1e-7
            priors = [*(p for p, keep in zip(priors, heavy, strict=True) if keep or p is utility.prior), worst.prior]
            continue
        alone = generate(utility.criterion, mixture, columns, eta, heights, gap)
        least = criterion_at(utility.criterion, alone.matrix(columns), mixture)
        if worst.upper - least <= 10 * accuracy * max(abs(least), 1e-12):
            break
        new = unknown(alone.heights, heights)
        if len(new) == 0:
            break
        heights = np.vstack([heights, new])
    return best[1], best[2]


def _prove(
    made: EstimationDesign, columns: Columns, eta: float | None, prior: Array, found: Mixture
) -> EquivalenceDual:
    """The certificate from the dual values of the solver; where it falls short, from sharper multipliers."""
    utility, solution, channel = made.utility, found.solution, made.channel
    fields, pairs = (utility, made.constraints, channel, prior), solution.pairs
    if not columns.exact:
        rows, pairs, relaxed = columns.relax(prices_at(prior, solution, columns).gram, prior, eta)
        return EquivalenceDual(*fields, solution.kernel, rows, pairs, relaxed)
    best = EquivalenceDual(*fields, solution.kernel, solution.rows, pairs)
    heights, kernel = found.heights, kernel_at(utility.criterion, channel.matrix, prior)
    for _ in range(SHARPENED):
        if replace(made, lower_bound=best.lower_bound).relative_gap <= made.tolerance / 2:
            break
        centred = kernel - np.outer(kernel.sum(axis=1), prior)
        gram = centred.T @ centred
        try:
            rows, pairs = least_multipliers(gram, prior, columns.values(heights), eta)
        except SolverError:
            break
        best = max(best, EquivalenceDual(*fields, kernel, rows, pairs), key=lambda dual: dual.lower_bound)
        prices = replace(prices_at(prior, solution, columns), gram=gram, rows=rows, pairs=pairs)
        new = unknown(columns.paying(prices, heights, 0.1 * made.tolerance * abs(float(rows.sum()))), heights)
        if len(new) == 0:
            break
        heights = np.vstack([heights, new])
    return best


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


def _note(made: EstimationDesign, certified: bool, columns: Columns, eta: float | None) -> str:
    parts = []
    caps = [c.eta for c in made.constraints if isinstance(c, TotalVariation)]
    if caps and eta is None:
        most = "tanh(epsilon/2)" if isinstance(columns, StaircaseColumns) else f"{math.tanh(columns.epsilon / 2):.6g}"
        parts.append(f"eta = {min(caps):g} does not bind: it is at least {most} [GI, Prop 2]")
    if made.certificate is None:
        parts.append("no certificate was asked for, so nothing bounds the optimum")
    elif not certified and not columns.exact:
        many = f"more than {EXACT_LIMIT} categories" if isinstance(columns, StaircaseColumns) else "so many columns"
        parts.append(f"not certified: with {many} the bound is a semidefinite relaxation, rigorous but coarse")
    elif not certified:
        parts.append("not certified: the bound is rigorous but not within the tolerance")
    return "; ".join(parts)
