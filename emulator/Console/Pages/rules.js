// Rules: why a request was allowed or denied, trying one, and which conditions were evaluated.

import { hub, session } from "./api.js";
import { badge, button, card, choice, debounced, errorIn, facts, field, h, poll, replace, select,
  setText, to, whenSubmitted } from "./dom.js";
import { decisionsMax, lastDecisions, noDecision, readAs } from "./decisions.js";
import { backLink, detailPane, entryList, fillPane, parts } from "./entries.js";
import { count, counted, time } from "./format.js";
import { brief, copyButton, longBlock, longText } from "./long-text.js";
import { userPicker } from "./user-picker.js";

const pollMilliseconds = 1000;

export async function render(root, segments, signal) {
  const links = [
    ["decisions", "Decisions", to("rules")],
    ["try", "Try a read", to("rules", "try")],
    ["coverage", "Coverage", to("rules", "coverage")],
  ];
  const part = ["try", "coverage"].includes(segments[0]) ? segments[0] : "decisions";
  root.append(h("h1", "Rules"), parts("Rules", links, part));
  const body = h("div");
  root.append(body);
  if (part === "try") return tryRead(body);
  if (part === "coverage") return showCoverage(body, segments[1], signal);
  return showDecisions(body, segments, signal);
}

// MARK: Decisions

/** Decisions have no IDs; those of one query share time, method and path. */
const addressOf = (decision) => [decision.time, decision.method, decision.path];
const isAt = (decision, address) =>
  addressOf(decision).every((part, index) => part === address[index]);
const verdictBadge = (isAllowed) =>
  isAllowed ? badge("allowed", "good") : badge("denied", "bad");

/** The user ID of a request, or nobody; the rules' own text for the user is long. */
function caller(decision) {
  if (decision.auth === "null") return "nobody";
  return decision.auth.match(/'uid': '((?:[^'\\]|\\.)*)'\}?$/)?.[1] ?? decision.auth;
}

async function showDecisions(root, segments, signal) {
  const filter = { kind: "", text: "", user: "" };
  let all = null;
  let chosen = segments.length >= 3 ? segments : null;

  const summary = h("p.quiet", { role: "status" });
  const changed = debounced(() => {
    filter.text = text.value.trim().toLowerCase();
    filter.user = user.value.trim().toLowerCase();
    show();
  });
  const text = h("input", { type: "search", placeholder: "path or explanation", oninput: changed });
  const user = h("input", { type: "search", placeholder: "user ID", oninput: changed });
  const list = entryList({
    label: "Decisions",
    key: ({ ordinal, decision }) => `${addressOf(decision).join("\n")}\n${ordinal}`,
    state: ({ decision }) => String(isChosen(decision)),
    entry,
    empty: () => all?.length ? "No decision matches the filter."
      : "No decisions yet: no client's request has been checked, or no rules are loaded. "
        + "Servers are not checked.",
  });
  const detail = detailPane(root, { label: "Decision", signal, show: showDecision });

  const isChosen = (decision) => chosen !== null && isAt(decision, chosen);

  function entry({ decision }) {
    return h("li", h("a.entry",
      { href: to("rules", ...addressOf(decision)), "aria-current": isChosen(decision) },
      verdictBadge(decision.isAllowed),
      h("b.what", decision.method, " ", brief(decision.path)),
      h("span", brief(caller(decision), 60)),
      h("span.quiet.when", time(decision.time))));
  }

  async function load() {
    all = await lastDecisions(signal);
    show();
    if (chosen && !detail.element.hasChildNodes()) detail.choose(chosen);
  }

  function matches(decision) {
    const { isAllowed, method, path, text } = decision;
    return (!filter.kind || isAllowed === (filter.kind === "allowed"))
      && (!filter.user || caller(decision).toLowerCase().includes(filter.user))
      && (!filter.text || `${method} ${path}\n${text}`.toLowerCase().includes(filter.text));
  }

  function show() {
    if (!all) return;
    const shown = all.filter(matches);
    const denied = shown.filter((decision) => !decision.isAllowed);
    const ordinals = new Map();
    const items = (filter.kind ? shown : [...denied, ...shown.filter((one) => one.isAllowed)])
      .map((decision) => {
        const key = addressOf(decision).join("\n");
        ordinals.set(key, (ordinals.get(key) ?? -1) + 1);
        return { decision, ordinal: ordinals.get(key) };
      });
    list.show(items);
    setText(summary, `${count(shown.length)} of the last ${decisionsMax} decisions, `
      + `${count(denied.length)} denied`);
  }

  function showDecision(element, address) {
    // The first load calls this again.
    if (!all) return;
    const found = all.filter((decision) => isAt(decision, address));
    fillPane(element, backLink("All decisions", to("rules")),
      h("h2", address[1], " ", brief(address[2])),
      found.length ? found.map(explanation)
        : h("p.quiet", `The decision is no longer among the last ${decisionsMax}.`));
  }

  const kinds = [["", "all, denied first"], ["denied", "denied"], ["allowed", "allowed"]];
  const chooseKind = (kind) => {
    filter.kind = kind;
    show();
  };
  root.className = "split";
  root.append(h("section.list",
    h("div.toolbar", choice("Decision", kinds, "", chooseKind), field("Text", text),
      field("User", user)),
    summary, list.element), detail.element);
  detail.choose(chosen);

  await poll(load, pollMilliseconds, signal, errorIn(summary));
  return (moved) => {
    if (["try", "coverage"].includes(moved[0])) return false;
    chosen = moved.length >= 3 ? moved : null;
    show();
    detail.choose(chosen);
    return true;
  };
}

