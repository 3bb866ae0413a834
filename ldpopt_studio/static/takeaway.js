// Take away: code and a command that reproduce the state, files, a report, the figures, and a link.

import { download, saveSvg } from "./charts.js";
import { debounced, h } from "./dom.js";
import { button } from "./fields.js";

/** The panel below every view. It computes while it is open, and again when the state changes. */
export function panel(root, studio) {
  const code = block("Python code", "takeaway-code", studio), command = block("Command", "takeaway-command", studio);
  const note = h("p", { class: "note" }), files = h("div", { class: "files" }), trouble = h("p", { class: "error", role: "alert", hidden: true });
  const report = h("div", { class: "files" });
  const body = h("div", { class: "taken", hidden: true }, code.part, command.part,
    h("section", {}, h("h3", {}, "Files"), note, files, h("h3", {}, "Report, figures, link"), report));
  const details = h("details", { class: "card", id: "takeaway-panel" }, h("summary", {}, h("strong", {}, "Take away:"), " code, command, files, a report, figures, a link"), trouble, body);
  root.replaceChildren(details);
  const progress = h("div", { class: "progress", hidden: true });
  details.insertBefore(progress, trouble);
  let turn = 0, running = null, work = null;

  const request = () => ({ view: studio.view(), state: studio.state() });

  async function refresh() {
    const thisTurn = ++turn;
    trouble.hidden = true;
    details.dataset.state = "busy";
    work?.cancel();
    work = null;
    progress.hidden = true;
    let content = await quietly(() => studio.quiet("takeaway", request()));
    if (thisTurn === turn && content?.slow) content = await longer();
    if (thisTurn !== turn || content === undefined) return;
    if (content instanceof Error) {
      body.hidden = true;
      trouble.hidden = false;
      trouble.textContent = `This state has no results to take away: ${content.message}`;
      details.dataset.state = "failed";
      return;
    }
    body.hidden = false;
    code.show(content.code);
    command.show(content.command);
    note.textContent = content.about;
    files.replaceChildren(...content.files.map((one) => button(one.name, () => download(one.content, one.name, one.type), { "aria-label": `Download ${one.name}` })));
    details.dataset.state = "done";
  }

  /** Longer work, in a process of its own. */
  async function longer() {
    const thisJob = studio.job("takeaway", request());
    work = thisJob;
    progress.replaceChildren(h("progress", { "aria-label": "preparing the files" }), button("Cancel", () => {
      turn++;
      thisJob.cancel();
      progress.hidden = true;
      details.open = false;
    }));
    progress.hidden = false;
    const content = await thisJob.done;
    if (work === thisJob) progress.hidden = true;
    return content ?? new Error("see the message above.");
  }

  function offers() {
    running?.cancel();
    running = null;
    report.replaceChildren(
      button("HTML report", write),
      button("All figures as SVG", () => {
        const drawn = [...document.querySelectorAll("#main figure.picture:not([hidden]) .svg > svg")];
        drawn.forEach((one, at) => saveSvg(one, `${studio.view()}-${at + 1}.svg`));
        studio.say(drawn.length ? `${drawn.length} figures were saved.` : "This view has no figures yet.");
      }),
      button("Copy link", () => document.getElementById("link").click()));
  }

  async function write() {
    const thisJob = studio.job("report", request());
    running = thisJob;
    const bar = h("progress", { "aria-label": "writing the report" });
    report.replaceChildren(bar, button("Cancel", () => {
      thisJob.cancel();
      offers();
    }));
    const reportFile = await thisJob.done;
    if (running !== thisJob) return;
    offers();
    if (reportFile) {
      download(reportFile.content, reportFile.name, reportFile.type);
      studio.say(`The report ${reportFile.name} was saved.`);
    }
  }

  offers();
  const soon = debounced(() => details.open && refresh(), 400);
  details.addEventListener("toggle", () => details.open && refresh());
  return {
    update() {
      details.dataset.state = details.open ? "busy" : "closed";
      if (running) offers();
      soon();
    },
  };
}

/** The result of a request, or the error with which it ended. */
async function quietly(call) {
  try {
    return await call();
  } catch (error) {
    return error;
  }
}

/** A text that can be selected, copied and scrolled. */
function block(title, id, studio) {
  const text = h("pre", { id, tabindex: 0, role: "region", "aria-label": title });
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      studio.say(`${title}: copied.`);
    } catch {
      getSelection().selectAllChildren(text);
      studio.say(`${title}: selected. Copy it with the keyboard.`);
    }
  }, { class: "quiet", "aria-label": `Copy: ${title}` });
  return {
    part: h("section", {}, h("div", { class: "over" }, h("h3", {}, title), copy), text),
    show(content) {
      text.textContent = content;
    },
  };
}
