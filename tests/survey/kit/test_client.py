"""The JavaScript client draws what Python draws, word for word, and says of its numbers no more than they prove."""

import json
import random

import numpy as np
import pytest
from kit_plans import CLIENT, NODE, WITHOUT_NODE, drawn_by_node, node, ten_plans
from scipy.stats import chi2

from ldpopt_survey.collect.coding import Sampler
from ldpopt_survey.collect.words import ListedWords
from ldpopt_survey.kit.folder import boundary_words, public_plan, vectors

PLANS = ten_plans()
pytestmark = pytest.mark.skipif(NODE is None, reason=WITHOUT_NODE)


def test_node_and_python_draw_the_same_reports(tmp_path):
    """For words at the edges of steps and at random, every question's reports are equal in both languages."""
    rng, drawn = random.Random(2), np.random.default_rng(2)
    drawings = []
    for plan in PLANS:
        answers, words = [], []
        for question in plan.questions:
            k = len(question.categories)
            edges = [(x, word) for x in range(k) for word in boundary_words(question, x, rng)]
            answers.append(np.r_[[x for x, _ in edges], drawn.integers(k, size=1000)].astype(np.uint16))
            given = np.array([word for _, word in edges], np.uint64)
            words.append(np.r_[given, drawn.integers(1 << 64, size=1000, dtype=np.uint64)])
        drawings.append((plan, answers, words))
    for (plan, answers, words), found in zip(drawings, drawn_by_node(tmp_path, drawings), strict=True):
        for question, chosen, given, reports in zip(plan.questions, answers, words, found, strict=True):
            assert np.array_equal(Sampler(question.channel).reports(chosen, ListedWords(given)), reports), plan.name


@pytest.mark.full
def test_vectors_pass_in_node_and_a_wrong_one_fails(tmp_path):
    """The client's own check passes for every plan, memoised words included, and finds one wrong report or word."""
    script = """
    import { readFileSync } from "node:fs";
    const [client, folder] = process.argv.slice(2);
    const { readPlan, checkVectors } = await import(client);
    const said = [];
    for (let i = 0; i < 10; i++) {
      const plan = readPlan(JSON.parse(readFileSync(`${folder}/plan-${i}`)));
      const vectors = JSON.parse(readFileSync(`${folder}/vectors-${i}`));
      await checkVectors(plan, vectors);
      for (const list of [vectors.reports, vectors.words]) {
        if (!list.length) continue;
        const before = list[list.length - 1][3];
        list[list.length - 1][3] = typeof before === "number" ? before + 1 : `0${before}`.slice(0, -1);
        said.push(await checkVectors(plan, vectors).then(() => "passed", (error) => error.code));
        list[list.length - 1][3] = before;
      }
    }
    console.log(JSON.stringify(said));
    """
    for i, plan in enumerate(PLANS):
        (tmp_path / f"plan-{i}").write_text(json.dumps(public_plan(plan)), encoding="utf-8")
        (tmp_path / f"vectors-{i}").write_text(json.dumps(vectors(plan)), encoding="utf-8")
    assert set(json.loads(node(script, CLIENT, tmp_path))) == {"vectors"}


@pytest.mark.full
def test_the_shares_of_fresh_reports_are_the_channel_s(tmp_path):
    """Of 200,000 reports that the client draws with its own randomness, chi-square is not in the last 1e-6."""
    script = """
    import { readFileSync } from "node:fs";
    const [client, file] = process.argv.slice(2);
    const { readPlan, respond } = await import(client);
    const plan = readPlan(JSON.parse(readFileSync(file)));
    const counts = plan.questions.map((q) => q.reports.map(() => 0));
    for (let i = 0; i < 200000 / plan.questions.length; i++) {
      const answers = Object.fromEntries(plan.questions.map((q) => [q.name, q.answers[1]]));
      const reports = await respond(plan, answers);
      plan.questions.forEach((q, at) => (counts[at][reports[q.name]] += 1));
    }
    console.log(JSON.stringify(counts));
    """
    plan = PLANS[2]
    (tmp_path / "plan.json").write_text(json.dumps(public_plan(plan)), encoding="utf-8")
    for question, counts in zip(plan.questions, json.loads(node(script, CLIENT, tmp_path / "plan.json")), strict=True):
        chances = question.channel.matrix[1]
        counts = np.array(counts)
        assert not counts[chances == 0].any()
        expected = chances * counts.sum()
        common = expected >= 5
        rest = expected[~common].sum()
        statistic = float(((counts - expected)[common] ** 2 / expected[common]).sum())
        statistic += (counts[~common].sum() - rest) ** 2 / rest if rest >= 5 else 0
        assert chi2.sf(statistic, common.sum() - (rest < 5)) > 1e-6


