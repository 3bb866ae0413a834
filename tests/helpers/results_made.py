"""One result of every public class of results, made as a user makes it."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import networkx as nx
import numpy as np
from method_examples import proved_by

import ldpopt_survey as survey
from experiments.papers import Outcome, Table, Verdict
from ldpopt import (
    ApproximateLDP,
    Channel,
    Denominator,
    Divergence,
    FisherInformation,
    Ledger,
    LocalDP,
    MutualInformation,
    TotalVariation,
    audit,
    bounds,
    compose,
    datasets,
    frontier,
    k_fold,
    optimal_channel,
    privacy,
    structures,
    sweep,
)
from ldpopt.composition import GaussianLimit, PrivacyFilter, PrivacyOdometer, shuffled
from ldpopt.design import (
    AgainstSet,
    BranchAndBound,
    ExpectedLoss,
    Hull,
    InformationCapacity,
    Invariant,
    MarginalPatterns,
    MergedExchange,
    Outputs,
    PatternLP,
    PrivateSampling,
    RenyiLDP,
    RespondentsBound,
    SharedInformation,
    Support,
    WeightedSum,
    WorstOf,
)
from ldpopt.design.codec.kinds import encodable_subtypes
from ldpopt.design.kernel.certificate import Certificate, Unbounded
from ldpopt.divergences import KL
from ldpopt.divergences import TOTAL_VARIATION as DISTANCE
from ldpopt.frontiers import after_shuffling, envelope
from ldpopt.io import Populations
from ldpopt.mechanisms import randomized_response
from ldpopt_survey.datafiles.columns import profile
from ldpopt_survey.paper.design import DICE
from ldpopt_survey.server import RoundState, Summary

FLIP = Channel([[0.75, 0.25], [0.25, 0.75]], ["yes", "no"], ["yes", "no"])
P, Q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]


@cache
def surveyed():
    """A planned survey with its simulated reports, and what is made of them."""
    spec = survey.SurveySpec("demo", (survey.QuestionSpec("vote", ("no", "yes"), epsilon=1.0),), carry=("sex",))
    planned = survey.plan_survey(spec)
    rng = np.random.default_rng(1)
    yes, old = rng.random(400) < 0.3, rng.random(400) < 0.5
    answers = np.where(yes, "yes", "no").tolist()
    channel = planned.designs["vote"].channel
    reports = channel.sample(answers, rng).tolist()
    return planned, channel, reports, np.where(old, "old", "young").tolist(), spec


def estimated():
    """An estimate, the channel and the reports behind it, and a public column."""
    _, channel, reports, ages, _ = surveyed()
    return survey.estimate(reports, channel), channel, reports, ages


def of_survey():
    """What surveys give."""
    planned, _, _, _, spec = surveyed()
    made, channel, reports, ages = estimated()
    groups = {
        name: survey.estimate(table, channel) for name, table in survey.tables_by_group(reports, channel, ages).items()
    }
    design = np.column_stack([np.ones(400), np.array(ages) == "old"])
    data = {"vote": reports, "age": ages}
    precision = survey.HalfWidth(0.05)
    told = [
        ({"no": 60, "yes": 40}, survey.directed_answers(0.25)),
        ({"no": 40, "yes": 60}, survey.directed_answers(0.75)),
    ]
    checked = survey.estimate_compliance(told, "no")
    ages = survey.estimate({"0-9": 300, "10-19": 100}, Channel(FLIP.matrix, ["0-9", "10-19"], ["0-9", "10-19"]))
    yield from (planned, planned.plan, planned.plan.questions[0], made, made.intervals(), made.table)
    yield survey.difference(groups["old"], groups["young"])
    yield survey.Findings(made, groups)
    yield made.project(survey.simplex_projection)
    yield survey.parametric_bootstrap(reports, channel, np.random.default_rng(2), 50)
    crossed = survey.two_way(reports, reports[::-1], channel, channel)
    one = Channel([[1.0]], ["all"], ["all"])
    yield from (crossed, survey.ThreeWayTable(crossed.joint, channel, channel, one))
    yield survey.logistic_regression(reports, design, channel)
    yield survey.logit_regression("vote ~ age", data, {"vote": channel})
    yield survey.goodness_of_fit(reports, channel, [0.7, 0.3])
    yield survey.goodness_of_fit_power(channel, [0.7, 0.3], [0.5, 0.5], 500)
    yield from (checked, checked.among_compliers("yes"), survey.quantile(ages, 0.5))
    yield survey.compare_protocols([0.3, 0.7], precision, 1.0)
    yield survey.multi_select(["a", "b"], 1.0)
    yield survey.numeric_question(0.0, 10.0, 1.0, 0.5)
    yield survey.split_budget({"vote": ([0.3, 0.7], precision)}, survey.Budget(1.0))
    yield survey.respondents_needed(spec, [1.0])[0]
    yield survey.RemainingBudget(2, 1.0, 40, 2, ())
    yield survey.TargetPrecision("cells of drug x smokes", "yes x no", "half_width", 0.05, 0.04, 1000.0)
    yield survey.plan_two_stages(2000, 1.0, [[0.3, 0.7]], draws=2)
    yield survey.paper_survey(planned.plan, DICE)
    yield survey.SampleDesign(weights=[1.0, 3.0, 2.0, 2.0]).total_variance([0, 1, 1, 0])
    with TemporaryDirectory() as folder:
        Path(folder, "answers.csv").write_text("vote,sex\nno,f\nyes,m\nno,f\n", "utf-8")
        proposed = survey.propose(profile(Path(folder, "answers.csv")))
        yield from (proposed, proposed.questions[0])
        drawn = survey.Simulated(np.random.default_rng(1))
        survey.privatize(planned.plan, Path(folder, "answers.csv"), Path(folder, "out"), drawn)
        yield survey.aggregate(planned.plan, Path(folder, "out"))
        yield survey.read_rows(planned.plan, Path(folder, "out"), ["sex"])


def of_channels():
    """What a channel, a pair and a composition give."""
    pair = privacy.FinitePair([0.75, 0.25], [0.25, 0.75])
    report = audit(FLIP)
    yield from (FLIP, FLIP.exact(8), FLIP.exact(8).proof(), FLIP.exact(8).loss(FLIP.matrix))
    yield from (report, report["local_dp"], report["local_dp"].witness, report.curve, pair, privacy.mcdp(FLIP))
    yield from (compose([FLIP, FLIP]), k_fold(0.5, count=5), GaussianLimit(1.0, 0.01), Ledger().add(FLIP, 3))
    yield from (PrivacyFilter(privacy.PureDP(1.0)).add((0.5,)), PrivacyOdometer(1e-6).add(FLIP))
    yield from (privacy.PureDP(1.0), privacy.ApproximateDP(1.0, 1e-6), privacy.TV(0.5), privacy.RenyiDP(2.0, 0.5))
    yield from (privacy.ZCDP(0.0, 0.5), privacy.MCDP(0.1, 0.5), privacy.ApproximateZCDP(1e-6, 0.0, 0.5))


def of_designs():
    """Designs of every kind with their certificates, tables of designs, and bounds."""
    pair = Divergence(KL, P, Q)
    two = [LocalDP(1.0), TotalVariation(0.3)]
    made = optimal_channel(pair, two)
    yield from (made, made.verify())
    yield optimal_channel(FisherInformation(P), LocalDP(1.0))
    yield optimal_channel(pair, [LocalDP(1.0), Denominator(12)])
    table = frontier(pair, [1.0], np.linspace(0.01, 0.4, 24))
    swept = sweep(pair, LocalDP, [0.5, 1.0])
    yield from (table, table.rows[0], swept, swept.rows[0])
    found = structures(pair, 0.1, 5.0, tolerance=1e-3)
    yield from (found, found.pieces[0])
    corners = envelope(pair, 1.0)
    yield from (corners, corners.corners[0])
    compared = bounds.compare([0.9, 0.1], [0.4, 0.6], 1.0)
    yield from (compared, compared.rows[0], bounds.chernoff_of_several([P, Q, [0.2, 0.5, 0.3]], 1.0))
    family = {"kRR": lambda epsilon: randomized_response(3, epsilon)}
    shuffled_ones = after_shuffling(FisherInformation(P), 0.1, 1e-6, 1000, family)
    yield from (shuffled_ones, shuffled_ones.rows[0], shuffled(FLIP, 100))


def of_certificates():
    """A certificate of every class, each of a small problem that is proved by it; of a new class, its method's own."""
    pair, one, information = Divergence(KL, P, Q), LocalDP(1.0), MutualInformation(P)
    path = LocalDP(1.0, graph=nx.path_graph(3))
    mixed, mask = [0.25, 0.5, 0.25], np.array([[True, True, False], [True, True, True]])
    two = Divergence(DISTANCE, [0.375, 0.625], [0.625, 0.375])
    loss = ExpectedLoss(P, 1.0 - np.eye(3))
    distances = WeightedSum([1.0, 2.0], [Divergence(DISTANCE, p, Q) for p in (P, mixed)])
    made = []
    for utility, constraints, method in [
        (pair, [TotalVariation(0.2)], None),
        (pair, [one, TotalVariation(0.3)], None),
        (pair, [one, TotalVariation(0.3)], PatternLP()),
        (pair, [ApproximateLDP(1.0, 0.01)], None),
        (pair, [ApproximateLDP(1.0, 0.01)], MergedExchange(2, points=3)),
        (pair, [one, Outputs(2)], None),
        (distances, [one], MarginalPatterns()),
        (information, [one, TotalVariation(0.3)], None),
        (information, [path, TotalVariation(0.3)], None),
        (MutualInformation(np.full(16, 1 / 16)), [one], None),
        (two, [LocalDP(1.0, graph=nx.path_graph(2))], None),
        (two, [Support(mask), TotalVariation(0.4)], None),
        (two, [Support(mask), TotalVariation(0.4)], BranchAndBound(nodes=20)),
        (two, [one, Denominator(6)], None),
        (loss, [one], None),
        (loss, [Invariant(Q), one], None),
        (WorstOf(KL, P, [Q, mixed]), [ApproximateLDP(0.5, 0.1), TotalVariation(0.25)], None),
        (WorstOf(KL, P, [Q, mixed]), [one, TotalVariation(0.2)], MarginalPatterns()),
        (information, [ApproximateLDP(1.0, 0.05), TotalVariation(0.3)], None),
        (information, [RenyiLDP(2.0, 0.5)], None),
        (AgainstSet(KL, P, Hull([Q, mixed])), [one], None),
        (PrivateSampling(DISTANCE, [P, Q]), [LocalDP(0.5), TotalVariation(0.1)], None),
        (FisherInformation(P), [one], None),
    ]:
        made.append(optimal_channel(utility, constraints, method=method).certificate)
    # Of some classes none is chosen for a small problem: they bound where better ones cannot be had.
    for kind, utility in (
        (InformationCapacity, information),
        (Unbounded, pair),
        (SharedInformation, FisherInformation(P)),
    ):
        made.append(kind(utility, (one,), randomized_response(3, 1.0)))
    yield from made
    yield from (design.certificate for design in proved_by({*encodable_subtypes(Certificate)} - {*map(type, made)}))
    yield RespondentsBound.from_targets(1.0, (P,), (np.eye(3),), (np.full(3, 1e-4),), (np.ones(3),))


def others():
    """Records of files, data and experiments."""
    yield Populations(("no", "yes"), np.array([0.3, 0.7]), np.array([0.6, 0.4]))
    yield from (datasets.load_anes96(), datasets.load_anes96()["vote"])
    yield from (Table(({"k": 3, "value": 0.5},)), Verdict(next(iter(Outcome)), "holds", {"worst": 0.5}))
    yield from (bounds.stein(P, Q, 1.0), bounds.respondents_to_decide(P, Q, 0.1, 0.1, 1.0))
    yield survey.respondents_to_distinguish(FLIP, [0.9, 0.1], [0.4, 0.6])
    yield from (Summary(False, {"2026-01-30": 2}, 0, 0), RoundState(False, True))


@cache
def results():
    """All of them."""
    return tuple(one for source in (of_channels, of_designs, of_certificates, of_survey, others) for one in source())
