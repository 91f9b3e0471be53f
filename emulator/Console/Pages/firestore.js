// Firestore: collections, documents and fields as columns, live.

import { documentName, firestore, hub } from "./api.js";
import { ask, attempt, button, count, field, h, poll, replace, to, toast } from "./dom.js";
import { collectionIDs, documentPanel, newDocument, randomID, startCollection } from "./document.js";
import { fieldsFromJSON, fromJSON, javaScriptCode, json, jsonHint, operatorNames, parse, pathOf,
  structuredQuery, swiftCode, textOf, types } from "./values.js";
import { virtualList } from "./virtual-list.js";

export async function render(root, segments, signal) {
  const path = h("input.mono", { "aria-label": "Path", placeholder: "chats/tina-carl/messages",
    autocomplete: "off", spellcheck: "false" });
  const columns = h("div.columns", { tabindex: "-1" });
  root.append(
    h("h1.hidden", "Firestore"),
    h("form.toolbar", { onsubmit: go },
      field("Go to a collection or document", path),
      h("button", { type: "submit" }, "Go"),
      button("Import …", importDocuments)),
    findForm(showFound),
    columns);
  let shown = [];
  let found = null;

  /** Shows the documents that were looked for in a column of their own, before the others. */
  function showFound(id, query) {
    found?.close();
    found?.element.remove();
    const closed = new AbortController();
    found = { close: () => closed.abort(),
      ...collectionColumn(id, AbortSignal.any([closed.signal, signal]), query) };
    found.element.querySelector(".column-head").append(h("button.plain", {
      type: "button", "aria-label": "Close the documents found", onclick: () => {
        found.close();
        found.element.remove();
        found = null;
      } }, "×"));
    columns.prepend(found.element);
    columns.scrollLeft = 0;
  }

  function go(event) {
    event.preventDefault();
    const names = path.value.split("/").map((name) => name.trim()).filter(Boolean);
    location.hash = to("firestore", ...names);
  }

  /** Shows the columns of a path; those that it shares with what is shown stay. */
  function show(names) {
    path.value = names.join("/");
    const wanted = ["", ...names.map((_, index) => names.slice(0, index + 1).join("/"))];
    let same = 0;
    while (same < shown.length && shown[same].path === wanted[same]) same += 1;
    shown.splice(same).forEach((column) => {
      column.close();
      column.element.remove();
    });
    for (const name of wanted.slice(same)) {
      const column = columnOf(name);
      shown.push(column);
      columns.append(column.element);
    }
    shown.forEach((column, index) => column.choose?.(wanted[index + 1]?.split("/").pop() ?? null));
    shown.at(-1).element.scrollIntoView({ block: "nearest", inline: "end" });
    return true;
  }

  function columnOf(name) {
    const closed = new AbortController();
    const within = AbortSignal.any([closed.signal, signal]);
    const depth = name === "" ? 0 : name.split("/").length;
    const make = depth === 0 ? rootColumn : depth % 2 ? collectionColumn : documentPanel;
    return { path: name, close: () => closed.abort(), ...make(name, within) };
  }

  let sequence = null;
  async function follow() {
    const news = await hub(`/changes${sequence === null ? "" : `?after=${sequence}`}`);
    const isFirst = sequence === null;
    sequence = news.sequence;
    if (isFirst) return;
    for (const column of [...shown, ...(found ? [found] : [])]) {
      if (!news.isComplete) column.refresh?.();
      else if (news.changes.length) column.changed?.(news.changes);
    }
  }

  show(segments);
  poll(follow, 1000, signal, () => { sequence = null; });
  return show;
}

// MARK: Collections of the root

function rootColumn(_, signal) {
  const list = h("div.links");
  let chosen = null;
  let ids = [];

  function draw() {
    replace(list, ids.map((id) =>
      h("a.link-row", { href: to("firestore", id), "aria-current": id === chosen ? "true" : null }, id)),
    !ids.length && h("p.quiet", "There are no documents yet. Add the first, import some, or run your app."));
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
      h("div.column-head", h("h2", "Collections"), button("Add", () => startCollection(""))),
      list),
    refresh,
    choose(id) {
      chosen = id;
      draw();
    },
    changed(changes) {
      if (changes.some(({ path, kind }) => kind === "deleted" || !ids.includes(path.split("/")[0]))) refresh();
    },
  };
}

