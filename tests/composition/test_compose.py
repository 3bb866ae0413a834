import itertools
import math

import mpmath
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.composition import FinitePair, compose, compose_same_input, k_fold
from ldpopt.errors import InvalidInput


def brute(pairs, epsilon):
    """The hockey stick of a product of pairs by enumeration, the larger direction."""
    p = np.array([math.prod(c) for c in itertools.product(*(pair.p for pair in pairs))])
    q = np.array([math.prod(c) for c in itertools.product(*(pair.q for pair in pairs))])
    return max(np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum())


def random_pairs(seed, sizes):
    rng = np.random.default_rng(seed)
    return [FinitePair(*rng.dirichlet(np.ones(size) * 2, 2)) for size in sizes]


@pytest.mark.parametrize("seed", range(4))
def test_heterogeneous_pairs_agree_with_enumeration(seed):
    """Any list of finite pairs composes to the hockey stick of its product, bracketed tightly."""
    pairs = random_pairs(seed, [3, 4, 2, 5])
    composed = compose(pairs)
    assert composed.exact
    for epsilon in (0.0, 0.4, 1.3, 2.6):
        exact, found = brute(pairs, epsilon), composed.hockey_stick(epsilon)
        assert found.lower <= exact * (1 + 1e-14)
        assert exact * (1 - 1e-14) <= found.value
        assert found.value == pytest.approx(exact, rel=1e-10, abs=1e-16)


@pytest.mark.parametrize("parameters", [(0.1, 0.0, 0.7 * math.tanh(0.05)), (0.5, 1e-4, 0.1), (1.0, 0.0, None)])
def test_transform_agrees_with_the_recurrence(parameters):
    """Two independent methods, tilted transforms and the three-term recurrence, agree in every tail."""
    count = 120
    exact, composed = k_fold(*parameters, count), compose([parameters], count)
    for j in (0, 3, 17, 60, 119):
        at = j * parameters[0]
        assert composed.delta_at(at) == pytest.approx(exact.deltas[j], rel=1e-7)
        found = composed.hockey_stick(at)
        assert found.lower <= exact.deltas[j] <= found.value * (1 + 1e-12)
    for delta in (0.1, 1e-3 + 0.05, 0.0125):
        assert composed.epsilon_at(delta) == pytest.approx(exact.epsilon_at(delta), rel=1e-9)


def test_the_transform_keeps_eight_digits_of_a_deep_tail():
    """A delta of 1e-88 keeps eight digits."""
    parameters = (0.1, 0.0, 0.7 * math.tanh(0.05))
    exact, composed = k_fold(*parameters, 200), compose([parameters], 200)
    assert exact.deltas[199] < 1e-87
    assert composed.delta_at(19.9) == pytest.approx(exact.deltas[199], rel=1e-7)


@pytest.mark.parametrize("count", [10, 100, 1000, 10_000, 10**6])
def test_large_counts(count):
    """epsilon_at agrees with Theorem 2's own method at any count."""
    parameters = (0.1, 0.0, 0.7 * math.tanh(0.05))
    if count <= 10_000:
        assert compose([parameters], count).epsilon_at(1e-6) == pytest.approx(
            k_fold(*parameters, count).epsilon_at(1e-6), rel=1e-9
        )
    assert compose([parameters], count).epsilon_at(1e-6) < count * 0.1


