"""TOML read strictly: of moderate size and depth, in linear time. Everything else raises `InvalidInput`."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from ldpopt.errors import Phrase, invalid

MAX_BYTES = 1 << 20
"""The most characters of a text. Texts that people write by hand have a few thousand."""

MAX_DEPTH = 32
"""The most parts of a dotted key. The parser's memory grows with the square of their number."""

# Strings and comments, found from left to right as the parser finds them; the text between them holds the keys. A
# string that is not closed ends the parsing, so nothing behind it matters. Matching takes linear time.
_QUOTED = re.compile(
    r'"""(?:[^\\"]|\\.|"(?!""))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+(?:"|(?=\n)|\Z)'
    r"|'[^'\n]*+(?:'|(?=\n)|\Z)"
    r"|\#[^\n]*+",
    re.DOTALL,
)
_KEY = re.compile(rf"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++(?:[ \t]*+\.[ \t]*+[A-Za-z0-9_-]++){{{MAX_DEPTH}}}")


def loads(text: str | bytes, what: str = "TOML") -> dict[str, Any]:
    """Parse `text`; anything wrong with it is an `InvalidInput` that names `what`."""
    if len(text) > MAX_BYTES:
        raise invalid(what, f"at most {MAX_BYTES} characters", Phrase(f"{len(text)}"))
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid(what, "UTF-8 text", Phrase(f"byte {error.start} that is not")) from None
    # A comment is nothing; a string may be a part of a key, so a name stands for it.
    if _KEY.search(_QUOTED.sub(lambda hit: "" if hit[0].startswith("#") else "s", text)):
        raise invalid(what, f"keys of at most {MAX_DEPTH} parts", Phrase("a longer one"))
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise invalid(what, "TOML of moderate depth", Phrase("deeply nested brackets")) from None
    except ValueError as error:
        raise invalid(what, "valid TOML", Phrase(str(error))) from None
