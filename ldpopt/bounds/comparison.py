"""Two populations: the exact optimum next to every published bound and textbook mechanism [GI, section VII]."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, overload

from ldpopt.bounds.published import (
    CONTRACTED,
    asoodeh_diaz_calmon,
    asoodeh_zhang,
    binary_share,
    binary_share_ghazi_issa,
    binary_share_kairouz,
    bound_by_tests,
    contraction,
    dobrushin,
    duchi_jordan_wainwright,
    erased_share,
    ghazi_issa,
    ghazi_issa_corollary,
    ghazi_issa_total_variation,
    jeffreys_of_total_variation,
    kairouz_oh_viswanath,
    kept_by_binary,
    reach,
)
from ldpopt.bounds.textbook import Kept, textbook
from ldpopt.design import Constraint, Design, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import JEFFREYS, KL, REVERSE_KL, TOTAL_VARIATION
from ldpopt.errors import invalid
from ldpopt.numbers.rounding import ceil_digits, down, up
from ldpopt.numbers.tolerances import CERTIFIED_GAP
from ldpopt.values.deadline import Deadline, Progress, watched
from ldpopt.values.distribution import nonnegative, one_or_several, positive_epsilon, unit_interval
from ldpopt.values.references import REFERENCES, cited
from ldpopt.values.results import Pictured, Result, Rows

UNITS = ("nats", "bits")
BIT = math.log(2)


@dataclass(frozen=True, eq=False)
class BoundRow(Result):
    """One bound and the optimum that it bounds, both in the same unit.

    - `epsilon`, `eta` : the privacy constraints, epsilon in nats; eta is tanh(epsilon/2) where it adds no constraint.
    - `optimum`, `upper_bound` : the value and the proved upper bound of the designed channel; the true optimum lies
      between.
    - `certified` : True if they are close.
    - `reference` : the source of the bound, or the name of a mechanism.
    - `above` : True if the bound lies above the optimum, False if it lies below, as the value of a mechanism does.
    - `value` : the bound, rounded to its side, possibly inf.
    - `unit` : "nats" or "bits" of a divergence with a logarithm; "" of others, which are pure numbers.

    >>> from ldpopt.bounds import compare
    >>> row = compare([0.9, 0.1], [0.4, 0.6], 1.0).rows[0]
    >>> row.divergence, round(row.looseness, 6), row.exact
    ('total variation', 1.0, True)
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
    unit: str = ""

    @property
    def looseness(self) -> float | None:
        """The ratio value / optimum, or optimum / value for a lower bound; 1 is tight.

        None without such a ratio: the bound is infinite, the optimum is 0, or the mechanism preserves nothing.
        """
        if self.value == self.optimum:
            return 1.0
        numerator, denominator = (self.value, self.optimum) if self.above else (self.optimum, self.value)
        factor = numerator / denominator if denominator > 0 else math.inf
        return factor if factor < math.inf else None

    @property
    def exact(self) -> bool:
        """True if the bound equals the certified optimum, to its tolerance."""
        return self.certified and self.looseness is not None and abs(self.looseness - 1) <= CERTIFIED_GAP

    @property
    def _ratio_text(self) -> str:
        """The ratio as text."""
        if self.looseness is None:
            return "no bound" if self.above else "nothing"
        return "exact" if self.exact else f"{self.looseness:.4g} times"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Rows[BoundRow], Pictured):
    """The rows of `compare`, sorted by tightness for each divergence and constraints, with the designs.

    - `rows` : upper bounds, then lower bounds.
    - `designs` : one for each divergence and constraints.
    - `points` : the requested (epsilon, eta); several may share their rows, and eta is 1 for no limit.

    Printed, it has one block for each divergence. For one question over several constraints it has one line for each,
    and counts how often each bound was tightest. `to_csv` has every row.

    >>> len(compare([0.9, 0.1], [0.4, 0.6], 1.0))
    67
    """

    rows: tuple[BoundRow, ...]
    designs: tuple[Design, ...]
    points: tuple[tuple[float, float], ...]

    _picture, _limit = "bounds", 100
    _named = (*(field.name for field in fields(BoundRow)), "looseness")

    @property
    def limits(self) -> list[tuple[float, float]]:
        """The compared (epsilon, eta), in the order asked; all eta from tanh(epsilon/2) on are one."""
        return list(dict.fromkeys((row.epsilon, row.eta) for row in self.rows))

    def rows_at(self, epsilon: float, eta: float) -> tuple[BoundRow, ...]:
        """Return the rows at these constraints; any eta from tanh(epsilon/2) on has the same rows."""
        eta = min(eta, math.tanh(epsilon / 2))
        return tuple(row for row in self.rows if (row.epsilon, row.eta) == (epsilon, eta))

    def _cells(self) -> list[tuple[str, list[str]]]:
        heads = ("ε", "η", "divergence", "optimum", "", "bound", "times off", "source")
        signs = {True: "≤", False: "≥"}
        rows = [
            (
                ceil_digits(r.epsilon, 4),
                ceil_digits(r.eta, 4),
                f"{r.divergence} ({r.unit})" if r.unit else r.divergence,
                f"{r.optimum:.6g}",
                signs[r.above],
                f"{r.value:.6g}",
                r._ratio_text.removesuffix(" times"),
                r.reference,
            )
            for r in self.rows
        ]
        return [(head, list(column)) for head, column in zip(heads, zip(*rows, strict=True), strict=True)]

    def _title(self) -> str:
        limits = self.limits
        if len(limits) != 1:
            return f"Bounds at {len(limits)} limits (epsilon, eta)"
        return f"Bounds at epsilon {ceil_digits(limits[0][0])}, {_cap_in_words(*limits[0])}"

    def __repr__(self) -> str:
        body = self._by_limits() if len(self.limits) > 1 else self._by_divergence()
        keys = dict.fromkeys(key for row in self.rows for key in cited(row.reference))
        return "\n".join([self._title(), *body, "", *(_short(key) for key in keys)])

    def _by_divergence(self) -> list[str]:
        lines = list[str]()
        for (name, unit), rows in groupby(self.rows, lambda row: (row.divergence, row.unit)):
            rows_of_divergence = list(rows)
            first = rows_of_divergence[0]
            bound_text = "" if first.certified else f" (at most {first.upper_bound:.6g})"
            lines.append(f"{name}: optimum {first.optimum:.6g}{' ' * bool(unit)}{unit}{bound_text}")
            finite_rows = [row for row in rows_of_divergence if math.isfinite(row.value) or not row.above]
            lines += [
                f"  {'<=' if r.above else '>='} {r.value:<12.6g}{r._ratio_text:>13}  {r.reference}" for r in finite_rows
            ]
            if infinite_references := [row.reference for row in rows_of_divergence if row not in finite_rows]:
                lines.append(f"  infinite: {'; '.join(infinite_references)}")
        return lines

    def _by_limits(self) -> list[str]:
        """One line for each pair of constraints, and how often each bound and mechanism was the tightest."""
        unit = self.rows[0].unit
        tables: tuple[dict[str, list[BoundRow]], dict[str, list[BoundRow]]] = ({}, {})
        tightest_counts = dict[str, int]()
        lines = [f"{self.rows[0].divergence}{f' ({unit})' if unit else ''}, tightest bound and best mechanism:"]
        lines.append(f"{'epsilon':>9}{'eta':>11}{'optimum':>12}  {'bound':>12}  {'mechanism':>13}")
        printed_limits = self.limits[:SHOWN_LIMITS]
        for limits in self.limits:
            block = self.rows_at(*limits)
            tightest = [next((row for row in block if row.above is is_upper), None) for is_upper in (True, False)]
            for row in block:
                tables[not row.above].setdefault(row.reference, []).append(row)
                tightest_row = tightest[not row.above]
                is_tied_for_tightest = tightest_row is not None and math.isclose(
                    row.value, tightest_row.value, rel_tol=CERTIFIED_GAP
                )
                tightest_counts[row.reference] = tightest_counts.get(row.reference, 0) + is_tied_for_tightest
            if limits in printed_limits:
                mark = " " if limits[1] < math.tanh(limits[0] / 2) else "+"
                looseness_texts = ["" if row is None else row._ratio_text for row in tightest]
                optimum = f"{block[0].optimum:>11.5g}{' ' if block[0].certified else '*'}"
                limits_text = f"{ceil_digits(limits[0], 4):>9}{ceil_digits(limits[1], 4):>10}"
                lines.append(f"{limits_text}{mark}{optimum}  {looseness_texts[0]:>12}  {looseness_texts[1]:>13}")
        if len(self.limits) > len(printed_limits):
            lines.append(f"... {len(self.limits) - len(printed_limits)} more limits")
        lines.append("+ and every larger eta" + ("" if all(r.certified for r in self.rows) else "; * not certified"))
        for title, table in zip(("bound", "mechanism, erased to eta"), tables, strict=True):
            lines += ["", f"{'tightest':>9}{'times off':>20}  {title}"]
            for name in sorted(table, key=lambda name: -tightest_counts[name]):
                factors = [row.looseness for row in table[name] if row.looseness is not None]
                spread_text = _spread(factors)
                lines.append(f"{f'{tightest_counts[name]} of {len(table[name])}':>9}{spread_text:>20}  {name}")
        return lines


