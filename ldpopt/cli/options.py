"""Options of commands, each declared once, and the two populations and the divergence that they describe.

A group of options is a frozen dataclass whose fields are options; `with_flags` gives a command those of its groups.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ldpopt.errors import InvalidInput, invalid

if TYPE_CHECKING:
    from ldpopt.design import Divergence
    from ldpopt.io import Populations


def option(
    *words: str, metavar: str | None = None, panel: str | None = None, default: str | bool = True, **limits: float
) -> Any:
    """An option: its flags (by default the parameter's name), then its help.

    panel : the heading in the help. default : shown instead of the default value. limits : ``min`` and ``max``.
    """
    *flags, said = words
    return typer.Option(
        *flags, help=said, metavar=metavar, rich_help_panel=panel, show_default=default, **limits  # type: ignore[arg-type]
    )  # fmt: skip


def argument(metavar: str, said: str | None = None, **limits: float) -> Any:
    """An argument: its name in the help, and its help."""
    return typer.Argument(metavar=metavar, help=said, show_default=False, **limits)  # type: ignore[arg-type]


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with the fields of its groups of options as its own parameters, for the program to call.

    Arguments of a group stand where the group stands, its options after the command's own.
    """
    groups: dict[str, tuple[type, list[str]]] = {}
    own: list[inspect.Parameter] = []
    late: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not (isinstance(group, type) and is_dataclass(group)):
            own.append(parameter)
            continue
        hints = get_type_hints(group, include_extras=True)
        flags = [one.replace(annotation=hints[one.name]) for one in inspect.signature(group).parameters.values()]
        groups[parameter.name] = group, [one.name for one in flags]
        for flag in flags:
            is_argument = any(isinstance(one, typer.models.ArgumentInfo) for one in flag.annotation.__metadata__)
            (own if is_argument else late).append(flag)

    @functools.wraps(command)
    def called(**given: Any) -> None:
        made = {name: group(**{one: given.pop(one) for one in names}) for name, (group, names) in groups.items()}
        command(**given, **made)

    shown = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *late)]
    vars(called)["__signature__"] = inspect.Signature(shown)
    called.__annotations__ = {one.name: one.annotation for one in shown}
    return called


ForceOption = Annotated[bool, option("--force", "Overwrite files that exist.")]
JsonOption = Annotated[bool, option("--json", "Machine-readable output on standard output.")]
ThreadsOption = Annotated[int, option("Number of threads.")]
TimeLimitOption = Annotated[
    str, option("Take what is known, with its proof, when they are over.", metavar="SECONDS", default="none")
]

_SOURCE = "The two populations"


@dataclass(frozen=True)
class FileFlags:
    """A file of two populations, and how it is read."""

    file: Annotated[
        Path | None,
        argument(
            "FILE",
            "CSV with a column of probabilities for each population (p0 and p1, or --columns), JSON "
            '{"p0": [...], "p1": [...], "labels": [...]}, or, with --answer and --group, a file with a line for each '
            "respondent (in any writing, or Excel, Parquet, SPSS, Stata, SAS). Without a file: --p0 and --p1.",
        ),
    ] = None
    columns: Annotated[str, option("The two columns of FILE, by name.", metavar="P0,P1", panel=_SOURCE)] = ""
    counts: Annotated[bool, option("--counts", "FILE has counts, which are divided by their sum.", panel=_SOURCE)] = (
        False
    )
    answer: Annotated[str, option("Column of FILE with the answers.", panel=_SOURCE)] = ""
    group: Annotated[
        str, option("Column of FILE with the two groups; the first in sorted order is P0.", panel=_SOURCE)
    ] = ""
    bins: Annotated[
        str,
        option("Bins of answers that are numbers: their number, or their edges.", metavar="6|1000,2000", panel=_SOURCE),
    ] = ""

    def read(self) -> Populations:
        """The populations: a table of probabilities or counts, or a line for each respondent."""
        assert self.file is not None
        if self.answer or self.group:
            if not (self.answer and self.group):
                raise InvalidInput("--answer and --group: expected both or neither, got one")
            if self.columns or self.counts:
                raise InvalidInput("--columns and --counts: expected a table without --answer and --group, got both")
            return _microdata(self.file, self.answer, self.group, self.bins)
        if self.bins:
            raise InvalidInput("--bins: expected --answer and --group beside it, got none")
        from ldpopt.io import read_pair

        pair = tuple(name.strip() for name in self.columns.split(",")) if self.columns else None
        if pair is not None and len(pair) != 2:
            raise InvalidInput(f"--columns: expected two names, NAME,NAME, got {self.columns!r}")
        try:
            return read_pair(self.file, pair, counts=self.counts)
        except InvalidInput as error:
            raise InvalidInput(_in_options(str(error), named=pair is not None)) from None


@dataclass(frozen=True)
class PairFlags(FileFlags):
    """Two populations from a file or from options, and the divergence by which they are told apart."""

    p0: Annotated[str, option("--p0", "Probabilities of P0, such as 0.5,0.3,0.2.", panel=_SOURCE)] = ""
    p1: Annotated[str, option("--p1", "Probabilities of P1, such as 0.2,0.3,0.5.", panel=_SOURCE)] = ""
    labels: Annotated[str, option("Names of the answers of --p0 and --p1, such as low,middle,high.", panel=_SOURCE)] = (
        ""
    )
    f: Annotated[
        str,
        option(
            "--divergence",
            "-f",
            "Divergence to maximise: kl, reverse-kl, jeffreys, total-variation, chi-squared, neyman-chi-squared, "
            "squared-hellinger, jensen-shannon, le-cam, hockey-stick:GAMMA or alpha:ORDER.",
        ),
    ] = "kl"

    def read(self) -> Populations:
        """The populations from exactly one source."""
        if self.file is not None:
            if self.p0 or self.p1 or self.labels:
                raise InvalidInput("populations: expected FILE, or --p0 and --p1 (with --labels), got both")
            return super().read()
        if not (self.p0 and self.p1):
            got = "one" if self.p0 or self.p1 else "none"
            raise InvalidInput(f"populations: expected FILE, or both --p0 and --p1, got {got}")
        if self.columns or self.counts or self.answer or self.group:
            raise InvalidInput("--columns, --counts, --answer, --group: expected a FILE they speak of, got none")
        return _inline(self.p0, self.p1, self.labels)

    def utility(self, pair: Populations) -> Divergence:
        """The utility of a channel: the divergence between the reports of the two populations."""
        from ldpopt.design import Divergence
        from ldpopt.divergences.base import spelled

        return Divergence(spelled(self.f), pair.p0, pair.p1, inputs=pair.labels)


def seconds(text: str) -> float | None:
    """The number of a --time-limit; None where it is not given."""
    from ldpopt.deadline import checked

    return checked(number(text, "--time-limit")) if text else None


def _microdata(file: Path, answer: str, group: str, bins: str) -> Populations:
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
    values = []
    for at, part in enumerate(text.split(",")):
        try:
            values.append(float(part))
        except ValueError:
            raise invalid(what, "numbers separated by commas", part.strip(), f"entry {at}") from None
    return values


def number(text: str, what: str) -> float:
    """One number."""
    try:
        return float(text)
    except ValueError:
        raise invalid(what, "a number", text) from None
