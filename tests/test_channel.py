"""The channel: what is accepted, what it does to distributions, and what is made of it."""

import copy
import json
import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import chisquare

from ldpopt.channel import Channel, as_channel
from ldpopt.divergences import KL, TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import local_dp, total_variation

Q = Channel([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], ["no", "yes"], ["a", "b", "c"])


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


def normalise(raw):
    return raw / raw.sum(axis=1, keepdims=True)


@st.composite
def channels(draw, k=None, positive=False):
    k = k or draw(st.integers(1, 5))
    m = draw(st.integers(1, 5))
    raw = draw(hnp.arrays(float, (k, m), elements=st.floats(1 / 64 if positive else 0, 1, width=32)))
    raw[:, 0] += raw.sum(axis=1) == 0
    return Channel(normalise(raw))


def priors(k):
    return hnp.arrays(float, k, elements=st.floats(0.01, 1)).map(lambda w: w / w.sum())


# -- what is accepted ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], "channel: expected rows that sum to 1 within 1e-09, got 0.9 at row 0"),
        ([[0.5, 0.5], [0.5, 0.5 + 2e-9]], "channel: expected rows that sum to 1 within 1e-09, got 1.000000002"),
        ([[1.5, -0.5]], "channel: expected non-negative entries, got -0.5 at row 0, column 1"),
        ([[0.5, math.nan]], "channel: expected finite numbers, got nan at entry (0, 1)"),
        ([[math.inf, 0]], "channel: expected finite numbers, got inf at entry (0, 0)"),
        ([0.5, 0.5], "channel: expected 2 dimensions, got shape (2,)"),
        ([[[1.0]]], "channel: expected 2 dimensions, got shape (1, 1, 1)"),
        ([], "channel: expected 2 dimensions, got shape (0,)"),
        ([[]], "channel: expected at least one input and one output, got shape (1, 0)"),
        (np.zeros((0, 2)), "channel: expected at least one input and one output, got shape (0, 2)"),
        ([["a", "b"]], "channel: expected an array of numbers, got [['a', 'b']]"),
        ([[0.5, 0.5], [1.0]], "channel: expected an array of numbers, got [[0.5, 0.5], [1.0]]"),
        (None, "channel: expected"),
    ],
)  # fmt: skip
def test_matrices_that_are_not_channels_are_refused(matrix, message):
    """Every matrix that is not a channel is an error that states the entry and the reason."""
    with says(message):
        Channel(matrix)
    with says(message):
        as_channel(matrix)


def test_labels_are_checked():
    """Labels must be as many as rows and columns, and distinct."""
    with says("inputs: expected 2 labels, got 1"):
        Channel(np.eye(2), ["a"])
    with says("outputs: expected distinct labels, got 'a' twice"):
        Channel(np.eye(2), None, ["a", "a"])


def test_a_row_within_the_tolerance_is_unchanged():
    """A row that is off by less than 1e-9 is neither refused nor changed."""
    matrix = np.array([[0.5, 0.5 + 9e-10], [0.5, 0.5 - 9e-10]])
    assert np.array_equal(Channel(matrix).matrix, matrix)


def test_a_channel_is_frozen():
    """The matrix is a read-only copy; fields cannot be set; a copy and a pickle are frozen too."""
    matrix = np.eye(2)
    q = Channel(matrix)
    matrix[0, 0] = 0.5
    assert q.matrix[0, 0] == 1
    with pytest.raises(AttributeError):
        q.inputs = ("a", "b")
    for same in (q, copy.deepcopy(q), copy.copy(q), pickle.loads(pickle.dumps(q))):
        assert same == q
        with pytest.raises(ValueError, match="read-only"):
            same.matrix[0, 0] = 0.5


def test_channels_are_equal_when_matrix_and_labels_are():
    """Channels are equal when matrix and labels are, and then hash alike; zero has one sign."""
    assert Channel([[0.0, 1.0]]) == Channel([[-0.0, 1.0]])
    assert hash(Channel([[0.0, 1.0]])) == hash(Channel([[-0.0, 1.0]]))
    assert Channel(np.eye(2)) != Channel(np.eye(2), ["a", "b"])
    assert Channel(np.eye(2)) != Channel(np.eye(2)[::-1])
    assert Channel(np.eye(2)) != "channel"


