"""Devices of a plan with booklets: each asks one, routes its questions, and says nothing of the others."""

import json
import random
from collections import Counter
from itertools import product

import numpy as np
import pytest
from kit_plans import CLIENT, NODE, WITHOUT_NODE, booklet_plan, node, ten_plans
from scipy.stats import chi2

from ldpopt.errors import InvalidInput
from ldpopt_survey import Device, Memoized, Simulated, privatize_frame
from ldpopt_survey.collect.coding import JointCoder, Tally
from ldpopt_survey.collect.randomness import booklet_steps
from ldpopt_survey.collect.words import create_key, read_key
from ldpopt_survey.kit.device import answer_position, booklet_position
from ldpopt_survey.kit.folder import languages, public_plan, vectors
from ldpopt_survey.server.submission import CODE, Reader, Refused

PLAN, MEMOISED = booklet_plan(), booklet_plan("id")
SINGLE = {one.name: one for question in PLAN.questions for one in question.answers}
ANSWERS = {"region": "region-1-zq", "drug": "drug-yes-zq", "how often": "often-daily-zq", "smokes": "smokes-no-zq",
           "drinks": "drinks-yes-zq"}  # fmt: skip
needs_node = pytest.mark.skipif(NODE is None, reason=WITHOUT_NODE)


def all_answers():
    """Every answer to every single question, as a device may be given them."""
    names = list(SINGLE)
    asked = [getattr(SINGLE[name], "asked", SINGLE[name].categories) for name in names]
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*asked)]


def test_a_device_asks_one_booklet_in_the_planned_shares():
    """Of 6,000 devices the booklets' shares are the plan's, and each asks its booklet and what everybody is asked."""
    rng = Simulated(np.random.default_rng(4))
    devices = [Device(PLAN, rng) for _ in range(6000)]
    counts = Counter(device.booklet for device in devices)
    expected = {question.name: 6000 * float(question.probability) for question in PLAN.booklets}
    assert set(counts) == set(expected)
    assert chi2.sf(sum((counts[name] - n) ** 2 / n for name, n in expected.items()), 2) > 1e-6
    for device in devices[:50]:
        (booklet,) = (question for question in PLAN.booklets if question.name == device.booklet)
        assert [one.name for one in device.asked_questions] == ["region", *(one.name for one in booklet.answers)]
        sent = device.submission(ANSWERS)
        assert (sent["version"], sent["booklet"], set(sent["reports"])) == (2, booklet.name, {"region", booklet.name})


def test_the_steps_draw_the_booklet():
    """A word at a step draws the next booklet, the word before it the last; both are in rational proportion."""
    for at, step in enumerate(booklet_steps(PLAN).tolist()):
        assert (booklet_position(PLAN, step - 1), booklet_position(PLAN, step)) == (at, at + 1)
    assert (booklet_position(PLAN, 0), booklet_position(PLAN, (1 << 64) - 1)) == (0, 2)


def test_a_memoized_device_has_the_booklet_and_reports_of_files(tmp_path):
    """Under one key a device draws what `privatize_frame` draws for the respondent, again and again."""
    import pyarrow as pa

    create_key(tmp_path / "key")
    people = [dict(ANSWERS, id=f"p{i}", **one) for i, one in enumerate([{}, {"drug": "drug-no-zq"}] * 60)]
    columns = {"id": "id"} | {one.column: name for name, one in SINGLE.items()}
    frame = pa.table({column: [person[name] for person in people] for column, name in columns.items()})
    rows = privatize_frame(MEMOISED, frame, Memoized(tmp_path / "key"))[0].to_pylist()
    assert len({row["booklet"] for row in rows}) == 3
    for person, row in zip(people, rows, strict=True):
        answers = {name: person[name] for name in SINGLE}
        told = {name: label for name, label in row.items() if name != "booklet" and label is not None}
        reports = {name: MEMOISED.question(name).reports.index(label) for name, label in told.items()}
        for device in (Device(MEMOISED, Memoized(tmp_path / "key"), person["id"]) for _ in range(2)):
            assert (device.booklet, device.respond(answers)) == (row["booklet"], reports)


def test_a_part_that_is_not_asked_is_not_read():
    """What does not apply need not be answered and is not looked at; files give the answers the same category."""
    import pyarrow as pa

    composite = PLAN.booklets[0]
    at = {answer_position(composite, {"drug": "drug-no-zq", "how often": often, "smokes": "smokes-yes-zq"})
          for often in (None, "nonsense", "often-daily-zq")}  # fmt: skip
    assert [composite.categories[x] for x in at] == [("drug-no-zq", "not applicable", "smokes-yes-zq")]
    left_out = answer_position(composite, {"drug": "drug-yes-zq", "smokes": "smokes-yes-zq"})
    assert composite.categories[left_out][1] == "often-rarely-zq"  # the category for missing answers
    people = all_answers()
    for question in PLAN.questions:
        frame = {one.column: [person[one.name] for person in people] for one in question.answers}
        (batch,) = pa.table(frame).to_batches()
        expected = JointCoder(question).read(batch, Tally(), int)[0].tolist()
        assert [answer_position(question, person) for person in people] == expected


