"""From a view and its state to "take away": code, a command, files and a link that give the result again."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design import Design
from ldpopt.design.files import design_text
from ldpopt.errors import InvalidInput
from ldpopt.exact import ExactChannel
from ldpopt.io.channels import to_csv
from ldpopt.labels import as_text
from ldpopt.privacy import local_dp, total_variation
from ldpopt.studio import ask, source
from ldpopt.studio.fields import State, choice, mapping, take
from ldpopt.studio.inspect import hypotheses, looked, own_limits
from ldpopt.studio.pasted import contents
from ldpopt.studio.question import Asked, Together, designed, wishes
from ldpopt.studio.source import Planned, limits_of, survey_code, survey_command, survey_file
from ldpopt.studio.tell import posed, respondents, solved
from ldpopt.survey.plan.plan import make_plan
from ldpopt.survey.plan.precision import HalfWidth
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec
from ldpopt.tolerances import MINIMUM_EPSILON


@dataclass(frozen=True)
class Taken:
    """Code and a command that make a state's result again, and its files by name.

    `code_name` is the name for the code.
    """

    code: str
    command: str
    files: Mapping[str, str]
    code_name: str = "studio.py"
    about: str = ""


def channel_files(channel: Channel, guarantees: Any = (), stem: str = "channel") -> dict[str, str]:
    """The JSON and the CSV file of a channel, by name. The CSV file has labels as text.

    >>> sorted(channel_files(Channel([[0.75, 0.25], [0.25, 0.75]])))
    ['channel.csv', 'channel.json']
    """
    files = {f"{stem}.json": channel.to_json(guarantees)}
    try:
        files[f"{stem}.csv"] = to_csv(channel)
    except InvalidInput:
        labels = [[as_text(label) for label in side] for side in (channel.inputs, channel.outputs)]
        with suppress(InvalidInput):  # labels that CSV cannot hold, such as blanks, are in the JSON file only
            files[f"{stem}.csv"] = to_csv(Channel(channel.matrix, *labels))
    return files


SURVEY = "survey"
"""The name of a survey from the page."""


def _ask(state: State) -> Taken:
    """The plan of the survey, with the design of every question."""
    told, planned = asked_designs(state)
    files = {}
    for at, (_, design, _) in enumerate(planned):
        stem = "" if len(planned) == 1 else f"-{at + 1}"
        files[f"design{stem}.json"] = design_text(design)
        files |= channel_files(design.channel, design.guarantees, f"channel{stem}")
    questions = []
    for name, design, width in planned:
        caps, pilot = limits_of(design), design.utility.prior
        made = QuestionSpec(name, design.channel.inputs, pilot=pilot, half_width=width, epsilon=caps["epsilon"])
        questions.append(replace(made, eta=caps.get("eta")))
    plan = make_plan(SurveySpec(SURVEY, tuple(questions)), {name: design.channel for name, design, _ in planned})
    files = {"plan.json": plan.to_json(), "survey.toml": survey_file(SURVEY, planned), **files}
    return Taken(survey_code(SURVEY, planned), survey_command(SURVEY, planned, told["respondents"]), files, "survey.py")


def asked_designs(state: State) -> tuple[dict[str, Any], list[Planned]]:
    """The content of the survey's view, and the name, the design and the target half-width of each question.

    >>> told, planned = asked_designs({"questions": [{"pilot": [0.3, 0.7]}], "epsilon": 1.0})
    >>> planned[0][0], planned[0][1].certified
    ('question', True)
    """
    shown = ask.told(state)
    _, _, eta = wishes(state)
    planned: list[Planned] = []
    for one in shown["questions"]:
        target = (Together if shown["aim"] == "together" else HalfWidth)(one["wanted"], shown["level"])
        question = Asked(one["name"], tuple(one["labels"]), one["pilot"], target)
        name, used = one["name"], {name for name, _, _ in planned}
        name = next(n for n in (name, *(f"{name} {at}" for at in range(2, 99))) if n not in used)
        planned.append((name, designed(question, one["epsilon"], eta).design, one["wanted"]))
    return shown, planned


DOWNLOAD = "Download the files first; the commands read them."
TYPES = {".json": "application/json", ".csv": "text/csv", ".py": "text/x-python", ".toml": "text/plain"}


def view(state: State) -> dict[str, Any]:
    """The result of `taken`, or only ``{"slow": True}`` if it takes long; then a job computes it.

    >>> view({"view": "inspect", "state": {"text": " " * 5000 + "[[1.0]]"}})
    {'slow': True}
    """
    name, inner = which(state)
    return {"slow": True} if SLOW[name](inner) else taken(state)


def taken(state: State, report: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """Code, a command, files and a link for a view in a state.

    view : its name. state : its state.

    >>> asked = {"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3}
    >>> made = taken({"view": "tell", "state": asked})
    >>> made["command"].split()[:2], [file["name"] for file in made["files"]]
    (['ldpopt', 'design'], ['design.json', 'channel.json', 'channel.csv', 'populations.json', 'design.py'])
    """
    name, inner = which(state)
    report(0.0)
    made = MAKERS[name](inner)
    files = {**made.files, made.code_name: made.code}
    return {
        "code": made.code,
        "command": made.command,
        "about": made.about,
        "files": [
            {"name": one, "type": TYPES["." + one.rpartition(".")[2]], "content": content}
            for one, content in files.items()
        ],
        "link": fragment(name, inner),
    }


def which(state: State) -> tuple[str, State]:
    """The view that a state names, and the state of this view.

    >>> which({"view": "tell", "state": {}})
    ('tell', {})
    """
    name = take(state, "view", choice(list(MAKERS)))
    return name, take(state, "state", mapping)


def fragment(name: str, state: State) -> str:
    """The part of the page's address that restores a state. Browsers never send this part to a server.

    >>> fragment("tell", {"epsilon": 1})
    '#view=tell&state=eyJlcHNpbG9uIjoxfQ'
    """
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"#view={name}&state={base64.urlsafe_b64encode(text.encode('utf-8', 'replace')).decode().rstrip('=')}"


def _tell(state: State) -> Taken:
    made = solved(state)
    people = respondents(state, made.design)
    power = people["power"] if people["private"] is not None else None
    files = {"design.json": design_text(made.design), **channel_files(made.design.channel, made.design.guarantees)}
    files["populations.json"] = source.populations_file(made.posed)
    code = source.tell_code(made.posed, power, people["level"])
    return Taken(code, source.tell_command(made.posed), files, "design.py")


def _inspect(state: State) -> Taken:
    """The inspected file, mended if it was mended on the page, and code that inspects it again."""
    seen = looked(state)
    utility, _ = hypotheses(seen, state) if seen.channel.shape[0] > 1 else (None, "")
    epsilon, eta = (one.value for one in seen.measured)
    told = epsilon >= MINIMUM_EPSILON
    compared = (utility, own_limits(epsilon, min(eta, 1.0))) if utility is not None and told else None
    code = source.inspect_code(seen.channel, compared)
    if isinstance(seen.made, Design):
        command, files = "ldpopt verify design.json\nldpopt check channel.json --all\n", {"design.json": seen.text}
    elif isinstance(seen.made, ExactChannel):
        return Taken(code, "ldpopt check exact.json\n", {"exact.json": seen.text}, "check.py")
    else:
        command, files = "ldpopt check channel.json --all\n", {}
    return Taken(code, command, {**files, **channel_files(seen.channel, seen.measured)}, "check.py", DOWNLOAD)


def _meaning(state: State) -> Taken:
    """The channel, and code that computes again what it means."""
    from ldpopt.studio import meaning

    told = meaning.view(state)
    channel, _ = meaning.channel_of(state)
    code = source.meaning_code(channel, told["answer"], told["prior"]["chance"], told["now"]["rounds"], told["delta"])
    files = channel_files(channel, (local_dp(channel), total_variation(channel)))
    return Taken(code, "ldpopt check channel.json --all\n", files, "meaning.py", DOWNLOAD)


def _slow_survey(state: State) -> bool:
    return ask.view(state) == {"slow": True}


AT_ONCE = 4000
"""Up to this many letters, a file is inspected in a fraction of a second."""
SLOW: dict[str, Callable[[State], bool]] = {
    "tell": lambda state: not posed(state).quick,
    "ask": _slow_survey,
    "meaning": lambda state: False,
    "inspect": lambda state: len(take(state, "text", contents)) > AT_ONCE,
}
"""For each view, whether a state takes so long that the work should be a job, which can be cancelled."""
MAKERS: dict[str, Callable[[State], Taken]] = {"tell": _tell, "ask": _ask, "meaning": _meaning, "inspect": _inspect}
