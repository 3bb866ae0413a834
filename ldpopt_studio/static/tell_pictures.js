// The figures of "Distinguish two populations": sorted answers with their blocks, the channel, and other mechanisms.

import { pairs, scaleOf } from "./bars.js";
import { cut, picture, widthOf } from "./charts.js";
import { h, percent, shown, svg } from "./dom.js";
import { heatmap } from "./heatmap.js";

/** The figure of the result: the reports of each population, on the scale of the answers. */
export function reported(host) {
  const spoken = (content) => content.reports.map((one) => (one.likely.length ? `suggests ${one.likely.join(", ")}` : "uninformative"));
  return picture(host, {
    title: "Reports from each population", file: "reports",
    draw: ({ content }, width) => {
      const [p0, p1] = ["m0", "m1"].map((name) => content.reports.map((one) => one[name])), all = content.answers.flatMap((one) => [one.p0, one.p1]);
      return pairs({ labels: spoken(content), names: content.names, p0, p1 }, width, content.answers.length === 2 ? 1 : scaleOf([...p0, ...p1, ...all]));
    },
    describe: ({ content }) => `${content.reports.length} reports; each has a bar for ${content.names[0]} and one for ${content.names[1]}.`,
    table: ({ content }) => ({ head: ["report", ...content.names, "evidence"], rows: content.reports.map((one, at) => [spoken(content)[at], percent(one.m0, 4), percent(one.m1, 4), one.evidence]) }),
  });
}

export function tellPictures(host) {
  const sorted = picture(host, {
    title: "Answers sorted by likelihood ratio, in blocks with the same reports", file: "blocks", draw: drawSorted,
    describe: ({ content }) => `${content.answers.length} answers in ${content.blocks.length} blocks; answers of one block have the same distribution of reports.`,
    table: ({ content }) => ({ head: ["answer", "block", "P0/P1", ...content.names],
      rows: content.blocks.flatMap((block, at) => content.answers.slice(block.start, block.stop).map((one) => [one.label, letters(at), one.ratio, one.p0, one.p1])) }),
  });
  const channel = heatmap(host, {
    title: "The channel: probability of each report", file: "channel", corner: "block of answers",
    describe: (data) => `${data.rows.length} blocks of answers and ${data.columns.length} reports.`,
  });
  const evidence = h("ul", { class: "words evidence" });
  channel.figure.append(evidence);
  return {
    paint(content) {
      sorted.update({ content });
      channel.update({
        rows: content.blocks.map((block, at) => ({ label: blockName(content, block, at), values: block.row })),
        columns: content.reports.map((one) => ({ label: `report ${one.label}`, title: one.evidence })),
      });
      evidence.replaceChildren(...(content.reports.length > 12 ? [] : content.reports).map((one) => h("li", {}, h("strong", {}, `report ${one.label}: `), one.evidence)));
    },
  };
}

/** Blocks have letters, since reports have numbers: A, B, …, Z, AA, AB, … */
const letters = (at) => (at > 25 ? letters(Math.floor(at / 26) - 1) : "") + String.fromCharCode(65 + (at % 26));

const blockName = (content, block, at) => {
  const first = content.answers[block.start].label, more = block.stop - block.start - 1;
  return `${letters(at)}: ${first}${more ? ` +${more}` : ""}`;
};

function drawSorted({ content }, width) {
  const { answers, blocks } = content, k = answers.length;
  const row = k > 60 ? 6 : k > 30 ? 12 : 20, labelWidth = row < 12 ? 6 : Math.min(width * 0.34, 10 + Math.max(...answers.map((one) => widthOf(one.label, 12))));
  const noteWidth = Math.min(175, width * 0.34), w = width - labelWidth - noteWidth - 8, head = 8;
  const scale = Math.max(...answers.map((one) => Math.max(one.p0, one.p1))) * 1.05;
  const place = svg("svg", { viewBox: `0 0 ${width} ${head + k * row + 4}`, class: "sorted" });
  const names = [];
  let free = -100;
  blocks.forEach((block, at) => {
    const y = head + block.start * row, tall = (block.stop - block.start) * row;
    place.append(svg("rect", { x: 0, y, width, height: tall, class: `band band-${at % 2}` }));
    const low = answers[block.start].ratio, high = answers[block.stop - 1].ratio;
    const text = low === null ? "never occurs" : low === high || block.stop - block.start === 1 ? shown(low, 3) : `${shown(low, 3)} to ${high === null ? "…" : shown(high, 3)}`;
    const middle = Math.max(y + tall / 2, free + 15);
    if (blocks.length <= 30) {
      free = middle;
      names.push(svg("text", { x: width - noteWidth, y: middle, class: "tick middle" }, cut(`${width > 500 ? "block " : ""}${letters(at)}: ×${text}`, noteWidth)));
    }
  });
  place.append(...names); // above all bands, since a narrow block's name reaches into the next one's
  answers.forEach((one, at) => {
    const y = head + at * row, high = Math.max(1.5, row / 2 - 2);
    if (row >= 12) place.append(svg("text", { x: labelWidth - 4, y: y + row / 2, class: "tick end middle" }, cut(one.label, labelWidth - 4), svg("title", {}, one.label)));
    [one.p0, one.p1].forEach((value, number) => {
      place.append(svg("rect", { x: labelWidth + 2, y: y + 1 + number * (high + 1), width: Math.max(0.5, (w * value) / scale), height: high, class: `population-${number}` },
        svg("title", {}, `${content.names[number]}, ${one.label}: ${percent(value)}`)));
    });
  });
  return place;
}
