"""The demonstration: two groups of voters of 1996 are told apart by private reports of their answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np

from ldpopt import plots
from ldpopt.datasets import SurveyTable, load_anes96
from ldpopt.design import Design, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.files import design_text
from ldpopt.divergences import KL
from ldpopt.frontiers import Frontier, frontier
from ldpopt.privacy import total_variation
from ldpopt.references import reference
from ldpopt.reports import design_picture, embed, guarantee_in_words, page, reports_in_words, table, verdict
from ldpopt.version import __version__

EPSILONS = (0.5, 1.0, 2.0, 4.0)
CAPS = (None, 0.4, 0.2)
FEATURED = (2.0, 0.4)
CURVES = (1.0, 2.0, 4.0)
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
    """How often `run` reports progress."""
    survey = load_anes96()
    on_curves = sum(len(_caps(e, len(survey.labels(name)))) for name in QUESTIONS for e in CURVES)
    designs = len(EPSILONS) * len(CAPS) + len(MAP_EPSILONS) * len(MAP_ETAS)
    return len(QUESTIONS) * (designs + _PICTURES) + on_curves + 1


_PICTURES = 3


def run(step: Callable[..., object] = lambda *_: None) -> tuple[list[Answered], dict[str, bytes]]:
    """Compute all designs, and the contents of every file of the demonstration by name. `step` reports progress."""
    survey = load_anes96()
    answered = [_answer(survey, name, title, step) for name, title in QUESTIONS.items()]
    files: dict[str, bytes] = {}
    sections: list[str] = []
    for one in answered:
        pictures = _pictures(one, step)
        files |= {f"{one.name}-{kind}.png": data for kind, data in pictures.items()}
        files[f"{one.name}-frontier.csv"] = one.curves.to_csv().encode()
        files[f"{one.name}-gaps.csv"] = one.grid.to_csv().encode()
        for (epsilon, eta), design in one.designs.items():
            files[channel_file(one.name, epsilon, eta)] = design.channel.to_json(design.guarantees).encode()
            files[design_file(one.name, epsilon, eta)] = design_text(design).encode()
        sections += _section(one, pictures)
    body = [*_opening(survey), *sections, *_closing(survey)]
    files["report.html"] = page("Telling two electorates apart from private answers", body).encode()
    step()
    return answered, files


def channel_file(question: str, epsilon: float, eta: float | None) -> str:
    """The name of a design's channel file."""
    return f"{question}-epsilon-{epsilon:g}" + ("" if eta is None else f"-eta-{eta:g}") + ".json"


def design_file(question: str, epsilon: float, eta: float | None) -> str:
    """The name of the file with a design and its certificate."""
    return channel_file(question, epsilon, eta).removesuffix(".json") + "-design.json"


def textbook_gaps(one: Answered, epsilon: float, eta: float | None) -> dict[str, float]:
    """The share of the optimum that each textbook mechanism misses at a point (epsilon, eta) of the grid."""
    at = [(row.epsilon, row.eta) for row in one.grid].index((epsilon, 1.0 if eta is None else eta))
    return {name: float(one.grid.gap(name)[at]) for name in _TEXTBOOK}


_TEXTBOOK = {
    "randomized_response_with_erasure": "randomized response",
    "binary_with_erasure": "binary with erasure",
    "erased_optimum": "the optimum for ε, erased",
}


def curves(utility: Divergence, step: Callable[..., object] = lambda *_: None) -> Frontier:
    """The frontier at the epsilons `CURVES`, with points at all the kinks that the curves visibly have."""
    k = len(utility.p0)
    parts = [frontier(utility, [epsilon], _caps(epsilon, k), each=step) for epsilon in CURVES]
    return Frontier(tuple(row for part in parts for row in part), utility)


def _caps(epsilon: float, k: int) -> list[float]:
    """Evenly spaced caps eta, and the caps at which the curve of the optimum can have a kink.

    Randomized response on m blocks of answers has the total variation (e^epsilon - 1)/(e^epsilon + m - 1).
    """
    e = math.exp(epsilon)
    blocks = {*range(2, min(k, 8) + 1), k}
    return sorted({*np.linspace(0, 1, 6).tolist(), *((e - 1) / (e + m - 1) for m in blocks)})


