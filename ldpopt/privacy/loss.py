"""The privacy loss Z = log p/q under p: its mean, and its centred cumulant K(s) = log E exp(s (Z - E Z)).

Every notion of Rényi type follows from these two: KL = E Z, D_alpha = E Z + K(alpha - 1)/(alpha - 1) [BS, Def 2.1],
and tau^2 of mCDP is the supremum of 2 K(s)/s^2 [DR, Def 3.3]. Both are computed from sums of the non-negative
g(x) = exp(x) - 1 - x, so nothing cancels, even for nearly equal rows and orders near one.

Rows of a channel sum to one only within `tolerances.ROW_SUM`. Every measure is that of the laws p/P and q/Q, where P
and Q are the sums of the rows p and q. With c = log(P/Q), the log-ratio of the laws is log(p/q) - c, and their
difference at a factor e^epsilon is (p - e^(epsilon + c) q)/P. So measures use the rows as they are, and correct by c,
which is known to its last digits. Dividing the rows would add rounding that hides how close two rows are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.numbers.rounding import SUBNORMAL, ULP
from ldpopt.privacy.pairs import MAX_BLOCK_ENTRIES, normalised
from ldpopt.values.distribution import Array

_LN2 = math.log(2.0)


BITS_PER_PART = 26
"""Bits of each part of an entry: entries are cut into parts that sum without rounding."""

BLOCK_ENTRIES = 1 << 16
"""Entries that are split at a time."""
MAX_SINGLE = 500
"""Up to so many entries are summed sooner one by one."""


def defects(rows: Array) -> Array:
    """Compute the sum of every row of an array (n, m) minus one, correctly rounded; (n,)."""
    n, m = rows.shape
    if rows.size <= MAX_SINGLE or m >= 1 << BITS_PER_PART:
        return np.array([math.fsum([*row, -1.0]) for row in rows.tolist()])
    step = max(1, BLOCK_ENTRIES // m)
    return np.concatenate([np.empty(0), *(_defects(rows[start : start + step]) for start in range(0, n, step))])


def _defects(rows: Array) -> Array:
    """`defects` of a block: entries below two are cut into multiples of 2^-26, 2^-52 and 2^-78, which sum exactly.

    Where remainders might decide the last digit, and for larger entries, `math.fsum` is used.
    """
    remainders, total, error_sum = rows, np.full(len(rows), -1.0), np.zeros(len(rows))
    absolute_error_sum = np.zeros(len(rows))
    with np.errstate(all="ignore"):
        for part_number in (1, 2, 3):
            shifter = 1.5 * 2.0 ** (52 - BITS_PER_PART * part_number)
            part = (remainders + shifter) - shifter
            remainders = remainders - part
            total, rounding_error = _two_sum(total, part.sum(axis=1))
            error_sum, absolute_error_sum = error_sum + rounding_error, absolute_error_sum + np.abs(rounding_error)
        total, rounding_error = _two_sum(total, remainders.sum(axis=1))
        error_bound = 4 * ULP * (absolute_error_sum + np.abs(rounding_error)) + rows.shape[1] * ULP * np.abs(
            remainders
        ).sum(axis=1)
        excess, remaining_error = _two_sum(total, error_sum + rounding_error)
        is_certain = (excess + (remaining_error + 2 * error_bound) == excess) & (
            excess + (remaining_error - 2 * error_bound) == excess
        )
        is_certain &= (rows >= 0).all(axis=1) & (rows.max(axis=1) < 2)
    for row in np.flatnonzero(~is_certain):
        excess[row] = math.fsum([*rows[row].tolist(), -1.0])
    return excess


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum, and its rounding error [HIG, section 4.3]."""
    total = a + b
    rounded_b = total - a
    return total, (a - (total - rounded_b)) + (b - rounded_b)


def log_sums(rows: Array) -> Array:
    """Compute the logarithms of the row sums, each within 4 ulps of itself."""
    return np.log1p(defects(rows))


@dataclass(frozen=True)
class Shift:
    """The correction of stacked rows by their sums P, Q, (n,): defect = P - 1, value = log(P/Q), and its error."""

    defect: Array
    value: Array
    error: Array


def shift(p: Array, q: Array) -> Shift:
    """Compute the correction of stacked pairs, arrays (n, m), by their row sums."""
    p_defect, q_defect = defects(p), defects(q)
    log_p_sum, log_q_sum = np.log1p(p_defect), np.log1p(q_defect)
    value = np.where(p_defect == q_defect, 0.0, log_p_sum - log_q_sum)
    error = np.where(p_defect == q_defect, 0.0, 4 * ULP * (np.abs(log_p_sum) + np.abs(log_q_sum) + np.abs(value)))
    return Shift(p_defect, value, error)


