"""Randomizing devices, such as dice, and the best channel of a question that a device can run."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice, product
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.design import (
    AOptimal,
    Criterion,
    Denominator,
    Design,
    FisherInformation,
    IntegerProgram,
    LocalDP,
    Marginals,
    Rounded,
    optimal_channel,
)
from ldpopt.errors import InvalidInput, invalid
from ldpopt.exact import ExactChannel
from ldpopt.files import strict
from ldpopt.files.escapes import filled
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.privacy import total_variation
from ldpopt.values.deadline import UNLIMITED, Deadline, Progress, watched
from ldpopt.values.distribution import Array, positive_integer, unit_interval
from ldpopt.values.results import Result
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.plan.precision import limits

__all__ = ["DEVICES", "PaperDevice", "PaperSurvey", "design_sheet", "device_named", "paper_survey"]

MAX_ANSWERS = 40
"""The most answers of a question on paper."""


@dataclass(frozen=True)
class PaperDevice:
    """A device with D equally likely outcomes, laid out as a table of rows and columns.

    - `name` : its name in commands.
    - `title` : its name on the sheets.
    - `rows`, `columns` : the headings of its table.
    - `row_means`, `column_means` : the meaning of a heading, such as "first die".
    - `draw` : the instructions, one sentence for each step.
    - `find` : the instructions for looking up the report of an outcome.
    - `assumption` : the condition for equally likely outcomes.
    - `spins` : True if the figure shows a wheel.

    >>> TWO_DICE.denominator, TWO_DICE.rows
    (36, ('1', '2', '3', '4', '5', '6'))
    """

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_means: str
    column_means: str
    draw: tuple[str, ...]
    find: str
    assumption: str
    spins: bool = False

    @property
    def denominator(self) -> int:
        """The number D of outcomes."""
        return len(self.rows) * len(self.columns)


Texts = Mapping[str, str]
"""The sentences of printed sheets in one language, by key, with places in braces."""


def shipped_texts(language: str = "en") -> Texts:
    """Load the sentences of printed forms in a language that comes with the package."""
    return strict.shipped("ldpopt_survey.paper", f"static/sheets-{language}.json")


_FACES, _DIGITS = tuple("123456"), tuple("0123456789")
_TABLES = {
    "dice": (("",), _FACES), "two-dice": (_FACES, _FACES), "d10": (("",), _DIGITS), "two-d10": (_DIGITS, _DIGITS),
    "cards": (("♠", "♥", "♦", "♣"), ()), "spinner": (tuple("012345"), _DIGITS),
}  # fmt: skip
DEVICES = (*_TABLES, "coins")
"""The names that `device_named` knows."""


def device_named(name: str, tosses: int = 5, texts: Texts | None = None) -> PaperDevice:
    """Return the device with this name in commands.

    Parameters
    ----------
    name : A name such as ``"two-dice"``.
    tosses : The number of tosses, from 2 to 8, for ``"coins"`` only.
    texts : The sentences of its language, English by default.

    Returns
    -------
    PaperDevice
        The device.

    >>> device_named("two-d10").denominator, device_named("coins", 2).rows
    (100, ('H', 'T'))
    """
    texts = shipped_texts() if texts is None else texts
    if name not in DEVICES:
        raise invalid("device", f"one of {', '.join(DEVICES)}", name)
    values: dict[str, int] = {}
    if name == "coins":
        n = positive_integer(tosses, "tosses", 2)
        if n > 8:
            raise invalid("tosses", "from 2 to 8", n)
        values = {"tosses": n, "first": n // 2, "last": n - n // 2}
        sides = texts["coins.sides"].split()
        rows, columns = (tuple("".join(faces) for faces in product(sides, repeat=m)) for m in (n // 2, n - n // 2))
        if n // 2 == 1:
            texts = {**texts, "coins.row": texts["coins.first"], "coins.find": texts["coins.findFirst"]}
    else:
        rows, columns = _TABLES[name]
        columns = columns or tuple(texts["cards.values"].split())
    sentences = {key: filled(text, **values) for key, text in texts.items() if key.startswith(f"{name}.")}
    return PaperDevice(
        name, sentences[f"{name}.title"], rows, columns, sentences.get(f"{name}.row", ""),
        sentences.get(f"{name}.column", ""),
        tuple(sentences[key] for key in (f"{name}.draw", f"{name}.draw2") if key in sentences),
        sentences[f"{name}.find"],
        sentences[f"{name}.assumption"], name == "spinner",
    )  # fmt: skip


DICE, TWO_DICE, D10, TWO_D10, CARDS, SPINNER = map(device_named, _TABLES)


def coins(tosses: int = 5) -> PaperDevice:
    """Return one coin tossed several times, from 2 to 8: 2^tosses outcomes.

    >>> coins(5).denominator
    32
    """
    return device_named("coins", tosses)


Integers = npt.NDArray[np.int64]

SHEET = "sheet"
"""The column with the numbers of the lines on the interviewers' sheets."""

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
"""Without I and O, which look like digits."""

