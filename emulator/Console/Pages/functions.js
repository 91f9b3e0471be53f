// The deployed functions, and one function with the form that runs it.

import { base64, defaultRegion, hub, hubLines, queue, send, session } from "./api.js";
import { card, codeArea, errorIn, facts, field, h, poll, problemLine, replace, select, setText, to,
  whenSubmitted } from "./dom.js";
import { backLink } from "./entries.js";
import { eventBadge } from "./events.js";
import { clockTime, count, counted, bound, duration, time } from "./format.js";
import { failuresCell, functionCell, lastChange, sample, stateCell, stateOf, take,
  watchFunctions } from "./function-stats.js";
import { liveTable } from "./live-table.js";
import { logList } from "./logs.js";
import { copyButton, longBlock, longText, prettyJSON, visible } from "./long-text.js";
import { userPicker } from "./user-picker.js";
import { json } from "./values.js";

const rowsMax = 200;
const eventsShown = 20;
const pollMilliseconds = 2000;
const inputCharactersMax = 200_000;
const workersShown = 20;
const headersShown = 50;

/** The filter of the list, which stays while a person looks at one function. */
let filterText = "";

export async function render(root, segments, signal) {
  if (segments.length === 0) return renderList(root, signal);
  const found = sample.functions.find((entry) => entry.name === segments[0])
    ?? (await hub("/functions", { signal })).find((entry) => entry.name === segments[0]);
  if (found) return renderFunction(root, found, signal);
  root.append(backLink("All functions", to("functions")), h("h1", visible(segments[0])),
    problemLine(`No function ${visible(segments[0])} is deployed.`));
  return undefined;
}

const triggerText = (entry) => entry.trigger ?? new URL(entry.url).pathname;

const searchTexts = new WeakMap();

/** The text that the filter searches, kept because there may be thousands of functions. */
function searchText(entry) {
  let text = searchTexts.get(entry);
  if (text === undefined) {
    text = `${entry.name} ${entry.kind} ${triggerText(entry)}`.toLowerCase();
    searchTexts.set(entry, text);
  }
  return text;
}

// MARK: List

function renderList(root, signal) {
  const input = h("input", { type: "search", value: filterText, autocomplete: "off",
    oninput: filter });
  const state = h("p.quiet", { role: "status" }, "Loading …");
  const lastLines = new Map();
  const rows = liveTable([
    { title: "Function", cell: functionCell },
    { title: "Kind", text: (item) => item.kind },
    { title: "Trigger or address", isMinor: true, text: (item) => visible(triggerText(item)) },
    { title: "State", cell: stateCell },
    { title: "Workers", isMinor: true, isNumber: true, text: (item) => item.stats?.workers ?? 0 },
    { title: "Runs", isNumber: true, text: (item) => count(item.stats?.invocations ?? 0) },
    { title: "Failures", isNumber: true, cell: failuresCell },
    { title: "p50", isMinor: true, isNumber: true,
      text: (item) => bound(item.stats?.p50Seconds) },
    { title: "p99", isMinor: true, isNumber: true,
      text: (item) => bound(item.stats?.p99Seconds) },
    { title: "Last", isMinor: true, isNumber: true, text: lastText },
  ], { label: "Functions" });

  function lastText({ name }) {
    const last = Math.max(lastChange(name) ?? 0, lastLines.get(name) ?? 0);
    return last ? clockTime(new Date(last)) : "–";
  }

  function filter() {
    filterText = input.value;
    draw();
  }

  function draw() {
    const part = filterText.trim().toLowerCase();
    const matching = sample.functions.filter((entry) => !part || searchText(entry).includes(part));
    rows.update(matching.slice(0, rowsMax).map((entry) =>
      ({ ...entry, stats: sample.stats.get(entry.name) })));
    const surplus = matching.length - rowsMax;
    setText(state, sample.functions.length === 0
      ? "No functions are deployed; `hearth deploy` deploys them."
      : surplus > 0
        ? `The first ${rowsMax}; ${count(surplus)} more match. Filter by a part of the name.`
        : `${count(matching.length)} of ${counted(sample.functions.length, "function")}`);
  }

  root.append(h("h1", "Functions"),
    h("div.toolbar", field("Filter by name, kind or trigger", input), state), rows.element);
  watchFunctions(({ error, time }) => {
    if (time) draw();
    if (error && !time) setText(state, error.message);
  }, signal);
  // The log knows when functions ran before this page was opened; without it, times are missing.
  hubLines("/logs?limit=500", { signal }).then((lines) => {
    for (const line of lines) lastLines.set(line.function, Date.parse(line.time));
    draw();
  }, () => {});
}

