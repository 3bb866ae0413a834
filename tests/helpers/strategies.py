"""Hypothesis strategies: distributions, channels, policy graphs, exact channels and survey plans."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from ldpopt.channel import Channel
from ldpopt.exact import ExactChannel
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

LABELS = st.one_of(st.text(min_size=1, max_size=8), st.integers(-(10**6), 10**6))
NAMES = st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=1, max_size=8)
WEIGHTS = st.one_of(st.floats(1e-300, 1.0), st.sampled_from([0.0, 5e-324, 1e-300, 1e-16, 1.0]), st.floats(0.01, 1.0))


@st.composite
def distributions(draw: st.DrawFn, size: int | None = None) -> np.ndarray:
    """A probability vector, with zeros and entries down to the smallest float."""
    count = draw(st.integers(1, 6)) if size is None else size
    weights = np.array(draw(st.lists(WEIGHTS, min_size=count, max_size=count)))
    if weights.sum() < 1e-290:
        weights[draw(st.integers(0, count - 1))] = 1.0
    return weights / weights.sum()


@st.composite
def channels(draw: st.DrawFn, inputs: int | None = None) -> Channel:
    """A channel of up to 5 inputs and 6 outputs, with labels, some rows repeated or nearly so."""
    k = draw(st.integers(1, 5)) if inputs is None else inputs
    m = draw(st.integers(1, 6))
    rows = [draw(distributions(m)) for _ in range(k)]
    for x in range(1, k):
        likeness = draw(st.sampled_from([0.0, 0.0, 1.0, 1e-12]))
        if likeness == 1.0:
            rows[x] = rows[0]
        elif likeness:
            rows[x] = (1 - likeness) * rows[0] + likeness * rows[x]
    labels = draw(st.one_of(st.none(), st.lists(LABELS, min_size=k, max_size=k, unique_by=str)))
    return Channel(np.array(rows), inputs=labels)


@st.composite
def graphs(draw: st.DrawFn, channel: Channel) -> nx.Graph:
    """A policy graph on the inputs of a channel, directed or not."""
    graph = draw(st.sampled_from([nx.Graph, nx.DiGraph]))()
    graph.add_nodes_from(channel.inputs)
    pairs = [(a, b) for a in channel.inputs for b in channel.inputs if a != b]
    if pairs:
        graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), max_size=8)))
    return graph


@st.composite
def exact_channels(draw: st.DrawFn) -> ExactChannel:
    """Integers of 1 to 62 bits whose rows sum to a power of two."""
    k, m, bits = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 62))
    cuts = [sorted(draw(st.lists(st.integers(0, 1 << bits), min_size=m - 1, max_size=m - 1))) for _ in range(k)]
    return ExactChannel([[b - a for a, b in zip([0, *cut], [*cut, 1 << bits], strict=True)] for cut in cuts], bits)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan of one to three questions with any channels that have a finite epsilon."""
    questions = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique_by=str.casefold)):
        labels = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
        questions.append(QuestionSpec(name, tuple(labels), missing=draw(st.sampled_from([None, labels[0]]))))
    spec = SurveySpec("survey", tuple(questions), round=draw(st.integers(1, 9)))

    def channel(question: QuestionSpec) -> Channel:
        k = len(question.categories)
        base = np.stack([draw(distributions(3)) for _ in range(k)])
        return Channel((base + 1 / 3) / (base + 1 / 3).sum(axis=1, keepdims=True), inputs=question.categories)

    return make_plan(spec, channel)
