"""The API reference: a page for each public module, function and class, made from their docstrings."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from checks import refusals
from docstrings import escaped, markdown
from example_imports import with_imports
from public_names import Public, home, is_class, offered, public_modules, registry

import ldpopt

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_BASES = {"Protocol", "Generic", "ABC", "object"}


IN_NATS = {"epsilon", "epsilons", "rho", "xi", "mu", "restricted_kl"}
"""Parameters that are measured in nats."""

ROLES = {
    "utilities": "Utilities: what a channel should keep",
    "criteria": "Utilities: what a channel should keep",
    "constraints": "Constraints: what it must not reveal",
    "methods": "Methods: how a channel is found",
    "certificates": "Certificates: how its optimality is proved",
}
"""The heading under which a module's page lists a class, by the room that the class is in."""

UNITS = (
    "On this page $\\varepsilon$, $\\rho$, $\\xi$, divergences and information are in nats; $\\delta$, $\\eta$ and "
    "other probabilities are plain numbers."
)


class _Raw:
    """A piece of a signature that is shown as it stands."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


@functools.cache
def pages() -> dict[str, str]:
    """The Markdown of every page of the reference, by file name."""
    names = registry()
    modules = public_modules()
    made = {f"{module}.md": _module_page(module, names) for module in modules}
    made |= {f"{page_name(entry)}.md": _name_page(entry) for entry in names.values() if has_page(entry)}
    made["index.md"] = _index(modules, names)
    return made


def _index(modules: list[str], names: dict[str, Public]) -> str:
    shortcuts = []
    for name in sorted(ldpopt.__all__, key=str.lower):
        full = home(getattr(ldpopt, name), names)
        shortcuts.append(f"| `ldpopt.{name}` | {{py:obj}}`{full}` | {summary_of(getattr(ldpopt, name))} |")
    rows = [
        f"| [`{module}`]({module}.md) | {summary_of(importlib.import_module(module))} |" for module in modules
    ]  # fmt: skip
    return "\n".join(
        [
            "# API reference",
            "",
            "Every public name, from its docstring. Quantities of information and privacy are in nats; channels are",
            "matrices with a row for each answer and a column for each report; whatever is wrong with an argument is",
            "{py:obj}`ldpopt.errors.InvalidInput`, which says what was expected, what was found, and where.",
            "Sources are cited as [GI, Thm 5]; the keys are on the page of [references](../reference/bibliography.md).",
            "",
            "## Modules",
            "",
            "| module | what it holds |",
            "|---|---|",
            *rows,
            "",
            "## Shortcuts",
            "",
            "What is used most can be imported from `ldpopt` itself.",
            "",
            "| shortcut | documented as | |",
            "|---|---|---|",
            *shortcuts,
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *[f"{module} <{module}>" for module in modules],
            "```",
            "",
        ]
    )


def _module_page(module: str, names: dict[str, Public]) -> str:
    """What a module offers, sorted by what it is for, with a link to the page of each."""
    found = importlib.import_module(module)
    own = [names[f"{module}.{name}"] for name in offered(module) if f"{module}.{name}" in names]
    others = [(name, home(getattr(found, name), names)) for name in offered(module) if f"{module}.{name}" not in names]
    lines = [f"# `{module}`", "", f"```{{py:module}} {module}", "```", "", markdown(inspect.getdoc(found) or ""), ""]
    if any(IN_NATS & parameters(entry.value) for entry in own):
        lines += [UNITS, ""]
    paged = [entry for entry in own if has_page(entry)]
    for title, entries in _by_role(paged).items():
        lines += [f"## {title}", "", "| | |", "|---|---|"]
        lines += [f"| {{py:obj}}`{entry.name} <{entry.full}>` | {summary_of(entry.value)} |" for entry in entries]
        lines += [""]
    elsewhere = [f"{{py:obj}}`{name} <{full}>`" for name, full in others if full]
    inner = [f"[`{module}.{name}`]({module}.{name}.md)" for name, full in others if not full]
    if elsewhere:
        lines += [f"Also offered here: {', '.join(elsewhere)}.", ""]
    if inner:
        lines += [f"Modules: {', '.join(inner)}.", ""]
    constants = [entry for entry in own if not has_page(entry)]
    if constants:
        lines += ["## Constants", "", *[_entry(entry) for entry in constants]]
    return "\n".join(lines)


def has_page(entry: Public) -> bool:
    """Whether a public name has a page of its own: functions and classes have, constants stand on their module's."""
    return inspect.isroutine(entry.value) or is_class(entry.value)


def page_name(entry: Public) -> str:
    """The name of its page, without a suffix; classes are marked, as files may differ in more than capitals only."""
    return f"{entry.full}-class" if is_class(entry.value) else entry.full


def _name_page(entry: Public) -> str:
    # Not in the navigation, which every page carries: four hundred names would make each page ten times as long.
    lines = [
        "---",
        "orphan: true",
        "---",
        "",
        f"# `{entry.name}`",
        "",
        f"In [`{entry.module}`]({entry.module}.md).",
        "",
    ]
    if IN_NATS & parameters(entry.value):
        lines += [UNITS, ""]
    page = "\n".join([*lines, *_source(entry.value), _entry(entry)])
    return with_imports(page, _spaces(entry.value), documented_in())


