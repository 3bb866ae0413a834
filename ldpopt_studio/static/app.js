// The page: tabs, the states of the views, undo, the link that restores a state.
//
// A view is {name, title, initial(start), mount(root, state, studio)}; `initial` is given the state that the program was
// started with, or undefined. `mount` may return {update(state)}, which is called after every change, undo and link;
// without it the view is mounted anew. `uses` names views whose states belong into its link.

import { ask, call, job, keepToken, StateError, takeToken, Unreachable } from "./api.js";
import { debounced, h } from "./dom.js";
import { button, clearErrors, showError, textField } from "./fields.js";
import { view as asking } from "./ask.js";
import { view as inspect } from "./inspect.js";
import { view as meaning } from "./meaning.js";
import * as takeaway from "./takeaway.js";
import { view as tell } from "./tell.js";

const VIEWS = [tell, asking, meaning, inspect];
const PANELS = [takeaway]; // modules with panel(root, studio), shown below every view; panel may return {update()}

const TOGETHER = 700; // milliseconds within which changes of one field are one step of undo
const byName = Object.fromEntries(VIEWS.map((view) => [view.name, view]));
const $ = (id) => document.getElementById(id);

let states = {}, current = VIEWS[0].name, mounted = null, root = null, panels = [];
const past = [], future = [];
let last = { at: 0, keys: "" };

const studio = {
  ask: (path, state) => ask(path, state).catch(failed),
  /** The same, but errors are not shown: the promise rejects. */
  quiet: ask,
  job: (name, state, onProgress) => {
    const newJob = job(name, state, onProgress);
    return { cancel: newJob.cancel, done: newJob.done.catch(failed) };
  },
  /** Change fields of the state of this view (or of the view `name`): one step of undo. */
  change(patch, name = current) {
    const keys = name + Object.keys(patch).sort().join();
    const now = performance.now();
    // An undo step without a change would confuse users.
    if (Object.entries(patch).every(([field, value]) => states[name][field] === value)) return refresh();
    if (keys !== last.keys || now - last.at > TOGETHER) past.push({ states, current });
    if (past.length > 200) past.shift();
    last = { at: now, keys };
    future.length = 0;
    states = { ...states, [name]: { ...states[name], ...patch } };
    refresh();
  },
  /** The same for a choice (a file, a question): always a separate undo step, even right after the last one. */
  choose(patch) {
    last = { at: 0, keys: "" };
    studio.change(patch);
    last = { at: 0, keys: "" };
  },
  state: (name = current) => states[name],
  view: () => current,
  error: (name, sentence) => showError(root, name, sentence),
  clear: () => clearErrors(root),
  announce,
  say,
  open: (name, patch) => {
    past.push({ states, current });
    last = { at: 0, keys: "" };
    if (patch) states = { ...states, [name]: { ...states[name], ...patch } };
    show(name, true);
  },
};

/** Shows an error beside its field, or at the top; the promise resolves to undefined. */
function failed(error) {
  if (error instanceof StateError) {
    clearErrors(root);
    for (const [name, sentence] of Object.entries(error.errors)) showError(root, name, sentence);
  } else if (error instanceof Unreachable) {
    trouble(error.message);
  } else {
    trouble("Something went wrong on this page. Undo the last change, or reload the page.");
    console.error(error);
  }
  return undefined;
}

function put(sentence, kind) {
  $("status").className = kind;
  if ($("status").textContent !== sentence) $("status").textContent = sentence;
}

function trouble(sentence) {
  put(sentence, "status trouble");
}

let waiting = "";

/** Announce a text to users of screen readers. It stays invisible, and never replaces a visible message. */
function announce(sentence) {
  if ($("status").className === "status") waiting = sentence;
  else put(sentence, "status visually-hidden");
}

/** Show a message about a completed action at the foot of the window for a while. */
function say(sentence) {
  waiting = "";
  put(sentence, sentence ? "status" : "status visually-hidden");
  if (sentence) fade();
}

const fade = debounced(() => {
  if ($("status").className === "status") put(waiting || $("status").textContent, "status visually-hidden");
}, 6000);

const packed = (value) => {
  let text = "";
  for (const byte of new TextEncoder().encode(JSON.stringify(value))) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
};

const unpacked = (text) => {
  const raw = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(raw, (c) => c.charCodeAt(0))));
};

/** True if a value of a link has the type of the value in a new state. */
function fits(value, usual) {
  if (usual === null || usual === undefined) return true;
  if (Array.isArray(usual)) return Array.isArray(value) && value.every((one) => fits(one, usual[0]));
  if (typeof usual === "number") return value === null || Number.isFinite(value);
  if (typeof usual !== "object") return typeof value === typeof usual || (value === null && typeof usual !== "string");
  return typeof value === "object" && value !== null && !Array.isArray(value)
    && Object.entries(value).every(([name, one]) => fits(one, Object.hasOwn(usual, name) ? usual[name] : undefined));
}

const LONGEST = 500_000; // letters of a link; browsers refuse addresses of two million

/** The part of the address that restores this state; for a state that is too large, only the view. */
function fragment() {
  const parts = [`view=${current}`, `state=${packed(states[current])}`];
  for (const other of byName[current].uses ?? []) parts.push(`${other}=${packed(states[other])}`);
  const text = `#${parts.join("&")}`;
  return text.length > LONGEST ? `#view=${current}` : text;
}

