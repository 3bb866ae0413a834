"""Files of answers become files of reports: exactly once, whole or not at all, and by themselves after a kill.

The tasks of a run: what they share in a process is of this run alone, and is forgotten with it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from ldpopt.errors import InvalidInput
from ldpopt.files import strict
from ldpopt.files.atomic import UNFINISHED
from ldpopt_survey.collect import privatize as tasks
from ldpopt_survey.collect.batch import privatize_frame
from ldpopt_survey.collect.privatize import Job, privatize, privatize_partition
from ldpopt_survey.collect.randomness import Fresh, Memoized, Simulated
from ldpopt_survey.collect.runner import Threads
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.collect.workfolder import WorkFolder, description
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

FILES, ROWS = 6, 400


def randomized_response(k: int) -> np.ndarray:
    return (np.ones((k, k)) + np.eye(k)) / (k + 1)


@cache
def plan(**changes: Any) -> Plan:
    colour = QuestionSpec("colour", ("red", "green", "blue"), column="c", missing="red", unknown="blue")
    settings = {"round": 1, "respondent": "id", "carry": ("stratum",), **changes}
    spec = SurveySpec("demo", (colour, QuestionSpec("vote", (0, 1))), **settings)
    return make_plan(spec, {"colour": randomized_response(3), "vote": randomized_response(2)})


def frame(file: int) -> pd.DataFrame:
    rng = np.random.default_rng(file)
    return pd.DataFrame(
        {
            "id": [f"person-{file}-{i}" for i in range(ROWS)],
            "c": rng.choice(["red", "green", "blue", "puce", None], ROWS, p=[0.4, 0.3, 0.2, 0.05, 0.05]),
            "vote": rng.integers(0, 2, ROWS),
            "stratum": rng.choice(["north", "south"], ROWS),
            "name": "Ludwig",
        }
    )


@pytest.fixture(scope="module")
def made_answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of six Parquet files, which every test copies."""
    folder = tmp_path_factory.mktemp("made")
    for file in range(FILES):
        frame(file).to_parquet(folder / f"{file}.parquet")
    return folder


