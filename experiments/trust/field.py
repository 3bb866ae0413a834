"""What a survey meets in the field, tried many times: each try must end as documented.

    python experiments/trust/field.py [NAME ...] [--quick]

arguments  random command lines, grown from good ones: exit code 0, 1 or 2, no traceback, no warning of a library, no
           unexpected error, nothing that steers a terminal
changed    answers that change while they are privatized: refused, and nothing is published
disk       a disk that is full (a small file system in memory; root alone can make one): refused, and continued later
dask       workers of a cluster that are killed: the same bytes, or an error and nothing published
slow       hundreds of connections whose headers or bodies trickle: others are served, and those are cut off
timing     invitations that were used and that never were: refusing them differs by less than ten microseconds in the
           database, and by nothing that is seen over HTTP
browser    names and answers with markup in every page, opened in Chromium: nothing of them is run

Prints the counts; ends with exit code 1 if anything else happened.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import collectors
import every_command
import numpy as np
import pandas as pd

from ldpopt.errors import LdpoptError
from ldpopt_survey import Memoized, QuestionSpec, SurveySpec, make_plan, privatize
from ldpopt_survey.collect import answers
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.server import Submission, database, draw_invitations
from ldpopt_survey.server.submission import invitation_hash

NASTY = [
    *(
        "",
        "-",
        "--",
        "-1",
        "0",
        "nan",
        "inf",
        "1e999",
        "-0.0",
        "1e-320",
        "9" * 400,
        "1,2",
        ",",
        "0.5,0.5",
        "1e308,1e308",
        "5e-324,1",
        "nan,nan",
        "1_000",
        "∞",
        "=1+1",
        "a=b",
    ),
    *(
        "../up",
        "/",
        "/dev/null",
        ".",
        "~",
        "missing.csv",
        "people.csv",
        "plan.json",
        "counts.json",
        "reports.csv",
        "key",
    ),
    *(
        "\x1b[2J",
        "é",
        "\udcff",
        "a\nb",
        "\u202e",
        "'",
        '"',
        "%s",
        "{}",
        "*",
        "a" * 5000,
        "postgresql://x:y@z/w",
        "x.db",
    ),
    *("smokes", "drinks ~ region", "w > 1", "east", "--help", "--force", "--json", "--epsilon", "--out", "-o", "--by"),
]
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


LIBRARY = re.compile(r"Traceback|Warning|unexpected \w+ in ")
"""What shows that an error or a warning came from a library or from nowhere."""


class TooLong(BaseException):
    """A command takes longer than a try may."""


SEED = 1
"""Of the random command lines, unless --seed gives another."""


def arguments(times: int) -> Counter[str]:
    """Random command lines."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from ldpopt.cli import app

    def over(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, over)
    rng, counts = random.Random(SEED), Counter[str]()
    options = {name: _options(get_command(app), name) for name in every_command.commands(get_command(app))}
    with tempfile.TemporaryDirectory() as outer:
        home, work = Path(outer, "home"), Path(outer, "a", "b")
        home.mkdir()
        with chdir(home):
            every_command.write_inputs(home)
            every_command.run_every(every_command.here)
        for number in range(times):
            if number % 20 == 0:
                shutil.rmtree(work, ignore_errors=True)
                shutil.copytree(home, work)
            line = _mutated(rng, options)
            if "studio" in line or (line[1:2] == ["collect"] and not {"--close", "--check"} & set(line)):
                continue  # servers
            with chdir(work):
                signal.alarm(20)
                try:
                    made = CliRunner().invoke(app, line)
                except TooLong:
                    counts["over 20 seconds: stopped"] += 1
                    continue
                finally:
                    signal.alarm(0)
            fine = made.exception is None or isinstance(made.exception, SystemExit)
            if isinstance(made.exception, TooLong):
                counts["over 20 seconds: stopped"] += 1
            elif (
                fine
                and made.exit_code in (0, 1, 2)
                and not LIBRARY.search(made.output)
                and not STEERING.search(made.output)
            ):
                counts[f"exit code {made.exit_code}"] += 1
            else:
                counts["WRONG"] += 1
                print("WRONG", line, repr(made.exception), made.output[-300:], flush=True)
    return counts


def _options(group: Any, name: tuple[str, ...]) -> list[str]:
    for part in name:
        group = group.get_command(None, part)
    return [option for parameter in group.params for option in parameter.opts if option.startswith("-")]


