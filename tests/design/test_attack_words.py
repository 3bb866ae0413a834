"""What a design says, what it refuses, and how large it grows."""

import math
import subprocess
import sys

import pytest
from attacked import DESIGNS, P0, P1

from ldpopt import (
    ApproximateLDP,
    Divergence,
    InvalidInput,
    LocalDP,
    optimal_channel,
)
from ldpopt.design import Exchange
from ldpopt.divergences import KL

# -- words -------------------------------------------------------------------------------------------------------------


class Warm:
    """A constraint of one's own: no report is more than twice as likely under the first answer as under the second."""

    bound = 2.0

    def measure(self, channel):
        from ldpopt.privacy import Guarantee

        first, second = channel.matrix[0], channel.matrix[1]
        most = float((first[second > 0] / second[second > 0]).max()) if (second[first > 0] > 0).all() else math.inf
        return Guarantee("warm", most, most, None, True, "")

    def expression(self, q):
        return [q[0] <= (2 - 1e-9) * q[1]]


def test_a_note_does_not_deny_the_request_for_a_certificate():
    """A user's constraint has no certificate, and the note gives the reason."""
    design = optimal_channel(Divergence(KL, P0, P1), [LocalDP(1.0), Warm()])
    if design.certificate is None:
        assert "asked for" not in design.note
        assert design.note


def test_the_text_of_a_design_does_not_deny_a_finite_bound():
    """What is shown is what there is."""
    for constraints in ([LocalDP(1.0), Warm()], [ApproximateLDP(0.5, 0.01)]):
        design = optimal_channel(Divergence(KL, P0, P1), constraints)
        if math.isfinite(design.upper_bound):
            assert "not asked for" not in repr(design)


@pytest.mark.parametrize("constraints", [1.0, LocalDP, [LocalDP], "LocalDP(1)", None, [LocalDP(1.0), 3]])
def test_values_that_are_not_constraints_are_refused(constraints):
    """A number, a class and a string are refused as constraints."""
    with pytest.raises(InvalidInput, match="constraint"):
        optimal_channel(Divergence(KL, P0, P1), constraints)


def test_a_measure_in_the_place_of_a_constraint_is_refused_in_words():
    """`privacy` and `design` have namesakes."""
    from ldpopt.privacy import ZCDP as NAMESAKE

    with pytest.raises(InvalidInput, match="constraint"):
        optimal_channel(Divergence(KL, P0, P1), NAMESAKE(0, 0.5))


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("method", ["Partition", Exchange, 3])
def test_values_that_are_not_methods_are_refused(name, method):
    """A value that is not a method is refused for every utility."""
    utility, constraints, _ = DESIGNS[name]
    with pytest.raises(InvalidInput, match="method"):
        optimal_channel(utility(), constraints, method=method)


@pytest.mark.parametrize("name", DESIGNS)
def test_a_neighbour_that_is_no_design_is_refused_for_every_utility(name):
    """`near` is used, or refused, but not ignored."""
    utility, constraints, _ = DESIGNS[name]
    with pytest.raises(InvalidInput, match="neighbor"):
        optimal_channel(utility(), constraints, neighbor="a design")


# -- size --------------------------------------------------------------------------------------------------------------

LARGE = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
import numpy as np
from ldpopt import *
from ldpopt.design import *
for pose, k in (
    (lambda p: FisherInformation(np.ones(len(p)) / len(p)), 100),
    (lambda p: FisherInformation(p), 30),
    (lambda p: MutualInformation(p), 30),
    (lambda p: ExpectedLoss(p, 1 - np.eye(len(p))), 50),
):
    try:
        design = optimal_channel(pose(np.arange(1, k + 1) / (k * (k + 1) / 2)), LocalDP(1.0))
    except InvalidInput as error:
        print("refused", error)
    else:
        print("made", design.value, design.certified)
"""


@pytest.mark.full
def test_many_inputs_take_no_more_memory_than_there_is():
    """For each utility a design, or a refusal in words, within 4 GB."""
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert [line.split()[0] in ("made", "refused") for line in done.stdout.splitlines()] == [True] * 4