/** Take the view and states from a link; returns whether it was a link. */
function restore() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const name = parameters.get("view");
  if (!name) return false;
  if (!byName[name]) {
    say("The link is invalid: it does not name a view.");
    return false;
  }
  try {
    const restoredStates = {};
    for (const [key, text] of parameters) {
      const which = key === "state" ? name : key;
      if (key === "view" || !byName[which]) continue;
      const value = unpacked(text);
      const usual = byName[which].initial();
      if (value === null || typeof value !== "object" || !fits(value, usual)) throw new Error("no state");
      const restored = { ...usual, ...value };
      if (Array.isArray(restored.questions) && !(restored.at in restored.questions)) throw new Error("no question");
      restoredStates[which] = restored;
    }
    states = { ...states, ...restoredStates };
  } catch {
    say("The link is invalid: its state is damaged.");
    return false;
  }
  current = name;
  return true;
}

const address = debounced(() => history.replaceState(null, "", fragment()), 150);

function refresh() {
  if (mounted?.update) mounted.update(states[current]);
  else mount();
  for (const panel of panels) panel?.update?.();
  buttons();
  address();
}

function buttons() {
  $("undo").disabled = past.length === 0;
  $("redo").disabled = future.length === 0;
}

/** Show the view with its state, or with a new one if that breaks it. */
function mount(afresh = false) {
  root = h("div", { role: "tabpanel", id: "panel", "aria-labelledby": `tab-${current}`, class: `view ${current}` });
  $("main").replaceChildren(root);
  try {
    mounted = byName[current].mount(root, states[current], studio) ?? null;
  } catch (error) {
    if (afresh) throw error;
    states = { ...states, [current]: byName[current].initial() };
    mount(true);
    trouble("The link is invalid: its state is damaged. The view was reset.");
  }
}

function show(name, focus = false) {
  current = name;
  document.title = `${byName[name].title} – ldpopt studio`;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const here = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(here));
    tab.tabIndex = here ? 0 : -1;
    if (here && focus) tab.focus();
  }
  announce("");
  mount();
  for (const panel of panels) panel?.update?.();
  buttons();
  address();
}

function travel(from, to) {
  if (!from.length) return;
  to.push({ states, current });
  const then = from.pop();
  last = { at: 0, keys: "" };
  states = then.states;
  if (then.current === current && mounted?.update) {
    clearErrors(root);
    refresh();
  } else show(then.current);
}

function tabs() {
  const bar = $("tabs");
  for (const view of VIEWS) {
    const tab = button(view.title, () => open(view.name), { role: "tab", id: `tab-${view.name}`, "aria-controls": "panel" });
    bar.append(tab);
  }
  const open = (name) => {
    if (name === current) return;
    past.push({ states, current });
    last = { at: 0, keys: "" };
    show(name, true);
  };
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -VIEWS.length, End: VIEWS.length }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = VIEWS.findIndex((view) => view.name === current);
    const next = Math.abs(step) > 1 ? (step > 0 ? VIEWS.length - 1 : 0) : (at + step + VIEWS.length) % VIEWS.length;
    open(VIEWS[next].name);
  });
}

/** Without a token nothing can be computed: ask for the address that contains it. */
function askForToken() {
  const field = textField({ name: "token", label: "Address printed by ldpopt studio", hint: "It ends with ?token=…" });
  const go = () => {
    const token = field.control.value.trim().split("token=").pop().split(/[&#]/)[0];
    if (!token) return showError($("main"), "token", "token: enter the address that the terminal shows");
    keepToken(token);
    location.reload();
  };
  $("main").replaceChildren(
    h("section", { class: "card" }, h("h1", {}, "This page needs its token"),
      h("p", {}, "Each run of ", h("code", {}, "ldpopt studio"), " has its own token, which keeps other programs out."),
      field, button("Continue", go, { class: "main" })),
  );
}

async function begin() {
  const token = takeToken();
  if (!token) return askForToken();
  let start;
  try {
    start = await call("GET", "api/start");
  } catch (error) {
    askForToken();
    return trouble(error.message);
  }
  $("about").textContent = `ldpopt ${start.version}. Everything is computed on this machine; nothing leaves it.`;
  for (const view of VIEWS) states[view.name] = view.initial(start.states[view.name]);
  tabs();
  restore();
  panels = PANELS.map((module) => {
    $("takeaway").hidden = false;
    return module.panel($("takeaway"), studio);
  });
  show(current);
  $("undo").addEventListener("click", () => travel(past, future));
  $("redo").addEventListener("click", () => travel(future, past));
  $("link").addEventListener("click", async () => {
    const link = location.origin + location.pathname + fragment();
    history.replaceState(null, "", fragment());
    try {
      await navigator.clipboard.writeText(link);
      say(link.includes("&state=") ? "The link was copied. It contains the whole state, but not the token."
        : "The link was copied without the state, which is too large. Download its files instead.");
    } catch {
      say("Copy the link from the address bar.");
    }
  });
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    if (event.target.matches?.("textarea, input[type=text], input[type=number]")) return;
    event.preventDefault();
    if (event.shiftKey) travel(future, past);
    else travel(past, future);
  });
  addEventListener("hashchange", () => {
    const before = { states, current };
    if (restore()) {
      past.push(before);
      show(current);
    }
  });
}

begin();
