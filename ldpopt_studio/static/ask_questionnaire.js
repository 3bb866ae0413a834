// Several questions as a questionnaire: booklets, one question each or a split of ε, with a lower bound for any survey
// of independent answers.

import { ways } from "./ask_pictures.js";
import { download, lines } from "./charts.js";
import { debounced, h, shown } from "./dom.js";
import { button } from "./fields.js";
import { work } from "./tell_curves.js";

const SHOWN = 12;

export function questionnaire(host, studio) {
  const card = h("section", { class: "card questionnaire", "aria-label": "Who is asked what", hidden: true }, h("h2", {}, "Who is asked what"),
    h("p", { class: "note" }, "A respondent can answer a booklet, a random subset of the questions, with all of ε."));
  const summary = h("p", { role: "status" }), list = h("ul", { class: "words" });
  const file = button("Save survey.toml", () => download(latest.file, "survey.toml"), { id: "save-booklets", title: "This questionnaire as input for ldpopt survey plan" });
  host.append(card);
  const bars = ways(card);
  card.append(summary, list, h("p", { class: "tools" }, file));
  const curve = lines(card, {
    title: "Longer questionnaires: people relative to the lower bound for any private survey", file: "growth",
    describe: ({ name }) => `Questionnaires of 1 to 30 questions like “${name}”, at this ε.`,
  });
  const growing = h("div", {});
  curve.figure.hidden = true;
  card.append(growing);
  const grow = work(growing, "Plot 1 to 30 questions like this one", (state, onProgress) => studio.job("growth", state, onProgress), ({ counts }) => {
    const over = (way) => counts.map((one) => [one.questions, one[way] / one.least]);
    curve.figure.hidden = false;
    curve.update({
      name: state.questions[state.at].name, x: { label: "questions" }, y: { label: "times the lower bound" },
      series: [{ name: "a split of ε", points: over("split") }, { name: "one question each", points: over("one_question"), dash: 1 }, { name: "as planned", points: over("planned"), dash: 2 }],
    });
    const last = counts.at(-1);
    return `${last.questions} questions: ${shown(last.planned)} people as planned, ${shown(last.split)} with a split of ε.`;
  });

  let state = null, latest = null, running = null, key = "";

  const plan = debounced(async () => {
    const thisJob = studio.job("questionnaire", state);
    running = thisJob;
    const content = await thisJob.done;
    if (running !== thisJob) return;
    running = null;
    card.dataset.state = content ? "done" : "none";
    if (!content) return;
    latest = content;
    bars.update({ rows: content.ways, open: content.least });
    const chosen = content.ways.find((one) => one.optimal), split = content.ways.find((one) => one.name === "a split of ε");
    const comparison = split.needed === "inf" ? "no number of people is enough with a split of ε" : `a split of ε needs ${shown(split.needed / content.respondents, 3)} times as many`;
    const name = chosen.name[0].toUpperCase() + chosen.name.slice(1);
    summary.textContent = `${name}: ${shown(content.respondents)} people${chosen === split ? "" : `; ${comparison}`}. No private survey of fewer than ${shown(content.least)} people reaches the half-widths if the answers are independent.`;
    list.replaceChildren(...content.booklets.slice(0, SHOWN).map((one) => h("li", {}, `${one.share === "1" ? "all people" : `${one.share} of the people`}: ${one.questions.join(", ")}`)),
      content.booklets.length > SHOWN ? h("li", { class: "note" }, `and ${content.booklets.length - SHOWN} more booklets`) : "");
  }, 250);

  return {
    card,
    /** Plan the questions of a state; null stands for a single question. */
    update(next) {
      card.hidden = !next;
      const { questions, epsilon, eta, level } = next ?? {}, request = next ? JSON.stringify({ questions, epsilon, eta, level }) : "";
      const other = request !== key, moved = state?.at !== next?.at;
      [state, key] = [next, request];
      if (other || moved) {
        grow.reset();
        curve.clear();
        curve.figure.hidden = true;
      }
      grow.state = next;
      if (!other) return;
      running?.cancel();
      running = null;
      card.dataset.state = "busy"; // the card shows another state until the plan arrives
      summary.textContent = "planning …";
      if (next) plan();
    },
  };
}
