"""What is taken away from a view: code, a command, files, a report and a link, each of which gives the same again."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design.files import design_text
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.io.channels import to_csv
from ldpopt.labels import as_text
from ldpopt.studio import source
from ldpopt.studio.fields import FieldError, State, choice, mapping, take
from ldpopt.studio.tell import respondents, solved

TYPES = {".json": "application/json", ".csv": "text/csv", ".py": "text/x-python", ".toml": "text/plain"}


@dataclass(frozen=True)
class Taken:
    """Code and a command that make a state's result again, and its files by name. `code_name` : of the code's file."""

    code: str
    command: str
    files: Mapping[str, str]
    code_name: str = "studio.py"
    about: str = field(default="")


def view(state: State) -> dict[str, Any]:
    """What is taken away from a view in a state.

    view : its name. state : its state.

    >>> asked = {"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3}
    >>> made = view({"view": "tell", "state": asked})
    >>> made["command"].split()[:2], [file["name"] for file in made["files"]]
    (['ldpopt', 'design'], ['design.json', 'channel.json', 'channel.csv', 'populations.json', 'design.py'])
    """
    name, inner = _which(state)
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


def report(state: State, told: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """The HTML report of a view in a state: a page that stands alone, with its pictures inside."""
    from ldpopt.studio.report import REPORTS

    name, inner = _which(state)
    told(0.05)
    return {"name": f"{name}.html", "type": "text/html", "content": REPORTS[name](inner)}


def _which(state: State) -> tuple[str, State]:
    name = take(state, "view", choice(list(MAKERS)))
    return name, take(state, "state", mapping)


def fragment(name: str, state: State) -> str:
    """The part of the page's address that restores a state: nothing of it reaches a server.

    >>> fragment("tell", {"epsilon": 1})
    '#view=tell&state=eyJlcHNpbG9uIjoxfQ'
    """
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"#view={name}&state={base64.urlsafe_b64encode(text.encode('utf-8', 'replace')).decode().rstrip('=')}"


def restored(link: str) -> tuple[str, dict[str, Any]]:
    """The view and the state of a link, as the page reads it.

    >>> restored(fragment("tell", {"epsilon": 1}))
    ('tell', {'epsilon': 1})
    """
    parts = dict(part.partition("=")[::2] for part in link.partition("#")[2].split("&"))
    if not {"view", "state"} <= set(parts):
        raise invalid("link", "one of this page, with a view and a state", Phrase("another"))
    try:
        text = base64.b64decode(parts["state"] + "=" * (-len(parts["state"]) % 4), altchars=b"-_", validate=True)
        return parts["view"], mapping(json.loads(text), "link")
    except (ValueError, RecursionError):
        raise invalid("link", "a whole state", Phrase("a damaged one")) from None


def _tell(state: State) -> Taken:
    made = solved(state)
    people = respondents(state, made.design)
    power = people["power"] if people["private"] is not None else None
    files = {"design.json": design_text(made.design), **channel_files(made.design.channel, made.design.guarantees)}
    files["populations.json"] = source.populations_file(made.posed)
    code = source.tell_code(made.posed, power, people["level"])
    return Taken(code, source.tell_command(made.posed), files, "design.py")


def channel_files(channel: Channel, guarantees: Any = (), stem: str = "channel") -> dict[str, str]:
    """A channel as its two files, by name; the CSV file has labels as text.

    >>> sorted(channel_files(Channel([[0.75, 0.25], [0.25, 0.75]])))
    ['channel.csv', 'channel.json']
    """
    files = {f"{stem}.json": channel.to_json(guarantees)}
    try:
        files[f"{stem}.csv"] = to_csv(channel)
    except InvalidInput:
        labels = [[as_text(label) for label in side] for side in (channel.inputs, channel.outputs)]
        try:
            files[f"{stem}.csv"] = to_csv(Channel(channel.matrix, *labels))
        except InvalidInput:
            pass  # names that a table cannot hold, such as one of blanks, are in the other file
    return files


def _inspect(state: State) -> Taken:
    """The file that was looked at, mended if it was, and the commands that look at it."""
    from ldpopt.studio.inspect import view as inspected
    from ldpopt.studio.pasted import file_name

    shown = inspected({**state, "p0": None, "p1": None}, lambda share: None)
    raise FieldError("view", str(invalid("view", "tell or ask", Phrase(shown["kind"] + file_name("x", "name")))))


MAKERS: dict[str, Callable[[State], Taken]] = {"tell": _tell}
