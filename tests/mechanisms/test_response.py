"""Tests of `ldpopt.mechanisms.response`: its delta is what it says, exactly, and it beats the coin where it should.

The minimax private sampler.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.divergences import (
    CHI_SQUARED,
    JENSEN_SHANNON,
    KL,
    REVERSE_KL,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
)
from ldpopt.divergences import (
    hockey_stick as hockey_stick_divergences,
)
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import (
    PrivateSampler,
    binary,
    binary_with_erasure,
    randomized_response,
    sort_partition_randomize,
    subset_selection,
    truncated_geometric,
    two_step,
)
from ldpopt.privacy import hockey_stick, local_dp, total_variation


@pytest.mark.parametrize("k", [2, 3, 10, 200])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 2.0, 50.0])
def test_randomized_response_has_its_closed_form_and_guarantees(k, epsilon):
    """e/(e+k-1) on the diagonal, 1/(e+k-1) off it; epsilon-LDP, (e-1)/(e+k-1)-TV."""
    q = randomized_response(k, epsilon)
    total = math.exp(epsilon) + k - 1
    np.testing.assert_allclose(q.matrix, np.where(np.eye(k) == 1, math.exp(epsilon), 1) / total, rtol=1e-12, atol=0)
    assert epsilon - 1e-13 * (1 + epsilon) <= local_dp(q).lower <= float(local_dp(q)) <= epsilon
    assert float(total_variation(q)) == pytest.approx(math.expm1(epsilon) / total, abs=1e-13)


def test_outputs_carry_the_labels_of_the_inputs():
    """A report is one of the answers."""
    q = randomized_response(3, 1.0, inputs=["left", "centre", "right"])
    assert q.outputs == q.inputs == ("left", "centre", "right")


@pytest.mark.parametrize("k", [1, 0, 2.0, True])
def test_bad_k_is_refused(k):
    """k is an integer of at least 2."""
    with pytest.raises(InvalidInput, match="k: expected an integer of at least 2"):
        randomized_response(k, 1.0)


@pytest.mark.parametrize(("k", "size"), [(2, 1), (5, 1), (5, 2), (5, 4), (9, 4)])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0])
def test_subset_selection_has_its_closed_form_and_guarantees(k, size, epsilon):
    """A subset has weight e if it holds the answer, else 1; epsilon-LDP with the stated total variation."""
    q = subset_selection(k, epsilon, size)
    e = math.exp(epsilon)
    total = e * math.comb(k - 1, size - 1) + math.comb(k - 1, size)
    expected = [[(e if x in subset else 1) / total for subset in q.outputs] for x in q.inputs]
    np.testing.assert_allclose(q.matrix, expected, rtol=1e-12, atol=0)
    assert epsilon - 1e-13 <= local_dp(q).lower <= float(local_dp(q)) <= epsilon
    c = size * (k - size) / (k - 1)
    assert float(total_variation(q)) == pytest.approx((e - 1) * c / (size * e + k - size), abs=1e-13)


def test_size_one_is_randomized_response():
    """Subsets of one answer are randomized response."""
    np.testing.assert_array_equal(subset_selection(4, 1.0, 1).matrix, randomized_response(4, 1.0).matrix)


@pytest.mark.parametrize(
    ("k", "epsilon", "size", "known"),
    [(5, 0.5, 2, 50.258657), (5, 1.0, 1, 12.229751), (6, 0.8, 2, None), (7, 2.0, 3, None)],
)
def test_the_variance_is_the_published_one(k, epsilon, size, known):
    """At the uniform distribution the least total variance is (k-1)^2 (de + k-d)^2 / (n k d (k-d) (e-1)^2) [YB]."""
    q, p, e = subset_selection(k, epsilon, size).matrix, np.full(k, 1 / k), math.exp(epsilon)
    information = (q / (p @ q)) @ q.T
    least = np.trace(np.linalg.inv(information) - np.outer(p, p))
    published = (k - 1) ** 2 * (size * e + k - size) ** 2 / (k * size * (k - size) * (e - 1) ** 2)
    assert least == pytest.approx(published, rel=1e-10)
    if known is not None:
        assert least == pytest.approx(known, abs=1e-6)


def test_outputs_of_subset_selection_are_tuples_of_labels():
    """Outputs are tuples of input labels."""
    assert subset_selection(3, 1.0, 2, inputs=["x", "y", "z"]).outputs == (("x", "y"), ("x", "z"), ("y", "z"))


@pytest.mark.parametrize(
    ("k", "size", "message"),
    [(4, 4, "an integer below k = 4"), (4, 0, "size"), (1, 1, "k"), (200, 100, "a matrix of at most 16777216 entries")],
)
def test_bad_sizes_are_refused(k, size, message):
    """Sizes run from 1 to k - 1, and the matrix must fit."""
    with pytest.raises(InvalidInput, match=message):
        subset_selection(k, 1.0, size)


def test_entries_are_those_of_equations_23_and_24():
    """Q(0|x) is e/(1+e) where P0 >= P1 and 1/(1+e) elsewhere; an input outside both supports counts as P0 >= P1."""
    q = binary([0.5, 0.3, 0.2, 0.0], [0.2, 0.3, 0.5, 0.0], 1.3).matrix
    high, low = 1 / (1 + math.exp(-1.3)), 1 / (1 + math.exp(1.3))
    np.testing.assert_allclose(q, [[high, low], [high, low], [low, high], [high, low]], rtol=0, atol=3e-14)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1.0, 4.0, 30.0, 500.0])
def test_the_binary_mechanism_has_tight_guarantees(epsilon):
    """The binary mechanism is epsilon-LDP and tanh(epsilon/2)-TV, and wastes almost nothing of either."""
    q = binary([0.8, 0.2], [0.3, 0.7], epsilon)
    assert epsilon - 1.5e-14 * (1 + epsilon) <= local_dp(q).lower <= float(local_dp(q)) <= epsilon
    assert float(total_variation(q)) == pytest.approx(
        math.tanh(epsilon / 2), abs=2e-14, rel=1e-14 if epsilon > 1 else 0
    )


def test_keeps_the_most_total_variation_of_any_epsilon_ldp_channel():
    """The marginals are tanh(epsilon/2) TV(P0, P1) apart, the most that epsilon-LDP allows [KOV14]."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        p0, p1 = rng.dirichlet(np.ones(5), size=2)
        q = binary(p0, p1, 0.9)
        kept = TOTAL_VARIATION(q.push(p0), q.push(p1))
        assert kept == pytest.approx(math.tanh(0.45) * TOTAL_VARIATION(p0, p1), abs=1e-13)


