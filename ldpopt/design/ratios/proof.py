"""The certificate of the ratio-labeled program, for every constraint that has a column form.

The program has one output, called a label, per likelihood ratio; here a label is an interval of ratios.
On it the divergence lies below its chord c_i, which is linear in the column. For row multipliers lambda and supports
u_i of the constraints (`constraints.terms`), weak duality gives, for every feasible channel,

    D_f <= sum lambda + charges + max over columns of sum_i (c_i - lambda - u_i).q_i .

Everything but lambda and the multipliers of the constraints is recomputed here from the problem itself.

`LossDual` is the same for an expected loss, with one column for each decision.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.design.constraints.base import (
    ColumnConstraint,
    Constraint,
    implied,
    least_spread,
    pairs_of,
    plain_caps,
    variation_cap,
)  # fmt: skip
from ldpopt.design.constraints.terms import Term
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.hypotheses import Classes, Rays, likelihood_ratio_order
from ldpopt.design.kernel.numbers import (
    Unproved,
    expect,
    expect_each,
    mixture,
    position,
    positions,
    printed_length,
    real_array,
    require,
)  # fmt: skip
from ldpopt.design.ratios.proof_chords import (
    End,
    Gains,
    enclosed_chords,
    enclosed_residual,
    open_chords,
    open_sides,
    rays,
)  # fmt: skip
from ldpopt.design.utilities.decisions import ExpectedLoss
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.laws import LawPair, law
from ldpopt.design.work import Work, count_numbers
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array, Index
from ldpopt.values.results import ByValue


@dataclass(frozen=True, eq=False)
class TermMultiplier(ByValue):
    """The multiplier `values` of some `pairs` of the constraints' term number `term`, in the form of that term."""

    term: int
    pairs: Index
    values: Array


