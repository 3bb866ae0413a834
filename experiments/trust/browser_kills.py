"""A questionnaire whose browser is killed at each step of sending: afterwards its reports wait there, or have arrived.

    python experiments/trust/browser_kills.py [--quick]

A person answers in Chromium, and presses "send". At the n-th step (a request or change in the device's storage, the end
of a transaction, a request to the collector, its answer) the page stops, and the whole browser gets SIGKILL. It starts
anew with the same profile, and opens the questionnaire.

Right is: nothing was kept and nothing arrived, so that the person may answer; or the reports have arrived once, if need
be sent by the second visit. Wrong is a page that says "already answered" though the collector has nothing, and two
different submissions of one person.

Prints a table of steps for each plan and each first answer of the collector; exit code 1 if anything is wrong.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import kit_site
from kit_plans import booklet_plan

from ldpopt.mechanisms import randomized_response
from ldpopt_survey import Plan
from ldpopt_survey.kit.folder import kit_files
from ldpopt_survey.plan.planned_question import PlannedQuestion

STEPS = """
(() => {
  const stop = Number(new URLSearchParams(location.search).get("stop") ?? 0);
  let count = 0;
  const step = (name) => {
    if (!window.armed) return;
    count += 1;
    const request = new XMLHttpRequest();
    request.open("GET", `step-${count === stop ? "stopped" : "passed"}-${name}`, false);
    try { request.send(); } catch {}
    if (count === stop) for (;;) {}
  };
  const before = (type, method) => {
    const plain = type.prototype[method];
    type.prototype[method] = function (...rest) {
      step(`${method}-${this.name ?? ""}`);
      return plain.apply(this, rest);
    };
  };
  ["get", "put", "delete", "getAll"].forEach((method) => before(IDBObjectStore, method));
  before(IDBDatabase, "transaction");
  before(IDBDatabase, "close");
  const send = window.fetch;
  window.fetch = async (url, ...rest) => {
    step("fetch");
    const answer = await send(url, ...rest);
    step("answer");
    return answer;
  };
})();
"""


def plans() -> dict[str, Plan]:
    """The plans that are answered: fresh words, memoised ones, booklets."""
    question = PlannedQuestion("Do you smoke?", "smokes", randomized_response(2, 1.0, inputs=("no", "yes")).exact())
    return {
        "fresh": Plan("Habits", (question,)),
        "memoised": Plan("Habits", (question,), respondent="id"),
        "booklets": booklet_plan(),
    }


@contextmanager
def browser(playwright: Any, profile: Path) -> Iterator[tuple[Any, subprocess.Popen[bytes]]]:
    """A Chromium of its own process group with a profile: its page, and its process."""
    port = profile / "DevToolsActivePort"
    port.unlink(missing_ok=True)
    flags = [*kit_site.FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
    started = subprocess.Popen([str(kit_site.CHROMIUM), *flags], start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not (port.exists() and "\n" in port.read_text()):
            if time.monotonic() > until or started.poll() is not None:
                raise RuntimeError("Chromium does not start")
            time.sleep(0.05)
        connected = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port.read_text().splitlines()[0]}")
        context = connected.contexts[0]
        context.set_default_timeout(60_000)
        yield context.pages[0] if context.pages else context.new_page(), started
        with suppress(Exception):
            connected.close()
    finally:
        killed(started)


def killed(started: subprocess.Popen[bytes]) -> None:
    """Kill a browser with all its processes, and wait for its end."""
    with suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def answered(page: Any, url: str) -> None:
    """Answer all questions with the first answer, up to the last screen."""
    kit_site.begin(page, url)
    kit_site.press(page)
    while page.locator("form fieldset").count():
        kit_site.choose(page, 0)


def tried(playwright: Any, plan: Plan, first: list[tuple[int, Any]], stop: int) -> tuple[str, str, bool]:
    """Kill the browser at a step: the name of the step (empty beyond the last), the end, and whether that is right."""
    with tempfile.TemporaryDirectory() as name, kit_site.served(kit_files(plan)) as site:
        site.answers = list(first)
        taken: list[str] = []
        plain = site.answer

        def answer(body: bytes) -> tuple[int, Any]:
            status, content = plain(body)
            if status == 201:
                taken.append(site.submissions[-1]["id"])
            return status, content

        site.answer = answer  # type: ignore[method-assign]
        profile = Path(name)
        with browser(playwright, profile) as (page, started):
            page.add_init_script(STEPS)
            answered(page, f"{site.url}?stop={stop}")
            page.evaluate("window.armed = true")
            page.evaluate("setTimeout(() => document.querySelector('button.main').click(), 0)")
            stopped = waited(site, page)
            killed(started)
        with browser(playwright, profile) as (page, _):
            kit_site.begin(page, site.url)
            title = settled(page)
            different = len({one["id"] for one in site.submissions})
        held = len(set(taken))
        right = different <= 1 and (held == 1) == (title in ("answered", "sent")) and title != "other"
        right = right and (title != "refused" or not held)
        return stopped, f"{title}, {held} arrived", right


def waited(site: Any, page: Any) -> str:
    """The name of the step at which the page stopped; empty if it went to the end."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for _, path, _, _ in site.requests:
            if path.startswith("/step-stopped-"):
                return str(path.partition("?")[0].removeprefix("/step-stopped-"))
        passed = [path for _, path, _, _ in site.requests if path.startswith("/step-passed-")]
        time.sleep(0.3)
        now = [path for _, path, _, _ in site.requests if path.startswith(("/step-passed-", "/step-stopped-"))]
        if passed and now == passed and any("answer" in path for path in passed):
            return ""
    raise RuntimeError("the page neither stops nor ends")


TITLES = {
    "This device has already answered": "answered",
    "Thank you. Your reports have arrived.": "sent",
    "Your reports are waiting on this device": "waits",
    "The reports were not taken": "refused",
}


def settled(page: Any) -> str:
    """What the page says, once it does not change any more; "may answer" for the first screen of a questionnaire."""
    said = ""
    for _ in range(40):
        page.wait_for_timeout(150)
        before, said = said, page.inner_text("main h1")
        if said == before and said != "Your reports are waiting on this device":
            break
    return TITLES.get(said, "may answer" if page.locator("button.main").count() else "other")


def main() -> int:
    """Try every step of every plan, or those of the first."""
    from playwright.sync_api import sync_playwright

    if kit_site.CHROMIUM is None:
        print("skipped: no Chromium")
        return 0
    quick, wrong = "--quick" in sys.argv, 0
    firsts: dict[str, list[tuple[int, Any]]] = {"taken": []}
    if not quick:
        firsts |= {"503 first": [(503, {"error": "Busy."})], "409": [(409, {"error": "Another is stored."})] * 9}
    print("| plan | first answer | step | killed at | then |\n|---|---|---|---|---|")
    with sync_playwright() as playwright:
        for name, plan in plans().items():
            for said, first in firsts.items():
                stop, stopped = 1, "begin"
                while stopped:
                    stopped, end, right = tried(playwright, plan, first, stop)
                    wrong += not right
                    print(f"| {name} | {said} | {stop} | {stopped or 'the end'} | {end}{'' if right else ' WRONG'} |")
                    sys.stdout.flush()
                    stop += 3 if quick else 1
            if quick:
                break
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
