"""What a view shows to Python code, shell commands and survey.toml that give it again, to the last digit."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design import (
    AOptimal,
    Constraint,
    Design,
    Divergence,
    command_options,
    constraints,
    parameter_values,
)
from ldpopt.divergences import FDivergence, format_divergence
from ldpopt.version import __version__
from ldpopt_studio.tell import Posed
from ldpopt_survey import SurveySpec
from ldpopt_survey.reports.page import render

SHORT = {
    "ApproximateLDP", "Channel", "ConcentratedLDP", "Divergence", "FisherInformation", "LocalDP", "RenyiLDP",
    "TotalVariation", "audit", "compose", "optimal_channel",
}  # fmt: skip
"""Names that the package itself exports, among those that programs of the page import."""
INLINE = 30
"""Up to this many answers are on a command's line. More are in a file, which is written first."""


def _program(template: str, **values: Any) -> str:
    """A program from its template, in which every value is written by `repr` or by a function of this module."""
    return render(
        f"{template}.code",
        "ldpopt_studio",
        {"repr": repr, "source": constraint_source, "toml": _toml},
        head=head,
        imports=imports,
        kinds=lambda limits: [type(limit).__name__ for limit in limits],
        limits_of=limits_of,
        listed=listed,
        **values,
    )


def tell_code(posed: Posed, power: float | None = None, level: float = 0.05) -> str:
    """A program that designs and checks the channel, and counts respondents for a test with a given power."""
    utility = posed.utility
    divergence, imported = divergence_source(utility.f)
    labels = list(utility.inputs or range(utility.size))
    return _program(
        "tell", posed=posed, divergence=divergence, imported=imported, labels=labels, power=power, level=level
    )


def tell_command(posed: Posed) -> str:
    """The command for the same problem. It writes channel.json, its picture, and design.json with the proof."""
    utility, options = posed.utility, [f"--divergence={format_divergence(posed.utility.f)}"]
    for constraint in posed.constraints:
        options += _options(constraint)
    labels = [str(label) for label in utility.inputs or ()]
    inline = utility.size <= INLINE and all("," not in label and label.strip() == label and label for label in labels)
    before = ""
    if inline and all(label.isprintable() for label in labels):
        source = [f"--p0={_numbers(utility.p0)}", f"--p1={_numbers(utility.p1)}", f"--labels={','.join(labels)}"]
    else:
        source = ["populations.json"]
        before = here("populations.json", populations_file(posed))
    parts = ["ldpopt", "design", *source, *options, "--save-design=design.json"]
    return before + " ".join(shlex.quote(part) for part in parts) + "\n"


def inspect_code(channel: Channel, compared: tuple[Divergence, Sequence[Constraint]] | None) -> str:
    """A program that measures a channel, and finds the optimum within the channel's own limits for two populations."""
    utility, limits = compared or (None, [])
    divergence, imported = ("", "") if utility is None else divergence_source(utility.f)
    return _program(
        "inspect", channel=channel, utility=utility, limits=limits, divergence=divergence, imported=imported
    )


def populations_file(posed: Posed) -> str:
    """The two populations in the file that `ldpopt design` reads."""
    utility = posed.utility
    content = {"p0": utility.p0.tolist(), "p1": utility.p1.tolist(), "labels": list(utility.inputs or ())}
    return json.dumps(content) + "\n"


def here(name: str, content: str) -> str:
    """A command that writes a text file. The contents follow it, up to a marker line that does not occur in them."""
    end = "END"
    while end in content.splitlines():
        end += "_"
    return f"cat > {shlex.quote(name)} <<'{end}'\n{content}{end}\n"


def constraint_source(constraint: Constraint) -> str:
    """A constraint as Python code."""
    limit: Any = constraint
    given = [
        (part.name, getattr(limit, part.name))
        for part in fields(limit)
        if part.init and (part.default is MISSING or getattr(limit, part.name) != part.default)
    ]
    shown = [repr(given[0][1])] if len(given) == 1 else [f"{name}={value!r}" for name, value in given]
    return f"{type(constraint).__name__}({', '.join(shown)})"


def divergence_source(f: FDivergence) -> tuple[str, str]:
    """A named divergence as Python code, and the name that the code imports."""
    family, _, parameter = format_divergence(f).partition(":")
    name = family.replace("-", "_")
    return (f"{name}({parameter})", name) if parameter else (name.upper(), name.upper())


