"""Channels survive their files, and files that hold none are named errors."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpopt.channel import Channel
from ldpopt.errors import CertificateError, InvalidInput
from ldpopt.exact import ExactChannel
from ldpopt.io import read_channel, write_channel
from ldpopt.io.channels import parse_channel
from ldpopt.privacy import local_dp, total_variation

CELLS = st.floats(0, 1, width=32)
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6).filter(lambda t: t == t.strip())


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


@st.composite
def channels(draw):
    k, m = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    raw = draw(hnp.arrays(float, (k, m), elements=CELLS)) + 1e-3
    inputs = draw(st.none() | st.lists(TEXT, min_size=k, max_size=k, unique=True))
    outputs = draw(st.none() | st.lists(TEXT, min_size=m, max_size=m, unique=True))
    return Channel(raw / raw.sum(axis=1, keepdims=True), inputs, outputs)


@given(channels())
def test_a_channel_survives_both_formats(tmp_path_factory, channel):
    """Writing and reading a channel gives the same probabilities to the last bit, and the same labels."""
    folder = tmp_path_factory.mktemp("c")
    assert read_channel(write_channel(folder / "c.json", channel)) == channel
    digits = [all(isinstance(y, str) and y.isdigit() for y in labels) for labels in (channel.inputs, channel.outputs)]
    if not any(digits):
        assert read_channel(write_channel(folder / "c.csv", channel)) == channel


def test_guarantees_are_recorded_and_not_trusted(tmp_path):
    """The JSON file keeps the guarantees as claims; the reader returns a channel to be measured again."""
    channel = Channel([[0.75, 0.25], [0.25, 0.75]], ["yes", "no"])
    path = write_channel(tmp_path / "c.json", channel, [local_dp(channel), total_variation(channel)])
    claims = json.loads(path.read_text())["guarantees"]
    assert [claim["notion"] for claim in claims] == ["local_dp", "total_variation"]
    assert claims[0]["value"] >= np.log(3)
    path.write_text(path.read_text().replace(str(claims[0]["value"]), "0.001"))
    assert local_dp(read_channel(path)).value >= np.log(3)


def test_an_array_is_written_like_a_channel_and_nothing_is_overwritten(tmp_path):
    """Arrays are channels; an existing file is refused unless told otherwise."""
    path = write_channel(tmp_path / "c.json", np.eye(2))
    with says("got an existing one"):
        write_channel(path, np.eye(3))
    assert read_channel(path) == Channel(np.eye(2))
    write_channel(path, np.eye(3), force=True)
    assert read_channel(path) == Channel(np.eye(3))


def test_a_bad_channel_writes_nothing(tmp_path):
    """A matrix that is no channel is an error before any file is touched."""
    with says("rows that sum to 1"):
        write_channel(tmp_path / "c.json", [[0.5, 0.4]])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "0.75,0.25\n0.25,0.75\n"),
        ("b.csv", "\ufeff0.75,0.25\r\n\r\n0.25,0.75"),
        ("c.csv", ",0,1\n0,0.75,0.25\n1,0.25,0.75\n"),
        ("d.csv", 'answer \\ report,0,1\n0, .75 ,2.5e-1\n1,0.25,"0.75"\n'),
        ("e.json", "[[0.75, 0.25], [0.25, 0.75]]"),
        ("f.txt", " [[0.75, 0.25],\n [0.25, 0.75]]"),
        ("g", "0.75,0.25\n0.25,0.75\n"),
        ("h", Channel([[0.75, 0.25], [0.25, 0.75]]).to_json()),
    ],
)
def test_the_forms_a_channel_file_may_take(tmp_path, name, text):
    """Numbers alone, labelled rows, a bare JSON list and the full JSON schema all give the same channel."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_channel(tmp_path / name) == Channel([[0.75, 0.25], [0.25, 0.75]])


def test_labels_in_csv_are_text(tmp_path):
    """Labels other than 0, 1, 2, ... are read as text, quoted ones included."""
    (tmp_path / "c.csv").write_text('x,"a,b",7\nyes,0.5,0.5\n"n""o",1,0\n')
    channel = read_channel(tmp_path / "c.csv")
    assert (channel.inputs, channel.outputs) == (("yes", 'n"o'), ("a,b", "7"))


