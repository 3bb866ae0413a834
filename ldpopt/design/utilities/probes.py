"""Check the promised properties of a user-defined column utility at a few thousand columns on construction.

A proof prices the extreme columns within the constraints, and is valid for all columns because mu is positively
homogeneous and convex. For a user-defined utility these properties are promises. Its functions are evaluated here at
fixed columns of every shape: constant ones, two-valued ones, random ones over many scales, on faces of the cone and
near them, with ties. A utility that breaks a promise there is refused, with the property and the place. A property that
is satisfied at the probes is not proved; `kernel.certificate.believed` lists it next to every verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import PROBED_SHAPE, PROBED_TANGENT, PROBED_VALUE
from ldpopt.values.distribution import Array

ENTRIES_PER_BATCH = 60_000  # The approximate number of entries of one batch of probes
SCALES = sorted(map(float, {*(10.0 ** np.arange(-60, 13, 4)), *(1.7 * 10.0 ** np.linspace(-12, 12, 49))}),
                key=lambda scale: abs(np.log(scale)))  # fmt: skip
"""The multiples of columns at which homogeneity is probed, the simplest first."""
EXTREME_SCALES = 10.0 ** np.array([-280.0, -200, -120, 120, 200, 280])
"""Multiples at which squares and ratios may overflow or underflow, which is not an error of the utility."""
POINTS_PER_SEGMENT = 513  # Points of evaluation on each segment between two columns
MAX_SHOWN_ENTRIES = 6  # Entries of a column in a message


def first_column(matrix: Array, is_invalid: Any) -> str:
    """Describe the first column of a matrix (k, n) with an entry of `is_invalid`, (criteria, n) or (n,)."""
    column = matrix[:, int(np.argmax(np.atleast_2d(is_invalid).any(axis=0)))]
    rest = ", ..." if len(column) > MAX_SHOWN_ENTRIES else ""
    return f"the column ({', '.join(f'{x:.6g}' for x in column[:MAX_SHOWN_ENTRIES])}{rest})"


Checked = Callable[[Any, Array], Array]
"""A function of a utility and a matrix that returns the checked values of the utility's function."""


def probe(utility: Any, columns: Checked, gradients: Checked, ratios: Sequence[float] = ()) -> None:
    """Check the promises of a column utility; raise `InvalidInput` with the property and the column.

    columns, gradients : the utility's functions, checked. ratios : the largest ratios e^epsilon of entries of a column;
    only convexity within them is probed. () for all promises.
    """
    Probes(utility, columns, gradients).run(ratios)


