"""Questions with targets and one epsilon -> booklets, their shares of respondents and channels [KW].

A booklet is one question, or a few that share a channel on the product of their answers. Each respondent is asked one
booklet, drawn without regard to any answer, and all of epsilon is that booklet's. The respondents for booklets with
given channels are a linear program; the candidates are single questions and sets of as many as the rule for yes/no
questions gives at that epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import Criterion, Design, FisherInformation, Marginals, optimal_channel
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.mechanisms import randomized_response
from ldpopt.numbers.tolerances import BOOKLETS
from ldpopt.privacy import total_variation
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.budget import Needs, NeedsOf
from ldpopt_survey.plan.numbers_and_sets import multi_select
from ldpopt_survey.plan.planned_question import MAX_DENOMINATOR, Part
from ldpopt_survey.plan.precision import limits, prior_for_search
from ldpopt_survey.plan.reweighing import reweighed
from ldpopt_survey.plan.units import MAX_JOINT_CELLS, Target, Unit, joint_design, product_of, rule

MAX_CELLS, MAX_CAPPED_CELLS = 36, 12
"""The most cells of a booklet whose channel is searched for, without and with a cap on eta."""

MAX_UNIT_CELLS = 40
"""The most answers to questions that hang on one another whose report is about all; with more, it is about one."""

MAX_LENGTH, MAX_SEARCHED = 12, 3
"""The most yes/no questions of one booklet, whose channel is known, with a row for each of their 2^c answers; and the
most questions of others.
"""

MAX_SETS = 512
"""The most sets of questions of one length among which the booklets are chosen."""

GAIN = 0.02
"""A booklet of several questions is tried where, at even shares, it saves this share of the respondents."""

EFFORT = 700
"""The most squares of numbers of cells, in sum, of the booklets that are tried: about half a second."""

TOLD = 1.02
"""How many times the respondents a booklet may need so that its report tells the table of its questions, too."""

ALONE = 1.0
"""Up to this epsilon one question at random was the best wherever that could be certified."""

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 1.0)
"""Of respondents who report on one unit alone, tried where a channel is searched for several together."""

RAREST = 1e-4
"""The least probability of a report under the pilot; rarer ones are joined with the one that is most like them."""


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
    alone : by the name of each unit, the respondents who meet its targets if all are asked it alone.
    """

    shares: Shares
    respondents: float
    one_question: float
    alone: Mapping[str, float]


