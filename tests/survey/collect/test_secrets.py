"""No raw value, id or key in anything that a failing run prints, raises or leaves: canaries in every column."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.testing
from faults import Faults
from typer.main import get_command
from typer.testing import CliRunner

from ldpopt.cli import app
from ldpopt.errors import LdpoptError
from ldpopt_survey import Survey, aggregate
from ldpopt_survey.collect.batch import privatize_frame
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Memoized
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

N = 30
SPEC = SurveySpec(
    "demo", (QuestionSpec("vote", ("no", "yes")), QuestionSpec("age", (1, 2, 3))), respondent="id", carry=("region",)
)
PLAN = make_plan(
    SPEC, lambda q: (np.ones((len(q.categories),) * 2) + np.eye(len(q.categories))) / (1 + len(q.categories))
)
NUMBER = 98765432123456
"""A canary among numbers."""

COLUMNS = ("vote", "age", "id", "region", "note")


def canary(column: str) -> str:
    return f"CANARY~{column}"


def clean() -> dict[str, list[Any]]:
    """Good answers, with a canary for every id and in the column that is not needed."""
    return {
        "id": [f"{canary('id')}{i}" for i in range(N)],
        "vote": ["no", "yes"] * (N // 2),
        "age": [1, 2, 3] * (N // 3),
        "region": ["north", "north", "south", "south", "north"] * (N // 5),
        "note": [canary("note")] * N,
    }


def one(column: str, value: Any, row: int = 17) -> dict[str, list[Any]]:
    """Good answers but for one cell."""
    made = clean()
    made[column] = [*made[column]]
    made[column][row] = value
    return made


class Odd:
    """An object that shows a canary however it is turned into text."""

    def __repr__(self) -> str:
        return canary("object")


FRAMES: dict[str, Callable[[], Any]] = {
    "unknown answer": lambda: pd.DataFrame(one("vote", canary("vote"))),
    "mixed numbers and text": lambda: pd.DataFrame(clean() | {"vote": [1, canary("vote")] * (N // 2)}),
    "text among numbers": lambda: pd.DataFrame(one("age", canary("age"))),
    "a large number": lambda: pd.DataFrame(one("age", NUMBER)),
    "a number too large for 64 bits": lambda: pd.DataFrame(one("age", NUMBER**3)),
    "a fraction": lambda: pd.DataFrame(one("age", NUMBER + 0.5)),
    "missing answer": lambda: pd.DataFrame(one("vote", None)),
    "missing id": lambda: pd.DataFrame(one("id", None)),
    "duplicate id": lambda: pd.DataFrame(one("id", f"{canary('id')}3")),
    "endless id": lambda: pd.DataFrame(one("id", canary("id") * 1000)),
    "ids of mixed types": lambda: pd.DataFrame(one("id", NUMBER)),
    "ids that are fractions": lambda: pd.DataFrame(clean() | {"id": [NUMBER + i + 0.5 for i in range(N)]}),
    "lists": lambda: pd.DataFrame(clean() | {"vote": [[canary("vote")]] * N}),
    "lists in arrow": lambda: pa.table(clean() | {"vote": [[canary("vote")]] * N}),
    "structs in arrow": lambda: pa.table(clean() | {"age": [{"a": canary("age")}] * N}),
    "ids that are lists": lambda: pa.table(clean() | {"id": [[canary("id")]] * N}),
    "bytes that are no text": lambda: pa.table(clean() | {"vote": [b"\xff" + canary("vote").encode()] * N}),
    "objects": lambda: pd.DataFrame(clean() | {"vote": [Odd()] * N}),
    "objects as ids": lambda: pd.DataFrame(clean() | {"id": [Odd() for _ in range(N)]}),
    "objects in Polars": lambda: pl.DataFrame(clean()).with_columns(pl.Series("vote", [Odd()] * N, dtype=pl.Object)),
    "dates": lambda: pd.DataFrame(clean() | {"vote": pd.date_range("1987-03-04", periods=N)}),
    "categories": lambda: pd.DataFrame(clean() | {"vote": pd.Categorical([canary("vote")] * N)}),
    "a column missing": lambda: pd.DataFrame({k: v for k, v in clean().items() if k != "vote"}),
    "answers for names": lambda: pd.DataFrame({canary(k): v for k, v in clean().items()}),
    "two columns of one name": lambda: pd.DataFrame(clean()).rename(columns={"note": "vote"}),
    "no frame": lambda: {"vote": canary("vote")},
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _one_command() -> Iterator[None]:
    """The command is made of the application once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(get_command))
        yield


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """The survey key."""
    create_key(tmp_path / "survey.key")
    return tmp_path / "survey.key"


def hex_of(key: Path) -> str:
    return key.read_text().split("\n")[1]