def listed(name: str, values: Sequence[Any]) -> str:
    """A list as Python code, in lines of at most 100 letters if its entries allow it."""
    line = f"{name} = [{', '.join(map(repr, values))}]"
    if len(line) <= 100:
        return line
    lines, current = [f"{name} = ["], "   "
    for value in values:
        part = f" {value!r},"
        if len(current) + len(part) > 100 and current.strip():
            lines, current = [*lines, current], "   "
        current += part
    return "\n".join([*lines, current, "]"])


def head(what: str, names: Iterable[str]) -> str:
    """The first line of a program: a comment that says what it does."""
    called = " and ".join(json.dumps(name) for name in names)
    return f"# {what}{': ' if called else ''}{called}. Taken from ldpopt studio, version {__version__}."


def imports(names: Iterable[str]) -> str:
    """Lines that import names from the modules where users find them."""
    wanted = sorted(set(names))
    short = [name for name in wanted if name in SHORT]
    homes = {"ldpopt": short, "ldpopt.design": [name for name in wanted if name not in short]}
    return "\n".join(f"from {home} import {', '.join(inside)}" for home, inside in homes.items() if inside)


def _numbers(values: Iterable[float]) -> str:
    return ",".join(repr(float(value)) for value in values)


def _options(constraint: Constraint) -> list[str]:
    """The options of the command line for a constraint."""
    values = parameter_values(constraint)
    wanted = {name: asked for name, asked in command_options(constraints).items() if asked[-1].name in values}
    return [f"--{name}={':'.join(repr(values[part.name]) for part in asked)}" for name, asked in wanted.items()]


Planned = tuple[str, Design, float]
"""A question's name, its design and its target half-width."""


def survey_code(question: Planned) -> str:
    """A program that designs the channel of a question and makes the plan."""
    name, design, width = question
    by_default = isinstance(design.utility.criterion, AOptimal)
    needed = ["FisherInformation", "optimal_channel", *(type(limit).__name__ for limit in design.constraints)]
    needed += [] if by_default else [type(design.utility.criterion).__name__]
    criterion = "" if by_default else f", {design.utility.criterion!r}"
    return _program("survey", name=name, design=design, width=width, criterion=criterion, needed=needed)


def survey_file(question: Planned) -> str:
    """The survey's description in the form that ``ldpopt survey plan`` reads."""
    name, design, width = question
    parts = [(name, design.channel.inputs, design.utility.prior, limits_of(design), width)]
    return _program("survey.toml", title="survey", questions=parts, budget={})


def survey_command(question: Planned, respondents: int) -> str:
    """The commands that plan the same survey, or a program if commands have no option for the page's aim."""
    utility = question[1].utility
    uneven = min(utility.prior) < max(utility.prior)
    if isinstance(utility.criterion, AOptimal) != uneven:  # a plan is for the widest interval, where they differ
        file_made = here("survey.toml", survey_file(question))
        return f"{file_made}ldpopt survey plan survey.toml --respondents {respondents} --out plan.json\n"
    return f"{here('survey.py', survey_code(question))}{shlex.join(['python', 'survey.py'])}\n"


def booklets_code(spec: SurveySpec) -> str:
    """A program that plans several questions which share a budget."""
    return _program("questionnaire", spec=spec)


def booklets_file(spec: SurveySpec) -> str:
    """The description of several questions which share a budget."""
    no_limits: dict[str, float] = {}
    parts = [(own.name, own.categories, own.shares, no_limits, own.half_width) for own in spec.questions]
    budget = {"epsilon": spec.epsilon, **({} if spec.eta is None else {"eta": spec.eta})}
    return _program("survey.toml", title=spec.name, questions=parts, budget=budget)


def booklets_command(spec: SurveySpec) -> str:
    """The commands that plan it, and write the proof of the people that any survey of independent answers needs."""
    file_made = here("survey.toml", booklets_file(spec))
    return f"{file_made}ldpopt survey plan survey.toml --out plan.json --proof bound.json\n"


def limits_of(design: Design) -> dict[str, Any]:
    """The epsilon and the eta of a question's design, under the names that plans use."""
    return {name: value for limit in design.constraints for name, value in parameter_values(limit).items()}


def _toml(text: str) -> str:
    """A text in TOML. Its escapes are those of JSON, except for characters beyond 16 bits and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def meaning_code(channel: Channel, answer: int, prior: float, rounds: int, delta: float) -> str:
    """A program that measures a channel, and what its reports tell about one answer in one and in many rounds."""
    return _program("meaning", channel=channel, answer=answer, prior=prior, rounds=rounds, delta=delta)
