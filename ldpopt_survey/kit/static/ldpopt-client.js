/* ldpopt-client draws randomized reports on the device where questions are answered. Apache-2.0.
   What leaves the device is reports and public answers, no others; `send` makes the only request.
   A report is decided by comparing a 64-bit word with integers, as in ldpopt's Python sampler: no floats. */

/** An error in a plan, an answer or the browser; `code` says which. It never quotes an answer. */
export class ClientError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "ClientError";
    this.code = code;
  }
}

function need(holds, code, message) {
  if (!holds) throw new ClientError(code, message);
}

function texts(list) {
  return Array.isArray(list) && list.every((one) => typeof one === "string") && new Set(list).size === list.length;
}

/** A public plan (the plan.json of a kit), checked and made ready to draw from. */
export function readPlan(data) {
  need(data?.format === "ldpopt-public-plan" && [1, 2, 3].includes(data.version), "plan", "expected a public plan");
  need(/^[0-9a-f]{64}$/.test(data.checksum), "plan", "expected the plan's checksum");
  need(typeof data.name === "string" && Number.isSafeInteger(data.round), "plan", "expected a name and a round");
  need(["fresh", "memoised"].includes(data.randomness), "plan", "expected fresh or memoised");
  need(Array.isArray(data.questions) && data.questions.length > 0, "plan", "expected questions");
  const { checksum, name, round, randomness, public: open = [] } = data;
  need(texts(open.map((one) => one.name)) && open.every(({ answers }) => texts(answers)), "plan", "expected answers");
  const questions = data.questions.map((one) => readQuestion(one, randomness));
  need(texts(questions.map((one) => one.name)), "plan", "expected distinct names of questions");
  const booklets = readBooklets(data, questions.filter(({ booklet }) => booklet !== null));
  return Object.freeze({ checksum, name, round, randomness, booklets, public: open, questions: Object.freeze(questions) });
}

const hexadecimal = (text, digits) => typeof text === "string" && text.length === digits && /^[0-9a-f]+$/.test(text);

function readBooklets({ booklets = null, randomness }, drawn) {
  need(drawn.every(({ booklet }, i) => booklet === i), "plan", "expected booklets in order");
  need((booklets?.steps.length ?? -1) === drawn.length - 1, "plan", "expected a step between booklets");
  if (!booklets) return null;
  need(booklets.steps.every((step) => hexadecimal(step, 16)), "plan", "expected words of 64 bits");
  need(randomness === "fresh" || hexadecimal(booklets.tag, 32), "plan", "expected a tag for the booklet");
  return Object.freeze({ steps: booklets.steps.map((step) => BigInt(`0x${step}`)), tag: booklets.tag });
}

function readQuestion(data, randomness) {
  const { name, answers, reports, bits, weights, tags, missing, number, booklet = null, parts = null, cells = null } = data;
  need(texts(answers) && texts(reports) && answers.length > 1, "plan", "expected distinct answers and reports");
  need(Number.isInteger(bits) && bits >= 1 && bits <= 62, "plan", "expected 1 to 62 bits");
  need(Array.isArray(weights) && weights.length === answers.length, "plan", "expected a row for each answer");
  need(missing === null || (Number.isInteger(missing) && missing in answers), "plan", "expected an answer or null");
  const tagged = tags?.length === answers.length && tags.every((tag) => hexadecimal(tag, 32));
  need(randomness === "fresh" || tagged, "plan", "expected a tag for each answer");
  const numbers = weights.map((row) => {
    need(Array.isArray(row) && row.length === reports.length, "plan", "expected a weight for each report");
    return row.map((weight) => {
      need(typeof weight === "string" && /^\d{1,19}$/.test(weight), "plan", "expected decimal digits");
      return BigInt(weight);
    });
  });
  const steps = numbers.map((row) => {
    let sum = 0n;
    const made = row.map((weight) => (sum += weight));
    need(sum === 1n << BigInt(bits), "plan", "expected weights that sum to 2**bits");
    return made;
  });
  const fits = parts === null || (texts(parts.map((part) => part.name)) && cells.length === answers.length
    && cells.every((cell) => cell.length === parts.length));
  need(fits, "plan", "expected the answers to the parts of a question");
  return Object.freeze({ name, answers, reports, bits, missing, number, tags, booklet, parts, cells, weights: numbers, steps });
}

/** The ratio that a question's integers prove, as a fraction [above, below], or null if there is none. */
export function ratio({ weights }) {
  let [above, below] = [1n, 1n];
  for (let y = 0; y < weights[0].length; y++) {
    let [most, least] = [weights[0][y], weights[0][y]];
    for (const row of weights) {
      if (row[y] > most) most = row[y];
      if (row[y] < least) least = row[y];
    }
    if (least === 0n && most > 0n) return null;
    if (most * below > above * least) [above, below] = [most, least];
  }
  return [above, below];
}

