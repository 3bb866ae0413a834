// Fields of a form, each with a label, a hint, and its error.

import { h, newId } from "./dom.js";

/** A labelled control in a block, which also shows errors of the field `name`. */
export function fieldOf(name, label, control, hint) {
  const id = control.id || newId(name);
  control.id = id;
  control.setAttribute("name", name);
  const hinted = hint ? h("small", { id: `${id}-hint`, class: "hint" }, hint) : null;
  if (hint) control.setAttribute("aria-describedby", hinted.id);
  return h("div", { class: "field", "data-field": name }, h("label", { for: id }, label), control, hinted);
}

/** A number; `onChange` gets a finite number, or null if the field is empty. Other text stays and shows an error. */
export function numberField({ name, label, value, min, max, step = "any", hint, onChange }) {
  const control = h("input", { type: "number", inputmode: "decimal", min, max, step, value: value ?? "" });
  control.addEventListener("change", () => {
    if (control.value === "" && !control.validity.badInput) onChange(null);
    else if (Number.isFinite(control.valueAsNumber)) onChange(control.valueAsNumber);
  });
  const block = fieldOf(name, label, control, hint);
  block.set = (next) => {
    if (document.activeElement !== control || control.valueAsNumber !== next) control.value = next ?? "";
  };
  return block;
}

/** A slider from 0 to 1 over a scale: `to` makes a position a value, `from` a value a position, `say` puts it in words. */
export function slider({ name, label, value, to, from, say, steps = 400, onInput }) {
  const control = h("input", { type: "range", min: 0, max: steps, step: 1 }), spoken = h("output", { class: "spoken", "aria-hidden": "true" });
  const speak = (next) => {
    control.setAttribute("aria-valuetext", say(next));
    spoken.textContent = say(next);
  };
  const put = (next) => {
    control.value = String(Math.round(steps * Math.min(1, Math.max(0, from(next)))));
    speak(next);
  };
  const block = fieldOf(`${name}-slider`, label, control);
  block.append(spoken);
  put(value);
  control.addEventListener("input", () => {
    const next = to(Number(control.value) / steps);
    speak(next);
    onInput(next);
  });
  block.classList.add("slide");
  block.set = (next) => {
    if (document.activeElement !== control || Math.abs(Number(control.value) / steps - from(next)) > 1 / steps) put(next);
  };
  return block;
}

/** A file to choose: a button that says so, beside the name of the chosen file, instead of the browser's control. */
export function fileField({ name, label, accept, hint, onChange }) {
  const control = h("input", { type: "file", accept, class: "visually-hidden" }), chosen = h("span", { class: "note" });
  const block = fieldOf(name, label, control, hint);
  block.classList.add("file");
  block.firstChild.append(chosen);
  control.addEventListener("change", () => {
    const [file] = control.files;
    if (!file) return;
    chosen.textContent = file.name;
    onChange(file);
    control.value = "";
  });
  return block;
}

/** One of several: `options` are [value, text] pairs. */
export function select({ name, label, value, options, hint, onChange }) {
  const control = h("select", {}, options.map(([one, text]) => h("option", { value: one, selected: one === value }, text)));
  control.addEventListener("change", () => onChange(control.value));
  const block = fieldOf(name, label, control, hint);
  block.set = (next) => {
    control.value = next;
  };
  return block;
}

export function textField({ name, label, value, rows, hint, placeholder, onChange }) {
  const control = rows ? h("textarea", { rows, placeholder, spellcheck: "false" }) : h("input", { type: "text", placeholder });
  control.value = value ?? "";
  if (onChange) control.addEventListener("change", () => onChange(control.value));
  const block = fieldOf(name, label, control, hint);
  block.control = control;
  block.set = (next) => {
    if (document.activeElement !== control) control.value = next ?? "";
  };
  return block;
}

export function checkbox({ name, label, value, onChange }) {
  const id = newId(name);
  const control = h("input", { type: "checkbox", id, name, checked: Boolean(value) });
  control.addEventListener("change", () => onChange(control.checked));
  const block = h("div", { class: "field check", "data-field": name }, control, h("label", { for: id }, label));
  block.set = (next) => {
    control.checked = Boolean(next);
  };
  return block;
}

export const button = (label, onclick, attrs = {}) => h("button", { type: "button", onclick, ...attrs }, label);

/** Shows a message below the field, or removes it if it is empty. The field "" is the line at the top of the page. */
export function showError(root, name, sentence) {
  const block = name ? root.querySelector(`[data-field="${CSS.escape(name)}"]`) : null;
  if (!block) {
    const line = root.querySelector("[data-field-none]") ?? root.appendChild(h("p", { class: "error", "data-field-none": "", role: "alert" }));
    line.textContent = sentence;
    line.hidden = !sentence;
    return;
  }
  const control = block.matches("input,select,textarea,fieldset") ? block : block.querySelector("input,select,textarea");
  let line = block.querySelector(":scope > .error");
  if (!sentence) {
    line?.remove();
    control?.removeAttribute("aria-invalid");
    control?.removeAttribute("aria-errormessage");
    return;
  }
  line ??= block.appendChild(h("p", { class: "error", role: "alert", id: newId("error") }));
  if (line.textContent !== sentence) line.textContent = sentence;
  control?.setAttribute("aria-invalid", "true");
  control?.setAttribute("aria-errormessage", line.id);
  for (let box = block.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
}

export function clearErrors(root) {
  for (const line of root.querySelectorAll(".error")) {
    if (line.hasAttribute("data-field-none")) line.hidden = true;
    else line.remove();
  }
  for (const control of root.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    control.removeAttribute("aria-errormessage");
  }
}
