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
from itertools import combinations

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import Criterion, Design, FisherInformation, Marginals, MVOptimal, optimal_channel
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.mechanisms import randomized_response
from ldpopt.numbers.tolerances import BOOKLETS
from ldpopt.privacy import total_variation
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.booklet import RAREST, Booklet, Shares, booklet_of, criterion_of, without_rare
from ldpopt_survey.plan.booklet_rules import (
    ALONE,
    MAX_CAPPED_CELLS,
    MAX_CELLS,
    MAX_LENGTH,
    MAX_SEARCHED,
    gain_at_even,
    is_known,
    length,
)
from ldpopt_survey.plan.booklet_shares import rational_shares, respondents_of, shared_out
from ldpopt_survey.plan.budget import Needs, NeedsOf
from ldpopt_survey.plan.numbers_and_sets import multi_select
from ldpopt_survey.plan.precision import MAX_MINIMAX, limits, prior_for_search
from ldpopt_survey.plan.reweighing import reweighed
from ldpopt_survey.plan.table_targets import Table, Wanted, cells_targets, shares_and_targets
from ldpopt_survey.plan.units import MAX_JOINT_CELLS, Target, Unit, binding, joint_design, product_of

MAX_UNIT_CELLS = 40
"""The most answers to questions that hang on one another whose report is about all; with more, it is about one."""

MAX_APART = 256
"""The most answers to questions that are wanted together."""

MAX_SET_CELLS = 16
"""The most sets of options, of uneven shares, among which a channel is searched for: about half a second."""

MAX_SETS = 512
"""The most sets of questions of one length among which the booklets are chosen."""

GAIN = 0.02
"""A booklet of several questions is tried where, at even shares, it saves this share of the respondents."""

EFFORT = 700
"""The most squares of numbers of cells, in sum, of the booklets that are tried: about half a second."""

