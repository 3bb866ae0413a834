"""Docstrings as Markdown: examples become code, lists of ``name : meaning`` become lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from formulas import formulas

_HEADINGS = {"Attributes", "Examples", "Notes", "Parameters", "Raises", "Returns", "Yields"}
_ITEM = re.compile(r"^(?P<names>\*{0,2}[A-Za-z_]\w*(?:, \*{0,2}[A-Za-z_]\w*)*) : ")
_INLINE_ITEM = re.compile(r"(?<=\. )(?P<names>[a-z_]\w*(?:, [a-z_]\w*)*) : ")
_CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)


def markdown(doc: str) -> str:
    """The docstring `doc`, dedented, as Markdown."""
    parts = [_section(heading, lines) for heading, lines in _sections(doc)]
    return "\n\n".join(part for part in parts if part)


def _sections(doc: str) -> Iterator[tuple[str, list[str]]]:
    """The lines of a docstring under each of its underlined headings; those before the first have the heading ""."""
    heading, body = "", list[str]()
    for line in doc.splitlines():
        if re.fullmatch(r"-{3,}", line.strip()) and body and body[-1] in _HEADINGS:
            following = body.pop()
            yield heading, body
            heading, body = following, []
        else:
            body.append(line)
    yield heading, body


def _section(heading: str, lines: list[str]) -> str:
    if heading not in ("Returns", "Yields", "Raises"):
        return _paragraphs(lines)
    end = next((number for number, line in enumerate(lines) if line.startswith(">>> ")), len(lines))
    entries = re.split(r"\n(?=\S)", "\n".join(lines[:end]).strip())
    items = [
        f"- `{kind}`: {prose(' '.join(text.split()))}" for kind, _, text in (entry.partition("\n") for entry in entries)
    ]
    return "\n\n".join(part for part in (f"**{heading}**", "\n".join(items), _paragraphs(lines[end:])) if part)


def _paragraphs(lines: list[str]) -> str:
    """The paragraphs, lists and examples of some lines, as Markdown."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        # An example or a list of names begins a block even without a blank line before it.
        begins = line.startswith(">>> ") and blocks[-1] and not blocks[-1][0].startswith(">>> ")
        begins = begins or bool(_ITEM.match(line) and blocks[-1] and not _ITEM.match(blocks[-1][0]))
        # After a list of names, a sentence at the margin is about all of them.
        ended = blocks[-1] and _ITEM.match(blocks[-1][0]) and blocks[-1][-1].endswith(".")
        begins = begins or bool(ended and re.match(r"[A-Z]\w*\b", line) and not _ITEM.match(line))
        if not line.strip() or begins:
            blocks.append([])
        if line.strip():
            blocks[-1].append(line)
    return "\n\n".join(_block(block) for block in blocks if block)


def _block(lines: list[str]) -> str:
    if lines[0].startswith(">>> "):
        return "\n".join(["```pycon", *lines, "```"])
    if _ITEM.match(lines[0]):
        return _items(lines)
    if all(line.startswith("    ") for line in lines):
        return "\n".join(["```text", *(line[4:] for line in lines), "```"])
    return prose("\n".join(lines))


def _items(lines: list[str]) -> str:
    items: list[str] = []
    for line in lines:
        if _ITEM.match(line):
            items.append(line)
        elif line.startswith(" ") or not items:
            items.append(line.strip()) if not items else items.__setitem__(-1, f"{items[-1]} {line.strip()}")
        else:
            items[-1] += f" {line}"
    parts = [part for item in items for part in _INLINE_ITEM.sub(lambda m: f"\n{m['names']} : ", item).split("\n")]
    made = []
    for part in parts:
        names, meaning = part.split(" : ", 1)
        shown = ", ".join(f"`{name}`" for name in names.split(", "))
        made.append(f"- {shown}: {prose(meaning.strip())}")
    return "\n".join(made)


def prose(text: str) -> str:
    """Prose of a docstring: its formulas as LaTeX, and the rest escaped."""
    parts = _CODE.split(text)
    for at in range(0, len(parts), 2):
        pieces = formulas(parts[at])
        parts[at] = "".join(f"${piece}$" if is_formula else escaped(piece) for piece, is_formula in pieces)
    return "".join(parts)


def escaped(text: str) -> str:
    """Prose with the characters escaped that Markdown would take for its own, outside code."""
    parts = _CODE.split(text)
    for at in range(0, len(parts), 2):
        parts[at] = re.sub(r"([*<$~{}#|])", r"\\\1", parts[at])
        parts[at] = re.sub(r"(?m)^([-+=]|\d+\.)(?= )", r"\\\1", parts[at])
    return "".join(parts)
