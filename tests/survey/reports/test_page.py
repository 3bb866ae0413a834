"""Pages stand alone and show text as text."""

import re
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np

from ldpopt import plots
from ldpopt_survey import QuestionSpec, SurveySpec, estimate, plan_survey
from ldpopt_survey.reports import embed, page, survey_report, table
from ldpopt_survey.reports.page import interval_table
from ldpopt_survey.sample.analysis import Analysis, Findings


class Balanced(HTMLParser):
    """Fails on a tag that is not closed in its place."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.images = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.images.append(dict(attrs))
        elif tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(html):
    reader = Balanced()
    reader.feed(html)
    assert reader.open == []
    return reader


def test_text_is_shown_as_it_is():
    """Markup in labels is escaped, wherever it stands."""
    wild = "<script>alert('x') & more</script>"
    html = page(wild, [table([wild], [[wild]], wild, (0,)), embed(b"\x89PNG" + bytes(20), wild, wild)])
    assert "<script>" not in html
    reader = parsed(html)
    assert "".join(reader.text).count(wild) == 5
    assert reader.images[0]["alt"] == wild


def test_a_picture_is_inside_the_page():
    """The bytes of a picture come back out of its page, shown at the size it was drawn."""
    png = plots.picture(plots.channel(np.eye(2)))
    image = parsed(page("t", [embed(png, "a channel")])).images[0]
    assert b64decode(image["src"].removeprefix("data:image/png;base64,")) == png
    inches = plots.channel(np.eye(2)).figure.get_size_inches()[0]
    assert abs(int(image["width"]) - 96 * inches) <= 1


def test_columns_of_numbers_are_set_right():
    """Only the named columns are marked as numbers."""
    html = table(["a", "b"], [["x", "1"]], numbers=(1,))
    assert '<th scope="row">x</th>' in html
    assert '<th scope="col">a</th>' in html
    assert '<td class="number">1</td>' in html


def test_a_report_is_for_a_client_first_and_for_the_statistician_in_an_appendix():
    """Shares, groups and promises come before the appendix, which has budget, channels and protocols.

    Groups are drawn as intervals: every group of every answer, and of two answers only the second.
    """
    questions = (QuestionSpec("vote", ("a", "b", "c")), QuestionSpec("drug", ("no", "yes")))
    plan = plan_survey(SurveySpec("demo", questions, epsilon=6.0, design="split")).plan
    rng = np.random.default_rng(5)
    found = {}
    for one in plan.questions:
        parts = {name: estimate(rng.multinomial(n, one.channel.matrix.mean(axis=0)), one) for name, n in GROUPS}
        found[one.name] = Findings(estimate(rng.multinomial(900, one.channel.matrix.mean(axis=0)), one), parts)
    html = survey_report(plan, found, pictures=False, analysis=Analysis(by=("region",)))
    client, appendix = html.split("Appendix for the statistician")
    parsed(html)
    for said in ("vote", "drug", "How to read this", "What respondents were promised", "By region (reports)"):
        assert said in client
    for said in (
        "ε (nats)",
        "Other protocols",
        "How an answer becomes a report",
        "Plan checksum",
        "Planned: intervals",
    ):
        assert said in appendix
        assert said not in client
    rows = [f"{answer}: {name} ({n:,})" for answer in ("a", "b", "c", "yes") for name, n in GROUPS]
    assert all(f'<th scope="row" dir="auto">{row}</th>' in client for row in rows)
    assert "no: north" not in html
    assert client.count('<circle cx="') == 3 + 2 + len(rows)
    assert ".appendix { break-before: page; }" in html


GROUPS = (("north", 400), ("south", 500))


def test_means_are_drawn_on_an_axis_of_their_own_unit():
    """A mean is no share: neither its head nor its axis says so."""
    mean = str(interval_table(["mean"], [5.0], [4.5], [5.5], "", "95 %", is_number=True))
    share = str(interval_table(["no"], [0.5], [0.4], [0.6], "", "95 %"))
    axes = [re.findall(r"<text[^>]*>([^<]*)</text>", one) for one in (mean, share)]
    assert axes[0][0] == "0"
    assert not any("%" in one for one in axes[0])
    assert all(one.endswith(" %") for one in axes[1])
    assert ("proportion" in mean, "proportion" in share) == (False, True)
