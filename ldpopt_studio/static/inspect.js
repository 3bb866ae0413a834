// Any channel: paste or drop a matrix, a channel file or a design file, see its guarantees, and repair it.

import { lines } from "./charts.js";
import { atMost, h, percent, shown } from "./dom.js";
import { button, fileField, numberField, select, showError, textField } from "./fields.js";
import { heatmap } from "./heatmap.js";
import { figure as figureOf } from "./verdict.js";

const EMPTY = { text: "", name: null, mend: false, epsilon: null, eta: null, p0: null, p1: null, divergence: null };
const MAX_CHARACTERS = 4_000_000; // the studio accepts no longer text
const MAX_CHARACTERS_AT_ONCE = 4000; // a file of up to this many characters is inspected in a fraction of a second
const MAX_DRAWN = 150;

const EXAMPLES = {
  warner: ["Warner’s randomized response, odds 3 to 1", "answer,yes,no\nyes,0.75,0.25\nno,0.25,0.75\n"],
  response: ["Randomized response on four answers, odds 3 to 1", "answer,a,b,c,d\na,0.5,0.1666666666666667,0.1666666666666667,0.1666666666666666\n" +
    "b,0.1666666666666667,0.5,0.1666666666666667,0.1666666666666666\nc,0.1666666666666667,0.1666666666666667,0.5,0.1666666666666666\n" +
    "d,0.1666666666666666,0.1666666666666667,0.1666666666666667,0.5\n"],
  rounded: ["A rounded matrix, whose rows do not sum to 1", "answer,low,middle,high\nlow,0.57,0.29,0.13\nmiddle,0.33,0.33,0.33\nhigh,0.13,0.29,0.57\n"],
  counts: ["A table of counts: answers by reports", "answer,yes,no,refused\nyes,310,160,30\nno,140,420,40\n"],
};

const DIVERGENCES = [["", "the design’s own, or KL divergence"], ["kl", "KL divergence"], ["total-variation", "total variation"], ["chi-squared", "chi-squared"], ["jensen-shannon", "Jensen–Shannon"]];

export const view = {
  name: "inspect",
  title: "Any channel",
  initial: (start) => ({ ...EMPTY, text: EXAMPLES.warner[1], ...start }),
  mount(root, state, studio) {
    const controls = h("div", { class: "controls" }), results = h("div", { class: "results" });
    root.append(h("h1", { class: "visually-hidden" }, "Any channel"), controls, results);
    const sourceCard = source(controls, studio), compared = comparison(controls, studio), mend = mending(controls, studio);
    const shownOf = outcome(results);
    let turn = 0, work = null, last = "";

    function update(now) {
      for (const part of [sourceCard, compared, mend]) part.update(now);
      const request = JSON.stringify(now);
      if (request !== last) run(now, request);
    }

    async function run(now, request) {
      last = request;
      const thisTurn = ++turn;
      work?.cancel();
      work = null;
      studio.clear();
      if (!now.text.trim()) {
        root.dataset.state = "empty";
        return shownOf.empty();
      }
      root.dataset.state = "busy";
      const begun = now.text.length < MAX_CHARACTERS_AT_ONCE ? { done: studio.ask("inspect", now), cancel() {} }
        : studio.job("inspect", now, (share) => thisTurn === turn && shownOf.progress(share));
      work = begun;
      shownOf.busy(() => {
        begun.cancel();
        turn++;
        last = "";
        root.dataset.state = "cancelled";
        shownOf.stopped("cancelled");
      });
      const content = await begun.done;
      if (thisTurn !== turn) return;
      work = null;
      root.dataset.state = content ? "done" : "failed";
      if (content) {
        shownOf.paint(content);
        studio.announce(`${content.badge.text}.`);
      } else shownOf.stopped("the text is not a channel");
    }

    update(state);
    return { update };
  },
};

