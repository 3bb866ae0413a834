import json
import math
from dataclasses import replace

import numpy as np
import pytest

from ldpopt.design import Design
from ldpopt_studio import ask
from ldpopt_studio.fields import FieldError, to_json_types
from ldpopt_survey.estimate.intervals import two_sided

Z = two_sided(0.95)
PILOT = [0.45, 0.3, 0.15, 0.1]


def state(**more):
    return {"questions": [{"pilot": PILOT, "half_width": 0.05}], "solve": "respondents", "epsilon": 1.0, **more}


def variances(matrix, p):
    """Compute the variances of the efficient estimate from one report, the diagonal of J^-1 - p p^T."""
    information = sum(np.outer(q, q) / (q @ p) for q in matrix.T if q @ p > 0)
    return np.diag(np.linalg.inv(information)) - p**2


def test_a_yes_no_question_needs_the_people_of_warner_s_design():
    """n = z^2 (p(1-p) + e^eps/(e^eps - 1)^2) / w^2, the variance of Warner's design [Warner], within one person."""
    for p, epsilon, width in [(0.1, 1.0, 0.05), (0.4, 0.3, 0.02), (0.5, 3.0, 0.1)]:
        state = {"questions": [{"pilot": [p, 1 - p], "half_width": width}], "epsilon": epsilon}
        e = math.exp(epsilon)
        needed = (Z / width) ** 2 * (p * (1 - p) + e / (e - 1) ** 2)
        assert math.ceil(needed) <= ask.view(state)["respondents"] <= math.ceil(needed * (1 + 1e-6)) + 1


@pytest.mark.parametrize("aim", ["together", "widest"])
def test_each_quantity_follows_from_the_other_two(aim):
    """People from epsilon and half-width, epsilon from people, and the half-width from both agree."""
    first = ask.view(state(aim=aim))
    n = first["respondents"]
    second = ask.view(state(aim=aim, solve="epsilon", respondents=n))
    assert second["epsilon"] == pytest.approx(1.0, rel=3e-4)
    assert second["questions"][0]["half_width"] <= 0.05
    third = ask.view(state(aim=aim, solve="half_width", respondents=n))
    assert 0.05 * (1 - 1e-3) < third["questions"][0]["half_width"] <= 0.05


@pytest.mark.parametrize(("aim", "measure"), [("together", np.sum), ("widest", np.max)])
def test_no_protocol_has_a_better_criterion_than_the_channel(aim, measure):
    """The channel's variances, by definition, give its half-width; randomized response has larger ones."""
    content = ask.view(state(aim=aim))
    p, matrix = np.array(PILOT), np.asarray(content["channel"]["matrix"])
    best = variances(matrix, p)
    response = (np.full((4, 4), 1.0) + (math.e - 1) * np.eye(4)) / (3 + math.e)
    assert measure(best) < measure(variances(response, p))
    assert content["questions"][0]["half_width"] == pytest.approx(
        Z * math.sqrt(best.max() / content["respondents"]), rel=1e-9
    )
    row = next(row for row in content["protocols"] if row["name"] == "randomized response")
    needed = (Z / 0.05) ** 2 * variances(response, p).max()
    assert abs(row["needed"] - needed) <= 1.001
    assert row["half_width"] == pytest.approx(
        Z * math.sqrt(variances(response, p).max() / content["respondents"]), rel=1e-6
    )
    assert content["protocols"][0]["needed"] <= row["needed"]
    names = [row["name"] for row in content["protocols"]]
    assert sum(row["optimal"] for row in content["protocols"]) == 1
    assert {"randomized response", "unary encoding", "optimized unary encoding"} <= set(names)
    assert any(name.startswith("subset selection") for name in names)