MERGE_LOSS = 0.01
"""The fraction by which the error may grow, by default, when reports are merged."""


@dataclass(frozen=True, eq=False)
class PaperSurvey(Result):
    """A plan whose reports are letters that people find by hand.

    - `plan` : the plan for counting and estimating reports. Its probabilities are multiples of 1/D, where D is the
      number of outcomes of the device.
    - `device` : the thing that people randomize with, such as two dice.
    - `losses` : for each question, the fraction of additional respondents that the survey needs for the precision of
      the plan. By this fraction the variance of its widest proportion exceeds the plan's. For a booklet it is the
      largest such fraction of all its questions' proportions. Without a planned half-width it is that of their sum.
    - `intended` : for each question, the epsilon (nats) of the original plan, which the new channel does not exceed.
    - `intended_eta` : for each question, the cap on eta of the original plan, or its eta without a cap; see `exceeded`.
    """

    plan: Plan
    device: PaperDevice
    losses: Mapping[str, float]
    intended: Mapping[str, float]
    intended_eta: Mapping[str, float]

    @property
    def exceeded(self) -> dict[str, tuple[float, float]]:
        """The questions whose eta on paper is above that of the original plan, with both."""
        etas = {question.name: (question.eta, self.intended_eta[question.name]) for question in self.plan.questions}
        return {name: (eta, intended) for name, (eta, intended) in etas.items() if eta > intended}

    def _columns(self) -> dict[str, list[Any]]:
        intended = [self.intended[name] for name in self.losses]
        columns: dict[str, list[Any]] = {
            "question": list(self.losses),
            "loss": list(self.losses.values()),
            "intended": intended,
        }
        return columns | {"intended_eta": [self.intended_eta[name] for name in self.losses]}

    def table(self, question: str, answer: int) -> tuple[str, ...]:
        """List the report for every outcome, in the order of the device's table.

        answer : the position of the answer.

        >>> from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
        >>> from ldpopt_survey.paper.design import DICE
        >>> plan = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))).plan
        >>> paper_survey(plan, DICE).table("vote", 0)
        ('A', 'A', 'A', 'A', 'B', 'B')
        """
        planned = self.plan.question(question)
        weights = planned.channel.weights[answer].tolist()
        return tuple(letter for letter, n in zip(planned.reports, weights, strict=True) for _ in range(n))