@dataclass(frozen=True, eq=False, repr=False)
class ColumnDual(Certificate):
    """Multipliers of a program with linear utilities above the true one, for constraints in column form.

    - `rows` : (k,) multipliers of the row sums.
    - `multipliers` : those of the terms of the constraints, which are numbered in the constraints' order.
    - `posed` : the constraints of these terms, each implied by a constraint of the design; None for the constraints of
      the design themselves.
    """

    rows: Array
    multipliers: tuple[TermMultiplier, ...]
    posed: tuple[Constraint, ...] | None = field(default=None, kw_only=True)

    @property
    def inputs(self) -> Sequence[Label]:
        """The inputs of the row multipliers."""
        labels: Sequence[Label] = self.utility.labels
        return labels

    @abstractmethod
    def gains(self, spread: Enclosure | None, arithmetic: Arithmetic) -> Sequence[Gains]:
        """Return one or several choices of linear utilities; each has one above the true utility at every column.

        spread : a cap on the log-ratio of any two entries of a column, None if there is none.
        """

    def used(self) -> tuple[ColumnConstraint, ...]:
        """Return the constraints of the design that have a column form, which the proof may use."""
        return tuple(c for c in self.constraints if isinstance(c, ColumnConstraint))

    def work(self) -> Work:
        """Bound the work to subtract prices from gains for each input and label, in each choice of tangents."""
        k, cells = self.answers, float(self.labels) * self.answers
        has_ratio_cap = plain_caps(self.constraints)[0] < math.inf
        gains = cells * (1 if has_ratio_cap else self.choices)
        price_work = Work.on(cells, 20.0 * (1 + printed_length(self.multipliers))) + Work.on(gains, 20.0)
        return price_work + Work.on(gains, 60.0).in_floats + pairs_of(self.used(), k)

    @property
    def labels(self) -> int:
        """An upper bound on the number of labels."""
        return max(count_numbers(getattr(self, "knots", ())), self.channel.shape[1] if self.channel else 1)

    @property
    def choices(self) -> int:
        """An upper bound on the number of choices of linear utilities."""
        return 1

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute sum lambda, the charges of the constraints, and the gains beyond the prices, for the best choice."""
        input_labels = self.inputs
        least_spread_bound = least_spread(self.used(), input_labels, arithmetic)
        gains = self.gains(least_spread_bound, arithmetic)
        row_multipliers = arithmetic.of(real_array(self.rows, (len(input_labels),), "the multipliers of the rows"))
        constraint_terms = self._terms(input_labels)
        prices, sums, bound = self._enclosed_prices(
            self.multipliers, constraint_terms, row_multipliers, len(gains[0].sums)
        )
        bounds = [bound + gain.charge + self._unpaid(gain, prices, sums, least_spread_bound) for gain in gains]
        for gain, multipliers in self.shared(least_spread_bound, constraint_terms, arithmetic):
            prices, sums, bound = self._enclosed_prices(multipliers, constraint_terms, row_multipliers, len(gain.sums))
            bounds.append(bound + self._unpaid(gain, prices, sums, least_spread_bound))
        return min(bounds, key=lambda enclosed: float(enclosed.upper))

    def _unpaid(self, gains: Gains, prices: Enclosure, sums: Enclosure, spread: Enclosure | None) -> float:
        """Bound the gains of channels beyond the prices of their columns."""
        variation = variation_cap(self.used(), prices.arithmetic)
        return enclosed_residual(gains.values - prices, gains.sums - sums, spread, variation)

    def shared(
        self, spread: Enclosure | None, terms: Sequence[Term], arithmetic: Arithmetic
    ) -> Iterator[tuple[Gains, Sequence[TermMultiplier]]]:
        """Generate further choices, each with separate multipliers; none by default."""
        return iter(())

    def _enclosed_prices(
        self, multipliers: Sequence[TermMultiplier], terms: Sequence[Term], row_multipliers: Enclosure, labels: int
    ) -> tuple[Enclosure, Enclosure, Enclosure]:
        """Return the prices (labels, k) of the columns' entries, their sums (labels,), and their part of the bound."""
        arithmetic, bound = row_multipliers.arithmetic, row_multipliers.sum()
        prices, sums = row_multipliers + arithmetic.zeros((labels, 1)), bound + arithmetic.zeros(labels)
        for multiplier in expect_each(multipliers, TermMultiplier, "the multipliers of the constraints"):
            term = _selected_pairs(terms, multiplier)
            if term.pure:
                continue
            support, support_sums = term.enclosed_support(multiplier.values, labels, len(row_multipliers), arithmetic)
            prices, sums = prices + support, sums + support_sums
            bound = bound + term.enclosed_charge(multiplier.values, labels, arithmetic)
        return prices, sums, bound

    def _terms(self, inputs: Sequence[Label]) -> list[Term]:
        """List the terms in the order of the multipliers."""
        used_constraints = self.used()
        if self.posed is None:
            return [term for c in used_constraints for term in c.columns(inputs)]
        stated_constraints = expect(self.posed, tuple, "the constraints that the multipliers are for")
        column_constraints = [c for c in stated_constraints if isinstance(c, ColumnConstraint)]
        for constraint in column_constraints:
            require(
                implied(used_constraints, constraint), f"no constraint of the design says as much as {constraint!r}"
            )
        return [term for c in column_constraints for term in c.columns(inputs)]


def _selected_pairs(terms: Sequence[Term], multiplier: TermMultiplier) -> Any:
    """Return the pairs of the term of a multiplier; pure LDP is not divided."""
    term = terms[position(multiplier.term, len(terms), "the term of a multiplier")]
    return term if term.pure else term.take(positions(multiplier.pairs, -1, len(term), "the pairs of a multiplier"))


