"""Plan booklets, their fractions of respondents and their channels, from questions with targets and one epsilon [KW].

A booklet is one question, or a few questions that share a channel on the product of their answers. Each respondent is
asked one booklet, drawn independently of any answer, with all of epsilon. For given channels the respondents solve a
linear program. The candidates are single questions, and sets of as many questions as the rule for yes/no questions
gives at that epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.numbers.tolerances import BOOKLET_RTOL
from ldpopt.privacy import local_dp
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import contrast_moments, reports_to_estimate
from ldpopt_survey.plan.booklet import (
    MIN_REPORT_PROBABILITY,
    SMALLEST_VARIANCE,
    Booklet,
    BookletShares,
    booklet_of,
    channel_for_targets,
    merge_rare_reports,
)
from ldpopt_survey.plan.booklet_channels import MAX_UNIT_CELLS, BookletDesigner, DesignedChannels
from ldpopt_survey.plan.booklet_rules import (
    MAX_CELLS,
    MAX_SEARCHED_QUESTIONS,
    MAX_YES_NO_QUESTIONS,
    is_known,
    questions_per_booklet,
    saving_at_uniform,
)
from ldpopt_survey.plan.booklet_shares import rational_shares, respondents_for_shares, solve_shares
from ldpopt_survey.plan.budget import COARSE_CURVE_RTOL, CURVE_RTOL, Needs, SharedNeeds
from ldpopt_survey.plan.precision import limits
from ldpopt_survey.plan.reweighing import reweighed_channel
from ldpopt_survey.plan.table_targets import FurtherTargets, Table, cells_targets
from ldpopt_survey.plan.units import (
    MAX_JOINT_CELLS,
    Target,
    Unit,
    product_of,
)

MAX_SETS = 512
"""The most sets of questions of one length among which the booklets are chosen."""

MIN_BOOKLET_SAVING = 0.02
"""A booklet of several questions is tried where, at even shares, it saves this share of the respondents."""

MAX_SEARCH_EFFORT = 700
"""The most squares of numbers of cells, in sum, of the booklets that are tried: about half a second."""

MIN_SPENT_SHARE = 0.98
"""The least share of its epsilon that a channel is taken to use up."""

MAX_TABLE_COST_FACTOR = 1.02
"""How many times the respondents a booklet may need so that its report tells the table of its questions, too."""

ALL_UNITS_GAP = 2e-3
"""The relative gap of the channel of all questions together."""

MAX_MERGING_LOSS = 5e-3
"""The share of a joint report's precision that may be lost by merging rare reports, before all are weighted again."""

SHARING_QUESTIONS = "names of questions that share the budget (one that everybody is asked needs no `together`)"
"""What is expected as pairs of questions with a table."""


@dataclass(frozen=True, eq=False)
class Questionnaire:
    """Booklets with their fractions of the respondents, and the number of respondents who meet every target.

    - `one_question` : the number of respondents if every booklet is one question.
    - `one_question_to_estimate` : the number of them who make all shares estimable, too.
    - `single_requirements` : for units by name, the epsilon of their channel and a number of respondents. So many meet
      its targets and make it estimable if all are asked this unit alone.
    """

    shares: BookletShares
    respondents: float
    one_question: float
    one_question_to_estimate: float
    single_requirements: Mapping[str, tuple[float, float]]


