"""How many public names there are, and that each has what a reference entry needs: the numbers behind the claim."""

import inspect
import re
import sys
from pathlib import Path

from ldpopt.design.certificates.base import Certificate
from ldpopt.references import cited

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
from api_pages import IN_NATS, page_name, pages, parameters
from checks import refusals
from docstrings import markdown
from public_names import is_class, registry
from test_reference import NO_FORMULA

sys.path.pop(0)
sys.path.pop(0)

ROOT = Path(__file__).resolve().parents[2]

PAGES, NAMES = pages(), registry()
MADE = {"api", "claims", "made", "tours", "_build"}
BLOCK = re.compile(r"^```(?:\{doctest\}|\{testcode\})\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHAPE = re.compile(r"\((?:[a-z]\w*|\d+)(?:, ?[a-z0-9.]\w*)*,?\)|shape|k x k")


def examples():
    """Every word of every example of the documents and of the public docstrings."""
    written = [path for path in (ROOT / "docs").rglob("*.md") if not MADE & set(path.relative_to(ROOT / "docs").parts)]
    blocks = [block for path in written for block in BLOCK.findall(path.read_text("utf-8"))]
    told = [inspect.getdoc(entry.value) or "" for entry in NAMES.values()]
    for entry in list(NAMES.values()):
        if is_class(entry.value):
            told += [inspect.getdoc(one) or "" for one in vars(entry.value).values() if inspect.isfunction(one)]
    told = [line for text in told for line in text.splitlines() if line.startswith((">>>", "..."))]
    return set(re.findall(r"\w+", " ".join(blocks + told)))


WORDS = examples()
RETURNED = " ".join(
    str(inspect.signature(entry.value).return_annotation) for entry in NAMES.values() if inspect.isfunction(entry.value)
)


def lacks_example(entry):
    """A function shows an example; a class shows one, stands in one, or is returned by a function that shows one."""
    value, own = entry.value, ">>> " in (inspect.getdoc(entry.value) or "")
    if inspect.isfunction(value):
        return not own
    shape = inspect.isabstract(value) or getattr(value, "_is_protocol", False)
    if not is_class(value) or shape or issubclass(value, BaseException):
        return False
    # What a design carries is shown by designs, and the rows of a table by the table.
    carried = issubclass(value, Certificate) or entry.name.endswith("Row")
    return not (own or carried or entry.name in WORDS or re.search(rf"\b{entry.name}\b", RETURNED))


def lacks_shape(entry):
    """Whatever takes an array says of which shape."""
    if not inspect.isfunction(entry.value):
        return False
    signature = inspect.signature(entry.value)
    arrays = [name for name, one in signature.parameters.items() if "NDArray" in str(one.annotation)]
    return bool(arrays) and not SHAPE.search(inspect.getdoc(entry.value))


def lacks_unit(entry):
    """Whatever takes a privacy parameter says on its page that it is in nats."""
    if not (inspect.isfunction(entry.value) or is_class(entry.value)):
        return False
    return bool(IN_NATS & parameters(entry.value)) and "in nats" not in PAGES[f"{page_name(entry)}.md"]


def lacks_error(entry):
    """Whatever checks its arguments has every refusal on its page."""
    value = entry.value
    if not (inspect.isfunction(value) or is_class(value)) or inspect.isabstract(value):
        return False
    if is_class(value) and issubclass(value, BaseException):
        return False
    page = PAGES[f"{page_name(entry)}.md"]
    return any(markdown(line).split(":")[0] not in page for line in refusals(value))


def lacks_source(entry):
    """What a paper defines cites it; the exceptions that `test_reference` lists are functions that compute nothing."""
    computing = inspect.isfunction(entry.value) and entry.module.split(".")[1] not in ("io", "plots", "reproduce")
    return computing and entry.full not in NO_FORMULA and not cited(inspect.getdoc(entry.value))


def test_every_public_name_has_example_shapes_units_errors_and_source(capsys):
    """Of all public names, none lacks an example, the shapes of its arrays, its units, its errors or its source."""
    checks = [lacks_example, lacks_shape, lacks_unit, lacks_error, lacks_source]
    lacking = {check.__name__: [entry.full for entry in NAMES.values() if check(entry)] for check in checks}
    with capsys.disabled():
        print(f" {len(NAMES)} public names;", *(f"{name} {len(found)};" for name, found in lacking.items()), end="")
    assert len(NAMES) >= 450
    assert not any(lacking.values()), lacking
