"""A view and its state to a self-contained page: for a file, a colleague, or an ethics committee."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from markupsafe import Markup

from ldpopt.channel import Channel
from ldpopt.citation import cite
from ldpopt.design import Design
from ldpopt.labels import as_text
from ldpopt.plots.channel import design_picture
from ldpopt.privacy import Guarantee, local_dp, total_variation
from ldpopt.reports.page import render, table
from ldpopt.reports.words import guarantee_in_words, proof_in_words, reports_in_words, verdict
from ldpopt.rounding import ceil_digits
from ldpopt.studio import meaning
from ldpopt.studio.fields import State
from ldpopt.studio.inspect import view as inspected
from ldpopt.studio.pasted import NAMELESS
from ldpopt.studio.takeaway import asked_designs, taken, which
from ldpopt.studio.tell import respondents, solved
from ldpopt.version import __version__

MAX_DRAWN = 60
"""The most answers of a channel that is drawn."""


def view(state: State, report: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """The report of a view in a state, as a file with a self-contained page. `state` is as in `takeaway.view`.

    >>> asked = {"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0}
    >>> view({"view": "tell", "state": asked})["name"]
    'tell.html'
    """
    name, inner = which(state)
    report(0.1)
    values = VALUES[name](inner)
    filters = {"in_words": guarantee_in_words, "row": _row}
    if values.get("channel", True) is not None:
        values["made"] = taken({"view": name, "state": dict(inner)})
    content = render(
        f"{name}.html", "ldpopt.studio", filters, probabilities=_probabilities, version=__version__, **values
    )
    return {"name": f"{name}.html", "type": "text/html", "content": content}


def _tell(state: State) -> dict[str, Any]:
    """A design for two populations: value, guarantees, proof, channel."""
    made = solved(state)
    design, names = made.design, made.posed.names
    utility, channel = design.utility, design.channel
    caps = zip(design.guarantees, design.constraints, strict=True)
    whole = float(utility.unprivate)
    known = 0 < whole < math.inf
    return {
        "title": f"{names[0]} against {names[1]}",
        "names": names,
        "design": design,
        "utility": utility,
        "channel": channel,
        "caps": ", ".join(f"{one.title} at most {cap.bound:.6g}" for one, cap in caps),
        "share": f", {100 * design.value / whole:.4g} % of the {whole:.6g} without privacy" if known else "",
        "judged": verdict(design),
        "people": _people(respondents(state, design)),
        "drawn": design_picture(design, names) if len(utility.p0) <= MAX_DRAWN else b"",
        "proof": _proof(design),
        "populations": [
            [as_text(label), f"{a:.6g}", f"{b:.6g}"]
            for label, a, b in zip(channel.inputs, utility.p0, utility.p1, strict=True)
        ],
        "reports": [
            [label, ", ".join(likely[:8]) + (", …" if len(likely) > 8 else ""), evidence]
            for label, likely, evidence in reports_in_words(channel, utility.p0, utility.p1, names)
        ],
        "papers": list(map(str, cite(design))),
    }


def _inspect(state: State) -> dict[str, Any]:
    """Any channel: its guarantees, whether its proof holds, and its distance from the optimum."""
    shown = inspected(state)
    values = {"title": "A pasted channel" if shown["name"] == NAMELESS else shown["name"], "shown": shown}
    if "matrix" not in shown:
        return values | {"channel": None}
    compared = shown["comparison"]
    return values | {
        "channel": Channel(shown["matrix"], shown["inputs"], shown["outputs"]),
        "guarantees": [
            [row["title"], f"{row['sign']} {row['value']}", row["witness"], row["reference"]]
            for row in shown["guarantees"]
        ],
        "compared": None if compared is None else _compared(compared),
    }


def _compared(compared: dict[str, Any]) -> str:
    """How far the channel is from the best one, in a sentence."""
    share = "" if compared["share"] is None else f", {100 * compared['share']:.4g} % of the best"
    proved = "proof checked" if compared["verified"] else "the proof failed"
    return (
        f"For {compared['whose']} it keeps {_number(compared['value'])} ({compared['divergence']}){share}: the best "
        f"keeps {_number(compared['optimum'])}, none more than {_number(compared['bound'])} ({proved})."
    )


def _meaning(state: State) -> dict[str, Any]:
    """What a channel means for one person: each guarantee in words, every report, many rounds."""
    told = meaning.view(state)
    channel, _ = meaning.channel_of(state)
    return {
        "title": f"What it means for a person who answers “{told['answers'][told['answer']]}”",
        "told": told,
        "reports": [[one["report"], f"{one['yours']:.4g}", one["words"]] for one in told["reports"]],
        "rounds": [  # guarantees are rounded up
            [
                f"{one['rounds']:,}",
                *(f"{ceil_digits(100 * one[name], 4)} %" for name in ("most", "guess")),
                ceil_digits(one["epsilon"]),
            ]
            for one in told["rounds"]
        ],
        "guarantees": [local_dp(channel), total_variation(channel)],
        "channel": channel,
    }


def _ask(state: State) -> dict[str, Any]:
    """A survey: the questions and people, the guarantees, and each question's channel."""
    told, planned = asked_designs(state)
    return {
        "title": f"A survey of {told['respondents']:,} people",
        "told": told,
        "questions": [
            [
                name,
                str(len(one["labels"])),
                *(f"{one[key]:.6g}" for key in ("epsilon", "eta")),
                f"{one['half_width']:.4g}",
                *(f"{one[key]:,}" for key in ("needed", "open")),
            ]
            for (name, _, _), one in zip(planned, told["questions"], strict=True)
        ],
        "planned": [(name, design, _proof(design)) for name, design, _ in planned],
        "papers": list(map(str, cite([design for _, design, _ in planned]))),
    }


VALUES: dict[str, Callable[[State], dict[str, Any]]] = {
    "tell": _tell,
    "ask": _ask,
    "meaning": _meaning,
    "inspect": _inspect,
}
"""The values that the template of each view shows."""


def _row(one: Guarantee) -> list[str]:
    """A guarantee as a row of a table, rounded up, with the answers that attain it."""
    return [one.title, f"≤ {ceil_digits(one.value)}", str(one.witness or ""), one.reference]


def _proof(design: Design) -> list[str]:
    """Sentences about the proof after it was computed again, or the reason why it fails."""
    checked = design.verify()
    return proof_in_words(design, checked) if checked else list(checked.failures)


def _probabilities(channel: Channel, pilot: Iterable[float] | None) -> Markup:
    """The probabilities of a channel as a table, beside the shares of the answers if they are given."""
    shares = [[]] * channel.shape[0] if pilot is None else [[share] for share in pilot]
    rows = [
        [as_text(label), *(f"{value:.6g}" for value in (*share, *row))]
        for label, share, row in zip(channel.inputs, shares, channel.matrix.tolist(), strict=True)
    ]
    head = ["answer", *([] if pilot is None else ["pilot"]), *(f"report {as_text(label)}" for label in channel.outputs)]
    said = "The probability of each report after each answer, to six digits."
    return table(head, rows, said, range(1, len(head)))


def _people(people: dict[str, Any]) -> str:
    """How many respondents a test needs, in a sentence."""
    if people["private"] is None:
        return "The reports are the same from both populations, so no number of respondents tells them apart."
    without = "" if people["open"] is None else f"; without privacy it would be {people['open']:,}"
    return (
        f"A test of level {people['level']:g} tells the second population from the first with power "
        f"{people['power']:g} from {people['private']:,} respondents on{without}."
    )


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