def paper_survey(
    plan: Plan,
    device: PaperDevice | str,
    simpler: float = MERGE_LOSS,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
    thorough: bool = False,
) -> PaperSurvey:
    """Design the version of a plan that people run by hand with a device.

    Every question gets a channel whose probabilities are multiples of 1/D, where D is the number of outcomes of the
    device. Its epsilon, in rational arithmetic, is at most the question's. Among these it has the least error for
    the pilot (the expected proportions of the answers; uniform if there is none). Its eta is at most the question's,
    too, where this is possible. If the plan has no cap on eta, it may exceed eta by up to `MAX_ETA_EXCESS` if keeping
    eta costs more than `MAX_ETA_COST`. `PaperSurvey.exceeded` has the questions whose eta is exceeded. Then reports are
    merged, since fewer letters are easier.

    Parameters
    ----------
    plan : The plan.
    device : The device, or its name, as for `device_named`.
    simpler : Reports are merged as long as the error exceeds the least one by at most this fraction.
    time_limit : In seconds, for all questions together.
    progress : As for `optimal_channel`.
    thorough : True to search all columns of up to four answers as well. This takes some seconds for each question
        and saves up to a few per cent of the respondents.

    Returns
    -------
    PaperSurvey
        The plan of the paper version, with its losses.

    Raises
    ------
    InvalidInput
        If the device is too coarse, so that no channel over D separates all answers of a question.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
    >>> plan = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))).plan
    >>> paper_survey(plan, "two-dice").plan.question("vote").channel.weights.tolist()
    [[26, 10], [10, 26]]
    """
    simpler = unit_interval(simpler, "simpler")
    device = device_named(device) if isinstance(device, str) else device
    if not isinstance(device, PaperDevice):
        raise invalid("device", "a PaperDevice or a name such as 'two-dice'", type(device).__name__)
    if any(question.name == SHEET for question in plan.questions):
        raise invalid("question", f"one that is not called {SHEET!r}, as the column of sheet numbers is", SHEET)
    letters = ("".join(letters) for n in (1, 2) for letters in product(LETTERS, repeat=n))  # A, B, ..., AA, AB, ...
    questions, losses, sheets = [], {}, {}
    with watched(time_limit, progress) as deadline:
        for number, question in enumerate(plan.questions):
            guarantees, planned = (question.epsilon, question.eta, question.eta_cap), question.channel.matrix.tobytes()
            key = question.shares.tobytes(), *guarantees, len(question.parts), planned, _is_for_widest(question)
            if key not in sheets:
                sheets[key] = _sheet(question, device, simpler, deadline.turn(number, len(plan.questions)), thorough)
            sheet = sheets[key]
            names = tuple(islice(letters, sheet.weights.shape[1]))
            channel = ExactChannel(sheet.weights, None, question.categories, names, denominator=device.denominator)
            channel.verify(question.epsilon)
            loss = losses[question.name] = _loss(question, sheet.weights, device.denominator)
            expected = {"loss": loss}
            questions.append(
                PlannedQuestion(
                    question.name, question.column, channel, missing=question.missing, pilot=question.pilot,
                    expected=expected, probability=question.probability, parts=question.parts, reading=question.reading,
                    measure=question.measure, eta_cap=question.eta_cap,
                )
            )  # fmt: skip
    on_paper = Plan(
        plan.name, tuple(questions), plan.round, None, False, plan.carry, sample=plan.sample, public=plan.public,
        wording=plan.wording, rounds=plan.rounds,
    )  # fmt: skip
    intended = MappingProxyType({question.name: question.epsilon for question in plan.questions})
    intended_eta = MappingProxyType({question.name: question.largest_eta for question in plan.questions})
    return PaperSurvey(on_paper, device, MappingProxyType(losses), intended, intended_eta)


def _sheet(question: PlannedQuestion, device: PaperDevice, simpler: float, deadline: Deadline, thorough: bool) -> Sheet:
    """The sheet of a question, or `InvalidInput`."""
    k, D = len(question.categories), device.denominator
    if k > MAX_ANSWERS:
        expected = f"at most {MAX_ANSWERS} answers on paper, a card for each (a larger step, ranges, fewer options)"
        raise invalid(f"question {question.name!r}", expected, k)
    if not 0 < question.epsilon < np.inf:
        raise invalid(f"question {question.name!r}: epsilon", "a positive finite number", question.epsilon)
    if (sheet := _kept_sheet(question, D, simpler, deadline, thorough)) is None:
        cap = "" if question.eta_cap is None else f" and eta {ceil_digits(question.eta_cap, 4)}"
        raise InvalidInput(
            f"question {question.name!r}: expected a device with more outcomes than the {D} of {device.title}: no "
            f"sheet within epsilon {ceil_digits(question.epsilon, 4)}{cap} was found that tells its {k} answers apart"
        )
    return sheet


