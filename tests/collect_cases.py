"""The cases of `results_on_record` for privatizing answers, reading reports and resuming interrupted runs."""

import copy
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from results_on_record import Case, odd, plain

from ldpopt import survey
from ldpopt.errors import LdpoptError
from ldpopt.exact import ExactChannel
from ldpopt.survey.collect import answers as answer_files
from ldpopt.survey.collect import batch, coding, delivery, manifest, workfolder
from ldpopt.survey.collect import privatize as tasks
from ldpopt.survey.collect import words as memo
from ldpopt.survey.collect.aggregate import Counts, aggregate, read_rows, table_names
from ldpopt.survey.collect.batch import privatize_frame
from ldpopt.survey.collect.coding import Sampler
from ldpopt.survey.collect.privatize import privatize
from ldpopt.survey.collect.randomness import Fresh, Memoised, Simulated, WordSource, word_tags
from ldpopt.survey.collect.runner import Threads, every
from ldpopt.survey.collect.words import Given, Keystream, SecretKey, read_key

KEY = SecretKey(bytes(range(32)))
FORMS = ("one.csv", "one.parquet", "folder")


def channel(k: int) -> list[list[float]]:
    """Randomized response in quarters, eighths and so on."""
    away = 1 / 2 ** k.bit_length()
    return [[1 - (k - 1) * away if x == y else away for y in range(k)] for x in range(k)]


def plan(respondent: str | None = "id", **changes: Any) -> Any:
    """A plan of three questions with policies of every kind."""
    questions = (
        survey.QuestionSpec("colour", ("red", "green", "blue"), column="c", missing="red", unknown="blue"),
        survey.QuestionSpec("vote", (0, 1)),
        survey.QuestionSpec("size", ("s", "m", "l", "xl"), missing="m"),
    )
    settings = {"round": 1, "respondent": respondent, "carry": ("stratum",), **changes}
    return survey.make_plan(survey.SurveySpec("demo", questions, **settings), lambda q: channel(len(q.categories)))


def columns(first: int, rows: int) -> dict[str, list[Any]]:
    """Answers, some of them missing or unknown."""
    at = range(first, first + rows)
    return {
        "id": [f"person-{x}" for x in at],
        "c": [("red", "green", "blue", "puce", None)[x * x % 5] for x in at],
        "vote": [x * x * x % 7 % 2 for x in at],
        "size": [("s", "m", "l", "xl", None)[x * 3 % 5] for x in at],
        "stratum": [("north", "south")[x % 3 % 2] for x in at],
        "name": ["Ludwig"] * rows,
    }


def text_of(found: dict[str, list[Any]]) -> str:
    """The columns as CSV."""
    rows = zip(*found.values(), strict=True)
    lines = [",".join(found), *(",".join("" if value is None else str(value) for value in row) for row in rows)]
    return "\n".join(lines) + "\n"


def inside(work: Callable[[Path], Any]) -> Callable[[], Any]:
    """A case in a folder of its own, which is not part of what it says."""

    def case() -> Any:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            (folder / "key").write_bytes(b"")
            (folder / "key").unlink()
            KEY.save(folder / "key")
            try:
                found = plain(work(folder))
            except LdpoptError as error:
                found = f"{type(error).__name__}: {error}"
            return json.loads(json.dumps(found).replace(str(folder), "FOLDER"))

    return case


def written(folder: Path, kind: str = "csv", files: int = 2, rows: int = 7) -> Path:
    """Files of answers."""
    made = folder / "answers"
    made.mkdir()
    for file in range(files):
        found = columns(file * rows, rows)
        if kind == "csv":
            (made / f"{file}.csv").write_text(text_of(found), "utf-8")
        else:
            pq.write_table(pa.table(found), made / f"{file}.parquet")
    return made


def contents(path: Path) -> Any:
    """What a file or a folder of reports holds."""
    if path.is_dir():
        return {one.name: contents(one) for one in sorted(path.iterdir())}
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        said = table.schema.metadata or {}
        return table.to_pydict(), said.get(manifest.FORMAT.encode(), b"").decode()
    return path.read_text("utf-8")


def randomness(folder: Path, mode: str) -> Any:
    """Words under the known key."""
    return Memoised(folder / "key") if mode == "memoised" else Simulated(np.random.default_rng(3))


def reported(folder: Path, form: str = "one.csv", mode: str = "memoised", kind: str = "csv", made: Any = None) -> Path:
    """Reports of some answers."""
    made = made or plan(None if mode == "simulated" else "id")
    source = folder / "answers" if (folder / "answers").exists() else written(folder, kind)
    privatize(made, source, folder / form, randomness(folder, mode))
    return folder / form


