"""The demonstration: private reports distinguish two groups of voters of 1996."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from ldpopt import plots
from ldpopt.datasets import SurveyTable, load_anes96
from ldpopt.design import Design, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import KL
from ldpopt.frontiers import Frontier, frontier
from ldpopt.numbers.rounding import ceil_digits, up
from ldpopt.plots.channel import design_picture
from ldpopt.privacy import total_variation
from ldpopt.values.references import reference
from ldpopt.version import __version__
from ldpopt.words import guarantee_in_words, reports_in_words, verdict

DEMO_EPSILONS = (0.5, 1.0, 2.0, 4.0)
DEMO_CAPS = (None, 0.4, 0.2)
FEATURED_POINT = (2.0, 0.4)
CURVE_EPSILONS = (1.0, 2.0, 4.0)
MAP_EPSILONS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
MAP_ETAS = (0.2, 0.4, 0.6, 0.8, 1.0)
QUESTIONS = {"income": "Household income", "party": "Party identification"}


@dataclass(frozen=True, eq=False)
class Answered:
    """One question of the survey: its designs by (epsilon, eta), and two tables of optima over epsilon and eta."""

    name: str
    title: str
    utility: Divergence
    names: tuple[str, str]
    designs: dict[tuple[float, float | None], Design]
    curves: Frontier
    grid: Frontier


def steps() -> int:
    """Count the progress reports of `run`."""
    survey = load_anes96()
    on_curves = sum(len(_caps(e, len(survey.labels(name)))) for name in QUESTIONS for e in CURVE_EPSILONS)
    designs = len(DEMO_EPSILONS) * len(DEMO_CAPS) + len(MAP_EPSILONS) * len(MAP_ETAS)
    return len(QUESTIONS) * (designs + _FIGURES_PER_QUESTION) + on_curves + 1


_FIGURES_PER_QUESTION = 3


def run(step: Callable[..., object] = lambda *_: None) -> tuple[list[Answered], dict[str, bytes]]:
    """Compute all designs, and the contents of every file of the demonstration by name. `step` reports progress."""
    survey = load_anes96()
    answers = [_answer(survey, name, title, step) for name, title in QUESTIONS.items()]
    contents: dict[str, bytes] = {}
    sections: list[tuple[Answered, dict[str, bytes], list[dict[str, Any]]]] = []
    for question in answers:
        pictures = _pictures(question, step)
        contents |= {f"{question.name}-{kind}.png": data for kind, data in pictures.items()}
        contents[f"{question.name}-frontier.csv"] = question.curves.to_csv().encode()
        contents[f"{question.name}-gaps.csv"] = question.grid.to_csv().encode()
        for (epsilon, eta), design in question.designs.items():
            contents[channel_file(question.name, epsilon, eta)] = design.channel.to_json(design.guarantees).encode()
            contents[design_file(question.name, epsilon, eta)] = design.to_json().encode()
        sections.append((question, pictures, [_design_values(question, limits) for limits in question.designs]))
    contents["report.html"] = _report(survey, sections).encode()
    step()
    return answers, contents


def channel_file(question: str, epsilon: float, eta: float | None) -> str:
    """Return the name of a design's channel file."""
    return f"{question}-epsilon-{epsilon:g}" + ("" if eta is None else f"-eta-{eta:g}") + ".json"


def design_file(question: str, epsilon: float, eta: float | None) -> str:
    """Return the name of the file with a design and its certificate."""
    return channel_file(question, epsilon, eta).removesuffix(".json") + "-design.json"


def textbook_gaps(question: Answered, epsilon: float, eta: float | None) -> dict[str, float]:
    """Compute the fraction of the optimum that each textbook mechanism misses at a grid point."""
    point = [(row.epsilon, row.eta) for row in question.grid].index((epsilon, 1.0 if eta is None else eta))
    return {name: float(question.grid.gap(name)[point]) for name in _TEXTBOOK}


_TEXTBOOK = {
    "randomized_response_with_erasure": "randomized response",
    "binary_with_erasure": "binary with erasure",
    "erased_optimum": "the optimum for ε, erased",
}


def curves(utility: Divergence, step: Callable[..., object] = lambda *_: None) -> Frontier:
    """Compute the frontier at the epsilons `CURVE_EPSILONS`, with points at all visible kinks."""
    k = len(utility.p0)
    parts = [frontier(utility, [epsilon], _caps(epsilon, k), on_row=step) for epsilon in CURVE_EPSILONS]
    return Frontier(tuple(row for part in parts for row in part), utility)


