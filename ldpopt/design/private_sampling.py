"""Private sampling as a design: which row to draw from for each distribution that may be held.

    min over Q of max over i of D_f(P_i || Q_i)

The divergence is convex in Q, so any private constraint makes a convex program of it. Tangents of b -> mu(p, b) make it
a linear one, and its multipliers an expected loss below the risk, whose own optimum bounds every channel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.design.against_set import GRID, NEAR, tangents
from ldpopt.design.certificate import Certificate, Verification
from ldpopt.design.constraints import Constraint
from ldpopt.design.design import Design
from ldpopt.design.expected_loss import ExpectedLoss, least_loss
from ldpopt.design.interval_dual import verify_measured
from ldpopt.design.repair import repair
from ldpopt.design.solve import INTERIOR, solve
from ldpopt.distribution import Array, distribution
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.tolerances import CERTIFIED_GAP

ROUNDS = 40
ACCURACY = 1e-9


@dataclass(frozen=True, eq=False)
class PrivateSampling:
    """Minus the largest D_f(P_i || Q_i) over the distributions that may be held; one draw of Q_i is released [PAL].

    f : an `FDivergence`. distributions : array (n, k), n >= 2 distributions on k answers. inputs, answers : labels of
    the distributions and of the answers. For all distributions at once, `mechanisms.PrivateSampler` is optimal.

    Raises `InvalidInput` where the risk is infinite for every private channel: f(0) is, and a distribution has zeros.

    >>> from ldpopt.divergences import TOTAL_VARIATION
    >>> PrivateSampling(TOTAL_VARIATION, np.eye(2)).value([[0.75, 0.25], [0.5, 0.5]])
    -0.5
    """

    f: FDivergence
    distributions: Any
    inputs: tuple[Label, ...] | None = None
    answers: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.f, FDivergence):
            raise invalid("divergence f", "an FDivergence such as ldpopt.divergences.KL", self.f)
        given = np.asarray(self.distributions, dtype=np.float64)
        if given.ndim != 2 or len(given) < 2:
            raise invalid("distributions", "an array (n, k) of at least two", np.shape(given))
        rows = np.stack([distribution(p, f"distribution {at}") for at, p in enumerate(given)])
        object.__setattr__(self, "distributions", rows)
        for labels, count, what in ((self.inputs, len(rows), "inputs"), (self.answers, rows.shape[1], "answers")):
            if labels is not None and len(tuple(labels)) != count:
                raise invalid(what, f"{count} labels", len(tuple(labels)))
        object.__setattr__(self, "inputs", tuple(self.inputs if self.inputs is not None else range(len(rows))))
        object.__setattr__(self, "answers", tuple(self.answers if self.answers is not None else range(rows.shape[1])))
        if math.isinf(self.f.at_zero) and (rows == 0).any():
            raise InvalidInput(f"distributions: {self.f.name} from a distribution with zeros is infinite to others")

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"minus worst {self.f.name} of a draw"

    def risks(self, matrix: Array) -> Array:
        """(n,) divergences from the distributions to the rows of `matrix` (n, k)."""
        return np.asarray(self.f.excess(self.distributions, matrix).sum(axis=1))

    def value(self, channel: ChannelLike) -> float:
        """Minus the largest divergence from a distribution to its row."""
        q = as_channel(channel).matrix
        if q.shape != self.distributions.shape:
            raise invalid("channel", f"shape {self.distributions.shape}, answers as outputs", q.shape)
        return -float(self.risks(q).max())

    def __repr__(self) -> str:
        n, k = self.distributions.shape
        return f"PrivateSampling({self.f.name}, {n} distributions on {k} answers)"


@dataclass(frozen=True, eq=False, repr=False)
class SamplingDual(Certificate):
    """Tangents of the risk, mixed, and the certificate of the expected loss that they are.

    ratios : (j,) of the tangents, the last one 0. mixture : (n, k, j) non-negative weights. prior : (n,) of the risks.
    loss : the certificate of the least expected loss with this prior, and the tangents' slopes as the loss.
    """

    constraints: tuple[Constraint, ...]
    ratios: Array
    mixture: Array
    prior: Array
    loss: Certificate

    argument = "tangents below the risk, and linear-programming duality for the expected loss that they are"

    @property
    def upper_bound(self) -> float:
        """Minus (the tangents' constants and the least expected loss); inf if the loss is not that of the tangents."""
        offset, slopes = linearised(self.utility, self.ratios, self.mixture, self.prior)
        stated = self.loss.utility
        same = np.array_equal(stated.loss, slopes) and np.array_equal(stated.priors, self.prior[None])
        limited = getattr(self.loss, "constraints", None) == self.constraints
        return self.loss.upper_bound - offset if same and limited else math.inf

    def verify(self) -> Verification:
        """Recompute the guarantees, the utility and the bound from scratch."""
        return verify_measured(self, self.constraints)


def linearised(utility: PrivateSampling, ratios: Array, mixture: Array, prior: Array) -> tuple[float, Array]:
    """The constant and the loss (n, k) of the linear function below the risks mixed by `prior` (n,)."""
    mixture = np.maximum(mixture, 0.0)
    mixture = mixture / mixture.sum(axis=2, keepdims=True)
    held = utility.distributions
    on_held, on_drawn = tangents(utility.f, ratios[:-1])
    # At ratio 0, reached where nothing is held, mu(0, b) itself is linear.
    at_zero = float(utility.f.excess(0.0, 1.0)) if (held == 0).any() else 0.0
    constant = prior @ (held * (mixture[..., :-1] @ on_held)).sum(axis=1)
    slopes = np.where(held > 0, mixture[..., :-1] @ on_drawn, at_zero)
    return float(constant), slopes


def least_risk(utility: PrivateSampling, constraints: Sequence[Constraint], certify: bool) -> Design:
    """The channel of the smallest largest risk, by tangents added where they are missed."""
    given = tuple(constraints)
    matrix, ratios, mixture, prior = _program(utility, given)
    repaired = repair(matrix / matrix.sum(axis=1, keepdims=True), given, utility.inputs)
    channel = Channel(repaired, utility.inputs, utility.answers)
    value = utility.value(channel)
    certificate, bound = None, math.inf
    if certify:
        _, slopes = linearised(utility, ratios, mixture, prior)
        posed = ExpectedLoss(prior / prior.sum(), slopes, utility.inputs, utility.answers)
        proof = least_loss(posed, given, certify=True).certificate
        if proof is not None:
            certificate = SamplingDual(utility, channel, math.inf, 1.0, given, ratios, mixture, posed.priors[0], proof)
            bound = max(value, certificate.upper_bound)
    certified = certificate is not None and bound < math.inf and bound - value <= CERTIFIED_GAP * max(-value, 1e-3)
    note = "" if certificate else "no certificate: not asked for, or a constraint without a column form"
    guarantees = tuple(constraint.measure(channel) for constraint in given)
    how = "linear program on tangents of the risks"
    return Design(
        utility, given, channel, value, bound, guarantees, how, certificate, certified, CERTIFIED_GAP, note, None
    )  # fmt: skip


def _program(utility: PrivateSampling, constraints: Sequence[Constraint]) -> tuple[Array, Array, Array, Array]:
    import cvxpy as cp

    from ldpopt.design.constraints import ColumnConstraint
    from ldpopt.design.program import term_expressions

    n, k = utility.distributions.shape
    held = utility.distributions.ravel()
    at = [GRID if p > 0 else np.zeros(1) for p in held]
    best: tuple[Array, Array, Array, Array] | None = None
    gap, stale, scale = math.inf, 0, 1.0
    for _ in range(ROUNDS):
        q, each, worst = cp.Variable((n, k), nonneg=True), cp.Variable(n * k), cp.Variable()
        drawn = cp.reshape(q, (n * k,), order="C")
        place, ratios = np.repeat(np.arange(n * k), [len(r) for r in at]), np.concatenate(at)
        slope, level = tangents(utility.f, np.where(ratios > 0, ratios, 1.0))
        none = ratios == 0
        slope, level = (
            np.where(none, 0.0, slope),
            np.where(none, utility.f.excess(0.0, 1.0) if none.any() else 0, level),
        )
        slope, level = slope / scale, level / scale
        above = each[place] >= slope * held[place] + cp.multiply(level, drawn[place])
        most = cp.sum(cp.reshape(each, (n, k), order="C"), axis=1) <= worst * np.ones(n)
        limits: list[Any] = [cp.sum(q, axis=1) == 1]
        for constraint in constraints:
            if isinstance(constraint, ColumnConstraint):
                limits += term_expressions(constraint.columns(utility.inputs), q)  # type: ignore[arg-type]
            else:
                limits += list(constraint.expression(q))
        try:
            # Central solutions: a vertex has rows at their limits that need not be, where tangents are then missed.
            solve(cp.Problem(cp.Minimize(worst), [above, most, *limits]), "private sampling", INTERIOR)
        except SolverError:
            # Tangents too nearly equal for the solver: what the round before has proved stands.
            if best is None:
                raise
            break
        matrix = np.maximum(np.asarray(q.value), 0.0)
        every, where = np.unique(ratios, return_inverse=True)
        mixture = np.zeros((n * k, len(every)))
        np.add.at(mixture, (place, where), np.maximum(np.asarray(above.dual_value), 0.0))
        first = np.array([np.searchsorted(every, r[0]) for r in at])
        idle = mixture.sum(axis=1) <= 0
        mixture[idle, first[idle]] = 1.0
        order = np.argsort(every == 0, kind="stable")
        every, mixture = (every[order], mixture[:, order]) if none.any() else (
            np.append(every, 0.0), np.hstack([mixture, np.zeros((n * k, 1))])
        )  # fmt: skip
        best = (matrix, every, mixture.reshape(n, k, -1), np.maximum(np.asarray(most.dual_value), 0.0))
        reached = float(utility.risks(matrix / matrix.sum(axis=1, keepdims=True)).max())
        missed = reached - float(worst.value) * scale
        stale = 0 if missed < 0.5 * gap else stale + 1
        gap = min(gap, missed)
        if gap <= ACCURACY * max(reached, 1e-3) or stale == 6:
            break
        scale = max(reached, 1e-2 * scale)
        now = held / np.maximum(matrix.ravel(), 1e-12)
        at = [
            np.append(old, r) if r > 0 and np.abs(old / r - 1).min() > NEAR else old
            for old, r in zip(at, now, strict=True)
        ]
    assert best is not None
    return best
