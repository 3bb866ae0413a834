// Distinguish two populations: the state's certified optimum, computed, verified and drawn again at every move.

import { atMost, debounced, h, percent, shown } from "./dom.js";
import { guide } from "./guide.js";
import { limits } from "./limits.js";
import { populations } from "./populations.js";
import { tellCurves } from "./tell_curves.js";
import { reported, tellPictures } from "./tell_pictures.js";
import { figure, verdict } from "./verdict.js";

const FIRST = {
  p0: [0.3, 0.7], p1: [0.6, 0.4], labels: ["yes", "no"], names: ["East", "West"], counts: null, once: null,
  divergence: "kl", epsilon: 1, eta: null, delta: null, renyi: null, renyi_order: null, outputs: null, power: 0.8, level: 0.05,
};

/** True if a design takes milliseconds: pure epsilon, with or without a cap eta. */
const quick = (state) => !state.delta && state.renyi === null && state.outputs === null;

export const view = {
  name: "tell",
  title: "Distinguish two populations",
  initial: (start) => ({ ...FIRST, ...start }),
  mount(root, state, studio) {
    const controls = h("div", { class: "controls" }), results = h("div", { class: "results" });
    const summary = verdict(root, { label: "The answer", working: "designing" }), steps = guide(studio);
    root.append(h("h1", { class: "visually-hidden" }, "Distinguish two populations"), steps.strip, summary.lead, controls, results);
    const parts = [populations(controls, studio), limits(controls, studio), steps];
    const answer = h("section", { class: "card answer", "aria-label": "Reports from each population" });
    results.append(answer, summary.card);
    const test = summary.lead.appendChild(h("span", { class: "note" }));
    const reports = reported(answer);
    const pictures = tellPictures(results), curves = tellCurves(results, studio);
    let turn = 0;

    async function update(now) {
      const thisTurn = ++turn;
      for (const part of parts) part.update(now);
      summary.busy();
      const content = await (quick(now) ? studio.ask("tell", now) : summary.waited(() => studio.job("design", now)));
      if (thisTurn !== turn) return;
      if (!content) {
        summary.none("no design for these limits");
        return;
      }
      studio.clear();
      paint(content, now);
      root.dataset.state = "done";
      tell(content);
      root.dataset.painted = String(thisTurn);
      curves.later(now, content);
    }

    // For screen readers, when the dragging stops.
    const tell = debounced((content) => root.isConnected && studio.announce(`${summary.badge.textContent}: preserves ${shown(content.value, 4)} of at most ${atMost(content.bound)}, ${content.divergence}.`), 600);

    function paint(content, now) {
      const { proof } = content;
      const gap = typeof content.relative_gap === "number" ? percent(content.relative_gap, 2) : "an unknown fraction";
      const kind = summary.judged(proof, gap);
      summary.headline.replaceChildren(...[
        ["preserved", shown(content.value, 6), content.divergence],
        ["at most", atMost(content.bound, 6), "no channel within the limits preserves more"],
        ["gap", typeof content.gap === "number" ? shown(content.gap, 2) : "∞", `relative ${typeof content.relative_gap === "number" ? shown(content.relative_gap, 2) : "∞"}`],
        ["without privacy", shown(content.unprivate, 6), content.share === null ? "" : `${percent(content.share)} of it is preserved`],
        ["respondents", people(content.respondents.private), `for power ${shown(content.respondents.power)} at level ${shown(content.respondents.level)}; ${people(content.respondents.open)} without privacy`],
      ].map((one) => figure(...one)));
      summary.sentence.replaceChildren(...sentence(content));
      test.textContent = `(for a test with ${percent(content.respondents.level)} false alarms that detects this difference ${percent(content.respondents.power)} of the time)`;
      reports.update({ content });
      summary.say(kind, proof, ...content.guarantees.map((one) => one.words), content.note && `Note: ${content.note}.`);
      pictures.paint(content, now);
    }

    update(state);
    return { update };
  },
};

/** The result of the page, in one sentence. */
function sentence({ names: [first, second], respondents: { private: needed, open } }) {
  if (open === null) return [`${first} and ${second} have the same answers: no survey can distinguish them.`];
  if (needed === null) return [`Reports with this much privacy never distinguish ${first} from ${second}.`];
  return [h("strong", {}, `${people(needed)} private ${needed === 1 ? "report distinguishes" : "reports distinguish"}`), ` ${first} from ${second}; without privacy, ${people(open)} ${open === 1 ? "suffices" : "suffice"}.`];
}

const people = (count) => (count === null ? "never enough" : count.toLocaleString("en"));