def test_a_channel_is_an_array_and_an_array_a_channel():
    """numpy takes the matrix; functions take arrays; text is refused with advice."""
    assert np.array_equal(np.asarray(Q), Q.matrix)
    assert np.asarray(Q, dtype=np.float32).dtype == np.float32
    mutable = np.array(Q)
    mutable[0, 0] = 9
    assert Q.matrix[0, 0] == 0.5
    with pytest.raises(ValueError, match="needs a copy"):
        np.array(Q, dtype=np.float32, copy=False)
    assert as_channel(Q) is Q
    assert as_channel([[1.0]]) == Channel([[1.0]])
    with says("channel: expected a Channel or an array, got text (read a file with ldpopt.io.read_channel)"):
        as_channel("q.json")


def test_shape_counts_inputs_and_outputs_and_rank_shows_identifiability():
    """The shape is inputs by outputs; the rank tells whether the inputs are identifiable."""
    assert Q.shape == (2, 3)
    assert Q.rank == 2
    assert Channel([[0.5, 0.5], [0.5, 0.5]]).rank == 1


# -- distributions ---------------------------------------------------------------------------------


def test_push_is_the_marginal():
    """push(p) is the sum over inputs of p[x] Q[x, y]."""
    assert Q.push([0.25, 0.75]) == pytest.approx([0.2, 0.225, 0.575], rel=1e-15)
    with says("p: expected 2 entries, got 3"):
        Q.push([0.2, 0.3, 0.5])
    with says("p: expected entries that sum to 1"):
        Q.push([1, 1])


@given(channels(k=3), priors(3))
def test_posterior_is_bayes(q, prior):
    """posterior[y, x] = prior[x] Q[x, y] / Pr(y) for reports that occur, NaN rows for the others."""
    posterior, marginal = q.posterior(prior), q.push(prior)
    for y in range(q.shape[1]):
        if marginal[y] == 0:
            assert np.isnan(posterior[y]).all()
        else:
            for x in range(3):
                assert posterior[y, x] == pytest.approx(prior[x] * q.matrix[x, y] / marginal[y], rel=1e-12)
    with says("prior: expected 3 entries, got 2"):
        q.posterior([0.5, 0.5])


# -- channels from channels ------------------------------------------------------------------------


@given(st.data(), channels(k=3))
def test_then_is_the_composition(data, q):
    """(Q then W)[x, z] is the sum over y of Q[x, y] W[y, z], with the outer labels."""
    w = data.draw(channels(k=q.shape[1]))
    made = q.then(w)
    np.testing.assert_allclose(made.matrix, np.einsum("xy,yz->xz", q.matrix, w.matrix), atol=1e-15)
    assert (made.inputs, made.outputs) == (q.inputs, w.outputs)


@given(channels(positive=True), st.data())
def test_post_processing_never_raises_a_guarantee(q, data):
    """[GI, section VII] Post-processing raises neither epsilon nor eta."""
    made = q.then(data.draw(channels(k=q.shape[1])))
    assert local_dp(made).lower <= local_dp(q).value + 1e-13
    assert total_variation(made).lower <= total_variation(q).value + 1e-14


def test_then_needs_an_input_for_each_output():
    """A post-processing of another size is an error."""
    with says("post-processing: expected 3 inputs, one for each output, got 2"):
        Q.then(np.eye(2))
    with says("post-processing: expected rows that sum to 1"):
        Q.then(np.ones((3, 3)))


@given(channels(positive=True), channels(positive=True))
def test_a_product_adds_epsilons(q, r):
    """The product of two channels pairs inputs and outputs; probabilities multiply and epsilons add."""
    made = q.product(r)
    assert made.inputs[r.shape[0] - 1] == (0, r.shape[0] - 1)
    for (x, a), row in zip(made.inputs, made.matrix, strict=True):
        for (y, b), value in zip(made.outputs, row, strict=True):
            assert value == pytest.approx(q.matrix[x, y] * r.matrix[a, b], rel=1e-14)
    assert local_dp(made).value == pytest.approx(local_dp(q).value + local_dp(r).value, rel=1e-9, abs=1e-14)


