// A document: its collections and fields, edited with regard to other windows.

import { documentName, firestore, hub, send } from "./api.js";
import { ask, attempt, button, field, h, replace, time, to } from "./dom.js";
import { copyButton, visible } from "./long-text.js";
import { userPicker } from "./user-picker.js";
import { fieldPath, fieldsFromJSON, fieldsToJSON, json, jsonHint, members, parse, textOf, toJSON, typeOf,
  types } from "./values.js";

/** Longer texts are cut until a person asks for all of it. */
const textMax = 300;
/** More members of a map or an array are shown on request. */
const membersMax = 100;

/** The column of a document. */
export function documentPanel(path, signal) {
  const id = path.split("/").at(-1);
  const times = h("small.quiet");
  const collections = h("div.links");
  const fields = h("div.fields");
  const problem = h("p.quiet", { role: "status", hidden: true });
  let stored = null;
  let ids = [];
  let chosen = null;

  async function load() {
    const found = await attempt(() => Promise.all([
      // Unlike a read of one document, this is no error for the browser if it is missing.
      firestore("", ":batchGet", { body: { documents: [documentName(path)] }, signal })
        .then(([answer]) => answer.found ?? null),
      collectionIDs(path, signal)]));
    if (!found || signal.aborted) return;
    const before = stored?.fields ?? null;
    [stored, ids] = found;
    draw(before);
  }

  function draw(before) {
    problem.hidden = stored !== null;
    problem.textContent = "There is no such document. It may have documents below it.";
    replace(times, stored && ["created ", time(stored.createTime), " · updated ", time(stored.updateTime)]);
    replace(collections, ids.map((name) => h("a.link-row",
      { href: to("firestore", ...path.split("/"), name), "aria-current": name === chosen ? "true" : null }, name)));
    replace(fields, memberList(Object.entries(stored?.fields ?? {}), [], (name, value) => {
      const isChanged = before && JSON.stringify(before[name]) !== JSON.stringify(value);
      return isChanged ? "flash" : "";
    }));
  }

  // MARK: Fields

  function memberList(unsorted, above, classOf = () => "") {
    const isMap = typeof unsorted[0]?.[0] === "string";
    const entries = isMap ? unsorted.sort(([left], [right]) => (left < right ? -1 : 1)) : unsorted;
    const list = h("ul.members");
    const add = (from) => {
      const next = entries.slice(from, from + membersMax);
      list.append(...next.map(([name, value]) => memberRow([...above, name], value, classOf(name, value))));
      if (entries.length > from + membersMax) {
        const more = h("li", button(`Show more (${entries.length - from - membersMax} left)`, () => {
          more.remove();
          add(from + membersMax);
        }));
        list.append(more);
      }
    };
    add(0);
    return list;
  }

  function memberRow(names, value, className) {
    const name = names.at(-1);
    const type = typeOf(value);
    const nested = type === "vector" ? null : members(value);
    const label = h("span.name", String(name), h("span.type", type));
    const actions = h("span.member-actions",
      button("Edit", () => editMember(names, value), { kind: "plain", "aria-label": `Edit ${names.join(".")}` }),
      button("×", () => removeMember(names), { kind: "plain", "aria-label": `Delete ${names.join(".")}` }));
    const row = nested
      ? h("li.nested", h("details", { open: names.length === 1 && nested.length <= 20 },
        h("summary", label, h("span.quiet", textOf(value))), memberList(nested, names)), actions)
      : h("li", h("div.member", label, valueText(value, type), actions));
    if (className) row.classList.add(className);
    return row;
  }

  function valueText(value, type) {
    const text = textOf(value);
    const isLong = text.length > textMax;
    const shown = h("bdi.value.type-" + type, visible(isLong ? `${text.slice(0, textMax)} …` : text));
    if (type === "timestamp") shown.title = new Date(text).toLocaleString();
    if (type === "reference") return h("a.value", { href: to("firestore", ...text.split("/")) }, text);
    if (!isLong) return shown;
    const more = button(`Show all ${text.length} characters`, () => {
      shown.textContent = visible(text);
      more.remove();
    }, { kind: "plain" });
    return h("span", shown, " ", more);
  }

  /** Replaces a field, or a part of it, unless another window has changed the document. */
  async function change(names, edit) {
    const top = names[0];
    const copy = structuredClone(stored?.fields ?? {});
    const holder = names.slice(0, -1).reduce((value, name) =>
      (typeOf(value) === "array" ? value.arrayValue.values[name] : (value.mapValue.fields ??= {})[name]),
    { mapValue: { fields: copy } });
    edit(holder, names.at(-1));
    await save(copy[top] === undefined ? {} : { [top]: copy[top] }, [top]);
  }

  async function save(newFields, changedNames) {
    const parameters = new URLSearchParams();
    changedNames?.forEach((name) => parameters.append("updateMask.fieldPaths", fieldPath(name)));
    if (stored) parameters.set("currentDocument.updateTime", stored.updateTime);
    else parameters.set("currentDocument.exists", "false");
    try {
      await firestore(path, `?${parameters}`, { method: "PATCH", body: { fields: newFields } });
    } catch (error) {
      if (!["FAILED_PRECONDITION", "ALREADY_EXISTS", "NOT_FOUND"].includes(error.code)) throw error;
      await load();
      throw new Error("The document has been changed elsewhere meanwhile. The current one is shown; "
        + "look at it and edit again.");
    }
    await load();
  }

  async function editMember(names, value) {
    const editor = valueEditor(value);
    await ask({ title: names.join("."), body: editor.element, read: () => {
      const edited = editor.read();
      return change(names, (holder, name) => {
        if (typeOf(holder) === "array") holder.arrayValue.values[name] = edited;
        else (holder.mapValue.fields ??= {})[name] = edited;
      }).then(() => true);
    } });
  }

  async function removeMember(names) {
    await ask({ title: `Delete the field ${names.join(".")}?`, body: [], action: "Delete", isDangerous: true,
      read: () => change(names, (holder, name) => {
        if (typeOf(holder) === "array") holder.arrayValue.values.splice(name, 1);
        else delete holder.mapValue.fields[name];
      }).then(() => true) });
  }

  async function addField() {
    const name = h("input.mono", { required: true, autocomplete: "off" });
    const editor = valueEditor({ stringValue: "" });
    await ask({ title: "Add a field", body: [field("Name", name), editor.element], read: () => {
      if (!name.value) throw new Error("Enter the field's name.");
      if (stored?.fields?.[name.value]) throw new Error(`There is a field ${name.value} already.`);
      return save({ [name.value]: editor.read() }, [name.value]).then(() => true);
    } });
  }

  async function editAsJSON() {
    const text = h("textarea.code", { rows: "16", spellcheck: "false" });
    text.value = JSON.stringify(fieldsToJSON(stored?.fields ?? {}), null, 2);
    await ask({ title: id, body: field("Fields as JSON", text, jsonHint),
      read: () => save(fieldsFromJSON(json(text.value))).then(() => true) });
  }

  async function remove() {
    const below = ids.length ? `Its collections (${ids.join(", ")}) stay.` : "";
    const done = await ask({ title: `Delete ${id}?`, body: [h("p.mono", path), below && h("p", below)],
      action: "Delete", isDangerous: true,
      read: () => firestore(path, "", { method: "DELETE" }).then(() => true) });
    if (done) await load();
  }

  load();
  return {
    element: h("section.column.wide", { "aria-label": `Document ${path}` },
      h("div.column-head", h("h2.mono", id)),
      times, problem,
      h("div.row",
        button("Add a field", addField), button("Edit as JSON", editAsJSON),
        button("Who may read this?", () => explainAccess(path)),
        copyButton("Copy the path", path),
        button("Delete", remove, { kind: "danger" })),
      h("div.scroll",
        h("h3", "Collections"), collections, button("Add a collection", () => startCollection(path)),
        h("h3", "Fields"), fields)),
    refresh: load,
    choose(name) {
      chosen = name;
      if (stored || ids.length) draw(null);
    },
    changed(changes) {
      const isBelow = (change) => change.path.startsWith(`${path}/`)
        && !ids.includes(change.path.slice(path.length + 1).split("/")[0]);
      if (changes.some((change) => change.path === path || isBelow(change))) load();
    },
  };
}