def test_the_binary_mechanism_has_the_labels_of_the_caller():
    """Inputs carry the labels they are given."""
    q = binary([0.8, 0.2], [0.3, 0.7], 1.0, inputs=["yes", "no"])
    assert q.inputs == ("yes", "no")
    assert q.outputs == (0, 1)


@pytest.mark.parametrize(
    ("p0", "p1", "epsilon", "message"),
    [
        ([0.5, 0.5], [1.0], 1.0, "p1: expected 2 entries"),
        ([0.5, 0.6], [0.5, 0.5], 1.0, "p0: expected entries that sum to 1"),
        ([0.5, 0.5], [0.5, 0.5], 0.0, "epsilon"),
        ([0.5, 0.5], [0.5, 0.5], math.inf, "epsilon"),
    ],
)
def test_bad_input_is_refused(p0, p1, epsilon, message):
    """What is no pair of distributions, or no epsilon, is refused by name."""
    with pytest.raises(InvalidInput, match=message):
        binary(p0, p1, epsilon)


def test_wrong_labels_are_refused():
    """Labels must be as many as the inputs, and not one text."""
    with pytest.raises(InvalidInput, match="inputs: expected 2 labels, got 3"):
        binary([0.5, 0.5], [0.5, 0.5], 1.0, inputs=["a", "b", "c"])
    with pytest.raises(InvalidInput, match="inputs: expected 2 labels"):
        binary([0.5, 0.5], [0.5, 0.5], 1.0, inputs="ab")


