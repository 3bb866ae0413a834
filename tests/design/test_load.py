"""Tests of `ldpopt.design.load`: designs come back exactly, need no solver, and nothing else comes in."""

import copy
import json
import os
import subprocess
import sys
from dataclasses import replace

import design_files
import numpy as np
import pytest

from ldpopt import Divergence, InvalidInput, LocalDP, TotalVariation, load_design, optimal_channel
from ldpopt.design.files import design_text
from ldpopt.design.load import parse_design
from ldpopt.divergences import KL

PLAIN = optimal_channel(design_files.U, [LocalDP(1.0), TotalVariation(0.2)])
DATA = json.loads(design_text(PLAIN))


def agree(made, tmp_path):
    made.save(tmp_path / "design.json")
    loaded = load_design(tmp_path / "design.json")
    assert repr(loaded) == repr(made)
    assert design_text(loaded) == design_text(made)
    assert type(loaded.certificate) is type(made.certificate)
    assert loaded == made
    assert loaded.guarantees == made.guarantees
    assert (loaded.value, loaded.lower_bound, loaded.upper_bound) == (made.value, made.lower_bound, made.upper_bound)
    assert loaded.certificate is None or loaded.certificate.bound == made.certificate.bound
    found = loaded.verify()
    assert found == made.verify()
    return found


@pytest.mark.full(but=10)
@pytest.mark.parametrize("name", design_files.NAMES)
def test_a_design_comes_back_exactly(name, tmp_path):
    """The same numbers, the same text, the same check: a file holds all that a design claims."""
    assert agree(design_files.design(name), tmp_path).outcome == (
        "not checked" if name == "nothing proved" else "proved"
    )


@pytest.mark.full
@pytest.mark.parametrize("name", [*design_files.OUTPUTS, *design_files.SETS])
def test_designs_that_take_longer_come_back_exactly(name, tmp_path):
    """The same for trees of boxes and for the least favourable of two sets."""
    assert agree(design_files.design(name), tmp_path)


def test_floats_of_every_size_survive(tmp_path):
    """Subnormal, huge, negative and non-terminating numbers in a certificate come back to the last bit."""
    odd = np.array([5e-324, -1.7976931348623157e308, 0.1 + 0.2, 1 / 3])
    path = tmp_path / "design.json"
    changed = json.loads(design_text(PLAIN))
    changed["certificate"]["potentials"] = odd.tolist()
    path.write_text(json.dumps(changed))
    assert load_design(path).certificate.potentials.tobytes() == odd.tobytes()


BLOCKED = """
import sys
from pathlib import Path
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("cvxpy", "clarabel", "highspy"):
            raise ImportError(name + " is not there")
sys.meta_path.insert(0, Absent())
import ldpopt
from ldpopt.cli import app
for number, path in enumerate(sorted(Path(sys.argv[1]).iterdir())):
    on_the_shell = app(["verify", str(path)], standalone_mode=False) if number % 4 == 0 else None
    print(path.name, bool(ldpopt.load_design(path).verify()), on_the_shell)
"""


def without_solvers(names, tmp_path):
    """What a process that can import no solver says about the files of some designs."""
    folder = tmp_path / "designs"
    folder.mkdir()
    for number, name in enumerate(names):
        design_files.design(name).save(folder / f"{number:02}.json")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, "-c", BLOCKED, str(folder)], capture_output=True, text=True, timeout=600, env=environment
    )
    assert run.returncode == 0, run.stderr
    return [line for line in run.stdout.splitlines() if line[2:8] == ".json "]


@pytest.mark.full
def test_designs_are_checked_where_no_solver_is(tmp_path):
    """Checking every kind of certificate imports neither cvxpy nor a solver, nor does each fourth on the shell."""
    names = [*design_files.PROBLEMS, "parts", *design_files.OUTPUTS, *design_files.SETS]
    said = [f"{number:02}.json True {None if number % 4 else 0}" for number in range(len(names))]
    assert without_solvers(names, tmp_path) == said


def changed(**parts):
    data = copy.deepcopy(DATA)
    for path, value in parts.items():
        *way, last = path.split("__")
        at = data
        for key in way:
            at = at[int(key)] if isinstance(at, list) else at[key]
        at[int(last) if isinstance(at, list) else last] = value
    return json.dumps(data)


