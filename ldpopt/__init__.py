"""ldpopt: design, certify and use locally private mechanisms.

The package itself exports everything that a design problem is stated with: the utilities, the criteria, hypothesis sets
and neighbourhoods that they take, the constraints, and the methods. It also exports the functions that work begins with
(`optimal_channel`, `load_design`, `structures`, `frontier`, `sweep`, `audit`, `compose`, `k_fold` and `cite`), the
classes `Channel`, `Design`, `Guarantee`, `Ledger`, `Plan` and `Survey`, and every error. A test checks this rule.

Everything else is reached through its module: divergences, mechanisms, measures and certificates, for example
``ldpopt.divergences.KL``. A name loads when it is first used, so importing the package stays fast.

>>> import ldpopt
>>> sorted(ldpopt.__all__)[:3]
['AOptimal', 'AgainstSet', 'ApproximateLDP']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ldpopt.version import __version__ as __version__

if TYPE_CHECKING:
    from ldpopt.channel import (
        Channel,
    )
    from ldpopt.citation import (
        cite,
    )
    from ldpopt.composition.compose import compose
    from ldpopt.composition.k_fold import k_fold
    from ldpopt.composition.ledger import Ledger
    from ldpopt.design import (
        AgainstSet,
        AOptimal,
        ApproximateLDP,
        Around,
        BalancedSets,
        Box,
        BranchAndBound,
        CapacityBounded,
        ConcentratedLDP,
        Contamination,
        COptimal,
        DecisionProgram,
        Denominator,
        Design,
        Divergence,
        DOptimal,
        Erasure,
        EstimationColumns,
        EvenPilot,
        Exchange,
        ExpectedLoss,
        FisherInformation,
        GivenDecisions,
        GivenSearch,
        Hull,
        IntegerProgram,
        Invariant,
        LevelLP,
        LevelShapes,
        LocalDP,
        LocalSearch,
        MarginalPatterns,
        MergedPartition,
        MutualInformation,
        MVOptimal,
        Outputs,
        Partition,
        PatternLP,
        PolicyLP,
        PrivateSampling,
        RenyiLDP,
        Rounded,
        Saddle,
        SampledColumns,
        SamplingProgram,
        SmallSets,
        Support,
        TangentExchange,
        Tests,
        TotalVariation,
        TotalVariationBall,
        TradeOff,
        WeightedSum,
        WorstOf,
        load_design,
        optimal_channel,
    )
    from ldpopt.design.structure import structures
    from ldpopt.errors import (
        BudgetExceeded,
        CertificateError,
        InvalidInput,
        LdpoptError,
        SolverError,
    )
    from ldpopt.frontiers import (
        frontier,
        sweep,
    )
    from ldpopt.privacy.audit import audit
    from ldpopt.privacy.guarantee import Guarantee
    from ldpopt.survey.plan.plan import (
        Plan,
    )
    from ldpopt.survey.plan.survey import (
        Survey,
    )

_HOMES = {
    "AgainstSet": "ldpopt.design",
    "AOptimal": "ldpopt.design",
    "ApproximateLDP": "ldpopt.design",
    "Around": "ldpopt.design",
    "audit": "ldpopt.privacy",
    "BalancedSets": "ldpopt.design",
    "Box": "ldpopt.design",
    "BranchAndBound": "ldpopt.design",
    "BudgetExceeded": "ldpopt.errors",
    "CapacityBounded": "ldpopt.design",
    "CertificateError": "ldpopt.errors",
    "Channel": "ldpopt.channel",
    "cite": "ldpopt.citation",
    "compose": "ldpopt.composition",
    "ConcentratedLDP": "ldpopt.design",
    "Contamination": "ldpopt.design",
    "COptimal": "ldpopt.design",
    "Denominator": "ldpopt.design",
    "Design": "ldpopt.design",
    "Divergence": "ldpopt.design",
    "DOptimal": "ldpopt.design",
    "DecisionProgram": "ldpopt.design",
    "SamplingProgram": "ldpopt.design",
    "EstimationColumns": "ldpopt.design",
    "EvenPilot": "ldpopt.design",
    "GivenDecisions": "ldpopt.design",
    "GivenSearch": "ldpopt.design",
    "Saddle": "ldpopt.design",
    "SampledColumns": "ldpopt.design",
    "SmallSets": "ldpopt.design",
    "Erasure": "ldpopt.design",
    "Exchange": "ldpopt.design",
    "ExpectedLoss": "ldpopt.design",
    "FisherInformation": "ldpopt.design",
    "frontier": "ldpopt.frontiers",
    "Guarantee": "ldpopt.privacy",
    "Hull": "ldpopt.design",
    "IntegerProgram": "ldpopt.design",
    "InvalidInput": "ldpopt.errors",
    "Invariant": "ldpopt.design",
    "k_fold": "ldpopt.composition",
    "LdpoptError": "ldpopt.errors",
    "Ledger": "ldpopt.composition",
    "LevelLP": "ldpopt.design",
    "LevelShapes": "ldpopt.design",
    "load_design": "ldpopt.design",
    "LocalDP": "ldpopt.design",
    "LocalSearch": "ldpopt.design",
    "MarginalPatterns": "ldpopt.design",
    "MergedPartition": "ldpopt.design",
    "MutualInformation": "ldpopt.design",
    "MVOptimal": "ldpopt.design",
    "optimal_channel": "ldpopt.design",
    "Outputs": "ldpopt.design",
    "Partition": "ldpopt.design",
    "PatternLP": "ldpopt.design",
    "Plan": "ldpopt.survey.plan.plan",
    "PolicyLP": "ldpopt.design",
    "PrivateSampling": "ldpopt.design",
    "RenyiLDP": "ldpopt.design",
    "Rounded": "ldpopt.design",
    "SolverError": "ldpopt.errors",
    "structures": "ldpopt.design",
    "Support": "ldpopt.design",
    "Survey": "ldpopt.survey.plan.survey",
    "sweep": "ldpopt.frontiers",
    "TangentExchange": "ldpopt.design",
    "Tests": "ldpopt.design",
    "TotalVariation": "ldpopt.design",
    "TotalVariationBall": "ldpopt.design",
    "TradeOff": "ldpopt.design",
    "WeightedSum": "ldpopt.design",
    "WorstOf": "ldpopt.design",
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
    "Around",
    "BalancedSets",
    "Box",
    "BranchAndBound",
    "BudgetExceeded",
    "COptimal",
    "CapacityBounded",
    "CertificateError",
    "Channel",
    "ConcentratedLDP",
    "Contamination",
    "DOptimal",
    "DecisionProgram",
    "Denominator",
    "Design",
    "Divergence",
    "Erasure",
    "EstimationColumns",
    "EvenPilot",
    "Exchange",
    "ExpectedLoss",
    "FisherInformation",
    "GivenDecisions",
    "GivenSearch",
    "Guarantee",
    "Hull",
    "IntegerProgram",
    "InvalidInput",
    "Invariant",
    "LdpoptError",
    "Ledger",
    "LevelLP",
    "LevelShapes",
    "LocalDP",
    "LocalSearch",
    "MVOptimal",
    "MarginalPatterns",
    "MergedPartition",
    "MutualInformation",
    "Outputs",
    "Partition",
    "PatternLP",
    "Plan",
    "PolicyLP",
    "PrivateSampling",
    "RenyiLDP",
    "Rounded",
    "Saddle",
    "SampledColumns",
    "SamplingProgram",
    "SmallSets",
    "SolverError",
    "Support",
    "Survey",
    "TangentExchange",
    "Tests",
    "TotalVariation",
    "TotalVariationBall",
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
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"ldpopt.{name}")
    raise AttributeError(f"module 'ldpopt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
