"""Dead links of a built site: ``python docs/_ext/dead_links.py FOLDER`` lists them; exit code 1 if there are any.

Every address that a page names is looked up in the folder: the file, and the place in it. Addresses on other machines
are not asked; they are only refused where they are not https.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The addresses that a page names, and the places in it that an address can name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value)
            if name in ("href", "src") and tag != "base":
                self.addresses.append(value)


def dead_links(site: Path) -> tuple[int, list[str]]:
    """How many links the pages below `site` have, and a line for each that leads nowhere."""
    site = site.resolve()
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        for address in page.addresses:
            wrong = _wrong(address, path, site, pages)
            if wrong:
                dead.append(f"{path.relative_to(site)}: {address}: {wrong}")
    return sum(len(page.addresses) for page in pages.values()), dead


def _wrong(address: str, path: Path, site: Path, pages: dict[Path, _Page]) -> str | None:
    """Why a link leads nowhere, None if it does lead somewhere."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None if parts.scheme in ("https", "mailto", "data") else "not https"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site) or not target.is_file():
        return "no such page"
    place = unquote(parts.fragment)
    if place and target in pages and place not in pages[target].places:
        return "no such place on the page"
    return None


def main() -> int:
    """List the dead links of the folder that is named on the command line."""
    if len(sys.argv) != 2 or not Path(sys.argv[1], "index.html").is_file():
        print(f"usage: {sys.argv[0]} FOLDER, with an index.html in it", file=sys.stderr)
        return 2
    count, dead = dead_links(Path(sys.argv[1]))
    print(*dead, f"{count} links, {len(dead)} dead", sep="\n")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
