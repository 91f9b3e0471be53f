// Firestore: collections, documents and fields as columns, live.

import { documentName, firestore, hub } from "./api.js";
import { columnStack, makeColumn } from "./columns.js";
import { ask, attempt, button, checkField, crossButton, field, h, poll, problemLine, replace,
  select, setText, showProblem, toast, toPath, whenSubmitted } from "./dom.js";
import { addCollection, addDocument, collectionIDs, documentPanel, randomID } from "./document.js";
import { count, counted } from "./format.js";
import { documentJSON, fieldsFromJSON, fromJSON, javaScriptCode, jsonHint, operatorNames, parse,
  pathOf, structuredQuery, swiftCode, textOf, types } from "./values.js";
import { pageSize, virtualList } from "./virtual-list.js";

const pollMilliseconds = 1000;
const writesPerCommit = 400;
/** A commit may have 10 MiB; a character is at most three bytes. */
const commitCharactersMax = 3_000_000;
const detailCharactersMax = 80;

export async function render(root, segments, signal) {
  const path = h("input.mono", { "aria-label": "Path", placeholder: "chats/tina-carl/messages",
    autocomplete: "off", spellcheck: "false" });
  const columns = h("div.columns", { tabindex: "-1" });
  const form = h("form.toolbar",
    field("Go to a collection or document", path),
    h("button", { type: "submit" }, "Go"),
    button("Import", () => importDocuments(trimmed(path.value))));
  whenSubmitted(form, () => { location.hash = toPath(trimmed(path.value)); });
  root.append(h("h1.visually-hidden", "Firestore"),
    h("div.forms", form, findForm(showFound)), columns);
  const stack = columnStack(columns, columnOf, signal);
  let found = null;

  /** Shows the documents of a search in a column of their own, before the others. */
  function showFound(id, query) {
    closeFound();
    found = makeColumn((signal) => collectionColumn(id, signal, query), signal);
    found.element.querySelector(".column-head")
      .append(crossButton("Close the documents found", closeFound));
    columns.prepend(found.element);
    columns.scrollLeft = 0;
  }

  function closeFound() {
    found?.close();
    found = null;
  }

  function show(names) {
    path.value = names.join("/");
    stack.show(["", ...names.map((_, index) => names.slice(0, index + 1).join("/"))], names);
    return true;
  }

  function columnOf(path, signal) {
    const depth = path === "" ? 0 : path.split("/").length;
    const make = depth === 0 ? rootColumn : depth % 2 ? collectionColumn : documentPanel;
    return make(path, signal);
  }

  /** The sequence number of the last change that the columns know. */
  let sequence = null;

  async function follow() {
    if (sequence === null) {
      ({ sequence } = await hub("/changes", { signal }));
      return;
    }
    const changes = [];
    let page;
    do {
      page = await hub(`/changes?after=${sequence}`, { signal });
      ({ sequence } = page);
      changes.push(...page.changes);
    } while (page.hasMore && page.isComplete);
    for (const column of [...stack.shown, found].filter(Boolean)) {
      if (!page.isComplete) column.refresh();
      else if (changes.length) column.changed(changes);
    }
  }

  show(segments);
  poll(follow, pollMilliseconds, signal, () => { sequence = null; });
  return show;
}

/** A path without slashes at its ends and spaces around its names. */
const trimmed = (path) =>
  path.split("/").map((name) => name.trim()).filter(Boolean).join("/");

// MARK: Collections of the root

function rootColumn(_, signal) {
  const list = h("div.links");
  let chosen = null;
  let ids = [];

  function draw() {
    replace(list,
      ids.map((id) => h("a.link-row", { href: toPath(id), "aria-current": id === chosen }, id)),
      !ids.length && h("p.quiet",
        "There are no documents yet. Add the first, import some, or run your app."));
  }

  async function refresh() {
    const found = await attempt(() => collectionIDs("", signal));
    if (!found) return;
    ids = found;
    draw();
  }

  refresh();
  return {
    element: h("section.column.narrow", { "aria-label": "Collections" },
      h("div.column-head", h("h2", "Collections"), button("Add", () => addCollection(""))),
      list),
    refresh,
    choose(id) {
      chosen = id;
      draw();
    },
    changed(changes) {
      const isNews = ({ path, kind }) => kind === "deleted" || !ids.includes(path.split("/")[0]);
      if (changes.some(isNews)) refresh();
    },
  };
}

