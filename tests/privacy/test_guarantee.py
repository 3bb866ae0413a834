"""A guarantee is a number with its evidence: frozen, printable, and safe to print."""

import json
import math
import pickle
from decimal import Decimal

import pytest

from ldpopt.mechanisms import subset_selection
from ldpopt.privacy import Guarantee, Witness, local_dp, total_variation


def example_guarantee(**changes):
    fields = {
        "notion": "renyi", "value": 0.40346601, "lower": 0.40346599, "witness": Witness(("a", "b"), ("y",)),
        "exact": True, "reference": "[M, Def 3]", "parameters": {"order": 2.0},
    }  # fmt: skip
    return Guarantee(**{**fields, **changes})


def test_a_guarantee_is_its_value():
    """float(guarantee) is the value, and numbers of other kinds become floats."""
    assert float(example_guarantee()) == 0.40346601
    assert type(example_guarantee(value=1).value) is float


def test_a_printed_guarantee_is_not_below_its_value():
    """The text rounds up and says that it is a bound; a coefficient of which more is more private is rounded down."""
    text = str(example_guarantee())
    assert text == "renyi (order 2) ≤ 0.403467 ('a' against 'b' on {'y'})"
    assert Decimal("0.403467") >= Decimal(example_guarantee().value)
    assert str(example_guarantee(exact=False, witness=None)) == "renyi (order 2) ≤ 0.403467"
    assert str(example_guarantee(value=math.inf, witness=None, parameters={})) == "renyi ≤ inf"


def test_beside_its_name_a_guarantee_prints_sign_and_number_alone():
    """What stands in a table beside the name is the rest of the printed text, and does not say the name again."""
    for one in (
        example_guarantee(),
        example_guarantee(witness=None),
        example_guarantee(value=math.inf),
        example_guarantee(notion="doeblin", parameters={}),
    ):
        assert str(one) == f"{one.title} {one.limit}"
        assert one.limit[0] in "≤≥"
    assert example_guarantee().limit == "≤ 0.403467 ('a' against 'b' on {'y'})"


def test_a_witness_prints_in_one_short_line():
    """A witness shows its pair and at most five outputs."""
    assert str(Witness((0, 1))) == "0 against 1"
    assert str(Witness((0, 1), tuple(range(9)))) == "0 against 1 on {0, 1, 2, 3, 4, ...}"


def test_a_guarantee_is_frozen_and_copies_whole():
    """Fields and parameters cannot be changed; equal guarantees hash alike; a pickle is equal."""
    guarantee = example_guarantee()
    with pytest.raises(AttributeError):
        guarantee.value = 0.0
    with pytest.raises(TypeError):
        guarantee.parameters["order"] = 3.0
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee
    assert hash(example_guarantee()) == hash(guarantee)
    assert example_guarantee(value=0.5) != guarantee


def test_a_guarantee_is_json():
    """to_dict gives plain values, with infinities as text."""
    guarantee = example_guarantee(value=math.inf, parameters={"order": math.inf, "xi": 0.5})
    data = json.loads(json.dumps(guarantee.to_dict(), allow_nan=False))
    assert data == {
        "notion": "renyi", "value": "inf", "exact": True, "reference": "[M, Def 3]",
        "parameters": {"order": "inf", "xi": 0.5}, "witness": {"inputs": ["a", "b"], "outputs": ["y"]},
    }  # fmt: skip
    assert local_dp([[0.5, 0.5]]).to_dict()["witness"] is None
    of_sets = total_variation(subset_selection(3, 1.0, 2)).to_dict()  # reports are tuples, which JSON has no word for
    assert json.loads(json.dumps(of_sets)) == of_sets
