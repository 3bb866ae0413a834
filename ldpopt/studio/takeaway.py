""" "Take away": code, a command, files, a report and a link, each of which gives a view's result again."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from ldpopt.design import Design
from ldpopt.design.files import design_text
from ldpopt.errors import Phrase, invalid
from ldpopt.exact import ExactChannel
from ldpopt.privacy import local_dp, total_variation
from ldpopt.studio import source
from ldpopt.studio.fields import State, choice, mapping, take
from ldpopt.studio.files import Taken, channel_files
from ldpopt.studio.inspect import hypotheses, looked, own_limits
from ldpopt.studio.pasted import contents
from ldpopt.studio.tell import posed, respondents, solved
from ldpopt.tolerances import MINIMUM_EPSILON

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


def restored(link: str) -> tuple[str, dict[str, Any]]:
    """The view and the state in a link, read as the page reads it.

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
    from ldpopt.studio.source_meaning import meaning_code

    told = meaning.view(state)
    channel, _ = meaning.channel_of(state)
    code = meaning_code(channel, told["answer"], told["prior"]["chance"], told["now"]["rounds"], told["delta"])
    files = channel_files(channel, (local_dp(channel), total_variation(channel)))
    return Taken(code, "ldpopt check channel.json --all\n", files, "meaning.py", DOWNLOAD)


def _ask(state: State) -> Taken:
    from ldpopt.studio.takeaway_survey import taken

    return taken(state)


def _slow_survey(state: State) -> bool:
    from ldpopt.studio import ask

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