def _answer(survey: SurveyTable, name: str, title: str, step: Callable[..., object]) -> Answered:
    p0, p1 = survey.conditional(name, given="vote")
    utility = Divergence(KL, p0, p1, inputs=survey.labels(name))
    designs = {}
    for epsilon in EPSILONS:
        for eta in CAPS:
            caps = [] if eta is None else [TotalVariation(eta)]
            designs[epsilon, eta] = optimal_channel(utility, (LocalDP(epsilon), *caps))
            step()
    drawn = curves(utility, step)
    grid = frontier(utility, MAP_EPSILONS, MAP_ETAS, each=step)
    first, second = survey.labels("vote")
    return Answered(name, title, utility, (first, second), designs, drawn, grid)


def _pictures(one: Answered, step: Callable[..., object]) -> dict[str, bytes]:
    made = {"frontier": plots.picture(plots.frontier(one.curves))}
    step()
    made["gaps"] = plots.picture(_gap_maps(one.grid))
    step()
    made["design"] = design_picture(one.designs[FEATURED], one.names)
    step()
    return made


def _gap_maps(grid: Frontier) -> plots.Axes:
    axes = plots.panels((6.2, 6.2), 4.4)
    for ax, name in zip(axes, ("randomized_response_with_erasure", "binary_with_erasure"), strict=True):
        plots.gap_map(grid, name, ax=ax)
    return axes[0]


def _opening(survey: SurveyTable) -> list[str]:
    groups = " and ".join(f"{n} for {who}" for who, n in zip(survey.labels("vote"), survey.counts("vote"), strict=True))
    epsilon, eta = FEATURED
    return [
        "<h1>Telling two electorates apart from private answers</h1>",
        f'<p class="lead">In 1996, {len(survey)} respondents of the American National Election Study said whom they '
        f"would vote for: {groups}. How much would their income, or their party, still tell about their vote, if "
        "nobody but they themselves ever saw the answer?</p>",
        "<p>Here each answer passes through a <em>channel</em>: a table of probabilities from which the respondent’s "
        "own device draws a report. Only the report leaves the device. For every limit on what a report may give away, "
        "ldpopt computed the channel whose reports keep the most Kullback–Leibler divergence between the two groups, "
        "measured what that very channel guarantees, and proved how close it is to the best of all channels. The "
        "proofs below were recomputed from scratch while this page was written.</p>",
        "<h3>The two limits</h3>",
        "<ul>"
        f"<li><strong>ε, local differential privacy.</strong> Whatever you answer, any report is at most e<sup>ε</sup> "
        f"times likelier than under any other answer. ε&nbsp;=&nbsp;{epsilon:g} allows a factor "
        f"{math.exp(epsilon):.3g}.</li>"
        f"<li><strong>η, total variation.</strong> Who hesitates between two equally likely answers of yours guesses "
        f"right at most (1&nbsp;+&nbsp;η)/2 of the time: {50 * (1 + eta):g}&nbsp;% for η&nbsp;=&nbsp;{eta:g}. It caps "
        "what happens on the whole, where ε caps the worst report.</li></ul>",
        "<p>What a design keeps is a divergence, in nats. In large samples the number of respondents needed to tell "
        "the groups apart is inversely proportional to it: a mechanism that misses half of the optimum needs twice as "
        "many.</p>",
    ]


