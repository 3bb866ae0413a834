"""Equal problems have equal checksums, in every process; different ones do not."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from ldpopt import ApproximateLDP, Divergence, LocalDP, RenyiLDP
from ldpopt.divergences import CHI_SQUARED, KL, FDivergence
from ldpopt.frontiers.run import fingerprint

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]


class Own:
    """A constraint of a user's."""

    def __init__(self, cap):
        self.cap = cap

    def bound(self):
        return self.cap


def _enclosing(level):
    return lambda t: level * (t - 1) ** 2


EQUAL = [
    lambda: (Divergence(KL, P0, P1), LocalDP(1.0)),
    lambda: [ApproximateLDP(1.0, 0.1), RenyiLDP(2.0, 0.5)],
    lambda: LocalDP(1.0, nx.path_graph(4)),
    lambda: FDivergence(_enclosing(2.0), name="own"),
    lambda: (Own(2), {"a": {1, 2, 3}}, None, True, 1j, b"x"),
    lambda: Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)),
]


@pytest.mark.parametrize("make", EQUAL)
def test_equal_values_agree(make):
    """Two values made alike have one checksum."""
    assert fingerprint(make()) == fingerprint(make())


def test_different_values_differ():
    """A bit, a label, a nesting, an edge, a piece of code, an enclosed number: each changes the checksum."""
    different = [
        Divergence(KL, P0, P1),
        Divergence(KL, P0, [0.2, 0.3 - 2**-52, 0.5 + 2**-52]),
        Divergence(CHI_SQUARED, P0, P1),
        Divergence(KL, P0, P1, inputs=("a", "b", "c")),
        Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)),
        Divergence(KL, stats.norm(0, 1), stats.norm(2, 1)),
        LocalDP(1.0),
        LocalDP(np.nextafter(1.0, 2)),
        LocalDP(1.0, nx.path_graph(4)),
        LocalDP(1.0, nx.cycle_graph(4)),
        FDivergence(_enclosing(2.0), name="own"),
        FDivergence(_enclosing(3.0), name="own"),
        Own(1),
        Own(2),
        lambda: 1,
        lambda: 2,
        ((1, 2), 3),
        ((1,), 2, 3),
        [1, 2],
        (1, 2),
        np.array([1, 2]),
        np.array([1.0, 2.0]),
        1,
        1.0,
        "1",
    ]
    assert len({fingerprint(value) for value in different}) == len(different)


def test_a_circle_ends():
    """A value that contains itself has a checksum too."""
    circle = [1]
    circle.append(circle)
    assert len(fingerprint(circle)) == 64


def test_other_processes_agree():
    """The checksum does not depend on the process, its hash seed or the order of a set."""
    code = (
        "from ldpopt import Divergence, LocalDP; from ldpopt.divergences import KL; "
        "from ldpopt.frontiers.run import fingerprint; "
        f"print(fingerprint(Divergence(KL, {P0}, {P1}), LocalDP(1.0), {{'a', 'b', 'c'}}))"
    )
    here = fingerprint(Divergence(KL, P0, P1), LocalDP(1.0), {"a", "b", "c"})
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.strip() == here