def _kept_sheet(question: PlannedQuestion, D: int, simpler: float, deadline: Deadline, thorough: bool) -> Sheet | None:
    """The sheet of a question or booklet within its epsilon, and within its cap on eta.

    Without a cap it is within its eta, unless that is not found or costs much.
    """
    planned, is_capped, without_cap = Channel(question.channel.matrix), question.eta_cap is not None, None
    best, criterion = planned, _criterion(question)

    def designed(turn: int, eta: float | None, reference: Channel) -> Sheet | None:
        settings = D, simpler, deadline.turn(turn, 3), thorough, criterion, eta, reference
        return design_sheet(question.shares, question.epsilon, *settings)

    if not is_capped and (not question.parts or len(question.categories) <= MAX_DESIGNED_CELLS):
        if _has_criterion(question):
            utility, turn = FisherInformation(question.shares, criterion), deadline.turn(0, 3)
            best = optimal_channel(utility, LocalDP(question.epsilon), certify=False, **turn.passed).channel
        if float(total_variation(best)) <= (1 + MAX_ETA_EXCESS) * question.eta:
            without_cap = designed(1, None, best)  # Sheets near the best channel are better ones.
            if without_cap is None or _eta(without_cap) <= question.eta:
                return without_cap
    within_cap = designed(2, question.largest_eta, planned)
    if within_cap is None:
        return None if is_capped else without_cap or designed(2, None, best)
    if (
        without_cap is not None
        and _eta(without_cap) <= (1 + MAX_ETA_EXCESS) * question.eta
        and within_cap.error > (1 + MAX_ETA_COST) * without_cap.error
    ):
        return without_cap
    return within_cap


def _eta(sheet: Sheet) -> float:
    """The total variation of a sheet, rounded up."""
    return ExactChannel(sheet.weights, denominator=int(sheet.weights[0].sum())).proof().eta


MAX_DESIGNED_CELLS = 16
"""The most cells of a booklet for which the search for a sheet begins at the best channel for its sheet's criterion."""

MAX_ETA_EXCESS, MAX_ETA_COST = 0.1, 0.05
"""By which share a sheet may exceed the plan's eta, which it then says, if it would need more respondents within it by
the second share. A cap that the plan was made for is below the eta of other channels by more than that, or costs less.
"""

TABLE_WEIGHT = 0.1
"""The weight of a booklet's tables relative to its questions; variances are relative to the planned channel's."""


def _has_criterion(question: PlannedQuestion) -> bool:
    """Return True if other estimates count than the shares of the answers: of a booklet, or the mean of a number."""
    return bool(question.parts) or question.measure == "mean"


def _is_for_widest(question: PlannedQuestion) -> bool:
    """Return True if the plan of a question without parts has a half-width, or no precision at all."""
    return not question.expected or "half_width" in question.expected


def _criterion(question: PlannedQuestion) -> Criterion:
    """Return the criterion of a question's sheet.

    For the widest proportion it is a weighted sum of variances. The weights are the variances by the planned channel
    [multiplicative algorithm, one step].
    """
    if _has_criterion(question):
        return booklet_criterion(question)
    pilot = question.shares
    if not _is_for_widest(question) or np.ptp(pilot) == 0:
        return AOptimal()
    shares = np.eye(len(pilot))
    variances = contrast_variances(Channel(question.channel.matrix), pilot, shares)
    if not np.isfinite(variances).all():
        return AOptimal()
    contrasts = (shares - pilot) * np.sqrt(variances / variances.max())[:, None]
    return Marginals((len(pilot),), [1e-9], contrasts=contrasts.T)


def booklet_criterion(question: PlannedQuestion) -> Marginals:
    """Build the criterion of a report's results: the shares or means of its questions, and the tables of a booklet.

    Each variance counts relative to the one by the planned channel. The weight of the cells themselves is a trace, so
    that the channel distinguishes all of them: otherwise nothing else could be estimated from the letters.
    """
    pilot, channel = question.shares, Channel(question.channel.matrix)
    in_tables = [part.name for part in question.answers if part.measure == "shares"]
    groups: list[tuple[float, tuple[str, ...]]] = [(1.0, (part.name,)) for part in question.answers]
    groups += [(TABLE_WEIGHT, pair) for pair in combinations(in_tables, 2)]
    rows = []
    for weight, group in groups:
        contrasts = _contrasts(question, group)
        variances = contrast_variances(channel, pilot, contrasts)
        is_estimable = np.isfinite(variances) & (variances > 0)
        rows.append(
            (contrasts - (contrasts @ pilot)[:, None])[is_estimable]
            * np.sqrt(weight / variances[is_estimable])[:, None]
        )
    return Marginals((len(pilot),), [1e-9], contrasts=np.vstack(rows).T)


