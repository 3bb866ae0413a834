"""Two-way tables: the joint distribution of two answers that were privatized separately."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import InvalidInput, invalid
from ldpopt.values.distribution import Array, finite_array, positive_integer
from ldpopt.values.labels import as_text
from ldpopt.values.results import Result
from ldpopt_survey.estimate.counts import CountTable, positions, report_column
from ldpopt_survey.estimate.estimate import Estimate, estimate, fit_report_distribution
from ldpopt_survey.estimate.linear import (
    Estimator,
    GeneralizedLeastSquares,
    asymptotic_covariance,
    centered,
    efficient_loadings,
    pilot_of,
    report_covariance,
)
from ldpopt_survey.estimate.sampled import SampledReports, Table, sampling_variance
from ldpopt_survey.hypothesis_tests import (
    Power,
    TestResult,
    chi_squared_result,
    noncentral_power,
    wald_result,
    whitener,
)
from ldpopt_survey.sample.design import SampleDesign


@dataclass(frozen=True, eq=False, repr=False)
class TwoWayTable(Result):
    """The joint proportions of the answers to two questions, privatized separately.

    joint : the `Estimate` over pairs of answers, row by row.
    row_channel, column_channel : the channels of the two questions, with k1 and k2 inputs.
    """

    joint: Estimate
    row_channel: Channel
    column_channel: Channel

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row categories and of column categories."""
        return self.row_channel.shape[0], self.column_channel.shape[0]

    @property
    def proportions(self) -> Array:
        """The joint proportions, shape (k1, k2)."""
        return self.joint.values.reshape(self.shape)

    @property
    def rows(self) -> Estimate:
        """The marginal proportions of the row question."""
        k1, k2 = self.shape
        return self.joint.contrast(np.kron(np.eye(k1), np.ones(k2)), self.row_channel.inputs)

    @property
    def columns(self) -> Estimate:
        """The marginal proportions of the column question."""
        k1, k2 = self.shape
        return self.joint.contrast(np.kron(np.ones(k1), np.eye(k2)), self.column_channel.inputs)

    def given_row(self, label: Label) -> Estimate:
        """Estimate the proportions of the column question among people with row answer `label`.

        The covariance is linearized. `InvalidInput` if the estimated proportion of the row's answer is not positive.
        """
        return self._conditional("row", self.row_channel.inputs, label, self.column_channel.inputs)

    def given_column(self, label: Label) -> Estimate:
        """Estimate the proportions of the row question among people with column answer `label`.

        See `given_row`.
        """
        return self._conditional("column", self.column_channel.inputs, label, self.row_channel.inputs)

    def _conditional(
        self, side: str, conditions: tuple[Label, ...], label: Label, labels: tuple[Label, ...]
    ) -> Estimate:
        if label not in conditions:
            raise invalid(side, f"one of {conditions[:8]}", label)
        selector, identity = np.eye(len(conditions))[[conditions.index(label)]], np.eye(len(labels))
        cells = np.asarray(
            np.kron(selector, identity) if side == "row" else np.kron(identity, selector), dtype=np.float64
        )
        return self.joint.ratio(cells, cells.sum(axis=0), labels)

    def independence(self) -> TestResult:
        """Test that the two answers are independent, on (k1 - 1)(k2 - 1) degrees of freedom.

        A category in which no report can vary, such as a public value that nobody has, is left out. The statistic is n
        tr(V_A^+ D V_B^+ D^T). D = L_A (F - f_A f_B^T) L_B^T is the interaction of the unbiased estimates, and V_A, V_B
        are the per-report covariances of its margins. For square channels this equals Pearson's statistic of the table
        of reports. For others it excludes variation that answers cannot cause. Complex samples use the linearized
        variance of D and Hotelling's F.
        """
        if self.joint.channel.shape[0] != math.prod(self.shape):
            return self._independence_of_cells()
        table = self.joint.table
        f = table.frequencies.reshape(self.row_channel.shape[1], self.column_channel.shape[1])
        channels, margins = (self.row_channel, self.column_channel), (f.sum(axis=1), f.sum(axis=0))
        sides = (_side(channel, m, table.n) for channel, m in zip(channels, margins, strict=True))
        loadings, covariances = zip(*sides, strict=True)
        interaction = loadings[0] @ (f - np.outer(*margins)) @ loadings[1].T
        if table.simple:
            statistic, degrees = _form(interaction, *covariances)
            if interaction.size and not degrees:
                raise InvalidInput("independence: all reports of one of the questions are equal, so there is no test")
            return chi_squared_result("independence", table.n * statistic, degrees)
        influence = np.asarray(np.kron(*map(centered, loadings, margins)), dtype=np.float64)
        sampled = sampling_variance([(table, influence)])
        return wald_result(
            "independence", interaction.ravel(), sampled.covariance, sampled.degrees, sampled.unit_fractions
        )

    def _independence_of_cells(self) -> TestResult:
        """The test from the estimated cells and their linearized covariance, if both answers share a report."""
        k1, k2 = self.shape
        rows, columns = self.proportions.sum(axis=1), self.proportions.sum(axis=0)
        slopes = np.eye(k1 * k2) - np.kron(np.eye(k1), np.outer(columns, np.ones(k2)))
        slopes -= np.kron(np.outer(rows, np.ones(k1)), np.eye(k2))
        free_cells = np.arange(k1 * k2).reshape(k1, k2)[:-1, :-1].ravel()
        interaction = (self.proportions - np.outer(rows, columns)).ravel()[free_cells]
        sampled = sampling_variance([(self.joint.table, slopes[free_cells] @ self.joint.loadings)])
        return wald_result("independence", interaction, sampled.covariance, sampled.degrees, sampled.unit_fractions)

    def __repr__(self) -> str:
        k1, k2 = self.shape
        return f"TwoWayTable({k1} x {k2} from {self.joint.n} pairs of reports)\n{self.joint!r}"

    _heads = 1

    def _columns(self) -> dict[str, list[Any]]:
        """The joint proportions, with the row question's and the column question's answer in two columns."""
        columns = zip(map(as_text, self.column_channel.inputs), self.proportions.T.tolist(), strict=True)
        return {"row \\ column": list(self.row_channel.inputs), **dict(columns)}

    def _cells(self) -> list[tuple[str, list[str]]]:
        (head, rows), *columns = self._columns().items()
        return [(head, list(map(str, rows))), *((name, [f"{v:.4f}" for v in column]) for name, column in columns)]

    def _title(self) -> str:
        return f"{self.joint.n} pairs of reports"