@pytest.fixture
def answers(tmp_path: Path, made_answers: Path) -> Path:
    """A folder of six Parquet files."""
    return Path(shutil.copytree(made_answers, tmp_path / "answers"))


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The key file of all tests, which every test copies."""
    path = tmp_path_factory.mktemp("key") / "survey.key"
    create_key(path)
    return path


@pytest.fixture
def memoised(tmp_path: Path, key: Path) -> Memoized:
    """Memoized randomness."""
    return Memoized(shutil.copy(key, tmp_path / "survey.key"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, made_answers: Path, key: Path) -> dict[str, bytes]:
    """The reports of a run that nothing interrupts."""
    path = tmp_path_factory.mktemp("whole") / "reports"
    privatize(plan(), made_answers, path, Memoized(key))
    return contents(path)


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


def reports_of(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path)


def test_reports_hold_reports_and_carried_columns_alone(tmp_path: Path, answers: Path, memoised: Memoized) -> None:
    """Rows keep their order; no id, no raw column and no other column of the answers is written."""
    tally = privatize(plan(), answers, tmp_path / "reports", memoised)
    found, raw = reports_of(tmp_path / "reports"), pd.concat([frame(file) for file in range(FILES)])
    assert list(found.columns) == ["colour", "vote", "stratum"]
    assert found["stratum"].tolist() == raw["stratum"].tolist()
    assert set(found["colour"]) == {"0", "1", "2"}
    assert tally.rows == FILES * ROWS
    assert tally.unknown == {"colour": int((raw["c"] == "puce").sum()), "vote": 0}
    assert tally.missing == {"colour": int(raw["c"].isna().sum()), "vote": 0}
    manifest = strict.json_value((tmp_path / "reports" / "_manifest.json").read_bytes())
    assert manifest["plan"] == plan().checksum
    assert manifest["simulation"] is False
    for content in contents(tmp_path / "reports").values():
        assert not any(word in content for word in (b"Ludwig", b"person-", b"puce", b"red", b"survey.key"))
    assert sorted(os.listdir(tmp_path)) == ["answers", "reports", "survey.key"]


def test_reports_follow_the_channel(tmp_path: Path) -> None:
    """Among 200,000 simulated respondents each answer's reports have the channel's frequencies within five sigma."""
    rng, n = np.random.default_rng(0), 200_000
    raw = pd.DataFrame({"c": rng.choice(["red", "green", "blue"], n), "vote": rng.integers(0, 2, n), "stratum": "x"})
    raw.to_parquet(tmp_path / "a.parquet")
    private = plan(respondent=None)
    privatize(private, tmp_path / "a.parquet", tmp_path / "r.parquet", Simulated(rng))
    found = reports_of(tmp_path / "r.parquet")
    for name, column in (("colour", "c"), ("vote", "vote")):
        question = private.question(name)
        for x, category in enumerate(question.categories):
            mine = found[name][raw[column] == category].astype(int)
            share = np.bincount(mine, minlength=len(question.reports)) / len(mine)
            assert np.abs(share - question.channel.matrix[x]).max() < 5 * 0.5 / np.sqrt(len(mine))
    both = pd.crosstab(found["colour"], found["vote"])
    expected = np.outer(both.sum(axis=1), both.sum()) / n
    assert ((both - expected) ** 2 / expected).to_numpy().sum() < 25  # independent questions, independent words
    assert b"true" in (pq.read_schema(tmp_path / "r.parquet").metadata or {})[b"ldpopt-reports"]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("ending", ["", ".parquet", ".csv"])
def test_memoised_reports_repeat(tmp_path: Path, answers: Path, memoised: Memoized, ending: str) -> None:
    """A second run, on two threads, gives the same bytes; another round gives others."""
    outputs = [tmp_path / f"r{i}{ending}" for i in range(3)]
    for output, runner in zip(outputs[:2], (Threads(), Threads(2)), strict=True):
        privatize(plan(), answers, output, memoised, runner)
    privatize(plan(round=2), answers, outputs[2], memoised)
    read = [contents(o) if o.is_dir() else {"": o.read_bytes()} for o in outputs]
    assert read[0] == read[1]
    assert read[0] != read[2]


def test_memoised_reports_follow_the_respondent(tmp_path: Path, memoised: Memoized) -> None:
    """In another order, another file, another format and another company, a respondent's report is the same."""
    raw = pd.concat([frame(0), frame(1)]).reset_index(drop=True)
    shuffled = raw.sample(frac=0.7, random_state=1)
    raw.to_parquet(tmp_path / "a.parquet")
    shuffled.to_csv(tmp_path / "b.csv", index=False)
    privatize(plan(), tmp_path / "a.parquet", tmp_path / "a.r.parquet", memoised)
    privatize(plan(), tmp_path / "b.csv", tmp_path / "b.r.csv", memoised)
    one = reports_of(tmp_path / "a.r.parquet").iloc[shuffled.index].astype(str).reset_index(drop=True)
    two = pd.read_csv(tmp_path / "b.r.csv", dtype=str)
    pd.testing.assert_frame_equal(one, two, check_dtype=False)
    table, _ = privatize_frame(plan(), shuffled, memoised)
    pd.testing.assert_frame_equal(table.to_pandas().astype(str), two, check_dtype=False)


def test_a_changed_channel_draws_new_words(tmp_path: Path, memoised: Memoized) -> None:
    """Under another channel a respondent's report is drawn anew, not decided by the same word."""
    raw = pa.table({"id": [str(i) for i in range(4000)], "q": [0] * 4000})
    spec = SurveySpec("s", (QuestionSpec("q", (0, 1)),), respondent="id")
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    almost = matrix + np.array([[1e-6, -1e-6], [-1e-6, 1e-6]])
    one, two = (privatize_frame(make_plan(spec, {"q": m}), raw, memoised)[0]["q"].to_numpy() for m in (matrix, almost))
    assert 0.3 < (one != two).mean() < 0.45  # 2 * 0.75 * 0.25 = 0.375 when independent


def test_fresh_runs_differ_and_forget_their_key(tmp_path: Path, answers: Path) -> None:
    """Two fresh runs draw different reports, and leave no key behind."""
    private = plan(respondent=None)
    for name in ("r1", "r2"):
        privatize(private, answers, tmp_path / name, Fresh())
    assert contents(tmp_path / "r1") != contents(tmp_path / "r2")
    assert sorted(os.listdir(tmp_path)) == ["answers", "r1", "r2"]