def _contrasts(question: PlannedQuestion, names: tuple[str, ...]) -> Array:
    """The rows (r, k) of the shares or cells of parts, or of the mean among those who are asked."""
    rows = question.rows_among_asked(names[0]) if len(names) == 1 else None
    return np.asarray(question.members(*names) if rows is None else rows, dtype=np.float64)


def _loss(question: PlannedQuestion, weights: Integers, D: int) -> float:
    """The fraction of additional respondents that a sheet needs; see `PaperSurvey.losses`."""
    channels = Channel(question.channel.matrix), Channel(weights / D)
    if not _has_criterion(question):
        summary = np.max if _is_for_widest(question) else np.sum
        shares = np.eye(len(question.shares))
        before, after = (float(summary(contrast_variances(channel, question.shares, shares))) for channel in channels)
        return max(after / before - 1, 0.0)
    loss = 0.0
    for part in question.answers:
        contrasts = _contrasts(question, (part.name,))
        planned, actual = (contrast_variances(channel, question.shares, contrasts) for channel in channels)
        loss = max(loss, float((actual[np.isfinite(planned)] / planned[np.isfinite(planned)]).max(initial=1.0)) - 1)
    return loss


@dataclass(frozen=True, eq=False)
class Sheet:
    """The channel of one question: integers (k, m) whose rows add up to D.

    - `loss` : the fraction by which its error exceeds that of the best channel with the same epsilon and any
      probabilities. Under a cap on eta it is compared with the planned channel.
    - `least` : the same fraction before reports were merged.
    - `error` : the criterion at the pilot.
    """

    weights: Integers
    loss: float
    least: float
    error: float = math.inf


def design_sheet(
    pilot: Array,
    epsilon: float,
    D: int,
    simpler: float = MERGE_LOSS,
    deadline: Deadline = UNLIMITED,
    thorough: bool = False,
    criterion: Criterion | None = None,
    eta: float | None = None,
    planned: Channel | None = None,
) -> Sheet | None:
    """Design the integers with the least error at `pilot`, then merge reports.

    pilot : shares (k,). epsilon : nats.

    Merging may raise the error by the share `simpler`. thorough : as for `paper_survey`. criterion : the error, a sum
    of variances; that of all shares by default. eta : a cap on total variation, if any. planned : the channel of the
    plan, near which the search begins and with which the error is compared; by default the best one within epsilon.
    None if no channel over D was found that separates all answers.
    """
    utility = FisherInformation(pilot, AOptimal() if criterion is None else criterion)
    without_device = limits(epsilon, eta)
    constraints, designs = [*limits(epsilon, _cap_on_sheets(eta, D)), Denominator(D)], list[Design]()
    turn = deadline.turn(0, 3)
    if thorough:
        with suppress(InvalidInput):  # with many answers the program has too many columns
            designs.append(optimal_channel(utility, constraints, method=IntegerProgram(), certify=False, **turn.passed))
    turn = deadline.turn(1, 3)
    if planned is None:
        planned = optimal_channel(utility, without_device, certify=False, **turn.passed).channel
    best_error = float(utility.value(planned))
    turn = deadline.turn(2, 3)  # rounding often gives fewer reports
    designs.append(optimal_channel(utility, constraints, method=Rounded(planned), certify=False, **turn.passed))
    smallest_error = min(design.value for design in designs)
    if not smallest_error < np.inf:
        return None
    merged = [
        _merge_reports(design.channel, utility, D, smallest_error * (1 + simpler))
        for design in designs
        if design.value < np.inf
    ]
    weights = min(merged, key=lambda candidate: (candidate.shape[1], utility.value(candidate / D)))
    error = float(utility.value(weights / D))
    losses = [max(value / best_error - 1, 0.0) for value in (error, smallest_error)]
    return Sheet(weights, losses[0], losses[1], error)