/** A decision with the rules that were evaluated. */
function explanation(decision) {
  return h("article.card",
    facts([
      ["Decision", [verdictBadge(decision.isAllowed), decision.isAllowed
        ? " A rule allows the request." : " No rule allows the request."]],
      ["Request", [decision.method, " ", longText(decision.path, { tag: "code" })]],
      ["User", brief(caller(decision))],
      ["request.auth", longText(decision.auth, { tag: "code" })],
      ["Time", time(decision.time)],
    ]),
    h("h3", "Why"), reasons(decision.text),
    h("p", copyButton("Copy the explanation", decision.text)));
}

/** An explanation's text; each line of a rule leads to the rule in the file. */
function reasons(text) {
  if (text.length > 20_000) return longBlock(text, "explanation");
  return h("pre.reasons", text.split("\n").flatMap((line) => {
    const match = line.match(/^(\S+:(\d+):\d+)( allow .*)$/);
    if (!match) return [line, "\n"];
    const kind = match[3].endsWith(": true") ? "good" : "bad";
    const [, place, number, rule] = match;
    return [h("a", { href: to("rules", "coverage", number) }, place), h(`b.${kind}`, rule), "\n"];
  }));
}

// MARK: Trying a read

function tryRead(root) {
  const method = select([["get", "get a document"], ["list", "list a collection"]]);
  const path = h("input.mono", { required: true, autocomplete: "off", placeholder: "users/tina" });
  const picker = userPicker();
  const result = h("div", { "aria-live": "polite" });
  const form = h("form.card",
    h("p.quiet", "This reads the document or collection as a client would, "
      + "and explains the decision."),
    h("div.toolbar", field("Read", method), field("Path", path), picker.element,
      h("button.primary", { type: "submit" }, "Try")));
  whenSubmitted(form, run);
  root.append(form, result);

  async function run() {
    const target = path.value.trim().replace(/^\/+|\/+$/g, "");
    const isList = method.value === "list";
    if (target.split("/").length % 2 === (isList ? 0 : 1)) {
      throw new Error(isList ? "A collection's path has an odd number of parts, such as users."
        : "A document's path has an even number of parts, such as users/tina.");
    }
    const outcome = await readAs(target, isList, picker.user());
    replace(result, h("h2", "Result"), outcomeText(outcome, isList),
      outcome.decisions.length ? outcome.decisions.map(explanation) : h("p.quiet", noDecision));
  }
}

function outcomeText({ found, error }, isList) {
  if (!error) {
    return h("p", verdictBadge(true), isList
      ? ` The first page has ${counted(found?.documents?.length ?? 0, "document")}.`
      : " The document exists.");
  }
  if (error.code === "NOT_FOUND") {
    return h("p", verdictBadge(true), " There is no such document.");
  }
  const isDenied = error.code === "PERMISSION_DENIED";
  return h("p", isDenied ? verdictBadge(false) : badge("failed", "bad"), " ",
    h("bdi", error.message));
}

// MARK: Coverage

/** Longer files are cut; each line has several elements. */
const linesMax = 3000;

async function showCoverage(root, line, signal) {
  const body = h("div");
  const scrollTo = (line) => body.querySelector(`[data-line="${Number(line)}"]`)
    ?.scrollIntoView({ block: "center" });
  root.append(h("div.toolbar", button("Refresh", load)), body);

  async function load() {
    let coverage;
    try {
      coverage = await hub("/rules/coverage", { signal });
    } catch (error) {
      if (error.status !== 404) throw error;
      replace(body, noRules());
      return;
    }
    replace(body, source(coverage));
    scrollTo(line);
  }

  await load();
  return (moved) => {
    if (moved[0] !== "coverage") return false;
    scrollTo(moved[1]);
    return true;
  };
}

const noRules = () => card("No rules are loaded",
  h("p", "Every request is allowed. To load rules, put a file ", h("code", "firestore.rules"),
    " into the folder of the suite (or name another in ", h("code", "firebase.json"), " as ",
    h("code", "firestore.rules"), ") and start the suite without ", h("code", "--no-rules"), "."),
  h("p", "Rules can also be uploaded: ",
    h("code", `PUT /emulator/v1/projects/${session.project}:securityRules`),
    " at Firestore's port, as Firebase's test library does. The suite's ",
    h("code", "docs/security-rules.md"), " describes it."));

/** The evaluations of a condition, counted by their results. */
function tally(node) {
  const sums = { isTrue: 0, isFalse: 0, failed: 0, other: 0 };
  for (const { value, count: number } of node.values ?? []) {
    if (value.boolValue === true) sums.isTrue += number;
    else if (value.boolValue === false) sums.isFalse += number;
    else if (value.undefined) sums.failed += number;
    // An empty value counts evaluations that skipped the expression.
    else if (Object.keys(value).length > 0) sums.other += number;
  }
  return sums;
}

