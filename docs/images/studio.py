"""Draw the pictures of the studio anew: ``python docs/images/studio.py``.

It starts ``ldpopt studio``, opens it in Chromium, the system's or that of ``playwright install chromium``, and makes a
photograph of every view (with ``--whole`` all of it), and a strip of six photographs of the first minute. It needs
``pip install ".[studio]" playwright``.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
WIDTH, HEIGHT = 1280, {"tell": 1240, "ask": 1000, "meaning": 900, "inspect": 900}


def settled(page: Any) -> None:
    """Wait until the view is painted and its curves are drawn."""
    page.locator('.view[data-state="done"]').wait_for()
    page.wait_for_function("() => !document.querySelector('#main progress:not([hidden])')?.checkVisibility()")
    page.wait_for_timeout(600)
    page.evaluate("() => scrollTo(0, 0)")


def tell(page: Any) -> None:
    """Party identification in two electorates, at the epsilon and eta of the tutorial."""
    page.locator("#tab-tell").click()
    unfold(page, ".populations details.more")
    select = page.locator("select[name=example]")
    one = select.locator("option", has_text="party")
    one.wait_for(state="attached")
    select.select_option(label=one.inner_text())
    page.locator("[name=capped]").check()
    settled(page)


def unfold(page: Any, place: str) -> None:
    """Open a fold."""
    page.locator(place).first.evaluate("one => { one.open = true; }")


def minute(page: Any) -> None:
    """The first minute in six photographs of what is seen without scrolling, as one strip."""
    matplotlib.use("agg")
    from matplotlib import pyplot as plt
    from PIL import Image

    def drag(place: str, to: float) -> None:
        box = page.locator(place).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + to, box["y"] + box["height"] / 2, steps=8)
        page.mouse.up()

    def ask_for_privacy(_: Any) -> None:
        page.get_by_role("button", name="Show me").click()

    def code(_: Any) -> None:
        page.get_by_role("button", name="Show me").click()
        page.locator('#takeaway-panel[data-state="done"]').wait_for()
        page.wait_for_timeout(600)

    steps = {
        "1  It opens: a sentence, two bars, a picture": lambda _: None,
        "2  A bar is dragged: fewer reports are enough": lambda _: drag('[data-key="p1-0"] .grip', 60),
        "3  More privacy: more reports are needed": ask_for_privacy,
        "4  The numbers and the proof, behind their fold": lambda _: unfold(page, ".verdict"),
        "5  Real data: two electorates, seven answers": tell,
        "6  Taken away: the same result as Python code": code,
    }
    page.evaluate("() => localStorage.clear()")
    page.reload()
    figure, axes = plt.subplots(3, 2, figsize=(12.8, 12.9), dpi=80)
    for (caption, step), place in zip(steps.items(), axes.flat, strict=True):
        step(page)
        if step is not code:
            settled(page)
            page.mouse.move(5, 5)
        place.imshow(plt.imread(BytesIO(page.screenshot())))
        place.set_title(caption, fontsize=13, loc="left")
        place.axis("off")
    figure.tight_layout(pad=0.4)
    image = BytesIO()
    figure.savefig(image)
    Image.open(image).convert("RGB").quantize(96).save(HERE / "studio-minute.png", optimize=True)


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
    page.get_by_text("The proof fails", exact=True).wait_for()  # before it, the view is done with the first example
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
            page.set_viewport_size({"width": WIDTH, "height": 800})
            page.goto(address)
            minute(page)
            browser.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


if __name__ == "__main__":
    main()