// MARK: Documents of a collection

/** The column of a collection, or, with a query, of the documents that were looked for. */
function collectionColumn(path, signal, initial) {
  const names = path.split("/");
  const id = names.at(-1);
  const parent = names.slice(0, -1).join("/");
  const number = h("span.quiet");
  const metrics = h("small.quiet");
  let query = initial ?? { filters: [] };
  // Collections with missing documents, which have documents below them alone, are listed in
  // order; only then does the API name those.
  let isListed = false;
  let tokens = new Map();
  let chosen = null;

  const list = virtualList({
    label: `Documents of ${path}`, load, signal,
    renderRow: (row) => [
      h(row.isMissing ? "span.missing" : "span", row.isMissing ? { title: "Not a document itself: it has documents below it" } : {},
        query.isGroup ? row.path : row.path.split("/").at(-1)),
      row.detail && h("span.detail", row.detail)],
    choose: (row) => { location.hash = to("firestore", ...row.path.split("/")); },
  });
  list.onerror = (error) => toast(error.message, { isError: true });

  const isPlain = () => !query.filters.length && !query.order && !query.isGroup;

  async function load(page, previous, signal) {
    if (isPlain() && (page === 0 || isListed)) {
      const found = await listPage(page, signal);
      if (found) return found;
    }
    return queryPage(page, previous, signal);
  }

  async function listPage(page, signal) {
    const token = page === 0 ? "" : tokens.get(page);
    if (token === undefined) return null;
    const parameters = new URLSearchParams({ pageSize: virtualList.pageSize, showMissing: "true",
      "mask.fieldPaths": "__name__", ...(token && { pageToken: token }) });
    const found = await firestore(parent, `/${encodeURIComponent(id)}?${parameters}`, { signal });
    const rows = (found.documents ?? []).map(({ name, createTime }) =>
      ({ id: pathOf(name), path: pathOf(name), name, isMissing: !createTime }));
    if (found.nextPageToken) tokens.set(page + 1, found.nextPageToken);
    if (rows.some((row) => row.isMissing)) isListed = true;
    return { rows, isLast: !found.nextPageToken };
  }

  async function queryPage(page, previous, signal) {
    const structured = structuredQuery(id, query);
    const size = virtualList.pageSize;
    structured.limit = size;
    const orders = structured.orderBy ?? [];
    const shownFields = query.order ? [query.order.field] : query.filters.map((filter) => filter.field);
    structured.select = { fields: ["__name__", ...new Set(shownFields)].map((fieldPath) => ({ fieldPath })) };
    const last = previous?.at(-1);
    const direction = query.order?.direction ?? "ASCENDING";
    // A cursor behind the page before costs nothing; an offset skips names.
    if (last && (query.order || !hasInequality())) {
      structured.orderBy = [...orders, { field: { fieldPath: "__name__" }, direction }];
      structured.startAt = { before: false, values: [...(query.order ? [last.value] : []), { referenceValue: last.name }] };
    } else if (page > 0) {
      structured.offset = page * size;
    }
    const found = await firestore(query.isGroup ? "" : parent, ":runQuery", { signal,
      body: { structuredQuery: structured, ...(page === 0 && { explainOptions: { analyze: true } }) } });
    const explained = found.find((part) => part.explainMetrics)?.explainMetrics;
    if (explained) showMetrics(explained);
    const rows = found.filter((part) => part.document).map(({ document: { name, fields = {} } }) => {
      const value = query.order && valueAt(fields, query.order.field);
      const detail = shownFields.map((name) => valueAt(fields, name)).filter(Boolean).map((value) => textOf(value).slice(0, 80)).join(" · ");
      return { id: pathOf(name), path: pathOf(name), name, value, detail };
    });
    return { rows, isLast: rows.length < size };
  }

  // Without an order, an inequality orders by its field.
  const hasInequality = () => query.filters.some(({ operator }) => ["<", "<=", ">", ">=", "!=", "not-in"].includes(operator));

  function showMetrics({ planSummary, executionStats }) {
    const used = (planSummary?.indexesUsed ?? []).map((index) =>
      `${index.query_scope ?? "Collection"} ${index.properties ?? ""}`.trim());
    metrics.textContent = `Index: ${used.join("; ") || "none"} · ${executionStats?.readOperations ?? 0} reads · `
      + `${(parseFloat(executionStats?.executionDuration ?? "0") * 1000).toFixed(1)} ms for the first page`;
  }

  async function countRows() {
    const found = await firestore(query.isGroup ? "" : parent, ":runAggregationQuery", { signal, body: {
      structuredAggregationQuery: { structuredQuery: structuredQuery(id, query), aggregations: [{ alias: "n", count: {} }] } } });
    return Number(found[0].result.aggregateFields.n.integerValue);
  }

  async function updateCount() {
    const found = await countRows();
    number.textContent = count(found);
    if (!isListed) list.total = found;
  }

  async function reset() {
    [isListed, tokens] = [false, new Map()];
    metrics.textContent = "";
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

  reset();
  return {
    element: h("section.column", { "aria-label": initial ? "Documents found" : `Collection ${path}` },
      h("div.column-head", h("h2.mono", initial ? `Found in ${id}` : id), number,
        !initial && [bar.toggle, button("Add", () => newDocument(path))]),
      bar.element, metrics, list.element),
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
      // A document below a row is news only if the row is not known.
      const isNews = own.some((change, index) => (change.path === rows[index]
        ? change.kind !== "updated" || !isPlain() : !list.has(rows[index])));
      list.flash(own.filter((change, index) => change.path === rows[index]).map((change) => change.path));
      if (isNews) refresh().then(() => list.flash(rows));
    },
  };
}

