"""Text of JSON or TOML -> its value: no duplicate keys, no NaN, bounded depth; `InvalidInput` for everything else."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files.escapes import for_json

__all__ = ["MAX_BYTES", "MAX_DEPTH", "json_text", "json_value", "shipped", "toml_value"]

MAX_BYTES = 1 << 20
"""The most characters of a text in TOML. Texts that people write by hand have a few thousand."""

MAX_DEPTH = 32
"""The most parts of a dotted key. The parser's memory grows with the square of their number."""

# Strings and comments, found from left to right as the parser finds them; the text between them holds the keys. A
# string that is not closed ends the parsing, so nothing behind it matters. Matching takes linear time. No group is
# repeated possessively: with `*+` it ends too soon or too late up to Python 3.11.4.
_QUOTED = re.compile(
    r'"""[^\\"]*+(?:(?:\\.|"(?!""))[^\\"]*+)*(?:"{3,5}|\\?\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*(?:"|(?=\n)|\\?\Z)'
    r"|'[^'\n]*+(?:'|(?=\n)|\Z)"
    r"|\#[^\n]*+",
    re.DOTALL,
)
_KEY = re.compile(rf"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++(?:[ \t]*+\.[ \t]*+[A-Za-z0-9_-]++){{{MAX_DEPTH}}}")


def _decoded(text: str | bytes, name: str) -> str:
    try:
        return text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise invalid(name, "UTF-8 text", Phrase(f"byte {error.start} that is not")) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        repeated_name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise invalid("JSON object", "distinct keys", Phrase(f"{repeated_name!r} twice"))
    return content


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise invalid("JSON number", "a finite double", text)
    return value


def json_value(text: str | bytes, name: str = "JSON") -> Any:
    """Parse `text`; any error is an `InvalidInput` that names `name`."""
    text = _decoded(text, name)
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_finite, parse_float=_finite)
    except InvalidInput:
        raise
    except RecursionError:
        raise invalid(name, "JSON of moderate depth", Phrase("deeply nested brackets")) from None
    except json.JSONDecodeError as error:
        raise invalid(name, "valid JSON", Phrase("a mistake"), f"line {error.lineno}, column {error.colno}") from None
    except ValueError:  # Python's limit
        raise invalid(name, "valid JSON", Phrase("a number of too many digits")) from None


@cache
def shipped(package: str, place: str) -> Mapping[str, Any]:
    """Load the JSON object in a file of the package, such as the sentences of a language."""
    return MappingProxyType(json_value(files(package).joinpath(place).read_bytes(), place))


def json_text(value: Any) -> str:
    """Format readable JSON that preserves floats exactly."""
    # `ValueError` for numbers that are not finite.
    return for_json(json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False)) + "\n"


def toml_value(text: str | bytes, name: str = "TOML") -> dict[str, Any]:
    """Parse `text`; any error is an `InvalidInput` that names `name`."""
    if len(text) > MAX_BYTES:
        raise invalid(name, f"at most {MAX_BYTES} characters", Phrase(f"{len(text)}"))
    text = _decoded(text, name)
    # A comment is nothing; a string may be a part of a key, so a name stands for it.
    if _KEY.search(_QUOTED.sub(lambda hit: "" if hit[0].startswith("#") else "s", text)):
        raise invalid(name, f"keys of at most {MAX_DEPTH} parts", Phrase("a longer one"))
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise invalid(name, "TOML of moderate depth", Phrase("deeply nested brackets")) from None
    except ValueError as error:
        raise invalid(name, "valid TOML", Phrase(str(error))) from None