// MARK: One function

function renderFunction(root, entry, signal) {
  const stateBadge = h("span.badge");
  const figures = h("span");
  const takesEvents = ["trigger", "schedule", "task"].includes(entry.kind);
  replace(root,
    backLink("All functions", to("functions")),
    h("div.row.title", h("h1", visible(entry.name)), h("span.badge.quiet", entry.kind), stateBadge),
    h("div.function-columns",
      card(formTitles[entry.kind], form(entry, signal)),
      card("Details", details(entry, figures))),
    takesEvents && eventsCard(entry.name, signal),
    card("Log",
      logList({ functionName: entry.name, exact: true, signal }).element,
      h("p", h("a", { href: to("logs", "function", entry.name) }, "Search in the logs"))));

  watchFunctions(() => {
    const stats = sample.stats.get(entry.name);
    const { text, kind } = stateOf(stats);
    setText(stateBadge, text);
    stateBadge.className = `badge ${kind}`;
    setText(figures, stats ? figuresText(stats) : "–");
  }, signal);
}

function figuresText(stats) {
  const outcomes = Object.entries(stats.outcomes).filter(([, number]) => number > 0)
    .map(([name, number]) => `${count(number)} ${outcomeNames[name] ?? name}`);
  return [
    counted(stats.invocations, "run") + (outcomes.length ? ` (${outcomes.join(", ")})` : ""),
    stats.p50Seconds != null && `p50 ${bound(stats.p50Seconds)}`,
    stats.p99Seconds != null && `p99 ${bound(stats.p99Seconds)}`,
    `${count(stats.running)} running`, `${count(stats.waiting)} waiting`,
    stats.pending > 0 && `${counted(stats.pending, "event")} pending`,
    counted(stats.workers, "worker"),
    stats.workerCrashes > 0 && `${count(stats.workerCrashes)} crashed`,
    stats.waits, stats.shortage,
  ].filter(Boolean).join(" · ");
}

const outcomeNames = { timedOut: "timed out", notRun: "not run" };

function details(entry, figures) {
  return facts([
    ["Trigger", entry.trigger && h("code", visible(entry.trigger))],
    ["Address", entry.url && h("span.row", h("code", entry.url),
      copyButton("Copy", entry.url, { "aria-label": "Copy the address" }))],
    ["Figures", figures],
    ["Secrets", entry.secrets?.join(", ")],
    ["Debugger", entry.debugger && `process ${entry.debugger}`],
    ["Workers", entry.workers?.slice(0, workersShown).map(workerText).join(", ")],
  ]);
}

function workerText({ pid, memoryBytes }) {
  const memory = memoryBytes ? ` (${count(Math.round(memoryBytes / 1e6))} MB)` : "";
  return `process ${pid}${memory}`;
}

function eventsCard(name, signal) {
  const state = h("p.quiet", "Loading …");
  const rows = liveTable([
    { title: "Event", cell: ({ id }) => ({ node: h("a", { href: to("events", id) }, id) }) },
    { title: "State", cell: eventStateCell },
    { title: "Subject", isMinor: true,
      text: (item) => visible(`${item.kind} ${item.document}`).slice(0, 200) },
    { title: "Attempts", isNumber: true, isMinor: true, text: (item) => item.attempts },
    { title: "Time", cell: (item) => ({ node: time(item.time) }) },
    { title: "Error", cell: errorCell },
  ], { label: "The function's last events", key: (item) => item.id });
  const path = `/events?function=${encodeURIComponent(name)}&limit=${eventsShown}`;
  poll(async () => {
    const events = await hub(path, { signal });
    state.hidden = events.length > 0;
    setText(state, "No events yet.");
    rows.element.hidden = events.length === 0;
    rows.update(events);
  }, pollMilliseconds, signal, errorIn(state));
  return card("Last events", state, rows.element);
}

