/* The questionnaire: one question a screen. Answers live in this module's memory alone, until the reports are drawn. */

import {
  askedOf, cellAt, checkVectors, ClientError, deviceKey, draw, drawBooklet, randomWord, drawReport, ratio, readPlan,
  route, send, stored, submission, submissionId,
} from "./ldpopt-client.js";
import { promise, together } from "./figures.js";

const MANY = 12; // a question with more answers has a search field
const SHOWN = 12; // most reports in the table of the try-out
const AGAIN = 60_000; // milliseconds between attempts to send waiting submissions

const setting = (name) => document.querySelector(`meta[name="ldpopt-${name}"]`).content;
const main = document.getElementById("main");
const address = setting("collector");
const codes = setting("languages").split(" ");

const page = { plan: null, key: null, texts: {}, code: codes[0], screen: { name: "intro" }, final: null, asked: [], steps: [] };
const person = { answers: new Map(), drawn: new Map(), id: "", invitation: "" };
const outbox = new Map(); // waiting submissions by their ids: reports, never answers

/* ---- words and elements ---- */

function word(key, places = {}) {
  const text = page.texts[page.code]?.[key] ?? page.texts.en?.[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (Object.hasOwn(places, name) ? places[name] : whole));
}

const apart = (text) => `\u2068${text}\u2069`; // a text of the survey, which may run in another direction than the page
const number = (value) => new Intl.NumberFormat(page.code).format(value);
const percent = (value) => new Intl.NumberFormat(page.code, { style: "percent" }).format(value / 100);

function own(key, name) {
  for (const texts of [page.texts[page.code], page.texts.en]) {
    const found = texts?.questions;
    if (found && Object.hasOwn(found, name)) return found[name][key];
  }
  return undefined;
}

const titleOf = (name) => own("text", name) ?? name;
const titles = (asked) => (asked.parts ?? [asked]).map(({ name, option_of }) => titleOf(option_of ?? name));
const questionText = (asked) => [...new Set(titles(asked))].join(" · ");
const surveyText = () => page.texts[page.code]?.survey ?? page.texts.en?.survey ?? page.plan.name;

function answerText(question, at) {
  if (question.parts) {
    return grouped(question.parts).map((group) => textOf(group, (i) => question.cells[at][i])).join(" · ");
  }
  if (at === question.answers.length) return word("notApplicable");
  const plain = question.answers[at];
  if (question.number) return number(plain);
  const texts = own("answers", question.name);
  return texts && Object.hasOwn(texts, plain) ? texts[plain] : plain;
}

/** The parts of a report in groups of what is asked at once, a question or its options; each with its place `i`. */
function grouped(parts) {
  const groups = [];
  parts.forEach((part, i) => {
    const last = groups.at(-1);
    if (part.option_of && last?.[0].part.option_of === part.option_of) last.push({ part, i });
    else groups.push([{ part, i }]);
  });
  return groups;
}

function optionText({ name, option_of }) {
  const plain = name.slice(option_of.length + 2);
  const texts = own("answers", option_of);
  return texts && Object.hasOwn(texts, plain) ? texts[plain] : plain;
}

/** The answer to a group, `answer(i)` of part i, in words. */
function textOf(group, answer) {
  const { part, i } = group[0];
  if (!part.option_of || answer(i) === part.answers.length) return answerText(part, answer(i));
  const chosen = group.filter((one) => answer(one.i) === 1).map((one) => optionText(one.part));
  return chosen.join(" + ") || word("noneChosen");
}

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false) made.setAttribute(name, value);
  }
  // What turns the order of letters around is seen: a label could otherwise read as another one.
  const plain = (text) => text.replace(/[\u202a-\u202e]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);
  made.append(...children.map((one) => (typeof one === "string" ? plain(one) : one)));
  return made;
}

const heading = (text) => make("h1", { tabindex: "-1", dir: "auto" }, text);
const button = (text, onclick, kind = "plain") => make("button", { type: "button", class: kind, onclick }, text);

/* ---- what this person is asked ---- */

/** Draw the booklet, the same as before if the page is loaded again, and lay out its questions: a step for each, and
    for each group of parts of a question with parts, whose `first` step is the place that history knows. Answers are
    kept by part: those of a question from its `base` on. */
