"""Count violations of the style guide: ``python docs/_ext/style.py [--show CODE | --check | --record]``.

`--check` exits with 1 if a count exceeds the one recorded in style.json; `--record` writes the present counts there.
The script needs the standard library only and imports nothing that it reads. The counts are a thermometer: a name that
passes may still be a bad one.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_suffix(".json")
PACKAGES = ("ldpopt", "ldpopt_survey", "ldpopt_studio", "ldpopt_check", "experiments/papers")
GENERATED = {"made", "api", "claims", "tours", "_build"}
MAX_WORDS = 30


def _words(text: str) -> set[str]:
    return set(text.split())


TITLES = {
    "S1": "names that are a bare participle, determiner, preposition or adverb",
    "S2": "one-word numeric constants",
    "S3": "summaries of public functions without an imperative verb",
    "S4": "summaries with a forbidden opening",
    "S5": f"sentences of more than {MAX_WORDS} words",
    "S6": "banned phrases",
    "S7": "-ise spellings",
    "S8": "what, whatever or whoever as a noun",
    "S9": "prepositions with which, whom or whose",
    "S10": "error templates that do not fit",
}
BANNED_NAMES = _words(
    """
    made found known told given asked kept seen said shown posed taken done drawn held met gone lost wanted
    meant begun paid earned solved believed promised heard settled joined raised own whole near far most few
    least each every more less above below inside outside within apart alike away off beside what why whose of
    at one plain wrong
    """
)
ALLOWED_CONSTANTS = {"VERSION", "ULP", "SUBNORMAL", "SEED", "FORMATS", "LANGUAGES", "INF", "FLOAT"}
VERBS = _words(
    """
    add aggregate allocate append apply assert audit bound build calibrate cancel certify check choose clip
    close collect combine compare compile compose compute convert copy count create decode delete derive
    describe design discretize divide draw drop encode enclose ensure enumerate erase estimate evaluate expand
    export extract find fit format generate get group import initialize insert iterate join limit list load
    lock map mark match maximize measure merge minimize mix move multiply normalize open pack parse pass pick
    place plan plot poll prepare print privatize project propose prove publish quote raise randomize read
    recompute record reduce refuse register remove render repair replace represent require reserve reset
    resolve restore return round route run sample save scale search select send serialize serve set shuffle
    simulate skip solve sort split start stop store subtract sum test tighten transform try update validate
    verify wait warn widen wrap write yield
    """
)
FORBIDDEN_OPENINGS = _words(
    """
    what whether why how who whoever where which for as it of from by with in to at if
    """
)
FORBIDDEN_OPENINGS |= {"without", "("}
PHRASES = {
    r"\bin balls\b|\bballs of \d+ bits": "in 256-bit ball arithmetic",
    r"\b(is|are) no (?!longer|more|different|less|better|worse)\w+": "is not a ...",
    r"\bbeside\b": "next to, with, in addition to",
    r"\b(an|of) own\b|\bof (one|your)'?s? own\b|\bown ones\b": "custom, user-defined",
    r"\bmostly enough\b|\bat the most\b": "usually enough; at most",
    r"\ba line for each\b|\ba row a\b|\bone a (report|label|screen)\b": "one row per ...",
    r"\bon the way\b": "while running, during the search",
    r"\bas it (stands|goes|is written)\b": "unchanged",
    r"\btell(s|ing)? (\w+ ){0,6}apart\b|\btold apart\b": "distinguish",
    r"\bsays so\b|\bsays? that of\b": "state what is reported",
    r"\b(the )?law of the (answers|report|noise)\b": "distribution",
    r"\blooked for\b|\b(is|are) looked at\b": "searched, examined",
    r"\bmend(s|ed)?\b": "fix",
    r"\bin any writing\b": "any delimiter, encoding and decimal mark",
}
ISE = re.compile(
    r"\b\w*(maximis|minimis|optimis|normalis|generalis|linearis|recognis|summaris|memois|randomis|privatis)\w*", re.I
)
NOUN_WHAT = re.compile(r"\b(what|whatever|whoever)\b", re.I)
PREPOSITION_WHICH = re.compile(r"\b(of|by|in|with|for|from|at|to|on|under|behind) (which|whom|whose)\b")
TEMPLATE = re.compile(r"beside it\"|Phrase\(\"(both|neither|one|one of them|others|another|more|none|some of each)\"\)")

Finding = tuple[str, int, str]
"""A code, a line and the offending text."""


def names(tree: ast.Module) -> Iterator[Finding]:
    """Find banned names (S1) and one-word numeric constants (S2)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef):
            name = node.name
        else:
            continue
        if name.strip("_") in BANNED_NAMES:
            yield "S1", node.lineno, name
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and _is_numeric(statement.value):
            for target in statement.targets:
                for element in target.elts if isinstance(target, ast.Tuple) else [target]:
                    name = getattr(element, "id", "").strip("_")
                    if name.isupper() and "_" not in name and len(name) > 1 and name not in ALLOWED_CONSTANTS:
                        yield "S2", statement.lineno, name