@dataclass(frozen=True, eq=False, repr=False)
class ThreeWayTable(Result):
    """The joint proportions of three answers, or of answers and public columns: a two-way table in every layer.

    joint : the `Estimate` over triples of answers, row by row, column by column, layer by layer.
    row_channel, column_channel, layer_channel : identities, whose inputs are the categories of each.

    `left_out` has the reason for each cell with too few respondents for an interval.

    `Respondents.three_way` computes it from reports; its variances are those of the joint estimate [Rao].

    >>> two, one = Channel([[0.8, 0.2], [0.2, 0.8]]), Channel(np.eye(2))
    >>> made = estimate([60, 20, 40, 80], two.product(one))
    >>> ThreeWayTable(made, two, Channel([[1.0]]), one).layer(0).proportions.round(3)
    array([[0.667],
           [0.333]])
    """

    joint: Estimate
    row_channel: Channel
    column_channel: Channel
    layer_channel: Channel
    left_out: Mapping[Label, str] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of row categories, of column categories and of layers."""
        return self.row_channel.shape[0], self.column_channel.shape[0], self.layer_channel.shape[0]

    @property
    def proportions(self) -> Array:
        """The joint proportions, shape (k1, k2, k3)."""
        return self.joint.values.reshape(self.shape)

    @property
    def layers(self) -> Estimate:
        """The marginal proportions of the layers."""
        k1, k2, k3 = self.shape
        return self.joint.contrast(np.kron(np.ones((1, k1 * k2)), np.eye(k3)), self.layer_channel.inputs)

    def layer(self, label: Label) -> TwoWayTable:
        """Return the two-way table of row and column within one layer.

        Its covariance is linearized. `InvalidInput` if the layer is left out, and if its estimated proportion is not
        positive.
        """
        if label not in self.layer_channel.inputs:
            raise invalid("layer", f"one of {self.layer_channel.inputs[:8]}", label)
        k1, k2, k3 = self.shape
        if reason := self.reasons_left_out(2).get(label):
            raise InvalidInput(f"layer {label!r}: {reason}")
        selector = np.eye(k3)[self.layer_channel.inputs.index(label)]
        cells = np.asarray(np.kron(np.eye(k1 * k2), selector), dtype=np.float64)
        names = tuple(product(self.row_channel.inputs, self.column_channel.inputs))
        return TwoWayTable(
            self.joint.ratio(cells, cells.sum(axis=0), names, f"among {label}"), self.row_channel, self.column_channel
        )

    def reasons_left_out(self, side: int) -> dict[Label, str]:
        """Return the reason for each row (`side` 0), column (1) or layer (2) that is left out with all its cells."""
        sides = self.row_channel, self.column_channel, self.layer_channel
        cells = list(product(*(channel.inputs for channel in sides)))
        return {
            label: next(self.left_out[cell] for cell in cells if cell[side] == label)
            for label in sides[side].inputs
            if all(cell in self.left_out for cell in cells if cell[side] == label)
        }

    def collapsed(self) -> TwoWayTable:
        """Return the two-way table of row and column over all layers."""
        k1, k2, k3 = self.shape
        names = tuple(product(self.row_channel.inputs, self.column_channel.inputs))
        joint = self.joint.contrast(np.kron(np.eye(k1 * k2), np.ones(k3)), names)
        return TwoWayTable(joint, self.row_channel, self.column_channel)

    def __repr__(self) -> str:
        k1, k2, k3 = self.shape
        heading = f"ThreeWayTable({k1} x {k2} x {k3} from {self.joint.n} respondents)"
        sides = (self.reasons_left_out(side) for side in range(3))
        notes = [f"left out: {label} ({reason})" for reasons in sides for label, reason in reasons.items()]
        return "\n".join([heading, *notes, repr(self.joint)])

    _heads = 3

    def _columns(self) -> dict[str, list[Any]]:
        """The three answers of every cell in separate columns, and the cell's proportion; NaN if it is left out."""
        cells = list(product(self.row_channel.inputs, self.column_channel.inputs, self.layer_channel.inputs))
        rows, columns, layers = zip(*cells, strict=True)
        shares = [
            math.nan if cell in self.left_out else share
            for cell, share in zip(cells, self.joint.values.tolist(), strict=True)
        ]
        return {"row": list(rows), "column": list(columns), "layer": list(layers), "share": shares}

    def _cells(self) -> list[tuple[str, list[str]]]:
        *labels, (head, shares) = self._columns().items()
        label_columns = [(name, [as_text(value) for value in values]) for name, values in labels]
        return [*label_columns, (head, [f"{share:.4f}" for share in shares])]

    def _title(self) -> str:
        return f"{self.joint.n} respondents"


