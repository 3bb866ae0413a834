"""Several questions as a questionnaire: the page's numbers are those of the planner, and its file plans the same."""

from itertools import pairwise

import pytest

from ldpopt_studio import ask, questionnaire
from ldpopt_studio.fields import FieldError, to_json_types
from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.estimate.intervals import two_sided


def state(count=5, **more):
    question = {"name": "Ever?", "labels": ["yes", "no"], "pilot": [0.5, 0.5], "half_width": 0.05}
    return {"questions": [question] * count, "epsilon": 1.0, **more}


def planned(**more):
    return to_json_types(questionnaire.plan_view(state(**more), lambda share: None))


WAYS = [(5, 1.0, "one question each"), (5, 3.0, "booklets"), (2, 3.0, "booklets"), (2, 0.2, "one question each")]


@pytest.mark.parametrize(("count", "epsilon", "chosen"), WAYS)
def test_the_people_are_those_of_the_planner(count, epsilon, chosen):
    """Each number is that of `plan_survey`, the fewest first; the booklets contain each question."""
    content = planned(count=count, epsilon=epsilon)
    spec = SurveySpec("s", tuple(QuestionSpec(str(at), ("yes", "no")) for at in range(count)), epsilon=epsilon)
    expected = plan_survey(spec)
    needed = {one["name"]: one["needed"] for one in content["ways"]}
    assert content["respondents"] == expected.respondents == min(needed.values())
    assert needed["one question each"] == expected.one_question
    assert needed["a split of ε"] == expected.split
    assert content["least"] == expected.least
    assert [one["name"] for one in content["ways"] if one["optimal"]] == [chosen]
    assert list(needed.values()) == sorted(needed.values())
    assert len({name for one in content["booklets"] for name in one["questions"]}) == count
    assert plan_survey(SurveySpec.from_toml(content["file"])).respondents == expected.respondents


def test_a_split_of_epsilon_matches_the_view_with_equal_parts():
    """For five equal questions the view's equal parts need the same people as a split of epsilon."""
    content = planned()
    needed = {one["name"]: one["needed"] for one in content["ways"]}
    assert ask.view(state())["respondents"] == pytest.approx(needed["a split of ε"], abs=1)


@pytest.mark.full
def test_the_plan_follows_the_confidence_level_and_the_cap():
    """Higher confidence needs more people, by the square of the normal quantile; a cap on eta enters the plan."""
    ratio = (two_sided(0.99) / two_sided(0.95)) ** 2
    assert planned(level=0.99)["respondents"] == pytest.approx(ratio * planned()["respondents"], rel=1e-3)
    capped = planned(eta=0.2)
    assert capped["respondents"] > planned()["respondents"]
    assert SurveySpec.from_toml(capped["file"]).eta == 0.2
    with pytest.raises(FieldError, match="half_width"):
        planned(level=0.5, questions=[{"pilot": [0.5, 0.5], "half_width": 0.9}] * 2)


@pytest.mark.full
def test_the_plan_stays_at_the_lower_bound_as_the_questionnaire_grows():
    """At epsilon 1 the plan needs the fewest people at each length, and a split of epsilon ever more."""
    progress = []
    counts = questionnaire.growth(state(count=1, at=0), progress.append)["counts"]
    assert [one["questions"] for one in counts] == list(questionnaire.QUESTION_COUNTS)
    assert progress[-1] == 1
    assert len({one["planned"] for one in counts}) == len(counts)
    for before, after in pairwise(counts):
        assert after["planned"] <= after["least"] * 1.001
        assert after["split"] / after["least"] > before["split"] / before["least"]
    assert counts[-1]["planned"] == 53_966
    assert counts[-1]["split"] == 1_383_182