async function layOut() {
  const { plan } = page;
  let booklet = await drawBooklet(plan, page.key);
  if (booklet !== null && !page.key) {
    const before = await attempt(stored("keys", (store, keep) => {
      const asked = store.get(plan.checksum);
      asked.onsuccess = () => keep(asked.result ?? (store.put(booklet, plan.checksum), booklet));
    }));
    booklet = before ?? booklet;
  }
  page.asked = askedOf(plan, booklet);
  page.steps = plan.public.filter(({ invited }) => !invited).map((asked, at) =>
    ({ asked: { missing: null, ...asked }, planned: null, first: at, group: [{ part: asked, i: 0 }], base: at }));
  let base = page.steps.length;
  for (const planned of page.asked) {
    const first = page.steps.length;
    const parts = planned.parts ?? [planned];
    for (const group of grouped(parts)) page.steps.push({ asked: group[0].part, planned, first, group, base });
    base += parts.length;
  }
}

const answered = (base) => (i) => person.answers.get(base + i);
const said = ({ base, group }) => textOf(group, answered(base));

/** Whether a step is asked after the answers before it. */
function asks({ asked, planned, group, base }) {
  if (!planned?.parts) return true;
  return route(planned, answered(base))[group[0].i] !== asked.answers.length;
}

const following = (after) => page.steps.findIndex((step, at) => at > after && asks(step));
const unanswered = () => page.steps.findIndex((step) => asks(step) && !person.answers.has(step.base + step.group[0].i));
const preceding = (at) => page.steps.findLastIndex((step, other) => other < at && other >= page.steps[at].first && asks(step));

/* ---- which screen is shown ---- */

const screens = { intro, question, review, tryout, sent, kept, refused, done };

function show(screen, { focus = true, push = false } = {}) {
  page.screen = page.final ?? screen;
  const { name, at } = page.screen;
  const { first } = page.steps[at] ?? {};
  // The place in the questionnaire, without answers or another address: which parts are asked depends on answers.
  if (push) history.pushState({ name, at: first }, "");
  document.getElementById("status").textContent = "";
  main.replaceChildren(...screens[name](page.screen));
  const title = name === "question" ? word("progress", place(first)) : main.querySelector("h1").textContent;
  document.title = `${title} – ${surveyText()}`;
  if (!focus) return;
  scrollTo(0, 0);
  main.querySelector("h1").focus({ preventScroll: true });
  if (name === "question") say(word("progress", place(at)));
}

const go = (name, at) => show({ name, at }, { push: true });
const finish = (name, more = {}) => {
  page.final = { name, ...more };
  show(page.final);
};
const say = (text) => (document.getElementById("status").textContent = text);
const place = (at) => ({ number: number(at + 1), total: number(page.steps.length) });

function speak() {
  document.documentElement.lang = page.code;
  document.documentElement.dir = word("direction");
  const header = document.getElementById("top");
  const title = make("p", { id: "survey", dir: "auto" }, surveyText());
  if (codes.length < 2) return header.replaceChildren(title);
  const choose = make("select", {
    "aria-label": word("chooseLanguage"),
    autocomplete: "off",
    onchange: ({ target }) => {
      page.code = target.value;
      speak();
      show(page.screen, { focus: false });
      header.querySelector("select").focus();
    },
  });
  for (const code of codes) {
    const language = page.texts[code].language ?? code;
    choose.append(make("option", { value: code, lang: code, selected: code === page.code }, language));
  }
  header.replaceChildren(title, choose);
}

/* ---- the screens ---- */