SHOWN_LIMITS = 20
"""So many limits have a line of their own in print; `to_csv` has all."""


def _spread(factors: list[float]) -> str:
    """The smallest and the largest of some ratios, as text."""
    if not factors:
        return "none finite"
    low, high = (max(extremum(factors), 1.0) for extremum in (min, max))
    if high <= 1 + CERTIFIED_GAP:
        return "exact"
    return f"{low:.4g} to {high:.4g}"


def _cap_in_words(epsilon: float, eta: float) -> str:
    """The cap eta; from tanh(epsilon/2) on all caps are one."""
    return f"eta {ceil_digits(eta)}" if eta < math.tanh(epsilon / 2) else f"every eta from {eta:.6g}"


def _short(key: str) -> str:
    """A line of the legend: authors, title and year."""
    paper = REFERENCES[key]
    names = [name.split()[-1] for name in paper.authors.split(", ")]
    authors = ", ".join(names) if len(names) <= 3 else f"{names[0]} and others"
    return f"[{key}] {authors}: {paper.title} ({paper.year})"


@overload
def compare(
    question: Divergence,
    epsilons: Iterable[float] | float,
    etas: Iterable[float | None] | float | None = None,
    /,
    *,
    unit: str = "nats",
    time_limit: float | None = None,
    progress: Progress = False,
) -> Comparison: ...
@overload
def compare(
    p0: Any, p1: Any, epsilon: float, eta: float | None = None,
    *, unit: str = "nats", time_limit: float | None = None, progress: Progress = False,
) -> Comparison: ...  # fmt: skip
def compare(
    *questions: Any, unit: str = "nats", time_limit: float | None = None, progress: Progress = False, **named: Any
) -> Comparison:
    """Compute the exact optimum and every published bound, over (epsilon, eta) or divergences.

    For a question, the rows at every (epsilon, eta) are its optimum, the textbook mechanisms, erased until they are
    eta-TV, and every bound that applies. For two distributions, the rows are the bounds at one (epsilon, eta), for
    every divergence that has one.

    Bounds that use only epsilon or only eta are compared with the optimum under both limits, which they bound, too. The
    optima are designed one after another, in less than a second each for k up to a few hundred.

    Parameters
    ----------
    questions : A `Divergence` of two finite populations, whose f may be custom, or p0 and p1, arrays (k,). The limits
        may follow in the order epsilon, eta.
    epsilon, epsilons : In nats, by name.
    eta, etas : Limits on the total variation by name, in [0, 1], or None for no limit. All values
        above tanh(epsilon/2) add no constraint [GI, Prop 2]; they share one block.
    unit : "nats" or "bits", of divergences with a logarithm and their bounds; epsilon is always in nats.
    time_limit : In seconds, for all optima together.
    progress : As for `optimal_channel`.

    Returns
    -------
    Comparison
        The rows, each with a bound and the optimum.

    Raises
    ------
    InvalidInput
        If a value is out of range, or the unit is bits and the question has no logarithm.

    Examples
    --------
    >>> table = compare([0.9, 0.1], [0.4, 0.6], 1.0, 0.3)
    >>> loosest = max(table, key=lambda row: row.looseness)
    >>> loosest.divergence, loosest.reference, round(loosest.looseness, 2)
    ('KL divergence', '[KOV14, Thm 7], from the binary mechanism', 42.59)
    >>> grid = compare(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [1.0, 2.0], [0.2, None])
    >>> [round(row.looseness, 3) for row in grid if row.reference == "binary mechanism"]
    [1.156, 1.027, 1.287, 1.15]
    """
    if unit not in UNITS:
        raise invalid("unit", f"one of {', '.join(UNITS)}", unit)
    tabulate = _over_limits if questions and isinstance(questions[0], Divergence) else _over_divergences
    with watched(time_limit, progress) as deadline:
        return tabulate(deadline, unit, *questions, **named)