def test_entries_are_those_of_equations_26_to_28():
    """The binary mechanism times 1 - alpha, and the erasure alpha = 1 - eta (e + 1)/(e - 1)."""
    p0, p1, epsilon, eta = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 0.8, 0.25
    alpha = 1 - eta * (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    expected = binary(p0, p1, epsilon).erase(alpha)
    got = binary_with_erasure(p0, p1, epsilon, eta)
    assert got.outputs == expected.outputs
    np.testing.assert_allclose(got.matrix, expected.matrix, rtol=0, atol=5e-14)


def test_keeps_eta_times_total_variation():
    """Among epsilon-LDP and eta-TV channels the marginals are exactly eta TV(P0, P1) apart [GI, Thm 5]."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        p0, p1 = rng.dirichlet(np.ones(6), size=2)
        q = binary_with_erasure(p0, p1, 1.1, 0.3)
        assert TOTAL_VARIATION(q.push(p0), q.push(p1)) == pytest.approx(0.3 * TOTAL_VARIATION(p0, p1), abs=1e-13)


def test_promises_hold_for_the_floats_returned():
    """Whatever epsilon and eta, the measured guarantees of the float64 matrix stay within both, and close to them."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        epsilon = float(10 ** rng.uniform(-9, 2.69))
        most = math.tanh(epsilon / 2)
        eta = float(rng.choice([10 ** rng.uniform(-14, 0), most * rng.random(), most, 1.0]))
        q = binary_with_erasure([0.6, 0.4, 0.0], [0.4, 0.6, 0.0], epsilon, eta)
        assert float(local_dp(q)) <= epsilon
        assert float(total_variation(q)) <= eta
        assert total_variation(q).lower >= min(eta, most) - 1.5e-14


def test_a_loose_eta_erases_nothing():
    """From tanh(epsilon/2) on, eta does not bind: the erasure never happens and the rest is the binary mechanism."""
    q = binary_with_erasure([0.6, 0.4], [0.4, 0.6], 1.0, 0.9)
    assert q.matrix[:, 2].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(q.matrix[:, :2], binary([0.6, 0.4], [0.4, 0.6], 1.0).matrix, rtol=0, atol=1e-15)


def test_eta_zero_erases_everything():
    """At eta = 0 every report is the erasure."""
    assert binary_with_erasure([0.6, 0.4], [0.4, 0.6], 1.0, 0.0).matrix.tolist() == [[0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("eta", [-0.1, 1.1, math.nan, "0.5"])
def test_bad_eta_is_refused(eta):
    """eta lies in [0, 1]."""
    with pytest.raises(InvalidInput, match="eta: expected a number in"):
        binary_with_erasure([0.6, 0.4], [0.4, 0.6], 1.0, eta)


def columns(e):
    """The columns in fractions, for a rational e."""
    n = 2 * (e * e + e + 1)
    delta = (e * e - e) / n
    return delta, [
        [delta, 0, 0],
        [(e + 1) * e / n, (e + 1) / n, (e + 1) / n],
        [e / n, e * e / n, 1 / n],
        [1 / n, e * e / n, e / n],
        [(e + 1) / n, (e + 1) / n, (e + 1) * e / n],
        [0, 0, delta],
    ]


@pytest.mark.parametrize("e", [Fraction(1001, 1000), Fraction(3, 2), Fraction(2), Fraction(7), Fraction(10**6)])
def test_its_delta_is_exact_in_fractions(e):
    """Rows sum to one, no ordered pair exceeds delta, and every pair with the middle or of the two ends reaches it."""
    delta, made = columns(e)
    assert [sum(column[x] for column in made) for x in range(3)] == [1, 1, 1]
    for x, y in itertools.permutations(range(3), 2):
        assert sum(max(column[x] - e * column[y], 0) for column in made) == delta
    np.testing.assert_allclose(two_step(math.log(e)).matrix.T, np.array(made, dtype=float), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.757, 3.0, 40.0, 700.0])
def test_the_float_channel_measures_the_same(epsilon):
    """The measured hockey stick is (1 - q)/(2 (1 + q + q^2)), q = e^-epsilon, to the rounding of the matrix."""
    q = math.exp(-epsilon)
    made = two_step(epsilon)
    assert float(hockey_stick(made, epsilon)) == pytest.approx(-math.expm1(-epsilon) / 2 / (1 + q + q * q), abs=4e-15)
    assert math.isinf(float(local_dp(made)))


def test_the_two_step_mechanism_beats_the_coin_by_the_stated_share():
    """Three-piece f on three even answers: e(e-1)/((e+1)(2e^2+e-2)) above the coin, 8.355 % at epsilon = 0.757."""
    epsilon = 0.757
    e = math.exp(epsilon)
    gain = e * (e - 1) / ((e + 1) * (2 * e * e + e - 2))
    assert gain == pytest.approx(0.08355, abs=1e-5)
    best = max(g * (g - 1) / ((g + 1) * (2 * g * g + g - 2)) for g in np.exp(np.linspace(0.7, 0.8, 100001)))
    assert best == pytest.approx(gain, rel=1e-5)
    delta = (e * e - e) / (2 * (e * e + e + 1))
    assert delta < 0.5
    # The pure channel it is compared with has three blocks, as this one has.
    assert randomized_response(3, epsilon).shape == (3, 3)


def test_labels_and_refusals():
    """Three labels, and an epsilon above 0."""
    assert two_step(1.0, inputs=["a", "b", "c"]).inputs == ("a", "b", "c")
    with pytest.raises(InvalidInput):
        two_step(1.0, inputs=["a", "b"])
    for bad in (0.0, -1.0, math.nan, math.inf, "1"):
        with pytest.raises(InvalidInput, match="epsilon"):
            two_step(bad)


@pytest.mark.parametrize("k", [2, 3, 6, 7, 40])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 60.0])
def test_truncated_geometric_has_its_guarantees(k, epsilon):
    """epsilon-LDP over all pairs, and the total variation of the two extreme answers in closed form."""
    m = truncated_geometric(k, epsilon)
    assert epsilon - 1e-13 * (1 + epsilon) <= local_dp(m).lower <= float(local_dp(m)) <= epsilon
    q = math.exp(-epsilon / (k - 1))
    eta = 1 - q ** ((k - 1) / 2) if k % 2 else 1 - 2 * q ** (k / 2) / (1 + q)
    assert float(total_variation(m)) == pytest.approx(eta, abs=1e-13)
    np.testing.assert_allclose(m.matrix.sum(axis=1), 1, rtol=0, atol=1e-14)