def _spaces(value: Any) -> list[dict[str, Any]]:
    """The namespaces of the modules in which a function, or a class with its members, is written."""
    members = [getattr(one, "__func__", one) for _, one in _members(value)] if is_class(value) else []
    bases = value.__mro__ if is_class(value) else [inspect.unwrap(value)]
    modules = dict.fromkeys(one.__module__ for one in [*bases, *members] if hasattr(one, "__module__"))
    return [vars(sys.modules[module]) for module in modules]


@functools.cache
def documented_in() -> dict[int, str]:
    """By ``id``, the module that documents a public object."""
    return {id(entry.value): entry.module for entry in registry().values() if has_page(entry)}


def _source(value: Any) -> list[str]:
    """The file that a name is written in, with a link to it where the address of the project is known."""
    written = inspect.unwrap(value) if inspect.isroutine(value) else value
    file = inspect.getsourcefile(written)
    if not file:
        return []
    installed = Path(ldpopt.__file__).parents[1]  # the package may be installed elsewhere than the experiments
    base = installed if installed in Path(file).parents else Path(__file__).resolve().parents[2]
    path = Path(file).relative_to(base).as_posix()
    build = _build()
    # To find the line is to read the whole file.
    address = build.file_address(path, inspect.findsource(written)[1] + 1) if build and repository() else None
    return [f"Source: [`{path}`]({address})" if address else f"Source: `{path}`", ""]


@functools.cache
def _build() -> Any:
    """What builds the package, and knows its addresses; None away from the source."""
    spec = importlib.util.spec_from_file_location("hatch_build", Path(__file__).parents[2] / "hatch_build.py")
    if spec is None or spec.loader is None or not Path(str(spec.origin)).is_file():
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def repository() -> str | None:
    """The address of the repository, where it is known."""
    build = _build()
    return build.project_urls().get("Source") if build else None


def _by_role(entries: list[Public]) -> dict[str, list[Public]]:
    """Functions first, then classes by their room; those of no room that has a heading come last."""
    roles: dict[str, list[Public]] = {title: [] for title in ("Functions", *ROLES.values(), "Classes")}
    for entry in entries:
        rooms = (room for room in entry.value.__module__.split(".") if room in ROLES)
        roles["Functions" if inspect.isroutine(entry.value) else ROLES.get(next(rooms, ""), "Classes")].append(entry)
    return {title: found for title, found in roles.items() if found}


def parameters(value: Any) -> set[str]:
    """The names of the parameters of a function or a class."""
    try:
        return set(inspect.signature(value).parameters) if callable(value) else set()
    except ValueError:
        return set()


def summary_of(value: Any) -> str:
    """The first paragraph of what a value says of itself, in one line of a table."""
    doc = _doc(value)
    first = markdown(doc.split("\n\n")[0]).replace("\n", " ")
    return first.replace("|", r"\|").replace(r"\\|", r"\|") if doc else ""


def _doc(value: Any) -> str:
    """The docstring of a module, class or function; what a constant says of itself."""
    if inspect.ismodule(value) or is_class(value) or inspect.isroutine(value) or isinstance(value, property):
        return inspect.getdoc(value) or ""
    return ""


def _entry(entry: Public) -> str:
    if is_class(entry.value):
        return _class(entry)
    if inspect.isroutine(entry.value):
        body = _described(_doc(entry.value), entry.value)
        return _directive("function", entry.name + _signature(entry.value), entry.module, body, 5)
    return _directive("data", entry.name, entry.module, f"`{_constant(entry.value)}`", 5)


def _constant(value: Any) -> str:
    text = _ADDRESS.sub("", repr(value)).replace("\n", " ")
    if len(text) <= 120:
        return text
    return f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else f"{text[:110]} ..."


def _described(doc: str, value: Any) -> str:
    """The docstring as Markdown under the headings of the field: parameters with types, what is raised, examples."""
    body, found = _with_types(_linked(markdown(doc)), value), refusals(value)
    body = _headed(body, None if inspect.isroutine(value) else parameters(value))
    raises = ""
    if found:
        listed = "\n".join(f"- {escaped(line)}" for line in found)
        error = "{py:obj}`InvalidInput <ldpopt.errors.InvalidInput>`"
        condition = f"{error} is also raised" if "**Raises**" in body else f"**Raises** {error}"
        raises = f"{condition} unless these hold:\n\n{listed}\n\n"
    at = body.find("```pycon")
    return f"{body}\n\n{raises}" if at < 0 else f"{body[:at]}{raises}**Examples**\n\n{body[at:]}"


def _linked(body: str) -> str:
    """The Markdown of a docstring with links for the classes that it returns and raises."""
    before, _, sections = body.partition("\n**R")
    by_name = _classes()
    links = re.sub(
        r"(?m)^(- |.*\*\* )`(\w+)`(?=: |$)",
        lambda item: f"{item[1]}{{py:obj}}`{item[2]} <{by_name[item[2]]}>`" if item[2] in by_name else item[0],
        sections,
    )
    return f"{before}\n**R{links}" if sections else body


