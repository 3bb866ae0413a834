"""Reports with a meaning: decisions, whose expected loss is linear in the channel, and draws for private sampling.

In private sampling, the holder of one of the distributions P_i releases one draw from the private distribution Q_i, the
row i of a channel Q:

    min over Q of max over i of D_f(P_i || Q_i)

The divergence is convex in Q, so this is a convex program under any privacy constraint. With tangents of b -> mu(p, b)
it becomes a linear program. Its multipliers give an expected loss that is never above the risk, so the least expected
loss bounds the risk of every channel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.laws import f_divergence, law
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.errors import InvalidInput, invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array, distribution, finite_array
from ldpopt.values.labels import distinct_labels, matrix_labels, vectors

MAX_MINIMAX_ANSWERS = 5000  # Answers if each of them is a separate prior.


@dataclass(frozen=True, eq=False)
class ExpectedLoss(Utility):
    """Minus the expected loss of a channel whose reports are decisions: -sum_x prior_x sum_y Q[x, y] loss[x, y].

    - `prior` : a distribution of shape (k,); or several as the rows of an array, and the worst counts; or None for
      the worst of all priors (minimax).
    - `loss` : array (k, m), the loss of decision y when the answer is x.
    - `inputs`, `decisions` : labels of the answers and of the decisions; decisions without labels take those of the
      inputs when there are as many.

    >>> u = ExpectedLoss([0.5, 0.5], 1 - np.eye(2))
    >>> u.value([[0.75, 0.25], [0.25, 0.75]])
    -0.25
    """

    prior: Any
    loss: Any
    inputs: tuple[Label, ...] | None = None
    decisions: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        matrix, inputs, decision_labels = matrix_labels(self.loss, self.inputs, self.decisions, "loss")
        loss = finite_array(matrix, "loss", 2)
        k, m = loss.shape
        inputs = distinct_labels(inputs, k, "inputs")
        decisions = inputs if decision_labels is None and k == m else distinct_labels(decision_labels, m, "decisions")
        prior_rows = () if self.prior is None else vectors(self.prior)
        priors = [distribution(p, "prior", size=k, labels=inputs) for p in prior_rows]
        if not priors and k > MAX_MINIMAX_ANSWERS:
            raise invalid("loss", f"at most {MAX_MINIMAX_ANSWERS} answers, where the worst of all priors counts", k)
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
    def value_without_privacy(self) -> float:
        """Minus the expected loss of the best decision for every answer, under the worst of the priors."""
        return -float((self.priors @ self.loss.min(axis=1)).max())

    @property
    def name(self) -> str:
        """The name of the utility, including whether it is the worst of several priors."""
        return "minus expected loss" if len(self.priors) == 1 else "minus worst expected loss"

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """Enclose minus the expected loss under the worst prior, with each row divided by its sum."""
        self.value(channel)
        matrix: Enclosure = arithmetic.of(channel.matrix)
        losses = (matrix * self.loss).sum(axis=1) / matrix.sum(axis=1)
        laws = arithmetic.stack([law(prior, arithmetic) for prior in self.priors])
        worst: Enclosure = (laws @ losses).max()
        return -worst

    def value(self, channel: ChannelLike) -> float:
        """Compute minus the expected loss under the worst of the priors."""
        q = as_channel(channel).matrix
        if q.shape != self.loss.shape:
            raise invalid("channel", f"shape {self.loss.shape}, decisions as outputs", q.shape)
        return -float((self.priors @ (q * self.loss).sum(axis=1)).max())

    def __repr__(self) -> str:
        return f"ExpectedLoss({len(self.priors)} priors, {self.loss.shape[0]} inputs, {self.loss.shape[1]} decisions)"


@dataclass(frozen=True, eq=False)
class PrivateSampling(Utility, f=f_divergence):
    """Minus the largest D_f(P_i || Q_i), where the holder of the distribution P_i releases one draw from Q_i [PAL].

    f : an `FDivergence`. distributions : array (n, k), n >= 2 distributions P_i on k answers. inputs, answers : labels
    of the distributions and of the answers. Where every distribution may be held, `mechanisms.PrivateSampler` is
    optimal.

    Raises `InvalidInput` where the risk is infinite: f(0) is infinite, and a distribution has zeros.

    >>> from ldpopt.divergences import TOTAL_VARIATION
    >>> PrivateSampling(TOTAL_VARIATION, np.eye(2)).value([[0.75, 0.25], [0.5, 0.5]])
    -0.5
    """

    f: FDivergence
    distributions: Any
    inputs: tuple[Label, ...] | None = None
    answers: tuple[Label, ...] | None = None
    value_without_privacy = 0.0  # a draw from the distribution itself loses nothing

    def __post_init__(self) -> None:
        super().__post_init__()
        matrix, inputs, answers = matrix_labels(self.distributions, self.inputs, self.answers, "distributions")
        matrix = np.asarray(matrix, dtype=np.float64)
        if matrix.ndim != 2 or len(matrix) < 2:
            raise invalid("distributions", "an array (n, k) of at least two", np.shape(matrix))
        rows = np.stack([distribution(p, f"distribution {index}") for index, p in enumerate(matrix)])
        inputs, answers = (
            distinct_labels(*side) for side in ((inputs, len(rows), "inputs"), (answers, rows.shape[1], "answers"))
        )
        vars(self).update(distributions=rows, inputs=inputs, answers=answers)
        if math.isinf(self.f.at_zero) and (rows == 0).any():
            raise InvalidInput(f"distributions: {self.f.name} from a distribution with zeros is infinite to others")

    @property
    def size(self) -> int:
        """The number n of distributions that may be held."""
        return len(self.distributions)

    @property
    def decisions(self) -> tuple[Label, ...] | None:
        """The answers, which are the reports here."""
        return self.answers

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """Enclose minus the largest divergence from a distribution to its row."""
        self.value(channel)
        matrix = arithmetic.of(channel.matrix)
        report_laws = matrix / matrix.sum(axis=1)[:, None]
        true_laws = arithmetic.stack([law(p, arithmetic) for p in self.distributions])
        return -enclosed_excess(self.f, true_laws - report_laws, report_laws, true_laws).sum(axis=1).max()

    @property
    def name(self) -> str:
        """The name of the utility in designs and printed tables, with the divergence that is minimized."""
        return f"minus worst {self.f.name} of a draw"

    def risks(self, matrix: Array) -> Array:
        """Compute the divergences from the distributions to the rows of `matrix` (n, k), (n,)."""
        return np.asarray(self.f.excess(self.distributions, matrix).sum(axis=1))

    def value(self, channel: ChannelLike) -> float:
        """Compute minus the largest divergence from a distribution to its row."""
        q = as_channel(channel).matrix
        if q.shape != self.distributions.shape:
            raise invalid("channel", f"shape {self.distributions.shape}, answers as outputs", q.shape)
        return -float(self.risks(q).max())

    def __repr__(self) -> str:
        n, k = self.distributions.shape
        return f"PrivateSampling({self.f.name}, {n} distributions on {k} answers)"