def test_is_truncated_two_sided_geometric_noise():
    """Row x is the law of x + noise, Pr(noise = d) = (1-q)/(1+q) q^|d|, clipped to 0..k-1."""
    k, epsilon = 5, 2.0
    q = math.exp(-epsilon / (k - 1))
    noise = np.arange(-400, 401)
    weight = (1 - q) / (1 + q) * q ** np.abs(noise)
    for x, row in enumerate(truncated_geometric(k, epsilon).matrix):
        np.testing.assert_allclose(row, np.bincount(np.clip(x + noise, 0, k - 1), weight), rtol=1e-11)


def test_neighbours_are_a_fair_share_apart():
    """Neighbouring answers are epsilon/(k-1) apart: metric privacy on the line."""
    m = truncated_geometric(6, 2.5).matrix
    assert np.abs(np.diff(np.log(m), axis=0)).max() == pytest.approx(0.5, abs=1e-13)


def test_two_answers_are_the_binary_mechanism():
    """With two answers there is nothing between: randomized response."""
    expected = binary([1, 0], [0, 1], 1.0).matrix
    np.testing.assert_allclose(truncated_geometric(2, 1.0).matrix, expected, rtol=0, atol=1e-15)


def test_bad_k_is_refused_of_truncated_geometric():
    """k is an integer of at least 2."""
    with pytest.raises(InvalidInput, match="k: expected an integer of at least 2"):
        truncated_geometric(1, 1.0)


