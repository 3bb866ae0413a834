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
from ldpopt.design.codec.kinds import FILE, RESPONDENTS, SCHEMA, VERSION, expect_keys
from ldpopt.design.codec.records import Reader, real
from ldpopt.design.design import Design
from ldpopt.design.kernel.certificate import REFUTED, Certificate, Verification
from ldpopt.design.problems.labelling import require_one_labelling
from ldpopt.design.work import TEXT, Work, number_of_times, parsing
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
    """The design in a file that `Design.save` wrote. It claims what the file claims: `verify` tells what holds.

    Nothing in the file is run. `InvalidInput` names the part of the file that is missing, unknown or of the wrong kind.

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
        return parse_design(_text(path))


def load_respondents(path: PathLike) -> RespondentsBound:
    """The bound on respondents in a file that `RespondentsBound.save` wrote. `verify` tells whether it holds [Scarf].

    Nothing in the file is run. `InvalidInput` names the part of the file that is missing, unknown or of the wrong kind.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from ldpopt.design import RespondentsBound
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "least.json"
    ...     halves, one = (np.array([0.5, 0.5]),), (np.array([[1.0, 0.0]]),)
    ...     RespondentsBound.of(1.0, halves, one, (np.array([1e-4]),), (np.ones(1),)).save(path)
    ...     load_respondents(path).least
    11707
    """
    with naming(path):
        return _respondents(_text(path))


def load_proof(path: PathLike, budget: float = 1.0) -> Design | RespondentsBound:
    """The design or the bound on respondents in a file, whichever it states.

    budget : a file that takes more than this many times 2 GB to read is not read; that raises `NotChecked`.
    """
    budget = number_of_times(budget)
    with naming(path):
        text = _text(path, budget)
        return _respondents(text) if f'"{RESPONDENTS}"' in text[:200] else parse_design(text)


def _respondents(text: str) -> RespondentsBound:
    from ldpopt.design.estimation.proof import RespondentsBound

    data = _object_of(text, RESPONDENTS)
    parts = {name: part for name, part in data.items() if name not in ("schema", "version")}
    bound: RespondentsBound = Reader().read(parts, RespondentsBound, "bound")
    return bound


def _text(path: PathLike, budget: float = math.inf) -> str:
    """The text of a file that is not too large."""
    try:
        size = Path(path).stat().st_size
    except (OSError, TypeError, ValueError):
        size = 0  # reading it says why
    refused = Work(0.0, TEXT * size).refused(budget)
    text = "" if refused else read_text(path)
    if refused := refused or parsing(text).refused(budget):
        raise NotChecked(refused)
    return text


def _object_of(text: str | bytes, schema: str) -> dict[str, Any]:
    """The object of a schema in the contents of a file, or in what ``ldpopt design --json`` printed."""
    data = strict.json_value(text, FILE)
    if isinstance(data, dict) and data.get("command") == "design":
        data = data.get("design")
    if not isinstance(data, dict) or data.get("schema") != schema:
        from ldpopt.values.schema import schema_of  # only a refusal needs it

        raise invalid(FILE, f'an object with "schema": "{schema}"', schema_of(data))
    if data.get("version") != VERSION or isinstance(data["version"], (bool, float)):
        raise invalid(FILE, f"version {VERSION}", data.get("version"))
    return data


def parse_design(text: str | bytes) -> Design:
    """Return the design that the contents of a file state, like `load_design`.

    Nothing in the text is run. `InvalidInput` names the part that is missing, unknown or of the wrong kind.

    >>> from ldpopt import Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> design = optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0))
    >>> parse_design(design.to_json()) == design
    True
    """
    data = _object_of(text, SCHEMA)
    expect_keys(data, KEYS, "the file")
    try:
        return _design(data)
    except RecursionError:
        raise invalid(FILE, "lists of moderate depth", Phrase("deeply nested ones")) from None


def _design(data: dict[str, Any]) -> Design:
    reader = Reader()
    problem = reader.problem({name: data[name] for name in ("utility", "constraints", "channel", "edges")}, "")
    utility, channel, edges = problem["utility"], problem["channel"], problem["edges"]
    rows = utility.size if not utility.continuous else channel.shape[0] if edges is None else len(edges) + 1
    if channel.shape[0] != rows:
        raise invalid(FILE, f"{rows} inputs", channel.shape[0], "channel")
    if edges is not None and not utility.continuous:
        raise invalid(FILE, "null, as the answers are not real numbers", "cut points", "edges")
    try:
        require_one_labelling(utility, problem["constraints"], channel)
    except InvalidInput as error:
        raise InvalidInput(f"{FILE}: {error}") from None
    certificate = reader.read(data["certificate"], Certificate | None, "certificate", problem)
    return Design(
        utility=utility,
        constraints=problem["constraints"],
        channel=channel,
        **{name: real(data[name], name) for name in ("value", "lower_bound", "upper_bound", "tolerance")},
        guarantees=_measured(
            reader.read(data["guarantees"], tuple[Guarantee, ...], "guarantees"), problem["constraints"], channel
        ),
        method=reader.read(data["method"], str, "method"),
        reference=reader.read(data["reference"], str, "reference"),
        note=reader.read(data["note"], str, "note"),
        certificate=certificate,
        certified=reader.read(data["certified"], bool, "certified"),
        edges=edges,
    )


def _measured(stated: tuple[Guarantee, ...], constraints: tuple[Any, ...], channel: Channel) -> tuple[Guarantee, ...]:
    """The guarantees with what a file leaves to be measured, where that is little work: all but their values."""
    if len(stated) != len(constraints):
        return stated
    guarantees = []
    for guarantee, constraint in zip(stated, constraints, strict=True):
        bare = Guarantee(guarantee.notion, guarantee.value, parameters=guarantee.parameters)
        if guarantee == bare and not constraint.work(channel).refused(1.0):
            with suppress(LdpoptError):
                measured = constraint.measure(channel)
                if (measured.notion, measured.parameters) == (guarantee.notion, guarantee.parameters):
                    guarantee = replace(measured, value=guarantee.value)
        guarantees.append(guarantee)
    return tuple(guarantees)


def verify_design(
    statement: Design | RespondentsBound, exact: bool = False, budget: float = 1.0
) -> tuple[Verification, bool]:
    """Verify a design in float64 and, where that does not confirm it, in 256-bit ball arithmetic.

    Another processor may sum in another order, and then recompute a bound that is one digit looser than the stated one.

    statement : a design, or a bound on respondents. exact : use ball arithmetic at once.
    budget : as for `Design.verify`, for each of the two.

    Returns the verification, and whether it was done in ball arithmetic.

    >>> from ldpopt import Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> verification, exact = verify_design(optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0)))
    >>> bool(verification), exact
    (True, False)
    """
    verified = statement.verify(exact, budget)
    if exact or verified.outcome != REFUTED:
        return verified, exact
    closer = statement.verify(True, budget)
    return (closer, True) if closer.proved else (verified, False)
