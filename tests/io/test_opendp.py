"""Channels as measurements of OpenDP."""

import math
import sys

import numpy as np
import pytest

from ldpopt import Channel, InvalidInput, LocalDP, MutualInformation, optimal_channel
from ldpopt.extras import MissingExtra
from ldpopt.io import to_opendp

FLIP = Channel([[0.75, 0.25], [0.25, 0.75]], ["yes", "no"], ["yes", "no"])


def test_a_missing_package_is_named(monkeypatch):
    """Without OpenDP the error names the extra; a channel without an epsilon is refused before that."""
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingExtra, match=r"ldpopt\[interop\]"):
        to_opendp(FLIP)
    with pytest.raises(InvalidInput, match="a finite epsilon"):
        to_opendp(np.eye(2))


class TestWithOpenDP:
    @pytest.fixture(autouse=True)
    def _installed(self):
        prelude = pytest.importorskip("opendp.prelude")
        prelude.enable_features("contrib", "honest-but-curious")

    def test_the_map_is_the_proved_epsilon(self):
        """One answer or another differ by the proved epsilon, an answer from itself by none."""
        for made in (FLIP, FLIP.exact(8), optimal_channel(MutualInformation([0.5, 0.3, 0.2]), LocalDP(1.0))):
            measurement = to_opendp(made)
            exact = made if hasattr(made, "weights") else getattr(made, "channel", made).exact()
            assert measurement.map(1) == exact.proof().epsilon
            assert measurement.map(0) == 0.0

    def test_opendp_composes_the_measurement(self):
        """OpenDP composes it: two uses have twice the epsilon."""
        import opendp.prelude as dp

        measurement = to_opendp(FLIP)
        compose = getattr(dp.c, "make_composition", None) or dp.c.make_basic_composition
        both = compose([measurement, measurement])
        assert both.map(1) == pytest.approx(2 * math.log(3), rel=1e-12)
        assert set(both("yes")) <= {"yes", "no"}

    def test_reports_follow_the_channel(self):
        """Eight hundred reports of each answer are within five standard errors of the row."""
        channel = Channel([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], ["a", "b"], [0, "x", (1, 2)])
        measurement = to_opendp(channel)
        for answer, row in zip(channel.inputs, channel.matrix, strict=True):
            drawn = [measurement(answer) for _ in range(800)]
            for report, share in zip(channel.outputs, row, strict=True):
                assert abs(drawn.count(report) / 800 - share) < 5 * math.sqrt(share * (1 - share) / 800)

    def test_an_unknown_answer_is_refused_and_not_repeated(self):
        """What is none of the inputs gives no report, and does not stand in the error."""
        with pytest.raises(Exception, match="answer") as error:
            to_opendp(FLIP)("a secret")
        assert "a secret" not in str(error.value)