function intro() {
  const { questions } = page.plan;
  const made = questions.map(promise);
  const ratios = made.filter((one) => one.times);
  const same = made.filter((one) => "same" in one).map((one) => one.same);
  const said = [];
  if (ratios.length) {
    said.push(word("promiseTimes", { times: number(Math.max(...ratios.map((one) => one.times))) }));
    said.push(word("promiseSure", { sure: percent(Math.max(...ratios.map((one) => one.sure))) }));
  }
  if (same.length) said.push(word("promiseSame", { same: percent(Math.min(...same)) }));
  const whole = together(questions);
  if (page.asked.length > 1 && whole !== null) {
    said.push(word("promiseTogether", { count: number(page.asked.length), times: number(whole) }));
  }
  const introduction = page.texts[page.code]?.intro ?? page.texts.en?.intro;
  const told = page.plan.public.map(({ name }) => apart(titleOf(name))).join(" · ");
  return [
    heading(word(told ? "introTitlePublic" : "introTitle")),
    ...(introduction ? [make("p", { dir: "auto" }, introduction)] : []),
    ...(told ? [make("p", { class: "note open" }, word("introPublic", { questions: told }), invitedText())] : []),
    make("p", { class: "lead" }, word(told ? "introChancePublic" : "introChance")),
    ...(page.plan.booklets ? [make("p", {}, word("introBooklet"))] : []),
    make(
      "section",
      { class: "promise", "aria-labelledby": "promised" },
      make("h2", { id: "promised" }, word("promiseTitle")),
      make("ul", {}, ...said.map((text) => make("li", {}, text))),
      make("p", { class: "small" }, word("promiseProved")),
    ),
    ...waiting(),
    make("div", { class: "buttons" }, button(word("tryLink"), () => go("tryout")),
      button(word("start"), () => go("question", 0), "main")),
  ];
}

/** What the invitation says of this person, after its 22 random characters. */
function invitedText() {
  const known = page.plan.public.filter(({ invited }) => invited);
  const places = person.invitation.slice(22).split("-").slice(1);
  const given = ({ answers }, i) => /^\d+$/.test(places[i]) && Number(places[i]) < answers.length;
  if (!known.length || places.length !== known.length || !known.every(given)) return "";
  const said = known.map((one, i) => apart(`${titleOf(one.name)}: ${answerText(one, Number(places[i]))}`));
  return ` ${word("introInvited", { groups: said.join(" · ") })}`;
}

function question({ at, back = false }) {
  const step = page.steps[at];
  const { asked, planned, first, group, base } = step;
  const error = make("p", { id: "error", role: "alert" });
  const { choices, read, hint, wanted = word("choose") } = (asked.option_of ? checks : asked.number ? typed : radios)(step);
  const made = planned && promise(planned);
  const hints = !planned ? [] : [made.times ? word("perQuestion", { times: number(made.times) })
    : word("promiseSame", { same: percent(made.same) })];
  const together = planned ? page.steps.filter((one) => one.planned === planned).length : 1;
  if (together > 1) hints.unshift(word("oneReport", { count: number(together) }));
  if (hint) hints.unshift(hint);
  if (asked.missing !== null) hints.unshift(word("skipHint", { answer: apart(answerText(asked, asked.missing)) }));
  const next = (event) => {
    event.preventDefault();
    const chosen = read() ?? (asked.missing === null ? null : [asked.missing]);
    if (!chosen || chosen.includes(-1)) {
      error.textContent = wanted;
      (choices.querySelector("label:not([hidden]) input") ?? choices.querySelector("input")).focus();
      return;
    }
    group.forEach(({ i }, j) => person.answers.set(base + i, chosen[j]));
    const open = back ? unanswered() : following(at);
    if (open < 0) go("review");
    else show({ name: "question", at: open, back }, { push: page.steps[open].first !== first });
  };
  const earlier = () => {
    const part = back && unanswered() < 0 ? -1 : preceding(at);
    if (part < 0) history.back();
    else show({ name: "question", at: part, back });
  };
  return [
    make("p", { class: "progress" }, word("progress", place(at))),
    make("progress", { max: page.steps.length, value: at + 1, "aria-hidden": "true" }),
    ...(planned ? [] : [make("p", { class: "note open", id: "open" }, word("publicNote"))]),
    make(
      "form",
      { autocomplete: "off", novalidate: true, onsubmit: next },
      make(
        "fieldset",
        { "aria-describedby": planned ? "hints error" : "open error" },
        make("legend", { id: "asked" }, heading(questionText(asked))),
        ...(asked.answers.length > MANY && !asked.number ? [search(asked, choices)] : []),
        choices,
      ),
      error,
      make("div", { id: "hints" }, ...hints.map((text) => make("p", { class: "small", dir: "auto" }, text))),
      make("div", { class: "buttons" }, button(word("back"), earlier),
        make("button", { type: "submit", class: "main" }, word("next"))),
    ),
  ];
}

/* What a question is answered with: the element; `read` gives the positions of the answers, null where there is none,
   and -1 for what is none of them. */

