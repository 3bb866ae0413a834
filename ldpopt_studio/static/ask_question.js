// The questions: the selected one with its answers as text and as bars, and more questions under the same budget.

import { h } from "./dom.js";
import { button, select, showError, textField } from "./fields.js";
import { shares } from "./shares.js";

const NEW = { name: "Another question", labels: ["yes", "no"], pilot: [0.3, 0.7], half_width: 0.05 };

/** Reads lines with an answer and its proportion or count. Returns labels and numbers, or a message about the error. */
export function readAnswers(text) {
  const labels = [], pilot = [];
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const match = /^(.*?)[\s,;:]+([+-]?[\d.]+(?:e[+-]?\d+)?)\s*%?$/i.exec(line);
    const value = match ? Number(match[2]) : NaN;
    if (!match || !match[1] || !Number.isFinite(value)) return { problem: `pilot: expected an answer and its proportion in each line, got '${line.slice(0, 60)}'` };
    labels.push(match[1]);
    pilot.push(value);
  }
  return labels.length ? { labels, pilot } : { problem: "pilot: expected an answer and its proportion in each line, got nothing" };
}

/** The numbers as proportions that sum to 1; null if that is impossible. */
export function normalized(pilot) {
  const total = pilot.reduce((sum, one) => sum + one, 0);
  return pilot.every((one) => Number.isFinite(one) && one >= 0) && total > 0 && Number.isFinite(total) ? pilot.map((one) => one / total) : null;
}

export function question(host, studio, change0) {
  const state = () => studio.state();
  const at = select({ name: "at", label: "Question", value: 0, options: [], onChange: (value) => studio.change({ at: Number(value), category: 1 }) });
  const add = button("Add a question", () => {
    const questions = [...state().questions, { ...NEW, name: `Question ${state().questions.length + 1}` }];
    studio.choose({ questions, at: questions.length - 1, split: null, category: 1 });
  });
  const remove = button("Remove this question", () => {
    const now = state(), questions = now.questions.filter((_, place) => place !== now.at);
    studio.choose({ questions, at: 0, split: null, category: 1 });
  });
  const importButton = button("Use the answers of the two populations", () => {
    const { labels: known, p0, p1 } = studio.state("tell"), half = p0.map((one, place) => Number(((one + p1[place]) / 2).toPrecision(6)));
    studio.choose({ questions: state().questions.map((one, place) => (place === state().at ? { ...one, labels: known, pilot: half } : one)), category: 1 });
  }, { title: "The answers in “Distinguish two populations”, with the average proportions of both" });
  const name = textField({ name: "questions.0.name", label: "Name", value: "", onChange: (value) => change0({ name: value }) });
  const typed = textField({ name: "questions.0.pilot", label: "Answers with expected proportions or counts", rows: 5, hint: "One answer per line, such as: weekly, 0.06", value: "", onChange: (text) => {
    const answers = readAnswers(text);
    if (answers.problem) return showError(host, typed.dataset.field, answers.problem);
    studio.choose({ questions: state().questions.map((one, place) => (place === state().at ? { ...one, labels: answers.labels, pilot: answers.pilot } : one)), category: 1 });
  } });
  const labels = h("div", { "data-field": "questions.0.labels" });
  const card = h("section", { class: "card", "aria-label": "The question" }, h("h2", {}, "The question"), at, h("p", { class: "tools" }, add, remove, importButton), h("div", { "data-field": "questions" }), name);
  host.append(card);
  const chart = shares(card, { title: "Expected proportions: drag a bar", file: "pilot", onChange: (pilot) => change0({ pilot: pilot.map((one) => Number(one.toPrecision(6))) }) });
  card.append(h("details", {}, h("summary", {}, "Type or paste the answers"), typed, labels));
  return {
    update(now) {
      const one = now.questions[now.at] ?? now.questions[0] ?? NEW;
      at.querySelector("select").replaceChildren(...now.questions.map((each, place) => h("option", { value: place }, each.name || `question ${place + 1}`)));
      at.set(now.at);
      at.hidden = now.questions.length < 2;
      remove.disabled = now.questions.length < 2;
      add.disabled = now.questions.length >= 8;
      for (const [block, part] of [[name, "name"], [typed, "pilot"], [labels, "labels"]]) block.dataset.field = `questions.${now.at}.${part}`;
      name.set(one.name);
      typed.set(one.labels.map((label, place) => `${label}, ${one.pilot[place]}`).join("\n"));
      const pilot = normalized(one.pilot);
      if (pilot) chart.update({ labels: one.labels, pilot });
    },
  };
}
