// The proportions of one question's answers as bars that users drag or move with the arrow keys.

import { moved } from "./bars.js";
import { cut, picture, widthOf } from "./charts.js";
import { atMost, percent, svg } from "./dom.js";
import { neighbor, moveFocus, follow, keyValue } from "./drag.js";

const ROW = 26;

/** data: {labels, pilot} with proportions that sum to 1. `onChange(pilot)` is called at every move. */
export function shares(host, { title, file, onChange }) {
  let focus = 0, current, drag = null;
  const figure = picture(host, {
    title, file, draw, interactive: true,
    table: (data) => ({ head: ["answer", "proportion"], rows: data.labels.map((label, at) => [label, percent(data.pilot[at], 4)]) }),
    describe: (data) => `${data.labels.length} answers with their expected proportions. The up and down arrows move between answers, ` +
      "the left and right arrows change a bar, and Page Up and Page Down change it more.",
  });

  function draw(data, width) {
    current = data;
    const k = data.labels.length;
    const left = Math.min(width * 0.4, 10 + Math.max(...data.labels.map((one) => widthOf(one, 12)))) + 6, w = width - left - 52;
    const scale = drag?.scale ?? Math.min(1, 1.15 * Math.max(...data.pilot));
    const place = svg("svg", { viewBox: `0 0 ${width} ${k * ROW + 6}`, class: "bars" });
    focus = Math.min(focus, k - 1);
    data.labels.forEach((label, at) => {
      const y = 3 + at * ROW, value = data.pilot[at], long = Math.min(w, (w * value) / scale);
      place.append(svg("text", { x: left - 6, y: y + ROW / 2, class: "tick end middle" }, cut(label, left - 6), svg("title", {}, label)));
      const bar = svg("g", {
        role: "slider", tabindex: focus === at ? 0 : -1, "data-key": `share-${at}`, class: "bar", "aria-label": label, "aria-valuemin": 0,
        "aria-valuemax": 100, "aria-valuenow": Number((100 * value).toPrecision(6)), "aria-valuetext": percent(value), "aria-orientation": "horizontal",
      },
      svg("rect", { x: left, y: y + 3, width: w, height: ROW - 8, class: "groove" }),
      svg("rect", { x: left, y: y + 3, width: Math.max(long, 1), height: ROW - 8, class: "population-0" }),
      svg("rect", { x: left + long - 2, y: y + 2, width: 4, height: ROW - 6, class: "grip" }),
      svg("text", { x: left + long + 6, y: y + ROW / 2 - 1, class: "tick small middle" }, percent(value)));
      bar.addEventListener("pointerdown", (event) => grab(event, at, left, w, scale, width));
      bar.addEventListener("keydown", (event) => press(event, at, k));
      bar.addEventListener("focus", () => {
        focus = at;
      });
      place.append(bar);
    });
    return place;
  }

  function grab(event, at, left, w, scale, width) {
    event.preventDefault();
    drag = { scale };
    focus = at;
    figure.place.querySelector(`[data-key="share-${at}"]`)?.focus({ preventScroll: true });
    const move = follow(event, figure.place, width, (x) => onChange(moved(current.pilot, at, ((x - left) / w) * scale)), () => {
      drag = null;
      figure.update(current);
    });
    move(event);
  }

  function press(event, at, k) {
    const to = keyValue(event.key, current.pilot[at]), next = neighbor(event.key, at, k);
    if (to === undefined && next === undefined) return;
    event.preventDefault();
    if (to !== undefined) onChange(moved(current.pilot, at, to));
    else moveFocus(figure.place, `share-${at}`, `share-${next}`);
  }

  return figure;
}

/** A bar in parts with draggable cuts. data: {names, split, epsilon}; `onChange(split)` is called at every move. */
export function parts(host, { title, file, onChange }) {
  let current;
  const figure = picture(host, {
    title, file, draw, interactive: true,
    table: (data) => ({ head: ["question", "fraction of ε", "ε in nats"], rows: data.names.map((name, at) => [name, percent(data.split[at]), data.split[at] * data.epsilon]) }),
    describe: (data) => `${data.names.length} questions share the budget. The left and right arrows move the handle between two questions.`,
  });

  function draw(data, width) {
    current = data;
    const w = width - 8, tall = 34;
    const place = svg("svg", { viewBox: `0 0 ${width} ${tall + 8 + data.names.length * 18}`, class: "parts" });
    const cuts = [0];
    for (const share of data.split) cuts.push(cuts.at(-1) + share);
    data.split.forEach((share, at) => {
      place.append(svg("rect", { x: 4 + w * cuts[at], y: 4, width: Math.max(0, w * share), height: tall - 6, class: `part part-${at % 7}` }),
        svg("text", { x: 4 + w * (cuts[at] + share / 2), y: 4 + (tall - 6) / 2, class: "tick mid middle on" }, w * share > 34 ? atMost(share * data.epsilon, 3) : ""),
        svg("rect", { x: 4, y: tall + 8 + at * 18, width: 12, height: 12, class: `part part-${at % 7}` }),
        svg("text", { x: 22, y: tall + 14 + at * 18, class: "tick middle" }, cut(`${data.names[at]}: ε ${atMost(share * data.epsilon, 3)}`, width - 24)));
    });
    data.split.slice(1).forEach((_, before) => {
      const x = 4 + w * cuts[before + 1];
      const handle = svg("g", {
        role: "slider", tabindex: 0, class: "bar", "data-key": `cut-${before}`, "aria-label": `Between ${data.names[before]} and ${data.names[before + 1]}`,
        "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Number((100 * cuts[before + 1]).toPrecision(5)), "aria-orientation": "horizontal",
        "aria-valuetext": `ε ${atMost(data.split[before] * data.epsilon, 3)} and ${atMost(data.split[before + 1] * data.epsilon, 3)}`,
      },
      svg("rect", { x: x - 11, y: 0, width: 22, height: tall, class: "catch" }), svg("rect", { x: x - 3, y: 0, width: 6, height: tall, class: "grip" }));
      handle.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 0.01, ArrowUp: 0.01, ArrowLeft: -0.01, ArrowDown: -0.01, PageUp: 0.05, PageDown: -0.05 }[event.key];
        if (!step) return;
        event.preventDefault();
        onChange(shifted(before, current.split[before] + step));
      });
      handle.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        figure.place.querySelector(`[data-key="cut-${before}"]`)?.focus({ preventScroll: true });
        follow(event, figure.place, width, (x) => onChange(shifted(before, (x - 4) / w - current.split.slice(0, before).reduce((sum, one) => sum + one, 0))));
      });
      place.append(handle);
    });
    return place;
  }

  /** The split with the part before the cut set to `value`; the part after the cut changes by the difference. */
  function shifted(before, value) {
    const both = current.split[before] + current.split[before + 1], minPart = Math.min(0.02, both / 2);
    const next = [...current.split];
    next[before] = Math.min(both - minPart, Math.max(minPart, value));
    next[before + 1] = both - next[before];
    return next;
  }

  return figure;
}
