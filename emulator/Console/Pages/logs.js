// The functions' logs, and the list of log lines that other views show too.

import { hub, hubLines } from "./api.js";
import { button, field, h, poll, replace, select, setText, to } from "./dom.js";
import { clockTime, counted } from "./format.js";
import { longText, visible } from "./long-text.js";

const pollMilliseconds = 1000;
const shownMax = 500;
/** The lines that are searched for a text, and kept so that a new filter needs no request. */
const keptMax = 5000;
const keptCharactersMax = 8 << 20;
const suggestionsMax = 1000;
const metadataMax = 30;
const levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"];

/** Shows the logs: `#/logs`, `#/logs/function/NAME`, `#/logs/invocation/ID`. */
export async function render(root, segments, signal) {
  const filter = { functionName: "", level: "", text: "", invocation: "" };
  const names = h("datalist", { id: "log-functions" });
  const controls = {
    functionName: h("input", { list: names.id, autocomplete: "off", oninput: read }),
    level: select([["", "all"], ...levels], { onchange: read }),
    text: h("input", { autocomplete: "off", oninput: read }),
    invocation: h("input", { autocomplete: "off", oninput: read }),
  };
  const pause = button("Pause", togglePause, { "aria-pressed": "false" });
  const list = logList({
    ...filter,
    signal,
    onInvocation: (id) => { location.hash = to("logs", "invocation", id); },
  });

  function read() {
    for (const name of Object.keys(filter)) filter[name] = controls[name].value.trim();
    list.setFilter(filter);
  }

  function togglePause() {
    const isPaused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", isPaused);
    list.setPaused(isPaused);
  }

  function take([kind, value = ""]) {
    for (const control of Object.values(controls)) control.value = "";
    if (kind === "function") controls.functionName.value = value;
    if (kind === "invocation") controls.invocation.value = value;
    read();
    return true;
  }

  root.append(
    h("h1", "Logs"),
    h("div.toolbar",
      field("Function", controls.functionName), names, field("Level from", controls.level),
      field("Text", controls.text), field("Invocation", controls.invocation), pause,
      button("Clear the filter", () => take([]))),
    list.element);
  take(segments);
  // Without suggestions, the name can still be typed.
  hub("/functions", { signal }).then((functions) => replace(names,
    functions.slice(0, suggestionsMax).map(({ name }) => h("option", { value: name }))), () => {});
  return take;
}

/**
 * A list of log lines that follows the log until `signal` aborts.
 *
 *     const list = logList({ functionName: "welcome", invocation: id, signal });
 *     card.append(list.element);
 *     list.setFilter({ level: "warning" });   // any of functionName, level, text, invocation
 *     list.setPaused(true);
 *
 * All filters are optional. `functionName` and `text` match parts, `invocation` matches the
 * beginning, and `level` matches this level and the higher ones. With `exact`, `functionName` is
 * the whole name, and lines do not repeat it. `onInvocation(id)` is called when a person chooses a
 * line's invocation; without it, lines do not show their invocation. The newest line stays in view
 * unless the reader has scrolled up. At most 500 lines are drawn.
 */
