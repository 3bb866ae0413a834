"""survey.toml: what is accepted, and that everything else is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec

FULL = """
[survey]
name = "health 1"
round = 2
respondent = "id"
duplicates = "first"
carry = ["stratum"]
[budget]
epsilon = 2
eta = 0.8
[[questions]]
name = "smoker"
column = "q7"
categories = ["no", "yes"]
pilot = [0.8, 0.2]
unknown = "no"
missing = "yes"
epsilon = 1.0
eta = 0.4
half_width = 0.02
[[questions]]
name = "children"
categories = [0, 1, 2]
"""


def test_everything_is_read() -> None:
    """Every field of the file arrives in the spec, checked."""
    spec = SurveySpec.from_toml(FULL.encode())
    assert (spec.name, spec.round, spec.respondent, spec.first_of_duplicates) == ("health 1", 2, "id", True)
    assert (spec.epsilon, spec.eta, spec.carry) == (2.0, 0.8, ("stratum",))
    first, second = spec.questions
    assert (first.column, first.categories, first.unknown, first.missing) == ("q7", ("no", "yes"), "no", "yes")
    assert (first.epsilon, first.eta, first.half_width) == (1.0, 0.4, 0.02)
    assert first.pilot is not None
    assert first.pilot.tolist() == [0.8, 0.2]
    assert (second.column, second.categories, second.pilot) == ("children", (0, 1, 2), None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "health 1"', "", "survey name"),
        ('name = "health 1"', "name = 3", "survey name"),
        ('name = "health 1"', 'name = "a"\nextra = 1', "extra"),
        ("round = 2", "round = 0", "round"),
        ("round = 2", "round = true", "round"),
        ('"first"', '"last"', "duplicates"),
        ('respondent = "id"', "", "duplicates"),
        ('respondent = "id"', 'respondent = "q7"', "respondent"),
        ('carry = ["stratum"]', 'carry = ["q7"]', "raw answers"),
        ('carry = ["stratum"]', 'carry = ["smoker"]', "carried"),
        ('carry = ["stratum"]', 'carry = "stratum"', "carry"),
        ("epsilon = 2", "epsilon = inf", "epsilon"),
        ("epsilon = 2", "delta = 2", "delta"),
        ("eta = 0.8", "eta = 1.5", "eta"),
        ('["no", "yes"]', '["no"]', "categories"),
        ('["no", "yes"]', '["no", "no"]', "categories"),
        ('["no", "yes"]', '["1", 1]', "distinct"),
        ('["no", "yes"]', '["no", ""]', "not empty"),
        ('["no", "yes"]', '["no", nan]', "categories"),
        ('["no", "yes"]', '"noyes"', "categories"),
        ("[0.8, 0.2]", "[0.8, 0.1]", "pilot"),
        ("[0.8, 0.2]", "[1.0]", "pilot"),
        ('unknown = "no"', 'unknown = "maybe"', "unknown"),
        ('missing = "yes"', "missing = 1", "missing"),
        ("half_width = 0.02", "half_width = 0", "half_width"),
        ('name = "children"', 'name = "smoker"', "distinct"),
        ("[budget]", "[budgets]", "budgets"),
        ("[survey]", "[[survey]]", "survey"),
        ("[0, 1, 2]", "[0, 1, 2", "valid TOML"),
    ],
)
def test_anything_wrong_is_named(old: str, new: str, message: str) -> None:
    """A changed file is refused with a message that names what is wrong."""
    assert old in FULL
    with pytest.raises(InvalidInput, match=message):
        SurveySpec.from_toml(FULL.replace(old, new, 1))


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@settings(max_examples=200, deadline=None)
def test_only_invalid_input_comes_out(content: bytes | str) -> None:
    """Arbitrary bytes and text are refused as `InvalidInput`."""
    with pytest.raises(InvalidInput):
        SurveySpec.from_toml(content)


def test_deep_nesting_is_refused() -> None:
    """Thousands of brackets end in a message, not in the interpreter's limit."""
    with pytest.raises(InvalidInput):
        SurveySpec.from_toml("x = " + "[" * 100_000)


def test_a_survey_needs_questions() -> None:
    """No questions, or a category policy of another type, is refused."""
    with pytest.raises(InvalidInput, match="at least one"):
        SurveySpec("s", ())
    with pytest.raises(InvalidInput, match="unknown"):
        QuestionSpec("q", (0, 1), unknown=False)
