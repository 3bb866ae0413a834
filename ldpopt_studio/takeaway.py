"""The panel "Take away": code, a command, files and a link that reproduce a view, and its report.

The report is a self-contained page: for a file, a colleague, or an ethics committee.
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
from ldpopt_studio.ask import design_question, read_options
from ldpopt_studio.fields import State, choice, mapping, take
from ldpopt_studio.inspect import cap_constraints, hypotheses, read_inspection
from ldpopt_studio.inspect import view as inspected
from ldpopt_studio.pasted import DEFAULT_NAME, file_text
from ldpopt_studio.questionnaire import plan_questions, respondents_by_method
from ldpopt_studio.source import PlannedQuestion, plan_limits, survey_code, survey_command, survey_file
from ldpopt_studio.tell import read_problem, respondents_view, solve
from ldpopt_survey import QuestionSpec, SurveySpec, make_plan
from ldpopt_survey.reports.page import render, table
from ldpopt_survey.reports.promises import promises_in_words


@dataclass(frozen=True)
class Takeaway:
    """Code and a command that reproduce a state's result, and its files by name."""

    code: str
    command: str
    files: Mapping[str, str]
    code_name: str = "studio.py"
    note: str = ""


def channel_files(channel: Channel, guarantees: Any = (), stem: str = "channel") -> dict[str, str]:
    """Return the JSON and the CSV file of a channel, by name; the CSV file has labels as text."""
    files = {f"{stem}.json": channel.to_json(guarantees)}
    try:
        files[f"{stem}.csv"] = channel_to_csv(channel)
    except InvalidInput:
        labels = [[as_text(label) for label in side] for side in (channel.inputs, channel.outputs)]
        with suppress(InvalidInput):  # labels that CSV cannot hold, such as blanks, are only in the JSON file
            files[f"{stem}.csv"] = channel_to_csv(Channel(channel.matrix, *labels))
    return files


def _ask(state: State) -> Takeaway:
    """Return the plan of the survey, for several questions the one in the questionnaire card."""
    if len(ask.read_questions(state)) > 1:
        spec, survey = plan_questions(_with_solved_epsilon(state))
        files = {"plan.json": survey.plan.to_json(), "survey.toml": source.booklets_file(spec)}
        files |= {} if survey.proof is None else {"bound.json": survey.proof.to_json()}
        return Takeaway(source.booklets_code(spec), source.booklets_command(spec), files, "survey.py", PLAN_NOTE)
    content, planned_question = question_design(state)
    name, design, width = planned_question
    question = QuestionSpec(
        name, design.channel.inputs, pilot=design.utility.prior, half_width=width, **plan_limits(design)
    )
    plan = make_plan(SurveySpec("survey", (question,)), {name: design.channel})
    files = {"plan.json": plan.to_json(), "survey.toml": survey_file(planned_question), "design.json": design.to_json()}
    files |= channel_files(design.channel, design.guarantees)
    return Takeaway(
        survey_code(planned_question), survey_command(planned_question, content["respondents"]), files, "survey.py"
    )


def _with_solved_epsilon(state: State) -> State:
    """Return the state with the epsilon on the page, even if it follows from respondents and half-widths."""
    return {**state, "epsilon": ask.survey_view(state)["epsilon"]} if state.get("solve") == "epsilon" else state


def question_design(state: State) -> tuple[dict[str, Any], PlannedQuestion]:
    """Return the view of one question, and its name, design and target half-width."""
    content, (_, _, eta), (question,) = ask.survey_view(state), read_options(state), ask.read_questions(state)
    design = design_question(question, content["questions"][0]["epsilon"], eta).design
    return content, (question.name, design, question.target.width)


PLAN_NOTE = "This is the plan under “Who is asked what”. The split of ε does not affect it."
DOWNLOAD_NOTE = "Download the files first, because the command reads them."
MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "py": "text/x-python", "toml": "text/plain"}


def view(state: State) -> dict[str, Any]:
    """Return the result of `take_away`, or ``{"slow": True}`` if a job should compute it."""
    name, inner = view_and_state(state)
    return {"slow": True} if IS_SLOW[name](inner) else take_away(state)


