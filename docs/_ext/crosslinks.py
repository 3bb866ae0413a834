"""Links that nobody has to write: code that names something public, and citations such as [GI, Thm 5]."""

from __future__ import annotations

import re
import sys
from typing import Any

from docutils import nodes
from public_names import public_modules, registry
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

from ldpopt.values.references import REFERENCES

_KEYS = "|".join(sorted(map(re.escape, REFERENCES), key=len, reverse=True))
_ONE = rf"(?:{_KEYS})(?:,?\s[^\[\];]+)?"
_CITATION = re.compile(rf"\[{_ONE}(?:;\s?{_ONE})*\]")
_KEY = re.compile(rf"(?<=\[)(?:{_KEYS})(?=[,\];\s])|(?<=;\s)(?:{_KEYS})(?=[,\];\s])")
_NAME = re.compile(r"^[A-Za-z_][\w.]*(?=\(|$)")


class Names(SphinxTransform):
    """Inline code that is the name of something public links to its entry in the reference."""

    default_priority = 600

    def apply(self, **kwargs: Any) -> None:
        targets = _targets()
        page = self.env.current_document.docname
        module = _module(page)
        for literal in list(self.document.findall(nodes.literal)):
            if _inside(literal, (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)):
                continue
            found = _NAME.match(literal.astext())
            full = found and _resolve(found[0], literal.astext(), module, targets)
            if full:
                literal.replace_self(_link(page, "py", "obj", full, literal.deepcopy()))


class Types(SphinxTransform):
    """A type in a signature that several modules offer links to the one that the signature means."""

    default_priority = 602

    def apply(self, **kwargs: Any) -> None:
        names = registry()
        for signature in self.document.findall(addnodes.desc_signature):
            documented = names.get(f"{signature.get('module')}.{signature.get('fullname')}")
            if documented is None:
                continue
            meant = vars(sys.modules[getattr(documented.value, "__module__", "ldpopt")])
            for link in signature.findall(addnodes.pending_xref):
                target = link["reftarget"]
                same = [
                    full for full, entry in names.items() if entry.name == target and entry.value is meant.get(target)
                ]
                if same:
                    link["reftarget"] = same[0]


class Citations(SphinxTransform):
    """The key of a citation links to the entry in the list of references."""

    default_priority = 601

    def apply(self, **kwargs: Any) -> None:
        page = self.env.current_document.docname
        if page == "reference/bibliography":
            return
        skipped = (nodes.literal, nodes.literal_block, nodes.reference, addnodes.pending_xref, nodes.math, nodes.title)
        for text in list(self.document.findall(nodes.Text)):
            if not _inside(text, skipped) and _CITATION.search(text.astext()):
                text.parent.replace(text, _linked(text.astext(), page))


def _short(full: str) -> str:
    """A dotted name without its package."""
    return full.partition(".")[2] or full


def _targets() -> dict[str, str]:
    names = registry()
    made = {module: module for module in public_modules()} | {full: full for full in names}
    made |= {_short(module): module for module in public_modules()}
    made |= {_short(full): full for full in names}
    short: dict[str, list[str]] = {}
    for full, entry in names.items():
        short.setdefault(entry.name, []).append(full)
    return made | {f"?{name}": found[0] for name, found in short.items() if len(found) == 1}


def _module(page: str) -> str:
    """The module whose names a page of the reference calls without their module; empty for other pages."""
    known = sorted(public_modules(), key=len, reverse=True)
    return next((one for one in known if f"{page}.".startswith(f"api/{one}.")), "")


def _resolve(name: str, text: str, module: str, targets: dict[str, str]) -> str | None:
    here = targets.get(f"{module}.{name}")
    if here:
        return here
    if "." in name:
        return targets.get(name)
    # A lower-case word alone may be a parameter: it counts only where it is called.
    evident = not name.islower() or "_" in name or text.startswith(f"{name}(")
    return targets.get(f"?{name}") if evident else None


def _inside(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, kinds):
            return True
        parent = parent.parent
    return False


def _link(doc: str, domain: str, kind: str, target: str, shown: nodes.Node) -> nodes.Node:
    """A reference from the page `doc`, from which the address is counted."""
    xref = addnodes.pending_xref(
        "", refdomain=domain, reftype=kind, reftarget=target, refexplicit=True, refwarn=True, refdoc=doc
    )
    xref += shown
    return xref


def _linked(text: str, doc: str) -> list[nodes.Node]:
    made: list[nodes.Node] = []
    done = 0
    for citation in _CITATION.finditer(text):
        for key in _KEY.finditer(text, *citation.span()):
            made.append(nodes.Text(text[done : key.start()]))
            label = f"ref-{key[0].lower()}"
            made.append(_link(doc, "std", "ref", label, nodes.inline("", key[0], classes=["std", "std-ref"])))
            done = key.end()
    return [*made, nodes.Text(text[done:])]


def setup(app: Any) -> dict[str, Any]:
    """Register the transforms."""
    app.add_transform(Names)
    app.add_transform(Citations)
    app.add_transform(Types)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