@given(channels(k=3), channels(k=3), st.floats(0, 1))
def test_a_public_coin_mixes_divergences(q, r, weight):
    """A public coin keeps outputs apart: every divergence of the reports is the mean of the two."""
    made = q.coin(r, weight)
    assert made.outputs == (*((0, y) for y in q.outputs), *((1, y) for y in r.outputs))
    p0, p1 = [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]
    for f in (KL, TOTAL_VARIATION):
        mean = sum(w * f(c.push(p0), c.push(p1)) for w, c in ((weight, q), (1 - weight, r)) if w > 0)
        assert f(made.push(p0), made.push(p1)) == pytest.approx(mean, rel=1e-9, abs=1e-14)


def test_a_coin_needs_the_same_inputs():
    """The other channel must have as many inputs, and the weight must be a probability."""
    with says("other channel: expected 2 inputs, got 3"):
        Q.coin(np.eye(3), 0.5)
    for weight in (-0.1, 1.1, math.nan):
        with says("weight: expected a number in [0, 1]"):
            Q.coin(Q, weight)


@given(channels(positive=True), st.floats(0, 1), st.floats(0, 1))
def test_erasing_scales_total_variation(q, alpha, beta):
    """[GI, Thm 8] Erasing with probability alpha multiplies eta by 1 - alpha; erasing twice is erasing once."""
    once = q.erase(alpha)
    assert once.outputs == (*q.outputs, "erased")
    assert once.matrix[:, -1] == pytest.approx(alpha, abs=1e-15)
    assert total_variation(once).value == pytest.approx((1 - alpha) * total_variation(q).value, rel=1e-9, abs=1e-14)
    twice = once.erase(beta)
    assert twice.outputs == once.outputs
    assert twice.matrix[:, -1] == pytest.approx(1 - (1 - alpha) * (1 - beta), abs=1e-14)


def test_erasing_needs_a_probability_and_a_free_label():
    """alpha is a probability, and an informative output may not be called erased already."""
    with says("alpha: expected a number in [0, 1], got 1.5"):
        Q.erase(1.5)
    with says("erase: expected an uninformative column"):
        Channel([[0.5, 0.5], [0.1, 0.9]], None, ["erased", "x"]).erase(0.1)


@given(channels(positive=True), st.data())
def test_merging_undoes_a_split_of_outputs(q, data):
    """merge() undoes a public split of outputs: the guarantees stay, and no two columns are proportional."""
    share = data.draw(st.floats(0.1, 0.9))
    split = Channel(np.hstack([share * q.matrix, (1 - share) * q.matrix, np.zeros((q.shape[0], 1))]))
    merged = split.merge()
    assert merged.shape[1] <= q.shape[1]
    assert local_dp(merged).value == pytest.approx(local_dp(q).value, rel=1e-9, abs=1e-12)
    assert total_variation(merged).value == pytest.approx(total_variation(q).value, rel=1e-9, abs=1e-12)
    assert merged.merge() == merged


def test_merging_keeps_rare_distinctions():
    """Outputs whose columns differ only in a tiny entry, or in a zero, stay apart."""
    for tiny in (1e-14, 1e-300):
        q = Channel([[0.5, 0.5, 0.0], [tiny, 0.0, 1.0]])
        assert q.merge().shape == (2, 3)
        assert local_dp(q.merge()).value == local_dp(q).value


def test_a_merged_group_has_its_first_label():
    """A group becomes one output with its first label, in the place of that one; other outputs stay."""
    merged = Q.merge([["c", "a"]])
    assert merged.outputs == ("b", "c")
    assert merged.matrix == pytest.approx(np.array([[0.3, 0.7], [0.2, 0.8]]))
    assert Q.merge([["a"], ["b", "c"], []]).outputs == ("a", "b")


@pytest.mark.parametrize(
    ("groups", "got"), [([["a", "x"]], "'x'"), ([["a", "a"]], "'a'"), ([["a", "b"], ["b", "c"]], "'b'"),
                        ([["a", "b"], ["c", "a"]], "'a'"), ([["a", "a"], ["b"]], "'a'")],
)  # fmt: skip
def test_groups_that_are_none(groups, got):
    """Unknown labels and labels named twice are errors; nothing is counted twice."""
    with says(f"merge groups: expected labels of outputs, each in one group and once, got {got}"):
        Q.merge(groups)