P0, P1 = [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("blocks", [[[0], [1], [2], [3]], [[0, 1], [2], [3]], [[3, 2], [1, 0]], [[0], [1, 2, 3]]])
@pytest.mark.parametrize("epsilon", [1e-7, 0.3, 1.0, 6.0, 200.0])
def test_sort_partition_randomize_has_its_closed_form_and_guarantees(blocks, epsilon):
    """The block with weight e/(e+m-1), every other with 1/(e+m-1); epsilon-LDP, (e-1)/(e+m-1)-TV."""
    q = sort_partition_randomize(P0, P1, epsilon, blocks)
    total = math.exp(epsilon) + len(blocks) - 1
    for x in range(4):
        expected = [math.exp(epsilon) / total if x in block else 1 / total for block in blocks]
        np.testing.assert_allclose(q.matrix[x], expected, rtol=1e-12, atol=0)
    assert epsilon - 1e-13 * (1 + epsilon) <= local_dp(q).lower <= float(local_dp(q)) <= epsilon
    assert float(total_variation(q)) == pytest.approx(math.expm1(epsilon) / total, abs=1e-13)


def test_special_partitions_are_known_mechanisms():
    """Singletons give randomized response, the two sides of ratio one the binary mechanism, one block a constant."""
    assert sort_partition_randomize(P0, P1, 1.0, [[0], [1], [2], [3]]) == randomized_response(4, 1.0)
    assert sort_partition_randomize(P0, P1, 1.0, [[0, 1], [2, 3]]) == binary(P0, P1, 1.0)
    assert sort_partition_randomize(P0, P1, 1.0, [[0, 1, 2, 3]]).matrix.tolist() == [[1.0]] * 4


def test_ties_and_impossible_inputs_may_go_either_way():
    """Inputs of one ratio may be split between neighbours; inputs outside both supports may be anywhere."""
    p0, p1 = [0.5, 0.2, 0.2, 0.1, 0.0], [0.1, 0.2, 0.2, 0.5, 0.0]
    for blocks in ([[0, 1], [2, 3, 4]], [[0, 2, 4], [1, 3]], [[1], [2], [0], [3, 4]], [[4], [0, 1, 2, 3]]):
        assert sort_partition_randomize(p0, p1, 1.0, blocks).shape == (5, len(blocks))


def test_disjoint_supports_sort_last():
    """A ratio of 0 or infinity is an end of the order, not an error."""
    q = sort_partition_randomize([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], 1.0, [[2], [1], [0]])
    assert float(local_dp(q)) <= 1.0


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (2, "a sequence of lists of input positions, got 2"),
        ([], "a sequence of lists"),
        ("01", "a sequence of lists"),
        ([[0, 1], [2]], "every input in a block, got 'input 3 in none'"),
        ([[0, 1], [1, 2, 3]], "each position 0 to 3 once, got 1 at block 1"),
        ([[0, 1], [2, 3, 4]], "each position 0 to 3 once, got 4 at block 1"),
        ([[0, 1], [], [2, 3]], "non-empty lists"),
        ([[0.0, 1.0], [2, 3]], "non-empty lists of input positions"),
        ([[0, 2], [1, 3]], "intervals of the sorted ratio P0/P1"),
        ([[0, 3], [1], [2]], "intervals of the sorted ratio P0/P1, got 'blocks 0 and 2 overlapping"),
    ],
)
def test_bad_blocks_are_refused(blocks, message):
    """Blocks are a partition of the inputs into intervals of the likelihood ratio."""
    with pytest.raises(InvalidInput, match=message):
        sort_partition_randomize(P0, P1, 1.0, blocks)