class BookletPlanner:
    """Finds the booklets for units with targets, within epsilon (nats) and, if it is capped, eta.

    together : pairs of questions of which a two-way table is wanted.
    searched : whether channels of several units are searched for, where they are not known.
    certify : whether the channels of single units are proved to be the best.
    """

    def __init__(
        self, units: Sequence[Unit], epsilon: float, eta: float | None, together: Sequence[tuple[str, str]] = (),
        searched: bool = True, certify: bool = True,
    ) -> None:  # fmt: skip
        self.units, self.epsilon, self.eta = tuple(units), epsilon, eta
        self.searched, self.certify = searched, certify
        holders = {question.name: unit for unit in self.units for question in unit.questions}
        holders |= {question.option_of: unit for unit in self.units for question in unit.questions if unit.options}
        if lacking := [name for pair in together for name in pair if name not in holders]:
            expected = "names of questions that share the budget (one that everybody is asked needs no `together`)"
            raise invalid("[budget] together", expected, lacking[0])
        if lacking := [name for pair in together for name in pair if not holders[name].joins]:
            raise invalid("[budget] together", "questions whose shares are wanted", lacking[0])
        self.pairs = [tuple(dict.fromkeys(holders[name] for name in pair)) for pair in together]
        self._designs: dict[tuple[object, ...], tuple[Channel, Design | None] | None] = {}

    def plan(self, design: str, deadline: Deadline) -> Questionnaire:
        """The booklets that need the fewest respondents.

        design : "one question", each booklet is a single unit, or a pair that is wanted together; "booklets", also of
            several units, as many as `length` gives; "joint", all units that can share a report do.
        """
        singles = [self._booklet((unit,), deadline) for unit in self.units]
        pairs = [self._booklet(pair, deadline, _table_targets(pair)) for pair in self.pairs]
        known = [booklet for booklet in (*singles, *pairs) if booklet is not None]
        best = _shared_out(known)
        one_question = best
        if design == "joint":
            whole = self._whole(deadline)
            others = [booklet for booklet in known if not set(booklet.units) < set(whole.units)]
            best = _shared_out([whole, *others])
        elif design == "booklets":
            longer = [self._booklet(units, deadline) for units in self._candidates() if not deadline.over()]
            better = _shared_out([*(booklet for booklet in longer if booklet is not None), *known])
            if better[1] < best[1] * (1 - BOOKLETS):
                best = [(self._telling(booklet), people) for booklet, people in better[0]], better[1]
                best = best[0], sum(people for _, people in best[0])
        shares = _rational(*best)
        needed = _needed(shares)
        alone = {one.units[0].name: 1 / min(one.served.values()) for one in singles if one is not None}
        return Questionnaire(shares, needed, needed if best is one_question else one_question[1], alone)

    @property
    def free(self) -> tuple[Unit, ...]:
        """The units that may share a booklet with any others, and want a precision alone."""
        return tuple(
            unit
            for unit in self.units
            if unit.joins and not any(q.width is None or q.test or q.eta is not None for q in unit.questions)
        )

    def _whole(self, deadline: Deadline) -> Booklet:
        """The booklet of all free units, with the best channel of all that is found; `InvalidInput` where none is."""
        units = self.free
        cells = math.prod(len(unit.cells) for unit in units)
        most = MAX_CAPPED_CELLS if self.eta is not None else MAX_JOINT_CELLS
        if len(units) < 2 or cells > most:
            expected = f"two questions or more that want a half-width, with at most {most} answers to all together"
            raise invalid('[budget] design "joint"', expected, Phrase(f"{len(units)} with {cells:,} answers"))
        if min(unit.pilot.min() for unit in units) <= 0:
            raise invalid('[budget] design "joint"', "pilots with a share above 0 for each answer", Phrase("a share 0"))
        pilot, targets = product_of(units)
        if self.eta is None:
            design = joint_design(units, self.epsilon, deadline.left)
            if design is None:
                raise SolverError("joint design: no channel was found in time (leave design out for booklets)")
            channel = design.channel
        else:
            criterion = _criterion(targets, pilot)
            within = limits(self.epsilon, self.eta)
            channel = optimal_channel(
                FisherInformation(pilot, criterion), within, time_limit=deadline.left, certify=False
            ).channel
        whole = self._sturdy(units, channel, pilot, targets, joint=True)
        others = [self._drawn(units, deadline)]
        found = min(_served(units, channel, None, pilot, targets).served.values())
        if min(whole.served.values()) < (1 - BOOKLETS) * found and self.eta is None and not deadline.over():
            pool = [channel, _without_rare(channel, pilot), *(each for each in others if each is not None)]
            others.append(reweighed(pool, self._plain(len(pilot)), pilot, targets, RAREST))
        for better in others:
            if better is not None and (pilot @ better.matrix).min() >= RAREST:
                made = _served(units, better, None, pilot, targets)
                whole = max(whole, made, key=lambda booklet: min(booklet.served.values()))
        return whole

    def _drawn(self, units: tuple[Unit, ...], deadline: Deadline) -> Channel | None:
        """The best booklets of these units as one channel, by a public coin; None where one of them is out of reach.

        A joint report that is as good as booklets is thus always there.
        """
        planner = BookletPlanner(units, self.epsilon, self.eta, searched=self.searched, certify=False)
        with suppress(InvalidInput, SolverError):
            cells = np.indices([len(unit.cells) for unit in units]).reshape(len(units), -1)
            parts = []
            for booklet, share in planner.plan("booklets", deadline.inner).shares:
                places = [units.index(unit) for unit in booklet.units]
                at = np.ravel_multi_index([cells[place] for place in places], [len(u.cells) for u in booklet.units])
                parts.append(float(share) * booklet.channel.matrix[at])
            matrix = np.hstack(parts)
            return Channel(matrix / matrix.sum(axis=1, keepdims=True))
        return None

    def _candidates(self) -> list[tuple[Unit, ...]]:
        """Sets of units that may save respondents together, those that save the most at even shares first.

        They are neighbours in a circle of like units and, where they are few, all sets. Together their channels take
        at most `EFFORT`.
        """
        # A missing answer that is left out would leave out the answers beside it, so such questions stay alone.
        order = [place for place, unit in enumerate(self.units) if unit.joins]
        order.sort(key=lambda place: (len(self.units[place].cells), repr(self.units[place].kind), place))
        m, longest = len(order), length(self.epsilon, self.eta)
        found: dict[tuple[int, ...], tuple[float, int]] = {}
        gains: dict[tuple[int, ...], float] = {}
        for size in sorted({*range(2, min(longest, MAX_SEARCHED, m) + 1), min(longest, MAX_LENGTH, m)}):
            step = size if m % size == 0 else 1
            circle = {tuple(sorted(order[(start + more) % m] for more in range(size))) for start in range(0, m, step)}
            every = math.comb(m, size) <= MAX_SETS and size <= MAX_SEARCHED
            for chosen in sorted(circle | (set(combinations(sorted(order), size)) if every else set())):
                units = tuple(self.units[place] for place in chosen)
                sizes = tuple(sorted(len(unit.cells) for unit in units))
                if size < 2 or not (_known(units) or size <= MAX_SEARCHED) or set(units) in map(set, self.pairs):
                    continue
                if sizes not in gains:
                    gains[sizes] = gain_at_even(sizes, self.epsilon, self.eta)
                if gains[sizes] >= GAIN:
                    found[chosen] = gains[sizes], chosen not in circle
        kinds, effort, candidates = set[tuple[object, ...]](), 0, []
        for chosen in sorted(found, key=lambda chosen: (found[chosen][1], -found[chosen][0], chosen)):
            units = tuple(self.units[place] for place in chosen)
            kind = tuple(unit.kind for unit in units)
            cost = 0 if kind in kinds or _known(units) else math.prod(len(unit.cells) for unit in units) ** 2
            if effort + cost <= EFFORT:
                effort += cost
                kinds.add(kind)
                candidates.append(units)
        return candidates

    def _telling(self, booklet: Booklet) -> Booklet:
        """The booklet with a report that also tells the table of its questions, where this costs little enough.

        A public coin decides between its channel and randomized response among all its answers, so that what each
        target is served falls by at most the factor `TOLD`.
        """
        pilot, targets = product_of(booklet.units)
        if len(booklet.units) < 2 or not targets or set(booklet.units) in map(set, self.pairs):
            return booklet
        plain = self._plain(len(pilot))

        def mixed(share: float) -> Booklet:
            parts = [part * each.matrix for part, each in ((1 - share, booklet.channel), (share, plain)) if part > 0]
            return _served(booklet.units, Channel(np.hstack(parts)), None, pilot, targets)

        def enough(told: Booklet) -> bool:
            return all(
                TOLD * told.served[key] >= served for key, served in booklet.served.items() if key in told.served
            )

        if enough(whole := mixed(1.0)):
            return whole
        low, high, best = 0.0, 1.0, booklet
        for _ in range(8):
            middle = (low + high) / 2
            if enough(told := mixed(middle)):
                low, best = middle, told
            else:
                high = middle
        return best

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
        booklet = _served(units, channel, design, pilot, targets)
        if len(units) == 1 and units[0].plain and (test := units[0].questions[0].test) is not None:
            power: dict[tuple[str, ...], float] = {
                (units[0].name, "power"): 1 / test.respondents(channel, units[0].pilot)
            }
            return replace(booklet, served={**booklet.served, **power})
        return booklet

    def _designed(
        self, units: tuple[Unit, ...], more: Sequence[Target], deadline: Deadline
    ) -> tuple[Channel, Design | None] | None:
        etas = [cap for cap in (self.eta, *(q.eta for unit in units for q in unit.questions)) if cap is not None]
        eta = min(etas, default=None)
        if len(units) == 1 and units[0].plain and not more:
            design = units[0].questions[0].design(self.epsilon, eta, deadline.inner)
            # What is proved of a design for even shares is not said of a question whose pilot is another one.
            searched = prior_for_search(units[0].pilot, eta) is units[0].pilot
            return Channel(units[0].questions[0].channel_of(design)), design if searched else None
        if len(units) == 1 and units[0].options and eta is None and not more and units[0].even:
            # Sets are listed with the first option changing fastest, and answers with the last one.
            return multi_select(units[0].options[::-1], self.epsilon).best.channel, None
        pilot, targets = product_of(units, more)
        k = len(pilot)
        if not more and _known(units) and len({t.variance for t in targets}) == 1:
            plain = randomized_response(k, self.epsilon)
            if eta is not None and (reach := float(total_variation(plain))) > eta:
                plain = plain.erase(min(1.0, 1 - eta / reach + 1e-15))
            return plain, None
        if len(units) > 1 and not more and any(q.test for unit in units for q in unit.questions):
            return None
        if not self.searched and len(units) > 1 and not more:
            return None
        if len(units) == 1 and not more and k > MAX_UNIT_CELLS:
            return self._by_parts(units[0], eta, deadline), None
        if pilot.min() <= 0 or (len(units) > 1 and not more and k > (MAX_CELLS if eta is None else MAX_CAPPED_CELLS)):
            return None
        if all(unit.plain for unit in units) and not more:
            scale = min(t.variance for t in targets)
            shape = tuple(len(unit.cells) for unit in units)
            criterion: Criterion = Marginals(shape, [(scale / unit.targets[0].variance) ** 2 for unit in units])
        else:
            criterion = _criterion(targets, pilot)
        wanted, within = FisherInformation(pilot, criterion), limits(self.epsilon, eta)
        design = optimal_channel(wanted, within, time_limit=deadline.left, certify=self.certify and len(units) == 1)
        if len(units) == 1:
            return design.channel, design
        return self._sturdy(units, design.channel, pilot, targets).channel, None

    def _by_parts(self, unit: Unit, eta: float | None, deadline: Deadline) -> Channel:
        """The channel by which a respondent reports on one question of a unit, drawn by a public coin.

        "Not applicable" is an answer to each. The shares of the coin are such that all targets are met at once.
        """
        channels, needs = [], []
        for place, part in enumerate(unit.parts):
            answers = [part.categories.index(cell[place]) for cell in unit.cells]
            law = np.bincount(answers, unit.pilot, len(part.categories))
            wanted = FisherInformation(law / law.sum())
            design = optimal_channel(wanted, limits(self.epsilon, eta), time_limit=deadline.left, certify=False)
            rows = {answer: row for row, answer in enumerate(answers)}
            at = [rows[answer] for answer in range(len(law))]
            targets = [target for target in unit.targets if target.key[0] == part.name]
            contrasts = np.array([target.row[at] for target in targets]).reshape(-1, len(law))
            variances = contrast_variances(design.channel, law / law.sum(), contrasts)
            allowed = [target.variance for target in targets]
            needs.append(max([v / most for v, most in zip(variances, allowed, strict=True)], default=0.0))
            channels.append(design.channel.matrix[answers])
        shares = np.array(needs) / sum(needs)
        matrix = np.hstack([share * each for share, each in zip(shares, channels, strict=True) if share > 0])
        return Channel(matrix / matrix.sum(axis=1, keepdims=True))

    def _sturdy(
        self, units: tuple[Unit, ...], channel: Channel, pilot: Array, targets: Sequence[Target], joint: bool = False
    ) -> Booklet:
        """The booklet with a channel that has no rare report and tells every target.

        Without its rare reports a channel may miss a target, or tell it by traces alone. Then a public coin lets some
        respondents, or all, report on one unit alone.

        joint : whether it is the only booklet of these units, so that the target that is served least decides.
        """
        best = _served(units, _without_rare(channel, pilot), None, pilot, targets)
        if not joint and min(best.served.values()) > 0:
            return best
        alone = self._one_by_one(units)
        for share in SHARES if alone is not None else ():
            assert alone is not None
            parts = [part * each for part, each in ((1 - share, best.channel.matrix), (share, alone)) if part > 0]
            mixed = _served(units, Channel(np.hstack(parts)), None, pilot, targets)
            if min(mixed.served.values()) > min(best.served.values()):
                best = mixed
        return best

    def _one_by_one(self, units: tuple[Unit, ...]) -> Array | None:
        """(K, m) the channel by which a report is about one of the units, drawn by a public coin; None for one unit."""
        if len(units) < 2:
            return None
        singles = [self._booklet((unit,), UNLIMITED) for unit in units]
        if any(single is None or not single.served or min(single.served.values()) <= 0 for single in singles):
            return None
        needs = [1 / min(single.served.values()) for single in singles if single is not None]
        cells = np.indices([len(unit.cells) for unit in units]).reshape(len(units), -1)
        parts = [
            need / sum(needs) * single.channel.matrix[at]
            for need, single, at in zip(needs, singles, cells, strict=True)
            if single is not None
        ]
        return np.asarray(np.hstack(parts))

    def _plain(self, cells: int) -> Channel:
        """Randomized response among so many cells within epsilon, and eta if it is capped."""
        plain = randomized_response(cells, self.epsilon)
        if self.eta is not None and (reach := float(total_variation(plain))) > self.eta:
            return plain.erase(min(1.0, 1 - self.eta / reach + 1e-15))
        return plain


