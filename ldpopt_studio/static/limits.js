// The limits of privacy: each as a slider, as a number, and in plain words.

import { atMost, h, shown } from "./dom.js";
import { checkbox, numberField, select, slider } from "./fields.js";

const LOW = 0.02, HIGH = 12;
const DIVERGENCES = [["kl", "KL divergence"], ["total-variation", "total variation"], ["chi-squared", "chi-squared"],
  ["squared-hellinger", "squared Hellinger"], ["jensen-shannon", "Jensen–Shannon"], ["jeffreys", "Jeffreys"],
  ["reverse-kl", "reverse KL"], ["neyman-chi-squared", "Neyman chi-squared"], ["le-cam", "Le Cam"],
  ["hockey-stick", "hockey stick …"], ["alpha", "alpha divergence …"]];
const PARAMETER = { "hockey-stick": 1.5, alpha: 2 };

/** No channel within epsilon exceeds this total variation [GI, Prop 2]. */
const reach = (epsilon) => Math.tanh(epsilon / 2);

/** The card of the limits; `update(state)` shows a state. */
export function limits(host, studio) {
  const change = (patch) => studio.change(patch);
  const state = () => studio.state();
  const parts = [];
  const part = (block, read) => {
    parts.push([block, read]);
    return block;
  };
  const sliders = [
    part(slider({ name: "epsilon", label: "Privacy limit ε", value: 1, to: (at) => round(LOW * (HIGH / LOW) ** at),
      from: (value) => Math.log(value / LOW) / Math.log(HIGH / LOW), say: (value) => `ε = ${shown(value)}: a report changes odds by at most ×${atMost(Math.exp(value), 3)}`, onInput: (value) => change({ epsilon: value }) }),
    (one) => one.epsilon),
    part(checkbox({ name: "capped", label: "Also limit the advantage of a guess (η)", onChange: (value) => change({ eta: value ? round(reach(state().epsilon) / 2) : null }) }), (one) => one.eta !== null),
    part(slider({ name: "eta", label: "Limit on the advantage η", value: 0.5, to: (at) => round(at), from: (value) => value ?? reach(state()?.epsilon ?? 1),
      say: (value) => (value === null ? "no limit besides ε" : `η = ${shown(value)}: at most ${atMost(50 + 50 * value, 3)} % of guesses are correct`),
      onInput: (value) => change({ eta: value }) }), (one) => one.eta),
  ];
  const numbers = [
    h("div", { class: "two" },
      part(numberField({ name: "epsilon", label: "ε in nats", min: 0, onChange: (value) => change({ epsilon: value }) }), (one) => one.epsilon),
      part(numberField({ name: "odds", label: "Largest change of odds, ×", min: 1, hint: "by any report", onChange: (value) => value > 1 && change({ epsilon: Math.log(value) }) }),
        (one) => Number(Math.exp(one.epsilon).toPrecision(6)))),
    h("div", { class: "two" },
      part(numberField({ name: "eta", label: "η, total variation", min: 0, max: 1, onChange: (value) => change({ eta: value }) }), (one) => one.eta),
      part(numberField({ name: "guess", label: "Correct guesses at most, %", min: 50, max: 100, hint: "between two answers",
        onChange: (value) => change({ eta: value === null ? null : Math.min(1, Math.max(0, value / 50 - 1)) }) }), (one) => (one.eta === null ? null : Number((50 * (1 + one.eta)).toPrecision(6))))),
  ];
  const reached = h("p", { class: "note" });
  const family = (one) => one.divergence.split(":")[0];
  const f = [
    part(select({ name: "divergence", label: "Divergence to preserve", value: "kl", options: DIVERGENCES,
      onChange: (value) => change({ divergence: value in PARAMETER ? `${value}:${PARAMETER[value]}` : value }) }), family),
    part(numberField({ name: "parameter", label: "Parameter of the divergence", onChange: (value) => change({ divergence: `${family(state())}:${value ?? PARAMETER[family(state())]}` }) }),
      (one) => Number(one.divergence.split(":")[1] ?? NaN)),
  ];
  const more = h("details", { class: "more" }, h("summary", {}, "More limits"),
    h("p", { class: "note" }, "Designs with these limits take longer. You can cancel them."),
    part(numberField({ name: "delta", label: "δ of (ε, δ)", min: 0, max: 1, hint: "leave empty for pure ε", onChange: (value) => change({ delta: value || null }) }), (one) => one.delta),
    h("div", { class: "two" },
      part(numberField({ name: "renyi", label: "Rényi divergence at most, nats", min: 0, onChange: (value) => change({ renyi: value, renyi_order: state().renyi_order ?? 2 }) }), (one) => one.renyi),
      part(numberField({ name: "renyi_order", label: "Rényi order", min: 1, onChange: (value) => change({ renyi_order: value }) }), (one) => one.renyi_order)),
    part(numberField({ name: "outputs", label: "Largest number of different reports", min: 2, step: 1, onChange: (value) => change({ outputs: value }) }), (one) => one.outputs));
  const test = h("details", { class: "more" }, h("summary", {}, "The test that determines the number of respondents"),
    h("div", { class: "two" },
      part(numberField({ name: "power", label: "Power", min: 0, max: 1, onChange: (value) => change({ power: value ?? 0.8 }) }), (one) => one.power),
      part(numberField({ name: "level", label: "Level", min: 0, max: 1, onChange: (value) => change({ level: value ?? 0.05 }) }), (one) => one.level)));
  host.append(h("section", { class: "card limits", "aria-label": "Privacy limits" }, h("h2", {}, "Privacy: drag a limit"), sliders, reached,
    h("details", { class: "more" }, h("summary", {}, "Exact numbers, divergence and test"), numbers, f, test), more));
  return {
    update(now) {
      for (const [block, read] of parts) block.set(read(now));
      f[1].hidden = !(family(now) in PARAMETER);
      sliders[2].classList.toggle("off", now.eta === null);
      const maxEta = reach(now.epsilon);
      reached.textContent = now.eta === null || now.eta >= maxEta ? `ε alone limits η to ${atMost(maxEta)}; only a smaller limit has an effect.` : `The limit has an effect: ε alone would allow η = ${atMost(maxEta)}.`;
    },
  };
}

/** A slider's value, rounded to four significant digits. */
const round = (value) => Number(value.toPrecision(4));
