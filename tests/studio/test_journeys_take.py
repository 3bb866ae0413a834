"""What users do with channels of their own, and what they take away: in a browser, through the running program."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from kit_site import violations
from studio_site import link_of

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.files import design_text
from ldpopt.design.load import parse_design
from ldpopt.divergences import KL
from ldpopt.io.channels import parse_channel
from ldpopt.privacy import local_dp

pytestmark = pytest.mark.full

DESIGN = optimal_channel(
    Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], inputs=("low", "middle", "high")),
    [LocalDP(1.0), TotalVariation(0.3)],
)
DROP = """([text, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  const card = document.querySelector(".drop");
  for (const kind of ["dragenter", "dragover", "drop"])
    card.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


def state_is(page, what):
    page.locator(f'.view[data-state="{what}"]').wait_for()


def text_of(page):
    page.locator("#takeaway-panel > summary").click()
    page.locator('#takeaway-panel[data-state="done"]').wait_for()
    return page.locator("#takeaway-code").inner_text()


def downloaded(page, name):
    with page.expect_download() as there:
        page.get_by_role("button", name=name, exact=True).click()
    return there.value.suggested_filename, Path(there.value.path()).read_text("utf-8")


def test_a_dropped_forged_design_has_a_red_badge(opened):
    """A design file that claims more than it proves gets a red badge with the reason; the true one, a green one."""
    page, text = opened("inspect"), design_text(DESIGN)
    forged = json.loads(text)
    for claim in ("value", "lower_bound", "upper_bound"):
        forged[claim] *= 1.01
    page.evaluate(DROP, [json.dumps(forged), "forged.json"])
    state_is(page, "done")
    assert "bad" in page.locator("#badge").get_attribute("class")
    assert page.locator("#badge").inner_text() == "The proof fails"
    assert f"the value is {DESIGN.verify().value!r}, not {forged['value']!r}" in page.locator("#reasons").inner_text()
    page.evaluate(DROP, [text, "design.json"])
    page.get_by_text("The proof holds", exact=True).wait_for()
    assert "good" in page.locator("#badge").get_attribute("class")
    page.locator("#undo").click()
    page.get_by_text("The proof fails", exact=True).wait_for()


def test_a_file_can_be_chosen_by_keyboard(opened, tmp_path):
    """Without a mouse the same file comes in through the first field that Tab reaches on the card."""
    page = opened("inspect")
    (tmp_path / "q.csv").write_text(",a,b\nno,0.75,0.25\nyes,0.25,0.75\n")
    # Asked for before any key: the browser is told some time after it is asked for, and a key would overtake that.
    page.on("filechooser", lambda asked: asked.set_files(tmp_path / "q.csv"))
    page.locator("#tab-inspect").focus()
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "file":
            break
    assert page.evaluate("document.activeElement.type") == "file"
    page.keyboard.press("Space")
    page.get_by_text("File: q.csv.", exact=True).wait_for()
    state_is(page, "done")
    assert "1.09862" in page.locator(".headline").inner_text()


def test_an_invalid_matrix_shows_a_message_at_its_field(opened):
    """The field shows the package's message until the text is corrected."""
    page = opened("inspect")
    area = page.get_by_label("Or paste it here")
    area.fill("0.5, 0.6\n0.5, 0.5")
    area.blur()
    state_is(page, "failed")
    error = page.locator('[data-field="text"] .error')
    assert "expected rows that sum to 1 within 1e-09, got 1.1 at row 0" in error.inner_text()
    assert area.get_attribute("aria-invalid") == "true"
    assert area.get_attribute("aria-errormessage") == error.get_attribute("id")
    area.fill("0.4, 0.6\n0.5, 0.5")
    area.blur()
    state_is(page, "done")
    assert error.count() == 0


def test_a_matrix_is_repaired_and_downloaded(opened):
    """Rows are divided by their sums, the channel is brought within ε, and the download holds it."""
    page = opened("inspect")
    area = page.get_by_label("Or paste it here")
    area.fill("answer,yes,no\nyes,30,10\nno,10,30")
    area.blur()
    state_is(page, "failed")
    page.get_by_label("ε at most, nats").fill("0.5")
    page.get_by_role("button", name="Repair").click()
    state_is(page, "done")
    assert "divided by their sums, which were 40" in page.locator("#mended").inner_text()
    text_of(page)
    name, text = downloaded(page, "Download channel.json")
    channel = parse_channel(text, name)
    assert channel.inputs == ("yes", "no")
    assert 0.49 < local_dp(channel).value <= 0.5
    page.get_by_role("button", name="Show the original").click()
    state_is(page, "failed")


def test_the_exported_code_reproduces_the_page(opened):
    """The code of the first view computes the channel in the design file and the value on the page."""
    page = opened("tell")
    page.get_by_label("ε in nats").fill("0.8")
    page.get_by_label("ε in nats").blur()
    state_is(page, "done")
    assert "good" in page.locator("#badge").get_attribute("class")
    code = text_of(page)
    assert "LocalDP(0.8)" in code
    space = {}
    exec(compile(code, "taken.py", "exec"), space)
    name, text = downloaded(page, "Download design.json")
    assert name == "design.json"
    design = parse_design(text)
    assert space["design"].value == design.value
    assert np.array_equal(space["design"].channel.matrix, design.channel.matrix)
    assert page.locator("#figure-preserved").inner_text() == f"{design.value:.6g}".rstrip("0")


def test_a_link_restores_the_state(opened):
    """The address alone restores the view in another tab; it contains no token."""
    page = opened("inspect")
    area = page.get_by_label("Or paste it here")
    area.fill("0.6, 0.4\n0.3, 0.7")
    area.blur()
    state_is(page, "done")
    link = link_of(page)
    assert "token" not in page.url
    other = opened("inspect", link)
    state_is(other, "done")
    assert other.get_by_label("Or paste it here").input_value() == "0.6, 0.4\n0.3, 0.7"
    assert other.locator(".headline").inner_text() == page.locator(".headline").inner_text()


def test_the_report_and_figures_open_alone(opened, browser, tmp_path):
    """The report needs no scripts; saved figures are well-formed, with a title and a background."""
    page = opened("inspect")
    page.locator("select[name=example]").select_option("response")
    state_is(page, "done")
    text_of(page)
    name, text = downloaded(page, "HTML report")
    assert name == "inspect.html"
    (tmp_path / name).write_text(text, "utf-8")
    alone = browser.new_context(java_script_enabled=False).new_page()
    alone.goto((tmp_path / name).as_uri())
    assert "Every claim" in alone.inner_text("main") or "measured here" in alone.inner_text("main")
    alone.context.close()
    name, text = downloaded(page, "Save as SVG: The channel: probability of each report")
    drawn = ET.fromstring(text)
    assert name == "channel.svg"
    assert drawn.find("{http://www.w3.org/2000/svg}title").text
    assert drawn.find("{http://www.w3.org/2000/svg}rect").get("fill") == "rgb(255, 255, 255)"


def test_a_long_audit_can_be_cancelled(opened):
    """A channel of 150 answers shows its progress and a Cancel button, and the page goes on."""
    page = opened("inspect")
    matrix = np.random.default_rng(0).dirichlet(np.ones(150), 150)
    page.evaluate(DROP, [json.dumps(matrix.tolist()), "large.json"])
    page.get_by_role("button", name="Cancel").click()
    assert page.locator("#badge").inner_text() == "cancelled"
    page.locator("select[name=example]").select_option("response")
    state_is(page, "done")


def test_the_view_is_accessible(opened):
    """axe-core finds nothing, on a light screen or a dark phone, with all folds open; nothing overflows."""
    page = opened("inspect", viewport={"width": 390, "height": 844}, color_scheme="dark", bypass_csp=True)
    page.locator("select[name=example]").select_option("rounded")
    state_is(page, "failed")
    page.get_by_role("button", name="Repair").click()
    state_is(page, "done")
    text_of(page)
    page.evaluate("() => document.querySelectorAll('#main details').forEach(one => one.open = true)")
    for width, scheme in ((390, "dark"), (1280, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
