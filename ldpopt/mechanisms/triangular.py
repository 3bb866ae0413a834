"""The triangular model: neither of two statements, or at least one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.errors import invalid
from ldpopt.mechanisms.survey_design import Law, SurveyDesign, open_unit, population


@dataclass(frozen=True)
class Triangular(SurveyDesign):
    """Is at least one true of the sensitive attribute and of an independent one of known prevalence p? [Crosswise].

    p in (0, 1). Those who have the attribute always report ``"at least one"``, so ``"neither"`` rules it out: epsilon
    is infinite at every p, and the design protects by its eta = 1 - p alone. Raises `InvalidInput` otherwise.

    >>> design = Triangular(0.25)
    >>> design.epsilon, round(design.eta, 6), round(design.variance(0.1, 100), 6)
    (inf, 0.75, 0.0039)
    """

    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", open_unit(self.p, "p"))

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Self:
        """No p gives a finite epsilon: raises `InvalidInput` that says so."""
        epsilon = positive_epsilon(epsilon)
        raise invalid("epsilon of a triangular design", "inf, at every p: use for_total_variation", epsilon)

    @classmethod
    def for_total_variation(cls, eta: float) -> Self:
        """The design with p = 1 - eta, to the private side, eta in (0, 1)."""
        eta = unit_interval(eta, "eta")
        p = 1 - open_unit(eta, "eta")
        while (design := cls(p)).eta > eta:
            p += 2.0**-52
        return design

    reports = ("at least one", "neither")

    @property
    def laws(self) -> tuple[Law, Law]:
        """(1, 0) and (p, 1 - p)."""
        p = Fraction(self.p)
        return (Fraction(1), Fraction(0)), (p, 1 - p)

    def variance(self, prevalence: float, n: int) -> float:
        """pi (1 - pi)/n + p (1 - pi)/(n (1 - p)) [Crosswise]."""
        share, n = population(prevalence, n)
        return (1 - share) * (share + self.p / (1 - self.p)) / n


triangular = Triangular
