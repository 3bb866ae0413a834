"""Questions with targets and one epsilon -> booklets, their shares of respondents and channels [KW].

A booklet is one question, or a few that share a channel on the product of their answers. Each respondent is asked one
booklet, drawn without regard to any answer, and all of epsilon is that booklet's. The respondents for booklets with
given channels are a linear program; the candidates are single questions, pairs, triples, ... until longer ones no
longer help.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import AOptimal, Criterion, Design, FisherInformation, Marginals, optimal_channel
from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.mechanisms import randomized_response
from ldpopt.numbers.tolerances import BOOKLETS
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.budget import Needs
from ldpopt_survey.plan.numbers_and_sets import multi_select
from ldpopt_survey.plan.planned_question import MAX_DENOMINATOR, Part
from ldpopt_survey.plan.precision import limits
from ldpopt_survey.plan.units import MAX_UNEVEN_CELLS, Target, Unit, joint_design, product_of

MAX_CELLS = 64
"""The most cells of a booklet whose channel is searched for, with even pilots; with others, `MAX_UNEVEN_CELLS`."""

MAX_LENGTH = 12
"""The most yes/no questions of one booklet; the channel is then known, and has a row for each of their 2^c answers."""

MAX_KINDS, MAX_SETS = 12, 512
"""The most kinds of booklets of one length whose channels are all searched for, and the most booklets of one length."""

ALONE = 1.0
"""Up to this epsilon one question at random was the best wherever that could be certified, so nothing else is tried."""

NEAR_LEAST = 1.005
"""Longer booklets are not tried where the respondents are this near the least number for independent answers."""


@dataclass(frozen=True, eq=False)
class Booklet:
    """Units that are asked together, their `design` or its `channel`, and what one respondent's report tells.

    served : for each target, the share of it that one respondent is, 1 / respondents needed.
    """

    units: tuple[Unit, ...]
    channel: Channel
    design: Design | None
    served: Mapping[tuple[str, ...], float]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The questions, in order."""
        return tuple(part for unit in self.units for part in unit.parts)

    @property
    def pilot(self) -> Array:
        """(K,) the pilot of the cells."""
        return product_of(self.units)[0]


Shares = tuple[tuple[Booklet, Fraction], ...]
"""Booklets with the share of respondents that each is asked of."""


@dataclass(frozen=True, eq=False)
class Questionnaire:
    """Booklets with the share of respondents that each is asked of, and the respondents who meet every target.

    one_question : the same where every booklet is one question.
    """

    shares: Shares
    respondents: float
    one_question: float


