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
from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design import AOptimal, Design, FisherInformation, LocalDP, Marginals, TotalVariation, optimal_channel
from ldpopt.design.constraints import Constraint
from ldpopt.design.utilities.criterion import Criterion
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.labels import Label
from ldpopt.mechanisms import randomized_response
from ldpopt.survey.estimate.intervals import two_sided
from ldpopt.survey.estimate.linear import contrast_variances
from ldpopt.survey.hypothesis_tests import respondents_for_power
from ldpopt.survey.plan.budget import Needs
from ldpopt.survey.plan.plan import MAX_DENOMINATOR, NOT_APPLICABLE, Part, cells_of
from ldpopt.survey.plan.spec import QuestionSpec
from ldpopt.tolerances import BOOKLETS

MAX_CELLS, MAX_UNEVEN_CELLS = 64, 16
"""The most cells of a booklet whose channel is searched for, with even pilots and with others."""

MAX_LENGTH = 12
"""The most yes/no questions of one booklet; the channel is then known, and has a row for each of their 2^c answers."""

MAX_KINDS, MAX_SETS = 12, 512
"""The most kinds of booklets of one length whose channels are all searched for, and the most booklets of one length."""

ALONE = 1.0
"""Up to this epsilon one question at random was the best wherever that could be certified, so nothing else is tried."""

LIMIT = 10.0
"""Seconds for the channel of one booklet of several questions."""

CLOSE = 1.005
"""Longer booklets are not tried where the respondents are this near the least number that any survey needs."""


@dataclass(frozen=True, eq=False)
class Target:
    """What the respondents must suffice for: the variance of `row` @ cells at most `variance`."""

    key: tuple[str, ...]
    row: Array
    variance: float