class Probes:
    """The probes of one utility: the columns, their values, and the checks of each promise."""

    def __init__(self, utility: Any, columns: Checked, gradients: Checked) -> None:
        self.columns, self.gradients = columns, gradients
        self.utility, self.name, self.k = utility, utility.name, int(utility.size)
        self.what = f"columns of {self.name}"
        self.rng = np.random.default_rng(20)  # fixed, so that a utility is refused always or never
        self.count = int(np.clip(ENTRIES_PER_BATCH // (8 * self.k), 16, 400))
        with np.errstate(all="ignore"):
            self.base = self.sample(())
            self.values = self.values_at(self.base)
            finite = np.abs(self.values[np.isfinite(self.values)])
            self.size = float(finite.max(initial=0.0)) or 1.0
            """The largest value at a probe, in units of which the rounding of others is judged."""

    def run(self, ratios: Sequence[float]) -> None:
        """Check all promises in turn, or for given ratios only convexity within them."""
        with np.errstate(all="ignore"):
            if not ratios:
                for promise in (
                    self.alone, self.homogeneous, self.convex, self.touched, self.disclosed, self.summed, self.enclosed,
                    self.named_as, self.contracting, self.made_of_parts,
                ):  # fmt: skip
                    promise()
            for ratio in ratios:
                self.convex((ratio,))

    def sample(self, ratios: Sequence[float]) -> Array:
        """Draw columns (k, n) with a largest entry of one; only two-valued ones a ratio apart if ratios are given."""
        k, rng, n = self.k, self.rng, self.count
        membership = rng.random((k, n)) < rng.random(n)
        membership[:, : min(k, n // 2)] = np.eye(k, dtype=bool)[:, : min(k, n // 2)]
        steps = ratios or np.exp([1e-6, 1e-3, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 6.0, 12.0, 30.0])
        stairs = np.where(membership, 1.0, 1 / np.resize(steps, n))
        if ratios:
            mixed_columns = stairs @ rng.dirichlet(np.full(n, 3.0 / n), n).T
            return np.hstack([np.ones((k, 1)), stairs, mixed_columns / mixed_columns.max(axis=0)])
        spread = np.resize([1e-9, 1e-6, 1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 40.0, 200.0], n)
        rough = np.exp(-spread * rng.random((k, n)))
        faces = np.where(rng.random((k, n)) < 0.3, 0.0, rough)
        nearly = np.where(rng.random((k, n)) < 0.3, 1e-280, rough)
        columns_with_ties = np.exp(np.round(np.log(rough) / np.maximum(spread, 1e-12) * 2) * spread / 2)
        columns = np.hstack(
            [
                np.ones((k, 1)),
                np.eye(k)[:, :n],
                membership.astype(float),
                stairs,
                rough,
                faces,
                nearly,
                columns_with_ties,
            ]
        )
        columns = columns[:, columns.max(axis=0) > 0]
        return np.asarray(columns / columns.max(axis=0))

    def values_at(self, matrix: Array) -> Array:
        """Compute the values at columns, (criteria, n); raise `InvalidInput` unless they are numbers, finite inside."""
        try:
            values = self.columns(self.utility, matrix)
        except InvalidInput:
            raise
        except Exception as failure:
            got = Phrase(f"{type(failure).__name__}: {failure}")
            raise invalid(self.what, f"values for every non-negative matrix ({self.k}, n)", got) from failure
        endless = ~np.isfinite(values) & (matrix > 0).all(axis=0)
        if endless.any():
            raise invalid(self.what, "finite values where no entry is zero", np.inf, first_column(matrix, endless))
        return values

    def refuse(self, expected: str, got: str, matrix: Array, is_invalid: Any) -> None:
        """Raise `InvalidInput` where `is_invalid`, (criteria, n) or (n,), is true for a column of `matrix`."""
        if np.any(is_invalid):
            raise invalid(self.what, expected, Phrase(got), first_column(matrix, is_invalid))

    def alone(self) -> None:
        """Check that a column's value depends on that column alone, and is 0 for a column of zeros."""
        expected = "a function of each column alone"
        permutation = self.rng.permutation(self.base.shape[1])
        permuted_values = self.values_at(self.base[:, permutation])
        differs = self.differ(permuted_values, self.values[:, permutation])
        self.refuse(expected, "another value for the same columns in another order", self.base[:, permutation], differs)
        indices = np.unique(np.linspace(0, self.base.shape[1] - 1, 24).astype(int))
        for place in indices:
            single = self.values_at(self.base[:, place : place + 1])
            differs = self.differ(single, self.values[:, place : place + 1])
            self.refuse(expected, "another value for a column by itself", self.base[:, place : place + 1], differs)
        zeros = np.zeros((self.k, 1))
        largest_value = float(np.abs(self.values_at(zeros)).max())
        if not largest_value <= PROBED_VALUE * self.size:
            raise invalid(self.what, "0 at a column of zeros, as the function is positively homogeneous", largest_value)

    def differ(self, a: Array, b: Array, scale: float = 1.0) -> Any:
        """Return True where values differ by more than rounding, in units of `scale`."""
        is_equal = (a == b) | (np.abs(a - b) <= PROBED_VALUE * (np.abs(a) + np.abs(b)) + 1e-12 * self.size * scale)
        return ~is_equal

    def homogeneous(self) -> None:
        """Check that a multiple of a column has that multiple of its value, at every scale."""
        expected = "a positively homogeneous function, mu(c q) = c mu(q)"
        indices = self.rng.permutation(self.base.shape[1])[:64]
        matrix, values = self.base[:, indices], self.values[:, indices]
        for scale in SCALES:
            # Together with the same columns at scale one, so that a function of the largest entry is found, too.
            scaled_values = self.values_at(np.hstack([matrix * scale, matrix]))[:, : len(indices)]
            differs = self.differ(scaled_values, values * scale, scale)
            if differs.any():
                j, n = (int(place[0]) for place in np.nonzero(differs))
                got = f"mu(c q) = {scaled_values[j, n]:.9g} for c mu(q) = {values[j, n] * scale:.9g}, c = {scale:.6g}"
                self.refuse(expected, got, matrix, differs)
        mild = (matrix >= 1e-6).all(axis=0)
        for scale in EXTREME_SCALES:
            scaled_values = np.asarray(self.utility.columns(matrix[:, mild] * scale), dtype=np.float64)
            ends = values[:, mild] * scale
            is_out_of_range = ~np.isfinite(scaled_values) if scale > 1 else np.abs(scaled_values) <= np.abs(ends)
            differs = self.differ(scaled_values, ends, scale) & ~is_out_of_range
            self.refuse(expected, f"another value at c = {scale:g}", matrix[:, mild], differs)

    def convex(self, ratios: Sequence[float] = ()) -> None:
        """Check that the value of a mixture is at most the mixture of values, also along whole segments."""
        base = self.sample(ratios) if ratios else self.base
        values = self.values_at(base) if ratios else self.values
        n, rng = base.shape[1], self.rng
        for shift in (0.0, 0.0, 0.0, 1.0, 3.0, 6.0):
            first, second = rng.permutation(n), rng.permutation(n)
            share = rng.random(n) if shift else np.full(n, 0.5)
            low, high = share, (1 - share) * 10.0 ** (shift * rng.uniform(-1, 1, n))
            mixture = base[:, first] * low + base[:, second] * high
            chord = values[:, first] * low + values[:, second] * high
            self.under(mixture, self.values_at(mixture), chord)
        ends = rng.permutation(n)[
            : 2 * int(np.clip(ENTRIES_PER_BATCH // (self.k * POINTS_PER_SEGMENT), 2, 24))
        ].reshape(2, -1)
        ends = np.hstack([ends, [[0] * 4, rng.permutation(n)[:4]]])  # from the constant column, too
        even = np.linspace(0.0, 1.0, POINTS_PER_SEGMENT)
        steep = np.concatenate(
            [np.geomspace(1e-9, 0.5, POINTS_PER_SEGMENT // 2), 1 - np.geomspace(0.5, 1e-9, POINTS_PER_SEGMENT // 2)[1:]]
        )
        for place, (first, second) in enumerate(ends.T):
            share = np.unique(steep) if place % 3 == 2 else even
            line = base[:, [first]] * (1 - share) + base[:, [second]] * share
            line_values = self.values_at(line)
            for step in (1, 3, 9, 27, 81):
                left, right = share[: -2 * step], share[2 * step :]
                weight = (right - share[step:-step]) / (right - left)
                chord = weight * line_values[:, : -2 * step] + (1 - weight) * line_values[:, 2 * step :]
                self.under(line[:, step:-step], line_values[:, step:-step], chord)

    def under(self, matrix: Array, values: Array, chord: Array) -> None:
        """Refuse values that are above the chord through two other columns."""
        margin = PROBED_SHAPE * (np.abs(values) + np.abs(chord)) + 1e-13 * self.size * matrix.max(axis=0)
        is_above = np.isfinite(chord) & ~(values <= chord + margin)
        if is_above.any():
            j, n = (int(place[0]) for place in np.nonzero(is_above))
            got = f"{values[j, n]:.9g} above the chord, {chord[j, n]:.9g}, between two others"
            self.refuse("a convex function", got, matrix[:, n:], is_above[:, n:])

    def touched(self) -> None:
        """Check that gradients touch the function at columns without zeros, and are nowhere above it."""
        name, inner = f"gradients of {self.name}", (self.base >= 1e-6).all(axis=0)
        indices = self.rng.permutation(np.flatnonzero(inner))[: int(np.clip(ENTRIES_PER_BATCH // self.k, 8, 120))]
        matrix = self.base[:, indices]
        for scale in (1.0, 1e-3, 10.0):
            gradients = self.slopes(matrix * scale)
            linear_values = np.einsum("jnk,kn->jn", gradients, matrix)
            size = np.einsum("jnk,kn->jn", np.abs(gradients), matrix) + np.abs(self.values[:, indices])
            differs = np.abs(linear_values - self.values[:, indices]) > PROBED_TANGENT * size + 1e-12 * self.size
            if differs.any():
                j, n = (int(place[0]) for place in np.nonzero(differs))
                got = Phrase(f"{linear_values[j, n]:.6g} at the column where mu is {self.values[j, indices][n]:.6g}")
                raise invalid(
                    name, "a linear function that touches mu at its column", got, first_column(matrix, differs)
                )
            for j, tangents in enumerate(gradients):
                tangent_values = tangents @ self.base
                margin = PROBED_TANGENT * (np.abs(tangents) @ self.base + np.abs(self.values[j])) + 1e-12 * self.size
                is_above = tangent_values > self.values[j] + margin
                if is_above.any():
                    n, m = (int(place[0]) for place in np.nonzero(is_above))
                    expected = "a linear function that is nowhere above mu"
                    got = Phrase(
                        f"that of {first_column(matrix, np.arange(len(indices)) == n)}, "
                        f"which is {tangent_values[n, m]:.6g} "
                        f"where mu is {self.values[j, m]:.6g},"
                    )
                    raise invalid(name, expected, got, first_column(self.base, is_above[n]))

    def slopes(self, matrix: Array) -> Array:
        """Compute gradients at columns, (criteria, n, k)."""
        try:
            return self.gradients(self.utility, matrix)
        except InvalidInput:
            raise
        except Exception as failure:
            expected = f"gradients at every positive matrix ({self.k}, n)"
            got = Phrase(f"{type(failure).__name__}: {failure}")
            raise invalid(f"gradients of {self.name}", expected, got) from failure

    def disclosed(self) -> None:
        """Check that `value_without_privacy` is at least the value of full disclosure, and that more is better."""
        if self.utility.error:
            raise invalid(f"utility {self.name}", "one of which more is better (error = False)", Phrase("error = True"))
        stated_value = self.utility.value_without_privacy
        if self.k > ENTRIES_PER_BATCH // self.k:
            return
        value = float(self.values_at(np.eye(self.k)).sum(axis=1).min())
        if not stated_value >= value and not stated_value >= value - PROBED_VALUE * abs(value) - 1e-12 * self.size:
            raise invalid(
                f"value_without_privacy of {self.name}",
                f"at least {value:.9g}, the value of full disclosure",
                stated_value,
            )

    @property
    def channels(self) -> list[Channel]:
        """A few channels of all types: random ones, and erasures of the answer."""
        k, rng = self.k, self.rng
        matrices = [rng.dirichlet(np.full(m, share), k) for m in (1, 2, 3, 5) for share in (0.2, 1.0, 30.0)]
        disclosure = np.eye(k) if k * k <= ENTRIES_PER_BATCH else np.ones((k, 1))
        matrices += [np.hstack([(1 - erasure) * disclosure, np.full((k, 1), erasure)]) for erasure in (0.0, 0.1, 0.9)]
        return [Channel(matrix) for matrix in matrices]

    def summed(self) -> None:
        """Check that the value of a channel is the least sum over its columns."""
        for channel in self.channels:
            value, column_sum = (
                float(self.utility.value(channel)),
                float(self.values_at(channel.matrix).sum(axis=1).min()),
            )
            if self.differ(np.array(value), np.array(column_sum)):
                raise invalid(f"value of {self.name}", f"the least sum of columns, {column_sum:.9g}", value)

    def enclosed(self) -> None:
        """Check that `enclosed_columns` encloses `columns`, to the accuracy of floats."""
        matrix, values = self.base, self.values
        base = matrix.min(axis=0)
        enclosure = self.utility.enclosed_columns(FLOAT.of(base), FLOAT.of(matrix) - FLOAT.of(base)[None, :])
        lower, upper = np.broadcast_to(enclosure.lower, values.shape), np.broadcast_to(enclosure.upper, values.shape)
        margin = PROBED_VALUE * np.abs(values) + 1e-12 * self.size
        is_outside = ~((values >= lower - margin) & (values <= upper + margin))
        if is_outside.any():
            name = f"enclosed_columns of {self.name}"
            got = Phrase("an interval without it")
            raise invalid(name, "intervals that hold the values of `columns`", got, first_column(matrix, is_outside))

    def named_as(self) -> None:
        """Check the values of a utility that is declared a mutual information or a comparison of distributions."""
        comparisons: Callable[[], Any] | None = None
        matrix = self.base
        if self.utility.information:
            prior = np.asarray(self.utility.prior)
            mean = prior @ matrix
            ratio = np.where(matrix > 0, matrix / np.where(mean > 0, mean, 1.0), 1.0)
            self.same("mutual information", np.atleast_2d(prior @ (matrix * np.log(ratio))))
        if (comparisons := getattr(self.utility, "compared", None)) is not None:
            sums = np.zeros((comparisons.criteria, matrix.shape[1]))
            for term in comparisons.terms:
                first, second = (comparisons.laws[place] @ matrix for place in (term.first, term.second))
                sums[term.criterion] += term.weight * np.asarray(term.f.excess(first, second))
            self.same("comparison of laws", sums)
        if (pair := self.utility.pair) is not None:
            p0, p1 = (np.asarray(p) for p in pair)
            self.same("divergence of two laws", np.atleast_2d(self.utility.f.excess(p0 @ matrix, p1 @ matrix)))

    def same(self, name: str, others: Array) -> None:
        """Refuse values that differ from those of the declared utility."""
        differs = np.broadcast_to(others.shape != self.values.shape, self.values.shape)
        if not differs.any():
            differs = self.differ(self.values, others)
        self.refuse(f"the values of the {name} that it says it is", "others", self.base, differs)

    def contracting(self) -> None:
        """Check a utility that is declared to contract against the Dobrushin coefficient of channels.

        Its value is at most this coefficient times `value_without_privacy`.
        """
        full_value = float(self.utility.value_without_privacy)
        if not self.utility.contracts or not np.isfinite(full_value):
            return
        for channel in self.channels:
            q = channel.matrix
            total_variation = max((float(np.abs(row - q).sum(axis=1).max()) / 2 for row in q), default=0.0)
            value = float(self.values_at(q).sum(axis=1).min())
            if not value <= total_variation * full_value * (1 + PROBED_VALUE) + 1e-12 * self.size:
                got = Phrase(f"{value:.6g} of a channel with total variation {total_variation:.6g}")
                raise invalid(f"contracts of {self.name}", f"values of at most {total_variation * full_value:.6g}", got)

    def made_of_parts(self) -> None:
        """Check that the bound of the parts is at least the utility itself."""
        parts = self.utility.parts()
        if not parts:
            return
        for channel in self.channels:
            bound = self.utility.from_parts([float(part.value(channel)) for part in parts], FLOAT)
            value = float(self.utility.value(channel))
            if not value <= float(bound.upper) * (1 + PROBED_VALUE) + 1e-12 * self.size:
                raise invalid(f"parts of {self.name}", f"a bound of at least {value:.9g}", float(bound.upper))
