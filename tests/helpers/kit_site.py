"""A kit served on this machine, its collector's answers as a test wants them, and a Chromium to visit it with."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

# The shell draws pages alone. A whole browser begins a window of its own for each of them.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, PROGRAMS)), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
]
TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "css": "text/css",
    "svg": "image/svg+xml",
}


class Site:
    """The address of a kit, every request that came, and what submissions are answered with.

    answers : (status, content) for the next submissions; when they are used up, 201.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.submissions, self.requests = files, [], []
        self.answers: list[tuple[int, Any]] = []
        self.url = ""

    def answer(self, body: bytes) -> tuple[int, Any]:
        """What a submission is answered with."""
        self.submissions.append(json.loads(body))
        return self.answers.pop(0) if self.answers else (201, {"stored": True})


@contextmanager
def served(files: dict[str, bytes]) -> Iterator[Site]:
    """The site while a test runs."""
    site = Site(files)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _note(self, body: bytes) -> None:
            site.requests.append((self.command, self.path, sorted(self.headers.items()), body))

        def do_GET(self) -> None:
            self._note(b"")
            name = self.path.partition("?")[0].removeprefix("/") or "index.html"
            found = site.files.get(name)
            self._send(404 if found is None else 200, TYPES.get(name.rpartition(".")[2], "text/plain"), found or b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._note(body)
            status, content = site.answer(body)
            self._send(status, "application/json", json.dumps(content).encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


LOOK = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
  .map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 200))])"""


def violations(page: Any) -> Any:
    """What axe-core finds on the page as it is, each rule with the places; it is read once by each document."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe.Axe().axe_script)
    return page.evaluate(LOOK)


def begin(page: Any, address: str) -> None:
    """Open the questionnaire."""
    page.goto(address)
    page.wait_for_selector("main h1")


def press(page: Any) -> None:
    """The main button of the screen, and wait until another heading has the focus."""
    page.evaluate("document.querySelector('main h1').dataset.old = ''")
    page.click("button.main")
    page.wait_for_selector("main h1:not([data-old])")


def choose(page: Any, position: int) -> None:
    """Answer the question on the screen and go on."""
    page.check(f"input[type=radio][value='{position}']", force=True)
    press(page)


def visit(page: Any, address: str, positions: list[int], at_each: Callable[[], None] = lambda: None) -> None:
    """A whole visit: start, answer every question, look at what will be sent, send. `at_each` runs on each screen."""
    begin(page, address)
    at_each()
    press(page)
    for position in positions:
        at_each()
        choose(page, position)
    page.click("details summary")
    page.wait_for_function("document.getElementById('exact').textContent.includes('reports')")
    at_each()
    press(page)
    at_each()


def answer_all(page: Any, answers: dict[str, str], at_each: Callable[[], None] = lambda: None) -> list[str]:
    """Answer whatever is asked until the review, each question by the text of its answer; gives what was asked."""
    asked = []
    while page.locator("form fieldset").count():
        asked.append(page.inner_text("h1"))
        at_each()
        choose(page, page.locator(".choice span").all_inner_texts().index(answers[asked[-1]]))
    return asked


DUMP = """async () => {
  const base = await new Promise((done) => { const r = indexedDB.open("ldpopt"); r.onsuccess = () => done(r.result); });
  const all = {};
  for (const name of base.objectStoreNames) {
    const store = base.transaction(name).objectStore(name);
    const get = (r) => new Promise((done) => { r.onsuccess = () => done(r.result); });
    const values = await get(store.getAll());
    all[name] = [await get(store.getAllKeys()),
      values.map((one) => one instanceof CryptoKey ? `key, extractable: ${one.extractable}` : one)];
  }
  base.close();
  return { all, local: { ...localStorage }, session: { ...sessionStorage }, cookies: document.cookie,
    databases: (await indexedDB.databases()).map((one) => one.name), caches: await caches.keys(),
    history: history.state, name: window.name, title: document.title, url: location.href };
}"""
