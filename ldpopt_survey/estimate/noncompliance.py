"""Non-compliant respondents ("cheaters"): their proportion, the proportions of answers among the others, and tests.

A respondent who cheats always gives the report that looks safest, regardless of the channel. The model treats cheating
as one more answer, whose row of the channel always gives that report. The proportion of cheaters is then estimated like
that of any answer, as long as the reports identify it. The reports of one channel never do. The reports of two random
groups with different channels do, and so do the reports of a question that is asked twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Array, distribution, positive_epsilon, unit_interval
from ldpopt.values.results import Result
from ldpopt_survey.estimate.estimate import Estimate
from ldpopt_survey.estimate.groups import estimate_waves, pooled_channel
from ldpopt_survey.estimate.intervals import Binomial, check_level, two_sided
from ldpopt_survey.estimate.likelihood import MaximumLikelihood
from ldpopt_survey.estimate.linear import Estimator, asymptotic_covariance
from ldpopt_survey.estimate.sampled import as_table
from ldpopt_survey.hypothesis_tests import TestResult

CHEATS = "does not comply"
"""The answer that represents people who do not follow the instructions."""


def directed_answers(yes: float, no: float = 0.0, labels: tuple[Label, Label] = ("no", "yes")) -> Channel:
    """Build the channel of directed answers: a forced "yes", a forced "no", or the true answer.

    Parameters
    ----------
    yes, no : The probabilities of the two forced answers.
    labels : The two answers.

    Returns
    -------
    Channel
        The channel (2, 2).

    Raises
    ------
    InvalidInput
        For probabilities outside [0, 1], or with a sum above 1.

    Notes
    -----
    In the cheating detection model a group has `no` = 0 [CDM]; in its symmetric form both are positive [CDMsym]. In the
    stochastic lie detector, 1 - `yes` is the probability that people without the trait say no [SLD]. With `no` = 0 a
    "no" discloses the answer, so the channel has no local privacy.

    >>> directed_answers(0.3).matrix
    array([[0.7, 0.3],
           [0. , 1. ]])
    """
    yes, no = unit_interval(yes, "yes"), unit_interval(no, "no")
    if not yes + no <= 1:
        raise invalid("directed answers", "probabilities of at most 1 together", yes + no)
    return Channel([[1 - yes, yes], [no, 1 - no]], labels, labels)


def repeated(channel: ChannelLike, times: int = 2) -> Channel:
    """Build the channel of one question asked several times with fresh randomness [Kuk].

    Parameters
    ----------
    channel : The channel (k, m) of one report.
    times : The number of reports, at least 2.

    Returns
    -------
    Channel
        The channel (k, m^times), whose reports are tuples. Its epsilon (nats) is `times` that of one report.

    Raises
    ------
    InvalidInput
        For fewer than two times.

    >>> repeated([[0.8, 0.2], [0.2, 0.8]]).matrix.round(2)
    array([[0.64, 0.16, 0.16, 0.04],
           [0.04, 0.16, 0.16, 0.64]])
    """
    single_channel = as_channel(channel)
    if isinstance(times, bool) or not isinstance(times, int) or not 2 <= times <= 6:
        raise invalid("times", "a whole number from 2 to 6", times)
    matrix: Array = single_channel.matrix
    outputs: tuple[tuple[Label, ...], ...] = tuple((label,) for label in single_channel.outputs)
    for _ in range(times - 1):
        matrix = np.einsum("xy,xz->xyz", matrix, single_channel.matrix).reshape(len(single_channel.inputs), -1)
        outputs = tuple((*earlier_labels, label) for earlier_labels in outputs for label in single_channel.outputs)
    return Channel(matrix, single_channel.inputs, outputs)


def with_cheaters(channel: ChannelLike, report: Label = None, report_distribution: ArrayLike | None = None) -> Channel:
    """Add an answer, `CHEATS`, to the channel.

    Parameters
    ----------
    channel : The channel (k, m) of honest answers.
    report : The report that cheaters always give.
    report_distribution : (m,) the distribution of their reports instead.

    Returns
    -------
    Channel
        The channel (k + 1, m).

    Raises
    ------
    InvalidInput
        For a report that the channel does not give.

    >>> with_cheaters(directed_answers(0.3), "no").matrix
    array([[0.7, 0.3],
           [0. , 1. ],
           [1. , 0. ]])
    """
    honest = as_channel(channel)
    m = len(honest.outputs)
    if (report_distribution is None) == (report is None):
        raise invalid("cheaters", "a report that they give, or a distribution of reports", Phrase("neither, or both"))
    if report_distribution is None:
        if report not in honest.outputs:
            raise invalid("cheaters", f"one of the reports {honest.outputs[:8]}", report)
        row = np.eye(m)[honest.outputs.index(report)]
    else:
        row = distribution(report_distribution, "report_distribution", size=m)
    if CHEATS in honest.inputs:
        raise invalid("cheaters", "answers without them", CHEATS)
    return Channel(np.vstack([honest.matrix, row]), (*honest.inputs, CHEATS), honest.outputs)


@dataclass(frozen=True, eq=False, repr=False)
class Compliance(Result):
    """Proportions of the answers and of cheaters, estimated when some respondents may not follow the instructions.

    estimate : the `Estimate` of proportions that sum to 1. For each answer it is the proportion of people who comply
        and have this answer. For `CHEATS` it is the proportion of people who do not comply.
    honest : the pooled channel of all groups, without cheaters.
    """

    estimate: Estimate
    honest: Channel

    def _columns(self) -> dict[str, list[Any]]:
        return self.estimate._columns()

    @property
    def cheaters(self) -> Estimate:
        """The proportion of people who do not comply, with its error. The estimate may be negative."""
        return self.estimate.contrast([float(label == CHEATS) for label in self.estimate.labels], (CHEATS,))

    def among_compliers(self, answer: Label) -> Ratio:
        """Estimate the proportion of an answer among the people who comply."""
        row, cheats = self._rows(answer)
        return Ratio.from_contrasts(self.estimate, row, 1 - cheats, f"{answer} among those who comply")

    def bounds(self, answer: Label, level: float = 0.95) -> tuple[float, float]:
        """Bound the proportion of an answer in the whole population, for any answers of cheaters.

        The lower bound is the lower limit of the proportion if no cheater has the answer, and the upper bound the upper
        limit if all have it. Both are cut to [0, 1]. In either case they have at least `level` confidence [CDM;
        ImbensManski].
        """
        row, cheats = self._rows(answer)
        low = self.estimate.contrast(row).intervals(Binomial(level)).clip().lower[0]
        high = self.estimate.contrast(row + cheats).intervals(Binomial(level)).clip().upper[0]
        return float(low), float(max(high, low))

    def if_cheaters_have(self, answer: Label) -> tuple[Estimate, Ratio]:
        """Estimate the proportion of an answer if every cheater has it, and the honest part.

        The second result is the proportion of honest people among those with the answer. The two are pi and t of the
        stochastic lie detector [SLD], where only people with the trait have a reason to lie.
        """
        row, cheats = self._rows(answer)
        share = self.estimate.contrast(row + cheats, (f"p({answer}) with all cheaters",))
        return share, Ratio.from_contrasts(self.estimate, row, row + cheats, f"honest, of those with {answer}")

    def test(self) -> TestResult:
        """Test "nobody cheats" against "some cheat as in the model" by the likelihood ratio.

        A proportion cannot be below zero. So without cheaters the statistic is 0 in half of the surveys, and
        chi-squared with one degree of freedom in the other half [SelfLiang].
        """
        with_cheaters_value, without_cheaters_value = self._largest(self.estimate.channel), self._largest(self.honest)
        statistic = (
            max(0.0, 2 * (with_cheaters_value - without_cheaters_value))
            if with_cheaters_value > -math.inf
            else math.nan
        )
        p = 1.0 if statistic <= 1e-9 else float(chdtrc(1, statistic)) / 2
        return TestResult("nobody cheats", statistic, 1, p)

    def _largest(self, channel: Channel) -> float:
        """The largest log-likelihood of the reports; -inf if some have probability 0."""
        f, matrix = self.estimate.table.frequencies, channel.matrix
        if ((f > 0) & (matrix.max(axis=0) == 0)).any():
            return -math.inf
        return MaximumLikelihood(1e-11).maximum(f, Channel(matrix), float(self.estimate.n)).log_likelihood

    def all_comply(self) -> TestResult:
        """Test "all comply" against any deviation that the reports can show, by likelihood ratio.

        The test uses the degrees of freedom that the reports have beyond the proportions. Without any the p-value is 1.
        """
        f, n = self.estimate.table.frequencies, self.estimate.n
        waves = [label[0] if isinstance(label, tuple) else 1 for label in self.honest.outputs]
        degrees = len(waves) - len(set(waves)) - (np.linalg.matrix_rank(self.honest.matrix) - 1)
        occurs = f > 0
        saturated_value = float(n * np.sum(f[occurs] * np.log(f[occurs])))
        statistic = max(0.0, 2 * (saturated_value - self._largest(self.honest)))
        p = float(chdtrc(degrees, statistic)) if degrees > 0 else 1.0
        return TestResult("everybody complies", statistic, int(degrees), p)

    def _rows(self, answer: Label) -> tuple[Array, Array]:
        """The weights of the proportion of an answer, and of the proportion of cheaters."""
        if answer not in self.estimate.labels or answer == CHEATS:
            raise invalid("answer", f"one of {self.estimate.labels[:-1][:8]}", answer)
        row, cheats = ([float(label == target) for label in self.estimate.labels] for target in (answer, CHEATS))
        return np.array(row), np.array(cheats)

    def __repr__(self) -> str:
        return f"{self.estimate!r}\n{self.test()}"


@dataclass(frozen=True, eq=False)
class Ratio(Result):
    """A ratio of two estimated proportions, with its standard error and Fieller's confidence interval [Fieller].

    >>> groups = [({"no": 60, "yes": 40}, directed_answers(0.25)), ({"no": 40, "yes": 60}, directed_answers(0.75))]
    >>> estimate_compliance(groups, "no").among_compliers("yes")
    yes among those who comply  0.428571 (0.144192), 95 % [0.185422, 0.773262]
    """

    name: str
    value: float
    standard_error: float
    numerator: float
    denominator: float
    covariance: tuple[float, float, float]
    degrees: float

    @classmethod
    def from_contrasts(cls, estimate: Estimate, numerator: Array, denominator: Array, name: str) -> Ratio:
        """Estimate the ratio of two contrasts of an estimate.

        `InvalidInput` unless the denominator is positive.
        """
        rows = np.stack([numerator, denominator])
        terms = estimate.contrast(rows)
        (a, b), c = terms.values, terms.covariance
        if not b > 0:
            raise invalid("ratio", "a positive estimate below", float(b), name)
        variance = (c[0, 0] - 2 * a / b * c[0, 1] + (a / b) ** 2 * c[1, 1]) / b**2
        return cls(name, float(a / b), math.sqrt(max(variance, 0.0)), float(a), float(b),
                   (float(c[0, 0]), float(c[0, 1]), float(c[1, 1])), terms.degrees)  # fmt: skip

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Find the r in [0, 1] with |a - r b| at most the critical value times its error.

        The interval may be all of [0, 1].
        """
        check_level(level)
        z2 = two_sided(level, self.degrees) ** 2
        (aa, ab, bb), n, d = self.covariance, self.numerator, self.denominator
        square, half_linear, constant = d * d - z2 * bb, n * d - z2 * ab, n * n - z2 * aa
        discriminant = half_linear * half_linear - square * constant
        if not square > 0 or not discriminant >= 0:
            return 0.0, 1.0
        ends = sorted((half_linear + sign * math.sqrt(discriminant)) / square for sign in (-1, 1))
        return min(max(ends[0], 0.0), 1.0), min(max(ends[1], 0.0), 1.0)

    def __repr__(self) -> str:
        low, high = self.interval()
        return f"{self.name}  {self.value:.6f} ({self.standard_error:.6f}), 95 % [{low:.6f}, {high:.6f}]"


