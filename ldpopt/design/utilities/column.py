"""Utilities that are sums over outputs of convex, homogeneous functions of the column, or the worst of several.

    U(Q) = min over criteria j of  sum_y mu_j(Q[:, y])

See `base` for the use of such a utility.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.utilities.base import ColumnUtility, Utility, columns_of, gradients_of
from ldpopt.design.utilities.divergence import Divergence, enclosed_divergences, tangents
from ldpopt.design.utilities.laws import MarginalComparisons, labeled_distributions, law
from ldpopt.design.work import Work
from ldpopt.divergences import KL, FDivergence
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.errors import Phrase, invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array, number
from ldpopt.values.labels import aligned, vectors


@dataclass(frozen=True, eq=False)
class MutualInformation(ColumnUtility):
    """I(X; Y) in nats between an answer X with distribution `prior`, shape (k,), and its report Y [KOV14, section 4].

    >>> round(MutualInformation([0.5, 0.5]).value([[0.75, 0.25], [0.25, 0.75]]), 9)
    0.130812036
    """

    prior: Any
    inputs: tuple[Label, ...] | None = None
    name = "mutual information"
    contracts = True
    information = True

    def __post_init__(self) -> None:
        (prior,), inputs = labeled_distributions([("prior", self.prior)], self.inputs, min_entries=1)
        if np.count_nonzero(prior) < 2:
            raise invalid("prior", "at least two answers that occur", np.count_nonzero(prior))
        vars(self).update(prior=prior, inputs=inputs)

    @property
    def size(self) -> int:
        """The number k of inputs."""
        return len(self.prior)

    def work(self, channel: Channel) -> Work:
        """Bound the work: a logarithm is taken of every entry."""
        entries = channel.matrix.size
        return super().work(channel) + Work.on(entries, 60.0, 3.0 * entries)

    def _mixture(self, matrix: Array) -> Array:
        """Compute P.s; for a constant column the constant itself, without rounding."""
        base = matrix.min(axis=0)
        return np.asarray(base + self.prior @ (matrix - base))

    def columns(self, matrix: Array) -> Array:
        """Compute mu(s) = sum_x P_x s_x log(s_x / P.s)."""
        mixture = self._mixture(matrix)
        # If only answers that never occur lead to an output, its probability is 0, and so is its contribution.
        has_mass = (matrix > 0) & (self.prior > 0)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            relative_difference = (matrix - mixture) / mixture
            # Far below the mixture, the difference from it has lost the entry.
            logs = np.where(relative_difference > -0.9, np.log1p(relative_difference), np.log(matrix) - np.log(mixture))
            terms = np.where(has_mass, matrix * logs, 0.0)
        return np.atleast_2d(self.prior @ terms)

    def gradients(self, matrix: Array) -> Array:
        """Compute d mu / d s_x = P_x log(s_x / P.s)."""
        mixture = np.maximum(self._mixture(matrix), 1e-300)
        logs = np.log(np.maximum(matrix / mixture, 1e-12))
        return np.asarray((self.prior[:, None] * logs).T[None])

    def enclosed_columns(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """Enclose sum_x P_x times the excess of s_x log(s_x / m) above its tangent at the mean m = P.s."""
        has_mass = self.prior > 0
        prior, rise = law(self.prior, base.arithmetic)[has_mass], rise[has_mass]
        mean = prior @ rise
        return (prior @ enclosed_excess(KL, rise - mean[None, :], (base + mean)[None, :]))[None, :]

    @property
    def value_without_privacy(self) -> float:
        """The entropy of the prior."""
        positive_prior = self.prior[self.prior > 0]
        return float(-(positive_prior * np.log(positive_prior)).sum())

    def enclosed_value_without_privacy(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the entropy of the prior."""
        positive_prior = law(self.prior, arithmetic)[self.prior > 0]
        return -(positive_prior * positive_prior.log()).sum()


