// The functions' logs, and the list of log lines that other views show too.

import { hub, hubLines } from "./api.js";
import { count, field, h, poll, replace, to } from "./dom.js";
import { longText, visible } from "./long-text.js";

const pollMilliseconds = 1000;
const shownMax = 500;
/** How many lines are kept for a filter's change, and searched for a text. */
const keptMax = 5000;
const keptCharactersMax = 8 << 20;
const levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"];

/** Shows the logs: `#/logs`, `#/logs/function/NAME`, `#/logs/invocation/ID`. */
export async function render(root, segments, signal) {
  const filter = { functionName: "", level: "", text: "", invocation: "" };
  const names = h("datalist", { id: "log-functions" });
  const controls = {
    functionName: h("input", { list: names.id, autocomplete: "off", oninput: read }),
    level: h("select", { onchange: read }, h("option", { value: "" }, "all"),
      levels.map((level) => h("option", { value: level }, level))),
    text: h("input", { autocomplete: "off", oninput: read }),
    invocation: h("input", { autocomplete: "off", oninput: read }),
  };
  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: togglePause },
    "Pause");
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
      h("button", { type: "button", onclick: () => take([]) }, "Clear the filter")),
    list.element);
  take(segments);
  hub("/functions", { signal }).then(
    (functions) => replace(names, functions.slice(0, 1000).map((entry) =>
      h("option", { value: entry.name }))),
    () => {});
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
 * All filters are optional. `functionName` and `text` match parts, `invocation` the beginning,
 * `level` this level and the higher ones. With `exact`, `functionName` is the whole name.
 * `onInvocation(id)` is called if a line's invocation is chosen; without it, lines do not show it.
 * The newest line stays in view unless the reader has scrolled up. At most 500 lines are drawn.
 */
export function logList({
  functionName = "", level = "", text = "", invocation = "", exact = false, onInvocation = null,
  label = "Log lines", signal,
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
  const lines = h("div.log", { role: "log", "aria-live": "off", "aria-label": label,
    tabindex: "0" });
  const status = h("span.quiet", "Loading …");
  const newest = h("button", { type: "button", hidden: true, onclick: showNewest });
  const element = h("div.log-list.view", lines, h("div.log-foot", newest, status));
  lines.addEventListener("scroll", () => { if (isAtEnd()) announce(0); });

  const isAtEnd = () => lines.scrollHeight - lines.scrollTop - lines.clientHeight < 12;

  function showNewest() {
    lines.scrollTop = lines.scrollHeight;
    announce(0);
  }

  function announce(number) {
    unseen = number;
    newest.hidden = unseen === 0;
    newest.textContent = `Show ${count(unseen)} new ${unseen === 1 ? "line" : "lines"} ↓`;
  }

  /** The server filters by a whole name only; a part of a name is looked for here. */
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

  /** Loads once at a time, and once more if the filter has changed meanwhile. */
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
    // A search looks through more lines than are drawn; they are loaded once.
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
    // Lines that came faster than they could be read are missing in between.
    const isGap = received.length === limit && fresh.length === received.length;
    keep(fresh);
    append(fresh.filter(passes), isGap);
  }

  /** The lines that follow the kept ones; those of the last kept moment are sent once more. */
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
    replace(lines, passing.map((line) => logLine(line, { onInvocation, exact })));
    tell();
    showNewest();
  }

  function append(added, isGap) {
    if (added.length === 0 && !isGap) return;
    const wasAtEnd = isAtEnd();
    const shown = added.slice(-shownMax);
    if (isGap) lines.append(h("div.log-gap", "Some lines are not shown: they came too fast."));
    lines.append(...shown.map((line) => logLine(line, { onInvocation, exact })));
    while (lines.childElementCount > shownMax) lines.firstElementChild.remove();
    tell();
    if (wasAtEnd) showNewest();
    else announce(unseen + shown.length);
  }

  function tell() {
    const number = lines.childElementCount;
    if (isPaused) status.textContent = "Paused.";
    else if (number === 0) {
      const isFiltered = filter.level || filter.text || filter.invocation
        || (filter.functionName && !exact);
      status.textContent = `No lines ${isFiltered ? "match" : "yet"}. New ones appear here.`;
    }
    else {
      const lines = `${count(number)} ${number === 1 ? "line" : "lines"}.`;
      status.textContent = number >= shownMax ? `The last ${lines}` : lines;
    }
  }

  poll(load, pollMilliseconds, signal, (error) => {
    status.textContent = `The log cannot be read: ${error.message}`;
  });

  return {
    element,
    setFilter(change) {
      const next = { ...filter, ...change };
      const isOther = next.level !== filter.level
        || (exact && next.functionName !== filter.functionName);
      filter = next;
      if (isOther) {
        // What the server has left out is missing among the kept lines.
        kept = [];
        isLoadedDeep = false;
      }
      generation += 1;
      draw();
      load().catch((error) => {
        if (error.name !== "AbortError") status.textContent = error.message;
      });
    },
    setPaused(value) {
      isPaused = value;
      tell();
    },
  };
}

const contains = (text, part) => text.toLowerCase().includes(part.toLowerCase());

const size = (line) => line.message.length + 100
  + Object.values(line.metadata ?? {}).reduce((sum, value) => sum + value.length, 0);

function logLine(line, { onInvocation, exact }) {
  const when = new Date(line.time);
  const element = h("div.log-line",
    h("time", { datetime: line.time, title: line.time }, clockTime(when)),
    h("span.level", { "data-level": line.level }, line.level),
    !exact && h("a", { href: to("functions", line.function) }, visible(line.function)),
    h("span.log-text",
      longText(line.message, { label: "message" }),
      Object.entries(line.metadata ?? {}).sort().map(([name, value]) => h("span.quiet",
        `  ${visible(name)}=`, longText(value, { max: 200, label: name })))),
    line.invocation && onInvocation && h("button.plain", {
      type: "button",
      title: `Show only the invocation ${line.invocation}`,
      "aria-label": `Show only the invocation ${line.invocation}`,
      onclick: () => onInvocation(line.invocation),
    }, line.invocation.slice(0, 6)));
  element.dataset.level = line.level;
  return element;
}

function clockTime(date) {
  const text = date.toLocaleTimeString("en-GB");
  return `${text}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