class BookletPlanner:
    """Finds the booklets for units with targets, within epsilon (nats) and, if it is capped, eta.

    together : pairs of questions of which a two-way table is wanted.
    searched : whether channels of several units are searched for, where they are not known.
    """

    def __init__(
        self, units: Sequence[Unit], epsilon: float, eta: float | None, together: Sequence[tuple[str, str]] = (),
        searched: bool = True,
    ) -> None:  # fmt: skip
        self.units, self.epsilon, self.eta, self.searched = tuple(units), epsilon, eta, searched
        holders = {question.name: unit for unit in self.units for question in unit.questions}
        if lacking := [name for pair in together for name in pair if name not in holders]:
            own = "names of questions that share the budget (one that everybody is asked needs no `together`)"
            raise invalid("[budget] together", own, lacking[0])
        if lacking := [name for pair in together for name in pair if not holders[name].joins]:
            raise invalid("[budget] together", "questions whose shares are wanted", lacking[0])
        self.pairs = [tuple(dict.fromkeys(holders[name] for name in pair)) for pair in together]
        self._designs: dict[tuple[object, ...], tuple[Channel, Design | None] | None] = {}
        self._joint: tuple[Design | None] | None = None

    def plan(self, longest: int, least: float, deadline: Deadline) -> Questionnaire:
        """The booklets of up to `longest` units that need the fewest respondents.

        least : respondents below which no survey of independent answers can do, where it is known, or 0.
        """
        shortest = [self._booklet((unit,), deadline) for unit in self.units]
        shortest += [self._booklet(pair, deadline, _table_targets(pair)) for pair in self.pairs]
        known = [booklet for booklet in shortest if booklet is not None]
        best = _shared_out(known)
        one_question = _needed(_rational(*best))
        if best[1] > NEAR_LEAST * least and (whole := self._whole(deadline)) is not None:
            known = [whole, *known]
            best = _shared_out(known)
            if whole.units == self.units:
                least = max(least, 1 / min(whole.served.values()))  # the best of all
        # A missing answer that is left out would leave out the answers beside it, so such questions stay alone.
        order = [position for position, unit in enumerate(self.units) if unit.joins]
        order.sort(key=lambda position: (len(self.units[position].cells), repr(self.units[position].kind), position))
        for length in range(2, longest + 1 if self.epsilon > ALONE else 2):
            if best[1] <= NEAR_LEAST * least or deadline.over() or length > len(order):
                break
            longer = [self._booklet(units, deadline) for units in self._candidates(order, length)]
            known = [*(booklet for booklet in longer if booklet is not None), *known]
            better = _shared_out(known)
            if better[1] >= best[1] * (1 - BOOKLETS):
                break
            best = better
        shares = _rational(*best)
        return Questionnaire(shares, _needed(shares), one_question)

    @cached_property
    def free(self) -> tuple[Unit, ...]:
        """The units that may share a booklet with any others, and want a precision alone."""
        return tuple(
            unit
            for unit in self.units
            if unit.joins and not any(q.width is None or q.test or q.eta is not None for q in unit.questions)
        )

    def joint(self, deadline: Deadline, units: tuple[Unit, ...] | None = None) -> Design | None:
        """`joint_design` of `units`, by default the free ones."""
        if self._joint is None and self.searched:
            self._joint = (joint_design(self.free if units is None else units, self.epsilon, deadline.left),)
        return None if self._joint is None else self._joint[0]

    def _whole(self, deadline: Deadline) -> Booklet | None:
        """The booklet of all free units with the best channel of all; None where that is known or out of reach."""
        if self.eta is not None or self.epsilon <= ALONE or len(self.free) < 2 or all(unit.even for unit in self.free):
            return None
        if set(self.free) in map(set, self.pairs) or (design := self.joint(deadline)) is None:  # two of one name
            return None
        pilot, targets = product_of(self.free)
        variances = contrast_variances(design.channel, pilot, np.array([target.row for target in targets]))
        served = {target.key: target.variance / v for target, v in zip(targets, variances, strict=True)}
        return Booklet(self.free, design.channel, None, served)

    def _candidates(self, order: Sequence[int], length: int) -> list[tuple[Unit, ...]]:
        """Sets of units: neighbours in a circle of like units, and all sets where they are of few kinds."""
        m = len(order)
        step = length if m % length == 0 else 1
        ranks = {tuple(sorted(order[(start + more) % m] for more in range(length))) for start in range(0, m, step)}
        kinds = [repr(unit.kind) for unit in self.units]
        if len({kinds[position] for position in order}) > 1 and math.comb(m, length) <= MAX_SETS:
            of_kind: dict[tuple[str, ...], tuple[int, ...]] = {}
            for chosen in combinations(sorted(order), length):
                of_kind.setdefault(tuple(sorted(kinds[position] for position in chosen)), chosen)
            if len(of_kind) <= MAX_KINDS:
                ranks |= set(combinations(sorted(order), length))
        candidates = [tuple(self.units[position] for position in chosen) for chosen in sorted(ranks)]
        return [units for units in candidates if set(units) not in map(set, self.pairs)]  # two booklets of one name

    def _booklet(self, units: tuple[Unit, ...], deadline: Deadline, more: Sequence[Target] = ()) -> Booklet | None:
        """The booklet of these units with its best channel; None where that is out of reach."""
        key = (*(unit.kind for unit in units), len(more))
        if key not in self._designs:
            try:
                self._designs[key] = self._designed(units, more, deadline)
            except (InvalidInput, SolverError) as error:  # of too many cells under a cap, say
                if deadline.late or len(units) == 1:
                    raise
                if more:
                    names = " and ".join(question.name for unit in units for question in unit.questions)
                    remedy = "join answers, or name both in `everyone`"
                    raise type(error)(f"[budget] together: {names}: {error} ({remedy})") from None
                self._designs[key] = None
        if (designed := self._designs[key]) is None:
            return None
        channel, design = designed
        pilot, targets = product_of(units, more)
        variances = contrast_variances(channel, pilot, np.array([t.row for t in targets]).reshape(-1, len(pilot)))
        served = {
            target.key: target.variance / variance if math.isfinite(variance) else 0.0
            for target, variance in zip(targets, variances, strict=True)
        }
        if len(units) == 1 and units[0].plain and (test := units[0].questions[0].test) is not None:
            served[units[0].name, "power"] = 1 / test.respondents(channel, units[0].pilot)
        return Booklet(units, channel, design, served)

    def _designed(
        self, units: tuple[Unit, ...], more: Sequence[Target], deadline: Deadline
    ) -> tuple[Channel, Design | None] | None:
        etas = [cap for cap in (self.eta, *(q.eta for unit in units for q in unit.questions)) if cap is not None]
        eta = min(etas, default=None)
        if len(units) == 1 and units[0].plain and not more:
            design = units[0].questions[0].design(self.epsilon, eta, deadline.inner)
            return Channel(units[0].questions[0].channel_of(design)), design
        if len(units) == 1 and units[0].options and eta is None and not more:
            # Sets are listed with the first option changing fastest, and answers with the last one.
            return multi_select(units[0].options[::-1], self.epsilon).best.channel, None
        pilot, targets = product_of(units, more)
        k = len(pilot)
        even = all(unit.even for unit in units)
        binary = even and not more and all(unit.plain and len(unit.cells) == 2 for unit in units)
        if binary and eta is None and len(units) <= MAX_LENGTH and len({t.variance for t in targets}) == 1:
            return randomized_response(k, self.epsilon), None
        if any(q.test is not None and q.width is None for unit in units for q in unit.questions) and len(units) > 1:
            return None
        if not self.searched and len(units) > 1 and not more:
            return None
        if pilot.min() <= 0 or (len(units) > 1 and not more and k > (MAX_CELLS if even else MAX_UNEVEN_CELLS)):
            return None
        # Information is shared out so that every variance is in proportion to the one that is wanted.
        scale = min(t.variance for t in targets)
        if all(unit.plain for unit in units) and not more:
            shape = tuple(len(unit.cells) for unit in units)
            criterion: Criterion = Marginals(shape, [(scale / unit.targets[0].variance) ** 2 for unit in units])
        else:
            rows = np.array([(t.row - t.row @ pilot) * (scale / t.variance) for t in targets])
            criterion = AOptimal(rows.T @ rows)
        wanted, within = FisherInformation(pilot, criterion), limits(self.epsilon, eta)
        design = optimal_channel(wanted, within, time_limit=deadline.left, certify=len(units) == 1)
        return design.channel, design if len(units) == 1 else None