def _privatize() -> list[Case]:
    made: list[Case] = []
    for form in FORMS:
        for mode in ("memoised", "simulated"):
            for kind in ("csv", "parquet"):

                def work(folder: Path, form: str = form, mode: str = mode, kind: str = kind) -> Any:
                    made = plan(None if mode == "simulated" else "id")
                    steps: list[Any] = []
                    tally = privatize(
                        made,
                        written(folder, kind),
                        folder / form,
                        randomness(folder, mode),
                        progress=lambda *n: steps.append(n),
                    )
                    return tally, steps, contents(folder / form), sorted(one.name for one in folder.iterdir())

                made.append((f"{form} {mode} {kind}", inside(work)))
    refused = {
        "taken": lambda f: (reported(f), reported(f)),
        "no folder": lambda f: privatize(plan(), written(f), f / "no" / "one.csv", Memoised(f / "key")),
        "no answers": lambda f: privatize(plan(), f / "none.csv", f / "one.csv", Memoised(f / "key")),
        "no files": lambda f: privatize(plan(), [], f / "one.csv", Memoised(f / "key")),
        "no rows": lambda f: privatize(plan(), written(f, rows=0), f / "one.csv", Memoised(f / "key")),
        "fresh": lambda f: len(contents((privatize(plan(), written(f), f / "a.csv", Fresh()), f / "a.csv")[1])) > 100,
        "default": lambda f: privatize(plan(), written(f), f / "one.csv"),
        "words": lambda f: privatize(plan(), written(f), f / "one.csv", "x"),
        "memoised without ids": lambda f: privatize(plan(None), written(f), f / "one.csv", Memoised(f / "key")),
        "no key": lambda f: privatize(plan(), written(f), f / "one.csv", Memoised(f / "none")),
        "two threads": lambda f: privatize(plan(), written(f), f / "one.csv", Memoised(f / "key"), Threads(2)),
        "twice an id": lambda f: privatize(plan(), [written(f) / "0.csv"] * 2, f / "one.csv", Memoised(f / "key")),
        "rng": lambda f: Simulated("7"),
    }
    made += [(name, inside(work)) for name, work in refused.items()]
    for policy in (False, True):
        given = columns(0, 5)
        given["id"][3] = given["id"][1]

        def repeated(folder: Path, policy: bool = policy, given: Any = given) -> Any:
            (folder / "a.csv").write_text(text_of(given), "utf-8")
            tally = privatize(
                plan(first_of_duplicates=policy), folder / "a.csv", folder / "one.csv", Memoised(folder / "key")
            )
            return tally, contents(folder / "one.csv")

        made.append((f"first of duplicates {policy}", inside(repeated)))
    return made


BAD = {
    "vote": (
        [0, 1, 2],
        [0, 1, None],
        [0.0, 1.0, 0.5],
        [0.0, 1.0, 1.0],
        ["0", "1", "1"],
        [True, False, True],
        [10**17, 0, 1],
        ["0", " 1", "1"],
        [-1, 0, 1],
        [2**62, 0, 1],
        [1e300, 0.0, 1.0],
        [float("nan"), 0.0, 1.0],
        [b"0", b"1", b"1"],
        [[0], [1], [1]],
        ["1.0", "0", "0"],
        ["", "0", "1"],
    ),
    "c": (
        ["red", "x", None],
        [1, 2, 3],
        [None, None, None],
        [["red"], ["x"], []],
        [b"red", b"x", None],
        ["red", "", " red"],
    ),
    "size": (["s", "q", "m"], [None, "", "xl"]),
    "id": (
        ["a", "b", "a"],
        ["a", None, "c"],
        [1, 2, 3],
        [1.5, 2.0, 3.0],
        ["", "b", "c"],
        [b"a", b"b", b"c"],
        [True, False, True],
        ["x" * 70000, "b", "c"],
    ),
    "stratum": ([None, 1, 2], [b"a", b"b", b"c"], [[1], [2], [3]], [1.5, 2.5, None]),
}


