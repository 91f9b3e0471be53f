// Numbers, durations and times as people read them.

import { h } from "./dom.js";

/** A number with thousands separators. */
export const count = (number) => Number(number).toLocaleString("en-US");

/** A number and its noun: `1 event`, `2 events`; `plural` is for other endings. */
export const counted = (number, noun, plural = `${noun}s`) =>
  `${count(number)} ${number === 1 ? noun : plural}`;

/** How long something took, in milliseconds or seconds; a dash if it is unknown. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

/** A percentile of durations, of which only an upper bound is known. */
export const bound = (seconds) =>
  (seconds === null || seconds === undefined ? "–" : `≤ ${duration(seconds)}`);

/** A span of time in its two largest units: `1 day 2 h`, `3 min 5 s`. */
export function span(seconds) {
  const whole = Math.round(seconds);
  const units = [[Math.floor(whole / 86_400), whole >= 172_800 ? "days" : "day"],
    [Math.floor(whole / 3600) % 24, "h"], [Math.floor(whole / 60) % 60, "min"], [whole % 60, "s"]];
  const first = units.findIndex(([number]) => number > 0);
  if (first < 0) return "0 s";
  return units.slice(first, first + 2).filter(([number]) => number > 0)
    .map(([number, unit]) => `${count(number)} ${unit}`).join(" ");
}

/** The time of day, with the date unless it is today's, in the reader's time zone. */
export function time(text) {
  if (!text) return "";
  const date = new Date(text);
  const isToday = date.toDateString() === new Date().toDateString();
  return h("time", { datetime: text, title: text },
    isToday ? date.toLocaleTimeString() : date.toLocaleString());
}

/** The time of day with 24 hours, for columns whose texts are to have the same width. */
export const clockTime = (date) => date.toLocaleTimeString("en-GB");