def test_the_promise_is_rounded_outward():
    """The numbers of the page are never below the ratio, nor above it by more than their last digit."""
    script = """
    const { timesAtMost, sureAtMost } = await import(process.argv[2]);
    const cases = JSON.parse(process.argv[3]).map((pair) => pair.map(BigInt));
    console.log(JSON.stringify(cases.map((pair) => [timesAtMost(pair), sureAtMost(pair)])));
    """
    from decimal import Decimal
    from fractions import Fraction

    rng = random.Random(7)
    cases = [[2, 1], [1, 1], [10, 1], [199, 100], [1991, 1000], [999, 100], [2**62, 1], [2**62 - 1, 2**62 - 2]]
    cases += [sorted((rng.randint(1, 2**62), rng.randint(1, 2**62)), reverse=True) for _ in range(300)]
    figures = CLIENT.with_name("figures.js")
    made = json.loads(node(script, figures, json.dumps([[str(a), str(b)] for a, b in cases])))
    for (above, below), (times, sure) in zip(cases, made, strict=True):
        ratio, said = Fraction(above, below), Fraction(Decimal(repr(times)))
        step = Fraction(1, 100) if said < 2 else Fraction(1, 10) if said < 10 else 1
        assert said >= ratio
        assert said - ratio < step or said - ratio < ratio / 2**50
        assert 0 <= Fraction(sure, 100) - ratio / (1 + ratio) < Fraction(1, 100)


WRONG = [
    ('plan.questions[0].weights[0][0] = "1"', "plan"),
    ("plan.questions[0].bits = 63", "plan"),
    ("plan.questions[0].weights[0].pop()", "plan"),
    ('plan.questions[0].weights[0][0] = "0x10"', "plan"),
    ('plan.questions[0].answers[1] = plan.questions[0].answers[0]', "plan"),
    ('plan.checksum = "abc"', "plan"),
    ('answers = { "no such question": "a" }', "answer"),
    ('answers = {}', "answer"),
    ('answers[plan.questions[0].name] = "secret"', "answer"),
]  # fmt: skip
"""Changes of a plan and of answers to it, with the code of the refusal."""


def test_altered_plans_and_unlisted_answers_are_refused(tmp_path):
    """Altered plans and answers outside the plan raise an error with a code, and no message quotes an answer."""
    changes = ",".join(f"(plan, answers) => {{ {change}; return answers; }}" for change, _ in [("", ""), *WRONG])
    script = f"""
    import {{ readFileSync }} from "node:fs";
    const [client, file] = process.argv.slice(2);
    const {{ readPlan, respond }} = await import(client);
    const said = [];
    for (const change of [{changes}]) {{
      const plan = JSON.parse(readFileSync(file));
      const answers = change(plan, Object.fromEntries(plan.questions.map((q) => [q.name, q.answers[0]])));
      const made = (async () => respond(readPlan(plan), answers))();
      said.push(await made.then(() => ["drawn", ""], (error) => [error.code, error.message]));
    }}
    console.log(JSON.stringify(said));
    """
    (tmp_path / "plan.json").write_text(json.dumps(public_plan(PLANS[0])), encoding="utf-8")
    said = json.loads(node(script, CLIENT, tmp_path / "plan.json"))
    assert [code for code, _ in said] == ["drawn", *(code for _, code in WRONG)]
    assert not any("secret" in message for _, message in said)
