"""What the kernel of proofs gives on small inputs, on record: a change of any digit shows.

    python tests/results_on_record.py            # writes the record anew
    python tests/results_on_record.py changed    # only what is no longer as on record
    python tests/results_on_record.py another    # on another machine: what comes out otherwise is compared no longer

Whether the results are right is judged elsewhere, in high precision. Here margins of rounding count, too: a bracket
that grows or shrinks by a few units in the last place is a change, and so is another refusal, or another word of one.
"""

import dataclasses
import json
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt.errors import LdpoptError
from ldpopt.privacy import Guarantee

FOLDER = Path(__file__).parents[1] / "data"
Case = tuple[str, Callable[[], Any]]
ODD = (-1.0, -5e-324, 0.0, 5e-324, 0.5, 1 - 2.0**-53, 1.0, 1 + 2.0**-52, 2.0, 3, math.inf, -math.inf, math.nan,
       "x", None, True, [1.0], 10**400)  # fmt: skip
"""What may be given for a number: the ends of ranges, beyond them, and no numbers."""


def matrix(k: int, m: int, seed: int) -> list[list[float]]:
    """Rows of laws, the same on every machine."""
    rows = [[(7 * x * x + 13 * y * y + 5 * x * y * seed + 3 * seed) % 31 + 1 for y in range(m)] for x in range(k)]
    return [[value / sum(row) for value in row] for row in rows]


def plain(result: Any) -> Any:
    """A result as JSON: numbers, words, lists."""
    if isinstance(result, Guarantee):
        return plain({**result.to_dict(), "lower": result.lower, "text": str(result)})
    if isinstance(result, Mapping):
        return {str(key): plain(value) for key, value in result.items()}
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return {one.name: plain(getattr(result, one.name)) for one in dataclasses.fields(result) if one.repr}
    if isinstance(result, np.ndarray):
        return plain(result.tolist())
    if isinstance(result, list | tuple):
        return [plain(one) for one in result]
    if isinstance(result, np.generic):
        return plain(result.item())
    if isinstance(result, float) and not math.isfinite(result):
        return str(result)
    return result if result is None or isinstance(result, bool | int | float) else str(result)


def outcome(case: Callable[[], Any]) -> Any:
    """The result as JSON, or the words of a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(case())
        except LdpoptError as error:
            return f"{type(error).__name__}: {error}"


def alike(found: Any, kept: Any, ulps: float, at: float = 0.0) -> bool:
    """Whether two results are, numbers to some units in the last place or to `at` in all."""
    if isinstance(kept, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(kept)
            and all(name == "text" or alike(found[name], kept[name], ulps, at) for name in kept)
        )
    if isinstance(kept, list):
        return (
            isinstance(found, list)
            and len(found) == len(kept)
            and all(alike(a, b, ulps, at) for a, b in zip(found, kept, strict=True))
        )
    if isinstance(kept, float) and isinstance(found, float | int):
        return abs(found - kept) <= ulps * 2.0**-52 * abs(kept) + at or found == kept
    return bool(found == kept and type(found) is type(kept))


MACHINE = "depends on the machine"
"""Stands for a result whose last digits differ between processors."""


def kept(area: str) -> dict[str, Any]:
    """The record of an area."""
    return dict(json.loads((FOLDER / f"{area}_on_record.json").read_text("utf-8")))


def differences(area: str, module: str, cases: list[Case], ulps: float) -> list[str]:
    """The cases of a module of which the result is not as on record."""
    known = kept(area)[module]
    assert [name for name, _ in cases] == list(known)
    found = {name: outcome(case) for name, case in cases}
    compared = {name: one for name, one in known.items() if one != MACHINE}
    return [f"{name}: {found[name]}, not {one}" for name, one in compared.items() if not alike(found[name], one, ulps)]


def another(area: str, every: dict[str, list[Case]], ulps: dict[str, float]) -> None:
    """Marks what is not as on record, to half of what is allowed."""
    known = kept(area)
    for module, cases in every.items():
        for name, case in cases:
            if known[module][name] != MACHINE and not alike(outcome(case), known[module][name], ulps[module] / 2):
                known[module][name] = MACHINE
    save(area, known)


def changed(area: str, every: dict[str, list[Case]], ulps: dict[str, float]) -> None:
    """Puts what comes out otherwise in the place of what is on record; marks stay."""
    known = kept(area)
    for module, cases in every.items():
        for name, case in cases:
            if known[module][name] != MACHINE and not alike(found := outcome(case), known[module][name], ulps[module]):
                known[module][name] = found
    save(area, known)


def write(area: str, every: dict[str, list[Case]]) -> None:
    """The record of an area, a line for each case."""
    made = {module: {name: outcome(case) for name, case in cases} for module, cases in every.items()}
    for module, cases in every.items():
        assert len(made[module]) == len(cases), f"two cases of one name in {module}"
    save(area, made)


def save(area: str, made: dict[str, Any]) -> None:
    """The record written to its file."""
    parts = []
    for module, of in made.items():
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one, allow_nan=False)}" for name, one in of.items())
        parts.append(f"{json.dumps(module)}: {{\n{lines}\n}}")
    (FOLDER / f"{area}_on_record.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def odd(name: str, call: Callable[[Any], Any]) -> list[Case]:
    """A call with everything that may be given for a number."""
    shown = [("10**400" if isinstance(value, int) and value > 5 else repr(value), value) for value in ODD]
    return [(f"{name}({said})", lambda value=value: call(value)) for said, value in shown]


if __name__ == "__main__":
    import sys
    from importlib import import_module

    for area in ("kernel",):
        cases = import_module(f"{area}_cases")
        if sys.argv[1:]:
            (changed if sys.argv[1] == "changed" else another)(area, cases.CASES, cases.ULPS)
        else:
            write(area, cases.CASES)