def scaled(q: Array, exponent: Array) -> Array:
    """Scale rows q (n, m) by e^exponent (n,), within (4 + 2 |exponent|) ulps and a subnormal."""
    with np.errstate(over="ignore", under="ignore"):
        is_in_range = np.abs(exponent) <= 700.0
        power_of_two = np.where(is_in_range, 0.0, np.rint(np.clip(exponent, -1e6, 1e6) / _LN2))
        factor = np.exp(np.where(is_in_range, exponent, np.clip(exponent, -1e6, 1e6) - power_of_two * _LN2))
        mantissa, power = np.frexp(q)
        # The factor may be near the ends of the range itself.
        factor_mantissa, factor_power = np.frexp(factor)
        total_power = power + (factor_power + power_of_two.astype(np.int64))[:, None]
        return np.asarray(
            np.ldexp(mantissa * factor_mantissa[:, None], np.clip(total_power, -5000, 5000).astype(np.int32))
        )


def centred(matrix: Array) -> tuple[Array, Array, Array]:
    """Compute (reference, deviation, error): each row's distribution is reference + deviation.

    The reference is the first row of the matrix. The errors of the entries of a row sum to at most `error`, (k,).
    """
    reference, sum_defects = matrix[0], defects(matrix)
    # q/(1 + d) - r = ((q - r) - d r)/(1 + d)
    deviation = ((matrix - reference) - sum_defects[:, None] * reference) / (1 + sum_defects)[:, None]
    return reference, deviation, 8 * ULP * (np.abs(deviation).sum(axis=1) + 2 * np.abs(sum_defects))


_MAX_EXPONENT = 600.0
_TERM = 40 * ULP
"""Relative error of a sum of terms p g(x) with exact x: 9 units for g, 4 for p, and 27 for the summation."""


