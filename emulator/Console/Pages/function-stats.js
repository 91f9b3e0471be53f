// The functions' figures, sampled while the page is open, and the cells of tables that show them.

import { hub } from "./api.js";
import { h, poll, setText, svg, to } from "./dom.js";
import { count } from "./format.js";
import { visible } from "./long-text.js";

const sampleMilliseconds = 2000;
const historyMilliseconds = 10 * 60_000;
const plotMillisecondsMin = 60_000;
const pointsMax = 400;
/** The list of functions is large, and changes only with a deployment. */
const listMilliseconds = 10_000;

/** The latest sample: the deployed functions, and the figures by the function's name. */
export const sample = { functions: [], stats: new Map(), time: 0, error: null };

const histories = new Map();
const listeners = new Set();
let isStarted = false;
let listed = { time: 0, names: "" };
/** The time of the first sample. */
let began = 0;

/** Calls `onSample` with the latest sample, if there is one, and with each later one. */
export function watchFunctions(onSample, signal) {
  listeners.add(onSample);
  signal.addEventListener("abort", () => listeners.delete(onSample));
  if (sample.time) onSample(sample);
  if (isStarted) return;
  isStarted = true;
  // Sampling continues until the page is closed, so that the plots have no gaps after another view.
  poll(take, sampleMilliseconds, new AbortController().signal, (error) => {
    sample.error = error;
    for (const listener of listeners) listener(sample);
  });
}

/** Samples now, such as after a call, and tells the watchers. */
export async function take() {
  const stats = await hub("/functions/stats");
  const now = Date.now();
  const names = stats.map((entry) => entry.name).join();
  if (names !== listed.names || now - listed.time > listMilliseconds) {
    sample.functions = await hub("/functions");
    listed = { time: now, names };
  }
  sample.stats = new Map(stats.map((entry) => [entry.name, entry]));
  sample.time = now;
  sample.error = null;
  began ||= now;
  for (const entry of stats) record(entry, now);
  for (const name of histories.keys()) if (!sample.stats.has(name)) histories.delete(name);
  for (const listener of listeners) listener(sample);
}

/** Adds a point only if a figure has changed, so that thousands of idle functions cost little. */
function record(entry, now) {
  const { invocations: runs, p50Seconds: p50, p99Seconds: p99 } = entry;
  const point = { time: now, runs, p50, p99 };
  let points = histories.get(entry.name);
  const last = points?.at(-1);
  if (!last || runs < last.runs) {
    histories.set(entry.name, [point]);
    return;
  }
  if (last.runs === runs && last.p50 === p50 && last.p99 === p99) return;
  points.push(point);
  // The last point before the history's start stays: it is the value at the start.
  while (points.length > pointsMax || points[1]?.time < now - historyMilliseconds) points.shift();
}

/** The time of a function's last change while the page was open; undefined if there is none. */
export function lastChange(name) {
  const points = histories.get(name);
  return points?.length > 1 ? points.at(-1).time : undefined;
}

/** The number of failed runs; a refusal is a decision of the function, not a failure. */
export const failures = ({ outcomes = {} }) => ["failed", "crashed", "timedOut", "notRun"]
  .reduce((sum, name) => sum + (outcomes[name] ?? 0), 0);

/** A function's runs and percentiles in equal steps over the last minutes. */
export function series(name, steps = 40) {
  const points = histories.get(name) ?? [];
  const end = sample.time;
  const length = Math.min(historyMilliseconds, Math.max(plotMillisecondsMin, end - began));
  const result = { runs: [], p50: [], p99: [] };
  let index = -1;
  let previous = points[0]?.runs ?? 0;
  for (let step = 0; step <= steps; step += 1) {
    const time = end - length + (length * step) / steps;
    while (index + 1 < points.length && points[index + 1].time <= time) index += 1;
    const point = points[index];
    const runs = point?.runs ?? previous;
    if (step > 0) {
      result.runs.push(runs - previous);
      result.p50.push(point?.p50 ?? null);
      result.p99.push(point?.p99 ?? null);
    }
    previous = runs;
  }
  return result;
}

// MARK: Cells and plots

/** The state of a function in a word or two, and its color. */
export function stateOf(stats) {
  if (!stats) return { text: "not deployed", kind: "quiet" };
  if (stats.waits || stats.shortage) return { text: "waits", kind: "bad" };
  if (stats.running + stats.waiting > 0) {
    const waiting = stats.waiting > 0 ? `, ${count(stats.waiting)} waiting` : "";
    return { text: `${count(stats.running)} running${waiting}`, kind: "good" };
  }
  return { text: stats.workers > 0 ? "ready" : "idle", kind: "quiet" };
}

/** A cell with a link to a function. */
export const functionCell = ({ name }) =>
  ({ node: h("a", { href: to("functions", name) }, visible(name)) });

/** A cell with the state of a function; its title says why the function waits. */
export function stateCell() {
  const node = h("span");
  return {
    node,
    update({ stats }) {
      const { text, kind } = stateOf(stats);
      setText(node, text);
      node.className = kind;
      node.title = stats?.waits ?? stats?.shortage ?? "";
    },
  };
}

/** A cell with the failed runs of a function; its title counts all outcomes. */
export function failuresCell() {
  const node = h("span");
  return {
    node,
    update({ stats }) {
      const number = stats ? failures(stats) : 0;
      setText(node, count(number));
      node.className = number > 0 ? "bad" : "";
      node.title = Object.entries(stats?.outcomes ?? {})
        .map(([name, runs]) => `${name}: ${count(runs)}`).join(", ");
    },
  };
}

const width = 56;
const height = 18;

/** A small plot; `update(values)` of the result draws numbers, and null as a gap. */
export function sparkline(label) {
  const path = svg("path", { class: "plot-line" });
  const node = svg("svg", {
    class: "plot",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": label,
  }, path);
  let drawn = "";
  return {
    node,
    update(values) {
      // A function that did nothing has no line at all.
      const isEmpty = values.every((value) => !value);
      const max = Math.max(...values.map((value) => value ?? 0), 1e-9);
      let isDown = false;
      const text = isEmpty ? "" : values.map((value, index) => {
        if (value === null) {
          isDown = false;
          return "";
        }
        const x = (index * width) / Math.max(1, values.length - 1);
        const y = height - 1 - (value / max) * (height - 3);
        const command = isDown ? "L" : "M";
        isDown = true;
        return `${command}${x.toFixed(1)} ${y.toFixed(1)}`;
      }).join("");
      if (text !== drawn) path.setAttribute("d", drawn = text);
    },
  };
}
