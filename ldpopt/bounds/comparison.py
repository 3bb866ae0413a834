"""The exact optimum beside every published bound, for the answers' distributions in two populations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from ldpopt.bounds.published import (
    CONTRACTED,
    asoodeh_zhang,
    binary_share,
    binary_share_ghazi_issa,
    binary_share_kairouz,
    dobrushin,
    duchi_jordan_wainwright,
    erased_share,
    ghazi_issa,
    ghazi_issa_corollary,
    ghazi_issa_total_variation,
    jeffreys_of_total_variation,
    kairouz_oh_viswanath,
)
from ldpopt.deadline import UNLIMITED, Deadline, Progress, watched
from ldpopt.design import Constraint, Design, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.divergences import JEFFREYS, KL, REVERSE_KL, TOTAL_VARIATION
from ldpopt.mechanisms import binary
from ldpopt.results import Pictured, Result


@dataclass(frozen=True, eq=False)
class BoundRow(Result):
    """One bound beside the optimum that it bounds, both in the unit of the divergence.

    optimum, upper_bound, certified : the value and the proved upper bound of the designed channel, between which the
        true optimum lies, and whether they are close enough.
    above : True if the bound lies above the optimum, False if it lies below. value : the bound, possibly inf.

    >>> from ldpopt.bounds import compare
    >>> row = compare([0.9, 0.1], [0.4, 0.6], 1.0).rows[0]
    >>> row.divergence, round(row.looseness, 6)
    ('total variation', 1.0)
    """

    divergence: str
    reference: str
    above: bool
    value: float
    optimum: float
    upper_bound: float
    certified: bool

    @property
    def looseness(self) -> float:
        """The factor by which the bound is off: value / optimum, or optimum / value for a lower bound; 1 is tight."""
        large, small = (self.value, self.optimum) if self.above else (self.optimum, self.value)
        return large / small if small > 0 else (1.0 if large == 0 else math.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Pictured):
    """The rows of `compare`, by divergence, with the designs behind them.

    >>> len(compare([0.9, 0.1], [0.4, 0.6], 1.0))
    50
    """

    epsilon: float
    eta: float
    rows: tuple[BoundRow, ...]
    designs: tuple[Design, ...]

    _picture, _limit = "bounds", 100

    def _columns(self) -> dict[str, list[Any]]:
        names = [field.name for field in fields(BoundRow)] + ["looseness"]
        return {name: [getattr(row, name) for row in self.rows] for name in names}

    def _cells(self) -> list[tuple[str, list[str]]]:
        heads = ("divergence", "optimum", "", "bound", "times off", "source")
        signs = {True: "≤", False: "≥"}
        rows = [
            (r.divergence, f"{r.optimum:.6g}", signs[r.above], f"{r.value:.6g}", f"{r.looseness:.4g}", r.reference)
            for r in self.rows
        ]
        return [(head, list(column)) for head, column in zip(heads, zip(*rows, strict=True), strict=True)]

    def _title(self) -> str:
        return f"Bounds at epsilon {self.epsilon:g}, eta {self.eta:g}"

    def __iter__(self) -> Iterator[BoundRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        lines = [self._title()]
        shown = ""
        for row in self.rows:
            if row.divergence != shown:
                shown = row.divergence
                proved = "" if row.certified else f" (at most {row.upper_bound:.6g})"
                lines.append(f"{shown}: optimum {row.optimum:.6g}{proved}")
            sign = "<=" if row.above else ">="
            lines.append(f"  {sign} {row.value:<12.6g} {row.looseness:>9.4g} times off  {row.reference}")
        return "\n".join(lines)


def compare(
    p0: Any,
    p1: Any,
    epsilon: float,
    eta: float | None = None,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Comparison:
    """The exact optimum beside every bound of this package, for every divergence for which there is a bound.

    p0, p1 : distributions of the answers in the two populations, shape (k,).
    epsilon : nats. eta : limit on the total variation, in [0, 1], or None for no limit; a value above tanh(epsilon/2)
        limits nothing [GI, Prop 2].
    time_limit : in seconds, for all optima together. progress : as for `optimal_channel`.

    Bounds that use only epsilon or only eta are compared with the optimum under both limits, which they bound, too. The
    optima are designed one after another, in less than a second each for k up to a few hundred. Raises `InvalidInput`
    for values out of range.

    >>> table = compare([0.9, 0.1], [0.4, 0.6], 1.0, 0.3)
    >>> loosest = max(table, key=lambda row: row.looseness)
    >>> loosest.divergence, loosest.reference, round(loosest.looseness, 2)
    ('KL divergence', '[KOV14, Thm 7], from the binary mechanism', 42.59)
    """
    epsilon, limits = positive_epsilon(epsilon), limits_of(epsilon, eta)
    eta = limits[1].bound if len(limits) > 1 else math.tanh(epsilon / 2)
    rows: list[BoundRow] = []
    designs = []
    divergences = (TOTAL_VARIATION, *CONTRACTED)
    with watched(time_limit, progress) as deadline:
        for at, f in enumerate(divergences):
            turn = deadline.turn(at, len(divergences))
            utility = Divergence(f, p0, p1)
            design = optimal_channel(utility, limits, **turn.part(0.0, 0.7).passed)
            designs.append(design)
            rows += [
                BoundRow(f.name, reference, above, value, design.value, design.upper_bound, design.certified)
                for reference, above, value in published(utility, epsilon, eta, deadline=turn.part(0.7, 1.0))
            ]
    return Comparison(epsilon, eta, tuple(rows), tuple(designs))


def limits_of(epsilon: float, eta: float | None) -> list[Constraint]:
    """The constraints of epsilon and eta; a cap that epsilon implies [GI, Prop 2], or none, is left out."""
    pure = LocalDP(positive_epsilon(epsilon))
    if eta is None or unit_interval(eta, "eta") >= math.tanh(pure.epsilon / 2):
        return [pure]
    return [pure, TotalVariation(eta)]


def published(
    utility: Divergence, epsilon: float, eta: float, pure: float | None = None, deadline: Deadline = UNLIMITED
) -> Iterator[tuple[str, bool, float]]:
    """(reference, whether it lies above the optimum, value) of every bound on the optimum of `utility`.

    eta : at most tanh(epsilon/2). pure : the optimum under epsilon alone; it is computed if it is None.
    """
    f, p0, p1 = utility.f, utility.p0, utility.p1
    if pure is None:
        pure = optimal_channel(utility, LocalDP(epsilon), certify=False, **deadline.passed).value
    if f is TOTAL_VARIATION:
        yield "[KOV14, Thm 6; GI, Thm 4]", True, kairouz_oh_viswanath(p0, p1, epsilon)
        yield "[GI, Thm 5]", True, ghazi_issa_total_variation(p0, p1, eta)
    if any(f is relative for relative in (KL, REVERSE_KL, JEFFREYS)):  # both KL divergences are below Jeffreys
        yield "[DJW, Thm 1; GI, Thm 6]", True, duchi_jordan_wainwright(p0, p1, epsilon)
        yield "[GI, Cor 2]", True, ghazi_issa_corollary(p0, p1, epsilon)
        yield "[GI, Thm 7]", True, ghazi_issa(p0, p1, epsilon, eta)
        yield "best constant [SPR]", True, jeffreys_of_total_variation(p0, p1, epsilon, eta)
    if any(f is contracted for contracted in CONTRACTED):
        reached = utility.value(binary(p0, p1, epsilon))
        if f is KL:
            yield "[KOV14, Thm 7], from the binary mechanism", True, reached / binary_share_kairouz(epsilon)
            yield "[GI, VII-B1], from the binary mechanism", True, reached / binary_share_ghazi_issa(epsilon)
        yield "best share [SPR], from the binary mechanism", True, reached / binary_share(epsilon)
        yield "[AZ, Thm 1]", True, asoodeh_zhang(f, p0, p1, epsilon)
    yield "[Dobrushin]", True, dobrushin(f, p0, p1, eta)
    yield "[GI, Thm 8]", False, erased_share(epsilon, eta) * pure
