"""``ldpopt check`` measures any channel file and trusts none."""

import json

import numpy as np
import pytest

from ldpopt import Channel
from ldpopt.composition import shuffled
from ldpopt.io import write_channel
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import audit, local_dp, total_variation

CHANNEL = randomized_response(3, 1.0, inputs=("a", "b", "c"))


@pytest.mark.parametrize("name", ["channel.json", "channel.csv"])
def test_both_formats_are_measured(run, tmp_path, name):
    """The guarantees reported are those of the matrix in the file, to the last digit."""
    write_channel(tmp_path / name, CHANNEL)
    found = json.loads(run("check", name, "--json").stdout)
    measured = {guarantee["notion"]: guarantee["value"] for guarantee in found["guarantees"]}
    assert measured == {"local_dp": local_dp(CHANNEL).value, "total_variation": total_variation(CHANNEL).value}
    assert (found["inputs"], found["outputs"]) == (3, 3)
    said = run("check", name).stdout
    assert "Whatever you answer, each possible report is at most 2.719 times" in said
    assert "local dp ≤ 1" in said


def test_all_notions_are_reported_with_all(run, tmp_path):
    """The option --all reports the whole audit, the same for readers and machines."""
    write_channel(tmp_path / "q.json", CHANNEL)
    expected = audit(CHANNEL)
    found = json.loads(run("check", "q.json", "--all", "--json").stdout)
    assert found == {"inputs": 3, "outputs": 3, **json.loads(expected.to_json())}
    said = run("check", "q.json", "--all").stdout
    assert "Whatever you answer" in said
    for notion, _, value, _, _ in expected.rows():
        assert any(notion in line and value in line for line in said.splitlines()), notion


def test_claims_in_the_file_are_not_trusted(run, tmp_path):
    """A file that claims more privacy than its matrix has is reported at what the matrix has."""
    text = json.loads(Channel(np.eye(2)).to_json())
    text["guarantees"] = [{"notion": "local_dp", "value": 0.1}]
    (tmp_path / "channel.json").write_text(json.dumps(text))
    result = run("check", "channel.json")
    assert result.exit_code == 0
    assert "local dp ≤ inf" in result.stdout
    assert "it can rule answers out" in result.stdout


def test_a_bare_matrix_is_a_channel(run, tmp_path):
    """A bare matrix is a channel, in CSV and in JSON."""
    (tmp_path / "q.csv").write_text("0.75,0.25\n0.25,0.75\n")
    (tmp_path / "q.json").write_text("[[0.75, 0.25], [0.25, 0.75]]")
    assert run("check", "q.csv", "--json").stdout == run("check", "q.json", "--json").stdout


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("", "q.csv: expected a file with contents, got an empty one"),
        ("0.5,0.6\n0.5,0.5\n", "q.csv: channel: expected rows that sum to 1 within 1e-09, got 1.1 at row 0"),
        ("1.5,-0.5\n0.5,0.5\n", "q.csv: channel: expected non-negative entries, got -0.5 at row 0, column 1"),
        ("0.5,nan\n0.5,0.5\n", "q.csv: expected a number, got nan at line 1, column 2"),
        ("0.5,0.5\n1\n", "q.csv: expected 2 cells in each line, got 1 at line 2"),
    ],
)
def test_bad_channels_are_refused_with_their_place(refused, tmp_path, contents, message):
    """A matrix that is not stochastic is refused with its place."""
    (tmp_path / "q.csv").write_text(contents)
    assert message in refused("check", "q.csv")
    assert message in refused("check", "q.csv", "--json")


def test_missing_files_are_refused(refused):
    """A file that is not there, and no file at all, are refused."""
    assert "nowhere.json: expected a readable file, got no such file or directory" in refused("check", "nowhere.json")
    assert "Missing argument 'CHANNEL'" in refused("check")


def test_exact_channels_are_proved_again(run, tmp_path, refused):
    """An exact channel's file is proved from its integers; one that overclaims is refused with exit code 1."""
    exact = CHANNEL.exact()
    write_channel(tmp_path / "exact.json", exact)
    found = json.loads(run("check", "exact.json", "--json").stdout)
    assert [guarantee["value"] for guarantee in found["guarantees"]] == [exact.epsilon, exact.eta]
    assert found["proved_bits"] == 62
    assert "Proved in integer arithmetic" in run("check", "exact.json").stdout
    data = json.loads(exact.to_json())
    data["epsilon"] = np.nextafter(exact.epsilon, 0)
    (tmp_path / "more.json").write_text(json.dumps(data))
    result = run("check", "more.json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is not proved" in result.stderr
    assert "a channel of floats" in refused("check", "exact.json", "--all")


def test_shuffling_adds_the_central_guarantee(run, tmp_path):
    """--shuffled adds the central guarantee, in words and as JSON, beside the channel's own."""
    write_channel(tmp_path / "q.json", CHANNEL)
    expected = shuffled(CHANNEL, 5000).epsilon_at(1e-5)
    found = json.loads(run("check", "q.json", "--shuffled", "5000", "--delta", "1e-5", "--json").stdout)
    assert found["shuffled"] == expected.to_dict()
    assert len(found["guarantees"]) == 2
    assert "hides which of 5,000 people sent which report" in run("check", "q.json", "--shuffled", "5000").stdout
    assert run("check", "q.json", "--shuffled", "0").exit_code == 2
    assert "delta" in run("check", "q.json", "--shuffled", "10", "--delta", "2").stderr
