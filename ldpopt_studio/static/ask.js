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
const SOLVE = [["respondents", "people, from ε and half-width"], ["half_width", "half-width, from ε and people"], ["epsilon", "ε, from people and half-width"]];
const AIMS = [["together", "the sum of all variances"], ["widest", "the widest interval, as ldpopt survey plan does"]];

const round = (value) => Number(value.toPrecision(4));

export const view = {
  name: "ask",
  title: "Ask a question",
  initial: (start) => ({ ...FIRST, ...start }),
  mount(root, state, studio) {
    const controls = h("div", { class: "controls" }), results = h("div", { class: "results" });
    root.append(h("h1", { class: "visually-hidden" }, "Ask a question"), controls, results);
    const change = (patch) => studio.change(patch);
    const change0 = (patch) => {
      const now = studio.state();
      change({ questions: now.questions.map((one, at) => (at === now.at ? { ...one, ...patch } : one)) });
    };

    const fields = goalCard(controls, change, change0);
    const questionCard = question(controls, studio, change0);

    const summary = verdict(root, { label: "The survey", working: "designing" });
    const means = button("What it means for one person", () => {
      const now = studio.state(), one = now.questions[now.at];
      studio.open("meaning", { source: "question", question: { name: one.name, labels: one.labels, pilot: one.pilot }, epsilon: current.questions[current.at].epsilon, eta: now.eta, aim: now.aim, answer: 0 });
    });
    summary.lead.append(means);
    controls.before(summary.lead);
    results.append(summary.card);
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

    let turn = 0, splitter = null, current = null;

    async function update(now) {
      const thisTurn = ++turn;
      fields.update(now);
      questionCard.update(now);
      summary.busy();
      let content = await studio.ask("ask", now);
      if (thisTurn !== turn) return;
      if (content?.slow) {
        content = await summary.waited((progress) => studio.job("survey", now, progress));
        if (thisTurn !== turn) return;
      }
      if (!content) {
        summary.none("no survey for this input");
        return;
      }
      studio.clear();
      current = content;
      paint(content, now);
      root.dataset.state = "done";
      root.dataset.painted = String(thisTurn);
    }

    async function best() {
      splitter?.cancel();
      const thisJob = studio.job("split", studio.state());
      splitter = thisJob;
      splitting.replaceChildren(h("progress", { "aria-label": "searching for the best split" }), button("Cancel", () => thisJob.cancel()));
      splitting.hidden = false;
      const content = await thisJob.done;
      if (splitter !== thisJob) return;
      splitter = null;
      splitting.hidden = true;
      if (content) change({ split: content.split });
    }

    function paint(content, now) {
      const one = content.questions[content.at], several = content.questions.length > 1;
      const kind = summary.judged(one.proof, percent(one.relative_gap, 2));
      summary.headline.replaceChildren(...[
        ["people", shown(content.respondents), content.solve === "respondents" ? "needed" : `as entered; ${shown(content.needed)} reach the target half-width`],
        ["half-width", `±${shown(100 * one.half_width, 3)}`, `percentage points at most, for ${percent(content.level)} intervals${several ? " of this question" : ""}`],
        ["ε", atMost(content.epsilon), several ? `nats for all questions; ${atMost(one.epsilon)} for this one` : "nats"],
        ["without privacy", shown(one.open), "people for the target half-width"],
      ].map((each) => figure(...each)));
      summary.sentence.replaceChildren(h("strong", {}, `${shown(content.respondents)} private reports`), ` give intervals of ±${shown(100 * one.half_width, 3)} percentage points${several ? " for this question" : ""}; without privacy, ${shown(one.open)} suffice.`);
      const criterion = now.aim === "widest" ? "widest interval narrower" : "sum of the variances of the answers smaller";
      summary.say(kind, one.proof, kind === "good" && `No channel within these limits makes the ${criterion}.`, ...content.guarantees, content.note && `Note: ${content.note}.`);
      budget.hidden = !several;
      if (several) {
        split.update({ names: content.questions.map((each) => each.name), split: content.split, epsilon: content.epsilon });
        needs.replaceChildren(...content.questions.map((each) => h("li", {}, `${each.name}: ε ${atMost(each.epsilon, 3)}, ±${shown(100 * each.half_width, 3)} points, ${shown(each.needed)} people for ±${shown(100 * each.wanted, 3)}`)));
      }
      booklets.update(several ? { ...now, epsilon: content.epsilon } : null);
      compared.hidden = !content.protocols.length;
      if (content.protocols.length) pictures.protocols.update({ rows: content.protocols, open: one.open });
      pictures.channel.update(content.channel);
      const { survey: simulated } = content;
      which.querySelector("select").replaceChildren(...one.labels.map((label, at) => h("option", { value: at + 1 }, label)));
      which.set(simulated.category + 1);
      pictures.intervals.update({ labels: one.labels, ...simulated });
      pictures.repeats.update({ label: one.labels[simulated.category], ...simulated });
      fields.solved(content, now);
      studio.announce(`${shown(content.respondents)} people, half-width ${shown(100 * one.half_width, 3)} percentage points, epsilon ${atMost(content.epsilon)}.`);
    }

    update(state);
    return { update };
  },
};

/** The card of the three quantities: which one is computed, and the values of the other two. */
function goalCard(host, change, change0) {
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
  const blocksByQuantity = { respondents: [people], half_width: [width], epsilon };
  host.append(h("section", { class: "card wanted", "aria-label": "The goal" }, h("h2", {}, "The goal"), solve, epsilon, people, width,
    h("details", { class: "more" }, h("summary", {}, "More"), aim, level, capped, eta)));
  const disableResult = (now) => {
    for (const [name, blocks] of Object.entries(blocksByQuantity)) for (const block of blocks) {
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
      disableResult(now);
    },
    solved(content, now) {
      if (now.solve === "epsilon") for (const block of epsilon) block.set(round(content.epsilon));
      if (now.solve === "respondents") people.set(content.respondents);
    },
  };
}
