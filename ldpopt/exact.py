"""The exact form of a channel, for releasing data: integer weights, whose privacy is proved in integer arithmetic.

A float matrix rounded to an exact channel within its privacy claims: to bits, or to a small denominator.

With a small denominator, as for dice and cards, every column of weights gets an interval [low, high] with high <=
exp(epsilon) low near the column of the matrix. So all weights inside satisfy epsilon. Each row is rounded inside the
intervals. Rows that are still farther apart than eta allows are moved towards the middle, one unit at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import CertificateError, Phrase, invalid
from ldpopt.files import strict
from ldpopt.numbers.rounding import float_up, up
from ldpopt.numbers.tolerances import FEASIBILITY_TOLERANCE
from ldpopt.values import labels
from ldpopt.values.distribution import Array, number, positive_integer, stochastic, unit_interval
from ldpopt.values.labels import Label
from ldpopt.values.results import Pictured, Result
from ldpopt.values.schema import labelled, version_of

__all__ = ["MAXIMUM_BITS", "MAX_DENOMINATOR", "ExactChannel", "ExactProof", "RoundingLoss", "round_exact"]

Integers = npt.NDArray[np.int64]

FORMAT = "ldpopt-exact-channel"
VERSION = 2
"""Files of version 1 state `bits`. Files of version 2 state a `denominator` that is not a power of two."""
MAXIMUM_BITS = 62
"""Weights up to 2**62 fit into int64, and so does the sum of the positive differences between two rows."""
MAX_DISTANCE_ENTRIES = 16_000
"""The most entries of the differences of rows that are formed at once."""

_DECIMAL_DIGITS = 60


@dataclass(frozen=True, eq=False)
class ExactProof(Result):
    """The epsilon and eta that the integers of an exact channel prove, and the attaining answers and reports.

    - `epsilon` : in nats, a float whose exponential, rounded down, is at least `ratio`; inf if `ratio` is None.
    - `eta` : `distance` / denominator, rounded up.
    - `ratio` : the largest weights[x, y] / weights[x', y]; None if a report is possible for one answer and not for
      another.
    - `distance` : the largest sum of the positive differences between two rows of weights.
    - `ratio_at`, `distance_at` : positions (x, x', y) and (x, x') that attain them.

    >>> str(ExactChannel([[192, 64], [64, 192]], bits=8).proof().ratio)
    '3'
    """

    epsilon: float
    eta: float
    ratio: Fraction | None
    distance: int
    ratio_at: tuple[int, int, int]
    distance_at: tuple[int, int]


@dataclass(frozen=True, eq=False)
class RoundingLoss(Result):
    """The distance of an exact channel from the matrix that it was rounded from.

    - `distance` : the largest total-variation distance between a row and its rounding.
    - `fraction` : lam in [0, 1] such that the matrix is (1 - lam) times the exact channel plus lam times some channel.

    For a utility U <= B that is convex in the channel, as f-divergences and mutual information are, U(exact) >=
    (U(matrix) - lam B) / (1 - lam). Matrix entries below 1/denominator can make the fraction large at a tiny distance.

    >>> ExactChannel([[3, 1], [1, 3]], bits=2).loss([[0.75, 0.25], [0.25, 0.75]]).distance
    0.0
    """

    distance: float
    fraction: float


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ExactChannel(Pictured):
    """A channel with Pr(report y | answer x) = `weights[x, y]` / `denominator` exactly.

    Parameters
    ----------
    weights : Integers (k, m), non-negative, every row summing to exactly the denominator; stored as read-only int64.
    bits : From 1 to 62, where the denominator is 2**bits.
    inputs, outputs : Distinct labels, as in `Channel`.
    denominator : From 2 to 2**62, given instead of `bits`; for example 36 for two dice.

    Raises `InvalidInput` for anything else.

    >>> q = ExactChannel([[3, 1], [1, 3]], bits=2, inputs=["no", "yes"])
    >>> q.proof().ratio, q.eta
    (Fraction(3, 1), 0.5)
    >>> ExactChannel([[26, 10], [10, 26]], denominator=36)
    ExactChannel(2 inputs -> 2 outputs, denominator 36)
    """

    weights: Integers
    denominator: int
    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]

    _picture, _heads = "channel", 1

    def _columns(self) -> dict[str, list[Any]]:
        columns = zip(map(labels.as_text, self.outputs), self.weights.T.tolist(), strict=True)
        return {"answer": list(self.inputs), **dict(columns)}

    def _title(self) -> str:
        return f"{self!r}, weights over {self.denominator}"

    def __init__(
        self,
        weights: Any,
        bits: Any = None,
        inputs: Iterable[Label] | None = None,
        outputs: Iterable[Label] | None = None,
        *,
        denominator: Any = None,
    ) -> None:
        total = checked_denominator(bits, denominator)
        weights = _integers(weights, total)
        for x, row_sum in enumerate(row_sums(weights)):
            if row_sum != total:
                raise invalid("weights", f"rows that sum to exactly {_written(total)}", row_sum, f"row {x}")
        weights.setflags(write=False)
        object.__setattr__(self, "denominator", total)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "inputs", labels.distinct_labels(inputs, weights.shape[0], "inputs"))
        object.__setattr__(self, "outputs", labels.distinct_labels(outputs, weights.shape[1], "outputs"))

    @classmethod
    def from_fractions(
        cls, matrix: Any, inputs: Iterable[Label] | None = None, outputs: Iterable[Label] | None = None
    ) -> ExactChannel:
        """Build the channel of rational probabilities, over their least common denominator.

        matrix : a table (k, m) of `Fraction`, `Decimal`, integers, or text such as "3/4" or "0.75"; every row sums to
            exactly 1. Floats are rejected, as they are rounded already: `Channel.exact` takes those.

        Raises `InvalidInput` for anything else, and for a common denominator above 2**62.

        >>> ExactChannel.from_fractions([["2/3", "1/3"], ["1/4", "3/4"]])
        ExactChannel(2 inputs -> 2 outputs, denominator 12)
        """
        rows = [[_fraction(value) for value in _listed(row)] for row in _listed(matrix)]
        total = math.lcm(*(value.denominator for row in rows for value in row))
        if total > 1 << MAXIMUM_BITS:
            raise invalid("matrix", f"a common denominator of at most 2**{MAXIMUM_BITS}", total)
        total = max(total, 2)
        weights = [[int(value * total) for value in row] for row in rows]
        for x, (row, row_weights) in enumerate(zip(rows, weights, strict=True)):
            if sum(row_weights) != total:
                raise invalid("matrix", "rows that sum to exactly 1", Phrase(str(sum(row))), f"row {x}")
        return cls(weights, None, inputs, outputs, denominator=total)

    def garbles(self, other: Any) -> bool:
        """Return True if this channel is `other` with some post-processing, as `Channel.garbles`.

        The answer is exact if `other` is an exact channel.

        >>> wide = ExactChannel([[3, 1], [1, 3]], bits=2)
        >>> ExactChannel([[2, 2], [2, 2]], bits=2).garbles(wide), wide.garbles(wide)
        (True, True)
        """
        from ldpopt.garbling import is_garbling

        return is_garbling(self, other)

    @property
    def bits(self) -> int:
        """The number b of bits of the denominator 2**b. Raises `InvalidInput` if it is not a power of two."""
        if self.denominator & (self.denominator - 1):
            expected = "a denominator that is a power of two (others are drawn by hand)"
            raise invalid("exact channel", expected, self.denominator)
        return self.denominator.bit_length() - 1

    @property
    def shape(self) -> tuple[int, int]:
        """The number of inputs k and the number of outputs m."""
        return self.weights.shape[0], self.weights.shape[1]

    @property
    def matrix(self) -> Array:
        """The probabilities as float64, each correctly rounded, shape (k, m)."""
        if self.denominator & (self.denominator - 1) == 0:
            return np.ldexp(self.weights.astype(np.float64), -self.bits)
        if self.denominator <= 1 << 53:  # both are floats, and one division rounds correctly
            return np.asarray(self.weights / np.float64(self.denominator))
        rows = [[weight / self.denominator for weight in row] for row in self.weights.tolist()]
        return np.array(rows, dtype=np.float64)

    @property
    def epsilon(self) -> float:
        """The proved epsilon, in nats: the log of the largest ratio of two entries of a column, rounded up."""
        return self.proof().epsilon

    @property
    def eta(self) -> float:
        """The proved eta: the largest total variation distance between two rows, rounded up."""
        return self.proof().eta

    def proof(self) -> ExactProof:
        """Compute both guarantees from the integers alone in O(k^2 m) integer operations; once for the same ones."""
        content = self.shape, self.denominator, blake2b(self.weights.tobytes()).digest()
        known_content, proof = self.__dict__.get("_proved", (None, None))
        if known_content == content and isinstance(proof, ExactProof):
            return proof
        ratio, ratio_at = largest_ratio(self.weights)
        distance, distance_at = largest_distance(self.weights)
        eta = float_up(Fraction(int(distance), self.denominator))
        proof = ExactProof(log_up(ratio), eta, ratio, int(distance), ratio_at, distance_at)
        object.__setattr__(self, "_proved", (content, proof))
        return proof

    def verify(self, epsilon: float = math.inf, eta: float = 1.0) -> ExactProof:
        """Return the proof if it covers `epsilon` (nats) and `eta`; else raise `CertificateError`."""
        epsilon = epsilon if isinstance(epsilon, float) and epsilon == math.inf else number(epsilon, "epsilon")
        eta, proof = number(eta, "eta"), self.proof()
        if proof.ratio is None:
            if not math.isinf(epsilon):
                raise CertificateError(f"epsilon {epsilon!r} is not proved: the supports of two rows differ")
        elif proof.ratio > exp_lower(epsilon):
            raise CertificateError(f"epsilon {epsilon!r} is not proved: the integers give {proof.epsilon!r}")
        if Fraction(proof.distance, self.denominator) > Fraction(eta):
            raise CertificateError(f"eta {eta!r} is not proved: the integers give {proof.eta!r}")
        return proof

    def loss(self, matrix: Any) -> RoundingLoss:
        """Measure the distance from the float `matrix`, shape (k, m), that it was rounded from."""
        target = stochastic(matrix, "matrix")
        if target.shape != self.shape:
            raise invalid("matrix", f"shape {self.shape}", target.shape)
        exact = self.matrix
        distance = float((np.abs(exact - target).sum(axis=1) / 2).max())
        is_used = exact > 0
        fraction = 1.0 - float((target[is_used] / exact[is_used]).min())
        return RoundingLoss(up(distance, 2.0 * self.shape[1]), min(1.0, max(0.0, fraction) + 2.0**-51))

    def __repr__(self) -> str:
        k, m = self.shape
        power = self.denominator & (self.denominator - 1) == 0
        size = f"{self.bits} bits" if power else f"denominator {self.denominator}"
        return f"ExactChannel({k} input{'s' * (k != 1)} -> {m} output{'s' * (m != 1)}, {size})"

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values (schema ``ldpopt-exact-channel``), with the claims."""
        # Weights are decimal strings.
        proof = self.proof()
        power = self.denominator & (self.denominator - 1) == 0
        denominator_text = "2**bits" if power else "denominator"
        return {
            "format": FORMAT,
            "version": 1 if power else VERSION,
            "orientation": f"weights[i][j] / {denominator_text} = Pr(outputs[j] | inputs[i])",
            **({"bits": self.bits} if power else {"denominator": self.denominator}),
            "inputs": [labels.to_jsonable(label) for label in self.inputs],
            "outputs": [labels.to_jsonable(label) for label in self.outputs],
            "weights": [[str(weight) for weight in row] for row in self.weights.tolist()],
            "epsilon": "inf" if math.isinf(proof.epsilon) else proof.epsilon,
            "eta": proof.eta,
        }

    def to_json(self) -> str:
        """Convert the channel and its claims to JSON text."""
        return strict.json_text(self.to_dict())

    @classmethod
    def from_dict(cls, data: Any) -> ExactChannel:
        """Read the channel from the values of `to_dict`; `CertificateError` for unproved claims."""
        name = "exact channel file"
        size = "bits" if version_of(data, name, FORMAT, (1, VERSION)) == 1 else "denominator"
        inputs, outputs = labelled(data, name, "weights", (size, "epsilon", "eta"))
        claimed_epsilon = data.get("epsilon")
        epsilon = (
            math.inf
            if claimed_epsilon == "inf"
            else number(claimed_epsilon, "epsilon", 'a finite number of nats or "inf"')
        )
        eta = unit_interval(data.get("eta"), "eta")
        channel = cls(data["weights"], None, inputs, outputs, denominator=checked_denominator(**{size: data.get(size)}))
        channel.verify(epsilon, eta)
        return channel

    @classmethod
    def from_json(cls, text: str | bytes) -> ExactChannel:
        """Read a channel that `to_json` wrote. Its claims are proved again; `from_dict` lists the errors."""
        return cls.from_dict(strict.json_value(text, "exact channel file"))


def exp_lower(epsilon: float) -> Fraction:
    """Return a rational number at most exp(epsilon), within a relative 1e-58, for epsilon >= 0."""
    # Beyond 44, exp(44).
    if epsilon == 0:
        return Fraction(1)
    context = Context(prec=_DECIMAL_DIGITS)
    # `Decimal.exp` is correctly rounded, so the next decimal below is below the true value.
    return Fraction(context.exp(Decimal(min(epsilon, 44.0))).next_minus(context))


def log_up(ratio: Fraction | None) -> float:
    """Return a float not below log(ratio), such that `exp_lower` of it is at least `ratio`."""
    if ratio is None:
        return math.inf
    if ratio == 1:
        return 0.0
    context = Context(prec=_DECIMAL_DIGITS)
    quotient = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    value = float(context.ln(quotient))
    if value > 43.5:  # only a float matrix has such ratios, no 62-bit weights
        return up(value)
    while exp_lower(value) < ratio:
        value = math.nextafter(value, math.inf)
    return value


def largest_loss(first: Sequence[Fraction], second: Sequence[Fraction]) -> float:
    """Compute the largest log-ratio of two distributions in either direction (nats), rounded up."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a or b]
    return log_up(max((max(a / b, b / a) for a, b in pairs), default=Fraction(1)) if all(map(all, pairs)) else None)


def largest_ratio(rows: npt.NDArray[Any]) -> tuple[Fraction | None, tuple[int, int, int]]:
    """Find the largest rows[x, y] / rows[x', y] as a fraction, and the place (x, x', y)."""
    # None if it divides by zero.
    high, low = rows.argmax(axis=0), rows.argmin(axis=0)
    best, place = Fraction(1), (0, 0, 0)
    for y, (x, other) in enumerate(zip(high.tolist(), low.tolist(), strict=True)):
        top, bottom = rows[x, y].item(), rows[other, y].item()
        if bottom == 0 and top > 0:
            return None, (x, other, y)
        if top > 0 and (ratio := Fraction(top) / Fraction(bottom)) > best:
            best, place = ratio, (x, other, y)
    return best, place


def largest_distance(rows: npt.NDArray[Any]) -> tuple[Any, tuple[int, int]]:
    """Find the largest sum over y of (rows[x', y] - rows[x, y])_+, and the place (x', x)."""
    best, place, k = rows.dtype.type(0), (0, 0), len(rows)
    for start in range(0, k - 1, size := max(1, MAX_DISTANCE_ENTRIES // rows.size)):
        stop = min(start + size, k - 1)
        distances = np.maximum(rows[None, start + 1 :] - rows[start:stop, None], 0).sum(axis=2)
        x, other = divmod(int(np.triu(distances).argmax()), k - start - 1)
        if distances[x, other] > best:
            best, place = distances[x, other], (start + 1 + other, start + x)
    return best, place


def checked_denominator(bits: Any = None, denominator: Any = None) -> int:
    """Return the denominator, given as such or by its bits; at most 2**`MAXIMUM_BITS`."""
    if denominator is None:
        checked_bits = positive_integer(bits, "bits")
        if checked_bits > MAXIMUM_BITS:
            raise invalid("bits", f"an integer from 1 to {MAXIMUM_BITS}", checked_bits)
        return 1 << checked_bits
    if bits is not None:
        raise invalid("bits and denominator", "one of them", Phrase("a value of each"))
    checked_bits = positive_integer(denominator, "denominator", 2)
    if checked_bits > 1 << MAXIMUM_BITS:
        raise invalid("denominator", f"an integer from 2 to 2**{MAXIMUM_BITS}", checked_bits)
    return checked_bits


def _written(total: int) -> str:
    return f"2**{total.bit_length() - 1}" if total & (total - 1) == 0 else str(total)


def _integers(values: Any, largest: int) -> Integers:
    """A new int64 array of two dimensions from integers, or from decimal strings of at most 20 digits."""
    if not isinstance(values, np.ndarray):
        if not isinstance(values, (list, tuple)) or not all(isinstance(r, (list, tuple, np.ndarray)) for r in values):
            raise invalid("weights", "a table of integers", type(values).__name__)
        values = [[_integer(value) for value in row] for row in values]
        if len({len(row) for row in values}) > 1:
            raise invalid("weights", "rows of one length", "rows of different lengths")
    raw = np.asarray(values)
    if raw.ndim != 2 or raw.size == 0 or raw.dtype.kind not in "iuO":
        raise invalid("weights", "a table of integers", f"{raw.dtype} of shape {raw.shape}")
    if raw.dtype.kind == "O" and not all(type(value) is int for value in raw.flat):
        raise invalid("weights", "a table of integers", "something else")
    if raw.min() < 0 or raw.max() > largest:
        raise invalid("weights", f"integers from 0 to {largest}", "one outside")
    return raw.astype(np.int64)


def _integer(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        return int(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise invalid("weights", "integers, or decimal strings of them", value)


def _listed(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, (list, tuple)) or not values:
        raise invalid("matrix", "a table of fractions", type(values).__name__)
    return list(values)


_WRITTEN = re.compile(r"\s*[0-9]{1,40}(\.[0-9]{0,40}|\s*/\s*[0-9]{1,40})?\s*", re.ASCII)


def _fraction(value: Any) -> Fraction:
    """A rational number that a user wrote, from 0 to 1."""
    try:
        if isinstance(value, (bool, float)) or (isinstance(value, str) and not _WRITTEN.fullmatch(value)):
            raise ValueError
        if isinstance(value, Decimal) and not -100 < value.adjusted() < 10:  # its fraction would have as many digits
            raise ValueError
        number = Fraction("".join(value.split()) if isinstance(value, str) else value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        hint = 'fractions from 0 to 1, such as Fraction(3, 4) or "3/4" (floats are rounded; Channel.exact takes them)'
        raise invalid("matrix", hint, value) from None
    if not 0 <= number <= 1:
        raise invalid("matrix", "fractions from 0 to 1", value)
    return number


def row_sums(weights: Integers) -> list[int]:
    """Compute the exact sum of every row, from the upper and the lower half of the 62 bits."""
    high, low = (weights >> 31).sum(axis=1), (weights & ((1 << 31) - 1)).sum(axis=1)
    return [(int(a) << 31) + int(b) for a, b in zip(high.tolist(), low.tolist(), strict=True)]


def round_exact(
    matrix: Any,
    bits: int = MAXIMUM_BITS,
    epsilon: float | None = None,
    eta: float | None = None,
    inputs: Iterable[Label] | None = None,
    outputs: Iterable[Label] | None = None,
) -> ExactChannel:
    """Round `matrix`, (k, m), to integers over 2**bits, so that `epsilon` and `eta` are proved.

    Both default to those of the matrix, rounded up. A claim more than `tolerances.FEASIBILITY_TOLERANCE` below them is
    refused. epsilon is in nats. Weights of a column stay in an interval [low, high] with high <= exp(epsilon) low
    around the mean row, where sums are balanced. If eta is exceeded, every row is moved towards the mean row.

    >>> round_exact([[0.75, 0.25], [0.25, 0.75]], bits=10).weights.tolist()
    [[768, 256], [256, 768]]
    """
    probabilities = stochastic(matrix, "matrix")
    total = checked_denominator(bits)
    measured_epsilon = log_up(largest_ratio(probabilities)[0])
    measured_eta = max(largest_distance(probabilities)[0], largest_distance(probabilities[::-1])[0])
    measured_eta = min(1.0, up(measured_eta, 2.0 * probabilities.shape[1] + 8))
    epsilon = measured_epsilon if epsilon is None else _claim(epsilon, measured_epsilon, "epsilon", math.inf)
    eta = measured_eta if eta is None else _claim(eta, measured_eta, "eta", 1.0)

    m = probabilities.shape[1]
    scaled_weights = _scale(probabilities, total)
    centre = _scale(probabilities.mean(axis=0, keepdims=True), total)
    order = np.argsort(-centre[0], kind="stable")
    _balance(centre, np.zeros((1, m), np.int64), np.full((1, m), total), total, order)
    if math.isinf(epsilon):
        low, high = np.zeros_like(scaled_weights), np.where(probabilities > 0, total, 0)  # zeros stay zeros
    else:
        low, high = _intervals(scaled_weights, centre[0], exp_lower(epsilon), total)
    weights = np.clip(scaled_weights, low, high)
    _balance(weights, low, high, total, order)
    max_distance = math.floor(Fraction(eta) * total)
    distance = int(largest_distance(weights)[0])
    if distance > max_distance:
        # Truncation and balancing move a distance by less than 3 m units.
        weights = _contract(weights, centre[0], max(max_distance - 3 * m, 0), distance)
        if math.isinf(epsilon):
            low, high = np.zeros_like(weights), np.full_like(weights, total)
        _balance(weights, low, high, total, order)
    channel = ExactChannel(weights, bits, inputs, outputs)
    channel.verify(epsilon, eta)
    return channel


def _claim(value: float, measured_value: float, name: str, largest: float) -> float:
    claimed_value = value if isinstance(value, float) and value == math.inf else number(value, name)
    if not 0 <= claimed_value <= largest:
        raise invalid(name, f"a number between 0 and {largest:g}", claimed_value)
    if measured_value > claimed_value + FEASIBILITY_TOLERANCE:
        raise invalid(
            name,
            f"a claim that the matrix meets within {FEASIBILITY_TOLERANCE:g}: at least {measured_value!r}",
            claimed_value,
        )
    return claimed_value


def _scale(probabilities: Array, total: int) -> Integers:
    """`probabilities` times `total`, rounded to integers. Row sums are corrected in proportion, up to a few units."""
    scaled_weights = np.rint(probabilities * float(total)).astype(np.int64)  # the product with a power of two is exact
    deficits = np.array([[float(total - row_sum)] for row_sum in row_sums(scaled_weights)])
    return np.clip(scaled_weights + np.rint(deficits * probabilities).astype(np.int64), 0, total)


def _intervals(scaled_weights: Integers, centre: Integers, ratio: Fraction, total: int) -> tuple[Integers, Integers]:
    """Low and high for every column, with low <= centre <= high <= ratio * low."""
    top, bottom = scaled_weights.max(axis=0), scaled_weights.min(axis=0)
    # Some room above the largest weight, for units that `_balance` adds to rows with too small a sum.
    rounding_margin = np.minimum(scaled_weights.shape[1], top >> 32)
    numerator, denominator = ratio.numerator, ratio.denominator
    low, high = [], []
    for largest, smallest, middle in zip(
        (top + rounding_margin).tolist(), bottom.tolist(), centre.tolist(), strict=True
    ):
        largest = max(largest, middle)
        floor = min(max(smallest, -(-largest * denominator // numerator)), middle)
        low.append(floor)
        high.append(min(floor * numerator // denominator, total))
    shape = scaled_weights.shape
    return np.broadcast_to(np.array(low, np.int64), shape), np.broadcast_to(np.array(high, np.int64), shape)


def _balance(weights: Integers, low: Integers, high: Integers, total: int, order: npt.NDArray[np.intp]) -> None:
    """Move `weights` inside [low, high], largest columns first, until every row sums to `total`."""
    deficits = np.array([total - row_sum for row_sum in row_sums(weights)], dtype=np.int64)
    for y in order.tolist():
        if not deficits.any():
            return
        step = np.clip(deficits, low[:, y] - weights[:, y], high[:, y] - weights[:, y])
        weights[:, y] += step
        deficits -= step


def _contract(weights: Integers, centre: Integers, numerator: int, denominator: int) -> Integers:
    """centre + (weights - centre) * numerator / denominator, truncated toward the centre."""
    deviation = (weights - centre).astype(object)
    return np.asarray(centre + np.sign(deviation) * (abs(deviation) * numerator // denominator), dtype=np.int64)


MAX_DENOMINATOR = 10**6
"""The largest denominator. Units move one by one, so larger ones would be slow: use the rounding to bits for them."""


def round_to_denominator(
    matrix: Any,
    denominator: int,
    epsilon: float | None = None,
    eta: float | None = None,
    inputs: Iterable[Label] | None = None,
    outputs: Iterable[Label] | None = None,
) -> ExactChannel:
    """Round `matrix`, (k, m), to multiples of 1/denominator, so that the claims are proved.

    The claims are `epsilon` (nats) and `eta`. Both default to those of the matrix, rounded up. An output too rare for
    the denominator gets the weight 0. Raises `InvalidInput` for a denominator above a million, and for one so small
    that rows that differ would become equal.
    """
    probabilities = stochastic(matrix, "matrix")
    total = checked_denominator(denominator=denominator)
    if total > MAX_DENOMINATOR:
        raise invalid("denominator", f"at most {MAX_DENOMINATOR:,} (give bits for a finer one)", total)
    if epsilon is None:
        epsilon = log_up(largest_ratio(probabilities)[0])
    if eta is None:
        # The float sum is right to a few units of its last place; the weights are far coarser.
        distance = max(float(largest_distance(probabilities)[0]), float(largest_distance(probabilities[::-1])[0]))
        eta = min(1.0, float_up(Fraction(distance) * (1 + Fraction(probabilities.shape[1] + 4, 1 << 51))))
    weights = integers_near(probabilities, total, None if math.isinf(epsilon) else exp_lower(epsilon), eta)
    if (weights == weights[0]).all() and not (probabilities == probabilities[0]).all():
        expected = "a larger one: multiples of it keep nothing of this channel within its privacy"
        raise invalid("denominator", expected, total)
    channel = ExactChannel(weights, None, inputs, outputs, denominator=total)
    channel.verify(epsilon, eta)
    return channel


def integers_near(probabilities: Array, total: int, ratio: Fraction | None, eta: float | Fraction = 1) -> Integers:
    """Round `total` times `probabilities` to weights (k, m) within `ratio` and eta."""
    # None is any ratio. The rows of the result may all be equal.
    scaled_weights = probabilities * float(total)
    low, high = _column_intervals(scaled_weights, probabilities, ratio, total)
    weights = np.array([_row(row, low, high, total) for row in scaled_weights], dtype=np.int64)
    centre = np.array(_row(scaled_weights.mean(axis=0), low, high, total), dtype=np.int64)
    return _nearer(weights, centre, math.floor(Fraction(eta) * total))


def reach(low: int, ratio: Fraction | None, total: int) -> int:
    """Return the largest weight allowed in a column whose smallest weight is `low`."""
    return total if ratio is None else min(low * ratio.numerator // ratio.denominator, total)


def _column_intervals(
    scaled_weights: Array, probabilities: Array, ratio: Fraction | None, total: int
) -> tuple[list[int], list[int]]:
    """The lower and upper ends of the columns' intervals, with room for rows that sum to `total`."""
    m = scaled_weights.shape[1]
    top, bottom = scaled_weights.max(axis=0), scaled_weights.min(axis=0)
    if ratio is None:
        return [0] * m, [total if probabilities[:, y].max() > 0 else 0 for y in range(m)]
    low = []
    for y in range(m):
        # The interval should reach both ends of the column: the squares of the gaps are added.
        middle = top[y] / float(ratio)
        start = max(0, math.floor(min(bottom[y], middle)) - 1)
        trial_lows = range(start, math.ceil(max(bottom[y], middle)) + 2)
        low.append(min(trial_lows, key=lambda a: _missed(a, reach(a, ratio, total), float(bottom[y]), float(top[y]))))
    order = sorted(range(m), key=lambda y: float(top[y]))
    while sum(low) > total:  # the least used columns are lowered first
        y = next(y for y in order if low[y] > 0)
        low[y] -= 1
    while sum(reach(a, ratio, total) for a in low) < total:
        y = max(range(m), key=lambda y: float(bottom[y]) - low[y])
        low[y] += 1
    return low, [reach(a, ratio, total) for a in low]


def _missed(low: int, high: int, bottom: float, top: float) -> float:
    return max(low - bottom, 0.0) ** 2 + max(top - high, 0.0) ** 2 + 1e-3 * max(bottom - low, 0.0) ** 2


def _row(row: Array, low: list[int], high: list[int], total: int) -> list[int]:
    """Integers within [low, high] that sum to `total`, near `row`: rounded, then moved unit by unit to the sum."""
    weights = [min(max(round(value), a), b) for value, a, b in zip(row.tolist(), low, high, strict=True)]
    deficit = total - sum(weights)
    step = 1 if deficit > 0 else -1
    for _ in range(abs(deficit)):
        free = [y for y in range(len(weights)) if low[y] <= weights[y] + step <= high[y]]
        y = max(free, key=lambda y: step * (float(row[y]) - weights[y]))
        weights[y] += step
    return weights


def _nearer(weights: Integers, centre: Integers, max_distance: int) -> Integers:
    """Move, of the two rows farthest apart, the one farther from the centre there by a unit, until eta is met."""
    weights = weights.copy()
    while True:
        distance, (x, other) = largest_distance(weights)
        if int(distance) <= max_distance:
            return weights
        if np.abs(weights[other] - centre).sum() > np.abs(weights[x] - centre).sum():
            x = other
        deviation = weights[x] - centre
        weights[x, int(deviation.argmax())] -= 1
        weights[x, int(deviation.argmin())] += 1
