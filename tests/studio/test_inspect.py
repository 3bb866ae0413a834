"""Any channel: measured whatever its file claims, its proof recomputed, compared with the best, mended."""

import json
import random

import numpy as np
import pytest
from fuzzing_designs import change

from ldpopt import Channel, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import FisherInformation
from ldpopt.design.files import design_text
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput, LdpoptError
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import audit, local_dp, total_variation
from ldpopt_studio.fields import FieldError
from ldpopt_studio.inspect import view

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
DESIGN = optimal_channel(Divergence(KL, P0, P1, inputs=("low", "middle", "high")), [LocalDP(1.0), TotalVariation(0.3)])
TEXT = design_text(DESIGN)


def forged_file(**parts):
    """Return the design's file with other values for some of its keys."""
    return json.dumps(json.loads(TEXT) | parts)


def test_a_valid_design_has_a_green_badge():
    """The badge is green if the recomputed proof holds, and sentences describe the proof."""
    content = view({"text": TEXT, "name": "design.json"})
    assert (content["kind"], content["badge"]["colour"], content["name"]) == ("design", "green", "design.json")
    assert content["matrix"] == DESIGN.channel.matrix.tolist()
    assert content["inputs"] == ["low", "middle", "high"]
    assert any("No channel within these limits keeps more" in line for line in content["proof"])


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"upper_bound": DESIGN.value}, "the bound proved is"),
        ({"value": DESIGN.value * 1.01, "lower_bound": DESIGN.value * 1.01}, "the value is"),
        ({"channel": {"inputs": ["low", "middle", "high"], "outputs": [0, 1, 2], "matrix": np.eye(3).tolist()}}, ""),
        ({"guarantees": []}, "guarantees"),
    ],
)
def test_a_forged_design_has_a_red_badge(parts, reason):
    """A design file that claims more than its numbers prove gets a red badge with the failed claim."""
    badge = view({"text": forged_file(**parts)})["badge"]
    assert badge["colour"] == "red"
    assert "is not proved" in badge["reasons"][0]
    assert reason in " ".join(badge["reasons"][1:])


def test_a_design_without_a_proof_has_a_grey_badge():
    """A design without a certificate is called neither proved nor forged."""
    bare = optimal_channel(DESIGN.utility, DESIGN.constraints, certify=False)
    assert view({"text": design_text(bare)})["badge"]["colour"] == "grey"


def test_the_guarantees_are_those_of_the_audit():
    """The view has each guarantee that `audit` reports for the channel, in its rounding."""
    channel = randomized_response(4, 1.0)
    content = view({"text": channel.to_json()})
    expected = [(name, value) for name, _, value, _, _ in audit(channel).rows()]
    assert [(row["title"], row["value"]) for row in content["guarantees"]] == expected
    assert content["epsilon"] == local_dp(channel).value
    assert content["eta"] == total_variation(channel).value


def test_a_channel_file_with_a_false_claim_has_a_red_badge():
    """A recorded epsilon below the measured one is red; a true one is not green."""
    channel = randomized_response(3, 1.0)
    channel_file = json.loads(channel.to_json([local_dp(channel)]))
    assert view({"text": json.dumps(channel_file)})["badge"]["colour"] == "grey"
    channel_file["guarantees"][0]["value"] = 0.5
    badge = view({"text": json.dumps(channel_file)})["badge"]
    assert badge["colour"] == "red"
    assert "The file claims a local dp of 0.5; it is 1" in badge["reasons"][0]


def test_an_exact_channel_is_proved_by_its_integers():
    """The integers of an exact channel are its proof; integers that do not prove the file's claims are red."""
    exact = randomized_response(3, 1.0).exact(20)
    content = view({"text": exact.to_json()})
    assert (content["kind"], content["badge"]["colour"]) == ("exact channel", "green")
    channel_file = json.loads(exact.to_json())
    field = next(name for name, value in channel_file.items() if "epsilon" in str(name) or "epsilon" in str(value))
    channel_file[field] = 0.5 if not isinstance(channel_file[field], dict) else channel_file[field] | {"epsilon": 0.5}
    assert view({"text": json.dumps(channel_file)})["badge"]["colour"] == "red"


