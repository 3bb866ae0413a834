"""What users do to plan a survey and to learn what a report tells of them: in a browser, by the running program."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from kit_site import violations
from studio_asgi import packed
from studio_site import repainted, state_of

from ldpopt_studio.ask import TotalVarianceHalfWidth
from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.plan.budget import Budget, split_budget
from ldpopt_survey.plan.question import QuestionPlanner

pytestmark = pytest.mark.full

PILOT, LABELS = [0.5, 0.3, 0.2], ["never", "sometimes", "often"]
QUESTION = {"name": "How often?", "labels": LABELS, "pilot": PILOT, "half_width": 0.05}
YES_NO = {"name": "Ever?", "labels": ["yes", "no"], "pilot": [0.2, 0.8], "half_width": 0.03}


def link(view, **state):
    return f"#view={view}&state={packed(state)}"


def ready(page):
    """Wait until the current state is painted."""
    page.locator('.view[data-state="done"]').wait_for()


def number(page, name):
    """The number of a headline figure."""
    return float(page.locator(f"#figure-{name}").inner_text().replace(",", "").replace("±", ""))


def type_number(page, name, value):
    """Type a number into a field."""
    control = page.locator(f'input[type=number][name="{name}"]')
    control.fill(str(value))
    control.press("Enter")


def people(epsilon):
    """Count the people for 5 points, through the channel of the library's planner."""
    planner = QuestionPlanner(PILOT)
    return TotalVarianceHalfWidth(0.05).respondents(planner.channel(epsilon), planner.pilot)


def test_epsilon_follows_from_people_and_half_width(opened):
    """With people and half-width given, the page computes the library's smallest epsilon, and proves the channel."""
    page = opened("ask", link("ask", questions=[QUESTION], respondents=5000))
    ready(page)
    repainted(page, lambda: page.get_by_label("Compute").select_option("epsilon"))
    repainted(page, lambda: type_number(page, "questions.0.half_width", 0.04))
    expected = QuestionPlanner(PILOT).epsilon(TotalVarianceHalfWidth(0.04), 5000)
    assert number(page, "ε") == pytest.approx(expected, rel=1e-3)
    assert number(page, "half-width") <= 4
    assert page.locator("#badge").inner_text() == "optimal, proof checked"
    repainted(page, lambda: type_number(page, "respondents", 20000))
    assert number(page, "ε") == pytest.approx(
        QuestionPlanner(PILOT).epsilon(TotalVarianceHalfWidth(0.04), 20000), rel=1e-3
    )
    assert page.locator('input[type=number][name="epsilon"]').is_disabled()


def test_people_follow_the_slider_and_undo_reverts_it(opened):
    """Keys on the slider of epsilon change the people needed to the library's number; Undo reverts the change."""
    page = opened("ask", link("ask", questions=[QUESTION], epsilon=1.0))
    ready(page)
    before = number(page, "people")
    assert before == people(1.0)
    slider = page.locator('[data-field="epsilon-slider"] input')
    slider.focus()
    repainted(page, lambda: slider.press("PageUp"))
    state = state_of(page)
    assert state["epsilon"] > 1
    assert number(page, "people") == people(state["epsilon"])
    repainted(page, lambda: page.locator("#undo").click())
    assert number(page, "people") == before


def test_each_click_simulates_another_survey(opened):
    """Each click gives other intervals; Undo restores the previous ones."""
    page = opened("ask", link("ask", questions=[QUESTION], epsilon=1.0))
    ready(page)
    survey = page.locator("svg.intervals")
    first = survey.inner_html()
    first = re.sub(r"picture-\d+", "", first)
    repainted(page, lambda: page.locator("#again").click())
    second = re.sub(r"picture-\d+", "", survey.inner_html())
    assert second != first
    assert page.locator("svg.repeats line.held, svg.repeats line.missed").count() == 40
    repainted(page, lambda: page.locator("#undo").click())
    assert re.sub(r"picture-\d+", "", survey.inner_html()) == first


