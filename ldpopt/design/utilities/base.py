"""What a design can keep: the shape of a utility, and of one that is a sum over outputs.

    U(Q) = min over criteria j of  sum_y mu_j(Q[:, y]),        mu_j convex and positively homogeneous

Under LDP and total variation, the optimum of such a utility is attained by staircase patterns [KOV14, Thm 2]. Each mu_j
lies above its tangents, which is what programs and proofs use under any constraint.
"""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.design.registry import Kind
from ldpopt.design.utilities.laws import Compared
from ldpopt.design.work import Work, size
from ldpopt.errors import NotChecked, invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue

ONCE = 20_000.0  # Operations for each utility, however few its numbers.
TRUSTED = 2.0**-40  # The relative error that a value of a user's own float function is taken to have at most.


class Utility(Kind, ByValue, ABC):
    """What a design keeps of the answers. `optimal_channel` asks nothing else of a utility than these members.

    name : its name in designs and printed tables. inputs : labels of the answers, or None. size : the number k of
    answers. error : whether smaller is better. logarithmic : whether its values are logarithms, so that gaps are
    differences. continuous : whether the answers are real numbers, which a design cuts into intervals.
    pair : the hypotheses (P0, P1), where the utility depends on a channel through their two marginals alone.
    decisions : labels of the reports, where the utility says what each of them means; else None.
    contracts : whether a channel keeps at most its Dobrushin coefficient (the largest total variation between two of
    its rows) times `unprivate`, as f-divergences do. information : whether the utility is the mutual information of an
    answer and its report, in nats.
    """

    inputs: Any
    error: ClassVar[bool] = False
    contracts: ClassVar[bool] = False
    information: ClassVar[bool] = False

    if TYPE_CHECKING:  # a utility may have it as an attribute of its class or of the object, or as a property

        @property
        def name(self) -> str:
            """The name of the utility in designs and printed tables, such as "KL divergence"."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number k of answers."""

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels of the answers, or their positions."""
        return tuple(range(self.size)) if self.inputs is None else tuple(self.inputs)

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
        """The labels of the reports, where the utility gives them a meaning; else None."""
        return None

    @property
    @abstractmethod
    def unprivate(self) -> float:
        """The utility without any privacy, when the answer itself is reported; may be inf."""

    @abstractmethod
    def value(self, channel: ChannelLike) -> float:
        """The utility of a channel."""

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """The utility, enclosed, of the channel whose rows are the laws proportional to the rows of floats.

        By default the float `value`, taken to be right to a relative 2^-40; exact arithmetic is refused.
        """
        return trusted(np.asarray(self.value(channel)), arithmetic, self.name)

    def enclosed_unprivate(self, arithmetic: Arithmetic) -> Enclosure:
        """`unprivate` of a utility that `contracts`, enclosed; of one with parts, no less than it."""
        if parts := self.parts():
            return self.from_parts([float(part.enclosed_unprivate(arithmetic).upper) for part in parts], arithmetic)
        return trusted(np.asarray(self.unprivate), arithmetic, self.name)

    def work(self, channel: Channel) -> Work:
        """What `enclosed_value` takes at most, in floats; and what posing it again takes."""
        own = Work(floats=ONCE) + Work.on(channel.matrix.size, 20.0) + Work.on(size(self), 20.0 + channel.shape[1])
        return sum((part.work(channel) for part in self.parts()), own)

    def parts(self) -> Sequence[Utility]:
        """Utilities whose optima bound this one's (`from_parts`); none by default."""
        return ()

    def from_parts(self, bounds: Sequence[float], arithmetic: Arithmetic) -> Enclosure:
        """An upper bound on this utility from upper bounds on its parts, in the same order."""
        return arithmetic.of(np.inf)

    def check(self, channel: ChannelLike) -> Channel:
        """The channel. Raises `InvalidInput` if it has another number of inputs than the utility has answers."""
        checked = as_channel(channel)
        if checked.shape[0] != self.size:
            raise invalid("channel", f"{self.size} inputs", checked.shape[0])
        return checked