/** The results of a condition by their class in the style sheet. */
const resultNames = {
  both: "both true and false",
  true: "always true",
  false: "always false",
  error: "failed",
  never: "never evaluated",
};

/** The result of a condition: its class in the style sheet, and its name. */
function coverageOf({ isTrue, isFalse, failed, other }) {
  if (!isTrue && !isFalse && !failed && other) return ["both", "evaluated"];
  const kind = isTrue && isFalse ? "both" : failed ? "error" : isTrue ? "true"
    : isFalse ? "false" : "never";
  return [kind, resultNames[kind]];
}

function counts({ isTrue, isFalse, failed, other }) {
  return [[isTrue, "true"], [isFalse, "false"], [failed, "failed"], [other, "other values"]]
    .filter(([number]) => number > 0)
    .map(([number, name]) => `${count(number)}× ${name}`).join(", ");
}

function source({ rules, report = [] }) {
  const file = rules.files[0];
  const scalars = Array.from(file.content);
  const conditions = report.map((node) => ({
    node,
    from: node.sourcePosition.currentOffset,
    to: node.sourcePosition.endOffset + 1,
    sums: tally(node),
  }));
  const verdicts = conditions.map(({ sums }) => coverageOf(sums)[0]);
  const never = verdicts.filter((one) => one === "never").length;
  const both = verdicts.filter((one) => one === "both").length;

  const lines = [];
  let start = 0;
  for (let index = 0; index <= scalars.length && lines.length < linesMax; index += 1) {
    if (index === scalars.length || scalars[index] === "\n") {
      lines.push(sourceLine(lines.length + 1, start, index, scalars, conditions));
      start = index + 1;
    }
  }
  return h("div",
    h("p", `${file.name}: of ${counted(conditions.length, "condition")}, ${count(both)} came out `
      + `both true and false; ${counted(never, "was", "were")} never evaluated. A button beside a `
      + "condition shows its parts."),
    h("ul.legend", Object.entries(resultNames).map(([kind, text]) =>
      h("li", h(`mark.${kind}`, text)))),
    h("ol.source", lines),
    start < scalars.length && h("p.quiet",
      `The file is longer than ${count(linesMax)} lines; the rest is not shown.`));
}

function sourceLine(number, start, end, scalars, conditions) {
  const touching = conditions.filter((one) => one.from < end && one.to > start);
  const pieces = [];
  let place = start;
  for (const one of touching) {
    let from = Math.max(one.from, start);
    // The indentation of a condition's next line is not marked.
    while (from < one.to && from < end && scalars[from] === " ") from += 1;
    const until = Math.min(one.to, end);
    if (from < place) continue;
    pieces.push(scalars.slice(place, from).join(""),
      h(`mark.${coverageOf(one.sums)[0]}`, scalars.slice(from, until).join("")));
    place = until;
  }
  pieces.push(scalars.slice(place, end).join(""));
  const chips = touching.filter((one) => one.from >= start).map((one) => chip(one, scalars));
  return h("li", { "data-line": number }, h("span.number", String(number)), h("code", pieces),
    chips);
}

/** A button with the counts of a condition, which shows and hides those of its parts. */
function chip({ node, sums }, scalars) {
  const [kind, text] = coverageOf(sums);
  const numbers = counts(sums);
  const open = h(`button.chip.${kind}`, { type: "button", "aria-expanded": "false", onclick() {
    const isOpen = open.getAttribute("aria-expanded") === "true";
    open.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) open.nextElementSibling.remove();
    else open.after(h("ul.parts-of", partsOf(node, scalars, 0)));
  } }, numbers ? `${text}: ${numbers}` : text);
  return open;
}

const partsMax = 100;
const valuesMax = 20;

function partsOf(node, scalars, depth) {
  const { currentOffset, endOffset } = node.sourcePosition;
  const text = scalars.slice(currentOffset, endOffset + 1).join("");
  const values = (node.values ?? []).slice(0, valuesMax).map((entry) =>
    h("span", ` ${count(entry.count)}× `, brief(valueText(entry.value), 80)));
  const own = h("li", h("code", brief(text, 100)),
    values.length ? values : h("span.quiet", " never evaluated"));
  own.style.marginInlineStart = `${Math.min(depth, 12)}rem`;
  return [own, ...(node.children ?? []).flatMap((child) => partsOf(child, scalars, depth + 1))]
    .slice(0, partsMax);
}

function valueText(value) {
  const [kind, content] = Object.entries(value)[0] ?? ["", null];
  switch (kind) {
    case "": return "skipped";
    case "boolValue": case "intValue": case "floatValue": return String(content);
    case "nullValue": return "null";
    case "stringValue": return JSON.stringify(content);
    case "pathValue": return `/${(content.segments ?? []).map((one) => one.simple).join("/")}`;
    case "undefined": return `error: ${content.causeMessage}`;
    default: return `a ${kind.replace(/Value$/, "")}`;
  }
}