def test_commensurable_parameters_share_a_lattice():
    """Commensurable epsilons share a lattice: 40 of 0.1, 30 of 0.2 and 20 of 0.3 by polynomial multiplication."""
    groups = [((0.1, 0.0, 0.04), 40), ((0.2, 0.0, 0.05), 30), ((0.3, 0.0, 0.1), 20)]
    composed = compose([parameters for parameters, n in groups for _ in range(n)])
    assert composed.exact
    law = np.ones(1)
    for (epsilon, _, eta), n in groups:
        step = round(epsilon / 0.1)
        mass = eta / math.tanh(epsilon / 2)
        atoms = np.zeros(2 * step + 1)
        atoms[0], atoms[step], atoms[-1] = mass / (1 + math.exp(epsilon)), 1 - mass, mass / (1 + math.exp(-epsilon))
        for _ in range(n):
            law = np.convolve(law, atoms)
    losses = 0.1 * (np.arange(len(law)) - len(law) // 2)
    for epsilon in (0.0, 1.0, 3.33, 6.0):
        exact = (law * -np.expm1(np.minimum(epsilon - losses, 0.0))).sum()
        assert composed.delta_at(epsilon) == pytest.approx(exact, rel=1e-8)


def test_grid_brackets_the_truth():
    """On a grid the stated bracket contains the exact value, and it is narrow: 60 folds by multinomial enumeration."""
    pair = FinitePair([0.5, 0.3, 0.2], [0.22, 0.37, 0.41])
    count = 60
    composed = compose([pair], count)
    a, b = np.meshgrid(np.arange(count + 1), np.arange(count + 1), indexing="ij")
    keep = a + b <= count
    a, b = a[keep], b[keep]
    c = count - a - b
    log = np.array([math.lgamma(i + 1) for i in range(count + 1)])
    ways = log[count] - log[a] - log[b] - log[c]
    log_p = ways + np.stack([a, b, c], 1) @ np.log(pair.p)
    log_q = ways + np.stack([a, b, c], 1) @ np.log(pair.q)
    assert not composed.exact
    for epsilon in (0.0, 5.0, 12.0, 25.0):
        exact = max(
            np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0).sum(),
            np.maximum(np.exp(log_q) - np.exp(epsilon + log_p), 0).sum(),
        )
        found = composed.hockey_stick(epsilon)
        assert found.lower <= exact <= found.value
        assert found.value == pytest.approx(exact, rel=1e-6)
        assert found.lower == pytest.approx(exact, rel=0.1)
    epsilon = composed.approximate_dp(1e-5)
    assert epsilon.lower <= epsilon.value
    assert epsilon.lower == pytest.approx(epsilon.value, rel=5e-3)
    assert composed.delta_at(epsilon.value) <= 1e-5


def test_count_is_that_many_calls():
    """count = n equals n separate mechanisms, bit for bit, in any order."""
    q, other = [[0.75, 0.25], [0.25, 0.75]], (0.3, 1e-5, 0.1)
    once = compose([q, other, q, q, other, other])
    counted = compose([other, q], count=3)
    for delta in (0.1, 1e-3):
        assert once.epsilon_at(delta) == counted.epsilon_at(delta)
    assert once.delta_at(0.7) == counted.delta_at(0.7)
    assert once.local_dp() == counted.local_dp()
    assert once.renyi([1.0, 3.0]) == counted.renyi([1.0, 3.0])


def test_channels_are_dominated_adaptively():
    """The composition of dominating pairs is at least that of every pair of rows of the product channel."""
    rng = np.random.default_rng(5)
    first, second = Channel(rng.dirichlet(np.ones(4), 3)), Channel(rng.dirichlet(np.ones(3), 4))
    product, composed = first.product(second).matrix, compose([first, second])
    for epsilon in (0.0, 0.5, 2.0):
        worst = max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a in product for b in product)
        assert worst <= composed.delta_at(epsilon) * (1 + 1e-12)
    ternary = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    twice = Channel(ternary).product(ternary).matrix
    for epsilon in (0.0, 1.2):
        worst = max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a in twice for b in twice)
        assert compose([ternary], 2).delta_at(epsilon) == pytest.approx(worst, rel=1e-9)


def test_same_input_is_exact_and_no_worse():
    """The same answer twice through a channel: the product of each pair of rows, below the adaptive bound."""
    rng = np.random.default_rng(6)
    q = rng.dirichlet(np.ones(4), 3)
    found = compose_same_input([q], count=2)
    assert set(found) == {(0, 1), (0, 2), (1, 2)}
    adaptive = compose([q], 2)
    for (a, b), composed in found.items():
        for epsilon in (0.0, 0.8):
            exact = brute([FinitePair(q[a], q[b])] * 2, epsilon)
            assert composed.delta_at(epsilon) == pytest.approx(exact, rel=1e-10)
            assert composed.delta_at(epsilon) <= adaptive.delta_at(epsilon) * (1 + 1e-12)


