"""No second fresh report of the same answers in a round, whatever its name, writing or order; chance is let through."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect.ledger import Ledger, Marks, RowMarker, _marks, ledger_of
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Fresh, Memoized, Simulated
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

N = 600


@cache
def plan(**changes: Any) -> Plan:
    questions = (QuestionSpec("vote", ("no", "yes")), QuestionSpec("age", (1, 2, 3)))
    return make_plan(
        SurveySpec("s", questions, **changes), lambda q: np.eye(len(q.categories)) * 0.5 + 0.5 / len(q.categories)
    )


def people(seed: int, n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"vote": rng.choice(["no", "yes"], n), "age": rng.integers(1, 4, n), "note": rng.random(n)})


DUPLICATES = {
    "itself": lambda raw: raw,
    "other columns": lambda raw: raw[["age", "vote"]],
    "one more column": lambda raw: raw.assign(more=1),
    "numbers as text": lambda raw: raw.assign(age=raw["age"].astype(str)),
    "a hundred of them": lambda raw: raw.iloc[200:300],
    "without the first": lambda raw: raw.iloc[40:],
    "without the last": lambda raw: raw.iloc[:-100],
    "with newcomers": lambda raw: pd.concat([people(99, 300), raw]),
    "the first half": lambda raw: raw.iloc[: N // 2],
    "another question answered anew": lambda raw: raw.assign(vote=people(98)["vote"]),
    "two changed": lambda raw: raw.assign(vote=["yes", "no", *raw["vote"][2:]]),
}


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with answers, reports of them and their ledger."""
    folder = tmp_path_factory.mktemp("reported")
    people(1).to_csv(folder / "a.csv", index=False)
    ledger = ledger_of(folder / "plan.json")
    assert privatize(plan(), folder / "a.csv", folder / "r.csv", ledger=ledger).rows == N
    return folder


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("kind", "ending"),
    [*((kind, "csv") for kind in DUPLICATES), *((kind, "parquet") for kind in ("itself", "numbers as text"))],
)
def test_the_same_people_again_are_refused(tmp_path: Path, reported: Path, kind: str, ending: str) -> None:
    """In another run, in another format or name, in part or among others, and nothing is left behind."""
    shutil.copytree(reported, tmp_path, dirs_exist_ok=True)
    raw, ledger = people(1), ledger_of(tmp_path / "plan.json")
    getattr(DUPLICATES[kind](raw), f"to_{ending}")(tmp_path / f"b.{ending}", index=False)
    with pytest.raises(InvalidInput, match="spend their epsilon twice"):
        privatize(plan(), tmp_path / f"b.{ending}", tmp_path / "again.csv", ledger=ledger)
    there = {"a.csv", f"b.{ending}", "r.csv", "r.csv.manifest.json", "plan.json.ledger"}
    assert {path.name for path in tmp_path.iterdir()} == there
    assert os.name != "posix" or ledger.stat().st_mode & 0o077 == 0
    people(2).to_csv(tmp_path / "c.csv", index=False)
    assert privatize(plan(), tmp_path / "c.csv", tmp_path / "other.csv", ledger=ledger).other_rounds == 0


def test_one_question_alone_is_no_repetition() -> None:
    """Of 50 files of answers to a single question none seems to hold the same people twice; doubled ones all do."""
    import pyarrow as pa

    for seed in range(50):
        rng = np.random.default_rng(seed)
        raw = pd.DataFrame({"vote": rng.random(int(rng.integers(1, 3000))) < rng.uniform(0.05, 0.5)})
        for frame in (raw, pd.concat([raw] * 2, ignore_index=True)):
            marking = RowMarker(["vote"], ["vote"], b"k" * 32)
            list(marking.mark_batches(pa.table(frame).to_batches(1 << 16)))
            assert not (frame is raw and marking.marks.has_repeated_rows)
        assert marking.marks.has_repeated_rows >= (len(raw) > 1500)


def test_the_same_people_twice_in_one_run_are_refused(tmp_path: Path) -> None:
    """As two halves of one file, and as files of other bytes; --alike takes them."""
    raw = people(3)
    pd.concat([raw, raw]).to_csv(tmp_path / "twice.csv", index=False)
    raw.to_csv(tmp_path / "a.csv", index=False)
    raw.to_csv(tmp_path / "b.csv", index=False, lineterminator="\r\n")
    for answers in (tmp_path / "twice.csv", [tmp_path / "a.csv", tmp_path / "b.csv"]):
        with pytest.raises(InvalidInput, match="come again"):
            privatize(plan(), answers, tmp_path / "r.csv")
    assert privatize(plan(), tmp_path / "twice.csv", tmp_path / "r.csv", alike=True).rows == 2 * N


def test_rows_in_another_order_are_recognised(tmp_path: Path) -> None:
    """Where rows differ enough, their order does not matter; two answers in any order might be anybody's."""
    raw = people(4).assign(age=lambda one: 1 + one.index % 3)
    fine = make_plan(
        SurveySpec("s", (QuestionSpec("vote", ("no", "yes")),), carry=("day",)), {"vote": [[0.7, 0.3], [0.3, 0.7]]}
    )
    raw["day"] = np.random.default_rng(5).integers(0, 60, N)
    raw.to_csv(tmp_path / "a.csv", index=False)
    raw.sample(frac=1, random_state=0).to_csv(tmp_path / "b.csv", index=False)
    privatize(fine, tmp_path / "a.csv", tmp_path / "r.csv", ledger=tmp_path / "l")
    with pytest.raises(InvalidInput, match="epsilon twice"):
        privatize(fine, tmp_path / "b.csv", tmp_path / "s.csv", ledger=tmp_path / "l")


