"""What dp-accounting, prv-accountant and autodp do, which compose."""

from __future__ import annotations

import contextlib
import io
import math
from typing import Any

from peer_probes.base import EXACT, near, pitfall, probe


def _response_epsilon(count: int) -> float:
    import dp_accounting
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=2 / (1 + math.exp(0.1)), num_buckets=2)
    accountant = PLDAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    return float(accountant.compose(dp_accounting.ComposedDpEvent([event] * count)).get_epsilon(1e-6))


@probe("dp-accounting", "composition")
def _() -> str:
    found = _response_epsilon(100)
    near(found, EXACT, 0.02)
    return f"pld.PLDAccountant; {100 * (found / EXACT - 1):.2f} % above"


def _of_two_rows() -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    upper, lower = ({0: math.log(a), 1: math.log(b)} for a, b in ((0.75, 0.25), (0.25, 0.75)))
    return pld.from_two_probability_mass_functions(lower, upper)


@probe("dp-accounting", "epsilon")
def _() -> str:
    near(_of_two_rows().get_epsilon_for_delta(0.0), math.log(3), 1e-3)
    return "pld.from_two_probability_mass_functions; two rows at a time"


@probe("dp-accounting", "variation")
def _() -> str:
    near(_of_two_rows().get_delta_for_epsilon(0.0), 0.5, 1e-3)
    return "pld.from_two_probability_mass_functions; two rows at a time"


@probe("dp-accounting", "pairs")
def _() -> str:
    near(_of_two_rows().self_compose(2).get_epsilon_for_delta(0.0), 2 * math.log(3), 1e-3)
    return "pld.from_two_probability_mass_functions, self_compose"


@probe("dp-accounting", "training")
def _() -> str:
    import dp_accounting
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    found = PLDAccountant().compose(dp_accounting.SelfComposedDpEvent(event, 100)).get_epsilon(1e-6)
    if not 0 < found < 10:
        raise AssertionError(found)
    return "PoissonSampledDpEvent, GaussianDpEvent"


@probe("prv-accountant", "composition")
def _() -> str:
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PureDPMechanism

    one = PureDPMechanism(0.1)
    accountant = PRVAccountant(prvs=[one], eps_error=0.01, delta_error=1e-10, max_self_compositions=[100])
    low, _, high = map(float, accountant.compute_epsilon(delta=1e-6, num_self_compositions=[100]))
    if not low <= EXACT <= high:
        raise AssertionError((low, high))
    return f"PRVAccountant; from {100 * (low / EXACT - 1):+.2f} to {100 * (high / EXACT - 1):+.2f} %"


@probe("prv-accountant", "training")
def _() -> str:
    from prv_accountant.dpsgd import DPSGDAccountant

    accountant = DPSGDAccountant(
        noise_multiplier=1.0, sampling_probability=0.01, eps_error=0.1, delta_error=1e-9, max_steps=100
    )
    if not 0 < accountant.compute_epsilon(delta=1e-6, num_steps=100)[1] < 10:
        raise AssertionError
    return "dpsgd.DPSGDAccountant"


def _responder(**options: Any) -> Any:
    from autodp.mechanism_zoo import RandresponseMechanism

    return RandresponseMechanism(p=math.exp(0.1) / (1 + math.exp(0.1)), **options)


@probe("autodp", "states")
def _() -> str:
    near(float(_responder().get_approxDP(0.0)), 0.1, 1e-9)
    return "RandresponseMechanism.get_approxDP"


@probe("autodp", "tradeoff")
def _() -> str:
    from autodp.mechanism_zoo import ExactGaussianMechanism

    near(float(ExactGaussianMechanism(1.0).get_fDP(0.5)), 0.15865525, 1e-3)
    return "Mechanism.get_fDP"


@probe("autodp", "composition")
def _() -> str:
    from autodp.transformer_zoo import Composition

    found = float(Composition()([_responder()], [100]).get_approxDP(1e-6))
    if not EXACT <= found < 10:
        raise AssertionError(found)
    return f"Composition; {100 * (found / EXACT - 1):.1f} % above, by Rényi"


@probe("autodp", "training")
def _() -> str:
    from autodp.mechanism_zoo import NoisySGD_Mechanism

    if not 0 < NoisySGD_Mechanism(prob=0.01, sigma=1.0, niter=100).get_approxDP(1e-6) < 10:
        raise AssertionError
    return "NoisySGD_Mechanism"


@pitfall("autodp", "negative")
def _() -> dict[str, Any]:
    from autodp.transformer_zoo import ComposeAFA

    with contextlib.redirect_stdout(io.StringIO()):
        composed = ComposeAFA()([_responder(RDP_off=True, phi_off=False)], [100])
        found = float(composed.get_approxDP(1e-6))
    return {"epsilon": found, "exact": EXACT}
