"""Options of several commands, and the two populations and the divergence that they describe."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ldpopt.design import Divergence
    from ldpopt.divergences import FDivergence
    from ldpopt.io import Populations


_SOURCE = "The two populations"

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="CSV with a column of probabilities for each population (p0 and p1, or --columns), JSON "
        '{"p0": [...], "p1": [...], "labels": [...]}, or, with --answer and --group, a file with a line for each '
        "respondent (in any writing, or Excel, Parquet, SPSS, Stata, SAS). Without a file: --p0 and --p1.",
        show_default=False,
    ),
]
P0Option = Annotated[
    str, typer.Option("--p0", help="Probabilities of P0, such as 0.5,0.3,0.2.", rich_help_panel=_SOURCE)
]
P1Option = Annotated[
    str, typer.Option("--p1", help="Probabilities of P1, such as 0.2,0.3,0.5.", rich_help_panel=_SOURCE)
]
LabelsOption = Annotated[
    str, typer.Option(help="Names of the answers of --p0 and --p1, such as low,middle,high.", rich_help_panel=_SOURCE)
]
ColumnsOption = Annotated[
    str, typer.Option(metavar="P0,P1", help="The two columns of FILE, by name.", rich_help_panel=_SOURCE)
]
CountsOption = Annotated[
    bool, typer.Option("--counts", help="FILE has counts, which are divided by their sum.", rich_help_panel=_SOURCE)
]
AnswerOption = Annotated[str, typer.Option(help="Column of FILE with the answers.", rich_help_panel=_SOURCE)]
GroupOption = Annotated[
    str,
    typer.Option(help="Column of FILE with the two groups; the first in sorted order is P0.", rich_help_panel=_SOURCE),
]
BinsOption = Annotated[
    str,
    typer.Option(metavar="6|1000,2000", help="Bins of answers that are numbers: their number, or their edges.",
                 rich_help_panel=_SOURCE),
]  # fmt: skip
DivergenceOption = Annotated[
    str,
    typer.Option(
        "--divergence", "-f",
        help="Divergence to maximise: kl, reverse-kl, jeffreys, total-variation, chi-squared, neyman-chi-squared, "
        "squared-hellinger, jensen-shannon, le-cam, hockey-stick:GAMMA or alpha:ORDER.",
    ),
]  # fmt: skip
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
TimeLimitOption = Annotated[
    str,
    typer.Option(
        metavar="SECONDS", help="Take what is known, with its proof, when they are over.", show_default="none"
    ),
]


def seconds(text: str) -> float | None:
    """The number of a --time-limit; None where it is not given."""
    from ldpopt.deadline import checked

    return checked(number(text, "--time-limit")) if text else None


def populations(
    file: Path | None,
    p0: str,
    p1: str,
    labels: str,
    columns: str,
    counts: bool,
    answer: str,
    group: str,
    bins: str = "",
) -> Populations:
    """The populations from exactly one source: the options --p0 and --p1, a table, or a line for each respondent."""
    from ldpopt.errors import InvalidInput
    from ldpopt.io import read_pair

    if file is None:
        if not (p0 and p1):
            raise InvalidInput(
                "populations: expected FILE, or both --p0 and --p1, got " + ("one" if p0 or p1 else "none")
            )
        if columns or counts or answer or group:
            raise InvalidInput("--columns, --counts, --answer, --group: expected a FILE they speak of, got none")
        return _inline(p0, p1, labels)
    if p0 or p1 or labels:
        raise InvalidInput("populations: expected FILE, or --p0 and --p1 (with --labels), got both")
    if answer or group:
        if not (answer and group):
            raise InvalidInput("--answer and --group: expected both or neither, got one")
        if columns or counts:
            raise InvalidInput("--columns and --counts: expected a table without --answer and --group, got both")
        return _microdata(file, answer, group, bins)
    if bins:
        raise InvalidInput("--bins: expected --answer and --group beside it, got none")
    pair = columns.split(",") if columns else None
    if pair is not None and len(pair) != 2:
        raise InvalidInput(f"--columns: expected two names, NAME,NAME, got {columns!r}")
    try:
        return read_pair(file, None if pair is None else (pair[0].strip(), pair[1].strip()), counts=counts)
    except InvalidInput as error:
        raise InvalidInput(_in_options(str(error), named=pair is not None)) from None


def _microdata(file: Path, answer: str, group: str, bins: str) -> Populations:
    from ldpopt.errors import InvalidInput
    from ldpopt.io import read_microdata

    cut = None if not bins else int(bins) if bins.isdecimal() and len(bins) < 4 else numbers(bins, "--bins")
    try:
        return read_microdata(file, answer, group, cut)
    except InvalidInput as error:
        said = str(error).replace("bins=6, or bins=[1000, 2000] for edges", "--bins 6, or --bins 1000,2000 for edges")
        raise InvalidInput(said) from None


def _in_options(message: str, named: bool) -> str:
    """The error message of a table of two populations, with the option that may help."""
    word = re.search(r": expected a number, got '(?!nan|inf)[^\W\d]", message, re.IGNORECASE)
    if word and not named:
        return f"{message} (for a line per respondent give --answer and --group)"
    if message.endswith(", got 'p0'") and not named:
        return f"{message} (--columns NAME,NAME says which two)"
    return message.replace("(divide counts by their sum)", "(--counts divides counts by their sum)")


def _inline(p0: str, p1: str, labels: str) -> Populations:
    from ldpopt.distribution import distribution
    from ldpopt.errors import invalid
    from ldpopt.io import Populations

    first = distribution(numbers(p0, "p0"), "p0")
    second = distribution(numbers(p1, "p1"), "p1")
    if len(second) != len(first):
        raise invalid("p1", f"{len(first)} entries, as many as p0", len(second))
    names: Any = tuple(name.strip() for name in labels.split(",")) if labels else tuple(range(len(first)))
    if len(names) != len(first) or len(set(names)) != len(names):
        raise invalid("labels", f"{len(first)} distinct labels, separated by commas", labels)
    return Populations(names, first, second)


def numbers(text: str, what: str) -> list[float]:
    """Numbers separated by commas.

    >>> numbers("0.5, 1e-3", "p0")
    [0.5, 0.001]
    """
    from ldpopt.errors import invalid

    values = []
    for at, part in enumerate(text.split(",")):
        try:
            values.append(float(part))
        except ValueError:
            raise invalid(what, "numbers separated by commas", part.strip(), f"entry {at}") from None
    return values


def number(text: str, what: str) -> float:
    """One number."""
    from ldpopt.errors import invalid

    try:
        return float(text)
    except ValueError:
        raise invalid(what, "a number", text) from None


def divergence(name: str) -> FDivergence:
    """The divergence with this name; its parameter, if any, is after a colon.

    >>> divergence("hockey-stick:1.5")
    <hockey-stick divergence of 1.5>
    """
    from ldpopt.divergences.base import spelled

    return spelled(name)


def utility(f: FDivergence, pair: Populations) -> Divergence:
    """The utility of the channel: the divergence between the reports of the two populations."""
    from ldpopt.design import Divergence

    return Divergence(f, pair.p0, pair.p1, inputs=pair.labels)