/** A control for a value of any type. */
function valueEditor(value) {
  const type = h("select", Object.keys(types).map((name) => h("option", name)));
  type.value = typeOf(value);
  const text = h("textarea.code", { rows: "5", spellcheck: "false" });
  const isJSON = () => ["map", "array", "vector"].includes(type.value);
  const plain = toJSON(value);
  text.value = typeOf(value) === "vector" ? JSON.stringify(plain.__vector__)
    : isJSON() ? JSON.stringify(plain, null, 2) : typeOf(value) === "null" ? "" : textOf(value);
  return {
    element: [field("Type", type), field("Value", text, "Maps, arrays and vectors are JSON.")],
    read: () => parse(type.value, text.value),
  };
}

/** A random ID as the SDKs make it. */
export function randomID() {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  const bytes = crypto.getRandomValues(new Uint8Array(80)).filter((byte) => byte < 248);
  return [...bytes.slice(0, 20)].map((byte) => letters[byte % 62]).join("");
}

/** Asks for a new document of a collection, and shows it. */
export async function newDocument(collection) {
  const id = h("input.mono", { autocomplete: "off", value: randomID() });
  const text = h("textarea.code", { rows: "10", spellcheck: "false", value: "{\n  \n}" });
  const made = await ask({
    title: "Add a document", action: "Add",
    body: [h("p.mono", collection), field("Document ID", id), field("Fields as JSON", text, jsonHint)],
    async read() {
      if (!id.value || id.value.includes("/")) throw new Error("An ID has no slash and is not empty.");
      const path = `${collection}/${id.value}`;
      await firestore(path, "?currentDocument.exists=false",
        { method: "PATCH", body: { fields: fieldsFromJSON(json(text.value)) } });
      return path;
    },
  });
  if (made) location.hash = to("firestore", ...made.split("/"));
}

