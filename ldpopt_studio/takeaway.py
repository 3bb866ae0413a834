"""From a view and its state to "take away": code, a command, files and a link that give the result again, and a page.

The page is self-contained: for a file, a colleague, or an ethics committee.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ldpopt.channel import Channel
from ldpopt.citation import cite
from ldpopt.design import Design
from ldpopt.errors import InvalidInput
from ldpopt.exact import ExactChannel
from ldpopt.io import channel_to_csv
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.numbers.tolerances import MINIMUM_EPSILON
from ldpopt.plots import design_picture
from ldpopt.privacy import Guarantee, local_dp, total_variation
from ldpopt.values.labels import as_text
from ldpopt.version import __version__
from ldpopt.words import guarantee_in_words, label_in_words, proof_in_words, reports_in_words, verdict
from ldpopt_studio import ask, meaning, source
from ldpopt_studio.ask import designed, wishes
from ldpopt_studio.fields import State, choice, mapping, take
from ldpopt_studio.inspect import hypotheses, looked, own_limits
from ldpopt_studio.inspect import view as inspected
from ldpopt_studio.pasted import NAMELESS, contents
from ldpopt_studio.questionnaire import planned_of, ways_of
from ldpopt_studio.source import Planned, limits_of, survey_code, survey_command, survey_file
from ldpopt_studio.tell import posed, respondents, solved
from ldpopt_survey import QuestionSpec, SurveySpec, make_plan
from ldpopt_survey.reports.page import render, table
from ldpopt_survey.reports.promises import promises_in_words


@dataclass(frozen=True)
class Taken:
    """Code and a command that make a state's result again, and its files by name."""

    code: str
    command: str
    files: Mapping[str, str]
    code_name: str = "studio.py"
    about: str = ""


def channel_files(channel: Channel, guarantees: Any = (), stem: str = "channel") -> dict[str, str]:
    """The JSON and the CSV file of a channel, by name. The CSV file has labels as text."""
    files = {f"{stem}.json": channel.to_json(guarantees)}
    try:
        files[f"{stem}.csv"] = channel_to_csv(channel)
    except InvalidInput:
        labels = [[as_text(label) for label in side] for side in (channel.inputs, channel.outputs)]
        with suppress(InvalidInput):  # labels that CSV cannot hold, such as blanks, are in the JSON file only
            files[f"{stem}.csv"] = channel_to_csv(Channel(channel.matrix, *labels))
    return files


def _ask(state: State) -> Taken:
    """The plan of the survey: of one question with its design, of several as "Who is asked what" shows it."""
    if len(ask.questions_of(state)) > 1:
        spec, survey = planned_of(_at_its_epsilon(state))
        files = {"plan.json": survey.plan.to_json(), "survey.toml": source.booklets_file(spec)}
        files |= {} if survey.proof is None else {"bound.json": survey.proof.to_json()}
        return Taken(source.booklets_code(spec), source.booklets_command(spec), files, "survey.py", SHOWN)
    told, planned = asked_design(state)
    name, design, width = planned
    question = QuestionSpec(
        name, design.channel.inputs, pilot=design.utility.prior, half_width=width, **limits_of(design)
    )
    plan = make_plan(SurveySpec("survey", (question,)), {name: design.channel})
    files = {"plan.json": plan.to_json(), "survey.toml": survey_file(planned), "design.json": design.to_json()}
    files |= channel_files(design.channel, design.guarantees)
    return Taken(survey_code(planned), survey_command(planned, told["respondents"]), files, "survey.py")


def _at_its_epsilon(state: State) -> State:
    """The state with the epsilon that the page shows, also where it is found from people and half-widths."""
    return {**state, "epsilon": ask.told(state)["epsilon"]} if state.get("solve") == "epsilon" else state


def asked_design(state: State) -> tuple[dict[str, Any], Planned]:
    """The content of the view of one question, and its name, design and target half-width."""
    shown, (_, _, eta), (question,) = ask.told(state), wishes(state), ask.questions_of(state)
    design = designed(question, shown["questions"][0]["epsilon"], eta).design
    return shown, (question.name, design, question.target.width)


SHOWN = "The plan is the one under “Who is asked what”, whatever the split of ε above it is."
DOWNLOAD = "Download the files first; the commands read them."
TYPES = {"json": "application/json", "csv": "text/csv", "py": "text/x-python", "toml": "text/plain"}


def view(state: State) -> dict[str, Any]:
    """The result of `taken`, or only ``{"slow": True}`` if it takes long; then a job computes it."""
    name, inner = which(state)
    return {"slow": True} if SLOW[name](inner) else taken(state)