def _over_divergences(
    deadline: Deadline, unit: str, p0: Any, p1: Any, epsilon: float, eta: float | None = None
) -> Comparison:
    """The bounds at one (epsilon, eta) for every divergence that has one."""
    epsilon, eta = positive_epsilon(epsilon), 1.0 if eta is None else unit_interval(eta, "eta")
    points = [(Divergence(f, p0, p1), epsilon, eta) for f in (TOTAL_VARIATION, *CONTRACTED)]
    return _compared(deadline, points, False, unit)


def _over_limits(deadline: Deadline, unit: str, question: Divergence, epsilons: Any, etas: Any = None) -> Comparison:
    """The bounds and mechanisms of one question at every (epsilon, eta)."""
    if question.continuous:
        raise invalid("question", "a Divergence of finite populations", question)
    if unit == "bits" and not question.f.in_nats:
        raise invalid("unit", f"'nats', as the {question.f.name} is a pure number", unit)
    grid = [
        (question, positive_epsilon(epsilon), 1.0 if eta is None else unit_interval(eta, "eta"))
        for epsilon in one_or_several(epsilons, "epsilons")
        for eta in ([None] if etas is None else one_or_several(etas, "etas"))
    ]
    if not grid:
        raise invalid("compare", "at least one epsilon and one eta", "none")
    return _compared(deadline, grid, True, unit)


