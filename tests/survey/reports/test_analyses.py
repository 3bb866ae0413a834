"""Tables of results and texts for respondents, on examples with known content."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ldpopt import Divergence, LocalDP, optimal_channel
from ldpopt.divergences import TOTAL_VARIATION
from ldpopt.privacy import local_dp
from ldpopt.words import guarantee_in_words, proof_in_words
from ldpopt_survey import (
    Counts,
    QuestionSpec,
    Reading,
    Survey,
    SurveySpec,
    difference,
    estimate,
    logit_regression,
    make_plan,
    mean,
    plan_survey,
    quantile,
    two_way_from_counts,
)
from ldpopt_survey.reports import results
from ldpopt_survey.reports.analyses import difference_table, number_table, regression_table, share_table, two_way_rows
from ldpopt_survey.reports.page import ResultTable
from ldpopt_survey.reports.promises import consent_paragraph, words_of
from ldpopt_survey.reports.sheets import _ratio_text
from ldpopt_survey.reports.survey import among_those_who_answered

Q = [[0.8, 0.2], [0.2, 0.8]]
LIMITS = ("se", "lower", "upper")


def test_every_table_has_its_columns():
    """Shares, two questions, differences, numbers and regressions: a row for each number."""
    few = estimate({0: 40, 1: 60}, Q)
    assert share_table("demo", {"vote": {"": few}}).columns == ("question", "answer", "share", *LIMITS, "respondents")
    crossed = two_way_rows("demo", two_way_from_counts([[40, 10], [10, 40]], Q, Q), ("a", "b"))
    assert (crossed.columns, len(crossed.rows)) == (("a", "b", "share", *LIMITS), 4)
    change = {("vote", "b", "a"): difference(few, estimate({0: 60, 1: 40}, Q))}
    columns = ("question", "group", "against", "answer", "difference", *LIMITS, "p")
    assert difference_table("demo", change, {}).columns == columns
    numbers = number_table("demo", [("", mean(few))], [quantile(few, 0.5)])
    assert numbers.format_cells()[0] == ["mean", "0.66667", "0.08165", "0.49955", "0.82396"]
    data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    fitted = logit_regression("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]})
    assert regression_table(fitted).columns == ("category", "term", "coefficient", *LIMITS, "p")


def test_a_table_in_csv_and_markdown():
    """CSV has all digits, Markdown what people read."""
    demo = ResultTable("demo", ("answer", "share"), (("yes", 0.25),), shares=("share",))
    assert demo.in_format("csv") == b"answer,share\nyes,0.25\n"
    assert demo.in_format("md") == b"# demo\n\n| answer | share |\n|---|---:|\n| yes | 25.00 % |\n"


def test_estimates_as_data_and_among_those_who_answered():
    """Half of eight reports each way are half of the people; a third who did not answer are left out."""
    survey = Survey(make_plan(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), {"vote": Q}))
    counts = Counts(survey.plan.checksum, 8, {("vote",): np.array([4, 4])})
    assert results(survey.estimates(counts), counts)["vote"]["values"] == [0.5, 0.5]
    asked = QuestionSpec("vote", ("no", "yes", "none"), missing="none", reading=Reading(missing_answers="category"))
    channel = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    survey = Survey(make_plan(SurveySpec("demo", (asked,)), {"vote": channel}))
    counts = Counts(survey.plan.checksum, 100, {("vote",): np.array([31, 38, 31])})
    among = among_those_who_answered(survey.plan, survey.estimates(counts))["vote"].whole.values
    assert among.round(4).tolist() == [0.4286, 0.5714]


def test_consent_forms_state_the_guarantee_over_all_rounds():
    """With declared rounds the form says what the reports of all of them tell together; no number is too small."""
    spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), epsilon=1.0, rounds=4)
    said = consent_paragraph(plan_survey(spec).plan)
    assert "your reports of all 4 rounds together are at most 54.6 times (e^4) as likely as they would" in said
    assert "with your reports of all 4 rounds, at most 82.2 % of the time" in said
    assert "50 in 100 to at most 98.3 in 100" in said
    assert "If you take part twice" not in said
    odds = math.exp(4) / 9  # of an answer that was taken for 10 in 100
    assert odds / (1 + odds) <= 0.859
    assert "A chance of 10 in 100 can rise to at most 85.9 in 100" in said
    once = consent_paragraph(plan_survey(replace(spec, rounds=1)).plan)
    assert "- The survey has only this round." in once.splitlines()


def test_consent_forms_state_processing_and_protection():
    """The consent form says what happens and what is not protected; factors are rounded up."""
    plan = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), epsilon=1.0, carry=("region",))).plan
    lines = consent_paragraph(plan).splitlines()
    assert lines[2].startswith(
        "Before anyone looks at your answer, a computer replaces it with a randomly drawn report"
    )
    assert "- These are published as they are, not replaced: region." in lines
    assert any("If you take part twice, e^2 replaces e^1." in one for one in lines)
    likely = "to at most 2.7 in 100. A chance of 10 in 100 can rise to at most 23.2 in 100, and 50 in 100 to at most"
    assert any("Suppose someone thinks that there is" in one and likely in one for one in lines)
    assert [_ratio_text(Fraction(13, 5)), _ratio_text(Fraction(19, 7))] == ["2.6", "2.72"]
    promised = guarantee_in_words(local_dp([[0.75, 0.25], [0.25, 0.75]]))
    assert promised.startswith("Whatever you answer, each possible report is at most 3.001 times (e^1.0987) as likely")
    design = optimal_channel(Divergence(TOTAL_VARIATION, [0.5, 0.5], [0.25, 0.75]), LocalDP(1.0))
    first = proof_in_words(design, design.verify())[0]
    assert first.startswith("The channel keeps its limit on local dp: measured ")
    assert first.endswith(", at most 1.0 is allowed.")


def test_nothing_is_promised_that_the_program_does_not_do():
    """Deleting answers is a sentence for the organizer to fill in, in every language."""
    plan = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), epsilon=1.0)).plan
    for language, fill, deletion in (("en", "TO FILL IN", "deleted"), ("de", "AUSZUFÜLLEN", "gelöscht")):
        said = consent_paragraph(plan, words=words_of(plan, "consent", language))
        assert fill in said
        assert deletion in said.split(fill)[1]
        assert deletion not in said.split(fill)[0]
