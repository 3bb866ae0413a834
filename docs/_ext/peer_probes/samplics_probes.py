"""What samplics does, which is about samples of open answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from peer_probes.base import near, probe


def _taylor() -> Any:
    from samplics import TaylorEstimator
    from samplics.utils.types import PopParam

    made = TaylorEstimator(PopParam.prop)
    made.estimate(
        y=np.array([0, 1] * 20), samp_weight=np.full(40, 10.0), stratum=np.repeat([1, 2], 20),
        psu=np.repeat(np.arange(10), 4),
    )  # fmt: skip
    return made


@probe("samplics", "samples")
def _() -> str:
    made = _taylor()
    if "0.5" not in str(made.point_est) or "0.0" not in str(made.stderror):
        raise AssertionError(made.point_est, made.stderror)
    return "TaylorEstimator"


@probe("samplics", "replicates")
def _() -> str:
    from samplics.weighting import SampleWeight

    made = SampleWeight().poststratify(np.ones(4), control={"f": 50, "m": 50}, domain=np.array(["f", "m", "m", "m"]))
    near(float(np.asarray(made)[0]), 50.0, 1e-9)
    return "SampleWeight.poststratify, ReplicateWeight"


@probe("samplics", "intervals")
def _() -> str:
    made = _taylor()
    if not (hasattr(made, "lower_ci") and hasattr(made, "upper_ci")):
        raise AssertionError("no interval")
    return "TaylorEstimator.lower_ci; open answers"


@probe("samplics", "power")
def _() -> str:
    from samplics.sampling.power_functions import power_for_one_proportion

    if not 0 < float(power_for_one_proportion(prop_0=0.5, prop_1=0.7, samp_size=50, alpha=0.05)) < 1:
        raise AssertionError
    return "power_for_one_proportion; open answers"


@probe("samplics", "regression")
def _() -> str:
    from samplics.regression import SurveyGLM
    from samplics.utils.types import ModelType

    made, x = SurveyGLM(ModelType.LINEAR), np.arange(40.0)
    made.estimate(y=1 + 2 * x, x=np.column_stack([np.ones(40), x]), samp_weight=np.full(40, 10.0))
    near(float(made.beta["point_est"][-1]), 2.0, 1e-6)
    return "SurveyGLM; open answers"
