// Vectors: indexes, their records, and what is similar to a record.

import { request } from "./api.js";
import { ask, attempt, button, codeArea, debounced, facts, field, h, replace, select, setText,
  table, to, toast, whenSubmitted } from "./dom.js";
import { backLink, detailPane, entryList, fillPane } from "./entries.js";
import { count, counted } from "./format.js";
import { brief, copyButton, longText } from "./long-text.js";
import { json } from "./values.js";

const idsMax = 100;
const namespacesShown = 20;
/** The name of the namespace without a name, as Pinecone's clients show it. */
const defaultNamespace = "__default__";
const shown = (namespace) => namespace || defaultNamespace;
const stored = (namespace) => (namespace === defaultNamespace ? "" : namespace);
const vectors = (index, path, options) =>
  request("vectors", `/ix/${encodeURIComponent(index)}/${path}`, options);

export async function render(root, segments, signal) {
  if (segments.length) return showIndex(root, segments, signal);
  const body = h("div");
  const load = async () => {
    const { indexes = [] } = await request("vectors", "/indexes", { signal });
    const cards = await Promise.all(indexes.map((index) => indexCard(index, signal)));
    replace(body, cards.length ? h("div.cards", cards)
      : h("p.quiet", "There is no index yet. A client of Pinecone's API creates one; Psst's "
        + "functions create theirs with the first message."));
  };
  root.append(h("h1", "Vectors"), h("div.toolbar", button("Refresh", load)), body);
  await load();
  return undefined;
}

async function indexCard(index, signal) {
  const stats = await vectors(index.name, "describe_index_stats", { body: {}, signal });
  const namespaces = Object.entries(stats.namespaces ?? {});
  return h("article.card", h("h2", h("a", { href: to("vectors", index.name) }, brief(index.name))),
    facts([
      ...indexFacts(index, stats),
      ["Namespaces", namespaces.length > 0 && h("ul.plain",
        namespaces.slice(0, namespacesShown).map(([name, { vectorCount }]) => h("li",
          h("a", { href: to("vectors", index.name, shown(name)) }, brief(shown(name))),
          `: ${count(vectorCount)}`)),
        namespaces.length > namespacesShown
          && h("li", `and ${count(namespaces.length - namespacesShown)} more`))],
      ["Protected", index.deletion_protection === "enabled" && "yes"],
    ]));
}

function indexFacts(index, stats) {
  const tags = Object.entries(index.tags ?? {});
  return [
    ["Dimension", count(index.dimension)],
    ["Metric", index.metric],
    ["Records", count(stats.totalVectorCount)],
    ["Tags", tags.length > 0 && h("ul.plain", tags.map(([name, value]) =>
      h("li", brief(name), " = ", brief(value))))],
  ];
}

// MARK: One index

async function showIndex(root, segments, signal) {
  const index = segments[0];
  const [description, stats] = await Promise.all([
    request("vectors", `/indexes/${encodeURIComponent(index)}`, { signal }),
    vectors(index, "describe_index_stats", { body: {}, signal }),
  ]);
  const counts = stats.namespaces ?? {};
  const names = Object.keys(counts).sort();
  let namespace = stored(segments[1] ?? shown(names.includes("") ? "" : names[0] ?? ""));
  let chosen = segments[2] ?? null;
  let ids = [];
  let next = null;

  if (!names.includes(namespace)) names.unshift(namespace);
  const namespaces = names.map((name) =>
    [name, `${shown(name)} (${count(counts[name]?.vectorCount ?? 0)})`]);
  const space = select(namespaces, {
    value: namespace,
    onchange() {
      location.hash = to("vectors", index, shown(space.value));
    },
  });
  const prefix = h("input.mono", {
    type: "search",
    autocomplete: "off",
    placeholder: "chat id#",
    oninput: debounced(() => attempt(load), 250),
  });
  const summary = h("p.quiet", { role: "status" });
  const list = entryList({
    label: "Records",
    key: (id) => id,
    state: (id) => String(id === chosen),
    entry: (id) => h("li", h("a.entry", {
      href: to("vectors", index, shown(namespace), id),
      "aria-current": id === chosen,
    }, h("code", brief(id)))),
    empty: () => prefix.value ? "No ID begins with this." : "The namespace has no records.",
  });
  const more = button("Load more IDs", page, { hidden: true });
  const detail = detailPane(root, {
    label: "Record",
    signal,
    show: (element, id, signal) =>
      showRecord(element, { index, namespace, id, signal, removed: load }),
  });

  async function page() {
    const query = new URLSearchParams({ limit: idsMax });
    if (namespace) query.set("namespace", namespace);
    if (prefix.value) query.set("prefix", prefix.value);
    if (next) query.set("paginationToken", next);
    const wanted = `${namespace}\n${prefix.value}`;
    const found = await vectors(index, `vectors/list?${query}`, { signal });
    // The response for an earlier prefix must not replace that for a later one.
    if (wanted !== `${namespace}\n${prefix.value}`) return;
    ids = [...(next ? ids : []), ...found.vectors.map((one) => one.id)];
    next = found.pagination?.next ?? null;
    list.show(ids);
    more.hidden = !next;
    const number = counted(ids.length, "ID");
    setText(summary, next ? `The first ${number}` : number);
  }

  async function load() {
    next = null;
    list.reset();
    await page();
  }

  function showChosen() {
    list.show(ids);
    detail.choose(chosen);
  }

  root.classList.add("split");
  root.append(h("div.head", backLink("All indexes", to("vectors")), h("h1", brief(index))),
    h("section.list",
      facts(indexFacts(description, stats)),
      h("div.toolbar", field("Namespace", space), field("ID begins with", prefix),
        button("Refresh", load)),
      summary, list.element, more),
    detail.element);
  await load();
  showChosen();
  return (moved) => {
    if (moved[0] !== index) return false;
    const other = stored(moved[1] ?? shown(namespace));
    chosen = moved[2] ?? null;
    if (other !== namespace) {
      namespace = other;
      space.value = namespace;
      attempt(load);
    }
    showChosen();
    return true;
  };
}

