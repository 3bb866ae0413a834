// Figures in SVG: each has a title, a description and its numbers as a table, and can be saved.

import { h, newId, shown, svg } from "./dom.js";
import { button } from "./fields.js";

/** A color of the palette (Okabe and Ito), by number; it follows the light or dark scheme. */
export const colour = (at) => `series-${at % 7}`;

/**
 * A figure that draws itself again when its data or its width change.
 *
 * draw(data, width) returns an <svg>; table(data) returns {head, rows}, its text equivalent; describe(data) returns a
 * sentence. An `interactive` picture holds controls, so its role is a group and not an image.
 */
export function picture(host, { title, describe, draw, table, file, interactive = false }) {
  const place = h("div", { class: "svg" });
  const text = h("details", { class: "text" }, h("summary", {}, "As a table"));
  const name = h("figcaption", { id: newId("figure") }, title);
  const save = button("Save as SVG", () => saveSvg(place.querySelector("svg"), `${file ?? "picture"}.svg`), {
    class: "quiet", "aria-label": `Save as SVG: ${title}`,
  });
  const figure = h("figure", { class: "picture" }, h("div", { class: "over" }, name, save), place, text);
  host.append(figure);
  let data, width = 0, stale = true;
  const redraw = () => {
    if (data === undefined || width < 40) return;
    const drawn = draw(data, width);
    const description = describe ? describe(data) : "";
    const id = newId("picture");
    drawn.setAttribute("class", `${drawn.getAttribute("class") ?? ""} drawn`);
    drawn.setAttribute("role", interactive ? "group" : "img");
    drawn.setAttribute("aria-labelledby", `${id}-t`);
    if (description) drawn.setAttribute("aria-describedby", `${id}-d`);
    drawn.prepend(svg("title", { id: `${id}-t` }, title), svg("desc", { id: `${id}-d` }, description));
    const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("data-key") : null;
    place.replaceChildren(drawn);
    if (focused) place.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  };
  const list = () => {
    stale = !text.open;
    if (text.open && data !== undefined && table) {
      text.replaceChildren(text.firstChild, textOf(table(data), title));
    }
  };
  text.addEventListener("toggle", () => stale && list());
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (now !== width) {
      width = now;
      redraw();
    }
  }).observe(place);
  if (!table) text.remove();
  const blank = (is) => {
    save.hidden = text.hidden = is;
  };
  blank(true);
  return {
    figure,
    place,
    update(next) {
      data = next;
      blank(false);
      width ||= Math.floor(place.clientWidth);
      redraw();
      list();
    },
    clear() {
      data = undefined;
      blank(true);
      place.replaceChildren();
    },
  };
}

