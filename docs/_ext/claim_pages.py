"""The gallery: a card for each experiment, and a page with its claim, verdict, picture, numbers and code."""

from __future__ import annotations

import importlib
import re
import shutil
from pathlib import Path

import public_names  # noqa: F401  # it finds `experiments`
from docstrings import escaped

from experiments.papers import EXPERIMENTS, Experiment, recorded
from experiments.papers.claims import HOMES
from ldpopt.values.references import REFERENCES

ROOT = Path(__file__).resolve().parents[2]
OTHERS = {"envelope": "The envelope theorem", "survey": "What an optimal channel saves", "kov": "KOV14"}
"""Headings of experiments by the first word of their name, where it is not the key of a paper."""


def claim_pages() -> dict[str, str]:
    """The Markdown of every experiment's page, by file name."""
    return {f"{name}.md": _page(one, HOMES[name]) for name, one in EXPERIMENTS.items()}


def gallery() -> str:
    """The cards, grouped by the paper whose claim is computed."""
    groups: dict[str, list[str]] = {}
    for name, one in EXPERIMENTS.items():
        groups.setdefault(_heading(name.split("-")[0]), []).append(_card(one))
    parts = []
    for heading, cards in sorted(groups.items()):
        parts += [f"## {heading}", "", "::::{grid} 1 2 2 3", ":gutter: 3", "", *cards, "::::", ""]
    return "\n".join(parts)


def copy_pictures(folder: Path) -> None:
    """Put each experiment's picture beside its page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXPERIMENTS:
        shutil.copyfile(ROOT / "experiments" / "papers" / "records" / name / "picture.png", folder / f"{name}.png")


def _heading(word: str) -> str:
    key = OTHERS.get(word, word.upper())
    return f"{REFERENCES[key].title} [{key}]" if key in REFERENCES else key


def _card(one: Experiment) -> str:
    outcome = recorded()[one.name]["outcome"]
    lines = [f":::{{grid-item-card}} {short_title(one.name)}", f":link: /claims/{one.name}", ":link-type: doc"]
    lines += [f":img-bottom: /claims/{one.name}.png", f":img-alt: {one.caption}", ""]
    first = one.source.split(";")[0].rstrip("]") + "]"
    return "\n".join([*lines, f"**{outcome.capitalize()}**: {first}. {escaped(one.caption)}", ":::", ""])


def short_title(name: str) -> str:
    """The title of an experiment's card: `gi-theorem-7` is Theorem 7, `bs-lemma-3-2` is Lemma 3.2."""
    words = name.partition("-")[2].replace("-", " ")
    range_of = re.fullmatch(r"(\w+s) (\d+) (\d+)", words)
    words = f"{range_of[1]} {range_of[2]} to {range_of[3]}" if range_of else re.sub(r"(\d) (?=\d)", r"\1.", words)
    return words[:1].upper() + words[1:]


def _page(one: Experiment, module: str) -> str:
    verdict = recorded()[one.name]
    readme = (ROOT / "experiments" / "papers" / "records" / one.name / "README.md").read_text("utf-8")
    numbers = "\n".join(line for line in readme.splitlines() if line.startswith("|"))
    source = Path(importlib.import_module(module).__file__ or "")
    path = source.relative_to(ROOT)
    lines = ["---", "orphan: true", "---", "", f"# {escaped(one.caption.rstrip('.'))}", ""]
    lines += [f"**Claim** ({one.subject.value}). {escaped(one.claim)} {one.source}", ""]
    lines += [f"**Verdict: {verdict['outcome']}.** {escaped(verdict['detail'])}", ""]
    lines += [f"```{{figure}} {one.name}.png", f":alt: {one.caption}", "```", "", numbers.replace("$", r"\$"), ""]
    lines += ["Compute it anew; the short form takes seconds and leaves nothing:", ""]
    lines += [
        "```sh",
        f"python -m experiments.papers {one.name} --quick",
        f"python -m experiments.papers {one.name}",
        "```",
        "",
    ]
    lines += [
        f":::{{dropdown}} The code, `{path}`",
        f"```{{literalinclude}} ../../{path}",
    ]
    lines += [":language: python", "```", ":::", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
