"""``ldpopt verify`` tells a proof that holds from one that does not, and both from no proof at all."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ldpopt import Channel, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import FisherInformation
from ldpopt.design.load import verify_design
from ldpopt.divergences import KL

DESIGN = optimal_channel(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [LocalDP(1.0), TotalVariation(0.3)])


def saved(design, tmp_path):
    path = tmp_path / "design.json"
    design.save(path)
    return path


def test_a_proof_that_holds(run, tmp_path):
    """Exit code 0, and what is proved in sentences: the limits, the value, the bound, the gap, the arithmetic."""
    result = run("verify", saved(DESIGN, tmp_path))
    assert result.exit_code == 0
    first, second = (guarantee.value for guarantee in DESIGN.verify().guarantees)
    for said in (
        f"measured {first!r}, at most 1.0 is allowed",
        f"measured {second!r}, at most 0.3 is allowed",
        f"It keeps at least {DESIGN.value!r} (KL divergence).",
        f"No channel within these limits keeps more than {DESIGN.upper_bound!r}: potentials",
        "certified, to 1e-06",
        "float64, rounded outward, and the proof holds",
    ):
        assert said in result.stdout


def test_exact_verification_says_that_it_uses_balls(run, tmp_path):
    """The option --exact computes in balls, and the output says so."""
    result = run("verify", saved(DESIGN, tmp_path), "--exact")
    assert result.exit_code == 0
    assert "balls of 256 bits" in result.stdout


def test_an_error_is_bounded_from_below(run, tmp_path):
    """Of an error less is better, and the sentences say so."""
    made = optimal_channel(FisherInformation([0.5, 0.3, 0.2]), LocalDP(1.0))
    result = run("verify", saved(made, tmp_path))
    assert result.exit_code == 0
    assert f"Its sum of variances is at most {made.value!r} for one respondent." in result.stdout
    assert f"has less than {made.lower_bound!r}" in result.stdout


FORGED = {
    "a bound below the optimum": {"upper_bound": DESIGN.value, "certified": False},
    "a value above it": {"value": 1.01 * DESIGN.value, "lower_bound": 1.01 * DESIGN.value, "upper_bound": 1.0},
    "a channel beyond the limits": {"channel": Channel(np.eye(3))},
    "smaller limits": {"constraints": (LocalDP(0.5), TotalVariation(0.3))},
    "other limits": {"constraints": (LocalDP(1.0),)},
    "a certificate of nothing": {"certificate": replace(DESIGN.certificate, potentials=np.zeros(4), level=0.0)},
    "no certificate": {"certificate": None},
    "certified beyond the gap": {"upper_bound": 1.1 * DESIGN.upper_bound},
    "a tolerance of anything": {"tolerance": 10.0},
    "better guarantees": {"guarantees": (replace(DESIGN.guarantees[0], value=0.5), DESIGN.guarantees[1])},
    "a lower bound above the value": {"lower_bound": 1.1 * DESIGN.value},
}


@pytest.mark.parametrize("claim", FORGED)
def test_a_proof_that_does_not_hold(run, claim, tmp_path):
    """Exit code 1, and every claim that fails on a line of its own."""
    path = saved(replace(DESIGN, **FORGED[claim]), tmp_path)
    result = run("verify", path)
    assert result.exit_code == 1
    assert "which is not proved" in result.stdout
    assert any(line.startswith("- ") for line in result.stdout.splitlines())
    assert run("verify", path, "--exact").exit_code == 1


def test_json_states_the_verdict_and_the_failures(run, tmp_path):
    """--json says the same for scripts, a failed proof with the same exit code."""
    path = saved(DESIGN, tmp_path)
    result = run("verify", path, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["verified"], found["failures"]) == (0, True, [])
    assert (found["value"], found["upper_bound"], found["certified"]) == (DESIGN.value, DESIGN.upper_bound, True)
    assert found["recomputed"]["bound"] <= DESIGN.upper_bound
    path.unlink()
    result = run("verify", saved(replace(DESIGN, certificate=None), tmp_path), "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["verified"]) == (1, False)
    assert found["failures"]


def test_files_that_are_not_designs_are_refused(refused, tmp_path):
    """A file that is not a design file is bad input: one line, exit code 2."""
    (tmp_path / "channel.json").write_text(DESIGN.channel.to_json())
    assert "ldpopt-design" in refused("verify", tmp_path / "channel.json")
    refused("verify", tmp_path / "nothing.json")
    (tmp_path / "graph.json").write_text("{")
    refused("verify", tmp_path / "graph.json")


def test_where_float64_falls_short_the_balls_decide(monkeypatch, tmp_path):
    """A bound that float64 recomputes a digit looser than it was stated holds if exact arithmetic bears it out."""
    closer = DESIGN.verify(exact=True).bound
    assert closer < DESIGN.upper_bound
    stated = replace(DESIGN, upper_bound=(closer + DESIGN.upper_bound) / 2)
    assert not stated.verify()
    found, exact = verify_design(stated, exact=False)
    assert found
    assert exact


def test_a_design_saved_by_the_command_line_is_verified(run, tmp_path):
    """`ldpopt design --save-design` writes the design file, and says how to check it."""
    result = run(
        "design", "--p0", "0.5,0.3,0.2", "--p1", "0.2,0.3,0.5", "-e", "1", "-t", "0.3", "--save-design", "proof.json"
    )
    assert result.exit_code == 0
    assert "ldpopt verify proof.json checks the proof" in result.stdout
    result = run("verify", "proof.json", "--json")
    assert json.loads(result.stdout)["value"] == DESIGN.value
