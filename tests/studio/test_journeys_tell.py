"""What users do to tell two populations apart: in a browser, through the running program."""

from importlib.resources import files

import numpy as np
import pytest
from kit_site import violations
from studio_asgi import packed
from studio_site import repainted, state_of

from ldpopt.design import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import KL

pytestmark = pytest.mark.full

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]


def ready(page):
    """Wait until the current state is painted, and return the badge's text."""
    page.locator('.view[data-state="done"]').wait_for()
    return page.locator("#badge").inner_text()


def link(state):
    return "#view=tell&state=" + packed(state)


def test_a_file_of_voters_becomes_two_populations(opened):
    """A file with one row per voter asks for its columns, becomes seven answers, and has a proved optimum."""
    page = opened()
    ready(page)
    page.locator("input[type=file]").set_input_files(str(files("ldpopt") / "data" / "anes96.csv"))
    page.locator("select[name=answer]").select_option("party")
    page.locator("select[name=group]").select_option("vote")
    repainted(page, lambda: page.get_by_role("button", name="Read the file").click())
    assert ready(page) == "optimal, proof checked"
    assert page.locator(".bars [role=slider]").count() == 14
    state = state_of(page)
    assert state["labels"] == ["0", "1", "2", "3", "4", "5", "6"]
    assert state["p0"][0] == pytest.approx(197 / 551)


