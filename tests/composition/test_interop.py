"""Mechanisms as events of dp_accounting."""

import math
import sys

import numpy as np
import pytest

from ldpopt import Divergence, InvalidInput, Ledger, LocalDP, compose, optimal_channel
from ldpopt.composition import FinitePair, k_fold, to_dp_event
from ldpopt.composition import compose as compose_composition
from ldpopt.composition.interop import from_dp_accounting, to_dp_accounting
from ldpopt.divergences import KL
from ldpopt.errors import LdpoptError
from ldpopt.extras import MissingExtra
from ldpopt.mechanisms import Gaussian, Laplace, randomized_response, subset_selection
from ldpopt.privacy import ZCDP, ApproximateDP, PureDP, local_dp
from ldpopt.privacy.approximate_dp import hockey_stick_of_pairs

dp_accounting = pytest.importorskip("dp_accounting")
ONE = dp_accounting.NeighboringRelation.REPLACE_ONE


def accountant_epsilons(event, *deltas):
    """What the accountant by privacy-loss distributions says at each delta, and that by Rényi divergences."""
    pld, rdp = dp_accounting.pld.PLDAccountant(ONE), dp_accounting.rdp.RdpAccountant(neighboring_relation=ONE)
    pld, rdp = pld.compose(event), rdp.compose(event)
    return [(pld.get_epsilon(delta), rdp.get_epsilon(delta)) for delta in deltas]


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_randomized_response_is_itself(k, epsilon):
    """k-ary randomized response becomes itself, with no less than its epsilon."""
    event = to_dp_event(randomized_response(k, epsilon))
    assert event.num_buckets == k
    own = math.log(k / event.noise_parameter - k + 1)
    assert float(local_dp(randomized_response(k, epsilon))) <= own * (1 + 1e-15)
    assert own == pytest.approx(epsilon, rel=1e-7)


def test_accountants_say_no_less_than_is_true():
    """At every delta both accountants are at or above the exact composition, and for randomized response near it."""
    channels = [
        randomized_response(4, 0.5),
        optimal_channel(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), LocalDP(1.0)).channel,
        subset_selection(5, 1.0, 2),
        [[0.7, 0.2, 0.1], [0.5, 0.2, 0.3]],
    ]
    for channel in channels:
        for count in (1, 5):
            event = to_dp_event(Ledger().add(channel, count))
            deltas = (1e-6, 1e-3)
            for delta, (by_pld, by_rdp) in zip(deltas, accountant_epsilons(event, *deltas), strict=True):
                true = compose([channel] * count).approximate_dp(delta)
                assert by_pld >= true.lower - 2e-4 * count  # its grid has cells of 1e-4
                assert by_rdp >= true.lower * (1 - 1e-9)


def test_a_post_processing_of_randomized_response_is_known_as_such():
    """What erases or merges the reports of k-ary randomized response is one; a binary channel of k inputs is none."""
    channel = randomized_response(5, 1.0)
    assert to_dp_event(channel.erase(0.3)).num_buckets == 5
    assert to_dp_event(channel.merge([[0, 1]])).num_buckets == 5
    # Two answers that are never told apart leave a ratio between the others that 3-ary response does not have.
    assert to_dp_event(subset_selection(6, 2.0, 2)).num_buckets == 2
    assert to_dp_event([[0.6, 0.4], [0.6, 0.4], [0.4, 0.6]]).num_buckets == 2


def test_noise_and_claims_are_exported_conservatively():
    """Laplace and Gaussian noise keep their scale, pure and concentrated claims their numbers, to the private side."""
    assert to_dp_event(Laplace(0.3, sensitivity=7.0)).noise_multiplier == pytest.approx(1 / 0.3, rel=1e-14)
    assert to_dp_event(Laplace(0.3)).noise_multiplier <= 1 / 0.3
    assert to_dp_event(Gaussian(3.0, sensitivity=2.0)).noise_multiplier == pytest.approx(1.5, rel=1e-14)
    assert to_dp_event(Gaussian(3.0, sensitivity=2.0).pair).noise_multiplier == pytest.approx(1.5, rel=1e-14)
    event = to_dp_event(ZCDP(0.1, 0.5))
    assert (event.xi, event.rho) == (0.1, 0.5)
    for epsilon in (1e-8, 0.5, 30.0, 700.0):
        noise = to_dp_event(PureDP(epsilon)).noise_parameter
        assert noise <= 2 / (math.exp(epsilon) + 1)
        assert noise == pytest.approx(2 / (math.exp(epsilon) + 1), rel=1e-11)
    gaussian = to_dp_event(Ledger().add(Gaussian(1.0), 3))
    accountant = dp_accounting.rdp.RdpAccountant(neighboring_relation=ONE).compose(gaussian)
    assert accountant.get_epsilon(1e-6) >= Ledger().add(Gaussian(1.0), 3).approximate_dp(1e-6).lower


def test_the_ends():
    """No privacy and perfect privacy have events of their own, and what has no event is refused."""
    assert isinstance(to_dp_event(np.eye(3)), dp_accounting.NonPrivateDpEvent)
    assert isinstance(to_dp_event([[0.5, 0.5]] * 3), dp_accounting.NoOpDpEvent)
    assert isinstance(to_dp_event([[1.0]]), dp_accounting.NoOpDpEvent)
    with pytest.raises(InvalidInput, match="an event of dp_accounting"):
        to_dp_event(ApproximateDP(1.0, 1e-6))
    with pytest.raises(InvalidInput, match="delta is 0"):
        to_dp_event(Ledger().add((1.0, 1e-6)))
    with pytest.raises(InvalidInput, match="at most"):
        to_dp_event(Ledger().add((1.0,), 2 * 10**6))


