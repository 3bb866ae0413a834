"""ldpopt: design, certify and use locally private mechanisms.

Names below load when first used, so that importing the package stays fast.

>>> import ldpopt
>>> sorted(ldpopt.__all__)[:3]
['AgainstSet', 'ApproximateLDP', 'CertificateError']
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
        ApproximateLDP,
        Design,
        Divergence,
        Exchange,
        ExpectedLoss,
        LocalDP,
        MutualInformation,
        PrivateSampling,
        RenyiLDP,
        Tests,
        TotalVariation,
        TradeOff,
        WeightedSum,
        optimal_channel,
    )
    from ldpopt.design.structure import structures
    from ldpopt.errors import CertificateError, InvalidInput, LdpoptError, SolverError
    from ldpopt.frontiers import frontier
    from ldpopt.privacy.audit import audit
    from ldpopt.privacy.guarantee import Guarantee

_HOMES = {
    "AgainstSet": "ldpopt.design",
    "PrivateSampling": "ldpopt.design",
    "structures": "ldpopt.design",
    "WeightedSum": "ldpopt.design",
    "TradeOff": "ldpopt.design",
    "Tests": "ldpopt.design",
    "RenyiLDP": "ldpopt.design",
    "MutualInformation": "ldpopt.design",
    "ExpectedLoss": "ldpopt.design",
    "Exchange": "ldpopt.design",
    "ApproximateLDP": "ldpopt.design",
    "Channel": "ldpopt.channel",
    "Design": "ldpopt.design",
    "Divergence": "ldpopt.design",
    "Guarantee": "ldpopt.privacy",
    "InvalidInput": "ldpopt.errors",
    "LdpoptError": "ldpopt.errors",
    "Ledger": "ldpopt.composition",
    "LocalDP": "ldpopt.design",
    "SolverError": "ldpopt.errors",
    "CertificateError": "ldpopt.errors",
    "TotalVariation": "ldpopt.design",
    "audit": "ldpopt.privacy",
    "cite": "ldpopt.citation",
    "compose": "ldpopt.composition",
    "frontier": "ldpopt.frontiers",
    "k_fold": "ldpopt.composition",
    "optimal_channel": "ldpopt.design",
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
    "AgainstSet",
    "ApproximateLDP",
    "CertificateError",
    "Channel",
    "Design",
    "Divergence",
    "Exchange",
    "ExpectedLoss",
    "Guarantee",
    "InvalidInput",
    "LdpoptError",
    "Ledger",
    "LocalDP",
    "MutualInformation",
    "PrivateSampling",
    "RenyiLDP",
    "SolverError",
    "Tests",
    "TotalVariation",
    "TradeOff",
    "WeightedSum",
    "audit",
    "cite",
    "compose",
    "frontier",
    "k_fold",
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
