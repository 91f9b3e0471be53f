// Events: their deliveries to functions, why one failed or waits, and what it caused.

import { hub, hubLines } from "./api.js";
import { ask, attempt, badge, button, choice, debounced, errorIn, facts, field, h, poll, replace,
  select, setText, to, toast, toPath } from "./dom.js";
import { backLink, detailPane, entryList, fillPane } from "./entries.js";
import { count, counted, time } from "./format.js";
import { logLine } from "./logs.js";
import { brief, longText } from "./long-text.js";

const pollMilliseconds = 1000;
/** The most events that the control API returns at once. */
const eventsMax = 1000;
const eventsShown = 300;
const logLinesMax = 200;

const kinds = {
  failed: "bad",
  dead: "bad",
  pending: "warn",
  running: "good",
  succeeded: "good",
};
const discardable = ["failed", "dead", "pending"];

/** The state of an event with its color. */
export const eventBadge = (event) => badge(event.state, kinds[event.state]);

/** Final states that a person can change by a retry. */
const isFailed = ({ state }) => state === "failed" || state === "dead";
/** Events whose last attempt has failed and that are tried again later. */
const isRetried = ({ state, error }) => state === "pending" && Boolean(error);
const path = (id, action = "") => `/events/${encodeURIComponent(id)}${action}`;

export async function render(root, segments, signal) {
  const filter = { state: "", function: "", text: "" };
  let problems = [];
  let others = [];
  let chosen = null;
  let isLoaded = false;

  const functions = select([["", "all functions"]], { onchange: reload });
  const text = h("input", {
    type: "search",
    placeholder: "ID, document, error …",
    oninput: debounced(() => {
      filter.text = text.value.trim().toLowerCase();
      list.reset();
      attempt(load);
    }),
  });
  const summary = h("p.quiet", { role: "status" });
  const retryAll = button("Retry all failed and dead", retryFailed);
  const discardAll = button("Discard events", discardMany, { kind: "danger" });
  const list = entryList({
    label: "Events",
    key: (event) => event.id,
    state: (event) => JSON.stringify(event) + (event.id === chosen),
    entry,
    empty: () => filter.state || filter.function || filter.text
      ? "No event matches the filter." : "No events yet. A write that matches a trigger makes one.",
  });
  const detail = detailPane(root, { label: "Event", signal, show: showEvent });

  function reload() {
    filter.function = functions.value;
    list.reset();
    attempt(load);
  }

  function entry(event) {
    const error = event.error ?? event.waits;
    return h("li", h("a.entry",
      { href: to("events", event.id), "aria-current": event.id === chosen },
      eventBadge(event),
      h("b", brief(event.function)),
      h("span.what", event.kind, " ", brief(event.document)),
      h("span.quiet.when", time(event.time),
        event.attempts > 1 && ` · ${counted(event.attempts, "attempt")}`),
      error && h(isFailed(event) ? "span.why.bad" : "span.why.warn", brief(error, 220))));
  }

  const query = (values) => new URLSearchParams(
    Object.entries(values).filter(([, value]) => value)).toString();

  async function load() {
    const limit = filter.text ? eventsMax : eventsShown;
    const of = (state) => hub(`/events?${query({ state, function: filter.function, limit })}`,
      { signal });
    if (filter.state) {
      [problems, others] = [[], await of(filter.state)];
    } else {
      const [failed, dead, pending, all] =
        await Promise.all([of("failed"), of("dead"), of("pending"), of("")]);
      problems = [...failed, ...dead, ...pending.filter(isRetried)]
        .sort((a, b) => (a.time < b.time ? 1 : -1));
      others = all.filter((event) => !isFailed(event) && !isRetried(event));
    }
    isLoaded = true;
    show();
  }

  const matches = ({ id, function: name, document, kind, error, waits }) => !filter.text
    || [id, name, document, kind, error, waits].some((value) =>
      value?.toLowerCase().includes(filter.text));

  function show() {
    if (!isLoaded) return;
    const shown = [...problems, ...others].filter(matches);
    const failed = shown.filter(isFailed).length;
    const retried = shown.filter(isRetried).length;
    list.show(shown);
    setText(summary, [
      others.length >= eventsShown ? `the newest ${counted(shown.length, "event")}`
        : counted(shown.length, "event"),
      failed && `${count(failed)} failed or dead`,
      retried && `${count(retried)} to be tried again`,
    ].filter(Boolean).join(", "));
  }

  async function retryFailed() {
    const state = isFailed(filter) ? filter.state : "";
    const { count: number } = await hub(
      `/events/retry?${query({ state, function: filter.function })}`, { method: "POST" });
    toast(`${counted(number, "event is", "events are")} pending again.`);
    await load();
  }

  async function discardMany() {
    const state = select(discardable,
      { value: discardable.includes(filter.state) ? filter.state : discardable[0] });
    await ask({
      title: "Discard events",
      body: [
        h("p", "Discarded events never reach their function. This covers ",
          filter.function ? ["the events of ", h("b", brief(filter.function))] : "all functions",
          "; the text filter does not restrict it."),
        field("State", state),
      ],
      action: "Discard all",
      isDangerous: true,
      read: async () => {
        const { count: number } = await hub(
          `/events/discard?${query({ state: state.value, function: filter.function })}`,
          { method: "POST" });
        toast(`${counted(number, "event is", "events are")} discarded.`);
      },
    });
    await load();
  }

  function choose(id) {
    chosen = id ?? null;
    show();
    detail.choose(chosen);
  }

  function chooseState(state) {
    filter.state = state;
    setText(retryAll, `Retry all ${isFailed({ state }) ? state : "failed and dead"}`);
    list.reset();
    attempt(load);
  }

  const states = [["", "all, failed first"], ...Object.keys(kinds).map((state) => [state, state])];
  root.classList.add("split");
  root.append(h("h1", "Events"),
    h("section.list",
      h("div.toolbar", choice("State", states, "", chooseState), field("Function", functions),
        field("Text", text)),
      h("div.toolbar", retryAll, discardAll, summary),
      list.element),
    detail.element);

  // Without the names of the functions, the list can still be filtered by a text.
  hub("/functions", { signal }).then((all) => functions.append(...all
    .filter(({ kind }) => kind !== "callable" && kind !== "http")
    .map(({ name }) => h("option", { value: name }, name)))).catch(() => {});

  choose(segments[0]);
  await poll(load, pollMilliseconds, signal, errorIn(summary));
  return (moved) => {
    choose(moved[0]);
    return true;
  };
}