# -- simulation ------------------------------------------------------------------------------------


def test_samples_have_the_distribution_of_the_channel():
    """Reports of 60,000 answers fit each row of the channel (chi-square, all p-values above 1e-4)."""
    rng = np.random.default_rng(20240611)
    q = Channel(normalise(rng.random((5, 7)) + 0.05))
    answers = np.repeat(np.arange(5), 12_000)
    reports = q.sample(rng.permutation(answers), np.random.default_rng(1))
    reports = q.sample(answers, np.random.default_rng(1))
    for x in range(5):
        counts = np.bincount(reports[answers == x], minlength=7)
        assert chisquare(counts, 12_000 * q.matrix[x] / q.matrix[x].sum()).pvalue > 1e-4


@given(channels(), st.integers(0, 2**32))
def test_impossible_reports_are_never_drawn(q, seed):
    """A report of probability zero never occurs."""
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, q.shape[0], 200)
    reports = q.sample_indices(answers, rng)
    assert (q.matrix[answers, reports] > 0).all()


class Extreme(np.random.Generator):
    """A generator whose uniforms are the extreme ones."""

    value = 0.0

    def random(self, size=None):
        return np.full(size, self.value)


@pytest.mark.parametrize("value", [0.0, np.nextafter(1.0, 0.0)])
def test_the_extreme_uniforms_draw_possible_reports(value):
    """The smallest and the largest uniform draw reports that can occur, for every one of many rows."""
    rng = Extreme(np.random.PCG64(0))
    rng.value = value
    q = Channel(np.tile([0.0, 0.5, 0.5, 0.0], (1000, 1)))
    reports = q.sample_indices(np.arange(1000), rng)
    assert set(reports.tolist()) == ({1} if value == 0 else {2})


def test_labels_in_labels_out():
    """One label gives one label, an array an array of its shape, tuples and mixed kinds included."""
    certain = Channel(np.eye(2), ["no", "yes"], ["N", "Y"])
    rng = np.random.default_rng(0)
    assert certain.sample("yes", rng) == "Y"
    assert certain.sample(["yes", "no"], rng).tolist() == ["Y", "N"]
    assert certain.sample(np.array([["yes"], ["no"]]), rng).tolist() == [["Y"], ["N"]]
    assert certain.sample([], rng).shape == (0,)
    pairs = Channel(np.eye(2)).product(np.eye(2))
    assert pairs.sample((1, 0), rng) == (1, 0)
    assert pairs.sample([(1, 0), (0, 1)], rng).tolist() == [(1, 0), (0, 1)]
    mixed = Channel(np.eye(3), ["a", 1, (0, "b")], ["x", 2, (0, "c")])
    assert mixed.sample(["a", 1, (0, "b")], rng).tolist() == ["x", 2, (0, "c")]
    assert mixed.sample(["a", 1], rng).tolist() == ["x", 2]
    assert Channel(np.eye(2)).sample(np.int64(1), rng) == 1
    assert type(Channel(np.eye(2)).sample(1, rng)) is int
    assert Channel([[1.0], [1.0]]).sample([0, 1, 1], rng).tolist() == [0, 0, 0]


