"""What a view shows to Python code, shell commands and survey.toml that give it again, to the last digit."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design import AOptimal, Constraint, Design, Divergence, FisherInformation
from ldpopt.divergences import FDivergence
from ldpopt.divergences.base import spelling
from ldpopt.studio.tell import Posed
from ldpopt.version import __version__

SHORT = frozenset(
    {
        "ApproximateLDP", "Channel", "Divergence", "FisherInformation", "LocalDP", "RenyiLDP", "TotalVariation",
        "audit", "compose", "optimal_channel",
    }
)  # fmt: skip
"""Names that the package itself exports, among those that programs of the page import."""
INLINE = 30
"""Up to this many answers are on a command's line. More are in a file, which is written first."""


def tell_code(posed: Posed, power: float | None = None, level: float = 0.05) -> str:
    """A program that designs and checks the channel for two populations.

    power : if given, the program also counts the respondents for a test with this power at `level`. It is None if the
        reports have the same distribution for both populations.
    """
    utility, limits = posed.utility, posed.constraints
    divergence, imported = divergence_source(utility.f)
    names = [type(one).__name__ for one in limits]
    counted = [
        f"# for a test of level {level!r} with power {power!r}:",
        f"respondents = respondents_to_tell(design.channel, p0, p1, {power!r}, {level!r})",
        "print(respondents)",
    ]
    return "\n".join(
        [
            *head("Tells two populations apart", posed.names),
            *imports(["Divergence", "optimal_channel", *names]),
            f"from ldpopt.divergences import {imported}",
            *(["from ldpopt.survey import respondents_to_tell"] if power is not None else []),
            "",
            listed("p0", utility.p0.tolist()),
            listed("p1", utility.p1.tolist()),
            listed("labels", list(utility.inputs or range(utility.size))),
            "",
            f"question = Divergence({divergence}, p0, p1, inputs=labels)",
            f"design = optimal_channel(question, [{', '.join(map(constraint_source, limits))}])",
            "checked = design.verify()  # every claim recomputed, without a solver",
            "",
            "print(design)",
            'print("verified:", bool(checked))',
            *(counted if power is not None else []),
            '# design.save("design.json")  # with its proof, for `ldpopt verify design.json`',
            "",
        ]
    )


def tell_command(posed: Posed) -> str:
    """The command for the same problem. It writes channel.json, its picture, and design.json with the proof."""
    utility, options = posed.utility, [f"--divergence={spelling(posed.utility.f)}"]
    for one in posed.constraints:
        options += _options(one)
    labels = [str(label) for label in utility.inputs or ()]
    inline = utility.size <= INLINE and all("," not in one and one.strip() == one and one for one in labels)
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
    lines = [
        *head("Measures a channel", []),
        *imports(["Channel", "audit", *(_needed(compared))]),
        *([f"from ldpopt.divergences import {divergence_source(compared[0].f)[1]}"] if compared else []),
        "",
        *channel_source(channel),
        "",
        "print(audit(channel))",
    ]
    if compared:
        utility, limits = compared
        lines += [
            "",
            listed("p0", utility.p0.tolist()),
            listed("p1", utility.p1.tolist()),
            f"question = Divergence({divergence_source(utility.f)[0]}, p0, p1, inputs=inputs)",
            f"design = optimal_channel(question, [{', '.join(map(constraint_source, limits))}])",
            'print("kept:", question.value(channel), "of at most", design.upper_bound)',
        ]
    return "\n".join([*lines, ""])


def channel_source(channel: Channel) -> list[str]:
    """Lines that make a channel, entry by entry.

    >>> channel_source(Channel([[1.0]]))[-1]
    'channel = Channel(matrix, inputs, outputs)'
    """
    rows = "\n".join(f"    {row!r}," for row in channel.matrix.tolist())
    return [
        f"matrix = [\n{rows}\n]",
        listed("inputs", channel.inputs),
        listed("outputs", channel.outputs),
        "channel = Channel(matrix, inputs, outputs)",
    ]


def _needed(compared: tuple[Divergence, Sequence[Constraint]] | None) -> list[str]:
    return [] if compared is None else ["Divergence", "optimal_channel", *(type(one).__name__ for one in compared[1])]


def populations_file(posed: Posed) -> str:
    """The two populations in the file that `ldpopt design` reads."""
    utility = posed.utility
    made = {"p0": utility.p0.tolist(), "p1": utility.p1.tolist(), "labels": list(utility.inputs or ())}
    return json.dumps(made) + "\n"


