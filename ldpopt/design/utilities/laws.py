"""Hypotheses as exact laws, and utilities that compare the laws of the report under a few of them.

Floats that sum to one only up to rounding stand for the law that is proportional to them. Differences of the two laws
are computed without cancellation.

`Compared` is a utility of the marginals alone: weighted sums of divergences between the masses of a column.

    mu_j(s) = sum over terms of criterion j of  weight f-divergence(P_i.s, P_l.s)

With n laws P_i, the masses of a column s are P_i.s. The utility is a convex and homogeneous function of these n
numbers, however many inputs there are.
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
from ldpopt.values.labels import Label, distinct_labels, together


def f_divergence(f: Any, what: str) -> FDivergence:
    """The f-divergence that a utility is given, also by its name; `InvalidInput` for anything else."""
    if isinstance(f, str):
        return parse_divergence(f)
    if not isinstance(f, FDivergence):
        raise invalid(f"divergence {what}", "an FDivergence such as ldpopt.divergences.KL, or its name", f)
    return f


def labelled_laws(
    named: Sequence[tuple[str, Any]], inputs: Any, least: int = 2
) -> tuple[list[Array], tuple[Label, ...] | None]:
    """Distributions on the same answers, with their names in errors, and the labels of the answers, if any."""
    given, labels = together(named, inputs)
    laws = [distribution(p, name) for (name, _), p in zip(named, given, strict=True)]
    for (name, _), p in zip(named, laws, strict=True):
        if len(p) != len(laws[0]):
            raise invalid(name, f"{len(laws[0])} entries, as many as {named[0][0]}", len(p))
    if len(laws[0]) < least:
        raise invalid(named[0][0], f"at least {least} entries", len(laws[0]))
    return laws, None if labels is None else distinct_labels(labels, len(laws[0]), "inputs")


@dataclass(frozen=True, eq=False)
class Laws:
    """Two laws on k inputs, enclosed: `p0`, `p1` and `apart` = p0 - p1, shape (k,) each; of many pairs (pairs, k)."""

    p0: Enclosure
    p1: Enclosure
    apart: Enclosure

    @classmethod
    def of(cls, p0: Array, p1: Array, arithmetic: Arithmetic) -> Laws:
        """The laws proportional to two arrays of floats, (k,) or (pairs, k) each."""
        first, second = arithmetic.of(p0), arithmetic.of(p1)
        # p / T = p - p (T - 1)/T, with T - 1 exact: a difference of 1e-9 keeps its digits.
        off = [_sums_above_one(p, arithmetic) for p in (p0, p1)]
        law0, law1 = first - first * off[0], second - second * off[1]
        return cls(law0, law1, first - second - (first * off[0] - second * off[1]))

    def take(self, order: Index) -> Laws:
        """The masses of the inputs in `order`, in this order."""
        return Laws(self.p0[order], self.p1[order], self.apart[order])


def _sums_above_one(p: Array, arithmetic: Arithmetic) -> Enclosure:
    """(T - 1)/T for the sum T of each law, to broadcast against the laws."""
    if p.ndim == 1:
        return arithmetic.of(1 - 1 / exact_sum(p))
    return arithmetic.stack([1 - 1 / exact_sum(one) for one in p])[:, None]


def law(p: Array, arithmetic: Arithmetic) -> Enclosure:
    """The law proportional to an array (k,) of floats, enclosed."""
    return arithmetic.of(p) * arithmetic.of(1 / exact_sum(p))


@dataclass(frozen=True, eq=False)
class Comparison:
    """One term: `weight` times the divergence `f` of law number `first` from law number `second`."""

    criterion: int
    weight: float
    f: FDivergence
    first: int
    second: int


@dataclass(frozen=True, eq=False)
class Compared:
    """A utility with that many `criteria`, which compares the marginals of `laws`: arrays (k,), no two of them alike.
    terms : the comparisons that the criteria are sums of.
    """

    laws: tuple[Array, ...]
    terms: tuple[Comparison, ...]
    criteria: int

    @classmethod
    def of(cls, given: Iterable[tuple[int, float, FDivergence, Array, Array]]) -> Compared:
        """Made of terms (criterion, weight, f, first law, second law); terms of weight zero are left out."""
        listed = list(given)
        laws: dict[bytes, tuple[int, Array]] = {}

        def number(law: Array) -> int:
            own = np.asarray(law, dtype=np.float64) + 0.0  # -0.0 is 0.0
            return laws.setdefault(own.tobytes(), (len(laws), own))[0]

        terms = tuple(Comparison(j, weight, f, number(p), number(q)) for j, weight, f, p, q in listed if weight != 0)
        return cls(tuple(own for _, own in laws.values()), terms, max((term[0] + 1 for term in listed), default=0))