def _is_numeric(value: ast.expr) -> bool:
    arithmetic = (
        ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Tuple, ast.expr_context,
    )  # fmt: skip
    nodes = list(ast.walk(value))
    return all(isinstance(node, arithmetic) for node in nodes) and any(
        isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) for node in nodes
    )


def docstrings(tree: ast.Module) -> Iterator[Finding]:
    """Find summaries without a verb (S3) or with a forbidden opening (S4), and all that `prose` finds in docstrings."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            continue
        text = ast.get_docstring(node)
        if not text:
            continue
        line, summary = getattr(node, "lineno", 1), text.split("\n")[0][:80]
        opening = re.match(r"[^\w(]*([\w']+|\()", text)
        word = opening[1].lower() if opening else ""
        is_property = any("property" in ast.dump(decorator) for decorator in getattr(node, "decorator_list", []))
        is_public = isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not is_property
        if is_public and word not in VERBS:
            yield "S3", line, summary
        if word in FORBIDDEN_OPENINGS:
            yield "S4", line, summary
        for code, text_of_sentence in prose(re.split(r">>>", text)[0]):
            yield code, line, text_of_sentence


def prose(text: str) -> Iterator[tuple[str, str]]:
    """Find long sentences (S5), banned phrases (S6), -ise spellings (S7) and two constructions (S8, S9)."""
    for sentence in sentences(text):
        if len(sentence.split()) > MAX_WORDS:
            yield "S5", sentence[:90]
        for pattern, better in PHRASES.items():
            for _ in re.findall(pattern, sentence):
                yield "S6", f"{sentence[:70]} -> {better}"
        for match in ISE.finditer(sentence):
            yield "S7", match[0]
        if not sentence.endswith("?") and NOUN_WHAT.search(sentence):
            yield "S8", sentence[:90]
        if PREPOSITION_WHICH.search(sentence):
            yield "S9", sentence[:90]


def sentences(text: str) -> list[str]:
    """Split prose into sentences; a blank line or a list item also ends one."""
    blocks = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s", text)
    parts = (part for block in blocks for part in re.split(r"(?<=[.!?:])\s+(?=[A-Z`(])", " ".join(block.split())))
    return [part for part in parts if len(part.split()) > 2]


def prose_of_markdown(text: str) -> str:
    """Drop code, tables, headings, formulas and link targets."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.S)
    text = re.sub(r"^\s*(\||:::|:\w|!\[|#).*$", "", text, flags=re.M)
    text = re.sub(r"`[^`]*`", "CODE", text)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"\$[^$]*\$", "MATH", text))


def findings_in_source(source: str) -> Iterator[Finding]:
    """Run every check on a Python module."""
    tree = ast.parse(source)
    yield from names(tree)
    yield from docstrings(tree)
    for number, line in enumerate(source.split("\n"), 1):
        if TEMPLATE.search(line):
            yield "S10", number, line.strip()[:100]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for code, text in prose(token.string.lstrip("# ")):
                yield code, token.start[0], text


def findings(root: Path) -> dict[str, list[str]]:
    """Run every check on the packages and the pages below `root`; list the findings of each code."""
    found: dict[str, list[str]] = {code: [] for code in TITLES}
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        for code, line, text in findings_in_source(path.read_text("utf-8")):
            found[code].append(f"{path.relative_to(root)}:{line}: {text}")
    for path in [*root.glob("*.md"), *sorted((root / "docs").rglob("*.md"))]:
        if not GENERATED & set(path.relative_to(root).parts):
            for code, text in prose(prose_of_markdown(path.read_text("utf-8"))):
                found[code].append(f"{path.relative_to(root)}: {text}")
    return found


def exceeding(counts: dict[str, int], record: dict[str, int]) -> list[str]:
    """List the codes whose count exceeds the record, as sentences."""
    return [
        f"{code}: {count} {TITLES[code]}, recorded are {record[code]}; see --show {code}"
        for code, count in counts.items()
        if count > record[code]
    ]


def main(print_line: Callable[[str], object] = print) -> int:
    """Print one line per code, or do what the option asks for."""
    parser = argparse.ArgumentParser(description="Count violations of the style guide.")
    parser.add_argument("--show", metavar="CODE", choices=TITLES, help="list the findings of one code")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a count exceeds its record")
    parser.add_argument("--record", action="store_true", help="record the present counts")
    options = parser.parse_args()
    found = findings(ROOT)
    counts = {code: len(lines) for code, lines in found.items()}
    if options.show:
        for line in found[options.show]:
            print_line(line)
    for code, count in counts.items():
        print_line(f"{code:4} {count:6}  {TITLES[code]}")
    if options.record:
        RECORD.write_text(json.dumps(counts, indent=2) + "\n", "utf-8")
    failures = exceeding(counts, json.loads(RECORD.read_text("utf-8"))) if options.check else []
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
