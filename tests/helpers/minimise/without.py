"""A kernel that leaves out one of the things that a certificate's numbers must pay for: attacks have to notice.

Of lists of columns see `listed.lacking`; here are the blocks, intervals, decisions, sets, boxes and simplices of the
other classes. Where a class has no list, one factor of its bound is too small.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np

MOST = 40
"""No class is tried without more than so many of its parts, one at a time."""


def _module(name: str) -> Any:
    return import_module(f"ldpopt.design.{name}")


def _fewer_leaves(module: Any, gone: int) -> Iterator[tuple[Any, str, Any]]:
    whole = module.leaves_of

    def fewer(*given: Any) -> Any:
        leaves = whole(*given)
        return [leaf for at, leaf in enumerate(leaves) if at != gone] if len(leaves) > 1 else leaves

    yield module, "leaves_of", fewer


def _fewer_rows(module: Any, name: str, gone: int) -> Iterator[tuple[Any, str, Any]]:
    """A residual that does not look at one label."""
    whole = getattr(module, name)

    def fewer(reduced: Any, *given: Any) -> Any:
        kept = np.delete(np.arange(len(reduced.lower)), gone)
        rest = [one[kept] if np.ndim(getattr(one, "lower", 0)) == 1 else one for one in given]
        return whole(reduced[kept], *rest)

    yield module, name, fewer


def _envelope(gone: int) -> Iterator[tuple[Any, str, Any]]:
    blocks = _module("two_hypotheses.proof").SortedBlocks
    band = blocks._band

    def fewer(self: Any) -> Iterator[Any]:
        seen = 0
        for i, j, worth, paid in band(self):
            kept = np.arange(seen, seen + len(i)) != gone
            seen += len(i)
            yield i[kept], j[kept], worth[kept], paid[kept]

    yield blocks, "_band", fewer


def _sets(gone: int) -> Iterator[tuple[Any, str, Any]]:
    module = _module("information.proof")
    whole = module.members
    yield module, "members", lambda numbers, n: np.delete(whole(numbers, n), gone, axis=0)


def _orbits(gone: int) -> Iterator[tuple[Any, str, Any]]:
    module = _module("symmetric.proof_orbits")
    whole = module.orbits
    yield module, "orbits", lambda sizes, numbers: whole(sizes, numbers[numbers != gone])


def _integers(gone: int) -> Iterator[tuple[Any, str, Any]]:
    module = _module("patterns.proof_levels")
    whole = module.integer_columns

    def fewer(*given: Any) -> Any:
        columns, complete = whole(*given)
        return np.delete(columns, gone, axis=1), complete

    yield module, "integer_columns", fewer


def _patterns(gone: int) -> Iterator[tuple[Any, str, Any]]:
    module = _module("estimation.staircase")
    whole = module.subsets
    yield module, "subsets", lambda k: np.delete(whole(k), gone, axis=0)


def _simplices(gone: int) -> Iterator[tuple[Any, str, Any]]:
    module = _module("several_hypotheses.proof")
    whole = module.Simplices.cover

    def fewer(n: int) -> Any:
        every = whole(n)
        return every.take(np.delete(np.arange(len(every)), gone))

    yield module.Simplices, "cover", fewer


def _outputs(gone: int) -> Iterator[tuple[Any, str, Any]]:
    module = _module("outputs.proof")
    whole = module._residual

    def fewer(reduced: Any, limits: Any, arithmetic: Any) -> Any:
        lower = np.where(np.arange(len(reduced.lower))[:, None] == gone, np.minimum(reduced.lower, 0.0), reduced.lower)
        upper = np.where(np.arange(len(reduced.upper))[:, None] == gone, np.minimum(reduced.upper, 0.0), reduced.upper)
        return whole(arithmetic.between(lower, upper), limits, arithmetic)

    yield module, "_residual", fewer


def _smaller(module: Any, name: str, factor: float) -> Iterator[tuple[Any, str, Any]]:
    whole = getattr(module, name)
    yield module, name, lambda *given, **named: whole(*given, **named) * factor


PARTS: dict[str, Any] = {
    "EnvelopeDual": _envelope,
    "InformationDual": _sets,
    "IntegerColumns": _integers,
    "OrbitDual": _orbits,
    "LossDual": lambda gone: _fewer_rows(_module("ratios.proof"), "enclosed_residual", gone),
    "IntervalDual": lambda gone: _fewer_rows(_module("ratios.proof"), "enclosed_residual", gone),
    "SamplingDual": lambda gone: _fewer_rows(_module("ratios.proof"), "enclosed_residual", gone),
    "AlphabetLossDual": _outputs,
    "BranchDual": lambda gone: _fewer_leaves(_module("outputs.proof"), gone),
    "ChamberDual": lambda gone: _fewer_leaves(_module("outputs.proof"), gone),
    "MarginalDual": _simplices,
    "EquivalenceDual": _patterns,
    "RespondentsBound": _patterns,
    "PairwiseInformation": lambda gone: _smaller(_module("information.proof_capacity"), "moment_bound", 0.8),
    "Contraction": lambda gone: _smaller(_module("kernel.proof"), "variation_cap", 0.999),
    "InformationCapacity": lambda gone: _smaller(_module("information.proof_capacity"), "information_capacity", 0.999),
    "SharedInformation": lambda gone: _smaller(_module("estimation.proof"), "information_limit", 0.99),
}
"""What is left out of the kernel, by the class and the place of the part."""


@contextlib.contextmanager
def left_out(kind: str, gone: int) -> Iterator[None]:
    """The kernel without a part."""
    with contextlib.ExitStack() as stack:
        for target, name, other in PARTS[kind](gone):
            stack.enter_context(mock.patch.object(target, name, other))
        yield
