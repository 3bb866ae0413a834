"""The index page: every claim with its verdict and its picture."""

from __future__ import annotations

from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

from ldpopt.references import cited, reference
from ldpopt.reports import page
from ldpopt.reproduce.experiment import Experiment, Outcome
from ldpopt.reproduce.folder import PICTURE, README, ROWS, verdict_in
from ldpopt.reproduce.registry import EXPERIMENTS

PLURAL = {Outcome.HOLDS: "hold", Outcome.LOOSELY: "hold loosely", Outcome.FAILS: "fail"}
COLOUR = {Outcome.HOLDS: "#00664b", Outcome.LOOSELY: "#7a5200", Outcome.FAILS: "#a62a00"}


def index_page(folder: Path) -> str:
    """The index page of `folder`, about all experiments that have run there, with the pictures from their folders.

    >>> "Of 0 claims" in index_page(Path("nowhere"))
    True
    """
    found = {name: verdict for name in EXPERIMENTS if (verdict := verdict_in(folder / name)) is not None}
    counts = Counter(Outcome(verdict["outcome"]) for verdict in found.values())
    said = ", ".join(f"{counts[outcome]} {PLURAL[outcome]}" for outcome in Outcome if counts[outcome])
    rows = "".join(_row(EXPERIMENTS[name], verdict) for name, verdict in found.items())
    head = "<tr><th>experiment</th><th>source</th><th>about</th><th>verdict</th></tr>"
    body = [
        "<h1>The papers, recomputed</h1>",
        '<p class="lead">Every claim below is computed anew and set beside exact values. It <em>holds</em>, it '
        "<em>holds loosely</em> (the bound is right but not attained; by how much is said), or it <em>fails</em>, "
        "with a counterexample. What a claim is to its paper is said too: a false <em>step of a proof</em> need not "
        f"make the statement false. Of {len(found)} claims {said}.</p>",
        f'<div class="scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>',
        *(_section(EXPERIMENTS[name], verdict) for name, verdict in found.items()),
        "<h2>Papers</h2>",
        *(f'<p class="soft">{escape(str(reference(key)))}</p>' for key in _papers(found)),
    ]
    return page("The papers, recomputed", body)


def _row(experiment: Experiment, verdict: dict[str, Any]) -> str:
    name = escape(experiment.name)
    linked = f'<a href="#{name}">{name}</a>'
    about = escape(experiment.subject.value)
    return (
        f"<tr><td>{linked}</td><td>{escape(experiment.source)}</td><td>{about}</td><td>{_coloured(verdict)}</td></tr>"
    )


def _coloured(verdict: dict[str, Any]) -> str:
    return f'<strong style="color: {COLOUR[Outcome(verdict["outcome"])]}">{escape(verdict["outcome"])}</strong>'


def _section(experiment: Experiment, verdict: dict[str, Any]) -> str:
    name, caption = escape(experiment.name), escape(experiment.caption)
    return (
        f'<h2 id="{name}">{name}: {_coloured(verdict)}</h2>'
        f"<p>{escape(experiment.claim)} <span class='soft'>{escape(experiment.source)}</span></p>"
        f"<p><strong>{escape(verdict['outcome'].capitalize())}.</strong> {escape(verdict['detail'])}</p>"
        f'<figure><img src="{name}/{PICTURE}" alt="{caption}" style="max-height: 34rem">'
        f"<figcaption>{caption}</figcaption></figure>"
        f'<p class="soft"><a href="{name}/{ROWS}">all numbers</a>, <a href="{name}/{README}">description</a></p>'
    )


def _papers(found: dict[str, Any]) -> tuple[str, ...]:
    """The keys of the papers behind the experiments, each once."""
    return tuple(dict.fromkeys(key for name in found for key in cited(EXPERIMENTS[name].source)))
