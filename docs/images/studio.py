"""Draw the pictures of the studio anew: ``python docs/images/studio.py``.

It starts ``ldpopt studio``, opens it in Chromium, the system's or that of ``playwright install chromium``, and makes a
photograph of every view (with ``--whole`` all of it). It needs ``pip install ".[studio]" playwright``.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
WIDTH, HEIGHT = 1280, {"tell": 1322, "ask": 1000, "meaning": 900, "inspect": 900}


def settled(page: Any) -> None:
    """Wait until the view is painted and its curves are drawn."""
    page.locator('.view[data-state="done"]').wait_for()
    page.wait_for_function("() => !document.querySelector('#main progress:not([hidden])')?.checkVisibility()")
    page.wait_for_timeout(600)
    page.evaluate("() => scrollTo(0, 0)")


def tell(page: Any) -> None:
    """Party identification in two electorates, at the epsilon and eta of the tutorial."""
    page.locator("#tab-tell").click()
    select = page.locator("select[name=example]")
    one = select.locator("option", has_text="party")
    one.wait_for(state="attached")
    select.select_option(label=one.inner_text())
    settled(page)


def ask(page: Any) -> None:
    """The survey as it opens."""
    page.locator("#tab-ask").click()
    settled(page)


def meaning(page: Any) -> None:
    """What it means as it opens."""
    page.locator("#tab-meaning").click()
    settled(page)


def inspect(page: Any) -> None:
    """A forged design."""
    page.locator("#tab-inspect").click()
    page.locator("select[name=example]").select_option("forged")
    settled(page)


def main() -> None:
    """All pictures beside this file."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ldpopt", "studio", "--port", "0", "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_context(color_scheme="light").new_page()
            page.set_default_timeout(120_000)
            page.goto(address)
            for view in (tell, ask, meaning, inspect):
                page.set_viewport_size({"width": WIDTH, "height": HEIGHT[view.__name__]})
                view(page)
                page.screenshot(full_page="--whole" in sys.argv, path=HERE / f"studio-{view.__name__}.png")
            browser.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


if __name__ == "__main__":
    main()
