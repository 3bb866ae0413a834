"""The base classes of utilities: any utility of a channel, and one that is a sum over outputs.

~~U(Q) = min over criteria j of  sum_y mu_j(Q[:, y]),        mu_j convex and positively homogeneous |

Under LDP and total variation, the optimum of such a utility is attained by staircase patterns [KOV14, Thm 2]. Each mu_j
lies above its tangents. Programs and proofs use that under any constraint.
"""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.design.registry import Kind
from ldpopt.design.utilities.laws import MarginalComparisons
from ldpopt.design.work import Work, count_numbers
from ldpopt.errors import NotChecked, invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue

BASE_OPERATIONS = 20_000.0  # The least number of operations per utility.
TRUSTED_RTOL = 2.0**-40  # The assumed relative error of a user-defined float function.


class Utility(Kind, ByValue, ABC):
    """The objective of a design. `optimal_channel` uses only these members of a utility.

    - `name` : its name in designs and printed tables.
    - `inputs` : labels of the answers, or None.
    - `size` : the number k of answers.
    - `error` : True if smaller is better.
    - `logarithmic` : True if its values are logarithms, so that gaps are differences.
    - `continuous` : True if the answers are real numbers, which a design cuts into intervals.
    - `pair` : the hypotheses (P0, P1), if the utility depends on a channel through their two marginals alone.
    - `decisions` : labels of the reports, if the utility gives each of them a meaning; else None.
    - `contracts` : True if a channel preserves at most its Dobrushin coefficient (the largest total variation between
      two of its rows) times `value_without_privacy`, as f-divergences do.
    - `information` : True if the utility is the mutual information of an answer and its report, in nats.
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
        """True if the values are logarithms."""
        return False

    @property
    def continuous(self) -> bool:
        """True if the answers are real numbers."""
        return False

    @property
    def pair(self) -> tuple[Array, Array] | None:
        """The two hypotheses, shape (k,) each, or None."""
        return None

    @property
    def decisions(self) -> tuple[Label, ...] | None:
        """The labels of the reports, if the utility gives them a meaning; else None."""
        return None

    @property
    @abstractmethod
    def value_without_privacy(self) -> float:
        """The utility without any privacy, if the answer itself is reported; may be inf."""

    @abstractmethod
    def value(self, channel: ChannelLike) -> float:
        """Compute the utility of a channel."""

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the utility of the channel whose rows are proportional to the rows of floats.

        By default the float `value`, assumed accurate to a relative 2^-40; exact arithmetic is refused.
        """
        return trusted_enclosure(np.asarray(self.value(channel)), arithmetic, self.name)

    def enclosed_value_without_privacy(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose `value_without_privacy` of a utility that `contracts`; of one with parts, an upper bound."""
        if parts := self.parts():
            return self.from_parts(
                [float(part.enclosed_value_without_privacy(arithmetic).upper) for part in parts], arithmetic
            )
        return trusted_enclosure(np.asarray(self.value_without_privacy), arithmetic, self.name)

    def work(self, channel: Channel) -> Work:
        """Bound the work of `enclosed_value`, in floats, and of building the utility again."""
        own_work = (
            Work(float_operations=BASE_OPERATIONS)
            + Work.on(channel.matrix.size, 20.0)
            + Work.on(count_numbers(self), 20.0 + channel.shape[1])
        )
        return sum((part.work(channel) for part in self.parts()), own_work)

    def parts(self) -> Sequence[Utility]:
        """List the utilities whose optima bound this one's (`from_parts`); none by default."""
        return ()

    def from_parts(self, bounds: Sequence[float], arithmetic: Arithmetic) -> Enclosure:
        """Bound this utility from above by upper bounds on its parts, in the same order."""
        return arithmetic.of(np.inf)

    def check(self, channel: ChannelLike) -> Channel:
        """Return the channel; raise `InvalidInput` if its number of inputs is not the number of answers."""
        checked_channel = as_channel(channel)
        if checked_channel.shape[0] != self.size:
            raise invalid("channel", f"{self.size} inputs", checked_channel.shape[0])
        return checked_channel


class _ProbingMeta(ABCMeta):
    """A metaclass of column utilities that probes instances of user-defined classes after construction."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        utility = super().__call__(*args, **named)
        probe_user_utility(utility)
        return utility


class ColumnUtility(Utility, metaclass=_ProbingMeta):
    """A utility given by convex, positively homogeneous functions mu_j of a column of the channel.

    U(Q) is the least, over the criteria j, of the sum of mu_j over the columns. A user-defined utility needs `name`,
    `inputs`, `size`, `value_without_privacy`, `columns` and `gradients`; see docs/how-to/design/custom-utility.md.
    On construction these are evaluated at fixed columns (`utilities.probes`). Raises `InvalidInput` if they are not
    convex, not positively homogeneous, not functions of each column alone, or if a gradient is above the function.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        probe_user_utility(self)

    @abstractmethod
    def columns(self, matrix: Array) -> Array:
        """Compute the values mu_j of the columns of `matrix` (k, n), shape (criteria, n)."""

    @abstractmethod
    def gradients(self, matrix: Array) -> Array:
        """Compute gradients of mu_j at the columns, (criteria, n, k): linear functions that touch mu_j from below."""

    @property
    def compared(self) -> MarginalComparisons | None:
        """The utility as a function of the marginals of a few distributions; None by default."""
        return None

    def value(self, channel: ChannelLike) -> float:
        """Compute the utility of a channel: the least, over the criteria, of the sum over outputs."""
        return float(columns_of(self, self.check(channel).matrix).sum(axis=1).min())

    def enclosed_columns(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """Enclose the values mu_j, (criteria, n), of the columns base + rise, for `base` (n,) and `rise` (k, n).

        A column is given as a constant and the rise above it, so that small differences between entries keep their
        digits. By default the float `columns` at the midpoints, assumed accurate to a relative 2^-40; exact arithmetic
        is refused.
        """
        columns = base + rise
        return trusted_enclosure(columns_of(self, columns.midpoint), base.arithmetic, self.name)

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the least, over the criteria, of the sum over outputs."""
        return self.enclosed_columns(*base_and_rise(channel, arithmetic)).sum(axis=1).min()


def columns_of(utility: Any, matrix: Array) -> Array:
    """Return `utility.columns(matrix)`, (criteria, n); raise `InvalidInput` if a user-defined utility errs."""
    k, n = matrix.shape
    name = f"columns of {utility.name}"
    values = _floats(utility.columns(matrix), name, f"(criteria, {n}) for a matrix of shape ({k}, {n})")
    if values.ndim != 2 or not len(values) or values.shape[1] != n:
        raise invalid(name, f"an array of shape (criteria, {n}) for a matrix of shape ({k}, {n})", values.shape)
    if not (values > -np.inf).all():
        is_invalid = ~(values > -np.inf)
        raise invalid(
            name, "numbers, none of them NaN or -inf", values[is_invalid][0], _first_column(matrix, is_invalid)
        )
    return values


def gradients_of(utility: Any, matrix: Array) -> Array:
    """Return `utility.gradients(matrix)`, (criteria, n, k); raise `InvalidInput` if a user-defined utility errs."""
    k, n = matrix.shape
    criteria = len(columns_of(utility, matrix))
    name = f"gradients of {utility.name}"
    shape = f"({criteria}, {n}, {k}) for a matrix of shape ({k}, {n})"
    gradients = _floats(utility.gradients(matrix), name, shape)
    if gradients.shape != (criteria, n, k):
        raise invalid(name, f"an array of shape {shape}", gradients.shape)
    if not np.isfinite(gradients).all():
        is_invalid = ~np.isfinite(gradients)
        raise invalid(name, "finite numbers", gradients[is_invalid][0], _first_column(matrix, is_invalid.any(axis=2)))
    return gradients


def _floats(values: object, name: str, shape: str) -> Array:
    """Return the values of a user-defined function as an array of floats; raise `InvalidInput` for others."""
    try:
        floats = np.asarray(values)
        if floats.dtype.kind not in "fiub":
            raise TypeError
        return floats.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise invalid(name, f"an array of numbers, of shape {shape}", type(values).__name__) from None


def _first_column(matrix: Array, is_invalid: Any) -> str:
    """Describe the first column of a matrix (k, n) with an entry of `is_invalid`, (criteria, n)."""
    from ldpopt.design.utilities.probes import first_column

    return first_column(matrix, is_invalid)


def is_user_defined(utility: Any) -> bool:
    """Return True if a utility's class is not part of this package, so that its properties are unproved."""
    return not type(utility).__module__.startswith("ldpopt.")


def probe_user_utility(utility: ColumnUtility, ratios: Sequence[float] | None = None) -> None:
    """Try the promised properties of a user-defined utility, or convexity within given ratios e^epsilon.

    Raises `InvalidInput` if a property fails (`utilities.probes`). Utilities of this package are not probed.
    """
    if is_user_defined(utility) and not utility.continuous and (ratios is None or len(ratios)):
        from ldpopt.design.utilities.probes import probe

        probe(utility, columns_of, gradients_of, ratios or ())


def trusted_enclosure(values: Array, arithmetic: Arithmetic, name: str) -> Enclosure:
    """Enclose values of a user-defined float function as if accurate to the relative error `TRUSTED_RTOL`."""
    if arithmetic.exact:
        raise NotChecked(
            f"not covered: exact arithmetic needs a utility of this package, and {name} is known in float64"
        )
    slack = TRUSTED_RTOL * np.abs(values)
    return arithmetic.between(values - slack, values + slack)


def base_and_rise(channel: Channel, arithmetic: Arithmetic) -> tuple[Enclosure, Enclosure]:
    """Return the columns of a channel as constants (m,) and rises above them (k, m).

    Rows are divided by their sums. A row of floats sums to one only up to rounding; it represents the distribution
    proportional to it.
    """
    matrix = arithmetic.of(channel.matrix)
    base = channel.matrix.min(axis=0)
    # The excess of a row's sum over one, sum (Q - base) - (1 - sum base), is computed without cancellation.
    rise_of_rows = matrix - base[None, :]
    excess = rise_of_rows.sum(axis=1) - arithmetic.of(1 - exact_sum(base))
    rise = rise_of_rows - matrix * (excess / (1 + excess))[:, None]
    return arithmetic.of(base), rise
