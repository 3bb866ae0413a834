"""Mutated files for every loader: only documented exceptions may come out, in time, and nothing may be left behind."""

from __future__ import annotations

import io
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldpopt import io as files
from ldpopt.channel import Channel
from ldpopt.errors import CertificateError, InvalidInput
from ldpopt.exact import ExactChannel
from ldpopt.mechanisms import randomized_response
from ldpopt_survey.collect.aggregate import Counts
from ldpopt_survey.collect.answers import batches, partitions
from ldpopt_survey.collect.manifest import Manifest
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Simulated
from ldpopt_survey.collect.words import read_key
from ldpopt_survey.datafiles.pieces import names_of
from ldpopt_survey.plan.plan import Plan, _checksum, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

DOCUMENTED = (InvalidInput, CertificateError)

TOKENS = [
    b"nan",
    b"NaN",
    b"NAN",
    b"-nan",
    b"Infinity",
    b"-Infinity",
    b"inf",
    b"1e999",
    b"-1e999",
    b"1e-999",
    b"0x1p3",
    b"1_0",
    b"9" * 400,
    b"-1",
    b"0",
    b"-0.0",
    b"1.5",
    b"true",
    b"null",
    b'""',
    b'"a"',
    b"[]",
    b"{}",
    b"[[]]",
    b"[" * 3000,
    b'{"a":' * 2000,
    b'"a": 1, "a": 2',
    b",",
    b"\n",
    b"\r\n",
    b"\r",
    b'"',
    b"'",
    b"\\",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc3\x28",
    "\u0663".encode(),
    "\u2028".encode(),
    b"../../etc/passwd",
    b"/dev/zero",
    b"=1+1",
    b"\t",
    b"#",
    b"[survey]",
    b"[questions]",
    b"[[questions]]",
    b'"""',
    b"=",
    b"1979-05-27",
    b"\\u0000",
    b"\\ud800",
    b"62",
    b"63",
    b"18446744073709551616",
    b"4611686018427387904",
    b"PK\x03\x04",
    b"PAR1",
]
"""NaN in every spelling, huge numbers, deep nesting, repeated keys, text that is not UTF-8, paths and archives."""

SPEC = SurveySpec(
    "health",
    (
        QuestionSpec("smoker", ("no", "yes"), missing="no", epsilon=1.0),
        QuestionSpec("children", ("0", "1", "2"), column="q7", unknown="0", epsilon=0.5),
    ),
    respondent="id",
)
PLAN = make_plan(SPEC, lambda q: randomized_response(len(q.categories), q.epsilon, inputs=q.categories))
TOML = b"""[survey]
name = "health"
respondent = "id"
round = 2
carry = ["stratum"]

[budget]
epsilon = 2.0

[[questions]]
name = "smoker"
categories = ["no", "yes"]
missing = "no"
epsilon = 1.0

[[questions]]
name = "children"
column = "q7"
categories = [0, 1, 2]
unknown = 0
epsilon = 0.5
eta = 0.2
"""
ANSWERS = b"id,smoker,q7\n1,yes,0\n2,no,2\n3,,1\n4,no,9\n"


@dataclass(frozen=True)
class Loader:
    """A loader with files it accepts; `weight` is how often it is chosen, slow ones seldom.

    change : how its files are mutated; None for `mutate`.
    """

    name: str
    seeds: tuple[bytes, ...]
    load: Callable[[bytes, Path], object]
    weight: int
    change: Callable[[random.Random, bytes], bytes] | None = None