// MARK: One record

async function showRecord(root, { index, namespace, id, signal, removed }) {
  const query = new URLSearchParams({ ids: id });
  if (namespace) query.set("namespace", namespace);
  const found = await vectors(index, `vectors/fetch?${query}`, { signal });
  const record = found.vectors[id];
  const back = backLink("All records", to("vectors", index, shown(namespace)));
  if (!record) {
    fillPane(root, back, h("h2", "No such record"),
      h("p", "There is no record ", h("code", brief(id)), "."));
    return;
  }
  const values = record.values ?? [];
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  const remove = button("Delete", async () => {
    const isDeleted = await ask({
      title: "Delete this record?",
      body: h("p", h("code", brief(id))),
      action: "Delete",
      isDangerous: true,
      read: () => vectors(index, "vectors/delete", { body: { ids: [id], namespace } }),
    });
    if (!isDeleted) return;
    toast("The record is deleted.");
    location.hash = to("vectors", index, shown(namespace));
    await removed();
  }, { kind: "danger" });
  const metadata = Object.entries(record.metadata ?? {}).map(([name, value]) =>
    [h("code", brief(name)), metadataValue(value)]);
  fillPane(root, back, h("h2", h("code", brief(id))),
    h("div.row", copyButton("Copy the ID", id),
      copyButton("Copy as JSON", () => JSON.stringify(record)), remove),
    h("h3", "Metadata"),
    metadata.length ? table(["Field", "Value"], metadata)
      : h("p.quiet", "The record has no metadata."),
    h("h3", "Values"),
    h("p", `${counted(values.length, "dimension")}, length ${length.toPrecision(4)}`),
    longText(values.join(", "), { max: 120 }),
    h("h3", "Similar records"), similar(index, namespace, id));
}

const metadataValue = (value) => typeof value === "string" ? longText(value)
  : longText(JSON.stringify(value), { tag: "code" });

/** The form that searches for records similar to a record. */
function similar(index, namespace, id) {
  const topK = h("input", { type: "number", min: 1, max: 100, value: 10, required: true });
  const filter = codeArea("", { placeholder: '{"senderId": "tina"}' });
  const result = h("div", { "aria-live": "polite" });
  const form = h("form",
    h("div.toolbar", field("Results", topK), h("button.primary", { type: "submit" }, "Search")),
    field("Metadata filter (JSON)", filter,
      'Such as {"members": {"$in": ["tina"]}}; empty for all records.'),
    result);

  return whenSubmitted(form, async () => {
    const body = { id, namespace, topK: Number(topK.value), includeMetadata: true };
    if (filter.value.trim()) body.filter = json(filter.value, "The filter is");
    const { matches = [] } = await vectors(index, "query", { body });
    const rows = matches.map((match) => [
      match.score.toFixed(4),
      h("a", { href: to("vectors", index, shown(namespace), match.id) },
        h("code", brief(match.id))),
      brief(match.metadata?.text ?? JSON.stringify(match.metadata ?? {}), 200),
    ]);
    replace(result, rows.length
      ? table(["Score", "ID", "Metadata"], rows,
        { caption: counted(rows.length, "similar record") })
      : h("p.quiet", "No record matches the filter."));
  });
}
