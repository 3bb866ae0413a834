"""What commands and pages ask people for, as the kinds declare it."""

import math
from dataclasses import fields

import pytest

from ldpopt import InvalidInput, design
from ldpopt.design import Outputs, constraints, utilities
from ldpopt.design.registry import Kind, kinds, offered_types, parameter_values, types_with_parameters
from ldpopt.divergences.base import parse_divergence, spellings

VALUES = {"epsilon": 1.0, "delta": 0.01, "rho": 0.5, "renyi_order": 2.0, "renyi": 0.5, "eta": 0.3, "outputs": 2}


@pytest.mark.parametrize("kind", offered_types(constraints))
def test_a_constraint_is_made_of_what_it_asks_for_and_says_it_again(kind):
    """What a constraint asks for are fields of its own, and make the constraint that answers the same."""
    values = dict.fromkeys((asked.name for asked in kind.asks), 1) | VALUES
    made = kind.made(values)
    own = {field.name for field in fields(kind)}
    assert all((asked.field or asked.name) in own for asked in kind.asks)
    assert parameter_values(made) == {asked.name: values[asked.name] for asked in kind.asks}
    assert kind.made(parameter_values(made)) == made
    assert types_with_parameters(constraints, [asked.name for asked in kind.asks]) == (kind,)


def test_names_stand_for_the_kinds_that_ask_for_most():
    """epsilon with delta is one constraint, and a name without the others of its kind is refused."""
    names = [kind.__name__ for kind in types_with_parameters(constraints, list(VALUES))]
    assert names == ["ApproximateLDP", "ConcentratedLDP", "RenyiLDP", "TotalVariation", "Outputs"]
    assert types_with_parameters(constraints, []) == ()
    for given in (["delta"], ["renyi"], ["gamma"]):
        with pytest.raises(InvalidInput, match=f"{given[0]}: expected "):
            types_with_parameters(constraints, given)


def test_a_wrong_value_is_refused_by_its_kind():
    """The kind checks what it is made of."""
    with pytest.raises(InvalidInput, match="m: expected"):
        Outputs.made({"outputs": 0})


def test_two_kinds_of_one_name_are_refused():
    """A file names a kind by its name alone: a second kind of that name would take its place unseen."""
    with pytest.raises(TypeError, match=r"Outputs: expected a name of its own, got that of ldpopt.design.constraints"):
        type("Outputs", (Kind,), {"__module__": "ldpopt.design.utilities.another"})
    assert kinds(constraints)["Outputs"] is Outputs
    assert type("Outputs", (Kind,), {"__module__": "mine"}) is not Outputs


@pytest.mark.parametrize(
    ("method", "field", "wrong"),
    [
        (design.LocalSearch, "starts", 0), (design.LocalSearch, "outputs", 1.5), (design.LocalSearch, "rng", "seed"),
        (design.BranchAndBound, "nodes", 0), (design.BranchAndBound, "starts", True),
        (design.BranchAndBound, "rng", -1), (design.SampledColumns, "columns", 0),
        (design.SampledColumns, "rng", 0.5), (design.SmallSets, "sets", 0.0), (design.SmallSets, "sets", math.inf),
        (design.SmallSets, "sets", math.nan), (design.MergedPartition, "bins", 1), (design.LevelShapes, "bins", 1),
        (design.LevelShapes, "points", 2), (design.Exchange, "rounds", 0), (design.Exchange, "accuracy", 0.0),
        (design.Exchange, "accuracy", math.nan), (design.TangentExchange, "rounds", True),
        (design.TangentExchange, "accuracy", -1.0),
    ],
)  # fmt: skip
def test_a_method_checks_what_it_is_given(method, field, wrong):
    """Settings are refused where they are given, by the name of the field; None stands for the usual one."""
    with pytest.raises(InvalidInput, match=f"^{field}: expected "):
        method(**{field: wrong})
    assert method(**{field: getattr(method(), field)}) == method()


def test_the_divergence_names_every_spelling():
    """The help of the divergence lists what `parse_divergence` reads."""
    (kind,) = offered_types(utilities)
    said = next(asked.help for asked in kind.asks if asked.name == "divergence")
    assert spellings() in said
    assert "kl, " in said
    assert "hockey-stick:GAMMA" in said
    assert parse_divergence("hockey-stick:1.5").recipe == ("hockey-stick", 1.5)