// MARK: One event

async function showEvent(root, id, signal) {
  const state = h("div", { "aria-live": "polite" });
  const logs = h("div");
  const reason = h("div");
  const chain = h("div");
  let event = null;
  let isGone = false;
  let seen = "";
  let seenChain = "";
  const retry = button("Retry", async () => {
    await hub(path(id, "/retry"), { method: "POST" });
    toast("The event is pending again.");
    await load();
    // Most attempts end sooner than the next poll, which also shows the error of these.
    for (const wait of [150, 400, 700]) setTimeout(() => loadMore().catch(() => {}), wait);
  }, { kind: "primary" });
  const discard = button("Discard", async () => {
    await ask({
      title: "Discard this event?",
      body: h("p", "The function never receives it."),
      action: "Discard",
      isDangerous: true,
      async read() {
        // A failed or dead event is deleted; a pending one stays, as a dead event.
        const isDeleted = isFailed(event);
        await hub(path(id, "/discard"), { method: "POST" });
        if (isDeleted) leave("The event is discarded and no longer kept.");
        else toast("The event is discarded.");
      },
    });
    await load();
  }, { kind: "danger" });
  const actions = h("div.row", { hidden: true }, retry, discard);

  fillPane(root, backLink("All events", to("events")),
    h("h2", "Event ", h("code", brief(id))), state, reason, actions,
    h("h3", { id: "event-log" }, "Log lines"), logs,
    h("h3", "What caused it, and what it caused"), chain);

  /** Shows that the event is not kept, and stops asking for it. */
  function leave(words) {
    isGone = true;
    actions.hidden = true;
    replace(state, h("p.problem", words));
  }

  async function load() {
    if (isGone) return;
    let found;
    try {
      found = await hub(path(id), { signal });
    } catch (error) {
      if (error.status !== 404 && error.status !== 400) throw error;
      leave(event ? "The event is no longer kept: newer events took its place." : error.message);
      return;
    }
    if (isGone) return;
    event = found;
    const text = JSON.stringify(event);
    if (text !== seen) {
      seen = text;
      showState();
    }
  }

  function showState() {
    retry.hidden = !isFailed(event);
    discard.hidden = event.state === "succeeded";
    actions.hidden = false;
    replace(state, facts([
      ["State", [eventBadge(event), " ", explained(event)]],
      ["Error", event.error
        && h("div.problem", longText(event.error, { max: 2000, label: "error" }))],
      ["Waits", event.waits && longText(event.waits)],
      ["Next attempt", event.due && time(event.due)],
      ["Function", h("a", { href: to("functions", event.function) }, brief(event.function))],
      ["Event", [event.kind, " ", subject(event)]],
      ["Time", time(event.time)],
      ["Attempts", String(event.attempts)],
      ["Crashes", event.crashes ? String(event.crashes) : null],
      ["Settled", event.settled && time(event.settled)],
    ]));
  }

  async function loadMore() {
    await load();
    if (isGone || !event) return;
    const found = await related(event, signal);
    const text = JSON.stringify(found.shape);
    if (text !== seenChain) {
      seenChain = text;
      const { scrollLeft } = chain.firstElementChild ?? { scrollLeft: 0 };
      replace(chain, causeTree(found, id));
      chain.firstElementChild.scrollLeft = scrollLeft;
    }
    const lines = await showLogs(logs, event, signal);
    // Clients get no details of a handler's error, so only the log has them.
    const last = isFailed(event) || isRetried(event)
      ? lines.findLast((line) => line.level === "error" || line.metadata.error) : null;
    replace(reason, last && facts([["Reason",
      h("div.problem", longText(last.metadata.error ?? last.message, { max: 2000 }))]]));
  }

  await poll(loadMore, pollMilliseconds, signal, (error) => {
    // The next success draws the event again.
    seen = "";
    replace(state, h("p.problem", error.message));
  });
}

