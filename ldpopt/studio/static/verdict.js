// What a view says of its design: the badge, figures in words, and a bar with Cancel while it takes long.

import { h } from "./dom.js";
import { button } from "./fields.js";

/** A figure: its name, its value as text, and a note below. */
export const figure = (name, value, note) =>
  h("div", { class: "figure" }, h("span", { class: "name" }, name), h("strong", { id: `figure-${name.replaceAll(" ", "-")}` }, value), h("span", { class: "note" }, note));

/** The card of a verdict. `root.dataset.state` says to tests and to stylesheets where the view is. */
export function verdict(root, { label, title, working }) {
  const badge = h("p", { class: "badge busy", id: "badge" }, "computing …"), progress = h("div", { class: "progress", hidden: true });
  const headline = h("div", { class: "headline" }), words = h("ul", { class: "words" });
  let work = null;

  const still = () => {
    work = null;
    progress.hidden = true;
  };

  return {
    card: h("section", { class: "card verdict", "aria-label": label }, h("h2", {}, title), badge, progress, headline, words),
    badge, headline, words,

    /** A new state is looked at: nothing that was said holds, and older work is cancelled. */
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
      const mine = start((share) => {
        bar.value = share;
      });
      work = mine;
      progress.replaceChildren(bar, button("Cancel", () => {
        mine.cancel();
        badge.textContent = "cancelled";
        progress.hidden = true;
        root.dataset.state = "cancelled";
      }));
      const timer = setTimeout(() => {
        if (work === mine) progress.hidden = false;
      }, 300);
      const found = await mine.done;
      clearTimeout(timer);
      if (work === mine) still();
      return found;
    },

    /** There is no result, unless somebody cancelled: the badge says so, and a field why. */
    none(sentence) {
      if (root.dataset.state === "cancelled") return;
      root.dataset.state = "failed";
      badge.textContent = sentence;
    },

    /** The badge of a proof that was checked; `gap` in words. Green only where it is certified. */
    judged(proof, gap) {
      const kind = !proof.verified ? "bad" : proof.certified ? "good" : "near";
      badge.className = `badge ${kind}`;
      badge.textContent = { good: "optimal, proof checked", near: `proof checked: within ${gap} of the optimum`, bad: "the proof failed" }[kind];
      badge.title = kind === "bad" ? proof.failures.join("; ") : proof.argument;
      return kind;
    },

    /** The list below the figures, and what fails in a proof. */
    say(kind, proof, ...sentences) {
      words.replaceChildren(...sentences.filter(Boolean).map((one) => h("li", {}, one)), kind === "bad" ? h("li", { class: "error" }, proof.failures.join("; ")) : "");
    },
  };
}
