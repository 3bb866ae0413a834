"""Custom mechanisms to compare with the optimum: each is measured to be within the limits of its point.

A table holds the value of the very channel that was measured.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.design import LocalDP, TotalVariation
from ldpopt.design.constraints.base import Constraint
from ldpopt.design.constraints.repair import Unrepairable, repair
from ldpopt.design.utilities.base import Utility
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.numbers.tolerances import ROUNDED_BASELINE
from ldpopt.privacy import local_dp, total_variation
from ldpopt.values.distribution import number

Mechanism: TypeAlias = "ChannelLike | Callable[..., ChannelLike]"
Baselines: TypeAlias = Mapping[str, Mechanism]
Values: TypeAlias = Mapping[str, float | None]
NO_BASELINES: Baselines = MappingProxyType({})


def check_baselines(baselines: Any, column_names: Iterable[str]) -> dict[str, Mechanism]:
    """Return the mechanisms by name, after a check. Raises `InvalidInput` for names that a table has already."""
    if not isinstance(baselines, Mapping):
        raise invalid("baselines", "mechanisms by their names, {'name': function or channel}", type(baselines).__name__)
    reserved_names = {*column_names, *(f"gap_{name}" for name in column_names)}
    for name in baselines:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise invalid("baselines", "names of printable text", name)
        if name in reserved_names or name.startswith("gap_"):
            raise invalid("baselines", "names that are no columns of the table", name)
    return {
        name: mechanism if callable(mechanism) else _as_channel(name, mechanism, "")
        for name, mechanism in baselines.items()
    }


def value_at_parameter(
    name: str, mechanism: Mechanism, parameter: Any, constraints: Iterable[Constraint], utility: Utility
) -> float | None:
    """Return the value of a mechanism at a parameter; None where a channel that is always the same is not within.

    Raises `InvalidInput` for a function whose channel is not within the constraints.
    """
    where = f"parameter {parameter}"
    limits = list(constraints)
    channel: Channel | None
    if callable(mechanism):
        channel = _required(name, _called(name, mechanism, where, parameter), limits, where)
    else:
        channel = _feasible(as_channel(mechanism), limits)
    if channel is None:
        return None
    if name in {constraint.measure(channel).notion for constraint in limits}:
        raise invalid("baselines", "names that are no columns of the table", name)
    return _value(name, channel, utility, where)


def value_at_point(name: str, mechanism: Mechanism, epsilon: float, eta: float, utility: Utility) -> float | None:
    """Return the value of a mechanism at (epsilon, eta); None where a channel that is always the same is not within.

    A channel that does not know eta is erased until it is within eta. Raises `InvalidInput` for a function whose
    channel is not within epsilon, or not within the eta that it is called with.
    """
    where = f"epsilon = {epsilon:g}, eta = {eta:g}"
    limits: list[Constraint] = [LocalDP(epsilon), TotalVariation(eta)]
    if callable(mechanism) and _takes_both(mechanism):
        channel = _required(name, _called(name, mechanism, where, epsilon, eta), limits, where)
    elif callable(mechanism):
        private = _required(name, _called(name, mechanism, where, epsilon), limits[:1], where)
        channel = _required(name, _erased(private, eta), limits, where)
    else:
        fixed_channel = _feasible(as_channel(mechanism), limits[:1])
        if fixed_channel is None:
            return None
        channel = _required(name, _erased(fixed_channel, eta), limits, where)
    return _value(name, channel, utility, where)


def require_use(values: Iterable[Values], baselines: Baselines) -> None:
    """Raise `InvalidInput` for a channel that is within the limits of no point."""
    rows = list(values)
    for name, channel in baselines.items():
        if not callable(channel) and all(row[name] is None for row in rows):
            got = Phrase(f"one of {local_dp(as_channel(channel))}")
            raise invalid(f"baseline {name!r}", "a channel within the limits of some point", got)


def _takes_both(function: Callable[..., Any]) -> bool:
    """Return True if a function needs two arguments, and is called with epsilon and eta."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in positional and parameter.default is parameter.empty for parameter in parameters) >= 2


def _called(name: str, function: Callable[..., Any], where: str, *arguments: Any) -> Channel:
    """Return the channel of a function; its own errors pass unchanged."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        expected = "a function of epsilon, or of epsilon and eta (in a sweep: of the parameter)"
        raise invalid(f"baseline {name!r}", expected, Phrase(f"one with other arguments: {error}"), where) from None
    except ValueError:
        pass  # A function in C may state no arguments.
    return _as_channel(name, function(*arguments), where)


def _as_channel(name: str, value: Any, where: str) -> Channel:
    try:
        return as_channel(value)
    except (InvalidInput, TypeError, ValueError) as error:
        raise invalid(f"baseline {name!r}", "a Channel, or a function to one", Phrase(str(error)), where) from None


def _feasible(channel: Channel, constraints: list[Constraint]) -> Channel | None:
    """Return the channel if it meets the constraints, repaired where only rounding exceeds them; None otherwise."""
    values_and_bounds = [(constraint.measure(channel).value, constraint.bound) for constraint in constraints]
    if all(value <= bound for value, bound in values_and_bounds):
        return channel
    if not all(value <= bound * (1 + ROUNDED_BASELINE) for value, bound in values_and_bounds):
        return None
    try:
        repaired_channel = Channel(repair(channel.matrix, constraints, channel.inputs), channel.inputs, channel.outputs)
    except (InvalidInput, Unrepairable):
        return None
    return (
        repaired_channel if all(limit.measure(repaired_channel).value <= limit.bound for limit in constraints) else None
    )


def _required(name: str, channel: Channel, constraints: list[Constraint], where: str) -> Channel:
    if (feasible := _feasible(channel, constraints)) is not None:
        return feasible
    for constraint in constraints:
        if not (guarantee := constraint.measure(channel)).value <= constraint.bound:
            raise invalid(f"baseline {name!r}", f"a channel that meets {constraint!r}", Phrase(f"{guarantee}"), where)
    raise InvalidInput(f"baseline {name!r}: no channel close to it meets {constraints!r} at {where}")


def _erased(channel: Channel, eta: float) -> Channel:
    """The channel, erased until its total variation is measured to be at most eta: with a share of eta to spare."""
    variation = total_variation(channel).value
    if variation <= eta:
        return channel
    unlabelled_channel = Channel(channel.matrix)  # without labels: one of them might be that of the erasure
    for fraction in ERASURE_FRACTIONS:
        erased_channel = unlabelled_channel.erase(1 - (1 - fraction) * eta / variation)
        if total_variation(erased_channel).value <= eta:
            break
    return erased_channel


ERASURE_FRACTIONS = (0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0)
"""Shares of eta that rounding may cost: next to nothing, unless eta is tiny; with the last of them nothing is left."""


def _value(name: str, channel: Channel, utility: Utility, where: str) -> float:
    try:
        value = float(utility.value(channel))
    except InvalidInput as error:
        raise invalid(f"baseline {name!r}", f"a channel for {utility!r}", Phrase(str(error)), where) from None
    return value if math.isinf(value) and utility.error else number(value, f"value of baseline {name!r}")
