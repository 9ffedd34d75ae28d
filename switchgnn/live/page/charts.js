// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0
// Draws lines over time.

import { draw } from "./words.js";

const HEIGHT = 190;
const LEFT = 46;
const RIGHT = 80;
const TOP = 8;
const BOTTOM = HEIGHT - 22;
const MOST_NAMES = 12;

// A round number that is at least as large, for the end of an axis.
function roundUp(value) {
  if (value <= 0) return 1;
  const step = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((each) => each * step).find((each) => each >= value * 0.9999);
}

function short(value) {
  if (value >= 1e6) return `${+(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${+(value / 1e3).toFixed(1)}k`;
  return `${+value.toPrecision(3)}`;
}

// Names at the ends of lines, moved apart where they would cover each other.
function apart(heights) {
  const order = heights.map((y, place) => [y, place]).sort((one, other) => one[0] - other[0]);
  const found = [];
  let last = -Infinity;
  for (const [y, place] of order) {
    last = Math.max(y, last + 12);
    found[place] = last;
  }
  const over = Math.max(0, last - BOTTOM);
  return found.map((y) => y - over);
}

// Draw `lines`, each {name, values}, over `along`, with one value of each for each of it. `mark`
// makes the words at both ends of the axis.
export function drawChart(svg, { along, mark, lines, ends }) {
  svg.replaceChildren();
  const width = svg.getBoundingClientRect().width || 400;
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  if (along.length === 0) {
    draw(svg, "text", { class: "soft", x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "Nothing yet.");
    return;
  }
  const right = width - RIGHT;
  const first = along[0] ?? 0;
  const last = Math.max(ends ?? 0, along.at(-1) ?? 0, first + 1e-3);
  const highest = roundUp(Math.max(0, ...lines.flatMap((line) => line.values)));
  const x = (value) => LEFT + ((value - first) / (last - first)) * (right - LEFT);
  const y = (value) => BOTTOM - (value / highest) * (BOTTOM - TOP);
  for (const share of [0, 0.5, 1]) {
    const height = y(highest * share);
    draw(svg, "line", { class: "axis", x1: LEFT, x2: right, y1: height, y2: height });
    draw(svg, "text", { class: "soft", x: LEFT - 5, y: height + 4, "text-anchor": "end" }, short(highest * share));
  }
  for (const [value, anchor] of [[first, "start"], [last, "end"]]) {
    draw(svg, "text", { class: "soft", x: x(value), y: HEIGHT - 6, "text-anchor": anchor }, mark(short(value)));
  }
  const names = apart(lines.map((line) => y(line.values.at(-1) ?? 0) + 4));
  lines.forEach((line, place) => {
    const colour = `s${place % 8}`;
    const steps = line.values.map((value, at) => `${x(along[at]).toFixed(1)},${y(value).toFixed(1)}`);
    if (steps.length) {
      const path = draw(svg, "path", { class: colour, d: `M${steps.join("L")}`, "data-name": line.name });
      path.dataset.last = line.values.at(-1);
      draw(path, "title", {}, `${line.name}: ${line.values.at(-1)}`);
    }
    if (lines.length <= MOST_NAMES) {
      draw(svg, "text", { class: colour, x: right + 5, y: names[place] }, `${line.name} ${short(line.values.at(-1) ?? 0)}`);
    }
  });
}
