// The pictures of "Ask a question": protocols side by side, one survey's intervals, and one answer's intervals in many.

import { cut, picture, ticks, widthOf } from "./charts.js";
import { percent, shown, svg } from "./dom.js";
import { heatmap } from "./heatmap.js";

const points = (value) => `${shown(100 * value, 3)} points`;

/** Bars of the people that every protocol needs. data: {rows, open}. */
export function protocols(host) {
  return picture(host, {
    title: "People needed, by protocol", file: "protocols", draw: drawProtocols,
    describe: ({ rows, open }) => `${rows[0].name} needs the fewest, ${shown(rows[0].needed)}; without privacy, ${shown(open)} are enough.`,
    table: ({ rows }) => ({ head: ["protocol", "people needed", "half-width reached", "ε", "η", "times the people without privacy"],
      rows: rows.map((one) => [one.name, one.needed, points(one.half_width), one.epsilon, one.eta, one.times]) }),
  });
}

/** Bars of the people for each way of asking several questions. data: {rows, open}, `open` a lower bound for any survey of independent answers. */
export function ways(host) {
  return picture(host, {
    title: "People needed, by method", file: "questionnaire", draw: (data, width) => drawProtocols(data, width, "lower bound"),
    describe: ({ rows, open }) => `${rows[0].name} needs the fewest, ${shown(rows[0].needed)}; no private survey of fewer than ${shown(open)} people reaches the half-widths if the answers are independent.`,
    table: ({ rows, open }) => ({ head: ["method", "people needed", "times the lower bound for any private survey"], rows: rows.map((one) => [one.name, one.needed, one.needed / open]) }),
  });
}

function drawProtocols({ rows, open }, width, line = "without privacy") {
  // On a narrow page the names are above their bars, since they would be cut to the left of them.
  const named = 14 + Math.max(...rows.map((one) => widthOf(one.name, 12))), above = named > width * 0.42;
  const left = above ? 0 : named, tall = above ? 38 : 24, w = width - left - 78;
  // Some protocols need a hundred times the people: bars stop at three times the fewest, with an arrow.
  const most = Math.min(Math.max(...rows.map((one) => one.needed)), 3 * rows[0].needed);
  const x = left + Math.min(w, (w * open) / most), foot = rows.length * tall + 4;
  const place = svg("svg", { viewBox: `0 0 ${width} ${rows.length * tall + 26}`, class: "protocols" });
  rows.forEach((one, at) => {
    const y = (above ? 16 : 2) + at * tall, over = one.needed > most, long = (w * Math.min(one.needed, most)) / most;
    const where = above ? { x: 0, y: y - 4, class: "tick middle" } : { x: left - 6, y: y + 12, class: "tick end middle" };
    place.append(svg("text", { ...where, class: `${where.class}${one.optimal ? " strong" : ""}` }, cut(one.name, above ? width : left - 6), svg("title", {}, one.name)),
      svg("rect", { x: left, y: y + 4, width: Math.max(1, long), height: 16, class: one.optimal ? "population-1" : "population-0" },
        svg("title", {}, `${one.name}: ${shown(one.needed)} people${one.half_width ? `, or ±${points(one.half_width)}` : ""}`)),
      svg("text", { x: left + long + 5, y: y + 12, class: "tick small middle" }, `${over ? "→ " : ""}${shown(one.needed)}`),
      above ? svg("line", { x1: x, x2: x, y1: y + 4, y2: y + 20, class: "cursor" }) : "");
  });
  const lineLabel = `${line}: ${shown(open)}`, fits = widthOf(lineLabel, 12) <= width - x - 4;
  place.append(above ? "" : svg("line", { x1: x, x2: x, y1: 2, y2: foot, class: "cursor" }), svg("text", { x: fits ? x + 4 : width, y: foot + 12, class: fits ? "label" : "label end" }, cut(lineLabel, width)));
  return place;
}

/** The intervals of one survey. data: {labels, answers, beside, n}. */
export function intervals(host) {
  return picture(host, {
    title: "One simulated survey: estimates and intervals", file: "survey", draw: drawIntervals,
    describe: ({ answers, n }) => `${shown(n)} people; the interval covers the true proportion of ${answers.filter((one) => one.covers).length} of ${answers.length} answers.`,
    table: ({ labels, answers, beside }) => ({ head: ["answer", "true proportion", "estimate", "from", "to", `${beside.name}: from`, "to"],
      rows: labels.map((label, at) => [label, percent(answers[at].truth), percent(answers[at].estimate), percent(answers[at].low), percent(answers[at].high),
        percent(beside.answers[at].low), percent(beside.answers[at].high)]) }),
  });
}