BAD = [
    ("c.csv", "0.5,nan\n", "expected a number, got nan at line 1, column 2"),
    ("c.csv", "0.5,Infinity\n", "expected a number, got infinity at line 1, column 2"),
    ("c.csv", "0.5,0.5\n0.5,1e400\n", "expected a finite double, got a larger number at line 2, column 2"),
    ("c.csv", "0.5,0.5\n0.6,0.5\n", "channel: expected rows that sum to 1 within 1e-09, got 1.1 at row 1"),
    ("c.csv", "1.5,-0.5\n", "channel: expected non-negative entries, got -0.5 at row 0, column 1"),
    ("c.csv", "0.5,0.5\n1\n", "expected 2 cells in each line, got 1 at line 2"),
    ("c.csv", "x,a,a\ny,0.5,0.5\n", "outputs: expected distinct labels, got 'a' twice"),
    ("c.csv", "x,a,\ny,0.5,0.5\n", "expected a value, got an empty cell at line 1, column 3"),
    ("c.csv", "x,a,b\n", "expected a line of labels and a line for each input, got 1 x 3 cells"),
    ("c.csv", "hello\nworld\n", "expected a line of labels and a line for each input, got 2 x 1 cells"),
    ("c.csv", "[[1, 0], [0, 1]]\n[]", "expected 4 cells in each line, got 1 at line 2"),
    ("c.json", "0.5,0.5", "channel file: expected valid JSON, got a mistake at line 1, column 4"),
    ("c.json", "{}", 'channel file: expected an object with "format": "ldpopt-channel", got'),
    ("c.json", "[[0.5, NaN]]", "JSON number: expected a finite double, got 'NaN'"),
    ("c.json", "[]", "channel: expected 2 dimensions, got shape (0,)"),
    ("c.json", '[["a"]]', "channel: expected an array of numbers, got [['a']]"),
    ("c.json", "[[1], [0.5, 0.5]]", "channel: expected an array of numbers, got"),
    ("c.json", "[" * 100_000, "channel file: expected JSON of moderate depth, got deeply nested brackets"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_files_that_hold_no_channel(tmp_path, name, text, message):
    """Every malformed channel file is an error that names the file and what is wrong in it."""
    path = tmp_path / name
    path.write_text(text)
    with says(f"{path}: {message}"):
        read_channel(path)


def test_csv_refuses_labels_and_guarantees_it_would_lose(tmp_path):
    """Labels that CSV would change, and guarantees, are refused for CSV and nothing is written."""
    for labels in ([(0, "a"), (1, "a")], [1.5, 2.5], [1, 0], ["0", "1"], [" a", "b"], ["", "b"], [True, False]):
        with says("labels that are strings, or 0, 1, 2, ..., for a CSV file (JSON keeps the others)"):
            write_channel(tmp_path / "c.csv", Channel(np.eye(2), labels))
    with says("guarantees: expected a JSON file to record them in"):
        write_channel(tmp_path / "c.csv", np.eye(2), [local_dp([[0.5, 0.5], [0.5, 0.5]])])
    assert list(tmp_path.iterdir()) == []


CONTENTS = st.binary(max_size=80) | st.text('[]{},:.01e-"\n aN', max_size=80).map(str.encode)


@given(CONTENTS, st.sampled_from(["csv", "json", "x"]))
def test_any_file_is_a_channel_or_an_error(tmp_path_factory, raw, suffix):
    """Arbitrary bytes give a channel or an InvalidInput that names the file; nothing else escapes."""
    path = tmp_path_factory.mktemp("f") / f"c.{suffix}"
    path.write_bytes(raw)
    try:
        channel = read_channel(path)
    except InvalidInput as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert np.all(abs(channel.matrix.sum(axis=1) - 1) <= 1e-9)


def test_exact_channels_are_proved_when_read(tmp_path):
    """An exact channel survives its file; move 2^20 units between two weights, and its claim is not proved."""
    exact = Channel([[0.7, 0.3], [0.2, 0.8]], inputs=["no", "yes"]).exact()
    path = write_channel(tmp_path / "q.json", exact)
    assert read_channel(path) == exact
    with pytest.raises(InvalidInput, match="does not exist yet"):
        write_channel(path, exact)
    for place, guarantees in (("q.csv", ()), ("other.json", (local_dp(exact.matrix),))):
        with pytest.raises(InvalidInput, match="a JSON file, and no other guarantees, for an exact channel"):
            write_channel(tmp_path / place, exact, guarantees)
    data = json.loads(path.read_text())
    data["weights"][0] = [str(int(data["weights"][0][0]) + 2**20), str(int(data["weights"][0][1]) - 2**20)]
    path.write_text(json.dumps(data))
    with pytest.raises(CertificateError, match="not proved"):
        read_channel(path)
    assert isinstance(read_channel(write_channel(tmp_path / "float.json", exact.matrix)), Channel)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", "2/3,1/3\n0.25,3/4"),
        ("q.csv", ",yes,n/a\nyes,2/3,1/3\nno,0.25,3/4"),
        ("q.json", '[["2/3", "1/3"], ["0.25", "3/4"]]'),
    ],
)
def test_fractions_make_an_exact_channel(name, text):
    """A file with fractions is read without rounding, with or without labels."""
    channel = parse_channel(text, name)
    assert isinstance(channel, ExactChannel)
    assert channel.weights.tolist() == [[8, 4], [3, 9]]
    assert channel.outputs == (("yes", "n/a") if "yes" in text else (0, 1))


def test_a_slash_in_a_label_is_no_fraction():
    """Labels may have a slash; what counts is the probabilities."""
    assert isinstance(parse_channel(",n/a,1/2\nyes,0.75,0.25\nno,0,1", "q.csv"), Channel)


@pytest.mark.parametrize("text", ["3/4,1/4\n1/3,1/3", "3/0,1\n0,1", "3/4,1/4\n1/3", "3/4,\n0,1", "1/2,no\nyes,0.7"])
def test_fractions_that_are_no_channel_are_refused(text):
    """The error names the file."""
    with pytest.raises(InvalidInput, match=r"q\.csv"):
        parse_channel(text, "q.csv")