def estimate_compliance(
    groups: Sequence[tuple[Any, ChannelLike]],
    report: Label = None,
    report_distribution: ArrayLike | None = None,
    estimator: Estimator | None = None,
) -> Compliance:
    """Estimate the proportions of the answers and of people who do not comply [CDM; SLD].

    Parameters
    ----------
    groups : A pair (reports or counts, channel) for each random group of one sample; or one pair with the channel of a
        `repeated` question.
    report, report_distribution : The report of cheaters, or its distribution, in every group, as in `with_cheaters`.
    estimator : As in `estimate`.

    Returns
    -------
    Compliance
        The proportions, with bounds and tests.

    Raises
    ------
    InvalidInput
        For no groups.
    NotIdentifiable
        If the channels cannot separate cheaters from an honest answer. One group that is asked once never can.

    >>> groups = [({"no": 60, "yes": 40}, directed_answers(0.25)), ({"no": 40, "yes": 60}, directed_answers(0.75))]
    >>> compliance = estimate_compliance(groups, "no")
    >>> dict(zip(compliance.estimate.labels, compliance.estimate.values.round(3).tolist(), strict=True))
    {'no': 0.4, 'yes': 0.3, 'does not comply': 0.3}
    >>> round(compliance.if_cheaters_have("yes")[1].value, 6)  # the proportion of the honest among those with the trait
    0.5
    """
    if not groups:
        raise InvalidInput("groups: no groups given; pass at least one pair (reports or counts, channel)")
    groups_with_cheaters = [(data, with_cheaters(channel, report, report_distribution)) for data, channel in groups]
    estimated = estimate_waves(groups_with_cheaters, estimator)
    sizes = [as_table(data, channel).n for data, channel in groups_with_cheaters]
    return Compliance(estimated, pooled_channel([channel for _, channel in groups], sizes))


