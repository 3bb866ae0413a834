// Context of the optimum: its envelope in eta, mechanisms and bounds, and the phases along epsilon.

import { lines } from "./charts.js";
import { debounced, h, percent, shown } from "./dom.js";
import { button } from "./fields.js";

const MOST_BANDS = 40;

export function tellCurves(host, studio) {
  const envelope = lines(host, {
    title: "The cost of a limit η: the envelope and its corners", file: "envelope", onMove: (eta) => studio.change({ eta: Number(eta.toPrecision(4)) }),
    describe: (data) => `The optimum for each limit on total variation at this ε, linear between ${data.corners} corners. The cursor is at the current limit; press or drag to move it.`,
  });
  const prove = work(envelope.figure, "Prove 40 points of the curve", (state, onProgress) => studio.job("envelope", state, onProgress), (content) => {
    proved = content.points;
    redraw();
    return `${content.certified} of ${content.points.length} points certified.`;
  });
  const compare = h("section", { class: "card", "aria-label": "Textbook mechanisms and published bounds" });
  host.append(compare);
  const phases = lines(host, {
    title: "How the design changes along ε", file: "phases", onMove: (epsilon) => studio.change({ epsilon: Number(epsilon.toPrecision(4)) }),
    describe: (data) => `${data.pieces.length} structures between ε = ${shown(data.x.low)} and ${shown(data.x.high)}, with one band each.`,
  });
  const pieces = h("ol", { class: "words" });
  phases.figure.append(h("p", { class: "note" }, "As ε increases, the structure of the best channel changes at a few values: blocks split, and erasure ends."));
  const seek = work(phases.figure, "Find the phases", (state, onProgress) => studio.job("phases", state, onProgress), (content) => {
    phased = content;
    redrawPhases();
    return "";
  });
  phases.figure.append(pieces);

  let state = null, content = null, comparison = null, proved = null, phased = null, key = "";

  const later = debounced(async () => {
    const thisState = state;
    const result = await studio.ask("compare", thisState);
    if (!result || thisState !== state) return;
    comparison = result;
    redraw();
  }, 80);

  function redraw() {
    envelope.figure.hidden = compare.hidden = phases.figure.hidden = !comparison?.applies;
    if (!comparison?.applies) return;
    const { corners, mechanisms, bounds, reach } = comparison, optimum = corners.at(-1).value;
    const edge = corners.map((one) => [one.eta, one.value]);
    if (corners.at(-1).eta < reach) edge.push([reach, optimum]);
    const fitting = bounds.filter((one) => one.above && one.points.length && one.points.at(-1)[1] <= 2.2 * optimum && one.value > 0).slice(0, 2);
    envelope.update({
      corners: corners.length,
      series: [
        { name: "optimum", points: edge, tone: 0 },
        { name: "corners: partitions", points: corners.slice(1).map((one) => [one.eta, one.value]), only: true, tone: 0 },
        ...mechanisms.map((one, at) => ({ name: one.name, points: one.points, tone: at + 1, dash: at + 1, thin: true })),
        ...fitting.map((one, at) => ({ name: `bound ${one.reference}`, points: one.points, tone: 4 + at, thin: true, dash: 3 })),
        ...(proved ? [{ name: "certified", points: proved.filter((one) => one.certified).map((one) => [one.eta, one.value]), only: true, tone: 2 }] : []),
      ],
      x: { label: "limit η on total variation", low: 0, high: reach }, y: { label: `${content.divergence} of the reports` },
      cursor: { x: state.eta ?? reach, y: content.value, label: `η = ${shown(Math.min(state.eta ?? reach, reach))}: ${shown(content.value)}` },
    });
    compare.replaceChildren(h("h2", {}, "Comparison with the optimum"), tableOf(["mechanism", "preserves", "of the optimum", "respondents"],
      [["optimal channel", shown(content.value, 5), "100 %", count(content.respondents.private)],
        ...mechanisms.map((one) => [one.name, shown(one.value, 5), percent(one.share), one.respondents === null ? "–" : count(one.respondents)])], "Textbook mechanisms within these limits"),
      bounds.length ? tableOf(["published bound", "value", "ratio to the optimum"], bounds.map((one) => [one.reference, `${one.above ? "≤" : "≥"} ${shown(one.value, 5)}`, shown(one.off, 4)]), "Bounds on the optimum from the papers") : "");
  }

  function redrawPhases() {
    if (!phased) return;
    const few = phased.pieces.length <= MOST_BANDS;
    phases.update({
      pieces: phased.pieces, series: [{ name: "optimum", points: phased.points, tone: 0 }],
      bands: few ? phased.pieces.map((one, at) => ({ from: one.low, to: one.high, tone: at % 2, label: one.name })) : [],
      x: { label: "ε in nats", log: true, low: phased.low, high: phased.high }, y: { label: `${content.divergence} of the reports` },
      cursor: { x: state.epsilon, y: content.value, label: `ε = ${shown(state.epsilon)}` },
    });
    pieces.replaceChildren(...phased.pieces.slice(0, 12).map((one) => h("li", {}, `ε from ${shown(one.low, 4)} to ${shown(one.high, 4)}: ${one.name} `,
      h("span", { class: "note" }, patterns(one.patterns)))), phased.pieces.length > 12 ? h("li", { class: "note" }, `and ${phased.pieces.length - 12} more`) : "");
  }

  return {
    later(now, result) {
      // Proved points and phases belong to one problem; only the cursor may move on them.
      const { epsilon, eta, ...rest } = now, problem = JSON.stringify(rest);
      if (key !== `${problem}|${epsilon}`) {
        proved = null;
        prove.reset();
      }
      if (!key.startsWith(`${problem}|`) || state?.eta !== eta) {
        phased = null;
        phases.clear();
        pieces.replaceChildren();
        seek.reset();
      }
      key = `${problem}|${epsilon}`;
      [state, content] = [now, result];
      prove.state = seek.state = now;
      redraw();
      redrawPhases();
      later();
    },
  };
}

/** A button that starts a job, a progress bar, and a button that cancels the job. */
export function work(figure, label, start, done) {
  const line = h("div", { class: "progress" }), status = h("span", { class: "note", role: "status" });
  const handle = { state: null, reset };
  let running = null;
  const go = button(label, async () => {
    const bar = h("progress", { max: 1, value: 0, "aria-label": label });
    const thisJob = start(handle.state, (share) => {
      bar.value = share;
    });
    running = thisJob;
    const stop = button("Cancel", () => {
      thisJob.cancel();
      running = null;
      line.replaceChildren(go, status);
      status.textContent = "cancelled";
      go.focus();
    });
    line.replaceChildren(bar, stop);
    stop.focus();
    const content = await thisJob.done;
    if (running !== thisJob) return;
    running = null;
    line.replaceChildren(go, status);
    status.textContent = content ? done(content) : "no result";
  });
  function reset() {
    running?.cancel();
    running = null;
    status.textContent = "";
    line.replaceChildren(go, status);
  }
  reset();
  figure.append(line);
  return handle;
}

function tableOf(head, rows, caption) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, h("table", {}, h("caption", {}, caption),
    h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => (at ? h("td", {}, cell) : h("th", { scope: "row" }, cell))))))));
}

const count = (many) => (many === null ? "never enough" : many.toLocaleString("en"));

const patterns = (all) => {
  const shownOnes = all.slice(0, 6).map((one) => (one.length ? `{${one.slice(0, 4).join(", ")}${one.length > 4 ? ", …" : ""}}` : "erased"));
  return shownOnes.join(" ") + (all.length > 6 ? " …" : "");
};
