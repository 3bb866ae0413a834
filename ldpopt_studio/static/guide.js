// A first minute in three steps. Users do each step by hand, or watch it with the button.

import { h } from "./dom.js";
import { button } from "./fields.js";

const ENDED = "ldpopt-studio-guide-ended";
const STEPS = [
  { say: "Drag a bar: how many say yes?", done: (now, first) => now.p0 !== first.p0 || now.p1 !== first.p1,
    show: (studio, now) => studio.choose({ p1: now.p1.map((one, at) => (at ? (one / (1 - now.p1[0])) * 0.2 : 0.8)) }) },
  { say: "Ask for more privacy: drag ε to the left.", done: (now, first) => now.epsilon !== first.epsilon || now.eta !== first.eta,
    show: (studio) => studio.choose({ epsilon: 0.5 }) },
  { say: "Take it away: get the same result as Python code.", done: () => document.getElementById("takeaway-panel").open,
    show: () => {
      const panel = document.getElementById("takeaway-panel");
      panel.open = true;
      panel.querySelector("summary").focus({ preventScroll: true });
      panel.scrollIntoView({ block: "start" });
    } },
];

/** The strip of the steps, hidden once the user ends it; `update(state)` checks which steps are done. */
export function guide(studio) {
  const done = new Set();
  let first = null;
  const items = STEPS.map((step) => h("li", {}, h("span", {}, step.say)));
  const show = button("Show me", () => {
    const at = next();
    STEPS[at].show(studio, studio.state());
    if (at === 2) update(studio.state());
  }, { class: "main" });
  const end = button("✕", () => {
    localStorage.setItem(ENDED, "1");
    strip.hidden = true;
  }, { class: "quiet", "aria-label": "End the tour" });
  const strip = h("section", { class: "guide wide", "aria-label": "Tour of the first minute", hidden: localStorage.getItem(ENDED) !== null }, h("ol", {}, items), show, end);
  const next = () => STEPS.findIndex((_, at) => !done.has(at));

  function update(now) {
    first ??= now;
    STEPS.forEach((step, at) => step.done(now, first) && done.add(at));
    items.forEach((item, at) => {
      item.className = done.has(at) ? "done" : "";
      if (at === next()) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    });
    show.hidden = next() < 0;
  }

  document.getElementById("takeaway-panel").addEventListener("toggle", () => first && update(first));
  return { strip, update };
}
