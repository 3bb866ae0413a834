"""What commands and pages ask people for, as the kinds declare it."""

from dataclasses import fields

import pytest

from ldpopt import InvalidInput
from ldpopt.design import Outputs, constraints, utilities
from ldpopt.design.registry import answers, choices, chosen
from ldpopt.divergences.base import spelled, spellings

VALUES = {"epsilon": 1.0, "delta": 0.01, "rho": 0.5, "renyi_order": 2.0, "renyi": 0.5, "eta": 0.3, "outputs": 2}


@pytest.mark.parametrize("kind", choices(constraints))
def test_a_constraint_is_made_of_what_it_asks_for_and_says_it_again(kind):
    """What a constraint asks for are fields of its own, and make the constraint that answers the same."""
    made = kind.made(VALUES)
    own = {field.name for field in fields(kind)}
    assert all((asked.field or asked.name) in own for asked in kind.asks)
    assert answers(made) == {asked.name: VALUES[asked.name] for asked in kind.asks}
    assert kind.made(answers(made)) == made
    assert chosen(constraints, [asked.name for asked in kind.asks]) == (kind,)


def test_names_stand_for_the_kinds_that_ask_for_most():
    """epsilon with delta is one constraint, and a name without the others of its kind is refused."""
    names = [kind.__name__ for kind in chosen(constraints, list(VALUES))]
    assert names == ["ApproximateLDP", "ConcentratedLDP", "RenyiLDP", "TotalVariation", "Outputs"]
    assert chosen(constraints, []) == ()
    for given in (["delta"], ["renyi"], ["gamma"]):
        with pytest.raises(InvalidInput, match=f"{given[0]}: expected "):
            chosen(constraints, given)


def test_a_wrong_value_is_refused_by_its_kind():
    """The kind checks what it is made of."""
    with pytest.raises(InvalidInput, match="m: expected"):
        Outputs.made({"outputs": 0})


def test_the_divergence_names_every_spelling():
    """The help of the divergence lists what `spelled` reads."""
    (kind,) = choices(utilities)
    said = next(asked.help for asked in kind.asks if asked.name == "divergence")
    assert spellings() in said
    assert "kl, " in said
    assert "hockey-stick:GAMMA" in said
    assert spelled("hockey-stick:1.5").recipe == ("hockey-stick", 1.5)