@pytest.mark.parametrize("change", [{"drug": "secret"}, {"drug": None}, {"drug": "not applicable"}, {"other": "secret"},
                                    {"how often": "not applicable"}, {"region": "secret"}])  # fmt: skip
def test_answers_outside_the_plan_are_refused(change):
    """An answer outside the plan is refused without being quoted; "not applicable" is nobody's own answer."""
    device = next(one for one in (Device(PLAN) for _ in range(1000)) if one.booklet == PLAN.booklets[0].name)
    with pytest.raises(InvalidInput) as refused:
        device.respond(ANSWERS | change)
    assert "secret" not in str(refused.value)


def test_texts_are_given_for_single_questions():
    """A survey's texts name the parts of a shared report, with the answers that can be chosen."""
    texts = {"code": "de", "questions": {"how often": {"text": "Wie oft?", "answers": {"often-daily-zq": "täglich"}}}}
    assert languages(PLAN, [json.dumps(texts)])["de"]["questions"]["how often"]["text"] == "Wie oft?"
    for name, answers in (("how often", {"not applicable": "a"}), ("smokes + drinks", {})):
        with pytest.raises(InvalidInput):
            languages(PLAN, [json.dumps({"code": "de", "questions": {name: {"answers": answers}}})])


@needs_node
def test_node_and_python_draw_the_same_booklets_and_joint_answers(tmp_path):
    """For words around the steps and 5,000 others, and for every combination of answers."""
    script = """
    import { readFileSync } from "node:fs";
    const [client, file] = process.argv.slice(2);
    const { readPlan, bookletAt, cellAt } = await import(client);
    const { plan: made, words, people } = JSON.parse(readFileSync(file));
    const plan = readPlan(made);
    const position = ({ name, answers }, person) => answers.indexOf(person[name]);
    const cells = plan.questions.filter((one) => one.parts).map((one) =>
      people.map((person) => cellAt(one, (i) => position(one.parts[i], person))));
    console.log(JSON.stringify([words.map((word) => bookletAt(plan, BigInt(word))), cells]));
    """
    rng = random.Random(1)
    words = [step + more for step in booklet_steps(PLAN).tolist() for more in (-1, 0, 1)]
    words += [0, (1 << 64) - 1, *(rng.getrandbits(64) for _ in range(5000))]
    given = {"plan": public_plan(PLAN), "words": [str(word) for word in words], "people": all_answers()}
    (tmp_path / "given").write_text(json.dumps(given))
    booklets, cells = json.loads(node(script, CLIENT, tmp_path / "given"))
    assert booklets == [booklet_position(PLAN, word) for word in words]
    shared = [question for question in PLAN.questions if question.parts]
    assert cells == [[answer_position(question, person) for person in all_answers()] for question in shared]


@needs_node
def test_vectors_of_booklets_pass_in_node_and_a_wrong_one_fails(tmp_path):
    """The client's own check covers booklets, composite answers and the booklet's memoised words."""
    script = """
    import { readFileSync } from "node:fs";
    const [client, file] = process.argv.slice(2);
    const { readPlan, checkVectors } = await import(client);
    const said = [];
    for (const [made, vectors] of JSON.parse(readFileSync(file))) {
      const plan = readPlan(made);
      await checkVectors(plan, vectors);
      for (const name of ["reports", "words", "booklets", "cells"]) {
        if (!vectors[name].length) continue;
        const last = vectors[name].at(-1);
        const before = last.at(-1);
        last[last.length - 1] = typeof before === "number" ? before + 1 : `0${before}`.slice(0, -1);
        said.push(await checkVectors(plan, vectors).then(() => "passed", (error) => error.code));
        last[last.length - 1] = before;
      }
    }
    console.log(JSON.stringify(said));
    """
    (tmp_path / "given").write_text(json.dumps([[public_plan(plan), vectors(plan)] for plan in (PLAN, MEMOISED)]))
    assert json.loads(node(script, CLIENT, tmp_path / "given")) == ["vectors"] * 7