def _mutated(rng: random.Random, options: dict[tuple[str, ...], list[str]]) -> list[str]:
    line = list(rng.choice(every_command.STEPS))
    words = 2 if line[0] == "survey" else 1
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        place = rng.randrange(words, len(line) + 1)
        match rng.randrange(5):
            case 0:
                del line[place : place + 1]
            case 1:
                line[place : place + 1] = [rng.choice(NASTY)]
            case 2:
                line.insert(place, rng.choice(NASTY))
            case 3:
                line[place:place] = [rng.choice(options[tuple(line[:words])] or ["-x"]), rng.choice(NASTY)]
            case _:
                other = rng.randrange(words, len(line) + 1)
                line[place : place + 1], line[other : other + 1] = line[other : other + 1], line[place : place + 1]
    return line


def _small_run(folder: Path, ending: str, rows: int = 60, files: int = 6) -> tuple[Any, Path]:
    """A plan with respondents, and a folder of answers of several partitions."""
    spec = SurveySpec("s", (QuestionSpec("q", (0, 1, 2)),), respondent="id")
    plan = make_plan(spec, {"q": np.eye(3) / 2 + 1 / 6})
    (folder / "raw").mkdir()
    for file in range(files):
        raw = pd.DataFrame({"id": [f"{file}-{n}" for n in range(rows)], "q": np.arange(rows) % 3})
        getattr(raw, f"to_{ending}")(folder / "raw" / f"{file}.{ending}", index=False)
    create_key(folder / "key")
    return plan, folder / "raw"


def _edited(path: Path) -> None:
    """Another answer, of equal size and time."""
    status, content = path.stat(), bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes() + b"9-9,1\n")
    other.rename(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "edited in place": _edited,
    "appended to": lambda path: path.open("ab").write(b"9-9,1\n"),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "replaced": _replaced,
    "deleted": Path.unlink,
    "emptied": lambda path: os.truncate(path, 0),
}


