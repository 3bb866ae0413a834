"""Forge the texts of design files: a false bound of every class of certificates, helped by hostile numbers and words.

    python experiments/trust/texts.py [--forgeries N] [--seed S] [--commands N] [--quick]

Each forgery begins with an honest file of `tests/data/certificates.json`, and claims a bound that its own channel beats
by a share of 1e-11 to 1e-3; so it is false, whatever else it says. Then something outside the utility is written
otherwise: numbers as 1e-320, 1e308, NaN, -0.0, true, 10^400, in digits of other scripts or as texts; keys twice; arrays
permuted, turned, cut, nested, emptied; a larger epsilon than the numbers are for. `verify` in both arithmetics and
`ldpopt_check` must refuse each, within their documented time, and raise nothing but their own errors; some go through
the commands themselves. Exit code 1 if a file is believed, raises, or takes longer.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from kinds import checker

from ldpopt.design import is_certified, parse_design
from ldpopt.errors import LdpoptError
from ldpopt_check.__main__ import strict

FILES = Path(__file__).resolve().parents[2] / "tests" / "data" / "certificates.json"
NUMBERS = (
    "1e-320", "5e-324", "1e308", "1.7976931348623157e308", "-1e308", "NaN", "Infinity", "-Infinity", "1e999", "-0.0",
    "0", "true", "false", "null", '"0.5"', '"inf"', '"-inf"', '"NaN"', "1" + "0" * 400, "9007199254740993", "-1", "2",
    "\u0661", "\uff11.5", '"\u0661"', "[0.5]", "{}", "[]", '{"shape": [0]}', '{"shape": [0, 1048576]}', "1_000",
    "0x1p-3", "+1", ".5", "1.",
)  # fmt: skip
"""What is written in the place of a number."""
SECONDS = {"verify": 12.0, "verify --exact": 12.0, "ldpopt_check": 25.0}


def honest() -> list[dict[str, Any]]:
    """The files on record, each with the bound that its certificate proves, that verify."""
    found = []
    for entry in json.loads(FILES.read_text(encoding="utf-8")):
        design = parse_design(json.dumps(entry["design"]))
        assert design.certificate is not None
        bound, error = design.certificate.bound, design.utility.error
        lower, upper = (bound, design.upper_bound) if error else (design.lower_bound, bound)
        logarithmic = getattr(design.utility, "logarithmic", False)
        certified = is_certified(design.value, bound, design.tolerance, error, logarithmic)
        own = replace(design, lower_bound=lower, upper_bound=upper, certified=certified)
        if abs(own.value) > 1e-9 and own.verify().proved:
            found.append(json.loads(own.to_json()))
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all parts of a document but those of its utility."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path else []
    for key, part in parts:
        if path or key not in ("utility", "schema", "version"):
            found += places(part, (*path, key))
    return found


def false_bound(document: dict[str, Any], rng: np.random.Generator) -> None:
    """Claim a bound, and a value to go with it, that the file's own channel beats."""
    error = document["utility"]["kind"] == "FisherInformation"
    value, share = document["value"], 10.0 ** -rng.uniform(3, 11)
    worse = value + abs(value) * share if error else value - abs(value) * share
    document |= {"value": worse, "lower_bound": worse, "upper_bound": worse, "certified": bool(rng.random() < 0.7)}


def arranged(value: list[Any], rng: np.random.Generator) -> Any:
    """A list in another order or shape."""
    turned = [*zip(*value, strict=False)] if all(isinstance(one, list) for one in value) else value[1:] + value[:1]
    every = [
        value[::-1], value[1:], value[:-1], [*value, *value[-1:]], [value], [], value * 2, [[one] for one in value],
        [value[int(at)] for at in rng.permutation(len(value))], {"shape": [len(value)]}, turned,
    ]  # fmt: skip
    return every[int(rng.integers(len(every)))]