@dataclass(frozen=True, eq=False)
class WorstOf(ColumnUtility):
    """The least D_f(M0 || M_j) over several alternatives P_j, for a test that must distinguish P0 from each of them.

    M0 and M_j are the distributions of the report under P0 and P_j.

    f : an `FDivergence`. p0 : distribution of shape (k,). others : the alternatives, distributions of shape (k,).
    inputs : labels of the k answers.

    >>> from ldpopt.divergences import KL
    >>> u = WorstOf(KL, [0.6, 0.3, 0.1], [[0.3, 0.6, 0.1], [0.3, 0.3, 0.4]])
    >>> u.value(np.eye(3)) == min(each.value_without_privacy for each in u.each)
    True
    """

    f: FDivergence
    p0: Any
    others: Any
    inputs: tuple[Label, ...] | None = None
    contracts = True

    def __post_init__(self) -> None:
        if not len(self.others):
            raise invalid("others", "at least one alternative", "none")
        others = vectors(self.others)
        distributions_by_name = [("p0", self.p0), *((f"alternative {index}", p) for index, p in enumerate(others))]
        (p0, *alternatives), inputs = aligned(distributions_by_name, self.inputs)
        parts = tuple(Divergence(self.f, p0, p, inputs) for p in alternatives)
        alternatives_matrix = np.stack([part.p1 for part in parts])
        vars(self).update(each=parts, p0=parts[0].p0, others=alternatives_matrix, inputs=parts[0].inputs)

    each: tuple[Divergence, ...] = field(init=False, default=())

    @property
    def size(self) -> int:
        """The number k of inputs."""
        return len(self.each[0].p0)

    @property
    def name(self) -> str:
        """The name of the utility, with the divergence whose worst case counts."""
        return f"worst {self.f.name}"

    @property
    def compared(self) -> MarginalComparisons:
        """One comparison per criterion."""
        return MarginalComparisons.from_terms((j, 1.0, part.f, part.p0, part.p1) for j, part in enumerate(self.each))

    def columns(self, matrix: Array) -> Array:
        """Compute the values, (alternatives, n), one row per alternative."""
        return np.stack([part.f.excess(part.p0 @ matrix, part.p1 @ matrix) for part in self.each])

    def gradients(self, matrix: Array) -> Array:
        """Compute the tangents at the ratio of each column, (alternatives, n, k)."""
        return np.stack([tangents(part.f, part.p0, part.p1, matrix) for part in self.each])

    def enclosed_columns(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """Enclose the values, (alternatives, n)."""
        return base.arithmetic.concatenate([part.enclosed_columns(base, rise) for part in self.each])

    @property
    def value_without_privacy(self) -> float:
        """The least divergence of the distributions themselves."""
        return min(part.value_without_privacy for part in self.each)

    def parts(self) -> Sequence[Utility]:
        """List each divergence alone."""
        return self.each

    def from_parts(self, bounds: Sequence[float], arithmetic: Arithmetic) -> Enclosure:
        """Return the least of the bounds."""
        return arithmetic.of(min(bounds))


@dataclass(frozen=True, eq=False)
class WeightedSum(ColumnUtility):
    """sum_i weight_i utility_i of divergences and mutual informations over the same inputs.

    weights : (n,) numbers >= 0, not all zero. utilities : n column utilities with one criterion each.

    >>> both = WeightedSum([1.0, 2.0], [MutualInformation([0.5, 0.5]), MutualInformation([0.8, 0.2])])
    >>> round(both.value(np.eye(2)), 6)
    1.693952
    """

    weights: Sequence[float]
    utilities: Sequence[Any]

    def __post_init__(self) -> None:
        weights = tuple(number(w, "weight", "a non-negative number") for w in self.weights)
        if len(weights) != len(self.utilities) or not weights or min(weights) < 0 or sum(weights) <= 0:
            raise invalid("weights", "one non-negative number a utility, not all zero", weights)
        for part in self.utilities:
            if not isinstance(part, ColumnUtility) or part.continuous:
                expected = "column utilities such as Divergence and MutualInformation"
                raise invalid("utilities", expected, type(part).__name__)
        if len(sizes := {part.size for part in self.utilities}) != 1:
            raise invalid("utilities", "as many inputs in each", sorted(sizes))
        if len({len(columns_of(part, np.ones((part.size, 1)))) for part in self.utilities}) != 1:
            raise invalid("utilities", "one criterion each", "utilities that are the worst of several")
        stated_inputs = [part.inputs for part in self.utilities if part.inputs is not None]
        if any(labels != stated_inputs[0] for labels in stated_inputs):
            raise invalid("utilities", "the same inputs in the same order in each", Phrase("different ones"))
        labels = stated_inputs[0] if stated_inputs else None
        contracts = all(part.contracts for part in self.utilities)
        vars(self).update(weights=weights, utilities=tuple(self.utilities), inputs=labels, contracts=contracts)

    inputs: tuple[Label, ...] | None = field(init=False, default=None)

    @property
    def size(self) -> int:
        """The number k of inputs."""
        return int(self.utilities[0].size)

    @property
    def name(self) -> str:
        """The names of the parts with their weights, joined by plus signs."""
        return " + ".join(f"{w:g} {part.name}" for w, part in self._weighted)

    @property
    def compared(self) -> MarginalComparisons | None:
        """The comparisons of all parts; None if one of them depends on more than the marginals."""
        parts = [(weight, part.compared) for weight, part in self._weighted]
        if any(compared is None for weight, compared in parts if weight > 0):
            return None
        return MarginalComparisons.from_terms(
            (0, weight * term.weight, term.f, compared.laws[term.first], compared.laws[term.second])
            for weight, compared in parts
            if compared is not None
            for term in compared.terms
        )

    @property
    def _weighted(self) -> list[tuple[float, Any]]:
        """The parts, each with its weight."""
        return list(zip(self.weights, self.utilities, strict=True))

    def columns(self, matrix: Array) -> Array:
        """Compute the weighted sum of the parts' columns."""
        return np.asarray(sum(w * columns_of(part, matrix) for w, part in self._weighted))

    def gradients(self, matrix: Array) -> Array:
        """Compute the weighted sum of the parts' gradients."""
        return np.asarray(sum(w * gradients_of(part, matrix) for w, part in self._weighted))

    @property
    def value_without_privacy(self) -> float:
        """The weighted sum of the parts' utilities without any privacy."""
        return float(sum(w * part.value_without_privacy for w, part in self._weighted if w > 0))

    def enclosed_columns(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """Enclose the weighted sum of the parts' columns.

        Divergences of one f are enclosed together, as they may be many.
        """
        divergences: dict[Any, list[tuple[float, Divergence]]] = {}
        sums: list[Enclosure] = []
        for weight, part in self._weighted:
            if type(part) is Divergence:
                divergences.setdefault(part.f, []).append((weight, part))
            else:
                sums.append(part.enclosed_columns(base, rise) * weight)
        for group in divergences.values():
            remaining_weights = np.array([weight for weight, _ in group])
            for values in enclosed_divergences([part for _, part in group], base, rise):
                sums.append(_sum_of_rows(values * remaining_weights[: values.shape[0], None])[None, :])
                remaining_weights = remaining_weights[values.shape[0] :]
        total: Enclosure = reduce(operator.add, sums)
        return total

    def parts(self) -> Sequence[Utility]:
        """List each utility alone."""
        return tuple(self.utilities)

    def from_parts(self, bounds: Sequence[float], arithmetic: Arithmetic) -> Enclosure:
        """Return the weighted sum of the bounds."""
        total = arithmetic.of(0.0)
        for weight, bound in zip(self.weights, bounds, strict=True):
            total = total + arithmetic.of(bound) * weight if weight > 0 else total
        return total


MAX_SUMMANDS = 64  # Numbers added at once: the rounding error of a sum grows with their number.


def _sum_of_rows(values: Enclosure) -> Enclosure:
    """Sum the first axis of (parts, n), a few at a time, (n,)."""
    while (parts := values.shape[0]) > MAX_SUMMANDS:
        starts = range(0, parts, MAX_SUMMANDS)
        values = values.arithmetic.stack([values[start : start + MAX_SUMMANDS].sum(axis=0) for start in starts])
    total: Enclosure = values.sum(axis=0)
    return total
