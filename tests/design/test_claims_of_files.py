"""Tests that everything in a design file is checked or absent, and of the three outcomes of a check."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from ldpopt import Channel, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.cli.program import app
from ldpopt.design import ApproximateLDP, Contraction
from ldpopt.design.design import CHECKED, Design
from ldpopt.design.files import design_text
from ldpopt.design.load import parse_design, verify_design
from ldpopt.divergences import KL, FDivergence
from ldpopt.errors import InvalidInput, NotChecked
from ldpopt.privacy import Guarantee
from ldpopt.words import proof_in_words, unchecked_in_words, verdict

QUESTION = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
DESIGN = optimal_channel(QUESTION, [LocalDP(1.0), TotalVariation(0.2)])
DATA = json.loads(design_text(DESIGN))
MEASURED = [{"lower": g.lower, "exact": g.exact, "reference": g.reference} for g in DESIGN.guarantees]


def stating(place, **claims):
    """The design of a file that states more of one guarantee, as older versions wrote it."""
    data = json.loads(design_text(DESIGN))
    data["guarantees"][place] |= claims
    return parse_design(json.dumps(data))


def test_a_file_states_only_checked_parts_of_guarantees():
    """The value of a notion, and nothing that a reader would have to believe."""
    assert [set(one) for one in DATA["guarantees"]] == [{"notion", "value", "parameters"}] * 2


@pytest.mark.parametrize("place", [0, 1])
def test_guarantees_of_older_files_are_compared(place):
    """True lower ends, witnesses, exactness and references pass."""
    guarantee = DESIGN.guarantees[place]
    witness = {"inputs": list(guarantee.witness.inputs), "outputs": list(guarantee.witness.outputs)}
    assert stating(place, **MEASURED[place], witness=witness).verify()


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    "claims",
    [
        {"lower": 1e300}, {"lower": 1.0}, {"lower": 0.2}, {"lower": "inf"}, {"reference": "[Nobody, Thm 1]"},
        {"witness": {"inputs": [1, 1], "outputs": [0]}}, {"witness": {"inputs": [2, 0], "outputs": [3]}},
    ],
    ids=str,
)  # fmt: skip
def test_false_claims_beside_a_value_are_refuted(place, claims):
    """A lower end above the truth, a pair that attains nothing, a reference of something else."""
    if claims == {"lower": 0.2} and place == 0:
        claims = {"lower": np.nextafter(DESIGN.guarantees[0].value, 2.0)}
    found = stating(place, **claims).verify()
    assert found.outcome == "refuted"
    assert f"the {next(iter(claims))} of a guarantee" in "; ".join(found.failures)


def test_exactness_is_a_claim():
    """A measure that is only an upper bound may not be called exact."""
    bounded = replace(DESIGN.guarantees[0], exact=False)
    assert replace(DESIGN, guarantees=(bounded, DESIGN.guarantees[1])).verify()
    from ldpopt.design.design import unsupported_fields

    assert unsupported_fields(DESIGN.guarantees[0], bounded) == ["exact"]


def test_every_part_of_a_design_is_checked_or_named():
    """Another value in any part is refuted, or the part is among those that a verdict says were not checked."""
    others = {
        "utility": QUESTION.__class__(KL, [0.2, 0.3, 0.5], [0.5, 0.2, 0.3]), "constraints": (LocalDP(0.5),),
        "channel": Channel(np.eye(3)), "value": 1.0, "lower_bound": 0.0, "upper_bound": DESIGN.value / 2,
        "guarantees": (), "certificate": Contraction(QUESTION, DESIGN.constraints, DESIGN.channel),
        "certified": False, "tolerance": 1e-30, "edges": np.array([0.5]),
    }  # fmt: skip
    for part in fields(Design):
        if part.name in CHECKED:
            assert replace(DESIGN, **{part.name: others[part.name]}).verify().outcome == "refuted", part.name
        else:
            changed = replace(DESIGN, **{part.name: "something"})
            assert changed.verify()
            assert part.name in changed.unchecked_parts


def test_the_sentence_on_unchecked_parts_is_computed():
    """It names the parts that say something, and is missing where none does."""
    bare = replace(DESIGN, method="", reference="", note="")
    assert unchecked_in_words(bare) == ""
    assert unchecked_in_words(replace(bare, note="n")) == " Not checked: note."
    everything = replace(bare, method="m", reference="r", note="n")
    assert unchecked_in_words(everything) == " Not checked: method, note and reference."


def test_cut_points_of_finite_answers_are_refused():
    """Nothing would be computed of them."""
    with pytest.raises(InvalidInput, match="edges"):
        parse_design(json.dumps(DATA | {"edges": [0.5]}))


# --- Three outcomes ---------------------------------------------------------------------------------------------------

OWN = FDivergence(lambda t: (t - 1) ** 2, name="my square")


def of_outcome(outcome):
    """A verification with this outcome."""
    if outcome == "not checked":
        return DESIGN.verify(budget=1e-9)
    return (DESIGN if outcome == "proved" else replace(DESIGN, value=1.0)).verify()


@pytest.mark.parametrize("outcome", ["proved", "refuted", "not checked"])
def test_an_outcome_is_one_of_three(outcome):
    """`outcome` and `proved` always answer; `bool` answers where there is something to answer."""
    found = of_outcome(outcome)
    assert (found.outcome, found.proved) == (outcome, outcome == "proved")
    assert bool(found.failures) == (outcome == "refuted")
    assert bool(found.unchecked) == (outcome == "not checked")
    assert repr(found).startswith(f"Verification({outcome}")
    if outcome == "not checked":
        with pytest.raises(NotChecked, match="budget"):
            bool(found)
    else:
        assert bool(found) == found.proved


def test_functions_without_exact_arithmetic_are_not_checked():
    """A function of one's own is known in floats: nothing failed, and the words say so."""
    design = optimal_channel(Divergence(OWN, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0))
    assert design.verify()
    found = design.verify(exact=True)
    assert (found.outcome, found.failures) == ("not checked", ())
    assert "not covered" in found.unchecked[0]
    assert "FAILED" not in repr(found) + "".join(proof_in_words(design, found))