def test_sampling_is_reproducible():
    """One seed gives one simulation."""
    x = np.zeros(50, dtype=int)
    first, second = (Channel(Q.matrix).sample(x, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first, second)


def test_bad_answers_and_generators_are_refused():
    """Unknown answers, positions out of range and values that are not generators or seeds are refused."""
    rng = np.random.default_rng(0)
    with says("answer: expected one of the inputs 'no', 'yes', got 'maybe'"):
        Q.sample("maybe", rng)
    with says("answer: expected one of the inputs 'no', 'yes', got 'maybe'"):
        Q.sample(["no", "maybe"], rng)
    with says("answer: expected one of the inputs 0, 1, got 2"):
        Channel(np.eye(2)).sample(np.array([0, 2]), rng)
    for wrong in ([0, 2], [-1], [0.5]):
        with says("answers: expected positions 0 to 1, got "):
            Q.sample_indices(np.array(wrong), rng)
    for wrong in (-1, 0.5, True, "0", np.random.RandomState(0)):
        with says("rng: expected a numpy.random.Generator, a seed (an integer of at least 0) or None, got "):
            Q.sample("no", wrong)


def test_a_seed_stands_for_its_generator():
    """An integer gives the reports of numpy's generator with that seed; None gives others each time."""
    answers = ["no", "yes"] * 50
    assert (Q.sample(answers, 3) == Q.sample(answers, np.random.default_rng(3))).all()
    assert (Q.sample(answers, 3) != Q.sample(answers)).any()


def test_a_channel_is_indexed_by_its_labels():
    """`channel[x, y]` is an entry, a row or a column of the matrix; other indices are refused."""
    q = Channel([[0.75, 0.25], [0.4, 0.6]], ["a", ("b", 1)], [1, 0])
    assert q["a", 1] == 0.75
    assert q[("b", 1), 0] == 0.6
    assert q["a", :].tolist() == [0.75, 0.25]
    assert q[:, 0].tolist() == [0.25, 0.6]
    assert (q[:, :] == q.matrix).all()
    for wrong in ("a", 0, ("a",), ("a", 1, 1), ("a", "c"), ("a", 2), (slice(1), 0)):
        with pytest.raises(InvalidInput):
            q[wrong]
    with pytest.raises(TypeError):
        iter(q)


def test_channels_in_a_row_are_a_product_of_matrices():
    """`first @ second` lets the report of the first channel be the answer of the second."""
    q = Channel([[0.75, 0.25], [0.4, 0.6]], ["a", "b"], ["c", "d"])
    assert q @ q == q.then(q)
    assert (q @ [[1.0, 0.0], [0.5, 0.5]]).inputs == ("a", "b")
    with pytest.raises(InvalidInput, match="post-processing"):
        q @ [[1.0]]


# -- files -----------------------------------------------------------------------------------------

LABEL = st.text(max_size=4) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()


@settings(max_examples=25)
@given(channels(), st.data())
def test_channels_survive_a_json_round_trip(q, data):
    """to_json and from_json give the same matrix to the last bit and the same labels, tuples included."""
    k, m = q.shape
    labels = LABEL | st.tuples(LABEL, LABEL)
    inputs = data.draw(st.lists(labels, min_size=k, max_size=k, unique_by=lambda x: x))
    outputs = data.draw(st.lists(labels, min_size=m, max_size=m, unique_by=lambda x: x))
    q = Channel(q.matrix, inputs, outputs)
    again = Channel.from_json(q.to_json())
    assert again == q
    assert [type(x) for x in again.inputs] == [type(x) for x in q.inputs]


def test_the_file_states_its_format_and_version():
    """The JSON has the format, the version, the orientation, labels, the matrix and the claimed guarantees."""
    data = json.loads(Q.to_json([local_dp(Q)]))
    assert list(data) == ["format", "version", "orientation", "inputs", "outputs", "matrix", "guarantees"]
    assert (data["format"], data["version"]) == ("ldpopt-channel", 1)
    assert data["orientation"] == "matrix[i][j] = Pr(outputs[j] | inputs[i])"
    assert data["matrix"] == Q.matrix.tolist()
    assert data["guarantees"][0]["notion"] == "local_dp"
    infinite = json.loads(Channel(np.eye(2)).to_json([local_dp(np.eye(2))]))
    assert infinite["guarantees"][0]["value"] == "inf"


def edit(**changes):
    data = json.loads(Q.to_json())
    for key, value in changes.items():
        if value is ...:
            del data[key]
        else:
            data[key] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "channel file: expected valid JSON"),
        ("[]", 'channel file: expected an object with "format": "ldpopt-channel", got a list'),
        ("null", 'channel file: expected an object with "format": "ldpopt-channel"'),
        (edit(format="other"), 'channel file: expected an object with "format": "ldpopt-channel"'),
        (edit(format=...), 'channel file: expected an object with "format": "ldpopt-channel"'),
        (edit(version=2), "channel file: expected version 1, got 2"),
        (edit(version=...), "channel file: expected version 1, got a version that is not an integer"),
        (edit(more=1), "expected only the fields format, guarantees, inputs, matrix, orientation, outputs"),
        (edit(orientation="matrix[j][i]"), "channel file: expected the orientation 'matrix[i][j] = Pr("),
        (edit(inputs=...), "channel file: expected a list 'inputs', got 'NoneType'"),
        (edit(outputs={}), "channel file: expected a list 'outputs', got 'dict'"),
        (edit(matrix="x"), "channel file: expected a list 'matrix', got 'str'"),
        (edit(matrix=[]), "channel: expected 2 dimensions"),
        (edit(matrix=[[1, 0], [0, 1]]), "outputs: expected 2 labels, got 3"),
        (edit(matrix=[[0.5, 0.3, 0.2]] * 3), "inputs: expected 3 labels, got 2"),
        (edit(matrix=[[0.5, 0.3, 0.3], [0, 0, 1]]), "channel: expected rows that sum to 1 within 1e-09"),
        (edit(matrix=[["0.5", 0.3, 0.2], [0, 0, 1]]), "channel: expected an array of numbers"),
        (edit(matrix=[[None, 0.3, 0.7], [0, 0, 1]]), "channel: expected finite numbers, got nan at entry (0, 0)"),
        (edit(matrix=[[0.5, 0.3, 0.2], [0, 1]]), "channel: expected an array of numbers"),
        (edit(inputs=["a", "a"]), "inputs: expected distinct labels, got 'a' twice"),
        (edit(inputs=["a", None]), "expected labels that are strings, numbers or lists of them, got None"),
        (edit(inputs=["a", {}]), "channel file: expected labels that are strings, numbers or lists of them, got {}"),
        (edit().replace('"version"', '"format"'), "JSON object: expected distinct keys, got 'format' twice"),
        (edit().replace("0.5", "NaN"), "JSON number: expected a finite double, got 'NaN'"),
        (b"\xff\xfe", "channel file: expected UTF-8 text"),
    ],
)  # fmt: skip
def test_malformed_channel_files_are_refused(text, message):
    """Every malformed channel file is an InvalidInput that says what is wrong."""
    with says(message):
        Channel.from_json(text)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=3), st.lists, max_leaves=8), st.data())