def _frames() -> list[Case]:
    made: list[Case] = []
    for name, lists in BAD.items():
        for at, values in enumerate(lists):
            given = {**columns(0, 3), name: values}

            def framed(folder: Path, given: Any = given) -> Any:
                table, tally = privatize_frame(plan(), pa.table(given), Memoised(folder / "key"))
                return table.to_pydict(), tally

            def filed(folder: Path, given: Any = given) -> Any:
                pq.write_table(pa.table(given), folder / "a.parquet")
                tally = privatize(plan(), folder / "a.parquet", folder / "one.csv", Memoised(folder / "key"))
                return tally, contents(folder / "one.csv")

            def worded(folder: Path, given: Any = given) -> Any:
                (folder / "a.csv").write_text(text_of(given), "utf-8")
                tally = privatize(plan(), folder / "a.csv", folder / "one.csv", Memoised(folder / "key"))
                return tally, contents(folder / "one.csv")

            made += [(f"frame {name} {at}", inside(framed)), (f"file {name} {at}", inside(filed))]
            made.append((f"text {name} {at}", inside(worded)))
        without = {key: value for key, value in columns(0, 3).items() if key != name}

        def lacking(folder: Path, without: Any = without) -> Any:
            return privatize_frame(plan(), pa.table(without), Memoised(folder / "key"))[1]

        made.append((f"frame without {name}", inside(lacking)))
    twice = pa.table([pa.array([1]), pa.array([1])], names=["vote", "vote"])
    made += [
        ("frame twice a column", inside(lambda f: privatize_frame(plan(), twice, Memoised(f / "key")))),
        ("frame of words", inside(lambda f: privatize_frame(plan(), "x", Memoised(f / "key")))),
        (
            "frame of no rows",
            inside(lambda f: privatize_frame(plan(), pa.table(columns(0, 3)).slice(0, 0), Memoised(f / "key"))[1]),
        ),
    ]
    texts = (
        "vote\n",
        "",
        "a,b\n1\n",
        'id,c,vote,size,stratum\n"a,red,0,s,x\n',
        "id,c,vote,size,stratum\na,red,0,s,x",
        ",,,,\n",
        "id,c,vote,size,stratum\na,red,0,s\n",
        "id,c,vote,size,stratum,c\na,red,0,s,x,red\n",
        "\ufeffid,c,vote,size,stratum\na,red,0,s,x\n",
        "id,c,vote,size,stratum\r\na,red,0,s,x\r\n",
        "id,c,vote,size,stratum\n\na,red,0,s,x\n\n",
        'id,c,vote,size,stratum\n"a",red,0,s,"x,y"\n',
    )
    for at, text in enumerate(texts):

        def read(folder: Path, text: str = text) -> Any:
            (folder / "a.csv").write_bytes(text.encode())
            tally = privatize(plan(), folder / "a.csv", folder / "one.csv", Memoised(folder / "key"))
            return tally, contents(folder / "one.csv")

        made.append((f"csv {at}", inside(read)))
    return made


def _tampered(data: Any) -> Iterator[tuple[str, Any]]:
    """A JSON object with every field left out, and replaced."""
    for name in data:
        other = copy.deepcopy(data)
        del other[name]
        yield f"without {name}", other
        values: list[Any] = [None, True, -1, 0, 1.5, "", "x", [], {}, [None], ["x"], "0" * 32, "f" * 64, 10**30]
        if isinstance(data[name], int):
            values += [data[name] + 1, data[name] - 1, float(data[name])]
        if isinstance(data[name], list):
            values += [data[name][:-1], data[name] + data[name][:1]]
        for at, value in enumerate(values):
            yield f"{name} {at}", {**copy.deepcopy(data), name: value}
    yield "and more", {**data, "more": 1}
    yield from (("a list", [data]), ("none", None), ("words", "x"))


def _manifests() -> list[Case]:
    made: list[Case] = []
    known = manifest.Manifest.of(plan(), "memoised", 5, ["0" * 31 + "7", "f" * 32], "a" * 64)
    for said, other in _tampered(known.to_dict()):
        made.append((f"manifest {said}", partial(manifest.Manifest.from_dict, other, "it")))
    others: tuple[dict[str, Any], ...] = ({"round": 2}, {"respondent": None}, {"carry": ()})
    made += [(f"manifest of {change}", lambda c=change: known.require(plan(**c), "it")) for change in others]
    made += [("manifest itself", lambda: (known, known.to_json(), known.fingerprint, known.require(plan(), "it")))]

    def listed(folder: Path, change: Callable[[Any], Any]) -> Any:
        target = reported(folder, "folder")
        path = target / manifest.FOLDER
        data = json.loads(path.read_text("utf-8"))
        path.write_text(json.dumps(change(data)), "utf-8")
        return aggregate(plan(), target).rows

    def inner(name: str, value: Any) -> Callable[[Any], Any]:
        def change(data: Any) -> Any:
            first = sorted(data["files"])[0]
            return {**data, "files": {**data["files"], first: {**data["files"][first], name: value}}}

        return change

    changes: dict[str, Callable[[Any], Any]] = {
        "as it is": lambda data: data,
        "more rows": lambda data: {**data, "rows": data["rows"] + 1},
        "no files": lambda data: {**data, "files": {}},
        "files as a list": lambda data: {**data, "files": []},
        "list": lambda data: [data],
        "other plan": lambda data: {**data, "plan": "0" * 64},
        "simulated": lambda data: {**data, "simulation": True},
        "file more": inner("rows", 9),
        "file plan": inner("plan", "0" * 64),
        "file simulated": inner("simulation", True),
        "file sum": inner("sha256", "0" * 64),
        "file no sum": inner("sha256", ""),
        "file round": inner("round", 2),
        "file parts": inner("parts", []),
    }
    made += [(f"list {name}", inside(partial(listed, change=change))) for name, change in changes.items()]
    return made