function eventStateCell() {
  const node = h("span");
  return {
    node,
    update(item) {
      if (node.textContent !== item.state) replace(node, eventBadge(item));
    },
  };
}

function errorCell() {
  const node = h("span");
  let shown;
  return {
    node,
    update(item) {
      const text = item.error ?? item.waits ?? "";
      if (text !== shown) replace(node, longText(shown = text, { max: 160, label: "error" }));
    },
  };
}

// MARK: Forms

const formTitles = {
  callable: "Call",
  http: "Send a request",
  trigger: "Fire an event",
  schedule: "Run",
  task: "Run a task",
  blocking: "Runs at sign-up and sign-in",
};

function form(entry, signal) {
  switch (entry.kind) {
    case "callable": return callForm(entry);
    case "http": return requestForm(entry);
    case "schedule": return scheduleForm(entry, signal);
    case "task": return taskForm(entry);
    case "blocking": return h("p", "Auth asks this function before it creates or signs in a user (",
      entry.trigger, "). ", h("a", { href: to("auth") }, "Create a user in Auth"),
      " to run it; its decision and its log lines appear below.");
    default: return fireForm(entry);
  }
}

/** The last input of a person for a function, kept across visits. */
function memory(name) {
  const key = `hearth-input:${session.project}:${name}`;
  let values = {};
  try {
    values = JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    // A value that another version has stored is ignored.
  }
  return {
    values,
    keep(next) {
      const text = JSON.stringify(next);
      if (text.length > inputCharactersMax) return;
      try {
        localStorage.setItem(key, text);
      } catch {
        // Without space in the storage, the input is not remembered.
      }
    },
  };
}

/**
 * A form that runs a function; its outcome is announced and shown.
 *
 * `run` gets `show(kind, text, ...content)`, `elapsed()` and the button that was pressed.
 */
function actionForm(label, body, run) {
  const status = h("p", { role: "status" });
  const value = h("div.outcome");
  const submit = h("button.primary", { type: "submit" }, label);
  const element = h("form", { onkeydown: submitByKeyboard },
    body, h("div.row", submit, h("small.quiet", "Ctrl+Enter")), status, value);

  function show(kind, text, ...content) {
    status.className = kind;
    setText(status, text);
    replace(value, ...content);
  }

  function submitByKeyboard(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    element.requestSubmit(submit);
  }

  return whenSubmitted(element, async (event) => {
    show("quiet", "Running …");
    const start = performance.now();
    const elapsed = () => duration((performance.now() - start) / 1000);
    try {
      await run({ show, elapsed, pressed: event.submitter });
    } finally {
      // The figures are sampled again anyway.
      take().catch(() => {});
    }
  }, (error) => {
    show("problem", `${error.code ? `${error.code}: ` : ""}${visible(error.message)}`);
  });
}

const regionOf = (entry) =>
  (entry.url ? new URL(entry.url).pathname.split("/")[2] : null) ?? defaultRegion;

const servicePath = (entry) =>
  `/${session.project}/${regionOf(entry)}/${encodeURIComponent(entry.name)}`;

function callForm(entry) {
  const remembered = memory(entry.name);
  const data = codeArea(remembered.values.data ?? "{}");
  const picker = userPicker();
  return actionForm("Call", [picker.element, field("Data (JSON)", data)],
    async ({ show, elapsed }) => {
      const body = { data: data.value.trim() ? json(data.value, "The data is") : null };
      const as = picker.user();
      remembered.keep({ data: data.value });
      const response = await send("functions", servicePath(entry), { body, as });
      showCallResult(await response.text(), response, show, elapsed());
    });
}

