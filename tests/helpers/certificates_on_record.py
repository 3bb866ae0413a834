"""Certificates on record: what the kernel says of honest ones, and of those with one part changed.

    python tests/certificates_on_record.py DESIGNS     # makes honest certificates anew, and writes what is said of them
    python tests/certificates_on_record.py             # of the certificates as they are

`data/certificates.json` holds design files of every class of certificates, small problems of `forging.bases`, and for
each the answers of the kernel: a bound, or the words of a refusal. A change of the kernel that changes an answer shows
here; whether it may is for its author to say, who then writes the record anew and reads what is different in it.
"""

import dataclasses
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from forging.tamper import put, sites

from ldpopt.design.load import parse_design
from ldpopt.errors import LdpoptError
from ldpopt.numbers.enclosures import arithmetic

FILE = Path(__file__).parents[1] / "data" / "certificates.json"
SMALL = 2.0**-20
Change = tuple[str, Any]


def changes(certificate: Any) -> Iterator[Change]:
    """(what is changed, a function that makes the changed certificate), the same for the same certificate."""
    for path, value in sites(certificate):
        name = ".".join(map(str, path))
        if path == ("constraints",):
            for said, other in _constraints(value):
                yield f"constraints {said}", lambda other=other: dataclasses.replace(certificate, constraints=other)
        elif path == ("utility",):
            for said, make in _utilities(value):
                yield f"utility {said}", lambda make=make: dataclasses.replace(certificate, utility=make())
        elif path[-1] in ("utility", "channel") or path[0] == "constraints" or path[-1] == "constraints":
            continue
        elif any(isinstance(step, int) and step > 2 for step in path):
            continue  # the first parts of many stand for all
        else:
            for said, other in _parts(value):
                yield f"{name} {said}", lambda path=path, other=other: put(certificate, path, other)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Other parts in the place of one."""
    yield "none", None
    if isinstance(value, np.ndarray):
        yield from _arrays(value)
    elif isinstance(value, tuple):
        yield "empty", ()
        if len(value) > 1:
            yield "shorter", value[:-1]
            yield "longer", (*value, value[0])
            yield "backward", value[::-1]
    elif isinstance(value, bool):
        yield "not", not value
    elif isinstance(value, int):
        yield from (("+ 1", value + 1), ("- 1", value - 1), ("large", 10**6), ("half", value + 0.5))
    elif isinstance(value, float):
        for said, factor in (("up", 1 + SMALL), ("down", 1 - SMALL), ("twice", 2.0), ("-", -1.0), ("no", math.nan)):
            yield said, value * factor
        yield from (("0", 0.0), ("infinite", math.inf), ("list", [value]))


def _arrays(value: Any) -> Iterator[tuple[str, Any]]:
    yield from (("axis", value[None]), ("words", np.full(value.shape, "x")))
    if value.ndim and len(value):
        yield from (("shorter", value[:-1]), ("longer", np.concatenate([value, value[-1:]])), ("back", value[::-1]))
    if value.ndim == 2 and value.size:
        yield from (("narrower", value[:, :-1]), ("turned", value.T))
    if not value.size or value.dtype.kind not in "fiu":
        return
    flat = value.reshape(-1)
    places = sorted({0, len(flat) - 1, int(np.abs(flat).argmax())})
    if value.dtype.kind != "f":
        for at in places:
            for step in (1, -1):
                yield f"{at} {step:+d}", _at(value, at, value.dtype.type(flat[at] + step))
        return
    size = float(np.abs(flat).max())
    yield from (("0", 0 * value), ("twice", 2 * value), ("half", value / 2), ("-", -value))
    if size < 1e8:
        yield "huge", value * 1e300
    for said, other in (
        ("no", math.nan),
        ("infinite", math.inf),
        ("- infinite", -math.inf),
        ("below 0", -size or -1.0),
    ):
        yield f"{places[-1]} {said}", _at(value, places[-1], other)
    for at in places:
        for said, factor in (("up", 1 + SMALL), ("down", 1 - SMALL), ("0", 0.0)):
            yield f"{at} {said}", _at(value, at, flat[at] * factor)
        yield f"{at} more", _at(value, at, flat[at] + size * SMALL)
        yield f"{at} less", _at(value, at, flat[at] - size * SMALL)


def _at(value: Any, place: int, other: Any) -> Any:
    made = value.copy()
    made.reshape(-1)[place] = other
    return made


def _constraints(value: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    yield from (("none", ()), ("twice", value + value), ("backward", value[::-1]))
    for at, one in enumerate(value):
        yield f"without {at}", (*value[:at], *value[at + 1 :])
        for field in dataclasses.fields(one) if dataclasses.is_dataclass(one) else ():
            number = getattr(one, field.name)
            if not isinstance(number, float) or not field.init:
                continue
            for factor in (0.5, 1 - SMALL, 1 + SMALL, 1.5):
                try:
                    other = dataclasses.replace(one, **{field.name: number * factor})
                except LdpoptError:
                    continue
                yield f"{at} {field.name} x {factor}", (*value[:at], other, *value[at + 1 :])


def _utilities(utility: Any) -> Iterator[tuple[str, Any]]:
    """The same utility with the first two numbers of a field exchanged, or moved."""
    for field in dataclasses.fields(utility) if dataclasses.is_dataclass(utility) else ():
        value = getattr(utility, field.name)
        if field.init and isinstance(value, np.ndarray) and value.ndim == 1 and len(value) > 1:
            exchanged = np.concatenate([value[1::-1], value[2:]])
            moved = _at(value, 0, value[0] * (1 + SMALL))
            for said, other in (("exchanged", exchanged), ("moved", moved)):
                name = field.name
                yield f"{name} {said}", lambda name=name, other=other: dataclasses.replace(utility, **{name: other})


def answer(made: Any, exact: bool) -> Any:
    """The bound of a certificate that a function makes, or the words of the refusal."""
    try:
        return float(made().proved(arithmetic(exact)))
    except LdpoptError as error:
        return str(error)


def questions(certificate: Any) -> dict[str, tuple[Any, tuple[bool, ...]]]:
    """What the kernel is asked: a function that makes a certificate, and the arithmetics: exact for small changes."""
    asked = {"as it is": (lambda: certificate, (False, True))}
    for said, made in changes(certificate):
        small = said.startswith(("constraints", "utility")) or said.endswith(" up")
        asked[said] = (made, (False, True) if small else (False,))
    return asked


def answers(certificate: Any) -> dict[str, list[Any]]:
    """What the kernel says of a certificate and of each change."""
    return {said: [answer(made, exact) for exact in ways] for said, (made, ways) in questions(certificate).items()}


def alike(found: Any, kept: Any, within: float) -> bool:
    """Whether two answers are: words, or numbers of the same size."""
    if isinstance(found, str) or isinstance(kept, str):
        return bool(found == kept)
    return bool(abs(found - kept) <= within * abs(kept)) or found == kept


def record() -> list[dict[str, Any]]:
    """The designs, their names and the answers."""
    return list(json.loads(FILE.read_text("utf-8")))


def certificate_of(entry: dict[str, Any]) -> Any:
    """The certificate of an entry."""
    return parse_design(json.dumps(entry["design"])).certificate


def written(entries: list[dict[str, Any]]) -> None:
    """The record with the answers as they are now."""
    for entry in entries:
        entry["answers"] = answers(certificate_of(entry))
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    FILE.write_text(f"[\n{lines}\n]\n", "utf-8")


KEPT = {"BranchDual": 2, "Contraction": 2, "InformationCapacity": 2, "Relaxed": 3}
"""How many of a class are kept: three, but for these."""


def _made_anew() -> Iterator[dict[str, Any]]:
    import warnings
    from collections import Counter
    from time import process_time

    from forging.bases import _certificates, designs

    from ldpopt.design.files import design_text

    warnings.simplefilter("ignore")
    count: Counter[str] = Counter()
    for name, design in designs(2):
        for certificate in _certificates(design):
            kind = type(certificate).__name__
            if design.utility.continuous or count[kind] >= KEPT.get(kind, 3):
                continue
            text = design_text(dataclasses.replace(design, certificate=certificate))
            start = process_time()
            answer(lambda certificate=certificate: certificate, True)
            if len(text) < 8500 and process_time() - start < 0.04:
                count[kind] += 1
                yield {"name": f"{kind}: {name}", "design": json.loads(text)}


if __name__ == "__main__":
    written(list(_made_anew()) if sys.argv[1:] else record())
