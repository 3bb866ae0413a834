"""Examples as docstrings have them -> the same with the imports that they need, so that a copy of them runs."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Mapping
from doctest import DocTestParser, Example
from types import ModuleType
from typing import Any

import ldpopt

_BLOCK = re.compile(r"(?m)^```pycon\n(.*?)^```$", re.DOTALL)


def with_imports(page: str, spaces: list[Mapping[str, Any]], homes: Mapping[int, str]) -> str:
    """A page whose examples begin with imports of what they use and no earlier one defines.

    spaces : the namespaces that say what a name is. homes : by ``id``, the module that the reference documents it in.
    """
    defined: set[str] = set()

    def completed(block: re.Match[str]) -> str:
        used, stored = names_in(DocTestParser().get_examples(block[1]))
        lines = import_lines(sorted(used - stored - defined), spaces, homes)
        defined.update(used, stored)
        return f"```pycon\n{''.join(f'>>> {line}' + chr(10) for line in lines)}{block[1]}```"

    return _BLOCK.sub(completed, page)


def names_in(examples: list[Example]) -> tuple[set[str], set[str]]:
    """(names that are read and are not Python's own, names that are defined) in some examples."""
    used: set[str] = set()
    stored: set[str] = set()
    for node in ast.walk(ast.parse("".join(one.source for one in examples))):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                stored.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                stored |= {(one.asname or one.name).split(".")[0] for one in names}
    return {name for name in used if not hasattr(builtins, name)}, stored


@functools.cache
def _exported() -> frozenset[str]:
    return frozenset(ldpopt.__all__)


def import_lines(names: list[str], spaces: list[Mapping[str, Any]], homes: Mapping[int, str]) -> list[str]:
    """The statements that import what `names` are in the first of `spaces` that has them; other names are left out."""
    modules, parts, exported = [], dict[str, list[str]](), _exported()
    for name in names:
        space = next((one for one in spaces if name in one), None)
        if space is None:
            continue
        value = space[name]
        if isinstance(value, ModuleType):
            parent, _, last = value.__name__.rpartition(".")
            if last == name and parent:
                parts.setdefault(parent, []).append(name)
            else:
                modules.append(f"import {value.__name__}" + ("" if name == value.__name__ else f" as {name}"))
        elif name in exported and getattr(ldpopt, name) is value:
            parts.setdefault("ldpopt", []).append(name)
        else:
            home = homes.get(id(value)) or getattr(value, "__module__", None) or str(space["__name__"])
            parts.setdefault(home, []).append(name)
    return [*modules, *(f"from {module} import {', '.join(found)}" for module, found in sorted(parts.items()))]
