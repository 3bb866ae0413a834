"""Wherever a privacy limit is printed it is rounded up: in the terminal, JSON, CSV, pages, sentences and pictures.

The limits below are just above a number of few digits, so that a limit that is rounded to the nearest is a smaller one.
Every number of every output that lies closely below one of them is such a mistake.
"""

import math
import re

import pytest

from ldpopt.cli import app
from ldpopt.numbers.rounding import ceil_digits
from ldpopt_survey.plan.plan import Plan

EPSILON, ETA = 1.23400231, 0.234100123
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?")
DRAWN = re.compile(r'(?<= )(?:d|x|y|x1|x2|y1|y2|cx|cy|r|width|height|points|transform)="[^"]*"')
"""Coordinates of pictures, which depend on the random reports."""
SURVEY = f"""
[survey]
name = "Habits"
rounds = 2
respondent = "id"
[[questions]]
name = "smokes"
categories = ["no", "sometimes", "daily"]
epsilon = {EPSILON}
[[questions]]
name = "drinks"
categories = ["no", "yes"]
epsilon = {EPSILON}
"""
ONE = f"""
[survey]
name = "Drinks"
[[questions]]
name = "drinks"
categories = ["no", "yes"]
epsilon = {EPSILON}
"""
PAIR = ("--p0", "0.5,0.3,0.2", "--p1", "0.2,0.3,0.5")
LINES = [
    ("design", *PAIR, "-e", f"{EPSILON}", "--save-design", "design.json"),
    ("design", *PAIR, "-e", f"{EPSILON}", "-t", f"{ETA}", "-o", "capped.json", "--save-design", "capped.design.json"),
    ("design", *PAIR, "-e", f"{EPSILON}", "-o", "third.json", "--json"),
    *(("verify", name) for name in ("design.json", "capped.design.json")),
    *(("check", name, "--all") for name in ("channel.json", "capped.json")),
    ("frontier", *PAIR, "--epsilon", f"{EPSILON}", "--eta", f"{ETA}", "--bounds", "-o", "frontier.csv"),
    ("survey", "plan", "survey.toml", "-n", "500"),
    ("survey", "kit", "plan.json"),
    ("survey", "privatize", "plan.json", "people.csv", "-o", "reports.csv", "--key", "key", "--new-key"),
    ("survey", "report", "plan.json", "reports.csv", "-o", "report.html"),
    ("survey", "plan", "one.toml", "-o", "one.json"),
    ("survey", "consent", "one.json", "-o", "one.md"),
    ("survey", "paper", "one.json", "--device", "two-dice"),
]


def below(text, limits):
    """The numbers of a text, of three digits or more, that are a limit without what its further digits add."""
    found = set()
    text = re.sub(r"\b[0-9a-f]{16,}\b", "", text)  # checksums, some of which have the form of a number
    for word in NUMBER.findall(text.replace(",", "").replace("\u202f", "")):
        digits, _, power = word.partition("e")
        if len(power.lstrip("+-0")) > 2:
            continue
        unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
        if len(digits.replace(".", "").lstrip("0")) >= 3:
            found |= {float(word) for limit in limits if 1e-12 * limit < limit - float(word) < unit}
    return sorted(found)


def said_of(epsilon, eta):
    """What outputs say of two limits: epsilon, e to the epsilon, eta, and guesses in a hundred."""
    return {epsilon, math.exp(epsilon), eta, 50 * (1 + eta)}


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """Every output of the commands, by its command or file."""
    from typer.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    (tmp_path / "one.toml").write_text(ONE, encoding="utf-8")
    rows = [f"{n},{('no', 'sometimes', 'daily')[n % 3]},{('no', 'yes')[n % 2]}" for n in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["id,smokes,drinks", *rows]), encoding="utf-8")
    given = {path.name for path in tmp_path.iterdir()}
    said = {}
    for line in LINES:
        made = CliRunner().invoke(app, list(line))
        assert made.exit_code == 0, (line, made.output)
        said[" ".join(line[:3])] = made.output
    for path in sorted(tmp_path.rglob("*")):
        text = path.suffix in (".md", ".csv", ".html") and path.name not in given and "channel" not in path.name
        if text and path.name != "reports.csv":
            said[path.name] = DRAWN.sub("", path.read_text("utf-8"))
    return said


@pytest.mark.full
def test_no_output_shows_less_than_a_limit(outputs, tmp_path):
    """Neither of a design, nor of a plan, one of its questions, or several rounds."""
    plans = [Plan.from_json((tmp_path / name).read_text("utf-8")) for name in ("plan.json", "one.json")]
    limits = said_of(EPSILON, ETA)
    for plan in plans:
        for question in plan.questions:
            limits |= said_of(float(question.epsilon), float(question.eta))
        for rounds in (1, 2):
            limits |= said_of(*plan.over_rounds(rounds))
    shown = 0
    for name, text in outputs.items():
        lines = [line for line in text.splitlines() if "approximate dp" not in line]  # a little less, at a small delta
        assert below("\n".join(lines), limits) == [], name
        shown += any(ceil_digits(limit, digits) in text for limit in limits for digits in (3, 4, 5, 6))
    assert shown > len(outputs) // 3


@pytest.mark.full
def test_the_test_finds_a_limit_that_is_rounded_to_the_nearest(outputs):
    """The same outputs with nearest numbers in the place of those that are rounded up."""
    limits = {EPSILON, ETA}
    for limit in limits:
        for digits in (3, 4, 5, 6):
            assert below(f"epsilon {limit:.{digits}g}", limits) == [float(f"{limit:.{digits}g}")]
    spoiled = outputs["survey plan survey.toml"].replace(ceil_digits(EPSILON, 4), f"{EPSILON:.4g}")
    assert below(spoiled, limits)