@dataclass(frozen=True)
class PrivacyLoss:
    """The privacy loss of n stacked pairs over m outputs.

    p, centred, slack : (n, m), probabilities, the loss minus its mean (0 where p = 0), and error bounds of it. mean_*,
    top_* : (n,), bounds on E Z = KL(p || q) and max Z. infinite, identical : whether q misses an output of p, and
    whether p = q.
    """

    p: Array
    centred: Array
    slack: Array
    mean_lower: Array
    mean_upper: Array
    top_lower: Array
    top_upper: Array
    infinite: npt.NDArray[np.bool_]
    identical: npt.NDArray[np.bool_]

    def rows(self, row_numbers: npt.NDArray[np.intp]) -> PrivacyLoss:
        """Select the pairs at positions `row_numbers`, repetitions allowed."""
        return PrivacyLoss(*(getattr(self, name)[row_numbers] for name in self.__dataclass_fields__))

    def cumulant(self, s: Array) -> tuple[Array, Array]:
        """Bound K(s) >= 0 for one s per pair, (n,)."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x = s[:, None] * self.centred
            shift = np.maximum(x.max(axis=1) - _MAX_EXPONENT, 0.0)
            has_overflow, scale = bool(shift.any()), np.exp(-shift)[:, None]
            is_large = x > _MAX_EXPONENT
            moderate_x = np.where(is_large, 0.0, x) if has_overflow else x
            growth_minus_one = np.expm1(moderate_x)
            growth, terms = np.abs(growth_minus_one), excess(moderate_x, growth_minus_one)
            if has_overflow:
                scaled_growth = np.exp(np.where(is_large, x - shift[:, None], -np.inf))
                growth, terms = (
                    np.where(is_large, scaled_growth, moderate_values * scale) for moderate_values in (growth, terms)
                )
            total = (self.p * terms).sum(axis=1)
            eta = np.minimum(np.abs(s)[:, None] * self.slack, 600.0)  # |g(x+e) - g(x)| <= (|e^x-1| + e)(e^e - 1)
            error = (self.p * (growth + eta * scale) * np.expm1(eta)).sum(axis=1) + _TERM * total
            error += 16 * self.p.shape[1] * SUBNORMAL  # for products that are subnormal
            bounds = []
            for moment_minus_one in (np.maximum(total - error, 0.0), total + error):
                log_moment = np.log1p(moment_minus_one)
                if has_overflow:
                    log_moment = np.where(
                        shift > 0, shift + np.log(np.maximum(scale[:, 0] + moment_minus_one, 5e-324)), log_moment
                    )
                bounds.append(np.where(self.identical, 0.0, log_moment))
        shift_error = 8 * ULP * shift
        low, high = np.maximum(bounds[0] * (1 - 4 * ULP) - shift_error, 0.0), bounds[1] * (1 + 4 * ULP) + shift_error
        imprecise_pairs = np.flatnonzero((eta.max(axis=1) > 0.5) & ~self.identical)
        if len(imprecise_pairs):
            low[imprecise_pairs], high[imprecise_pairs] = self._summed(imprecise_pairs, s[imprecise_pairs])
        return low, high

    def cumulant_at(self, pairs: npt.NDArray[np.intp], s: Array) -> tuple[Array, Array]:
        """Bound K(s) of the pairs at positions `pairs`, in blocks that fit in memory."""
        step = max(1, MAX_BLOCK_ENTRIES // self.p.shape[1])
        blocks = (slice(start, start + step) for start in range(0, len(pairs), step))
        block_bounds = [self.rows(pairs[block]).cumulant(s[block]) for block in blocks]
        return np.concatenate([low for low, _ in block_bounds]), np.concatenate([high for _, high in block_bounds])

    @property
    def spread(self) -> tuple[Array, Array]:
        """The range of each loss, and a bound on its variance, (n,) each."""
        variance = (self.p * (np.abs(self.centred) + self.slack) ** 2).sum(axis=1) * (1 + 1e-12)
        loss_range = np.ptp(np.where(self.p > 0, self.centred, 0.0), axis=1)
        return loss_range, variance + 16 * self.p.shape[1] * SUBNORMAL

    def _summed(self, pairs: npt.NDArray[np.intp], s: Array) -> tuple[Array, Array]:
        """Bounds on K(s) as a sum of exponentials, for |s| so large that the error of the loss exceeds 1/|s|."""
        p, slack = self.p[pairs], self.slack[pairs].max(axis=1)
        x = np.where(p > 0, s[:, None] * self.centred[pairs], -np.inf)
        max_x = x.max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_moment = max_x + np.log((p * np.exp(x - max_x[:, None])).sum(axis=1))
        error = np.abs(s) * slack + ULP * (p.shape[1] + 32 + 16 * np.abs(max_x) + 16 * np.abs(log_moment))
        with np.errstate(invalid="ignore"):
            low, high = np.maximum(log_moment - error, 0.0), log_moment + error
        return np.where(low >= 0, low, 0.0), np.where(high >= 0, high, np.inf)

    def renyi(self, s: float) -> tuple[Array, Array]:
        """Bound the Rényi divergence of order 1 + s, (n,), for s in [0, inf]."""
        if s == 0:
            return self.mean_lower, self.mean_upper
        if s == np.inf:
            return self.top_lower, self.top_upper
        return self.divergence(np.full(len(self.p), s))

    def renyi_at(self, s: Array) -> Iterator[tuple[Array, Array]]:
        """Bound the divergence as `renyi` at many finite s, (N,): blocks of shape (orders, n)."""
        pairs, step = np.arange(len(self.p)), max(1, MAX_BLOCK_ENTRIES // max(self.p.size, 1))
        for block in (s[start : start + step] for start in range(0, len(s), step)):
            low, high = self.rows(np.tile(pairs, len(block))).divergence(np.repeat(block, len(pairs)))
            yield low.reshape(len(block), len(pairs)), high.reshape(len(block), len(pairs))

    def divergence(self, s: Array) -> tuple[Array, Array]:
        """Bound the Rényi divergence of order 1 + s, for finite s >= 0 of shape (n,)."""
        low, high = self.cumulant(s)
        is_zero, s = s == 0, np.where(s == 0, 1.0, s)
        low = np.where(is_zero, self.mean_lower, (self.mean_lower + low / s) * (1 - 4 * ULP))
        high = np.where(is_zero, self.mean_upper, (self.mean_upper + high / s) * (1 + 4 * ULP))
        high = np.minimum(high, self.top_upper)
        return np.where(self.infinite, np.inf, np.minimum(low, high)), np.where(self.infinite, np.inf, high)


def excess(x: Array, growth_minus_one: Array | None = None) -> Array:
    """Compute g(x) = exp(x) - 1 - x >= 0 to a few ulps; `growth_minus_one` is exp(x) - 1 if known."""
    clipped_x = np.minimum(np.maximum(x, -0.5), 0.5)
    series, quotient = np.ones_like(clipped_x), np.empty_like(clipped_x)
    for n in range(17, 2, -1):  # 1 + clipped_x / n * series
        np.multiply(np.divide(clipped_x, n, out=quotient), series, out=series)
        series += 1
    growth_minus_one = np.expm1(x) if growth_minus_one is None else growth_minus_one
    return np.where(np.abs(x) <= 0.5, clipped_x * clipped_x / 2 * series, growth_minus_one - x)


def log_ratios(p: Array, q: Array) -> Array:
    """Compute log(p/q) for positive arrays to a few ulps, also near p = q and for subnormals."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    is_within_factor_two = (p <= 2 * q) & (q <= 2 * p)
    with np.errstate(all="ignore"):
        logs = np.asarray(np.log(p / q))  # accurate if the quotient is far from one and in the normal range
        is_extreme = ~is_within_factor_two & ~((logs > -700) & (logs < 700) & (p > 1e-300) & (q > 1e-300))
        close_p, close_q = p[is_within_factor_two], q[is_within_factor_two]
        logs[is_within_factor_two] = np.log1p(
            (close_p - close_q) / close_q
        )  # p - q is exact within a factor of two [Sterbenz]
    if is_extreme.any():
        (p_mantissa, p_exponent), (q_mantissa, q_exponent) = np.frexp(p[is_extreme]), np.frexp(q[is_extreme])
        logs[is_extreme] = np.log(p_mantissa / q_mantissa) + (p_exponent - q_exponent) * np.log(2.0)
    return np.asarray(logs)