def test_a_false_claim_is_refuted_though_another_one_is_not_checked():
    """Whatever else was not checked, what is false is false."""
    bare = replace(DESIGN, certificate=None, upper_bound=float("inf"), certified=False)
    assert bare.verify().outcome == "not checked"
    assert replace(bare, value=1.0, lower_bound=1.0).verify().outcome == "refuted"
    assert "PROOF FAILED" in verdict(replace(DESIGN, value=1.0, lower_bound=1.0))


@pytest.mark.parametrize(
    ("change", "arguments", "code", "outcome"),
    [
        ({}, [], 0, "proved"),
        ({}, ["--exact"], 0, "proved"),
        ({"upper_bound": DESIGN.value / 2}, [], 1, "refuted"),
        ({}, ["--budget", "1e-9"], 3, "not checked"),
        ({"upper_bound": "inf", "certified": False, "certificate": None}, [], 3, "not checked"),
    ],
)
def test_verify_has_an_exit_code_for_each(change, arguments, code, outcome, tmp_path, capsys):
    """0, 1 and 3; 2 is for what is no design file."""
    path = tmp_path / "design.json"
    path.write_text(json.dumps(DATA | change))
    with pytest.raises(SystemExit) as ended:
        app(["verify", str(path), "--json", *arguments], standalone_mode=True)
    said = json.loads(capsys.readouterr().out)
    assert (ended.value.code, said["outcome"], said["verified"]) == (code, outcome, code == 0)
    assert bool(said["not_checked"]) == (code == 3)


def test_balls_are_not_tried_beyond_the_budget():
    """They would take longer."""
    found, exact = verify_design(DESIGN, budget=1e-9)
    assert (found.outcome, exact) == ("not checked", False)


def test_guarantees_that_are_made_by_hand_may_state_a_value_alone():
    """The other fields say nothing then."""
    assert Guarantee("local_dp", 1.0) == Guarantee("local_dp", 1.0, 0.0, None, False, "", {})
    design = optimal_channel(QUESTION, ApproximateLDP(1.0, 0.05))
    assert parse_design(design_text(design)).verify()
