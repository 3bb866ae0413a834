"""Which papers a result rests on."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from ldpopt.design import (
    BranchAndBound,
    Design,
    Erasure,
    LocalSearch,
    MergedPartition,
    Partition,
    PatternLP,
    TangentExchange,
    optimal_channel,
)
from ldpopt.errors import invalid
from ldpopt.references import REFERENCES, Reference, cited, reference

_FOUND_BY = {
    "partition": Partition,
    "pattern LP": PatternLP,
    "erasure": Erasure,
    "local search": LocalSearch,
    "exchange over single ratios": TangentExchange,
}
"""How a design says it was found, and the method whose paper that is."""


class Citations(tuple[Reference, ...]):
    """Papers; prints as one line each, `bibtex` as BibTeX."""

    __slots__ = ()

    @property
    def bibtex(self) -> str:
        """All entries as one BibTeX file."""
        return "\n\n".join(paper.bibtex for paper in self) + "\n"

    def __repr__(self) -> str:
        return "\n".join(map(str, self))


def cite(result: Any) -> Citations:
    """The papers that a result rests on, in the order in which it cites them.

    result : a `Design`, a `Guarantee`, anything else with a `reference`, a function or class of this package (what
    its documentation cites), or a key or citation such as ``"GI"`` or ``"[GI, Thm 5]"``. A collection of these
    gives the papers of all. `InvalidInput` for a key that is not registered, or where nothing is cited.

    >>> from ldpopt.privacy import total_variation
    >>> cite(total_variation([[0.7, 0.3], [0.4, 0.6]]))
    [GI] Elena Ghazi, Ibrahim Issa. Total Variation Meets Differential Privacy. ...
    >>> print(cite("KOV14").bibtex.splitlines()[0])
    @article{KOV14,
    """
    keys = tuple(dict.fromkeys(_keys(result)))
    if not keys:
        raise invalid("cite", "a result that cites a paper", result)
    return Citations(REFERENCES[key] for key in keys)


def _keys(result: Any) -> Iterator[str]:
    if isinstance(result, str):
        yield from cited(result) or [reference(result).key]
    elif isinstance(result, Design):
        yield from _of_documentation(optimal_channel)
        for start, method in _FOUND_BY.items():
            if result.method.startswith(start):
                yield from _of_documentation(method)
        if "branch and bound" in result.method:
            yield from _of_documentation(BranchAndBound)
        if "merged" in result.method:
            yield from _of_documentation(MergedPartition)
        if result.certificate is not None:
            yield from _of_documentation(type(result.certificate))
        for constraint in result.constraints:
            yield from _of_documentation(type(constraint))
        for guarantee in result.guarantees:
            yield from cited(guarantee.reference)
    elif isinstance(getattr(result, "reference", None), str):
        yield from cited(result.reference)
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from _keys(part)
    else:
        yield from _of_documentation(result if callable(result) else type(result))


def _of_documentation(documented: Any) -> tuple[str, ...]:
    return cited(inspect.getdoc(documented) or "")
