"""Design the channel of one booklet: of a question, of questions that hang on one another, or of several units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import (
    Design,
    FisherInformation,
    Marginals,
    ThresholdColumns,
    optimal_channel,
)
from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.mechanisms import randomized_response
from ldpopt.numbers.tolerances import BOOKLET_RTOL
from ldpopt.privacy import total_variation
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.booklet import (
    Booklet,
    booklet_of,
    channel_for_targets,
    merge_rare_reports,
)
from ldpopt_survey.plan.booklet_rules import (
    MAX_CAPPED_CELLS,
    MAX_CELLS,
    MAX_SINGLE_QUESTION_EPSILON,
    is_known,
)
from ldpopt_survey.plan.mixed_channels import mixture_of
from ldpopt_survey.plan.number_points import MIN_POINTS, points_of, points_of_part
from ldpopt_survey.plan.numbers_and_sets import multi_select
from ldpopt_survey.plan.precision import limits, no_channel_found, prior_for_search
from ldpopt_survey.plan.rare_reports import attempt_of
from ldpopt_survey.plan.smaller_epsilon import (
    COARSE_LEAST_SAVING,
    LEAST_SAVING,
    MAX_SMALLER_EPSILONS,
    MAX_UNIT_EPSILONS,
    Attempt,
    fewest,
    smaller_epsilons,
)
from ldpopt_survey.plan.table_targets import FurtherTargets, shares_and_targets
from ldpopt_survey.plan.units import (
    Target,
    Unit,
    binding_targets,
    cap_of,
    product_of,
    smoothed_units,
)

MAX_UNIT_CELLS = 40
"""The most answers to questions that hang on one another whose report is about all; with more, it is about one."""

MAX_TABLE_CELLS = 256
"""The most answers to questions that are wanted together."""

MAX_SET_CELLS = 16
"""The most sets of options, of uneven shares, among which a channel is searched for: about half a second."""

UNIT_GAP, JOINT_GAP = 1e-2, 1e-4
"""The relative gaps of the channels of questions that hang on one another, and of others that share a report.

At the first one they need .1 to .2 % more respondents, and take half of the time that they take at 2e-3.
"""

SINGLE_UNIT_FRACTIONS = (0.02, 0.05, 0.1, 0.2, 0.4, 1.0)
"""Of respondents who report on one unit alone, tried where a channel is searched for several together."""

SMOOTHER_PILOTS, UNIT_SMOOTHER_PILOTS, LEAST_UNIT_SAVING = (3, 4), (4,), 0.1
"""Places in `DesignedChannels.attempts` of the smoothed pilots that are tried where estimates rest on rare reports.

The second ones are for questions that hang on one another, where they may save this part of the respondents.
"""

NEAR_EPSILON, MAX_COLD_CELLS = 0.05, 24
"""The distance of the logarithms of two epsilons where a channel at one is a good start for the other.

