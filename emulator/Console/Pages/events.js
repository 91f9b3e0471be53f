// Events: their deliveries to functions, why one failed or waits, and what it caused.

import { hub, hubLines } from "./api.js";
import { ask, attempt, button, count, field, h, poll, replace, time, toast, to } from "./dom.js";
import { badge, brief, choice, entryList, facts, focusHeading, whenStill } from "./entries.js";
import { longText } from "./long-text.js";

/** The most events that the control API returns at once. */
const eventsMax = 1000;
const logLinesMax = 200;

const kinds = {
  failed: "bad", dead: "bad", pending: "warn", running: "warn", succeeded: "good",
};
const isSettledBadly = (event) => event.state === "failed" || event.state === "dead";
const path = (id, action = "") => `/events/${encodeURIComponent(id)}${action}`;

export async function render(root, segments, signal) {
  const filter = { state: "", function: "", text: "" };
  let problems = [];
  let others = [];
  let chosen = null;
  let isLoaded = false;

  // MARK: The list

  const functions = h("select", { onchange: change }, h("option", { value: "" }, "all functions"));
  const text = h("input", { type: "search", placeholder: "id, document, error …",
    oninput: whenStill(() => {
      filter.text = text.value.trim().toLowerCase();
      list.reset();
      show();
    }) });
  const summary = h("p.quiet", { role: "status" });
  const retryAll = button("Retry all failed and dead", retryFailed);
  const discardAll = button("Discard …", discardMany, { kind: "danger" });
  const list = entryList({
    label: "Events", key: (event) => event.id, state: (event) =>
      JSON.stringify(event) + (event.id === chosen),
    entry, empty: () => filter.state || filter.function || filter.text
      ? "No event matches the filter." : "No events yet. A write that matches a trigger makes one.",
  });

  function change() {
    filter.function = functions.value;
    list.reset();
    load();
  }

  function entry(event) {
    const error = event.error ?? event.waits;
    return h("li", h("a.entry.event", { href: to("events", event.id),
      "aria-current": event.id === chosen ? "true" : null },
    badge(event.state, kinds[event.state]),
    h("b", brief(event.function)),
    h("span.what", event.kind, " ", brief(event.document)),
    h("span.quiet.when", time(event.time), event.attempts > 1 && ` · ${event.attempts} attempts`),
    error && h(isSettledBadly(event) ? "span.why.bad" : "span.why.warn", brief(error, 220))));
  }

  const query = (values) => new URLSearchParams(
    Object.entries(values).filter(([, value]) => value)).toString();

  async function load() {
    const limit = filter.text ? eventsMax : 300;
    const of = (state) => hub(`/events?${query({ state, function: filter.function, limit })}`,
      { signal });
    if (filter.state) {
      [problems, others] = [[], await of(filter.state)];
    } else {
      const [failed, dead, all] = await Promise.all([of("failed"), of("dead"), of("")]);
      problems = [...failed, ...dead].sort((a, b) => (a.time < b.time ? 1 : -1));
      others = all.filter((event) => !isSettledBadly(event));
    }
    isLoaded = true;
    show();
  }

  function show() {
    if (!isLoaded) return;
    const matches = (event) => !filter.text || [event.id, event.function, event.document,
      event.kind,
      event.error, event.waits].some((value) => value?.toLowerCase().includes(filter.text));
    const shown = [...problems, ...others].filter(matches);
    const bad = shown.filter(isSettledBadly).length;
    list.show(shown);
    const words = `${count(shown.length)} ${shown.length === 1 ? "event" : "events"}${
      bad ? `, ${count(bad)} failed or dead${filter.state ? "" : " (first)"}` : ""}`;
    if (summary.textContent !== words) summary.textContent = words;
  }

  async function retryFailed() {
    const state = ["failed", "dead"].includes(filter.state) ? filter.state : "";
    const { count: number } = await hub(
      `/events/retry?${query({ state, function: filter.function })}`, { method: "POST" });
    toast(`${count(number)} ${number === 1 ? "event is" : "events are"} pending again.`);
    await load();
  }

  async function discardMany() {
    const state = h("select", ["failed", "dead", "pending"].map((name) => h("option", name)));
    if (["failed", "dead", "pending"].includes(filter.state)) state.value = filter.state;
    await ask({
      title: "Discard events",
      body: [h("p", "Discarded events never reach their function. This covers ",
        filter.function ? h("span", "the events of ", h("b", brief(filter.function)))
          : "all functions",
        "; the text filter does not restrict it."), field("State", state)],
      action: "Discard all", isDangerous: true,
      read: async () => {
        const { count: number } = await hub(
          `/events/discard?${query({ state: state.value, function: filter.function })}`,
          { method: "POST" });
        toast(`${count(number)} ${number === 1 ? "event" : "events"} discarded.`);
      },
    });
    await load();
  }

  // MARK: Frame

  const detail = h("section.detail", { "aria-label": "Event" });
  root.classList.add("split");
  root.append(h("h1", "Events"),
    h("section.list",
      h("div.toolbar",
        choice("State", [["", "all, failed first"], ["failed", "failed"], ["dead", "dead"],
          ["pending", "pending"], ["running", "running"], ["succeeded", "succeeded"]], "",
        (state) => {
          filter.state = state;
          retryAll.textContent = `Retry all ${
            ["failed", "dead"].includes(state) ? state : "failed and dead"}`;
          list.reset();
          attempt(load);
        }),
        field("Function", functions), field("Text", text)),
      h("div.toolbar", retryAll, discardAll, summary),
      list.element),
    detail);

  hub("/functions", { signal }).then((all) => functions.append(...all
    .filter((one) => one.kind !== "callable" && one.kind !== "http")
    .map((one) => h("option", { value: one.name }, one.name)))).catch(() => {});

  let leaveDetail = new AbortController();

  function choose(id) {
    chosen = id ?? null;
    leaveDetail.abort();
    leaveDetail = new AbortController();
    const leave = () => leaveDetail.abort();
    signal.addEventListener("abort", leave, { once: true });
    root.classList.toggle("has-detail", chosen !== null);
    replace(detail);
    show();
    if (chosen !== null) showEvent(detail, chosen, leaveDetail.signal);
  }

  choose(segments[0]);
  await poll(load, 1000, signal, (error) => { summary.textContent = error.message; });
  return (moved) => {
    choose(moved[0]);
    return true;
  };
}

