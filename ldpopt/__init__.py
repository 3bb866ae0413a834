"""ldpopt: design, certify and use locally private mechanisms.

Names below load when first used, so that importing the package stays fast.

>>> import ldpopt
>>> sorted(ldpopt.__all__)[:3]
['AOptimal', 'AgainstSet', 'ApproximateLDP']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ldpopt.version import __version__ as __version__

if TYPE_CHECKING:
    from ldpopt.channel import Channel
    from ldpopt.citation import cite
    from ldpopt.composition.compose import compose
    from ldpopt.composition.k_fold import k_fold
    from ldpopt.composition.ledger import Ledger
    from ldpopt.design import (
        AgainstSet,
        AOptimal,
        ApproximateLDP,
        ColumnGeneration,
        COptimal,
        Design,
        Divergence,
        DOptimal,
        Exchange,
        ExpectedLoss,
        FisherInformation,
        LocalDP,
        MutualInformation,
        MVOptimal,
        PrivateSampling,
        RenyiLDP,
        Tests,
        TotalVariation,
        TradeOff,
        WeightedSum,
        WorstOf,
        load_design,
        optimal_channel,
    )
    from ldpopt.design.structure import structures
    from ldpopt.errors import CertificateError, InvalidInput, LdpoptError, SolverError
    from ldpopt.frontiers import frontier
    from ldpopt.privacy.audit import audit
    from ldpopt.privacy.guarantee import Guarantee
    from ldpopt.survey.plan.plan import Plan
    from ldpopt.survey.plan.survey import Survey

_HOMES = {
    "AgainstSet": "ldpopt.design",
    "AOptimal": "ldpopt.design",
    "ApproximateLDP": "ldpopt.design",
    "audit": "ldpopt.privacy",
    "CertificateError": "ldpopt.errors",
    "Channel": "ldpopt.channel",
    "cite": "ldpopt.citation",
    "ColumnGeneration": "ldpopt.design",
    "compose": "ldpopt.composition",
    "COptimal": "ldpopt.design",
    "Design": "ldpopt.design",
    "Divergence": "ldpopt.design",
    "DOptimal": "ldpopt.design",
    "Exchange": "ldpopt.design",
    "ExpectedLoss": "ldpopt.design",
    "FisherInformation": "ldpopt.design",
    "frontier": "ldpopt.frontiers",
    "Guarantee": "ldpopt.privacy",
    "InvalidInput": "ldpopt.errors",
    "k_fold": "ldpopt.composition",
    "LdpoptError": "ldpopt.errors",
    "Ledger": "ldpopt.composition",
    "load_design": "ldpopt.design",
    "LocalDP": "ldpopt.design",
    "MutualInformation": "ldpopt.design",
    "MVOptimal": "ldpopt.design",
    "optimal_channel": "ldpopt.design",
    "Plan": "ldpopt.survey.plan.plan",
    "PrivateSampling": "ldpopt.design",
    "RenyiLDP": "ldpopt.design",
    "SolverError": "ldpopt.errors",
    "structures": "ldpopt.design",
    "Survey": "ldpopt.survey.plan.survey",
    "Tests": "ldpopt.design",
    "WorstOf": "ldpopt.design",
    "TotalVariation": "ldpopt.design",
    "TradeOff": "ldpopt.design",
    "WeightedSum": "ldpopt.design",
}

_MODULES = {
    "bounds",
    "channel",
    "composition",
    "datasets",
    "design",
    "divergences",
    "errors",
    "frontiers",
    "io",
    "mechanisms",
    "plots",
    "privacy",
    "survey",
}

__all__ = [
    "AOptimal",
    "AgainstSet",
    "ApproximateLDP",
    "COptimal",
    "CertificateError",
    "Channel",
    "ColumnGeneration",
    "DOptimal",
    "Design",
    "Divergence",
    "Exchange",
    "ExpectedLoss",
    "FisherInformation",
    "Guarantee",
    "InvalidInput",
    "LdpoptError",
    "Ledger",
    "LocalDP",
    "MVOptimal",
    "MutualInformation",
    "Plan",
    "PrivateSampling",
    "RenyiLDP",
    "SolverError",
    "Survey",
    "Tests",
    "TotalVariation",
    "TradeOff",
    "WeightedSum",
    "WorstOf",
    "audit",
    "cite",
    "compose",
    "frontier",
    "k_fold",
    "load_design",
    "optimal_channel",
    "structures",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"ldpopt.{name}")
    raise AttributeError(f"module 'ldpopt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
