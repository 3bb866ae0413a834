"""Write the Python code, shell commands and survey.toml that reproduce a view, to the last digit."""

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
from ldpopt_studio.tell import Problem
from ldpopt_survey import SurveySpec
from ldpopt_survey.reports.page import render

TOP_LEVEL_NAMES = {
    "ApproximateLDP", "Channel", "ConcentratedLDP", "Divergence", "FisherInformation", "LocalDP", "RenyiLDP",
    "TotalVariation", "audit", "compose", "optimal_channel",
}  # fmt: skip
"""Names that programs of the page import from the package itself."""
MAX_INLINE_ANSWERS = 30
"""Up to this many answers are on the command line. More are in a file, which a first command writes."""


def _program(template: str, **values: Any) -> str:
    """Render a program from its template; `repr` or a function of this module writes every value."""
    return render(
        f"{template}.code",
        "ldpopt_studio",
        {"repr": repr, "source": constraint_source, "toml": _toml},
        header_comment=header_comment,
        import_lines=import_lines,
        type_names=lambda limits: [type(limit).__name__ for limit in limits],
        plan_limits=plan_limits,
        list_source=list_source,
        **values,
    )


def tell_code(problem: Problem, power: float | None = None, level: float = 0.05) -> str:
    """Return a program that designs and verifies the channel.

    With a power it also counts the respondents that a test needs.
    """
    utility = problem.utility
    divergence, imported = divergence_source(utility.f)
    labels = list(utility.inputs or range(utility.size))
    return _program(
        "tell", problem=problem, divergence=divergence, imported=imported, labels=labels, power=power, level=level
    )


def tell_command(problem: Problem) -> str:
    """Return the command for the same problem.

    It writes channel.json, its figure, and design.json with the proof.
    """
    utility, options = problem.utility, [f"--divergence={format_divergence(problem.utility.f)}"]
    for constraint in problem.constraints:
        options += _constraint_options(constraint)
    labels = [str(label) for label in utility.inputs or ()]
    is_inline = utility.size <= MAX_INLINE_ANSWERS and all(
        "," not in label and label.strip() == label and label for label in labels
    )
    preparation = ""
    if is_inline and all(label.isprintable() for label in labels):
        source = [f"--p0={_numbers(utility.p0)}", f"--p1={_numbers(utility.p1)}", f"--labels={','.join(labels)}"]
    else:
        source = ["populations.json"]
        preparation = write_file_command("populations.json", populations_file(problem))
    parts = ["ldpopt", "design", *source, *options, "--save-design=design.json"]
    return preparation + " ".join(shlex.quote(part) for part in parts) + "\n"


def inspect_code(channel: Channel, compared: tuple[Divergence, Sequence[Constraint]] | None) -> str:
    """Return a program that measures a channel.

    With a comparison it also computes the optimum for two populations within the channel's own limits.
    """
    utility, limits = compared or (None, [])
    divergence, imported = ("", "") if utility is None else divergence_source(utility.f)
    return _program(
        "inspect", channel=channel, utility=utility, limits=limits, divergence=divergence, imported=imported
    )


def populations_file(problem: Problem) -> str:
    """Serialize the two populations for `ldpopt design`."""
    utility = problem.utility
    content = {"p0": utility.p0.tolist(), "p1": utility.p1.tolist(), "labels": list(utility.inputs or ())}
    return json.dumps(content) + "\n"


def write_file_command(name: str, content: str) -> str:
    """Return a shell command that writes a text file.

    The contents follow it, up to a line that does not occur in them.
    """
    end = "END"
    while end in content.splitlines():
        end += "_"
    return f"cat > {shlex.quote(name)} <<'{end}'\n{content}{end}\n"


def constraint_source(constraint: Constraint) -> str:
    """Return a constraint as Python code."""
    limit: Any = constraint
    arguments = [
        (parameter.name, getattr(limit, parameter.name))
        for parameter in fields(limit)
        if parameter.init and (parameter.default is MISSING or getattr(limit, parameter.name) != parameter.default)
    ]
    argument_sources = (
        [repr(arguments[0][1])] if len(arguments) == 1 else [f"{name}={value!r}" for name, value in arguments]
    )
    return f"{type(constraint).__name__}({', '.join(argument_sources)})"


def divergence_source(f: FDivergence) -> tuple[str, str]:
    """Return a named divergence as Python code, and the name that the code imports."""
    family, _, parameter = format_divergence(f).partition(":")
    name = family.replace("-", "_")
    return (f"{name}({parameter})", name) if parameter else (name.upper(), name.upper())


