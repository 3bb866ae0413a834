"""What a design can keep: the shape of a utility, and of one that is a sum over outputs.

    U(Q) = min over criteria j of  sum_y mu_j(Q[:, y]),        mu_j convex and positively homogeneous

Every such utility has its optimum on the staircase patterns under LDP and total variation [KOV14, Thm 2], and lies
above its tangents under any constraint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.design.utilities.comparisons import Compared
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import InvalidInput, invalid
from ldpopt.results import ByValue
from ldpopt.rounding import exact_sum

TRUSTED = 2.0**-40
"""How far, relatively, a value of a user's own float function is taken to be from what it stands for."""


class Utility(ByValue, ABC):
    """What a design keeps of the answers: everything that `optimal_channel` asks of it is here.

    name : what reports call it. inputs : labels of the answers, or None. size : the number k of answers.
    error : whether smaller is better. logarithmic : whether its values are logarithms, so that gaps are differences.
    continuous : whether the answers are real numbers, which a design cuts into intervals.
    pair : the hypotheses (P0, P1) where the utility depends on a channel through their two marginals alone.
    decisions : what the reports are called where the utility says what they mean; None where it does not.
    contracts : whether a channel keeps at most its Dobrushin coefficient times `unprivate`, as f-divergences do.
    information : whether it is the mutual information of an answer and its report, in nats.
    """

    inputs: Any
    error: ClassVar[bool] = False
    contracts: ClassVar[bool] = False
    information: ClassVar[bool] = False

    if TYPE_CHECKING:  # an attribute of the class, one of the object, or a property: whatever suits the utility

        @property
        def name(self) -> str:
            """The name of the utility in designs and printed tables, such as "KL divergence"."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number k of answers."""

    @property
    def logarithmic(self) -> bool:
        """Whether the values are logarithms."""
        return False

    @property
    def continuous(self) -> bool:
        """Whether the answers are real numbers."""
        return False

    @property
    def pair(self) -> tuple[Array, Array] | None:
        """The two hypotheses, shape (k,) each, or None."""
        return None

    @property
    def decisions(self) -> tuple[Label, ...] | None:
        """What the reports are called, or None."""
        return None

    @property
    @abstractmethod
    def unprivate(self) -> float:
        """The utility of full disclosure; may be inf."""

    @abstractmethod
    def value(self, channel: ChannelLike) -> float:
        """The utility of a channel."""

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """The utility of the law that each row of the channel stands for, between two ends.

        By default the float `value`, taken to be right to 2^-40 of itself; exact arithmetic is refused.
        """
        return trusted(np.asarray(self.value(channel)), arithmetic, self.name)

    def enclosed_unprivate(self, arithmetic: Arithmetic) -> Enclosure:
        """`unprivate` between two ends, for a utility that `contracts`."""
        return trusted(np.asarray(self.unprivate), arithmetic, self.name)

    def parts(self) -> Sequence[Utility]:
        """Utilities whose optima bound this one's (`from_parts`); none by default."""
        return ()

    def from_parts(self, bounds: Sequence[float], arithmetic: Arithmetic) -> Enclosure:
        """An upper bound on this utility from upper bounds on its parts, in the same order."""
        return arithmetic.of(np.inf)

    def check(self, channel: ChannelLike) -> Channel:
        """The channel, or `InvalidInput` if it is not for these answers."""
        made = as_channel(channel)
        if made.shape[0] != self.size:
            raise invalid("channel", f"{self.size} inputs", made.shape[0])
        return made


