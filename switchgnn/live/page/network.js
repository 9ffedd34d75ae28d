// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0
// Draws workers, switches and the links between them.

import { bytes, count, doing, draw } from "./words.js";

const HEIGHT = 400;
const MARGIN = 10;
// What has less room has no numbers in the drawing; they stand in the table and in titles.
const ROOM = { rates: 118, numbers: 62, cable: 120 };
// The longest of the words for what a worker does.
const LONGEST = "exchanging";

// Places of a number of things in a row, each in the middle of its share of the width.
function spread(number, width) {
  const share = (width - 2 * MARGIN) / Math.max(1, number);
  return Array.from({ length: number }, (_, place) => MARGIN + share * (place + 0.5));
}

function places(picture, width) {
  const tiers = [0, 1].map((tier) => picture.switches.flatMap((each, at) => (each.tier === tier ? [at] : [])));
  const two = tiers[1].length > 0;
  const switches = new Map();
  // A leaf stands above its own workers.
  const across = spread(picture.workers.length, width);
  for (const at of tiers[0]) {
    const own = across.filter((_, worker) => picture.workers[worker].switch === at);
    const middle = own.length ? own.reduce((sum, x) => sum + x, 0) / own.length : width / 2;
    switches.set(at, [middle, two ? 180 : 70]);
  }
  spread(tiers[1].length, width).forEach((x, place) => switches.set(tiers[1][place], [x, 34]));
  return { switches, workers: across.map((x) => [x, HEIGHT - 96]) };
}

function thickness(rate, fastest) {
  return rate > 0 && fastest > 0 ? 2 + 5 * Math.sqrt(rate / fastest) : 2;
}

// Two lines beside each other: up on the left, down on the right.
function drawLink(parent, { name, now, upper, lower, fastest, labels, losing, data }) {
  const group = draw(parent, "g", { class: losing ? "link losing" : "link", ...data });
  group.dataset.up = now.bytes_up ?? "";
  group.dataset.down = now.bytes_down ?? "";
  const untold = now.bytes_up === null ? "; nobody counts its bytes" : "";
  draw(group, "title", {}, `${name}: ${count(now.bytes_up)} bytes up, ${count(now.bytes_down)} down${untold}` +
    (now.lost === null ? "" : `, ${count(now.lost)} frames lost`));
  const length = Math.hypot(upper[0] - lower[0], upper[1] - lower[1]) || 1;
  const aside = [(3.5 * (lower[1] - upper[1])) / length, (3.5 * (upper[0] - lower[0])) / length];
  for (const [way, sign, rate] of [["up", -1, now.rate_up], ["down", 1, now.rate_down]]) {
    draw(group, "line", {
      class: rate > 0 ? `${way} moving` : way,
      x1: lower[0] + sign * aside[0],
      y1: lower[1] + sign * aside[1],
      x2: upper[0] + sign * aside[0],
      y2: upper[1] + sign * aside[1],
      "stroke-width": thickness(rate, fastest),
    });
  }
  if (labels) {
    const at = [(lower[0] + upper[0]) / 2, (lower[1] + upper[1]) / 2];
    numbers(group, now, at[0], at[1] - 4, true);
  }
}

// What has passed a link, below each other, and what passes now if there is room.
function numbers(parent, now, x, y, rates) {
  const ways = [["up", "↑", now.bytes_up, now.rate_up], ["down", "↓", now.bytes_down, now.rate_down]];
  ways.forEach(([way, arrow, passed, rate], place) => {
    const more = rates && rate > 0 ? ` · ${bytes(rate)}/s` : "";
    draw(parent, "text", { class: way, x, y: y + 14 * place, "text-anchor": "middle" }, `${arrow} ${bytes(passed)}${more}`);
  });
}

function drawSwitch(parent, place, now, picture, [x, y]) {
  const { name } = picture.switches[place];
  const group = draw(parent, "g", { class: now.up === false ? "switch away" : "switch", "data-switch": place });
  const used = now.slots_seen ? now.slots_used / now.slots_seen : 0;
  const answers = { true: "answers", false: "does not answer", null: "not asked yet" }[now.up];
  const slots = now.slots_used === null ? "slots not told" : `${Math.round(100 * used)} % of slots in use`;
  const queue = now.queue === null ? "" : `; packets found ${now.queue.mean.toFixed(1)} in the queue, at most ${now.queue.longest}`;
  draw(group, "title", {}, `${name}: ${answers}; ${slots}${queue}`);
  draw(group, "rect", { x: x - 62, y: y - 22, width: 124, height: 44, rx: 6 });
  draw(group, "rect", { class: "slots-bar", x: x - 56, y: y + 11, width: 112 * used, height: 6 });
  draw(group, "text", { x, y: y - 5, "text-anchor": "middle" }, name);
  draw(group, "text", { class: "soft", x, y: y + 8, "text-anchor": "middle" }, now.up ? slots : answers);
}