def _compared(
    deadline: Deadline, grid: list[tuple[Divergence, float, float]], mechanisms: bool, unit: str
) -> Comparison:
    """The rows of questions at (epsilon, eta), with those of mechanisms or without."""
    # The optimum without a cap and the mechanisms depend on epsilon alone and are computed once for each.
    rows: list[BoundRow] = []
    designs: list[Design] = []
    pure_results: dict[tuple[Divergence, float], tuple[float, list[Kept]]] = {}
    capped_points = [(question, epsilon, min(eta, math.tanh(epsilon / 2))) for question, epsilon, eta in grid]
    points = list(dict.fromkeys(capped_points))
    for number, (question, epsilon, eta) in enumerate(points):
        turn, limits = deadline.turn(number, len(points)), limits_of(epsilon, eta)
        designs.append(optimal_channel(question, limits, **turn.part(0.0, 0.7).passed))
        design, has_cap = designs[-1], len(limits) > 1
        if (question, epsilon) not in pure_results:
            pure_design = design
            if has_cap:
                pure_design = optimal_channel(question, limits[0], certify=False, **turn.part(0.7, 1.0).passed)
            pure_results[question, epsilon] = pure_design.value, list(textbook(question, epsilon)) if mechanisms else []
        pure_value, mechanism_values = pure_results[question, epsilon]
        bounds = list(published_bounds(question, epsilon, eta if has_cap else 1.0, pure_value))
        for name, values_of_name in groupby(mechanism_values, lambda mechanism_value: mechanism_value.name):
            bounds.append(
                (
                    name,
                    False,
                    max(
                        mechanism_value.under(eta) if has_cap else mechanism_value.value
                        for mechanism_value in values_of_name
                    ),
                )
            )
        bounds.sort(key=lambda bound: (not bound[1], bound[2] if bound[1] else -bound[2]))
        rows += [_row(question, epsilon, eta, bound, design, unit) for bound in bounds]
    return Comparison(tuple(rows), tuple(designs), tuple(dict.fromkeys((e, eta) for _, e, eta in grid)))


def _row(
    question: Divergence, epsilon: float, eta: float, bound: tuple[str, bool, float], design: Design, unit: str
) -> BoundRow:
    """A bound and its design, in the unit."""
    (reference, is_upper, value), row_unit = bound, unit if question.f.in_nats else ""
    optimum, upper_bound = design.value, design.upper_bound
    if row_unit == "bits":
        value, optimum, upper_bound = (
            (up if is_upper else down)(value / BIT),
            down(optimum / BIT),
            up(upper_bound / BIT),
        )
    row_values = (epsilon, eta, question.f.name, reference, is_upper, value)
    return BoundRow(*row_values, optimum, upper_bound, design.certified, row_unit)