def _criterion(targets: Sequence[Target], pilot: Array) -> Criterion:
    """Information is shared out so that every variance is in proportion to the one that is wanted.

    The weight of the cells themselves is a trace, which the faster method for `Marginals` asks for.
    """
    scale = min(t.variance for t in targets)
    rows = np.array([(t.row - t.row @ pilot) * (scale / t.variance) for t in targets])
    return Marginals((len(pilot),), [1e-9], contrasts=rows.T)


def _known(units: Sequence[Unit]) -> bool:
    """Whether the best channel of a booklet is randomized response: of even yes/no questions."""
    return len(units) <= MAX_LENGTH and all(unit.even and unit.plain and len(unit.cells) == 2 for unit in units)


def _served(
    units: tuple[Unit, ...], channel: Channel, design: Design | None, pilot: Array, targets: Sequence[Target]
) -> Booklet:
    """The booklet with what one respondent's report through the channel serves each target."""
    variances = contrast_variances(channel, pilot, np.array([t.row for t in targets]).reshape(-1, len(pilot)))
    served = {
        target.key: target.variance / variance if math.isfinite(variance) else 0.0
        for target, variance in zip(targets, variances, strict=True)
    }
    return Booklet(units, channel, design, served)


def _without_rare(channel: Channel, pilot: Array) -> Channel:
    """The channel with reports rarer than `RAREST` joined each with the one that it is most like.

    That is a function of the report, so that no guarantee is weaker. A solver leaves traces of reports that nearly
    nobody sends; what they would tell must not count.
    """
    columns = channel.matrix.copy()
    while len(law := pilot @ columns) > 2 and law.min() < RAREST:
        rare = int(law.argmin())
        ratios = columns / np.maximum(law, 1e-300)
        distances = pilot @ (ratios - ratios[:, [rare]]) ** 2
        distances[rare] = np.inf
        columns[:, int(distances.argmin())] += columns[:, rare]
        columns = np.delete(columns, rare, axis=1)
    return Channel(columns / columns.sum(axis=1, keepdims=True))