def test_simulated_runs_repeat_and_are_labelled(tmp_path: Path, answers: Path) -> None:
    """The same generator state gives the same bytes; the label is in the manifest and in every file."""
    for name in ("r1", "r2"):
        privatize(plan(), answers, tmp_path / name, Simulated(np.random.default_rng(7)))
    assert contents(tmp_path / "r1") == contents(tmp_path / "r2")
    assert strict.json_value((tmp_path / "r1" / "_manifest.json").read_bytes())["simulation"] is True
    privatize(plan(), answers, tmp_path / "r.csv", Simulated(np.random.default_rng(7)))
    assert strict.json_value((tmp_path / "r.csv.manifest.json").read_bytes())["simulation"] is True


# -- interruptions --------------------------------------------------------------------------------

CHILDREN = """
import json, os, signal, sys
import numpy as np
from pathlib import Path
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Memoized, Simulated

def run(plan, answers, output, key, moment):
    left, sync = moment, os.fsync

    def killing(handle):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        sync(handle)

    os.fsync = killing
    randomness = Memoized(key) if key else Simulated(np.random.default_rng(3))
    privatize(Plan.from_json(Path(plan).read_bytes()), answers, output, randomness)

for line in sys.stdin:
    child = os.fork()
    if not child:
        run(*json.loads(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

Killed = Callable[[Path, Plan, Path, Path, str, int], bool]


@pytest.fixture(scope="module")
def killed() -> Iterator[Killed]:
    """Run in a child that kills itself at its `moment`-th flush to disk; False if it ended before.

    One process has read the package, and each child is a copy of it from before it did anything.
    """
    command = [sys.executable, "-c", CHILDREN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:

        def run(tmp_path: Path, private: Plan, answers: Path, output: Path, key: str, moment: int) -> bool:
            (tmp_path / "plan.json").write_text(private.to_json())
            said = [str(tmp_path / "plan.json"), str(answers), str(output), key, moment]
            parent.stdin.write(json.dumps(said) + "\n")
            parent.stdin.flush()
            return int(parent.stdout.readline()) == -signal.SIGKILL

        yield run


def raw_answers_in_work(folder: Path) -> list[Path]:
    """The files of work folders that hold a raw answer."""
    files = [file for file in folder.glob(".reports.partial*/**/*") if file.is_file()]
    return [file for file in files if b"puce" in file.read_bytes()]


@pytest.mark.full
@pytest.mark.parametrize("moment", [4, 46])
def test_a_killed_run_resumes_to_the_same_bytes(
    tmp_path: Path, answers: Path, memoised: Memoized, killed: Killed, whole: dict[str, bytes], moment: int
) -> None:
    """Killed in setting up or at the end: resumed, the same bytes."""
    key = str(memoised.key_file)
    assert killed(tmp_path, plan(), answers, tmp_path / "reports", key, moment)
    work = tmp_path / ".reports.partial"
    assert (tmp_path / "reports").exists() <= (not (work / "parts").exists())
    assert not raw_answers_in_work(tmp_path)
    tally = privatize(plan(), answers, tmp_path / "reports", memoised)
    assert contents(tmp_path / "reports") == whole
    assert tally.rows == FILES * ROWS
    assert sorted(os.listdir(tmp_path)) == ["answers", "plan.json", "reports", "survey.key"]


@pytest.mark.parametrize("moment", [20])
def test_a_run_with_its_own_key_resumes_with_that_key(
    tmp_path: Path, answers: Path, killed: Killed, moment: int
) -> None:
    """Without memoisation the key waits in the work folder, private, and the resumed run goes on with it."""
    private, output = plan(respondent=None), tmp_path / "r.parquet"
    privatize(private, answers, tmp_path / "whole.parquet", Simulated(np.random.default_rng(3)))
    assert killed(tmp_path, private, answers, output, "", moment)
    work = tmp_path / ".r.parquet.partial"
    assert stat.S_IMODE(work.stat().st_mode) == 0o700
    assert stat.S_IMODE((work / "run.key").stat().st_mode) == 0o600
    privatize(private, answers, output, Simulated(np.random.default_rng(99)))
    assert output.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not work.exists()


@pytest.mark.full
@pytest.mark.parametrize("moment", [39, 40, 41, 42])
def test_a_full_disk_keeps_finished_partitions(
    tmp_path: Path,
    answers: Path,
    memoised: Memoized,
    whole: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    moment: int,
) -> None:
    """A full disk is the system's own error, not a refusal: finished partitions stay, and the run goes on from them."""
    left, real = moment, os.fsync

    def full(handle: int) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            raise OSError(28, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            privatize(plan(), answers, tmp_path / "reports", memoised)
    done = os.listdir(tmp_path / ".reports.partial" / "parts")
    assert 0 < len(done) < FILES
    assert not any(name.startswith(".") for name in done)
    privatize(plan(), answers, tmp_path / "reports", memoised)
    assert contents(tmp_path / "reports") == whole


def test_an_unfinished_run_is_not_continued_with_other_things(
    tmp_path: Path, answers: Path, memoised: Memoized, killed: Killed, whole: dict[str, bytes]
) -> None:
    """Other answers, another plan, another key or another way of drawing would mix two runs: refused, kept.

    Killed between partitions and resumed with its own, it has the same bytes, and nothing that was left written aside.
    """
    output = tmp_path / "reports"
    assert killed(tmp_path, plan(), answers, output, str(memoised.key_file), 30)
    assert not output.exists()
    assert not raw_answers_in_work(tmp_path)
    create_key(tmp_path / "other.key")
    for private, randomness in (
        (plan(round=2), memoised),
        (plan(), Memoized(tmp_path / "other.key")),
        (plan(), Fresh()),
    ):
        with pytest.raises(InvalidInput, match="began with"):
            privatize(private, answers, output, randomness)
    (answers / "3.parquet").rename(tmp_path / "own")
    frame(9).to_parquet(answers / "3.parquet")
    with pytest.raises(InvalidInput, match="files that the unfinished run began with"):
        privatize(plan(), answers, output, memoised)
    (tmp_path / "own").rename(answers / "3.parquet")
    (tmp_path / ".reports.partial" / "parts" / UNFINISHED.replace("*", "0")).write_text("half")
    assert privatize(plan(), answers, output, memoised).rows == FILES * ROWS
    assert contents(output) == whole


def test_answers_that_change_during_the_run(tmp_path: Path, answers: Path, memoised: Memoized) -> None:
    """When the answers were changed meanwhile, nothing is released."""

    def change(done: int, total: int) -> None:
        assert 0 < done <= total == FILES
        frame(9).to_parquet(answers / "0.parquet")

    with pytest.raises(InvalidInput, match="files"):
        privatize(plan(), answers, tmp_path / "reports", memoised, progress=change)
    assert not (tmp_path / "reports").exists()


def test_two_runs_do_not_write_the_same_reports(tmp_path: Path, answers: Path, memoised: Memoized) -> None:
    """While one run writes the reports, another is refused."""

    def second(done: int, total: int) -> None:
        privatize(plan(), answers, tmp_path / "reports", memoised)

    with pytest.raises(InvalidInput, match="no other run"):
        privatize(plan(), answers, tmp_path / "reports", memoised, progress=second)


# -- policies and refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(("column", "value"), [("vote", 7), ("vote", None), ("id", None), ("id", "person-0-1")])
def test_a_refusal_leaves_nothing(
    tmp_path: Path, answers: Path, memoised: Memoized, column: str, value: object
) -> None:
    """A bad answer, a missing id or a repeated one ends the run; the message has row and column, no value."""
    bad = frame(4).astype({column: object})
    bad.loc[10, column] = value
    bad.convert_dtypes().to_parquet(answers / "4.parquet")
    with pytest.raises(InvalidInput, match=f"row {4 * ROWS + 11}") as caught:
        privatize(plan(), answers, tmp_path / "reports", memoised, Threads(2))
    assert column in str(caught.value)
    assert "person" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["answers", "survey.key"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_first_of_duplicates(tmp_path: Path, memoised: Memoized, ending: str) -> None:
    """With that policy later rows of a respondent are left out and counted, across files, and in memory too."""
    raw = pd.concat([frame(0), frame(1), frame(0).assign(vote=frame(3)["vote"].to_numpy()), frame(2).iloc[:5]])
    folder = tmp_path / "answers"
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(raw)), 3)):
        getattr(raw.iloc[part], f"to_{ending}")(folder / f"{number}.{ending}", index=False)
    private = plan(first_of_duplicates=True)
    tally = privatize(private, folder, tmp_path / "r", memoised)
    assert (tally.rows, tally.duplicates) == (2 * ROWS + 5, ROWS)
    clean, _ = privatize_frame(private, raw.drop_duplicates("id"), memoised)
    found = pa.concat_tables(
        [csv.read_csv(p) if ending == "csv" else pq.read_table(p) for p in sorted((tmp_path / "r").glob(f"*.{ending}"))]
    )
    assert found["stratum"].to_pylist() == clean["stratum"].to_pylist()
    for name in ("colour", "vote"):
        assert [str(v) for v in found[name].to_pylist()] == clean[name].to_pylist()
    assert privatize_frame(private, raw, memoised)[0].equals(clean)
    with pytest.raises(InvalidInput, match=f"row {2 * ROWS + 1}"):
        privatize_frame(plan(), raw, memoised)