// MARK: - One event

async function showEvent(root, id, signal) {
  const state = h("div", { "aria-live": "polite" });
  const actions = h("div.row");
  const logs = h("div");
  const chain = h("div");
  let seen = "";
  let seenChain = "";
  const retry = button("Retry", async () => {
    await hub(path(id, "/retry"), { method: "POST" });
    toast("The event is pending again.");
    await load();
  }, { kind: "primary" });
  const discard = button("Discard", () => ask({
    title: "Discard this event?",
    body: h("p", "The function never receives it."), action: "Discard", isDangerous: true,
    read: async () => {
      // A failed or dead event is deleted; a pending one stays, as a dead one.
      const isDeleted = isSettledBadly(event);
      await hub(path(id, "/discard"), { method: "POST" });
      if (isDeleted) leave("The event is discarded and no longer kept.");
      else toast("The event is discarded.");
    },
  }).then(load), { kind: "danger" });

  replace(root,
    h("p.back", h("a", { href: to("events") }, "← All events")),
    h("h2", "Event ", h("code", brief(id))), state, actions,
    h("h3", "What caused it, and what it caused"), chain,
    h("h3", "Log lines"), logs);
  focusHeading(root);

  let event = null;
  let isGone = false;

  /** Shows that the event is not kept; nothing is asked for any more. */
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
      leave(event ? "The event is no longer kept: newer ones took its place." : error.message);
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
    retry.hidden = !isSettledBadly(event);
    discard.hidden = event.state === "succeeded";
    if (!retry.isConnected) actions.append(retry, discard);
    replace(state, facts([
      ["State", [badge(event.state, kinds[event.state]), " ", explained(event)]],
      ["Error", event.error && h("div.problem", longText(event.error, { max: 2000,
        label: "error" }))],
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
    await showLogs(logs, event, signal);
  }

  await poll(loadMore, 1000, signal, (error) => replace(state, h("p.problem", error.message)));
}

function explained(event) {
  switch (event.state) {
    case "failed": return "The handler failed, and its function does not retry.";
    case "dead": return "Given up: no attempt follows.";
    case "pending": return event.attempts ? "It is tried again later."
      : "It waits for its first attempt.";
    case "running": return "An attempt runs.";
    default: return "";
  }
}

const isDocument = (event) => ["created", "updated", "deleted", "written"].includes(event.kind);

function subject(event) {
  if (!event.document) return "";
  return isDocument(event)
    ? h("a", { href: to("firestore", ...event.document.split("/")) }, brief(event.document))
    : brief(event.document);
}

// MARK: - Causes

const causesMax = 100;
const nodesMax = 300;
const siblingsMax = 20;
/** `12.0`: the write of an event, which several functions may receive. */
const writeOf = (event) => event.id.split(".", 2).join(".");
const commitOf = (event) => event.id.split(".", 1)[0];
/** Events never change their cause, and those of a long chain are many. */
const causes = new Map();

/** The events that led to an event, those of the same commits, and those that they caused. */
async function related(event, signal) {
  const recent = await hub(`/events?limit=${eventsMax}`, { signal });
  const known = new Map([...recent, event].map((one) => [one.id, one]));
  const line = [event];
  let lost = null;
  while (line[0].cause && line.length <= causesMax) {
    const id = line[0].cause;
    try {
      const cause = known.get(id) ?? causes.get(id) ?? await hub(path(id), { signal });
      if (causes.size > 1000) causes.clear();
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
  const commit = [...writes.keys()].filter((write) => write.split(".", 1)[0] === commitOf(first)
    && (writes.get(write)[0].cause ?? null) === (first.cause ?? null));
  const found = { root: first, writes, caused, onPath, lost, commit };
  found.shape = [lost, line.length > causesMax, commit, [...known.values()]
    .filter((one) => commit.includes(writeOf(one)) || one.cause || caused.has(one.id))
    .map((one) => [one.id, one.state])];
  return found;
}

/** The writes and functions as nested lists; lines drawn by the style connect them. */
function causeTree({ root, writes, caused, onPath, lost, commit }, chosen) {
  let nodes = 0;
  const order = (a, b) => (a.split(".")[0] - b.split(".")[0])
    || (a.split(".")[1] - b.split(".")[1]);

  const pathFirst = (all, isOnPath) => {
    const shown = [...all.filter(isOnPath), ...all.filter((one) => !isOnPath(one))]
      .slice(0, siblingsMax);
    const rest = all.length - shown.length;
    return [all.filter((one) => shown.includes(one)), rest];
  };

  function writeList(names, kind) {
    const [shown, rest] = pathFirst([...names].sort(order), (name) => onPath.has(name));
    return h(`ul${kind}`, shown.map(writeItem),
      rest > 0 && h("li", h("span.quiet", `and ${count(rest)} more writes`)));
  }

  function writeItem(name) {
    const events = writes.get(name);
    const event = events[0];
    nodes += 1;
    return h("li", h("span.node.write", h("span.role", isDocument(event) ? "write" : "event"),
      ` ${event.kind} `, subject(event), h("span.quiet", " ", name)),
    h("ul", events.map(deliveryItem)));
  }

  function deliveryItem(event) {
    nodes += 1;
    const isChosen = event.id === chosen;
    const next = caused.get(event.id) ?? [];
    const isFull = nodes > nodesMax && !onPath.has(event.id);
    return h("li", h("span.node", { "aria-current": isChosen ? "true" : null },
      h("span.role", "function"), " ",
      isChosen ? h("b", brief(event.function), " (this event)")
        : h("a", { href: to("events", event.id) }, brief(event.function)),
      " ", badge(event.state, kinds[event.state])),
    next.length > 0 && (isFull ? h("ul", h("li", `${count(next.length)} more writes`))
      : writeList(next, "")));
  }

  const origin = lost ? `Event ${lost}, which is no longer kept`
    : root.cause ? `Event ${root.cause}; earlier causes are not shown`
    : !isDocument(root) ? "Begin of the chain"
    : "Commit of a client, a callable function or a server";
  return h("div.scroll.tree", h("p.quiet", brief(origin), " · ", time(root.time)),
    writeList(commit, ".causes"));
}

// MARK: - Log lines

async function showLogs(element, event, signal) {
  const lines = await hubLines(`/logs?function=${encodeURIComponent(event.function)}`
    + `&trace=${event.trace ?? ""}&limit=${logLinesMax}`, { signal });
  const text = JSON.stringify(lines);
  if (element.dataset.seen === text) return;
  element.dataset.seen = text;
  const note = lines.length ? "Lines of this function in the event's trace, oldest first."
    : event.attempts || event.state === "running" ? "The function wrote no lines."
    : "The function has not run for it yet.";
  replace(element, h("p.quiet", note), lines.length > 0 && h("ol.log-lines", lines.map(logLine)));
}

function logLine(line) {
  const kind = ["error", "critical"].includes(line.level) ? "bad"
    : line.level === "warning" ? "warn" : "quiet";
  const details = Object.entries(line.metadata ?? {});
  return h("li", h("span.quiet", time(line.time)), " ", h(`span.${kind}`, line.level), " ",
    longText(line.message, { label: "line" }),
    details.length > 0 && h("span.quiet", details.slice(0, 30).map(([name, value]) =>
      h("span.pair", ` ${name}=`, longText(value, { max: 300 })))));
}