// MARK: Documents of a collection

/** The column of a collection or, with a query, of the documents that were searched for. */
function collectionColumn(path, signal, initial) {
  const names = path.split("/");
  const id = names.at(-1);
  const parent = names.slice(0, -1).join("/");
  const number = h("span.quiet");
  const metrics = h("small.quiet");
  let query = initial ?? { filters: [] };
  // Only the API's list, which goes page by page, names missing documents that have documents
  // below them. Pages that follow one another are listed; after a jump they are queried, unless
  // the collection is known to have such documents, because a query's positions lack them.
  let isListed = false;
  let tokens = new Map();
  let chosen = null;

  const list = virtualList({
    label: `Documents of ${path}`,
    load,
    signal,
    renderRow: (row) => [
      initial && row.detail && h("span", row.detail),
      row.isMissing
        ? h("span.missing", { title: "Not a document itself: it has documents below it" },
          nameOf(row))
        : h(initial ? "span.detail" : "span", nameOf(row)),
      !initial && row.detail && h("span.detail", row.detail)],
    choose: (row) => { location.hash = toPath(row.path); },
  });
  const problem = problemLine();
  const nothing = h("p.quiet", { role: "status", hidden: true },
    "No document's field starts with this text. Upper and lower case differ.");
  list.onerror = (error) => showProblem(problem, error);

  const nameOf = ({ path }) => (query.isGroup ? path : path.split("/").at(-1));
  const isPlain = () => !query.filters.length && !query.order && !query.isGroup;

  async function load(page, previous, signal) {
    const found = (isPlain() && await listPage(page, signal))
      || await queryPage(page, previous, signal);
    showProblem(problem, null);
    return found;
  }

  async function listPage(page, signal) {
    const token = page === 0 ? "" : tokens.get(page);
    if (token === undefined) return null;
    const parameters = new URLSearchParams({ pageSize, showMissing: "true",
      "mask.fieldPaths": "__name__", ...(token && { pageToken: token }) });
    const found = await firestore(parent, `/${encodeURIComponent(id)}?${parameters}`, { signal });
    const rows = (found.documents ?? []).map(({ name, createTime }) =>
      ({ id: pathOf(name), path: pathOf(name), name, isMissing: !createTime }));
    if (found.nextPageToken) tokens.set(page + 1, found.nextPageToken);
    if (rows.some((row) => row.isMissing)) isListed = true;
    return { rows, isLast: !found.nextPageToken };
  }

  async function queryPage(page, previous, signal) {
    const names = query.order ? [query.order.field] : query.filters.map(({ field }) => field);
    const structured = structuredQuery(id, query);
    structured.limit = pageSize;
    structured.select = { fields: ["__name__", ...new Set(names)]
      .map((fieldPath) => ({ fieldPath })) };
    const last = previous?.at(-1);
    // A cursor after the page before costs nothing; an offset has to skip documents.
    if (last && hasSimpleOrder(last)) {
      const { field, direction } = query.order ?? { field: "__name__", direction: "ASCENDING" };
      const values = [{ referenceValue: last.name }];
      if (field !== "__name__") {
        structured.orderBy.push({ field: { fieldPath: "__name__" }, direction });
        values.unshift(last.value);
      } else {
        structured.orderBy = [{ field: { fieldPath: field }, direction }];
      }
      structured.startAt = { before: false, values };
    } else if (page > 0) {
      structured.offset = page * pageSize;
    }
    const found = await firestore(query.isGroup ? "" : parent, ":runQuery", { signal, body: {
      structuredQuery: structured,
      ...(page === 0 && { explainOptions: { analyze: true } }),
    } });
    const explained = found.find((part) => part.explainMetrics)?.explainMetrics;
    if (explained) showMetrics(explained);
    const rows = found.filter((part) => part.document)
      .map(({ document }) => queryRow(document, names));
    return { rows, isLast: rows.length < pageSize };
  }

  function queryRow({ name, fields = {} }, names) {
    const value = query.order && valueAt(fields, query.order.field);
    const detail = names.map((name) => valueAt(fields, name)).filter(Boolean)
      .map((value) => textOf(value).slice(0, detailCharactersMax)).join(" · ");
    return { id: pathOf(name), path: pathOf(name), name, value, detail };
  }

  // Firestore also orders by the fields of inequalities, which a cursor would need to have.
  const hasSimpleOrder = (row) => query.filters.every(({ field, operator }) =>
    !["<", "<=", ">", ">=", "!=", "not-in"].includes(operator) || field === query.order?.field)
    && (!query.order || query.order.field === "__name__" || row.value !== undefined);

  function showMetrics({ planSummary, executionStats }) {
    const used = (planSummary?.indexesUsed ?? []).map((index) =>
      `${index.query_scope ?? "Collection"} ${index.properties ?? ""}`.trim());
    const milliseconds = parseFloat(executionStats?.executionDuration ?? "0") * 1000;
    setText(metrics, `Index: ${used.join("; ") || "none"} · `
      + `${counted(Number(executionStats?.readOperations ?? 0), "read")} · `
      + `${milliseconds.toFixed(1)} ms for the first page`);
  }

  async function countRows(counted = query) {
    const body = { structuredAggregationQuery: {
      structuredQuery: structuredQuery(id, counted),
      aggregations: [{ alias: "n", count: {} }],
    } };
    const found = await firestore(query.isGroup ? "" : parent, ":runAggregationQuery",
      { signal, body });
    return Number(found[0].result.aggregateFields.n.integerValue);
  }

  let countedTime = -Infinity;
  let countMilliseconds = 0;
  let laterCount;

  /** Counts the documents, but at most a tenth of the time: in large collections it is costly. */
  async function updateCount() {
    clearTimeout(laterCount);
    const wait = countedTime + 10 * countMilliseconds - performance.now();
    if (wait > 0) {
      laterCount = setTimeout(() => attempt(updateCount), wait);
      return;
    }
    const start = performance.now();
    const found = await countRows();
    countedTime = performance.now();
    countMilliseconds = countedTime - start;
    setText(number, count(found));
    if (!isListed) list.total = found;
    nothing.hidden = !initial || found > 0;
  }

  signal.addEventListener("abort", () => clearTimeout(laterCount));

  async function reset() {
    [isListed, tokens, countedTime] = [false, new Map(), -Infinity];
    setText(metrics, "");
    await attempt(async () => {
      await list.reset();
      await updateCount();
    });
    list.chosen = chosen && `${path}/${chosen}`;
  }

  async function refresh() {
    await attempt(async () => {
      await list.refresh();
      await updateCount();
    });
  }

  const bar = queryBar(path, (changed) => {
    query = changed;
    reset();
  });

  /** Scrolls to the chosen document when the column opens at the address of one. */
  async function locate() {
    if (!chosen || !isPlain() || list.has(`${path}/${chosen}`)) return;
    const before = { filters: [{ field: "__name__", operator: "<",
      value: { stringValue: `${path}/${chosen}` } }] };
    list.scrollTo(await countRows(before));
  }

  reset().then(() => attempt(locate));
  return {
    element: h("section.column",
      { "aria-label": initial ? "Documents found" : `Collection ${path}` },
      h("div.column-head", h("h2.mono", initial ? `Found in ${id}` : id), number,
        !initial && [bar.toggle, button("Add", () => addDocument(path))]),
      bar.element, metrics, problem, nothing, list.element),
    refresh,
    choose(id) {
      chosen = id;
      list.chosen = id && `${path}/${id}`;
    },
    changed(changes) {
      if (query.isGroup) {
        if (changes.some((change) => change.path.split("/").at(-2) === id)) refresh();
        return;
      }
      const own = changes.filter((change) => change.path.startsWith(`${path}/`));
      if (!own.length) return;
      const rows = own.map((change) => change.path.split("/").slice(0, names.length + 1).join("/"));
      const isRow = (change, index) => change.path === rows[index];
      // A document below a row matters only if the row is not in the list.
      const isNews = (change, index) => isRow(change, index)
        ? change.kind !== "updated" || !isPlain() : !list.has(rows[index]);
      list.flash(own.filter(isRow).map((change) => change.path));
      if (own.some(isNews)) refresh().then(() => list.flash(rows));
    },
  };
}

