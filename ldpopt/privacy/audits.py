"""The audit of every guarantee of a channel, and the guarantees proved by the integers of an exact channel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.exact import ExactChannel
from ldpopt.files import strict
from ldpopt.numbers.rounding import down
from ldpopt.privacy.approximate_dp import TOTAL_VARIATION_REFERENCE, approximate_dp, hockey_stick, total_variation
from ldpopt.privacy.capacity import RestrictedKL, RestrictedRenyi, RestrictedTotalVariation, capacity_bounded
from ldpopt.privacy.concentrated import approximate_zcdp, mcdp, zcdp
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.leakage import chi_squared_contraction, doeblin, maximal_leakage, mutual_information
from ldpopt.privacy.local_dp import REFERENCE as LOCAL_DP
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.pairs import Policy
from ldpopt.privacy.renyi import renyi
from ldpopt.privacy.trade_off import TradeOffCurve, trade_off
from ldpopt.values.deadline import Progress, watched
from ldpopt.values.results import Pictured


def proved(channel: ExactChannel) -> tuple[Guarantee, Guarantee]:
    """Prove the epsilon (nats) and eta of an exact channel in rational arithmetic.

    Parameters
    ----------
    channel : `ExactChannel` with k inputs and m outputs, shape (k, m).

    Returns
    -------
    tuple[Guarantee, Guarantee]
        epsilon, in nats [GI, Def 6], and eta, in [0, 1] [GI, Def 7].

    Examples
    --------
    >>> epsilon, eta = proved(ExactChannel([[3, 1], [1, 3]], bits=2))
    >>> round(float(epsilon), 9), float(eta), epsilon.witness.inputs
    (1.098612289, 0.5, (0, 1))
    """
    proof = channel.proof()
    (x, other, y), (answer, other_answer) = proof.ratio_at, proof.distance_at
    event = compress(channel.outputs, channel.weights[answer] > channel.weights[other_answer])
    return (
        _proved("local_dp", proof.epsilon, channel, (x, other), channel.outputs[y : y + 1], LOCAL_DP),
        _proved("total_variation", proof.eta, channel, (answer, other_answer), event, TOTAL_VARIATION_REFERENCE),
    )


def _proved(
    notion: str, value: float, channel: ExactChannel, pair: tuple[int, int], outputs: Iterable[Label], reference: str
) -> Guarantee:
    """The guarantee that the integers prove, with its witness; a value of zero has no witness."""
    x, other = pair
    witness = Witness((channel.inputs[x], channel.inputs[other]), tuple(outputs)) if x != other else None
    return Guarantee(notion, value, down(value), witness, True, reference)


FORMAT = "ldpopt-audit"
VERSION = 1
AUDIT_EPSILONS = (0.5, 1.0, 2.0)
AUDIT_DELTAS = (1e-6, 1e-3, 1e-2)
AUDIT_ORDERS = (1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


@dataclass(frozen=True, eq=False)
class Audit(Pictured):
    """The guarantees of a channel with `shape` (inputs, outputs), and its trade-off curve.

    Indexing by a notion, as in ``report["zcdp"]``, gives its first guarantee. Printing gives a table; `to_html`,
    `to_dict` and `to_json` give the same in other forms. Printed values are rounded up.

    >>> from ldpopt.privacy import audit
    >>> report = audit([[0.75, 0.25], [0.25, 0.75]])
    >>> round(report["total_variation"].value, 6)
    0.5
    """

    shape: tuple[int, int]
    guarantees: tuple[Guarantee, ...]
    curve: TradeOffCurve

    _picture, _limit = "trade_off", 100

    def _plot_arguments(self) -> tuple[Any, ...]:
        return (self.curve,)

    def __getitem__(self, notion: str) -> Guarantee:
        for guarantee in self.guarantees:
            if guarantee.notion == notion:
                return guarantee
        raise KeyError(notion)

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """List the table rows: privacy definition, sign, value, witness and source."""
        return [(g.title, *g.printed, str(g.witness or ""), g.reference) for g in self.guarantees]

    def _title(self) -> str:
        return f"Guarantees of a channel with {self.shape[0]} inputs and {self.shape[1]} outputs"

    def __str__(self) -> str:
        columns = [cells for _, cells in self._cells()][:3]
        padded_columns = [[cell.ljust(max(map(len, cells))) for cell in cells] for cells in columns]
        return "\n".join([self._title(), *("  ".join(row).rstrip() for row in zip(*padded_columns, strict=True))])

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        heads, columns = zip(*self._cells(), strict=True)
        table = Table(*heads, title=self._title())
        for row in zip(*columns, strict=True):
            table.add_row(*map(Text, row))
        return table

    def _columns(self) -> dict[str, list[Any]]:
        names = ("notion", "value", "lower", "exact", "reference")
        columns = {name: [getattr(guarantee, name) for guarantee in self.guarantees] for name in names}
        parameters = [", ".join(f"{k}={v}" for k, v in g.printed_parameters.items()) for g in self.guarantees]
        return columns | {"parameters": parameters, "witness": [str(g.witness or "") for g in self.guarantees]}

    def _cells(self) -> list[tuple[str, list[str]]]:
        heads = ("notion", "guarantee", "attained at", "source")
        rows = [(name, f"{sign} {value}", witness, source) for name, sign, value, witness, source in self.rows()]
        return [(head, list(column)) for head, column in zip(heads, zip(*rows, strict=True), strict=True)]

    def to_html(self) -> str:
        """Format the whole audit as an HTML table; labels are escaped."""
        return self._html(None)

    def to_dict(self) -> dict[str, Any]:
        """Convert the audit to JSON-ready values; infinite ones are the string ``"inf"``."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "shape": list(self.shape),
            "guarantees": [
                {**guarantee.to_dict(), "lower": "inf" if math.isinf(guarantee.lower) else guarantee.lower}
                for guarantee in self.guarantees
            ],
            "trade_off": self.curve.knots.tolist(),
        }

    def to_json(self) -> str:
        """Convert the audit to JSON text (schema ``ldpopt-audit``, version 1)."""
        return strict.json_text(self.to_dict())