@dataclass(frozen=True, eq=False)
class Unit:
    """Questions that are only asked together: one, or one with those that its answer decides on."""

    questions: tuple[QuestionSpec, ...]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The questions as parts of a report; a question that not everybody is asked has one more answer."""
        return tuple(part_of(question) for question in self.questions)

    @cached_property
    def cells(self) -> tuple[tuple[Label, ...], ...]:
        """The K possible answers to all of them."""
        return cells_of(self.parts)

    @cached_property
    def pilot(self) -> Array:
        """(K,) the pilot of the cells, with independent answers."""
        laws = [
            dict(zip(part.asked, question.shares, strict=True))
            for part, question in zip(self.parts, self.questions, strict=True)
        ]
        return np.array(
            [math.prod(law.get(label, 1.0) for law, label in zip(laws, cell, strict=True)) for cell in self.cells]
        )

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """A target for every share: among those who are asked, for a question that not everybody is."""
        found = []
        for at, (part, question) in enumerate(zip(self.parts, self.questions, strict=True)):
            if (width := question.width) is None:
                continue
            asked = np.array([cell[at] != NOT_APPLICABLE or not part.asked_if for cell in self.cells], dtype=float)
            for label, share in zip(part.asked, question.shares, strict=True):
                inside = np.array([float(cell[at] == label) for cell in self.cells])
                row = (inside - share * asked) / float(asked @ self.pilot) + share
                found.append(Target((part.name, repr(label)), row, (width.width / two_sided(width.level)) ** 2))
        return tuple(found)

    @property
    def name(self) -> str:
        """The name of the first question."""
        return self.questions[0].name

    @property
    def epsilon(self) -> float:
        """The epsilon that the first question fixes for all of them; 0 if it does not."""
        return self.questions[0].epsilon or 0.0

    @property
    def needs(self) -> Needs:
        """What respondents it needs, as `split_within` takes it."""
        if self.plain:
            return self.pilot, self.questions[0].target
        return lambda epsilon: BookletPlanner([self], epsilon, None).plan(1, 0.0, UNLIMITED).respondents

    @property
    def plain(self) -> bool:
        """Whether it is a single question."""
        return len(self.questions) == 1

    @property
    def even(self) -> bool:
        """Whether all cells of the pilot are equal."""
        return bool(np.ptp(self.pilot) <= 1e-12)

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """Equal for units with the same designs."""
        rows = tuple((target.row.tobytes(), target.variance) for target in self.targets)
        tests = tuple(
            (q.test.power, q.test.level, np.asarray(q.test.alternative).tobytes()) for q in self.questions if q.test
        )
        return (
            self.pilot.tobytes(),
            rows,
            tests,
            tuple(type(q) for q in self.questions),
            tuple(q.eta for q in self.questions),
        )

    @cached_property
    def information(self) -> float:
        """The respondents that the unit needs where a report has information 1: the bound is this over rho^2."""
        need = 0.0
        for at in range(len(self.questions)):
            mine = [target for target in self.targets if target.key[0] == self.parts[at].name]
            if not mine:
                continue
            rows = np.array([target.row - float(target.row @ self.pilot) for target in mine])
            values, vectors = np.linalg.eigh((rows * self.pilot) @ rows.T)
            root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
            together = float(np.trace(root)) ** 2 / sum(target.variance for target in mine)
            alone = max(float(row**2 @ self.pilot) / t.variance for row, t in zip(rows, mine, strict=True))
            need += max(together, alone)
        return need


def part_of(question: QuestionSpec) -> Part:
    """A question of a description as a part of a report."""
    categories = (*question.categories, NOT_APPLICABLE) if question.asked_if else question.categories
    return Part(
        question.name, question.column, categories, question.unknown, question.missing, question.reading,
        None if question.asked_if else question.pilot, question.asked_if,
    )  # fmt: skip


def units_of(questions: Sequence[QuestionSpec]) -> tuple[Unit, ...]:
    """The questions with those that they decide on, each group in the order of the description."""
    names = [question.name for question in questions]
    group = {name: name for name in names}
    for at, question in enumerate(questions):
        if question.asked_if and question.epsilon is not None:
            raise invalid(
                f"question {question.name!r}: epsilon", "none beside asked_if (the report is shared)", question.epsilon
            )
        for name, labels in question.asked_if:
            if name not in names[:at]:
                raise invalid(f"question {question.name!r}: asked_if", "questions that stand before it", name)
            known = questions[names.index(name)].categories
            if lacking := [label for label in labels if label not in known]:
                raise invalid(f"question {question.name!r}: asked_if", f"answers of {name!r}", lacking[0])
            old, new = group[question.name], group[name]
            group = {one: new if there == old else there for one, there in group.items()}
    return tuple(Unit(tuple(q for q in questions if group[q.name] == root)) for root in dict.fromkeys(group.values()))


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
        return _product(self.units)[0]


@dataclass(frozen=True, eq=False)
class Questionnaire:
    """Booklets with the share of respondents that each is asked of, and the respondents who meet every target.

    one_question : the same where every booklet is one question.
    """

    booklets: tuple[Booklet, ...]
    probabilities: tuple[Fraction, ...]
    respondents: float
    one_question: float


class BookletPlanner:
    """Finds the booklets for units with targets, within epsilon (nats) and, if it is capped, eta.

    searched : whether channels of several units are searched for, where they are not known.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        epsilon: float,
        eta: float | None,
        together: Sequence[tuple[str, str]] = (),
        searched: bool = True,
    ) -> None:
        self.searched = searched
        self.units, self.epsilon, self.eta = tuple(units), epsilon, eta
        self.pairs = [self._pair(pair) for pair in together]
        self._designs: dict[tuple[object, ...], tuple[Channel, Design | None] | None] = {}

    def _pair(self, names: tuple[str, str]) -> tuple[Unit, ...]:
        """The units that hold two questions of which a two-way table is wanted."""
        held = []
        for name in names:
            found = [unit for unit in self.units if any(q.name == name for q in unit.questions)]
            if not found:
                raise invalid("[budget] together", "names of questions that share the budget", name)
            held += found
        return tuple(dict.fromkeys(held))

    def plan(self, longest: int, least: float, deadline: Deadline) -> Questionnaire:
        """The booklets of up to `longest` units that need the fewest respondents.

        least : respondents below which no survey can do, where it is known, or 0.
        """
        singles = [self._booklet((unit,), deadline) for unit in self.units]
        wanted = [self._booklet(pair, deadline, self._table_targets(pair, names))
                  for pair, names in zip(self.pairs, self._table_names(), strict=True)]  # fmt: skip
        found = [one for one in (*singles, *wanted) if one is not None]
        best = _shared_out(found)
        one_question = _needed(*_rational(*_shared_out([one for one in found if len(one.units) == 1 or one in wanted])))
        order = sorted(
            range(len(self.units)), key=lambda at: (len(self.units[at].cells), repr(self.units[at].kind), at)
        )
        for length in range(2, longest + 1 if self.epsilon > ALONE else 2):
            if best[1] <= CLOSE * least or deadline.over() or length > len(self.units):
                break
            longer = [self._booklet(units, deadline) for units in self._candidates(order, length)]
            known = [one for one in longer if one is not None]
            if not known:
                break
            better = _shared_out([*known, *found])
            if better[1] >= best[1] * (1 - BOOKLETS):
                break
            found, best = [*known, *found], better
        chosen, shares = _rational(*best)
        return Questionnaire(chosen, shares, _needed(chosen, shares), one_question)

    def _candidates(self, order: Sequence[int], length: int) -> list[tuple[Unit, ...]]:
        """Sets of units: neighbours in a circle of like units, and all sets where they are of few kinds."""
        m = len(order)
        step = length if m % length == 0 else 1
        ranks = {tuple(sorted(order[(start + more) % m] for more in range(length))) for start in range(0, m, step)}
        kinds = [repr(unit.kind) for unit in self.units]
        if len(set(kinds)) > 1 and math.comb(m, length) <= MAX_SETS:
            of_kind: dict[tuple[str, ...], tuple[int, ...]] = {}
            for chosen in combinations(range(m), length):
                of_kind.setdefault(tuple(sorted(kinds[at] for at in chosen)), chosen)
            if len(of_kind) <= MAX_KINDS:
                ranks |= set(combinations(range(m), length))
        return [tuple(self.units[at] for at in chosen) for chosen in sorted(ranks)]

    def _booklet(self, units: tuple[Unit, ...], deadline: Deadline, more: Sequence[Target] = ()) -> Booklet | None:
        """The booklet of these units with its best channel; None where that is out of reach."""
        key = (*(unit.kind for unit in units), len(more))
        if key not in self._designs:
            try:
                self._designs[key] = self._designed(units, more, deadline)
            except SolverError:
                if deadline.late or len(units) == 1:
                    raise
                self._designs[key] = None
        if (found := self._designs[key]) is None:
            return None
        channel, design = found
        pilot, targets = _product(units, more)
        served: dict[tuple[str, ...], float] = {}
        rows = np.array([target.row for target in targets]).reshape(-1, len(pilot))
        variances = contrast_variances(channel, pilot, rows)
        for target, variance in zip(targets, variances, strict=True):
            served[target.key] = target.variance / variance if math.isfinite(variance) else 0.0
        for unit in units:
            for question in unit.questions:
                if question.test is not None and len(units) == 1 and unit.plain:
                    needed = respondents_for_power(
                        channel, question.shares, question.test.alternative, question.test.power, question.test.level
                    )
                    served[question.name, "power"] = 1 / needed
        return Booklet(units, channel, design, served)

    def _designed(
        self, units: tuple[Unit, ...], more: Sequence[Target], deadline: Deadline
    ) -> tuple[Channel, Design | None] | None:
        etas = [cap for cap in (self.eta, *(q.eta for unit in units for q in unit.questions)) if cap is not None]
        eta = min(etas, default=None)
        if len(units) == 1 and units[0].plain and not more:
            design = units[0].questions[0].design(self.epsilon, eta, deadline.inner)
            return Channel(design.channel.matrix), design
        pilot, targets = _product(units, more)
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
        constraints: list[Constraint] = [LocalDP(self.epsilon)] + ([] if eta is None else [TotalVariation(eta)])
        # Information is shared out so that every variance is in proportion to the one that is wanted.
        scale = min(t.variance for t in targets)
        if all(unit.plain for unit in units) and not more:
            shape = tuple(len(unit.cells) for unit in units)
            criterion: Criterion = Marginals(shape, [(scale / unit.targets[0].variance) ** 2 for unit in units])
        else:
            rows = np.array([(t.row - t.row @ pilot) * (scale / t.variance) for t in targets])
            criterion = AOptimal(rows.T @ rows)
        left = deadline.left
        limit = LIMIT if left is None else min(left, LIMIT)
        design = optimal_channel(
            FisherInformation(pilot, criterion), constraints, time_limit=limit, certify=len(units) == 1
        )
        return design.channel, design if len(units) == 1 else None

    def _table_names(self) -> list[tuple[str, ...]]:
        return [tuple(q.name for unit in pair for q in unit.questions) for pair in self.pairs]

    def _table_targets(self, pair: tuple[Unit, ...], names: tuple[str, ...]) -> list[Target]:
        """Every cell of a two-way table is wanted as precisely as the wider of its two questions' shares."""
        cells = np.eye(math.prod(len(unit.cells) for unit in pair))
        widths = [t.variance for unit in pair for t in unit.targets]
        return [Target((*names, str(at)), row, max(widths, default=1e-3)) for at, row in enumerate(cells)]


