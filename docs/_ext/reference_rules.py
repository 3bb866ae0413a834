"""Every public name -> what its entry in the reference lacks: an example, shapes, units, refusals, a source.

    python docs/_ext/reference_rules.py      prints what is lacking, and ends with 1 if anything is

The rules: each docstring begins with a summary; a function shows an example, and a class shows one, stands in one or is
returned by a function that shows one; arrays have shapes; parameters such as epsilon are in nats; what is refused is
listed; a function that computes what a paper defines or proves cites it by a registered key.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parent))
from api_pages import IN_NATS, page_name, pages, parameters
from checks import refusals
from docstrings import escaped
from public_names import Public, is_class, public_modules, registry

import ldpopt
from ldpopt.design import Certificate
from ldpopt.values.references import REFERENCES, cited

sys.path.pop(0)

ROOT = Path(__file__).resolve().parents[2]

NO_FORMULA = {
    "ldpopt.channel": {"as_channel"},
    "ldpopt.composition": {
        "compose_same_input", "from_dp_accounting", "to_dp_accounting", "largest_count", "largest_epsilon",
    },
    "ldpopt.design": {
        "command_options", "is_certified", "load_design", "offered_types", "parameter_values", "parse_design", "repair",
        "types_with_parameters", "verify_design",
    },
    "ldpopt.divergences": {"format_divergence", "parse_divergence"},
    "ldpopt.errors": {"invalid"},
    "ldpopt.exact": {"round_exact"},
    "ldpopt.frontiers": {"frontier", "sweep"},
    "ldpopt.privacy": {"audit"},
    "ldpopt.values.references": {"reference", "registered_sources"},
    "ldpopt.values.results": {"jsonable"},
    "ldpopt_survey": {
        "advise_stages", "aggregate", "device_named", "enter_reports", "kit_files", "make_plan", "merge",
        "paper_survey", "pilot_shares", "plan_survey", "pooled_channel", "privatize", "privatize_frame", "propose",
        "read_rows", "respondents_needed", "second_channel", "second_spec", "split_budget",
        "with_cheaters", "with_constant", "within_promises",
    },
    "ldpopt_survey.server": {"collector", "database", "draw_invitations", "export_reports", "static_files"},
}  # fmt: skip
"""Functions that rest on no paper of their own: they convert, read, draw, search, or gather what cites its own."""

DRAWING = {"ldpopt.io", "ldpopt.plots", "ldpopt.words", "ldpopt_survey.pictures", "experiments.papers"}
"""Modules that read, draw and describe."""

SHAPE = re.compile(r"\((?:[a-z]\w*|\d+)(?:, ?[a-z0-9.]\w*)*,?\)|shape|k x k")
BLOCK = re.compile(r"^```(?:\{doctest\}|\{testcode\})\n(.*?)^```", re.MULTILINE | re.DOTALL)
MADE = {"api", "claims", "made", "tours", "_build"}


class Reference:
    """The pages of the reference, the public names, and the words that examples use."""

    def __init__(self) -> None:
        self.pages, self.names = pages(), registry()
        docs = ROOT / "docs"
        texts = [path for path in docs.rglob("*.md") if not MADE & set(path.relative_to(docs).parts)]
        examples = [block for path in texts for block in BLOCK.findall(path.read_text("utf-8"))]
        for entry in self.names.values():
            members = [entry.value, *(vars(entry.value).values() if is_class(entry.value) else ())]
            for member in members:
                if member is entry.value or inspect.isfunction(member):
                    lines = (inspect.getdoc(member) or "").splitlines()
                    examples += [line for line in lines if line.startswith((">>>", "..."))]
        returned = [
            str(inspect.signature(entry.value).return_annotation)
            for entry in self.names.values()
            if inspect.isfunction(entry.value)
        ]
        self.shown = set(re.findall(r"\w+", " ".join(examples + returned)))

    def lacking(self) -> Iterator[str]:
        """What is lacking, a line each."""
        if len({page.lower() for page in self.pages}) != len(self.pages):
            yield "two pages have names that differ in capitals only, which some systems hold for the same"
        for module in public_modules():
            yield from (f"{module}: {line}" for line in self._of_module(module))
        for name in ldpopt.__all__:
            if f"`ldpopt.{name}` | {{py:obj}}`ldpopt." not in self.pages["index.md"]:
                yield f"ldpopt.{name}: the index does not say where it is documented"
        unknown = {f"{module}.{name}" for module, names in NO_FORMULA.items() for name in names} - set(self.names)
        yield from (f"{full}: listed as without a formula, and no public name" for full in sorted(unknown))
        for full, entry in self.names.items():
            if inspect.isfunction(entry.value) or is_class(entry.value):
                yield from (f"{full}: {line}" for line in self._of_name(entry))

    def _of_module(self, module: str) -> Iterator[str]:
        """A module's page has an entry, or a link to the one entry elsewhere, for every name it offers."""
        page, imported = self.pages[f"{module}.md"], importlib.import_module(module)
        for name in getattr(imported, "__all__", ()):
            if isinstance(getattr(imported, name), ModuleType):
                listed = f"`{module}.{name}`" in page
            else:
                entry = re.search(rf"^`+{{py:data}} {name}\b", page, re.MULTILINE)
                listed = bool(entry) or f"{{py:obj}}`{name} <" in page
            if not listed:
                yield f"{name} has no entry"

    def _of_name(self, entry: Public) -> Iterator[str]:
        value, text = entry.value, inspect.getdoc(entry.value) or ""
        summary = text.strip().split("\n\n")[0]
        if not summary or len(summary.splitlines()) > 4 or not re.search(r"[.:?)\]]$", summary):
            yield "its docstring does not begin with a summary"
        if not self._is_shown(entry, text):
            yield "no example shows it"
        page = self.pages[f"{page_name(entry)}.md"]
        if IN_NATS & parameters(value) and "in nats" not in page:
            yield "its page does not say that its parameters are in nats"
        abstract = inspect.isclass(value) and (inspect.isabstract(value) or issubclass(value, BaseException))
        if not abstract and any(escaped(line).split(":")[0] not in page for line in refusals(value)):
            yield "its page does not list what it refuses"
        if not inspect.isfunction(value):
            return
        if re.search(r"raise (invalid|InvalidInput)\(", inspect.getsource(value)) and "InvalidInput" not in page:
            yield "its page does not say that it raises InvalidInput"
        arrays = [one for one in inspect.signature(value).parameters.values() if "NDArray" in str(one.annotation)]
        computes = entry.module not in DRAWING
        if (arrays or (computes and ARRAYS & parameters(value))) and not SHAPE.search(text.split(">>>")[0]):
            yield "its arrays have no shapes"
        if not computes:
            return
        keys = set(cited(text))
        if keys - set(REFERENCES):
            yield f"it cites {sorted(keys - set(REFERENCES))}, which are not registered"
        if bool(keys) is (entry.name in NO_FORMULA.get(entry.module, ())):
            yield "it cites no source" if not keys else "it cites a source, and is listed as without a formula"

    def _is_shown(self, entry: Public, text: str) -> bool:
        value = entry.value
        if inspect.isfunction(value):
            return ">>> " in text
        if not is_class(value) or inspect.isabstract(value) or getattr(value, "_is_protocol", False):
            return True
        # What a design carries is shown by designs, and the rows of a table by the table.
        carried = issubclass(value, BaseException | Certificate) or entry.name.endswith("Row")
        return carried or ">>> " in text or entry.name in self.shown


ARRAYS = {"p", "q", "p0", "p1", "p2", "prior", "pilot", "joint", "contrasts", "counts", "design", "type_one", "values"}
"""Parameters that are arrays wherever they occur."""


if __name__ == "__main__":
    lines = list(Reference().lacking())
    print(*lines, f"{len(lines)} entries lack something", sep="\n")
    sys.exit(bool(lines))
