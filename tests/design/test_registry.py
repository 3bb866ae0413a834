"""What commands and pages ask people for, as the kinds declare it."""

import ast
import math
import subprocess
import sys
from dataclasses import fields

import pytest

from ldpopt import InvalidInput, design
from ldpopt.design import (
    ApproximateLDP,
    Denominator,
    Divergence,
    ExpectedLoss,
    FisherInformation,
    LocalDP,
    Method,
    MutualInformation,
    Outputs,
    RenyiLDP,
    TotalVariation,
    constraints,
    utilities,
)
from ldpopt.design.candidate import declaration_of, declared_methods, refusal
from ldpopt.design.problems.problem import Problem
from ldpopt.design.registry import (
    METHOD_MODULES,
    Kind,
    class_headers,
    offered_types,
    parameter_values,
    registered_types,
    types_with_parameters,
)
from ldpopt.divergences import KL
from ldpopt.divergences.base import parse_divergence, spellings

VALUES = {"epsilon": 1.0, "delta": 0.01, "rho": 0.5, "renyi_order": 2.0, "renyi": 0.5, "eta": 0.3, "outputs": 2}


@pytest.mark.parametrize("kind", offered_types(constraints))
def test_a_constraint_is_rebuilt_from_its_parameters(kind):
    """What a constraint asks for are fields of its own, and make the constraint that answers the same."""
    values = dict.fromkeys((asked.name for asked in kind.asks), 1) | VALUES
    made = kind.from_values(values)
    own = {field.name for field in fields(kind)}
    assert all((asked.field or asked.name) in own for asked in kind.asks)
    assert parameter_values(made) == {asked.name: values[asked.name] for asked in kind.asks}
    assert kind.from_values(parameter_values(made)) == made
    assert types_with_parameters(constraints, [asked.name for asked in kind.asks]) == (kind,)


def test_parameter_names_select_the_kind_with_most_parameters():
    """epsilon with delta is one constraint, and a name without the others of its kind is refused."""
    names = [kind.__name__ for kind in types_with_parameters(constraints, list(VALUES))]
    assert names == ["ApproximateLDP", "ConcentratedLDP", "RenyiLDP", "TotalVariation", "Outputs"]
    assert types_with_parameters(constraints, []) == ()
    messages = {
        "delta": "delta requires epsilon as well",
        "renyi": "renyi requires renyi_order as well",
        "gamma": "unknown parameter 'gamma'; known are delta, epsilon",
    }
    for name, message in messages.items():
        with pytest.raises(InvalidInput, match=f"^{message}"):
            types_with_parameters(constraints, [name])


def test_a_wrong_value_is_refused_by_its_kind():
    """The kind checks what it is made of."""
    with pytest.raises(InvalidInput, match="m: expected"):
        Outputs.from_values({"outputs": 0})


def test_two_kinds_of_one_name_are_refused():
    """A file names a kind by its name alone: a second kind of that name would take its place unseen."""
    with pytest.raises(TypeError, match=r"Outputs: expected a name of its own, got that of ldpopt.design.constraints"):
        type("Outputs", (Kind,), {"__module__": "ldpopt.design.utilities.another"})
    assert registered_types(constraints)["Outputs"] is Outputs
    assert type("Outputs", (Kind,), {"__module__": "mine"}) is not Outputs


@pytest.mark.parametrize(
    ("method", "field", "wrong"),
    [
        (design.LocalSearch, "starts", 0), (design.LocalSearch, "outputs", 1.5), (design.LocalSearch, "rng", "seed"),
        (design.BranchAndBound, "nodes", 0), (design.BranchAndBound, "starts", True),
        (design.BranchAndBound, "rng", -1), (design.SampledColumns, "columns", 0),
        (design.SampledColumns, "rng", 0.5), (design.SmallSets, "sets", 0.0), (design.SmallSets, "sets", math.inf),
        (design.SmallSets, "sets", math.nan), (design.MergedPartition, "bins", 1), (design.MergedExchange, "bins", 1),
        (design.MergedExchange, "points", 2), (design.Exchange, "rounds", 0), (design.Exchange, "accuracy", 0.0),
        (design.Exchange, "accuracy", math.nan), (design.TangentExchange, "rounds", True),
        (design.TangentExchange, "accuracy", -1.0),
    ],
)  # fmt: skip
def test_a_method_checks_its_settings(method, field, wrong):
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


def test_methods_are_declared_as_their_classes_say():
    """The heads that are read from the sources say what the imported classes do, in the order of `METHODS`."""
    tried = [type(method) for method in design.METHODS if method.preference < Method.preference]
    assert [known.name for known in declared_methods(METHOD_MODULES)] == [kind.__name__ for kind in tried]
    for known, kind in zip(declared_methods(METHOD_MODULES), tried, strict=True):
        assert known.module == kind.__module__
        assert type(known.method) is kind
        assert {name: getattr(known, name) for name in declaration_of(kind)} == declaration_of(kind)
    assert declaration_of(design.LocalDP) == {}


def test_methods_without_sources_are_declared_by_their_classes(monkeypatch):
    """Where only compiled modules are installed, they are imported instead."""
    monkeypatch.setattr("importlib.machinery.SourceFileLoader.get_source", lambda *_: None)
    class_headers.cache_clear()
    try:
        assert declared_methods.__wrapped__(METHOD_MODULES) == declared_methods(METHOD_MODULES)
    finally:
        class_headers.cache_clear()


CAPS = {
    "pure": (LocalDP(1.0), TotalVariation(0.2)),
    "free": (TotalVariation(0.2),),
    "approximate": (ApproximateLDP(1.0, 0.1),),
    "outputs": (LocalDP(1.0), Outputs(2)),
    "renyi": (RenyiLDP(2.0, 0.5),),
    "divided": (LocalDP(1.0), Denominator(20)),
}
QUESTIONS = {
    "pair": Divergence(KL, [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
    "information": MutualInformation([0.2, 0.3, 0.5]),
    "estimate": FisherInformation([0.2, 0.3, 0.5]),
    "loss": ExpectedLoss([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]]),
}  # fmt: skip


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_method_of_another_class_refuses(caps, question):
    """A problem that a method's declaration leaves out is refused by the method too: nothing is lost by not asking."""
    problem = Problem.build(QUESTIONS[question], CAPS[caps])
    for known in declared_methods(METHOD_MODULES):
        if not known.may_apply(problem):
            assert refusal(known.method, problem)


MODULES = """
import sys
from ldpopt import Divergence, LocalDP, MutualInformation, optimal_channel
from ldpopt.divergences import KL
for utility in (Divergence(KL, [0.8, 0.2], [0.4, 0.6]), MutualInformation([0.4, 0.6])):
    optimal_channel(utility, LocalDP(1.0))
    print(sorted(name[14:] for name in sys.modules if name.startswith("ldpopt.design.") and ".method" in name))
"""


@pytest.mark.full
def test_a_design_imports_the_methods_of_its_class():
    """Two hypotheses need the partition, mutual information the listed patterns, and neither any other search."""
    done = subprocess.run([sys.executable, "-c", MODULES], capture_output=True, text=True, check=True)
    first, second = map(ast.literal_eval, done.stdout.splitlines())
    assert first == ["two_hypotheses.method"]
    assert second == ["patterns.method", *first]