class BookletPlanner:
    """Planner of booklets for units with targets, within epsilon (nats) and, if it is capped, eta.

    table_pairs : pairs of questions that need a two-way table.
    tables : tables with targets.
    search_joint, certify, channels : as for `BookletDesigner`.
    """

    def __init__(
        self, units: Sequence[Unit], epsilon: float, eta: float | None, table_pairs: Sequence[tuple[str, str]] = (),
        search_joint: bool = True, certify: bool = True, tables: Sequence[Table] = (),
        channels: DesignedChannels | None = None,
    ) -> None:  # fmt: skip
        self.units, self.epsilon, self.eta = tuple(units), epsilon, eta
        self.search_joint = search_joint
        self.designer = BookletDesigner(epsilon, eta, search_joint, certify, channels or DesignedChannels())
        unit_by_name = {question.name: unit for unit in self.units for question in unit.questions}
        unit_by_name |= {question.option_of: unit for unit in self.units for question in unit.questions if unit.options}
        if unsuitable_names := [name for pair in table_pairs for name in pair if name not in unit_by_name]:
            raise invalid("[budget] together", SHARING_QUESTIONS, unsuitable_names[0])
        if unsuitable_names := [name for pair in table_pairs for name in pair if not unit_by_name[name].joins]:
            expected = "questions that share no report with a number, and whose missing answers are not left out"
            raise invalid("[budget] together", expected, unsuitable_names[0])
        self.pairs: dict[tuple[Unit, ...], list[Table]] = {}
        for table in tables:
            units_of_table = [unit for unit in self.units if unit in {unit_by_name[name] for name in table.names}]
            self.pairs.setdefault(tuple(units_of_table), []).append(table)
        for pair in table_pairs:
            units_of_table = list(dict.fromkeys(unit_by_name[name] for name in pair))
            if not any(set(units_of_pair) == set(units_of_table) for units_of_pair in self.pairs):
                self.pairs[tuple(units_of_table)] = []

    def plan(self, design: str, deadline: Deadline) -> Questionnaire:
        """Return the booklets that need the fewest respondents.

        design : "one question", each booklet is a single unit, or a pair that is wanted together; "booklets", also of
            several units, as many as `questions_per_booklet` gives; "joint", all units that can share a report do.
        """
        singles = [self._single_booklet(unit, deadline) for unit in self.units]
        pairs = [self._booklet(pair, deadline, self._further_targets(pair)) for pair in self.pairs if len(pair) > 1]
        short_booklets = [booklet for booklet in (*singles, *pairs) if booklet is not None]
        best = solve_shares(short_booklets)
        one_question, alone = best, [booklet for booklet in singles if booklet is not None]
        if len(alone) < len(short_booklets):  # Pairs are asked for their tables, which no question tells alone.
            with suppress(InvalidInput):
                one_question = solve_shares(alone)
        if design == "joint":
            of_all = (b for b in pairs if b is not None and set(b.units) == set(self.free))  # planned for its table too
            joint_booklet = next(of_all, None) or self._joint_booklet(deadline)
            others = [booklet for booklet in short_booklets if not set(booklet.units) <= set(joint_booklet.units)]
            best = solve_shares([joint_booklet, *others])
        elif design == "booklets":
            long_booklets = [self._booklet(units, deadline) for units in self._candidates() if not deadline.over()]
            improved = solve_shares([*(booklet for booklet in long_booklets if booklet is not None), *short_booklets])
            if self._respondents_of(improved) < self._respondents_of(best) * (1 - BOOKLET_RTOL):
                best = [(self._with_table(booklet), respondents) for booklet, respondents in improved[0]], improved[1]
                best = best[0], sum(respondents for _, respondents in best[0])
        shares = rational_shares(*best)
        required = respondents_for_shares(shares)
        single_requirements = {
            single.units[0].name: (float(local_dp(single.channel)), single.respondents)
            for single in singles
            if single is not None and single.respondents < math.inf
        }
        one_question_required = required if best is one_question else _respondents_for_targets(*one_question)
        return Questionnaire(
            shares, required, one_question_required, self._respondents_of(one_question), single_requirements
        )

    def _respondents_of(self, solution: tuple[list[tuple[Booklet, float]], float]) -> float:
        """Return the respondents of a solution of `solve_shares`, or more if so few leave a share inestimable.

        The estimates of a share from several booklets are combined, in proportion to their precision.
        """
        booklets, respondents = solution
        sums: dict[tuple[str, ...], Array] = {}
        for booklet, n in booklets:
            pilot, targets = product_of(booklet.units)
            rows, fraction = np.array([target.row for target in targets]).reshape(-1, len(pilot)), n / respondents
            is_identified, variances, third_moments = contrast_moments(booklet.channel, pilot, rows)
            precisions = np.where(is_identified, fraction / np.maximum(variances, SMALLEST_VARIANCE), 0.0)
            for target, precision, third in zip(targets, precisions, third_moments, strict=True):
                terms = np.array([precision, precision**3 * third / fraction**2 if precision else 0.0])
                sums[target.key] = sums.get(target.key, np.zeros(2)) + terms
        precision, third = np.array(list(sums.values())).reshape(-1, 2).T
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = reports_to_estimate(precision > 0, 1 / precision, third / precision**3)
        return max(_respondents_for_targets(*solution), float(needed.max(initial=0.0)))

    @property
    def free(self) -> tuple[Unit, ...]:
        """The units that may share a booklet with any others, and want a precision alone."""
        return tuple(
            unit
            for unit in self.units
            if unit.joins and not any(q.width is None or q.test or q.eta is not None for q in unit.questions)
        )

    def _joint_booklet(self, deadline: Deadline) -> Booklet:
        """Return the booklet of all free units with the best computed channel; `InvalidInput` if there is none."""
        units = self.free
        cells = math.prod(len(unit.cells) for unit in units)
        max_cells = MAX_JOINT_CELLS if self.eta is None else MAX_CELLS
        if len(units) < 2 or cells > max_cells:
            expected = f"two questions or more that want a half-width, with at most {max_cells} answers to all together"
            raise invalid('[budget] design "joint"', expected, Phrase(f"{len(units)} with {cells:,} answers"))
        if min(unit.pilot.min() for unit in units) <= 0:
            raise invalid('[budget] design "joint"', "pilots with a share above 0 for each answer", Phrase("a share 0"))
        pilot, targets = product_of(units)
        channel = channel_for_targets(targets, pilot, limits(self.epsilon, self.eta), deadline, ALL_UNITS_GAP)
        best = self.designer.without_rare_reports(units, channel, pilot, targets, joint=True)
        alternatives = [self._mixed_booklets(units, deadline)]
        unmerged_rate = min(booklet_of(units, channel, None, pilot, targets).rates.values())
        loses_by_merging = min(best.rates.values()) < (1 - MAX_MERGING_LOSS) * unmerged_rate
        if (loses_by_merging or self.eta is not None) and not deadline.over():
            pool = [
                channel,
                merge_rare_reports(channel, pilot),
                *(candidate for candidate in alternatives if candidate is not None),
            ]
            alternatives.append(
                reweighed_channel(pool, self.designer.response(units), pilot, targets, MIN_REPORT_PROBABILITY, self.eta)
            )
        for alternative in alternatives:
            if alternative is not None and (pilot @ alternative.matrix).min() >= MIN_REPORT_PROBABILITY:
                alternative_booklet = booklet_of(units, alternative, None, pilot, targets)
                best = min(best, alternative_booklet, key=lambda booklet: booklet.respondents)
        return best

    def _mixed_booklets(self, units: tuple[Unit, ...], deadline: Deadline) -> Channel | None:
        """Return the best booklets as one channel, by a public coin; None if a booklet cannot be designed.

        A joint report that is as good as booklets is thus always available.
        """
        planner = BookletPlanner(
            units,
            self.epsilon,
            self.eta,
            search_joint=self.search_joint,
            certify=False,
            channels=self.designer.channels,
        )
        with suppress(InvalidInput, SolverError):
            cells = np.indices([len(unit.cells) for unit in units]).reshape(len(units), -1)
            parts = []
            for booklet, share in planner.plan("booklets", deadline.inner).shares:
                positions = [units.index(unit) for unit in booklet.units]
                rows = np.ravel_multi_index(
                    [cells[place] for place in positions], [len(u.cells) for u in booklet.units]
                )
                parts.append(float(share) * booklet.channel.matrix[rows])
            matrix = np.hstack(parts)
            return Channel(matrix / matrix.sum(axis=1, keepdims=True))
        return None

    def _candidates(self) -> list[tuple[Unit, ...]]:
        """List the sets of units that may save respondents together, by decreasing saving at uniform shares.

        The sets are neighbors in a circle of similar units and, if they are few, all sets. Their channels together take
        at most `MAX_SEARCH_EFFORT`.
        """
        # Leaving out a missing answer would leave out the other answers of the report, so such questions stay alone.
        order = [place for place, unit in enumerate(self.units) if unit.joins]
        order.sort(key=lambda place: (len(self.units[place].cells), repr(self.units[place].kind), place))
        m, longest = len(order), questions_per_booklet(self.epsilon, self.eta)
        if m < 2:
            return []
        savings: dict[tuple[int, ...], tuple[float, int]] = {}
        saving_by_sizes: dict[tuple[int, ...], float] = {}
        for size in sorted(
            {*range(2, min(longest, MAX_SEARCHED_QUESTIONS, m) + 1), min(longest, MAX_YES_NO_QUESTIONS, m)}
        ):
            step = size if m % size == 0 else 1
            circle = {
                tuple(sorted(order[(start + offset) % m] for offset in range(size))) for start in range(0, m, step)
            }
            all_subsets = math.comb(m, size) <= MAX_SETS and size <= MAX_SEARCHED_QUESTIONS
            for subset in sorted(circle | (set(combinations(sorted(order), size)) if all_subsets else set())):
                units = tuple(self.units[place] for place in subset)
                sizes = tuple(sorted(len(unit.cells) for unit in units))
                if (
                    size < 2
                    or not (is_known(units) or size <= MAX_SEARCHED_QUESTIONS)
                    or set(units) in map(set, self.pairs)
                ):
                    continue
                if sizes not in saving_by_sizes:
                    saving_by_sizes[sizes] = saving_at_uniform(sizes, self.epsilon, self.eta)
                if saving_by_sizes[sizes] >= MIN_BOOKLET_SAVING:
                    savings[subset] = saving_by_sizes[sizes], subset not in circle
        kinds, effort, candidates = set[tuple[object, ...]](), 0, []
        for subset in sorted(savings, key=lambda subset: (savings[subset][1], -savings[subset][0], subset)):
            units = tuple(self.units[place] for place in subset)
            kind = tuple(unit.kind for unit in units)
            search_cost = 0 if kind in kinds or is_known(units) else math.prod(len(unit.cells) for unit in units) ** 2
            if effort + search_cost <= MAX_SEARCH_EFFORT:
                effort += search_cost
                kinds.add(kind)
                candidates.append(units)
        return candidates

    def _with_table(self, booklet: Booklet) -> Booklet:
        """Return the booklet with a report that also determines the table of its questions, if this costs little.

        A public coin decides between its channel and randomized response among all its answers. The rate of each target
        falls by at most the factor `MAX_TABLE_COST_FACTOR`.
        """
        pilot, targets = product_of(booklet.units)
        if len(booklet.units) < 2 or not targets or set(booklet.units) in map(set, self.pairs):
            return booklet
        response = self.designer.response(booklet.units)

        def mix_with_response(share: float) -> Booklet:
            parts = [
                part * channel.matrix for part, channel in ((1 - share, booklet.channel), (share, response)) if part > 0
            ]
            return booklet_of(booklet.units, Channel(np.hstack(parts)), None, pilot, targets)

        def costs_little(mixture: Booklet) -> bool:
            return all(
                MAX_TABLE_COST_FACTOR * mixture.rates[key] >= served
                for key, served in booklet.rates.items()
                if key in mixture.rates
            )

        if costs_little(response_booklet := mix_with_response(1.0)):
            return response_booklet
        low, high, best = 0.0, 1.0, booklet
        for _ in range(8):
            middle = (low + high) / 2
            if costs_little(mixture := mix_with_response(middle)):
                low, best = middle, mixture
            else:
                high = middle
        return best

    def _further_targets(self, pair: tuple[Unit, ...]) -> FurtherTargets:
        """Return the further targets of a booklet: tables, groups and regressions."""
        if not (tables := self.pairs[pair]):
            return FurtherTargets(None, tuple(cells_targets(pair)))
        pilot, targets = None, list[Target]()
        for table in tables:
            table_pilot, table_targets = table.targets(pair)
            if pilot is not None and table_pilot is not None and np.abs(pilot - table_pilot).max() > 1e-9:
                raise invalid(f"[[targets]] {table.target.title}: pilot", "one for the same questions", Phrase("two"))
            pilot = pilot if table_pilot is None else table_pilot
            targets += table_targets
        return FurtherTargets(pilot, tuple(targets))

    def _single_booklet(self, unit: Unit, deadline: Deadline) -> Booklet | None:
        """Return the booklet of one unit, which is searched as exactly as its part of the respondents deserves."""
        if (unit,) in self.pairs:
            return self._booklet((unit,), deadline, self._further_targets((unit,)))
        if unit.plain:
            return self._booklet((unit,), deadline)
        units = [other for other in self.units if (other,) not in self.pairs]
        requirements = [self.designer.least_respondents(other, deadline) for other in units if len(units) > 1]
        return self._booklet((unit,), deadline, usual=sum(requirements) / len(units))

    def _booklet(
        self,
        units: tuple[Unit, ...],
        deadline: Deadline,
        further: FurtherTargets | None = None,
        usual: float = 0.0,
    ) -> Booklet | None:
        """Return the booklet of these units with its best channel; None if the design is out of reach.

        usual : as for `BookletDesigner.booklet`.
        """
        try:
            return self.designer.booklet(units, deadline, further, usual)
        except (InvalidInput, SolverError) as error:
            if deadline.late or len(units) == 1:
                raise
            names = " and ".join(question.name for unit in units for question in unit.questions)
            remedy = "join answers, or name both in `everyone`"
            setting = "[[targets]]" if self.pairs.get(units) else "[budget] together"
            raise type(error)(f"{setting}: {names}: {error} ({remedy})") from None