export function logList({
  functionName = "", level = "", text = "", invocation = "", exact = false, onInvocation, signal,
}) {
  let filter = { functionName, level, text, invocation };
  let kept = [];
  let keptCharacters = 0;
  let isPaused = false;
  let isLoadedDeep = false;
  let isLoading = false;
  let generation = 0;
  let unseen = 0;

  // Screen readers would read a busy log forever, so lines are not announced.
  const lines = h("div.log", { role: "log", "aria-live": "off", "aria-label": "Log lines",
    tabindex: "0" });
  const status = h("span.quiet", "Loading …");
  const newest = h("button", { type: "button", hidden: true, onclick: showNewest });
  const element = h("div.log-list", lines, h("div.log-foot", newest, status));
  lines.addEventListener("scroll", () => { if (isAtEnd()) announce(0); });

  const isAtEnd = () => lines.scrollHeight - lines.scrollTop - lines.clientHeight < 12;

  function showNewest() {
    lines.scrollTop = lines.scrollHeight;
    announce(0);
  }

  function announce(number) {
    unseen = number;
    newest.hidden = unseen === 0;
    newest.textContent = `Show ${counted(unseen, "new line")} ↓`;
  }

  /** The address of the lines; the suite filters only by whole names, the rest is done here. */
  function path(limit, since) {
    const query = new URLSearchParams({ limit });
    if (exact && filter.functionName) query.set("function", filter.functionName);
    if (filter.level) query.set("level", filter.level);
    if (since) query.set("since", since);
    return `/logs?${query}`;
  }

  function passes(line) {
    const { functionName, text, invocation } = filter;
    if (functionName && !contains(line.function, functionName)) return false;
    if (invocation && !(line.invocation ?? "").startsWith(invocation)) return false;
    if (!text) return true;
    return contains(line.message, text)
      || Object.entries(line.metadata ?? {}).some(([name, value]) =>
        contains(`${name}=${value}`, text));
  }

  /** Loads once at a time, and again if the filter has changed meanwhile. */
  async function load() {
    if (isLoading) return;
    isLoading = true;
    try {
      let current;
      do {
        current = generation;
        if (!isPaused) await loadOnce(current);
      } while (current !== generation);
    } finally {
      isLoading = false;
    }
  }

  async function loadOnce(current) {
    const isDeep = Boolean(filter.text || filter.invocation || (filter.functionName && !exact));
    // A search covers more lines than are drawn; they are loaded once.
    const isAnew = kept.length === 0 || (isDeep && !isLoadedDeep);
    const limit = isDeep ? keptMax : shownMax;
    const since = isAnew ? null : kept.at(-1).time;
    const received = await hubLines(path(limit, since), { signal });
    if (current !== generation || isPaused) return;
    isLoadedDeep ||= isDeep;
    if (isAnew) {
      kept = [];
      keptCharacters = 0;
      keep(received);
      draw();
      return;
    }
    const fresh = unknown(received);
    // If all lines are new, older ones may be missing: they came faster than they were read.
    const isGap = received.length === limit && fresh.length === received.length;
    keep(fresh);
    append(fresh.filter(passes), isGap);
  }

  /** The received lines that are not kept yet; the suite sends those of the last time again. */
  function unknown(received) {
    const time = kept.at(-1).time;
    const known = new Map();
    for (let index = kept.length - 1; index >= 0 && kept[index].time === time; index -= 1) {
      const text = JSON.stringify(kept[index]);
      known.set(text, (known.get(text) ?? 0) + 1);
    }
    return received.filter((line) => {
      if (line.time !== time) return line.time > time;
      const text = JSON.stringify(line);
      const number = known.get(text) ?? 0;
      known.set(text, number - 1);
      return number <= 0;
    });
  }

  function keep(added) {
    kept.push(...added);
    for (const line of added) keptCharacters += size(line);
    let surplus = Math.max(0, kept.length - keptMax);
    for (let index = 0; index < surplus; index += 1) keptCharacters -= size(kept[index]);
    while (keptCharacters > keptCharactersMax && surplus < kept.length - 1) {
      keptCharacters -= size(kept[surplus]);
      surplus += 1;
    }
    kept.splice(0, surplus);
  }

  function draw() {
    const passing = kept.filter(passes).slice(-shownMax);
    replace(lines, passing.map(lineElement));
    showStatus();
    showNewest();
  }

  function append(added, isGap) {
    if (added.length === 0 && !isGap) return;
    const wasAtEnd = isAtEnd();
    const shown = added.slice(-shownMax);
    if (isGap) lines.append(h("div.log-gap", "Some lines are not shown: they came too fast."));
    lines.append(...shown.map(lineElement));
    while (lines.childElementCount > shownMax) lines.firstElementChild.remove();
    showStatus();
    if (wasAtEnd) showNewest();
    else announce(unseen + shown.length);
  }

  const lineElement = (line) => logLine(line, { onInvocation, showsFunction: !exact });

  function showStatus() {
    const number = lines.childElementCount;
    if (isPaused) {
      setText(status, "Paused.");
    } else if (number === 0) {
      const isFiltered = filter.level || filter.text || filter.invocation
        || (filter.functionName && !exact);
      setText(status, `No lines ${isFiltered ? "match" : "yet"}. New ones appear here.`);
    } else {
      const text = `${counted(number, "line")}.`;
      setText(status, number >= shownMax ? `The last ${text}` : text);
    }
  }

  const showError = (error) => setText(status, `The log cannot be read: ${error.message}`);

  poll(load, pollMilliseconds, signal, showError);

  return {
    element,
    setFilter(change) {
      const next = { ...filter, ...change };
      const isOther = next.level !== filter.level
        || (exact && next.functionName !== filter.functionName);
      filter = next;
      if (isOther) {
        // The suite has filtered the kept lines by the old level or name.
        kept = [];
        isLoadedDeep = false;
      }
      generation += 1;
      draw();
      load().catch((error) => {
        if (error.name !== "AbortError") showError(error);
      });
    },
    setPaused(value) {
      isPaused = value;
      showStatus();
    },
  };
}

const contains = (text, part) => text.toLowerCase().includes(part.toLowerCase());

const size = (line) => line.message.length + 100
  + Object.values(line.metadata ?? {}).reduce((sum, value) => sum + value.length, 0);

/** The element of a log line; it names its function and invocation only on request. */
export function logLine(line, { onInvocation, showsFunction = false } = {}) {
  const when = new Date(line.time);
  const milliseconds = String(when.getMilliseconds()).padStart(3, "0");
  const metadata = Object.entries(line.metadata ?? {}).sort().slice(0, metadataMax);
  const invocation = line.invocation && onInvocation && h("button.plain", {
    type: "button",
    title: `Show only the invocation ${line.invocation}`,
    "aria-label": `Show only the invocation ${line.invocation}`,
    onclick: () => onInvocation(line.invocation),
  }, line.invocation.slice(0, 6));
  return h("div.log-line", { "data-level": line.level },
    h("time", { datetime: line.time, title: line.time }, `${clockTime(when)}.${milliseconds}`),
    h("span.level", line.level),
    showsFunction && h("a", { href: to("functions", line.function) }, visible(line.function)),
    h("span.log-text",
      longText(line.message, { label: "message" }),
      metadata.map(([name, value]) => h("span.quiet",
        `  ${visible(name)}=`, longText(value, { max: 200, label: name })))),
    invocation);
}