def _section(one: Answered, pictures: dict[str, bytes]) -> list[str]:
    epsilon, eta = FEATURED
    k = len(one.utility.p0)
    gaps = {limits: textbook_gaps(one, *limits) for limits in one.designs}
    said = {limits: verdict(design) for limits, design in one.designs.items()}  # each proof is checked anew
    rows = [_row(limits, design, said[limits], gaps[limits]) for limits, design in one.designs.items()]
    head = ["ε", "cap η", "reports", "kept (nats)", "verdict", *(f"missed by {text}" for text in _TEXTBOOK.values())]
    return [
        f"<h2>{escape(one.title)}: {k} answers</h2>",
        f"<p>Without any privacy the answers of the two groups are {one.utility.unprivate:.4g} nats apart.</p>",
        table(
            head, rows, "The optimal channels, and what the textbook mechanisms miss of them.", (0, 1, 2, 3, 5, 6, 7)
        ),
        embed(
            pictures["frontier"],
            f"Divergence kept against the cap on total variation, {one.title}",
            "What the optimal channel keeps, and the mechanisms of the textbooks, as the cap η is raised.",
        ),
        embed(
            pictures["gaps"],
            f"Maps of the optimality gap of randomized response and of the binary mechanism, {one.title}",
            "The share of the optimum that the two textbook mechanisms miss, with erasure where η asks for it.",
        ),
        f"<h3>One design close up: ε = {epsilon:g}, η = {eta:g}</h3>",
        embed(
            pictures["design"],
            f"Blocks of answers, and the channel as a heat map, {one.title}",
            f"Left: the answers sorted by how much likelier they are among {one.names[0]}’s voters (P0) than among "
            f"{one.names[1]}’s (P1); answers of one block are treated alike. Right: the channel.",
        ),
        "<h3>Every design in words</h3>",
        *(_details(one, limits, design, said[limits], gaps[limits]) for limits, design in one.designs.items()),
    ]


def _row(limits: tuple[float, float | None], design: Design, said: str, gaps: dict[str, float]) -> list[str]:
    epsilon, eta = limits
    missed = [_percent(gaps[name]) for name in _TEXTBOOK]
    cap = "none" if eta is None else f"{eta:g}"
    return [f"{epsilon:g}", cap, str(design.channel.shape[1]), f"{design.value:.4g}", said, *missed]


def _details(
    one: Answered, limits: tuple[float, float | None], design: Design, judged: str, gaps: dict[str, float]
) -> str:
    epsilon, eta = limits
    measured = [*design.guarantees, *([total_variation(design.channel)] if eta is None else [])]
    promises = "".join(f"<li>{escape(guarantee_in_words(one))}</li>" for one in measured)
    said = reports_in_words(design.channel, one.utility.p0, one.utility.p1, one.names)
    rows = [[label, "; ".join(likely), evidence] for label, likely, evidence in said]
    missed = "; ".join(f"{text} {_percent(gaps[name])}" for name, text in _TEXTBOOK.items())
    proof = design.certificate.argument if design.certificate else "none"
    note = f"<p>Note: {escape(design.note)}.</p>" if design.note else ""
    limit = "no cap" if eta is None else f"η = {eta:g}"
    share = design.value / one.utility.unprivate
    file, proved = channel_file(one.name, epsilon, eta), design_file(one.name, epsilon, eta)
    return (
        f"<details><summary>ε = {epsilon:g}, {limit} <span>· {design.value:.4g} nats · {escape(judged)}</span>"
        f"</summary><ul>{promises}</ul>"
        f"<p>Keeps {design.value:.6g} nats, {share:.1%} of what the answers carry; no channel within these limits "
        f"keeps more than {design.upper_bound:.6g}. Found by {escape(design.method)}; proved by {escape(proof)}. "
        f"Missed of the optimum: {escape(missed)}.</p>{note}"
        + table(["report", "likeliest after", "what it says"], rows)
        + f'<p class="soft">The channel: <a href="{file}">{file}</a>. The design with its proof: '
        f'<a href="{proved}">{proved}</a></p></details>'
    )


def _percent(gap: float) -> str:
    return "nothing" if gap < 5e-6 else f"{100 * gap:.3g} %"


def _closing(survey: SurveyTable) -> list[str]:
    cited = "".join(f"<li>{escape(str(reference(key)))}</li>" for key in ("GI", "SPR", "KOV14"))
    return [
        "<h2>Where this comes from</h2>",
        f"<p>Made by ldpopt {__version__}. The tables behind the pictures are in the CSV files beside this page, the "
        "channels in the JSON files; <code>ldpopt check FILE</code> measures what any of them guarantees. Beside each "
        "lies the design with its certificate: <code>ldpopt verify FILE</code> recomputes that no channel does better, "
        "without any solver.</p>",
        f"<ul>{cited}</ul>",
        f'<details><summary>The data</summary><pre class="scroll soft">{escape(survey.provenance)}</pre></details>',
    ]
