"""One studio, and a browser for each file of journeys; every journey gets a tab of an empty profile."""

import pytest
from kit_site import CHROMIUM, chromium
from studio_site import recorded, studio_running

WAIT = 120_000


@pytest.fixture(scope="session")
def address():
    """The address that the running program printed, with its token."""
    pytest.importorskip("starlette", reason="starlette is not installed: the studio is not started here")
    with studio_running() as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    """A browser of Playwright."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the studio is not opened here")
    if CHROMIUM is None:
        pytest.skip("no Chromium: the studio is not opened here")
    with chromium() as chromium_browser:
        yield chromium_browser


@pytest.fixture
def opened(browser, address):
    """A function that opens the studio at a view, in a tab of an empty profile; at the end nothing was logged.

    ``fragment`` : of a link to open instead; ``folded`` : leave closed what the page opens with closed.
    """
    contexts, pages = [], []

    def start(view="tell", fragment="", folded=False, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = recorded(context.new_page())
        page.set_default_timeout(WAIT)
        page.goto(address + fragment)
        page.locator(f"#tab-{view}").click()
        page.locator(f".view.{view}").wait_for()
        if not folded:
            page.evaluate("() => document.querySelectorAll('#main details:not(.text)').forEach(one => one.open = true)")
        pages.append(page)
        return page

    yield start
    origin = address.partition("?")[0]
    # Refused states, and what was just cancelled, are answers that the browser logs.
    messages = [line for page in pages for line in page.messages if "422" not in line and "404" not in line]
    foreign_urls = [url for page in pages for url in page.requested_urls if not url.startswith((origin, "blob:"))]
    for context in contexts:
        context.close()
    assert not messages
    assert not foreign_urls
