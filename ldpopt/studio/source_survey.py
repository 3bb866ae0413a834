"""Python code, a survey's description and commands that plan the survey of the page again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence

from ldpopt.design import AOptimal, Design, FisherInformation
from ldpopt.studio.source import constraint_source, head, here, imports, listed

Planned = tuple[str, Design, float]
"""A question's name, its design and its target half-width."""


def survey_code(title: str, questions: Sequence[Planned]) -> str:
    """A program that designs the channel of every question and makes the plan."""
    parts: list[str] = []
    named: set[str] = {"FisherInformation", "optimal_channel"}
    for name, design, width in questions:
        utility: FisherInformation = design.utility
        criterion = "" if isinstance(utility.criterion, AOptimal) else f", {utility.criterion!r}"
        if criterion:
            named.add(type(utility.criterion).__name__)
        named |= {type(one).__name__ for one in design.constraints}
        limits = ", ".join(map(constraint_source, design.constraints))
        caps = ", ".join(f"{name}={value!r}" for name, value in limits_of(design).items())
        parts += [
            "",
            listed("labels", list(design.channel.inputs)),
            listed("pilot", utility.prior.tolist()),
            f"question = FisherInformation(pilot{criterion}, inputs=labels)",
            f"designs[{name!r}] = optimal_channel(question, [{limits}])",
            f"questions.append(QuestionSpec({name!r}, labels, pilot=pilot, {caps}, half_width={width!r}))",
        ]
    return "\n".join(
        [
            *head("Asks", [name for name, _, _ in questions]),
            *imports(named),
            "from ldpopt.survey import QuestionSpec, SurveySpec, make_plan",
            "",
            "designs, questions = {}, []",
            *parts,
            "",
            f"spec = SurveySpec({title!r}, questions)",
            "plan = make_plan(spec, {name: design.channel for name, design in designs.items()})",
            "",
            "for name, design in designs.items():",
            '    print(name, design, "verified:", bool(design.verify()))',
            "",
        ]
    )


def survey_file(title: str, questions: Iterable[Planned]) -> str:
    """The survey's description in the form that ``ldpopt survey plan`` reads."""
    lines = ["[survey]", f"name = {_toml(title)}"]
    for name, design, width in questions:
        labels = ", ".join(_toml(str(label)) for label in design.channel.inputs)
        pilot = ", ".join(map(repr, design.utility.prior.tolist()))
        lines += ["", "[[questions]]", f"name = {_toml(name)}", f"categories = [{labels}]", f"pilot = [{pilot}]"]
        lines += [f"{name} = {value!r}" for name, value in limits_of(design).items()]
        lines += [f"half_width = {width!r}"]
    return "\n".join(lines) + "\n"


def survey_command(title: str, questions: Sequence[Planned], respondents: int) -> str:
    """The commands that plan the same survey, or a program if commands have no option for the page's aim."""
    if all(isinstance(design.utility.criterion, AOptimal) for _, design, _ in questions):
        made = here("survey.toml", survey_file(title, questions))
        return f"{made}ldpopt survey plan survey.toml --respondents {respondents} --out plan.json\n"
    return f"{here('survey.py', survey_code(title, questions))}{shlex.join(['python', 'survey.py'])}\n"


def limits_of(design: Design) -> dict[str, float]:
    """The epsilon and the eta of a question's design, under the names that plans use.

    >>> from ldpopt.design import LocalDP, optimal_channel
    >>> limits_of(optimal_channel(FisherInformation([0.5, 0.5]), LocalDP(1.0)))
    {'epsilon': 1.0}
    """
    words = {"LocalDP": "epsilon", "TotalVariation": "eta"}
    return {words[type(one).__name__]: one.bound for one in design.constraints}


def _toml(text: str) -> str:
    """A text in TOML. Its escapes are those of JSON, except for characters beyond 16 bits and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
