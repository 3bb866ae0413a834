"""The index page: every claim with its verdict and its picture."""

from __future__ import annotations

from html import escape
from pathlib import Path

from ldpopt.reports import embed, page, table
from ldpopt.reproduce.folder import PICTURE, verdict_in
from ldpopt.reproduce.registry import EXPERIMENTS


def index_page(folder: Path) -> str:
    """One HTML file, pictures inside, over all experiments that have run in `folder`."""
    found = {name: verdict for name in EXPERIMENTS if (verdict := verdict_in(folder / name)) is not None}
    rows = [(name, EXPERIMENTS[name].source, verdict["outcome"]) for name, verdict in found.items()]
    body = [
        "<h1>The papers, recomputed</h1>",
        '<p class="lead">Every claim below is computed anew and set beside exact values. It <em>holds</em>, it '
        "<em>holds loosely</em> (the bound is right but not attained; by how much is said), or it <em>fails</em>, "
        "with a counterexample.</p>",
        table(("experiment", "source", "verdict"), rows),
    ]
    for name, verdict in found.items():
        experiment = EXPERIMENTS[name]
        body += [
            f'<h2 id="{escape(name)}">{escape(name)}: {escape(verdict["outcome"])}</h2>',
            f"<p>{escape(experiment.claim)} <span class='soft'>{escape(experiment.source)}</span></p>",
            f"<p><strong>{escape(verdict['outcome'].capitalize())}.</strong> {escape(verdict['detail'])}</p>",
            embed((folder / name / PICTURE).read_bytes(), experiment.caption, experiment.caption),
        ]
    return page("The papers, recomputed", body)
