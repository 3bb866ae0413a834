// Elements, and numbers as text. No markup is ever made from text, so typed text can never run as code.

/** A text in which the characters that turn the order of letters around are seen. */
const plain = (one) => (typeof one === "string" ? one.replace(/[\u202a-\u202e]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`) : one);

const fill = (element, attrs, children) => {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false).map(plain));
  return element;
};

/** An HTML element: `h("p", {class: "note"}, "text", other)`; attributes that begin with "on" are listeners. */
export const h = (tag, attrs, ...children) => fill(document.createElement(tag), attrs, children);

/** The same for SVG. */
export const svg = (tag, attrs, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs, children);

/** A number for readers: with `digits` significant digits and no trailing zeros; "inf" becomes the sign ∞. */
export function shown(value, digits = 4) {
  if (value === "inf") return "∞";
  if (value === "-inf") return "−∞";
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    return `${trimmed(mantissa)}e${Number(exponent)}`.replace("-", "−").replace("e-", "e−");
  }
  if (size >= 1000 && Number.isInteger(value)) return value.toLocaleString("en").replace("-", "−");
  return trimmed(value.toPrecision(digits)).replace("-", "−");
}

/** A privacy limit or an upper bound for readers: rounded up, so that what is shown holds. */
export function atMost(value, digits = 4) {
  if (typeof value !== "number" || value === 0) return shown(value, digits);
  const nearest = Number(value.toPrecision(digits));
  if (nearest >= value) return shown(nearest, digits);
  // Just above a short number, more digits show that, as in the program's own texts.
  const places = digits >= 6 && value - nearest <= 1e-9 * Math.abs(value) ? digits + 4 : digits;
  const close = Number(value.toPrecision(places)), unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - places + 1);
  return shown(close >= value ? close : Number((close + unit).toPrecision(places)), places);
}

/** The same of a share, as a percentage. */
export const percentAtMost = (value, digits = 3) => (typeof value === "number" ? `${atMost(100 * value, digits)} %` : "–");

const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

/** A share as a percentage. */
export const percent = (value, digits = 3) =>
  typeof value === "number" ? `${shown(100 * value, digits)} %` : "–";

/** Of several calls within `wait` milliseconds only the last one is made. */
export function debounced(call, wait) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...args), wait);
  };
}

let idCount = 0;
/** An id that no other element has. */
export const newId = (stem) => `${stem}-${++idCount}`;
