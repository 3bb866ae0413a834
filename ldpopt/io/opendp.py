"""Channels as measurements of OpenDP.

Needs the package ``opendp`` (0.12 or newer), an optional extra. The measurement draws each report from the integers of
the exact channel with the operating system's randomness and without floating point. So reports have exactly the
probabilities for which the channel's epsilon is proved.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from importlib import import_module
from itertools import accumulate
from secrets import randbelow
from typing import Any

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.errors import Phrase, invalid
from ldpopt.exact import ExactChannel
from ldpopt.extras import missing
from ldpopt.labels import Label


def to_opendp(channel: ChannelLike) -> Any:
    """A channel as a measurement of OpenDP: from one answer to one report, with the epsilon that its integers prove.

    channel : an `ExactChannel`, or another channel (k, m), which is first made exact with 62 bits.

    The measurement has the discrete metric (any two answers are neighbours) and the measure ``max_divergence``, in
    nats. It chains and composes like OpenDP's own. An answer that is not an input is refused, and the error does not
    repeat it.

    OpenDP requires a call of ``enable_features("contrib", "honest-but-curious")`` first, since it cannot check Python
    code. Raises `InvalidInput` for a channel without a finite epsilon and `MissingExtra` without opendp.

    >>> import opendp.prelude as dp  # doctest: +SKIP
    >>> dp.enable_features("contrib", "honest-but-curious")  # doctest: +SKIP
    >>> ask = to_opendp(Channel([[0.75, 0.25], [0.25, 0.75]], ["yes", "no"], ["yes", "no"]))  # doctest: +SKIP
    >>> ask("yes") in ("yes", "no"), round(ask.map(1), 6)  # doctest: +SKIP
    (True, 1.098612)
    """
    exact = _exact(channel)
    epsilon = exact.proof().epsilon
    if not epsilon < float("inf"):
        raise invalid("channel", "one with a finite epsilon", Phrase("a report that rules some answer out"))
    try:
        dp = import_module("opendp.prelude")
    except ImportError:
        raise missing("opendp") from None
    places = {label: place for place, label in enumerate(exact.inputs)}
    domain = dp.user_domain(f"one of {len(places)} answers", lambda answer: _known(answer, places))
    return dp.m.make_user_measurement(
        domain, dp.discrete_distance(), dp.max_divergence(), _draws(exact, places), lambda d: epsilon if d else 0.0
    )


def _exact(channel: ChannelLike) -> ExactChannel:
    inner = getattr(channel, "channel", channel)
    return inner if isinstance(inner, ExactChannel) else as_channel(channel).exact()


def _known(answer: Any, places: dict[Label, int]) -> bool:
    try:
        return answer in places
    except TypeError:
        return False


def _draws(exact: ExactChannel, places: dict[Label, int]) -> Callable[[Any], Label]:
    """The function of the measurement: a random integer below the denominator selects a report by a row's weights."""
    ends = [list(accumulate(row)) for row in exact.weights.tolist()]

    def report(answer: Any) -> Label:
        if not _known(answer, places):
            raise invalid("answer", "one of the inputs of the channel", Phrase("another"))
        return exact.outputs[bisect_right(ends[places[answer]], randbelow(exact.denominator))]

    return report