/** The value at a field path of plain names. */
function valueAt(fields, path) {
  let value = { mapValue: { fields } };
  for (const name of path.split(".")) value = value?.mapValue?.fields?.[name.replaceAll("`", "")];
  return value;
}

// MARK: Finding documents

/** The form that looks for documents in all collections of an ID; what was asked last is kept. */
function findForm(show) {
  const key = "hearth-find";
  const last = JSON.parse(localStorage.getItem(key) ?? '["messages", "text", ""]');
  const [collection, name, text] = [
    h("input.mono", { required: true, autocomplete: "off", value: last[0] }),
    h("input.mono", { required: true, autocomplete: "off", value: last[1] }),
    h("input", { type: "search", required: true, autocomplete: "off", value: last[2] })];
  return h("form.toolbar", { role: "search", onsubmit(event) {
    event.preventDefault();
    localStorage.setItem(key, JSON.stringify([collection.value, name.value, text.value]));
    // The texts that start with it: up to the largest character of the basic plane.
    show(collection.value.trim(), { isGroup: true, order: { field: name.value.trim(), direction: "ASCENDING" }, filters: [
      { field: name.value.trim(), operator: ">=", value: { stringValue: text.value } },
      { field: name.value.trim(), operator: "<=", value: { stringValue: `${text.value}\uf8ff` } }] });
  } }, field("In the collections", collection), field("where the field", name),
  field("starts with", text), h("button.primary", { type: "submit" }, "Find"));
}

// MARK: Filters and order