def test_rounds_are_counted_and_memoised_words_spend_nothing(tmp_path: Path) -> None:
    """A plan of another round counts the answers; the same key repeats its reports, and another key is refused."""
    raw = people(6).assign(id=[f"p{one}" for one in np.random.default_rng(7).permutation(N)])
    raw.to_csv(tmp_path / "a.csv", index=False)
    for name in ("k", "other"):
        create_key(tmp_path / name)
    for number, (made, source, rounds) in enumerate([
        (plan(respondent="id"), Memoized(tmp_path / "k"), 0), (plan(respondent="id"), Memoized(tmp_path / "k"), 0),
        (plan(respondent="id"), Simulated(1), 0), (plan(respondent="id", round=2), Fresh(), 1),
        (plan(respondent="id", round=3), Fresh(), 2),
    ]):  # fmt: skip
        tally = privatize(made, tmp_path / "a.csv", tmp_path / f"{number}.csv", source, ledger=tmp_path / "l")
        assert (tally.rows, tally.other_rounds) == (N, rounds)
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()
    for source in (Memoized(tmp_path / "other"), Fresh()):
        with pytest.raises(InvalidInput, match="epsilon twice"):
            privatize(plan(respondent="id"), tmp_path / "a.csv", tmp_path / "r.csv", source, ledger=tmp_path / "l")


def marks(raw: pd.DataFrame, secret: bytes = b"k" * 32) -> Marks:
    import pyarrow as pa

    marking = RowMarker(["vote", "age"], ["vote", "age"], secret)
    list(marking.mark_batches(pa.table(raw).to_batches(1 << 16)))
    return marking.marks


@pytest.mark.full
def test_other_people_are_let_through() -> None:
    """Of 150 pairs of files of independent people, from 1 to 5,000 and from rare to even answers, none is the same."""
    rng = np.random.default_rng(8)
    for _ in range(150):
        n, share = int(10 ** rng.uniform(0, 3.7)), rng.uniform(0.001, 0.5)
        one, other = (marks(pd.DataFrame({"vote": rng.random(n) < share, "age": rng.integers(0, 3, n) * (share > 0.2)}))
                      for _ in range(2))  # fmt: skip
        assert not one.overlaps(other)
        assert not one.has_repeated_rows


def test_marks_depend_on_the_key_and_add_up() -> None:
    """Under two keys no mark is the same, marks of parts add up, and a malformed ledger is refused."""
    raw = people(9)
    one, other = marks(raw), marks(raw, b"o" * 32)
    assert one.overlaps(one)
    assert not one.overlaps(other)
    halves = marks(raw.iloc[:300]) + marks(raw.iloc[300:])
    assert halves.rows == N
    assert halves.overlaps(one)


HEAD = '"format": "ldpopt-ledger", "version": 1'


@pytest.mark.parametrize(
    "content", ["", "{}", f'{{{HEAD}, "key": "xx", "runs": []}}', f'{{{HEAD}, "key": "", "runs": 1}}']
)
def test_a_file_that_is_no_ledger(tmp_path: Path, content: str) -> None:
    """It is refused, and not overwritten."""
    (tmp_path / "l").write_text(content)
    with pytest.raises(InvalidInput):
        Ledger(tmp_path / "l").secret()
    assert (tmp_path / "l").read_text() == content


def test_a_round_beyond_the_announced_ones_is_refused(tmp_path: Path) -> None:
    """A survey of two rounds has no third, whatever a later plan declares, but for other people or another name."""
    for number in range(3):
        people(number).to_csv(tmp_path / f"{number}.csv", index=False)
    for number in (1, 2):
        made = plan(round=number, rounds=2)
        privatize(made, tmp_path / f"{number - 1}.csv", tmp_path / f"r{number}.csv", ledger=tmp_path / "l")
    later = plan(round=3, rounds=3)
    with pytest.raises(InvalidInput, match="round: expected at most 2, of which respondents of 's' were told before"):
        privatize(later, tmp_path / "2.csv", tmp_path / "r3.csv", ledger=tmp_path / "l")
    privatize(later, tmp_path / "2.csv", tmp_path / "r3.csv", ledger=tmp_path / "l", alike=True)
    people(9).to_csv(tmp_path / "9.csv", index=False)
    tally = privatize(replace(later, name="anew"), tmp_path / "9.csv", tmp_path / "r9.csv", ledger=tmp_path / "l")
    assert tally.rows == N


def test_a_ledger_that_others_can_read_is_refused(tmp_path):
    """It holds a key; a folder in its place is refused, too."""
    ledger = Ledger(tmp_path / "plan.ledger")
    ledger.secret()
    ledger.path.chmod(0o644)
    with pytest.raises(InvalidInput, match="mode 0600"):
        ledger.secret()
    for folder in (tmp_path, Path("."), Path("/")):
        with pytest.raises(InvalidInput, match="the path of a file, got a folder"):
            Ledger(folder)


def test_marks_of_values_are_the_keyed_hashes_that_ledgers_hold():
    """A mark is BLAKE2b of the column and the value, numbers in one writing, as it was in every earlier ledger."""
    values = ["5", "5.0", " 5 ", "05", "", None, "yes", "-inf", "NaN", "infinity", "1_000", "1e3", "+.5", "٣",
              "\u00a05", "ja é", "\x1f7\x1c", "no", "0x1", "é\u2003"]  # fmt: skip
    secret = bytes(range(32))

    def mark(value):
        plain = (value or "").strip()
        with suppress(ValueError):
            plain = repr(float(plain))
        content = f"4 vote {plain}".encode()
        return int.from_bytes(hashlib.blake2b(content, key=secret, digest_size=8).digest(), "little")

    made = _marks([None if value is None else value.encode() for value in values], "vote", secret)
    assert made.tolist() == [mark(value) for value in values]
    assert len(set(made[:4].tolist())) == 1