function choice(type, value, text, checked) {
  const input = make("input", { type, name: "answer", value, autocomplete: "off" });
  input.checked = checked;
  return make("label", { class: "choice" }, input, make("span", { dir: "auto" }, text));
}

function radios({ asked, group, base }) {
  const before = person.answers.get(base + group[0].i);
  const choices = make("div", { class: "choices" }, ...asked.answers.map((_, x) =>
    choice("radio", x, answerText(asked, x), before === x)));
  const chosen = () => choices.querySelector("input:checked");
  return { choices, read: () => chosen() && [Number(chosen().value)] };
}

function checks({ group, base }) {
  const choices = make("div", { class: "choices" }, ...group.map(({ part, i }, j) =>
    choice("checkbox", j, optionText(part), person.answers.get(base + i) === 1)));
  const read = () => [...choices.querySelectorAll("input")].map(({ checked }) => Number(checked));
  return { choices, read, hint: word("severalHint") };
}

/** The position of a typed number among the answers, -1 if it is none: in any digits, with a point or a comma. What
    may be a thousand or a one, as 1.000 and 1,000, is none, unless an answer is written so. */
function placeOf(answers, text) {
  const plain = text.trim()
    .replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => digit.charCodeAt(0) & 15)
    .replace(/[,\u066b]/, ".").replace(/[\u2212\u2013]/, "-").replace(/[\u061c\u200e\u200f]/g, "");
  if (!/^[-+]?(\d+\.?\d*|\.\d+)$/.test(plain)) return -1;
  return answers.indexOf(/\.\d{3}$/.test(plain) ? plain : String(Number(plain)));
}

function typed({ asked: { answers }, group, base }) {
  const before = answers[person.answers.get(base + group[0].i)];
  const field = make("input", { type: "text", inputmode: "decimal", id: "number", dir: "ltr", autocomplete: "off",
    spellcheck: "false", "aria-labelledby": "asked", "aria-describedby": "hints error", value: before ?? "" });
  const read = () => (field.value.trim() ? [placeOf(answers, field.value)] : null);
  const step = Math.round(1e4 * (answers[1] - answers[0])) / 1e4;
  const places = { low: number(answers[0]), high: number(answers.at(-1)), step: number(step) };
  const hint = word(step === 1 ? "numberHint" : "numberSteps", places);
  return { choices: make("div", { class: "choices" }, field), read, hint, wanted: hint };
}

function search(asked, choices) {
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLocaleLowerCase(page.code);
  const known = asked.answers.map((_, x) => plain(answerText(asked, x)));
  const none = make("p", { class: "small", hidden: true }, word("searchNone"));
  const look = ({ target }) => {
    const sought = plain(target.value.trim());
    let count = 0;
    [...choices.children].forEach((label, x) => {
      label.hidden = !known[x].includes(sought);
      count += label.hidden ? 0 : 1;
    });
    none.hidden = count > 0;
    say(count ? word("searchFound", { count: number(count) }) : word("searchNone"));
  };
  const stay = (event) => {
    if (event.key === "Enter") event.preventDefault(); // Enter ends the search and does not submit the question
  };
  const field = make("input", {
    type: "text", inputmode: "search", id: "search", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    oninput: look, onkeydown: stay,
  });
  choices.classList.add("many");
  choices.setAttribute("tabindex", "-1");
  const label = make("label", { for: "search" }, word("search", { count: number(asked.answers.length) }));
  return make("div", { class: "search" }, label, field, none);
}

function drawn() {
  return page.asked.map((asked, at) => {
    const { base } = page.steps.find(({ planned }) => planned === asked);
    const answer = asked.parts ? cellAt(asked, answered(base)) : person.answers.get(base);
    const name = `${at}:${answer}`; // one report for each answer, so that going back and forth draws no second one
    if (!person.drawn.has(name)) person.drawn.set(name, draw(asked, answer, page.key));
    return person.drawn.get(name);
  });
}

async function body() {
  const reports = await Promise.all(drawn());
  const named = Object.fromEntries(page.asked.map((asked, at) => [asked.name, reports[at]]));
  const open = Object.fromEntries(page.steps.filter(({ planned }) => !planned)
    .map(({ asked, base }) => [asked.name, asked.answers[person.answers.get(base)]]));
  return submission(page.plan, named, { id: person.id, invitation: person.invitation, open });
}

