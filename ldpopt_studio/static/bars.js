// Two populations as bars that users drag or move with the arrow keys. The other bars shrink or grow in proportion.

import { cut, picture, widthOf } from "./charts.js";
import { percent, svg } from "./dom.js";
import { neighbor, moveFocus, follow, keyValue } from "./drag.js";

/** The distribution with entry `at` moved to `value`, the others scaled so that all sum to 1. */
export function moved(p, at, value) {
  const next = Math.min(1, Math.max(0, value)), rest = 1 - p[at];
  const others = p.length - 1;
  const scaled = p.map((one, x) => (x === at ? next : rest > 0 ? (one / rest) * (1 - next) : (1 - next) / others));
  const total = scaled.reduce((sum, one) => sum + one, 0);
  return scaled.map((one) => one / total);
}

/** A round number above the longest of these bars. */
export const scaleOf = (values) => [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1].find((one) => one >= Math.max(...values) * 1.08) ?? 1;

/**
 * Bars in pairs, one for each population. `handle(which, at, value)`, if given, returns the attributes of a bar that can
 * be moved; of two answers, only the first is then drawn, since the other one is the rest.
 */
export function pairs({ labels, names, p0, p1 }, width, scale, handle) {
  const only = handle && labels.length === 2, k = only ? 1 : labels.length, dense = k > 40;
  const row = dense ? 11 : only ? 62 : 34, high = dense ? 5 : only ? 26 : 14, head = 26;
  const texts = only ? names : labels, named = dense ? 0 : Math.min(width * 0.36, 10 + Math.max(...texts.map((one) => widthOf(one, 12))));
  const left = named + 6, w = width - left - 52;
  const place = svg("svg", { viewBox: `0 0 ${width} ${head + k * row + 4}`, class: "bars" });
  place.geometry = { left, w };
  const text = (label, y, maxWidth = named) => svg("text", { x: maxWidth, y, class: "tick end middle" }, cut(label, maxWidth), svg("title", {}, label));
  let x = 0;
  if (only) place.append(svg("text", { x: 0, y: 14, class: "label" }, cut(`proportion that answers “${labels[0]}”`, width)));
  else names.forEach((name, at) => {
    place.append(svg("rect", { x, y: 4, width: 12, height: 12, class: `population-${at}` }), svg("text", { x: x + 17, y: 14, class: "label" }, cut(name, width / 2 - 26)));
    x += Math.min(width / 2, 34 + widthOf(name, 12));
  });
  // One population after the other, so that Tab goes from the first to the second.
  [p0, p1].forEach((p, number) => p.slice(0, k).forEach((value, at) => {
    const y = head + at * row, top = y + number * (high + (dense ? 0 : only ? 4 : 1)) + (dense ? 0 : 2), long = Math.min(w, (w * value) / scale);
    if (only) place.append(text(names[number], top + high / 2));
    else if (!number && !dense) place.append(text(labels[at], y + row / 2));
    place.append(svg("g", handle ? handle(`p${number}`, at, value) : {},
      svg("rect", { x: left, y: top, width: w, height: high, class: "groove" }),
      svg("rect", { x: left, y: top, width: Math.max(long, 1), height: high, class: `population-${number}` }),
      dense || !handle ? null : svg("rect", { x: left + long - (only ? 4 : 2), y: top - 0.5, width: only ? 8 : 4, height: high + 1, class: "grip" }),
      dense ? null : svg("text", { x: left + long + (only ? 8 : 5), y: top + high / 2 + 0.5, class: "tick small middle" }, percent(value))));
  }));
  return place;
}

/** data: {labels, names: [a, b], p0, p1}. `onChange("p0" | "p1", distribution)` is called at every move. */
export function bars(host, { title, file, onChange }) {
  let focus = { p0: 0, p1: 0 }, current, drag = null;
  const table = (data) => ({
    head: ["answer", ...data.names],
    rows: data.labels.map((label, at) => [label, percent(data.p0[at], 4), percent(data.p1[at], 4)]),
  });
  const describe = (data) => `${data.labels.length} answers; each has a bar for ${data.names[0]} and one for ${data.names[1]}. ` +
    "The up and down arrows move between answers, the left and right arrows change a bar, and Page Up and Page Down change it more.";
  const figure = picture(host, { title, describe, table, file, draw, interactive: true });

  const change = (which, at, value) => onChange(which, moved(current[which], at, value));

  function draw(data, width) {
    current = data;
    const k = data.labels.length, scale = drag?.scale ?? (k === 2 ? 1 : scaleOf([...data.p0, ...data.p1]));
    const place = pairs(data, width, scale, (which, at, value) => ({
      role: "slider", tabindex: focus[which] === at ? 0 : -1, "data-key": `${which}-${at}`, class: "bar",
      "aria-label": `${data.names[Number(which[1])]}: ${data.labels[at]}`, "aria-valuemin": 0, "aria-valuemax": 100,
      "aria-valuenow": Number((100 * value).toPrecision(6)), "aria-valuetext": percent(value), "aria-orientation": "horizontal",
    }));
    const { left, w } = place.geometry, count = k === 2 ? 1 : k;
    for (const bar of place.querySelectorAll(".bar")) {
      const [which, at] = [bar.dataset.key.slice(0, 2), Number(bar.dataset.key.slice(3))];
      bar.addEventListener("pointerdown", (event) => grab(event, which, at, left, w, scale, width));
      bar.addEventListener("keydown", (event) => press(event, which, at, count));
      bar.addEventListener("focus", () => {
        focus = { ...focus, [which]: at };
      });
    }
    return place;
  }

  function grab(event, which, at, left, w, scale, width) {
    event.preventDefault();
    drag = { scale };
    focus = { ...focus, [which]: at };
    figure.place.querySelector(`[data-key="${which}-${at}"]`)?.focus({ preventScroll: true });
    const move = follow(event, figure.place, width, (x) => change(which, at, ((x - left) / w) * scale), () => {
      drag = null;
      figure.update(current);
    });
    move(event);
  }

  function press(event, which, at, k) {
    const to = keyValue(event.key, current[which][at]), next = neighbor(event.key, at, k);
    if (to === undefined && next === undefined) return;
    event.preventDefault();
    if (to !== undefined) return change(which, at, to);
    focus = { ...focus, [which]: next };
    moveFocus(figure.place, `${which}-${at}`, `${which}-${next}`);
  }

  return figure;
}