def _respondents_for_targets(booklets: Sequence[tuple[Booklet, float]], respondents: float) -> float:
    """Return the unrounded number of respondents who meet every target with the shares of a solution."""
    return respondents_for_shares([(booklet, n / respondents) for booklet, n in booklets])


def needs_of(
    unit: Unit,
    known_design: tuple[float, float | None, float] | None = None,
    channels: DesignedChannels | None = None,
    coarse: bool = False,
) -> Needs:
    """Return the requirement of a unit in the form that `split_within` takes.

    known_design : as in `SharedNeeds`. It replaces designs of questions that share a report.
    channels : as for `BookletDesigner`.
    coarse : True for a comparison, where channels for a pilot near the unit's own are not tried.
    """

    def design(epsilon: float, eta: float | None) -> tuple[float, float]:
        planner = BookletPlanner([unit], epsilon, eta, search_joint=not coarse, certify=False, channels=channels)
        questionnaire = planner.plan("one question", UNLIMITED)
        used_epsilon, _ = questionnaire.single_requirements.get(unit.name, (epsilon, math.inf))
        is_spent = used_epsilon > MIN_SPENT_SHARE * epsilon
        return epsilon if is_spent else used_epsilon, questionnaire.one_question_to_estimate

    rtol = CURVE_RTOL if unit.plain else COARSE_CURVE_RTOL
    return SharedNeeds(min(len(unit.cells), MAX_UNIT_CELLS), unit.kind, design, known_design, rtol)