function explained(event) {
  switch (event.state) {
    case "failed": return "The handler failed, and the function has no retries.";
    case "dead": return "Given up: no attempt follows.";
    case "pending": return event.attempts ? "It waits for its next attempt."
      : "It waits for its first attempt.";
    case "running": return "An attempt is running.";
    default: return "";
  }
}

const isDocument = (event) => ["created", "updated", "deleted", "written"].includes(event.kind);

function subject(event) {
  if (!event.document) return "";
  return isDocument(event)
    ? h("a", { href: toPath(event.document) }, brief(event.document))
    : brief(event.document);
}

// MARK: Causes

const causesMax = 100;
const nodesMax = 300;
const siblingsMax = 20;
const cachedMax = 1000;
/** The write of an event, such as `12.0`; several functions may receive it. */
const writeOf = (event) => event.id.split(".", 2).join(".");
const commitOf = (event) => event.id.split(".", 1)[0];
/** Events by ID, kept because a chain is long and the cause of an event never changes. */
const causes = new Map();

/** The events that led to an event, those of the same commit, and the events that they caused. */
async function related(event, signal) {
  const recent = await hub(`/events?limit=${eventsMax}`, { signal });
  const known = new Map([...recent, event].map((one) => [one.id, one]));
  const line = [event];
  let lost = null;
  while (line[0].cause && line.length <= causesMax) {
    const id = line[0].cause;
    try {
      const cause = known.get(id) ?? causes.get(id) ?? await hub(path(id), { signal });
      if (causes.size > cachedMax) causes.clear();
      causes.set(id, cause);
      known.set(id, cause);
      line.unshift(cause);
    } catch (error) {
      if (error.status !== 404) throw error;
      lost = id;
      break;
    }
  }
  const writes = new Map();
  const caused = new Map();
  const add = (map, key, value) => map.set(key, [...(map.get(key) ?? []), value]);
  for (const one of known.values()) add(writes, writeOf(one), one);
  for (const [write, events] of writes) {
    events.sort((a, b) => (a.function < b.function ? -1 : 1));
    if (events[0].cause) add(caused, events[0].cause, write);
  }
  const onPath = new Set(line.flatMap((one) => [one.id, writeOf(one)]));
  const first = line[0];
  const commit = [...writes.keys()].filter((write) => {
    const [one] = writes.get(write);
    return commitOf(one) === commitOf(first) && (one.cause ?? null) === (first.cause ?? null);
  });
  const inPicture = [...known.values()]
    .filter((one) => commit.includes(writeOf(one)) || one.cause || caused.has(one.id))
    .map((one) => [one.id, one.state]);
  // The tree is drawn again only if its shape has changed.
  const shape = [lost, line.length > causesMax, commit, inPicture];
  return { root: first, writes, caused, onPath, lost, commit, shape };
}