def test_the_channel_satisfies_epsilon_and_eta():
    """No ratio of two rows exceeds e^eps, and no two rows differ by more than eta, by brute force over pairs."""
    content = ask.view(state(eta=0.2))
    matrix = np.asarray(content["channel"]["matrix"])
    for a in matrix:
        for b in matrix:
            assert (a <= math.exp(1.0) * b * (1 + 1e-12)).all()
            assert np.abs(a - b).sum() / 2 <= 0.2 + 1e-12
    assert all(row["eta"] <= 0.2 for row in content["protocols"])


def test_the_badge_reports_a_failed_verification(monkeypatch):
    """If verification of the design fails, the badge says so, with the reason."""
    ask._design_cached.cache_clear()
    assert ask.view(state())["questions"][0]["proof"]["certified"]
    honest = Design.verify
    monkeypatch.setattr(Design, "verify", lambda self: replace(honest(self), failures=("a planted failure",)))
    ask._design_cached.cache_clear()
    badge = ask.view(state())["questions"][0]["proof"]
    ask._design_cached.cache_clear()
    assert not badge["verified"]
    assert not badge["certified"]
    assert badge["failures"] == ["a planted failure"]


@pytest.mark.full
def test_simulated_surveys_repeat_by_seed_and_cover_at_their_level():
    """Equal seeds give equal surveys; of 1000 intervals about 95 in 100 cover the true proportion."""
    covering, estimates = 0, set()
    for seed in range(1, 26):
        survey = ask.view(state(seed=seed, category=2))["survey"]
        assert survey["seed"] == seed
        assert len(survey["repeats"]) == 40
        for item in survey["repeats"]:
            assert item["covers"] == (item["low"] <= PILOT[1] <= item["high"])
        covering += survey["covered"]
        estimates.add(survey["answers"][0]["estimate"])
    assert len(estimates) == 25
    assert 0.93 <= covering / 1000 <= 0.97
    assert ask.view(state(seed=3))["survey"] == ask.view(state(seed=3))["survey"]


def test_the_best_split_matches_a_scan():
    """No split between two yes-or-no questions needs fewer people by more than the quick curves' 1 %."""
    questions = [{"pilot": [0.2, 0.8], "half_width": 0.03}, {"pilot": [0.5, 0.5], "half_width": 0.06}]
    result = ask.best_split({"questions": questions, "epsilon": 2.0}, lambda share: None)

    def needed(p, width, epsilon):
        return (Z / width) ** 2 * (p * (1 - p) + math.exp(epsilon) / math.expm1(epsilon) ** 2)

    scan = min(max(needed(0.2, 0.03, e), needed(0.5, 0.06, 2 - e)) for e in np.linspace(0.05, 1.95, 400))
    content = ask.view({"questions": questions, "epsilon": 2.0, "split": result["split"]})
    assert content["respondents"] <= 1.012 * scan
    assert content["epsilon"] == pytest.approx(2.0)
    even = ask.view({"questions": questions, "epsilon": 2.0})
    assert content["respondents"] < even["respondents"]


def test_epsilon_is_the_sum_of_the_questions_epsilons():
    """With people given, each question takes the smallest epsilon for its half-width, and reaches it."""
    questions = [{"pilot": [0.2, 0.8], "half_width": 0.03}, {"pilot": PILOT, "half_width": 0.06}]
    content = ask.view({"questions": questions, "solve": "epsilon", "respondents": 4000, "at": 1})
    assert content["epsilon"] == pytest.approx(sum(item["epsilon"] for item in content["questions"]))
    for item in content["questions"]:
        assert item["half_width"] <= item["wanted"]
        assert item["needed"] <= 4000
    assert content["channel"]["inputs"] == ["answer 1", "answer 2", "answer 3", "answer 4"]


def test_a_slow_survey_is_a_job_with_the_same_content():
    """A slow view returns only a flag; the job reports its progress and returns the view's content."""
    many = {"questions": [{"pilot": [1] * 16, "half_width": 0.05}], "epsilon": 1.0}
    assert ask.view(many) == {"slow": True}
    progress = []
    content = ask.survey_view(state(), progress.append)
    assert to_json_types(content) == to_json_types(ask.view(state()))
    assert progress[0] == 0.0
    assert progress[-1] <= 1
    assert progress == sorted(progress)


