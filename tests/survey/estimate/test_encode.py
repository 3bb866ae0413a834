import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.survey.estimate.encode import column, factor, positions


def test_positions_invert_labels():
    """Every label is found at its position, whatever its type."""
    rng = np.random.default_rng(1)
    for outputs in ((0, 1, 2), ("no", "yes", "maybe"), (2.5, "x", ("a", 1))):
        want = rng.integers(0, 3, 50)
        reports = [outputs[y] for y in want]
        assert np.array_equal(positions(reports, outputs), want)


def test_numbers_given_as_floats_match_integer_labels():
    assert positions(np.array([1.0, 0.0]), (0, 1)).tolist() == [1, 0]


def test_factor_codes_name_their_labels():
    code, names = factor(["b", "a", "b"], 3, "strata")
    assert [names[c] for c in code] == ["b", "a", "b"]
    assert factor(None, 2, "strata")[1] == [None]


def test_bad_columns_are_refused():
    with pytest.raises(InvalidInput, match="one of the outputs"):
        positions(["a", "q"], ("a", "b"))
    with pytest.raises(InvalidInput, match="one column"):
        column(np.zeros((2, 2)), "reports")
    with pytest.raises(InvalidInput, match="a label for every respondent"):
        factor([1.0, np.nan], 2, "strata")
