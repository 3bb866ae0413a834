"""The index page: every claim with its verdict and its picture."""

from __future__ import annotations

from collections import Counter
from html import escape
from pathlib import Path

from ldpopt.reports import page, table
from ldpopt.reproduce.folder import PICTURE, verdict_in
from ldpopt.reproduce.registry import EXPERIMENTS


def index_page(folder: Path) -> str:
    """A page to stand in `folder`, over all experiments that have run there; it shows the pictures in their folders."""
    found = {name: verdict for name in EXPERIMENTS if (verdict := verdict_in(folder / name)) is not None}
    rows = [(name, EXPERIMENTS[name].source, verdict["outcome"]) for name, verdict in found.items()]
    body = [
        "<h1>The papers, recomputed</h1>",
        '<p class="lead">Every claim below is computed anew and set beside exact values. It <em>holds</em>, it '
        "<em>holds loosely</em> (the bound is right but not attained; by how much is said), or it <em>fails</em>, "
        "with a counterexample.</p>",
        table(("experiment", "source", "verdict"), rows),
        f"<p>{', '.join(f'{count} {outcome}' for outcome, count in Counter(row[2] for row in rows).items())}.</p>",
    ]
    for name, verdict in found.items():
        experiment = EXPERIMENTS[name]
        body += [
            f'<h2 id="{escape(name)}">{escape(name)}: {escape(verdict["outcome"])}</h2>',
            f"<p>{escape(experiment.claim)} <span class='soft'>{escape(experiment.source)}</span></p>",
            f"<p><strong>{escape(verdict['outcome'].capitalize())}.</strong> {escape(verdict['detail'])}</p>",
            f'<figure><img src="{escape(name)}/{PICTURE}" alt="{escape(experiment.caption)}" style="max-height: 34rem">'
            f"<figcaption>{escape(experiment.caption)}</figcaption></figure>",
        ]
    return page("The papers, recomputed", body)
