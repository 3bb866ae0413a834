"""The studio as its users start it, and its page in a browser of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

from studio_asgi import unpacked


@contextmanager
def studio_running(*arguments: str) -> Iterator[str]:
    """``ldpopt studio`` as a process; gives the address on its first line, with the token."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ldpopt", "studio", "--port", "0", "--no-browser", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), address + process.stdout.read()
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


def recorded(page: Any) -> Any:
    """The page, with what it logs and which requests it makes in ``page.messages`` and ``page.requested_urls``."""
    page.messages, page.requested_urls = [], []
    page.on(
        "console", lambda message: page.messages.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: page.messages.append(str(error)))
    page.on("request", lambda request: page.requested_urls.append(request.url))
    return page


def link_of(page: Any) -> str:
    """The fragment of the address, once it has followed the last change (after 150 ms)."""
    # A timer of the page itself runs after the one that it follows, however busy the machine is.
    return str(page.evaluate("() => new Promise(done => setTimeout(() => done(location.hash), 300))"))


def state_of(page: Any) -> Any:
    """The state in the address."""
    return unpacked(parse_qs(link_of(page)[1:])["state"][0])


def repainted(page: Any, act: Callable[[], object]) -> None:
    """Do something and wait until another state is painted."""
    before = page.locator(".view").get_attribute("data-painted")
    act()
    page.wait_for_function(
        "before => document.getElementById('panel').dataset.painted !== before"
        " && document.getElementById('panel').dataset.state === 'done'",
        arg=before,
    )