/** The card of the input: a place to drop a file, a button for users without a mouse, and a field to paste into. */
function source(host, studio) {
  const file = fileField({ name: "file", label: "Choose a file …", accept: ".csv,.tsv,.txt,.json", hint: "or drop a file on this card", onChange: read });
  const paste = textField({ name: "text", label: "Or paste it here", rows: 8, placeholder: "0.75, 0.25\n0.25, 0.75",
    hint: "A matrix of probabilities, with or without labels, a channel file, or a design file.",
    onChange: (value) => studio.choose({ text: value, name: null, mend: false }) });
  // Pasted text is used at once, typed text when the field is left.
  paste.control.addEventListener("paste", () => setTimeout(() => paste.control.dispatchEvent(new Event("change"))));
  const example = select({ name: "example", label: "Or choose an example", value: "", options: [["", "choose …"], ...Object.entries(EXAMPLES).map(([key, [title]]) => [key, title]),
    ["tell", "The design in “Distinguish two populations”"], ["forged", "The same design with forged claims"]], onChange: useExample });
  const drop = h("section", { class: "card drop", "aria-label": "A channel" }, h("h2", {}, "A channel"),
    file, paste, example,
    h("p", { class: "note", id: "inspected" }));
  host.append(drop);

  async function read(chosen) {
    if (!chosen) return;
    if (chosen.size > MAX_CHARACTERS) return showError(host, "text", `text: expected a file of at most ${MAX_CHARACTERS} bytes, got ${chosen.size}`);
    let text;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(await chosen.arrayBuffer());
    } catch {
      return showError(host, "text", "text: expected text in UTF-8, got other bytes");
    }
    studio.choose({ text, name: chosen.name, mend: false });
  }

  async function useExample(key) {
    example.set("");
    if (EXAMPLES[key]) return studio.choose({ text: EXAMPLES[key][1], name: null, mend: false });
    if (key !== "tell" && key !== "forged") return undefined;
    const takeaway = await studio.ask("takeaway", { view: "tell", state: studio.state("tell") });
    if (takeaway?.slow) return showError(host, "example", "This design takes long. Download its file in the first view, and drop it here.");
    const design = takeaway?.files.find((one) => one.name === "design.json");
    if (!design) return showError(host, "example", "The first view has no design. See the message there.");
    if (key === "tell") return studio.choose({ text: design.content, name: "design.json", mend: false });
    const parts = JSON.parse(design.content);
    for (const claim of ["value", "lower_bound", "upper_bound"]) parts[claim] *= 1.02;
    return studio.choose({ text: JSON.stringify(parts), name: "forged.json", mend: false });
  }

  const over = (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    drop.classList.add("over-it");
  };
  drop.addEventListener("dragenter", over);
  drop.addEventListener("dragover", over);
  drop.addEventListener("dragleave", () => drop.classList.remove("over-it"));
  drop.addEventListener("drop", (event) => {
    drop.classList.remove("over-it");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    read(event.dataTransfer.files[0]);
  });
  return {
    update(now) {
      const long = now.text.length > 20_000;
      paste.set(long ? "" : now.text);
      drop.querySelector("#inspected").textContent = now.name ? `File: ${now.name}${long ? `, ${now.text.length.toLocaleString("en")} characters` : ""}.` : now.text === EXAMPLES.warner[1] ? "This is an example. Replace it with your own matrix." : "";
    },
  };
}

/** The card of the comparison's populations and divergence. */
function comparison(host, studio) {
  const list = (name, label) => textField({ name, label, placeholder: "0.5, 0.3, 0.2", onChange: (value) => {
    const numbers = value.trim() ? value.trim().split(/[\s,;]+/).map(Number) : null;
    const firstInvalid = numbers?.findIndex((one) => !Number.isFinite(one)) ?? -1;
    if (firstInvalid >= 0) return showError(host, name, `${name}: expected numbers separated by commas, got another text at entry ${firstInvalid}`);
    return studio.change({ [name]: numbers });
  } });
  const p0 = list("p0", "P0"), p1 = list("p1", "P1");
  const divergence = select({ name: "divergence", label: "Divergence", value: "", options: DIVERGENCES, onChange: (value) => studio.change({ divergence: value || null }) });
  host.append(h("section", { class: "card", "aria-label": "Comparison" }, h("h2", {}, "Comparison"),
    h("p", { class: "note" }, "The channel is compared with the best channel for two populations. By default, these are the populations of the design, or two examples."), h("div", { class: "two" }, p0, p1), divergence));
  return {
    update(now) {
      p0.set(now.p0?.join(", ") ?? "");
      p1.set(now.p1?.join(", ") ?? "");
      divergence.set(now.divergence ?? "");
    },
  };
}

