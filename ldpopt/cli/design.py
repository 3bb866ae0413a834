"""Two populations and limits to the optimal channel (``ldpopt design``) or to a table over limits (``frontier``).

A channel to its guarantees (``ldpopt check``), and a design file to whether its proof holds (``verify``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ldpopt.cli.outputs import Command, claim, kind_of, progress, promise, say, write_all
from ldpopt.cli.parameters import PairFlags, declared, number, numbers, options, seconds
from ldpopt.errors import InvalidInput, NotChecked, Phrase, invalid
from ldpopt.files import strict

if TYPE_CHECKING:
    from ldpopt.bounds import Comparison
    from ldpopt.design import Constraint, Design, Verification
    from ldpopt.design.registry import Parameter
    from ldpopt.frontiers import Frontier


@options("""
    epsilon: --epsilon -e NATS | Limit of local differential privacy, in nats.
    eta: --eta -t ETA | Cap on the total variation, in [0, 1].
    out: --out -o | File for the channel. [default: channel.json, or none with --json]
    save_design: --save-design FILE | File for the whole design with its proof, for `ldpopt verify`.
    picture: --picture | File for the figure (png, svg, pdf, pgf). [default: next to the channel file]
    json: --json | Print all results as JSON on standard output, with the channel.
    """)
def design(
    context: typer.Context, pair: PairFlags, epsilon: str = "", eta: str = "", out: Path | None = None,
    save_design: Path | None = None, picture: Path | None = None, json: bool = False, time_limit: str = "",
    force: bool = False,
) -> None:  # fmt: skip
    """Design the channel that best distinguishes two populations within a privacy limit, and prove it optimal.

    Required: two populations, by FILE or by --p0 and --p1, and at least one of --epsilon, --eta, --rho and --renyi.

    FILE is CSV with a column of probabilities for each population (p0 and p1, or --columns), or JSON
    {"p0": [...], "p1": [...], "labels": [...]}. With --answer and --group it has one row per respondent (CSV with any
    delimiter, encoding and decimal mark, Excel, Parquet, SPSS, Stata or SAS).

    Further divergences: neyman-chi-squared, squared-hellinger, jensen-shannon, le-cam, alpha:ORDER and
    piecewise-linear:KNOTS/SLOPES.

    ldpopt design --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1 --eta 0.3
    """
    from ldpopt.design import optimal_channel
    from ldpopt.io import seen_once
    from ldpopt.plots.channel import design_picture

    constraints = _limits(epsilon=epsilon, eta=eta, **context.obj)
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
        optimal = optimal_channel(pair.utility(people), constraints, time_limit=limit, progress=step)
        files: dict[Path, bytes] = {}
        if out is not None:
            files[out] = optimal.channel.to_json(optimal.guarantees).encode()
        if save_design is not None:
            files[save_design] = optimal.to_json().encode()
        if picture is not None:
            files[picture] = design_picture(optimal, people.names, kind)
    write_all(files, force)
    if json:
        _as_json(optimal, paths)
    else:
        _as_text(optimal, people.names, paths, save_design)
        if unique_people := seen_once(people):
            labels = ", ".join(map(str, unique_people[:8])) + (", ..." if len(unique_people) > 8 else "")
            say(f"\nSeen once in the file: {labels}. Is it an error, or does it identify a person?")


class Limited(Command):
    """A command that takes, in addition to its options, every number that a constraint needs (`command_options`)."""

    def get_params(self, ctx: Any) -> list[Any]:
        """List the options; those of constraints load numpy, and so only when the command is used."""
        return super().get_params(ctx) + self._others

    def invoke(self, ctx: Any) -> Any:
        """Run the command, with the values of these options as the context's object."""
        ctx.obj = {option.name: ctx.params.pop(option.name) for option in self._others}
        return super().invoke(ctx)

    @cached_property
    def _others(self) -> list[Any]:
        from ldpopt.design import constraints
        from ldpopt.design.registry import command_options

        options = {
            name: entries
            for name, entries in command_options(constraints).items()
            if name not in {parameter.name for parameter in self.params}
        }
        lines = (f"{name}: --{name} {_units(entries)} | {entries[-1].help}" for name, entries in options.items())
        types: dict[str, Any] = {
            name: int | None if entries[-1].type is int else str for name, entries in options.items()
        }
        return declared("\n".join(["# Other limits", *lines]), types)


