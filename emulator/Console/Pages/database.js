// Realtime Database: the nodes on the way to a node as columns, live.

import { hub, request, send, session } from "./api.js";
import { columnStack } from "./columns.js";
import { ask, attempt, button, codeArea, field, h, poll, problemLine, replace, select, showProblem,
  tell, to, whenSubmitted } from "./dom.js";
import { count } from "./format.js";
import { brief, copyButton, longText } from "./long-text.js";
import { userPicker } from "./user-picker.js";
import { json } from "./values.js";
import { pageSize, virtualList } from "./virtual-list.js";

const pollMilliseconds = 1000;
/** The size of the JSON that a person can edit here. */
const editBytesMax = 1 << 20;
const detailCharactersMax = 80;

/** The name of the instance that clients of the project use. */
const firstInstance = () => `${session.project}-default-rtdb`;

/** Sends a request to the REST API for a node; throws unless it succeeds. */
async function node(instance, keys, parameters = {}, options = {}) {
  const query = new URLSearchParams({ ns: instance, ...parameters });
  const path = `/${keys.map(encodeURIComponent).join("/")}.json?${query}`;
  const response = await send("database", path, options);
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  if (response.status === 412) {
    return new Error("The value has been changed elsewhere meanwhile, so nothing is written. "
      + "Cancel, look at it, and edit again.");
  }
  const text = await response.text();
  const error = new Error(text);
  // Not every error is one of the database.
  try { error.message = JSON.parse(text).error?.message ?? JSON.parse(text).error; } catch { /**/ }
  return Object.assign(error, { status: response.status });
}

/** The leaf at a path as JSON; an empty text for a node with children, null for no node. */
async function leaf(instance, keys, signal) {
  const found = await node(instance, keys, { shallow: "true", limitToFirst: "1" }, { signal });
  const text = await found.text();
  return text === "null" ? null : text.startsWith("{") ? "" : text;
}

export async function render(root, segments, signal) {
  const instance = segments[0] ?? firstInstance();
  const names = await instances(signal);
  const chooser = select([...new Set([firstInstance(), instance, ...names])].sort(), {
    value: instance,
    onchange() { location.hash = to("database", chooser.value); },
  });
  const path = h("input.mono", { "aria-label": "Path", placeholder: "users/tina",
    autocomplete: "off", spellcheck: "false" });
  const form = h("form.toolbar", field("Instance", chooser), field("Go to a path", path),
    h("button", { type: "submit" }, "Go"));
  const columns = h("div.columns", { tabindex: "-1" });
  whenSubmitted(form, () => { location.hash = to("database", instance, ...keysOf(path.value)); });
  root.append(h("h1.visually-hidden", "Realtime Database"), h("div.forms", form), columns);
  const stack = columnStack(columns,
    (id, signal) => nodeColumn(instance, JSON.parse(id), signal), signal);

  function show(keys) {
    path.value = keys.join("/");
    const places = [[], ...keys.map((_, index) => keys.slice(0, index + 1))];
    stack.show(places.map((place) => JSON.stringify(place)), keys);
  }

  /** The sequence number of the last commit that the columns have seen. */
  let sequence = null;

  async function follow() {
    const last = (await hub("/changes", { signal })).sequence;
    if (sequence !== null && last !== sequence) {
      await Promise.all(stack.shown.map((column) => column.refresh()));
    }
    sequence = last;
  }

  show(segments.slice(1));
  poll(follow, pollMilliseconds, signal);
  return (moved) => {
    if ((moved[0] ?? firstInstance()) !== instance) return false;
    show(moved.slice(1));
    return true;
  };
}

async function instances(signal) {
  const found = await request("database", `/.inspect/databases.json?ns=${firstInstance()}`,
    { signal });
  return found.map(({ name }) => name);
}

const keysOf = (path) => path.split("/").filter(Boolean);

// MARK: The order of keys

/** The value of a key that is an integer of 32 bits; null for any other. */
function integer(key) {
  const value = /^-?0*\d{1,10}$/.test(key) ? Number(key) : NaN;
  return value >= -(2 ** 31) && value < 2 ** 31 ? value : null;
}

/** Compares keys as the database does: integers by value come first. */
function compareKeys(left, right) {
  const [first, second] = [integer(left), integer(right)];
  if (first !== null && second !== null && first !== second) return first - second;
  if (first !== null && second !== null && left.length !== right.length) {
    return left.length - right.length;
  }
  if ((first === null) !== (second === null)) return first === null ? 1 : -1;
  return left < right ? -1 : left > right ? 1 : 0;
}

// MARK: One node

