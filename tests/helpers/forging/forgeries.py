"""Forgeries by number: the same seed, class and block give the same ones, so that each finding can be made again."""

from __future__ import annotations

import dataclasses
import json
import math
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forging.bases import Base
from forging.judge import Judge, described
from forging.tamper import is_numbers, moved, number, part, put, scalar, sites
from ldpopt import LocalDP, TotalVariation
from ldpopt.design.files import design_text
from ldpopt.design.load import parse_design
from ldpopt.errors import LdpoptError

RANDOM, CLIMB, DESIGNS, FILES = 60, 36, 2, 2
BLOCK = RANDOM + CLIMB + DESIGNS + FILES
"""Forgeries in a block: certificates at random, certificates climbing down, designs, and design files."""
SEARCHES = 1
"""Problems whose truth takes a second that a block may meet for the first time."""
PROBLEM = ("utility", "constraints", "channel")


@dataclass
class Tally:
    """What came of forgeries: counts, and what should not have been, with the forgery in words."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, str]] = field(default_factory=list)

    def add(self, sort: str, said: tuple[str, str], what: str) -> None:
        """One more forgery of a sort."""
        self.counts[sort] += 1
        self.counts[said[0]] += 1
        if said[0] in ("wrong", "raised"):
            self.findings.append({"sort": sort, "said": said[0], "words": said[1], "forgery": what[:600]})


class Forger:
    """Forges the certificates of some bases, with parts of all of them."""

    def __init__(self, bases: dict[str, list[Base]], judge: Judge) -> None:
        self.bases, self.judge = bases, judge
        everything = [base for each in bases.values() for base in each]
        self.parts: dict[Any, list[Any]] = {}
        for base in everything:
            for path, value in sites(base.certificate):
                name = [step for step in path if isinstance(step, str)][-1]
                self.parts.setdefault(name, []).append(value)
        self.certificates = [base.certificate for base in everything]
        self.channels = [base.design.channel for base in everything]
        self.texts: dict[int, str] = {}
        self.trees: list[Any] = []

    def block(self, kind: str, seed: int, at: int) -> Tally:
        """Block number `at` of a class."""
        self.judge.allowed = SEARCHES
        rng, tally = np.random.default_rng([seed, zlib.crc32(kind.encode()), at]), Tally()
        base = self.bases[kind][int(rng.integers(len(self.bases[kind])))]
        with np.errstate(all="ignore"):
            for _ in range(RANDOM):
                self._random(base, rng, tally)
            self._climb(base, rng, tally)
            for _ in range(DESIGNS):
                self._design(base, rng, tally)
            for _ in range(FILES):
                self._file(base, rng, tally)
        return tally

    # -- certificates --------------------------------------------------------------------------------------------

    def _random(self, base: Base, rng: np.random.Generator, tally: Tally) -> None:
        try:
            forged, words = self.forged(base.certificate, rng)
        except LdpoptError:
            tally.add("certificate", ("refused", ""), "")
            return
        tally.add("certificate", self.judge.certificate(forged), f"{base.name}: {words}")

    def forged(self, certificate: Any, rng: np.random.Generator) -> tuple[Any, str]:
        """The certificate with one to three parts replaced."""
        forged, words = certificate, []
        for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
            open_to = list(sites(forged))
            own = [one for one in open_to if one[0][0] not in PROBLEM]
            chosen = own if own and rng.random() < 0.85 else open_to
            path, value = chosen[int(rng.integers(len(chosen)))]
            new = self._part(path, value, rng)
            words.append(f"{'.'.join(map(str, path))} = {brief(new)}")
            forged = put(forged, path, new)
        return forged, "; ".join(words)

    def _part(self, path: tuple[Any, ...], value: Any, rng: np.random.Generator) -> Any:
        if path[-1] == "utility":
            others = self.parts["utility"]
            same = [one for one in others if not one.continuous and not value.continuous and one.size == value.size]
            return _one(same if same and rng.random() < 0.7 else others, rng)
        if path[-1] == "constraints":
            return self._constraints(value, rng)
        if path[-1] == "channel":
            return _one(self.channels, rng)
        name = [step for step in path if isinstance(step, str)][-1]
        donors = self.parts.get(name, [])
        if dataclasses.is_dataclass(value) and rng.random() < 0.3:
            donors = self.certificates
        return part(rng, value, donors)

    def _constraints(self, own: tuple[Any, ...], rng: np.random.Generator) -> tuple[Any, ...]:
        way = int(rng.integers(7))
        if way == 0:
            return ()
        if way == 1:
            return own + own
        if way == 2 and own:
            at = int(rng.integers(len(own)))
            return (*own[:at], *own[at + 1 :])
        if way == 3:
            return tuple(_weaker(one, float(rng.choice([0.5, 1.5, 1 + 1e-9, 1e3]))) for one in own)
        others = _one(self.parts["constraints"], rng)
        return own + others if way == 4 else own[::-1] if way == 5 else others

    def _climb(self, base: Base, rng: np.random.Generator, tally: Tally) -> None:
        """Numbers moved step by step so that the bound falls, from the honest ones or from forged ones."""
        best = base.certificate
        places = [path for path, value in sites(best) if is_numbers(value) and path[0] not in PROBLEM]
        if not places:
            places = [path for path, value in sites(best) if path[0] not in PROBLEM] or [("constraints",)]
        sign = -1.0 if best.utility.error else 1.0
        self.judge.certificate(best)
        lowest, size = sign * self.judge.last, 10.0 ** rng.uniform(-12, 0)
        for _ in range(CLIMB):
            path = places[int(rng.integers(len(places)))]
            value = _at(best, path)
            new = moved(rng, value, size) if is_numbers(value) else self._part(path, value, rng)
            try:
                forged = put(best, path, new)
            except LdpoptError:
                tally.add("climb", ("refused", ""), "")
                continue
            said = self.judge.certificate(forged)
            tally.add("climb", said, f"{base.name}: {'.'.join(map(str, path))} moved to {brief(new)}")
            found = sign * self.judge.last if said[0] in ("proved", "unknown") else math.inf
            if found <= lowest or (math.isinf(lowest) and math.isfinite(found)):
                best, lowest = forged, found
            else:
                size = max(size * 0.9, 1e-15)

    # -- designs -------------------------------------------------------------------------------------------------

    def _design(self, base: Base, rng: np.random.Generator, tally: Tally) -> None:
        forged, words = dataclasses.replace(base.design, certificate=base.certificate), []
        for _ in range(int(rng.choice([1, 1, 2, 3]))):
            names = [one.name for one in dataclasses.fields(forged) if one.init and one.name not in ("method", "note")]
            name = names[int(rng.integers(len(names)))]
            new = self._claim(forged, name, rng)
            words.append(f"{name} = {brief(new)}")
            forged = dataclasses.replace(forged, **{name: new})
        tally.add("design", self.judge.design(forged), f"{base.name}: {'; '.join(words)}")

    def _claim(self, design: Any, name: str, rng: np.random.Generator) -> Any:
        value = getattr(design, name)
        if name == "certificate":
            if value is None or rng.random() < 0.3:
                return None if rng.random() < 0.2 else _one(self.certificates, rng)
            try:
                return self.forged(value, rng)[0]
            except LdpoptError:
                return None
        if name in PROBLEM:
            return self._part((name,), value, rng)
        if name == "guarantees":
            if rng.random() < 0.3 or not value:
                return value[:-1] if rng.random() < 0.5 else value + value
            at = int(rng.integers(len(value)))
            one = value[at]
            changes = [{"value": number(rng, one.value)}, {"notion": "total_variation"}, {"notion": "local_dp"}]
            one = dataclasses.replace(one, **changes[int(rng.integers(len(changes)))])
            return (*value[:at], one, *value[at + 1 :])
        if name in ("value", "lower_bound", "upper_bound", "tolerance"):
            return number(rng, value) if rng.random() < 0.9 else scalar(rng, value)
        return part(rng, value, self.parts.get(name, []))

    # -- files ---------------------------------------------------------------------------------------------------

    def _file(self, base: Base, rng: np.random.Generator, tally: Tally) -> None:
        design = dataclasses.replace(base.design, certificate=base.certificate)
        try:
            text = self._text(design, base)
        except LdpoptError:
            return
        forged, words = self._tampered(text, rng)
        try:
            read = parse_design(forged)
        except LdpoptError:
            tally.add("file", ("refused", ""), "")
            return
        except Exception as error:
            tally.add("file", ("raised", described(error)), f"{base.name}: {words}")
            return
        tally.add("file", self.judge.design(read), f"{base.name}: {words}")

    def _text(self, design: Any, base: Base) -> str:
        if id(base) not in self.texts:
            self.texts[id(base)] = design_text(design)
            self.trees.append(json.loads(self.texts[id(base)]))
        return self.texts[id(base)]

    def _tampered(self, text: str, rng: np.random.Generator) -> tuple[bytes, str]:
        if rng.random() < 0.25:
            raw = bytearray(text.encode())
            at = int(rng.integers(len(raw)))
            raw[at] = int(rng.integers(256)) if rng.random() < 0.3 else ord(rng.choice(list('0123456789.eE-+,[]{}"n')))
            return bytes(raw), f"byte {at} is {raw[at]}"
        tree, words = json.loads(text), []
        for _ in range(int(rng.choice([1, 1, 2, 3]))):
            paths = [path for path in _json_paths(tree) if path[0] not in ("method", "note", "schema", "version")]
            top = [path for path in paths if len(path) == 1]
            path = _one(top if rng.random() < 0.2 else paths, rng)
            new = self._json_part(tree, path, rng)
            words.append(f"{'.'.join(map(str, path))} = {brief(new)}")
            _json_put(tree, path, new)
        return json.dumps(tree).encode(), "; ".join(words)

    def _json_part(self, tree: Any, path: tuple[Any, ...], rng: np.random.Generator) -> Any:
        value = _json_at(tree, path)
        where = rng.random()
        if where < 0.25:
            donor = _one(self.trees, rng)
            try:
                return _json_at(donor, path)
            except (KeyError, IndexError, TypeError):
                return value
        if isinstance(value, bool) or value is None:
            return [True, False, None, 0, "x", []][int(rng.integers(6))]
        if isinstance(value, int | float):
            made = number(rng, value)
            if isinstance(value, int) and rng.random() < 0.5:
                made = value + int(rng.integers(-2, 3))
            return made if math.isfinite(made) else ["inf", "-inf", "nan", 0][int(rng.integers(4))]
        if isinstance(value, list):
            way = int(rng.integers(5))
            each = [value[:-1], value + value[-1:], value[::-1], [], value[1:] + value[:1]]
            return each[way]
        if isinstance(value, str):
            return ["inf", "", "local_dp", "LocalDP", "kl", "Contraction", "EnvelopeDual", 1.0][int(rng.integers(8))]
        return None if rng.random() < 0.5 else {**value, "more": 1}


def _json_paths(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    own = [path] if path else []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return own + [one for key, value in items for one in _json_paths(value, (*path, key))]


def _json_at(tree: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _json_put(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    _json_at(tree, path[:-1])[path[-1]] = value


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = getattr(value, step) if isinstance(step, str) else value[step]
    return value


def _one(values: Any, rng: np.random.Generator) -> Any:
    return values[int(rng.integers(len(values)))]


def _weaker(constraint: Any, by: float) -> Any:
    """Another cap in the same words."""
    if isinstance(constraint, LocalDP) and constraint.graph is None:
        return LocalDP(min(constraint.epsilon * by, 700.0))
    if isinstance(constraint, TotalVariation):
        return TotalVariation(min(constraint.eta * by, 1.0))
    names = [one.name for one in dataclasses.fields(constraint) if one.init]
    if "epsilon" in names:
        return dataclasses.replace(constraint, epsilon=min(constraint.epsilon * by, 20.0))
    return constraint


def brief(value: Any) -> str:
    """What was put in, in few words."""
    if isinstance(value, np.ndarray):
        shown = np.ma.getdata(value)  # a masked entry has no format of its own
        words = f"{value.dtype}{list(value.shape)} {np.array2string(shown, threshold=12, precision=17)}"
        return words[:240].replace("\n", "")
    try:
        return repr(value)[:160]
    except Exception as error:
        return f"{type(value).__name__} whose repr raises {type(error).__name__}"
