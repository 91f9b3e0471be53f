// The suite at a glance: its services, what its functions do, and what is wrong now.

import { hub, request, session } from "./api.js";
import { button, count, duration, h, poll, replace, to } from "./dom.js";
import { failures, sample, series, sparkline, watchFunctions } from "./function-stats.js";
import { failuresCell, functionCell, stateCell } from "./functions.js";
import { keyedChildren, liveTable } from "./live-table.js";
import { copyButton, visible } from "./long-text.js";
import { faultsInWords, setTriggers, span } from "./time.js";

const pollMilliseconds = 2000;
const rowsMax = 40;
/** How many problems of one kind are listed; the others are counted. */
const problemsOfKindMax = 4;
const eventsCounted = 100;
const denialMinutes = 5;
const defaultRegion = "us-central1";

/** The crashes that were dismissed, by function, until there are more. */
const dismissed = new Map();

export async function render(root, segments, signal) {
  const hasFunctions = Boolean(session.services.functions);
  replace(root, h("h1", "Home"), h("div.home-columns",
    h("div", problemsCard(signal), hasFunctions && functionsCard(signal)),
    h("div", servicesCard(), connectCard())));
}

// MARK: What is wrong now

function problemsCard(signal) {
  const state = h("p", { role: "status" }, "Looking …");
  const list = h("ul.problems");
  const rows = keyedChildren(list, { key: (problem) => problem.key, make: problemRow });

  async function look() {
    const found = limited(await problems(signal));
    if (signal.aborted) return;
    rows.update(found);
    const isWell = found.every((problem) => problem.kind === "note");
    const text = found.length === 0 ? "All is well."
      : isWell ? "Nothing is wrong; mind this:"
        : `${found.length} ${found.length === 1 ? "thing needs" : "things need"} attention.`;
    if (state.textContent !== text) state.textContent = text;
    state.className = isWell ? "good" : "bad";
  }

  function problemRow(problem) {
    const text = h("span");
    const actions = (problem.actions ?? []).map(({ label, run }) => button(label, async () => {
      await run();
      await look();
    }));
    const links = (problem.links ?? []).map(([label, ...segments]) =>
      h("a", { href: to(...segments) }, label));
    return {
      node: h(`li.${problem.kind}`, text, actions, links),
      update(next) {
        if (text.textContent !== next.text) text.textContent = next.text;
      },
    };
  }

  poll(look, pollMilliseconds, signal, (error) => { state.textContent = error.message; });
  return h("section.card", { "aria-labelledby": "problems-title" },
    h("h2", { id: "problems-title" }, "What is wrong now"), state, list);
}

/** At most some problems of each kind, and one that counts the others. */
function limited(found) {
  const kinds = new Map();
  for (const problem of found) {
    const group = problem.group ?? problem.key;
    kinds.set(group, [...(kinds.get(group) ?? []), problem]);
  }
  return [...kinds].flatMap(([group, problems]) => {
    const surplus = problems.length - problemsOfKindMax;
    if (surplus <= 0) return problems;
    return [...problems.slice(0, problemsOfKindMax), {
      key: `${group} more`,
      kind: problems[0].kind,
      text: `${count(surplus)} more functions have this problem.`,
      links: [["See the functions", "functions"]],
    }];
  });
}

/** Everything that needs attention: `key`, `kind` (bad, warn, note), `text`, `actions`, `links`. */
async function problems(signal) {
  const hasFunctions = Boolean(session.services.functions);
  const checks = [
    () => suiteProblems(signal),
    hasFunctions && (() => triggerProblems(signal)),
    hasFunctions && (() => eventProblems("dead", signal)),
    hasFunctions && (() => eventProblems("failed", signal)),
    hasFunctions && (async () => functionProblems()),
    hasFunctions && (() => faultProblems(signal)),
    () => clockProblems(signal),
    session.services.firestore && (() => denialProblems(signal)),
  ].filter(Boolean);
  const found = await Promise.all(checks.map(async (check) => {
    try {
      return await check();
    } catch (error) {
      if (error.name === "AbortError" || error.code === "LOST") throw error;
      const text = `A check failed: ${error.message}`;
      return [{ key: text, kind: "warn", text }];
    }
  }));
  return found.flat();
}