def taken(state: State, report: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """Code, a command, files and a link for a view in a state."""
    name, inner = which(state)
    report(0.0)
    taken_away = MAKERS[name](inner)
    files = {**taken_away.files, taken_away.code_name: taken_away.code}
    return {
        "code": taken_away.code,
        "command": taken_away.command,
        "about": taken_away.about,
        "files": [
            {"name": file, "type": TYPES[file.rpartition(".")[2]], "content": content}
            for file, content in files.items()
        ],
        "link": fragment(name, inner),
    }


def which(state: State) -> tuple[str, State]:
    """The view that a state names, and the state of this view."""
    name = take(state, "view", choice(list(MAKERS)))
    return name, take(state, "state", mapping)


def fragment(name: str, state: State) -> str:
    """The part of the page's address that restores a state. Browsers never send this part to a server."""
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"#view={name}&state={base64.urlsafe_b64encode(text.encode('utf-8', 'replace')).decode().rstrip('=')}"


def _tell(state: State) -> Taken:
    told = solved(state)
    people = respondents(state, told.design)
    power = people["power"] if people["private"] is not None else None
    files = {"design.json": told.design.to_json(), **channel_files(told.design.channel, told.design.guarantees)}
    files["populations.json"] = source.populations_file(told.posed)
    code = source.tell_code(told.posed, power, people["level"])
    return Taken(code, source.tell_command(told.posed), files, "design.py")


def _inspect(state: State) -> Taken:
    """The inspected file, mended if it was mended on the page, and code that inspects it again."""
    seen = looked(state)
    utility, _ = hypotheses(seen, state) if seen.channel.shape[0] > 1 else (None, "")
    epsilon, eta = (guarantee.value for guarantee in seen.measured)
    told = epsilon >= MINIMUM_EPSILON
    compared = (utility, own_limits(epsilon, min(eta, 1.0))) if utility is not None and told else None
    code = source.inspect_code(seen.channel, compared)
    if isinstance(seen.content, ExactChannel):
        return Taken(code, "ldpopt check exact.json\n", {"exact.json": seen.text}, "check.py")
    command, files = "ldpopt check channel.json --all\n", channel_files(seen.channel, seen.measured)
    if isinstance(seen.content, Design):
        command, files = f"ldpopt verify design.json\n{command}", {"design.json": seen.text, **files}
    return Taken(code, command, files, "check.py", DOWNLOAD)


def _meaning(state: State) -> Taken:
    """The channel, and code that computes again what it means."""
    told = meaning.view(state)
    channel, _ = meaning.channel_of(state)
    code = source.meaning_code(channel, told["answer"], told["prior"]["chance"], told["now"]["rounds"], told["delta"])
    files = channel_files(channel, (local_dp(channel), total_variation(channel)))
    return Taken(code, "ldpopt check channel.json --all\n", files, "meaning.py", DOWNLOAD)


AT_ONCE = 4000
"""Up to this many letters, a file is inspected in a fraction of a second."""
SLOW: dict[str, Callable[[State], bool]] = {
    "tell": lambda state: not posed(state).quick,
    "ask": lambda state: len(ask.questions_of(state)) > 1 or ask.view(state) == {"slow": True},
    "meaning": lambda state: False,
    "inspect": lambda state: len(take(state, "text", contents)) > AT_ONCE,
}
"""For each view, whether a state takes so long that the work should be a job, which can be cancelled."""
MAKERS: dict[str, Callable[[State], Taken]] = {"tell": _tell, "ask": _ask, "meaning": _meaning, "inspect": _inspect}

MAX_DRAWN = 60
"""The most answers of a channel that is drawn."""


def page(state: State, report: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """The report of a view in a state, as a file with a self-contained page. `state` is as in `takeaway.view`."""
    name, inner = which(state)
    report(0.1)
    values = VALUES[name](inner)
    filters: dict[str, Callable[..., Any]] = {"in_words": guarantee_in_words, "row": _row, "number": _number}
    filters["at_most"] = ceil_digits
    if values.get("channel", True) is not None:
        values["made"] = taken({"view": name, "state": dict(inner)})
    template = values.pop("template", name)
    content = render(
        f"{template}.html", "ldpopt_studio", filters, probabilities=_probabilities, version=__version__, **values
    )
    return {"name": f"{name}.html", "type": "text/html", "content": content}


def _tell_values(state: State) -> dict[str, Any]:
    """A design for two populations: value, guarantees, proof, channel."""
    solution = solved(state)
    design, names, utility = solution.design, solution.posed.names, solution.design.utility
    populations = zip(design.channel.inputs, utility.p0, utility.p1, strict=True)
    reports = reports_in_words(design.channel, utility.p0, utility.p1, names)
    return {
        "title": f"{names[0]} against {names[1]}",
        "names": names,
        "design": design,
        "caps": zip(design.guarantees, design.constraints, strict=True),
        "whole": utility.value_without_privacy if 0 < utility.value_without_privacy < math.inf else None,
        "judged": verdict(design),
        "people": respondents(state, design),
        "drawn": design_picture(design, names) if len(utility.p0) <= MAX_DRAWN else b"",
        "proof": proof_in_words(design, design.verify()),
        "populations": [[as_text(label), f"{a:.6g}", f"{b:.6g}"] for label, a, b in populations],
        "reports": [
            [label, ", ".join(likely[:8]) + (", …" if len(likely) > 8 else ""), evidence]
            for label, likely, evidence in reports
        ],
        "papers": list(map(str, cite(design))),
    }


def _inspect_values(state: State) -> dict[str, Any]:
    """Any channel: its guarantees, whether its proof holds, and its distance from the optimum."""
    shown = inspected(state)
    values = {"title": "A pasted channel" if shown["name"] == NAMELESS else shown["name"], "shown": shown}
    if "matrix" not in shown:
        return values | {"channel": None}
    rows = [
        [row["title"], f"{row['sign']} {row['value']}", row["witness"], row["reference"]] for row in shown["guarantees"]
    ]
    return values | {"channel": Channel(shown["matrix"], shown["inputs"], shown["outputs"]), "guarantees": rows}


def _meaning_values(state: State) -> dict[str, Any]:
    """What a channel means for one person: each guarantee in words, every report, many rounds."""
    told = meaning.view(state)
    channel, _ = meaning.channel_of(state)
    rounds = [  # guarantees are rounded up
        (row, [f"{ceil_digits(100 * row[name], 4)} %" for name in ("most", "guess")]) for row in told["rounds"]
    ]
    return {
        "title": f"What it means for a person who answers “{told['answers'][told['answer']]}”",
        "told": told,
        "reports": [[row["report"], f"{row['yours']:.4g}", row["words"]] for row in told["reports"]],
        "rounds": [[f"{row['rounds']:,}", *chances, ceil_digits(row["epsilon"])] for row, chances in rounds],
        "guarantees": [local_dp(channel), total_variation(channel)],
        "channel": channel,
    }


def _ask_values(state: State) -> dict[str, Any]:
    """A survey of one question: the people, the guarantees, and the channel. Of several: who is asked what."""
    if len(ask.questions_of(state)) > 1:
        return _questionnaire_values(_at_its_epsilon(state))
    told, (name, design, _) = asked_design(state)
    only = told["questions"][0]
    numbers = [ceil_digits(only["epsilon"]), ceil_digits(only["eta"]), f"{only['half_width']:.4g}"]
    return {
        "title": f"A survey of {told['respondents']:,} people",
        "told": told,
        "question": [name, str(len(only["labels"])), *numbers, f"{only['needed']:,}", f"{only['open']:,}"],
        "name": name,
        "design": design,
        "proof": proof_in_words(design, design.verify()),
        "papers": list(map(str, cite(design))),
    }


def _questionnaire_values(state: State) -> dict[str, Any]:
    """A survey of several questions: the people that each way of asking needs, the booklets, and their channels."""
    spec, survey = planned_of(state)
    ways = sorted(ways_of(survey).items(), key=lambda way: way[1])
    return {
        "template": "questionnaire",
        "title": f"A survey of {survey.respondents:,} people",
        "spec": spec,
        "survey": survey,
        "ways": [[name, f"{needed:,.0f}" if math.isfinite(needed) else "out of reach"] for name, needed in ways],
        "widths": ", ".join(f"{question.name} ±{question.half_width:.4g}" for question in spec.questions),
        "booklets": [
            [
                ", ".join(question.name for question in asked.answers),
                str(asked.probability),
                *map(str, asked.channel.shape),
                ceil_digits(asked.epsilon),
                ceil_digits(asked.eta),
            ]
            for asked in survey.plan.questions
        ],
        "promises": promises_in_words(survey.plan),
        "proofs": {
            asked.name: proof_in_words(design, design.verify()) if (design := survey.designs.get(asked.name)) else []
            for asked in survey.plan.questions
        },
        "papers": list(map(str, cite([*survey.designs.values(), survey.proof or "KW"]))),
    }


VALUES: dict[str, Callable[[State], dict[str, Any]]] = {
    "tell": _tell_values, "ask": _ask_values, "meaning": _meaning_values, "inspect": _inspect_values
}  # fmt: skip
"""The values that the template of each view shows."""


def _row(guarantee: Guarantee) -> list[str]:
    """A guarantee as a row of a table, rounded up, with the answers that attain it."""
    return [guarantee.title, f"≤ {ceil_digits(guarantee.value)}", str(guarantee.witness or ""), guarantee.reference]


def _probabilities(channel: Channel, pilot: Iterable[float] | None) -> Markup:
    """The probabilities of a channel as a table, beside the shares of the answers if they are given."""
    shares = [[]] * channel.shape[0] if pilot is None else [[share] for share in pilot]
    rows = [
        [label_in_words(label), *(f"{value:.6g}" for value in (*share, *row))]
        for label, share, row in zip(channel.inputs, shares, channel.matrix.tolist(), strict=True)
    ]
    head = [
        "answer",
        *([] if pilot is None else ["pilot"]),
        *(f"report {label_in_words(label)}" for label in channel.outputs),
    ]
    said = "The probability of each report after each answer, to six digits."
    return table(head, rows, said, range(1, len(head)))


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