def _units(entries: tuple[Parameter, ...]) -> str:
    """The value of an option in the help: ``ORDER:NATS`` where it joins several numbers."""
    return ":".join(part.unit for part in entries)


def _limits(**texts: str | int | None) -> list[Constraint]:
    """The constraints that the options stand for; at least one of them must be a limit of privacy."""
    from ldpopt.design import constraints
    from ldpopt.design.registry import command_options, types_with_parameters

    values: dict[str, float] = {}
    for name, entries in command_options(constraints).items():
        if texts[name] in ("", None):
            continue
        parts = str(texts[name]).split(":")
        if len(parts) != len(entries):
            raise InvalidInput(f"--{name}: expected {_units(entries)}, got {texts[name]!r}")
        values |= {limit.name: limit.type(number(part, limit.name)) for limit, part in zip(entries, parts, strict=True)}
    kinds: Any = types_with_parameters(constraints, values)
    if not any(kind.private or kind is constraints.TotalVariation for kind in kinds):
        raise InvalidInput("limits: expected --eta, --epsilon, --rho or --renyi, got none of them")
    return [_build_constraint(kind, values) for kind in kinds]


def _build_constraint(kind: Any, values: Mapping[str, Any]) -> Constraint:
    """A constraint with the values of its options; an error names the option instead of the field."""
    try:
        constraint: Constraint = kind.from_values(values)
    except InvalidInput as error:
        field, colon, rest = str(error).partition(":")
        option = next((entry.name for entry in kind.asks if entry.field == field), None)
        raise InvalidInput(f"--{option}{colon}{rest}" if option else str(error)) from None
    return constraint


def _as_json(design: Design, paths: list[Path]) -> None:

    full_value = design.utility.value_without_privacy
    bounds = {type(constraint).__name__: constraint.bound for constraint in design.constraints}
    document = {
        "command": "design",
        "epsilon": bounds.get("LocalDP"),
        "eta": bounds.get("TotalVariation"),
        "limits": bounds,
        **design.to_dict(),
        "without_privacy": "inf" if math.isinf(full_value) else full_value,
        "verified": (verification := design.verify()).proved,
        "outcome": verification.outcome,
        "files": [str(path) for path in paths],
        "channel": strict.json_value(design.channel.to_json(design.guarantees)),
        "design": strict.json_value(design.to_json()),
    }
    print(strict.json_text(document), end="")


def _as_text(design: Design, names: tuple[str, str], paths: list[Path], proof: Path | None) -> None:
    from ldpopt.numbers.rounding import ceil_digits
    from ldpopt.plots.figure import utility_name
    from ldpopt.words import reports_in_words, verdict

    k, m = design.channel.shape
    say(f"{k} answers -> {m} reports, {design.method}")
    without_privacy = design.utility.value_without_privacy
    share = (
        f", {design.value / without_privacy:.2%} of {without_privacy:.6g} without privacy"
        if 0 < without_privacy < math.inf
        else ""
    )
    say(f"{utility_name(design.utility)} kept: {design.value:.6g}{share}")
    proof_text = "" if design.certificate is None else f"{verdict(design)} ({design.certificate.argument})"
    say(f"At most {ceil_digits(design.upper_bound)} is possible: {proof_text}" if proof_text else "")
    say(*([f"Note: {design.note}."] if design.note else []), "")
    say(*(f"{guarantee}{promise(guarantee)}" for guarantee in design.guarantees), "")
    for label, likely, evidence in reports_in_words(design.channel, design.utility.p0, design.utility.p1, names):
        answers = ", ".join(likely[:6]) + (f" and {len(likely) - 6} more" if len(likely) > 6 else "")
        say(f"report {label}: {evidence}" + (f"; likeliest after {answers}" if likely else ""))
    say("")
    for path in paths:
        say(f"wrote {path}" + (f"; ldpopt verify {path} checks the proof" if path == proof else ""))


