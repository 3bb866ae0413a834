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
    """Wait until the present state is repainted, and return the badge's text."""
    page.locator('.view[data-state="done"]').wait_for()
    return page.locator("#badge").inner_text()


def link(state):
    return "#view=tell&state=" + packed(state)


def test_load_the_anes_file(opened):
    """A file with a line for each voter asks for its columns, becomes seven answers, and has a proved optimum."""
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


def test_drag_a_bar(opened):
    """A bar that is dragged takes mass from the others in proportion, and the design follows; Undo takes it back."""
    page = opened(fragment=link({"p0": P0, "p1": P1, "labels": ["a", "b", "c"], "epsilon": 1.0, "eta": None}))
    ready(page)
    kept = page.locator("#figure-preserved").inner_text()
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
    assert page.locator("#figure-preserved").inner_text() != kept
    repainted(page, lambda: page.locator("#undo").click())
    assert page.locator("#figure-preserved").inner_text() == kept


def test_slide_eta_across_a_kink(opened):
    """On both sides of a corner of the envelope the design is proved; erasure ends at it."""
    p0, p1 = [0.42, 0.25, 0.14, 0.1, 0.06, 0.03], [0.06, 0.09, 0.13, 0.2, 0.24, 0.28]
    pair = {"p0": p0, "p1": p1, "labels": list("abcdef"), "epsilon": 1.0}
    page = opened(fragment=link(pair | {"eta": 0.3575}))
    ready(page)
    kink = (np.e - 1) / (np.e + 2)
    slider = page.locator("[name=eta-slider]")
    slider.focus()
    seen = []
    for _ in range(4):
        repainted(page, lambda: page.keyboard.press("ArrowRight"))
        assert ready(page) == "optimal, proof checked"
        eta = state_of(page)["eta"]
        kept = float(page.locator("#figure-preserved").inner_text())
        best = optimal_channel(Divergence(KL, p0, p1), [LocalDP(1.0), TotalVariation(eta)])
        assert kept == pytest.approx(best.value, rel=1e-5)
        seen.append((eta, page.locator(".heat .tick.mid").filter(has_text="erased").count()))
    assert min(seen)[0] < kink < max(seen)[0]
    # Below the corner of three blocks some reports are erased; beyond it none is.
    assert all(erased == (eta < kink) for eta, erased in seen)


def test_an_invalid_paste(opened):
    """Numbers that are no distribution are refused beside the field, in the package's words, and nothing is changed."""
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


def test_a_wrong_number_says_so_beside_its_field(opened):
    """An epsilon that is none leaves no green badge, and its error goes when it is mended."""
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


def test_everything_by_keyboard(opened):
    """Without a mouse: a tab stop for each population, arrows between and along the bars, and the odds as a number."""
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


def test_cancel_a_long_frontier(opened):
    """A curve for four hundred answers shows how far it is, can be ended at once, and the page goes on."""
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


def test_more_limits_are_a_job(opened):
    """With delta the work is done aside, with a button to end it, and the badge speaks of that design."""
    page = opened(fragment=link({"p0": P0, "p1": P1, "labels": ["a", "b", "c"], "epsilon": 1.0, "eta": None}))
    ready(page)
    delta = page.get_by_label("δ of (ε, δ)")
    delta.fill("0.05")
    repainted(page, lambda: delta.press("Tab"))
    assert "proof checked" in ready(page)
    assert "0.05" in page.locator(".verdict .words").inner_text()


def test_the_phases_along_epsilon(opened):
    """Where the design changes along epsilon is found on demand and told in words."""
    page = opened(fragment=link({"p0": [0.6, 0.3, 0.1], "p1": [0.1, 0.3, 0.6], "labels": ["a", "b", "c"], "eta": None}))
    ready(page)
    page.get_by_role("button", name="Find the phases").click()
    page.get_by_text("ε from 0.05 to 1.661: binary mechanism").wait_for()


def test_a_link_without_a_token_asks_for_it(browser, address):
    """Who opens a link of somebody else sees where the token is, and no state is computed before."""
    page = browser.new_page()
    page.goto(address.partition("?")[0] + link({"epsilon": 2.0}))
    page.get_by_label("Address printed by ldpopt studio").fill(address)
    page.get_by_role("button", name="Continue").click()
    assert ready(page) == "optimal, proof checked"
    assert state_of(page)["epsilon"] == 2.0
    page.close()


def test_a_damaged_link_is_no_error(opened, address):
    """A link that is cut or mistyped is said to be one, and the page begins as usual."""
    page = opened()
    for damage in ("%%%", "bm8", packed([1, 2])):
        page.goto("about:blank")
        page.goto(f"{address}#view=tell&state={damage}")
        assert ready(page) == "optimal, proof checked"


def test_everybody_can_use_it(opened):
    """axe-core objects to nothing, in either scheme, on a telephone, with everything open; nothing overflows."""
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
def test_an_ill_typed_link_leaves_a_page_that_works(opened, view, state):
    """It says that the link is damaged, and shows the view with a new state."""
    page = opened(view, fragment=f"#view={view}&state={packed(state)}")
    page.set_default_timeout(20_000)
    page.wait_for_function("() => document.getElementById('told').textContent.includes('is invalid')")
    assert page.locator(".view .card").count() > 1