// MARK: Rules

/** Reads a document as a chosen user, and shows the rules' decision. */
async function explainAccess(path) {
  const result = h("div", { "aria-live": "polite" });
  const picker = userPicker({ label: "Read it as", administrator: false });
  const decide = async () => {
    const user = picker.user();
    const response = await send("firestore", `/v1/${documentName(path).split("/").map(encodeURIComponent).join("/")}`,
      { as: user });
    const isDenied = response.status === 403 || response.status === 401;
    const decisions = await hub("/rules/decisions?limit=20");
    const decision = decisions.find((entry) => entry.path.endsWith(path) && entry.isAllowed === !isDenied);
    replace(result,
      h(isDenied ? "p.bad" : "p.good", isDenied ? "Denied." : "Allowed."),
      decision ? h("pre", decision.text)
        : h("p.quiet", isDenied ? (await response.text()) : "No rules are loaded, so everyone may read it."));
  };
  await ask({ title: "Who may read this?", action: "Close",
    body: [h("p.mono", path), h("div.row", picker.element, button("Decide", decide, { kind: "primary" })), result] });
}
/** The IDs of the collections below a document or the root; at most 1000. */
export async function collectionIDs(path, signal) {
  const found = await firestore(path, ":listCollectionIds", { body: { pageSize: 1000 }, signal });
  return found.collectionIds ?? [];
}

/** Adds the first document of a new collection. */
export async function startCollection(parent) {
  const id = h("input", { required: true, autocomplete: "off" });
  const name = await ask({ title: "Add a collection", action: "Continue",
    body: [field("Collection ID", id, "It exists as soon as it has a document.")],
    read: () => {
      if (!id.value || id.value.includes("/")) throw new Error("An ID has no slash and is not empty.");
      return id.value;
    } });
  if (name) await newDocument(parent ? `${parent}/${name}` : name);
}