@options("""
    epsilon: --epsilon -e NATS,... | Values of epsilon, in nats.
    eta: --eta -t ETA,... | Caps on the total variation, each in [0, 1]. [default: 0 to 1 in steps of 0.05]
    out: --out -o | File for the table (CSV).
    picture: --picture | File for the figure (png, svg, pdf, pgf). [default: next to the table]
    with_bounds: --bounds | Also tabulate published bounds and textbook mechanisms at each grid point (one process).
    jobs: --jobs -j N | Number of processes; -1 for one on each core.
    resume: --resume FOLDER | Store finished parts in FOLDER, and resume from them when the command is repeated.
    """)
def frontier(
    pair: PairFlags, epsilon: str = "0.5,1,2", eta: str = ",".join(f"{i / 20:g}" for i in range(21)),
    out: Path = Path("frontier.csv"), picture: Path | None = None, with_bounds: bool = False, jobs: int = 1,
    resume: Path | None = None, time_limit: str = "", force: bool = False,
) -> None:  # fmt: skip
    """Compute the utility of the optimal channel and of textbook mechanisms over epsilon and eta.

    ldpopt frontier --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1,2
    """
    from ldpopt import plots
    from ldpopt.bounds import compare
    from ldpopt.frontiers import frontier as tabulate
    from ldpopt.values.distribution import positive_epsilon, unit_interval

    if picture is None:
        picture = out.with_suffix(".png")
    kind = kind_of(picture)
    claim([out, picture], force)
    limit = seconds(time_limit)
    epsilons = [positive_epsilon(value) for value in numbers(epsilon, "epsilon")]
    etas = [unit_interval(value, "eta") for value in numbers(eta, "eta")]
    if with_bounds and (jobs != 1 or resume is not None):
        raise InvalidInput("--bounds cannot be combined with --jobs or --resume")
    utility = pair.utility(pair.read())
    with progress("designing", shares=True) as step:
        table: Comparison | Frontier
        if with_bounds:
            table = compare(utility, epsilons, etas, time_limit=limit, progress=step)
        else:
            table = tabulate(utility, epsilons, etas, jobs=jobs, resume=resume, time_limit=limit, progress=step)
        files = {out: table.to_csv().encode(), picture: plots.picture(table.plot(), kind)}
    write_all(files, force)
    say(repr(table), *(f"wrote {path}" for path in files))


@options("""
    channel: CHANNEL | Channel file, or any matrix whose rows sum to 1 (CSV or JSON).
    measure_all: --all | Measure every privacy definition (slow from about 100 inputs on).
    shuffled: --shuffled RESPONDENTS 1.. | Also state the central guarantee if a shuffler hides the senders of
      RESPONDENTS reports.
    delta: --delta DELTA | Delta of that guarantee, in [0, 1].
    """)
def check(
    channel: Path, measure_all: bool = False, shuffled: int | None = None, delta: str = "1e-6", json: bool = False
) -> None:
    """Measure the guarantees of a channel, independently of the claims in its file.

    For an exact channel the proof is computed again from its integers. If the integers do not prove the claims of the
    file, the exit code is 1.
    """
    from ldpopt.exact import ExactChannel
    from ldpopt.io import read_channel
    from ldpopt.privacy import audit, local_dp, proved, total_variation

    with progress("measuring"):
        loaded = read_channel(channel)
        if isinstance(loaded, ExactChannel):
            if measure_all:
                raise invalid("--all", "a channel of floats (an exact one proves epsilon and eta)", Phrase(loaded))
            guarantees, report = proved(loaded), None
        else:
            guarantees, report = (local_dp(loaded), total_variation(loaded)), audit(loaded) if measure_all else None
        central = []
        if shuffled is not None:  # this computation loads SciPy, which most checks do not need
            from ldpopt.composition import shuffled as after_shuffling

            central = [after_shuffling(loaded, shuffled).epsilon_at(number(delta, "--delta"))]
    if json:
        k, m = loaded.shape
        exact = {}
        if isinstance(loaded, ExactChannel):
            denominator = loaded.denominator
            exact = (
                {"proved_bits": loaded.bits}
                if denominator & (denominator - 1) == 0
                else {"proved_denominator": denominator}
            )
        result = {"inputs": k, "outputs": m, **exact, "guarantees": [guarantee.to_dict() for guarantee in guarantees]}
        result |= {} if report is None else report.to_dict()
        result |= {"shuffled": central[0].to_dict()} if central else {}
        print(strict.json_text(result), end="")
        return
    say(f"{channel}: {loaded!r}")
    if isinstance(loaded, ExactChannel):
        say("Proved in integer arithmetic from the weights in the file.")
    say(*(f"\n{guarantee} {guarantee.reference}{promise(guarantee)}" for guarantee in (*guarantees, *central)))
    if report is not None:
        say("", report)