function stateClass(share) {
  return share < ROOM.rates ? "state small" : "state";
}

// Whether what workers do fits below them, beside each other.
function roomForWords(parent, share) {
  const longest = draw(parent, "text", { class: stateClass(share) }, LONGEST);
  const fits = longest.getComputedTextLength() + 4 <= share;
  longest.remove();
  return fits;
}

function drawWorker(parent, worker, now, [x, y], share, words) {
  const classes = ["worker", now.state, ...(now.repairing ? ["repairing"] : [])].join(" ");
  const group = draw(parent, "g", { class: classes, "data-worker": worker, "data-state": now.state });
  draw(group, "title", {}, `worker ${worker}: ${doing(now.state)}; ${count(now.blocks)} blocks, ${count(now.recalls)} recalls, ${count(now.fetches)} fetches`);
  const radius = Math.min(17, Math.max(2, 0.3 * share));
  draw(group, "circle", { class: "ring", cx: x, cy: y, r: radius + 5 });
  draw(group, "circle", { class: "body", cx: x, cy: y, r: radius });
  if (share < ROOM.numbers) return;
  draw(group, "text", { x, y: y + 4, "text-anchor": "middle" }, `w${worker}`);
  const repairs = now.repairing && share >= ROOM.rates;
  const state = repairs ? `${now.state}, repairs` : doing(now.state);
  if (words) draw(group, "text", { class: stateClass(share), x, y: y + 38, "text-anchor": "middle" }, state);
  numbers(group, now.link, x, y + 54, share >= ROOM.rates);
  if (share < ROOM.rates) return;
  const queue = now.link.waiting_up === null && now.link.waiting_down === null
    ? "queue not told" : `queue ↑ ${bytes(now.link.waiting_up)} ↓ ${bytes(now.link.waiting_down)}`;
  draw(group, "text", { class: "soft", x, y: y + 83, "text-anchor": "middle" }, queue);
}

// Draw the network of a snapshot; what has grown since the one before shows where frames are lost.
export function drawNetwork(svg, snapshot, before) {
  svg.replaceChildren();
  const width = svg.getBoundingClientRect().width || 640;
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const { picture, workers, switches, cables } = snapshot;
  if (picture === null || switches.length === 0) {
    const words = picture === null ? "No network yet." : "One process, without a network.";
    svg.setAttribute("aria-label", words);
    draw(svg, "text", { class: "soft", x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }, words);
    return;
  }
  svg.setAttribute("aria-label", `${workers.length} workers, ${switches.length} switches, ${cables.length} cables between switches; ` +
    `${workers.filter((each) => each.state === "waiting").length} workers wait.`);
  const at = places(picture, width);
  const links = [...workers.map((each) => each.link), ...cables];
  const fastest = Math.max(0, ...links.flatMap((each) => [each.rate_up, each.rate_down]));
  const loses = (now, old) => now.lost !== null && now.lost > (old?.lost ?? 0) && snapshot.ended === null;
  const same = before !== null && before.workers.length === workers.length && before.cables.length === cables.length;
  cables.forEach((now, place) => {
    const { name, lower, upper } = picture.cables[place];
    drawLink(svg, {
      name: `cable ${name}`, now, upper: at.switches.get(upper), lower: at.switches.get(lower), fastest,
      labels: cables.length * ROOM.cable <= width, losing: loses(now, same ? before.cables[place] : null), data: { "data-cable": name },
    });
  });
  workers.forEach((each, worker) => {
    drawLink(svg, {
      name: `link of worker ${worker}, port ${picture.workers[worker].port}`, now: each.link,
      upper: at.switches.get(picture.workers[worker].switch), lower: at.workers[worker], fastest,
      labels: false, losing: loses(each.link, same ? before.workers[worker].link : null),
      data: { "data-link": worker },
    });
  });
  switches.forEach((now, place) => drawSwitch(svg, place, now, picture, at.switches.get(place)));
  const share = (width - 2 * MARGIN) / workers.length;
  const words = roomForWords(svg, share);
  workers.forEach((now, worker) => drawWorker(svg, worker, now, at.workers[worker], share, words));
}