def needs_of(unit: Unit) -> Needs:
    """What respondents a unit needs, as `split_within` takes it."""
    if unit.plain and unit.questions[0].scores is None:
        return unit.pilot, unit.questions[0].target
    return lambda epsilon: BookletPlanner([unit], epsilon, None).plan(1, 0.0, UNLIMITED).respondents


def _table_targets(pair: tuple[Unit, ...]) -> list[Target]:
    """Every cell of a two-way table is wanted as precisely as the wider of its two questions' shares."""
    names = [question.name for unit in pair for question in unit.questions]
    cells = np.eye(math.prod(len(unit.cells) for unit in pair))
    variance = max((target.variance for unit in pair for target in unit.targets), default=1e-3)
    return [Target((*names, str(cell)), row, variance) for cell, row in enumerate(cells)]


def _shared_out(booklets: Sequence[Booklet]) -> tuple[list[tuple[Booklet, float]], float]:
    """The booklets that are used, each with its respondents, and the sum of these: a linear program."""
    from scipy.optimize import linprog

    keys = list(dict.fromkeys(key for booklet in booklets for key in booklet.served))
    rates = np.array([[booklet.served.get(key, 0.0) for booklet in booklets] for key in keys])
    if not (rates.max(axis=1, initial=0.0) > 0).all():
        lacking = keys[int(np.argmin(rates.max(axis=1)))]
        raise InvalidInput(f"budget: expected enough to estimate {' and '.join(lacking[:-1])}, got too little")
    scale = 1 / rates.max(axis=1)
    solution = linprog(np.ones(len(booklets)), A_ub=-rates * scale[:, None], b_ub=-scale / scale.max(), method="highs")
    if solution.status != 0:
        raise SolverError(f"booklets: {solution.message}")
    people = solution.x * scale.max()
    # The solver leaves a trace of booklets that it does not need; together these serve no target by BOOKLETS of it.
    least = BOOKLETS / len(booklets)
    shares = zip(booklets, people, strict=True)
    used = [(booklet, n) for booklet, n in shares if n * max(booklet.served.values()) > least]
    return used, float(sum(n for _, n in used))


def _rational(used: Sequence[tuple[Booklet, float]], people: float) -> Shares:
    """The booklets with fractions of a small denominator near their shares of the respondents."""
    exact = np.array([n for _, n in used]) / people
    best: tuple[float, Shares] = (math.inf, ())
    for denominator in [*range(len(used), 1000), 10**4, MAX_DENOMINATOR]:
        whole = np.maximum(np.floor(exact * denominator + 1e-9), 1).astype(int)
        short = denominator - int(whole.sum())
        if short < 0 or short > len(used):
            continue
        order = np.argsort(whole - exact * denominator, kind="stable")
        whole[order[:short]] += 1
        shares = tuple((booklet, Fraction(int(n), denominator)) for (booklet, _), n in zip(used, whole, strict=True))
        needed = _needed(shares)
        if needed < best[0] * (1 - BOOKLETS):
            best = needed, shares
        if best[0] <= (1 + BOOKLETS) * people:
            break
    return best[1]


def _needed(shares: Shares) -> float:
    """The respondents, as a number, who meet every target with booklets in these shares."""
    rates: dict[tuple[str, ...], float] = {}
    for booklet, share in shares:
        for key, rate in booklet.served.items():
            rates[key] = rates.get(key, 0.0) + float(share) * rate
    return max(1 / rate for rate in rates.values())
