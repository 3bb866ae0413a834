// Ask a question: people, half-width or epsilon from the other two, a comparison of protocols, simulated surveys.

import { channelMap, intervals, protocols, repeats } from "./ask_pictures.js";
import { question } from "./ask_question.js";
import { questionnaire } from "./ask_questionnaire.js";
import { atMost, h, percent, shown } from "./dom.js";
import { button, checkbox, numberField, select, slider } from "./fields.js";
import { parts } from "./shares.js";
import { figure, verdict } from "./verdict.js";

const FIRST = {
  questions: [{ name: "How often did you gamble last year?", labels: ["never", "once or twice", "monthly", "weekly"], pilot: [0.55, 0.27, 0.12, 0.06], half_width: 0.05 }],
  at: 0, solve: "respondents", epsilon: 1, eta: null, respondents: 3000, aim: "together", level: 0.95, split: null, seed: 1, category: 1,
};
const LOW = 0.05, HIGH = 12;
const SOLVE = [["respondents", "the number of people, from ε and half-width"], ["half_width", "the half-width, from ε and people"], ["epsilon", "ε, from people and half-width"]];
const AIMS = [["together", "the sum of all variances"], ["widest", "the widest interval, as ldpopt survey plan does"]];

const round = (value) => Number(value.toPrecision(4));

export const view = {
  name: "ask",
  title: "Ask a question",
  initial: (start) => ({ ...FIRST, ...start }),
  mount(root, state, studio) {
    const controls = h("div", { class: "controls" }), results = h("div", { class: "results" });
    root.append(h("h1", { class: "seen" }, "Ask a question"), controls, results);
    const change = (patch) => studio.change(patch);
    const change0 = (patch) => {
      const now = studio.state();
      change({ questions: now.questions.map((one, at) => (at === now.at ? { ...one, ...patch } : one)) });
    };

    const fields = wanted(controls, change, change0);
    const asked = question(controls, studio, change0);

    const said = verdict(root, { label: "The survey", working: "designing" });
    const means = button("What it means for one person", () => {
      const now = studio.state(), one = now.questions[now.at];
      studio.open("meaning", { source: "question", question: { name: one.name, labels: one.labels, pilot: one.pilot }, epsilon: found.questions[found.at].epsilon, eta: now.eta, aim: now.aim, answer: 0 });
    });
    said.lead.append(means);
    controls.before(said.lead);
    results.append(said.card);
    const budget = h("section", { class: "card budget", "aria-label": "One budget for all questions" }, h("h2", {}, "One budget for all questions"));
    const split = parts(budget, { title: "ε of each question: drag the boundaries", file: "split", onChange: (next) => change({ split: next }) });
    const splitting = h("div", { class: "progress", hidden: true }), needs = h("ul", { class: "words" });
    budget.append(h("div", { "data-field": "split" }), h("p", { class: "tools" }, button("Best split", best, { id: "best-split" }), button("Equal parts", () => change({ split: null }))), splitting, needs);
    const booklets = questionnaire(results, studio);
    booklets.card.before(budget);
    const compared = h("section", { class: "card", "aria-label": "Protocols" });
    const survey = h("section", { class: "card", "aria-label": "Simulated surveys" });
    const shape = h("section", { class: "card", "aria-label": "The channel" });
    results.append(compared, survey, shape);
    const pictures = { protocols: protocols(compared), channel: channelMap(shape) };
    const which = select({ name: "category", label: "Answer in the repeated surveys", value: 1, options: [], onChange: (value) => change({ category: Number(value) }) });
    const again = button("Simulate again", () => change({ seed: (studio.state().seed % 1e9) + 1 }), { id: "again", class: "main" });
    survey.append(h("div", { class: "two" }, h("p", {}, again), which));
    pictures.intervals = intervals(survey);
    pictures.repeats = repeats(survey);

    let turn = 0, splitter = null, found = null;

    async function update(now) {
      const mine = ++turn;
      fields.update(now);
      asked.update(now);
      said.busy();
      let told = await studio.ask("ask", now);
      if (mine !== turn) return;
      if (told?.slow) {
        told = await said.waited((progress) => studio.job("survey", now, progress));
        if (mine !== turn) return;
      }
      if (!told) {
        said.none("no survey for this input");
        return;
      }
      studio.clear();
      found = told;
      paint(told, now);
      root.dataset.state = "done";
      root.dataset.painted = String(mine);
    }

    async function best() {
      splitter?.cancel();
      const mine = studio.job("split", studio.state());
      splitter = mine;
      splitting.replaceChildren(h("progress", { "aria-label": "searching for the best split" }), button("Cancel", () => mine.cancel()));
      splitting.hidden = false;
      const told = await mine.done;
      if (splitter !== mine) return;
      splitter = null;
      splitting.hidden = true;
      if (told) change({ split: told.split });
    }

    function paint(told, now) {
      const one = told.questions[told.at], several = told.questions.length > 1;
      const kind = said.judged(one.proof, percent(one.relative_gap, 2));
      said.headline.replaceChildren(...[
        ["people", shown(told.respondents), told.solve === "respondents" ? "needed" : `as entered; ${shown(told.needed)} reach the target half-width`],
        ["half-width", `±${shown(100 * one.half_width, 3)}`, `percentage points at most, for ${percent(told.level)} intervals${several ? " of this question" : ""}`],
        ["ε", atMost(told.epsilon), several ? `nats for all questions; ${atMost(one.epsilon)} for this one` : "nats"],
        ["without privacy", shown(one.open), "people for the target half-width"],
      ].map((each) => figure(...each)));
      said.sentence.replaceChildren(h("strong", {}, `${shown(told.respondents)} private reports`), ` give intervals of ±${shown(100 * one.half_width, 3)} percentage points${several ? " for this question" : ""}; without privacy, ${shown(one.open)} suffice.`);
      const least = now.aim === "widest" ? "widest interval narrower" : "sum of the variances of the answers smaller";
      said.say(kind, one.proof, kind === "good" && `No channel within these limits makes the ${least}.`, ...told.guarantees, told.note && `Note: ${told.note}.`);
      budget.hidden = !several;
      if (several) {
        split.update({ names: told.questions.map((each) => each.name), split: told.split, epsilon: told.epsilon });
        needs.replaceChildren(...told.questions.map((each) => h("li", {}, `${each.name}: ε ${atMost(each.epsilon, 3)}, ±${shown(100 * each.half_width, 3)} points, ${shown(each.needed)} people for ±${shown(100 * each.wanted, 3)}`)));
      }
      booklets.update(several ? { ...now, epsilon: told.epsilon } : null);
      compared.hidden = !told.protocols.length;
      if (told.protocols.length) pictures.protocols.update({ rows: told.protocols, open: one.open });
      pictures.channel.update(told.channel);
      const { survey: seen } = told;
      which.querySelector("select").replaceChildren(...one.labels.map((label, at) => h("option", { value: at + 1 }, label)));
      which.set(seen.category + 1);
      pictures.intervals.update({ labels: one.labels, ...seen });
      pictures.repeats.update({ label: one.labels[seen.category], ...seen });
      fields.solved(told, now);
      studio.announce(`${shown(told.respondents)} people, half-width ${shown(100 * one.half_width, 3)} percentage points, epsilon ${atMost(told.epsilon)}.`);
    }

    update(state);
    return { update };
  },
};

