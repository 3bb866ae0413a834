"""``ldpopt design``: two populations and limits to the optimal channel; ``ldpopt frontier``: to a table over limits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldpopt.cli.options import (
    AnswerOption,
    BinsOption,
    ColumnsOption,
    CountsOption,
    DivergenceOption,
    FileArgument,
    ForceOption,
    GroupOption,
    LabelsOption,
    P0Option,
    P1Option,
    TimeLimitOption,
    divergence,
    number,
    numbers,
    populations,
    seconds,
    utility,
)
from ldpopt.cli.outputs import claim, kind_of, output, progress, promise, write_all

if TYPE_CHECKING:
    from ldpopt.design import Constraint, Design


_HERE = Path("channel.json")
_LIMITS = "Other limits"


def design(
    file: FileArgument = None,
    epsilon: Annotated[
        str,
        typer.Option(
            "--epsilon", "-e", metavar="NATS", help="Limit of local differential privacy, in nats.", show_default="none"
        ),
    ] = "",
    delta: Annotated[
        str,
        typer.Option(metavar="DELTA", help="Delta of (epsilon, delta)-LDP, in (0, 1].", rich_help_panel=_LIMITS),
    ] = "",
    rho: Annotated[
        str, typer.Option(metavar="RHO", help="Limit of zero-concentrated privacy (zCDP).", rich_help_panel=_LIMITS)
    ] = "",
    renyi: Annotated[
        str,
        typer.Option(
            metavar="ORDER:NATS",
            help="Limit of the Rényi divergence of one order, such as 2:0.5.",
            rich_help_panel=_LIMITS,
        ),
    ] = "",
    outputs: Annotated[
        int | None, typer.Option(metavar="M", help="Largest number of different reports.", rich_help_panel=_LIMITS)
    ] = None,
    eta: Annotated[
        str,
        typer.Option("--eta", "-t", metavar="ETA", help="Cap on the total variation, in [0, 1].", show_default="none"),
    ] = "",
    f: DivergenceOption = "kl",
    p0: P0Option = "",
    p1: P1Option = "",
    labels: LabelsOption = "",
    columns: ColumnsOption = "",
    counts: CountsOption = False,
    answer: AnswerOption = "",
    group: GroupOption = "",
    bins: BinsOption = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File for the channel.", show_default="channel.json, or none with --json"),
    ] = None,
    save_design: Annotated[
        Path | None,
        typer.Option(
            "--save-design", metavar="FILE", help="File for the whole design with its proof, for `ldpopt verify`."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="File for the picture (png, svg, pdf).", show_default="beside the channel file"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Everything, channel included, as JSON on standard output.")
    ] = False,
    time_limit: TimeLimitOption = "",
    force: ForceOption = False,
) -> None:
    """Design the channel that best tells two populations apart within a privacy limit, and prove that it is optimal.

    ldpopt design --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1 --eta 0.3
    """
    from ldpopt.design import optimal_channel
    from ldpopt.design.files import design_text
    from ldpopt.io import seen_once
    from ldpopt.plots.planning import design_picture

    constraints = _limits(epsilon, eta, delta, rho, renyi, outputs)
    limit = seconds(time_limit)
    if out is None and not json:
        out = _HERE
    if picture is None and out is not None:
        picture = out.with_suffix(".png")
    paths = [path for path in (out, save_design, picture) if path is not None]
    kind = "png" if picture is None else kind_of(picture)
    claim(paths, force)
    pair = populations(file, p0, p1, labels, columns, counts, answer, group, bins)
    posed = utility(divergence(f), pair)
    with progress("designing", shares=True) as step:
        made = optimal_channel(posed, constraints, time_limit=limit, progress=step)
        files: dict[Path, bytes] = {}
        if out is not None:
            files[out] = made.channel.to_json(made.guarantees).encode()
        if save_design is not None:
            files[save_design] = design_text(made).encode()
        if picture is not None:
            files[picture] = design_picture(made, pair.names, kind)
    write_all(files, force)
    if json:
        _as_json(made, paths)
    else:
        _as_text(made, pair.names, paths, save_design)
        if once := seen_once(pair):
            shown = ", ".join(map(str, once[:8])) + (", ..." if len(once) > 8 else "")
            said = f"Seen once in the file: {shown}. Is it a slip, or does it give somebody away?"
            output().print(f"\n{said}", markup=False)


def _limits(epsilon: str, eta: str, delta: str, rho: str, renyi: str, outputs: int | None) -> list[Constraint]:
    """The constraints from the options; at least one of them must be a limit of privacy."""
    from ldpopt.design import ApproximateLDP, ConcentratedLDP, LocalDP, Outputs, RenyiLDP, TotalVariation
    from ldpopt.errors import InvalidInput

    found: list[Constraint] = []
    if delta and not epsilon:
        raise InvalidInput("--delta: expected --epsilon beside it, got none")
    if epsilon:
        level = number(epsilon, "epsilon")
        found.append(ApproximateLDP(level, number(delta, "delta")) if delta else LocalDP(level))
    if rho:
        found.append(ConcentratedLDP(number(rho, "rho")))
    if renyi:
        order, _, limit = renyi.partition(":")
        found.append(RenyiLDP(number(order, "order"), number(limit, "Rényi limit")))
    if not found:
        raise InvalidInput("limits: expected --epsilon, --rho or --renyi, got none of them")
    if eta:
        found.append(TotalVariation(number(eta, "eta")))
    if outputs is not None:
        found.append(Outputs(outputs))
    return found


def _as_json(made: Design, paths: list[Path]) -> None:
    from ldpopt import strictjson

    unprivate = made.utility.unprivate
    bounds = {type(constraint).__name__: constraint.bound for constraint in made.constraints}
    found: dict[str, Any] = {
        "epsilon": bounds.get("LocalDP"),
        "eta": bounds.get("TotalVariation"),
        "limits": bounds,
        **made.to_dict(),
        "without_privacy": "inf" if math.isinf(unprivate) else unprivate,
        "verified": bool(made.verify()),
        "files": [str(path) for path in paths],
        "channel": strictjson.loads(made.channel.to_json(made.guarantees)),
    }
    print(strictjson.dumps(found), end="")


def _as_text(made: Design, names: tuple[str, str], paths: list[Path], proof: Path | None) -> None:
    from ldpopt.plots.figure import with_unit
    from ldpopt.reports.words import reports_in_words, verdict

    console = output()

    def say(text: str = "") -> None:
        console.print(text, markup=False)

    k, m = made.channel.shape
    say(f"{k} answers -> {m} reports, {made.method}")
    whole = made.utility.unprivate
    share = f", {made.value / whole:.2%} of {whole:.6g} without privacy" if 0 < whole < math.inf else ""
    say(f"{with_unit(made.utility.f)} kept: {made.value:.6g}{share}")
    say(
        f"At most {made.upper_bound:.6g} is possible: {verdict(made)} ({made.certificate.argument})"
        if made.certificate
        else ""
    )
    if made.note:
        say(f"Note: {made.note}.")
    say()
    for guarantee in made.guarantees:
        say(f"{guarantee}{promise(guarantee)}")
    say()
    for label, likely, evidence in reports_in_words(made.channel, made.utility.p0, made.utility.p1, names):
        shown = ", ".join(likely[:6]) + (f" and {len(likely) - 6} more" if len(likely) > 6 else "")
        say(f"report {label}: {evidence}" + (f"; likeliest after {shown}" if likely else ""))
    say()
    for path in paths:
        say(f"wrote {path}" + (f"; ldpopt verify {path} checks the proof" if path == proof else ""))


_ETAS = ",".join(f"{i / 20:g}" for i in range(21))


def frontier(
    file: FileArgument = None,
    epsilon: Annotated[
        str, typer.Option("--epsilon", "-e", metavar="NATS,...", help="Values of epsilon, in nats.")
    ] = "0.5,1,2",
    eta: Annotated[
        str,
        typer.Option(
            "--eta",
            "-t",
            metavar="ETA,...",
            help="Caps on the total variation, each in [0, 1].",
            show_default="0 to 1 in steps of 0.05",
        ),
    ] = _ETAS,
    f: DivergenceOption = "kl",
    p0: P0Option = "",
    p1: P1Option = "",
    labels: LabelsOption = "",
    columns: ColumnsOption = "",
    counts: CountsOption = False,
    answer: AnswerOption = "",
    group: GroupOption = "",
    bins: BinsOption = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the table (CSV).")] = Path("frontier.csv"),
    picture: Annotated[
        Path | None, typer.Option(help="File for the picture (png, svg, pdf).", show_default="beside the table")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", help="Number of processes; -1 for one on each core.")
    ] = 1,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FOLDER",
            help="Keep finished parts in FOLDER, and continue from them when the same command is run again.",
            show_default=False,
        ),
    ] = None,
    time_limit: TimeLimitOption = "",
    force: ForceOption = False,
) -> None:
    """Tabulate and draw the utility of the optimal channel and of textbook mechanisms, over epsilon and eta.

    ldpopt frontier --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1,2
    """
    from ldpopt import plots
    from ldpopt.distribution import positive_epsilon, unit_interval
    from ldpopt.frontiers import frontier as tabulate

    if picture is None:
        picture = out.with_suffix(".png")
    kind = kind_of(picture)
    claim([out, picture], force)
    limit = seconds(time_limit)
    epsilons = [positive_epsilon(value) for value in numbers(epsilon, "epsilon")]
    etas = [unit_interval(value, "eta") for value in numbers(eta, "eta")]
    pair = populations(file, p0, p1, labels, columns, counts, answer, group, bins)
    posed = utility(divergence(f), pair)
    with progress("designing", shares=True) as step:
        made = tabulate(posed, epsilons, etas, jobs=jobs, resume=resume, time_limit=limit, progress=step)
        files = {out: made.to_csv().encode(), picture: plots.picture(plots.frontier(made), kind)}
    write_all(files, force)
    console = output()
    console.print(repr(made), markup=False)
    for path in files:
        console.print(f"wrote {path}", markup=False)