/** A table that replaces a picture for readers of text: `head` has texts, `rows` have texts or numbers. */
export function textOf({ head, rows }, caption) {
  const body = rows.map((row) => h("tr", {}, row.map((cell, at) =>
    at ? h("td", {}, typeof cell === "number" ? shown(cell, 5) : shown(cell)) : h("th", { scope: "row" }, shown(cell)))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${caption}: table` },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, body)));
}

const SAVED_PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-size", "font-weight",
  "font-family", "text-anchor", "dominant-baseline", "visibility"];

/** Download a picture as a file, with the colours in which it is shown. */
export function saveSvg(drawn, name) {
  if (!drawn) return;
  const copy = drawn.cloneNode(true);
  const theirs = [copy, ...copy.querySelectorAll("*")];
  [drawn, ...drawn.querySelectorAll("*")].forEach((one, at) => {
    const style = getComputedStyle(one);
    for (const property of SAVED_PROPERTIES) {
      const value = style.getPropertyValue(property);
      if (value) theirs[at].setAttribute(property, value);
    }
    for (const attr of ["class", "tabindex", "role"]) theirs[at].removeAttribute(attr);
  });
  const [, , width, height] = drawn.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const paper = svg("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor });
  copy.insertBefore(paper, copy.firstChild);
  download(new XMLSerializer().serializeToString(copy), name, "image/svg+xml");
}

/** Download a file that was made in the page. */
export function download(content, name, type = "text/plain") {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** The approximate width of a text at this size. */
export const widthOf = (text, size = 12) => String(text).length * size * 0.56;

/** A text cut so that it is drawn no wider than `width`. */
export function cut(text, width, size = 12) {
  const maxLength = Math.max(1, Math.floor(width / (size * 0.56)));
  return text.length > maxLength ? `${text.slice(0, Math.max(1, maxLength - 1))}…` : text;
}

/** The words of a text in lines, each drawn no wider than `width`; a longer word is cut. */
export function wrapped(text, width, size = 12) {
  const lines = [];
  for (const word of String(text).split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && widthOf(longer, size) <= width) lines[lines.length - 1] = longer;
    else lines.push(cut(word, width, size));
  }
  return lines;
}

/** Round numbers between two ends, about `count` of them. */
export function ticks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw * 0.999);
  const values = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9) + 1e-300; at++) values.push(at * step);
  return values.map((one) => Number(one.toPrecision(12)));
}

/**
 * Curves. data: {series: [{name, points: [[x, y], …], dash, marks, thin}], x: {label, log}, y: {label}, cursor: {x, y,
 * label}, bands: [{from, to, label}]}. The legend is below the data. `onMove(x)` is called where a pointer is
 * pressed or dragged.
 */
export function lines(host, { title, describe, file, height = 260, onMove }) {
  const table = ({ series, x }) => {
    const at = [...new Set(series.flatMap((one) => one.points.map(([p]) => p)))].sort((a, b) => a - b);
    const maps = series.map((one) => new Map(one.points.map(([p, v]) => [p, v])));
    return { head: [x.label, ...series.map((one) => one.name)], rows: at.map((p) => [p, ...maps.map((map) => map.get(p) ?? "–")]) };
  };
  const draw = (data, width) => drawLines(data, width, height, onMove);
  return picture(host, { title, describe, draw, table, file });
}

function drawLines({ series, x, y, cursor, bands = [] }, width, height, onMove) {
  const known = series.flatMap((one) => one.points).filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
  const xs = known.map(([a]) => a), to = x.log ? Math.log : (one) => one;
  const [low, high] = [x.low ?? Math.min(...xs), x.high ?? Math.max(...xs)];
  const top = y.high ?? (1.06 * Math.max(...known.map(([, b]) => b), cursor?.y ?? 0) || 1);
  const yTicks = ticks(0, top, 4), left = 14 + Math.max(...yTicks.map((one) => widthOf(shown(one), 11))) + 6;
  const right = 12, head = 22, foot = 38, w = width - left - right;
  const px = (one) => left + (w * (to(one) - to(low))) / (to(high) - to(low) || 1);
  const py = (one) => head + (height - head - foot) * (1 - one / top);
  const legend = [];
  let lx = left, ly = height + 6;
  series.forEach((one, at) => {
    const wide = 30 + widthOf(one.name, 12);
    if (lx > left && lx + wide > width) [lx, ly] = [left, ly + 18];
    const names = wrapped(one.name, width - left - 30, 12);
    legend.push({ at, one, x: lx, y: ly, names });
    lx += wide + 10;
    ly += 15 * (names.length - 1);
  });
  const all = ly + 14;
  const place = svg("svg", { viewBox: `0 0 ${width} ${all}`, class: "lines" });
  for (const band of bands) {
    const [a, b] = [px(Math.max(band.from, low)), px(Math.min(band.to, high))];
    place.append(svg("rect", { x: a, y: head, width: Math.max(0, b - a), height: height - head - foot, class: `band band-${band.tone ?? 0}` },
      svg("title", {}, band.label ?? "")));
  }
  for (const one of yTicks) {
    place.append(svg("line", { x1: left, x2: width - right, y1: py(one), y2: py(one), class: "grid" }),
      svg("text", { x: left - 6, y: py(one), class: "tick end middle" }, shown(one)));
  }
  const xTicks = x.log ? logTicks(low, high) : ticks(low, high, Math.max(2, Math.floor(w / 70)));
  for (const one of xTicks) {
    place.append(svg("line", { x1: px(one), x2: px(one), y1: height - foot, y2: height - foot + 4, class: "axis" }),
      svg("text", { x: px(one), y: height - foot + 16, class: "tick mid" }, shown(one)));
  }
  place.append(svg("line", { x1: left, x2: width - right, y1: height - foot, y2: height - foot, class: "axis" }),
    svg("text", { x: left, y: 12, class: "label" }, cut(y.label, width - left)),
    svg("text", { x: left + w / 2, y: height - foot + 32, class: "label mid" }, x.label));
  series.forEach((one, at) => {
    const points = one.points.filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b) && b <= top * 1.0001);
    const kind = `${colour(one.tone ?? at)} curve${one.thin ? " thin" : ""}${one.dash ? ` dash-${one.dash}` : ""}`;
    if (points.length > 1 && !one.only) place.append(svg("polyline", { points: points.map(([a, b]) => `${px(a)},${py(b)}`).join(" "), class: kind }));
    if (one.marks || one.only || points.length === 1) {
      for (const [a, b] of points) place.append(svg("circle", { cx: px(a), cy: py(b), r: 4, class: `${colour(one.tone ?? at)} mark` },
        svg("title", {}, `${one.name}: ${shown(a)}, ${shown(b)}`)));
    }
  });
  for (const { at, one, x: a, y: b, names } of legend) {
    const kind = `${colour(one.tone ?? at)} curve${one.dash ? ` dash-${one.dash}` : ""}`;
    if (one.only) place.append(svg("circle", { cx: a + 11, cy: b, r: 4, class: `${colour(one.tone ?? at)} mark` }));
    else place.append(svg("line", { x1: a, x2: a + 22, y1: b, y2: b, class: kind }));
    place.append(...names.map((line, row) => svg("text", { x: a + 28, y: b + 15 * row, class: "tick middle" }, line)));
  }
  if (cursor) {
    const a = px(Math.min(high, Math.max(low, cursor.x))), flip = a > width / 2;
    place.append(svg("line", { x1: a, x2: a, y1: head, y2: height - foot, class: "cursor" }),
      cursor.y === undefined ? "" : svg("circle", { cx: a, cy: py(Math.min(top, cursor.y)), r: 5, class: "cursor" }),
      svg("text", { x: a + (flip ? -8 : 8), y: height - foot - 8, class: `label${flip ? " end" : ""}` }, cursor.label ?? ""));
  }
  if (onMove) {
    const area = svg("rect", { x: left, y: head, width: w, height: height - head - foot, class: "catch" });
    const move = (event) => {
      const box = place.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, ((event.clientX - box.left) * (width / box.width) - left) / w));
      onMove(x.log ? Math.exp(to(low) + share * (to(high) - to(low))) : low + share * (high - low));
    };
    area.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      move(event);
      const end = () => removeEventListener("pointermove", move);
      addEventListener("pointermove", move);
      addEventListener("pointerup", end, { once: true });
      addEventListener("pointercancel", end, { once: true });
    });
    place.append(area);
  }
  return place;
}

function logTicks(low, high) {
  const values = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const one of high / low > 200 ? [1] : [1, 2, 5]) {
      const value = one * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) values.push(Number(value.toPrecision(6)));
    }
  }
  return values;
}