async function suiteProblems(signal) {
  const { problem } = await hub("/suite", { signal });
  return problem ? [{ key: "suite", kind: "bad", text: visible(problem) }] : [];
}

async function triggerProblems(signal) {
  const triggers = await hub("/triggers", { signal });
  const found = [];
  if (!triggers.isEnabled) {
    found.push({
      key: "triggers",
      kind: "warn",
      text: "Triggers are off: events of documents and users reach no function, neither now nor "
        + `later. They are on again by themselves in ${span(triggers.onAgainSeconds ?? 0)}.`,
      actions: [{ label: "Enable triggers", run: () => setTriggers(true) }],
      links: [["Time and faults", "time"]],
    });
  }
  if (!triggers.isDeployed && triggers.eventsBeforeDeployment > 0) {
    found.push({
      key: "undeployed",
      kind: "warn",
      text: `${events(triggers.eventsBeforeDeployment, "waits", "wait")} for the first deployment. `
        + "`hearth deploy` deploys the functions.",
    });
  }
  return found;
}

const events = (number, verb, verbs) =>
  `${count(number)} ${number === 1 ? `event ${verb}` : `events ${verbs}`}`;

async function eventProblems(state, signal) {
  const found = await hub(`/events?state=${state}&limit=${eventsCounted}`, { signal });
  if (found.length === 0) return [];
  const names = [...new Set(found.map((event) => event.function))];
  const number = found.length === eventsCounted
    ? `${eventsCounted} or more events ${state === "dead" ? "are dead" : "have failed"}`
    : state === "dead" ? events(found.length, "is dead", "are dead")
      : events(found.length, "has failed", "have failed");
  const listed = names.slice(0, 3).join(", ") + (names.length > 3 ? " and others" : "");
  const last = found[0].error ? ` The last error: ${visible(found[0].error).slice(0, 200)}` : "";
  return [{
    key: state,
    kind: "bad",
    text: `${number}, of ${listed}, and not tried again without a person.${last}`,
    links: [["Retry or discard in Events", "events"],
      ["Read the log", "logs", "function", names[0]]],
  }];
}

function functionProblems() {
  const found = [];
  for (const stats of sample.stats.values()) {
    const links = [[stats.name, "functions", stats.name],
      ["Its log", "logs", "function", stats.name]];
    if (stats.waits) {
      const isPaused = stats.waitReason === "queuePaused";
      found.push({
        key: `waits ${stats.name} ${stats.waitReason}`,
        group: "waits",
        kind: "bad",
        text: `${stats.name}: ${events(stats.pending, "waits", "wait")}, because `
          + `${visible(stats.waits)}.`,
        actions: isPaused ? [{ label: "Resume the queue", run: () => resume(stats.name) }] : [],
        links,
      });
    } else if (stats.shortage) {
      found.push({
        key: `shortage ${stats.name}`,
        group: "shortage",
        kind: "bad",
        text: `${stats.name} lacks workers: ${visible(stats.shortage)}`,
        links,
      });
    }
    const crashes = stats.workerCrashes;
    // The suite counts from its start; fewer than were dismissed means that it started anew.
    if (crashes < (dismissed.get(stats.name) ?? 0)) dismissed.delete(stats.name);
    if (crashes > (dismissed.get(stats.name) ?? 0)) {
      found.push({
        key: `crashes ${stats.name}`,
        group: "crashes",
        kind: "bad",
        text: `${stats.name}: ${crashes === 1 ? "a worker has" : `${count(crashes)} workers have`} `
          + "crashed since the suite's start. The log has the reason.",
        actions: [{
          label: "Dismiss",
          run: async () => dismissed.set(stats.name,
            sample.stats.get(stats.name)?.workerCrashes ?? 0),
        }],
        links,
      });
    }
  }
  return found;
}

const resume = (name) => request("tasks",
  `/v2/projects/${session.project}/locations/${defaultRegion}/queues/${
    encodeURIComponent(name)}:resume`,
  { body: {} });

async function faultProblems(signal) {
  const words = faultsInWords(await hub("/faults", { signal }));
  return words ? [{
    key: "faults",
    kind: "note",
    text: `Faults are on: ${words}.`,
    actions: [{ label: "Clear the faults", run: () => hub("/faults", { method: "DELETE" }) }],
    links: [["Time and faults", "time"]],
  }] : [];
}

