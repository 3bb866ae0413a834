// The verdict of a view on its design: a sentence with its badge, the numbers behind a fold, and a progress bar with
// Cancel for long work.

import { h } from "./dom.js";
import { button } from "./fields.js";

/** A figure: its name, its value as text, and a note below. */
export const figure = (name, value, note) =>
  h("div", { class: "figure" }, h("span", { class: "name" }, name), h("strong", { id: `figure-${name.replaceAll(" ", "-")}` }, value), h("span", { class: "note" }, note));

/** The sentence of a verdict, and the card of its numbers. `root.dataset.state` tells tests and stylesheets how far the view is. */
export function verdict(root, { label, working }) {
  const badge = h("p", { class: "badge busy", id: "badge" }, "computing …"), progress = h("div", { class: "progress", hidden: true });
  const headline = h("div", { class: "headline" }), words = h("ul", { class: "words" });
  const sentence = h("p", { class: "sentence", id: "sentence" });
  let work = null;

  const still = () => {
    work = null;
    progress.hidden = true;
  };

  return {
    lead: h("section", { class: "lead wide", "aria-label": label }, sentence, badge, progress),
    card: h("details", { class: "card verdict" }, h("summary", {}, "The numbers and the proof"), headline, words),
    badge, headline, sentence,

    /** A new state begins: earlier results no longer hold, and older work is cancelled. */
    busy() {
      root.dataset.state = "busy";
      badge.className = "badge busy";
      badge.textContent = "computing …";
      work?.cancel();
      still();
    },

    /** The result of `start(onProgress)`, a job; a bar with Cancel is shown if it takes long. */
    async waited(start) {
      const bar = h("progress", { "aria-label": working, max: 1 });
      const thisJob = start((share) => {
        bar.value = share;
      });
      work = thisJob;
      progress.replaceChildren(bar, button("Cancel", () => {
        thisJob.cancel();
        badge.textContent = "cancelled";
        progress.hidden = true;
        root.dataset.state = "cancelled";
      }));
      const timer = setTimeout(() => {
        if (work === thisJob) progress.hidden = false;
      }, 300);
      const result = await thisJob.done;
      clearTimeout(timer);
      if (work === thisJob) still();
      return result;
    },

    /** An error instead of a result: the badge and the field show it. After Cancel nothing is shown. */
    none(reason) {
      if (root.dataset.state === "cancelled") return;
      root.dataset.state = "failed";
      badge.textContent = reason;
      sentence.textContent = "";
    },

    /** The badge of a checked proof, with the `gap` in words. It is green only if the design is certified. */
    judged(proof, gap) {
      const kind = proof.outcome === "refuted" ? "bad" : !proof.verified ? "none" : proof.certified ? "good" : "near";
      badge.className = `badge ${kind}`;
      badge.textContent = { good: "optimal, proof checked", near: `proof checked: within ${gap} of the optimum`, bad: "the proof failed", none: "proof not checked" }[kind];
      badge.title = !proof.verified ? proof.failures.join("; ") : proof.argument;
      return kind;
    },

    /** The list below the figures, and the failures of a proof. */
    say(kind, proof, ...sentences) {
      words.replaceChildren(...sentences.filter(Boolean).map((one) => h("li", {}, one)), !proof.verified ? h("li", { class: "error" }, proof.failures.join("; ")) : "");
    },
  };
}