def test_rows_that_do_not_sum_to_one_are_no_post_processing():
    """A matrix whose rows sum to 1 within the tolerance only counts by its epsilon."""
    q = randomized_response(3, 1.0).matrix.copy()
    q[0] *= 1 + 1e-10
    assert to_dp_event(q).num_buckets == 2


def test_a_missing_package_is_named(monkeypatch):
    """Without dp_accounting the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.dp_event", None)
    with pytest.raises(MissingExtra, match=r"ldpopt\[interop\]"):
        to_dp_event(PureDP(1.0))


def test_a_missing_package_is_named_by_pair_export(monkeypatch):
    """Without dp_accounting the error names the package to install."""
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    with pytest.raises(LdpoptError, match=r"ldpopt\[interop\]"):
        to_dp_accounting((1.0,))


class TestWithDpAccounting:
    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("dp_accounting")

    @pytest.mark.parametrize("parameters", [(0.1, 0.0, 0.7 * math.tanh(0.05)), (1.0, 1e-4, 0.3), (2.0,)])
    def test_a_pair_survives_a_round_trip(self, parameters):
        """A pair on a lattice returns unchanged."""
        pair = FinitePair.of_parameters(*parameters)
        remove, add = from_dp_accounting(to_dp_accounting(pair))
        assert remove == add
        for epsilon in (0.0, 0.05, 0.9, 1.9):
            exact, found = float(pair.hockey_stick(epsilon)), float(remove.hockey_stick(epsilon))
            assert found == pytest.approx(exact, rel=1e-12, abs=1e-14)

    def test_round_trip_on_a_grid_dominates(self):
        """A pair off any lattice comes back slightly worse at every epsilon, in both directions, never better."""
        pair = FinitePair([0.5, 0.3, 0.2], [0.22, 0.37, 0.41])
        remove, add = from_dp_accounting(to_dp_accounting(pair))
        for epsilon in (0.0, 0.2, 0.5, 0.7, 0.81):
            for back, direction in ((remove, pair), (add, pair.swapped)):
                exact, found = (float(hockey_stick_of_pairs(d.p, d.q, epsilon)[1][0]) for d in (direction, back))
                assert exact * (1 - 1e-12) <= found <= exact + 1e-6

    def test_dp_accounting_reads_the_same_delta_of_exported_objects(self):
        """dp_accounting reads the same delta off an exported channel and an exported composition."""
        channel = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
        one = to_dp_accounting(channel)
        assert one.get_delta_for_epsilon(0.0) == pytest.approx(0.6)
        composed = compose_composition([channel, (math.log(7), 0.0, 0.2)], 20)
        exported = to_dp_accounting(composed)
        for epsilon in (0.0, 5.0, 15.0):
            assert exported.get_delta_for_epsilon(epsilon) == pytest.approx(
                composed.delta_at(epsilon), rel=1e-9, abs=1e-13
            )

    @pytest.mark.parametrize("count", [10, 100, 1000])
    def test_composition_agrees(self, count):
        """On the exact lattice dp_accounting's own composition gives Theorem 2; its default grid is above it."""
        from dp_accounting.pld import privacy_loss_distribution

        pair = FinitePair.of_parameters(0.1, 0.0, 0.7 * math.tanh(0.05))
        exact = k_fold(0.1, 0.0, 0.7 * math.tanh(0.05), count)
        own = to_dp_accounting(pair).self_compose(count)
        assert own.get_epsilon_for_delta(1e-6) == pytest.approx(exact.epsilon_at(1e-6), rel=1e-7)
        lower, upper = (dict(enumerate(np.log(masses))) for masses in (pair.ordered.q, pair.ordered.p))
        coarse = privacy_loss_distribution.from_two_probability_mass_functions(lower, upper).self_compose(count)
        assert coarse.get_epsilon_for_delta(1e-6) >= exact.epsilon_at(1e-6) * (1 - 1e-9)

    def test_lossy_distributions_are_refused(self):
        """An optimistic estimate or another type cannot be dominated by a pair."""
        from dp_accounting.pld import privacy_loss_distribution

        optimistic = privacy_loss_distribution.from_gaussian_mechanism(
            1.0, pessimistic_estimate=False, use_connect_dots=False, value_discretization_interval=0.1
        )
        with pytest.raises(InvalidInput, match="pessimistic"):
            from_dp_accounting(optimistic)
        with pytest.raises(InvalidInput):
            from_dp_accounting("pld")

    def test_an_imported_gaussian_lies_above_its_true_curve(self):
        """A pessimistic Gaussian is imported as a pair above the true curve."""
        from dp_accounting.pld import privacy_loss_distribution

        gaussian = privacy_loss_distribution.from_gaussian_mechanism(1.0)
        pair, _ = from_dp_accounting(gaussian)
        for epsilon in (0.0, 1.0, 3.0):
            found = float(hockey_stick_of_pairs(pair.p, pair.q, epsilon)[1][0])
            assert found == pytest.approx(gaussian.get_delta_for_epsilon(epsilon), rel=1e-6)


class TestWithAutodp:
    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("autodp")

    @pytest.mark.parametrize(("epsilon", "order"), [(0.5, 2.0), (1.0, 5.0), (2.0, 1.5)])
    def test_renyi_divergence_of_randomized_response_agrees_with_autodp(self, epsilon, order):
        """autodp's Rényi bound of randomized response is the divergence of the dominating pair."""
        from autodp import rdp_bank

        share = math.exp(epsilon) / (1 + math.exp(epsilon))
        theirs = rdp_bank.RDP_randresponse({"p": share}, order)
        assert float(FinitePair.of_parameters(epsilon).renyi(order)) == pytest.approx(theirs, rel=1e-9)