/** The value at a field path, in which names may be quoted by backticks. */
function valueAt(fields, path) {
  let value = { mapValue: { fields } };
  for (const [, quoted, plain] of path.matchAll(/`((?:[^`\\]|\\.)*)`|([^.`]+)/g)) {
    const name = plain ?? quoted.replace(/\\(.)/g, "$1");
    value = value?.mapValue?.fields?.[name];
  }
  return value;
}

// MARK: Search

/** The form that searches all collections with an ID; the last search is remembered. */
function findForm(show) {
  const [collection, name] = [["collection", "messages"], ["field", "text"]].map(([key, value]) =>
    h("input.mono", { required: true, autocomplete: "off",
      value: localStorage.getItem(`hearth-find-${key}`) ?? value }));
  const text = h("input", { type: "search", required: true, autocomplete: "off" });
  const form = h("form.toolbar", { role: "search" }, field("In the collections", collection),
    field("where the field", name), field("starts with", text),
    h("button.primary", { type: "submit" }, "Find"));
  return whenSubmitted(form, () => {
    localStorage.setItem("hearth-find-collection", collection.value);
    localStorage.setItem("hearth-find-field", name.value);
    const fieldName = name.value.trim();
    // The last character of Unicode sorts after all others.
    show(collection.value.trim(), {
      isGroup: true,
      order: { field: fieldName, direction: "ASCENDING" },
      filters: [
        { field: fieldName, operator: ">=", value: { stringValue: text.value } },
        { field: fieldName, operator: "<=", value: { stringValue: `${text.value}\u{10FFFF}` } },
      ],
    });
  });
}

