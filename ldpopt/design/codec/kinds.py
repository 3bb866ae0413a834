"""The classes that a design file may name, each by its own name: nothing else is ever made from a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.boxes import BranchDual
from ldpopt.design.certificates.capacity import InformationCapacity
from ldpopt.design.certificates.contraction import Contraction
from ldpopt.design.certificates.decisions import AlphabetLossDual, SamplingDual
from ldpopt.design.certificates.dominated import Dominated
from ldpopt.design.certificates.envelope import EnvelopeDual
from ldpopt.design.certificates.equivalence import EquivalenceDual
from ldpopt.design.certificates.information import InformationDual
from ldpopt.design.certificates.integer_columns import IntegerColumns
from ldpopt.design.certificates.intervals import IntervalDual
from ldpopt.design.certificates.levels import LevelDual, LevelVariationDual
from ldpopt.design.certificates.losses import LossDual
from ldpopt.design.certificates.marginals import MarginalDual
from ldpopt.design.certificates.pairwise import PairwiseInformation
from ldpopt.design.certificates.parts import PartsBound
from ldpopt.design.certificates.patterns import PatternDual
from ldpopt.design.certificates.policies import PolicyDual
from ldpopt.design.certificates.relaxed import Relaxed
from ldpopt.design.certificates.saddle import SaddlePoint
from ldpopt.design.certificates.unbounded import Unbounded
from ldpopt.design.constraints import (
    ApproximateLDP,
    CapacityBounded,
    ConcentratedLDP,
    Denominator,
    Invariant,
    LocalDP,
    Outputs,
    RenyiLDP,
    Support,
    TotalVariation,
    TradeOff,
)
from ldpopt.design.utilities.against_set import AgainstSet
from ldpopt.design.utilities.column import MutualInformation, WeightedSum, WorstOf
from ldpopt.design.utilities.criteria import AOptimal, COptimal, DOptimal, MVOptimal
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.expected_loss import ExpectedLoss
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.utilities.neighbourhood import Box, Contamination, TotalVariationBall
from ldpopt.design.utilities.private_sampling import PrivateSampling
from ldpopt.design.utilities.sets import Around, Hull
from ldpopt.privacy.capacity import RestrictedAlpha, RestrictedKL, RestrictedRenyi, RestrictedTotalVariation
from ldpopt.privacy.features import Affine, Polynomial
from ldpopt.privacy.guarantee import Guarantee, Witness

UTILITIES = (
    AgainstSet, Divergence, ExpectedLoss, FisherInformation, MutualInformation, PrivateSampling, WeightedSum, WorstOf,
)  # fmt: skip
CONSTRAINTS = (
    ApproximateLDP, CapacityBounded, ConcentratedLDP, Denominator, Invariant, LocalDP, Outputs, RenyiLDP, Support,
    TotalVariation, TradeOff,
)  # fmt: skip
CERTIFICATES = (
    AlphabetLossDual, BranchDual, Contraction, Dominated, EnvelopeDual, EquivalenceDual, InformationCapacity,
    InformationDual, IntegerColumns, IntervalDual, LevelDual, LevelVariationDual, LossDual, MarginalDual,
    PairwiseInformation, PartsBound, PatternDual, PolicyDual, Relaxed, SaddlePoint, SamplingDual, Unbounded,
)  # fmt: skip
CHOICES = (
    AOptimal, Affine, Around, Box, COptimal, Contamination, DOptimal, Hull, MVOptimal, Polynomial, RestrictedAlpha,
    RestrictedKL, RestrictedRenyi, RestrictedTotalVariation, TotalVariationBall,
)  # fmt: skip
"""The classes that a field of a utility or a constraint may hold."""

UNTAGGED = (Guarantee, Witness)
"""The classes of fields that can hold nothing else, so that a file does not name their kind."""

PROBLEM = frozenset({"utility", "constraints", "channel", "edges"})
"""The fields of a certificate that a file states only where they differ from those of its holder."""


@cache
def kinds() -> dict[str, type]:
    """The classes by name, including the dataclasses that certificates hold."""
    found: dict[str, type] = {}
    waiting = [*UTILITIES, *CONSTRAINTS, *CERTIFICATES, *CHOICES, *UNTAGGED]
    while waiting:
        one = waiting.pop()
        if found.setdefault(one.__name__, one) is one and one is not Certificate:
            waiting += [part for part in _parts(one) if part.__name__ not in found]
    return {name: one for name, one in found.items() if not getattr(one, "__abstractmethods__", None)}


@cache
def fields(kind: type) -> dict[str, tuple[Any, bool]]:
    """The fields from which an instance is made: the type of each, and whether it may be missing.

    For a certificate these are its own numbers, without the problem that it is about.
    """
    hints = get_type_hints(kind)
    left_out = PROBLEM if issubclass(kind, Certificate) else frozenset()
    return {
        field.name: (
            hints[field.name],
            field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
        if field.init and field.name not in left_out
    }


def defaults(kind: type) -> dict[str, Any]:
    """The plain defaults of a class's fields."""
    return {field.name: field.default for field in dataclasses.fields(kind)}


def _parts(kind: type) -> Iterator[type]:
    """The dataclasses of this package that the fields of a class are declared to hold."""
    waiting = [hint for hint, _ in fields(kind).values()]
    while waiting:
        hint = waiting.pop()
        waiting += get_args(hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint.__module__.startswith("ldpopt."):
            yield hint
