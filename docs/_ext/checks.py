"""What a function or a class refuses, read from its code: the checks that end in `InvalidInput`."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import sys
import textwrap
from typing import Any

VALIDATORS = {
    "as_channel": "a `Channel` or a row-stochastic matrix (k, m)",
    "unit_interval": "a number in [0, 1]",
    "positive_epsilon": "a positive number, in nats",
    "distribution": "a probability vector",
    "positive_integer": "an integer of at least {minimum}",
    "at_least_two": "an integer of at least 2",
    "nonnegative": "a number of at least 0",
    "number": "a number",
    "positive": "a positive number",
    "finite_array": "an array of finite numbers",
}
"""Checks that many functions share, by name: what they expect of the argument that they are given first."""


def refusals(value: Any) -> list[str]:
    """What must hold of the arguments of a function, or of the fields of a class, as Markdown, in order of the code."""
    made = [f"`{name}`: {VALIDATORS[check.__name__].format(minimum=1)}" for name, check in _declared(value).items()]
    names = set(inspect.signature(value).parameters)
    known = vars(sys.modules[value.__module__])
    for call in itertools.chain(*map(_calls, _checking(value))):
        found = _refusal(call, names, known)
        if found and found not in made:
            made.append(found)
    return made


def _declared(value: Any) -> dict[str, Any]:
    """The shared checks that a class declares for its fields."""
    readers = getattr(value, "_readers", {}) if inspect.isclass(value) else {}
    named = {name: readers[name] for name in inspect.signature(value).parameters if name in readers} if readers else {}
    return {name: read for name, read in named.items() if getattr(read, "__name__", "") in VALIDATORS}


def _checking(value: Any) -> list[Any]:
    """The functions in which the arguments are checked."""
    if inspect.isclass(value):
        checks = [vars(base)["__post_init__"] for base in value.__mro__ if "__post_init__" in vars(base)]
        return [check for check in checks if check.__module__.startswith(("ldpopt", "experiments."))]
    return [inspect.unwrap(value)]


@functools.cache
def _calls(function: Any) -> list[ast.Call]:
    """The calls by name in a function, read once for all classes that inherit it."""
    try:
        code = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):
        return []
    return [call for call in ast.walk(code) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)]


def _refusal(call: ast.Call, names: set[str], known: dict[str, Any]) -> str | None:
    name = call.func.id  # type: ignore[attr-defined]
    if name == "invalid" and len(call.args) >= 2:
        what, expected = _text(call.args[0], names, known), _text(call.args[1], names, known)
        # "k = `k`" says nothing before k is known.
        expected = re.sub(r" = (`\w+`|…)", "", expected or "")
        return f"{_subject(what)}: {expected}".removeprefix("`what`: ") if what and expected else None
    if name in VALIDATORS and call.args:
        given = call.args[0]
        subject = given.attr if isinstance(given, ast.Attribute) else given.id if isinstance(given, ast.Name) else None
        if subject not in names:
            return None
        third = call.args[2] if len(call.args) > 2 else None
        own = _text(third, names, known) if name == "number" and third is not None else None
        lowest = next((word.value for word in call.keywords if word.arg == "minimum"), third)
        minimum = _text(lowest, names, known) or "1"
        return f"`{subject}`: {own or VALIDATORS[name].format(minimum=minimum)}"
    return None


def _subject(what: str) -> str:
    """The checked thing, as code when it is a name."""
    return f"`{what}`" if re.fullmatch(r"[A-Za-z_]\w*", what) else what


def _text(node: ast.expr | None, names: set[str], known: dict[str, Any]) -> str | None:
    """The words of a string; what an f-string fills in is shown as a reader of the page can understand it."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [
            str(part.value) if isinstance(part, ast.Constant) else _filled(part.value, names, known)  # type: ignore[attr-defined]
            for part in node.values
        ]
        return "".join(parts)
    return None


def _filled(expression: ast.expr, names: set[str], known: dict[str, Any]) -> str:
    """A parameter or its length by name, a constant of the module by its value, anything else as dots."""
    text = ast.unparse(expression).removeprefix("self.")
    if text in names or (re.fullmatch(r"len\((\w+)\)", text) and text[4:-1] in names):
        return f"`{text}`"
    joined = re.fullmatch(r"', '\.join\((?:sorted\()?(\w+)\)?\)", text)
    value = known.get(joined[1] if joined else text)
    if joined and value is not None and len(value) <= 15:
        return ", ".join(map(str, value))
    return f"{value:,}".replace(",", " ") if isinstance(value, int | float) else "…"