function showCallResult(text, response, show, elapsed) {
  let reply = null;
  try {
    reply = JSON.parse(text);
  } catch {
    // The response to a crash, or that of another program, may be any text.
  }
  if (response.ok && reply && "result" in reply) {
    show("good", `Succeeded in ${elapsed}`, prettyJSON(reply.result));
  } else if (reply?.error) {
    const { status = `HTTP ${response.status}`, message = "", details } = reply.error;
    show("problem", `${status}: ${visible(message).slice(0, 2000)} (${elapsed})`,
      details !== undefined && h("div", "Details", prettyJSON(details)));
  } else {
    show("problem", `HTTP ${response.status}, which is no response of a callable (${elapsed})`,
      longBlock(text, "response"));
  }
}

function requestForm(entry) {
  const remembered = memory(entry.name);
  const method = select(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"],
    { value: remembered.values.method ?? "GET" });
  const path = h("input", { value: remembered.values.path ?? "", placeholder: "/path?name=value",
    autocomplete: "off" });
  const type = h("input", { value: remembered.values.type ?? "application/json",
    autocomplete: "off" });
  const body = codeArea(remembered.values.body ?? "");
  const picker = userPicker();
  return actionForm("Send", [
    h("div.row", field("Method", method), field("Path after the function's address", path)),
    picker.element, field("Body", body), field("Content type of the body", type),
  ], async ({ show, elapsed }) => {
    const rest = path.value && !/^[/?]/.test(path.value) ? `/${path.value}` : path.value;
    const hasBody = !["GET", "HEAD"].includes(method.value) && body.value !== "";
    const as = picker.user();
    remembered.keep({ method: method.value, path: path.value, type: type.value, body: body.value });
    const response = await send("functions", servicePath(entry) + rest, {
      method: method.value,
      as,
      type: type.value,
      text: hasBody ? body.value : undefined,
    });
    const text = await response.text();
    show(response.ok ? "good" : "problem", `HTTP ${response.status} in ${elapsed()}`,
      facts([...response.headers].slice(0, headersShown).map(([name, value]) =>
        [name, longText(value, { label: name })])),
      longBlock(text, "response"));
  });
}

function fireForm(entry) {
  const [, kind, pattern] =
    /^(created|updated|deleted|written) (.+)$/.exec(entry.trigger ?? "") ?? [];
  return pattern ? documentForm(entry, kind, pattern) : eventForm(entry);
}

/** A segment of a trigger's path: a fixed text, or a wildcard with an input. */
function pathSegment(text, values) {
  const [, name, rest] = /^\{([^=}]+)(=\*\*)?\}$/.exec(text) ?? [];
  if (!name) return { text, value: () => text };
  const input = h("input", {
    value: values?.[name] ?? "",
    placeholder: name,
    "aria-label": `${name}${rest ? " (one or more segments)" : ""}`,
    autocomplete: "off",
  });
  return {
    name,
    input,
    value() {
      if (!input.value) throw new Error(`Enter ${name}.`);
      if (!rest && input.value.includes("/")) {
        throw new Error(`${name} is one segment, without "/".`);
      }
      return input.value;
    },
  };
}

function documentForm(entry, kind, pattern) {
  const remembered = memory(entry.name);
  const segments = pattern.split("/").map((text) => pathSegment(text, remembered.values.path));
  const data = kind !== "deleted" && codeArea(remembered.values.data ?? "{}");
  const before = kind !== "created"
    && codeArea(remembered.values.before ?? (kind === "written" ? "" : "{}"));
  const keep = () => remembered.keep({
    path: Object.fromEntries(segments.filter((part) => part.input)
      .map((part) => [part.name, part.input.value])),
    data: data && data.value,
    before: before && before.value,
  });
  const hint = 'Plain JSON, or Firestore\'s format with the one key "fields".';
  return actionForm("Fire", [
    h("div.field", h("strong", "Document"), h("div.path-parts", segments.map((part, index) =>
      [index > 0 && h("span", "/"), part.input ?? h("span", visible(part.text))]))),
    data && field("Data after the change (JSON)", data,
      kind === "written" ? `${hint} Empty if the document was deleted.` : hint),
    before && field("Data before the change (JSON)", before,
      kind === "written" ? "Empty if the document was created." : null),
    h("p.quiet", "The event goes to this function only, and no document is written."),
  ], async ({ show, elapsed }) => {
    const body = { document: segments.map((part) => part.value()).join("/") };
    if (data && data.value.trim()) body.data = json(data.value, "The data after the change is");
    if (before && before.value.trim()) {
      body.before = json(before.value, "The data before the change is");
    }
    keep();
    await fire(entry, body, show, elapsed);
  });
}