// MARK: Filters and order

/** The form of a collection's query, which also shows the query as code. */
function queryBar(path, onchange) {
  const input = (label) =>
    h("input.mono", { "aria-label": label, placeholder: label.toLowerCase(), autocomplete: "off" });
  const filters = h("div");
  const orderField = input("Order by");
  const direction = select([["ASCENDING", "ascending"], ["DESCENDING", "descending"]],
    { "aria-label": "Direction" });
  const isGroup = h("input", { type: "checkbox" });
  const code = h("pre.code-box", { tabindex: "0" });
  let rows = [];

  function addFilter() {
    const name = input("Field");
    const operator = select(operatorNames, { "aria-label": "Operator" });
    const value = input("Value");
    const type = select(["automatic", ...Object.keys(types)], { "aria-label": "Type" });
    const row = {
      element: h("div.row", name, operator, value, type,
        crossButton("Remove this filter", () => removeFilter(row))),
      read: () => ({ field: name.value.trim(), operator: operator.value,
        value: valueOf(type.value, value.value) }),
    };
    rows.push(row);
    filters.append(row.element);
    name.focus();
  }

  function removeFilter(row) {
    rows = rows.filter((other) => other !== row);
    row.element.remove();
  }

  function read() {
    const orderName = orderField.value.trim();
    return {
      filters: rows.map((row) => row.read()).filter((filter) => filter.field),
      order: orderName ? { field: orderName, direction: direction.value } : undefined,
      isGroup: isGroup.checked,
    };
  }

  function apply() {
    const query = read();
    setText(code, `// Swift\n${swiftCode(path, query)}\n\n`
      + `// JavaScript\n${javaScriptCode(path, query)}`);
    onchange(query);
  }

  function clear() {
    rows = [];
    replace(filters);
    orderField.value = "";
    isGroup.checked = false;
    apply();
  }

  const element = h("form.query-bar", { hidden: true },
    filters,
    h("div.row", button("Add a filter", addFilter), orderField, direction,
      checkField("all collections of this ID", isGroup)),
    h("div.row", h("button.primary", { type: "submit" }, "Apply"), button("Clear", clear)),
    code);
  const toggle = button("Filter", () => {
    element.hidden = !element.hidden;
    toggle.setAttribute("aria-expanded", String(!element.hidden));
    if (!element.hidden && !rows.length) addFilter();
  }, { "aria-expanded": "false" });
  whenSubmitted(element, apply);
  return { element, toggle };
}