def test_the_split_can_be_dragged_and_optimized(opened):
    """Dragging or keys move epsilon between questions; the best split needs the fewest people."""
    page = opened("ask", link("ask", questions=[YES_NO, {**YES_NO, "name": "Now?", "half_width": 0.06}], epsilon=2.0))
    ready(page)
    even = number(page, "people")
    grip = page.locator('[data-key="cut-0"] .grip').bounding_box()
    x, y = grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y)
    repainted(page, lambda: page.mouse.move(x + 60, y, steps=2))
    page.mouse.up()
    dragged = state_of(page)["split"]
    assert dragged[0] > 0.52
    assert sum(dragged) == pytest.approx(1)
    assert number(page, "people") < even
    handle = page.locator('[data-key="cut-0"]')
    handle.focus()
    repainted(page, lambda: handle.press("ArrowRight"))
    assert state_of(page)["split"][0] == pytest.approx(dragged[0] + 0.01, abs=1e-9)
    repainted(page, lambda: page.locator("#best-split").click())
    expected = split_budget(
        {name: ([0.2, 0.8], TotalVarianceHalfWidth(w)) for name, w in (("a", 0.03), ("b", 0.06))}, Budget(2.0)
    )
    assert number(page, "people") == pytest.approx(expected.respondents, rel=0.012)
    assert number(page, "people") <= even


def test_several_questions_are_planned_as_a_questionnaire(opened):
    """The people for booklets, one question each and a split follow epsilon and the questions; the bound is drawn."""
    questions = [{**YES_NO, "pilot": [0.5, 0.5], "name": name} for name in ("Ever?", "Now?", "Often?")]
    page = opened("ask", link("ask", questions=questions, epsilon=3.0))
    ready(page)
    card = page.locator(".questionnaire")

    def planned(count, epsilon):
        card.locator('xpath=self::*[@data-state="done"]').wait_for()
        spec = SurveySpec("s", tuple(QuestionSpec(str(at), ("yes", "no"), half_width=0.03) for at in range(count)),
                          epsilon=epsilon)  # fmt: skip
        expected, words = plan_survey(spec), card.inner_text()
        for people in (expected.respondents, expected.one_question, expected.split, expected.least):
            assert f"{people:,.0f}" in words
        return words

    assert "all people: Ever?, Now?, Often?" in planned(3, 3.0)
    with page.expect_download() as saved:
        page.locator("#save-booklets").click()
    assert plan_survey(SurveySpec.from_toml(Path(saved.value.path()).read_text("utf-8"))).plan.epsilon <= 3.0
    repainted(page, lambda: type_number(page, "epsilon", 1))
    assert "1/3 of the people: Ever?" in planned(3, 1.0)
    repainted(page, lambda: page.get_by_role("button", name="Remove this question").click())
    assert "1/2 of the people: Now?" in planned(2, 1.0)
    repainted(page, lambda: page.get_by_role("button", name="Remove this question").click())
    assert card.is_hidden()


def test_invalid_input_shows_a_message_at_its_field(opened):
    """The field shows the package's message until the input is corrected."""
    page = opened("ask", link("ask", questions=[QUESTION], epsilon=1.0))
    ready(page)
    type_number(page, "questions.0.half_width", 2)
    error = page.locator('[data-field="questions.0.half_width"] .error')
    error.wait_for()
    assert error.inner_text() == "half-width: expected a number between 0 and 1, got 2.0"
    assert page.locator('input[name="questions.0.half_width"]').get_attribute("aria-invalid") == "true"
    repainted(page, lambda: type_number(page, "questions.0.half_width", 0.05))
    assert error.count() == 0
    answers = page.locator("textarea")
    answers.fill("never, 0.5\noften, -0.5")
    answers.blur()
    error = page.locator('[data-field="questions.0.pilot"] .error')
    error.wait_for()
    assert "non-negative" in error.inner_text()
    answers.fill("never 30\nsometimes 20\noften 10")
    repainted(page, answers.blur)
    assert error.count() == 0
    assert page.locator(".bars [role=slider]").count() == 3
    answers.fill("never\noften")
    answers.blur()
    error.wait_for()
    assert "an answer and its proportion in each line" in error.inner_text()


