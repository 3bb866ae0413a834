"""A view and its state to a self-contained page: for a file, a colleague, or an ethics committee."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from ldpopt.channel import Channel
from ldpopt.citation import cite
from ldpopt.design import Design
from ldpopt.labels import as_text
from ldpopt.plots.planning import design_picture
from ldpopt.privacy import Guarantee, local_dp, total_variation
from ldpopt.reports.page import embed, page, table
from ldpopt.reports.words import guarantee_in_words, proof_in_words, reports_in_words, verdict
from ldpopt.rounding import ceil_digits
from ldpopt.studio.fields import State
from ldpopt.studio.inspect import view as inspected
from ldpopt.studio.pasted import NAMELESS
from ldpopt.studio.takeaway import asked_designs, taken, which
from ldpopt.studio.tell import respondents, solved
from ldpopt.version import __version__

DRAWN = 60
"""The most answers of a channel that is drawn."""
SHOWN = 1500
"""The most entries of a channel that are printed. A larger channel is only in its file."""


def view(state: State, report: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """The report of a view in a state, as a file with a self-contained page. `state` is as in `takeaway.view`.

    >>> asked = {"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0}
    >>> view({"view": "tell", "state": asked})["name"]
    'tell.html'
    """
    name, inner = which(state)
    report(0.1)
    return {"name": f"{name}.html", "type": "text/html", "content": REPORTS[name](inner)}


def tell_report(state: State) -> str:
    """The report of a design for two populations: value, guarantees, proof, channel, and how to make it again."""
    made = solved(state)
    design, names = made.design, made.posed.names
    people = respondents(state, design)
    utility, channel = design.utility, design.channel
    caps = ", ".join(
        f"{one.title} at most {cap.bound:.6g}" for one, cap in zip(design.guarantees, design.constraints, strict=True)
    )
    whole = float(utility.unprivate)
    share = f", {100 * design.value / whole:.4g} % of the {whole:.6g} without privacy" if 0 < whole < math.inf else ""
    body = [
        f"<h1>{escape(f'{names[0]} against {names[1]}')}</h1>",
        _paragraph(
            f"The channel through which {channel.shape[0]} answers go, so that reports tell the two populations apart "
            f"as well as any channel can within its limits ({caps}). It keeps {design.value:.6g} ({utility.name})"
            f"{share}; {verdict(design)}.",
            "lead",
        ),
        _paragraph(_people(people)),
    ]
    if len(utility.p0) <= DRAWN:
        said = "The two populations in order of their likelihood ratio, and the channel beside them."
        body.append(embed(design_picture(design, names), said, said))
    rows = [
        [as_text(label), f"{a:.6g}", f"{b:.6g}"]
        for label, a, b in zip(channel.inputs, utility.p0, utility.p1, strict=True)
    ]
    told = reports_in_words(channel, utility.p0, utility.p1, names)
    likely = [
        [label, ", ".join(answers[:8]) + (", …" if len(answers) > 8 else ""), said] for label, answers, said in told
    ]
    body += [
        "<h2>What respondents are promised</h2>",
        *promises(design.guarantees),
        "<h2>The proof</h2>",
        *proof(design),
        "<h2>The populations</h2>",
        table(["answer", *names], rows, numbers=[1, 2]),
        "<h2>The channel</h2>",
        matrix(channel),
        table(["report", "likeliest after", "what it says of the population"], likely, "What each report says."),
        *_again("tell", state),
        *papers(design),
    ]
    return page(f"{names[0]} against {names[1]}", body)


def inspect_report(state: State) -> str:
    """The report of any channel: its guarantees, whether its proof holds, and its distance from the optimum."""
    shown = inspected(state)
    badge, compared = shown["badge"], shown.get("comparison")
    title = "A pasted channel" if shown["name"] == NAMELESS else shown["name"]
    body = [
        f"<h1>{escape(title)}</h1>",
        _paragraph(f"{badge['text']}. {' '.join(badge['reasons'])}", "lead"),
        *_list(shown.get("proof", [])),
    ]
    if "mended" in shown:
        moved = f"Rows moved by at most {shown['mended']['moved']:.4g} in total variation."
        body += ["<h2>How it was mended</h2>", *_list([*shown["mended"]["steps"], moved])]
    if "matrix" not in shown:
        return page(title, body)
    channel = Channel(shown["matrix"], shown["inputs"], shown["outputs"])
    rows = [
        [row["title"], f"{row['sign']} {row['value']}", row["witness"], row["reference"]] for row in shown["guarantees"]
    ]
    body += [
        "<h2>What it guarantees</h2>",
        *_list(shown["promise"]),
        table(["notion", "guarantee", "attained at", "source"], rows, "Values are rounded so that they hold."),
        "<h2>Beside the best channel of its own epsilon and eta</h2>",
    ]
    if compared is None:
        body.append(_paragraph(shown["no_comparison"]))
    else:
        share = "" if compared["share"] is None else f", {100 * compared['share']:.4g} % of the best"
        proved = "proof checked" if compared["verified"] else "the proof failed"
        body.append(
            _paragraph(
                f"For {compared['whose']} it keeps {_number(compared['value'])} ({compared['divergence']}){share}: the "
                f"best keeps {_number(compared['optimum'])}, none more than {_number(compared['bound'])} ({proved})."
            )
        )
    body += ["<h2>The channel</h2>", matrix(channel), *_again("inspect", state)]
    return page(title, body)


def meaning_report(state: State) -> str:
    """The report of what a channel means for one person: each guarantee in words, every report, many rounds."""
    from ldpopt.studio import meaning

    told = meaning.view(state)
    channel, _ = meaning.channel_of(state)
    answer = told["answers"][told["answer"]]
    title = f"What it means for a person who answers “{answer}”"
    reports = [[one["report"], f"{one['yours']:.4g}", one["words"]] for one in told["reports"]]
    # Guarantees are rounded up.
    rounds = [
        [
            f"{one['rounds']:,}",
            *(f"{ceil_digits(100 * one[name], 4)} %" for name in ("most", "guess")),
            ceil_digits(one["epsilon"]),
        ]
        for one in told["rounds"]
    ]
    head = ["fresh reports", "chance after them, at most", "right guesses, at most", "epsilon"]
    body = [
        f"<h1>{escape(title)}</h1>",
        *_list(told["sentences"]),
        "<h2>Each report</h2>",
        table(["report", "how often", "chance of the answer after it"], reports, "The most telling first.", [1]),
        "<h2>Many rounds</h2>",
        table(head, rounds, f"From a chance of {told['prior']['words']} before the first report.", [0, 1, 2, 3]),
        "<h2>The channel</h2>",
        *promises([local_dp(channel), total_variation(channel)]),
        matrix(channel),
        *_again("meaning", state),
    ]
    return page(title, body)


def _ask_report(state: State) -> str:

    title, body = survey_body(state)
    return page(title, [*body, *_again("ask", state)])


def promises(guarantees: Iterable[Guarantee]) -> list[str]:
    """Guarantees in words, and as a table with the answers that attain them."""
    several = list(guarantees)
    rows = [[one.title, f"≤ {ceil_digits(one.value)}", str(one.witness or ""), one.reference] for one in several]
    return [
        *_list([guarantee_in_words(one) for one in several]),
        table(["notion", "measured", "attained at", "source"], rows, "Measured on this very channel, and rounded up."),
    ]


def proof(design: Design) -> list[str]:
    """Sentences about the proof after it was computed again, or the reason why it fails."""
    checked = design.verify()
    return _list(proof_in_words(design, checked) if checked else list(checked.failures))


def matrix(channel: Channel) -> str:
    """The probabilities of a channel as a table, if it is small enough to be read."""
    k, m = channel.shape
    if k * m > SHOWN:
        return _paragraph(f"{k} answers, {m} reports: the probabilities are in the channel's file.")
    rows = [
        [as_text(label), *(f"{value:.6g}" for value in row)]
        for label, row in zip(channel.inputs, channel.matrix.tolist(), strict=True)
    ]
    head = ["answer", *(f"report {as_text(label)}" for label in channel.outputs)]
    return table(head, rows, "The probability of each report after each answer, to six digits.", range(1, m + 1))


def papers(design: Design) -> list[str]:
    """The papers that a design rests on."""
    return ["<h2>Sources</h2>", *_list([str(one) for one in cite(design)])]


def again(code: str, command: str) -> list[str]:
    """How to make the same result again."""
    return [
        "<h2>How to make it again</h2>",
        _paragraph("In Python:"),
        f'<div class="scroll" tabindex="0"><pre><code>{escape(code)}</code></pre></div>',
        _paragraph("On the command line:"),
        f'<div class="scroll" tabindex="0"><pre><code>{escape(command)}</code></pre></div>',
        _paragraph(f"Made by ldpopt {__version__}.", "soft"),
    ]


def _again(name: str, state: State) -> list[str]:
    made = taken({"view": name, "state": dict(state)})
    return again(made["code"], made["command"])


def _people(people: dict[str, Any]) -> str:
    """How many respondents a test needs, in a sentence."""
    if people["private"] is None:
        return "The reports are the same from both populations, so no number of respondents tells them apart."
    without = "" if people["open"] is None else f"; without privacy it would be {people['open']:,}"
    return (
        f"A test of level {people['level']:g} tells the second population from the first with power "
        f"{people['power']:g} from {people['private']:,} respondents on{without}."
    )


def _paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _list(lines: Sequence[str]) -> list[str]:
    return ["<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"] if lines else []


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


REPORTS: dict[str, Callable[[State], str]] = {
    "tell": tell_report,
    "ask": _ask_report,
    "meaning": meaning_report,
    "inspect": inspect_report,
}


def survey_body(state: State) -> tuple[str, list[str]]:
    """The title and the parts of the page: the questions and people, the guarantees, and each question's channel.

    >>> survey_body({"questions": [{"pilot": [0.3, 0.7]}], "epsilon": 1.0})[0]
    'A survey of 1,738 people'
    """
    told, planned = asked_designs(state)
    title = f"A survey of {told['respondents']:,} people"
    percent = f"{100 * told['level']:g} %"
    rows = [
        [
            name,
            f"{len(one['labels'])}",
            f"{one['epsilon']:.6g}",
            f"{one['eta']:.6g}",
            f"{one['half_width']:.4g}",
            f"{one['needed']:,}",
            f"{one['open']:,}",
        ]
        for (name, _, _), one in zip(planned, told["questions"], strict=True)
    ]
    head = [
        "question",
        "answers",
        "epsilon",
        "eta",
        "half-width",
        "people for the half-width wanted",
        "without privacy",
    ]
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">{len(planned)} question{"s" * (len(planned) > 1)}, with a loss of privacy of epsilon '
        f"{told['epsilon']:.6g} for each respondent over all of them. Half-widths are those of the widest {percent} "
        "interval of a share.</p>",
        table(head, rows, f"What each question reaches with {told['respondents']:,} people.", range(1, len(head))),
    ]
    for name, design, _ in planned:
        checked = design.verify()
        said = proof_in_words(design, checked) if checked else list(checked.failures)
        channel = design.channel
        said = [*map(guarantee_in_words, design.guarantees), *said]
        body += [
            f"<h2>{escape(name)}</h2>",
            "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in said) + "</ul>",
            table(
                ["answer", "pilot", *(f"report {label}" for label in channel.outputs)],
                [
                    [str(label), f"{share:.6g}", *(f"{value:.6g}" for value in row)]
                    for label, share, row in zip(
                        channel.inputs, design.utility.prior.tolist(), channel.matrix.tolist(), strict=True
                    )
                ],
                "The probability of each report after each answer, to six digits.",
                range(1, channel.shape[1] + 2),
            ),
        ]
    sources = "".join(f"<li>{escape(str(one))}</li>" for one in cite([design for _, design, _ in planned]))
    return title, [*body, f"<h2>Sources</h2><ul>{sources}</ul>"]
