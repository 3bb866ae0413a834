"""Hypotheses as exact distributions, and utilities that compare the distributions of the report under a few of them.

Floats that sum to one only up to rounding represent the distribution that is proportional to them. Differences of the
two distributions are computed without cancellation.

`MarginalComparisons` is a utility of the marginals alone: weighted sums of divergences between the masses of a column.

    mu_j(s) = sum over terms of criterion j of  weight f-divergence(P_i.s, P_l.s)

With n distributions P_i, the masses of a column s are P_i.s. The utility is a convex and homogeneous function of these
n numbers, for any number of inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.divergences import FDivergence, parse_divergence
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, Index, distribution
from ldpopt.values.labels import Label, aligned, distinct_labels


def f_divergence(f: Any, name: str) -> FDivergence:
    """Return an f-divergence, also from its name; raise `InvalidInput` for anything else."""
    if isinstance(f, str):
        return parse_divergence(f)
    if not isinstance(f, FDivergence):
        raise invalid(f"divergence {name}", "an FDivergence such as ldpopt.divergences.KL, or its name", f)
    return f


def labeled_distributions(
    distributions_by_name: Sequence[tuple[str, Any]], inputs: Any, min_entries: int = 2
) -> tuple[list[Array], tuple[Label, ...] | None]:
    """Check distributions on the same answers, and return them with the labels of the answers, if any.

    distributions_by_name : their names in errors, and the distributions.
    """
    vectors, labels = aligned(distributions_by_name, inputs)
    laws = [distribution(p, name) for (name, _), p in zip(distributions_by_name, vectors, strict=True)]
    for (name, _), p in zip(distributions_by_name, laws, strict=True):
        if len(p) != len(laws[0]):
            raise invalid(name, f"{len(laws[0])} entries, as many as {distributions_by_name[0][0]}", len(p))
    if len(laws[0]) < min_entries:
        raise invalid(distributions_by_name[0][0], f"at least {min_entries} entries", len(laws[0]))
    return laws, None if labels is None else distinct_labels(labels, len(laws[0]), "inputs")


@dataclass(frozen=True, eq=False)
class LawPair:
    """Two distributions on k inputs, enclosed: `p0`, `p1` and `difference` = p0 - p1, (k,) each; of many pairs (pairs,
    k).
    """

    p0: Enclosure
    p1: Enclosure
    difference: Enclosure

    @classmethod
    def from_floats(cls, p0: Array, p1: Array, arithmetic: Arithmetic) -> LawPair:
        """Enclose the distributions proportional to two arrays of floats, (k,) or (pairs, k) each."""
        first, second = arithmetic.of(p0), arithmetic.of(p1)
        # p / T = p - p (T - 1)/T, with T - 1 exact: a difference of 1e-9 keeps its digits.
        sums_above_one = [_sums_above_one(p, arithmetic) for p in (p0, p1)]
        law0, law1 = first - first * sums_above_one[0], second - second * sums_above_one[1]
        return cls(law0, law1, first - second - (first * sums_above_one[0] - second * sums_above_one[1]))

    def take(self, order: Index) -> LawPair:
        """Return the masses of the inputs in `order`, in this order."""
        return LawPair(self.p0[order], self.p1[order], self.difference[order])


def _sums_above_one(p: Array, arithmetic: Arithmetic) -> Enclosure:
    """Compute (T - 1)/T for the sum T of each distribution, to broadcast against the distributions."""
    if p.ndim == 1:
        return arithmetic.of(1 - 1 / exact_sum(p))
    return arithmetic.stack([1 - 1 / exact_sum(masses) for masses in p])[:, None]


def law(p: Array, arithmetic: Arithmetic) -> Enclosure:
    """Enclose the distribution proportional to an array (k,) of floats."""
    return arithmetic.of(p) * arithmetic.of(1 / exact_sum(p))


@dataclass(frozen=True, eq=False)
class Comparison:
    """One term: `weight` times the divergence `f` of distribution number `first` from number `second`."""

    criterion: int
    weight: float
    f: FDivergence
    first: int
    second: int


@dataclass(frozen=True, eq=False)
class MarginalComparisons:
    """A utility with that many `criteria`, which compares the marginals of `laws`: distinct arrays (k,).

    terms : the comparisons whose sums are the criteria.
    """

    laws: tuple[Array, ...]
    terms: tuple[Comparison, ...]
    criteria: int

    @classmethod
    def from_terms(cls, criterion_terms: Iterable[tuple[int, float, FDivergence, Array, Array]]) -> MarginalComparisons:
        """Build it from terms (criterion, weight, f, first, second distribution); zero weights are omitted."""
        terms_with_weights = list(criterion_terms)
        laws: dict[bytes, tuple[int, Array]] = {}

        def number(law: Array) -> int:
            masses = np.asarray(law, dtype=np.float64) + 0.0  # -0.0 is 0.0
            return laws.setdefault(masses.tobytes(), (len(laws), masses))[0]

        terms = tuple(
            Comparison(j, weight, f, number(p), number(q)) for j, weight, f, p, q in terms_with_weights if weight != 0
        )
        return cls(
            tuple(distribution for _, distribution in laws.values()),
            terms,
            max((term[0] + 1 for term in terms_with_weights), default=0),
        )