/** The card of the three quantities: which one is computed, and the values of the other two. */
function wanted(host, change, change0) {
  const solve = select({ name: "solve", label: "Compute", value: "respondents", options: SOLVE, onChange: (value) => change({ solve: value }) });
  const epsilon = [
    slider({ name: "epsilon", label: "Privacy budget ε per person", value: 1, to: (at) => round(LOW * (HIGH / LOW) ** at), from: (value) => Math.log(value / LOW) / Math.log(HIGH / LOW),
      say: (value) => `ε = ${shown(value)}`, onInput: (value) => change({ epsilon: value }) }),
    numberField({ name: "epsilon", label: "ε in nats", min: 0, onChange: (value) => change({ epsilon: value }) }),
  ];
  const people = numberField({ name: "respondents", label: "People", min: 1, step: 1, onChange: (value) => change({ respondents: value }) });
  const width = numberField({ name: "questions.0.half_width", label: "Target half-width of the intervals", min: 0, max: 1, hint: "0.05 is ±5 percentage points", onChange: (value) => change0({ half_width: value }) });
  const capped = checkbox({ name: "capped", label: "Also limit the advantage of a guess (η)", onChange: (value) => change({ eta: value ? 0.2 : null }) });
  const eta = numberField({ name: "eta", label: "η of each question, total variation", min: 0, max: 1, onChange: (value) => change({ eta: value }) });
  const level = numberField({ name: "level", label: "Confidence level of the intervals", min: 0, max: 1, onChange: (value) => change({ level: value ?? 0.95 }) });
  const aim = select({ name: "aim", label: "The channel minimizes", value: "together", options: AIMS, onChange: (value) => change({ aim: value }) });
  const given = { respondents: [people], half_width: [width], epsilon };
  host.append(h("section", { class: "card wanted", "aria-label": "The goal" }, h("h2", {}, "The goal"), solve, epsilon, people, width,
    h("details", { class: "more" }, h("summary", {}, "More"), aim, level, capped, eta)));
  const shut = (now) => {
    for (const [name, blocks] of Object.entries(given)) for (const block of blocks) {
      // The control that shows the result stays readable, and the keyboard skips it.
      block.querySelector("input").disabled = name === now.solve && name !== "half_width";
      block.classList.toggle("off", name === now.solve && name !== "half_width");
    }
  };
  return {
    update(now) {
      const one = now.questions[now.at] ?? {};
      solve.set(now.solve);
      width.dataset.field = `questions.${now.at}.half_width`;
      width.set(one.half_width);
      if (now.solve !== "epsilon") for (const block of epsilon) block.set(now.epsilon);
      if (now.solve !== "respondents") people.set(now.respondents);
      capped.set(now.eta !== null);
      eta.hidden = now.eta === null;
      eta.set(now.eta);
      level.set(now.level);
      aim.set(now.aim);
      shut(now);
    },
    solved(told, now) {
      if (now.solve === "epsilon") for (const block of epsilon) block.set(round(told.epsilon));
      if (now.solve === "respondents") people.set(told.respondents);
    },
  };
}