FINITE = [KL, TOTAL_VARIATION, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON, hockey_stick_divergences(1.5)]


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_every_set_of_distributions_is_private(k, epsilon):
    """Draws from the rows of any distributions are epsilon-LDP, and those of point masses use epsilon up."""
    rng = np.random.default_rng(k)
    sampler = PrivateSampler(k, epsilon)
    held = np.vstack([np.eye(k), rng.dirichlet(np.ones(k), 30), rng.dirichlet(np.full(k, 0.05), 30)])
    channel = sampler.channel(held)
    assert channel.shape == (len(held), k)
    assert float(local_dp(channel)) <= epsilon
    assert float(local_dp(sampler.channel(np.eye(k)))) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("f", FINITE, ids=lambda f: f.name)
def test_no_distribution_has_a_larger_risk(f):
    """The risk is attained at a point mass and exceeded by no distribution [PAL]."""
    rng = np.random.default_rng(1)
    for k, epsilon in ((2, 0.4), (4, 1.0), (7, 2.5)):
        sampler = PrivateSampler(k, epsilon)
        risk = sampler.risk(f)
        assert f(np.eye(k)[0], sampler.row(np.eye(k)[0])) == pytest.approx(risk, rel=1e-9)
        for p in rng.dirichlet(np.full(k, 0.3), 200):
            assert f(p, sampler.row(p)) <= risk * (1 + 1e-12)


def test_the_risk_agrees_with_its_printed_form():
    """The risk is e/(e+k-1) f((e+k-1)/e) + (k-1)/(e+k-1) f(0), here with the generator itself."""
    for f in FINITE:
        share = math.e / (math.e + 4)
        expected = share * f.generator(1 / share) + (1 - share) * f.at_zero
        assert PrivateSampler(5, 1.0).risk(f) == pytest.approx(expected, rel=1e-12)
    assert math.isinf(PrivateSampler(5, 1.0).risk(REVERSE_KL))


def test_the_row_is_the_nearest_of_all_with_its_floor():
    """Among distributions with entries of at least 1/(e + k - 1) the row has the least divergence from P, for all f."""
    rng = np.random.default_rng(2)
    sampler = PrivateSampler(5, 1.2)
    floor = 1 / (math.exp(1.2) + 4)
    for p in rng.dirichlet(np.full(5, 0.4), 20):
        row = sampler.row(p)
        assert row.sum() == pytest.approx(1.0, abs=1e-14)
        assert row.min() >= floor * (1 - 1e-12)
        for q in floor + (1 - 5 * floor) * rng.dirichlet(np.full(5, 0.5), 40):
            for f in FINITE:
                assert f(p, row) <= f(p, q) + 1e-12


def test_nearly_uniform_distributions_are_left_as_they_are():
    """Where no probability is below the floor, the draw is from P itself."""
    p = np.array([0.3, 0.3, 0.4])
    assert PrivateSampler(3, 2.0).row(p) == pytest.approx(p, abs=1e-15)


def test_bad_sizes_and_distributions_are_refused():
    """Sizes, levels and distributions are checked."""
    with pytest.raises(InvalidInput, match="k: expected"):
        PrivateSampler(1, 1.0)
    with pytest.raises(InvalidInput, match="epsilon"):
        PrivateSampler(3, 0.0)
    with pytest.raises(InvalidInput, match="3 entries"):
        PrivateSampler(3, 1.0).row([0.5, 0.5])


@pytest.mark.parametrize("make", [binary, lambda p0, p1, epsilon: binary_with_erasure(p0, p1, epsilon, 0.2)])
def test_distributions_with_labels_are_matched_by_them(make):
    """Series in different orders mean the same as arrays in one order, and the labels stay."""
    pandas = pytest.importorskip("pandas")
    p0 = pandas.Series([0.7, 0.2, 0.1], index=["a", "b", "c"])
    p1 = pandas.Series([0.7, 0.2, 0.1], index=["c", "b", "a"])
    channel = make(p0, p1, 1.0)
    assert channel.inputs == ("a", "b", "c")
    np.testing.assert_array_equal(channel.matrix, make([0.7, 0.2, 0.1], [0.1, 0.2, 0.7], 1.0).matrix)