TOLD = 1.02
"""How many times the respondents a booklet may need so that its report tells the table of its questions, too."""

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 1.0)
"""Of respondents who report on one unit alone, tried where a channel is searched for several together."""


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

    together : pairs of questions of which a two-way table is wanted. tables : those with targets of their own.
    searched : whether channels of several units are searched for, where they are not known.
    certify : whether the channels of single questions are proved to be the best.
    """

    def __init__(
        self, units: Sequence[Unit], epsilon: float, eta: float | None, together: Sequence[tuple[str, str]] = (),
        searched: bool = True, certify: bool = True, tables: Sequence[Table] = (),
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
        self.pairs: dict[tuple[Unit, ...], list[Table]] = {}
        for table in tables:
            asked = [unit for unit in self.units if unit in {holders[name] for name in table.names}]
            self.pairs.setdefault(tuple(asked), []).append(table)
        for pair in together:
            asked = list(dict.fromkeys(holders[name] for name in pair))
            if not any(set(known) == set(asked) for known in self.pairs):
                self.pairs[tuple(asked)] = []
        self._designs: dict[tuple[object, ...], tuple[Channel, Design | None] | None] = {}

    def plan(self, design: str, deadline: Deadline) -> Questionnaire:
        """The booklets that need the fewest respondents.

        design : "one question", each booklet is a single unit, or a pair that is wanted together; "booklets", also of
            several units, as many as `length` gives; "joint", all units that can share a report do.
        """
        singles = [
            self._booklet((unit,), deadline, self._wanted_of((unit,)) if (unit,) in self.pairs else None)
            for unit in self.units
        ]
        pairs = [self._booklet(pair, deadline, self._wanted_of(pair)) for pair in self.pairs if len(pair) > 1]
        known = [booklet for booklet in (*singles, *pairs) if booklet is not None]
        best = shared_out(known)
        one_question = best
        if design == "joint":
            whole = self._whole(deadline)
            others = [booklet for booklet in known if not set(booklet.units) < set(whole.units)]
            best = shared_out([whole, *others])
        elif design == "booklets":
            longer = [self._booklet(units, deadline) for units in self._candidates() if not deadline.over()]
            better = shared_out([*(booklet for booklet in longer if booklet is not None), *known])
            if better[1] < best[1] * (1 - BOOKLETS):
                best = [(self._telling(booklet), people) for booklet, people in better[0]], better[1]
                best = best[0], sum(people for _, people in best[0])
        shares = rational_shares(*best)
        needed = respondents_of(shares)
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
            criterion = criterion_of(targets, pilot)
            within = limits(self.epsilon, self.eta)
            channel = optimal_channel(
                FisherInformation(pilot, criterion), within, time_limit=deadline.left, certify=False
            ).channel
        whole = self._sturdy(units, channel, pilot, targets, joint=True)
        others = [self._drawn(units, deadline)]
        found = min(booklet_of(units, channel, None, pilot, targets).served.values())
        if min(whole.served.values()) < (1 - BOOKLETS) * found and self.eta is None and not deadline.over():
            pool = [channel, without_rare(channel, pilot), *(each for each in others if each is not None)]
            others.append(reweighed(pool, self._plain(len(pilot)), pilot, targets, RAREST))
        for better in others:
            if better is not None and (pilot @ better.matrix).min() >= RAREST:
                made = booklet_of(units, better, None, pilot, targets)
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
                if size < 2 or not (is_known(units) or size <= MAX_SEARCHED) or set(units) in map(set, self.pairs):
                    continue
                if sizes not in gains:
                    gains[sizes] = gain_at_even(sizes, self.epsilon, self.eta)
                if gains[sizes] >= GAIN:
                    found[chosen] = gains[sizes], chosen not in circle
        kinds, effort, candidates = set[tuple[object, ...]](), 0, []
        for chosen in sorted(found, key=lambda chosen: (found[chosen][1], -found[chosen][0], chosen)):
            units = tuple(self.units[place] for place in chosen)
            kind = tuple(unit.kind for unit in units)
            cost = 0 if kind in kinds or is_known(units) else math.prod(len(unit.cells) for unit in units) ** 2
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
            return booklet_of(booklet.units, Channel(np.hstack(parts)), None, pilot, targets)

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

    def _wanted_of(self, pair: tuple[Unit, ...]) -> Wanted:
        """Return the further targets of a booklet: tables, groups and regressions."""
        if not (tables := self.pairs[pair]):
            return Wanted(None, tuple(cells_targets(pair)))
        pilot, targets = None, list[Target]()
        for table in tables:
            law, found = table.targets(pair)
            if pilot is not None and law is not None and np.abs(pilot - law).max() > 1e-9:
                raise invalid(f"[[targets]] {table.target.title}: pilot", "one for the same questions", Phrase("two"))
            pilot = pilot if law is None else law
            targets += found
        return Wanted(pilot, tuple(targets))

    def _booklet(self, units: tuple[Unit, ...], deadline: Deadline, more: Wanted | None = None) -> Booklet | None:
        """The booklet of these units with its best channel; None where that is out of reach."""
        key = (*(unit.kind for unit in units), None if more is None else more.kind)
        if key not in self._designs:
            try:
                self._designs[key] = self._designed(units, more, deadline)
            except (InvalidInput, SolverError) as error:  # of too many cells under a cap, say
                if deadline.late or len(units) == 1:
                    raise
                if more:
                    names = " and ".join(question.name for unit in units for question in unit.questions)
                    remedy = "join answers, or name both in `everyone`"
                    asked_for = "[[targets]]" if self.pairs.get(units) else "[budget] together"
                    raise type(error)(f"{asked_for}: {names}: {error} ({remedy})") from None
                self._designs[key] = None
        if (designed := self._designs[key]) is None:
            return None
        channel, design = designed
        pilot, targets = shares_and_targets(units, more)
        booklet = booklet_of(units, channel, design, pilot, targets)
        if len(units) == 1 and units[0].plain and (test := units[0].questions[0].test) is not None:
            power: dict[tuple[str, ...], float] = {
                (units[0].name, "power"): 1 / test.respondents(channel, units[0].pilot)
            }
            return replace(booklet, served={**booklet.served, **power})
        return booklet

    def _designed(
        self, units: tuple[Unit, ...], more: Wanted | None, deadline: Deadline
    ) -> tuple[Channel, Design | None] | None:
        etas = [cap for cap in (self.eta, *(q.eta for unit in units for q in unit.questions)) if cap is not None]
        eta = min(etas, default=None)
        if len(units) == 1 and units[0].plain and not more and (units[0].as_one or eta is not None):
            design = units[0].questions[0].design(self.epsilon, eta, deadline.inner)
            # What is proved of a design for even shares is not said of a question whose pilot is another one.
            searched = prior_for_search(units[0].pilot, eta) is units[0].pilot
            return Channel(units[0].questions[0].channel_of(design)), design if searched else None
        if len(units) == 1 and units[0].options and eta is None and not more and units[0].even and units[0].uniform:
            # Sets are listed with the first option changing fastest, and answers with the last one.
            return multi_select(units[0].options[::-1], self.epsilon).best.channel, None
        pilot, targets = shares_and_targets(units, more)
        targets, k = binding(targets), len(pilot)
        if not more and is_known(units) and len({t.variance for t in targets}) == 1:
            plain = randomized_response(k, self.epsilon)
            if eta is not None and (reach := float(total_variation(plain))) > eta:
                plain = plain.erase(min(1.0, 1 - eta / reach + 1e-15))
            return plain, None
        if len(units) > 1 and not more and any(q.test for unit in units for q in unit.questions):
            return None
        if not self.searched and len(units) > 1 and not more:
            return None
        if (
            len(units) == 1
            and not more
            and units[0].options
            and eta is None
            and (k > MAX_SET_CELLS or self.epsilon <= ALONE)
        ):
            return self._options(units[0], self._by_parts(units[0], eta, deadline)), None
        if len(units) == 1 and not more and k > MAX_UNIT_CELLS:
            return self._by_parts(units[0], eta, deadline), None
        if pilot.min() <= 0 and more:
            raise invalid("pilots", "shares above 0 of all answers to questions that are asked together", pilot.min())
        if pilot.min() <= 0 or (len(units) > 1 and not more and k > (MAX_CELLS if eta is None else MAX_CAPPED_CELLS)):
            return None
        if len(units) == 1 and more and k > MAX_UNIT_CELLS:
            return self._plain(k), None
        if len(units) > 1 and more and k > MAX_APART:
            raise invalid("answers to all together", f"at most {MAX_APART}", k)
        if len(units) > 1 and more and k > MAX_CELLS:
            return self._apart(units, eta, pilot, targets, deadline), None
        if all(unit.plain and unit.uniform for unit in units) and not more:
            scale = min(t.variance for t in targets)
            shape = tuple(len(unit.cells) for unit in units)
            wanted_of = [binding((*unit.targets, *unit.finer))[0].variance for unit in units]
            criterion: Criterion = Marginals(shape, [(scale / variance) ** 2 for variance in wanted_of])
        elif len(units) == 1 and not more and units[0].plain and k <= MAX_MINIMAX:
            criterion = MVOptimal(np.array([(t.row - t.row @ pilot) / math.sqrt(t.variance) for t in targets]).T)
        else:
            criterion = criterion_of(targets, pilot)
        wanted, within = FisherInformation(pilot, criterion), limits(self.epsilon, eta)
        design = optimal_channel(wanted, within, time_limit=deadline.left, certify=False)
        if len(units) == 1 and units[0].options and eta is None and not more:
            return self._options(units[0], design.channel), None
        if len(units) == 1:
            return design.channel, None
        best = self._sturdy(units, design.channel, pilot, targets)
        if more is not None:
            every = booklet_of(units, self._plain(k), None, pilot, targets)
            best = every if min(every.served.values()) > min(best.served.values()) else best
        return best.channel, None

    def _options(self, unit: Unit, found: Channel) -> Channel:
        """The better of a channel for uneven options and the one for even options."""
        known = multi_select(unit.options[::-1], self.epsilon).best.channel
        pilot, targets = product_of([unit])
        both = [booklet_of((unit,), each, None, pilot, targets) for each in (found, known)]
        return max(both, key=lambda booklet: min(booklet.served.values())).channel

    def _apart(
        self, units: tuple[Unit, ...], eta: float | None, pilot: Array, targets: Sequence[Target], deadline: Deadline
    ) -> Channel:
        """The better of two channels that need no search for all answers together.

        They are randomized response among all of these, and a report on each question with an equal part of the budget.
        """
        part = self.epsilon / len(units) * (1 - 1e-12), None if eta is None else eta / len(units)
        matrix = np.ones((1, 1))
        for unit in units:
            ((own, _),) = BookletPlanner([replace(unit, group_targets=())], *part, certify=False).plan(
                "one question", deadline.inner
            ).shares  # fmt: skip
            matrix = np.asarray(np.kron(matrix, own.channel.matrix))
        both = [booklet_of(units, each, None, pilot, targets) for each in (self._plain(len(pilot)), Channel(matrix))]
        return max(both, key=lambda booklet: min(booklet.served.values())).channel

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
            targets = [target for target in (*unit.targets, *unit.finer) if target.key[0] == part.name]
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
        best = booklet_of(units, without_rare(channel, pilot), None, pilot, targets)
        if not joint and min(best.served.values()) > 0:
            return best
        alone = self._one_by_one(units)
        for share in SHARES if alone is not None else ():
            assert alone is not None
            parts = [part * each for part, each in ((1 - share, best.channel.matrix), (share, alone)) if part > 0]
            mixed = booklet_of(units, Channel(np.hstack(parts)), None, pilot, targets)
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


def needs_of(unit: Unit, at: tuple[float, float | None, float] | None = None) -> Needs:
    """What respondents a unit needs, as `split_within` takes it.

    at : as for `NeedsOf`, which is taken in place of designs for questions that share a report.
    """
    if unit.plain and unit.questions[0].scores is None and unit.as_one and not unit.finer:
        return unit.pilot, unit.questions[0].target

    def needed(epsilon: float, eta: float | None) -> float:
        return BookletPlanner([unit], epsilon, eta, certify=False).plan("one question", UNLIMITED).respondents

    return NeedsOf(len(unit.cells), unit.kind, needed, at)
