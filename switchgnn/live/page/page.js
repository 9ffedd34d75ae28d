// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0
// Draws each snapshot that comes. It has all that there is to draw, so nothing is kept but the
// one before.

import { drawChart } from "./charts.js";
import { drawNetwork } from "./network.js";
import { bytes, count, doing, put, time } from "./words.js";

const find = (id) => document.getElementById(id);
let before = null;

const WORKERS = [
  ["worker", (now, place) => `w${place}`],
  ["does", (now) => doing(now.state), "word"],
  ["waited", (now) => `${Math.round(100 * now.waited)} %`],
  ["blocks", (now) => count(now.blocks)],
  ["up", (now) => bytes(now.link.bytes_up)],
  ["down", (now) => bytes(now.link.bytes_down)],
  ["queue ↑", (now) => bytes(now.link.waiting_up)],
  ["queue ↓", (now) => bytes(now.link.waiting_down)],
  ["recalls", (now) => count(now.recalls), (now) => repair(now.recalls)],
  ["fetches", (now) => count(now.fetches), (now) => repair(now.fetches)],
  ["resent", (now) => count(now.resent), (now) => repair(now.resent)],
  ["lost", (now) => count(now.link.lost), (now) => repair(now.link.lost)],
];
const TITLES = {
  waited: "share of the last half second in which others were not as far",
  blocks: "fragments of blocks that are complete",
  up: "bytes from the worker",
  down: "bytes to the worker",
  "queue ↑": "bytes that wait at the switch's port",
  "queue ↓": "bytes that wait at the worker",
  recalls: "late sums that were asked for",
  fetches: "features of others that were asked for",
  resent: "features sent again",
  lost: "frames lost on purpose on the worker's link",
  "slots in use": "that hold contributions to the newest block",
  queue: "packets that a packet found at its port in the last half second, on average and at most",
};

// What there is none of is nothing to look at.
function repair(value) {
  return value > 0 ? "repair" : "";
}

function table(id, columns, rows, classes) {
  const whole = find(id);
  const [head, body] = [whole.tHead, whole.tBodies[0]];
  if (head.rows.length === 0) {
    const line = head.insertRow();
    for (const [name, , className] of columns) {
      const cell = put(line, "th", className === "word" ? "word" : "", name);
      cell.scope = "col";
      if (TITLES[name]) cell.title = TITLES[name];
    }
  }
  body.replaceChildren();
  rows.forEach((row, place) => {
    const line = body.insertRow();
    line.className = classes(row);
    for (const [, value, className] of columns) {
      const text = value(row, place);
      const own = typeof className === "function" ? className(row) : (className ?? "");
      put(line, "td", text.startsWith("not told") ? "untold" : own, text);
    }
  });
}

function switchColumns(snapshot) {
  return [
    ["switch", (now, place) => snapshot.picture.switches[place].name],
    ["slots in use", (now) => slots(now, snapshot.picture.no_slots)],
    ["queue", (now) => (now.queue === null ? "–" : `${now.queue.mean.toFixed(1)}, at most ${now.queue.longest}`)],
    ["frames", (now) => count(now.frames)],
    ["added", (now) => count(now.contributions)],
    ["sums", (now) => count(now.completed)],
    ["recalls", (now) => count(now.recalled)],
    ["marked", (now) => count(now.marked)],
  ];
}

function slots(now, untold) {
  if (!now.up) return "–";
  if (now.slots_used === null) return untold;
  const share = Math.round((100 * now.slots_used) / Math.max(1, now.slots_seen));
  const about = now.slots_seen < now.slots ? "about " : "";
  return `${about}${share} % of ${count(now.slots)}`;
}

function heading(snapshot) {
  const { picture, ended } = snapshot;
  document.title = `${ended === null ? "" : "(over) "}${snapshot.title}`;
  find("title").textContent = snapshot.title;
  find("where").textContent = picture === null ? "" : `transport ${picture.transport}, ${picture.target}, ${picture.ran_on}`;
  find("clock").textContent = time(snapshot.seconds);
  const words = ended === null ? snapshot.step || "begins" : `Over: ${ended.words}`;
  // A screen reader says it again each time that it is set.
  if (find("step").textContent !== words) find("step").textContent = words;
  if (ended !== null) document.body.dataset.ended = ended.outcome;
}

function charts(snapshot) {
  const along = snapshot.points.map((point) => point.seconds);
  const mark = (value) => `${value} s`;
  const lines = (...names) => names.map((name) => ({ name, values: snapshot.points.map((point) => point[name]) }));
  drawChart(find("blocks"), {
    along, mark,
    lines: snapshot.workers.flatMap((now, worker) => (now.state === "untold" ? [] :
      [{ name: `w${worker}`, values: snapshot.points.map((point) => point.blocks[worker] ?? 0) }])),
  });
  drawChart(find("repairs"), { along, mark, lines: lines("recalls", "fetches") });
  const links = [...snapshot.workers.map((now) => now.link), ...snapshot.cables];
  find("lost-box").hidden = links.every((link) => link.lost === null);
  drawChart(find("lost"), { along, mark, lines: lines("lost") });
  find("training-box").hidden = snapshot.epochs_asked === 0;
  drawChart(find("training"), {
    along: snapshot.epochs.map((each) => each.epoch), mark: (value) => `epoch ${value}`, ends: snapshot.epochs_asked,
    lines: [{ name: "loss", values: snapshot.epochs.map((each) => each.loss) }],
  });
}

function show(snapshot) {
  heading(snapshot);
  drawNetwork(find("network"), snapshot, before);
  if (snapshot.picture !== null) {
    table("workers", WORKERS, snapshot.workers, (now) => (now.repairing ? `${now.state} repairing` : now.state));
    table("switches", switchColumns(snapshot), snapshot.switches, (now) => (now.up === false ? "away" : ""));
  }
  charts(snapshot);
  document.body.dataset.number = snapshot.number;
  before = snapshot;
}

const source = new EventSource("/events");
source.addEventListener("snapshot", (event) => {
  delete document.body.dataset.lost;
  const snapshot = JSON.parse(event.data);
  show(snapshot);
  // The page stays as it is.
  if (snapshot.ended !== null) source.close();
});
source.addEventListener("error", () => {
  document.body.dataset.lost = "";
  find("step").textContent = "The run does not answer any more.";
});