def test_missing_inputs_and_existing_outputs_are_refused(tmp_path: Path, answers: Path, memoised: Memoized) -> None:
    """A taken path, an absent column, no rows, no folder and the wrong randomness are refused."""
    (tmp_path / "taken").mkdir()
    with pytest.raises(InvalidInput, match="not taken"):
        privatize(plan(), answers, tmp_path / "taken", memoised)
    with pytest.raises(InvalidInput, match="Memoized"):
        privatize(plan(), answers, tmp_path / "r")
    with pytest.raises(InvalidInput, match="respondent"):
        privatize(plan(respondent=None), answers, tmp_path / "r", memoised)
    with pytest.raises(InvalidInput, match="a folder that exists"):
        privatize(plan(), answers, tmp_path / "no" / "r", memoised)
    with pytest.raises(InvalidInput, match="a path in UTF-8"):
        privatize(plan(), answers, tmp_path / "\udcff.csv", memoised)
    with pytest.raises(InvalidInput, match="Generator"):
        Simulated("3")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="'weight'"):
        privatize(plan(carry=("weight",)), answers, tmp_path / "r", memoised)
    (tmp_path / "none.csv").write_text("id,c,vote,stratum\n")
    with pytest.raises(InvalidInput, match="no rows; expected at least one"):
        privatize(plan(), tmp_path / "none.csv", tmp_path / "r", memoised)
    assert sorted(os.listdir(tmp_path)) == ["answers", "none.csv", "survey.key", "taken"]