function review() {
  const list = make("dl", { class: "review" });
  page.steps.forEach((step, at) => {
    if (!asks(step)) return;
    const text = titles(step.asked)[0];
    const change = make("button", {
      type: "button", class: "plain", "aria-label": word("changeOf", { question: apart(text) }),
      onclick: () => show({ name: "question", at, back: true }, { push: true }),
    }, word("change"));
    // Browsers must not send a respondent's answer to a translation service.
    const answer = make("dd", { translate: "no" }, make("span", { dir: "auto" }, said(step)));
    answer.append(change);
    const mark = step.planned ? [] : [" ", make("span", { class: "mark" }, word("publicMark"))];
    list.append(make("div", {}, make("dt", { dir: "auto" }, text, ...mark), answer));
  });
  const exact = make("pre", { id: "exact", dir: "ltr", tabindex: "0", translate: "no", "aria-label": word("exactTitle") });
  body().then((made) => (exact.textContent = JSON.stringify(made, null, 1)), fail);
  const sendButton = button(word("send"), async () => {
    sendButton.disabled = true;
    say(word("sending"));
    await leave(await body()).catch(fail);
  }, "main");
  return [
    heading(word("reviewTitle")),
    make("p", {}, word(page.plan.public.length ? "reviewIntroPublic" : "reviewIntro")),
    list,
    make("details", {}, make("summary", {}, word("exactTitle")), make("p", {}, word(page.plan.public.length ? "exactIntroPublic" : "exactIntro")),
      make("p", { class: "small" }, `POST ${new URL(address, location.href).href}`), exact),
    make("div", { class: "buttons" }, button(word("back"), () => history.back()), sendButton),
  ];
}

function tryout() {
  const pick = { question: 0, first: 0, second: 1 };
  const answers = make("div", { class: "picks" });
  const result = make("div", { id: "result", "aria-live": "polite" });
  const select = (id, label, options, chosen, onchange) => {
    const made = make("select", { id, autocomplete: "off", onchange: ({ target }) => onchange(Number(target.value)) });
    made.append(...options.map((text, i) => make("option", { value: i, selected: i === chosen }, apart(text))));
    return make("div", { class: "pick" }, make("label", { for: id }, label), made);
  };
  const asked = () => page.asked[pick.question];
  const lay = () => {
    const shown = asked().answers.map((_, x) => answerText(asked(), x));
    answers.replaceChildren(
      select("first", word("tryFirst"), shown, pick.first, (x) => (pick.first = x)),
      select("second", word("trySecond"), shown, pick.second, (x) => (pick.second = x)),
    );
    result.replaceChildren();
  };
  const questions = page.asked.map(questionText);
  lay();
  return [
    heading(word("tryTitle")),
    make("p", {}, word("tryIntro")),
    select("which", word("tryQuestion"), questions, 0, (at) => {
      Object.assign(pick, { question: at, first: 0, second: 1 });
      lay();
    }),
    answers,
    make("div", { class: "buttons" }, button(word("back"), () => history.back()),
      button(word("tryDraw"), () => result.replaceChildren(...hundred(asked(), pick)), "main")),
    result,
  ];
}

function hundred(asked, { first, second }) {
  const count = (answer) => {
    const made = asked.reports.map(() => 0);
    for (let i = 0; i < 100; i++) made[drawReport(asked, answer, randomWord())] += 1; // never the device's own key
    return made;
  };
  const [one, other] = [count(first), count(second)];
  const order = asked.reports.map((_, y) => y);
  if (order.length > SHOWN) order.sort((a, b) => one[b] + other[b] - one[a] - other[a]);
  const cell = (value) => {
    const bar = make("span", { class: "bar", "aria-hidden": "true" });
    bar.style.inlineSize = `${value}%`;
    return make("td", {}, make("span", { class: "count" }, number(value)), bar);
  };
  const sum = (list) => order.slice(SHOWN).reduce((total, y) => total + list[y], 0);
  const rows = order.slice(0, SHOWN).map((y) =>
    make("tr", {}, make("th", { scope: "row" }, make("span", { dir: "auto" }, asked.reports[y])), cell(one[y]), cell(other[y])));
  if (order.length > SHOWN) {
    const more = word("tryMore", { count: number(order.length - SHOWN) });
    rows.push(make("tr", {}, make("th", { scope: "row" }, more), cell(sum(one)), cell(sum(other))));
  }
  const column = (answer) => make("th", { scope: "col", dir: "auto" }, answerText(asked, answer));
  return [
    make("table", {}, make("caption", {}, word("tryCaption")),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, word("tryReport")), column(first), column(second))),
      make("tbody", {}, ...rows)),
    ...(ratio(asked) ? [make("p", { class: "lead" }, word("tryMeaning"))] : []),
  ];
}

