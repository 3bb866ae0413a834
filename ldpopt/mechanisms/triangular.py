"""The triangular model: say whether at least one of two statements is true, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.errors import invalid
from ldpopt.mechanisms.survey_design import Law, SurveyDesign, open_unit, population


@dataclass(frozen=True)
class Triangular(SurveyDesign):
    """Is the sensitive statement, or an unrelated one that a share p of people would affirm, true of you? [Crosswise].

    p in (0, 1); the unrelated statement must be independent of the sensitive one. Respondents with the sensitive
    attribute always report ``"at least one"``, so the report ``"neither"`` rules the attribute out. Therefore epsilon
    is infinite at every p, and only eta = 1 - p protects. Raises `InvalidInput` for p out of range.

    >>> design = Triangular(0.25)
    >>> design.epsilon, round(design.eta, 6), round(design.variance(0.1, 100), 6)
    (inf, 0.75, 0.0039)
    """

    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", open_unit(self.p, "p"))

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Self:
        """Always raises `InvalidInput`, because no p gives a finite epsilon."""
        epsilon = positive_epsilon(epsilon)
        raise invalid("epsilon of a triangular design", "inf, at every p: use for_total_variation", epsilon)

    @classmethod
    def for_total_variation(cls, eta: float) -> Self:
        """The design with p = 1 - eta, for eta in (0, 1); p is rounded up, so that eta is not exceeded."""
        eta = unit_interval(eta, "eta")
        p = 1 - open_unit(eta, "eta")
        while (design := cls(p)).eta > eta:
            p += 2.0**-52
        return design

    reports = ("at least one", "neither")

    @property
    def laws(self) -> tuple[Law, Law]:
        """The laws of the two reports: (1, 0) with the attribute, (p, 1 - p) without it."""
        p = Fraction(self.p)
        return (Fraction(1), Fraction(0)), (p, 1 - p)

    def variance(self, prevalence: float, n: int) -> float:
        """The variance pi (1 - pi)/n + p (1 - pi)/(n (1 - p)) of the estimate; pi is the prevalence [Crosswise]."""
        share, n = population(prevalence, n)
        return (1 - share) * (share + self.p / (1 - self.p)) / n


triangular = Triangular
