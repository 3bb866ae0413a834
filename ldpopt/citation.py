"""The papers that a result rests on."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from ldpopt import bounds, composition, design, frontiers
from ldpopt.errors import invalid
from ldpopt.values.references import REFERENCES, Reference, cited, reference, registered_sources

__all__ = ["Citations", "cite"]

_MADE_BY = {
    composition.KFold: composition.k_fold,
    composition.ComposedPair: composition.compose,
    composition.GaussianLimit: composition.gaussian_limit,
    frontiers.Frontier: design.optimal_channel,
}
"""Results that do not name their source, and the functions that return them."""


class Citations(tuple[Reference, ...]):
    """A tuple of papers. It prints one line for each; `bibtex` gives them as BibTeX."""

    __slots__ = ()

    @property
    def bibtex(self) -> str:
        """All entries as one BibTeX file."""
        return "\n\n".join(paper.bibtex for paper in self) + "\n"

    def __repr__(self) -> str:
        return "\n".join(map(str, self))


def cite(result: Any) -> Citations:
    """List the papers that a result is based on, in the order of its citations.

    Parameters
    ----------
    result : A result, a function or class of this package, or a key. A result is a design of any type, a `Guarantee` or
        a claim, an estimate, intervals, a test, a table of bounds, a composition, or anything else with a `reference`.
        A function or class gives the papers that its documentation cites. A key or citation such as ``"GI"`` or ``"[GI,
        Thm 5]"`` gives its paper. A list or tuple of these gives the papers of all.

    Returns
    -------
    Citations
        The papers; `bibtex` holds their BibTeX entries.

    Raises
    ------
    InvalidInput
        If a key is not registered, or nothing is cited.

    Examples
    --------
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
    elif isinstance(result, design.Design):
        yield from _of_design(result)
    elif (sources := registered_sources(result)) is not None:
        for source in sources:
            yield from cited(source) if isinstance(source, str) else _of_documentation(source)
    elif isinstance(result, bounds.Comparison):
        yield from _keys(result.rows)
    elif type(result) in _MADE_BY:
        yield from _of_documentation(_MADE_BY[type(result)])
    elif isinstance(getattr(result, "reference", None), str):
        yield from cited(result.reference)
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from _keys(part)
    else:
        yield from _of_documentation(result if callable(result) else type(result))


def _of_design(result: design.Design) -> Iterator[str]:
    """The papers of the method, the certificate, the utility, the constraints and the measured guarantees, in order."""
    yield from _of_documentation(design.optimal_channel)
    yield from cited(result.reference)
    if result.certificate is not None:
        yield from _of_documentation(type(result.certificate))
    utility = result.utility
    for part in (
        utility,
        getattr(utility, "criterion", None),
        getattr(utility, "neighbourhood", None),
        *result.constraints,
    ):
        if part is not None:
            yield from _of_documentation(type(part))
    for guarantee in result.guarantees:
        yield from cited(guarantee.reference)


def _of_documentation(member: Any) -> tuple[str, ...]:
    return cited(inspect.getdoc(member) or "")