def take_away(state: State, report: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """Collect code, a command, files and a link for a view in a state."""
    name, inner = view_and_state(state)
    report(0.0)
    takeaway = MAKERS[name](inner)
    files = {**takeaway.files, takeaway.code_name: takeaway.code}
    return {
        "code": takeaway.code,
        "command": takeaway.command,
        "about": takeaway.note,
        "files": [
            {"name": file, "type": MEDIA_TYPES[file.rpartition(".")[2]], "content": content}
            for file, content in files.items()
        ],
        "link": link_fragment(name, inner),
    }


def view_and_state(state: State) -> tuple[str, State]:
    """Read the name of a view, and the state of this view."""
    name = take(state, "view", choice(list(MAKERS)))
    return name, take(state, "state", mapping)


def link_fragment(name: str, state: State) -> str:
    """Encode a state as the fragment of an address, which browsers never send to a server."""
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"#view={name}&state={base64.urlsafe_b64encode(text.encode('utf-8', 'replace')).decode().rstrip('=')}"


def _tell(state: State) -> Takeaway:
    solution = solve(state)
    people = respondents_view(state, solution.design)
    power = people["power"] if people["private"] is not None else None
    files = {
        "design.json": solution.design.to_json(),
        **channel_files(solution.design.channel, solution.design.guarantees),
    }
    files["populations.json"] = source.populations_file(solution.problem)
    code = source.tell_code(solution.problem, power, people["level"])
    return Takeaway(code, source.tell_command(solution.problem), files, "design.py")


def _inspect(state: State) -> Takeaway:
    """Return the inspected file, repaired if the page repaired it, and code that inspects it again."""
    inspection = read_inspection(state)
    utility, _ = hypotheses(inspection, state) if inspection.channel.shape[0] > 1 else (None, "")
    epsilon, eta = (guarantee.value for guarantee in inspection.guarantees)
    is_informative = epsilon >= MINIMUM_EPSILON
    comparison = (utility, cap_constraints(epsilon, min(eta, 1.0))) if utility is not None and is_informative else None
    code = source.inspect_code(inspection.channel, comparison)
    if isinstance(inspection.content, ExactChannel):
        return Takeaway(code, "ldpopt check exact.json\n", {"exact.json": inspection.text}, "check.py")
    command, files = "ldpopt check channel.json --all\n", channel_files(inspection.channel, inspection.guarantees)
    if isinstance(inspection.content, Design):
        command, files = f"ldpopt verify design.json\n{command}", {"design.json": inspection.text, **files}
    return Takeaway(code, command, files, "check.py", DOWNLOAD_NOTE)


def _meaning(state: State) -> Takeaway:
    """Return the channel, and code that computes the page's bounds again."""
    content = meaning.view(state)
    channel, _ = meaning.read_channel(state)
    code = source.meaning_code(
        channel, content["answer"], content["prior"]["chance"], content["now"]["rounds"], content["delta"]
    )
    files = channel_files(channel, (local_dp(channel), total_variation(channel)))
    return Takeaway(code, "ldpopt check channel.json --all\n", files, "meaning.py", DOWNLOAD_NOTE)


MAX_LETTERS_AT_ONCE = 4000
"""Up to this many characters, a file is inspected in a fraction of a second."""
IS_SLOW: dict[str, Callable[[State], bool]] = {
    "tell": lambda state: not read_problem(state).is_quick,
    "ask": lambda state: len(ask.read_questions(state)) > 1 or ask.view(state) == {"slow": True},
    "meaning": lambda state: False,
    "inspect": lambda state: len(take(state, "text", file_text)) > MAX_LETTERS_AT_ONCE,
}
"""For each view, whether a state needs a job, which can be cancelled."""
MAKERS: dict[str, Callable[[State], Takeaway]] = {"tell": _tell, "ask": _ask, "meaning": _meaning, "inspect": _inspect}

MAX_DRAWN_ANSWERS = 60
"""Largest number of answers of a channel in a figure."""


def report_file(state: State, report: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """Write the report of a view in a state, a file with a self-contained page.

    `state` is as in `view`.
    """
    name, inner = view_and_state(state)
    report(0.1)
    values = TEMPLATE_VALUES[name](inner)
    filters: dict[str, Callable[..., Any]] = {
        "in_words": guarantee_in_words,
        "row": _guarantee_row,
        "number": _format_number,
    }
    filters["at_most"] = ceil_digits
    if values.get("channel", True) is not None:
        values["takeaway"] = take_away({"view": name, "state": dict(inner)})
    template = values.pop("template", name)
    content = render(
        f"{template}.html", "ldpopt_studio", filters, probabilities=_probability_table, version=__version__, **values
    )
    return {"name": f"{name}.html", "type": "text/html", "content": content}


def _tell_values(state: State) -> dict[str, Any]:
    """Return the values for a design for two populations: value, guarantees, proof, channel."""
    solution = solve(state)
    design, names, utility = solution.design, solution.problem.names, solution.design.utility
    populations = zip(design.channel.inputs, utility.p0, utility.p1, strict=True)
    reports = reports_in_words(design.channel, utility.p0, utility.p1, names)
    return {
        "title": f"{names[0]} against {names[1]}",
        "names": names,
        "design": design,
        "caps": zip(design.guarantees, design.constraints, strict=True),
        "value_without_privacy": utility.value_without_privacy
        if 0 < utility.value_without_privacy < math.inf
        else None,
        "verdict": verdict(design),
        "people": respondents_view(state, design),
        "picture": design_picture(design, names) if len(utility.p0) <= MAX_DRAWN_ANSWERS else b"",
        "proof": proof_in_words(design, design.verify()),
        "populations": [[as_text(label), f"{a:.6g}", f"{b:.6g}"] for label, a, b in populations],
        "reports": [
            [label, ", ".join(likely[:8]) + (", …" if len(likely) > 8 else ""), evidence]
            for label, likely, evidence in reports
        ],
        "papers": list(map(str, cite(design))),
    }


def _inspect_values(state: State) -> dict[str, Any]:
    """Return the values for any channel: its guarantees, its proof, and its distance from the optimum."""
    content = inspected(state)
    values = {"title": "A pasted channel" if content["name"] == DEFAULT_NAME else content["name"], "content": content}
    if "matrix" not in content:
        return values | {"channel": None}
    rows = [
        [row["title"], f"{row['sign']} {row['value']}", row["witness"], row["reference"]]
        for row in content["guarantees"]
    ]
    return values | {"channel": Channel(content["matrix"], content["inputs"], content["outputs"]), "guarantees": rows}


def _meaning_values(state: State) -> dict[str, Any]:
    """Return the values for one person: each guarantee in words, every report, many rounds."""
    content = meaning.view(state)
    channel, _ = meaning.read_channel(state)
    rounds = [  # guarantees are rounded up
        (row, [f"{ceil_digits(100 * row[name], 4)} %" for name in ("most", "guess")]) for row in content["rounds"]
    ]
    return {
        "title": f"What the reports reveal about a person who answers “{content['answers'][content['answer']]}”",
        "content": content,
        "reports": [[row["report"], f"{row['yours']:.4g}", row["words"]] for row in content["reports"]],
        "rounds": [[f"{row['rounds']:,}", *chances, ceil_digits(row["epsilon"])] for row, chances in rounds],
        "guarantees": [local_dp(channel), total_variation(channel)],
        "channel": channel,
    }


def _ask_values(state: State) -> dict[str, Any]:
    """Return the values for a survey of one question: the respondents, the guarantees and the channel."""
    if len(ask.read_questions(state)) > 1:
        return _questionnaire_values(_with_solved_epsilon(state))
    content, (name, design, _) = question_design(state)
    question = content["questions"][0]
    numbers = [ceil_digits(question["epsilon"]), ceil_digits(question["eta"]), f"{question['half_width']:.4g}"]
    return {
        "title": f"A survey of {content['respondents']:,} people",
        "content": content,
        "question": [name, str(len(question["labels"])), *numbers, f"{question['needed']:,}", f"{question['open']:,}"],
        "name": name,
        "design": design,
        "proof": proof_in_words(design, design.verify()),
        "papers": list(map(str, cite(design))),
    }


def _questionnaire_values(state: State) -> dict[str, Any]:
    """Return the values for several questions: the respondents by method, the booklets and their channels."""
    spec, survey = plan_questions(state)
    method_counts = sorted(respondents_by_method(survey).items(), key=lambda way: way[1])
    return {
        "template": "questionnaire",
        "title": f"A survey of {survey.respondents:,} people",
        "spec": spec,
        "survey": survey,
        "ways": [
            [name, f"{needed:,.0f}" if math.isfinite(needed) else "out of reach"] for name, needed in method_counts
        ],
        "widths": ", ".join(f"{question.name} ±{question.half_width:.4g}" for question in spec.questions),
        "booklets": [
            [
                ", ".join(question.name for question in booklet.answers),
                str(booklet.probability),
                *map(str, booklet.channel.shape),
                ceil_digits(booklet.epsilon),
                ceil_digits(booklet.eta),
            ]
            for booklet in survey.plan.questions
        ],
        "promises": promises_in_words(survey.plan),
        "proofs": {
            booklet.name: proof_in_words(design, design.verify())
            if (design := survey.designs.get(booklet.name))
            else []
            for booklet in survey.plan.questions
        },
        "papers": list(map(str, cite([*survey.designs.values(), survey.proof or "KW"]))),
    }


TEMPLATE_VALUES: dict[str, Callable[[State], dict[str, Any]]] = {
    "tell": _tell_values, "ask": _ask_values, "meaning": _meaning_values, "inspect": _inspect_values
}  # fmt: skip
"""The values that the template of each view shows."""


def _guarantee_row(guarantee: Guarantee) -> list[str]:
    """Return a guarantee as a row of a table, rounded up, with the answers that attain it."""
    return [guarantee.title, f"≤ {ceil_digits(guarantee.value)}", str(guarantee.witness or ""), guarantee.reference]


def _probability_table(channel: Channel, pilot: Iterable[float] | None) -> Markup:
    """Return the probabilities of a channel as a table, with the proportions of the answers if there is a pilot."""
    pilot_cells = [[]] * channel.shape[0] if pilot is None else [[pilot_cell] for pilot_cell in pilot]
    rows = [
        [label_in_words(label), *(f"{value:.6g}" for value in (*pilot_cell, *row))]
        for label, pilot_cell, row in zip(channel.inputs, pilot_cells, channel.matrix.tolist(), strict=True)
    ]
    head = [
        "answer",
        *([] if pilot is None else ["pilot"]),
        *(f"report {label_in_words(label)}" for label in channel.outputs),
    ]
    caption = "The probability of each report given each answer, to six digits."
    return table(head, rows, caption, range(1, len(head)))


def _format_number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
