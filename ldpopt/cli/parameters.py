"""Options of commands, each declared once, and the two populations and the divergence that they describe.

Commands and groups of options, which are frozen dataclasses, declare them by `options`, a line each.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from ldpopt.cli.streams import OUTPUTS, standard_streams
from ldpopt.errors import InvalidInput, invalid

if TYPE_CHECKING:
    from ldpopt.design import Divergence
    from ldpopt.io import Populations


Declarable = TypeVar("Declarable")
_LINE = re.compile(r"(?P<name>\w+): (?P<head>.+?) \|(?: (?P<help>.*?))?(?: \[default: (?P<default>.*)\])?")
_FLAG, _RANGE = re.compile(r"(?<!\S)--?[a-z][\w-]*"), re.compile(r"(\d+)\.\.(\d*)$")


def _declared(text: str) -> dict[str, Any]:
    """Declarations by parameter. Each is a line ``parameter: --flag -f METAVAR 0..9 | Help. [default: shown]``.

    Without a flag it declares an argument. An indented line continues the one above; ``# Words`` heads a part of the
    help. The range of a number and the default that is shown instead of the parameter's own may be left out.
    """
    declarations, panel = {}, None
    for line in re.sub(r"\n +", " ", inspect.cleandoc(text)).splitlines():
        if line.startswith("# "):
            panel = line[2:]
            continue
        parts = _LINE.fullmatch(line)
        assert parts is not None, line
        flags, limits = _FLAG.findall(parts["head"]), _RANGE.search(parts["head"])
        low, high = (int(end) if end else None for end in (limits.groups() if limits else ("", "")))
        metavar = _RANGE.sub("", _FLAG.sub("", parts["head"])).strip() or None
        shared: Any = {"metavar": metavar, "help": parts["help"] or None, "min": low, "max": high}
        if flags:
            shared |= {"rich_help_panel": panel, "show_default": parts["default"] or True}
        info = typer.Option(*flags, **shared) if flags else typer.Argument(show_default=False, **shared)
        declarations[parts["name"]] = info
    return declarations


_SHARED = _declared("""
    force: --force | Overwrite existing files.
    json: --json | Print JSON on standard output.
    time_limit: --time-limit SECONDS | Stop after SECONDS; return the best result so far with its proved bound.
      [default: no limit]
    workers: --workers | Number of threads.
    plan: PLAN | Plan file (plan.json).
    data: REPORTS | Reports (CSV, Parquet, a folder or a collector's database), or counts (*.json).
    unlabelled: --unlabelled | Also accept reports without a manifest, which need not belong to this plan.
    db: --db DATABASE | Database: reports.db, sqlite:///path, or postgresql://user@host/name (password in PGPASSWORD).
    # Respondents, groups and confidence
    by: --by COLUMN | Estimate also within every group of a public column.
    """)
"""What several commands take."""


def options(text: str = "") -> Callable[[Declarable], Declarable]:
    """Declare the parameters of a command, or the fields of a group of options, by lines.

    The lines are those of `_declared`. A command whose parameter is a group takes the fields of the group: its
    arguments where the group stands, its options after the command's own.
    """
    declarations = _SHARED | _declared(text)

    def declare(target: Any) -> Any:
        if isinstance(target, type):
            hints = inspect.get_annotations(target, eval_str=True)
            target.__annotations__ = {name: Annotated[hint, declarations[name]] for name, hint in hints.items()}
            return target
        groups: dict[str, tuple[type, list[str]]] = {}
        own_parameters: list[inspect.Parameter] = []
        late: list[inspect.Parameter] = []
        for parameter in inspect.signature(target, eval_str=True).parameters.values():
            group = parameter.annotation
            if group is typer.Context:
                own_parameters.append(parameter)
                continue
            if not (isinstance(group, type) and is_dataclass(group)):
                own_parameters.append(parameter.replace(annotation=Annotated[group, declarations[parameter.name]]))
                continue
            hints = get_type_hints(group, include_extras=True)
            flags = [flag.replace(annotation=hints[flag.name]) for flag in inspect.signature(group).parameters.values()]
            groups[parameter.name] = group, [flag.name for flag in flags]
            for flag in flags:
                is_argument = isinstance(flag.annotation.__metadata__[0], typer.models.ArgumentInfo)
                (own_parameters if is_argument else late).append(flag)

        @functools.wraps(target)
        def command(**arguments: Any) -> None:
            for name, value in arguments.items():
                _refuse_nan(name, value)
                _refuse_nameless(name, value)
            with standard_streams(arguments, defaults) as values:
                option_groups = {
                    name: group(**{flag: values.pop(flag) for flag in flags}) for name, (group, flags) in groups.items()
                }
                target(**values, **option_groups)

        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own_parameters, *late)]
        defaults = {parameter.name: parameter.default for parameter in parameters}
        vars(command)["__signature__"] = inspect.Signature(parameters)
        command.__doc__ = re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.cleandoc(target.__doc__ or ""))
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return declare


def _refuse_nan(name: str, value: Any) -> None:
    """`InvalidInput` for NaN, which no range of an option keeps out."""
    for item in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(item, float) and math.isnan(item):
            raise invalid(f"--{name.replace('_', '-')}", "a number", item)


_FILES = (*OUTPUTS, "ledger", "key", "token")
"""Parameters that name files to be made or kept."""


def _refuse_nameless(name: str, value: Any) -> None:
    """`InvalidInput` for a path such as ``/`` or ``.``, which names no file that could be made."""
    if name in _FILES and isinstance(value, Path) and not value.name:
        raise invalid(f"--{name.replace('_', '-')}", "the path of a file, or of a new folder", str(value))


def declared(text: str, types: Mapping[str, Any]) -> list[Any]:
    """List options of a command in addition to its parameters, by lines, with their types."""

    def command(**values: Any) -> None:
        """Derive options from this signature; it is never run."""

    keyword = inspect.Parameter.KEYWORD_ONLY
    parts = [inspect.Parameter(name, keyword, default="" if value_type is str else None, annotation=value_type)
             for name, value_type in types.items()]  # fmt: skip
    vars(command)["__signature__"] = inspect.Signature(parts)
    application = typer.Typer(add_completion=False)
    application.command()(options(text)(command))
    return typer.main.get_command(application).params


@options("""
    file: FILE | Probabilities of the two populations (CSV or JSON), or respondents' rows with --answer and --group.
    # The two populations
    columns: --columns P0,P1 | The two columns of FILE, by name.
    counts: --counts | Divide the numbers in FILE by their sums, since they are counts.
    answer: --answer | Column of FILE with the answers.
    group: --group | Column of FILE with the two groups; P0 is the first in sorted order.
    bins: --bins 6|1000,2000 | Bins of numeric answers: their number, or their edges.
    """)
@dataclass(frozen=True)
class FileFlags:
    """A file of two populations, and how it is read."""

    file: Path | None = None
    columns: str = ""
    counts: bool = False
    answer: str = ""
    group: str = ""
    bins: str = ""

    def read(self) -> Populations:
        """Read the populations: a table of probabilities or counts, or one row per respondent."""
        from ldpopt.io import read_microdata, read_pair

        assert self.file is not None
        if self.answer or self.group:
            if not (self.answer and self.group):
                raise InvalidInput("--answer and --group must be given together")
            if self.columns or self.counts:
                raise InvalidInput("--columns and --counts cannot be combined with --answer and --group")
            try:
                return read_microdata(
                    self.file, self.answer, self.group, bins(self.bins, "--bins") if self.bins else None
                )
            except InvalidInput as error:
                argument, option = "bins=6, or bins=[1000, 2000] for edges", "--bins 6, or --bins 1000,2000 for edges"
                raise InvalidInput(str(error).replace(argument, option)) from None
        if self.bins:
            raise InvalidInput("--bins requires --answer and --group")
        pair = tuple(name.strip() for name in self.columns.split(",")) if self.columns else None
        if pair is not None and len(pair) != 2:
            raise InvalidInput(f"--columns: expected two names, NAME,NAME, got {self.columns!r}")
        try:
            return read_pair(self.file, pair, counts=self.counts)
        except InvalidInput as error:
            raise InvalidInput(_in_options(str(error), has_name=pair is not None)) from None


@options("""
    f: --divergence -f | Divergence: kl, reverse-kl, jeffreys, total-variation, chi-squared, hockey-stick:GAMMA, ...
    # The two populations
    p0: --p0 | Probabilities of P0, such as 0.5,0.3,0.2; required without FILE.
    p1: --p1 | Probabilities of P1, such as 0.2,0.3,0.5; required without FILE.
    labels: --labels | Names of the answers of --p0 and --p1, such as low,middle,high.
    """)
@dataclass(frozen=True)
class PairFlags(FileFlags):
    """Two populations from a file or from options, and the divergence that distinguishes them."""

    p0: str = ""
    p1: str = ""
    labels: str = ""
    f: str = "kl"

    def read(self) -> Populations:
        """Read the populations from exactly one source."""
        if self.file is not None:
            if self.p0 or self.p1 or self.labels:
                raise InvalidInput("populations: expected FILE, or --p0 and --p1 (with --labels), got both")
            return super().read()
        if not (self.p0 and self.p1):
            got = "one" if self.p0 or self.p1 else "none"
            raise InvalidInput(f"populations: expected FILE, or both --p0 and --p1, got {got}")
        if self.columns or self.counts or self.answer or self.group:
            raise InvalidInput("--columns, --counts, --answer and --group require a FILE")
        return _inline(self.p0, self.p1, self.labels)

    def utility(self, pair: Populations) -> Divergence:
        """Build the utility of a channel: the divergence between the reports of the populations."""
        from ldpopt.design import Divergence
        from ldpopt.divergences.base import parse_divergence

        return Divergence(parse_divergence(self.f.lower()), pair.p0, pair.p1, inputs=pair.labels)


def seconds(text: str) -> float | None:
    """Parse the number of a --time-limit; None if it is missing."""
    from ldpopt.values.deadline import checked

    return checked(number(text, "--time-limit")) if text else None


def _in_options(message: str, has_name: bool) -> str:
    """The error message of a table of two populations, with the option that may help."""
    if ": expected a number, got text" in message and not has_name:
        return f"{message} (for a line per respondent give --answer and --group)"
    if ": expected a column 'p0', got" in message and not has_name:
        return f"{message} (--columns NAME,NAME says which two)"
    return message.replace("(divide counts by their sum)", "(--counts divides counts by their sum)")


def _inline(p0: str, p1: str, labels: str) -> Populations:
    from ldpopt.io import Populations
    from ldpopt.values.distribution import distribution

    first = distribution(numbers(p0, "p0"), "p0")
    second = distribution(numbers(p1, "p1"), "p1")
    if len(second) != len(first):
        raise invalid("p1", f"{len(first)} entries, as many as p0", len(second))
    names: Any = tuple(name.strip() for name in labels.split(",")) if labels else tuple(range(len(first)))
    if len(names) != len(first) or len(set(names)) != len(names):
        raise invalid("labels", f"{len(first)} distinct labels, separated by commas", labels)
    return Populations(names, first, second)


def numbers(text: str, name: str) -> list[float]:
    """Parse numbers separated by commas."""
    parts = enumerate(text.split(","))
    return [number(part.strip(), name, "numbers separated by commas", f"entry {place}") for place, part in parts]


def number(text: str, name: str, expected: str = "a number", where: str = "") -> float:
    """Parse one number."""
    try:
        return float(text)
    except ValueError:
        raise invalid(name, expected, text, where) from None


def bins(text: str, name: str) -> int | list[float]:
    """Parse the number of bins, or their edges."""
    return int(text) if text.isdecimal() and len(text) < 4 else numbers(text, name)