def test_a_dragged_bar_scales_the_others(opened):
    """A dragged bar takes mass from the others in proportion, and the design follows; Undo reverts it."""
    page = opened(fragment=link({"p0": P0, "p1": P1, "labels": ["a", "b", "c"], "epsilon": 1.0, "eta": None}))
    ready(page)
    preserved = page.locator("#figure-preserved").inner_text()
    page.locator('[data-key="p1-2"]').scroll_into_view_if_needed()
    grip = page.locator('[data-key="p0-2"] .grip').bounding_box()
    x, y = grip["x"] + 2, grip["y"] + grip["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y)
    repainted(page, lambda: page.mouse.move(x + 60, y, steps=2))
    page.mouse.up()
    assert ready(page) == "optimal, proof checked"
    state = state_of(page)
    assert state["p0"][2] > 0.2
    assert sum(state["p0"]) == pytest.approx(1, abs=1e-12)
    assert state["p0"][0] / state["p0"][1] == pytest.approx(5 / 3)
    assert state["p1"] == P1
    assert page.locator("#figure-preserved").inner_text() != preserved
    repainted(page, lambda: page.locator("#undo").click())
    assert page.locator("#figure-preserved").inner_text() == preserved


def test_erasure_ends_at_a_corner_of_the_envelope(opened):
    """On both sides of a corner the design is proved."""
    p0, p1 = [0.42, 0.25, 0.14, 0.1, 0.06, 0.03], [0.06, 0.09, 0.13, 0.2, 0.24, 0.28]
    pair = {"p0": p0, "p1": p1, "labels": list("abcdef"), "epsilon": 1.0}
    page = opened(fragment=link(pair | {"eta": 0.3575}))
    ready(page)
    kink = (np.e - 1) / (np.e + 2)
    slider = page.locator("[name=eta-slider]")
    slider.focus()
    observed = []
    for _ in range(4):
        repainted(page, lambda: page.keyboard.press("ArrowRight"))
        assert ready(page) == "optimal, proof checked"
        eta = state_of(page)["eta"]
        preserved = float(page.locator("#figure-preserved").inner_text())
        optimum = optimal_channel(Divergence(KL, p0, p1), [LocalDP(1.0), TotalVariation(eta)])
        assert preserved == pytest.approx(optimum.value, rel=1e-5)
        observed.append((eta, page.locator(".heat .tick.mid").filter(has_text="erased").count()))
    assert min(observed)[0] < kink < max(observed)[0]
    # Below the corner of three blocks some reports are erased; beyond it none is.
    assert all(erased == (eta < kink) for eta, erased in observed)


def test_invalid_lines_show_a_message_and_change_nothing(opened):
    """Numbers that are not a distribution are rejected at the field, with the package's message."""
    page = opened()
    ready(page)
    before = state_of(page)
    area = page.get_by_label("One line per answer: answer, P0, P1")
    area.fill("no, 0.7, 0.4\nyes, 0.4, 0.6")
    page.get_by_role("button", name="Use these lines").click()
    error = page.locator('[data-field="pasted"] .error')
    error.wait_for()
    assert "expected entries that sum to 1 within 1e-09 (divide counts by their sum), got 1.1" in error.inner_text()
    assert area.get_attribute("aria-invalid") == "true"
    assert state_of(page) == before
    page.get_by_label("These are counts").check()
    repainted(page, lambda: page.get_by_role("button", name="Use these lines").click())
    assert state_of(page)["p1"] == pytest.approx([0.4, 0.6])


def test_an_invalid_number_shows_a_message_at_its_field(opened):
    """An invalid epsilon leaves no green badge, and its message disappears with the correction."""
    page = opened()
    ready(page)
    field = page.get_by_label("ε in nats")
    field.fill("-1")
    field.press("Tab")
    error = page.locator('[data-field="epsilon"] .error')
    error.wait_for()
    assert "epsilon: expected" in error.inner_text()
    assert "good" not in page.locator("#badge").get_attribute("class")
    field.fill("2")
    repainted(page, lambda: field.press("Tab"))
    assert error.count() == 0
    assert ready(page) == "optimal, proof checked"


def test_all_controls_work_by_keyboard(opened):
    """Each population is a tab stop, arrows move between and along the bars, and odds can be typed."""
    page = opened(fragment=link({"p0": P0, "p1": P1, "labels": ["a", "b", "c"], "epsilon": 1.0, "eta": None}))
    ready(page)
    page.locator('[data-key="p0-0"]').focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.key") == "p0-1"
    repainted(page, lambda: page.keyboard.press("ArrowRight"))
    assert page.evaluate("document.activeElement.dataset.key") == "p0-1"
    assert state_of(page)["p0"][1] == pytest.approx(0.31)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.key") == "p1-0"
    odds = page.get_by_label("Largest change of odds")
    odds.fill("2")
    repainted(page, lambda: odds.press("Enter"))
    assert state_of(page)["epsilon"] == pytest.approx(np.log(2))
    page.locator("h1").evaluate("() => document.activeElement.blur()")
    repainted(page, lambda: page.keyboard.press("Control+z"))
    assert state_of(page)["epsilon"] == 1.0


def test_a_long_frontier_can_be_cancelled(opened):
    """A curve for four hundred answers shows its progress, stops at once when it is cancelled, and the page goes on."""
    rng = np.random.default_rng(3)
    p0, p1 = rng.dirichlet(np.ones(400)), rng.dirichlet(np.ones(400))
    page = opened(fragment=link({"p0": p0.tolist(), "p1": p1.tolist(), "labels": list(map(str, range(400)))}))
    ready(page)
    page.get_by_role("button", name="Prove 40 points").click()
    page.locator("progress").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("cancelled", exact=True).wait_for()
    slider = page.locator("[name=epsilon-slider]")
    repainted(page, lambda: slider.press("ArrowLeft"))
    assert ready(page) == "optimal, proof checked"


def test_other_limits_are_designed_by_a_job(opened):
    """With delta a job computes the design, with a button to cancel, and the badge belongs to that design."""
    page = opened(fragment=link({"p0": P0, "p1": P1, "labels": ["a", "b", "c"], "epsilon": 1.0, "eta": None}))
    ready(page)
    delta = page.get_by_label("δ of (ε, δ)")
    delta.fill("0.05")
    repainted(page, lambda: delta.press("Tab"))
    assert "proof checked" in ready(page)
    assert "0.05" in page.locator(".verdict .words").inner_text()


def test_the_phases_along_epsilon_are_listed_on_request(opened):
    """The page lists the intervals of epsilon with the same structure."""
    page = opened(fragment=link({"p0": [0.6, 0.3, 0.1], "p1": [0.1, 0.3, 0.6], "labels": ["a", "b", "c"], "eta": None}))
    ready(page)
    page.get_by_role("button", name="Find the phases").click()
    page.get_by_text("ε from 0.05 to 1.661: binary mechanism").wait_for()


def test_a_link_without_a_token_asks_for_it(browser, address):
    """A user who opens another user's link is asked for the token before a state is computed."""
    page = browser.new_page()
    page.goto(address.partition("?")[0] + link({"epsilon": 2.0}))
    page.get_by_label("Address printed by ldpopt studio").fill(address)
    page.get_by_role("button", name="Continue").click()
    assert ready(page) == "optimal, proof checked"
    assert state_of(page)["epsilon"] == 2.0
    page.close()


def test_a_damaged_link_opens_a_new_state(opened, address):
    """After a link that is cut or mistyped the page starts as usual."""
    page = opened()
    for damage in ("%%%", "bm8", packed([1, 2])):
        page.goto("about:blank")
        page.goto(f"{address}#view=tell&state={damage}")
        assert ready(page) == "optimal, proof checked"


def test_the_view_is_accessible(opened):
    """axe-core finds nothing, in either scheme, on a phone, with all folds open; nothing overflows."""
    page = opened(bypass_csp=True)
    ready(page)
    page.evaluate("() => document.querySelectorAll('#main details').forEach(one => one.open = true)")
    for width, scheme in ((1280, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(200)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("view", "state"),
    [
        ("tell", {"p0": "0.5,0.5"}),
        ("tell", {"p0": [0.5, "x"], "epsilon": {}}),
        ("tell", {"labels": 7}),
        ("ask", {"questions": 5}),
        ("ask", {"questions": [None], "at": 0}),
        ("ask", {"at": 99}),
        ("meaning", {"question": [1, 2]}),
        ("inspect", {"text": 5}),
    ],
)
def test_a_link_with_wrong_types_opens_a_new_state(opened, view, state):
    """The page says that the link is invalid, and shows the view with a new state."""
    page = opened(view, fragment=f"#view={view}&state={packed(state)}")
    page.set_default_timeout(20_000)
    page.wait_for_function("() => document.getElementById('status').textContent.includes('is invalid')")
    assert page.locator(".view .card").count() > 1