def length(epsilon: float, eta: float | None = None) -> int:
    """The number of yes/no questions at random of which one report tells the most, answered together [KW].

    It is the c with the largest c t min(t, eta), where t = (e^eps - 1) / (2^c + e^eps - 1) is the total variation of
    randomized response among 2^c answers: without eta 1 below an epsilon of 1.34, 2 up to 2.69, then 3 and more.

    >>> [length(epsilon) for epsilon in (1.3, 1.4, 2.6, 2.7, 5.0)], length(2.0, 0.4)
    ([1, 2, 2, 3, 5], 3)
    """
    fall, rise = math.exp(-epsilon), -math.expm1(-epsilon)
    told = {c: rise / (2.0**c * fall + rise) for c in range(1, MAX_LENGTH + 1)}
    return max(told, key=lambda c: c * told[c] * min(told[c], 1.0 if eta is None else eta))


def gain_at_even(sizes: Sequence[int], epsilon: float, eta: float | None = None) -> float:
    """Which share of the respondents one report on questions of so many answers saves against one question each.

    It is for even shares, equal targets for the sums of variances, and reports that name a set of answers to each
    question; there the sizes of the sets decide.

    >>> round(gain_at_even((2, 2), 2.0), 3), round(gain_at_even((2, 3), 2.0), 3), gain_at_even((3, 3), 2.0) < 0
    (0.233, 0.032, True)
    """

    def total(answers: Sequence[int]) -> float:
        k = np.array(answers, dtype=np.float64)
        sets = np.array(list(product(*(range(1, count) for count in answers))), dtype=np.float64)
        alpha = (sets / k).prod(axis=1)
        reach = -math.expm1(-epsilon) / (math.exp(-epsilon) - math.expm1(-epsilon) * alpha)
        information = (alpha * reach)[:, None] ** 2 * (k / sets - 1)
        if eta is not None:
            both = (sets * (sets - 1) / (k * (k - 1))).prod(axis=1)
            information *= np.minimum(1.0, eta / (reach * (alpha - both)))[:, None]
        return float(((k - 1) ** 2 / (k * information)).sum(axis=1).min())

    if math.prod(sizes) > MAX_CELLS and set(sizes) != {2}:
        return -math.inf
    alone = sum(math.sqrt(total((count,))) for count in sizes) ** 2
    return 1 - total(tuple(sizes)) / alone


