// A document: its collections and fields, edited without overwriting the changes of others.

import { firestore, readDocument } from "./api.js";
import { noDecision, readAs } from "./decisions.js";
import { ask, attempt, button, codeArea, crossButton, field, h, replace, select, tell,
  toPath } from "./dom.js";
import { count, time } from "./format.js";
import { copyButton, longText } from "./long-text.js";
import { userPicker } from "./user-picker.js";
import { documentJSON, fieldPath, fieldsFromJSON, fieldsToJSON, jsonHint, members, parse, textOf,
  toJSON, typeOf, types } from "./values.js";

const textMax = 300;
/** The members of a map or array that are shown at once. */
const membersMax = 100;
const openMembersMax = 20;
const collectionsMax = 10_000;

/**
 * The column of a document.
 *
 * `refresh()` loads it again, `choose(name)` marks a collection, and `changed(changes)` takes the
 * changes of the database.
 */
export function documentPanel(path, signal) {
  const id = path.split("/").at(-1);
  const times = h("small.quiet");
  const collections = h("div.links");
  const fields = h("div.fields");
  const missing = h("p.quiet", { role: "status", hidden: true },
    "There is no such document. It may have documents below it.");
  let stored = null;
  let ids = [];
  let chosen = null;

  async function load() {
    const found = await attempt(() =>
      Promise.all([readDocument(path, signal), collectionIDs(path, signal)]));
    if (!found || signal.aborted) return;
    const before = stored?.fields ?? null;
    [stored, ids] = found;
    draw(before);
  }

  function draw(before) {
    missing.hidden = stored !== null;
    replace(times, stored
      && ["created ", time(stored.createTime), " · updated ", time(stored.updateTime)]);
    replace(collections, ids.map((name) => h("a.link-row",
      { href: toPath(`${path}/${name}`), "aria-current": name === chosen }, name)));
    replace(fields, memberList(Object.entries(stored?.fields ?? {}), [], (name, value) => {
      const isChanged = before && JSON.stringify(before[name]) !== JSON.stringify(value);
      return isChanged ? "flash" : "";
    }));
  }

  function memberList(unsorted, above, classOf = () => "") {
    const isMap = typeof unsorted[0]?.[0] === "string";
    const entries = isMap ? unsorted.sort(([left], [right]) => (left < right ? -1 : 1)) : unsorted;
    const list = h("ul.members");
    const add = (from) => {
      const next = entries.slice(from, from + membersMax);
      list.append(...next.map(([name, value]) =>
        memberRow([...above, name], value, classOf(name, value))));
      const rest = entries.length - from - membersMax;
      if (rest <= 0) return;
      const more = h("li", button(`Show more (${count(rest)} left)`, () => {
        more.remove();
        add(from + membersMax);
      }));
      list.append(more);
    };
    add(0);
    return list;
  }

  function memberRow(names, value, className) {
    const type = typeOf(value);
    const nested = members(value);
    const name = names.join(".");
    const label = h("span.name", String(names.at(-1)), h("span.type", type));
    const actions = h("span.member-actions",
      button("Edit", () => editMember(names, value),
        { kind: "plain", "aria-label": `Edit ${name}` }),
      crossButton(`Delete ${name}`, () => removeMember(names)));
    const row = nested
      ? h("li.nested", h("details", { open: names.length === 1 && nested.length <= openMembersMax },
        h("summary", label, h("span.quiet", textOf(value))), memberList(nested, names)), actions)
      : h("li", h("div.member", label, valueElement(value, type), actions));
    if (className) row.classList.add(className);
    return row;
  }

  function valueElement(value, type) {
    const text = textOf(value);
    // Documents of other databases are not in the console.
    if (type === "reference" && value.referenceValue !== text) {
      return h("a.value", { href: toPath(text) }, text);
    }
    const element = longText(text, { max: textMax, tag: `bdi.value.type-${type}` });
    if (type === "timestamp") element.title = new Date(text).toLocaleString();
    return element;
  }

  /**
   * Edits a field of `base`, or a part of it; `base` is the document that the person has seen.
   *
   * It is not `stored`, which follows the changes of others while a dialog is open.
   */
  async function change(base, names, edit) {
    const [top] = names;
    const copy = structuredClone(base?.fields ?? {});
    const holder = names.slice(0, -1).reduce((value, name) =>
      (typeOf(value) === "array" ? value.arrayValue.values : value.mapValue.fields)[name],
    { mapValue: { fields: copy } });
    edit(holder, names.at(-1));
    await save(base, Object.hasOwn(copy, top) ? { [top]: copy[top] } : {}, [top]);
  }

  async function save(base, newFields, changedNames) {
    const parameters = new URLSearchParams();
    changedNames?.forEach((name) => parameters.append("updateMask.fieldPaths", fieldPath(name)));
    await write(base, parameters, { method: "PATCH", body: { fields: newFields } });
  }

  /** Writes the document unless it is no longer `base`. */
  async function write(base, parameters, options) {
    if (base) parameters.set("currentDocument.updateTime", base.updateTime);
    else parameters.set("currentDocument.exists", "false");
    try {
      await firestore(path, `?${parameters}`, options);
    } catch (error) {
      if (!["FAILED_PRECONDITION", "ALREADY_EXISTS", "NOT_FOUND"].includes(error.code)) throw error;
      await load();
      throw new Error("The document has been changed elsewhere meanwhile, so nothing is written. "
        + "Cancel, look at its current fields, and edit again.");
    }
    await load();
  }

  async function editMember(names, value) {
    const base = stored;
    const editor = valueEditor(value);
    await ask({
      title: names.join("."),
      body: editor.element,
      read() {
        const edited = editor.read();
        return change(base, names, (holder, name) => {
          if (typeOf(holder) === "array") holder.arrayValue.values[name] = edited;
          else (holder.mapValue.fields ??= {})[name] = edited;
        });
      },
    });
  }

  async function removeMember(names) {
    const base = stored;
    await ask({
      title: `Delete the field ${names.join(".")}?`,
      body: [],
      action: "Delete",
      isDangerous: true,
      read: () => change(base, names, (holder, name) => {
        if (typeOf(holder) === "array") holder.arrayValue.values.splice(name, 1);
        else delete holder.mapValue.fields[name];
      }),
    });
  }

  async function addField() {
    const base = stored;
    const name = h("input.mono", { required: true, autocomplete: "off" });
    const editor = valueEditor({ stringValue: "" });
    await ask({
      title: "Add a field",
      body: [field("Name", name), editor.element],
      read() {
        if (!name.value) throw new Error("Enter the field's name.");
        if (Object.hasOwn(base?.fields ?? {}, name.value)) {
          throw new Error(`There is a field ${name.value} already.`);
        }
        return save(base, { [name.value]: editor.read() }, [name.value]);
      },
    });
  }

  async function editAsJSON() {
    const base = stored;
    const text = codeArea(JSON.stringify(fieldsToJSON(base?.fields ?? {}), null, 2),
      { rows: "16" });
    await ask({
      title: id,
      body: field("Fields as JSON", text, jsonHint),
      read: () => save(base, fieldsFromJSON(documentJSON(text.value))),
    });
  }

  async function remove() {
    const base = stored;
    await ask({
      title: `Delete ${id}?`,
      body: [h("p.mono", path),
        ids.length > 0 && h("p", `Its collections (${ids.join(", ")}) stay.`)],
      action: "Delete",
      isDangerous: true,
      read: () => write(base, new URLSearchParams(), { method: "DELETE" }),
    });
  }

  load();
  return {
    element: h("section.column.wide", { "aria-label": `Document ${path}` },
      h("div.column-head", h("h2.mono", id)),
      times, missing,
      h("div.row",
        button("Add a field", addField), button("Edit as JSON", editAsJSON),
        button("Who may read this?", () => explainAccess(path)),
        copyButton("Copy the path", path),
        button("Delete", remove, { kind: "danger" })),
      h("div.scroll",
        h("h3", "Collections"), collections,
        button("Add a collection", () => addCollection(path)),
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

/** The controls for a value of any type; `read()` returns the value, or throws what is wrong. */
function valueEditor(value) {
  const current = typeOf(value);
  const type = select(Object.keys(types), { value: current });
  const text = codeArea(editorText(value, current), { autofocus: true });
  // The control has other line ends than the value may have.
  const unchanged = text.value;
  return {
    element: [field("Type", type), field("Value", text, "Maps, arrays and vectors are JSON.")],
    read: () => (type.value === current && text.value === unchanged
      ? value : parse(type.value, text.value)),
  };
}

function editorText(value, type) {
  switch (type) {
    case "map": case "array": return JSON.stringify(toJSON(value), null, 2);
    case "null": return "";
    default: return textOf(value);
  }
}

// MARK: Adding

/** A random document ID, like those of the SDKs. */
export function randomID() {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  // 248 is 4 × 62; larger bytes would make the first letters more frequent.
  const bytes = crypto.getRandomValues(new Uint8Array(80)).filter((byte) => byte < 248);
  return [...bytes.slice(0, 20)].map((byte) => letters[byte % 62]).join("");
}

function checkID(id) {
  if (!id || id.includes("/")) throw new Error("An ID has no slash and is not empty.");
}

/** Asks for a new document of a collection, adds it, and shows it. */
export async function addDocument(collection) {
  const id = h("input.mono", { autocomplete: "off", value: randomID() });
  const text = codeArea("{\n  \n}", { rows: "10" });
  const added = await ask({
    title: "Add a document",
    body: [
      h("p.mono", collection),
      field("Document ID", id),
      field("Fields as JSON", text, jsonHint),
    ],
    action: "Add",
    async read() {
      checkID(id.value);
      const path = `${collection}/${id.value}`;
      await firestore(path, "?currentDocument.exists=false",
        { method: "PATCH", body: { fields: fieldsFromJSON(documentJSON(text.value)) } });
      return path;
    },
  });
  if (added) location.hash = toPath(added);
}

/** Asks for a new collection below a document or the root, and for its first document. */
export async function addCollection(parent) {
  const id = h("input", { required: true, autocomplete: "off" });
  const name = await ask({
    title: "Add a collection",
    body: field("Collection ID", id, "It exists as soon as it has a document."),
    action: "Continue",
    read() {
      checkID(id.value);
      return id.value;
    },
  });
  if (name) await addDocument(parent ? `${parent}/${name}` : name);
}

/** The IDs of the collections below a document or the root; at most 10 000. */
export async function collectionIDs(path, signal) {
  const ids = [];
  let pageToken;
  do {
    const found = await firestore(path, ":listCollectionIds", { body: { pageToken }, signal });
    ids.push(...found.collectionIds ?? []);
    pageToken = found.nextPageToken;
  } while (pageToken && ids.length < collectionsMax);
  return ids;
}

// MARK: Rules

/** Reads a document as a chosen user, and shows the rules' decision. */
function explainAccess(path) {
  const result = h("div", { "aria-live": "polite" });
  const picker = userPicker("Read it as");

  async function decide() {
    const { error, decisions: [decision] } = await readAs(path, false, picker.user());
    // The rules allow the read of a missing document before it is looked for.
    const isFailed = error && ![401, 403, 404].includes(error.status);
    const isDenied = decision ? !decision.isAllowed : [401, 403].includes(error?.status);
    replace(result,
      isFailed ? h("p.bad", error.message)
        : isDenied ? h("p.bad", "Denied.") : h("p.good", "Allowed."),
      decision ? h("pre", decision.text) : h("p.quiet", noDecision));
  }

  tell({
    title: "Who may read this?",
    body: [
      h("p.mono", path),
      h("div.row", picker.element, button("Decide", decide, { kind: "primary" })),
      result,
    ],
  });
}