def mutate(rng: random.Random, data: bytes) -> bytes:
    """One to four edits: bytes flipped, cut, repeated or exchanged for tokens."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        a, b = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
        kind = rng.randrange(7)
        if kind == 0 and data:
            at = rng.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:a] + data[min(b, a + rng.randint(1, 20)) :]
        elif kind == 2:
            data = data[:a] + data[a : min(b, a + 200)] * 2 + data[b:]
        elif kind == 3:
            data = data[:a] + rng.choice(TOKENS) + data[a:]
        elif kind == 4:
            data = _exchange(rng, data)
        elif kind == 5:
            data = data[:a]
        else:
            data = _exchange(rng, _exchange(rng, data))
    return data


def _exchange(rng: random.Random, data: bytes) -> bytes:
    """A token in place of what stands between two separators, as in a value, a key or a cell."""
    ends = [at for at, byte in enumerate(data) if byte in b'\n,:[]{}= "']
    if len(ends) < 2:
        return data
    at = rng.randrange(len(ends) - 1)
    return data[: ends[at] + 1] + rng.choice(TOKENS) + data[ends[at + 1] :]


def _plan(data: bytes, folder: Path) -> object:
    """The plan, also with a checksum that fits, so that mutations get past it."""
    try:
        content = json.loads(data)
        if isinstance(content, dict):
            content["checksum"] = _checksum({key: v for key, v in content.items() if key != "checksum"})
            Plan.from_json(json.dumps(content))
    except (ValueError, TypeError, RecursionError):  # not even JSON, or refused: then as it stands
        pass
    return Plan.from_json(data)


def _written(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def load(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        try:
            return read(path)
        finally:
            path.unlink()

    return load


def _answers(name: str) -> Callable[[bytes, Path], object]:
    def read(path: Path) -> object:
        names_of(path)
        return [batch for part in partitions([path]) for batch in batches(part, ["id", "smoker", "q7"])]

    return _written(name, read)


def _privatized(name: str) -> Callable[[bytes, Path], object]:
    """Privatizing answers writes its reports whole, or leaves nothing but an empty lock."""

    def read(path: Path) -> object:
        out = path.with_name("out.parquet")
        try:
            privatize(PLAN, path, out, Simulated(np.random.default_rng(1)))
            return pq.read_table(out)
        finally:
            lock = path.with_name(".out.parquet.lock")
            if lock.exists() and lock.stat().st_size == 0:
                lock.unlink()
            if pq_whole(out):
                out.unlink()

    return _written(name, read)


def _key(data: bytes, folder: Path) -> object:
    """A key is read, or refused by an error that does not quote the file."""
    path = folder / "key"
    path.write_bytes(data)
    path.chmod(0o600)
    try:
        return read_key(path)
    except InvalidInput as error:
        if "0f0f" in str(error):
            raise AssertionError("the message quotes the key") from None
        raise
    finally:
        path.unlink()


def pq_whole(path: Path) -> bool:
    """Whether `path` is a Parquet file that can be read to its end."""
    try:
        pq.read_table(path)
    except (OSError, pa.ArrowException):
        return False
    return True


def _parquet() -> bytes:
    out = io.BytesIO()
    table = {"id": ["1", "2", "3"], "smoker": ["yes", "no", None], "q7": ["0", "2", "9"]}
    pq.write_table(pa.table(table), out, compression="none")
    return out.getvalue()


CHANNEL = Channel([[0.75, 0.25], [0.25, 0.75]], inputs=["no", "yes"])
EXACT = CHANNEL.exact(16).to_json().encode()
CSV = b"answer,yes,no\nyes,0.75,0.25\nno,0.25,0.75\n"
PAIR = b"answer,p0,p1\na,0.5,0.25\nb,0.5,0.75\n"
LOADERS = (
    Loader("channel JSON", (CHANNEL.to_json().encode(),), lambda data, _: Channel.from_json(data), 20),
    Loader("exact channel", (EXACT,), lambda data, _: ExactChannel.from_json(data), 20),
    Loader("survey TOML", (TOML,), lambda data, _: SurveySpec.from_toml(data), 15),
    Loader("plan", (PLAN.to_json().encode(),), _plan, 10),
    Loader("channel file JSON", (CHANNEL.to_json().encode(), b"[[0.5, 0.5], [0.25, 0.75]]", EXACT),
           _written("q.json", files.read_channel), 6),
    Loader("channel file CSV", (CSV, b"0.75,0.25\n0.25,0.75\n"), _written("q.csv", files.read_channel), 6),
    Loader("pair CSV", (PAIR, b"p0,p1\n0.5,1\n0.5,0\n"), _written("p.csv", files.read_pair), 6),
    Loader("pair JSON", (b'{"p0": [0.5, 0.5], "p1": [0.25, 0.75], "labels": ["a", "b"]}',),
           _written("p.json", files.read_pair), 6),
    Loader("microdata", (b"vote,party\na,x\nb,y\na,y\n",),
           _written("m.csv", lambda path: files.read_microdata(path, "party", "vote")), 6),
    Loader("answers CSV", (ANSWERS,), _answers("a.csv"), 3),
    Loader("answers Parquet", (_parquet(),), _answers("a.parquet"), 3),
    Loader("privatized CSV", (ANSWERS,), _privatized("a.csv"), 0),
    Loader("privatized Parquet", (_parquet(),), _privatized("a.parquet"), 0),
)  # fmt: skip

COUNTS = Counts(
    PLAN.checksum, 3, {("smoker",): np.array([2, 1]), ("smoker", "children"): np.array([[1, 1, 0], [0, 0, 1]])}
)
MANIFEST = Manifest.from_plan(PLAN, "memoised", 4, ["7" * 32, "f" * 32], "a" * 64)
LATER = (
    Loader("counts", (COUNTS.to_json().encode(),), lambda data, _: Counts.from_json(data, PLAN), 1),
    Loader("manifest", (MANIFEST.to_json().encode(),), lambda data, _: Manifest.from_json(data, "manifest"), 1),
    Loader("key file", (b"ldpopt-survey-key 1\n" + b"0f" * 32 + b"\n",), _key, 1),
)
"""Loaders that came later: apart, so that the cases of the others stay what they were."""


def case(seed: int, folder: Path, loaders: tuple[Loader, ...] = LOADERS) -> tuple[str, str]:
    """(loader, what came out) of one mutated file: "read", "refused", or the violation."""
    rng = random.Random(seed)
    loader = rng.choices(loaders, [loader.weight or 1 for loader in loaders])[0]
    data = (loader.change or mutate)(rng, rng.choice(loader.seeds))
    try:
        loader.load(data, folder)
    except DOCUMENTED:
        outcome = "refused"
    except Exception as error:  # anything else is what this looks for
        outcome = f"{type(error).__name__}: {error} from {data[:300]!r}"
    else:
        outcome = "read"
    left = sorted(path.name for path in folder.iterdir())
    for name in left:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return loader.name, outcome if not left else f"left behind {left}"