function waiting() {
  return outbox.size ? [make("p", { class: "note" }, word("waiting", { count: number(outbox.size) }))] : [];
}

const nextPerson = () => make("details", { class: "another" }, make("summary", {}, word("another")),
  make("p", {}, word("anotherText")), button(word("anotherStart"), () => another().catch(fail)));

function sent() {
  return [heading(word("sentTitle")), make("p", { class: "lead" }, word(page.plan.public.length ? "sentTextPublic" : "sentText")), ...waiting(), nextPerson()];
}

function kept() {
  const retry = button(word("retry"), () => deliver(true), "main");
  return [heading(word("keptTitle")), make("p", { class: "lead" }, word(page.plan.public.length ? "keptTextPublic" : "keptText")), ...waiting(),
    make("div", { class: "buttons" }, retry), nextPerson()];
}

function refused({ uninvited, error, id }) {
  const said = [heading(word("refusedTitle"))];
  if (error) said.push(make("p", { class: "note", dir: "auto" }, word("refusedText", { error: apart(error) })));
  if (!uninvited) return [...said, nextPerson()];
  const field = make("input", { id: "code", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    required: true });
  const again = async (event) => {
    event.preventDefault();
    if (!field.value.trim()) return field.focus();
    await keep({ ...outbox.get(id), invitation: field.value.trim() });
    await deliver(true);
  };
  return [...said, make("p", {}, word("invitationText")),
    make("form", { autocomplete: "off", onsubmit: again },
      make("div", { class: "pick" }, make("label", { for: "code" }, word("invitation")), field),
      make("div", { class: "buttons" }, make("button", { type: "submit", class: "main" }, word("invitationSend"))))];
}

function done() {
  return [heading(word("doneTitle")), make("p", { class: "lead" }, word("doneText")), ...waiting(), nextPerson()];
}

/* ---- sending ---- */

const attempt = (work) => work.catch((error) => {
  // Without storage, fresh reports wait in this page only; a memoised plan fails earlier.
  if (error.code !== "storage") throw error;
});

async function keep(made) {
  outbox.set(made.id, made);
  await attempt(stored("unsent", (store) => store.put(made, made.id)));
}

/** Reports that the collector has, or refused for good with an `error`, which the device then remembers of them. */
async function drop(id, error = "") {
  outbox.delete(id);
  await attempt(stored(["unsent", "done"], (unsent, done) => {
    unsent.delete(id);
    if (!error) return;
    const asked = done.get(page.plan.checksum);
    asked.onsuccess = () => asked.result === id && done.put({ id, error }, page.plan.checksum);
  }));
}

/** In one transaction the reports wait and the device has answered; nothing if another tab was first. The answers are
    forgotten, and only then anything is sent. */
async function leave(made) {
  const { booklets, checksum } = page.plan;
  const before = await attempt(stored(["done", "unsent", "keys"], (done, unsent, keys, keep) => {
    const asked = done.get(checksum);
    asked.onsuccess = () => {
      if (asked.result) keep(asked.result);
      else {
        done.put(made.id, checksum);
        unsent.put(made, made.id);
      }
      if (booklets && !page.key) keys.delete(checksum);
    };
  }));
  person.answers.clear();
  person.drawn.clear();
  if (before) {
    await collectWaiting();
    resume(before);
    show(page.final);
    return deliver();
  }
  outbox.set(made.id, made);
  await deliver(true);
}

/** The reports of this survey that wait on this device. */
async function collectWaiting() {
  await attempt(stored("unsent", (store) => {
    const asked = store.getAll();
    asked.onsuccess = () => asked.result.forEach((one) => one.plan === page.plan.checksum && outbox.set(one.id, one));
  }));
}

