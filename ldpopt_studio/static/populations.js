// The two populations: from bars that the user drags, a file, pasted lines, or the example data of the package.

import { bars } from "./bars.js";
import { h } from "./dom.js";
import { button, checkbox, fieldOf, fileField, select, showError, textField } from "./fields.js";

const NUMBERS = ["p0", "p1", "labels", "names", "counts", "once"];

/** The card of the populations; `update(state)` shows a state. */
export function populations(host, studio) {
  const examples = h("select", {}, h("option", { value: "" }, "choose …"));
  let known = [];
  studio.ask("examples", {}).then((loaded) => {
    known = loaded?.examples ?? [];
    examples.append(...known.map((one, at) => h("option", { value: at }, one.title)));
  });
  examples.addEventListener("change", () => {
    const loaded = known[Number(examples.value)];
    if (examples.value !== "" && loaded) take(loaded);
    examples.value = "";
  });

  const columns = h("div", { class: "columns", hidden: true });
  let content = null;
  const file = fileField({ name: "content", label: "Choose a file …", accept: ".csv,.tsv,.txt,.json,.xlsx,.xls,.ods,.parquet,.sav,.dta,.sas7bdat", onChange: async (chosen) => {
    columns.hidden = true;
    showError(host, "content", chosen.size > 5_500_000 ? "content: expected a file of at most 5.5 MB, got a larger one" : "");
    if (chosen.size > 5_500_000) return;
    content = { name: chosen.name, content: base64(new Uint8Array(await chosen.arrayBuffer())) };
    read({});
  } });

  async function read(more) {
    const loaded = await studio.ask("load", { ...content, ...more });
    if (!loaded) return;
    if (loaded.problem) return askColumns(loaded, more);
    columns.hidden = true;
    columns.replaceChildren();
    showError(host, "content", "");
    take(loaded);
  }

  /** Asks which columns to use, for a file with one row per respondent or with several columns. */
  function askColumns(loaded, more) {
    const chosen = { answer: "", group: "", bins: "", ...more };
    const options = [["", "choose …"], ...loaded.columns.map((one) => [one, one])];
    const field = (name, label, hint) => select({ name, label, hint, value: chosen[name], options, onChange: (value) => {
      chosen[name] = value;
    } });
    columns.replaceChildren(
      h("p", { class: "note" }, "Which column contains the answers, and which the two groups?"),
      field("answer", "Answers"), field("group", "Groups (two)"),
      textField({ name: "bins", label: "Bins, for numeric answers", value: chosen.bins, hint: "their number, or edges: 1000,2000", onChange: (value) => {
        chosen.bins = value;
      } }),
      button("Read the file", () => read(chosen), { class: "main" }),
    );
    if (more.answer || more.group) showError(host, "content", loaded.problem);
    columns.hidden = false;
    columns.querySelector("select").focus();
  }

  const pasted = textField({ name: "pasted", label: "One line per answer: answer, P0, P1", rows: 5, placeholder: "no, 0.7, 0.4\nyes, 0.3, 0.6",
    hint: "Separate the cells by commas, semicolons, tabs or blanks; or paste JSON with p0, p1 and labels." });
  let counts = false;
  const paste = h("details", {}, h("summary", {}, "Paste or type"), pasted,
    checkbox({ name: "counts", label: "These are counts; divide them by their sum", value: false, onChange: (value) => {
      counts = value;
    } }),
    button("Use these lines", async () => {
      const loaded = await studio.ask("load", { pasted: pasted.control.value, counts });
      if (loaded) {
        showError(host, "pasted", "");
        take(loaded);
      }
    }, { class: "main" }));

  const take = (loaded) => studio.choose(Object.fromEntries(NUMBERS.map((name) => [name, loaded[name] ?? null])));
  const once = h("p", { class: "note", hidden: true });
  const card = h("section", { class: "card populations", "aria-label": "Two populations" });
  host.append(card);
  const chart = bars(card, { title: "Answers: drag a bar", file: "populations", onChange: (which, p) => studio.change({ [which]: p }) });
  card.append(h("div", { "data-field": "p0" }), h("div", { "data-field": "p1" }), h("div", { "data-field": "labels" }), once,
    h("details", { class: "more" }, h("summary", {}, "Other data: an example, a file, your own"), fieldOf("example", "Example", examples), file, columns, paste));
  let last = [];
  return {
    update(state) {
      // A change of a limit does not change the bars.
      const now = NUMBERS.map((name) => state[name]);
      if (now.every((one, at) => one === last[at]) && last.length) return;
      last = now;
      chart.update({ labels: state.labels, names: state.names, p0: state.p0, p1: state.p1 });
      once.hidden = !state.once?.length;
      once.textContent = state.once?.length ? `Seen once in the file: ${state.once.slice(0, 8).join(", ")}. Check for typing errors, and for answers that identify a person.` : "";
    },
  };
}

function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}
