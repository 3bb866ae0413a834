"""Channels in a pipeline of scikit-learn: the whole row keeps its epsilon, in frames of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ldpopt import InvalidInput
from ldpopt.channel import as_channel
from ldpopt.privacy import local_dp
from ldpopt_survey.collect.randomness import Simulated
from ldpopt_survey.transformer import PrivatizingTransformer

RNG = np.random.default_rng(0)
ANSWERS = pd.DataFrame(
    {
        "income": pd.Categorical(RNG.choice(["low", "middle", "high"], 4000), ["low", "middle", "high"]),
        "children": RNG.integers(0, 4, 4000),
    }
)


@pytest.fixture(scope="module")
def fitted():
    """Both columns at epsilon 2, with simulated words."""
    return PrivatizingTransformer(2.0, randomness=Simulated(1)).fit(ANSWERS)


def test_a_row_s_reports_together_keep_epsilon(fitted) -> None:
    """The composition of the columns' channels, measured apart from the plan, is within epsilon."""
    channels = [as_channel(question.channel) for question in fitted.plan_.questions]
    assert sum(float(local_dp(channel)) for channel in channels) <= 2.0
    assert fitted.plan_.question("income").categories == ("low", "middle", "high")


def test_reports_have_the_law_of_the_channel(fitted) -> None:
    """The reports of one answer are those of its row, to five standard deviations."""
    reports = fitted.transform(ANSWERS)
    question = fitted.plan_.question("children")
    row = as_channel(question.channel).matrix[2]
    drawn = reports["children"][ANSWERS["children"] == 2].value_counts()
    n = int(drawn.sum())
    observed = np.array([drawn.get(label, 0) for label in question.reports])
    assert (np.abs(observed - n * row) <= 5 * np.sqrt(n * row * (1 - row))).all()


def test_frames_come_back_as_they_came(fitted) -> None:
    """pandas with its index, Polars, Arrow, and arrays."""
    head = ANSWERS.set_index(np.arange(4000) * 2)
    assert fitted.transform(head).index.equals(head.index)
    assert isinstance(fitted.transform(pl.from_pandas(ANSWERS)), pl.DataFrame)
    assert isinstance(fitted.transform(pa.table(ANSWERS)), pa.Table)
    array = PrivatizingTransformer(1.0).fit_transform([["x", 1], ["y", 2]])
    assert isinstance(array, np.ndarray)
    assert array.shape == (2, 2)


def test_it_joins_a_pipeline(fitted) -> None:
    """It is cloned, followed by an encoder, and names its columns."""
    pipeline = make_pipeline(clone(fitted), OneHotEncoder()).fit(ANSWERS)
    assert pipeline.transform(ANSWERS).shape == (4000, 7)
    assert list(pipeline.get_feature_names_out())[:3] == ["income_0", "income_1", "income_2"]


def test_booklets_ask_each_row_one_part() -> None:
    """With booklets, a row has a report of one column, at all of epsilon, and the column that says which."""
    privatizer = PrivatizingTransformer(1.0, design="booklets", randomness=Simulated(2))
    reports = privatizer.fit_transform(ANSWERS)
    assert list(reports.columns) == list(privatizer.get_feature_names_out()) == ["booklet", "income", "children"]
    assert (reports[["income", "children"]].notna().sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: PrivatizingTransformer(-1.0).fit(ANSWERS), "epsilon"),
        (lambda: PrivatizingTransformer().fit([1, 2]), "an array of shape"),
        (lambda: PrivatizingTransformer().transform(ANSWERS), "before fit"),
        (lambda: PrivatizingTransformer(categories={"age": [1, 2]}).fit(ANSWERS), "categories: expected columns among"),
        (lambda: PrivatizingTransformer(categories="all").fit(ANSWERS), "'observed'"),
    ],
)
def test_wrong_input_is_refused_in_words(wrong, why) -> None:
    """Each mistake names what was expected."""
    with pytest.raises(InvalidInput, match=why):
        wrong()


def test_no_answer_is_told_in_an_error(fitted) -> None:
    """Columns and answers that were not fitted are refused, without a value."""
    with pytest.raises(InvalidInput, match="the columns that were fitted, income, children, got 1 columns"):
        fitted.transform(ANSWERS[["income"]])
    with pytest.raises(InvalidInput) as refused:
        fitted.transform(ANSWERS.assign(children=987))
    assert "987" not in str(refused.value)