def _counts() -> list[Case]:
    def counted(folder: Path, form: str, mode: str) -> Any:
        made = plan(None if mode == "simulated" else "id")
        found = aggregate(made, reported(folder, form, mode), [("vote", "colour"), ("size", "size"[::1])][:1])
        rows = read_rows(made, folder / form, ["stratum"])
        same = rows.counts == aggregate(made, folder / form), rows.n, repr(rows), repr(found)
        tables = {" x ".join(key): value for key, value in found.tables.items()}
        return (
            tables,
            found.rows,
            found.simulation,
            sorted(found.sources),
            rows.reports,
            rows.columns,
            same,
            found.to_json(),
        )

    made: list[Case] = [
        (f"{f} {m}", inside(partial(counted, form=f, mode=m))) for f in FORMS for m in ("memoised", "simulated")
    ]
    known = Counts(
        plan().checksum,
        5,
        {("vote",): np.array([2, 3]), ("vote", "colour"): np.array([[1, 1, 0], [2, 0, 1]])},
        sources=frozenset(["0" * 32]),
    )
    data = json.loads(known.to_json())
    for said, other in _tampered(data):
        made.append((f"counts {said}", lambda other=other: Counts.from_json(json.dumps(other), plan()).to_json()))
    for said, other in _tampered(data["tables"][1]):
        changed = {**data, "tables": [data["tables"][0], other]}
        made.append((f"table {said}", lambda changed=changed: Counts.from_json(json.dumps(changed), plan()).to_json()))
    lines: tuple[Any, ...] = (
        [[1, 1, 0], [2, 0]],
        [[1, 1, 0]],
        [[1, 1, 0], [2, 0, 2]],
        [[1, 1, 0], [2, 0, -1]],
        [[1, 1, 0], [2, 0, 1.0]],
        [[6, 0, 0], [0, 0, -1]],
        [[1, 1, 0], [2, 0, True]],
        [[1 << 62, 0, 0], [0, 0, 0]],
        [5, 0],
    )
    for at, line in enumerate(lines):
        changed = {**data, "tables": [data["tables"][0], {**data["tables"][1], "counts": line}]}
        made.append((f"lines {at}", lambda changed=changed: Counts.from_json(json.dumps(changed), plan()).to_json()))
    others = [
        dataclasses.replace(known, **change)
        for change in (
            {"sources": frozenset(["1" * 32])},
            {"rows": 6, "sources": frozenset(["2" * 32])},
            {"plan": "x"},
            {"simulation": True},
            {},
            {"unlabelled": True, "sources": frozenset(["3" * 32])},
            {"tables": {("vote",): np.array([2, 3])}},
            {"tables": {**known.tables, ("vote",): np.array([3, 2])}, "sources": frozenset()},
        )
    ]
    made += [(f"sum {at}", lambda one=one: (known + one).to_json()) for at, one in enumerate(others)]
    made += [
        ("equal", lambda: [known == one for one in [*others, known, "x"]]),
        ("names", lambda: [known["vote"], known["vote", "colour"]]),
    ]
    made += [
        ("no such", lambda: known["size"]),
        ("no such pair", lambda: known["colour", "vote"]),
        ("text", lambda: repr(known)),
    ]
    for pairs in (
        [("vote", "vote")],
        [("vote",)],
        [("vote", "x")],
        [("vote", "colour"), ("colour", "vote")],
        ["ab"],
        [("a", "b", "c")],
    ):
        made.append((f"pairs {pairs}", lambda pairs=pairs: table_names(plan(), pairs)))
    return made


