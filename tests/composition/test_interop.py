import math
import sys

import numpy as np
import pytest

from ldpopt.composition import FinitePair, compose, k_fold
from ldpopt.composition.interop import from_dp_accounting, to_dp_accounting
from ldpopt.errors import InvalidInput, LdpoptError
from ldpopt.privacy.approximate_dp import hockey_stick_of_pairs


def test_missing_package_is_said(monkeypatch):
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
    def test_round_trip_of_a_pair(self, parameters):
        """A pair on a lattice comes back as it went."""
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

    def test_channel_and_composed_pair(self):
        """dp_accounting reads the same delta off an exported channel and an exported composition."""
        channel = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
        one = to_dp_accounting(channel)
        assert one.get_delta_for_epsilon(0.0) == pytest.approx(0.6)
        composed = compose([channel, (math.log(7), 0.0, 0.2)], 20)
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

    def test_gaussian_from_dp_accounting(self):
        """A pessimistic Gaussian comes in as a pair above the true curve."""
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
    def test_renyi_of_randomized_response(self, epsilon, order):
        """autodp's Rényi bound of randomized response is the divergence of the dominating pair."""
        from autodp import rdp_bank

        share = math.exp(epsilon) / (1 + math.exp(epsilon))
        theirs = rdp_bank.RDP_randresponse({"p": share}, order)
        assert float(FinitePair.of_parameters(epsilon).renyi(order)) == pytest.approx(theirs, rel=1e-9)