def _side(channel: Channel, frequencies: Array, n: int) -> tuple[Array, Array]:
    """The efficient loadings of one question, last category dropped, and their covariance per report."""
    values, fit = GeneralizedLeastSquares().fit(frequencies, channel, n)
    loadings = efficient_loadings(channel, pilot_of(fit, frequencies, n))[:-1]
    fitted_distribution = fit_report_distribution(values, fit, channel, frequencies, n)
    return loadings, report_covariance(loadings, frequencies if fitted_distribution is None else fitted_distribution)


def _form(interaction: Array, first: Array, second: Array) -> tuple[float, int]:
    """tr(V_A^+ D V_B^+ D^T) and its degrees of freedom: one per pair of directions that vary on both sides."""
    if interaction.size == 0:
        return 0.0, 0
    whitened = whitener(first).T @ interaction @ whitener(second)
    return float(np.sum(whitened**2)), whitened.size


def two_way(
    row_reports: Any,
    column_reports: Any,
    row_channel: ChannelLike,
    column_channel: ChannelLike,
    estimator: Estimator | None = None,
    sample: SampleDesign | None = None,
    in_group: Any = None,
) -> TwoWayTable:
    """Estimate the joint distribution of two independently privatized answers [Rao; SSW].

    Parameters
    ----------
    row_reports, column_reports : n reports each, of the same respondents in the same order.
    row_channel, column_channel : Their channels. For a column that was not privatized, the channel is the identity.
    sample : The sample design of the n respondents; None for a simple random sample.
    in_group : A mask (n,) of the group to estimate; None for all.

    Returns
    -------
    TwoWayTable
        The joint distribution and its margins.

    Raises
    ------
    InvalidInput
        For different lengths, and for reports that a channel does not give.

    >>> q = [[0.8, 0.2], [0.2, 0.8]]
    >>> t = two_way([0, 0, 1, 1, 0, 1], [0, 0, 1, 1, 1, 0], q, q)
    >>> t.rows.values
    array([0.5, 0.5])
    """
    row_reports, column_reports = report_column(row_reports, row_channel), report_column(column_reports, column_channel)
    row_channel, column_channel = as_channel(row_channel), as_channel(column_channel)
    a = positions(row_reports, row_channel.outputs)
    b = positions(column_reports, column_channel.outputs)
    if len(a) != len(b):
        raise invalid("column reports", f"{len(a)} reports, as many as row reports", len(b))
    pair_channel = row_channel.product(column_channel)
    pairs = a * column_channel.shape[1] + b
    table: Table
    if sample is None:
        pairs = pairs if in_group is None else pairs[in_group]
        table = CountTable.from_counts(np.bincount(pairs, minlength=pair_channel.shape[1]), pair_channel.outputs)
    else:
        table = SampledReports(pairs, pair_channel, sample)
        table = table if in_group is None else table.where(in_group)
    return TwoWayTable(estimate(table, pair_channel, estimator), row_channel, column_channel)