def test_epsilon_is_the_inverse_and_safe():
    """delta at epsilon_at(delta) fits, on atoms, lattices and grids; zero delta gives the pure sum."""
    for composed in (
        compose(random_pairs(1, [3, 4])),
        compose([(0.2, 0.0, 0.03)], 500),
        compose(random_pairs(2, [4]), 40),
    ):
        for delta in (0.2, 1e-4, 1e-9):
            epsilon = composed.epsilon_at(delta)
            assert composed.delta_at(epsilon) <= delta * (1 + 1e-12)
            if epsilon > 0:
                assert composed.delta_at(epsilon * (1 - 1e-5)) > delta
        assert composed.epsilon_at(0.0) == pytest.approx(composed.local_dp().value, rel=1e-9)
        assert composed.epsilon_at(1.0) == 0.0


def test_infinite_losses_remain_at_every_epsilon():
    """A mechanism that reveals with probability delta leaves 1 - (1 - delta)^k at every epsilon."""
    composed = compose([(0.1, 0.01)], 50)
    assert composed.delta_at(math.inf) == pytest.approx(1 - 0.99**50, rel=1e-12)
    assert math.isinf(composed.epsilon_at(0.2))
    assert math.isinf(composed.local_dp().value)
    reveal = compose([np.eye(2)])
    assert reveal.delta_at(5.0) == 1.0
    assert math.isinf(reveal.epsilon_at(0.5))


def test_order_and_constant_channels_are_irrelevant():
    """A constant channel adds nothing; permuting the list changes nothing."""
    q, constant = [[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.5, 0.5]]
    assert compose([q, constant, q]).delta_at(0.3) == pytest.approx(compose([q, q]).delta_at(0.3), rel=1e-13)
    assert compose([constant]).epsilon_at(0.0) == 0.0


@pytest.mark.parametrize("bad", ["abc", [], FinitePair([1.0], [1.0]), [(1.0, 0.0, 0.1, 3)], [[[0.5, 0.6]]], [-1.0]])
def test_lists_without_a_mechanism_are_refused(bad):
    """A value that is not a list, an empty list and a list without a mechanism are refused."""
    with pytest.raises(InvalidInput):
        compose(bad)


def test_same_input_needs_the_same_inputs():
    """Channels over different inputs cannot take the same answer."""
    with pytest.raises(InvalidInput, match="same inputs"):
        compose_same_input([np.eye(2), np.eye(3)])
    with pytest.raises(InvalidInput):
        compose_same_input([])


@pytest.mark.parametrize("count", [1, 2, 16])
def test_an_end_without_mass_does_no_harm(count):
    """A lattice whose outermost place has no mass composes: here unit Laplace noise cut into 400 cells."""
    y = np.linspace(0, 1, 401)
    p = np.concatenate([[0.5], -np.diff(np.exp(-y)) / 2, [math.exp(-1) / 2]])
    pair = FinitePair(p / p.sum(), p[::-1] / p.sum())
    found = compose([pair], count).approximate_dp(1e-6)
    assert compose([pair], count).delta_at(found.value) <= 1e-6 * (1 + 1e-6)
    assert compose([pair], count).delta_at(found.lower * (1 - 1e-6)) > 1e-6 * (1 - 1e-3)
    assert found.value <= count * 1.0 + 1e-9


@pytest.mark.parametrize("epsilon", [400.0, 650.0, 700.0])
@pytest.mark.parametrize("count", [2, 100])
def test_losses_whose_variance_underflows_are_composed(epsilon, count):
    """Randomized response at the largest epsilon is composed: a report of each of n copies reveals nearly all."""
    composed = compose([(epsilon,)], count)
    found = composed.hockey_stick(1.0)
    assert found.lower <= 1.0 <= found.value * (1 + 1e-12)
    assert found.lower >= 0.98


@pytest.mark.parametrize("eta", [1e-14, 1e-100, 4.6e-7])
def test_tiny_total_variation_is_bracketed(eta):
    """The total variation of one mechanism of tiny eta is eta, and of two about twice that: no digit is lost."""
    found = compose([(1.0, 0.0, eta)]).total_variation()
    assert found.lower <= eta <= found.value == pytest.approx(eta, rel=1e-13)
    assert found.lower == pytest.approx(eta, rel=1e-12, abs=1e-298)
    twice = compose([(1.0, 0.0, eta)], 2).total_variation()
    assert twice.value <= 2 * eta * (1 + 1e-12)
    assert twice.lower <= k_fold(1.0, 0.0, eta, 2).total_variation().value


