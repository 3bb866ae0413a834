"""What a measure names does not depend on rounding: ties are broken by the order of the indices."""

import os
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO

import networkx as nx
import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from ldpopt.mechanisms import (
    binary_with_erasure,
    hadamard_response,
    randomized_response,
    subset_selection,
    truncated_geometric,
)
from ldpopt.numbers.rounding import first_largest
from ldpopt.numbers.tolerances import TIE_RTOL
from ldpopt.privacy import RestrictedKL, RestrictedRenyi, audit, capacity_bounded, local_dp, renyi, total_variation

CHANNELS = {
    "randomized response": randomized_response(4, 1.0),
    "subset selection": subset_selection(4, 1.0, 2),
    "hadamard response": hadamard_response(3, 1.0).channel(),
    "truncated geometric": truncated_geometric(6, 0.7),
    "erasure": binary_with_erasure([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 1.0, 0.3),
    "circle": np.array([np.roll([0.4, 0.25, 0.1, 0.25], x) for x in range(4)]),
}


def perturbed(matrix, seed):
    """The same entries, each moved by a few units in the last place."""
    ulps = np.random.default_rng(seed).integers(-3, 4, matrix.shape)
    return matrix * (1 + ulps * 2.0**-52)


def named(matrix, **options):
    """The witnesses of everything that is measured."""
    return [(found.title, str(found.witness)) for found in audit(matrix, **options).guarantees if found.lower > 1e-12]


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", CHANNELS)
def test_ulps_change_no_name(name):
    """Channels with many equal pairs name the same pairs and events when their entries are moved by ulps."""
    matrix = np.array(getattr(CHANNELS[name], "matrix", CHANNELS[name]))
    options = {"features": np.arange(matrix.shape[1])}
    for graph in (None, nx.cycle_graph(len(matrix))) if len(matrix) > 2 else (None,):
        first = named(matrix, graph=graph, **options)
        assert len(first) > 10
        assert named(perturbed(matrix, 0 if graph is None else 1), graph=graph, **options) == first


def test_ulps_change_no_name_of_a_large_channel():
    """Nor do they where a screen selects the pairs that are measured."""
    rows = np.array([np.roll(np.geomspace(1, 3, 300), x) for x in range(300)])
    rows /= rows.sum(axis=1, keepdims=True)
    names = [
        [str(measure(matrix).witness.inputs) for measure in (local_dp, total_variation, lambda q: renyi(q, 2))]
        for matrix in (rows, perturbed(rows, 1), perturbed(rows, 2))
    ]
    assert names[0] == names[1] == names[2]


def test_the_named_pair_is_first():
    """All pairs of randomized response are equal: the first is named, and the value is the largest."""
    q = perturbed(randomized_response(5, 1.0).matrix, 3)
    for found in audit(q).guarantees:
        assert found.witness is None or found.witness.inputs == (0, 1), found
    for divergence in (RestrictedKL(), RestrictedRenyi(2.0)):
        assert capacity_bounded(q, [0, 1, 2, 3, 4], divergence).witness.inputs == (0, 4)


def test_the_claimed_value_is_the_largest():
    """The tolerance decides the named witness, not the claimed value."""
    q = np.array([[0.75, 0.25], [0.25, 0.75], [0.75 * (1 + TIE_RTOL / 8), 0.25 * (1 - TIE_RTOL / 8 * 3)]])
    found = local_dp(q)
    assert found.witness.inputs[1] == 1
    assert found.value >= np.log(3) + TIE_RTOL / 8


def test_first_largest_counts_ties_within_the_tolerance():
    """The first position within the tolerance counts; infinities are equal; the tolerance may have another scale."""
    assert first_largest(np.array([1.0, 2.0, 2.0 * (1 + TIE_RTOL / 2)])) == 1
    assert first_largest(np.array([1.0, 2.0, 2.0 * (1 + 2 * TIE_RTOL)])) == 2
    assert first_largest(np.array([1.0, np.inf, np.inf])) == 1
    assert first_largest(np.array([-2.0, -1.0 - TIE_RTOL, -1.0])) == 2 - (TIE_RTOL <= 1e-9)
    assert first_largest(np.array([0.0, TIE_RTOL / 2, TIE_RTOL]), scale=1.0) == 0


SCRIPT = """
import numpy as np
from ldpopt.mechanisms import randomized_response, subset_selection
from ldpopt.privacy import audit
for channel in (randomized_response(8, 2.0), subset_selection(5, 1.0, 2)):
    print(audit(channel, features=np.arange(channel.shape[1])))
"""


@pytest.mark.full
def test_another_processor_gives_the_same_text():
    """Without the processor's features that numpy uses, an audit prints the same."""
    extra = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    if not extra:
        pytest.skip("numpy uses no features of this processor beyond its least")
    with redirect_stdout(StringIO()) as here:
        exec(SCRIPT, {})
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(extra), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    there = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True).stdout
    assert here.getvalue() == there
    assert "against" in there