def changed(times: int) -> Counter[str]:
    """Answers that change in mid-run."""
    counts = Counter[str]()
    for number in range(times):
        what, ending = list(CHANGES)[number % len(CHANGES)], ("csv", "parquet")[number // len(CHANGES) % 2]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            plan, raw = _small_run(folder, ending)
            moment, which = 1 + number % 5, number % 6

            def change(
                done: int, _: int, moment: int = moment, which: int = which, what: str = what, raw: Path = raw
            ) -> None:
                if done == moment:
                    CHANGES[what](sorted(raw.iterdir())[which])

            try:
                privatize(plan, raw, folder / "r.csv", Memoized(folder / "key"), progress=change)
                counts[f"WRONG: {what}, {ending}: published"] += 1
            except (LdpoptError, OSError):
                there = [path.name for path in folder.iterdir() if path.name.startswith("r.csv")]
                counts[f"{what}, {ending}: refused" if not there else f"WRONG: {there}"] += 1
    return counts


def disk(times: int) -> Counter[str]:
    """A disk that is full at a random moment of `privatize`, and has room later."""
    counts, rng = Counter[str](), random.Random(1)
    for number in range(times):
        with tempfile.TemporaryDirectory() as name:
            folder, small = Path(name), Path(name, "small")
            plan, raw = _small_run(folder, "csv", rows=2000)
            small.mkdir()
            mount = ["mount", "-t", "tmpfs", "-o", f"size={4 * rng.randrange(4, 60)}k", "tmpfs", str(small)]
            if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
                return Counter({"skipped: a file system in memory cannot be made": 1})
            try:
                output, key = small / ("r.csv", "r")[number % 2], Memoized(folder / "key")
                try:
                    privatize(plan, raw, output, key)
                    counts["there was room"] += 1
                except (LdpoptError, OSError):
                    whole = output.exists()
                    subprocess.run(["mount", "-o", "remount,size=50m", str(small)], check=True)
                    rows = privatize(plan, raw, output, key).rows
                    privatize(plan, raw, folder / output.name, key)
                    same = _content(output) == _content(folder / output.name)
                    left = [
                        path.name for path in small.iterdir() if path.name not in (output.name, "r.csv.manifest.json")
                    ]
                    good = rows == 12_000 and same and not left and not whole
                    counts["full, and continued with the same bytes" if good else f"WRONG: {rows}, {same}, {left}"] += 1
            finally:
                subprocess.run(["umount", str(small)], check=True)
    return counts


def _content(path: Path) -> list[bytes]:
    return [one.read_bytes() for one in (sorted(path.iterdir()) if path.is_dir() else [path])]


def dask(times: int) -> Counter[str]:
    """A cluster of which a worker is killed in mid-run."""
    import distributed

    from ldpopt_survey.collect.runner import Dask, LostWork

    counts = Counter[str]()
    for number in range(times):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            plan, raw = _small_run(folder, "parquet", files=12)
            key = Memoized(folder / "key")
            privatize(plan, raw, folder / "alone.csv", key)
            with (
                distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
                distributed.Client(cluster) as client,
            ):
                pids = list(client.run(os.getpid).values())

                def lose(done: int, _: int, moment: int = 1 + number % 6, pids: list[int] = pids) -> None:
                    if done == moment:
                        with suppress(ProcessLookupError):
                            os.kill(pids[0], signal.SIGKILL)

                try:
                    privatize(plan, raw, folder / "r.csv", key, Dask(client), lose)
                    found = "the same bytes"
                except LostWork:
                    found = "an error" if not (folder / "r.csv").exists() else "WRONG: an error and reports"
                    privatize(plan, raw, folder / "r.csv", key)
            same = (folder / "r.csv").read_bytes() == (folder / "alone.csv").read_bytes()
            counts[f"a worker killed: {found}" if same else "WRONG: other bytes"] += 1
    return counts


def slow(times: int) -> Counter[str]:
    """Connections that trickle, beside honest ones."""
    plan, counts = collectors.habits(), Counter[str]()
    seconds: list[float] = []

    async def both(port: int) -> collectors.Sent:
        late = b"GET / HTTP/1.1\r\nX: "
        long = b"POST /submissions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
        tasks = [asyncio.create_task(trickle(port, head)) for head in (late, long) for _ in range(times // 2)]
        await asyncio.sleep(1)
        bodies = collectors.random_bodies(plan, random.Random(1))
        end = time.monotonic() + 15
        honest = ((body["id"], collectors.encoded(body)) for body in bodies)
        made = await collectors.send_all(port, itertools.takewhile(lambda _: time.monotonic() < end, honest), 8)
        await asyncio.gather(*tasks)
        return made

    async def trickle(port: int, head: bytes) -> None:
        begun = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        answer = b""
        with suppress(OSError):
            while not answer and time.monotonic() - begun < 60:
                writer.write(b"y")
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.5):
                        answer = await reader.read(64) or b"closed"
        writer.close()
        what = "headers" if head.startswith(b"GET") else "a body"
        counts[f"trickled {what}: {answer[9:12].decode('latin-1') if answer.startswith(b'HTTP') else 'closed'}"] += 1
        counts["WRONG: not cut off"] += time.monotonic() - begun > 45
        seconds.append(time.monotonic() - begun)

    with tempfile.TemporaryDirectory() as name, collectors.collector_process(Path(name), plan, "r.db") as running:
        made = asyncio.run(both(running.port))
        stored = len(collectors.stored_reports(plan, f"{name}/r.db"))
    good = set(made.statuses.values()) == {201} and not made.lost and stored == len(made.statuses)
    last = 1000 * float(np.percentile(made.seconds, 99))
    counts[f"{'' if good else 'WRONG: '}honest submissions beside them, 99th percentile {last:.0f} ms"] = len(
        made.statuses
    )
    counts[f"cut off after at most {max(seconds):.0f} s"] = len(seconds)
    return +counts


def timing(times: int) -> Counter[str]:
    """How long refusals take, by their reason: in the database alone, and as who asks over HTTP sees it."""
    from scipy import stats

    plan, rng, counts = collectors.habits(), random.Random(1), Counter[str]()
    codes = bytes([1, 0, 0, 0] * 3)

    def compare(where: str, allowed: float, refuse: Callable[[str], object], words: list[str]) -> None:
        taken = {"used": list[float](), "never drawn": list[float]()}
        for _ in range(times):
            for kind in rng.sample(list(taken), 2):
                word = rng.choice(words)[:: 1 if kind == "used" else -1]
                begun = time.perf_counter()
                refuse(word)
                taken[kind].append(time.perf_counter() - begun)
        p = stats.mannwhitneyu(*taken.values()).pvalue
        medians = {kind: 1e6 * float(np.median(found)) for kind, found in taken.items()}
        said = ", ".join(f"{kind} {median:.0f} us" for kind, median in medians.items())
        apart = abs(medians["used"] - medians["never drawn"]) > allowed
        counts[f"{'WRONG: ' if apart else ''}refusals of each kind {where}: {said}, Mann-Whitney p = {p:.2g}"] = times

    with tempfile.TemporaryDirectory() as name, collectors.collector_process(Path(name), plan, "r.db") as running:
        with database(f"{name}/r.db", plan) as store:
            words = draw_invitations(plan, store, 2000)
            hashes = {word: invitation_hash(plan.checksum, word) for word in [*words, *(word[::-1] for word in words)]}
            for start in range(0, 2000, 500):
                some = words[start : start + 500]
                store.write([Submission(rng.randbytes(16), codes, hashes[word]) for word in some], "2026-01-31")

            def in_database(word: str) -> None:
                store.write([Submission(rng.randbytes(16), codes, hashes[word])], "2026-01-31")

            compare("in the database", 10, in_database, words)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", running.port)) as connection:
            ready = {"Content-Type": "application/json"}
            body = next(collectors.random_bodies(plan, rng))

            def over_http(word: str) -> None:
                connection.request("POST", "/submissions", json.dumps({**body, "invitation": word}), ready)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 403

            compare("over HTTP", 100, over_http, words)
    return counts


MARKUP = [
    "<img src=x onerror=window.__run=1>", '"><script>window.__run=1</script>', "<svg onload=window.__run=1>",
    "</script><script>window.__run=1</script>", "javascript:window.__run=1", "' onmouseover='window.__run=1",
    "<iframe srcdoc='<script>parent.__run=1</script>'>", r"\u003cimg src=x onerror=window.__run=1\u003e",
    "{{constructor.constructor('window.__run=1')()}}", "<a href=javascript:window.__run=1>x</a>",
    "<style>*{display:none}</style>",
    "<base href=//evil.example>", "<math><mtext><img src=x onerror=window.__run=1>",
    "&lt;img src=x onerror=window.__run=1&gt;",
]  # fmt: skip


def browser(times: int) -> Counter[str]:
    """Pages with markup in names and answers, in Chromium."""
    from kit_site import CHROMIUM, chromium, served, visit
    from studio_site import studio_running

    from ldpopt_survey import Plan, kit_files

    if CHROMIUM is None:
        return Counter({"skipped: no Chromium": 1})
    counts, rng = Counter[str](), random.Random(1)
    with chromium() as made, studio_running() as studio, tempfile.TemporaryDirectory() as outer:
        for number in range(times):
            folder = Path(outer, str(number))
            folder.mkdir()
            name, wording, *marks = rng.sample(MARKUP, 5)
            quoted = ", ".join(_toml(one) for one in marks)
            (folder / "survey.toml").write_text(
                f'[survey]\nname = {_toml(name)}\n[budget]\nepsilon = 4.0\ndesign = "split"\n[[questions]]\n'
                f"name = {_toml(wording)}\nanswers = [{quoted}]\n", encoding="utf-8"
            )  # fmt: skip
            with chdir(folder):
                lines = ["plan survey.toml", "consent plan.json -o consent.html", "kit plan.json"]
                lines += ["privatize plan.json in.csv -o r.csv", "report plan.json r.csv -o report.html"]
                pd.DataFrame({wording: [rng.choice(marks) for _ in range(200)]}).to_csv("in.csv", index=False)
                for line in lines:
                    code, said = every_command.here(("survey", *line.split()))
                    if code:
                        counts[f"WRONG: {line.split()[0]} failed"] += 1
                        print(said)
            plan = Plan.from_json((folder / "plan.json").read_bytes())
            for path in sorted(folder.glob("*.html")):
                with _watched(made, counts, "pages from files") as page:
                    page.goto(path.as_uri())
                    page.wait_for_timeout(100)
            with served(kit_files(plan)) as site, _watched(made, counts, "visits of a kit") as page:
                visit(page, site.url, [number % 3])
            with collectors.collector_process(folder, plan, "r.db", "--kit", "kit", "--token", "token") as running:
                url = f"http://127.0.0.1:{running.port}"
                with _watched(made, counts, "visits of a collector") as page:
                    visit(page, url, [number % 3])
                holder = {"username": "x", "password": (folder / "token").read_text().strip()}
                with _watched(made, counts, "pages of progress", http_credentials=holder) as page:
                    page.goto(f"{url}/progress")
                    counts["WRONG: no page of progress"] += wording not in page.inner_text("body")
            for view in ("tell", "ask", "inspect"):
                with _watched(made, counts, f"files of answers in the studio, {view}") as page:
                    _open_view(page, studio, view)
                    for upload in page.locator("input[type=file]").all()[:1]:
                        upload.set_input_files(str(folder / "in.csv"))
                        _settled(page)
                with _watched(made, counts, f"views of the studio, {view}") as page:
                    counts[f"labels shown in the studio, {view}"] += _studio_view(page, studio, view, marks, wording)
    return +counts


def _open_view(page: Any, studio: str, view: str) -> None:
    page.goto(studio)
    page.locator(f"#tab-{view}").click()
    page.locator(f".view.{view}").wait_for()


def _settled(page: Any) -> None:
    """Wait until the page has drawn what it was given."""
    page.wait_for_timeout(500)
    with suppress(Exception):
        page.locator('.view[data-state="done"], .view[data-state="failed"]').first.wait_for(timeout=20_000)


def _studio_view(page: Any, studio: str, view: str, marks: list[str], wording: str) -> int:
    """Put labels into every field of text of a view; how many are shown."""
    _open_view(page, studio, view)
    page.evaluate("() => document.querySelectorAll('#main details').forEach(one => one.open = true)")
    for field in page.locator(".view input[type=text]").all():
        if field.is_visible() and field.is_editable():
            field.fill(wording)
            field.blur()
            page.wait_for_timeout(200)
    quoted = ['"' + mark.replace('"', '""') + '"' for mark in marks]
    shares = {"tell": ["0.5, 0.2", "0.3, 0.3", "0.2, 0.5"], "ask": ["0.5", "0.3", "0.2"]}
    shares["inspect"] = ["0.6,0.2,0.2", "0.2,0.6,0.2", "0.2,0.2,0.6"]
    lines = [f"{mark},{share}" for mark, share in zip(marks if view == "ask" else quoted, shares[view], strict=True)]
    if view == "inspect":
        lines.insert(0, f"answer,{','.join(quoted)}")
    for area in page.locator(".view textarea").all():
        if area.is_visible() and area.is_editable():
            area.fill("\n".join(lines))
            area.blur()
            page.wait_for_timeout(300)
    for button in page.get_by_role("button", name="Use these").all():
        button.click()
    _settled(page)
    text = page.inner_text("body")
    return sum(mark in text for mark in marks)


def _toml(text: str) -> str:
    return '"' + "".join(f"\\u{ord(one):04x}" for one in text) + '"'


@contextlib.contextmanager
def _watched(browser: Any, counts: Counter[str], what: str, **options: Any) -> Iterator[Any]:
    """A page in which nothing of the labels may be run, or become an element."""
    context = browser.new_context(**options)
    page, dialogs = context.new_page(), list[object]()
    page.on("dialog", lambda dialog: (dialogs.append(dialog), dialog.dismiss()))
    yield page
    elements = "img[src=x], svg[onload], base, iframe[srcdoc], [onmouseover], a[href^=javascript]"
    found = page.evaluate("window.__run") or dialogs or page.locator(elements).count()
    counts[f"WRONG: something was run or made in {what}" if found else what] += 1
    context.close()


TRIES = {
    "changed": (changed, 120), "disk": (disk, 60), "timing": (timing, 3000), "slow": (slow, 400), "dask": (dask, 12),
    "browser": (browser, 60), "arguments": (arguments, 3000),
}  # fmt: skip
QUICK = {"arguments": 30, "changed": 12, "disk": 2, "slow": 20, "timing": 200}


def main() -> int:
    """Try what is asked for; exit code 1 if anything ended as it must not."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*TRIES, []], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="a few tries, without cluster and browser")
    parser.add_argument("--seed", type=int, default=SEED, help="of the random command lines")
    parser.add_argument("--times", type=int, help="how many tries of each, instead of the usual number")
    given = parser.parse_args()
    globals()["SEED"] = given.seed
    answers.MAX_UNSHARED_FILES = 256
    wrong = 0
    for name in given.names or (QUICK if given.quick else TRIES):
        function, times = TRIES[name]
        counts = function(given.times or (QUICK.get(name, 1) if given.quick else times))
        print(name, *(f"  {count:6} {what}" for what, count in counts.items() if count), sep="\n", flush=True)
        wrong += sum(count for what, count in counts.items() if what.startswith("WRONG"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
