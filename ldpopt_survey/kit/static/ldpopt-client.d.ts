/** Randomized reports, drawn on the device on which questions are answered. */

export type Randomness = "fresh" | "memoised";

/** One of several questions that share a report. */
export interface Part {
  readonly name: string;
  /** The question of which it is an option: answer 1 is chosen. Its name is that question, ": " and the option. */
  readonly option_of?: string;
  readonly answers: readonly string[];
  /** Whether they are numbers, from the least to the largest, one of which is typed. */
  readonly number?: boolean;
  readonly missing: number | null;
  /** Positions of earlier parts, each with the positions of those of its answers after which this part is asked. */
  readonly asked_if: readonly (readonly [number, readonly number[]])[];
}

export interface Question {
  readonly name: string;
  /** The possible answers, in the plan's own words. */
  readonly answers: readonly string[];
  /** Whether they are numbers, from the least to the largest, one of which is typed. */
  readonly number?: boolean;
  /** The possible reports. */
  readonly reports: readonly string[];
  readonly bits: number;
  /** The position of the answer as which a missing answer counts. */
  readonly missing: number | null;
  /** One tag of memoised words for each answer: 32 hexadecimal digits. */
  readonly tags: readonly string[] | null;
  /** The position among the plan's booklets; null for a question that everybody is asked. */
  readonly booklet: number | null;
  /** The questions that share this report, or null. */
  readonly parts: readonly Part[] | null;
  /** For each answer the positions of the parts' answers, where `answers.length` is "not applicable". */
  readonly cells: readonly (readonly number[])[] | null;
  /** Pr(report y | answer x) = weights[x][y] / 2**bits. */
  readonly weights: readonly (readonly bigint[])[];
  /** The cumulative weights of each answer. */
  readonly steps: readonly (readonly bigint[])[];
}

/** A question whose answer is sent as it is; `invited` if it is known from the invitation and not asked. */
export interface PublicQuestion {
  readonly name: string;
  readonly answers: readonly string[];
  readonly invited: boolean;
}

export interface Plan {
  readonly checksum: string;
  readonly name: string;
  readonly round: number;
  readonly randomness: Randomness;
  /** The words from which on the next booklet is drawn, or null where everybody is asked everything. */
  readonly booklets: { readonly steps: readonly bigint[]; readonly tag: string | null } | null;
  readonly questions: readonly Question[];
  readonly public: readonly PublicQuestion[];
}

/** For each question, by name, the position of its report. */
export type Reports = Record<string, number>;

export interface Submission {
  readonly schema: "ldpopt-submission";
  /** 2 if a booklet is named, 3 if there are public answers. */
  readonly version: 1 | 2 | 3;
  readonly plan: string;
  readonly round: number;
  /** 32 lowercase hexadecimal digits; a retry has the same id. */
  readonly id: string;
  readonly invitation?: string;
  readonly booklet?: string;
  /** The positions of public answers, which nothing protects. */
  readonly public?: Readonly<Record<string, number>>;
  readonly reports: Reports;
}

export interface Sent {
  /** "later": no network, or the collector is busy or closed; send the same again. */
  readonly outcome: "stored" | "later" | "refused";
  /** The HTTP status, or 0 if no collector answered. */
  readonly status: number;
  /** The collector's own sentence, or "". */
  readonly error: string;
}

export type Code = "plan" | "answer" | "word" | "id" | "key" | "storage" | "insecure" | "vectors";

/** Something is wrong with a plan, an answer, the browser or its storage. The message never quotes an answer. */
export class ClientError extends Error {
  readonly code: Code;
  constructor(code: Code, message: string);
}

/** A public plan (the plan.json of a kit), checked and made ready to draw from. */
export function readPlan(data: unknown): Plan;

/** The position of the booklet that a respondent is asked, to be drawn before any question is shown; or null. */
export function drawBooklet(plan: Plan, key?: CryptoKey | null): Promise<number | null>;

/** The position of the booklet that a 64-bit word draws. */
export function bookletAt(plan: Plan, word: bigint): number;

/** The questions of a respondent who is asked this booklet. */
export function askedOf(plan: Plan, booklet: number | null): Question[];

/** The positions of the answers to a question's parts; `answers.length` of a part that is not asked. */
export function route(question: Question, answer: (part: number) => number): number[];

/** The position of the answers to a question's parts among the question's answers. */
export function cellAt(question: Question, answer: (part: number) => number): number;

/** Reports for answers: by the name of a question, and of a part. Nothing is drawn of an answer unless all are valid.
    A booklet is drawn unless it is given. */
export function respond(
  plan: Plan,
  answers: Readonly<Record<string, string | null>>,
  options?: { key?: CryptoKey | null; booklet?: number | null },
): Promise<Reports>;

/** The body of a request for `send`; a new random id unless one is given. */
export function submission(
  plan: Plan,
  reports: Reports,
  options?: { id?: string; invitation?: string; open?: Readonly<Record<string, string>> },
): Submission;

/** Post a submission. */
export function send(url: string, body: Submission): Promise<Sent>;

/** 32 hexadecimal digits from the browser's cryptographic generator. */
export function submissionId(): string;

/** The position of a report for the answer at a position: memoised if a key is given, fresh otherwise. */
export function draw(question: Question, answer: number, key?: CryptoKey | null): Promise<number>;

/** The position of the report for the answer at a position and a 64-bit word. */
export function drawReport(question: Question, answer: number, word: bigint): number;

/** A 64-bit word from the browser's cryptographic generator. */
export function randomWord(): bigint;

/** The word of a memoised report under the device's key (AES-CBC, "encrypt"), for a tag of the plan. */
export function memoisedWord(key: CryptoKey, tag: string, id?: string): Promise<bigint>;

/** The device's own key of a survey: made at the first call, kept in IndexedDB, not readable by any script. */
export function deviceKey(survey: string): Promise<CryptoKey>;

/** The ratio bound that a question's integers prove, as the fraction [above, below], or null if there is none. */
export function ratio(question: Question): [bigint, bigint] | null;

/** The largest distance between the reports of two answers, in parts of 2**bits. */
export function distance(question: Question): bigint;

/** The name of a store of this device. */
export type StoreName = "keys" | "unsent" | "done";

/** One transaction on a store of this device, or on several of which all or nothing changes. `work` gets the stores in
    their order, and then `keep`, to whose argument the promise resolves. */
export function stored<T>(
  names: StoreName,
  work: (store: IDBObjectStore, keep: (value: T) => void) => void,
): Promise<T>;
export function stored<T>(
  names: readonly [StoreName, StoreName],
  work: (first: IDBObjectStore, second: IDBObjectStore, keep: (value: T) => void) => void,
): Promise<T>;
export function stored<T>(
  names: readonly [StoreName, StoreName, StoreName],
  work: (first: IDBObjectStore, second: IDBObjectStore, third: IDBObjectStore, keep: (value: T) => void) => void,
): Promise<T>;

/** Draw every test vector of a kit (vectors.json); throws a ClientError if one is not as expected. */
export function checkVectors(plan: Plan, vectors: unknown): Promise<void>;