/** The largest distance between the reports of two answers, in parts of 2**bits. */
export function distance({ weights }) {
  let most = 0n;
  for (const one of weights) {
    for (const other of weights) {
      let sum = 0n;
      one.forEach((weight, y) => (sum += weight > other[y] ? weight - other[y] : 0n));
      if (sum > most) most = sum;
    }
  }
  return most;
}

/** A 64-bit word of the browser's cryptographic generator. */
export function randomWord() {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (BigInt(high) << 32n) | BigInt(low);
}

/** The position of the report for the answer at a position and a 64-bit word (a BigInt).
    It counts the cumulative weights that are at most the word's first bits. 2**bits divides 2**64, so no word is
    rejected. All steps are compared, whatever the answer is. */
export function drawReport(question, answer, word) {
  need(Number.isInteger(answer) && answer in question.steps, "answer", "expected a position");
  need(typeof word === "bigint" && word === BigInt.asUintN(64, word), "word", "expected 64 bits");
  const value = word >> BigInt(64 - question.bits);
  let report = 0;
  for (const step of question.steps[answer]) report += step <= value ? 1 : 0;
  return report;
}

const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));

async function encrypt(key, data) {
  const made = await crypto.subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, key, data);
  return new Uint8Array(made).subarray(data.length - 16, data.length); // the last block
}

/** The word of a memoised report: AES-CMAC, under the device's key, of an id and the tag of survey, round, question,
    channel and answer. ldpopt's `Memoized` computes the same word. */
export async function memoisedWord(key, tag, id = "device") {
  // Twice AES(0) in GF(2**128): the subkey of RFC 4493 for whole blocks.
  const zero = await encrypt(key, new Uint8Array(16));
  const subkey = zero.map((byte, i) => (byte << 1) | ((zero[i + 1] ?? 0) >> 7));
  if (zero[0] >> 7) subkey[15] ^= 0x87;
  const name = new TextEncoder().encode(id);
  need(name.length > 0 && name.length <= 4096, "id", "expected 1 to 4096 bytes");
  const size = (name.length + 2 + 15) & ~15;
  const message = new Uint8Array(size + 16);
  message.set(name);
  message[size - 2] = name.length & 255;
  message[size - 1] = name.length >> 8;
  message.set(bytes(tag).map((byte, i) => byte ^ subkey[i]), size);
  const mac = await encrypt(key, message);
  return new DataView(mac.buffer, mac.byteOffset).getBigUint64(0, true);
}

/** A report for the answer at a position: memoised if a key is given, fresh otherwise. */
export async function draw(question, answer, key = null) {
  return drawReport(question, answer, key ? await memoisedWord(key, question.tags[answer]) : randomWord());
}

/** The booklet that a 64-bit word draws: how many steps are at most the word. */
export function bookletAt(plan, word) {
  return plan.booklets.steps.filter((step) => step <= word).length;
}

/** The position of the booklet that a respondent is asked, drawn before any answer; null where everybody is asked
    everything. Under a key it is the same each time. */
export async function drawBooklet(plan, key = null) {
  if (!plan.booklets) return null;
  return bookletAt(plan, key ? await memoisedWord(key, plan.booklets.tag) : randomWord());
}

/** The questions of a respondent who is asked this booklet. */
export function askedOf(plan, booklet) {
  return plan.questions.filter((question) => question.booklet === null || question.booklet === booklet);
}

/** The positions of the answers to a question's parts, `answer(i)` of part i. A part that is not asked after the
    answers before it has the position behind its answers, "not applicable", whatever `answer` says. */
export function route({ parts }, answer) {
  const cell = [];
  parts.forEach(({ answers, asked_if }, i) => {
    const asked = asked_if.every(([before, among]) => among.includes(cell[before]));
    cell.push(asked ? answer(i) : answers.length);
  });
  return cell;
}

/** The position of the answers to a question's parts among the question's answers. */
export function cellAt(question, answer) {
  const cell = route(question, answer);
  return question.cells.findIndex((one) => one.every((at, i) => at === cell[i]));
}

/** Reports for `answers` ({question: answer} in the plan's own words): {question: position of the report}.
    A missing answer counts as the plan's category for missing answers, if there is one. Memoized plans use `key`, or
    the key that this device keeps. Answers to other booklets' questions are not read. Nothing is drawn of an answer
    unless every answer is valid. */
export async function respond(plan, answers, { key = null, booklet = null } = {}) {
  const named = new Set(plan.questions.flatMap((question) => question.parts ?? question).map(({ name }) => name));
  need(Object.keys(answers).every((name) => named.has(name)), "answer", "expected questions of the plan");
  if (plan.randomness === "memoised") key ??= await deviceKey(plan.name);
  else need(key === null, "key", "expected none for fresh randomness");
  const questions = askedOf(plan, booklet ?? await drawBooklet(plan, key));
  const position = ({ name, answers: known, missing }) => {
    const given = Object.hasOwn(answers, name) ? answers[name] : null;
    const at = given === null ? missing ?? -1 : known.indexOf(given);
    need(at >= 0, "answer", `expected one of the answers to ${name}`);
    return at;
  };
  const chosen = questions.map((one) => (one.parts ? cellAt(one, (i) => position(one.parts[i])) : position(one)));
  const drawn = await Promise.all(questions.map((question, i) => draw(question, chosen[i], key)));
  return Object.fromEntries(questions.map((question, i) => [question.name, drawn[i]]));
}

