// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0
// Numbers as words, and elements. Text is always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const UNITS = ["B", "kB", "MB", "GB", "TB"];

// Bytes with a unit, as 1.2 MB; what nobody tells is a dash.
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  let number = value;
  while (number >= 1000 && unit < UNITS.length - 1) {
    number /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || number >= 100 ? 0 : 1;
  return `${number.toFixed(digits)} ${UNITS[unit]}`;
}

// A count with commas; what nobody tells is a dash.
export function count(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en");
}

// What a worker does, in words.
export function doing(state) {
  return state === "untold" ? "not told" : state;
}

// Seconds as 1:05 or 12.5 s.
export function time(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} min`;
}

// An element of a drawing, with attributes, behind the others of its parent.
export function draw(parent, name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  parent.appendChild(made);
  return made;
}

// An element of the page.
export function put(parent, name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  parent.appendChild(made);
  return made;
}