function drawIntervals({ labels, answers, beside }, width) {
  const legend = [["optimal channel", "population-1"], [beside.name, "population-0"], ["true proportion", "cursor"]];
  const tall = 34, head = legend.reduce((sum, [name]) => sum + 34 + widthOf(name, 12), 0) > width ? 40 : 22, left = Math.min(width * 0.36, 10 + Math.max(...labels.map((one) => widthOf(one, 12)))) + 4, w = width - left - 14;
  const top = Math.min(1, 1.05 * Math.max(...answers.map((one) => Math.max(one.high, one.truth)), ...beside.answers.map((one) => one.high)));
  const px = (value) => left + (w * Math.min(top, Math.max(0, value))) / top, foot = head + labels.length * tall;
  const place = svg("svg", { viewBox: `0 0 ${width} ${foot + 24}`, class: "intervals" });
  let x = 0, y0 = 0;
  for (const [name, kind] of legend) {
    const wide = 34 + widthOf(name, 12);
    if (x && x + wide > width) [x, y0] = [0, y0 + 18];
    place.append(kind === "cursor" ? svg("line", { x1: x + 6, x2: x + 6, y1: y0 + 3, y2: y0 + 17, class: "truth" }) : svg("rect", { x, y: y0 + 6, width: 14, height: 7, class: kind }),
      svg("text", { x: x + 19, y: y0 + 14, class: "label" }, name));
    x += wide;
  }
  for (const at of ticks(0, top, Math.max(2, Math.floor(w / 80)))) {
    place.append(svg("line", { x1: px(at), x2: px(at), y1: head, y2: foot, class: "grid" }), svg("text", { x: px(at), y: foot + 15, class: "tick mid" }, percent(at, 2)));
  }
  labels.forEach((label, at) => {
    const y = head + at * tall;
    place.append(svg("text", { x: left - 6, y: y + tall / 2, class: "tick end middle" }, cut(label, left - 6), svg("title", {}, label)));
    [[answers[at], "population-1", 11], [beside.answers[at], "population-0", 23]].forEach(([one, kind, down]) => {
      place.append(svg("rect", { x: px(one.low), y: y + down - 3.5, width: Math.max(1.5, px(one.high) - px(one.low)), height: 7, class: kind, "fill-opacity": 0.75 },
        svg("title", {}, `${percent(one.low)} to ${percent(one.high)}${one.covers ? "" : ": misses the true proportion"}`)),
      svg("circle", { cx: px(one.estimate), cy: y + down, r: 3.5, class: "dot" }),
      one.covers ? "" : svg("text", { x: Math.min(width - 4, px(one.high) + 5), y: y + down, class: `tick small middle${px(one.high) > width - 60 ? " end" : ""}` }, "misses"));
    });
    place.append(svg("line", { x1: px(answers[at].truth), x2: px(answers[at].truth), y1: y + 3, y2: y + tall - 4, class: "truth" }));
  });
  return place;
}

/** One answer's intervals in many surveys. data: {label, repeats, covered, level}. */
export function repeats(host) {
  return picture(host, {
    title: "The same survey repeated forty times, for one answer", file: "surveys", draw: drawRepeats,
    describe: ({ label, repeats: all, covered }) => `Of ${all.length} intervals for ${label}, ${covered} cover the true proportion.`,
    table: ({ repeats: all }) => ({ head: ["survey", "estimate", "from", "to", "covers the true proportion"], rows: all.map((one, at) => [at + 1, percent(one.estimate), percent(one.low), percent(one.high), one.covers ? "yes" : "no"]) }),
  });
}

function drawRepeats({ repeats: all, covered, level }, width) {
  const height = 170, left = 46, foot = 24, w = width - left - 8, truth = all[0].truth;
  const low = Math.min(truth, ...all.map((one) => one.low)), high = Math.max(truth, ...all.map((one) => one.high));
  const py = (value) => 10 + (height - 10 - foot) * (1 - (value - low) / (high - low || 1)), step = w / all.length;
  const place = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "repeats" });
  place.append(svg("line", { x1: left, x2: width - 8, y1: py(truth), y2: py(truth), class: "truth" }));
  const apart = (value) => Math.abs(py(value) - py(truth)) > 13;
  for (const value of [low, truth, high]) {
    if (value === truth || apart(value)) place.append(svg("text", { x: left - 5, y: py(value), class: "tick end middle" }, percent(value, 2)));
  }
  all.forEach((one, at) => {
    const x = left + (at + 0.5) * step;
    place.append(svg("line", { x1: x, x2: x, y1: py(one.low), y2: py(one.high), class: one.covers ? "held" : "missed" }, svg("title", {}, `${percent(one.low)} to ${percent(one.high)}`)),
      one.covers ? svg("circle", { cx: x, cy: py(one.estimate), r: 2.2, class: "dot" }) : svg("text", { x, y: py(one.estimate), class: "tick mid middle strong" }, "×"));
  });
  place.append(svg("text", { x: 0, y: height - 6, class: "label" }, cut(`${covered} of ${all.length} cover the true proportion (level ${percent(level)})`, width)));
  return place;
}

/** The channel's matrix. data: {channel}. */
export function channelMap(host) {
  const figure = heatmap(host, {
    title: "The channel: probability of each report", file: "channel", corner: "answer",
    describe: (data) => `${data.rows.length} answers and ${data.columns.length} reports.`,
  });
  return {
    update(channel) {
      figure.update({
        rows: channel.inputs.map((label, at) => ({ label, values: channel.matrix[at] })),
        columns: channel.outputs.map((label) => ({ label: String(label), title: `report ${label}` })),
        below: [{ name: "all people", tone: "population-0", values: channel.chances }],
      });
    },
  };
}
