"""Plain words promise no more than the numbers behind them."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpopt import Channel, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import KL
from ldpopt.mechanisms import binary_with_erasure, randomized_response
from ldpopt.privacy import Guarantee, local_dp, total_variation
from ldpopt.words import guarantee_in_words, reports_in_words, verdict

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
DESIGN = optimal_channel(Divergence(KL, P0, P1), [LocalDP(1.0), TotalVariation(0.3)])


def guarantee(notion, value):
    return Guarantee(notion, value, value, None, True, "")


@given(st.floats(1e-6, 300))
def test_the_printed_factor_is_never_below_the_guarantee(epsilon):
    """The likelihood factor in the sentence, and the exponent beside it, are at least those of the guarantee."""
    said = guarantee_in_words(guarantee("local_dp", epsilon))
    factor, exponent = re.search(r"at most (\S+) times \(e\^([^)]+)\)", said).groups()
    assert float(factor) >= math.exp(epsilon)
    assert float(exponent) >= epsilon


@given(st.floats(0, 1))
def test_the_printed_chance_is_never_below_the_guarantee(eta):
    """The chance of a right guess in the sentence is at least (1 + eta)/2, and hardly more."""
    said = guarantee_in_words(guarantee("total_variation", eta))
    percent = float(re.search(r"with it, at most (\S+) %", said).group(1))
    assert 50 * (1 + eta) <= percent + 1e-12
    assert percent <= 50 * (1 + eta) + 0.01 + 1e-9


def test_the_promised_chance_is_the_best_guess():
    """The sentence on total variation is about the best guess between two answers: computed here from all rows."""
    q = randomized_response(4, 1.0).matrix
    best = max(np.maximum(q[x], q[z]).sum() / 2 for x in range(4) for z in range(4) if x != z)
    said = guarantee_in_words(total_variation(q))
    assert float(re.search(r"with it, at most (\S+) %", said).group(1)) == pytest.approx(100 * best, abs=0.01)


def test_no_privacy_and_full_privacy_have_plain_sentences():
    """An infinite epsilon promises nothing, and at zero the reports are uninformative.

    An unknown privacy definition keeps its number.
    """
    assert "can rule answers out" in guarantee_in_words(local_dp(np.eye(2)))
    assert "says nothing" in guarantee_in_words(local_dp(np.ones((2, 1))))
    assert guarantee_in_words(guarantee("zcdp", 0.5)) == "zcdp ≤ 0.5."
    assert "more than 1e304" in guarantee_in_words(guarantee("local_dp", 800.0))


def test_reports_name_the_group_they_favor():
    """Every report comes with the answers that prefer it and the likelihood ratio of the two groups."""
    channel = binary_with_erasure([0.9, 0.1], [0.1, 0.9], 1.0, 0.2, inputs=("x", "y"))
    first, second, erased = reports_in_words(channel, [0.9, 0.1], [0.1, 0.9], ("old", "young"))
    m0, m1 = channel.push([0.9, 0.1]), channel.push([0.1, 0.9])
    assert first == ("0", ("x",), f"{m0[0] / m1[0]:.3g} times as likely from old")
    assert second == ("1", ("y",), f"{m1[1] / m0[1]:.3g} times as likely from young")
    assert erased == ("erased", (), "says nothing about the group")
    only = reports_in_words(Channel(np.eye(2)), [1.0, 0.0], [0.5, 0.5], ("old", "young"))
    assert [evidence for _, _, evidence in only] == ["2 times as likely from old", "only from young"]


def test_the_verdict_recomputes_the_proof():
    """A verdict comes from recomputing all that the design claims; a design that claims too much is called so."""
    assert verdict(DESIGN) == "optimal, proof checked"
    assert verdict(optimal_channel(DESIGN.utility, LocalDP(1.0), certify=False)) == "no proof asked for"
    loose = replace(DESIGN, upper_bound=DESIGN.value / 0.9725, certified=False)
    assert verdict(loose) == "within 2.9 % of the optimum, proof checked"
    assert verdict(replace(loose, certified=True)).startswith("PROOF FAILED: the relative gap is 0.028")
    assert verdict(replace(DESIGN, upper_bound=math.inf, certified=False)) == "no bound found"
    broken = replace(DESIGN, channel=Channel(np.eye(3)))
    assert verdict(broken).startswith("PROOF FAILED: the channel's local dp is inf, not 1.0")
