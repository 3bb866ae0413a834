"""The demonstration: two groups of voters of 1996 are told apart by private reports of their answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt import plots
from ldpopt.datasets import SurveyTable, load_anes96
from ldpopt.design import Design, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.files import design_text
from ldpopt.divergences import KL
from ldpopt.frontiers import Frontier, frontier
from ldpopt.privacy import total_variation
from ldpopt.references import reference
from ldpopt.reports import design_picture, guarantee_in_words, reports_in_words, verdict
from ldpopt.reports.page import render
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
    sections: list[tuple[Answered, dict[str, bytes], list[dict[str, Any]]]] = []
    for question in answered:
        pictures = _pictures(question, step)
        files |= {f"{question.name}-{kind}.png": data for kind, data in pictures.items()}
        files[f"{question.name}-frontier.csv"] = question.curves.to_csv().encode()
        files[f"{question.name}-gaps.csv"] = question.grid.to_csv().encode()
        for (epsilon, eta), design in question.designs.items():
            files[channel_file(question.name, epsilon, eta)] = design.channel.to_json(design.guarantees).encode()
            files[design_file(question.name, epsilon, eta)] = design_text(design).encode()
        sections.append((question, pictures, [_shown(question, limits) for limits in question.designs]))
    files["report.html"] = _report(survey, sections).encode()
    step()
    return answered, files


def channel_file(question: str, epsilon: float, eta: float | None) -> str:
    """The name of a design's channel file."""
    return f"{question}-epsilon-{epsilon:g}" + ("" if eta is None else f"-eta-{eta:g}") + ".json"


def design_file(question: str, epsilon: float, eta: float | None) -> str:
    """The name of the file with a design and its certificate."""
    return channel_file(question, epsilon, eta).removesuffix(".json") + "-design.json"


def textbook_gaps(question: Answered, epsilon: float, eta: float | None) -> dict[str, float]:
    """The share of the optimum that each textbook mechanism misses at a point (epsilon, eta) of the grid."""
    point = [(row.epsilon, row.eta) for row in question.grid].index((epsilon, 1.0 if eta is None else eta))
    return {name: float(question.grid.gap(name)[point]) for name in _TEXTBOOK}


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
    """Evenly spaced caps eta, and those of randomized response on m blocks, where the optimum can have a kink."""
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


def _pictures(question: Answered, step: Callable[..., object]) -> dict[str, bytes]:
    pictures = {"frontier": plots.picture(plots.frontier(question.curves))}
    step()
    pictures["gaps"] = plots.picture(_gap_maps(question.grid))
    step()
    pictures["design"] = design_picture(question.designs[FEATURED], question.names)
    step()
    return pictures


def _gap_maps(grid: Frontier) -> plots.Axes:
    axes = plots.panels((6.2, 6.2), 4.4)
    for ax, name in zip(axes, ("randomized_response_with_erasure", "binary_with_erasure"), strict=True):
        plots.gap_map(grid, name, ax=ax)
    return axes[0]


def _report(survey: SurveyTable, sections: list[Any]) -> str:
    epsilon, eta = FEATURED
    counted = zip(survey.labels("vote"), survey.counts("vote"), strict=True)
    return render(
        "demo.html",
        title="Telling two electorates apart from private answers",
        survey=survey,
        groups=" and ".join(f"{n} for {who}" for who, n in counted),
        epsilon=epsilon,
        eta=eta,
        factor=math.exp(epsilon),
        heads=[f"missed by {text}" for text in _TEXTBOOK.values()],
        sections=sections,
        papers=[str(reference(key)) for key in ("GI", "SPR", "KOV14")],
        version=__version__,
    )


def _shown(question: Answered, limits: tuple[float, float | None]) -> dict[str, Any]:
    """What the page shows of a design; its proof is checked anew."""
    (epsilon, eta), design, gaps = limits, question.designs[limits], textbook_gaps(question, *limits)
    measured = [*design.guarantees, *([total_variation(design.channel)] if eta is None else [])]
    said = reports_in_words(design.channel, question.utility.p0, question.utility.p1, question.names)
    return {
        "epsilon": epsilon,
        "cap": "none" if eta is None else f"{eta:g}",
        "design": design,
        "judged": verdict(design),
        "missed": [_percent(gaps[name]) for name in _TEXTBOOK],
        "promises": list(map(guarantee_in_words, measured)),
        "reports": [[label, "; ".join(likely), evidence] for label, likely, evidence in said],
        "file": channel_file(question.name, epsilon, eta),
        "proved": design_file(question.name, epsilon, eta),
    }


def _percent(gap: float) -> str:
    return "nothing" if gap < 5e-6 else f"{100 * gap:.3g} %"