def _cap_on_sheets(eta: float | None, D: int) -> float | None:
    """Return the largest multiple of 1/D within `eta`, and a little more for the rounding errors of floats.

    The next multiple exceeds it, so that the integers of a sheet are within `eta` itself.
    """
    multiple = 0 if eta is None else math.floor(Fraction(eta) * D)
    return eta if multiple == 0 else min(multiple / D * (1 + 1e-9), 1.0)


def _merge_reports(channel: Channel, utility: FisherInformation, D: int, max_error: float) -> Integers:
    """The channel after merging reports, the cheapest pair first, while its error is at most `max_error`."""
    weights = np.rint(channel.matrix * D).astype(np.int64)
    while weights.shape[1] > 2:
        candidates = []
        for a, b in _cheapest_merges(weights, utility):
            merged = np.delete(weights, b, axis=1)
            merged[:, a] += weights[:, b]
            candidates.append((utility.value(merged / D), (a, b), merged))
        value, _, merged = min(candidates, key=lambda attempt: attempt[:2])
        if not value <= max_error:
            break
        weights = merged
    # Reports are put in the order of the answers that make them likeliest.
    order = sorted(range(weights.shape[1]), key=lambda y: (int(weights[:, y].argmax()), -int(weights[:, y].max())))
    return np.ascontiguousarray(weights[:, order])


MAX_MERGES_TRIED = 20
"""The most pairs of reports whose merging is computed, of those that lose the least by a formula."""


def _cheapest_merges(weights: Integers, utility: FisherInformation) -> list[tuple[int, int]]:
    """The pairs of reports whose merging leaves the least sum of variances, up to rounding: at most `MAX_MERGES_TRIED`.

    The sum is the trace of F^T J^-1 F but for a constant, where J is the sum of q q^T / (q @ pilot) over the reports q.
    Merging the reports a and b subtracts v v^T from J. Here v = (p_b a - p_a b) / sqrt(p_a p_b (p_a + p_b)), and p_a is
    a @ pilot.
    So the trace grows by |F^T J^-1 v|^2 / (1 - v^T J^-1 v) [Sherman and Morrison].
    """
    pilot, columns = np.asarray(utility.prior), weights.astype(np.float64)
    criterion: Any = utility.criterion
    masses = pilot @ columns
    inverse = np.linalg.inv((columns / masses) @ columns.T)
    loadings = criterion.factor(len(pilot)).T @ inverse @ columns
    first, second = np.triu_indices(weights.shape[1], 1)
    first_mass, second_mass = masses[first], masses[second]

    def form(products: Array) -> Array:
        """Compute v^T M v of every pair from the products a^T M b of all reports."""
        squares = np.diag(products)
        cross = 2 * first_mass * second_mass * products[first, second]
        total = second_mass**2 * squares[first] - cross + first_mass**2 * squares[second]
        return np.asarray(total / (first_mass * second_mass * (first_mass + second_mass)))

    remaining = 1 - form(columns.T @ inverse @ columns)
    losses = np.full(len(first), np.inf)
    np.divide(np.maximum(form(loadings.T @ loadings), 0), remaining, out=losses, where=remaining > 1e-9)
    smallest = np.argsort(losses, kind="stable")[:MAX_MERGES_TRIED]
    smallest = smallest[losses[smallest] <= losses.min() + 1e-6 * float(np.sum(loadings**2 / masses))]
    return list(zip(first[smallest].tolist(), second[smallest].tolist(), strict=True))


def paper_files(survey: PaperSurvey) -> dict[str, bytes]:
    """Generate the files: the plan that counts reports, every channel, and the entry file."""
    from ldpopt_survey.collect.aggregate import report_columns

    plan = survey.plan
    contents = {"plan.json": plan.to_json().encode()}
    for number, question in enumerate(plan.questions, 1):
        contents[f"channel-{number}.json"] = question.channel.to_json().encode()
    head = io.StringIO(newline="")
    csv.writer(head, lineterminator="\n").writerow([SHEET, *report_columns(plan), *plan.carry])
    contents["codes.csv"] = head.getvalue().encode()
    return contents
