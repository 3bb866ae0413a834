"""Pages made from the rest of the repository: the reference, the tours, the commands, the claims, the references."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from api_pages import pages, summary_of
from claim_pages import claim_pages, copy_pictures, gallery
from docstrings import markdown
from latex_papers import links
from survey_keys import survey_keys

from ldpopt.design import METHODS, constraints, utilities
from ldpopt.design.registry import CERTIFICATE_MODULES, METHOD_MODULES, registered_types
from ldpopt.values.references import REFERENCES

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
PICTURES = (".png", ".svg")
ROOMS = (utilities, constraints)
"""The rooms of `ldpopt.design` whose kinds are listed in a table each."""


def make(app: Any = None) -> None:
    """Write every made page; files that did not change are left alone."""
    _fill(DOCS / "api", pages())
    _fill(DOCS / "tours", {path.name: path.read_text("utf-8") for path in sorted((ROOT / "notebooks").glob("*.ipynb"))})
    _fill(DOCS / "claims", claim_pages())
    copy_pictures(DOCS / "claims")
    made = {"references.md": references(), "commands.md": commands(), "claims-gallery.md": gallery()}
    made["survey-keys.md"] = survey_keys()
    made["methods.md"] = kinds_table(METHODS, papers=True)
    made["classes.md"] = classes()
    made |= {f"{room.__name__.rpartition('.')[2]}.md": kinds_table(registered_types(room).values()) for room in ROOMS}
    _fill(DOCS / "made", made | {"papers.md": links(DOCS / "made/papers")})


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


def kinds_table(listed: Iterable[Any], papers: bool = False) -> str:
    """A row for each of some kinds, or of some objects of them: what it is, and the papers of a method."""
    parts = ["| | | |", "|---|---|---|"] if papers else ["| | |", "|---|---|"]
    for one in listed:
        kind = one if isinstance(one, type) else type(one)
        row = f"| {{py:obj}}`{kind.__name__} <ldpopt.design.{kind.__name__}>` | {summary_of(kind)} |"
        parts.append(row + (f" {markdown(one.reference)} |" if papers else ""))
    return "\n".join([*parts, ""])


def classes() -> str:
    """A section for each class of problems: what its folder says, its methods and its certificates."""
    parts = []
    for folder in sorted(path.parent.name for path in (ROOT / "ldpopt" / "design").glob("*/proof.py")):
        title, _, doc = inspect.cleandoc(import_module(f"ldpopt.design.{folder}").__doc__ or "").partition("\n\n")
        parts += [f"## `{folder}`", "", f"**{title}**", "", *map(_block, doc.split("\n\n"))]
        for what, room in (("Methods", METHOD_MODULES), ("Certificates", CERTIFICATE_MODULES)):
            known = [kind for kind in registered_types(room).values() if kind.__module__.split(".")[2] == folder]
            links = ", ".join(f"{{py:obj}}`{kind.__name__} <ldpopt.design.{kind.__name__}>`" for kind in known)
            parts += [f"{what}: {links}.", ""] if known else []
    return "\n".join(parts)


def _block(text: str) -> str:
    """A paragraph as it stands, or indented formulas as text of one width."""
    return f"```text\n{inspect.cleandoc(text)}\n```\n" if text.startswith("    ") else f"{text}\n"


def commands() -> str:
    """What every command says of itself, from its own --help."""
    from typer.main import get_command

    from ldpopt.cli import app

    parts = []
    for name in _names(get_command(app)):
        parts += [f"{'###' if len(name) > 1 else '##'} `{' '.join(('ldpopt', *name))}`", "", _help(*name)]
    return "\n".join(parts)


def _names(command: Any, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of a command, and after them those of the commands of a group."""
    inner = command.list_commands(None) if hasattr(command, "list_commands") else []
    return [before, *(words for name in inner for words in _names(command.get_command(None, name), (*before, name)))]


def _help(*arguments: str) -> str:
    from typer.testing import CliRunner

    from ldpopt.cli import app

    environment = {"COLUMNS": "92", "NO_COLOR": "1", "TERM": "dumb", "TERMINAL_WIDTH": "92"}
    shown = CliRunner().invoke(app, [*arguments, "--help"], env=environment, prog_name="ldpopt").output
    text = "\n".join(line.rstrip() for line in shown.splitlines()).strip("\n")
    return f"```text\n{text}\n```\n"


def lazily(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load a page's pictures when they come into view."""
    if "body" in context:
        context["body"] = context["body"].replace("<img ", '<img loading="lazy" ')


def setup(app: Any) -> dict[str, Any]:
    """Make the pages before Sphinx looks for any."""
    (DOCS / "made").mkdir(exist_ok=True)
    app.connect("config-inited", lambda app, config: make())
    app.connect("html-page-context", lazily)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
