"""The sure shares of the optimum: checked against optima found by brute force."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from ldpopt.bounds import binary_share_ghazi_issa, binary_share_kairouz, erased_share
from ldpopt.channel import Channel
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.privacy import local_dp, total_variation

FILE = Path(__file__).parents[1] / "data" / "optimal_channels.json"
INSTANCES = json.loads(FILE.read_text("utf-8"))["instances"]


def binary_kl(p0, p1, epsilon):
    first = np.where(np.asarray(p0) >= np.asarray(p1), math.exp(epsilon), 1.0) / (1 + math.exp(epsilon))
    q = Channel(np.stack([first, 1 - first], axis=1))
    return KL(q.push(p0), q.push(p1))


def test_the_binary_mechanism_reaches_its_shares_of_the_optimum():
    """[KOV14, Thm 7; GI, VII-B1] BIN >= OPT / (min{2, e^eps}(e^eps + 1)) >= OPT / (2 (e^eps + 1)^2) for KL."""
    for instance in INSTANCES:
        epsilon, optimum = instance["epsilon"], instance["optimum_without_eta"]["kl"]
        reached = binary_kl(instance["p0"], instance["p1"], epsilon)
        assert reached >= binary_share_ghazi_issa(epsilon) * optimum
        assert reached >= binary_share_kairouz(epsilon) * optimum
        assert reached <= optimum * (1 + 1e-9)


def test_the_newer_share_is_larger():
    """[GI, Fig 5] The share from total variation exceeds the older one at every epsilon."""
    for epsilon in np.geomspace(1e-6, 500, 100):
        assert binary_share_ghazi_issa(epsilon) > binary_share_kairouz(epsilon) >= 0


@pytest.mark.parametrize("name", list(INSTANCES[0]["optimum"]))
def test_the_erased_optimum_keeps_its_share(name):
    """[GI, Thm 8] OPT(eps, eta) >= eta / tanh(eps/2) OPT(eps) for every divergence, and erasure may be beaten."""
    for instance in INSTANCES:
        if instance["eta"] is not None:
            share = erased_share(instance["epsilon"], instance["eta"])
            assert instance["optimum"][name] >= share * instance["optimum_without_eta"][name] * (1 - 1e-8) - 1e-15


def test_erasing_meets_eta_and_keeps_exactly_the_share():
    """[GI, Thm 8] Erasing any eps-LDP channel with probability 1 - share is eta-TV and keeps that share of D_f."""
    rng = np.random.default_rng(8)
    for _ in range(30):
        k = int(rng.integers(2, 6))
        raw = np.exp(rng.uniform(0, 2, (k, 4)))
        q = Channel(raw / raw.sum(axis=1, keepdims=True))
        epsilon = local_dp(q).value
        eta = rng.random() * math.tanh(epsilon / 2)
        share = erased_share(epsilon, eta)
        erased = q.erase(1 - share)
        assert total_variation(erased).lower <= eta
        assert local_dp(erased).lower <= epsilon
        p0, p1 = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
        for f in (KL, CHI_SQUARED, TOTAL_VARIATION, JENSEN_SHANNON):
            assert f(erased.push(p0), erased.push(p1)) == pytest.approx(share * f(q.push(p0), q.push(p1)), rel=1e-9)


def test_values():
    """Values of the formulas computed with 30 digits, and the ends of the range."""
    assert binary_share_kairouz(1.0) == pytest.approx(0.0361647440642566341, rel=1e-14)
    assert binary_share_ghazi_issa(1.0) == pytest.approx(0.134470710684997560, rel=1e-14)
    assert binary_share_ghazi_issa(0.5) == pytest.approx(1 / (math.exp(0.5) * (math.exp(0.5) + 1)), rel=1e-14)
    assert erased_share(1.0, 0.2) == pytest.approx(0.432790682747730570, rel=1e-14)
    assert erased_share(1.0, 0.0) == 0
    assert erased_share(1.0, math.tanh(0.5)) == 1
    assert erased_share(1e-9, 1e-10) == pytest.approx(0.2, rel=1e-12)


@pytest.mark.parametrize("bound", [binary_share_kairouz, binary_share_ghazi_issa, lambda e: erased_share(e, 0.1)])
@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1"])
def test_bad_epsilon(bound, epsilon):
    """An epsilon that is no positive finite number is an error."""
    with pytest.raises(InvalidInput, match="epsilon: expected a"):
        bound(epsilon)


@pytest.mark.parametrize("eta", [-0.1, 1.5, math.nan])
def test_bad_eta(eta):
    """An eta outside [0, 1] is an error."""
    with pytest.raises(InvalidInput, match="eta: expected a number in"):
        erased_share(1.0, eta)