def two_way_from_counts(
    counts: Any, row_channel: ChannelLike, column_channel: ChannelLike, estimator: Estimator | None = None
) -> TwoWayTable:
    """Estimate the joint distribution of two answers from a table of counts [Rao].

    Parameters
    ----------
    counts : (m1, m2) counts of pairs of reports.
    row_channel, column_channel : The channels of the two answers.
    estimator : As in `estimate`.

    Returns
    -------
    TwoWayTable
        The joint distribution and its margins.

    >>> q = [[0.8, 0.2], [0.2, 0.8]]
    >>> two_way_from_counts([[40, 10], [10, 40]], q, q).independence().degrees
    1
    """
    row_channel, column_channel = as_channel(row_channel), as_channel(column_channel)
    array = finite_array(counts, "counts", 2)
    if array.shape != (row_channel.shape[1], column_channel.shape[1]):
        raise invalid("counts", f"shape {(row_channel.shape[1], column_channel.shape[1])}", f"shape {array.shape}")
    pair_channel = row_channel.product(column_channel)
    table = CountTable.from_counts(array.ravel(), pair_channel.outputs)
    return TwoWayTable(estimate(table, pair_channel, estimator), row_channel, column_channel)


def independence_power(
    joint: ArrayLike, row_channel: ChannelLike, column_channel: ChannelLike, n: int, level: float = 0.05
) -> Power:
    """Compute the probability that `TwoWayTable.independence` rejects at `level`.

    Parameters
    ----------
    joint : The true distribution of the pairs, shape (k1, k2).
    row_channel, column_channel : The channels of the two answers.
    n : The number of respondents.
    level : The level of significance, in (0, 1).

    Returns
    -------
    Power
        The power in [0, 1]. The statistic is noncentral chi-squared [Rao], with noncentrality n tr(V_A^-1 D V_B^-1
        D^T), where D is the interaction of `joint`.

    Raises
    ------
    InvalidInput
        If `joint` is not a distribution of pairs of inputs.

    >>> q = [[0.8, 0.2], [0.2, 0.8]]
    >>> round(float(independence_power([[0.4, 0.1], [0.1, 0.4]], q, q, 200)), 4)
    0.8632
    """
    row_channel, column_channel = as_channel(row_channel), as_channel(column_channel)
    p = finite_array(joint, "joint distribution", 2)
    if p.shape != (row_channel.shape[0], column_channel.shape[0]) or p.min() < 0 or abs(p.sum() - 1) > 1e-9:
        expected = f"a distribution of shape {(row_channel.shape[0], column_channel.shape[0])}"
        raise invalid("joint distribution", expected, f"shape {p.shape}, sum {p.sum()}")
    margins = p.sum(axis=1), p.sum(axis=0)
    interaction = (p - np.outer(*margins))[:-1, :-1]
    covariances = map(asymptotic_covariance, (row_channel, column_channel), margins)
    statistic, degrees = _form(interaction, *(covariance[:-1, :-1] for covariance in covariances))
    return noncentral_power(level, degrees, positive_integer(n, "n") * statistic)