@pytest.mark.parametrize(("epsilon", "count"), [(1e-8, 10**6), (1e-12, 10**5), (1e-4, 10**5)])
def test_roundings_of_many_tiny_mechanisms_do_not_add_up(epsilon, count):
    """10^6 of epsilon 1e-8: the rounding of losses does not add up, since they are known."""
    exact, composed = k_fold(epsilon, count=count), compose([(epsilon,)], count)
    for delta in (0.1 * exact.total_variation().value, 0.5 * exact.total_variation().value):
        assert composed.epsilon_at(delta) == pytest.approx(exact.epsilon_at(delta), rel=1e-6)
        assert composed.delta_at(composed.epsilon_at(delta)) <= delta * (1 + 1e-7)


def test_delta_that_is_just_lost():
    """At a delta equal to the mass of infinite losses epsilon is finite; an ulp below it is not."""
    for delta in (1e-6, 0.1, 1e-300):
        composed = compose([(1.0, delta)])
        assert composed.delta_at(1.0) == delta
        assert composed.epsilon_at(delta) == 1.0
        assert math.isinf(composed.epsilon_at(np.nextafter(delta, 0.0)))
    erased = FinitePair([0.25, 0.0, 0.75], [0.0, 0.25, 0.75])
    assert compose([erased]).epsilon_at(0.25 * (1 + 1e-14)) == 0.0
    assert compose([erased], 2).epsilon_at((1 - 0.75**2) * (1 + 1e-14)) == 0.0


def test_pure_sums_are_exact():
    """Epsilons given as numbers add as rational numbers: two of 0.5 are 1, three of 0.1 the float above."""
    assert compose([(0.5,)], 2).local_dp().value == compose([(0.5,)], 2).local_dp().lower == 1.0
    assert compose([(0.5,)], 2).delta_at(1.0) == 0.0
    assert compose([(0.1,)], 3).local_dp().value == math.nextafter(0.3, 1)
    assert compose([(0.1,)], 3).delta_at(np.nextafter(0.3, 0)) > 0


def test_an_epsilon_next_to_the_largest_loss_is_found():
    """epsilon at 1e-12 of 30 rounds, just below 30, by the sum over all multinomial outcomes in 50 digits.

    There the law is tilted so far that the losses near its end outweigh the end of the grid, which has no mass.
    """
    p = [0.43424297858355715, 0.40545546003127386, 0.0005524970912270111, 0.159749064293942]
    q = [0.15974906429394178, 0.40545546003127325, 0.000552497091228509, 0.4342429785835564]
    found = compose([FinitePair(p, q)], 30).epsilon_at(1e-12)

    def delta(epsilon):
        growth = mpmath.exp(epsilon)
        return max(mpmath.fsum(max(0, x - growth * y) for x, y in pairs) for pairs in (masses, swapped))

    with mpmath.workdps(50):
        powers = [[[mpmath.mpf(x) ** count for count in range(31)] for x in row] for row in (p, q)]
        masses = []
        for first, second, third in itertools.product(range(31), repeat=3):
            if first + second + third > 30:
                continue
            counts = (first, second, third, 30 - first - second - third)
            ways = math.factorial(30) // math.prod(map(math.factorial, counts))
            masses.append([ways * math.prod(of[c] for of, c in zip(row, counts, strict=True)) for row in powers])
        swapped = [(y, x) for x, y in masses]
        assert delta(found) <= 1e-12
        assert found <= 30 * (1 + 1e-9)
        assert delta(found * 0.99) > 1e-12


@pytest.mark.parametrize(
    "mechanism",
    [
        (1.0, 1e-5, 0.3), (1.0, 1e-5), (1.0,), (np.float64(1.0), 0, None), [[0.75, 0.25], [0.25, 0.75]],
        np.eye(2), Channel(np.eye(2)), FinitePair([0.75, 0.25], [0.25, 0.75]), 1.0, "warner",
    ],
)  # fmt: skip
def test_a_single_mechanism_is_no_list(mechanism):
    """Read as a list, a delta would count as an epsilon, and rows as channels; the message shows how to write it."""
    with pytest.raises(InvalidInput, match=r"mechanisms: expected a list of mechanisms .*\[mechanism\]"):
        compose(mechanism, 10)
    if not isinstance(mechanism, str):
        assert compose([mechanism], 10).count == compose(iter([mechanism]), 10).count == 10