@needs_node
def test_node_draws_the_booklet_and_reports_of_a_key(tmp_path):
    """Under the same keys the client's booklets and reports are the Python device's."""
    script = """
    import { readFileSync } from "node:fs";
    const [client, file] = process.argv.slice(2);
    const { readPlan, respond, submission } = await import(client);
    const { plan: made, keys, answers } = JSON.parse(readFileSync(file));
    const plan = readPlan(made);
    const sent = [];
    for (const hex of keys) {
      const bytes = Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
      const key = await crypto.subtle.importKey("raw", bytes, "AES-CBC", false, ["encrypt"]);
      sent.push(submission(plan, await respond(plan, answers, { key }), { id: "0" }));
    }
    console.log(JSON.stringify(sent));
    """
    expected, keys = [], []
    for at in range(12):
        create_key(tmp_path / f"key-{at}")
        keys.append(read_key(tmp_path / f"key-{at}").derive(b"ldpopt memo").hex())
        expected.append(Device(MEMOISED, Memoized(tmp_path / f"key-{at}")).submission(ANSWERS) | {"id": "0"})
    (tmp_path / "given").write_text(json.dumps({"plan": public_plan(MEMOISED), "keys": keys, "answers": ANSWERS}))
    assert json.loads(node(script, CLIENT, tmp_path / "given")) == expected


@needs_node
def test_requests_are_the_same_under_other_answers(tmp_path):
    """With the words fixed so that the reports follow under every answer, every booklet's request is one text."""
    script = """
    import { readFileSync } from "node:fs";
    const [client, file] = process.argv.slice(2);
    const { readPlan, respond, submission, send } = await import(client);
    const { plan: made, people } = JSON.parse(readFileSync(file));
    const plan = readPlan(made);
    const sent = {};
    let first = 0;
    const real = crypto.getRandomValues.bind(crypto);
    crypto.getRandomValues = (array) => { array.fill(1); if (first) { array[0] = first; first = 0; } return array; };
    globalThis.fetch = async (url, options) => {
      const { signal, ...said } = options;
      const body = JSON.parse(options.body);
      (sent[body.booklet] ??= []).push(JSON.stringify([url, said]));
      return new Response('{"stored": true}', { status: 201 });
    };
    for (const word of [1, 0x90000000, 0xf0000000]) { // the first word of each visit draws the booklet
      for (const person of people) {
        first = word;
        await send("./submissions", submission(plan, await respond(plan, person)));
      }
    }
    console.log(JSON.stringify(Object.entries(sent).map(([name, all]) => [name, all.length, [...new Set(all)]])));
    """
    (tmp_path / "given").write_text(json.dumps({"plan": public_plan(PLAN), "people": all_answers()}))
    made = json.loads(node(script, CLIENT, tmp_path / "given"))
    assert [name for name, _, _ in made] == [question.name for question in PLAN.booklets]
    for name, count, requests in made:
        assert count == len(all_answers())
        assert len(requests) == 1
        body = json.loads(json.loads(requests[0])[1]["body"])
        assert (body["booklet"], set(body["reports"])) == (name, {"region", name})


def test_the_collector_takes_exactly_the_drawn_booklet():
    """A submission is a known booklet's report and everybody's, under version 2; everything else is refused."""
    reader = Reader(PLAN)
    seen = set()
    for _ in range(60):
        sent = Device(PLAN).submission(ANSWERS, "abc")
        at = [question.name for question in PLAN.booklets].index(sent["booklet"])
        seen.add(at)
        codes = np.frombuffer(reader.read(json.dumps(sent).encode()).codes, CODE).tolist()
        assert codes == [at, sent["reports"][sent["booklet"]], sent["reports"]["region"]]
    assert seen == {0, 1, 2}
    one, other = (question.name for question in PLAN.booklets[:2])
    good = sent | {"booklet": one, "reports": {"region": 0, one: 7}}
    reader.read(json.dumps(good).encode())
    wrong = [
        good | {"version": 1},
        {name: value for name, value in good.items() if name != "booklet"},
        *[good | {"booklet": name} for name in (other, "region", "another", None, 0, ["drinks"])],
        *[good | {"reports": reports} for reports in ({one: 7}, {"region": 0}, {"region": 0, other: 0},
          {"region": 0, one: 7, other: 0}, {"region": 0, one: 8}, {"region": 0, one: None}, {})],
    ]  # fmt: skip
    for body in wrong:
        with pytest.raises(Refused) as refused:
            reader.read(json.dumps(body).encode())
        assert refused.value.status == 422
    plain = next(plan for plan in ten_plans() if plan.respondent is None)
    sent = Device(plain).submission({question.name: question.categories[0] for question in plain.questions})
    for body in (sent | {"version": 2}, sent | {"booklet": "drinks"}, sent | {"booklet": "drinks", "version": 2}):
        with pytest.raises(Refused):
            Reader(plain).read(json.dumps(body).encode())
