// The suite at a glance: its services, what its functions do, and what is wrong now.

import { hub, queue, session } from "./api.js";
import { button, card, choice, errorIn, h, poll, replace, setText, table, to } from "./dom.js";
import { count, counted, bound, span } from "./format.js";
import { failures, failuresCell, functionCell, sample, series, sparkline, stateCell,
  watchFunctions } from "./function-stats.js";
import { keyedChildren, liveTable } from "./live-table.js";
import { copyButton, visible } from "./long-text.js";
import { faultsInWords, setTriggers } from "./time.js";

const pollMilliseconds = 2000;
const rowsMax = 40;
/** The problems of one group that are listed; the others are counted. */
const problemsOfGroupMax = 4;
const eventsCounted = 100;
const denialMinutes = 5;

/** The number of crashes that a person has dismissed, by function. */
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
    setText(state, found.length === 0 ? "All is well."
      : isWell ? "Nothing is wrong, but note:"
        : `${counted(found.length, "thing needs", "things need")} attention.`);
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
      update: (next) => setText(text, next.text),
    };
  }

  poll(look, pollMilliseconds, signal, errorIn(state));
  return card("What is wrong now", state, list);
}

/** The first problems of each group, and one problem that counts the others. */
function limited(found) {
  const groups = new Map();
  for (const problem of found) {
    const group = problem.group ?? problem.key;
    groups.set(group, [...(groups.get(group) ?? []), problem]);
  }
  return [...groups].flatMap(([group, problems]) => {
    const surplus = problems.length - problemsOfGroupMax;
    if (surplus <= 0) return problems;
    return [...problems.slice(0, problemsOfGroupMax), {
      key: `${group} more`,
      kind: problems[0].kind,
      text: `${counted(surplus, "more function has", "more functions have")} this problem.`,
      links: [["See the functions", "functions"]],
    }];
  });
}

/**
 * Everything that needs attention, in the order of its importance.
 *
 * A problem has a `key`, a `kind` (`bad`, `warn` or `note`), a `text`, and may have `actions`,
 * `links`, and a `group` of problems that are alike.
 */
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
        + `later. They come on again by themselves in ${span(triggers.onAgainSeconds ?? 0)}.`,
      actions: [{ label: "Enable triggers", run: () => setTriggers(true) }],
      links: [["Time and faults", "time"]],
    });
  }
  if (!triggers.isDeployed && triggers.eventsBeforeDeployment > 0) {
    found.push({
      key: "undeployed",
      kind: "warn",
      text: `${counted(triggers.eventsBeforeDeployment, "event waits", "events wait")} for the `
        + "first deployment. `hearth deploy` deploys the functions.",
    });
  }
  return found;
}

/** The events with a final state that a person can retry or discard: `dead` or `failed`. */
async function eventProblems(state, signal) {
  const found = await hub(`/events?state=${state}&limit=${eventsCounted}`, { signal });
  if (found.length === 0) return [];
  const names = [...new Set(found.map((event) => event.function))];
  const [one, many] = state === "dead" ? ["event is dead", "events are dead"]
    : ["event has failed", "events have failed"];
  const number = found.length === eventsCounted ? `${eventsCounted} or more ${many}`
    : counted(found.length, one, many);
  const listed = names.slice(0, 3).join(", ") + (names.length > 3 ? " and others" : "");
  const last = found[0].error ? ` The last error: ${visible(found[0].error).slice(0, 200)}` : "";
  return [{
    key: state,
    kind: "bad",
    text: `${number}, of ${listed}, with no further attempt unless you retry.${last}`,
    links: [
      ["Retry or discard in Events", "events"],
      ["Read the log", "logs", "function", names[0]],
    ],
  }];
}

const functionProblems = () => [...sample.stats.values()].flatMap((stats) =>
  [waitProblem(stats), crashProblem(stats)].filter(Boolean));

const functionLinks = ({ name }) =>
  [[name, "functions", name], ["Its log", "logs", "function", name]];

