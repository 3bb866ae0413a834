"""The kit's files, read once and served from memory. A request's path is looked up in a table, never on the disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ldpopt import strictjson
from ldpopt.errors import Phrase, invalid

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".ts": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
LARGEST = 1 << 25
"""The most bytes in all files of a kit together."""


@dataclass(frozen=True)
class StaticFile:
    """A file's bytes, their type, and a tag that changes when the bytes change."""

    content: bytes
    type: str
    tag: str


def static_files(folder: Path, plan: str = "") -> dict[str, StaticFile]:
    """The files of a folder by the paths at which they are served. ``index.html`` is also served at the folder's path.

    plan : the checksum of the collected plan; a ``plan.json`` in the folder must have this checksum.

    `InvalidInput` for a folder without ``index.html``, links, files of other kinds than `TYPES`, names that a path in a
    URL would have to escape, and more than `LARGEST` bytes. Hidden files are left out.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "index.html").write_text("<!doctype html>")
    ...     {path: file.type for path, file in static_files(Path(folder)).items()}
    {'/index.html': 'text/html; charset=utf-8', '/': 'text/html; charset=utf-8'}
    """
    if not (folder / "index.html").is_file():
        raise invalid("kit", "a folder with index.html", str(folder))
    found: dict[str, StaticFile] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise invalid("kit", "ordinary files and folders", Phrase("something else"), str(path))
        if path.is_dir():
            continue
        if path.suffix not in TYPES:
            raise invalid("kit", f"files named {', '.join('*' + one for one in TYPES)}", path.name, str(folder))
        if not all(part.isascii() and part.replace("-", "").replace("_", "").replace(".", "").isalnum()
                   for part in inside.parts):  # fmt: skip
            raise invalid("kit", "names of letters, digits, '-', '_' and '.'", path.name, str(folder))
        content = path.read_bytes()
        found["/" + inside.as_posix()] = StaticFile(
            content, TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        )
        if sum(len(one.content) for one in found.values()) > LARGEST:
            raise invalid("kit", f"at most {LARGEST >> 20} MB in all", Phrase("more"), str(folder))
    for address, file in list(found.items()):
        if address.endswith("/index.html"):
            found[address.removesuffix("index.html")] = file
    if plan and "/plan.json" in found:
        kept = strictjson.loads(found["/plan.json"].content, str(folder / "plan.json"))
        if not isinstance(kept, dict) or kept.get("checksum") != plan:
            raise invalid("kit", "one that was made from this plan", Phrase("another plan's"), str(folder))
    return found
