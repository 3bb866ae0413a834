"""Compare families of channels at one central privacy guarantee after shuffling, for a number of respondents.

A shuffler lets each report be less private than the guarantee of all reports together. The search finds, for each
family, the largest local epsilon whose shuffled channel is surely (epsilon, delta)-DP. Claims are measured on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design import LocalDP, optimal_channel
from ldpopt.design.utilities.base import Utility
from ldpopt.errors import invalid
from ldpopt.frontiers.run import utility_at
from ldpopt.mechanisms import randomized_response, subset_selection
from ldpopt.numbers.tolerances import LOCAL_GAP
from ldpopt.privacy import Guarantee
from ldpopt.values.distribution import positive_epsilon, positive_integer, unit_interval
from ldpopt.values.results import Result

Family = Callable[[float], Channel]

MAX_LOCAL_EPSILON = 30.0
"""No larger local epsilon is tried: reports then show the answer but for a chance of 1e-13."""


@dataclass(frozen=True, eq=False)
class ShuffledRow(Result):
    """The result of one family: the local epsilon, the central guarantee measured, and the utility of the channel.

    epsilon : local, in nats. central : the `Guarantee` after shuffling, within the limit. value : the utility, or the
    error. channel : the mechanism.
    """

    family: str
    epsilon: float
    central: Guarantee
    value: float
    channel: Channel


@dataclass(frozen=True, eq=False)
class ShuffledComparison(Result):
    """The families at one central guarantee, the best first."""

    rows: tuple[ShuffledRow, ...]

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "family": [row.family for row in self.rows],
            "local": [row.epsilon for row in self.rows],
            "epsilon": [row.central.value for row in self.rows],
            "value": [row.value for row in self.rows],
        }


def after_shuffling(
    utility: Utility, epsilon: float, delta: float, respondents: int, families: Mapping[str, Family] | None = None
) -> ShuffledComparison:
    """Compare channels at one *central* guarantee of all shuffled reports together [BBGN].

    The optimal local channel need not be the best one after shuffling: splitting a report weakens a shuffled guarantee.

    Parameters
    ----------
    utility : The objective.
    epsilon : Of the central guarantee, in nats, positive.
    delta : Of the central guarantee, in (0, 1).
    respondents : The number of shuffled reports.
    families : By name, a function from a local epsilon (nats) to a channel. By default the optimal local channel,
        randomized response and the best subset selection.

    Returns
    -------
    ShuffledComparison
        One row for each family that meets the guarantee, at its largest local epsilon; the best family first.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> from ldpopt import FisherInformation
    >>> family = {"kRR": lambda epsilon: randomized_response(5, epsilon)}
    >>> made = after_shuffling(FisherInformation([0.2] * 5), 0.1, 1e-6, 1_000, family)
    >>> round(made.rows[0].epsilon, 2), made.rows[0].central.value <= 0.1
    (0.95, True)
    """
    from ldpopt.composition import shuffled

    limit, n = positive_epsilon(epsilon), positive_integer(respondents, "respondents")
    level = unit_interval(delta, "delta")
    if not 0 < level < 1:
        raise invalid("delta", "a number between 0 and 1", delta)
    utility = utility_at(utility)
    if families is None:
        families = _families(utility)

    def best_of_family(name: str, family: Family) -> ShuffledRow | None:
        low, high = min(limit, MAX_LOCAL_EPSILON), MAX_LOCAL_EPSILON
        best = family(low)
        if not shuffled(best, n).delta_at(limit).value <= level:
            return None  # no family of epsilon-LDP channels comes here: shuffling does not cost
        while high - low > LOCAL_GAP * high:
            middle = math.sqrt(low * high)
            mechanism = family(middle)
            if shuffled(mechanism, n).delta_at(limit).value <= level:
                low, best = middle, mechanism
            else:
                high = middle
        central = shuffled(best, n).epsilon_at(level)
        central = replace(central, value=min(central.value, limit))  # delta at the limit was proved
        return ShuffledRow(name, low, central, utility.value(best), best)

    rows = [row for row in (best_of_family(name, family) for name, family in families.items()) if row is not None]
    return ShuffledComparison(tuple(sorted(rows, key=lambda row: row.value if utility.error else -row.value)))


def _families(utility: Utility) -> dict[str, Family]:
    """The optimal local channel and the textbook ones for as many answers."""
    k = utility.size

    def subsets(epsilon: float) -> Channel:
        size = max(1, min(k - 1, round(k / (1 + math.exp(epsilon)))))
        return subset_selection(k, epsilon, size)

    families: dict[str, Family] = {
        "optimal local channel": lambda epsilon: optimal_channel(utility, [LocalDP(epsilon)]).channel,
        "randomized response": lambda epsilon: randomized_response(k, epsilon),
    }
    return families | ({"subset selection": subsets} if 3 <= k <= 20 else {})