def told(error: BaseException) -> str:
    """All that a traceback shows, with every error that is chained, whether or not it would be printed."""
    seen: list[str] = []
    left: list[BaseException | None] = [error]
    while left:
        found = left.pop()
        if found is not None:
            seen += [repr(found), str(found), *map(str, getattr(found, "__notes__", []))]
            seen += traceback.format_exception(found)
            left += [found.__cause__, found.__context__]
    return "\n".join(seen)


def quotes(text: str | bytes, key: Path) -> list[str]:
    """The secrets in a text."""
    content = text.encode() if isinstance(text, str) else text
    secrets = ["CANARY~", str(NUMBER), "1987-03-04", hex_of(key)]
    raw = bytes.fromhex(hex_of(key))
    return [secret for secret in secrets if secret.encode() in content] + (["key bytes"] if raw in content else [])


def left_behind(folder: Path, but: set[Path], key: Path) -> dict[str, list[str]]:
    """The secrets in every file that a run left, by name, the file's name among them."""
    made = {}
    for path in folder.rglob("*"):
        if path in but or not path.is_file():
            continue
        if found := quotes(path.name, key) + quotes(path.read_bytes(), key):
            made[str(path)] = found
    return made


@pytest.mark.parametrize("name", FRAMES)
def test_frames_that_are_refused_are_not_quoted(
    name: str, key: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """In memory: wrong types, unknown codes, missing and doubled ids, odd objects of three libraries."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(LdpoptError) as caught:
        privatize_frame(PLAN, FRAMES[name](), Memoized(key))
    assert quotes(told(caught.value), key) == []
    shown = capfd.readouterr()
    assert quotes(shown.out + shown.err + caplog.text, key) == []
    assert "\n" not in str(caught.value)


def test_columns_that_are_not_needed_are_not_converted(key: Path) -> None:
    """Junk in a column that the plan does not name does not stop the run."""
    frame = pd.DataFrame(clean() | {"note": [1, Odd()] * (N // 2)})
    assert privatize_frame(PLAN, frame, Memoized(key))[0].num_rows == N


def as_csv(data: dict[str, list[Any]]) -> bytes:
    return pd.DataFrame(data).to_csv(index=False).encode()


def as_parquet(data: dict[str, Any]) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table(data), out)
    return out.getvalue().to_pybytes()


def headless() -> bytes:
    return as_csv({k: [canary(k)] * 3 for k in COLUMNS}).split(b"\n", 1)[1]


FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "unknown answer": ("a.csv", lambda: as_csv(one("vote", canary("vote")))),
    "a number that is no category": ("a.csv", lambda: as_csv(one("age", NUMBER))),
    "missing answer": ("a.csv", lambda: as_csv(one("age", None))),
    "missing id": ("a.csv", lambda: as_csv(one("id", None))),
    "duplicate id": ("a.csv", lambda: as_csv(one("id", f"{canary('id')}3"))),
    "endless id": ("a.csv", lambda: as_csv(one("id", canary("id") * 1000))),
    "a column missing": ("a.csv", lambda: as_csv({k: v for k, v in clean().items() if k != "vote"})),
    "no header": ("a.csv", headless),
    "no header and equal cells": ("a.csv", lambda: (canary("vote") + "," + canary("vote") + "\n").encode() * 3),
    "one line without an end": ("a.csv", lambda: canary("vote").encode()),
    "a line too short": ("a.csv", lambda: as_csv(clean()) + canary("id").encode() + b"\n"),
    "a line too long": ("a.csv", lambda: as_csv(clean()) + b",".join([canary("id").encode()] * 9) + b"\n"),
    "an open quote": ("a.csv", lambda: as_csv(clean()) + b'"' + canary("id").encode() + b",no\n"),
    "a quote within": ("a.csv", lambda: as_csv(clean()) + canary("id").encode() + b'"x"y,no,1,north,z\n'),
    "Latin-1": ("a.csv", lambda: as_csv(one("vote", canary("vote") + "ä")).decode().encode("latin-1")),
    "UTF-16": ("a.csv", lambda: as_csv(one("vote", canary("vote"))).decode().encode("utf-16")),
    "zero bytes": ("a.csv", lambda: as_csv(one("vote", canary("vote") + "\0"))),
    "semicolons": ("a.csv", lambda: as_csv(clean()).replace(b",", b";")),
    "lists in Parquet": ("a.parquet", lambda: as_parquet(clean() | {"vote": [[canary("vote")]] * N})),
    "text in a column of numbers": ("a.parquet", lambda: as_parquet(clean() | {"age": [canary("age")] * N})),
    "numbers in Parquet": ("a.parquet", lambda: as_parquet(clean() | {"age": [NUMBER] * N})),
    "bytes in Parquet": ("a.parquet", lambda: as_parquet(clean() | {"vote": [b"\xff" + canary("v").encode()] * N})),
    "ids that are lists": ("a.parquet", lambda: as_parquet(clean() | {"id": [[canary("id")]] * N})),
    "structs that are carried": ("a.parquet", lambda: as_parquet(clean() | {"region": [{"a": canary("region")}] * N})),
    "junk for Parquet": ("a.parquet", lambda: canary("junk").encode() * 100),
    "Parquet cut short": ("a.parquet", lambda: as_parquet(clean() | {"vote": [canary("vote")] * N})[:-40]),
    "Parquet with a spoiled page": ("a.parquet", lambda: as_parquet(clean()).replace(b"CANARY~id1", b"CANARY\xffid1")),
}


READ = ("a quote within", "Parquet with a spoiled page", "structs that are carried")
"""The files in which nothing that is read is wrong."""


@pytest.mark.full(but=8)
@pytest.mark.parametrize(
    ("name", "ending"),
    [*((name, "r") for name in FILES), *((name, "r.csv") for name in (*READ, "unknown answer", "duplicate id"))],
)
def test_files_that_are_refused_are_not_quoted(
    tmp_path: Path, key: Path, name: str, ending: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """From the command line: one line, exit code 2, no secret in it, in a log, or in anything that is left."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    file, content = FILES[name]
    (tmp_path / file).write_bytes(content())
    (tmp_path / "plan.json").write_text(PLAN.to_json(), encoding="utf-8")
    before = set(tmp_path.rglob("*"))
    made = CliRunner().invoke(app, ["survey", "privatize", "plan.json", file, "-o", ending, "--key", str(key)])
    if made.exit_code == 0:  # nothing wrong that is read: then nothing raw is in the reports either
        assert name in READ
    else:
        assert (made.exit_code, made.output.count("\n")) == (2, 1), made.output
    assert quotes(made.output + caplog.text, key) == []
    carried = {path for path in (tmp_path / "r").rglob("*") if name == "structs that are carried"}  # as was asked
    assert left_behind(tmp_path, before | carried, key) == {}
    with pytest.raises(LdpoptError) as caught:
        privatize(PLAN, tmp_path / file, tmp_path / ending, Memoized(key))
    assert quotes(told(caught.value), key) == []


@pytest.mark.parametrize("ending", ["r.csv", "r.parquet", "r"])
@pytest.mark.parametrize("kind", ["full", "fail"])
def test_a_full_or_broken_disk_receives_no_secrets(
    tmp_path: Path, key: Path, ending: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the disk fails: one line, no traceback, and no raw value in what stays for the run to go on."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_bytes(as_csv(clean()))
    (tmp_path / "plan.json").write_text(PLAN.to_json(), encoding="utf-8")
    before = set(tmp_path.rglob("*"))
    failed = 0
    for moment in range(1, 60, 9):
        faults = Faults(kind, moment)
        with faults.striking():
            made = CliRunner().invoke(
                app, ["survey", "privatize", "plan.json", "a.csv", "-o", ending, "--key", str(key)]
            )
        if made.exit_code:
            failed += 1
            assert made.exit_code in (1, 2)
            assert made.output.count("\n") == 1
            assert "Traceback" not in made.output
        assert quotes(made.output, key) == []
        assert left_behind(tmp_path, before, key) == {}
    assert failed > 2


def test_reports_that_are_raw_answers_are_not_quoted(tmp_path: Path, key: Path) -> None:
    """Counting and estimating answers by mistake shows none of them."""
    (tmp_path / "a.csv").write_bytes(as_csv(clean() | {"vote": [canary("vote")] * N}))
    data = clean() | {"vote": [canary("vote")] * N}
    del data["id"]
    (tmp_path / "b.csv").write_bytes(as_csv(data))
    for attempt in (
        lambda: aggregate(PLAN, tmp_path / "a.csv"),
        lambda: aggregate(PLAN, tmp_path / "a.csv", unlabelled=True),
        lambda: aggregate(PLAN, tmp_path / "b.csv", unlabelled=True),
        lambda: Survey(PLAN).estimate("vote", pd.DataFrame(data)),
        lambda: Survey(PLAN).estimate("vote", data["vote"]),
    ):
        with pytest.raises(LdpoptError) as caught:
            attempt()
        assert quotes(told(caught.value), key) == []


def test_an_error_that_nobody_thought_of_is_one_line(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug whose message quotes an answer is told by its kind and place alone, with exit code 1."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_bytes(as_csv(clean()))
    (tmp_path / "plan.json").write_text(PLAN.to_json(), encoding="utf-8")

    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError(canary("vote"))

    monkeypatch.setattr("ldpopt_survey.collect.coding.Sampler.reports", broken)
    made = CliRunner().invoke(app, ["survey", "privatize", "plan.json", "a.csv", "-o", "r", "--key", str(key)])
    assert made.exit_code == 1
    assert made.output.count("\n") == 1
    assert "unexpected KeyError in test_secrets.py" in made.output
    assert quotes(made.output, key) == []


def test_tracebacks_show_no_locals() -> None:
    """Typer's own tracebacks, which older versions fill with local variables, are told not to."""
    from ldpopt_survey.cli import app as survey

    for one_app in (app, survey):
        assert one_app.pretty_exceptions_show_locals is False
