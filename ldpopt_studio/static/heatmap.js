// A matrix of probabilities, as colours and numbers: a row for each block of answers, a column for each report.

import { cut, picture, widthOf } from "./charts.js";
import { shown, svg } from "./dom.js";

/**
 * data: {rows: [{label, values}], columns: [{label, under}], below: [{name, values, tone}]}. `under` is a second line
 * of a column's name; `below` are distributions of the columns, drawn as bars under the matrix.
 */
export function heatmap(host, { title, describe, file, corner = "answers" }) {
  const table = (data) => ({
    head: [corner, ...data.columns.map((one) => one.label)],
    rows: [...data.rows.map((one) => [one.label, ...one.values]), ...(data.below ?? []).map((one) => [`reports of ${one.name}`, ...one.values])],
  });
  return picture(host, { title, describe, table, file, draw });
}

function draw(data, width) {
  // Above this value a cell's colour has less contrast with the ink than with the paper, so its number is
  // paper-coloured.
  const dense = matchMedia("(prefers-color-scheme: dark)").matches ? 0.6 : 0.92;
  const count = data.rows.length, m = data.columns.length, row = count > 60 ? 8 : count > 30 ? 14 : 26;
  const named = row < 14 ? 8 : Math.min(width * 0.4, 14 + Math.max(...data.rows.map((one) => widthOf(one.label, 12))));
  const w = (width - named - 4) / m, head = 24, bar = 44;
  const below = data.below ?? [];
  const height = head + count * row + (below.length ? 24 + bar + 20 : 0) + 4;
  const place = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "heat" });
  data.columns.forEach((column, y) => {
    if (w > 12) place.append(svg("text", { x: named + (y + 0.5) * w, y: 15, class: "tick mid" }, cut(column.label, w), svg("title", {}, column.title ?? column.label)));
  });
  data.rows.forEach((one, x) => {
    const top = head + x * row;
    if (row >= 14) place.append(svg("text", { x: named - 6, y: top + row / 2, class: "tick end middle" }, cut(one.label, named - 8), svg("title", {}, one.title ?? one.label)));
    one.values.forEach((value, y) => {
      place.append(svg("rect", { x: named + y * w, y: top, width: Math.max(1, w - 1), height: row - (row > 10 ? 1 : 0), class: "cell", "fill-opacity": Math.min(1, value).toFixed(4) }));
      if (row >= 14 && w > widthOf(shown(value, 3), 12) + 4) place.append(svg("text", { x: named + (y + 0.5) * w, y: top + row / 2, class: `tick mid middle ${value > dense ? "on" : ""}` }, shown(value, 3)));
    });
  });
  if (below.length) {
    const top = head + count * row + 20, most = Math.max(...below.flatMap((one) => one.values), 1e-9);
    place.append(svg("text", { x: named, y: top - 5, class: "label" }, cut(`reports of ${below.map((one) => one.name).join(" and of ")}`, width - named)));
    below.forEach((one, at) => {
      const wide = Math.min(34, (w - 6) / below.length);
      one.values.forEach((value, y) => {
        const x = named + (y + 0.5) * w - (wide * below.length) / 2 + at * wide, tall = (bar * value) / most;
        place.append(svg("rect", { x, y: top + bar - tall, width: Math.max(1, wide - 1), height: tall, class: one.tone }, svg("title", {}, `${one.name}: ${shown(value)}`)));
        if (wide > 26) place.append(svg("text", { x: x + wide / 2, y: top + bar + 13, class: "tick small mid" }, shown(value, 2)));
      });
    });
    place.append(svg("line", { x1: named, x2: width - 4, y1: top + bar, y2: top + bar, class: "axis" }));
  }
  return place;
}