function waitProblem(stats) {
  const { name } = stats;
  if (stats.waits) {
    const resume = { label: "Resume the queue", run: () => queue(name, ":resume", { body: {} }) };
    return {
      key: `waits ${name} ${stats.waitReason}`,
      group: "waits",
      kind: "bad",
      text: `${name}: ${counted(stats.pending, "event waits", "events wait")}, because `
        + `${visible(stats.waits)}.`,
      actions: stats.waitReason === "queuePaused" ? [resume] : [],
      links: functionLinks(stats),
    };
  }
  return stats.shortage ? {
    key: `shortage ${name}`,
    group: "shortage",
    kind: "bad",
    text: `${name} lacks workers: ${visible(stats.shortage)}`,
    links: functionLinks(stats),
  } : null;
}

function crashProblem(stats) {
  const { name, workerCrashes: crashes } = stats;
  // The suite counts from its start: a number below the dismissed one means that it has restarted.
  if (crashes < (dismissed.get(name) ?? 0)) dismissed.delete(name);
  if (crashes <= (dismissed.get(name) ?? 0)) return null;
  return {
    key: `crashes ${name}`,
    group: "crashes",
    kind: "bad",
    text: `${name}: ${crashes === 1 ? "a worker has" : `${count(crashes)} workers have`} `
      + "crashed since the suite's start. The log has the reason.",
    actions: [{
      label: "Dismiss",
      run: async () => dismissed.set(name, sample.stats.get(name)?.workerCrashes ?? 0),
    }],
    links: functionLinks(stats),
  };
}

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
  // Decisions have the time of the suite's clock.
  const since = Date.parse(clock.now) - denialMinutes * 60_000;
  const recent = decisions.filter((decision) => Date.parse(decision.time) >= since);
  if (recent.length === 0) return [];
  const [{ method, path }] = recent;
  return [{
    key: "denials",
    kind: "warn",
    text: `The rules denied ${counted(recent.length, "request")} in the last ${denialMinutes} `
      + `minutes, the last time ${method} of ${visible(path).slice(0, 200)}.`,
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
      ({ stats }) => bound(stats?.p50Seconds)) },
    { title: "p99", isNumber: true, isMinor: true, cell: plotCell("p99", "99th percentile",
      ({ stats }) => bound(stats?.p99Seconds)) },
  ], { label: "Functions" });

  watchFunctions(({ functions, stats, time, error }) => {
    if (error && !time) {
      setText(state, error.message);
      return;
    }
    const shown = functions.map((entry) => ({ ...entry, stats: stats.get(entry.name) }));
    // With many functions, the busiest come first.
    if (shown.length > rowsMax) shown.sort((one, other) => weight(other) - weight(one));
    rows.update(shown.slice(0, rowsMax));
    rows.element.hidden = shown.length === 0;
    const surplus = shown.length - rowsMax;
    setText(state, shown.length === 0 ? "No functions are deployed; `hearth deploy` deploys them."
      : surplus > 0 ? `The ${rowsMax} busiest of ${count(shown.length)} functions.`
        : "The plots show the minutes since the console was opened, at most the last ten.");
  }, signal);
  return card(h("a", { href: to("functions") }, "Functions"), rows.element, state);
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
        setText(number, text(next));
      },
    };
  };
}

// MARK: Services

const titles = {
  firestore: "Firestore",
  database: "Realtime Database",
  auth: "Auth",
  functions: "Functions",
  tasks: "Tasks",
  vectors: "Vectors",
  hub: "Hub",
  ui: "Console",
  storage: "Storage",
};

/** The host of a service; one that listens on all addresses also has the address of this page. */
const hostOf = ({ host }) => (host === "0.0.0.0" || host === "::" ? location.hostname : host);
const address = (service) => `${hostOf(service)}:${service.port}`;