For more answers than the second number a search begins at any known channel, which takes half of the time. Then about
2 % more respondents are needed where reports are rare.
"""

CLEAR_EXCESS = math.log(4.0)
"""The logarithm of the ratio of both numbers of respondents by a channel that no other of that epsilon makes small."""


@dataclass(frozen=True, eq=False)
class DesignedChannels:
    """Channels that are designed already.

    - `by_kind` : with their designs, if these were searched, by budget, kinds of units and further targets. A budget
      begins with its epsilon. It is None where a design is out of reach.
    - `attempts` : for units whose estimates rest on rare reports. The keys are kind, eta, and place of the pilot of the
      search. 0 is the unit's own pilot, and then come those of `smoothed_units`.
    - `searched` : by epsilon, eta, kinds of units and further targets, the results of searches alone.
    - `starts` : by budget and kind of the unit, the first attempts.
    """

    by_kind: dict[tuple[Any, ...], tuple[Channel, Design | None] | None] = field(default_factory=dict)
    attempts: dict[tuple[Any, float | None, int], list[Attempt]] = field(default_factory=dict)
    searched: dict[tuple[Any, ...], Channel] = field(default_factory=dict)
    starts: dict[tuple[Any, ...], _Start] = field(default_factory=dict)

    def attempts_for(self, unit: Unit, place: int) -> list[Attempt]:
        """Return the attempts for a unit and a pilot of the search, within any eta."""
        return [
            attempt
            for (kind, _, other_place), attempts in self.attempts.items()
            if (kind, other_place) == (unit.kind, place)
            for attempt in attempts
        ]


@dataclass(frozen=True, eq=False)
class _Start:
    """The first channel of a unit that serves its targets, within a whole budget.

    - `result` : the channel and its design.
    - `place` : of the pilot of the search in `DesignedChannels.attempts`.
    - `attempts` : the channel as an attempt; none where reports are known to be rare.
    """

    result: tuple[Channel, Design | None] | None
    place: int
    attempts: tuple[Attempt, ...]

    @property
    def for_targets(self) -> float:
        """The respondents for the targets by any channel of this budget, about; 0 if they are not known."""
        return self.attempts[0].for_targets if self.attempts else 0.0


@dataclass(frozen=True, eq=False)
class BookletDesigner:
    """Designs of the channels of booklets, within epsilon (nats) and, if it is capped, eta.

    search_joint : True to search for channels of several units that are not known in closed form.
    certify : False, without `search_joint`, for a comparison of budgets, where smoother pilots are not tried.
    channels : the results so far, by budget and kinds of units; designers may share them.
    """

    epsilon: float
    eta: float | None
    search_joint: bool = True
    certify: bool = True
    channels: DesignedChannels = field(default_factory=DesignedChannels)

    @property
    def _is_coarse(self) -> bool:
        """True to compare budgets, where a design for each of them is enough."""
        return not self.certify and not self.search_joint

    def booklet(
        self,
        units: tuple[Unit, ...],
        deadline: Deadline,
        further: FurtherTargets | None = None,
        usual: float = 0.0,
    ) -> Booklet | None:
        """Return the booklet of these units with its best channel; None if the design is out of reach.

        usual : the mean of `least_respondents`, if many units are asked; a unit that needs fewer is searched less.
        `InvalidInput` or `SolverError` if no channel is found for a single unit, for further targets, or in time.
        """
        budget = self.epsilon, self.eta, self.search_joint, self.certify
        key = (budget, *(unit.kind for unit in units), None if further is None else further.kind)
        if key not in self.channels.by_kind:
            try:
                self.channels.by_kind[key] = self._channel_for_shares(units, further, deadline, usual)
            except (InvalidInput, SolverError):  # of too many cells under a cap, say
                if deadline.late or len(units) == 1 or further:
                    raise
                self.channels.by_kind[key] = None
        if (result := self.channels.by_kind[key]) is None:
            return None
        channel, design = result
        pilot, targets = shares_and_targets(units, further)
        booklet = booklet_of(units, channel, design, pilot, targets)
        if len(units) == 1 and units[0].plain and (test := units[0].questions[0].test) is not None:
            power: dict[tuple[str, ...], float] = {
                (units[0].name, "power"): 1 / test.respondents(channel, units[0].pilot)
            }
            return replace(booklet, rates={**booklet.rates, **power})
        return booklet

    def least_respondents(self, unit: Unit, deadline: Deadline) -> float:
        """Return about how many respondents a unit needs at least within this budget, unrounded.

        Errors are those of `booklet`.
        """
        return self._start_of((unit,), deadline).for_targets

    def _channel_for_shares(
        self, units: tuple[Unit, ...], further: FurtherTargets | None, deadline: Deadline, usual: float
    ) -> tuple[Channel, Design | None] | None:
        """Return the result of `_design`; for a single unit, a channel that needs fewer respondents if one is found.

        Estimates by the best channel may rest on rare reports, so that their intervals need many more respondents than
        the targets. Then others are tried (`_best_with_rare_reports`).
        """
        if len(units) > 1 or further:
            return self._design(units, further, deadline)
        start = self._start_of(units, deadline)
        best = min(start.attempts, key=lambda a: a.required, default=None)
        if best is None or best.required > best.for_targets * (1 + BOOKLET_RTOL):
            best = self._best_with_rare_reports(units, start, best, deadline, usual)
        result = start.result
        is_first = result is not None and best.channel is result[0] and start.place == 0
        return result if is_first else (best.channel, None)

    def _best_with_rare_reports(
        self, units: tuple[Unit, ...], start: _Start, first: Attempt | None, deadline: Deadline, usual: float
    ) -> Attempt:
        """Return the best attempt for a unit whose first channel has rare reports.

        A mixture with randomized response may be nearly as good as the first channel is for the targets. If not,
        channels of smaller epsilons, for smoother pilots, and mixtures of all are tried.
        """
        is_plain = units[0].plain
        if first is not None and (mixed := self._mixed(units, [first])) is not None:
            least_saving = LEAST_SAVING if is_plain else COARSE_LEAST_SAVING
            is_good = mixed.required <= first.for_targets * (1 + least_saving)
            if is_good or (self._is_coarse and not is_plain):
                return mixed
        pilots = units, *smoothed_units(units)
        attempts = self._at_smaller_epsilons(
            units, start.place, pilots[start.place], deadline, usual, list(start.attempts)
        )
        all_attempts = list(attempts)
        least_saving = LEAST_SAVING if is_plain else LEAST_UNIT_SAVING
        smoothers = SMOOTHER_PILOTS if is_plain else UNIT_SMOOTHER_PILOTS
        for smoother in () if self._is_coarse else smoothers:
            if fewest(attempts) <= start.for_targets + least_saving * max(start.for_targets, usual):
                break
            others = self._at_smaller_epsilons(units, smoother, pilots[smoother], deadline, usual, rivals=attempts)
            all_attempts, attempts = [*all_attempts, *others], min(attempts, others, key=fewest)
        if (mixed := self._mixed(units, all_attempts)) is not None:
            all_attempts.append(mixed)
        return min(all_attempts, key=lambda a: a.required)

    def _mixed(self, units: tuple[Unit, ...], attempts: Sequence[Attempt]) -> Attempt | None:
        """Return the best mixture of these attempts and of randomized response; None if it needs no fewer."""
        if len(units[0].cells) > MAX_UNIT_CELLS:
            return None
        epsilons = {self.epsilon, min(attempts, key=lambda a: a.required).epsilon}
        responses = [replace(self, epsilon=epsilon).response(units) for epsilon in sorted(epsilons, reverse=True)]
        mixture = mixture_of([*(attempt.channel for attempt in attempts), *responses], *product_of(units))
        return None if mixture is None else self._attempt(units, mixture)

    def _start_of(self, units: tuple[Unit, ...], deadline: Deadline) -> _Start:
        """Return the first attempt for a unit.

        The search may fail at a share near 0, and is then made at a pilot near the unit's own.
        """
        key = self.epsilon, self.eta, self.search_joint, self.certify, units[0].kind
        if key in self.channels.starts:
            return self.channels.starts[key]
        error = SolverError("no channel")
        for place, searched in enumerate((units, *smoothed_units(units))):
            known_attempts = self.channels.attempts.get((units[0].kind, self.eta, place), [])
            if not self.certify and any(a.excess > 0 and a.epsilon <= self.epsilon for a in known_attempts):
                return _Start(None, place, ())  # At this epsilon reports are rare, too.
            try:
                result, attempt = self._start(units, searched, deadline)
            except SolverError as failure:
                if deadline.late:
                    raise
                error = failure
                continue
            if attempt is not None and attempt.for_targets < math.inf:
                self.channels.starts[key] = _Start(result, place, (attempt,))
                return self.channels.starts[key]
        raise no_channel_found(f"question {units[0].name!r}", units[0].pilot, self.epsilon) from error

    def _start(
        self, units: tuple[Unit, ...], searched: tuple[Unit, ...], deadline: Deadline
    ) -> tuple[tuple[Channel, Design | None] | None, Attempt | None]:
        """Return the result of `_design` for a unit with the pilot of `searched`, and its attempt.

        Where estimates of a question by a channel without a proof rest on rare reports, another channel will take its
        place, so that a proof would be in vain. This is tried where they do by the simplest channel.
        """

        def designed(prove: bool) -> tuple[tuple[Channel, Design | None] | None, Attempt | None]:
            result = self._design(searched, None, deadline, prove)
            return result, None if result is None else self._attempt(units, result[0])

        proves = self.certify and searched is units and units[0].plain
        if proves and self._attempt(units, self.response(units)).excess > 0:
            result, start = designed(prove=False)
            if start is not None and start.excess > CLEAR_EXCESS:
                return result, start
        return designed(proves)

    def _attempt(self, units: tuple[Unit, ...], channel: Channel) -> Attempt:
        """Return a channel of this epsilon with the respondents that it needs; rare reports may be merged."""
        return attempt_of(self.epsilon, channel, *product_of(units))

    def _at_smaller_epsilons(
        self,
        units: tuple[Unit, ...],
        place: int,
        searched: tuple[Unit, ...],
        deadline: Deadline,
        usual: float,
        start: Sequence[Attempt] = (),
        rivals: Sequence[Attempt] = (),
    ) -> list[Attempt]:
        """Return the attempts of `smaller_epsilons` for a unit, besides `start`.

        - `searched` : the unit with the pilot of the search, at `place` in `DesignedChannels.attempts`.
        """

        def design_at(epsilon: float) -> Attempt | None:
            designer = replace(self, epsilon=epsilon, search_joint=False, certify=False)
            try:
                result = designer._design(searched, None, deadline, prove=False)
            except SolverError:
                return None
            return None if result is None else designer._attempt(units, result[0])

        key = units[0].kind, self.eta, place
        known_attempts = [*start, *self.channels.attempts.get(key, [])]
        similar_attempts = rivals or self.channels.attempts_for(units[0], place)
        first_epsilon = min(similar_attempts, key=lambda a: a.required).epsilon if similar_attempts else None
        least_saving = LEAST_SAVING if units[0].plain and not self._is_coarse else COARSE_LEAST_SAVING
        max_designs = MAX_SMALLER_EPSILONS if units[0].plain else MAX_UNIT_EPSILONS
        if self._is_coarse and not units[0].plain and similar_attempts:
            max_designs = 1  # At the epsilon that was the best within another eta
        attempts = smaller_epsilons(
            design_at, self.epsilon, deadline, known_attempts, first_epsilon, rivals, least_saving, usual, max_designs
        )
        self.channels.attempts[key] = [*known_attempts, *(a for a in attempts if a not in known_attempts)]
        return attempts

    def _design(
        self, units: tuple[Unit, ...], further: FurtherTargets | None, deadline: Deadline, prove: bool = True
    ) -> tuple[Channel, Design | None] | None:
        eta = cap_of(units, self.eta)
        if len(units) == 1 and units[0].plain and not further and (units[0].as_one or eta is not None):
            design = units[0].questions[0].design(self.epsilon, eta, deadline.inner, certify=prove)
            # A proof for uniform shares does not hold for a question with another pilot.
            searched_at_pilot = prior_for_search(units[0].pilot, eta) is units[0].pilot
            return Channel(units[0].questions[0].channel_of(design)), design if searched_at_pilot else None
        if len(units) == 1 and units[0].options and eta is None and not further and units[0].even and units[0].uniform:
            # Sets are listed with the first option changing fastest, and answers with the last one.
            return multi_select(units[0].options[::-1], self.epsilon).best.channel, None
        pilot, targets = shares_and_targets(units, further)
        targets, k = binding_targets(targets), len(pilot)
        if len(units) == 1 and units[0].has_number:
            return self._channel_with_numbers(units[0], eta, pilot, targets, deadline), None
        if not further and is_known(units) and len({t.variance for t in targets}) == 1:
            return self.response(units), None
        if len(units) > 1 and not further and any(q.test for unit in units for q in unit.questions):
            return None
        if not self.search_joint and len(units) > 1 and not further:
            return None
        if (
            len(units) == 1
            and not further
            and units[0].options
            and eta is None
            and (k > MAX_SET_CELLS or self.epsilon <= MAX_SINGLE_QUESTION_EPSILON)
        ):
            return self._better_for_options(units[0], self._channel_by_parts(units[0], eta, deadline)), None
        if len(units) == 1 and not further and k > MAX_UNIT_CELLS:
            return self._channel_by_parts(units[0], eta, deadline), None
        if pilot.min() <= 0 and further:
            raise invalid("pilots", "shares above 0 of all answers to questions that are asked together", pilot.min())
        if pilot.min() <= 0 or (
            len(units) > 1 and not further and k > (MAX_CELLS if eta is None else MAX_CAPPED_CELLS)
        ):
            return None
        if len(units) == 1 and further and k > MAX_UNIT_CELLS:
            return self.response(units), None
        if len(units) > 1 and further and k > MAX_TABLE_CELLS:
            raise invalid("answers to all together", f"at most {MAX_TABLE_CELLS}", k)
        if len(units) > 1 and further and k > MAX_CELLS:
            return self._channel_for_many_cells(units, eta, pilot, targets, deadline), None
        constraints, is_one = limits(self.epsilon, eta), len(units) == 1
        if not is_one and not further and all(unit.plain and unit.uniform for unit in units):
            scale = min(t.variance for t in targets)
            shape = tuple(len(unit.cells) for unit in units)
            variances = [binding_targets((*unit.targets, *unit.finer))[0].variance for unit in units]
            criterion = Marginals(shape, [(scale / variance) ** 2 for variance in variances])
            channel = optimal_channel(
                FisherInformation(pilot, criterion), constraints, method=ThresholdColumns(JOINT_GAP),
                time_limit=deadline.left, certify=False,
            ).channel  # fmt: skip
        else:
            gap = UNIT_GAP if is_one and not units[0].plain else JOINT_GAP
            key = self.epsilon, eta, *(unit.kind for unit in units), None if further is None else further.kind
            if key not in (searched := self.channels.searched):
                start = self._nearest_channel(units)
                searched[key] = channel_for_targets(targets, pilot, constraints, deadline, gap, start)
            channel = searched[key]
        if is_one and units[0].options and eta is None and not further:
            return self._better_for_options(units[0], channel), None
        if is_one:
            return channel, None
        best = self.without_rare_reports(units, channel, pilot, targets)
        if further is not None:
            response_booklet = booklet_of(units, self.response(units), None, pilot, targets)
            best = response_booklet if min(response_booklet.rates.values()) > min(best.rates.values()) else best
        return best.channel, None

    def _nearest_channel(self, units: tuple[Unit, ...]) -> Channel | None:
        """Return the searched channel of one unit at the nearest epsilon, if a search should begin at it."""
        if len(units) > 1:
            return None
        channels = [
            (abs(math.log(epsilon / self.epsilon)), channel)
            for (epsilon, _, *rest), channel in self.channels.searched.items()
            if rest == [units[0].kind, None]
        ]
        distance, channel = min(channels, key=lambda pair: pair[0], default=(math.inf, None))
        return channel if distance < NEAR_EPSILON or len(units[0].cells) > MAX_COLD_CELLS else None

    def _better_for_options(self, unit: Unit, searched: Channel) -> Channel:
        """Return the better of two channels for options: the searched one, and the known one for uniform options."""
        uniform = multi_select(unit.options[::-1], self.epsilon).best.channel
        pilot, targets = product_of([unit])
        booklets = [booklet_of((unit,), channel, None, pilot, targets) for channel in (searched, uniform)]
        return max(booklets, key=lambda booklet: min(booklet.rates.values())).channel

    def _channel_for_many_cells(
        self, units: tuple[Unit, ...], eta: float | None, pilot: Array, targets: Sequence[Target], deadline: Deadline
    ) -> Channel:
        """Return the better of two channels that need no search over all answers together.

        They are randomized response among all answers, and one report on each question with an equal part of the
        budget.
        """
        budget_part = self.epsilon / len(units) * (1 - 1e-12), None if eta is None else eta / len(units)
        designer, matrix = BookletDesigner(*budget_part, certify=False), np.ones((1, 1))
        for unit in units:
            single = designer.booklet((replace(unit, group_targets=()),), deadline.inner)
            assert single is not None
            matrix = np.asarray(np.kron(matrix, single.channel.matrix))
        booklets = [
            booklet_of(units, channel, None, pilot, targets) for channel in (self.response(units), Channel(matrix))
        ]
        return max(booklets, key=lambda booklet: min(booklet.rates.values())).channel

    def _channel_with_numbers(
        self, unit: Unit, eta: float | None, pilot: Array, targets: Sequence[Target], deadline: Deadline
    ) -> Channel:
        """Return the channel of questions that hang on one another and of numbers, by points between which it is
        searched.

        Where these are too many, the report is about one of the questions.
        """
        max_cells = MAX_UNIT_CELLS if eta is None else MAX_CAPPED_CELLS
        points = points_of(unit, MAX_CAPPED_CELLS) or points_of(unit, max_cells, MIN_POINTS)
        if points is None:
            return self._channel_by_parts(unit, eta, deadline)
        rows = points.rows(np.array([target.row for target in targets]))
        on_points = [replace(target, row=row) for target, row in zip(targets, rows, strict=True)]
        return points.channel(
            channel_for_targets(on_points, points.pilot(pilot), limits(self.epsilon, eta), deadline, JOINT_GAP)
        )

    def _channel_by_parts(self, unit: Unit, eta: float | None, deadline: Deadline) -> Channel:
        """Return the channel that reports on one question of a unit, drawn by a public coin.

        "Not applicable" is an answer to each question. The probabilities of the coin meet all targets with the same
        number of respondents.
        """
        channels, requirements = [], []
        for place, part in enumerate(unit.parts):
            answers = [part.categories.index(cell[place]) for cell in unit.cells]
            answer_shares = np.asarray(np.bincount(answers, unit.pilot, len(part.categories)), dtype=np.float64)
            rows = {answer: row for row, answer in enumerate(answers)}
            cell_by_answer = [rows[answer] for answer in range(len(answer_shares))]
            targets = [target for target in (*unit.targets, *unit.finer) if target.key[0] == part.name]
            contrasts = np.array([target.row[cell_by_answer] for target in targets]).reshape(-1, len(answer_shares))
            if part.measure == "mean":
                points = points_of_part(part)
                on_points = [
                    replace(target, row=row) for target, row in zip(targets, points.rows(contrasts), strict=True)
                ]
                shares, constraints = points.pilot(answer_shares), limits(self.epsilon, eta)
                channel = points.channel(channel_for_targets(on_points, shares, constraints, deadline, JOINT_GAP))
            else:
                utility = FisherInformation(answer_shares / answer_shares.sum())
                channel = optimal_channel(
                    utility, limits(self.epsilon, eta), time_limit=deadline.left, certify=False
                ).channel
            variances = contrast_variances(channel, answer_shares / answer_shares.sum(), contrasts)
            limits_on_variances = [target.variance for target in targets]
            requirements.append(
                max([v / limit for v, limit in zip(variances, limits_on_variances, strict=True)], default=0.0)
            )
            channels.append(channel.matrix[answers])
        shares = np.array(requirements) / sum(requirements)
        matrix = np.hstack(
            [share * matrix_of_part for share, matrix_of_part in zip(shares, channels, strict=True) if share > 0]
        )
        return Channel(matrix / matrix.sum(axis=1, keepdims=True))

    def without_rare_reports(
        self, units: tuple[Unit, ...], channel: Channel, pilot: Array, targets: Sequence[Target], joint: bool = False
    ) -> Booklet:
        """Return the booklet with a channel that has no rare report and determines every target.

        Without its rare reports a channel may lose a target, or determine it only by traces. A public coin then lets
        some respondents, or all, report on one unit alone.

        joint : whether it is the only booklet of these units, so that the target that is served least decides.
        """
        best = booklet_of(units, merge_rare_reports(channel, pilot), None, pilot, targets)
        if not joint and min(best.rates.values()) > 0:
            return best
        single_matrix = self._single_unit_matrix(units)
        for share in SINGLE_UNIT_FRACTIONS if single_matrix is not None else ():
            assert single_matrix is not None
            parts = [
                part * matrix for part, matrix in ((1 - share, best.channel.matrix), (share, single_matrix)) if part > 0
            ]
            mixture = booklet_of(units, Channel(np.hstack(parts)), None, pilot, targets)
            if min(mixture.rates.values()) > min(best.rates.values()):
                best = mixture
        return best

    def _single_unit_matrix(self, units: tuple[Unit, ...]) -> Array | None:
        """Return the channel (K, m) that reports on one unit, drawn by a public coin; None for a single unit."""
        if len(units) < 2:
            return None
        within_cap = self if (eta := cap_of(units, self.eta)) == self.eta else replace(self, eta=eta)
        singles = [within_cap.booklet((unit,), UNLIMITED) for unit in units]
        if any(single is None or not single.rates or min(single.rates.values()) <= 0 for single in singles):
            return None
        requirements = [1 / min(single.rates.values()) for single in singles if single is not None]
        cells = np.indices([len(unit.cells) for unit in units]).reshape(len(units), -1)
        parts = [
            requirement / sum(requirements) * single.channel.matrix[answers]
            for requirement, single, answers in zip(requirements, singles, cells, strict=True)
            if single is not None
        ]
        return np.asarray(np.hstack(parts))

    def response(self, units: Sequence[Unit]) -> Channel:
        """Return randomized response among the cells of units, within epsilon and their cap on eta."""
        response = randomized_response(math.prod(len(unit.cells) for unit in units), self.epsilon)
        eta = cap_of(units, self.eta)
        if eta is not None and (variation := float(total_variation(response))) > eta:
            return response.erase(min(1.0, 1 - eta / variation + 1e-15))
        return response
