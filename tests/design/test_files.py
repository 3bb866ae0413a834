"""Tests of `ldpopt.design.load`: what is written, exactly, and what is refused because it is code."""

import json
import math
from dataclasses import replace
from typing import Any, TypeVar

import design_files
import networkx as nx
import numpy as np
import pytest
from scipy import stats

from ldpopt import Divergence, InvalidInput, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import Certificate, ColumnUtility, FisherInformation, Outputs, Utility
from ldpopt.design.codec.kinds import encodable_subtypes
from ldpopt.design.codec.records import Reader
from ldpopt.design.constraints.base import Measured
from ldpopt.design.files import design_text
from ldpopt.divergences import KL, FDivergence, hockey_stick

PLAIN = optimal_channel(design_files.U, [LocalDP(1.0), TotalVariation(0.2)])


def test_the_file_of_a_plain_design_is_the_documented_one():
    """A plain design is written with the keys that other people's checkers rely on, and with its very numbers."""
    data = json.loads(design_text(PLAIN))
    assert data["utility"] == {
        "kind": "Divergence", "f": {"name": "kl"}, "p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "inputs": None,
    }  # fmt: skip
    assert data["constraints"] == [{"kind": "LocalDP", "epsilon": 1.0}, {"kind": "TotalVariation", "eta": 0.2}]
    assert data["channel"]["matrix"] == PLAIN.channel.matrix.tolist()
    assert data["channel"]["inputs"] == [0, 1, 2]
    assert data["certificate"] == {
        "kind": "EnvelopeDual", "level": PLAIN.certificate.level, "points": None,
        "potentials": PLAIN.certificate.potentials.tolist(),
    }  # fmt: skip
    assert [(one["notion"], one["value"]) for one in data["guarantees"]] == [
        (one.notion, one.value) for one in PLAIN.guarantees
    ]
    assert {key: data[key] for key in ("schema", "version", "value", "lower_bound", "upper_bound")} == {
        "schema": "ldpopt-design", "version": 1, "value": PLAIN.value, "lower_bound": PLAIN.value,
        "upper_bound": PLAIN.upper_bound,
    }  # fmt: skip
    assert (data["certified"], data["tolerance"], data["edges"]) == (True, 1e-6, None)
    assert set(data) == {
        "schema", "version", "utility", "constraints", "channel", "value", "lower_bound", "upper_bound", "certified",
        "tolerance", "guarantees", "method", "reference", "note", "edges", "certificate",
    }  # fmt: skip