const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d.*)?$/;

/** The value of a filter; "automatic" reads it as JSON, else as a time, else as a text. */
function valueOf(type, text) {
  if (type !== "automatic") return parse(type, text);
  try {
    return fromJSON(documentJSON(text));
  } catch {
    return isTime.test(text) ? parse("timestamp", text) : { stringValue: text };
  }
}

// MARK: Import

/** Asks for a JSON file and writes its documents into a collection. */
async function importDocuments(shownPath) {
  const names = shownPath.split("/");
  const path = h("input.mono", { required: true, placeholder: "users", autocomplete: "off",
    value: names.slice(0, names.length - (names.length % 2 ? 0 : 1)).join("/") });
  const file = h("input", { type: "file", accept: ".json,application/json", required: true });
  const progress = h("p", { role: "status" });
  const written = await ask({
    title: "Import documents",
    body: [
      field("Collection", path),
      field("JSON file", file, "An object with the documents by ID, or an array of documents, each "
        + `with its "id" or without. ${jsonHint}`),
      progress,
    ],
    action: "Import",
    async read(signal) {
      const collection = trimmed(path.value);
      if (collection.split("/").length % 2 === 0) {
        throw new Error("Name a collection, such as users or chats/c/messages.");
      }
      const entries = documentsOf(documentJSON(await file.files[0].text()));
      await writeDocuments(collection, entries, signal, (number) => {
        setText(progress, `${count(number)} of ${count(entries.length)} written`);
      });
      return { number: entries.length, collection };
    },
  });
  if (!written) return;
  toast(`${counted(written.number, "document was", "documents were")} imported.`);
  location.hash = toPath(written.collection);
}

/** The documents of an imported file as pairs of ID and fields, all of them checked. */
function documentsOf(plain) {
  const entries = Array.isArray(plain)
    ? plain.map((document) => [String(document?.id ?? randomID()), document])
    : Object.entries(plain ?? {});
  const ids = new Set();
  return entries.map(([id, document]) => {
    if (!id || id.includes("/")) throw new Error(`"${id}" is no ID: it is empty or has a slash.`);
    if (ids.has(id)) throw new Error(`Two documents have the ID "${id}".`);
    ids.add(id);
    return [id, fieldsFromJSON(document)];
  });
}

/** Writes documents batch by batch until the signal aborts. */
async function writeDocuments(collection, entries, signal, progressed) {
  let writes = [];
  let bytes = 0;
  for (const [index, [id, fields]] of entries.entries()) {
    writes.push({ update: { name: documentName(`${collection}/${id}`), fields } });
    bytes += JSON.stringify(fields).length;
    const isFull = writes.length === writesPerCommit || bytes > commitCharactersMax;
    if (!isFull && index < entries.length - 1) continue;
    signal.throwIfAborted();
    await firestore("", ":commit", { body: { writes } });
    progressed(index + 1);
    [writes, bytes] = [[], 0];
  }
}