def _caps(epsilon: float, k: int) -> list[float]:
    """Evenly spaced caps eta, and those of randomized response on m blocks, where the optimum can have a kink."""
    e = math.exp(epsilon)
    blocks = {*range(2, min(k, 8) + 1), k}
    return sorted({*np.linspace(0, 1, 6).tolist(), *((e - 1) / (e + m - 1) for m in blocks)})


def _answer(survey: SurveyTable, name: str, title: str, step: Callable[..., object]) -> Answered:
    p0, p1 = survey.conditional(name, given="vote")
    utility = Divergence(KL, p0, p1, inputs=survey.labels(name))
    designs = {}
    for epsilon in DEMO_EPSILONS:
        for eta in DEMO_CAPS:
            caps = [] if eta is None else [TotalVariation(eta)]
            designs[epsilon, eta] = optimal_channel(utility, (LocalDP(epsilon), *caps))
            step()
    frontier_curves = curves(utility, step)
    grid = frontier(utility, MAP_EPSILONS, MAP_ETAS, on_row=step)
    first, second = survey.labels("vote")
    return Answered(name, title, utility, (first, second), designs, frontier_curves, grid)


def _pictures(question: Answered, step: Callable[..., object]) -> dict[str, bytes]:
    pictures = {"frontier": plots.picture(plots.frontier(question.curves))}
    step()
    pictures["gaps"] = plots.picture(_gap_maps(question.grid))
    step()
    pictures["design"] = design_picture(question.designs[FEATURED_POINT], question.names)
    step()
    return pictures


def _gap_maps(grid: Frontier) -> plots.Axes:
    names = ("randomized_response_with_erasure", "binary_with_erasure")
    largest = max(float(grid.gap(name).max()) for name in names)
    axes = plots.panels((6.2, 6.2), 4.4)
    for ax, name in zip(axes, names, strict=True):
        plots.gap_map(grid, name, ax=ax, vmax=max(0.01, largest))
    return axes[0]


def _report(survey: SurveyTable, sections: list[tuple[Answered, dict[str, bytes], list[dict[str, Any]]]]) -> str:
    """The page, which embeds its pictures and style and loads nothing else."""
    epsilon, eta = FEATURED_POINT
    group_counts = zip(survey.labels("vote"), survey.counts("vote"), strict=True)
    data_folder = files("ldpopt").joinpath("data")
    return Template(data_folder.joinpath("demo.html").read_text("utf-8")).substitute(
        title="Telling two electorates apart from private answers",
        style=data_folder.joinpath("page.css").read_text("utf-8"),
        respondents=len(survey),
        groups=escape(" and ".join(f"{count} for {candidate}" for candidate, count in group_counts)),
        epsilon=ceil_digits(epsilon),
        eta=ceil_digits(eta),
        factor=ceil_digits(up(math.exp(epsilon)), 3),
        right=ceil_digits(50 * (1 + eta)),
        sections="\n".join(_section(*section) for section in sections),
        papers=_items(str(reference(key)) for key in ("GI", "SPR", "KOV14")),
        provenance=escape(survey.provenance),
        version=__version__,
    )


def _section(question: Answered, pictures: Mapping[str, bytes], designs: list[dict[str, Any]]) -> str:
    """The part of the page about one question: its table, its pictures, and every design in words."""
    (epsilon, eta), title = FEATURED_POINT, question.title
    heads = [f"missed by {name}" for name in _TEXTBOOK.values()]
    rows = [
        [f"{row['epsilon']:g}", row["cap"], str(row["design"].channel.shape[1]), f"{row['design'].value:.4g}",
         row["judged"], *row["missed"]]
        for row in designs
    ]  # fmt: skip
    sorted_answers = (
        "Left: the answers sorted by how much likelier they are among {}’s voters (P0) than among {}’s (P1); "
        "answers of one block are treated alike. Right: the channel."
    ).format(*question.names)
    parts = [
        f"<h2>{escape(title)}: {len(question.utility.p0)} answers</h2>",
        "<p>Without any privacy the answers of the two groups are "
        f"{question.utility.value_without_privacy:.4g} nats apart.</p>",
        _table(["ε", "cap η", "reports", "kept (nats)", "verdict", *heads], rows,
               "The optimal channels, and what the textbook mechanisms miss of them.", (0, 1, 2, 3, 5, 6, 7)),
        _figure(pictures["frontier"], f"Divergence kept against the cap on total variation, {title}",
                "What the optimal channel keeps, and the mechanisms of the textbooks, as the cap η is raised."),
        _figure(pictures["gaps"],
                f"Maps of the optimality gap of randomized response and of the binary mechanism, {title}",
                "The share of the optimum that the two textbook mechanisms miss, with erasure where η asks for it."),
        f"<h3>One design close up: ε = {epsilon:g}, η = {eta:g}</h3>",
        _figure(pictures["design"], f"Blocks of answers, and the channel as a heat map, {title}", sorted_answers),
        "<h3>Every design in words</h3>",
        *(_in_words(row, question.utility.value_without_privacy) for row in designs),
    ]  # fmt: skip
    return "\n".join(parts)