/** The form of a collection's query, and the query as code. */
function queryBar(path, onchange) {
  const filters = h("div.filters");
  const orderField = h("input.mono", { placeholder: "field", "aria-label": "Order by", autocomplete: "off" });
  const direction = h("select", { "aria-label": "Direction" },
    h("option", { value: "ASCENDING" }, "ascending"), h("option", { value: "DESCENDING" }, "descending"));
  const isGroup = h("input", { type: "checkbox", id: `group-${path}` });
  const code = h("pre.code-box", { tabindex: "0" });
  const problem = h("p.problem", { role: "alert", hidden: true });

  function addFilter() {
    const name = h("input.mono", { placeholder: "field", "aria-label": "Field", autocomplete: "off" });
    const operator = h("select", { "aria-label": "Operator" }, operatorNames.map((text) => h("option", text)));
    const type = h("select", { "aria-label": "Type" },
      ["automatic", ...Object.keys(types)].map((text) => h("option", text)));
    const value = h("input.mono", { placeholder: "value", "aria-label": "Value", autocomplete: "off" });
    const row = h("div.row", name, operator, value, type,
      h("button.plain", { type: "button", "aria-label": "Remove this filter", onclick: () => row.remove() }, "×"));
    row.read = () => ({ field: name.value.trim(), operator: operator.value, value: valueOf(type.value, value.value) });
    filters.append(row);
    name.focus();
  }

  function read() {
    return {
      filters: [...filters.children].map((row) => row.read()).filter((filter) => filter.field),
      order: orderField.value.trim() ? { field: orderField.value.trim(), direction: direction.value } : undefined,
      isGroup: isGroup.checked,
    };
  }

  function apply(event) {
    event?.preventDefault();
    try {
      const query = read();
      problem.hidden = true;
      code.textContent = `// Swift\n${swiftCode(path, query)}\n\n// JavaScript\n${javaScriptCode(path, query)}`;
      onchange(query);
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error.message;
    }
  }

  const element = h("form.query-bar", { onsubmit: apply, hidden: true },
    filters,
    h("div.row", h("button", { type: "button", onclick: addFilter }, "Add a filter"),
      orderField, direction,
      h("label", isGroup, " all collections of this ID")),
    h("div.row", h("button.primary", { type: "submit" }, "Apply"),
      h("button", { type: "button", onclick: () => {
        filters.replaceChildren();
        orderField.value = "";
        isGroup.checked = false;
        apply();
      } }, "Clear")),
    problem, code);
  const toggle = h("button", { type: "button", "aria-expanded": "false", onclick: () => {
    element.hidden = !element.hidden;
    toggle.setAttribute("aria-expanded", String(!element.hidden));
    if (!element.hidden && !filters.children.length) addFilter();
  } }, "Filter");
  return { element, toggle };
}

/** The value of a filter; automatic means JSON if it is JSON, else a text. */
function valueOf(type, text) {
  if (type !== "automatic") return parse(type, text);
  try {
    return fromJSON(JSON.parse(text));
  } catch {
    return { stringValue: text };
  }
}

// MARK: Import

/** Writes the documents of a JSON file into a collection, 400 at a time. */
async function importDocuments() {
  const path = h("input.mono", { required: true, placeholder: "users", autocomplete: "off" });
  const file = h("input", { type: "file", accept: ".json,application/json", required: true });
  const progress = h("p", { role: "status" });
  const written = await ask({
    title: "Import documents", action: "Import",
    body: [
      field("Collection", path),
      field("JSON file", file, `An object with the documents by ID, or an array of documents, each with its "id" or without. ${jsonHint}`),
      progress],
    async read() {
      if (path.value.split("/").length % 2 === 0) throw new Error("Name a collection, such as users or chats/c/messages.");
      const plain = json(await file.files[0].text());
      const entries = Array.isArray(plain)
        ? plain.map((document) => [typeof document.id === "string" ? document.id : randomID(), document])
        : Object.entries(plain);
      const collection = path.value.replace(/^\/|\/$/g, "");
      for (let start = 0; start < entries.length; start += 400) {
        const writes = entries.slice(start, start + 400).map(([id, document]) => ({ update: {
          name: documentName(`${collection}/${id}`), fields: fieldsFromJSON(document) } }));
        await firestore("", ":commit", { body: { writes } });
        progress.textContent = `${count(Math.min(start + 400, entries.length))} of ${count(entries.length)} written`;
      }
      return { number: entries.length, collection };
    },
  });
  if (!written) return;
  toast(`${count(written.number)} documents were imported.`);
  location.hash = to("firestore", ...written.collection.split("/"));
}