class ColumnUtility(Utility):
    """A utility given by convex, positively homogeneous functions mu_j of a column of the channel.

    Of one's own: give `name`, `inputs`, `size`, `unprivate`, `columns` and `gradients`; see docs/add-a-utility.md.
    """

    @abstractmethod
    def columns(self, matrix: Array) -> Array:
        """(criteria, n) values mu_j of the columns of `matrix` (k, n)."""

    @abstractmethod
    def gradients(self, matrix: Array) -> Array:
        """(criteria, n, k) gradients of mu_j at the columns: linear functions that touch mu_j there, from below."""

    @property
    def compared(self) -> Compared | None:
        """The utility as a function of the masses under a few laws, where it is one; None by default."""
        return None

    def value(self, channel: ChannelLike) -> float:
        """The least of the criteria's sums over outputs."""
        return float(columns_of(self, self.check(channel).matrix).sum(axis=1).min())

    def enclosed_columns(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """(criteria, n) values mu_j of the columns base + rise, for `base` (n,) and `rise` (k, n), between two ends.

        A column is given by a constant and what is above it, so that what nearly equal entries tell apart is not lost.
        By default the float `columns` of the ends, taken to be right to 2^-40; exact arithmetic is refused.
        """
        columns = base + rise
        return trusted(columns_of(self, columns.midpoint), base.arithmetic, self.name)

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """The least of the criteria's sums over outputs, between two ends."""
        return self.enclosed_columns(*base_and_rise(channel, arithmetic)).sum(axis=1).min()


def columns_of(utility: ColumnUtility, matrix: Array) -> Array:
    """`utility.columns(matrix)`, (criteria, n); `InvalidInput` where a utility of one's own gives something else."""
    k, n = matrix.shape
    what = f"columns of {utility.name}"
    made = _floats(utility.columns(matrix), what, f"(criteria, {n}) for a matrix of shape ({k}, {n})")
    if made.ndim != 2 or not len(made) or made.shape[1] != n:
        raise invalid(what, f"an array of shape (criteria, {n}) for a matrix of shape ({k}, {n})", made.shape)
    if not (made > -np.inf).all():
        raise invalid(what, "numbers, none of them NaN or -inf", made[~(made > -np.inf)][0])
    return made


def gradients_of(utility: ColumnUtility, matrix: Array) -> Array:
    """`utility.gradients(matrix)`, (criteria, n, k); `InvalidInput` where one's own utility gives something else."""
    k, n = matrix.shape
    criteria = len(columns_of(utility, matrix))
    what = f"gradients of {utility.name}"
    shape = f"({criteria}, {n}, {k}) for a matrix of shape ({k}, {n})"
    made = _floats(utility.gradients(matrix), what, shape)
    if made.shape != (criteria, n, k):
        raise invalid(what, f"an array of shape {shape}", made.shape)
    if not np.isfinite(made).all():
        raise invalid(what, "finite numbers", made[~np.isfinite(made)][0])
    return made


def _floats(values: object, what: str, shape: str) -> Array:
    """What a user's own function gave, as an array of floats."""
    try:
        made = np.asarray(values)
        if made.dtype.kind not in "fiub":
            raise TypeError
        return made.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise invalid(what, f"an array of numbers, of shape {shape}", type(values).__name__) from None


def trusted(values: Array, arithmetic: Arithmetic, name: str) -> Enclosure:
    """Values of a user's own float function, taken to be right to `TRUSTED` of themselves."""
    if arithmetic.exact:
        raise InvalidInput(f"exact arithmetic: expected a utility of this package, got {name}, known in float64 only")
    slack = TRUSTED * np.abs(values)
    return arithmetic.between(values - slack, values + slack)


def base_and_rise(channel: Channel, arithmetic: Arithmetic) -> tuple[Enclosure, Enclosure]:
    """The columns of a channel as (m,) constants and (k, m) what is above them, each row divided by its sum.

    A row of floats sums to one only up to rounding; it stands for the law that is proportional to it.
    """
    matrix = arithmetic.of(channel.matrix)
    base = channel.matrix.min(axis=0)
    # The excess of a row's sum over one is formed before it is rounded: sum (Q - base) - (1 - sum base).
    above = matrix - base[None, :]
    excess = above.sum(axis=1) - arithmetic.of(1 - exact_sum(base))
    rise = above - matrix * (excess / (1 + excess))[:, None]
    return arithmetic.of(base), rise
