"""The report of a survey that was planned on the page."""

from __future__ import annotations

from html import escape

from ldpopt.citation import cite
from ldpopt.reports.page import table
from ldpopt.reports.words import guarantee_in_words, proof_in_words
from ldpopt.studio.fields import State
from ldpopt.studio.takeaway_survey import asked_designs


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