@options("""
    file: FILE | Design file (--save-design), or proof of the respondents needed (`survey plan --proof`).
    exact: --exact | Use 256-bit ball arithmetic where outward-rounded float64 is not decisive.
    budget: --budget TIMES | Refuse checks estimated to need more than TIMES x (10 s, 2 GB).
    """)
def verify(file: Path, exact: bool = False, budget: float = 1.0, json: bool = False) -> None:
    """Check the proof in a design file: recompute every claim, without any solver.

    Exit code 0: proved, every claim holds. 1: refuted, a claim does not hold. 2: not a design file.
    3: not checked; the output states the reason (budget, arithmetic, or a file without a proof).
    """
    from ldpopt.design.design import Design
    from ldpopt.design.kernel.certificate import unchecked_verification
    from ldpopt.design.load import load_proof, verify_design
    from ldpopt.words import ARITHMETIC, proof_in_words, recomputed_in, unchecked_in_words

    with progress("verifying"):
        try:
            design = load_proof(file, budget)
            verification, exact = verify_design(design, exact, budget)
        except NotChecked as error:
            design, verification = None, unchecked_verification(str(error))
    claims = _outcome(verification, ARITHMETIC[exact])
    if design is None:
        print(strict.json_text(claims), end="") if json else say(*verification.unchecked)
    elif not isinstance(design, Design):
        if json:
            recomputed_values = {"bound": _json_number(verification.bound)}
            print(strict.json_text(claims | {"least": design.least, "recomputed": recomputed_values}), end="")
        else:
            say(design.sentence, *(f"- {line}" for line in verification.reasons), f"Computed in {ARITHMETIC[exact]}.")
    elif json:
        print(strict.json_text(_verification(design, verification, recomputed_in(design, exact))), end="")
    else:
        sentence = (
            "Every claim was recomputed in {}, and the proof holds." if verification.proved else "Computed in {}."
        )
        lines = [f"- {line}" if line in verification.reasons else line for line in proof_in_words(design, verification)]
        say(*lines, sentence.format(recomputed_in(design, exact)) + unchecked_in_words(design))
    if code := EXIT_CODES[verification.outcome]:
        raise typer.Exit(code)


EXIT_CODES = {"proved": 0, "refuted": 1, "not checked": 3}
"""The exit code of `verify` for each outcome."""


def _outcome(verification: Verification, arithmetic: str) -> dict[str, object]:
    return {
        "outcome": verification.outcome,
        "verified": verification.proved,
        "failures": list(verification.failures),
        "not_checked": list(verification.unchecked),
        "arithmetic": arithmetic,
    }


def _verification(design: Design, outcome: Verification, arithmetic: str) -> dict[str, object]:
    names = ("value", "lower_bound", "upper_bound", "relative_gap", "tolerance")
    return {
        **_outcome(outcome, arithmetic),
        "unchecked_parts": list(design.unchecked_parts),
        "utility": design.utility.name,
        **{name: _json_number(getattr(design, name)) for name in names},
        "certified": design.certified,
        "recomputed": {"value": _json_number(outcome.value), "bound": _json_number(outcome.bound)},
        "guarantees": [guarantee.to_dict() for guarantee in outcome.guarantees],
        "argument": None if design.certificate is None else design.certificate.argument,
    }


def _json_number(value: float) -> float | str | None:
    """A number for JSON; null if nothing was computed."""
    return None if math.isnan(value) else value if math.isfinite(value) else "inf" if value > 0 else "-inf"
