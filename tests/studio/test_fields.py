"""The fields of a page: what they may hold, and the one field that an error names."""

from __future__ import annotations

import numpy as np
import pytest

from ldpopt.values.distribution import positive_epsilon
from ldpopt_studio import fields
from ldpopt_studio.fields import FieldError, field, field_error, take


@pytest.mark.parametrize(
    ("read", "given", "value"),
    [
        (fields.number, 2, 2.0),
        (fields.positive_integer, 7.0, 7),
        (fields.text, " vote ", "vote"),
        (fields.flag, False, False),
        (fields.choice(["kl", "jeffreys"]), "kl", "kl"),
        (fields.items, [1, 2], [1, 2]),
        (fields.numbers, [0.5, 0.5], [0.5, 0.5]),
        (fields.texts, ["no ", "yes"], ("no", "yes")),
        (fields.position(3), 2, 2),
        (fields.mapping, {"a": 1}, {"a": 1}),
        (lambda value, what: fields.probabilities(value, what).tolist(), [0.5, 0.5], [0.5, 0.5]),
        (lambda value, what: fields.proportions(value, what).tolist(), [3, 7], [0.3, 0.7]),
    ],
)
def test_each_reader_returns_its_type(read, given, value):
    """Each reader returns the value, and rejects an object with the name of the field."""
    assert take({"it": given}, "it", read) == value
    with pytest.raises(FieldError, match="it: expected") as caught:
        take({"it": object()}, "it", read)
    assert caught.value.field == "it"


def test_an_absent_field_has_its_default_or_is_required():
    """An absent, null or blank field has its default, or raises an error."""
    assert take({}, "n", fields.positive_integer, None) is None
    assert take({"n": " "}, "n", fields.positive_integer, 3) == 3
    with pytest.raises(FieldError, match="n: a value is required"):
        take({"n": None}, "n", fields.positive_integer)


def test_an_error_names_the_innermost_field():
    """The error names the innermost field; the message has the last part of its name."""
    assert str(field_error("questions.0.pilot", "2 to 24 answers", 1)) == "pilot: expected 2 to 24 answers, got 1"
    expected = r"epsilon: expected a number of nats .*, got -1.0"
    with pytest.raises(FieldError, match=expected) as caught, field("outer"), field("budget"):
        positive_epsilon(-1.0)
    assert caught.value.field == "budget"


def test_labels_and_json_types():
    """Answers without labels are numbered, and a document holds only numbers that JSON allows."""
    assert fields.answer_labels(None, 2) == ("answer 1", "answer 2")
    with pytest.raises(FieldError, match="labels: expected 2 different names"):
        fields.answer_labels(("a", "a"), 2)
    shown = fields.to_json_types({"a": np.array([1.0, np.inf]), "b": (True, np.int64(2))})
    assert shown == {"a": [1.0, "inf"], "b": [True, 2]}
