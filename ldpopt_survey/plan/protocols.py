"""Compare all protocols of the package for one question by the respondents that each needs.

The design effect of a protocol is this number divided by the number without privacy [Kish].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt import mechanisms
from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, invalid
from ldpopt.mechanisms import FrequencyOracle
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.privacy import local_dp, total_variation
from ldpopt.values.deadline import Progress
from ldpopt.values.distribution import Array, distribution, positive_epsilon, unit_interval
from ldpopt.values.results import Pictured, Result, Rows
from ldpopt_survey.estimate.linear import NotIdentifiable, require_identifiable
from ldpopt_survey.plan.precision import HalfWidth
from ldpopt_survey.plan.question import QuestionPlanner

MAX_ENTRIES = 2**22
"""The most entries of a channel that is tabulated for a comparison."""


@dataclass(frozen=True, eq=False)
class ProtocolRow(Result):
    """One protocol: its guarantees, the respondents that it needs, and their ratio to the number without privacy."""

    protocol: str
    epsilon: float
    eta: float
    respondents: int
    design_effect: float


@dataclass(frozen=True, eq=False, repr=False)
class ProtocolTable(Rows[ProtocolRow], Pictured):
    """Protocols for one question, the fewest respondents first.

    rows : the `ProtocolRow` of each protocol.
    precision : the target.
    respondents_without_privacy : number of respondents needed without privacy; ``unprivate`` in JSON.
    """

    rows: tuple[ProtocolRow, ...]
    precision: HalfWidth
    respondents_without_privacy: int

    def __getitem__(self, protocol: str) -> ProtocolRow:
        for row in self.rows:
            if row.protocol == protocol:
                return row
        raise invalid("protocol", f"one of {', '.join(row.protocol for row in self.rows)}", protocol)

    _picture = "protocols"

    def to_dict(self) -> dict[str, Any]:
        """Convert the table to JSON-ready values, with its keys in files."""
        return {"unprivate" if key == "respondents_without_privacy" else key: v for key, v in super().to_dict().items()}

    def _cells(self) -> list[tuple[str, list[str]]]:
        cells = []
        for name, values in self._columns().items():
            write = _FORMATS_OF_COLUMNS.get(name, str)
            cells.append((name.replace("_", " "), [write(value) for value in values]))
        return cells

    def _title(self) -> str:
        target = f"half-width {self.precision.width:g} at {100 * self.precision.level:g} %"
        return f"Respondents for {target}; {self.respondents_without_privacy:,} without privacy"

    def __repr__(self) -> str:
        columns = [[head, *values] for head, values in self._cells()]
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in zip(*columns, strict=True)
        ]
        return self._title() + "\n" + "\n".join(lines)


_FORMATS_OF_COLUMNS: dict[str, Callable[[Any], str]] = {
    "epsilon": lambda value: ceil_digits(value, 4),
    "eta": lambda value: ceil_digits(value, 4),
    "respondents": lambda value: f"{value:,}",
    "design_effect": lambda value: f"{value:.4g}",
}


def compare_protocols(
    pilot: Any,
    precision: HalfWidth,
    epsilon: float,
    eta: float = 1.0,
    optimal: Channel | None = None,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> ProtocolTable:
    """Compare every protocol of `mechanisms` and the optimal channel by respondents [Kish].

    The variance of a channel is that of the efficient estimate at the pilot. For frequency oracles with too many
    reports to tabulate it is the variance of their own estimate. Protocols above eta are left out, and so are protocols
    that do not distinguish all categories.

    Parameters
    ----------
    pilot : The expected distribution of the answers, shape (k,).
    precision : The target, such as `HalfWidth(0.05)`.
    epsilon : In nats.
    eta : The largest total variation allowed.
    optimal : The optimal channel, if it is already known; otherwise it is computed.
    time_limit, progress : Of that computation, as for `optimal_channel`.

    Returns
    -------
    ProtocolTable
        One row per protocol, by required respondents.

    Raises
    ------
    InvalidInput
        If no protocol fits eta.

    >>> table = compare_protocols([0.2] * 5, HalfWidth(0.05), 0.5)
    >>> table.rows[0].protocol, table["randomized response"].respondents
    ('optimal channel', 18641)
    """
    pilot, epsilon, eta = distribution(pilot, "pilot"), positive_epsilon(epsilon), unit_interval(eta, "eta")
    k = len(pilot)
    if not isinstance(precision, HalfWidth):
        raise invalid("precision", "a HalfWidth", type(precision).__name__)
    if optimal is None:
        optimal = QuestionPlanner(pilot).channel(epsilon, eta, precision, time_limit=time_limit, progress=progress)
    non_private = precision.respondents_for(precision.variance(pilot * (1 - pilot)))
    rows = []
    protocols: list[tuple[str, Any]] = [("optimal channel", optimal), *_named_protocols(k, epsilon)]
    for name, mechanism in protocols:
        variance, guarantee, variation = _measure(mechanism, pilot, precision)
        if not variance < math.inf or variation > eta or guarantee > epsilon:
            continue
        respondents = precision.respondents_for(variance)
        effect = variance / max(precision.variance(pilot * (1 - pilot)), 1e-300)
        rows.append(ProtocolRow(name, guarantee, variation, respondents, effect))
    rows.sort(key=lambda row: (row.respondents, row.protocol != "optimal channel"))
    return ProtocolTable(tuple(rows), precision, non_private)


def _measure(mechanism: Any, pilot: Array, precision: HalfWidth) -> tuple[float, float, float]:
    """Return the variance for one respondent (inf without an estimate), epsilon and eta."""
    if isinstance(mechanism, FrequencyOracle):
        variances = np.array([mechanism.variance(float(p), 1) for p in pilot])
        return precision.variance(variances), mechanism.epsilon, mechanism.eta
    try:
        require_identifiable(mechanism)
    except NotIdentifiable:
        if precision.category is None:
            return math.inf, math.inf, 1.0
    return precision.variance_of(mechanism, pilot), float(local_dp(mechanism)), float(total_variation(mechanism))


def _named_protocols(k: int, epsilon: float) -> Iterator[tuple[str, Any]]:
    """Yield every named protocol for k categories."""
    yield "randomized response", mechanisms.randomized_response(k, epsilon)
    best = k / (math.exp(epsilon) + 1)
    for size in range(2, k):
        if abs(size - best) <= 2 and math.comb(k, size) * k <= MAX_ENTRIES:
            yield f"subset selection of {size}", mechanisms.subset_selection(k, epsilon, size)
    yield "unary encoding", mechanisms.unary_encoding(k, epsilon)
    yield "optimized unary encoding", mechanisms.optimized_unary_encoding(k, epsilon)
    yield "binary local hashing", mechanisms.local_hashing(k, epsilon)
    yield "optimized local hashing", mechanisms.optimized_local_hashing(k, epsilon)
    with suppress(InvalidInput):
        yield "Hadamard response", mechanisms.hadamard_response(k, epsilon).channel()
    with suppress(InvalidInput):
        yield "truncated geometric", mechanisms.truncated_geometric(k, epsilon)
    if k == 2:
        yes_no: dict[str, Callable[[float], Any]] = {
            "Warner": mechanisms.Warner.for_epsilon,
            "crosswise": mechanisms.Crosswise.for_epsilon,
            "forced response": mechanisms.ForcedResponse.for_epsilon,
            "unrelated question": lambda e: mechanisms.UnrelatedQuestion.for_epsilon(e, 0.5),
            "Kuk": mechanisms.Kuk.for_epsilon,
        }
        for name, make in yes_no.items():
            yield name, make(epsilon).channel