_LISTED = re.compile(r"(?m)^- (`\w+`(?:, `\w+`)*): ")
_FIRST_LISTED = re.compile(r"(?m)^(?=- `\*{0,2}(\w+)`(?:, `\*{0,2}\w+`)*(?: \([^\n]*?\))?: )")


def _headed(body: str, names: set[str] | None) -> str:
    """Put a heading above the first list of names: attributes if a class has no such parameter, else parameters."""
    return _FIRST_LISTED.sub(
        lambda item: "**Attributes**\n\n" if names is not None and item[1] not in names else "**Parameters**\n\n",
        body, count=1,
    )  # fmt: skip


def _with_types(body: str, value: Any) -> str:
    """The list of parameters with the type of each, linked where it has a page."""
    try:
        annotated = {name.lstrip("*"): one.annotation for name, one in inspect.signature(value).parameters.items()}
    except (TypeError, ValueError):
        return body

    def typed(item: re.Match[str]) -> str:
        types = dict.fromkeys(str(annotated.get(name, "")) for name in re.findall(r"\w+", item[1]))
        if "Any" in types or not all(types) or any("inspect._empty" in text for text in types):
            return item[0]
        shown = [_type(text) for text in types]
        return f"- {item[1]} ({', '.join(shown)}): " if shown else item[0]

    return _LISTED.sub(typed, body)


@functools.cache
def _classes() -> dict[str, str]:
    """By its short name, the full name of every public class."""
    return {entry.name: entry.full for entry in registry().values() if is_class(entry.value)}


def _type(annotation: str) -> str:
    """A type in words: its names are links where they have pages."""
    text = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", annotation).replace(" | None", " or none")
    by_name = _classes()
    known = [name for name in re.findall(r"\w+", text) if name in by_name]
    if len(known) == 1 and re.fullmatch(r"\w+(?: or none)?", text):
        return f"{{py:obj}}`~{by_name[known[0]]}`" + text.removeprefix(known[0])
    return f"`{text}`"


def _class(entry: Public) -> str:
    doc = _doc(entry.value)
    body = [markdown(doc) if _is_abstract(entry.value) else _described(doc, entry.value)]
    for name, member in _members(entry.value):
        body.append(_member(name, member, entry.value))
    signature = "" if _is_abstract(entry.value) else _signature(entry.value)
    return _directive("class", entry.name + signature, entry.module, "\n\n".join(body), 7)


def _is_abstract(cls: type) -> bool:
    return inspect.isabstract(cls) or getattr(cls, "_is_protocol", False) or issubclass(cls, BaseException)


def _members(cls: type) -> list[tuple[str, Any]]:
    """Public methods and properties with docstrings, inherited ones included, in the order of their definition."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(("ldpopt", "experiments.")):
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    return [(name, value) for name, value in found.items() if _kind(value) and _member_doc(name, value, cls)]


def _kind(value: Any) -> str | None:
    if isinstance(value, property) or type(value).__name__ == "cached_property":
        return "property"
    if isinstance(value, (classmethod, staticmethod)) or inspect.isfunction(value):
        return "method"
    return None


def _member_doc(name: str, value: Any, cls: type) -> str:
    for base in cls.__mro__:
        found = vars(base).get(name)
        doc = inspect.getdoc(getattr(found, "__func__", found)) if found is not None else None
        if doc:
            return doc
    return ""


def _member(name: str, value: Any, cls: type) -> str:
    doc = _member_doc(name, value, cls)
    if _kind(value) == "property":
        return _directive("property", name, None, markdown(doc), 5)
    options = {classmethod: ":classmethod:", staticmethod: ":staticmethod:"}.get(type(value), "")
    function = value if options == "" else getattr(cls, name)
    return _directive(
        "method", name + _signature(function, bound=options == ""), None, _described(doc, function), 5, options
    )


def _directive(kind: str, head: str, module: str | None, body: str, fence: int, options: str = "") -> str:
    ticks = "`" * fence
    lines = [f"{ticks}{{py:{kind}}} {head}"]
    lines += [f":module: {module}"] if module else []
    lines += [options] if options else []
    return "\n".join([*lines, "", body, ticks, ""])


def _signature(value: Any, bound: bool = False) -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "()"
    parameters = list(signature.parameters.values())[1 if bound else 0 :]
    shown = [
        p.replace(annotation=_raw_annotation(p.annotation), default=_raw_default(p.default))
        for p in parameters
        if not p.name.startswith("_")
    ]
    returned = inspect.Signature.empty if is_class(value) else _raw_annotation(signature.return_annotation)
    return str(signature.replace(parameters=shown, return_annotation=returned)).replace("\n", " ")


def _raw_annotation(annotation: Any) -> Any:
    if annotation is inspect.Parameter.empty:
        return annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _Raw(text.replace("npt.", ""))


def _raw_default(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return default
    text = _ADDRESS.sub("", repr(default))
    return _Raw("..." if "<" in text else text)