def _deliveries() -> list[Case]:
    def change(folder: Path, form: str, how: str, mode: str = "memoised") -> Any:
        made = plan(None if mode == "simulated" else "id")
        target = reported(folder, form, mode)
        file = target if target.is_file() else sorted(one for one in target.iterdir() if one.suffix == ".csv")[0]
        given: Any = target
        if how == "byte":
            file.write_bytes(file.read_bytes()[:-2] + b"0\n")
        elif how == "row less":
            file.write_text("".join(file.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
        elif how == "row more":
            file.write_text(file.read_text("utf-8") + file.read_text("utf-8").splitlines(keepends=True)[1], "utf-8")
        elif how == "no manifest":
            (
                target.with_name(target.name + manifest.SIDECAR) if target.is_file() else target / manifest.FOLDER
            ).unlink()
        elif how == "file less":
            file.unlink()
        elif how == "file more":
            shutil.copy(file, file.with_name("more.csv"))
        elif how == "twice":
            given = [target, target]
        elif how == "a copy":
            other = folder / ("copy" + target.suffix)
            shutil.copytree(target, other) if target.is_dir() else shutil.copy(target, other)
            if target.is_file():
                shutil.copy(manifest.sidecar(target), manifest.sidecar(other))
            given = [target, other]
        elif how == "answers":
            given = folder / "answers"
        elif how == "another plan":
            made = plan(round=2)
        elif how == "another question":
            made = survey.make_plan(
                survey.SurveySpec("demo", (survey.QuestionSpec("vote", (0, 1)),)), lambda q: channel(2)
            )
        elif how == "none":
            given = []
        elif how == "nowhere":
            given = folder / "nowhere.csv"
        elif how == "unlabelled":
            manifest.sidecar(target).unlink() if target.is_file() else (target / manifest.FOLDER).unlink()
            found = delivery.admit(made, given, True)
            return (
                aggregate(made, given, unlabelled=True).to_json(),
                found.unlabelled,
                found.simulation,
                read_rows(made, given, unlabelled=True).n,
            )
        counts = aggregate(made, given)
        found = delivery.admit(made, given)
        return (
            counts.to_json(),
            sorted(found.sources),
            found.simulation,
            [one.name for one in found.files],
            read_rows(made, given, ["stratum"]).n,
        )

    ways = (
        "as it is",
        "byte",
        "row less",
        "row more",
        "no manifest",
        "file less",
        "file more",
        "twice",
        "a copy",
        "answers",
        "another plan",
        "another question",
        "none",
        "nowhere",
        "unlabelled",
    )
    made: list[Case] = [
        (f"{form} {how}", inside(partial(change, form=form, how=how))) for form in ("one.csv", "folder") for how in ways
    ]
    made += [
        (f"columns {names}", inside(lambda f, names=names: read_rows(plan(), reported(f), names).columns))
        for names in (["vote"], ["x"], ["stratum", "stratum"], [])
    ]

    def empty(folder: Path) -> Any:
        (folder / "one.csv").write_text("colour,vote,size\n", "utf-8")
        return read_rows(plan(), folder / "one.csv", unlabelled=True)

    def odd_reports(folder: Path, text: str) -> Any:
        (folder / "one.csv").write_text(text, "utf-8")
        rows = read_rows(plan(), folder / "one.csv", unlabelled=True)
        return rows.reports, aggregate(plan(), folder / "one.csv", unlabelled=True).to_json()

    made.append(("no rows", inside(empty)))
    texts = (
        "colour,vote,size\n0,0,0\n2,1,3\n",
        "colour,vote,size\n0,0,0\n2,1,4\n",
        "colour,vote,size\n0,,0\n",
        "colour,vote\n0,0\n",
        "colour,vote,size,vote\n0,0,0,0\n",
        "colour,vote,size\n0,0,0\n0,0\n",
        "colour,vote,size\nred,0,0\n",
    )
    made += [(f"reports {at}", inside(partial(odd_reports, text=text))) for at, text in enumerate(texts)]

    def left_out(folder: Path) -> Any:
        question = survey.QuestionSpec("vote", (0, 1), missing="leave out")
        made = survey.make_plan(survey.SurveySpec("demo", (question,)), lambda q: channel(2))
        (folder / "a.csv").write_text("vote\n0\n\n1\n,\n", "utf-8")
        privatize(made, folder / "a.csv", folder / "one.csv", Simulated(np.random.default_rng(1)))
        return (
            contents(folder / "one.csv"),
            read_rows(made, folder / "one.csv").reports,
            aggregate(made, folder / "one.csv").to_json(),
        )

    return [*made, ("left out", inside(left_out))]


def _words() -> list[Case]:
    ids = ["", "a", "person-1", "x" * 13, "x" * 14, "x" * 15, "x" * 30, "x" * 31, "Łódź", "y" * 200]
    made: list[Case] = []
    made += [
        ("macs", lambda: memo.Respondents(KEY, pa.array(ids, pa.string())).macs(memo.tag("it")).tolist()),
        ("tags", lambda: [memo.tag("a", "bc").hex(), memo.tag("ab", "c").hex(), memo.tag().hex()]),
    ]
    made += [
        (
            "derive",
            lambda: (
                KEY.derive(b"it").hex(),
                KEY.check(),
                repr(KEY),
                [SecretKey(bytes(32)) == KEY, SecretKey(bytes(range(32))) == KEY, KEY.__eq__(3) is NotImplemented],
            ),
        )
    ]
    made += [(f"key of {n}", lambda n=n: SecretKey(bytes(n))) for n in (0, 31, 32, 33)]
    for partition in (0, 1, 1000):
        for question in (0, 3):

            def stream(partition: int = partition, question: int = question) -> Any:
                found = np.zeros(5, np.uint64)
                words = Keystream(KEY, partition, question)
                words.fill(found)
                first = found.tolist()
                words.fill(found)
                return first, found.tolist()

            made.append((f"stream {partition} {question}", stream))
    made += [
        ("question tags", lambda: [[one.hex() for one in word_tags(plan(), question)] for question in plan().questions])
    ]

    def source() -> Any:
        made = WordSource(plan(), "memoised", KEY)
        people = made.respondents(pa.array(["a", "b"]))
        found = np.zeros(2, np.uint64)
        made.words(0, None, people, np.array([0, 2], np.uint8)).fill(found)
        return (
            found.tolist(),
            made.identities(pa.array(["a", "b"])).tolist(),
            made.row_set(people, 0),
            made.row_set(None, 0),
            made.row_set(None, 1),
            made.streams(0),
        )

    made += [
        ("source", source),
        ("no respondents", lambda: WordSource(plan(), "memoised", KEY).words(0, None, None, None)),
    ]
    made += [
        ("more answers", lambda: memo.Respondents(KEY, pa.array(["a"])).words([memo.tag("it")], np.zeros(2, np.uint8)))
    ]
    made += [("simulated source", lambda: len(WordSource(plan(), "simulated", KEY).streams(2) or []))]

    def file(folder: Path, way: int) -> Any:
        content, path = (folder / "key").read_bytes(), folder / "other"
        changed = (
            content,
            content[:-1],
            content[:-3] + b"\n",
            content + b"\n",
            content.upper(),
            b"x" + content,
            b"",
            content[:-3] + b"zz\n",
            content.replace(b"\n", b""),
        )
        path.write_bytes(changed[way % 9])
        os.chmod(path, (0o600, 0o640, 0o604, 0o400)[way // 9])
        return read_key(path) == KEY

    made += [(f"key file {way}", inside(partial(file, way=way))) for way in (*range(9), 9, 18, 27)]
    made += [
        ("key folder", inside(lambda f: read_key(f))),
        ("no key", inside(lambda f: read_key(f / "none"))),
    ]
    made += [("key link", inside(lambda f: ((f / "link").symlink_to(f / "key"), read_key(f / "link"))))]
    return made


def _parts() -> list[Case]:
    numbers = np.array([[1, 2], [1, 3], [1, 2], [4, 4], [1, 3], [2, 2]], np.uint64)
    made: list[Case] = [
        ("duplicates", lambda: batch.duplicate_rows(numbers, np.arange(10, 16))),
        ("no duplicates", lambda: batch.duplicate_rows(numbers[[0, 1, 3]], np.arange(3))),
        (
            "buckets",
            lambda: [batch.bucket_count(n) for n in (0, 1, 2**19 - 1, 2**19, 2**20 - 1, 2**20, 2**30, 2**60)],
        ),
        ("spilled", lambda: hashlib.sha256(batch.spilled(numbers, 7, 4)).hexdigest()),
        (
            "total",
            lambda: [
                manifest.total([]),
                manifest.total(["f" * 32, "0" * 31 + "2"]),
                manifest.of_numbers(numbers),
                manifest.NO_ROWS,
            ],
        ),
        (
            "is hex",
            lambda: [manifest.is_hex(one) for one in ("0" * 32, "0" * 31, "0" * 33, "F" * 32, "g" * 32, None, 0)],
        ),
    ]
    made += [
        (f"row set {at}", lambda one=one: manifest.row_set(one, "it"))
        for at, one in enumerate(("0" * 32, "0" * 31, "g" * 32, None, 3))
    ]

    def bucket(folder: Path) -> Any:
        for at in range(2):
            (folder / str(at)).write_bytes(batch.spilled(numbers, 6 * at, 4))
        return [batch.duplicates_in_bucket([folder / "0", folder / "1"], one, 4) for one in range(4)]

    made.append(("in buckets", inside(bucket)))
    words = np.arange(64, dtype=np.uint64) * np.uint64(0x0400000000000001)
    for weights, bits in (
        ([[3, 1], [1, 3]], 2),
        ([[1, 2, 5], [6, 1, 1]], 3),
        ([[2**40 - 1, 1], [1, 2**40 - 1]], 40),
        ([[2**62 - 3, 3]], 62),
    ):
        k, exact = len(weights), partial(ExactChannel, weights, bits=bits)
        made.append(
            (
                f"sampler {bits}",
                lambda e=exact, k=k: Sampler(e()).reports((np.arange(64) % k).astype(np.uint8), Given(words)),
            )
        )
        made.append(
            (
                f"sampler {bits} beyond",
                lambda e=exact, k=k: Sampler(e()).reports(np.full(3, k, np.uint8), Given(words[:3])),
            )
        )
    made.append(
        (
            "sampler signed",
            lambda: Sampler(ExactChannel([[3, 1], [1, 3]], bits=2)).reports(np.zeros(3, np.int64), Given(words[:3])),
        )
    )
    tallies = [
        coding.Tally(3, 1, {"vote": 2}, {"size": 1}, "0" * 31 + "9"),
        coding.Tally(4, 0, {"vote": 1, "size": 5}, {}, "f" * 32),
    ]
    made += [
        (
            "tally",
            lambda: (tallies[0] + tallies[1], coding.Tally.total(tallies, plan()), coding.Tally.total([], plan())),
        )
    ]
    made += [
        ("every", lambda: list(every(iter([1, 2]), 2))),
        ("too few", lambda: list(every(iter([1]), 2))),
        ("too many", lambda: list(every(iter([1, 2, 3]), 2))),
    ]
    made += [*odd("threads", Threads), ("map", lambda: [sorted(Threads(n).map(abs, [-1, -2, -3])) for n in (1, 2)])]
    made += [("sum", lambda: [Threads(n).total(abs, [-1, -2, -3], lambda a, b: a + b) for n in (1, 2)])]

    def pieces(folder: Path, rows: int, size: int, kind: str) -> Any:
        files = sorted(written(folder, kind, 3, 11).iterdir())
        before = answer_files.PARTITION_ROWS, answer_files.PARTITION_BYTES, answer_files.BATCH_ROWS
        answer_files.PARTITION_ROWS, answer_files.PARTITION_BYTES, answer_files.BATCH_ROWS = rows, size, 4
        try:
            found = answer_files.partitions(files)
            batches = [[batch.num_rows for batch in answer_files.batches(part, ["vote", "c"])] for part in found]
            values = [
                batch.column("vote").to_pylist() for part in found for batch in answer_files.batches(part, ["vote"])
            ]
        finally:
            answer_files.PARTITION_ROWS, answer_files.PARTITION_BYTES, answer_files.BATCH_ROWS = before
        again = [answer_files.Partition.from_dict(part.to_dict()) == part for part in found]
        return [part.to_dict() for part in found], [part.rows for part in found], batches, values, again

    for rows, size in ((3, 10**6), (11, 10**6), (12, 10**6), (22, 10**6), (40, 10**6), (40, 200), (40, 330), (1, 1)):
        for kind in ("csv", "parquet"):
            made.append((f"partitions {rows} {size} {kind}", inside(partial(pieces, rows=rows, size=size, kind=kind))))
    for names in (["a.csv", "b.csv"], ["a.csv", "b.parquet"], ["a.txt"], [".a.csv"], ["_a.csv"], []):

        def found(folder: Path, names: list[str] = names) -> Any:
            for name in names:
                (folder / name).write_text("vote\n1\n", "utf-8")
            (folder / "key").unlink()
            return [one.name for one in answer_files.input_files(folder)], [
                one.name for one in answer_files.input_files([folder / x for x in names])
            ]

        made.append((f"files {names}", inside(found)))
    return made


def _resumption() -> list[Case]:
    def begun(folder: Path) -> Any:
        files = sorted(written(folder).iterdir())
        work = workfolder.work_of(folder / "one.csv")
        return files, work, workfolder.WorkFolder.create(work, plan(), files, Memoised(folder / "key"), "csv")

    def about(folder: Path) -> Any:
        _, work, made = begun(folder)
        tally = coding.Tally(3, 1, {"vote": 2}, {"size": 1}, "0" * 31 + "9")
        before = made.todo()
        made.part(0).write_text("part", "utf-8")
        made.record(0, tally)
        state = {key: value for key, value in made.state.items() if key not in ("run", "files")}
        found = (
            (made.recorded(0) or (None, None))[1],
            made.todo(),
            before,
            made.recorded(1),
            sorted(str(one.relative_to(work)) for one in work.rglob("*")),
        )
        made.part(0).write_text("parts", "utf-8")
        return (
            state,
            found,
            made.todo(),
            workfolder.is_work(work),
            made.spill(0).name,
            len(made.partitions),
            made.dropped() is None,
        )

    def sealed(folder: Path) -> Any:
        made = begun(folder)[2]
        path = made.path / "it"
        made.write_sealed(path, b"content")
        first = made.sealed(path)
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        return first == b"content", made.sealed(path), made.sealed(made.path / "none")

    def resumed(folder: Path, how: str) -> Any:
        files, work, _ = begun(folder)
        asked, source, kind = plan(), Memoised(folder / "key"), "csv"
        if how == "plan":
            asked = plan(round=2)
        elif how == "file":
            files[0].write_text(
                files[0].read_text("utf-8")
                + files[0].read_text("utf-8").splitlines()[-1].replace("person-6", "z")
                + "\n",
                "utf-8",
            )
        elif how == "files":
            files = files[:1]
        elif how == "mode":
            source = Fresh()
        elif how == "kind":
            kind = "parquet"
        elif how == "key":
            (folder / "key2").touch()
            (folder / "key2").unlink()
            SecretKey(bytes(32)).save(folder / "key2")
            source = Memoised(folder / "key2")
        elif how == "state":
            (work / workfolder.STATE).write_text("{}", "utf-8")
        elif how == "no state":
            (work / workfolder.STATE).unlink()
        elif how == "no parts":
            shutil.rmtree(work / workfolder.PARTS)
        elif how.startswith("state "):
            state = json.loads((work / workfolder.STATE).read_text("utf-8"))
            state[how.split()[1]] = {"x": "x", "n": None, "l": []}[how.split()[2]]
            (work / workfolder.STATE).write_text(json.dumps(state), "utf-8")
        again = workfolder.WorkFolder.resume(work, asked, files, source, kind)
        return again.todo(), sorted(one.name for one in work.iterdir())

    def foreign(folder: Path, how: str) -> Any:
        work = workfolder.work_of(folder / "one.csv")
        if how == "file":
            work.write_text("mine", "utf-8")
        elif how == "folder":
            work.mkdir()
            (work / "mine").write_text("mine", "utf-8")
        elif how == "empty":
            work.mkdir()
        elif how == "sidecar":
            manifest.sidecar(folder / "one.csv").write_text("mine", "utf-8")
        try:
            target = reported(folder)
            return contents(target), sorted(one.name for one in folder.iterdir())
        except LdpoptError as error:
            return str(error), sorted(one.name for one in folder.iterdir())

    def interrupted(folder: Path, at: int, form: str) -> Any:
        """The run ends before partition number `at`; the same call goes on."""
        before, done = answer_files.PARTITION_ROWS, [0]
        original = tasks.PrivatizePartition.__call__

        def stopped(self: Any, index: int) -> int:
            if done[0] == at:
                raise KeyboardInterrupt
            done[0] += 1
            return original(self, index)

        answer_files.PARTITION_ROWS = 3
        tasks.PrivatizePartition.__call__ = stopped  # type: ignore[method-assign]
        try:
            try:
                reported(folder, form)
            except KeyboardInterrupt:
                pass
            finally:
                tasks.PrivatizePartition.__call__ = original  # type: ignore[method-assign]
            left = sorted(one.name for one in folder.iterdir())
            steps: list[Any] = []
            tally = privatize(
                plan(), folder / "answers", folder / form, Memoised(folder / "key"), progress=lambda *n: steps.append(n)
            )
        finally:
            answer_files.PARTITION_ROWS = before
        return left, steps, tally, contents(folder / form), sorted(one.name for one in folder.iterdir())

    hows = (
        "same",
        "plan",
        "file",
        "files",
        "mode",
        "kind",
        "key",
        "state",
        "no state",
        "no parts",
        "state run x",
        "state run n",
        "state key x",
        "state partitions l",
        "state plan x",
        "state mode x",
        "state answers x",
    )
    made: list[Case] = [("about", inside(about)), ("sealed", inside(sealed))]
    made += [(f"resume {how}", inside(partial(resumed, how=how))) for how in hows]
    made += [
        (f"in the way {how}", inside(partial(foreign, how=how)))
        for how in ("nothing", "file", "folder", "empty", "sidecar")
    ]
    made += [
        (f"interrupted {at} {form}", inside(partial(interrupted, at=at, form=form)))
        for at in (0, 1, 4)
        for form in FORMS
    ]
    data: dict[str, Any] = {
        "rows": 3,
        "duplicates": 1,
        "unknown": {"vote": 2},
        "missing": {"size": 1},
        "row_set": "0" * 32,
    }
    made += [(f"tally {said}", lambda other=other: workfolder.tally_of(other)) for said, other in _tampered(data)]
    return made


CASES = {
    "privatize": _privatize(),
    "frames": _frames(),
    "manifests": _manifests(),
    "counts": _counts(),
    "deliveries": _deliveries(),
    "words": _words(),
    "parts": _parts(),
    "resumption": _resumption(),
}
ULPS = dict.fromkeys(CASES, 0.0)
"""Nothing here is rounded."""
