"""Pages made from the rest of the repository: the reference, the tours, the commands, the gallery, the references."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from api_pages import pages

from ldpopt.references import REFERENCES

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
PICTURES = (".png", ".svg")


def make(app: Any = None) -> None:
    """Write every made page; files that did not change are left alone."""
    _fill(DOCS / "api", pages())
    _fill(DOCS / "tours", {path.name: path.read_text("utf-8") for path in sorted((ROOT / "notebooks").glob("*.py"))})
    _fill(DOCS / "made", {"references.md": references(), "commands.md": commands(), "gallery.md": gallery()})


def _fill(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.is_file() and path.name not in files and path.suffix not in PICTURES:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def references() -> str:
    """Every paper, with its key and its BibTeX entry."""
    parts = []
    for key, paper in sorted(REFERENCES.items(), key=lambda item: item[0].lower()):
        parts += [
            f"(ref-{key.lower()})=",
            f"**[{key}]** {paper.authors}. *{paper.title}*. {paper.venue}, {paper.year}.",
            "",
        ]
    parts += ["## BibTeX", "", "```bibtex", *[paper.bibtex for paper in REFERENCES.values()], "```", ""]
    return "\n".join(parts)


def commands() -> str:
    """What every command says of itself, from its own --help."""
    from ldpopt.cli import app

    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    names += [group.name for group in app.registered_groups]
    parts = ["## `ldpopt`", "", _help()]
    for name in names:
        parts += [f"## `ldpopt {name}`", "", _help(name)]
    return "\n".join(parts)


def _help(*arguments: str) -> str:
    environment = os.environ | {"COLUMNS": "92", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "ldpopt", *arguments, "--help"]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    text = "\n".join(line.rstrip() for line in shown.replace("python -m ldpopt", "ldpopt").splitlines()).strip("\n")
    return f"```text\n{text}\n```\n"


def gallery() -> str:
    """The experiments with their verdicts in a table, then each with its claim, pictures and numbers."""
    rows, parts = [], []
    for readme in sorted((ROOT / "experiments").glob("*/README.md")):
        name, text = readme.parent.name, readme.read_text("utf-8")
        claim, source, verdict = (_math_free(_field(text, field)) for field in ("Claim", "Source", "Verdict"))
        claim = claim or _math_free(_lead(text))
        if not verdict:
            continue
        unbroken = name.replace("-", "\u2011")
        rows.append(f"| [{unbroken}](#{name}) | {_short(verdict)} | {source} |")
        parts += [f"### {name}", "", f"**Claim.** {claim} {source}", "", f"**Verdict{verdict}", ""]
        for picture in sorted(path for path in readme.parent.iterdir() if path.suffix in PICTURES):
            copied = f"{name}-{picture.name}"
            shutil.copyfile(picture, DOCS / "made" / copied)
            caption = re.search(rf"^!\[(.*)\]\({re.escape(picture.name)}\)$", text, re.MULTILINE)
            shown = _math_free(caption[1]) if caption else ""
            parts += [f"```{{figure}} made/{copied}", f":alt: {name}", "", shown, "```", ""]
        numbers = "\n".join(line for line in text.splitlines() if line.startswith("|"))
        if numbers and text.count("|---|") and len(re.findall(r"^\|-", text, re.MULTILINE)) == 1:
            parts += [":::{dropdown} Numbers", numbers, ":::", ""]
    if not rows:
        return "\n"
    head = [
        "## Experiments",
        "",
        "One folder of `experiments/` each, with parameters, every number and what draws the picture.",
        "",
    ]
    return "\n".join([*head, "| experiment | verdict | source |", "|---|---|---|", *rows, "", *parts])


def _lead(readme: str) -> str:
    """The first paragraph of a README: what it is about when it has no paragraph named Claim."""
    return next(part for part in readme.split("\n\n") if not part.startswith("#")).replace("\n", " ").strip()


def _short(verdict: str) -> str:
    """The verdict in a few words: what is bold, or the first clause."""
    bold = re.match(r": (.+?)\.\*\*", verdict)
    return bold[1] if bold else re.split(r"[.:;](?=\s)", verdict.removeprefix(".**").strip())[0]


def _field(readme: str, name: str) -> str:
    """The paragraph of a README that begins with the bold word `name`."""
    found = re.search(rf"^\*\*{name}((?:\.\*\*|: ).*?)(?=\n\n|\Z)", readme, re.MULTILINE | re.DOTALL)
    text = found[1].replace("\n", " ").strip() if found else ""
    return text if name == "Verdict" else text.removeprefix(".**").strip()


def _math_free(text: str) -> str:
    return text.replace("$", r"\$")


def setup(app: Any) -> dict[str, Any]:
    """Make the pages before Sphinx looks for any."""
    (DOCS / "made").mkdir(exist_ok=True)
    app.connect("config-inited", lambda app, config: make())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
