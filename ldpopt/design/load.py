"""Read and check a design file: schema ``ldpopt-design``, version 1 (docs/reference/formats/design-file.md).

A bound on respondents is read from a file of schema ``ldpopt-respondents``.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpopt.channel import Channel
from ldpopt.design.codec.kinds import DESIGN_SCHEMA, FILE_KIND, RESPONDENTS_SCHEMA, VERSION, expect_keys
from ldpopt.design.codec.records import Reader, real
from ldpopt.design.design import Design
from ldpopt.design.kernel.certificate import REFUTED, Certificate, Verification
from ldpopt.design.problems.labelling import require_one_labelling
from ldpopt.design.work import BYTES_PER_TEXT_BYTE, Work, parsing_work, positive_budget
from ldpopt.errors import InvalidInput, LdpoptError, NotChecked, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import PathLike, naming, read_text
from ldpopt.privacy import Guarantee

if TYPE_CHECKING:
    from ldpopt.design.estimation.proof import RespondentsBound

KEYS = {
    "schema", "version", "utility", "constraints", "channel", "value", "lower_bound", "upper_bound", "certified",
    "tolerance", "guarantees", "method", "reference", "note", "edges", "certificate",
}  # fmt: skip


def load_design(path: PathLike) -> Design:
    """Load a design from a file that `Design.save` wrote.

    The design repeats the claims of the file; `verify` checks them. Nothing in the file is run.

    Parameters
    ----------
    path : The file, in JSON.

    Returns
    -------
    Design
        The design as the file states it.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or a part of it is missing, unknown or of the wrong type; the message names the
        part.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt import Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "design.json"
    ...     optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0)).save(path)
    ...     bool(load_design(path).verify())
    True
    """
    with naming(path):
        return parse_design(_read_within_budget(path))


def load_respondents(path: PathLike) -> RespondentsBound:
    """Load a bound on respondents from a file that `RespondentsBound.save` wrote [Scarf].

    The bound repeats the claims of the file; `verify` checks them. Nothing in the file is run.

    Parameters
    ----------
    path : The file, in JSON.

    Returns
    -------
    RespondentsBound
        The bound as the file states it.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or a part of it is missing, unknown or of the wrong type; the message names the
        part.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from ldpopt.design import RespondentsBound
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "least.json"
    ...     halves, one = (np.array([0.5, 0.5]),), (np.array([[1.0, 0.0]]),)
    ...     RespondentsBound.from_targets(1.0, halves, one, (np.array([1e-4]),), (np.ones(1),)).save(path)
    ...     load_respondents(path).least
    11707
    """
    with naming(path):
        return _parse_respondents(_read_within_budget(path))


def load_proof(path: PathLike, budget: float = 1.0) -> Design | RespondentsBound:
    """Load the design or the bound on respondents that a file states.

    budget : a file that takes more than this many times 2 GB to read raises `NotChecked`.
    """
    budget = positive_budget(budget)
    with naming(path):
        text = _read_within_budget(path, budget)
        return _parse_respondents(text) if f'"{RESPONDENTS_SCHEMA}"' in text[:200] else parse_design(text)


def _parse_respondents(text: str) -> RespondentsBound:
    from ldpopt.design.estimation.proof import RespondentsBound

    data = _parse_object(text, RESPONDENTS_SCHEMA)
    parts = {name: part for name, part in data.items() if name not in ("schema", "version")}
    bound: RespondentsBound = Reader().read(parts, RespondentsBound, "bound")
    return bound


def _read_within_budget(path: PathLike, budget: float = math.inf) -> str:
    """Return the text of a file that is not too large."""
    try:
        size = Path(path).stat().st_size
    except (OSError, TypeError, ValueError):
        size = 0  # reading the file raises the error
    reason = Work(0.0, BYTES_PER_TEXT_BYTE * size).refusal(budget)
    text = "" if reason else read_text(path)
    if reason := reason or parsing_work(text).refusal(budget):
        raise NotChecked(reason)
    return text


def _parse_object(text: str | bytes, schema: str) -> dict[str, Any]:
    """Parse the object of a schema from the contents of a file, or from the output of ``ldpopt design --json``."""
    data = strict.json_value(text, FILE_KIND)
    if isinstance(data, dict) and data.get("command") == "design":
        data = data.get("design")
    if not isinstance(data, dict) or data.get("schema") != schema:
        from ldpopt.values.schema import schema_of  # needed only for the error

        raise invalid(FILE_KIND, f'an object with "schema": "{schema}"', schema_of(data))
    if data.get("version") != VERSION or isinstance(data["version"], (bool, float)):
        raise invalid(FILE_KIND, f"version {VERSION}", data.get("version"))
    return data


def parse_design(text: str | bytes) -> Design:
    """Parse a design from the contents of a file, like `load_design`.

    Nothing in the text is run.

    Parameters
    ----------
    text : The contents of a design file, as text or as UTF-8.

    Returns
    -------
    Design
        The design as the text states it.

    Raises
    ------
    InvalidInput
        If a part is missing, unknown or of the wrong type; the message names the part.

    Examples
    --------
    >>> from ldpopt import Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> design = optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0))
    >>> parse_design(design.to_json()) == design
    True
    """
    data = _parse_object(text, DESIGN_SCHEMA)
    expect_keys(data, KEYS, "the file")
    try:
        return _build_design(data)
    except RecursionError:
        raise invalid(FILE_KIND, "lists of moderate depth", Phrase("deeply nested ones")) from None


def _build_design(data: dict[str, Any]) -> Design:
    reader = Reader()
    problem = reader.problem({name: data[name] for name in ("utility", "constraints", "channel", "edges")}, "")
    utility, channel, edges = problem["utility"], problem["channel"], problem["edges"]
    rows = utility.size if not utility.continuous else channel.shape[0] if edges is None else len(edges) + 1
    if channel.shape[0] != rows:
        raise invalid(FILE_KIND, f"{rows} inputs", channel.shape[0], "channel")
    if edges is not None and not utility.continuous:
        raise invalid(FILE_KIND, "null, as the answers are not real numbers", "cut points", "edges")
    try:
        require_one_labelling(utility, problem["constraints"], channel)
    except InvalidInput as error:
        raise InvalidInput(f"{FILE_KIND}: {error}") from None
    certificate = reader.read(data["certificate"], Certificate | None, "certificate", problem)
    return Design(
        utility=utility,
        constraints=problem["constraints"],
        channel=channel,
        **{name: real(data[name], name) for name in ("value", "lower_bound", "upper_bound", "tolerance")},
        guarantees=_complete_guarantees(
            reader.read(data["guarantees"], tuple[Guarantee, ...], "guarantees"), problem["constraints"], channel
        ),
        method=reader.read(data["method"], str, "method"),
        reference=reader.read(data["reference"], str, "reference"),
        note=reader.read(data["note"], str, "note"),
        certificate=certificate,
        certified=reader.read(data["certified"], bool, "certified"),
        edges=edges,
    )


def _complete_guarantees(
    stated_guarantees: tuple[Guarantee, ...], constraints: tuple[Any, ...], channel: Channel
) -> tuple[Guarantee, ...]:
    """Fill in the parts of the guarantees, other than values, that a file leaves out, if that is little work."""
    if len(stated_guarantees) != len(constraints):
        return stated_guarantees
    guarantees = []
    for guarantee, constraint in zip(stated_guarantees, constraints, strict=True):
        unmeasured_guarantee = Guarantee(guarantee.notion, guarantee.value, parameters=guarantee.parameters)
        if guarantee == unmeasured_guarantee and not constraint.work(channel).refusal(1.0):
            with suppress(LdpoptError):
                measured_guarantee = constraint.measure(channel)
                if (measured_guarantee.notion, measured_guarantee.parameters) == (
                    guarantee.notion,
                    guarantee.parameters,
                ):
                    guarantee = replace(measured_guarantee, value=guarantee.value)
        guarantees.append(guarantee)
    return tuple(guarantees)


def verify_design(
    statement: Design | RespondentsBound, exact: bool = False, budget: float = 1.0
) -> tuple[Verification, bool]:
    """Verify a design in float64 and, if necessary, in 256-bit ball arithmetic.

    The second check is made if the first does not confirm the design. Another processor may sum in another order, and
    recompute a bound that is one digit looser than the stated one.

    Parameters
    ----------
    statement : A design, or a bound on respondents.
    exact : True uses ball arithmetic immediately.
    budget : As for `Design.verify`, for each of the two.

    Returns
    -------
    tuple[Verification, bool]
        The verification, and True if it was done in ball arithmetic.

    Examples
    --------
    >>> from ldpopt import Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> verification, exact = verify_design(optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0)))
    >>> bool(verification), exact
    (True, False)
    """
    verification = statement.verify(exact, budget)
    if exact or verification.outcome != REFUTED:
        return verification, exact
    exact_verification = statement.verify(True, budget)
    return (exact_verification, True) if exact_verification.proved else (verification, False)
