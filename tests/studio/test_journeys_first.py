"""The studio's first minute: what a newcomer sees before scrolling, and the three steps of the guide."""

import math
import re
from importlib.resources import files

import pytest
from studio_site import repainted, state_of

from ldpopt_survey import respondents_to_distinguish

pytestmark = pytest.mark.full

ABOVE = ["#sentence", "[data-key=p0-0]", "[data-key=p1-0]", ".answer .svg > svg", ".guide", "#badge"]
"""One sentence, two bars to drag, one picture that answers; and the guide and the verdict."""


def ready(page):
    page.locator('.view[data-state="done"]').wait_for()
    page.locator(".answer .svg > svg").wait_for()


@pytest.mark.parametrize("letters", ["0", "0.06em"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 664)])
def test_the_first_gesture_is_above_the_fold(opened, size, letters):
    """On a laptop and on a phone the controls of the first gesture are visible at once, and nothing is wider.

    Nor does it depend on the fonts of the machine: it holds for letters that are a tenth wider.
    """
    width, height = size
    page = opened(folded=True, viewport={"width": width, "height": height})
    ready(page)
    page.evaluate("spacing => { document.documentElement.style.letterSpacing = spacing }", letters)
    assert page.locator(".bars [role=slider]").count() == 2
    assert page.locator("main input[type=number]:visible").count() == 0, "numbers are behind a fold"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for place in ABOVE:
        box = page.locator(place).bounding_box()
        assert min(box["x"], box["y"]) >= 0, (place, box)
        assert box["x"] + box["width"] <= width, (place, box)
        assert box["y"] + box["height"] <= height, (place, box)


def test_the_sentence_has_the_library_s_number_of_reports(opened):
    """The sentence describes the channel of the page, and follows a bar."""
    page = opened(folded=True)
    ready(page)
    e = math.e
    response = [[e / (1 + e), 1 / (1 + e)], [1 / (1 + e), e / (1 + e)]]
    private, whole = (
        respondents_to_distinguish(q, [0.3, 0.7], [0.6, 0.4]).respondents for q in (response, [[1, 0], [0, 1]])
    )
    assert page.locator("#sentence").inner_text() == (
        f"{private} private reports distinguish East from West; without privacy, {whole} suffice."
    )
    page.locator("[data-key=p1-0]").focus()
    repainted(page, lambda: page.keyboard.press("PageUp"))
    assert int(page.locator("#sentence").inner_text().split()[0]) < private


def test_the_guide_works_by_keyboard(opened):
    """Tab, arrows and Enter complete the three steps; each is ticked, and the closed guide stays closed."""
    page = opened(folded=True)
    ready(page)
    step = page.locator(".guide [aria-current=step]")
    assert step.inner_text().startswith("Drag a bar")
    page.locator("#tab-tell").focus()
    for selector in ("[data-key=p0-0]", "[name=epsilon-slider]"):
        for _ in range(25):
            page.keyboard.press("Tab")
            if page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
                break
        assert page.evaluate("wanted => document.activeElement.matches(wanted)", selector), selector
        repainted(page, lambda: page.keyboard.press("ArrowLeft"))
    assert step.inner_text().startswith("Take it away")
    assert state_of(page)["p0"][0] == pytest.approx(0.29)
    assert state_of(page)["epsilon"] < 1
    page.get_by_role("button", name="Show me").press("Enter")
    page.locator('#takeaway-panel[data-state="done"]').wait_for()
    assert "LocalDP(" in page.locator("#takeaway-code").inner_text()
    assert page.locator(".guide li.done").count() == 3
    page.get_by_role("button", name="End the tour").press("Enter")
    page.reload()
    ready(page)
    assert not page.locator(".guide").is_visible()


def test_the_status_line_does_not_move_the_page(opened):
    """Announcements to screen readers take no space; messages appear at the foot, over the page."""
    page = opened(folded=True)
    ready(page)
    top = page.locator("main").bounding_box()["y"]
    assert top == page.locator("header").bounding_box()["height"]
    page.locator("#link").click()
    page.locator("#status:not(.visually-hidden)").wait_for()
    assert "link" in page.locator("#status").inner_text()
    assert page.locator("main").bounding_box()["y"] == top


def test_the_view_of_any_channel_opens_with_an_example(opened):
    """The view opens with a measured channel, and says that it is an example."""
    page = opened("inspect", folded=True)
    page.locator('.view[data-state="done"]').wait_for()
    assert "1.09862" in page.locator(".headline").inner_text()
    assert "example" in page.locator("#inspected").inner_text()
    button = page.locator(".file label").bounding_box()
    assert button["height"] >= 24
    assert page.locator(".file label").inner_text() == "Choose a file …"


# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as people see it who lack one kind of cone.
SEEN = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def lab(colour, matrix):
    """CIE L*a*b* of a colour ``#rrggbb`` after a matrix on linear RGB."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    r, g, b = (min(1, max(0, sum(m * v for m, v in zip(row, linear, strict=True)))) for row in matrix)
    white = (0.95047, 1.0, 1.08883)
    xyz = (
        0.4124 * r + 0.3576 * g + 0.1805 * b,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        0.0193 * r + 0.1192 * g + 0.9505 * b,
    )
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (v / w for v, w in zip(xyz, white, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("kind", SEEN)
def test_the_populations_differ_for_the_colour_blind(kind):
    """In light and in dark the two populations are over ten just noticeable differences apart in L*a*b*."""
    sheet = (files("ldpopt_studio") / "static" / "studio.css").read_text("utf-8")
    both = list(zip(*(re.findall(rf"--{name}: (#\w{{6}})", sheet) for name in ("p0", "p1")), strict=True))
    assert len(both) == 2
    for one, other in both:
        assert math.dist(lab(one, SEEN[kind]), lab(other, SEEN[kind])) > 30, (kind, one, other)
