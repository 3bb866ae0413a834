"""The two tiers of the tests: what a newcomer runs, and everything.

The first tier shows that each capability works and that what is false is refused. The marker `full` is on what repeats
that at length: sweeps, kills, fuzzing, browsers, processes, records and builds. It stands on files (``pytestmark =
pytest.mark.full``), classes, tests and single cases; ``full(but=3)`` leaves the first three cases of a test with
parameters in the first tier. Where factors are crossed, the first tier has the cases in which each value occurs once.
"""

import re
from collections import defaultdict
from pathlib import Path

WHOLLY_FULL = re.compile(r"^pytestmark = .*pytest\.mark\.full\b(?!\()", re.MULTILINE)


def is_wholly_full(path):
    """Whether a file says of all its tests that they are of the full tier; it is read, not imported."""
    return path.suffix == ".py" and WHOLLY_FULL.search(path.read_text("utf-8")) is not None


def named_paths(arguments, tests):
    """The files and folders below `tests` that a command line names."""
    paths = (Path(str(argument).partition("::")[0]).resolve() for argument in arguments)
    return [path for path in paths if tests in path.parents]


def is_named(path, names):
    """Whether a command line names a file or a folder that it is in."""
    return any(name == path or name in path.parents for name in names)


def first_tier(items):
    """The tests of the first tier among all that were collected, by their node ids."""
    cases = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    return {item.nodeid for group in cases.values() for item in _first_cases(group)}


def _first_cases(group):
    """The cases of one test that are of the first tier: none, the first ones, or each value of each factor once."""
    cases = [item for item in group if all(mark.kwargs for mark in item.iter_markers("full"))]
    crossed = covering([_values(item) for item in cases])
    counts = [mark.kwargs["but"] for mark in group[0].iter_markers("full") if mark.kwargs]
    return [item for item in cases if _values(item) in crossed][: min(counts, default=len(cases))]


def _values(item):
    """What a case takes of each of its factors, as the objects' addresses."""
    factors = [re.findall(r"\w+", str(mark.args[0])) for mark in item.iter_markers("parametrize")]
    return tuple(tuple(id(item.callspec.params[name]) for name in names) for names in factors)


def covering(rows):
    """Of rows of as many values each, as few as a greedy choice finds with each value at each place once."""
    if not rows or len(rows[0]) < 2:
        return rows
    values = {row: set(enumerate(row)) for row in rows}
    left, chosen = set().union(*values.values()), []
    while left:
        chosen.append(max(rows, key=lambda row: len(values[row] & left)))
        left -= values[chosen[-1]]
    return chosen
