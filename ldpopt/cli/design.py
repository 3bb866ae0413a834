"""``ldpopt design``: two populations and limits to the optimal channel; ``ldpopt frontier``: to a table over limits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ldpopt import strictjson
from ldpopt.cli.options import ForceOption, PairFlags, TimeLimitOption, number, numbers, option, seconds, with_flags
from ldpopt.cli.outputs import claim, kind_of, progress, promise, say, write_all
from ldpopt.errors import InvalidInput

if TYPE_CHECKING:
    from ldpopt.design import Constraint, Design

_LIMITS = "Other limits"


@with_flags
def design(
    pair: PairFlags,
    epsilon: Annotated[
        str, option("--epsilon", "-e", "Limit of local differential privacy, in nats.", metavar="NATS", default="none")
    ] = "",
    delta: Annotated[str, option("Delta of (epsilon, delta)-LDP, in (0, 1].", metavar="DELTA", panel=_LIMITS)] = "",
    rho: Annotated[str, option("Limit of zero-concentrated privacy (zCDP).", metavar="RHO", panel=_LIMITS)] = "",
    renyi: Annotated[
        str,
        option("Limit of the Rényi divergence of one order, such as 2:0.5.", metavar="ORDER:NATS", panel=_LIMITS),
    ] = "",
    outputs: Annotated[int | None, option("Largest number of different reports.", metavar="M", panel=_LIMITS)] = None,
    eta: Annotated[
        str, option("--eta", "-t", "Cap on the total variation, in [0, 1].", metavar="ETA", default="none")
    ] = "",
    out: Annotated[
        Path | None, option("--out", "-o", "File for the channel.", default="channel.json, or none with --json")
    ] = None,
    save_design: Annotated[
        Path | None,
        option("--save-design", "File for the whole design with its proof, for `ldpopt verify`.", metavar="FILE"),
    ] = None,
    picture: Annotated[
        Path | None, option("File for the picture (png, svg, pdf).", default="beside the channel file")
    ] = None,
    json: Annotated[bool, option("--json", "Everything, channel included, as JSON on standard output.")] = False,
    time_limit: TimeLimitOption = "",
    force: ForceOption = False,
) -> None:
    """Design the channel that best tells two populations apart within a privacy limit, and prove that it is optimal.

    ldpopt design --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1 --eta 0.3
    """
    from ldpopt.design import optimal_channel
    from ldpopt.design.files import design_text
    from ldpopt.io import seen_once
    from ldpopt.plots.channel import design_picture

    constraints = _limits(epsilon, eta, delta, rho, renyi, outputs)
    limit = seconds(time_limit)
    if out is None and not json:
        out = Path("channel.json")
    if picture is None and out is not None:
        picture = out.with_suffix(".png")
    paths = [path for path in (out, save_design, picture) if path is not None]
    kind = "png" if picture is None else kind_of(picture)
    claim(paths, force)
    people = pair.read()
    with progress("designing", shares=True) as step:
        made = optimal_channel(pair.utility(people), constraints, time_limit=limit, progress=step)
        files: dict[Path, bytes] = {}
        if out is not None:
            files[out] = made.channel.to_json(made.guarantees).encode()
        if save_design is not None:
            files[save_design] = design_text(made).encode()
        if picture is not None:
            files[picture] = design_picture(made, people.names, kind)
    write_all(files, force)
    if json:
        _as_json(made, paths)
    else:
        _as_text(made, people.names, paths, save_design)
        if once := seen_once(people):
            shown = ", ".join(map(str, once[:8])) + (", ..." if len(once) > 8 else "")
            say(f"\nSeen once in the file: {shown}. Is it a slip, or does it give somebody away?")


def _limits(epsilon: str, eta: str, delta: str, rho: str, renyi: str, outputs: int | None) -> list[Constraint]:
    """The constraints from the options; at least one of them must be a limit of privacy."""
    from ldpopt.design import ApproximateLDP, ConcentratedLDP, LocalDP, Outputs, RenyiLDP, TotalVariation

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
    say("")
    for guarantee in made.guarantees:
        say(f"{guarantee}{promise(guarantee)}")
    say("")
    for label, likely, evidence in reports_in_words(made.channel, made.utility.p0, made.utility.p1, names):
        shown = ", ".join(likely[:6]) + (f" and {len(likely) - 6} more" if len(likely) > 6 else "")
        say(f"report {label}: {evidence}" + (f"; likeliest after {shown}" if likely else ""))
    say("")
    for path in paths:
        say(f"wrote {path}" + (f"; ldpopt verify {path} checks the proof" if path == proof else ""))


@with_flags
def frontier(
    pair: PairFlags,
    epsilon: Annotated[str, option("--epsilon", "-e", "Values of epsilon, in nats.", metavar="NATS,...")] = "0.5,1,2",
    eta: Annotated[
        str,
        option(
            "--eta",
            "-t",
            "Caps on the total variation, each in [0, 1].",
            metavar="ETA,...",
            default="0 to 1 in steps of 0.05",
        ),
    ] = ",".join(f"{i / 20:g}" for i in range(21)),
    out: Annotated[Path, option("--out", "-o", "File for the table (CSV).")] = Path("frontier.csv"),
    picture: Annotated[Path | None, option("File for the picture (png, svg, pdf).", default="beside the table")] = None,
    jobs: Annotated[int, option("--jobs", "-j", "Number of processes; -1 for one on each core.", metavar="N")] = 1,
    resume: Annotated[
        Path | None,
        option(
            "Keep finished parts in FOLDER, and continue from them when the same command is run again.",
            metavar="FOLDER",
            default=False,
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
    posed = pair.utility(pair.read())
    with progress("designing", shares=True) as step:
        made = tabulate(posed, epsilons, etas, jobs=jobs, resume=resume, time_limit=limit, progress=step)
        files = {out: made.to_csv().encode(), picture: plots.picture(plots.frontier(made), kind)}
    write_all(files, force)
    say(repr(made), *(f"wrote {path}" for path in files))
