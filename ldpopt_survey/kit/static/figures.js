/* The numbers of the promise, from the integers of the channels, always rounded to the side that promises less. */

import { distance, ratio } from "./ldpopt-client.js";

const ceiling = (above, below) => (above + below - 1n) / below;

/** A ratio as a number that is not below it: two decimals under 2, one under 10, none above. */
export function timesAtMost([above, below]) {
  for (const [parts, limit] of [[100n, 2n], [10n, 10n]]) {
    const made = ceiling(parts * above, below);
    if (made < limit * parts) return Number(made) / Number(parts);
  }
  const whole = ceiling(above, below);
  const made = Number(whole);
  return BigInt(made) < whole ? made * (1 + Number.EPSILON) : made; // above 2**53 numbers may be rounded down
}

/** How sure at most, in whole hundredths, somebody can be of one of two answers that were equally likely before. */
export function sureAtMost([above, below]) {
  return Number(ceiling(100n * above, above + below));
}

/** What is promised of one question: {times, sure} from its ratio, or {same} from its distance where no ratio is. */
export function promise(question) {
  const found = ratio(question);
  if (found) return { times: timesAtMost(found), sure: sureAtMost(found) };
  const whole = 1n << BigInt(question.bits);
  return { same: Number((100n * (whole - distance(question))) / whole) };
}

/** What is promised of all reports of one person together, whichever booklet is drawn, or null where one question has
    no ratio. */
export function together(questions) {
  const ratios = questions.map(ratio);
  if (ratios.includes(null)) return null;
  const product = ([a, b], [c, d]) => [a * c, b * d];
  const larger = (one, other) => (one[0] * other[1] < other[0] * one[1] ? other : one);
  const drawn = ratios.filter((_, i) => questions[i].booklet !== null).reduce(larger, [1n, 1n]);
  return timesAtMost(ratios.filter((_, i) => questions[i].booklet === null).reduce(product, drawn));
}
