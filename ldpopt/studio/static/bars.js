// Two populations as bars that are dragged or moved with the arrow keys. The other bars shrink or grow in proportion.

import { cut, picture, widthOf } from "./charts.js";
import { percent, shown, svg } from "./dom.js";
import { beside, focused, followed, pressed } from "./drag.js";

/** The distribution with entry `at` moved to `value`, the others scaled so that all sum to 1. */
export function moved(p, at, value) {
  const next = Math.min(1, Math.max(0, value)), rest = 1 - p[at];
  const others = p.length - 1;
  const made = p.map((one, x) => (x === at ? next : rest > 0 ? (one / rest) * (1 - next) : (1 - next) / others));
  const total = made.reduce((sum, one) => sum + one, 0);
  return made.map((one) => one / total);
}

/**
 * data: {labels, names: [a, b], p0, p1}. `onChange("p0" | "p1", distribution)` is called at every move.
 */
export function bars(host, { title, file, onChange }) {
  let focus = { p0: 0, p1: 0 }, given, drag = null;
  const table = (data) => ({
    head: ["answer", ...data.names],
    rows: data.labels.map((label, at) => [label, percent(data.p0[at], 4), percent(data.p1[at], 4)]),
  });
  const describe = (data) => `${data.labels.length} answers; each has a bar for ${data.names[0]} and one for ${data.names[1]}. ` +
    "Up and down arrows go from answer to answer, left and right arrows change a bar, Page Up and Page Down change it more.";
  const made = picture(host, { title, describe, table, file, draw, interactive: true });

  const change = (which, at, value) => onChange(which, moved(given[which], at, value));

  function draw(data, width) {
    given = data;
    const k = data.labels.length, dense = k > 40, row = dense ? 11 : 34, head = 26;
    const named = dense ? 0 : Math.min(width * 0.36, 10 + Math.max(...data.labels.map((one) => widthOf(one, 12))));
    const left = named + 6, w = width - left - 52;
    const top = Math.max(0.02, ...data.p0, ...data.p1), scale = drag?.scale ?? scaleOf(top);
    const place = svg("svg", { viewBox: `0 0 ${width} ${head + k * row + 4}`, class: "bars" });
    let x = 0;
    data.names.forEach((name, at) => {
      place.append(svg("rect", { x, y: 4, width: 12, height: 12, class: `population-${at}` }),
        svg("text", { x: x + 17, y: 14, class: "label" }, cut(name, width / 2 - 26)));
      x += Math.min(width / 2, 34 + widthOf(name, 12));
    });
    const high = dense ? 5 : 14;
    data.labels.forEach((label, at) => {
      const y = head + at * row;
      if (!dense) place.append(svg("text", { x: named, y: y + row / 2, class: "tick end middle" }, cut(label, named), svg("title", {}, label)));
    });
    // One population after the other, so that Tab goes from the first to the second.
    ["p0", "p1"].forEach((which, number) => {
      data.labels.forEach((label, at) => {
        const y = head + at * row;
        const value = data[which][at], top = y + number * (high + (dense ? 0 : 1)) + (dense ? 0 : 2), long = Math.min(w, (w * value) / scale);
        const bar = svg("g", {
          role: "slider", tabindex: focus[which] === at ? 0 : -1, "data-key": `${which}-${at}`, class: "bar",
          "aria-label": `${data.names[number]}: ${label}`, "aria-valuemin": 0, "aria-valuemax": 100,
          "aria-valuenow": Number((100 * value).toPrecision(6)), "aria-valuetext": percent(value), "aria-orientation": "horizontal",
        },
        svg("rect", { x: left, y: top, width: w, height: high, class: "groove" }),
        svg("rect", { x: left, y: top, width: Math.max(long, 1), height: high, class: `population-${number}` }),
        dense ? null : svg("rect", { x: left + long - 2, y: top - 0.5, width: 4, height: high + 1, class: "grip" }),
        dense ? null : svg("text", { x: left + long + 5, y: top + high / 2 + 0.5, class: "tick small middle" }, shown(value, 3)));
        bar.addEventListener("pointerdown", (event) => grab(event, which, at, left, w, scale, width));
        bar.addEventListener("keydown", (event) => press(event, which, at, k));
        bar.addEventListener("focus", () => {
          focus = { ...focus, [which]: at };
        });
        place.append(bar);
      });
    });
    return place;
  }

  function grab(event, which, at, left, w, scale, width) {
    event.preventDefault();
    drag = { scale };
    focus = { ...focus, [which]: at };
    made.place.querySelector(`[data-key="${which}-${at}"]`)?.focus({ preventScroll: true });
    const told = followed(event, made.place, width, (x) => change(which, at, ((x - left) / w) * scale), () => {
      drag = null;
      made.update(given);
    });
    told(event);
  }

  function press(event, which, at, k) {
    const to = pressed(event.key, given[which][at]), next = beside(event.key, at, k);
    if (to === undefined && next === undefined) return;
    event.preventDefault();
    if (to !== undefined) return change(which, at, to);
    focus = { ...focus, [which]: next };
    focused(made.place, `${which}-${at}`, `${which}-${next}`);
  }

  return made;
}

/** A round number above the longest bar. */
function scaleOf(top) {
  return [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1].find((one) => one >= top * 1.08) ?? 1;
}
