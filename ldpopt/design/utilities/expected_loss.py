"""Expected loss of a decision: linear in the channel, so that one linear program is exact."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.laws import law
from ldpopt.distribution import Array, distribution, finite_array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import invalid
from ldpopt.labels import distinct_labels, matrix_labels, vectors


@dataclass(frozen=True, eq=False)
class ExpectedLoss(Utility):
    """Minus the expected loss of a channel whose reports are decisions: -sum_x prior_x sum_y Q[x, y] loss[x, y].

    prior : a distribution of shape (k,); or several as the rows of an array, of which the worst counts; or None for the
        worst of all priors (minimax). loss : array (k, m), the loss of decision y when the answer is x.
    inputs, decisions : labels of the answers and of the decisions; decisions without labels take those of the inputs
        when there are as many.

    >>> u = ExpectedLoss([0.5, 0.5], 1 - np.eye(2))
    >>> u.value([[0.75, 0.25], [0.25, 0.75]])
    -0.25
    """

    prior: Any
    loss: Any
    inputs: tuple[Label, ...] | None = None
    decisions: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        given, inputs, named = matrix_labels(self.loss, self.inputs, self.decisions, "loss")
        loss = finite_array(given, "loss", 2)
        k, m = loss.shape
        inputs = distinct_labels(inputs, k, "inputs")
        decisions = inputs if named is None and k == m else distinct_labels(named, m, "decisions")
        several = () if self.prior is None else vectors(self.prior)
        priors = [distribution(p, "prior", size=k, labels=inputs) for p in several]
        vars(self).update(loss=loss, priors=np.stack(priors) if priors else np.eye(k))
        if priors:
            object.__setattr__(self, "prior", self.priors if len(priors) > 1 else priors[0])
        vars(self).update(inputs=inputs, decisions=decisions)

    priors: Array = field(init=False)

    @property
    def size(self) -> int:
        """The number k of answers."""
        return int(self.loss.shape[0])

    @property
    def unprivate(self) -> float:
        """Minus the expected loss of the best decision for every answer, under the worst of the priors."""
        return -float((self.priors @ self.loss.min(axis=1)).max())

    @property
    def name(self) -> str:
        """The name of the utility, which says whether one prior counts or the worst of several."""
        return "minus expected loss" if len(self.priors) == 1 else "minus worst expected loss"

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """The same, enclosed, with each row divided by its sum."""
        self.value(channel)
        matrix: Enclosure = arithmetic.of(channel.matrix)
        paid = (matrix * self.loss).sum(axis=1) / matrix.sum(axis=1)
        laws = arithmetic.stack([law(prior, arithmetic) for prior in self.priors])
        worst: Enclosure = (laws @ paid).max()
        return -worst

    def value(self, channel: ChannelLike) -> float:
        """Minus the expected loss under the worst of the priors."""
        q = as_channel(channel).matrix
        if q.shape != self.loss.shape:
            raise invalid("channel", f"shape {self.loss.shape}, decisions as outputs", q.shape)
        return -float((self.priors @ (q * self.loss).sum(axis=1)).max())

    def __repr__(self) -> str:
        return f"ExpectedLoss({len(self.priors)} priors, {self.loss.shape[0]} inputs, {self.loss.shape[1]} decisions)"
