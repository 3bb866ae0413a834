"""Two populations -> the exact optimum beside every published bound and textbook mechanism [GI, section VII]."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, NamedTuple, overload

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
from ldpopt.design import Constraint, Design, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import JEFFREYS, KL, REVERSE_KL, TOTAL_VARIATION
from ldpopt.errors import invalid
from ldpopt.mechanisms import binary, randomized_response, subset_selection, truncated_geometric
from ldpopt.privacy import total_variation
from ldpopt.values.deadline import Deadline, Progress, watched
from ldpopt.values.distribution import nonnegative, one_or_several, positive_epsilon, unit_interval
from ldpopt.values.results import Pictured, Result, Rows


@dataclass(frozen=True, eq=False)
class BoundRow(Result):
    """One bound beside the optimum that it bounds, both in the unit of the divergence.

    epsilon, eta : the limits. optimum, upper_bound, certified : the value and the
        proved upper bound of the designed channel, between which the true optimum lies, and whether they are close.
    reference : where the bound is from, or the name of a mechanism. above : True if the bound lies above the optimum,
        False if it lies below, as what a mechanism keeps. value : the bound, possibly inf.

    >>> from ldpopt.bounds import compare
    >>> row = compare([0.9, 0.1], [0.4, 0.6], 1.0).rows[0]
    >>> row.divergence, round(row.looseness, 6)
    ('total variation', 1.0)
    """

    epsilon: float
    eta: float
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
class Comparison(Rows[BoundRow], Pictured):
    """The rows of `compare`, by divergence, with the designs behind them.

    >>> len(compare([0.9, 0.1], [0.4, 0.6], 1.0))
    50
    """

    rows: tuple[BoundRow, ...]
    designs: tuple[Design, ...]

    _picture, _limit = "bounds", 100
    _named = (*(field.name for field in fields(BoundRow)), "looseness")

    @property
    def limits(self) -> list[tuple[float, float]]:
        """The compared (epsilon, eta), in the order asked."""
        return list(dict.fromkeys((row.epsilon, row.eta) for row in self.rows))

    def _cells(self) -> list[tuple[str, list[str]]]:
        heads = ("ε", "η", "divergence", "optimum", "", "bound", "times off", "source")
        signs = {True: "≤", False: "≥"}
        rows = [
            (
                f"{r.epsilon:.4g}",
                f"{r.eta:.4g}",
                r.divergence,
                f"{r.optimum:.6g}",
                signs[r.above],
                f"{r.value:.6g}",
                f"{r.looseness:.4g}",
                r.reference,
            )
            for r in self.rows
        ]
        return [(head, list(column)) for head, column in zip(heads, zip(*rows, strict=True), strict=True)]

    def _title(self) -> str:
        limits = self.limits
        if len(limits) != 1:
            return f"Bounds at {len(limits)} limits (epsilon, eta)"
        return "Bounds at epsilon {:g}, eta {:g}".format(*limits[0])

    def __repr__(self) -> str:
        lines, shown, many = [self._title()], None, len(self.limits) > 1
        for row in self.rows:
            if (row.divergence, row.epsilon, row.eta) != shown:
                shown = row.divergence, row.epsilon, row.eta
                proved = "" if row.certified else f" (at most {row.upper_bound:.6g})"
                where = f" at epsilon {row.epsilon:g}, eta {row.eta:g}" if many else ""
                lines.append(f"{row.divergence}{where}: optimum {row.optimum:.6g}{proved}")
            sign = "<=" if row.above else ">="
            lines.append(f"  {sign} {row.value:<12.6g} {row.looseness:>9.4g} times off  {row.reference}")
        return "\n".join(lines)


@overload
def compare(
    question: Divergence,
    epsilons: Iterable[float] | float,
    etas: Iterable[float | None] | float | None = None,
    /,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Comparison: ...
@overload
def compare(
    p0: Any, p1: Any, epsilon: float, eta: float | None = None,
    *, time_limit: float | None = None, progress: Progress = False,
) -> Comparison: ...  # fmt: skip
def compare(*asked: Any, time_limit: float | None = None, progress: Progress = False, **named: Any) -> Comparison:
    """The exact optimum beside every bound of this package, over (epsilon, eta) or for every divergence with a bound.

    With a question, a `Divergence` of two finite populations (its f may be your own): at every (epsilon, eta), its
    optimum, the textbook mechanisms, erased until they are eta-TV, and every bound that applies. With p0 and p1,
    distributions of shape (k,): the bounds at one (epsilon, eta), for every divergence that has one.

    epsilon, epsilons : nats. eta, etas : limits on the total variation, in [0, 1], or None for no limit; a value above
        tanh(epsilon/2) limits nothing [GI, Prop 2].
    time_limit : in seconds, for all optima together. progress : as for `optimal_channel`.

    Bounds that use only epsilon or only eta are compared with the optimum under both limits, which they bound, too. The
    optima are designed one after another, in less than a second each for k up to a few hundred. Raises `InvalidInput`
    for values out of range.

    >>> table = compare([0.9, 0.1], [0.4, 0.6], 1.0, 0.3)
    >>> loosest = max(table, key=lambda row: row.looseness)
    >>> loosest.divergence, loosest.reference, round(loosest.looseness, 2)
    ('KL divergence', '[KOV14, Thm 7], from the binary mechanism', 42.59)
    >>> grid = compare(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [1.0, 2.0], [0.2, None])
    >>> [round(row.looseness, 3) for row in grid if row.reference == "binary mechanism"]
    [1.156, 1.027, 1.287, 1.15]
    """
    each = _over_limits if asked and isinstance(asked[0], Divergence) else _over_divergences
    with watched(time_limit, progress) as deadline:
        return each(deadline, *asked, **named)


def _over_divergences(deadline: Deadline, p0: Any, p1: Any, epsilon: float, eta: float | None = None) -> Comparison:
    """The bounds at one (epsilon, eta) for every divergence that has one."""
    epsilon, limits = positive_epsilon(epsilon), limits_of(epsilon, eta)
    eta = limits[1].bound if len(limits) > 1 else math.tanh(epsilon / 2)
    return _compared(deadline, [(Divergence(f, p0, p1), epsilon, eta) for f in (TOTAL_VARIATION, *CONTRACTED)], False)


def _over_limits(deadline: Deadline, question: Divergence, epsilons: Any, etas: Any = None) -> Comparison:
    """The bounds and mechanisms of one question at every (epsilon, eta)."""
    if question.continuous:
        raise invalid("question", "a Divergence of finite populations", question)
    grid = [
        (question, positive_epsilon(epsilon), math.tanh(epsilon / 2) if eta is None else unit_interval(eta, "eta"))
        for epsilon in one_or_several(epsilons, "epsilons")
        for eta in ([None] if etas is None else one_or_several(etas, "etas"))
    ]
    if not grid:
        raise invalid("compare", "at least one epsilon and one eta", "none")
    return _compared(deadline, list(dict.fromkeys(grid)), True)


def _compared(deadline: Deadline, asked: list[tuple[Divergence, float, float]], mechanisms: bool) -> Comparison:
    """The rows of questions at (epsilon, eta), with those of mechanisms or without. What depends on epsilon alone, the
    optimum without a cap and the mechanisms, is computed once for each.
    """
    rows: list[BoundRow] = []
    designs: list[Design] = []
    pure: dict[tuple[Divergence, float], tuple[float, list[Kept]]] = {}
    for number, (question, epsilon, eta) in enumerate(asked):
        turn, limits = deadline.turn(number, len(asked)), limits_of(epsilon, eta)
        known = [each for each in designs if each.utility is question and list(each.constraints) == limits]
        designs.append(known[0] if known else optimal_channel(question, limits, **turn.part(0.0, 0.7).passed))
        design, cap = designs[-1], min(eta, math.tanh(epsilon / 2))
        if (question, epsilon) not in pure:
            alone = design  # where no cap binds
            if len(limits) > 1:
                alone = optimal_channel(question, limits[0], certify=False, **turn.part(0.7, 1.0).passed)
            pure[question, epsilon] = alone.value, list(textbook(question, epsilon)) if mechanisms else []
        value, kept = pure[question, epsilon]
        bounds = list(published_bounds(question, epsilon, cap, value))
        for name, those in groupby(kept, lambda each: each.name):
            bounds.append((name, False, max(each.value * min(1.0, cap / each.total_variation) for each in those)))
        optimum = design.value, design.upper_bound, design.certified
        rows += [BoundRow(epsilon, eta, question.f.name, *bound, *optimum) for bound in bounds]
    return Comparison(tuple(rows), tuple(designs))


LISTED_SETS = 4096
"""The most subsets of one size that are reports of subset selection in a comparison."""


class Kept(NamedTuple):
    """What a textbook mechanism keeps. Erased until it is eta-TV, it keeps the share min(1, eta / total variation)."""

    name: str
    value: float
    total_variation: float


def textbook(question: Divergence, epsilon: float) -> Iterator[Kept]:
    """The textbook mechanisms at epsilon, those of one name together."""
    k = question.size
    channels = {
        "binary mechanism": [binary(question.p0, question.p1, epsilon)],
        "randomized response": [randomized_response(k, epsilon)],
        "subset selection, best size": [
            subset_selection(k, epsilon, size) for size in range(1, k) if math.comb(k, size) <= LISTED_SETS
        ],
        "truncated geometric": [truncated_geometric(k, epsilon)],
    }
    for name, those in channels.items():
        for each in those:
            yield Kept(name, question.value(each), total_variation(each).value)


def limits_of(epsilon: float, eta: float | None) -> list[Constraint]:
    """The constraints of epsilon and eta; a cap that epsilon implies [GI, Prop 2], or none, is left out."""
    pure = LocalDP(positive_epsilon(epsilon))
    if eta is None or unit_interval(eta, "eta") >= math.tanh(pure.epsilon / 2):
        return [pure]
    return [pure, TotalVariation(eta)]


def published_bounds(utility: Divergence, epsilon: float, eta: float, pure: float) -> Iterator[tuple[str, bool, float]]:
    """Evaluate every published bound on the optimum of `utility` at one (epsilon, eta), without designing a channel.

    utility : a finite `Divergence`. epsilon : in nats. eta : in [0, 1]; above tanh(epsilon/2) it limits nothing
    [GI, Prop 2]. pure : the optimum under epsilon alone, from which [GI, Thm 8] follows.

    Yields (reference, True where the bound lies above the optimum, value). `compare` shows them with the optimum.
    Raises `InvalidInput` for values out of range.

    >>> from ldpopt.divergences import TOTAL_VARIATION
    >>> question = Divergence(TOTAL_VARIATION, [0.9, 0.1], [0.4, 0.6])
    >>> for source, above, value in published_bounds(question, 1.0, 0.3, pure=0.2311):
    ...     print(source, "<=" if above else ">=", round(value, 4))
    [KOV14, Thm 6; GI, Thm 4] <= 0.2311
    [GI, Thm 5] <= 0.15
    [Dobrushin] <= 0.15
    [GI, Thm 8] >= 0.15
    """
    if not isinstance(utility, Divergence) or utility.continuous:
        raise invalid("utility", "a Divergence of finite populations", utility)
    epsilon, pure = positive_epsilon(epsilon), nonnegative(pure, "pure")
    eta = min(unit_interval(eta, "eta"), math.tanh(epsilon / 2))
    f, p0, p1 = utility.f, utility.p0, utility.p1
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