def compliance_groups(
    epsilon: float, pilot: ArrayLike = (0.7, 0.2, 0.1), labels: tuple[Label, Label] = ("no", "yes")
) -> list[tuple[float, Channel]]:
    """Design two random groups within epsilon (nats) that identify cheaters who say `no`.

    The groups answer by randomized response and its reverse (the extended crosswise design [HHM]), with the fractions
    that minimize the sum of the variances.

    Parameters
    ----------
    epsilon : The epsilon of each group's channel, in nats.
    pilot : (3,) the expected proportions of no, yes and cheaters.
    labels : The two answers.

    Returns
    -------
    list of (float, Channel)
        The fraction of the sample and the channel (2, 2) of each group.

    >>> [(round(share, 2), channel.matrix.round(3).tolist()) for share, channel in compliance_groups(1.0)]
    [(0.49, [[0.731, 0.269], [0.269, 0.731]]), (0.51, [[0.269, 0.731], [0.731, 0.269]])]
    """
    from scipy.optimize import minimize_scalar

    truth_probability = 1 / (1 + math.exp(-positive_epsilon(epsilon)))
    p = distribution(pilot, "pilot", size=3)
    direct, reverse = (
        Channel([[a, 1 - a], [1 - a, a]], labels, labels) for a in (truth_probability, 1 - truth_probability)
    )
    channels_with_cheaters = [Channel(with_cheaters(q, labels[0]).matrix) for q in (direct, reverse)]

    def variance(fraction: float) -> float:
        return float(
            np.trace(asymptotic_covariance(pooled_channel(channels_with_cheaters, [fraction, 1 - fraction]), p))
        )

    fraction = float(minimize_scalar(variance, bounds=(0.02, 0.98), method="bounded").x)
    return [(fraction, direct), (1 - fraction, reverse)]
