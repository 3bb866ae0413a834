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
    const said = verdict(root, { label: "The answer", working: "designing" }), steps = guide(studio);
    root.append(h("h1", { class: "seen" }, "Distinguish two populations"), steps.strip, said.lead, controls, results);
    const parts = [populations(controls, studio), limits(controls, studio), steps];
    const answer = h("section", { class: "card answer", "aria-label": "Reports from each population" });
    results.append(answer, said.card);
    const test = said.lead.appendChild(h("span", { class: "note" }));
    const reports = reported(answer);
    const pictures = tellPictures(results), curves = tellCurves(results, studio);
    let turn = 0;

    async function update(now) {
      const mine = ++turn;
      for (const part of parts) part.update(now);
      said.busy();
      const found = await (quick(now) ? studio.ask("tell", now) : said.waited(() => studio.job("design", now)));
      if (mine !== turn) return;
      if (!found) {
        said.none("no design for these limits");
        return;
      }
      studio.clear();
      paint(found, now);
      root.dataset.state = "done";
      tell(found);
      root.dataset.painted = String(mine);
      curves.later(now, found);
    }

    // For screen readers, when the dragging stops.
    const tell = debounced((found) => root.isConnected && studio.announce(`${said.badge.textContent}: preserves ${shown(found.value, 4)} of at most ${atMost(found.bound)}, ${found.divergence}.`), 600);

    function paint(found, now) {
      const { proof } = found;
      const gap = typeof found.relative_gap === "number" ? percent(found.relative_gap, 2) : "an unknown fraction";
      const kind = said.judged(proof, gap);
      said.headline.replaceChildren(...[
        ["preserved", shown(found.value, 6), found.divergence],
        ["at most", atMost(found.bound, 6), "no channel within the limits preserves more"],
        ["gap", typeof found.gap === "number" ? shown(found.gap, 2) : "∞", `relative ${typeof found.relative_gap === "number" ? shown(found.relative_gap, 2) : "∞"}`],
        ["without privacy", shown(found.unprivate, 6), found.share === null ? "" : `${percent(found.share)} of it is preserved`],
        ["respondents", people(found.respondents.private), `for power ${shown(found.respondents.power)} at level ${shown(found.respondents.level)}; ${people(found.respondents.open)} without privacy`],
      ].map((one) => figure(...one)));
      said.sentence.replaceChildren(...sentence(found));
      test.textContent = `(for a test with ${percent(found.respondents.level)} false alarms that detects this difference ${percent(found.respondents.power)} of the time)`;
      reports.update({ found });
      said.say(kind, proof, ...found.guarantees.map((one) => one.words), found.note && `Note: ${found.note}.`);
      pictures.paint(found, now);
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