/** The card of the repair. */
function mending(host, studio) {
  const caps = { epsilon: null, eta: null };
  const field = (name, label) => numberField({ name, label, min: 0, onChange: (value) => {
    caps[name] = value;
    if (studio.state().mend) studio.change({ [name]: value });
  } });
  const epsilon = field("epsilon", "ε at most, nats"), eta = field("eta", "η at most");
  const go = button("Repair", () => studio.choose({ ...caps, mend: true }), { class: "main" });
  const back = button("Show the original", () => studio.choose({ mend: false }));
  host.append(h("section", { class: "card", "aria-label": "Repair" }, h("h2", {}, "Repair"),
    h("p", { class: "note" }, "Divides rows by their sums, then changes the channel until it satisfies these limits, if there are any."),
    h("div", { class: "two" }, epsilon, eta), h("div", { class: "progress", "data-field": "mend" }, go, back)));
  return {
    update(now) {
      epsilon.set(now.epsilon);
      eta.set(now.eta);
      [caps.epsilon, caps.eta] = [now.epsilon, now.eta];
      back.hidden = !now.mend;
      go.disabled = !now.text.trim();
    },
  };
}

const COLOURS = { green: "good", red: "bad", grey: "busy" };

/** The results about the channel. */
function outcome(host) {
  const badge = h("p", { class: "badge busy", id: "badge" }, "nothing to measure yet");
  const bar = h("progress", { "aria-label": "measuring", max: 1 }), progress = h("div", { class: "progress", hidden: true }, bar);
  const reasons = h("ul", { class: "words", id: "reasons" }), headline = h("div", { class: "headline" }), mended = h("ul", { class: "words", id: "mended" });
  const invite = h("p", {}, "Paste a matrix or drop a file. The studio measures it, recomputes its proof, and compares it with the best channel within the same ε and η.");
  const verdict = h("section", { class: "card verdict", "aria-label": "Assessment" }, h("h2", {}, "Assessment"), badge, invite, progress, reasons, mended, headline);
  const rest = h("div", { class: "results", hidden: true });
  host.append(verdict, rest);
  const own = heatmap(rest, { title: "The channel: probability of each report", file: "channel", describe: describeChannel });
  const best = heatmap(rest, { title: "The best channel within the same ε and η", file: "best", describe: describeChannel });
  const curve = lines(rest, { title: "Errors of an attacker’s best test", file: "trade-off", describe: () => "The smallest fraction of one answer that a test misses, for each fraction of another that it wrongly suspects." });
  const table = h("section", { class: "card", "aria-label": "All guarantees" }, h("h2", {}, "All guarantees"));
  rest.append(table);
  let timer = null;
  const still = () => {
    clearTimeout(timer);
    progress.hidden = true;
  };
  const blank = (text) => {
    still();
    badge.className = "badge busy";
    badge.textContent = text;
    reasons.replaceChildren();
    mended.replaceChildren();
    headline.replaceChildren();
    rest.hidden = true;
  };
  return {
    empty() {
      blank("nothing to measure yet");
      invite.hidden = false;
    },
    stopped(text) {
      blank(text);
    },
    busy(cancel) {
      still();
      invite.hidden = true;
      badge.className = "badge busy";
      badge.textContent = "computing …";
      bar.removeAttribute("value");
      progress.replaceChildren(bar, button("Cancel", cancel));
      timer = setTimeout(() => {
        progress.hidden = false;
      }, 400);
    },
    progress(share) {
      bar.value = share;
    },
    paint(content) {
      still();
      badge.className = `badge ${COLOURS[content.badge.colour]}`;
      badge.textContent = content.badge.text;
      reasons.replaceChildren(...[...content.badge.reasons, ...(content.proof ?? [])].map((one) => h("li", {}, one)));
      mended.replaceChildren(...(content.mended ? [...content.mended.steps, content.mended.steps.length ? movedBy(content.mended.moved) : "No repair was necessary."] : []).map((one) => h("li", {}, one)));
      rest.hidden = !content.matrix;
      headline.replaceChildren();
      if (!content.matrix) return;
      const compared = content.comparison;
      headline.replaceChildren(
        figure("ε", atMost(content.epsilon, 6), content.promise[0]), figure("η", atMost(content.eta, 6), content.promise[1]),
        ...(compared ? [
          figure("preserved", compared.value, `${compared.divergence}; ${compared.whose}`),
          figure("best channel", compared.optimum, compared.verified ? "within the same ε and η, proof checked" : compared.outcome === "refuted" ? "the proof of the best failed" : "the proof of the best was not checked"),
          figure("fraction of the best", compared.share === null ? "–" : percent(compared.share, 4), compared.certified ? "no channel within these limits exceeds 100 %" : ""),
        ] : [figure("comparison", "–", content.no_comparison)]));
      const small = content.inputs.length <= MAX_DRAWN && content.outputs.length <= MAX_DRAWN;
      own.figure.hidden = !small;
      best.figure.hidden = !small || !compared;
      if (small) own.update(drawn(content.matrix, content.inputs, content.outputs, compared));
      if (small && compared) best.update(drawn(compared.matrix, content.inputs, compared.outputs, null));
      curve.figure.hidden = !content.trade_off;
      if (content.trade_off) {
        curve.update({ series: [{ name: "missed at least, with this channel", points: content.trade_off }, { name: "without information", points: [[0, 1], [1, 0]], dash: 1, thin: true }],
          x: { label: "fraction of others wrongly suspected", low: 0, high: 1 }, y: { label: "fraction missed", high: 1 } });
      }
      table.replaceChildren(h("h2", {}, "All guarantees"), content.unmeasured ? h("p", { class: "note" }, content.unmeasured) : "",
        h("div", { class: "scroll whole", tabindex: 0, role: "region", "aria-label": "All guarantees: table" }, stacked("Rounded so that they remain valid. Values with a unit are in nats.",
          ["privacy definition", "guarantee", "attained at", "source"], content.guarantees.map((row) => [row.title, `${row.sign} ${row.value}`, row.witness, row.reference]))));
    },
  };
}

/** A table whose rows become blocks on a narrow page, where its columns would be cut; roles keep it a table. */
const stacked = (caption, heads, rows) => h("table", { class: "stacked", role: "table" }, h("caption", {}, caption),
  h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads.map((one, at) => h("th", { scope: "col", role: "columnheader", class: at > 1 ? "words" : "" }, one)))),
  h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row" }, row.map((cell, at) => (at
    ? h("td", { role: "cell", "data-head": heads[at], class: at > 1 ? "words" : "" }, cell)
    : h("th", { scope: "row", role: "rowheader" }, cell)))))));

const movedBy = (share) => (share === 0 ? "No row was changed further." : `Rows changed by at most ${atMost(share)} in total variation.`);

const describeChannel = (data) => `${data.rows.length} answers and ${data.columns.length} reports.`;

const figure = (name, value, note) => figureOf(name, shown(value, 6), note);

const drawn = (matrix, inputs, outputs, compared) => ({
  rows: matrix.map((values, at) => ({ label: inputs[at], values })),
  columns: outputs.map((label) => ({ label })),
  below: compared ? [{ name: "P0", tone: "population-0", values: compared.m0 }, { name: "P1", tone: "population-1", values: compared.m1 }] : [],
});