def test_divergences_by_name_and_parameter():
    """A named divergence is its name; a member of a family its name and parameter."""
    made = optimal_channel(Divergence(hockey_stick(1.25), [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), LocalDP(1.0))
    assert json.loads(design_text(made))["utility"]["f"] == {"name": "hockey-stick", "parameter": 1.25}


def test_infinite_numbers_are_words():
    """The file is JSON of finite numbers; an infinite bound is the string "inf"."""

    def refuse(token):
        raise AssertionError(token)

    data = json.loads(design_text(design_files.design("nothing proved")), parse_constant=refuse)
    assert data["upper_bound"] == "inf"
    assert data["certificate"] is None


def test_an_existing_file_is_refused_unless_forced(tmp_path):
    """A taken path is refused and its file kept; `force` replaces it."""
    path = tmp_path / "design.json"
    path.write_text("mine")
    with pytest.raises(InvalidInput, match="does not exist yet"):
        PLAIN.save(path)
    assert path.read_text() == "mine"
    PLAIN.save(path, force=True)
    assert json.loads(path.read_text())["value"] == PLAIN.value
    assert list(tmp_path.iterdir()) == [path]


class Mine(ColumnUtility):
    """A utility of one's own: the total variation of two answers."""

    name, inputs, size, value_without_privacy = "mine", None, 2, 1.0

    def columns(self, matrix):
        return np.abs(matrix[:1] - matrix[1:]) / 2

    def gradients(self, matrix):
        sign = np.sign(matrix[0] - matrix[1]) / 2
        return np.stack([sign, -sign], axis=1)[None]


class Square(TotalVariation):
    """A constraint of one's own."""


class Odd(stats.rv_continuous):
    """A law of one's own, under a name of scipy's."""

    def _cdf(self, x):
        return np.clip(x, 0, 1) ** 2


OWN = FDivergence(lambda t: (t - 1) ** 2, name="my square")


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("utility", {"utility": Mine()}),
        ("utility.f", {"utility": Divergence(OWN, [0.5, 0.5], [0.2, 0.8])}),
        ("constraints[0]", {"constraints": (Square(0.3),)}),
        ("utility.p0", {"utility": Divergence(KL, Odd(name="norm")(), stats.norm(0, 1))}),
        ("certificate", {"certificate": type("Own", (type(PLAIN.certificate),), {})(
            PLAIN.utility, PLAIN.constraints, PLAIN.channel, 0.0, np.zeros(4), None)}),
    ],
    ids=["utility", "function", "constraint", "law", "certificate"],
)  # fmt: skip
def test_user_code_is_refused_by_files(part, change, tmp_path):
    """The error names the part that is code, and nothing is written."""
    with pytest.raises(InvalidInput, match="is code and fits in no file") as error:
        replace(PLAIN, **change).save(tmp_path / "design.json")
    assert str(error.value).startswith(f"{part}: ")
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_none_are_refused():
    """NaN has no place in a file, in a claim as in an array."""
    with pytest.raises(InvalidInput, match="value: expected a number"):
        design_text(replace(PLAIN, value=math.nan))
    broken = replace(PLAIN.certificate, potentials=np.array([0, math.nan, 1, 1]))
    with pytest.raises(InvalidInput, match=r"certificate.potentials: expected a number"):
        design_text(replace(PLAIN, certificate=broken))


def test_parallel_edges_are_written_with_their_weights():
    """A graph with parallel edges is written with each of their weights."""
    graph = nx.MultiGraph([(0, 1, {"weight": 2.0}), (0, 1, {"weight": 1.0}), (1, 2, {})])
    data = json.loads(design_text(replace(PLAIN, constraints=(LocalDP(1.0, graph),))))
    assert data["constraints"][0]["graph"]["edges"] == [[0, 1, 2.0], [0, 1, 1.0], [1, 2, 1.0]]


def concrete(base):
    """The classes of the package that descend from `base` and can be made."""
    found, waiting = set(), [base]
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        if not getattr(one, "__abstractmethods__", None) and one.__module__.startswith("ldpopt."):
            found.add(one)
    return found


def test_every_class_of_the_package_can_be_written():
    """Each utility, constraint and certificate of the package is one that a file may name."""
    for base in (Utility, Measured, Certificate):
        assert concrete(base) == set(encodable_subtypes(base))
    assert FisherInformation in encodable_subtypes(Utility)
    assert Outputs in encodable_subtypes(Measured)


def test_a_type_alias_stands_for_its_type():
    """NumPy 2.5 calls its arrays by an alias of Python 3.12, also inside of other types."""
    aliases = pytest.importorskip("typing_extensions")
    scalar = TypeVar("scalar", bound=np.generic)
    array = aliases.TypeAliasType("NDArray", np.ndarray[tuple[Any, ...], np.dtype[scalar]], type_params=(scalar,))
    plain = aliases.TypeAliasType("Counts", array[np.int64])
    floats, counts, pair = array[np.float64], plain, tuple[array[np.float64], ...] | None
    assert Reader().read([0.5, 1], floats, "x").tolist() == [0.5, 1.0]
    assert Reader().read([1, 2], counts, "x").dtype == np.int64
    assert [part.tolist() for part in Reader().read([[0.5], [1]], pair, "x")] == [[0.5], [1.0]]
    with pytest.raises(InvalidInput, match="an array of numbers"):
        Reader().read([0.5], counts, "x")