@dataclass(frozen=True, eq=False, repr=False)
class IntervalDual(ColumnDual):
    """Multipliers of the ratio-labeled program, checked on every interval of likelihood ratios.

    - `classes` : (k,) integers: inputs of one class have exactly equal likelihood ratios and are merged, which keeps
      the optimum where all inputs are treated alike; None for the inputs themselves.
    - `knots` : (n+1,) posteriors P0/(P0+P1), increasing, that cut the ratios into intervals; in place of the first and
      the last, the ends of all ratios that an output can have are computed.
    """

    proves = Divergence
    classes: Index | None
    knots: Array

    @property
    def rounding_margin(self) -> float:
        """The rounding margin: slopes of chords are rounded, on narrow intervals by more, and differently by another
        processor.
        """
        return 2.0**-36 + min(2.0**-30, 2.0**-50 * float(np.ptp(self.knots) / np.diff(self.knots).min()))

    @property
    def argument(self) -> str:
        """The reason why the bound is valid."""
        intervals = max(0, printed_length(self.knots) - 1)
        return f"weak duality of the ratio-labelled program on {intervals} intervals of ratios"

    @property
    def inputs(self) -> Sequence[Label]:
        """The inputs, or the numbers of their classes."""
        return super().inputs if self.classes is None else range(self._merged.count)

    @property
    def choices(self) -> int:
        """One for each cut that is tried, at each end where a divergence may be infinite."""
        return int(16 ** sum(bool((np.asarray(p) == 0).any()) for p in self.utility.pair or ()))

    def used(self) -> tuple[ColumnConstraint, ...]:
        """Return the constraints that the proof may use; for merged inputs, those that treat all inputs equally."""
        return tuple(c for c in super().used() if self.classes is None or c.symmetric)

    def gains(self, spread: Enclosure | None, arithmetic: Arithmetic) -> Sequence[Gains]:
        """Return the chords of the divergence."""
        laws, cut = self._rays(spread, arithmetic)
        return enclosed_chords(self.finite.f, laws, cut, np.asarray(self.knots), self.used())

    def shared(
        self, spread: Enclosure | None, terms: Sequence[Term], arithmetic: Arithmetic
    ) -> Iterator[tuple[Gains, Sequence[TermMultiplier]]]:
        """Generate multipliers for a divergence that is infinite at ratio 0 or infinity; none if it is finite at both.

        Beyond the first and the last cut the multipliers of moments pay for it (`End`).
        """
        laws, cut = self._rays(spread, arithmetic)
        f, multipliers = self.finite.f, list(self.multipliers)
        sides = open_sides(f, cut)
        if not sides:
            return
        gains = open_chords(f, laws, cut)
        moment_terms = [
            (number, term, np.stack([part.astype(float) for part in term.checked(multiplier.values, len(gains.sums))]))
            for number, multiplier in enumerate(multipliers)
            if (term := _selected_pairs(terms, multiplier)).conic
        ]
        for is_mirrored in sides:
            end = End.from_knots(f, laws.p0, laws.p1, np.asarray(self.knots), is_mirrored)
            choice = (
                None
                if end is None
                else end.choose_multipliers(moment_terms, np.asarray(self.rows, dtype=np.float64), arithmetic)
            )
            if end is None or choice is None:
                return
            values = np.asarray(multipliers[choice.number].values)
            values = np.concatenate([values[:, values[1] != end.label], choice.cuts], axis=1)
            multipliers[choice.number] = replace(multipliers[choice.number], values=values)
            is_end_label = np.arange(len(gains.sums)) == end.label
            gains = Gains(
                arithmetic.where(
                    is_end_label[:, None], choice.values + arithmetic.zeros(gains.values.shape), gains.values
                ),
                arithmetic.where(is_end_label, choice.values.sum(), gains.sums),
                gains.charge,
            )
        yield gains, tuple(multipliers)

    def _rays(self, spread: Enclosure | None, arithmetic: Arithmetic) -> tuple[LawPair, Rays]:
        """Return the hypotheses on the classes, and the rays that cut the ratios."""
        p0, p1 = self._masses()
        laws = LawPair.from_floats(p0, p1, arithmetic)
        cut = rays(laws, likelihood_ratio_order(p0, p1).tolist(), self.knots, spread, arithmetic)
        return (laws if self.classes is None else self._merged.laws(p0, p1, arithmetic)), cut

    @cached_property
    def _merged(self) -> Classes:
        return Classes.checked(self.classes, *self._masses())

    def _masses(self) -> tuple[Array, Array]:
        if self.utility.pair is None:
            raise Unproved(f"{self.utility.name} is not a divergence of two hypotheses")
        p0, p1 = self.utility.pair
        return np.asarray(p0), np.asarray(p1)


@dataclass(frozen=True, eq=False, repr=False)
class LossDual(ColumnDual):
    """Multipliers of the linear program of an expected loss, with one column for each decision.

    weights : (priors,) non-negative, not all zero: the mixture of the priors whose loss is bounded.
    """

    proves = ExpectedLoss
    weights: Array
    argument = "linear-programming duality, one column a decision"

    def gains(self, spread: Enclosure | None, arithmetic: Arithmetic) -> tuple[Gains]:
        """Return minus the loss of every decision under the mixture of the priors, whose loss is at most the worst."""
        priors = self.utility.priors
        shares = mixture(self.weights, (len(priors),), "the weights of the priors", "the priors", arithmetic)
        mean = shares @ arithmetic.stack([law(prior, arithmetic) for prior in priors])
        values = -(mean * self.utility.loss.T)
        return (Gains(values, values.sum(axis=1), arithmetic.zeros(())),)
