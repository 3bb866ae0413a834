"""JSON read strictly: no duplicate keys, no NaN, bounded nesting. Everything else raises `InvalidInput`."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.escapes import for_json


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise invalid("JSON object", "distinct keys", Phrase(f"{twice!r} twice"))
    return content


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise invalid("JSON number", "a finite double", text)
    return value


def loads(text: str | bytes, what: str = "JSON") -> Any:
    """Parse `text`; anything wrong with it is an `InvalidInput` that names `what`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, object_pairs_hook=_object, parse_constant=_finite, parse_float=_finite)
    except InvalidInput:
        raise
    except RecursionError:
        raise invalid(what, "JSON of moderate depth", Phrase("deeply nested brackets")) from None
    except UnicodeDecodeError as error:
        raise invalid(what, "UTF-8 text", Phrase(f"byte {error.start} that is not")) from None
    except json.JSONDecodeError as error:
        raise invalid(what, "valid JSON", Phrase("a mistake"), f"line {error.lineno}, column {error.colno}") from None
    except ValueError:  # Python's limit
        raise invalid(what, "valid JSON", Phrase("a number of too many digits")) from None


def dumps(value: Any) -> str:
    """Readable JSON, from which floats are read back exactly. Raises `ValueError` for numbers that are not finite."""
    return for_json(json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False)) + "\n"