def limits_of(epsilon: float, eta: float | None) -> list[Constraint]:
    """Build the constraints of epsilon and eta; an implied or missing cap is omitted."""
    pure = LocalDP(positive_epsilon(epsilon))
    if eta is None or unit_interval(eta, "eta") >= math.tanh(pure.epsilon / 2):
        return [pure]
    return [pure, TotalVariation(eta)]


def _share_of(value: float, share: float) -> float:
    """The bound reached / share, rounded up; inf where the share is below all floats, so that nothing is bounded."""
    return up(value / share) if share > 0 else math.inf


def published_bounds(utility: Divergence, epsilon: float, eta: float, pure: float) -> Iterator[tuple[str, bool, float]]:
    """Evaluate every published bound on the optimum of `utility` at one (epsilon, eta).

    No channel is designed. `compare` shows the bounds with the optimum.

    Parameters
    ----------
    utility : A finite `Divergence`.
    epsilon : In nats.
    eta : In [0, 1]; above tanh(epsilon/2) it adds no constraint [GI, Prop 2].
    pure : The optimum under epsilon alone, which implies [GI, Thm 8].

    Yields
    ------
    tuple[str, bool, float]
        The reference, True where the bound lies above the optimum, and its value.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> from ldpopt.divergences import TOTAL_VARIATION
    >>> question = Divergence(TOTAL_VARIATION, [0.9, 0.1], [0.4, 0.6])
    >>> for source, above, value in published_bounds(question, 1.0, 0.3, pure=0.2311):
    ...     print(source, "<=" if above else ">=", round(value, 4))
    [KOV14, Thm 6; GI, Thm 4] <= 0.2311
    [GI, Thm 5] <= 0.15
    every test at once [ADC] <= 0.15
    [Dobrushin] <= 0.15
    [GI, Thm 8] >= 0.15
    """
    if not isinstance(utility, Divergence) or utility.continuous:
        raise invalid("utility", "a Divergence of finite populations", utility)
    epsilon, pure, eta = positive_epsilon(epsilon), nonnegative(pure, "pure"), unit_interval(eta, "eta")
    f, p0, p1 = utility.f, utility.p0, utility.p1
    if f == TOTAL_VARIATION:
        yield "[KOV14, Thm 6; GI, Thm 4]", True, kairouz_oh_viswanath(p0, p1, epsilon)
        yield "[GI, Thm 5]", True, ghazi_issa_total_variation(p0, p1, reach(epsilon, eta))
    if f in (KL, REVERSE_KL, JEFFREYS):  # both KL divergences are below Jeffreys
        yield "[DJW, Thm 1; GI, Thm 6]", True, duchi_jordan_wainwright(p0, p1, epsilon)
        yield "[GI, Cor 2]", True, ghazi_issa_corollary(p0, p1, epsilon)
        yield "[GI, Thm 7]", True, ghazi_issa(p0, p1, epsilon, eta)
        yield "best constant [SPR]", True, jeffreys_of_total_variation(p0, p1, epsilon, eta)
    if f.operator_convex:
        binary_value = kept_by_binary(f, p0, p1, epsilon)
        if f == KL:
            yield (
                "[KOV14, Thm 7], from the binary mechanism",
                True,
                _share_of(binary_value, binary_share_kairouz(epsilon)),
            )
            yield (
                "[GI, VII-B1], from the binary mechanism",
                True,
                _share_of(binary_value, binary_share_ghazi_issa(epsilon)),
            )
        yield "best share [SPR], from the binary mechanism", True, _share_of(binary_value, binary_share(epsilon))
        yield "[AZ, Thm 1]", True, asoodeh_zhang(f, p0, p1, epsilon)
        yield "contraction by both limits [OP; CRS]", True, contraction(f, p0, p1, epsilon, eta)
    if f.recipe is not None and f.recipe[0] == "hockey-stick":
        yield "[ADC; KOV15]", True, asoodeh_diaz_calmon(f.recipe[1], p0, p1, epsilon, eta)
    yield "every test at once [ADC]", True, bound_by_tests(f, p0, p1, epsilon, eta)
    yield "[Dobrushin]", True, dobrushin(f, p0, p1, reach(epsilon, eta))
    yield "[GI, Thm 8]", False, down(erased_share(epsilon, eta) * pure)
