"""What a user's own column utility promises, tried at a few thousand columns when it is made.

A proof prices the extreme columns that the constraints leave, and speaks of all columns because mu is positively
homogeneous and convex. For a utility of a user's own that is a promise. Its functions are evaluated here at fixed
columns of every shape: constant ones, two-valued ones, random ones over many scales, on faces of the cone and near
them, with ties. A utility that breaks a promise there is refused, with the property and the place. What holds at the
probes is not proved; `kernel.certificate.believed` says so beside every verdict.
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

ENTRIES = 60_000  # About how many entries one batch of probes has
SCALES = sorted(map(float, {*(10.0 ** np.arange(-60, 13, 4)), *(1.7 * 10.0 ** np.linspace(-12, 12, 49))}),
                key=lambda scale: abs(np.log(scale)))  # fmt: skip
"""The multiples of columns at which homogeneity is probed, the plainest first."""
FAR = 10.0 ** np.array([-280.0, -200, -120, 120, 200, 280])
"""Multiples at which squares and ratios may leave the range of floats, which is no fault of the utility."""
LINE = 513  # The points at which each segment between two columns is looked at
SHOWN = 6  # The most entries of a column that a message shows


def first_column(matrix: Array, wrong: Any) -> str:
    """The first column of a matrix (k, n) at which something is `wrong`, (criteria, n) or (n,), in words."""
    column = matrix[:, int(np.argmax(np.atleast_2d(wrong).any(axis=0)))]
    rest = ", ..." if len(column) > SHOWN else ""
    return f"the column ({', '.join(f'{x:.6g}' for x in column[:SHOWN])}{rest})"


Checked = Callable[[Any, Array], Array]
"""From a utility and a matrix to what its function returns, checked to be numbers of the right shape."""


def probe(utility: Any, columns: Checked, gradients: Checked, ratios: Sequence[float] = ()) -> None:
    """Try the promises of a column utility. Raises `InvalidInput`, which names the property and the column.

    columns, gradients : the utility's functions, checked. ratios : the largest ratios e^epsilon of entries of a column,
    in whose range alone the convexity is probed; () for all promises.
    """
    Probes(utility, columns, gradients).run(ratios)


class Probes:
    """The probes of one utility: the columns, their values, and what each promise asks of them."""

    def __init__(self, utility: Any, columns: Checked, gradients: Checked) -> None:
        self.columns, self.gradients = columns, gradients
        self.utility, self.name, self.k = utility, utility.name, int(utility.size)
        self.what = f"columns of {self.name}"
        self.rng = np.random.default_rng(20)  # fixed, so that a utility is refused always or never
        self.count = int(np.clip(ENTRIES // (8 * self.k), 16, 400))
        with np.errstate(all="ignore"):
            self.base = self.sample(())
            self.values = self.at(self.base)
            finite = np.abs(self.values[np.isfinite(self.values)])
            self.size = float(finite.max(initial=0.0)) or 1.0
            """The largest value at a probe, in units of which the rounding of others is judged."""

    def run(self, ratios: Sequence[float]) -> None:
        """All promises in turn, or for given ratios convexity within them alone."""
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
        """(k, n) columns with a largest entry of one; of two values a ratio apart alone where ratios are given."""
        k, rng, n = self.k, self.rng, self.count
        inside = rng.random((k, n)) < rng.random(n)
        inside[:, : min(k, n // 2)] = np.eye(k, dtype=bool)[:, : min(k, n // 2)]
        steps = ratios or np.exp([1e-6, 1e-3, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 6.0, 12.0, 30.0])
        stairs = np.where(inside, 1.0, 1 / np.resize(steps, n))
        if ratios:
            mixed = stairs @ rng.dirichlet(np.full(n, 3.0 / n), n).T
            return np.hstack([np.ones((k, 1)), stairs, mixed / mixed.max(axis=0)])
        spread = np.resize([1e-9, 1e-6, 1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 40.0, 200.0], n)
        rough = np.exp(-spread * rng.random((k, n)))
        faces = np.where(rng.random((k, n)) < 0.3, 0.0, rough)
        nearly = np.where(rng.random((k, n)) < 0.3, 1e-280, rough)
        tied = np.exp(np.round(np.log(rough) / np.maximum(spread, 1e-12) * 2) * spread / 2)
        whole = np.hstack([np.ones((k, 1)), np.eye(k)[:, :n], inside.astype(float), stairs, rough, faces, nearly, tied])
        whole = whole[:, whole.max(axis=0) > 0]
        return np.asarray(whole / whole.max(axis=0))

    def at(self, matrix: Array) -> Array:
        """(criteria, n) values at columns. Raises `InvalidInput` for anything but numbers, finite between the faces."""
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

    def refuse(self, expected: str, got: str, matrix: Array, wrong: Any) -> None:
        """Raise `InvalidInput` where `wrong`, (criteria, n) or (n,), is true for a column of `matrix`."""
        if np.any(wrong):
            raise invalid(self.what, expected, Phrase(got), first_column(matrix, wrong))

    def alone(self) -> None:
        """A column's value depends on that column alone; that of a column of zeros is 0."""
        expected = "a function of each column alone"
        chosen = self.rng.permutation(self.base.shape[1])
        again = self.at(self.base[:, chosen])
        off = self.far(again, self.values[:, chosen])
        self.refuse(expected, "another value for the same columns in another order", self.base[:, chosen], off)
        few = np.unique(np.linspace(0, self.base.shape[1] - 1, 24).astype(int))
        for place in few:
            single = self.at(self.base[:, place : place + 1])
            off = self.far(single, self.values[:, place : place + 1])
            self.refuse(expected, "another value for a column by itself", self.base[:, place : place + 1], off)
        zeros = np.zeros((self.k, 1))
        found = float(np.abs(self.at(zeros)).max())
        if not found <= PROBED_VALUE * self.size:
            raise invalid(self.what, "0 at a column of zeros, as the function is positively homogeneous", found)

    def far(self, a: Array, b: Array, scale: float = 1.0) -> Any:
        """Where values differ by more than rounding, in units of `scale`."""
        same = (a == b) | (np.abs(a - b) <= PROBED_VALUE * (np.abs(a) + np.abs(b)) + 1e-12 * self.size * scale)
        return ~same

    def homogeneous(self) -> None:
        """Twice the column is worth twice as much, at every scale."""
        expected = "a positively homogeneous function, mu(c q) = c mu(q)"
        few = self.rng.permutation(self.base.shape[1])[:64]
        matrix, values = self.base[:, few], self.values[:, few]
        for scale in SCALES:
            # Together with the same columns at scale one, so that a function of the largest entry is found, too.
            scaled = self.at(np.hstack([matrix * scale, matrix]))[:, : len(few)]
            off = self.far(scaled, values * scale, scale)
            if off.any():
                j, n = (int(place[0]) for place in np.nonzero(off))
                got = f"mu(c q) = {scaled[j, n]:.9g} for c mu(q) = {values[j, n] * scale:.9g}, c = {scale:.6g}"
                self.refuse(expected, got, matrix, off)
        mild = (matrix >= 1e-6).all(axis=0)
        for scale in FAR:
            scaled = np.asarray(self.utility.columns(matrix[:, mild] * scale), dtype=np.float64)
            ends = values[:, mild] * scale
            lost = ~np.isfinite(scaled) if scale > 1 else np.abs(scaled) <= np.abs(ends)
            off = self.far(scaled, ends, scale) & ~lost
            self.refuse(expected, f"another value at c = {scale:g}", matrix[:, mild], off)

    def convex(self, ratios: Sequence[float] = ()) -> None:
        """The value of a mixture is at most the mixture of values: of two columns, and along whole segments."""
        base = self.sample(ratios) if ratios else self.base
        values = self.at(base) if ratios else self.values
        n, rng = base.shape[1], self.rng
        for shift in (0.0, 0.0, 0.0, 1.0, 3.0, 6.0):
            first, second = rng.permutation(n), rng.permutation(n)
            share = rng.random(n) if shift else np.full(n, 0.5)
            low, high = share, (1 - share) * 10.0 ** (shift * rng.uniform(-1, 1, n))
            mixture = base[:, first] * low + base[:, second] * high
            chord = values[:, first] * low + values[:, second] * high
            self.under(mixture, self.at(mixture), chord)
        ends = rng.permutation(n)[: 2 * int(np.clip(ENTRIES // (self.k * LINE), 2, 24))].reshape(2, -1)
        ends = np.hstack([ends, [[0] * 4, rng.permutation(n)[:4]]])  # from the constant column, too
        even = np.linspace(0.0, 1.0, LINE)
        steep = np.concatenate([np.geomspace(1e-9, 0.5, LINE // 2), 1 - np.geomspace(0.5, 1e-9, LINE // 2)[1:]])
        for place, (first, second) in enumerate(ends.T):
            share = np.unique(steep) if place % 3 == 2 else even
            line = base[:, [first]] * (1 - share) + base[:, [second]] * share
            along = self.at(line)
            for step in (1, 3, 9, 27, 81):
                left, right = share[: -2 * step], share[2 * step :]
                weight = (right - share[step:-step]) / (right - left)
                chord = weight * along[:, : -2 * step] + (1 - weight) * along[:, 2 * step :]
                self.under(line[:, step:-step], along[:, step:-step], chord)

    def under(self, matrix: Array, values: Array, chord: Array) -> None:
        """Refuse values that are above the chord through two other columns."""
        room = PROBED_SHAPE * (np.abs(values) + np.abs(chord)) + 1e-13 * self.size * matrix.max(axis=0)
        above = np.isfinite(chord) & ~(values <= chord + room)
        if above.any():
            j, n = (int(place[0]) for place in np.nonzero(above))
            got = f"{values[j, n]:.9g} above the chord, {chord[j, n]:.9g}, between two others"
            self.refuse("a convex function", got, matrix[:, n:], above[:, n:])

    def touched(self) -> None:
        """At columns without zeros, gradients touch the function, and they are nowhere above it."""
        what, inner = f"gradients of {self.name}", (self.base >= 1e-6).all(axis=0)
        few = self.rng.permutation(np.flatnonzero(inner))[: int(np.clip(ENTRIES // self.k, 8, 120))]
        matrix = self.base[:, few]
        for scale in (1.0, 1e-3, 10.0):
            gradients = self.slopes(matrix * scale)
            reached = np.einsum("jnk,kn->jn", gradients, matrix)
            size = np.einsum("jnk,kn->jn", np.abs(gradients), matrix) + np.abs(self.values[:, few])
            off = np.abs(reached - self.values[:, few]) > PROBED_TANGENT * size + 1e-12 * self.size
            if off.any():
                j, n = (int(place[0]) for place in np.nonzero(off))
                got = Phrase(f"{reached[j, n]:.6g} at the column where mu is {self.values[j, few][n]:.6g}")
                raise invalid(what, "a linear function that touches mu at its column", got, first_column(matrix, off))
            for j, tangents in enumerate(gradients):
                below = tangents @ self.base
                room = PROBED_TANGENT * (np.abs(tangents) @ self.base + np.abs(self.values[j])) + 1e-12 * self.size
                above = below > self.values[j] + room
                if above.any():
                    n, m = (int(place[0]) for place in np.nonzero(above))
                    expected = "a linear function that is nowhere above mu"
                    got = Phrase(
                        f"that of {first_column(matrix, np.arange(len(few)) == n)}, which is {below[n, m]:.6g} "
                        f"where mu is {self.values[j, m]:.6g},"
                    )
                    raise invalid(what, expected, got, first_column(self.base, above[n]))

    def slopes(self, matrix: Array) -> Array:
        """(criteria, n, k) gradients at columns."""
        try:
            return self.gradients(self.utility, matrix)
        except InvalidInput:
            raise
        except Exception as failure:
            expected = f"gradients at every positive matrix ({self.k}, n)"
            got = Phrase(f"{type(failure).__name__}: {failure}")
            raise invalid(f"gradients of {self.name}", expected, got) from failure

    def disclosed(self) -> None:
        """`unprivate` is no less than the value of full disclosure, and more of the utility is better."""
        if self.utility.error:
            raise invalid(f"utility {self.name}", "one of which more is better (error = False)", Phrase("error = True"))
        stated = self.utility.unprivate
        if self.k > ENTRIES // self.k:
            return
        value = float(self.at(np.eye(self.k)).sum(axis=1).min())
        if not stated >= value and not stated >= value - PROBED_VALUE * abs(value) - 1e-12 * self.size:
            raise invalid(f"unprivate of {self.name}", f"at least {value:.9g}, the value of full disclosure", stated)

    @property
    def channels(self) -> list[Channel]:
        """A few channels of all kinds: random ones, and erasures of the answer."""
        k, rng = self.k, self.rng
        made = [rng.dirichlet(np.full(m, share), k) for m in (1, 2, 3, 5) for share in (0.2, 1.0, 30.0)]
        whole = np.eye(k) if k * k <= ENTRIES else np.ones((k, 1))
        made += [np.hstack([(1 - erased) * whole, np.full((k, 1), erased)]) for erased in (0.0, 0.1, 0.9)]
        return [Channel(matrix) for matrix in made]

    def summed(self) -> None:
        """The value of a channel is the least sum over its columns."""
        for channel in self.channels:
            value, own = float(self.utility.value(channel)), float(self.at(channel.matrix).sum(axis=1).min())
            if self.far(np.array(value), np.array(own)):
                raise invalid(f"value of {self.name}", f"the least sum of columns, {own:.9g}", value)

    def enclosed(self) -> None:
        """`enclosed_columns` encloses `columns`, to the accuracy of floats."""
        matrix, values = self.base, self.values
        base = matrix.min(axis=0)
        found = self.utility.enclosed_columns(FLOAT.of(base), FLOAT.of(matrix) - FLOAT.of(base)[None, :])
        lower, upper = np.broadcast_to(found.lower, values.shape), np.broadcast_to(found.upper, values.shape)
        room = PROBED_VALUE * np.abs(values) + 1e-12 * self.size
        off = ~((values >= lower - room) & (values <= upper + room))
        if off.any():
            what = f"enclosed_columns of {self.name}"
            got = Phrase("an interval without it")
            raise invalid(what, "intervals that hold the values of `columns`", got, first_column(matrix, off))

    def named_as(self) -> None:
        """A utility that says that it is a mutual information, or a comparison of laws, has the values of that."""
        compared: Callable[[], Any] | None = None
        matrix = self.base
        if self.utility.information:
            prior = np.asarray(self.utility.prior)
            mean = prior @ matrix
            ratio = np.where(matrix > 0, matrix / np.where(mean > 0, mean, 1.0), 1.0)
            self.same("mutual information", np.atleast_2d(prior @ (matrix * np.log(ratio))))
        if (compared := getattr(self.utility, "compared", None)) is not None:
            sums = np.zeros((compared.criteria, matrix.shape[1]))
            for term in compared.terms:
                first, second = (compared.laws[place] @ matrix for place in (term.first, term.second))
                sums[term.criterion] += term.weight * np.asarray(term.f.excess(first, second))
            self.same("comparison of laws", sums)
        if (pair := self.utility.pair) is not None:
            p0, p1 = (np.asarray(p) for p in pair)
            self.same("divergence of two laws", np.atleast_2d(self.utility.f.excess(p0 @ matrix, p1 @ matrix)))

    def same(self, what: str, others: Array) -> None:
        """Refuse values other than those of the utility that this one says that it is."""
        off = np.broadcast_to(others.shape != self.values.shape, self.values.shape)
        if not off.any():
            off = self.far(self.values, others)
        self.refuse(f"the values of the {what} that it says it is", "others", self.base, off)

    def contracting(self) -> None:
        """A utility that says that it contracts keeps at most the Dobrushin coefficient's share of `unprivate`."""
        whole = float(self.utility.unprivate)
        if not self.utility.contracts or not np.isfinite(whole):
            return
        for channel in self.channels:
            q = channel.matrix
            apart = max((float(np.abs(row - q).sum(axis=1).max()) / 2 for row in q), default=0.0)
            value = float(self.at(q).sum(axis=1).min())
            if not value <= apart * whole * (1 + PROBED_VALUE) + 1e-12 * self.size:
                got = Phrase(f"{value:.6g} of a channel with total variation {apart:.6g}")
                raise invalid(f"contracts of {self.name}", f"values of at most {apart * whole:.6g}", got)

    def made_of_parts(self) -> None:
        """What the parts bound is no less than the utility itself."""
        parts = self.utility.parts()
        if not parts:
            return
        for channel in self.channels:
            bound = self.utility.from_parts([float(part.value(channel)) for part in parts], FLOAT)
            value = float(self.utility.value(channel))
            if not value <= float(bound.upper) * (1 + PROBED_VALUE) + 1e-12 * self.size:
                raise invalid(f"parts of {self.name}", f"a bound of at least {value:.9g}", float(bound.upper))