def _product(units: tuple[Unit, ...], more: Sequence[Target] = ()) -> tuple[Array, list[Target]]:
    """(K,) the pilot of units that are asked together, and the targets on their cells."""
    sizes = [len(unit.cells) for unit in units]
    pilot = np.ones(1)
    for unit in units:
        pilot = np.outer(pilot, unit.pilot).ravel()
    targets = []
    for at, unit in enumerate(units):
        before, after = math.prod(sizes[:at]), math.prod(sizes[at + 1 :])
        targets += [Target(t.key, np.tile(np.repeat(t.row, after), before), t.variance) for t in unit.targets]
    return pilot, [*targets, *more]


Shared = tuple[list[tuple[Booklet, float]], float]


def _shared_out(booklets: Sequence[Booklet]) -> Shared:
    """The booklets that are used, each with its respondents, and the sum of these: a linear program."""
    from scipy.optimize import linprog

    keys = list(dict.fromkeys(key for one in booklets for key in one.served))
    rates = np.array([[one.served.get(key, 0.0) for one in booklets] for key in keys])
    if not (rates.max(axis=1, initial=0.0) > 0).all():
        lacking = keys[int(np.argmin(rates.max(axis=1)))]
        raise InvalidInput(f"budget: expected enough to estimate {' and '.join(lacking[:-1])}, got too little")
    scale = 1 / rates.max(axis=1)
    found = linprog(np.ones(len(booklets)), A_ub=-rates * scale[:, None], b_ub=-scale / scale.max(), method="highs")
    if found.status != 0:
        raise SolverError(f"booklets: {found.message}")
    people = found.x * scale.max()
    used = [(one, n) for one, n in zip(booklets, people, strict=True) if n > 1e-9 * people.max()]
    return used, float(sum(n for _, n in used))


