// What it means: for one person, the chance of an answer after a report, the best test, and many rounds.

import { lines } from "./charts.js";
import { atMost, h, percent, shown } from "./dom.js";
import { button, numberField, select, slider } from "./fields.js";
import { figure } from "./verdict.js";

const FIRST = {
  source: "question", question: { name: "How often did you gamble last year?", labels: ["never", "once or twice", "monthly", "weekly"], pilot: [0.55, 0.27, 0.12, 0.06] },
  epsilon: 1, eta: null, aim: "together", answer: 3, prior: 0.01, rounds: 1, alpha: 0.05, delta: 1e-6, matrix: null, inputs: null, outputs: null, pilot: null,
};
const LOW = 0.05, HIGH = 12, MAX_ROUNDS = 365;
const logit = (p) => Math.log(p / (1 - p)), SPAN = logit(0.999);
const nice = (p) => (p <= 0.1 ? Number((1 / Math.round(1 / p)).toPrecision(12)) : Number(p.toPrecision(2)));
const clamp = (p) => Math.min(0.999, Math.max(0.001, p));

export const view = {
  name: "meaning",
  title: "What it means",
  initial: (start) => ({ ...FIRST, ...start }),
  mount(root, state, studio) {
    const change = (patch) => studio.change(patch);
    const source = h("p", {}), fresh = button("Use the question from “Ask a question”", () => {
      const ask = studio.state("ask"), one = ask?.questions?.[ask.at];
      if (!one) return;
      const parts = ask.split ?? ask.questions.map(() => 1), all = parts.reduce((sum, part) => sum + part, 0);
      const epsilon = Number.isFinite(ask.epsilon) ? ask.epsilon * (parts[ask.at] / all) : studio.state().epsilon;
      change({ source: "question", question: { name: one.name, labels: one.labels, pilot: one.pilot }, epsilon, eta: ask.eta, aim: ask.aim, answer: 0 });
    });
    const answer = select({ name: "answer", label: "Your answer", value: 0, options: [], onChange: (value) => change({ answer: Number(value) }) });
    const exposed = button("Show the most exposed answer", () => shownNow && change({ answer: shownNow.exposed }), { class: "quiet" });
    const epsilon = [
      slider({ name: "epsilon", label: "ε of one report", value: 1, to: (at) => Number((LOW * (HIGH / LOW) ** at).toPrecision(4)), from: (value) => Math.log(value / LOW) / Math.log(HIGH / LOW),
        say: (value) => `ε = ${shown(value)}`, onInput: (value) => change({ epsilon: value }) }),
      numberField({ name: "epsilon", label: "ε in nats", min: 0, onChange: (value) => change({ epsilon: value }) }),
    ];
    const prior = [
      slider({ name: "prior", label: "Chance of your answer before the report", value: 0.01, to: (at) => nice(1 / (1 + Math.exp(-SPAN * (2 * at - 1)))), from: (value) => (logit(clamp(value)) / SPAN + 1) / 2,
        say: (value) => percent(value), onInput: (value) => change({ prior: value }) }),
      numberField({ name: "prior", label: "This chance as a number", min: 0, max: 1, hint: "0.01 is 1 in 100", onChange: (value) => change({ prior: value }) }),
    ];
    const rounds = [
      slider({ name: "rounds", label: "Fresh reports of the same answer", value: 1, to: (at) => Math.round(MAX_ROUNDS ** at), from: (value) => Math.log(value) / Math.log(MAX_ROUNDS), say: (value) => `${value} ${value === 1 ? "report" : "reports"}`,
        onInput: (value) => change({ rounds: value }) }),
      numberField({ name: "rounds", label: "Number of reports", min: 1, max: MAX_ROUNDS, step: 1, onChange: (value) => change({ rounds: value }) }),
    ];
    const alpha = numberField({ name: "alpha", label: "Fraction of others wrongly suspected", min: 0, max: 1, onChange: (value) => change({ alpha: value ?? 0.05 }) });
    const delta = numberField({ name: "delta", label: "δ of the composed (ε, δ)", min: 0, max: 1, onChange: (value) => change({ delta: value ?? 1e-6 }) });
    const controls = h("div", { class: "controls" },
      h("section", { class: "card", "aria-label": "You" }, h("h2", {}, "You and your answer"), source, fresh, h("div", { "data-field": "question" }), h("div", { "data-field": "question.pilot" }), h("div", { "data-field": "matrix" }),
        answer, exposed, prior),
      h("section", { class: "card", "aria-label": "Reports" }, h("h2", {}, "Your reports"), epsilon, rounds, h("p", { class: "note" }, "Sending the same report again counts only once."),
        h("details", { class: "more" }, h("summary", {}, "More"), alpha, delta)));
    const sentences = h("ol", { class: "promises" }), headline = h("div", { class: "headline" });
    const results = h("div", { class: "results" }, h("section", { class: "card", "aria-label": "In words" }, h("h2", {}, "What a report can reveal"), headline, sentences));
    root.append(h("h1", { class: "visually-hidden" }, "What it means"), controls, results);
    const card = (label) => results.appendChild(h("section", { class: "card", "aria-label": label }));
    const belief = lines(card("Before and after"), {
      title: "Chance of your answer, before and after", file: "posterior", onMove: (x) => change({ prior: nice(clamp(x)) }),
      describe: ({ summary }) => `${summary}. The upper curve is the largest chance after any report, the lower one the smallest.`,
    });
    const test = lines(card("The best test"), {
      title: "The best test for your answer: wrong suspicions and misses", file: "trade-off", onMove: (x) => change({ alpha: Number(Math.min(0.999, Math.max(0.001, x)).toPrecision(2)) }),
      describe: ({ summary }) => `${summary}. No test is below the curve.`,
    });
    const course = lines(card("Many rounds"), {
      title: "Many fresh reports", file: "rounds", onMove: (x) => change({ rounds: Math.min(MAX_ROUNDS, Math.max(1, Math.round(x))) }),
      describe: ({ summary }) => `${summary}. Each curve is a bound for all attackers.`,
    });
    const list = h("div", {}), reports = h("details", { class: "text" }, h("summary", {}, "All reports, and the chance after each"), list);
    card("Every report").append(reports);

    let turn = 0, shownNow = null;

    async function update(now) {
      const thisTurn = ++turn;
      for (const block of epsilon) {
        block.hidden = now.source !== "question";
        block.set(now.epsilon);
      }
      for (const block of prior) block.set(now.prior);
      for (const block of rounds) block.set(now.rounds);
      alpha.set(now.alpha);
      delta.set(now.delta);
      source.textContent = now.source === "question" ? `Question: ${now.question.name || "without a name"}` : "A channel from another view.";
      root.dataset.state = "busy";
      // A link may contain a question with fewer answers than the example.
      const answerCount = now.source === "question" ? now.question.labels?.length : now.matrix?.length;
      const content = await studio.ask("meaning", now.answer >= answerCount ? { ...now, answer: 0 } : now);
      if (thisTurn !== turn) return;
      if (!content) {
        root.dataset.state = "failed";
        return;
      }
      studio.clear();
      shownNow = content;
      paint(content, now);
      root.dataset.state = "done";
      root.dataset.painted = String(thisTurn);
    }

    function paint(content, now) {
      answer.querySelector("select").replaceChildren(...content.answers.map((label, at) => h("option", { value: at }, label)));
      answer.set(content.answer);
      exposed.disabled = content.exposed === content.answer;
      sentences.replaceChildren(...content.sentences.map((one) => h("li", {}, one)));
      const n = now.rounds, many = n > 1 ? `${n} reports` : "one report";
      headline.replaceChildren(...[
        ["before", content.prior.words, "chance before the report"],
        ["after", content.posterior.words, `after ${many}; ${content.posterior.words_least}`],
        ["ε", atMost(content.now.epsilon), n > 1 ? `nats in total; ${atMost(content.now.epsilon_at_delta)} with δ = ${shown(content.delta, 2)}` : "nats, between your answer and any other"],
        ["η", atMost(content.eta), "advantage of the best guess from one report"],
      ].map((one) => figure(...one)));
      const bound = (column) => content.priors.map((row) => [row[0], row[column]]);
      const series = [{ name: "at most, after one report", points: bound(2), tone: 1 }, { name: "at least, after one report", points: bound(1), tone: 0 }];
      if (n > 1) series.push({ name: `at most, after ${n}`, points: bound(4), tone: 1, dash: 1 }, { name: `at least, after ${n}`, points: bound(3), tone: 0, dash: 1 });
      series.push({ name: "no information", points: [[0, 0], [1, 1]], tone: 6, dash: 2, thin: true });
      belief.update({ series, x: { label: "chance before", low: 0, high: 1 }, y: { label: "chance after", high: 1 },
        cursor: { x: content.prior.chance, y: content.posterior.most }, summary: `${content.prior.words}: ${content.posterior.words}` });
      const curves = [{ name: "one report", points: content.test.once, tone: 0 }];
      if (n > 1) curves.push({ name: `${n} reports`, points: content.test.all, tone: 1, dash: 1 });
      curves.push({ name: "without a report", points: [[0, 1], [1, 0]], tone: 6, dash: 2, thin: true });
      test.update({ series: curves, x: { label: "fraction of others wrongly suspected", low: 0, high: 1 }, y: { label: "fraction with your answer missed, at least", high: 1 },
        cursor: { x: content.test.alpha, y: content.test.missed }, summary: `suspects ${percent(content.test.alpha)}: misses at least ${percent(content.test.missed)}` });
      const along = (key) => content.rounds.map((one) => [one.rounds, one[key]]);
      course.update({ series: [{ name: "chance of your answer, at most", points: along("most"), tone: 1 }, { name: "correct guess between two answers, at most", points: along("guess"), tone: 0, dash: 1 },
        { name: "missed by a test, at least", points: along("missed"), tone: 2, dash: 3 }],
      x: { label: "fresh reports", log: true, low: 1, high: MAX_ROUNDS }, y: { label: "chance", high: 1 }, cursor: { x: n, y: content.now.most }, summary: `after ${many}: ${content.posterior.words}` });
      list.replaceChildren(h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Every report: table" }, h("table", {},
        h("caption", {}, `Chances after one report, from ${content.prior.words} before it; the most informative report comes first. “Likely” assumes that the other answers are distributed as in the pilot.`),
        h("thead", {}, h("tr", {}, ["report", "frequency with your answer", "with other answers", "chance after it, at most", "at least", "likely"].map((one) => h("th", { scope: "col" }, one)))),
        h("tbody", {}, content.reports.map((one) => h("tr", {}, h("th", { scope: "row" }, one.report), h("td", {}, percent(one.yours)), h("td", {}, `${percent(one.others[0])} to ${percent(one.others[1])}`),
          h("td", {}, one.words.replace("at most ", "")), h("td", {}, percent(one.least)), h("td", {}, percent(one.likely))))))));
      studio.announce(`${content.prior.words} becomes ${content.posterior.words}.`);
    }

    update(state);
    return { update };
  },
};