def list_source(name: str, values: Sequence[Any]) -> str:
    """Return a list as Python code, in lines of up to 100 characters if its entries allow."""
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


def header_comment(action: str, names: Iterable[str]) -> str:
    """Return the first line of a program, a comment that describes it."""
    quoted_names = " and ".join(json.dumps(name) for name in names)
    return f"# {action}{': ' if quoted_names else ''}{quoted_names}. Taken from ldpopt studio, version {__version__}."


def import_lines(names: Iterable[str]) -> str:
    """Return the import statements for names, from the modules where users find them."""
    distinct_names = sorted(set(names))
    top_level = [name for name in distinct_names if name in TOP_LEVEL_NAMES]
    names_by_module = {"ldpopt": top_level, "ldpopt.design": [name for name in distinct_names if name not in top_level]}
    return "\n".join(
        f"from {module} import {', '.join(module_names)}"
        for module, module_names in names_by_module.items()
        if module_names
    )


def _numbers(values: Iterable[float]) -> str:
    return ",".join(repr(float(value)) for value in values)


def _constraint_options(constraint: Constraint) -> list[str]:
    """Return the command-line options for a constraint."""
    values = parameter_values(constraint)
    parameters_by_option = {
        name: parameters for name, parameters in command_options(constraints).items() if parameters[-1].name in values
    }
    return [
        f"--{name}={':'.join(repr(values[parameter.name]) for parameter in parameters)}"
        for name, parameters in parameters_by_option.items()
    ]


PlannedQuestion = tuple[str, Design, float]
"""A question's name, its design and its target half-width."""


def survey_code(question: PlannedQuestion) -> str:
    """Return a program that designs the channel of a question and makes the plan."""
    name, design, width = question
    is_default_criterion = isinstance(design.utility.criterion, AOptimal)
    imported_names = ["FisherInformation", "optimal_channel", *(type(limit).__name__ for limit in design.constraints)]
    imported_names += [] if is_default_criterion else [type(design.utility.criterion).__name__]
    criterion = "" if is_default_criterion else f", {design.utility.criterion!r}"
    return _program("survey", name=name, design=design, width=width, criterion=criterion, needed=imported_names)


def survey_file(question: PlannedQuestion) -> str:
    """Return the survey.toml of one question, for ``ldpopt survey plan``."""
    name, design, width = question
    parts = [(name, design.channel.inputs, design.utility.prior, plan_limits(design), width)]
    return _program("survey.toml", title="survey", questions=parts, budget={})


def survey_command(question: PlannedQuestion, respondents: int) -> str:
    """Return the command that plans the same survey.

    It runs a program if ``ldpopt survey plan`` would use another criterion than the page.
    """
    utility = question[1].utility
    is_uneven = min(utility.prior) < max(utility.prior)
    if isinstance(utility.criterion, AOptimal) != is_uneven:  # a plan is for the widest interval, where they differ
        file_command = write_file_command("survey.toml", survey_file(question))
        return f"{file_command}ldpopt survey plan survey.toml --respondents {respondents} --out plan.json\n"
    return f"{write_file_command('survey.py', survey_code(question))}{shlex.join(['python', 'survey.py'])}\n"


def booklets_code(spec: SurveySpec) -> str:
    """Return a program that plans several questions which share a budget."""
    return _program("questionnaire", spec=spec)


def booklets_file(spec: SurveySpec) -> str:
    """Return the survey.toml of several questions which share a budget."""
    no_limits: dict[str, float] = {}
    parts = [
        (question.name, question.categories, question.shares, no_limits, question.half_width)
        for question in spec.questions
    ]
    budget = {"epsilon": spec.epsilon, **({} if spec.eta is None else {"eta": spec.eta})}
    return _program("survey.toml", title=spec.name, questions=parts, budget=budget)


def booklets_command(spec: SurveySpec) -> str:
    """Return the command that plans the questionnaire and writes the proof of its lower bound."""
    file_command = write_file_command("survey.toml", booklets_file(spec))
    return f"{file_command}ldpopt survey plan survey.toml --out plan.json --proof bound.json\n"


def plan_limits(design: Design) -> dict[str, Any]:
    """Return the epsilon and the eta of a question's design, under the names that plans use."""
    return {name: value for limit in design.constraints for name, value in parameter_values(limit).items()}


def _toml(text: str) -> str:
    """Write a text in TOML. Its escapes are those of JSON, except for characters beyond 16 bits and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def meaning_code(channel: Channel, answer: int, prior: float, rounds: int, delta: float) -> str:
    """Return a program that measures a channel and bounds the chance of one answer."""
    return _program("meaning", channel=channel, answer=answer, prior=prior, rounds=rounds, delta=delta)