ROUNDED = 4 * ULP
"""The relative error of the entries of a row that was divided by its sum."""


def privacy_loss(p: Array, q: Array, entry_error: Array | float = ROUNDED) -> PrivacyLoss:
    """Compute the privacy loss log p/q under p of stacked pairs (n, m)."""
    row_entry_error = np.broadcast_to(np.asarray(entry_error, dtype=np.float64), (len(p),))[:, None]
    is_identical = np.asarray((p == q).all(axis=1))
    row_shift = shift(p, q)
    is_in_both = (p > 0) & (q > 0)
    is_infinite = np.asarray(((p > 0) & ~is_in_both).any(axis=1))
    raw_log_ratios = np.where(is_in_both, log_ratios(np.where(is_in_both, p, 1.0), np.where(is_in_both, q, 1.0)), 0.0)
    loss = np.where(is_in_both, raw_log_ratios - row_shift.value[:, None], 0.0)
    # The errors: 8 units of the logarithm, that of the correction by the sums, and one unit of the difference.
    slack = np.where(
        is_in_both,
        8 * ULP * np.abs(raw_log_ratios) + row_shift.error[:, None] + ULP * np.abs(loss) + 4 * row_entry_error,
        0.0,
    )
    p, q = normalised(p), normalised(q)
    difference = np.abs(p - q)
    # KL = sum p g(-Z) + the mass of q outside the support of p; p g(-Z) = q - p + p Z where Z is not small.
    is_small = np.abs(loss) <= 0.5
    terms = np.where(is_small, p * excess(np.where(is_small, -loss, 0.0)), q - p + p * loss)
    mean = np.where(is_in_both, terms, q).sum(axis=1)
    # Even if rounding made the rows equal, the divergence of so small a difference is of second order.
    error = (
        (_TERM + 4 * row_entry_error[:, 0]) * mean
        + ((np.where(is_small, np.abs(loss) * p, difference) + p * slack) * slack * 2 + 8 * SUBNORMAL).sum(axis=1)
        + ((8 * ULP + 4 * row_entry_error) * np.where(is_small, 0.0, p + q)).sum(axis=1)
    )
    top = np.where(is_in_both, loss + slack, -1e308).max(axis=1)
    bottom = np.where(is_in_both, loss - slack, -1e308).max(axis=1)
    lower, upper = np.maximum(mean - error, 0.0), mean + error
    losses_elsewhere, is_finite = np.where(is_infinite, np.inf, 0.0), ~(is_identical | is_infinite)
    return PrivacyLoss(
        p,
        np.where(is_in_both, loss - mean[:, None], 0.0),
        slack + np.where(is_in_both, (error + 2 * ULP * mean)[:, None] + ULP * np.abs(loss), 0.0),
        np.where(is_finite, lower, losses_elsewhere),
        np.where(is_finite, upper, losses_elsewhere),
        np.where(is_finite, np.maximum(bottom * (1 - 4 * ULP), 0.0), losses_elsewhere),
        np.where(is_finite, np.maximum(top * (1 + 4 * ULP), 0.0), losses_elsewhere),
        is_infinite,
        is_identical,
    )
