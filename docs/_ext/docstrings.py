"""Docstrings as Markdown: examples become code, lists of ``name : meaning`` become lists."""

from __future__ import annotations

import re

from formulas import formulas

_ITEM = re.compile(r"^(?P<names>\*{0,2}[A-Za-z_]\w*(?:, \*{0,2}[A-Za-z_]\w*)*) : ")
_INLINE_ITEM = re.compile(r"(?<=\. )(?P<names>[a-z_]\w*(?:, [a-z_]\w*)*) : ")
_CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
_BULLET = re.compile(r"^(?:-|\d+\.) ")
_NAMED = re.compile(r"(?P<names>`?\*{0,2}[A-Za-z_]\w*`?(?:, `?\*{0,2}[A-Za-z_]\w*`?)*) : ")
_TYPE = re.compile(r"^[A-Za-z_][\w.]*(?:\[.*\])?(?:(?: of| or| :|,) [\w.,\[\] ()]+)*$")
RESULTS = ("Returns", "Yields", "Raises")
"""Sections whose entries are types."""
SECTIONS = (*RESULTS, "Parameters", "Attributes", "Notes", "Examples")
_BUILTIN_TYPES = {"bool", "float", "int", "str"}


def markdown(doc: str) -> str:
    """Return the docstring `doc`, dedented, as Markdown."""
    return "\n\n".join(_block(block) for block in _blocks(doc.splitlines()) if block)


def _blocks(lines: list[str]) -> list[list[str]]:
    """Split into paragraphs, examples, lists and sections; a section of results or errors begins with its heading."""
    blocks: list[list[str]] = [[]]
    for at, line in enumerate(lines):
        if re.fullmatch(r"-{3,}", line.strip()):
            continue
        if at + 1 < len(lines) and line in SECTIONS and re.fullmatch(r"-{3,}", lines[at + 1].strip()):
            blocks.append([line] if line in RESULTS else [])
            continue
        # An example or a list of names begins a block even without a blank line before it.
        begins = line.startswith(">>> ") and blocks[-1] and not blocks[-1][0].startswith(">>> ")
        begins = begins or bool(_ITEM.match(line) and blocks[-1] and not _ITEM.match(blocks[-1][0]))
        # So does a list after a colon, and a paragraph after a list.
        is_listed = bool(blocks[-1] and _BULLET.match(blocks[-1][0]))
        begins = begins or bool(_BULLET.match(line) and blocks[-1] and not is_listed and blocks[-1][-1].endswith(":"))
        begins = begins or bool(is_listed and line.strip() and not line.startswith(" ") and not _BULLET.match(line))
        # After a list of names, a sentence at the margin is about all of them.
        ended = blocks[-1] and _ITEM.match(blocks[-1][0]) and blocks[-1][-1].endswith(".")
        begins = begins or bool(ended and re.match(r"[A-Z]\w*\b", line) and not _ITEM.match(line))
        if not line.strip() or begins:
            blocks.append([])
        if line.strip():
            blocks[-1].append(line)
    return blocks


def _block(lines: list[str]) -> str:
    if lines[0].startswith(">>> "):
        return "\n".join(["```pycon", *lines, "```"])
    if lines[0] in RESULTS and all(line.startswith(" ") or _TYPE.match(line) for line in lines[1:]):
        return _results(*lines)
    if _ITEM.match(lines[0]):
        return _items(lines)
    if _BULLET.match(lines[0]):
        return _bullets(lines)
    if all(line.startswith("    ") for line in lines):
        return "\n".join(["```text", *(line[4:] for line in lines), "```"])
    return prose("\n".join(lines))


def _results(heading: str, *lines: str) -> str:
    """Format the types of a section of results or errors, each with its meaning."""
    entries: list[list[str]] = []
    for line in lines:
        if line.startswith(" "):
            entries[-1].append(line.strip())
        else:
            entries.append([line])
    shown = []
    for kind, *meaning in entries:
        name, _, named_type = kind.partition(" : ")
        title = f"`{name}` ({prose(named_type)})" if named_type else f"`{name}`"
        shown.append(f"{title}: {prose(' '.join(meaning))}" if meaning else title)
    if len(shown) == 1:
        return f"**{heading}** {shown[0]}"
    return "\n".join([f"**{heading}**", "", *(f"- {entry}" for entry in shown)])


def _bullets(lines: list[str]) -> str:
    """Format a list; an item of the form "`name` : meaning" is written like that of a list of names."""
    items: list[str] = []
    for line in lines:
        if _BULLET.match(line) or not items:
            items.append(line)
        else:
            items[-1] += f" {line.strip()}"
    shown = []
    for item in items:
        mark, text = item.split(" ", 1)
        named = _NAMED.match(text)
        if named:
            names = ", ".join(f"`{name}`" for name in re.findall(r"\*{0,2}\w+", named["names"]))
            shown.append(f"{mark} {names}: {prose(text[named.end() :])}")
        else:
            shown.append(f"{mark} {prose(text)}")
    return "\n".join(shown)


def _items(lines: list[str]) -> str:
    items: list[str] = []
    for line in lines:
        if _ITEM.match(line):
            items.append(line)
        elif items and line[:1] == " " and re.match(r" +[A-Z]", line) and re.fullmatch(r".* : [^.`]{1,40}", items[-1]):
            items[-1] = _with_type(items[-1], line.strip())
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


def _with_type(item: str, meaning: str) -> str:
    """Join "name : type" with the meaning on the next line; a built-in type is known from the signature."""
    names, shown = item.split(" : ", 1)
    return f"{names} : {meaning}" if shown in _BUILTIN_TYPES else f"{names} : {shown}. {meaning}"


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