REFUSED = {
    "another schema": (changed(schema="ldpopt-channel"), '"schema": "ldpopt-design"'),
    "another version": (changed(version=2), "version 1"),
    "version true": (changed(version=True), "version 1"),
    "an unknown key": (changed(more=1), "the keys"),
    "a repeated key": (design_text(PLAIN).replace('"note"', '"method"'), "distinct keys"),
    "no number": (design_text(PLAIN).replace('"tolerance": 1e-06', '"tolerance": NaN'), "finite double"),
    "beyond doubles": (design_text(PLAIN).replace('"tolerance": 1e-06', '"tolerance": 1e999'), "finite double"),
    "an unknown utility": (changed(utility__kind="os"), "utility.kind"),
    "a constraint as utility": (changed(utility={"kind": "LocalDP", "epsilon": 1.0}), "utility.kind"),
    "a certificate as constraint": (changed(constraints__0={"kind": "Contraction"}), "constraints[0].kind"),
    "a utility as certificate": (changed(certificate=DATA["utility"]), "certificate.kind"),
    "an abstract certificate": (changed(certificate={"kind": "Certificate"}), "certificate.kind"),
    "a missing field": (changed(constraints__0={"kind": "LocalDP"}), "field epsilon"),
    "a field too many": (changed(constraints__0__delta=0.1), "constraints[0]"),
    "a field that is not given": (changed(constraints__0__listed=None), "constraints[0]"),
    "epsilon of the wrong size": (changed(constraints__0__epsilon=-1.0), "constraints[0]: epsilon"),
    "epsilon as text": (changed(constraints__0__epsilon="1"), "constraints[0].epsilon"),
    "epsilon as a truth": (changed(constraints__0__epsilon=True), "constraints[0].epsilon"),
    "masses that do not sum to one": (changed(utility__p0=[0.5, 0.3, 0.3]), "utility: p0"),
    "masses as text": (changed(utility__p0=["0.5", "0.3", "0.2"]), "utility.p0"),
    "ragged masses": (changed(utility__p0=[[0.5], 0.5]), "utility"),
    "an unknown divergence": (changed(utility__f={"name": "mine"}), "utility.f.name"),
    "a divergence without its parameter": (changed(utility__f={"name": "alpha"}), "utility.f.name"),
    "a divergence with a parameter of text": (changed(utility__f={"name": "alpha", "parameter": "2"}), "utility.f"),
    "a law of no name": (
        changed(utility__p0={"kind": "scipy.stats", "name": "rv_continuous", "args": [], "kwds": {}}), "utility.p0",
    ),
    "a law of bad parameters": (
        changed(utility__p0={"kind": "scipy.stats", "name": "norm", "args": [], "kwds": {"scale": -1}}), "utility.p0",
    ),
    "a law of unknown parameters": (
        changed(utility__p0={"kind": "scipy.stats", "name": "norm", "args": [], "kwds": {"seed": 1}}), "utility.p0",
    ),
    "a graph of unknown nodes": (
        changed(constraints__0__graph={
            "kind": "graph", "directed": False, "multiple": False, "nodes": [0], "edges": [[0, 1, 1.0]],
        }), "constraints[0].graph",
    ),
    "a matrix of other rows": (changed(channel__matrix__0=[0.5, 0.5]), "channel.matrix"),
    "a matrix of rows that do not sum to one": (changed(channel__matrix__0__0=0.5), "channel"),
    "two inputs of one name": (changed(channel__inputs=[0, 0, 1]), "channel: inputs"),
    "fewer inputs than hypotheses": (
        changed(channel={"inputs": [0], "outputs": [0], "matrix": [[1.0]]}), "3 inputs",
    ),
    "potentials as text": (changed(certificate__potentials="all"), "certificate.potentials"),
    "potentials that nest too deeply": (
        changed(certificate__potentials=0).replace('"potentials": 0', '"potentials": ' + "[" * 400 + "]" * 400),
        "certificate.potentials",
    ),
    "a level without measure": (changed(certificate__level="-Infinity"), "certificate.level"),
    "certified as a number": (changed(certified=1), "certified"),
    "a note that is none": (changed(note=None), "note"),
    "guarantees of another kind": (changed(guarantees__0__kind="Guarantee"), "guarantees[0]"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_not_designs_are_refused(name, tmp_path):
    """One error that says what was expected where; nothing of the file is believed or run."""
    text, said = REFUSED[name]
    path = tmp_path / "design.json"
    path.write_text(text)
    with pytest.raises(InvalidInput) as error:
        load_design(path)
    assert said in str(error.value)


def test_certificates_in_certificates_are_of_limited_depth():
    """A file cannot nest certificates until Python gives up."""
    nested = DATA["certificate"]
    for _ in range(200):
        nested = {"kind": "Relaxed", "relaxation": nested}
    with pytest.raises(InvalidInput, match="deep"):
        parse_design(json.dumps(DATA | {"certificate": nested}))


def test_a_nested_certificate_may_be_about_another_problem():
    """A certificate states the parts of its problem that differ from those of what holds it, and no others."""
    data = json.loads(design_text(design_files.design("parts")))
    each = data["certificate"]["each"]
    assert all(one["utility"]["kind"] == "Divergence" for one in each)
    assert not any(set(one) & {"constraints", "channel", "edges"} for one in each if one["utility"] == data["utility"])


def test_a_missing_file_and_a_bad_path_are_refused(tmp_path):
    """A file that cannot be read is reported, not raised raw."""
    with pytest.raises(InvalidInput, match="no such file"):
        load_design(tmp_path / "nothing.json")
    with pytest.raises(InvalidInput, match="path"):
        load_design(7)


def test_unproved_bounds_are_not_compared():
    """Where numbers prove no bound, the failures say why, and not also that the bound is NaN."""
    made = replace(optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0)), constraints=())
    found = made.verify()
    assert not found
    assert not any("nan" in failure for failure in found.failures)