/** The column of a node: its children, or its value. */
function nodeColumn(instance, keys, signal) {
  const name = keys.at(-1) ?? instance;
  const place = `/${keys.join("/")}`;
  const value = h("div.scroll");
  const problem = problemLine();
  const nothing = h("p.quiet", { role: "status", hidden: true },
    "There is no value here. Add the first child, or run your app.");
  const edit = button("Edit", editValue);
  const remove = button("Delete", removeValue, { kind: "danger" });
  // The key before each page.
  let starts = new Map();

  const list = virtualList({
    label: `Children of ${place}`,
    load,
    signal,
    renderRow: (row) => [h("span", brief(row.id)), h("span.detail", row.detail)],
    choose: (row) => { location.hash = to("database", instance, ...keys, row.id); },
  });
  list.onerror = (error) => showProblem(problem, error);

  async function load(page, previous, signal) {
    const start = previous?.at(-1)?.id ?? starts.get(page);
    const parameters = { shallow: "true", limitToFirst: pageSize,
      ...(page > 0 && { startAfter: start }) };
    const found = await (await node(instance, keys, parameters, { signal })).json();
    const isObject = found !== null && typeof found === "object";
    if (page === 0) describe(isObject, isObject ? null : found);
    const names = isObject ? Object.keys(found).sort(compareKeys) : [];
    if (names.length) starts.set(page + 1, names.at(-1));
    const details = await Promise.all(names.map((key) => leaf(instance, [...keys, key], signal)));
    const rows = names.map((id, index) => ({ id, detail: detailOf(details[index]) }));
    showProblem(problem, null);
    return { rows, isLast: names.length < pageSize };
  }

  const detailOf = (text) => text === "" ? "›"
    : text === null ? "" : text.slice(0, detailCharactersMax);

  /** Shows what the node is: an object, a leaf with a value, or nothing. */
  function describe(isObject, leafValue) {
    const isLeaf = !isObject && leafValue !== null;
    list.element.hidden = !isObject;
    value.hidden = !isLeaf;
    nothing.hidden = isObject || isLeaf;
    edit.hidden = remove.hidden = !isObject && !isLeaf;
    const text = isLeaf ? JSON.stringify(leafValue) : "";
    if (value.dataset.text === text) return;
    value.dataset.text = text;
    replace(value, isLeaf && longText(text, { tag: "bdi.value" }));
  }

  async function addChild() {
    const key = h("input.mono", { autocomplete: "off" });
    const text = codeArea("", { placeholder: '{"online": true}' });
    const added = await ask({
      title: `Add a child of ${place}`,
      body: [field("Key", key, "Without a key, it gets one that comes after all others of its kind."),
        field("Value as JSON", text)],
      action: "Add",
      async read() {
        const options = { text: checked(text.value), type: "application/json" };
        if (!key.value) {
          return (await (await node(instance, keys, {}, { ...options, method: "POST" })).json()).name;
        }
        if (key.value.includes("/")) throw new Error("A key has no slash.");
        // Only if there is no such child yet.
        await node(instance, [...keys, key.value], {},
          { ...options, method: "PUT", headers: { "if-match": "null_etag" } });
        return key.value;
      },
    });
    if (added) location.hash = to("database", instance, ...keys, added);
  }

  async function editValue() {
    const found = await node(instance, keys, { format: "export", print: "pretty" },
      { headers: { "X-Firebase-ETag": "true" }, signal });
    const bytes = Number(found.headers.get("Content-Length") ?? 0);
    if (bytes > editBytesMax) {
      await found.body.cancel();
      throw new Error(`This value has ${count(bytes)} bytes. Edit one of its children, or use REST.`);
    }
    const text = codeArea(await found.text(), { rows: "16" });
    await ask({
      title: place,
      body: field("Value as JSON", text, ".priority and .value give a value its priority."),
      read: () => node(instance, keys, {}, { text: checked(text.value), type: "application/json",
        method: "PUT", headers: { "if-match": found.headers.get("ETag") } }).then(refresh),
    });
  }

  async function removeValue() {
    await ask({
      title: `Delete ${name}?`,
      body: [h("p.mono", place), h("p", "Everything below it goes, too.")],
      action: "Delete",
      isDangerous: true,
      read: () => node(instance, keys, {}, { method: "DELETE" }).then(refresh),
    });
  }

  async function refresh() {
    await attempt(() => list.refresh());
  }

  attempt(() => list.reset());
  return {
    element: h("section.column", { "aria-label": `Node ${place}` },
      h("div.column-head", h("h2.mono", brief(name)), button("Add", addChild), edit),
      h("div.row", button("Who may read this?", () => explainAccess(instance, keys)),
        copyButton("Copy the path", place), remove),
      problem, nothing, value, list.element),
    refresh,
    choose(key) { list.chosen = key; },
  };
}

/** A text that is JSON; throws with the mistake if it is not. */
function checked(text) {
  json(text, "The value is");
  return text;
}

// MARK: Rules

/** Reads a node as a chosen user, and shows what the rules say. */
function explainAccess(instance, keys) {
  const result = h("div", { "aria-live": "polite" });
  const picker = userPicker("Read it as");

  async function decide() {
    let outcome = h("p.good", "Allowed.");
    try {
      await node(instance, keys, { shallow: "true", limitToFirst: "1" }, { as: picker.user() });
    } catch (error) {
      outcome = h("p.bad", error.status === 401 ? "Denied." : error.message);
    }
    replace(result, outcome);
  }

  tell({
    title: "Who may read this?",
    body: [
      h("p.mono", `/${keys.join("/")}`),
      h("div.row", picker.element, button("Decide", decide, { kind: "primary" })),
      result,
    ],
  });
}