def audit(channel: ChannelLike, graph: Policy = None, *, features: Any = None, progress: Progress = False) -> Audit:
    """Measure every guarantee of a channel: pure, approximate, Rényi, zCDP, f-DP, leakage.

    Mutual information is that of the uniform prior.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.
    features : Array (m,) or (m, d), one row for each output, or `Affine` or `Polynomial`. It adds the guarantees
        against adversaries restricted to such functions of the features.
    progress : True shows a bar. A function is called with the fraction of measurements made so far, in [0, 1].

    Returns
    -------
    Audit
        The guarantees by name; quantities of privacy and information are in nats.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the graph or the features do not fit it.

    Examples
    --------
    >>> report = audit([[0.75, 0.25], [0.25, 0.75]])
    >>> round(report["local_dp"].value, 6), round(report["zcdp"].value, 6)
    (1.098612, 0.549306)
    """
    channel = as_channel(channel)
    with watched(None, progress, "measuring") as deadline:
        rounds = deadline.rounds(_measures(channel, graph, features))
        guarantees = tuple(guarantee for measure in rounds for guarantee in measure())
        return Audit(channel.shape, guarantees, trade_off(channel, graph))


def _measures(channel: Channel, graph: Policy, features: Any) -> list[Callable[[], Iterable[Guarantee]]]:
    """The measures of the audit, in their order."""

    def concentrated() -> Iterable[Guarantee]:
        guarantee = mcdp(channel, graph)
        return guarantee.mu, guarantee.tau

    restricted_divergences = (
        () if features is None else (RestrictedKL(), RestrictedRenyi(2.0), RestrictedTotalVariation())
    )
    uniform = np.full(channel.shape[0], 1 / channel.shape[0])
    return [
        lambda: (local_dp(channel, graph),),
        lambda: (total_variation(channel, graph),),
        lambda: [hockey_stick(channel, epsilon, graph) for epsilon in AUDIT_EPSILONS],
        lambda: [approximate_dp(channel, delta, graph) for delta in AUDIT_DELTAS],
        lambda: renyi(channel, AUDIT_ORDERS, graph),
        lambda: (zcdp(channel, graph=graph),),
        lambda: [approximate_zcdp(channel, delta, graph=graph) for delta in AUDIT_DELTAS[:1]],
        concentrated,
        lambda: (doeblin(channel, graph), maximal_leakage(channel, graph), mutual_information(channel, uniform)),
        lambda: (chi_squared_contraction(channel, graph),),
        lambda: [capacity_bounded(channel, features, divergence, graph) for divergence in restricted_divergences],
    ]