def joint_ratio(units: Sequence[Unit], epsilon: float) -> float:
    """How many times the respondents of one question each the best report on all answers needs, at even shares.

    An estimate for other shares: the two ratios differed by at most 3 % where both were found. nan where all have more
    than `MAX_JOINT_CELLS` answers together, or are not shares of single questions; 1 up to an epsilon of `ALONE`.
    """
    shape = tuple(len(unit.cells) for unit in units)
    if len(units) < 2 or math.prod(shape) > MAX_JOINT_CELLS or not all(unit.plain and unit.targets for unit in units):
        return math.nan
    if epsilon <= ALONE:
        return 1.0
    weights = [(units[0].targets[0].variance / unit.targets[0].variance) ** 2 for unit in units]
    if set(shape) == {2} and len(set(weights)) == 1:
        return rule(1, epsilon) / rule(len(units), epsilon)

    def total(shape: Sequence[int], weights: Sequence[float]) -> float:
        cells = math.prod(shape)
        wanted = FisherInformation(np.full(cells, 1 / cells), Marginals(tuple(shape), list(weights)))
        return float(optimal_channel(wanted, limits(epsilon, None), certify=False).value)

    alone = sum(math.sqrt(total([k], [weight])) for k, weight in zip(shape, weights, strict=True)) ** 2
    return min(1.0, total(shape, weights) / alone)


def needs_of(unit: Unit, at: tuple[float, float | None, float] | None = None) -> Needs:
    """What respondents a unit needs, as `split_within` takes it.

    at : as for `NeedsOf`, which is taken in place of designs for questions that share a report.
    """
    if unit.plain and unit.questions[0].scores is None:
        return unit.pilot, unit.questions[0].target

    def needed(epsilon: float, eta: float | None) -> float:
        return BookletPlanner([unit], epsilon, eta, certify=False).plan("one question", UNLIMITED).respondents

    return NeedsOf(len(unit.cells), unit.kind, needed, at)


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
