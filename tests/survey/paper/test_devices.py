"""Devices: their tables have as many cells as outcomes, and every cell is its own outcome."""

import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey.paper.design import DEVICES, device_named


@pytest.mark.parametrize(
    ("name", "outcomes"), list(zip(DEVICES, (6, 36, 10, 100, 52, 60, 32), strict=True))
)  # fmt: skip
def test_a_device_has_the_outcomes_of_its_kind(name, outcomes):
    device = device_named(name)
    cells = [(row, column) for row in device.rows for column in device.columns]
    assert device.denominator == len(cells) == len(set(cells)) == outcomes
    assert device.draw
    assert all(sentence.endswith(".") for sentence in (*device.draw, device.find))


def test_coins_have_every_series_of_tosses_once():
    device = device_named("coins", 6)
    series = {row + column for row in device.rows for column in device.columns}
    assert len(series) == device.denominator == 64
    assert all(len(one) == 6 and set(one) <= {"H", "T"} for one in series)


@pytest.mark.parametrize(("name", "tosses"), [("three-dice", 5), ("coins", 1), ("coins", 9), ("coins", 2.5)])
def test_others_are_refused(name, tosses):
    with pytest.raises(InvalidInput):
        device_named(name, tosses)
