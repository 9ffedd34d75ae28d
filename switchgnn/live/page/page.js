// Polls the metrics of a run and shows them. Text is always set as text, never as markup.

const EVERY = 500; // milliseconds
const SILENT = 2; // seconds
const MOST_POINTS = 600;
const MOST_NAMES = 16;
const LOST = ["injected_faults_total/up/lost", "injected_faults_total/down/lost"];
const own = crypto.getRandomValues(new Uint32Array(1))[0];
const find = (id) => document.getElementById(id);

let network = null;
// The last two reports of each worker and of each switch: {at, values, before: {at, values}}.
let [reports, switchReports] = [[], []];
// Seconds, and the blocks of each worker by then.
let points = [];

// What is unknown is a dash.
const count = (value) => (value === undefined ? "–" : Math.round(value).toLocaleString("en"));
const percent = (value) => (value === undefined ? "–" : `${Math.round(100 * value)} %`);

function bytes(value) {
  if (value === undefined) return "–";
  const unit = Math.min(4, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  const number = value / 1000 ** unit;
  return `${number.toFixed(unit === 0 || number >= 100 ? 0 : 1)} ${["B", "kB", "MB", "GB", "TB"][unit]}`;
}

function sum(values, names) {
  const known = names.filter((name) => name in values);
  return known.length ? known.reduce((total, name) => total + values[name], 0) : undefined;
}

// The values of all names that begin and end so, summed.
function sumOf(values, begin, end = "") {
  return sum(values, Object.keys(values).filter((name) => name.startsWith(begin) && name.endsWith(end)));
}

function paths(values) {
  const taken = Object.keys(values).filter((name) => name.startsWith("path_share/") && values[name] > 0);
  return taken.map((name) => `${name.split("/")[1].replaceAll("_", "-")} ${percent(values[name])}`).join(", ") || "–";
}

function remember(told, known) {
  return told.map(({ at, values }, index) => {
    const last = known[index] ?? { at: null, values: {} };
    return at === last.at ? last : { at, values, before: { at: last.at, values: last.values } };
  });
}

// The growth of what `counted` finds in the last two reports, per second. After a restart it begins at 0.
function growth({ at, values, before }, counted) {
  if (!before || before.at === null) return undefined;
  const [now, then] = [counted(values), counted(before.values)];
  return now === undefined || then === undefined ? undefined : Math.max(0, now - then) / (at - before.at);
}

const rate = (report, name) => growth(report, (values) => values[name]);

function activity(worker, report, shown) {
  if (!worker.served) return "no metrics";
  if (shown.finished) return "finished";
  if (worker.at === null) return "no report yet";
  if (shown.seconds - worker.at > SILENT) return "silent";
  if (rate(report, "barrier_seconds_total") > 0.5) return "waiting";
  const moved = rate(report, "link_bytes_total/up") || rate(report, "link_bytes_total/down");
  return worker.values.exchanging ?? moved ? "exchanging" : "computing";
}

// A column: its name, its text for a row, whether the row's value has just grown, and an explanation.
const counter = (name, title, metric) => [
  name, ({ values }) => count(values[metric]), ({ report }) => rate(report, metric) > 0, title,
];
const WORKERS = [
  ["worker", ({ name }) => name],
  ["activity", ({ state }) => state],
  ["waited", ({ now }) => percent(now("barrier_seconds_total")), null, "share of the last interval that was spent at a barrier"],
  ["rounds", ({ values }) => count(values.rounds_total)],
  ["blocks", ({ values }) => count(values.blocks_total), null, "fragments of blocks that are complete"],
  ["up", ({ values }) => bytes(values["link_bytes_total/up"]), null, "bytes from the worker"],
  ["up/s", ({ now }) => bytes(now("link_bytes_total/up"))],
  ["down", ({ values }) => bytes(values["link_bytes_total/down"]), null, "bytes to the worker"],
  ["down/s", ({ now }) => bytes(now("link_bytes_total/down"))],
  counter("recalls", "late sums that were asked for", "recalls_total"),
  counter("fetches", "features of others that were asked for", "fetches_total"),
  counter("resent", "features sent again", "features_resent_total"),
  ["lost", ({ values }) => count(sum(values, LOST)), ({ report }) => LOST.some((name) => rate(report, name) > 0), "frames that --faults lost on the worker's link"],
  ["paths", ({ values }) => paths(values), null, "share of the plan's blocks by path"],
];

function workerRow(worker, index, shown) {
  const report = reports[index];
  const state = activity(worker, report, shown);
  const still = state === "finished" || state === "silent";
  const idle = { at: 1, values: {}, before: null };
  return { ...worker, report: still ? idle : report, state, now: (name) => (still ? undefined : rate(report, name)) };
}

function switchColumns(switches) {
  const names = switches.flatMap(({ values }) => Object.keys(values).filter((name) => name.startsWith("frames_total/") && values[name] > 0));
  return [
    ["switch", ({ name }) => name],
    ["", ({ state }) => state],
    ["slots in use", ({ values }) => slots(values), null, "of this page's job, that hold contributions to the newest block"],
    ["sums", ({ values }) => count(sumOf(values, "slot_events_total/", "/completed"))],
    ["marked", ({ values }) => count(values.marked_packets_total), null, "packets marked for congestion"],
    ...[...new Set(names)].map((name) => [name.split("/")[1].replaceAll("_", " "), ({ values }) => count(values[name])]),
  ];
}

const JOBS = [
  ["job", ({ name }) => name],
  ["", ({ state }) => state],
  ["switch", ({ place }) => place],
  ["session", ({ of }) => count(of("session"))],
  ["workers", ({ of }) => count(of("plan_workers"))],
  ["slots per bank", ({ of }) => count(of("job_slots"))],
  ["passes/s", ({ passes }) => count(passes), null, "passes of its packets through the banks"],
  ["share", ({ share }) => percent(share), null, "of all passes of the switch"],
  ["frames/s", ({ frames }) => count(frames), null, "frames that its ports received"],
];

// A row for each job of a switch.
function jobRows({ name: place, at, values }, index, shown) {
  const still = shown.finished || shown.seconds - at > SILENT;
  return Object.keys(values).filter((key) => key.startsWith("session/")).map((session) => {
    const name = session.slice("session/".length);
    // In another session it may have another number, whose counters have an earlier job's frames.
    const now = (counted) => (still ? undefined
      : growth(switchReports[index], (each) => (each[session] === values[session] ? counted(each) : undefined)));
    const passes = now((each) => each[`job_passes_total/${name}`]);
    const share = passes && passes / now((each) => each.passes_total);
    const frames = now((each) => sumOf(each, `job_frames_total/${name}/`) ?? 0);
    return { name, place, state: name === shown.job ? "this job" : "", of: (metric) => values[`${metric}/${name}`], passes, share, frames };
  });
}

function slots({ slots_in_use: used, slots_read: read, slots: all }) {
  return all === undefined ? "–" : `${read < all ? "about " : ""}${percent(used / Math.max(1, read))} of ${count(all)}`;
}

function answer({ at, values }) {
  if (at === null) return "not asked yet";
  return values.switch_up ? "answers" : "no answer";
}

function put(parent, name, text, attributes = {}) {
  const made = parent.namespaceURI.endsWith("svg") || name === "svg"
    ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return parent.appendChild(made);
}

function table(id, columns, rows) {
  find(id).replaceChildren();
  const head = put(put(find(id), "thead", null), "tr", null);
  for (const [name, , , title] of columns) put(head, "th", name, { scope: "col", ...(title ? { title } : {}) });
  const body = put(find(id), "tbody", null);
  for (const row of rows) {
    const line = put(body, "tr", null, { "data-state": row.state });
    for (const [, text, grew] of columns) put(line, "td", text(row), grew?.(row) ? { class: "grew" } : {});
  }
}

const short = (value) => (value >= 1e4 ? count(value) : `${+value.toPrecision(3)}`);

// Lines, each {name, values}, over `along`, which has a number for each value; `mark` words its ends.
function chart(id, along, lines, mark) {
  find(id).querySelector("svg")?.remove();
  find(id).hidden = lines.length === 0 || along.length === 0;
  if (find(id).hidden) return;
  const svg = put(find(id), "svg", null);
  const [width, height, left, right] = [svg.getBoundingClientRect().width || 400, 200, 60, 90];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const [first, last] = [along[0], Math.max(along.at(-1), along[0] + 1e-3)];
  const highest = Math.max(1e-9, ...lines.flatMap(({ values }) => values));
  const x = (value) => left + ((value - first) / (last - first)) * (width - left - right);
  const y = (value) => 175 - (value / highest) * 165;
  for (const share of [0, 0.5, 1]) {
    const at = y(share * highest);
    put(svg, "line", null, { x1: left, x2: width - right, y1: at, y2: at });
    put(svg, "text", short(share * highest), { x: left - 5, y: at + 4, "text-anchor": "end" });
  }
  put(svg, "text", mark(first), { x: left, y: height - 6 });
  put(svg, "text", mark(last), { x: width - right, y: height - 6, "text-anchor": "end" });
  // Names at the ends of the lines, from the highest down, moved apart where they would overlap.
  const ends = lines.map(({ values }, index) => [y(values.at(-1)) + 4, index]).sort((one, other) => one[0] - other[0]);
  const lowest = (rank) => 179 - 13 * (ends.length - 1 - rank);
  let above = -Infinity;
  ends.forEach(([end, index], rank) => {
    const { name, values } = lines[index];
    const hue = Math.round(211 + 137.5 * index) % 360;
    const colour = `light-dark(hsl(${hue} 75% 38%), hsl(${hue} 75% 68%))`;
    const steps = values.map((value, at) => `${x(along[at]).toFixed(1)},${y(value).toFixed(1)}`);
    put(svg, "path", null, { d: `M${steps.join("L")}`, stroke: colour, "data-name": name, "data-last": values.at(-1) });
    above = Math.min(Math.max(end, above + 13), lowest(rank));
    if (lines.length <= MOST_NAMES) put(svg, "text", `${name} ${short(values.at(-1))}`, { x: width - right + 5, y: above, fill: colour });
  });
}

function show(shown) {
  if (shown.network !== network) [network, reports, switchReports, points] = [shown.network, [], [], []];
  [reports, switchReports] = [remember(shown.workers, reports), remember(shown.switches, switchReports)];
  points.push([shown.seconds, shown.workers.map(({ values }) => values.blocks_total ?? 0)]);
  if (points.length > MOST_POINTS) points = points.filter((_, index) => index % 2 === 0 || index === MOST_POINTS);
  const words = shown.outcome === null ? shown.step || "begins" : `Over: ${shown.words}`;
  document.title = `${shown.outcome === null ? "" : "(over) "}${shown.title}`;
  find("title").textContent = shown.title;
  find("where").textContent = shown.where;
  find("clock").textContent = `${shown.seconds.toFixed(1)} s`;
  // A screen reader says it again each time that it is set.
  if (find("step").textContent !== words) find("step").textContent = words;
  table("workers", WORKERS, shown.workers.map((worker, index) => workerRow(worker, index, shown)));
  table("switches", switchColumns(shown.switches), shown.switches.map((each) => ({ ...each, state: answer(each) })));
  table("jobs", JOBS, shown.switches.flatMap((each, index) => jobRows(each, index, shown)));
  const lines = shown.workers.map(({ name, values }, index) => ({ name, values: points.map(([, blocks]) => blocks[index]), known: "blocks_total" in values }));
  chart("blocks", points.map(([seconds]) => seconds), lines.filter(({ known }) => known), (value) => `${value.toFixed(1)} s`);
  // A loss that is no number is null.
  const losses = shown.losses.filter(([, loss]) => loss !== null);
  chart("training", losses.map(([epoch]) => epoch), [{ name: "loss", values: losses.map(([, loss]) => loss) }], (value) => `epoch ${value.toFixed(0)}`);
  if (shown.outcome !== null) document.body.dataset.outcome = shown.outcome;
}

async function ask() {
  try {
    const answered = await fetch(`/metrics.json?page=${own}`);
    return answered.ok ? await answered.json() : null;
  } catch {
    return null;
  }
}

async function poll() {
  const shown = await ask();
  document.body.toggleAttribute("data-lost", shown === null);
  if (shown === null) find("step").textContent = "The run does not answer any more.";
  else show(shown);
  // With its outcome the page stays as it is.
  if (shown?.outcome == null) setTimeout(poll, EVERY);
}

poll();