def test_ids_may_be_integers(tmp_path: Path, memoised: Memoized) -> None:
    """The id 7 is the id "7" and the float 7."""
    raw = pa.table({"id": [7, 8], "c": ["red", "red"], "vote": [0, 1], "stratum": ["a", "b"]})
    text = raw.set_column(0, "id", raw["id"].cast(pa.string()))
    assert privatize_frame(plan(), raw, memoised)[0].equals(privatize_frame(plan(), text, memoised)[0])
    floats = raw.set_column(0, "id", raw["id"].cast(pa.float64()))
    assert privatize_frame(plan(), raw, memoised)[0].equals(privatize_frame(plan(), floats, memoised)[0])


class Interchanged:
    """A frame that speaks the older interchange protocol alone."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(frame)

    def __dataframe__(self, **options: Any) -> Any:
        return self._table.__dataframe__(**options)


def test_frames_of_other_libraries(memoised: Memoized) -> None:
    """pandas and Polars frames give the same reports; something else is refused."""
    raw = frame(0)
    one, _ = privatize_frame(plan(), raw, memoised)
    two, _ = privatize_frame(plan(), polars.from_pandas(raw), memoised)
    older, _ = privatize_frame(plan(), Interchanged(raw), memoised)
    assert one["vote"].to_pylist() == two["vote"].to_pylist() == older["vote"].to_pylist()
    with pytest.raises(InvalidInput, match="data frame"):
        privatize_frame(plan(), raw.to_dict(), memoised)
    with pytest.raises(InvalidInput, match="no rows; expected at least one"):
        privatize_frame(plan(), raw.iloc[:0].astype({"c": str, "id": str}), memoised)


def planned(respondent: str | None = None, share: float = 0.75) -> Plan:
    spec = SurveySpec("s", (QuestionSpec("q", ("no", "yes")),), respondent=respondent)
    return make_plan(spec, {"q": [[share, 1 - share], [1 - share, share]]})


def written(folder: Path, values: list[str]) -> Path:
    path = folder / "answers.csv"
    pd.DataFrame({"id": range(len(values)), "q": values}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("values", [["no", "yes"], ["no", "perhaps"]])
def test_keys_are_forgotten_when_a_run_ends(tmp_path: Path, values: list[str]) -> None:
    """Nothing that tasks share, the key among it, stays in the process, whether the run ends well or is refused."""
    given = written(tmp_path, values)
    if "perhaps" in values:
        with pytest.raises(InvalidInput):
            privatize(planned(), given, tmp_path / "out", Fresh())
    else:
        privatize(planned(), given, tmp_path / "out", Fresh())
    assert tasks._open_job.cache_info().currsize == 0


def test_a_task_takes_no_other_plan_key_or_folder(tmp_path: Path) -> None:
    """The plan, the key and the state must be those that the caller named, whatever lies in the folder."""
    create_key(tmp_path / "key")
    create_key(tmp_path / "other")
    made = planned("id")
    files, key = [written(tmp_path, ["no", "yes"])], Memoized(tmp_path / "key")
    folder = WorkFolder.create(tmp_path / ".out.partial", made, files, key, description(made, files, "memoised", "csv"))
    job = Job(str(folder.path), folder.seal, made.checksum, str(tmp_path / "key"))
    for wrong, said in (
        (replace(job, plan=planned("id", 0.8).checksum), "plan"),
        (replace(job, key_file=str(tmp_path / "other")), "key file"),
        (replace(job, seal="0" * 64), "work folder"),
    ):
        with pytest.raises(InvalidInput, match=said):
            privatize_partition(wrong, 0)
        tasks.forget_keys()
    with pytest.raises(InvalidInput, match="rows to leave out"):
        privatize_partition(job, 0)
    tasks.forget_keys()
    assert not folder.part(0).exists()


@pytest.mark.full
def test_a_file_is_privatized_once_under_whatever_name(tmp_path: Path) -> None:
    """Fresh reports of the same rows would spend their epsilon twice: the same file or content is refused."""
    answers = written(tmp_path, ["no", "yes", "yes"])
    folder = tmp_path / "folder"
    folder.mkdir()
    os.link(answers, folder / "linked.csv")
    (tmp_path / "symbolic.csv").symlink_to(answers)
    (tmp_path / "copy.csv").write_bytes(answers.read_bytes())
    relative = Path(os.path.relpath(answers))
    same = ([answers, answers], [answers, relative], [answers, folder], [answers, tmp_path / "symbolic.csv"])
    for files in same:
        with pytest.raises(InvalidInput, match="every file once"):
            privatize(planned(None), files, tmp_path / "out.csv", alike=True)
    with pytest.raises(InvalidInput, match="the same content in"):
        privatize(planned(None), [answers, tmp_path / "copy.csv"], tmp_path / "out.csv")
    assert not [path for path in tmp_path.iterdir() if "out" in path.name and not path.name.endswith(".lock")]
    assert privatize(planned(None), [answers, tmp_path / "copy.csv"], tmp_path / "out.csv", alike=True).rows == 6


@pytest.mark.full
def test_a_run_is_not_resumed_with_answers_that_changed_unseen(tmp_path: Path) -> None:
    """Other answers of the same size and time are known by their content: two reports are not made with one word."""

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    answers = written(tmp_path, ["no", "yes"])
    before = answers.stat()
    with pytest.raises(KeyboardInterrupt):
        privatize(planned(None), answers, tmp_path / "out.csv", progress=interrupt)
    written(tmp_path, ["yes", "no"])
    os.utime(answers, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert answers.stat().st_size == before.st_size
    with pytest.raises(InvalidInput, match="the files that the unfinished run began with"):
        privatize(planned(None), answers, tmp_path / "out.csv")