/** The writes and functions as nested lists; the style sheet connects them with lines. */
function causeTree({ root, writes, caused, onPath, lost, commit }, chosen) {
  let nodes = 0;
  const order = (a, b) => (a.split(".")[0] - b.split(".")[0])
    || (a.split(".")[1] - b.split(".")[1]);

  /** The writes in their order; if there are too many, those on the path to the event stay. */
  function writeList(names, selector) {
    const all = [...names].sort(order);
    const kept = new Set([...all.filter((name) => onPath.has(name)),
      ...all.filter((name) => !onPath.has(name))].slice(0, siblingsMax));
    const rest = all.length - kept.size;
    return h(selector, all.filter((name) => kept.has(name)).map(writeItem),
      rest > 0 && h("li", h("span.quiet", counted(rest, "more write"))));
  }

  function writeItem(name) {
    const events = writes.get(name);
    const event = events[0];
    nodes += 1;
    return h("li",
      h("span.node.write", h("span.role", isDocument(event) ? "write" : "event"),
        ` ${event.kind} `, subject(event), h("span.quiet", " ", name)),
      h("ul", events.map(deliveryItem)));
  }

  function deliveryItem(event) {
    nodes += 1;
    const isChosen = event.id === chosen;
    const next = caused.get(event.id) ?? [];
    const isFull = nodes > nodesMax && !onPath.has(event.id);
    return h("li",
      h("span.node", { "aria-current": isChosen },
        h("span.role", "function"), " ",
        isChosen ? h("b", brief(event.function), " (this event)")
          : h("a", { href: to("events", event.id) }, brief(event.function)),
        " ", eventBadge(event)),
      next.length > 0 && (isFull ? h("ul", h("li", counted(next.length, "more write")))
        : writeList(next, "ul")));
  }

  const origin = lost ? `Event ${lost}, which is no longer kept`
    : root.cause ? `Event ${root.cause}; earlier causes are not shown`
    : !isDocument(root) ? "Start of the chain"
    : "Commit of a client, a callable function or a server";
  return h("div.scroll.tree", h("p.quiet", brief(origin), " · ", time(root.time)),
    writeList(commit, "ul.causes"));
}

// MARK: Log lines

async function showLogs(element, event, signal) {
  const lines = await hubLines(`/logs?function=${encodeURIComponent(event.function)}`
    + `&trace=${event.trace ?? ""}&limit=${logLinesMax}`, { signal });
  const text = JSON.stringify(lines);
  if (element.dataset.seen === text) return lines;
  element.dataset.seen = text;
  const note = lines.length ? "Lines of this function in the event's trace, oldest first."
    : event.attempts || event.state === "running" ? "The function wrote no lines."
    : "The function has not run for it yet.";
  replace(element, h("p.quiet", note), lines.length > 0 && h("div.log.log-lines",
    { role: "log", "aria-live": "off", "aria-labelledby": "event-log", tabindex: "0" },
    lines.map((line) => logLine(line))));
  return lines;
}