def test_the_document_is_plain_json():
    """The document contains only finite numbers, text, lists and objects."""
    json.dumps(to_json_types(ask.view(state())), allow_nan=False)


@pytest.mark.parametrize(
    ("given", "name", "words"),
    [
        ({}, "questions", "a value is required"),
        ({"questions": []}, "questions", "1 to 8 questions"),
        ({"questions": ["vote"]}, "questions", "an object"),
        ({"questions": [{"pilot": [0.5, -0.5]}]}, "questions.0.pilot", "non-negative"),
        ({"questions": [{"pilot": [0.5, "x"]}]}, "questions.0.pilot", "number"),
        ({"questions": [{"pilot": [1]}]}, "questions.0.pilot", "2 to 24 answers"),
        (
            {"questions": [{"pilot": [1, 1]}, {"pilot": [1, 1], "labels": ["a", "a"]}]},
            "questions.1.labels",
            "2 different",
        ),
        (
            {"questions": [{"pilot": [1, 1], "half_width": 0}], "epsilon": 1},
            "questions.0.half_width",
            "between 0 and 1",
        ),
        ({"questions": [{"pilot": [1, 1]}]}, "epsilon", "a value is required"),
        ({"questions": [{"pilot": [1, 1]}], "epsilon": -1}, "epsilon", "nats"),
        ({"questions": [{"pilot": [1, 1]}], "epsilon": 100}, "epsilon", "0.01 to 16"),
        ({"questions": [{"pilot": [1, 1]}] * 2, "epsilon": 1, "split": [1, 0]}, "split", "positive shares"),
        ({"questions": [{"pilot": [1, 1]}] * 2, "epsilon": 1, "split": [1, 1e-9]}, "split", "each question"),
        ({"questions": [{"pilot": [1, 1]}], "epsilon": 1, "eta": 0}, "eta", "above 0"),
        ({"questions": [{"pilot": [1, 1]}], "epsilon": 1, "eta": 1e-6}, "eta", "at least"),
        ({"questions": [{"pilot": [1, 1]}], "epsilon": 1, "level": 1}, "level", "between 0 and 1"),
        ({"questions": [{"pilot": [1, 1]}], "epsilon": 1, "aim": "best"}, "aim", "one of"),
        ({"questions": [{"pilot": [1, 1]}], "solve": "epsilon", "respondents": 2.5}, "respondents", "whole number"),
        ({"questions": [{"pilot": [1, 1]}], "solve": "epsilon", "respondents": 10}, "respondents", "more respondents"),
        (
            {"questions": [{"pilot": [1, 1]}], "solve": "half_width", "epsilon": 1, "respondents": 2e9},
            "respondents",
            "at most",
        ),
        ({"questions": [{"pilot": [1, 1]}], "epsilon": 1, "at": 1}, "at", "a position"),
        ({"questions": [{"pilot": [1, 1]}], "epsilon": 1, "seed": -1}, "seed", "whole number"),
    ],
)
def test_invalid_input_names_its_field(given, name, words):
    """Each error names the field that is wrong, with the package's message."""
    with pytest.raises(FieldError, match=words) as caught:
        ask.view(given)
    assert caught.value.field == name


@pytest.mark.parametrize("pilot", [[1, 0], [1, 0, 0, 0, 0, 0, 0], [1, 1e-300], [1e300, 1e-300, 1]])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 16.0])
def test_a_pilot_with_a_certain_answer_has_a_survey_or_an_error_of_its_field(pilot, epsilon):
    """If one answer has all the mass, the result is a design or an error of the pilot."""
    try:
        content = ask.view(
            {"questions": [{"pilot": pilot}], "epsilon": epsilon, "solve": "half_width", "respondents": 2}
        )
    except FieldError as error:
        assert error.field == "questions.0.pilot"
        return
    json.dumps(to_json_types(content), allow_nan=False)
    assert content["questions"][0]["half_width"] > 0
