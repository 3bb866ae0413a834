"""A type of question is one class: its keys in the file, the categories that they mean, the channel for its target."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ldpopt.design import AOptimal, Design, FisherInformation, LocalDP, optimal_channel
from ldpopt.errors import InvalidInput
from ldpopt.values.deadline import Deadline
from ldpopt.values.labels import Label
from ldpopt_survey import QuestionSpec, Simulated, Survey, estimate_contrasts, plan_survey, privatize_frame
from ldpopt_survey import plan as plan_room
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.spec import SurveySpec, question_types
from ldpopt_survey.records import key, listed, text

TOML = """
[survey]
name = "payments"
[budget]
epsilon = 3
[[questions]]
name = "paid"
type = "set of"
options = ["cash", "card"]
"""


@pytest.fixture
def set_of() -> Iterator[type[QuestionSpec]]:
    """The type "set of": several options may be chosen, and the share of each is estimated."""

    @dataclass(frozen=True, eq=False)
    class SetOf(QuestionSpec, type="set of"):
        categories: tuple[Label, ...] = key(default=())
        options: tuple[str, ...] = key(listed(text, 2), default=())

        def __post_init__(self) -> None:
            sets = [" + ".join(o for o, taken in zip(self.options, row, strict=True) if taken) for row in self.members]
            object.__setattr__(self, "categories", tuple(one or "none" for one in sets))
            super().__post_init__()

        @property
        def members(self) -> np.ndarray:
            return np.array(list(product((0, 1), repeat=len(self.options))))

        def design(self, epsilon: float, eta: float | None, deadline: Deadline, certify: bool = True) -> Design:
            wanted = FisherInformation(self.shares, AOptimal(self.members @ self.members.T), inputs=self.categories)
            return optimal_channel(wanted, LocalDP(epsilon), certify=certify, **deadline.passed)

    yield SetOf
    del QuestionSpec.types["set of"]


def test_one_class_defines_a_type_from_file_to_estimate(set_of: type[QuestionSpec]) -> None:
    """One class is read, planned, written, privatized and estimated; no other file knows of it."""
    spec = SurveySpec.from_toml(TOML)
    question = spec.questions[0]
    assert isinstance(question, set_of)
    assert question.categories == ("none", "card", "cash", "cash + card")
    plan = Plan.from_json(plan_survey(spec).plan.to_json())
    rng = np.random.default_rng(1)
    answers = rng.choice(question.categories, 20_000, p=[0.1, 0.2, 0.3, 0.4])
    reports, _ = privatize_frame(plan, pa.table({"paid": answers}), Simulated(rng))
    counts = Survey(plan).estimate("paid", reports).table
    made = estimate_contrasts(counts, plan.questions[0].report_channel, question.members.T, question.options)
    assert np.abs(made.values - [0.7, 0.6]).max() < 5 * made.standard_errors.max() < 0.1


RATING = """
from dataclasses import dataclass
from ldpopt_survey.records import key, whole
from ldpopt_survey.plan.spec import QuestionSpec

@dataclass(frozen=True, eq=False)
class Rating(QuestionSpec, type="rating"):
    categories: tuple[int, ...] = key(default=())
    highest: int = key(whole, default=5)

    def __post_init__(self):
        object.__setattr__(self, "categories", tuple(range(1, self.highest + 1)))
        super().__post_init__()
"""


def test_a_file_in_the_folder_is_a_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new type is one file: whoever imports the surveys can write it in survey.toml."""
    (tmp_path / "rating_of_a_test.py").write_text(RATING)
    monkeypatch.setattr(plan_room, "__path__", [*plan_room.__path__, str(tmp_path)])
    try:
        assert set(question_types(plan_room)) == {"QuestionSpec", "NumberSpec", "AnyOfSpec", "Rating"}
        asked = TOML.replace("set of", "rating").replace('options = ["cash", "card"]', "highest = 3")
        assert SurveySpec.from_toml(asked).questions[0].categories == (1, 2, 3)
    finally:
        QuestionSpec.types.pop("rating", None)
        sys.modules.pop("ldpopt_survey.plan.rating_of_a_test", None)


def test_other_types_are_refused(set_of: type[QuestionSpec]) -> None:
    """A type that nobody defined, and keys of another type, are named."""
    with pytest.raises(InvalidInput, match=r'questions, entry 1: type: expected "choice" or .* or "set of"'):
        SurveySpec.from_toml(TOML.replace("set of", "each of"))
    with pytest.raises(InvalidInput, match="options"):
        SurveySpec.from_toml(TOML.replace('type = "set of"', 'categories = ["a", "b"]'))