def test_any_value_in_any_field_is_a_channel_or_an_error(value, data):
    """Arbitrary values in the fields of a file give a channel or an InvalidInput; nothing else escapes."""
    field = data.draw(
        st.sampled_from(["format", "version", "orientation", "inputs", "outputs", "matrix", "guarantees"])
    )
    try:
        q = Channel.from_json(edit(**{field: value}))
    except InvalidInput as error:
        assert str(error)
    else:
        assert field == "guarantees" or q.shape == (2, 3)


# -- looks -----------------------------------------------------------------------------------------


def test_the_repr_counts_inputs_and_escapes_labels():
    """The repr counts, with the right plural; the notebook form shows escaped labels and four digits."""
    assert repr(Q) == "Channel(2 inputs -> 3 outputs)"
    assert repr(Channel([[1.0]])) == "Channel(1 input -> 1 output)"
    html = Channel([[0.12345, 0.87655]], ["<b>"], ["x & y", "z"])._repr_html_()
    assert "&lt;b&gt;" in html
    assert "x &amp; y" in html
    assert "0.1235" in html or "0.1234" in html
    big = Channel(np.full((50, 40), 1 / 40))._repr_html_()
    assert big.count("<tr>") == 21


def test_the_inverse_is_that_of_a_regular_square_channel():
    """`inverse` times the matrix is one; it is computed once, cannot be written to, and is no part of what is saved."""
    channel = randomized_response(5, 1.0)
    assert np.allclose(channel.inverse @ channel.matrix, np.eye(5), atol=1e-14)
    assert channel.inverse is channel.inverse
    with pytest.raises(ValueError, match="read-only"):
        channel.inverse[0, 0] = 0.0
    again = pickle.loads(pickle.dumps(channel))
    assert "inverse" not in vars(again)
    assert again == channel == randomized_response(5, 1.0)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.5, 0.5], [0.5, 0.5]],
        [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]],
        [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]],
        [[0.5 + 1e-14, 0.5 - 1e-14], [0.5 - 1e-14, 0.5 + 1e-14]],
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
    ],
)
def test_other_channels_have_no_inverse(matrix):
    """Neither singular or nearly singular channels nor such as are not square."""
    assert Channel(matrix).inverse is None