def test_keys_change_an_expected_proportion(opened):
    """The other proportions change in proportion."""
    page = opened("ask", link("ask", questions=[QUESTION], epsilon=1.0))
    ready(page)
    bar = page.locator('[data-key="share-2"]')
    page.locator('[data-key="share-0"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    repainted(page, lambda: bar.press("PageUp"))
    pilot = state_of(page)["questions"][0]["pilot"]
    assert pilot[2] == pytest.approx(0.25)
    assert pilot[0] / pilot[1] == pytest.approx(5 / 3, rel=1e-4)


def test_a_long_design_can_be_cancelled(opened):
    """A design of many answers shows its progress, and stops when it is cancelled."""
    many = {
        "name": "Which?",
        "labels": [f"a{at}" for at in range(14)],
        "pilot": [1 + at for at in range(14)],
        "half_width": 0.05,
    }
    page = opened("ask", link("ask", questions=[many], epsilon=0.3, aim="widest", solve="epsilon", respondents=100000))
    page.get_by_role("button", name="Cancel").click()
    page.locator('.view[data-state="cancelled"]').wait_for()
    assert page.locator("#badge").inner_text() == "cancelled"
    assert "good" not in page.locator("#badge").get_attribute("class")


def test_a_question_opens_in_the_meaning_view(opened):
    """The button takes the question and its epsilon along; the sentence follows from Bayes' rule at that epsilon."""
    page = opened("ask", link("ask", questions=[QUESTION], epsilon=0.7))
    ready(page)
    page.get_by_role("button", name="What it means for one person").click()
    page.locator(".view.meaning[data-state=done]").wait_for()
    state = state_of(page)
    assert state["question"]["labels"] == LABELS
    assert state["epsilon"] == pytest.approx(0.7)
    words = page.locator(".promises li").first.inner_text()
    assert re.search(
        r"is 1 in 100\. After your report, they think it is at most 1 in 50", words
    )  # 0.01 e^0.7 / (0.01 e^0.7 + 0.99) = 1/50.2


def test_more_rounds_raise_the_bound_on_the_chance(opened):
    """The bound rises with the slider, and stays within Bayes' rule."""
    page = opened("meaning", link("meaning", question=QUESTION, epsilon=0.5, answer=2))
    ready(page)
    slider = page.locator('[data-field="rounds-slider"] input')
    slider.focus()
    bounds = []
    for _ in range(3):
        repainted(page, lambda: slider.press("PageUp"))
        n = state_of(page)["rounds"]
        count, parts = re.search(r"at most ([\d,.]+) in ([\d,]+)", page.locator("#figure-after").inner_text()).groups()
        chance = Fraction(count.replace(",", "")) / Fraction(parts.replace(",", ""))
        odds = Fraction(1, 99) * Fraction(2.718281828459046**0.5) ** n
        assert chance <= odds / (1 + odds) * Fraction(12, 10)
        assert page.locator(".promises li").count() == 4
        bounds.append((n, chance))
    assert bounds == sorted(bounds)
    assert bounds[0][1] < bounds[-1][1]
    type_number(page, "prior", 1.5)
    error = page.locator('[data-field="prior"] .error')
    error.wait_for()
    assert error.inner_text() == "prior: expected a number between 0 and 1, got 1.5"


@pytest.mark.parametrize("view", ["ask", "meaning"])
def test_the_views_are_accessible(opened, view):
    """axe-core finds nothing on a light screen and a dark phone, and each figure has its numbers as a table."""
    page = opened(view)
    ready(page)
    if view == "ask":
        repainted(page, lambda: page.get_by_role("button", name="Add a question").click())
        page.locator('.questionnaire[data-state="done"]').wait_for()
    else:
        repainted(page, lambda: type_number(page, "rounds", 4))
    pictures = page.locator("figure.picture:visible")
    assert pictures.count() >= 3
    for at in range(pictures.count()):
        assert pictures.nth(at).locator("svg").get_attribute("aria-labelledby")
    pictures.locator("summary").evaluate_all("all => all.forEach(one => one.click())")
    for at in range(pictures.count()):
        pictures.nth(at).locator("tbody tr").first.wait_for()
    for width, scheme in ((1280, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
