"""Expected loss of a decision: linear in the channel, so that one linear program is exact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.design.constraints import ColumnConstraint, Constraint
from ldpopt.design.design import Design
from ldpopt.design.interval_dual import LossDual, Multiplier
from ldpopt.design.program import Expression, label_program, scaled
from ldpopt.design.repair import repair
from ldpopt.design.terms import Box, Term
from ldpopt.distribution import Array, distribution, finite_array
from ldpopt.errors import invalid
from ldpopt.tolerances import CERTIFIED_GAP


@dataclass(frozen=True, eq=False)
class ExpectedLoss:
    """Minus the expected loss of a channel whose reports are decisions: -sum_x prior_x sum_y Q[x, y] loss[x, y].

    prior : a distribution of shape (k,), or several as the rows of an array, of which the worst counts; None for the
        worst of all priors (minimax). loss : array (k, m), the loss of decision y when the answer is x.
    inputs, decisions : labels; the decisions are called as the inputs when there are as many.

    >>> u = ExpectedLoss([0.5, 0.5], 1 - np.eye(2))
    >>> u.value([[0.75, 0.25], [0.25, 0.75]])
    -0.25
    """

    prior: Any
    loss: Any
    inputs: tuple[Label, ...] | None = None
    decisions: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        loss = finite_array(self.loss, "loss", 2)
        k, m = loss.shape
        if self.prior is None:
            priors = np.eye(k)
        else:
            given = np.atleast_2d(np.asarray(self.prior, dtype=np.float64))
            priors = np.stack([distribution(p, "prior", size=k) for p in given])
        for labels, count, what in ((self.inputs, k, "inputs"), (self.decisions, m, "decisions")):
            if labels is not None and len(tuple(labels)) != count:
                raise invalid(what, f"{count} labels", len(tuple(labels)))
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "priors", priors)
        inputs = tuple(range(k)) if self.inputs is None else tuple(self.inputs)
        named = self.decisions if self.decisions is not None else inputs if k == m else range(m)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "decisions", tuple(named))

    priors: Array = None  # type: ignore[assignment]

    @property
    def name(self) -> str:
        """What reports call it."""
        return "minus expected loss" if len(self.priors) == 1 else "minus worst expected loss"

    def value(self, channel: ChannelLike) -> float:
        """Minus the expected loss under the worst of the priors."""
        q = as_channel(channel).matrix
        if q.shape != self.loss.shape:
            raise invalid("channel", f"shape {self.loss.shape}, decisions as outputs", q.shape)
        return -float((self.priors @ (q * self.loss).sum(axis=1)).max())

    def __repr__(self) -> str:
        return f"ExpectedLoss({len(self.priors)} priors, {self.loss.shape[0]} inputs, {self.loss.shape[1]} decisions)"


def least_loss(utility: ExpectedLoss, constraints: Iterable[Constraint], certify: bool) -> Design:
    """The channel of the smallest expected loss: one linear (or cone) program on the decisions themselves."""
    listed = tuple(constraints)
    terms: list[Term | Box] = []
    expressions: list[Expression] = []
    for constraint in listed:
        if isinstance(constraint, ColumnConstraint):
            terms += constraint.columns(utility.inputs)  # type: ignore[arg-type]
        else:
            expressions.append(constraint.expression)
    gains = -(utility.priors[:, None, :] * utility.loss.T[None])
    scale = float(np.abs(utility.loss).max()) or 1.0
    solved = label_program(gains / scale, terms, expressions)
    used = np.maximum(solved.matrix, 0.0)
    used[:, used.max(axis=0) <= 1e-9] = 0.0
    matrix = repair(used / used.sum(axis=1, keepdims=True), listed, utility.inputs)
    channel = Channel(matrix, utility.inputs, utility.decisions)
    value = utility.value(channel)
    certificate = None
    if certify and not expressions:
        multipliers = tuple(
            Multiplier(i, np.arange(len(term)), scaled(term, values, scale))
            for i, (term, values) in enumerate(zip(terms, solved.multipliers, strict=True))
            if not isinstance(term, Box)
        )
        certificate = LossDual(
            utility, channel, np.inf, 1.0, listed, solved.rows * scale, multipliers, solved.weights  # type: ignore[arg-type]
        )  # fmt: skip
    bound = max(value, certificate.upper_bound) if certificate else np.inf
    certified = certificate is not None and bound - value <= CERTIFIED_GAP * max(abs(bound), 1e-3 * scale)
    note = "" if certificate else "no certificate: not asked for, or a constraint without a column form"
    guarantees = tuple(constraint.measure(channel) for constraint in listed)
    how = "linear program on the decisions"
    return Design(
        utility, listed, channel, value, bound, guarantees, how, certificate, certified, CERTIFIED_GAP, note, None
    )  # fmt: skip
