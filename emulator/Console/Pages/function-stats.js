// The functions' figures, sampled while the page is open, whichever view is shown.

import { hub } from "./api.js";
import { poll, svg } from "./dom.js";

const sampleMilliseconds = 2000;
const historyMilliseconds = 10 * 60_000;
const plotMillisecondsMin = 60_000;
const pointsMax = 400;
/** The functions' list is large, and changes with a deployment only. */
const listMilliseconds = 10_000;

/** The latest sample: the deployed functions, and the figures by function. */
export const sample = { functions: [], stats: new Map(), time: 0, error: null };

const histories = new Map();
const listeners = new Set();
let isStarted = false;
let listed = { time: 0, names: "" };
let began = 0;

/** Calls `onSample` with the latest sample, if there is one, and with each later one. */
export function watchFunctions(onSample, signal) {
  listeners.add(onSample);
  signal.addEventListener("abort", () => listeners.delete(onSample));
  if (sample.time) onSample(sample);
  if (isStarted) return;
  isStarted = true;
  // The sampling ends with the page, so that the plots have no gaps after a look at another view.
  poll(take, sampleMilliseconds, new AbortController().signal, (error) => {
    sample.error = error;
    for (const listener of listeners) listener(sample);
  });
}

/** Samples now, such as after a call; the result also reaches the watchers. */
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

/** A point is added only if a figure has changed, so thousands of idle functions cost little. */
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
  // The last point before the window stays: it tells the value at the window's beginning.
  while (points.length > pointsMax || points[1]?.time < now - historyMilliseconds) points.shift();
}

/** The time of a function's last change while the page was open; undefined if there is none. */
export function lastChange(name) {
  const points = histories.get(name);
  return points?.length > 1 ? points.at(-1).time : undefined;
}

/** The outcomes that are failures of the function; refusals are decisions. */
export const failures = ({ outcomes = {} }) =>
  ["failed", "crashed", "timedOut", "notRun"].reduce((sum, name) => sum + (outcomes[name] ?? 0), 0);

/** How often a function ran, and its percentiles, in equal steps over the last minutes. */
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

const width = 56;
const height = 18;

/** A small plot of a row of numbers; null is a gap. `update(values)` draws it again. */
export function sparkline(label) {
  const path = svg("path", { class: "plot-line" });
  const node = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height,
    role: "img", "aria-label": label }, path);
  let drawn = "";
  return {
    node,
    update(values) {
      // A function that did nothing has no line at the bottom.
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