@pytest.mark.parametrize("seed", range(4))
def test_no_channel_exceeds_the_optimum_within_its_own_limits(seed):
    """A channel's value is at most the bound for its own epsilon and eta; the optimum attains the bound."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    channel = Channel(rng.dirichlet(np.ones(int(rng.integers(2, 6))), k))
    p0, p1 = rng.dirichlet(np.ones(k), 2)
    compared = view({"text": channel.to_json(), "p0": p0.tolist(), "p1": p1.tolist(), "divergence": "chi-squared"})[
        "comparison"
    ]
    m0, m1 = p0 @ channel.matrix, p1 @ channel.matrix
    assert compared["value"] == pytest.approx(np.sum((m0 - m1) ** 2 / m1), rel=1e-9)
    assert compared["verified"]
    assert compared["value"] <= compared["bound"] * (1 + 1e-9)
    again = view({"text": compared["design_file"]})
    assert again["badge"]["colour"] == "green"
    assert again["comparison"]["share"] == pytest.approx(1.0, rel=1e-5)


def test_the_comparison_prefers_the_user_s_populations():
    """The user's populations come first, then those of the file, then two examples."""
    assert view({"text": TEXT})["comparison"]["whose"] == "the populations of the file"
    given = view({"text": TEXT, "p0": P1, "p1": P0})["comparison"]
    assert (given["whose"], given["p0"]) == ("your populations", P1)
    assert view({"text": TEXT, "divergence": None})["comparison"]["divergence"] == "KL divergence"
    assert view({"text": TEXT, "divergence": "le-cam"})["comparison"]["divergence"] == "Le Cam distance"
    assert "example" in view({"text": "[[1,0],[0.5,0.5]]"})["comparison"]["whose"]
    asked = optimal_channel(FisherInformation([0.5, 0.5]), LocalDP(1.0))
    content = view({"text": design_text(asked)})
    assert (content["badge"]["colour"], content["comparison"]) == ("green", None)
    assert "its own bound" in content["no_comparison"]


@pytest.mark.parametrize("text", ["[[1.0], [1.0]]", "[[0.5, 0.5], [0.5, 0.5]]", "[[1.0]]", "[[1, 0]]"])
def test_an_uninformative_channel_has_no_comparison(text):
    """An uninformative channel is measured, and has no comparison."""
    content = view({"text": text})
    assert content["epsilon"] == 0
    assert content["comparison"] is None
    assert content["no_comparison"]


def test_a_channel_without_privacy_has_infinite_epsilon():
    """The infinite epsilon is the text "inf"; the best channel for eta 1 is equally good."""
    content = view({"text": "1,0,0\n0,1,0\n0,0,1\n", "p0": P0, "p1": P1})
    assert (content["epsilon"], content["eta"]) == ("inf", 1.0)
    assert content["comparison"]["share"] == pytest.approx(1.0, rel=1e-6)
    json.dumps(content, allow_nan=False)


@pytest.mark.parametrize(
    "text",
    ["0.75,0.25\n0.25,0.75", "0.75\t0.25\n0.25\t0.75\n", "0,75;0,25\n0,25;0,75", " 0.75 0.25\r\n 0.25   0.75\r\n",
     "[[0.75, 0.25], [0.25, 0.75]]", "\ufeff.75,.25\n.25,.75"],
)  # fmt: skip
def test_tables_with_any_common_delimiter_are_read(text):
    """Commas, tabs, semicolons with decimal commas and blanks separate cells, and JSON is a list of rows."""
    assert view({"text": text})["matrix"] == [[0.75, 0.25], [0.25, 0.75]]


def test_labels_come_from_the_first_row_and_column():
    """A nonnumeric first row and first column are the labels of reports and answers."""
    content = view({"text": "\tyes\tno\nÅsa\t0.75\t0.25\nBo\t0.25\t0.75\n", "name": "q.tsv"})
    assert (content["inputs"], content["outputs"]) == (["Åsa", "Bo"], ["yes", "no"])