function eventForm(entry) {
  const remembered = memory(entry.name);
  const template = entry.trigger?.startsWith("user ") ? { data: { uid: "tina" } }
    : { ...(entry.trigger === "*" && { type: "com.example.happened" }), data: { key: "value" } };
  const event = codeArea(remembered.values.event ?? JSON.stringify(template, null, 2));
  return actionForm("Fire", [
    field("CloudEvent (JSON)", event, "Attributes that are missing get the trigger's values."),
    h("p.quiet", "The event goes to this function only."),
  ], async ({ show, elapsed }) => {
    const body = { event: json(event.value, "The event is") };
    remembered.keep({ event: event.value });
    await fire(entry, body, show, elapsed);
  });
}

async function fire(entry, body, show, elapsed) {
  const outcome = await hub(`/functions/${encodeURIComponent(entry.name)}/fire`, { body });
  if (outcome.succeeded) show("good", `Succeeded in ${duration(outcome.milliseconds / 1000)}`);
  else show("problem", `Failed after ${elapsed()}`, longBlock(outcome.error ?? "", "error"));
}

function scheduleForm(entry, signal) {
  return actionForm("Run now", [
    h("p", "Schedule: ", h("code", visible(entry.trigger ?? "")), "."),
    h("p.quiet", "Run now starts the function as if its time had come. To reach its real times, ",
      h("a", { href: to("time") }, "advance the clock"), "."),
  ], async ({ show, elapsed }) => {
    const { id } = await hub(`/functions/${encodeURIComponent(entry.name)}/run`,
      { method: "POST" });
    const link = h("p", h("a", { href: to("events", id) }, `Event ${id}`));
    for (;;) {
      const event = await hub(`/events/${encodeURIComponent(id)}`, { signal });
      const isDone = ["succeeded", "failed", "dead"].includes(event.state);
      if (event.state === "succeeded") {
        show("good", `Succeeded in ${elapsed()}`, link);
      } else if (isDone || event.error) {
        const state = isDone ? event.state : "The attempt failed";
        show("problem", `${state}: ${visible(event.error ?? "")}`, link);
      } else {
        show("quiet", `${event.state} …`, link);
      }
      if (isDone || event.error) return;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  });
}

function taskForm(entry) {
  const remembered = memory(entry.name);
  const data = codeArea(remembered.values.data ?? "{}");
  const delay = h("input", { type: "number", min: "0", step: "1", value: "0" });
  const direct = h("button", { type: "submit", value: "direct" }, "Run without the queue");
  return actionForm("Enqueue", [
    field("Data (JSON)", data), field("Seconds until it is due", delay, "By the suite's clock."),
    h("div.row", direct),
  ], async ({ show, elapsed, pressed }) => {
    const body = { data: json(data.value, "The data is") };
    remembered.keep({ data: data.value });
    if (pressed === direct) {
      const response = await send("functions", servicePath(entry), { body });
      const text = await response.text();
      show(response.ok ? "good" : "problem",
        response.ok ? `Succeeded in ${elapsed()}` : `HTTP ${response.status} in ${elapsed()}`,
        longBlock(text, "response"));
      return;
    }
    const id = await enqueue(entry.name, body, Number(delay.value));
    show("good", `Enqueued ${id}; its event is in the list below.`);
  });
}

async function enqueue(name, body, delaySeconds) {
  const task = { httpRequest: {
    httpMethod: "POST",
    url: "",
    headers: { "Content-Type": "application/json" },
    body: base64(JSON.stringify(body)),
  } };
  if (delaySeconds > 0) {
    const now = Date.parse((await hub("/clock")).now);
    task.scheduleTime = new Date(now + delaySeconds * 1000).toISOString();
  }
  const created = await queue(name, "/tasks", { body: { task } });
  return created.name.split("/").at(-1);
}