async function clockProblems(signal) {
  const { aheadSeconds } = await hub("/clock", { signal });
  return aheadSeconds >= 1 ? [{
    key: "clock",
    kind: "note",
    text: `The suite's clock is ${span(aheadSeconds)} ahead of this machine. Time never goes back; `
      + "the next start uses the machine's time again.",
    links: [["Time and faults", "time"]],
  }] : [];
}

async function denialProblems(signal) {
  const [decisions, clock] = await Promise.all([
    hub("/rules/decisions?denied=true&limit=200", { signal }), hub("/clock", { signal })]);
  // A decision has the time of the request, by the suite's clock.
  const since = Date.parse(clock.now) - denialMinutes * 60_000;
  const recent = decisions.filter((decision) => Date.parse(decision.time) >= since);
  if (recent.length === 0) return [];
  const [{ method, path }] = recent;
  return [{
    key: "denials",
    kind: "warn",
    text: `The rules denied ${count(recent.length)} `
      + `${recent.length === 1 ? "request" : "requests"} in the last ${denialMinutes} minutes, the `
      + `last time ${method} of ${visible(path).slice(0, 200)}.`,
    links: [["See why in Rules", "rules"]],
  }];
}

// MARK: Functions

function functionsCard(signal) {
  const state = h("p.quiet", "Loading …");
  const rows = liveTable([
    { title: "Function", cell: functionCell },
    { title: "Kind", isMinor: true, text: (item) => item.kind },
    { title: "State", cell: stateCell },
    { title: "Workers", isMinor: true, isNumber: true, text: ({ stats }) => stats?.workers ?? 0 },
    { title: "Runs", isNumber: true, cell: plotCell("runs", "Runs",
      ({ stats }) => count(stats?.invocations ?? 0)) },
    { title: "Failures", isNumber: true, cell: failuresCell },
    { title: "p50", isNumber: true, isMinor: true, cell: plotCell("p50", "Median duration",
      ({ stats }) => duration(stats?.p50Seconds)) },
    { title: "p99", isNumber: true, isMinor: true, cell: plotCell("p99", "99th percentile",
      ({ stats }) => duration(stats?.p99Seconds)) },
  ], { label: "Functions" });

  watchFunctions(({ functions, stats, time, error }) => {
    if (error && !time) {
      state.textContent = error.message;
      return;
    }
    const shown = functions.map((entry) => ({ ...entry, stats: stats.get(entry.name) }));
    // With many functions, those that do something come first.
    if (shown.length > rowsMax) shown.sort((one, other) => weight(other) - weight(one));
    rows.update(shown.slice(0, rowsMax));
    rows.element.hidden = shown.length === 0;
    const surplus = shown.length - rowsMax;
    const text = shown.length === 0 ? "No functions are deployed; `hearth deploy` deploys them."
      : surplus > 0 ? `The ${rowsMax} busiest of ${count(shown.length)} functions.`
        : "The plots show the last minutes, since the console was opened; at most ten.";
    if (state.textContent !== text) state.textContent = text;
  }, signal);
  return h("section.card", { "aria-labelledby": "functions-title" },
    h("h2", { id: "functions-title" }, h("a", { href: to("functions") }, "Functions")),
    rows.element, state);
}

const weight = ({ stats }) => stats
  ? (stats.waits || stats.shortage ? 1e12 : 0) + failures(stats) * 1e6 + stats.invocations : -1;

function plotCell(name, label, text) {
  return (item) => {
    const number = h("span");
    const plot = sparkline(`${label} of ${item.name} over the last minutes`);
    return {
      node: h("div.figure", plot.node, number),
      update(next) {
        plot.update(series(next.name)[name]);
        number.textContent = text(next);
      },
    };
  };
}

// MARK: Services, and how to connect to them

const titles = { firestore: "Firestore", auth: "Auth", functions: "Functions", tasks: "Tasks",
  vectors: "Vectors", hub: "Hub", ui: "Console", storage: "Storage" };

/** A service that listens everywhere is reached where the browser reached this page. */
const hostOf = ({ host }) => (host === "0.0.0.0" || host === "::" ? location.hostname : host);
const address = (service) => `${hostOf(service)}:${service.port}`;