@pytest.mark.parametrize(
    ("state", "field", "message"),
    [
        ({}, "text", "a value is required"),
        ({"text": 3}, "text", "text"),
        ({"text": "hello"}, "text", "expected"),
        ({"text": "[[0.5, 0.6]]"}, "text", "rows that sum to 1"),
        ({"text": "[[0.5, 0.5], [1]]"}, "text", "an array of numbers"),
        ({"text": "{}"}, "text", "a channel, a design or a list of rows"),
        ({"text": '{"format": "ldpopt-plan"}'}, "text", "ldpopt-plan"),
        ({"text": "[" * 100_000}, "text", "moderate depth"),
        ({"text": "[[NaN, 1]]"}, "text", "a finite double"),
        ({"text": "[[1e999, 1]]"}, "text", "a finite double"),
        ({"text": '{"schema": "ldpopt-design", "version": 1}'}, "text", "utility"),
        ({"text": "0.5,0.5\n0.5"}, "text", "cells in each line"),
        ({"text": "0.5,0.5\0"}, "text", "a zero byte"),
        ({"text": "x" * 4_000_001}, "text", "at most 4000000 characters"),
        ({"text": json.dumps([[1] + [0] * 599] * 600)}, "text", "at most 250000 entries"),
        ({"text": "1,0\n0,1", "p0": [0.5, 0.5]}, "p1", "the other population has one"),
        ({"text": "1,0\n0,1", "p0": [0.5, 0.5], "p1": [1, 2]}, "p1", "sum to 1"),
        ({"text": "1,0\n0,1", "p0": [0.5, 0.5], "p1": [0.5, 0.5]}, "p1", "different"),
        ({"text": "1,0\n0,1", "p0": [1.0], "p1": [1.0]}, "p0", "2 entries"),
        ({"text": "1,0\n0,1", "divergence": "kll"}, "divergence", "kl"),
        ({"text": "1,0\n0,1", "divergence": "hockey-stick:x"}, "divergence", "a number"),
        ({"text": "[[3, 1], [0, 0]]", "mend": True}, "mend", "a row of zeros"),
        ({"text": "[[3, -1], [1, 1]]", "mend": True}, "mend", "non-negative"),
        ({"text": "[[3, 1]]", "mend": True, "epsilon": -1}, "epsilon", "nats"),
        ({"text": "[[3, 1]]", "mend": 1}, "mend", "true or false"),
        ({"text": "[[1, 0]]", "name": 7}, "name", "text"),
    ],
)
def test_invalid_input_names_its_field(state, field, message):
    """Each error names the field that is wrong, with the package's message, and contains no path of the machine."""
    with pytest.raises(InvalidInput) as error:
        view(state)
    assert isinstance(error.value, FieldError)
    assert error.value.field == field
    assert message in str(error.value)
    assert "/" not in str(error.value).replace("KNOTS/SLOPES", "")  # no path is told
    assert len(str(error.value)) < 400


def test_names_of_files_have_no_folder():
    """A file's name comes back without its folder and without unprintable characters."""
    for name in ("/etc/passwd", "..\\..\\passwd", "a\x00/passwd"):
        assert view({"text": "[[1, 0]]", "name": name})["name"] == "passwd"
    assert view({"text": "[[1, 0]]", "name": ".."})["name"] == "pasted text"


def test_mutated_design_files_are_never_green_by_mistake():
    """Each of 60 mutated design files is read or rejected with a message, and none that claims too much is green.

    A design whose badge is green verifies by the library, too, in either arithmetic.
    """
    rng, outcomes = random.Random(5), {"green": 0, "red": 0, "grey": 0, "refused": 0}
    data = TEXT.encode()
    for _ in range(60):
        text = change(rng, data).decode("utf-8", "replace")
        try:
            content = view({"text": text})
        except FieldError as error:
            assert "Traceback" not in str(error)
            outcomes["refused"] += 1
            continue
        json.dumps(content, allow_nan=False)
        outcomes[content["badge"]["colour"]] += 1
    assert outcomes["refused"] > 10
    assert outcomes["red"] > 2


