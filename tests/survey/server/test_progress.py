"""How near a survey is to the widths wanted, and when it may be stopped."""

from __future__ import annotations

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import Counts, QuestionSpec, Survey, SurveySpec, plan_survey
from ldpopt_survey.server.progress import in_words, page, progress_of


def test_it_may_be_stopped_when_every_sequence_is_narrow_enough():
    """The half-width is that of the widest sequence; the one wanted is the plan's. Nobody asked: half of everything."""
    asked = (QuestionSpec("a", ("no", "yes"), half_width=0.08), QuestionSpec("b", ("no", "yes")))
    survey = Survey(plan_survey(SurveySpec("s", asked, epsilon=1.0)).plan)
    said = []
    for n in (200, 20000):
        counts = Counts(survey.plan.checksum, 2 * n, {(name,): np.array([n // 2, n // 2]) for name in "ab"})
        found = survey.estimates(counts, anytime=True)
        first, second = progress_of(survey.plan, found)
        assert (first.wanted, second.wanted, first.reports) == (0.08, 0.05, n)
        assert first.half_width == pytest.approx(found["a"].intervals().width.max() / 2)
        said.append(in_words([first, second]))
    assert said[0].startswith("Collect on: 2 of 2")
    assert said[1].endswith("may be stopped.")
    (nobody,) = progress_of(survey.plan, {"a": None})
    assert (nobody.reports, nobody.half_width, nobody.reached) == (0, 0.5, False)
    assert b"&lt;x&gt;" in page("<x>", [nobody])
    with pytest.raises(InvalidInput, match="an anytime one"):
        progress_of(survey.plan, survey.estimates(counts))