function servicesCard() {
  const names = [...new Set([...Object.keys(titles), ...Object.keys(session.services)])]
    .filter((name) => session.services[name]);
  return h("section.card", { "aria-labelledby": "services-title" },
    h("h2", { id: "services-title" }, "Services"),
    h("table", { "aria-label": "Services" },
      h("thead", h("tr", ["Service", "Address"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", names.map((name) => h("tr", h("td", titles[name] ?? name),
        h("td", h("code", address(session.services[name]))))))),
    session.version && h("p.quiet", `Version ${session.version}`));
}

function connectCard() {
  const snippets = { "Server SDKs": environment(), JavaScript: javaScript(), Swift: swift() };
  const text = h("pre.snippet", { tabindex: "0" });
  const copy = h("span");
  const note = h("span.quiet");
  const choices = Object.keys(snippets).map((name) =>
    h("button", { type: "button", onclick: () => choose(name) }, name));

  function choose(name) {
    for (const choice of choices) choice.setAttribute("aria-pressed", choice.textContent === name);
    text.textContent = snippets[name].text;
    text.setAttribute("aria-label", `Connect with ${name}`);
    note.textContent = snippets[name].note;
    replace(copy, copyButton("Copy", snippets[name].text, { "aria-label": `Copy the lines for ${name}` }));
  }

  choose("Server SDKs");
  return h("section.card", { "aria-labelledby": "connect-title" },
    h("h2", { id: "connect-title" }, "Connect"),
    h("div.row", choices), h("div.snippet-head", note, copy), text);
}

/** The variables through which SDKs find the services, with Firebase's names where they exist. */
const variables = { hub: "FIREBASE_EMULATOR_HUB", firestore: "FIRESTORE_EMULATOR_HOST",
  functions: "FUNCTIONS_EMULATOR_HOST", tasks: "CLOUD_TASKS_EMULATOR_HOST",
  auth: "FIREBASE_AUTH_EMULATOR_HOST", vectors: "HEARTH_VECTORS_HOST" };

function environment() {
  const { services, project } = session;
  const lines = [`export GCLOUD_PROJECT=${project}`, `export GOOGLE_CLOUD_PROJECT=${project}`];
  for (const [name, variable] of Object.entries(variables)) {
    if (!services[name]) continue;
    const scheme = name === "vectors" ? "http://" : "";
    lines.push(`export ${variable}=${scheme}${address(services[name])}`);
  }
  return { text: lines.join("\n"), note: "In the shell of the server or script" };
}

function javaScript() {
  const { firestore, auth, functions } = session.services;
  const parts = [
    firestore && { module: "firestore", names: "connectFirestoreEmulator, getFirestore",
      line: `connectFirestoreEmulator(getFirestore(app), "${hostOf(firestore)}", ${
        firestore.port});` },
    auth && { module: "auth", names: "connectAuthEmulator, getAuth",
      line: `connectAuthEmulator(getAuth(app), "http://${address(auth)}");` },
    functions && { module: "functions", names: "connectFunctionsEmulator, getFunctions",
      line: `connectFunctionsEmulator(getFunctions(app), "${hostOf(functions)}", ${
        functions.port});` },
  ].filter(Boolean);
  return {
    text: [
      'import { initializeApp } from "firebase/app";',
      ...parts.map(({ module, names }) => `import { ${names} } from "firebase/${module}";`),
      "",
      `const app = initializeApp({ projectId: "${session.project}", apiKey: "any" });`,
      ...parts.map(({ line }) => line),
    ].join("\n"),
    note: "Before the first read or write",
  };
}

function swift() {
  const { firestore, auth, functions } = session.services;
  return {
    text: [
      "#if DEBUG",
      firestore && `  Firestore.firestore().useEmulator(withHost: "${hostOf(firestore)}", port: ${
        firestore.port})`,
      auth && `  Auth.auth().useEmulator(withHost: "${hostOf(auth)}", port: ${auth.port})`,
      functions && `  Functions.functions().useEmulator(withHost: "${hostOf(functions)}", port: ${
        functions.port})`,
      "#endif",
    ].filter(Boolean).join("\n"),
    note: "Right after FirebaseApp.configure()",
  };
}