def _in_words(values: Mapping[str, Any], full_value: float) -> str:
    """One design: its guarantees, its value, and the evidence of each report."""
    design: Design = values["design"]
    cap = "no cap" if values["cap"] == "none" else f"η = {values['cap']}"
    summary = f"ε = {values['epsilon']:g}, {cap} <span>· {design.value:.4g} nats · {escape(values['judged'])}</span>"
    missed_by_mechanism = "; ".join(
        f"{name} {gap}" for name, gap in zip(_TEXTBOOK.values(), values["missed"], strict=True)
    )
    argument = design.certificate.argument if design.certificate else "none"
    summary_text = (
        f"Keeps {design.value:.6g} nats, {100 * design.value / full_value:.1f}% of what the answers carry; no channel "
        f"within these limits keeps more than {ceil_digits(design.upper_bound)}. Found by {design.method}; proved by "
        f"{argument}. Missed of the optimum: {missed_by_mechanism}."
    )
    note = f"<p>Note: {escape(design.note)}.</p>" if design.note else ""
    links = [f'<a href="{escape(name)}">{escape(name)}</a>' for name in (values["file"], values["proved"])]
    return (
        f"<details><summary>{summary}</summary>{_items(values['promises'])}<p>{escape(summary_text)}</p>{note}\n"
        f"{_table(['report', 'likeliest after', 'what it says'], values['reports'])}"
        f'<p class="soft">The channel: {links[0]}. The design with its proof: {links[1]}</p></details>'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", numbers: Sequence[int] = ()) -> str:
    """A table of text; the columns at the positions `numbers` are aligned to the right."""
    kinds = [' class="number"' if place in numbers else "" for place in range(len(head))]
    heads = "".join(f'<th scope="col"{kind}>{escape(cell)}</th>' for cell, kind in zip(head, kinds, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{escape(cell)}</td>' for cell, kind in zip(row, kinds, strict=True))}</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    table = f"<table>{title}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _figure(png: bytes, description: str, caption: str) -> str:
    """A PNG picture of 200 dots an inch, no larger than it was drawn."""
    width = round(int.from_bytes(png[16:20]) / 200 * 96)  # the width field of the PNG header
    source = f"data:image/png;base64,{b64encode(png).decode('ascii')}"
    image = f'<img src="{source}" alt="{escape(description)}" width="{width}">'
    return f'<figure tabindex="0">{image}<figcaption>{escape(caption)}</figcaption></figure>'


def _items(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _design_values(question: Answered, limits: tuple[float, float | None]) -> dict[str, Any]:
    """The values of a design in the HTML report; its proof is checked again."""
    (epsilon, eta), design, gaps = limits, question.designs[limits], textbook_gaps(question, *limits)
    guarantees = [*design.guarantees, *([total_variation(design.channel)] if eta is None else [])]
    reports = reports_in_words(design.channel, question.utility.p0, question.utility.p1, question.names)
    return {
        "epsilon": epsilon,
        "cap": "none" if eta is None else f"{eta:g}",
        "design": design,
        "judged": verdict(design),
        "missed": [_percent(gaps[name]) for name in _TEXTBOOK],
        "promises": list(map(guarantee_in_words, guarantees)),
        "reports": [[label, "; ".join(likely), evidence] for label, likely, evidence in reports],
        "file": channel_file(question.name, epsilon, eta),
        "proved": design_file(question.name, epsilon, eta),
    }


def _percent(gap: float) -> str:
    return "nothing" if gap < 5e-6 else f"{100 * gap:.3g} %"