function servicesCard() {
  const names = [...new Set([...Object.keys(titles), ...Object.keys(session.services)])]
    .filter((name) => session.services[name]);
  return card("Services",
    table(["Service", "Address"], names.map((name) =>
      [titles[name] ?? name, h("code", address(session.services[name]))]), { label: "Services" }),
    session.version && h("p.quiet", `Version ${session.version}`));
}

// MARK: Connecting

function connectCard() {
  const snippets = { "Server SDKs": environment(), JavaScript: javaScript(), Swift: swift() };
  const [first] = Object.keys(snippets);
  const code = h("pre.snippet", { tabindex: "0" });
  const copy = h("span");
  const note = h("span.quiet");

  function show(name) {
    const { text, place } = snippets[name];
    setText(code, text);
    code.setAttribute("aria-label", `Connect with ${name}`);
    setText(note, place);
    replace(copy, copyButton("Copy", text, { "aria-label": `Copy the lines for ${name}` }));
  }

  show(first);
  return card("Connect",
    choice("Language", Object.keys(snippets).map((name) => [name, name]), first, show),
    h("div.snippet-head", note, copy), code);
}

/** The environment variables in which SDKs look for the services; most names are Firebase's. */
const variables = {
  hub: "FIREBASE_EMULATOR_HUB",
  firestore: "FIRESTORE_EMULATOR_HOST",
  functions: "FUNCTIONS_EMULATOR_HOST",
  tasks: "CLOUD_TASKS_EMULATOR_HOST",
  database: "FIREBASE_DATABASE_EMULATOR_HOST",
  auth: "FIREBASE_AUTH_EMULATOR_HOST",
  vectors: "HEARTH_VECTORS_HOST",
};

function environment() {
  const { services, project } = session;
  const lines = [`export GCLOUD_PROJECT=${project}`, `export GOOGLE_CLOUD_PROJECT=${project}`];
  for (const [name, variable] of Object.entries(variables)) {
    if (!services[name]) continue;
    const scheme = name === "vectors" ? "http://" : "";
    lines.push(`export ${variable}=${scheme}${address(services[name])}`);
  }
  return { text: lines.join("\n"), place: "In the shell of the server or script" };
}

function javaScript() {
  const { firestore, database, auth, functions } = session.services;
  const hostAndPort = (service) => `"${hostOf(service)}", ${service.port}`;
  const parts = [
    firestore && {
      module: "firestore",
      names: "connectFirestoreEmulator, getFirestore",
      line: `connectFirestoreEmulator(getFirestore(app), ${hostAndPort(firestore)});`,
    },
    database && {
      module: "database",
      names: "connectDatabaseEmulator, getDatabase",
      line: `connectDatabaseEmulator(getDatabase(app), ${hostAndPort(database)});`,
    },
    auth && {
      module: "auth",
      names: "connectAuthEmulator, getAuth",
      line: `connectAuthEmulator(getAuth(app), "http://${address(auth)}");`,
    },
    functions && {
      module: "functions",
      names: "connectFunctionsEmulator, getFunctions",
      line: `connectFunctionsEmulator(getFunctions(app), ${hostAndPort(functions)});`,
    },
  ].filter(Boolean);
  return {
    text: [
      'import { initializeApp } from "firebase/app";',
      ...parts.map(({ module, names }) => `import { ${names} } from "firebase/${module}";`),
      "",
      `const app = initializeApp({ projectId: "${session.project}", apiKey: "any" });`,
      ...parts.map(({ line }) => line),
    ].join("\n"),
    place: "Before the first read or write",
  };
}

function swift() {
  const { firestore, database, auth, functions } = session.services;
  const line = (object, service) => service
    && `  ${object}.useEmulator(withHost: "${hostOf(service)}", port: ${service.port})`;
  return {
    text: [
      "#if DEBUG",
      line("Firestore.firestore()", firestore),
      line("Database.database()", database),
      line("Auth.auth()", auth),
      line("Functions.functions()", functions),
      "#endif",
    ].filter(Boolean).join("\n"),
    place: "Right after FirebaseApp.configure()",
  };
}