def forged(document: dict[str, Any], rng: np.random.Generator) -> tuple[str, str]:
    """The text of a forged file, and what was done."""
    changed = copy.deepcopy(document)
    false_bound(changed, rng)
    told, marks = [], {}
    for number in range(int(rng.integers(0, 4))):
        every = places(changed)
        inside = [path for path in every if path[0] in ("certificate", "constraints")]
        some = inside if inside and rng.random() < 0.8 else every
        path = some[int(rng.integers(len(some)))]
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        part = holder[path[-1]]
        if path[-1] in ("epsilon", "eta", "delta", "order") and path[0] == "constraints" and isinstance(part, float):
            holder[path[-1]] = part * (1 + 10.0 ** -rng.uniform(0, 6))
        elif isinstance(part, list):
            holder[path[-1]] = arranged(part, rng)
        elif isinstance(part, dict) and rng.random() < 0.5:
            part[str(rng.choice([*part, "epsilon", "constraints", "channel", "utility"]))] = copy.deepcopy(part)
        elif isinstance(holder, dict) and rng.random() < 0.3:
            marks[f"MARK{number}"] = f'{json.dumps(part)}, "{path[-1]}": {NUMBERS[int(rng.integers(len(NUMBERS)))]}'
            holder[path[-1]] = f"MARK{number}"
        else:
            marks[f"MARK{number}"] = NUMBERS[int(rng.integers(len(NUMBERS)))]
            holder[path[-1]] = f"MARK{number}"
        told.append(".".join(map(str, path)) + f": {marks.get(f'MARK{number}', 'rearranged')[:40]}")
    text = json.dumps(changed)
    for mark, words in marks.items():
        text = text.replace(f'"{mark}"', words)
    return text, "; ".join(told)


def kernel(text: str, exact: bool) -> bool:
    """Whether `verify` believes it."""
    try:
        return parse_design(text).verify(exact).proved
    except LdpoptError:
        return False


def independent(text: str) -> bool:
    """Whether `ldpopt_check` believes it."""
    try:
        return not checker.check(strict(text.encode())).failures
    except checker.BadInput:
        return False


PROGRAMS = {
    "verify": lambda text: kernel(text, False),
    "verify --exact": lambda text: kernel(text, True),
    "ldpopt_check": independent,
}
COMMANDS = {
    "verify": ("-m", "ldpopt", "verify"),
    "verify --exact": ("-m", "ldpopt", "verify", "--exact"),
    "ldpopt_check": ("-m", "ldpopt_check"),
}


def judged(text: str) -> list[str]:
    """What is wrong with what the programs say of a forgery."""
    wrong = []
    for name, program in PROGRAMS.items():
        begun = time.process_time()
        try:
            if program(text):
                wrong.append(f"{name}: BELIEVED")
        except Exception as error:
            wrong.append(f"{name}: RAISED {type(error).__name__}: {str(error)[:80]}")
        if time.process_time() - begun > SECONDS[name]:
            wrong.append(f"{name}: took {time.process_time() - begun:.0f} s")
    return wrong


def commanded(text: str, folder: Path) -> list[str]:
    """What is wrong with what the commands say of a forgery."""
    wrong, path = [], folder / "forged.json"
    path.write_text(text, encoding="utf-8")
    for name, command in COMMANDS.items():
        ran = subprocess.run([sys.executable, *command, str(path)], capture_output=True, text=True, check=False)
        if ran.returncode not in (1, 2) or "Traceback" in ran.stderr + ran.stdout:
            wrong.append(f"the command {name}: exit code {ran.returncode}: {(ran.stderr or ran.stdout)[-80:]}")
    return wrong


def main() -> int:
    """Forge, judge, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forgeries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=50, help="how many go through the commands")
    parser.add_argument("--quick", action="store_true", help="100 forgeries, one through the commands")
    given = parser.parse_args()
    if given.quick:
        given.forgeries, given.commands = 100, 1
    warnings.simplefilter("ignore")
    files = honest()
    counts, bad = Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.forgeries):
            rng = np.random.default_rng([given.seed, number])
            document = files[number % len(files)]
            text, told = forged(document, rng)
            wrong = judged(text)
            if number % max(given.forgeries // max(given.commands, 1), 1) == 0:
                wrong += commanded(text, Path(folder))
            counts[document["certificate"]["kind"]] += 1
            bad += bool(wrong)
            for one in wrong:
                print(f"{number} ({document['certificate']['kind']}): {one} ({told})", flush=True)
    print(", ".join(f"{number} {kind}" for kind, number in sorted(counts.items())))
    print(f"{given.forgeries} forgeries of {len(files)} files, {bad} with something wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