def here(name: str, content: str) -> str:
    """A command that writes a text file. The contents follow it, up to a marker line that does not occur in them."""
    end = "END"
    while end in content.splitlines():
        end += "_"
    return f"cat > {shlex.quote(name)} <<'{end}'\n{content}{end}\n"


def constraint_source(one: Constraint) -> str:
    """A constraint as Python code.

    >>> from ldpopt.design import ApproximateLDP, LocalDP
    >>> constraint_source(LocalDP(1.0)), constraint_source(ApproximateLDP(1.0, 1e-6))
    ('LocalDP(1.0)', 'ApproximateLDP(epsilon=1.0, delta=1e-06)')
    """
    made: Any = one
    given = [
        (part.name, getattr(made, part.name))
        for part in fields(made)
        if part.init and (part.default is MISSING or getattr(made, part.name) != part.default)
    ]
    shown = [repr(given[0][1])] if len(given) == 1 else [f"{name}={value!r}" for name, value in given]
    return f"{type(one).__name__}({', '.join(shown)})"


def divergence_source(f: FDivergence) -> tuple[str, str]:
    """A named divergence as Python code, and the name that the code imports.

    >>> from ldpopt.divergences import KL, hockey_stick
    >>> divergence_source(KL), divergence_source(hockey_stick(1.5))
    (('KL', 'KL'), ('hockey_stick(1.5)', 'hockey_stick'))
    """
    family, _, parameter = spelling(f).partition(":")
    name = family.replace("-", "_")
    return (f"{name}({parameter})", name) if parameter else (name.upper(), name.upper())


def listed(name: str, values: Sequence[Any]) -> str:
    """A list as Python code, in lines of at most 100 letters if its entries allow it.

    >>> listed("p", [0.1, 0.9])
    'p = [0.1, 0.9]'
    """
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


def head(what: str, names: Iterable[str]) -> list[str]:
    """The first lines of a program: a comment that says what it does.

    >>> head("Asks", ["vote"])[0].startswith('# Asks: "vote".')
    True
    """
    called = " and ".join(json.dumps(name) for name in names)
    return [f"# {what}{': ' if called else ''}{called}. Taken from ldpopt studio, version {__version__}.", ""]


def imports(names: Iterable[str]) -> list[str]:
    """Lines that import names from the modules where users find them.

    >>> imports(["LocalDP", "Outputs"])
    ['from ldpopt import LocalDP', 'from ldpopt.design import Outputs']
    """
    own = sorted({name for name in names if name in SHORT})
    other = sorted({name for name in names if name not in SHORT})
    return [
        f"from ldpopt import {', '.join(own)}",
        *([f"from ldpopt.design import {', '.join(other)}"] if other else []),
    ]


def _numbers(values: Iterable[float]) -> str:
    return ",".join(repr(float(value)) for value in values)


def _options(one: Constraint) -> list[str]:
    """The options of the command line for a constraint."""
    part: Any = one
    options: Mapping[str, Any] = {
        "LocalDP": lambda: [f"--epsilon={part.epsilon!r}"],
        "ApproximateLDP": lambda: [f"--epsilon={part.epsilon!r}", f"--delta={part.delta!r}"],
        "TotalVariation": lambda: [f"--eta={part.eta!r}"],
        "RenyiLDP": lambda: [f"--renyi={part.order!r}:{part.epsilon!r}"],
        "Outputs": lambda: [f"--outputs={part.m}"],
    }
    made: list[str] = options[type(one).__name__]()
    return made


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


def meaning_code(channel: Channel, answer: int, prior: float, rounds: int, delta: float) -> str:
    """A program that measures a channel, and what its reports tell about one answer in one and in many rounds."""
    return "\n".join(
        [
            *head("What a channel means for a person", [str(channel.inputs[answer])]),
            *imports(["Channel", "audit", "compose"]),
            "",
            *channel_source(channel),
            "",
            f"answer, prior, rounds, delta = {answer!r}, {prior!r}, {rounds!r}, {delta!r}",
            "",
            "# Against the one other answer that is worst, how many times likelier some report is from this one:",
            "others = [row for at, row in enumerate(channel.matrix) if at != answer]",
            "pairs = [(own, min(row[y] for row in others)) for y, own in enumerate(channel.matrix[answer])]",
            'times = max(own / other if other > 0 else float("inf") for own, other in pairs if own > 0)',
            "against = (1 - prior) / prior / times**rounds",
            'print("the chance of this answer after the reports is at most", 1 / (1 + against))',
            "",
            "print(audit(channel))",
            "together = compose([channel], rounds)",
            'print(rounds, "rounds: epsilon", together.epsilon_at(delta), "at delta", delta)',
            "",
        ]
    )