class _Probed(ABCMeta):
    """Makes column utilities; those of a user's own classes are probed once they are made."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        made = super().__call__(*args, **named)
        probed(made)
        return made


class ColumnUtility(Utility, metaclass=_Probed):
    """A utility given by convex, positively homogeneous functions mu_j of a column of the channel.

    U(Q) is the least, over the criteria j, of the sum of mu_j over the columns. A utility of your own needs `name`,
    `inputs`, `size`, `unprivate`, `columns` and `gradients`; see
    docs/how-to/design/custom-utility.md. When it is made, these are
    tried at fixed columns (`utilities.probes`). Raises `InvalidInput` where they are not convex, not positively
    homogeneous, not functions of each column alone, or where a gradient is above the function.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        probed(self)

    @abstractmethod
    def columns(self, matrix: Array) -> Array:
        """(criteria, n) values mu_j of the columns of `matrix` (k, n)."""

    @abstractmethod
    def gradients(self, matrix: Array) -> Array:
        """(criteria, n, k) gradients of mu_j at the columns: linear functions that touch mu_j there from below."""

    @property
    def compared(self) -> Compared | None:
        """The utility as a function of the marginals of a few laws, where it is such a function; None by default."""
        return None

    def value(self, channel: ChannelLike) -> float:
        """The utility of a channel: the least, over the criteria, of the sum over outputs."""
        return float(columns_of(self, self.check(channel).matrix).sum(axis=1).min())

    def enclosed_columns(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """(criteria, n) values mu_j, enclosed, of the columns base + rise, for `base` (n,) and `rise` (k, n).

        A column is given as a constant and the rise above it, so that small differences between entries keep their
        digits. By default the float `columns` at the midpoints, taken to be right to a relative 2^-40; exact arithmetic
        is refused.
        """
        columns = base + rise
        return trusted(columns_of(self, columns.midpoint), base.arithmetic, self.name)

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """The least, over the criteria, of the sum over outputs, enclosed."""
        return self.enclosed_columns(*base_and_rise(channel, arithmetic)).sum(axis=1).min()


def columns_of(utility: Any, matrix: Array) -> Array:
    """`utility.columns(matrix)`, (criteria, n). `InvalidInput` where a user's own utility gives another thing."""
    k, n = matrix.shape
    what = f"columns of {utility.name}"
    values = _floats(utility.columns(matrix), what, f"(criteria, {n}) for a matrix of shape ({k}, {n})")
    if values.ndim != 2 or not len(values) or values.shape[1] != n:
        raise invalid(what, f"an array of shape (criteria, {n}) for a matrix of shape ({k}, {n})", values.shape)
    if not (values > -np.inf).all():
        wrong = ~(values > -np.inf)
        raise invalid(what, "numbers, none of them NaN or -inf", values[wrong][0], _column(matrix, wrong))
    return values


def gradients_of(utility: Any, matrix: Array) -> Array:
    """`utility.gradients(matrix)`, (criteria, n, k). `InvalidInput` where a user's own utility gives another thing."""
    k, n = matrix.shape
    criteria = len(columns_of(utility, matrix))
    what = f"gradients of {utility.name}"
    shape = f"({criteria}, {n}, {k}) for a matrix of shape ({k}, {n})"
    gradients = _floats(utility.gradients(matrix), what, shape)
    if gradients.shape != (criteria, n, k):
        raise invalid(what, f"an array of shape {shape}", gradients.shape)
    if not np.isfinite(gradients).all():
        wrong = ~np.isfinite(gradients)
        raise invalid(what, "finite numbers", gradients[wrong][0], _column(matrix, wrong.any(axis=2)))
    return gradients


def _floats(values: object, what: str, shape: str) -> Array:
    """The values that a user's own function returned, as an array of floats. Raises `InvalidInput` for others."""
    try:
        floats = np.asarray(values)
        if floats.dtype.kind not in "fiub":
            raise TypeError
        return floats.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise invalid(what, f"an array of numbers, of shape {shape}", type(values).__name__) from None


def _column(matrix: Array, wrong: Any) -> str:
    """The first column of a matrix (k, n) at which something is `wrong`, (criteria, n), in words."""
    from ldpopt.design.utilities.probes import first_column

    return first_column(matrix, wrong)


def is_own(utility: Any) -> bool:
    """Whether a utility is of a class outside of this package, which promises what the package's own ones prove."""
    return not type(utility).__module__.startswith("ldpopt.")


def probed(utility: ColumnUtility, ratios: Sequence[float] | None = None) -> None:
    """Try what a user's own utility promises (`utilities.probes`), or with ratios e^epsilon what it does within these.

    Raises `InvalidInput` where a promise is broken. Utilities of this package are left alone.
    """
    if is_own(utility) and not utility.continuous and (ratios is None or len(ratios)):
        from ldpopt.design.utilities.probes import probe

        probe(utility, columns_of, gradients_of, ratios or ())


def trusted(values: Array, arithmetic: Arithmetic, name: str) -> Enclosure:
    """Values of a user's own float function, enclosed as if right to the relative error `TRUSTED`."""
    if arithmetic.exact:
        raise NotChecked(
            f"not covered: exact arithmetic needs a utility of this package, and {name} is known in float64"
        )
    slack = TRUSTED * np.abs(values)
    return arithmetic.between(values - slack, values + slack)


def base_and_rise(channel: Channel, arithmetic: Arithmetic) -> tuple[Enclosure, Enclosure]:
    """The columns of a channel, whose rows are divided by their sums, as constants (m,) and rises above them (k, m). A
    row of floats sums to one only up to rounding; it stands for the law that is proportional to it.
    """
    matrix = arithmetic.of(channel.matrix)
    base = channel.matrix.min(axis=0)
    # The excess of a row's sum over one, sum (Q - base) - (1 - sum base), is computed without cancellation.
    above = matrix - base[None, :]
    excess = above.sum(axis=1) - arithmetic.of(1 - exact_sum(base))
    rise = above - matrix * (excess / (1 + excess))[:, None]
    return arithmetic.of(base), rise