# -- mending -------------------------------------------------------------------------------------------


def test_a_table_of_counts_is_repaired_to_a_channel():
    """The repair divides each row by its sum, and states the sums."""
    content = view({"text": "answer,a,b\nyes,30,10\nno,10,30\n", "mend": True})
    assert content["matrix"] == [[0.75, 0.25], [0.25, 0.75]]
    assert content["mended"]["steps"] == ["2 of 2 rows were divided by their sums, which were 40."]
    assert view({"text": content["channel_file"]})["matrix"] == content["matrix"]


@pytest.mark.parametrize("seed", range(5))
def test_a_repaired_channel_satisfies_its_limits(seed):
    """A repaired channel measures at most the requested epsilon and eta, and moves no further than it states."""
    rng = np.random.default_rng(seed)
    k, m = (int(one) for one in rng.integers(2, 7, 2))
    matrix = rng.dirichlet(np.full(m, 0.5), k) * rng.uniform(0.9, 1.1, (k, 1))
    epsilon, eta = float(rng.choice([1e-6, 0.1, 1.0, 5.0])), float(rng.choice([1e-3, 0.2, 1.0]))
    content = view({"text": json.dumps(matrix.tolist()), "mend": True, "epsilon": epsilon, "eta": eta})
    channel = Channel(content["matrix"])
    assert local_dp(channel).value <= epsilon
    assert total_variation(channel).value <= eta
    before = matrix / matrix.sum(axis=1, keepdims=True)
    assert np.abs(channel.matrix - before).sum(axis=1).max() / 2 == pytest.approx(content["mended"]["moved"], abs=1e-12)


def test_a_small_excess_of_epsilon_needs_a_small_repair():
    """A channel a millionth above its epsilon moves by about a millionth; one within its epsilon is unchanged."""
    over = randomized_response(3, 1.000001)
    content = view({"text": over.to_json(), "mend": True, "epsilon": 1.0})
    assert 0 < content["mended"]["moved"] < 2e-6
    assert content["epsilon"] <= 1.0
    unchanged = view({"text": over.to_json(), "mend": True, "epsilon": 1.1})
    assert unchanged["mended"] == {"steps": [], "moved": 0.0}
    assert unchanged["matrix"] == over.matrix.tolist()


@pytest.mark.parametrize("matrix", [[[1e308, 1e308], [5e-324, 0.0]], [[1e-300, 3e-300], [1.0, 1.0]]])
def test_repair_works_at_extreme_scales(matrix):
    """Rows whose sums overflow, or are subnormal, are repaired like all others, without a warning."""
    content = view({"text": json.dumps(matrix), "mend": True})
    expected = np.array([[0.5, 0.5], [1.0, 0.0]] if matrix[0][0] > 1 else [[0.25, 0.75], [0.5, 0.5]])
    assert np.allclose(content["matrix"], expected, rtol=1e-12, atol=0)


def test_the_channel_of_a_design_file_is_repaired():
    """Repairing a design file repairs its channel, keeps its labels, and drops the proof."""
    content = view({"text": TEXT, "mend": True, "epsilon": 0.5})
    assert (content["kind"], content["badge"]["colour"]) == ("channel", "grey")
    assert content["inputs"] == ["low", "middle", "high"]
    assert content["epsilon"] <= 0.5


def test_progress_is_reported_in_order():
    """The progress increases from the beginning to the end."""
    progress = []
    view({"text": TEXT}, progress.append)
    assert progress == sorted(progress)
    assert progress[0] >= 0
    assert 0.9 < progress[-1] <= 1


def test_random_texts_raise_only_documented_errors():
    """Four thousand random texts are documents, or raise one of the package's errors."""
    rng = random.Random(1)
    letters = '[]{}",:;.\t\n 0123456789-+eENainf"\u00e9\ud83d\x1b'
    for _ in range(4_000):
        text = "".join(rng.choice(letters) for _ in range(rng.randrange(30)))
        try:
            view({"text": text, "mend": rng.random() < 0.3})
        except LdpoptError as error:
            assert isinstance(error, FieldError)