def _rational(used: Sequence[tuple[Booklet, float]], people: float) -> tuple[tuple[Booklet, ...], tuple[Fraction, ...]]:
    """The booklets, and fractions of a small denominator near their shares of the respondents."""
    booklets = tuple(one for one, _ in used)
    shares = np.array([n for _, n in used]) / people
    best: tuple[float, tuple[Fraction, ...]] = (math.inf, ())
    for denominator in [*range(len(used), 1000), 10**4, MAX_DENOMINATOR]:
        whole = np.maximum(np.floor(shares * denominator + 1e-9), 1).astype(int)
        short = denominator - int(whole.sum())
        if short < 0 or short > len(used):
            continue
        order = np.argsort(whole - shares * denominator, kind="stable")
        whole[order[:short]] += 1
        fractions = tuple(Fraction(int(n), denominator) for n in whole)
        needed = _needed(booklets, fractions)
        if needed < best[0] * (1 - BOOKLETS):
            best = needed, fractions
        if best[0] <= (1 + BOOKLETS) * people:
            break
    return booklets, best[1]


def _needed(booklets: Sequence[Booklet], shares: Sequence[Fraction]) -> float:
    """The respondents, as a number, who meet every target with booklets in these shares."""
    rates: dict[tuple[str, ...], float] = {}
    for booklet, share in zip(booklets, shares, strict=True):
        for key, rate in booklet.served.items():
            rates[key] = rates.get(key, 0.0) + float(share) * rate
    return max(1 / rate for rate in rates.values())


def rule(m: int, epsilon: float) -> float:
    """max_c c ((e^eps - 1) / (2^c + e^eps - 1))^2: what a report tells of m yes/no questions, c of them at random."""
    fall = math.exp(-epsilon)
    gain = -math.expm1(-epsilon)
    return max(c * (gain / (2.0**c * fall + gain)) ** 2 for c in range(1, min(m, 1000) + 1))


EXACT = 7
"""Up to this many yes/no questions the rule is proved to be the optimum, for every epsilon."""


def least_respondents(units: Sequence[Unit], epsilon: float | None) -> float:
    """A number of respondents below which no epsilon-LDP survey, interactive or not, meets every target [Scarf].

    epsilon : in nats; None for a promise that is no epsilon-LDP, of which only the sample's own variance is known.

    It is the sum of the questions' needs over a bound of rho^2, the information of one report: that of `rule` for up to
    seven yes/no questions at even pilots; tanh(eps/2)^2 for more of them up to eps = ln 3, and (e^eps - 1)/8 beyond;
    sinh(eps/2)^2 for any. The bound is that of Cramer and Rao for unbiased estimates at the pilot.
    """
    alone = [float((t.row - t.row @ unit.pilot) ** 2 @ unit.pilot) / t.variance for unit in units for t in unit.targets]
    need = sum(unit.information for unit in units)
    if not alone or epsilon is None:
        return max(alone, default=0.0)
    counted = [unit for unit in units if unit.targets]
    rho = math.sinh(min(epsilon, 700.0) / 2) ** 2
    if all(unit.plain and len(unit.cells) == 2 and unit.even for unit in counted):
        if len(counted) <= EXACT:
            rho = min(rho, rule(len(counted), epsilon))
        else:
            rho = min(
                rho, math.tanh(epsilon / 2) ** 2 if epsilon <= math.log(3) else math.expm1(min(epsilon, 700.0)) / 8
            )
    return max(*alone, need / rho)