/** What the device says when it has answered before: the reports wait, were refused, or have arrived. */
function resume(before) {
  const { id = before, error } = before;
  person.id = id;
  page.final = error ? { name: "refused", uninvited: false, error, id } : { name: outbox.has(id) ? "kept" : "done" };
}

let sending = null;

function deliver(tell = false) {
  sending = (sending ?? Promise.resolve()).then(() => deliverAll(tell)).catch(fail);
  return sending;
}

async function deliverAll(tell) {
  const last = person.id;
  const mine = outbox.has(last);
  let final = null;
  for (const made of [...outbox.values()]) {
    const { outcome, status, error } = await send(address, made);
    const uninvited = status === 403 || (status === 422 && "invitation" in made); // another code may help
    if (outcome === "stored") await drop(made.id);
    else if (outcome === "refused" && !uninvited) await drop(made.id, error);
    if (made.id === last || !mine) final = { outcome, uninvited, error, id: made.id };
    if (outcome === "later") break; // the others would fail, too
  }
  const waits = page.final?.name === "kept" || page.final?.name === "refused";
  if (!final || !(tell || waits)) {
    if (page.screen.name === "intro" || page.screen.name === "done") show(page.screen, { focus: false });
    return;
  }
  if (final.outcome === "stored") finish("sent");
  else if (final.outcome === "later") finish("kept");
  else finish("refused", final);
}

async function another() {
  const memoised = page.plan.randomness === "memoised";
  const forgotten = stored(["done", "keys"], (done, keys) => {
    done.delete(page.plan.checksum);
    if (memoised) keys.delete(page.plan.name);
  });
  await (memoised ? forgotten : attempt(forgotten));
  if (memoised) page.key = await deviceKey(page.plan.name);
  await layOut();
  page.final = null;
  Object.assign(person, { answers: new Map(), drawn: new Map(), id: submissionId(), invitation: "" });
  go("intro");
}

/* ---- start ---- */

function fail(error) {
  const reasons = { storage: "errorStorage", insecure: "errorInsecure", vectors: "errorVectors", load: "errorLoad" };
  const title = make("h1", { tabindex: "-1" }, word("errorTitle"));
  main.replaceChildren(title, make("p", { class: "note" }, word(reasons[error?.code] ?? "errorPlan")));
  title.focus();
}

async function load(name) {
  try {
    const found = await fetch(name, { credentials: "omit", referrerPolicy: "no-referrer" });
    if (found.ok) return await found.json();
  } catch {
    // the error below is clearer than the network's message
  }
  throw new ClientError("load", `${name} could not be loaded`);
}

function preferred() {
  const asked = new URLSearchParams(location.search).get("lang");
  for (const wish of [asked, ...navigator.languages].filter(Boolean)) {
    for (const like of [wish, wish.split("-")[0]]) if (codes.includes(like)) return like;
  }
  return codes[0];
}

async function begin() {
  const texts = await Promise.all(codes.map((code) => load(`language-${code}.json`)));
  codes.forEach((code, i) => (page.texts[code] = texts[i]));
  page.texts.en ??= await load("language-en.json");
  page.code = preferred();
  const [plan, vectors] = await Promise.all([load("plan.json"), load("vectors.json")]);
  page.plan = readPlan(plan);
  await checkVectors(page.plan, vectors);
  speak();
  if (page.plan.randomness === "memoised") page.key = await deviceKey(page.plan.name);
  person.id = submissionId();
  // An invitation is after the #, which no request contains, and is removed from the address at once.
  person.invitation = new URLSearchParams(location.hash.slice(1)).get("invitation") ?? "";
  history.replaceState({ name: "intro" }, "", location.pathname + location.search);
  const before = await attempt(stored("done", (store, keep) => {
    const asked = store.get(page.plan.checksum);
    asked.onsuccess = () => keep(asked.result);
  }));
  await collectWaiting();
  if (before) resume(before);
  else await layOut();
  show({ name: "intro" }, { focus: false });
  addEventListener("popstate", ({ state }) => {
    const { name, at } = state ?? {};
    const there = (name === "question" && at in page.steps) || name === "tryout"
      || (name === "review" && unanswered() < 0);
    show(there ? { name, at } : { name: "intro" });
  });
  addEventListener("online", () => deliver());
  setInterval(() => outbox.size && deliver(), AGAIN);
  if (outbox.size) deliver();
}

begin().catch(fail);