/** 32 random hexadecimal digits. */
export function submissionId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The body of a request; `open` are public answers. A retry sends the same body, with the same id. */
export function submission(plan, reports, { id = submissionId(), invitation = "", open = {} } = {}) {
  const invited = invitation ? { invitation } : {};
  const drawn = plan.questions.find(({ name, booklet }) => booklet !== null && Object.hasOwn(reports, name));
  const said = plan.public.filter((one) => !one.invited).map((one) => [one.name, one.answers.indexOf(open[one.name])]);
  need(said.every(([, at]) => at >= 0), "answer", "expected public answers");
  const told = said.length ? { public: Object.fromEntries(said) } : {};
  const version = said.length ? 3 : drawn ? 2 : 1;
  const head = { schema: "ldpopt-submission", version, plan: plan.checksum, round: plan.round, id };
  return { ...head, ...invited, ...(drawn ? { booklet: drawn.name } : {}), ...told, reports };
}

/** Post a submission: {outcome, status, error}; the outcome is "stored", "later" (send the same again) or "refused". */
export async function send(url, body) {
  let status = 0;
  let answer = null;
  try {
    const found = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(20000),
    });
    status = found.status;
    answer = await found.json();
  } catch {
    if (status < 300) status = 0; // not a collector's word that it stored them
  }
  const error = typeof answer?.error === "string" ? answer.error : "";
  // Only an answer of the collector itself is a refusal; an error page of a proxy is not.
  const refused = error !== "" && status >= 400 && status < 500 && status !== 408 && status !== 429;
  return { outcome: status === 200 || status === 201 ? "stored" : refused ? "refused" : "later", status, error };
}

const noStorage = () => new ClientError("storage", "this browser does not let the page keep data");

function database() {
  return new Promise((resolve, reject) => {
    const fail = () => reject(noStorage());
    if (!globalThis.indexedDB) return fail();
    const asked = indexedDB.open("ldpopt", 1);
    asked.onupgradeneeded = () => ["keys", "unsent", "done"].forEach((name) => asked.result.createObjectStore(name));
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = asked.onblocked = fail;
  });
}

/** One transaction on stores of this device (keys, unsent, done), resolves to the argument of `keep` */
export async function stored(names, work) {
  const base = await database();
  try {
    return await new Promise((resolve, reject) => {
      const turn = base.transaction(names, "readwrite", { durability: "strict" });
      let result;
      work(...[names].flat().map((name) => turn.objectStore(name)), (value) => (result = value));
      turn.oncomplete = () => resolve(result);
      turn.onerror = turn.onabort = () => reject(noStorage());
    });
  } finally {
    base.close();
  }
}

/** The device's own key of a survey: made at the first call, kept in IndexedDB, readable by no script. */
export async function deviceKey(survey) {
  need(globalThis.crypto?.subtle, "insecure", "expected a page that is served by https");
  const made = await crypto.subtle.generateKey({ name: "AES-CBC", length: 256 }, false, ["encrypt"]);
  return stored("keys", (store, keep) => {
    const asked = store.get(survey);
    asked.onsuccess = () => keep(asked.result ?? (store.put(made, survey), made));
  });
}

/** Draw every test vector of a kit; a ClientError if one is not as expected. */
export async function checkVectors(plan, vectors) {
  const found = vectors?.plan === plan.checksum && vectors.reports?.length > 0;
  need(found, "vectors", "expected the vectors of this plan");
  for (const [question, answer, word, report] of vectors.reports) {
    const drawn = drawReport(plan.questions[question], answer, BigInt(`0x${word}`));
    need(drawn === report, "vectors", "this browser draws other reports than it should");
  }
  for (const [word, booklet] of vectors.booklets ?? []) {
    const drawn = bookletAt(plan, BigInt(`0x${word}`));
    need(drawn === booklet, "vectors", "this browser draws other booklets than it should");
  }
  for (const [question, answers, cell] of vectors.cells ?? []) {
    const found = cellAt(plan.questions[question], (i) => answers[i]);
    need(found === cell, "vectors", "this browser combines answers otherwise than it should");
  }
  if (!globalThis.crypto?.subtle) return; // no https, no memoised words: `deviceKey` says so
  for (const [hex, id, tag, word] of vectors.words) {
    const key = await crypto.subtle.importKey("raw", bytes(hex), "AES-CBC", false, ["encrypt"]);
    const made = await memoisedWord(key, tag, id);
    need(made === BigInt(`0x${word}`), "vectors", "this browser draws other words than it should");
  }
}
